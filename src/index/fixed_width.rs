//! Keys of at most 8 bytes as words of 64 bits: equal keys have equal words, and words of integers are in the order of the
//! integers. Several key columns are packed into one word where their ranges are small enough.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::key_chunk::KeyChunk;
use crate::cancel::Cancel;
use crate::columns::Bounds;
use crate::columns::floats::{canonical, canonical_half};
use crate::error::Result;

/// A value that has a word.
pub(super) trait Word: Copy {
    fn word(self) -> u64;
}

macro_rules! words {
    ($($native:ty: |$value:ident| $word:expr),* $(,)?) => {
        $(impl Word for $native {
            #[inline(always)]
            fn word(self) -> u64 {
                let $value = self;
                $word
            }
        })*
    };
}

const SIGN: u64 = 1 << 63;

words! {
    i8: |v| v as i64 as u64 ^ SIGN,
    i16: |v| v as i64 as u64 ^ SIGN,
    i32: |v| v as i64 as u64 ^ SIGN,
    i64: |v| v as u64 ^ SIGN,
    u8: |v| v.into(),
    u16: |v| v.into(),
    u32: |v| v.into(),
    u64: |v| v,
    f32: |v| canonical(v, f32::NAN).to_bits().into(),
    f64: |v| canonical(v, f64::NAN).to_bits(),
    IntervalDayTime: |v| u64::from(v.days as u32) << 32 | u64::from(v.milliseconds as u32),
}

/// Evaluates `$call!(ArrowType)` for types of at most 8 bytes, `$boolean` for Boolean, `$half` for Float16, `$null` for Null,
/// and `$other` for all other types.
macro_rules! by_type {
    ($data_type:expr, $call:ident, $boolean:expr, $half:expr, $null:expr, $other:expr) => {
        match $data_type {
            DataType::Null => $null,
            DataType::Boolean => $boolean,
            DataType::Float16 => $half,
            DataType::Int8 => $call!(Int8Type),
            DataType::Int16 => $call!(Int16Type),
            DataType::Int32 => $call!(Int32Type),
            DataType::Int64 => $call!(Int64Type),
            DataType::UInt8 => $call!(UInt8Type),
            DataType::UInt16 => $call!(UInt16Type),
            DataType::UInt32 => $call!(UInt32Type),
            DataType::UInt64 => $call!(UInt64Type),
            DataType::Float32 => $call!(Float32Type),
            DataType::Float64 => $call!(Float64Type),
            DataType::Date32 => $call!(Date32Type),
            DataType::Date64 => $call!(Date64Type),
            DataType::Time32(TimeUnit::Second) => $call!(Time32SecondType),
            DataType::Time32(TimeUnit::Millisecond) => $call!(Time32MillisecondType),
            DataType::Time64(TimeUnit::Microsecond) => $call!(Time64MicrosecondType),
            DataType::Time64(TimeUnit::Nanosecond) => $call!(Time64NanosecondType),
            DataType::Timestamp(TimeUnit::Second, _) => $call!(TimestampSecondType),
            DataType::Timestamp(TimeUnit::Millisecond, _) => $call!(TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, _) => $call!(TimestampMicrosecondType),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => $call!(TimestampNanosecondType),
            DataType::Duration(TimeUnit::Second) => $call!(DurationSecondType),
            DataType::Duration(TimeUnit::Millisecond) => $call!(DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => $call!(DurationMicrosecondType),
            DataType::Duration(TimeUnit::Nanosecond) => $call!(DurationNanosecondType),
            DataType::Interval(IntervalUnit::YearMonth) => $call!(IntervalYearMonthType),
            DataType::Interval(IntervalUnit::DayTime) => $call!(IntervalDayTimeType),
            DataType::Decimal32(..) => $call!(Decimal32Type),
            DataType::Decimal64(..) => $call!(Decimal64Type),
            _ => $other,
        }
    };
}

/// True for types whose values have words.
pub(super) fn is_word(data_type: &DataType) -> bool {
    macro_rules! yes {
        ($t:ty) => {
            true
        };
    }
    by_type!(data_type, yes, true, true, true, false)
}

/// True for word types whose values are integers, so that the words of neighbouring values are neighbours.
pub(super) fn is_integer_like(data_type: &DataType) -> bool {
    is_word(data_type) && !data_type.is_floating() && *data_type != DataType::Interval(IntervalUnit::DayTime)
}

/// Writes the words of rows `start..start + out.len()`. The word of a null is unspecified.
fn read(array: &dyn Array, start: usize, out: &mut [u64]) {
    fn primitive<T: ArrowPrimitiveType<Native: Word>>(array: &dyn Array, start: usize, out: &mut [u64]) {
        let values = &array.as_primitive::<T>().values()[start..start + out.len()];
        for (out, value) in out.iter_mut().zip(values) {
            *out = value.word();
        }
    }
    macro_rules! primitive {
        ($t:ty) => {
            primitive::<$t>(array, start, out)
        };
    }
    let boolean = |out: &mut [u64]| {
        let values = array.as_boolean().values();
        for (i, out) in out.iter_mut().enumerate() {
            *out = u64::from(values.value(start + i));
        }
    };
    let half = |out: &mut [u64]| {
        let bits: &[u16] = array.as_primitive::<Float16Type>().values().inner().typed_data();
        for (out, &bits) in out.iter_mut().zip(&bits[start..]) {
            *out = canonical_half(bits).into();
        }
    };
    by_type!(array.data_type(), primitive, boolean(out), half(out), (), debug_assert!(false, "not a word type"))
}

/// The values of an integer column without nulls, for loops that read them directly.
pub(super) struct Plain<'a> {
    pub(super) values: Values<'a>,
    /// Word of the value 0. Differences of words are differences of values.
    zero: u64,
}

