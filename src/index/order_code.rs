//! Numbers of fixed width that order the values of a column, so that a search compares no other values.
//!
//! The code of an integer, a time or a decimal is its number, that of a float its bits in the order of floats, that of a text
//! its first eight bytes. Texts with one code are compared further; all other codes are equal where the values are.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, TimeUnit};

use super::byte_column::Bytes;
use crate::cancel::Cancel;
use crate::columns::{coerce, key_type};
use crate::error::{Result, internal_err};

/// Values encoded between two looks at the cancel signal.
const PIECE: usize = 1 << 16;

/// A number that orders values.
pub(crate) trait OrderCode: ArrowNativeType + Ord {
    const LEAST: Self;
    const GREATEST: Self;

    /// The code of `value`, or the nearest one.
    fn nearest(value: i256) -> Self;

    fn wide(self) -> i256;

    /// `self - other`, or the nearest number.
    #[inline(always)]
    fn minus(self, other: Self) -> i256 {
        self.wide().wrapping_sub(other.wide())
    }

    /// The float whose code this is, for codes of floats.
    fn float(self) -> f64;
}

macro_rules! order_code {
    ($t:ty, $float:expr) => {
        impl OrderCode for $t {
            const LEAST: Self = <$t>::MIN;
            const GREATEST: Self = <$t>::MAX;

            fn nearest(value: i256) -> Self {
                match value.to_i128().and_then(|value| <$t>::try_from(value).ok()) {
                    Some(code) => code,
                    None if value.is_negative() => Self::LEAST,
                    None => Self::GREATEST,
                }
            }

            #[inline(always)]
            fn wide(self) -> i256 {
                i256::from_i128(self.into())
            }

            #[inline(always)]
            fn float(self) -> f64 {
                $float(self)
            }
        }
    };
}
order_code!(i32, |code: i32| f64::from(f32::from_bits(flip32(code) as u32)));
order_code!(i64, |code: i64| f64::from_bits(flip64(code) as u64));
order_code!(i128, |_| f64::NAN);

impl OrderCode for i256 {
    const LEAST: Self = i256::MIN;
    const GREATEST: Self = i256::MAX;

    fn nearest(value: i256) -> Self {
        value
    }

    #[inline(always)]
    fn wide(self) -> i256 {
        self
    }

    fn minus(self, other: Self) -> i256 {
        let nearest = if other.is_negative() { i256::MAX } else { i256::MIN };
        self.checked_sub(other).unwrap_or(nearest)
    }

    fn float(self) -> f64 {
        f64::NAN
    }
}

/// Between the bits of a float and its code, both ways.
fn flip32(bits: i32) -> i32 {
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

fn flip64(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The codes of a column. All of a type have one width.
#[derive(Debug, Clone)]
pub(crate) enum OrderCodes {
    I32(ScalarBuffer<i32>),
    I64(ScalarBuffer<i64>),
    I128(ScalarBuffer<i128>),
    I256(ScalarBuffer<i256>),
}

/// Evaluates `$body`, compiled for each width, with the codes as `$slice`.
macro_rules! with_codes {
    ($codes:expr, |$slice:ident| $body:expr) => {
        match $codes {
            OrderCodes::I32($slice) => $body,
            OrderCodes::I64($slice) => $body,
            OrderCodes::I128($slice) => $body,
            OrderCodes::I256($slice) => $body,
        }
    };
}
pub(super) use with_codes;

/// How the values of a type are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderKind {
    /// Codes are numbers with differences.
    Number,
    Float,
    /// Texts and bytes, which have an order and no differences.
    Bytes,
}

/// How values of a type are ordered; `None` for types that rows cannot be ordered by.
pub(crate) fn order_kind(data_type: &DataType) -> Option<OrderKind> {
    use DataType::*;
    Some(match key_type(data_type) {
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => OrderKind::Bytes,
        Float16 | Float32 | Float64 => OrderKind::Float,
        Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) => OrderKind::Number,
        other if other.is_integer() || other.is_decimal() => OrderKind::Number,
        _ => return None,
    })
}

