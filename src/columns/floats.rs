//! When two floats are the same key: all NaN are one value, and -0.0 is 0.0.

use arrow_array::ArrowNativeTypeOp;

/// True for a NaN only.
#[inline(always)]
pub(crate) fn is_nan<V: ArrowNativeTypeOp>(value: V) -> bool {
    value.partial_cmp(&value).is_none()
}

/// [`canonical`] for the bits of a half float: arithmetic on half floats is slow, and no dependency exports their type.
#[inline(always)]
pub(crate) fn canonical_half(bits: u16) -> u16 {
    match bits & 0x7fff {
        0 => 0,
        0x7c01.. => 0x7e00,
        _ => bits,
    }
}

/// One value for all that are the same key; `nan` for every NaN. Other types than floats are left as they are.
#[inline(always)]
pub(crate) fn canonical<V: ArrowNativeTypeOp>(value: V, nan: V) -> V {
    // Adding zero turns -0.0 into 0.0 and changes nothing else.
    if is_nan(value) { nan } else { value.add_wrapping(V::ZERO) }
}