pub(super) enum Values<'a> {
    Wide(&'a [u64]),
    Signed(&'a [i32]),
}

impl<'a> Plain<'a> {
    pub(super) fn of(array: &'a dyn Array) -> Option<Self> {
        fn plain<T: ArrowPrimitiveType<Native: Word>>(array: &dyn Array) -> Option<Plain<'_>> {
            let (values, zero) = (array.as_primitive::<T>().values().inner(), T::Native::default().word());
            let values = match size_of::<T::Native>() {
                8 => Values::Wide(values.typed_data()),
                4 if zero == SIGN => Values::Signed(values.typed_data()),
                _ => return None,
            };
            Some(Plain { values, zero })
        }
        macro_rules! primitive {
            ($t:ty) => {
                plain::<$t>(array)
            };
        }
        if !is_integer_like(array.data_type()) || has_nulls(array) {
            return None;
        }
        by_type!(array.data_type(), primitive, None, None, None, None)
    }

    /// The value, as a number of 64 bits, whose word is `word`.
    pub(super) fn value(&self, word: u64) -> u64 {
        word.wrapping_sub(self.zero)
    }
}

/// True where some row is null. An array of type Null has no bitmap, so its null count does not show it.
pub(super) fn has_nulls(array: &dyn Array) -> bool {
    *array.data_type() == DataType::Null || array.null_count() > 0
}

/// Sets `live` to false for the null rows among `start..start + live.len()`.
fn clear_nulls(array: &dyn Array, start: usize, live: &mut [bool]) {
    if *array.data_type() == DataType::Null {
        live.fill(false);
    } else if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        for (i, live) in live.iter_mut().enumerate() {
            *live &= nulls.is_valid(start + i);
        }
    }
}

/// How the key columns of a build become one word per row.
#[derive(Debug, Clone)]
pub(super) enum Words {
    /// The word of the only key column.
    Single,
    /// The words of several columns as digits of one number. Each digit is a word less the smallest of its column.
    Packed(Vec<Digit>),
}

/// One key column of a packed word.
#[derive(Debug, Clone)]
pub(super) struct Digit {
    pub(super) min: u64,
    /// Largest word of the column less `min`.
    pub(super) span: u64,
    /// Digit of null where null equals null.
    pub(super) null: Option<u64>,
    pub(super) factor: u64,
}