/// The number that the code of a value of the type is less than the value.
fn base(data_type: &DataType) -> i256 {
    match data_type {
        DataType::UInt32 => i256::from_i128(1 << 31),
        DataType::UInt64 => i256::from_i128(1 << 63),
        _ => i256::ZERO,
    }
}

/// The values of an array of a primitive type, as they lie.
fn raw<N: ArrowNativeType>(column: &ArrayRef) -> ScalarBuffer<N> {
    let data = column.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn map<N: ArrowNativeType, C: OrderCode>(
    column: &ArrayRef,
    code: impl Fn(N) -> C,
    cancel: &Cancel,
) -> Result<ScalarBuffer<C>> {
    let mut codes = Vec::with_capacity(column.len());
    for piece in raw::<N>(column).chunks(PIECE) {
        cancel.check()?;
        codes.extend(piece.iter().map(|&value| code(value)));
    }
    Ok(codes.into())
}

/// The first eight bytes as a number, zeros where there are fewer.
fn prefix(bytes: &[u8]) -> i64 {
    let mut first = [0; 8];
    let len = bytes.len().min(8);
    first[..len].copy_from_slice(&bytes[..len]);
    (u64::from_be_bytes(first) ^ 1 << 63) as i64
}

/// Bytes of a code of the type, which is a [`key_type`].
pub(super) fn code_bytes(data_type: &DataType) -> usize {
    use DataType::*;
    match data_type {
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | Date32 | Time32(_) | Float16 | Float32 | Decimal32(..) => 4,
        Decimal128(..) => 16,
        Decimal256(..) => 32,
        _ => 8,
    }
}

/// The codes of a column of a [`key_type`] that has an order; any number for rows that are [`absent`]. Where values are their
/// codes, nothing is copied.
pub(super) fn codes(column: &ArrayRef, cancel: &Cancel) -> Result<OrderCodes> {
    use DataType::*;
    // Adding zero turns -0.0 into 0.0.
    let float = |value: f32| flip32((value + 0.0).to_bits() as i32);
    Ok(match column.data_type() {
        Int8 => OrderCodes::I32(map(column, |value: i8| i32::from(value), cancel)?),
        Int16 => OrderCodes::I32(map(column, |value: i16| i32::from(value), cancel)?),
        UInt8 => OrderCodes::I32(map(column, |value: u8| i32::from(value), cancel)?),
        UInt16 => OrderCodes::I32(map(column, |value: u16| i32::from(value), cancel)?),
        UInt32 => OrderCodes::I32(map(column, |value: u32| (value ^ 1 << 31) as i32, cancel)?),
        UInt64 => OrderCodes::I64(map(column, |value: u64| (value ^ 1 << 63) as i64, cancel)?),
        Float16 => {
            let values = column.as_primitive::<Float16Type>().values();
            OrderCodes::I32(values.iter().map(|value| float(value.to_f32())).collect())
        }
        Float32 => OrderCodes::I32(map(column, float, cancel)?),
        Float64 => OrderCodes::I64(map(column, |value: f64| flip64((value + 0.0).to_bits() as i64), cancel)?),
        Int32 | Date32 | Time32(_) | Decimal32(..) => OrderCodes::I32(raw(column)),
        Int64 | Date64 | Time64(_) | Timestamp(..) | Duration(_) | Decimal64(..) => OrderCodes::I64(raw(column)),
        Decimal128(..) => OrderCodes::I128(raw(column)),
        Decimal256(..) => OrderCodes::I256(raw(column)),
        other if order_kind(other) == Some(OrderKind::Bytes) => {
            let (bytes, rows) = (Bytes::of(column.as_ref()), column.len());
            let mut codes = Vec::with_capacity(rows);
            for start in (0..rows).step_by(PIECE) {
                cancel.check()?;
                codes.extend((start..rows.min(start + PIECE)).map(|row| match column.is_null(row) {
                    true => 0,
                    false => prefix(bytes.value(row)),
                }));
            }
            OrderCodes::I64(codes.into())
        }
        other => return internal_err!("rows are ordered by a column of type {other}"),
    })
}

/// A bit for each row, set where the row's value is null or NaN and so has no place in the order. `None` if no row is. The
/// column has a [`key_type`].
pub(super) fn absent(column: &ArrayRef) -> Option<BooleanBuffer> {
    let rows = column.len();
    let nan = match column.data_type() {
        DataType::Float16 => {
            let values = column.as_primitive::<Float16Type>().values();
            Some(BooleanBuffer::collect_bool(rows, |row| values[row].is_nan()))
        }
        DataType::Float32 => {
            let values = column.as_primitive::<Float32Type>().values();
            Some(BooleanBuffer::collect_bool(rows, |row| values[row].is_nan()))
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().values();
            Some(BooleanBuffer::collect_bool(rows, |row| values[row].is_nan()))
        }
        _ => None,
    };
    let null = column.logical_nulls().map(|nulls| !nulls.inner());
    let absent = match (nan, null) {
        (Some(nan), Some(null)) => Some(&nan | &null),
        (nan, null) => nan.or(null),
    };
    absent.filter(BooleanBuffer::has_true)
}

/// Compares two texts, of rows whose codes are equal.
pub(super) fn compare_bytes(a: &Bytes<'_>, row: usize, b: &Bytes<'_>, other: usize) -> Ordering {
    a.value(row).cmp(b.value(other))
}

/// Values of a probe column in the codes of a build column.
///
/// A value lies at its code or, where the build's type has no such value, between its code and the next one.
#[derive(Debug)]
pub(crate) struct ProbeValues {
    /// The values, for texts.
    pub(super) column: ArrayRef,
    pub(super) codes: OrderCodes,
    /// How far each value lies above its code, in the smaller of the two types' units: negative only below the least code.
    /// `None` where all lie at theirs and the units are the same.
    pub(super) rest: Option<Vec<i256>>,
    pub(super) absent: Option<BooleanBuffer>,
}

impl ProbeValues {
    /// Values of `column`, whose type is comparable with that of the build column, `of`.
    pub(crate) fn read(column: &ArrayRef, of: &DataType) -> Result<Self> {
        let (of, plain) = (&key_type(of), key_type(column.data_type()));
        let column = coerce(column, &plain)?.keys;
        if plain == DataType::Null {
            let column = arrow_array::new_null_array(of, column.len());
            let (codes, absent) = (codes(&column, &Cancel::default())?, absent(&column));
            return Ok(Self { column, codes, rest: None, absent });
        }
        let absent = absent(&column);
        let units = Units::of(of, &plain);
        if units.same_codes(of, &plain) {
            let codes = codes(&column, &Cancel::default())?;
            return Ok(Self { column, codes, rest: None, absent });
        }
        let values = wide(&column)?;
        let shift = base(of);
        macro_rules! scaled {
            ($variant:ident, $code:ty) => {{
                let (codes, rest): (Vec<$code>, Vec<_>) =
                    values.map(|value| units.place::<$code>(value, shift)).unzip();
                let exact = units.build == i256::ONE && rest.iter().all(|&rest| rest == i256::ZERO);
                (OrderCodes::$variant(codes.into()), (!exact).then_some(rest))
            }};
        }
        let (codes, rest) = match code_bytes(of) {
            4 => scaled!(I32, i32),
            8 => scaled!(I64, i64),
            16 => scaled!(I128, i128),
            _ => scaled!(I256, i256),
        };
        Ok(Self { column, codes, rest, absent })
    }

    /// True where the row has a value.
    #[inline(always)]
    pub(super) fn is_present(&self, row: usize) -> bool {
        self.absent.as_ref().is_none_or(|absent| !absent.value(row))
    }

    /// How far a value lies above its code.
    #[inline(always)]
    pub(super) fn rest(&self, row: usize) -> i256 {
        self.rest.as_ref().map_or(i256::ZERO, |rest| rest[row])
    }
}

/// The sizes of the units of two numeric types, in the smaller unit of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Units {
    /// Of the build's type.
    pub(crate) build: i256,
    probe: i256,
}

impl Units {
    /// `build` and `probe` are comparable [`key_type`]s.
    pub(crate) fn of(build: &DataType, probe: &DataType) -> Self {
        use DataType::*;
        let unit = |data_type: &DataType| match data_type {
            Timestamp(unit, _) | Time32(unit) | Time64(unit) | Duration(unit) => digits(*unit),
            Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
                i32::from(*scale)
            }
            _ => 0,
        };
        let (of_build, of_probe) = (unit(build), unit(probe));
        let finest = of_build.max(of_probe);
        // A factor that 256 bits do not hold is beyond all differences.
        let factor = |unit: i32| i256::from_i128(10).checked_pow((finest - unit) as u32).unwrap_or(i256::MAX);
        Self { build: factor(of_build), probe: factor(of_probe) }
    }

    fn same_codes(self, build: &DataType, probe: &DataType) -> bool {
        let same_unit = self == Self { build: i256::ONE, probe: i256::ONE };
        match order_kind(build) {
            Some(OrderKind::Number) => {
                let small = |data_type: &DataType| {
                    data_type.is_integer() && code_bytes(data_type) == 4 && *data_type != DataType::UInt32
                };
                let decimals = |a: &DataType, b: &DataType| a.is_decimal() && b.is_decimal();
                let alike = build == probe
                    || small(build) && small(probe)
                    || (decimals(build, probe) || !build.is_integer()) && code_bytes(build) == code_bytes(probe);
                same_unit && alike
            }
            _ => true,
        }
    }

    /// The code at or below `value`, and how far the value is above it. `shift` is the build type's [`base`].
    fn place<C: OrderCode>(self, value: i256, shift: i256) -> (C, i256) {
        let far = if value.is_negative() { i256::MIN } else { i256::MAX };
        let Some(fine) = value.checked_mul(self.probe) else { return (C::nearest(far), far) };
        let mut whole = fine.wrapping_div(self.build);
        if whole.wrapping_mul(self.build) > fine {
            whole = whole.wrapping_sub(i256::ONE);
        }
        let code = C::nearest(whole.wrapping_sub(shift));
        let rest = code.wide().wrapping_add(shift).checked_mul(self.build).and_then(|at| fine.checked_sub(at));
        (code, rest.unwrap_or(far))
    }
}