impl Words {
    /// Packs several word columns. `None` where the product of their ranges does not fit a word.
    pub(super) fn pack(
        columns: &[ArrayRef],
        nulls_equal: &[bool],
        bounds: &[Option<Bounds>],
        chunk: &mut KeyChunk,
        cancel: &Cancel,
    ) -> Result<Option<Self>> {
        let mut factor = 1u128;
        let mut digits = Vec::with_capacity(columns.len());
        for (i, (column, &nulls_equal)) in columns.iter().zip(nulls_equal).enumerate() {
            let (min, max) = range(column, bounds.get(i).and_then(Option::as_ref), chunk, cancel)?;
            let span = max - min;
            let has_null = nulls_equal && has_nulls(column);
            let values = u128::from(span) + 1;
            let null = has_null.then_some(span.wrapping_add(1));
            // A factor of 2^64 does not fit, but then all further digits are 0.
            digits.push(Digit { min, span, null, factor: u64::try_from(factor).unwrap_or(0) });
            factor = match factor.checked_mul(values + u128::from(has_null)) {
                Some(product) if product <= 1 << 64 => product,
                _ => return Ok(None),
            };
        }
        Ok(Some(Words::Packed(digits)))
    }

    /// Fills `chunk` with the rows among `start..start + len` whose key can be in the index, and their words.
    pub(super) fn read(&self, columns: &[ArrayRef], start: usize, len: usize, chunk: &mut KeyChunk) {
        match self {
            Words::Single => {
                let column = columns[0].as_ref();
                read(column, start, chunk.words(len));
                if has_nulls(column) {
                    clear_nulls(column, start, chunk.live(len));
                    chunk.compact(start, len);
                } else {
                    chunk.all(start, len);
                }
            }
            Words::Packed(digits) => {
                chunk.clear_sums(len);
                for (column, digit) in columns.iter().zip(digits) {
                    let column = column.as_ref();
                    let (words, live, sums, valid) = chunk.packing(len);
                    read(column, start, words);
                    if !has_nulls(column) {
                        for ((word, live), sum) in words.iter().zip(live).zip(sums) {
                            let value = word.wrapping_sub(digit.min);
                            *live &= value <= digit.span;
                            *sum = sum.wrapping_add(value.wrapping_mul(digit.factor));
                        }
                        continue;
                    }
                    valid.fill(true);
                    clear_nulls(column, start, valid);
                    // Without a digit for null, a row with a null key cannot be in the index.
                    let null = digit.null;
                    for (((word, live), sum), valid) in words.iter().zip(live).zip(sums).zip(valid) {
                        let value = word.wrapping_sub(digit.min);
                        let fits = if *valid { value <= digit.span } else { null.is_some() };
                        let value = if *valid { value } else { null.unwrap_or(0) };
                        *live &= fits;
                        *sum = sum.wrapping_add(value.wrapping_mul(digit.factor));
                    }
                }
                chunk.compact_sums(start, len);
            }
        }
    }
}

/// Smallest and largest word of the rows that are not null, or (0, 0) where all are. They follow from `bounds` where these are
/// known.
pub(super) fn range(
    column: &ArrayRef,
    bounds: Option<&Bounds>,
    chunk: &mut KeyChunk,
    cancel: &Cancel,
) -> Result<(u64, u64)> {
    // Words of floats are not in the order of the floats.
    if let Some(bounds) = bounds.filter(|_| is_integer_like(column.data_type())) {
        let mut range = [0; 2];
        read(bounds.min(), 0, &mut range[..1]);
        read(bounds.max(), 0, &mut range[1..]);
        return Ok(range.into());
    }
    let (mut min, mut max) = (u64::MAX, 0);
    for start in (0..column.len()).step_by(KeyChunk::ROWS) {
        cancel.check()?;
        let len = KeyChunk::ROWS.min(column.len() - start);
        Words::Single.read(std::slice::from_ref(column), start, len, chunk);
        for &word in chunk.live_words() {
            min = min.min(word);
            max = max.max(word);
        }
    }
    Ok(if min > max { (0, 0) } else { (min, max) })
}

/// The rows of one key column that are null, `None` if there is none.
pub(super) fn null_rows(column: &dyn Array) -> Option<NullBuffer> {
    column.logical_nulls().filter(|nulls| nulls.null_count() > 0)
}