fn digits(unit: TimeUnit) -> i32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// The numbers of a column of numbers, whatever stands under its nulls.
fn wide(column: &ArrayRef) -> Result<Box<dyn Iterator<Item = i256>>> {
    fn all<N: ArrowNativeType>(
        column: &ArrayRef,
        wide: impl Fn(N) -> i256 + 'static,
    ) -> Box<dyn Iterator<Item = i256>> {
        let values = raw::<N>(column);
        Box::new((0..values.len()).map(move |row| wide(values[row])))
    }
    let shift = base(column.data_type());
    Ok(match column.data_type() {
        DataType::Int8 => all::<i8>(column, |value| i256::from_i128(value.into())),
        DataType::Int16 => all::<i16>(column, |value| i256::from_i128(value.into())),
        DataType::UInt8 => all::<u8>(column, |value| i256::from_i128(value.into())),
        DataType::UInt16 => all::<u16>(column, |value| i256::from_i128(value.into())),
        _ => match codes(column, &Cancel::default())? {
            OrderCodes::I32(codes) => Box::new((0..codes.len()).map(move |row| codes[row].wide().wrapping_add(shift))),
            OrderCodes::I64(codes) => Box::new((0..codes.len()).map(move |row| codes[row].wide().wrapping_add(shift))),
            OrderCodes::I128(codes) => Box::new((0..codes.len()).map(move |row| codes[row].wide())),
            OrderCodes::I256(codes) => Box::new((0..codes.len()).map(move |row| codes[row])),
        },
    })
}
