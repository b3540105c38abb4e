//! Comparison of two operands by value.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_arith::arity::unary;
use arrow_arith::boolean;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, i256};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ord::cmp;
use arrow_schema::{DataType, TimeUnit};

use super::kind::{Kind, scale, value_type};
use super::tree::CompareOp;
use crate::columns::floats;
use crate::error::{Result, internal_err};

/// The rows of an operand: one per pair, or, for a `scalar`, one that holds for all pairs.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) array: ArrayRef,
    pub(crate) scalar: bool,
}

impl Datum for Value {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.scalar)
    }
}

impl Value {
    /// The same rows as an array of `data_type`; an error if a value does not fit.
    pub(super) fn cast(&self, data_type: &DataType) -> Result<Value> {
        if self.array.data_type() == data_type {
            return Ok(Value { array: self.array.clone(), scalar: self.scalar });
        }
        let options = CastOptions { safe: false, ..Default::default() };
        let plain = value_type(self.array.data_type());
        let text = |data_type: &DataType| matches!(Kind::of(data_type), Kind::Text | Kind::Binary);
        // A dictionary may hold values that no row uses, and these must not fail the cast, so it is expanded first.
        // Between layouts of text or bytes no value can fail.
        let array = match text(plain) && text(data_type) {
            true => self.array.clone(),
            false => cast_with_options(&self.array, plain, &options)?,
        };
        Ok(Value { array: cast_with_options(&array, data_type, &options)?, scalar: self.scalar })
    }

    /// The value with nulls added where `other` is null, if it has to be cast to `data_type`: what is next to a null
    /// must not fail that cast. Neither operand is null in all rows.
    pub(super) fn null_where(&self, other: &Value, data_type: &DataType) -> Result<Value> {
        let plain = value_type(self.array.data_type());
        let nulls = other.array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let Some(nulls) = nulls.filter(|_| !self.scalar && plain != data_type && *plain != DataType::Null) else {
            return Ok(self.clone());
        };
        let array = self.cast(plain)?.array;
        let nulls = NullBuffer::union(array.nulls(), Some(&nulls));
        let array =
            make_array(array.to_data().into_builder().nulls(nulls).build().map_err(crate::error::Error::Arrow)?);
        Ok(Value { array, scalar: false })
    }

    /// True if every row is null.
    pub(super) fn is_all_null(&self) -> bool {
        self.array.logical_null_count() == self.array.len()
    }

    /// True if there is one value for all rows, and it is null.
    fn is_null_scalar(&self) -> bool {
        self.scalar && self.array.logical_null_count() == 1
    }

    /// The distance in the array from one row to the next.
    fn step(&self) -> usize {
        usize::from(!self.scalar)
    }
}

/// How two types are compared, decided once when an expression is bound.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Comparison {
    /// One operand is always null, and so is the result.
    Null,
    /// Arrow's kernel, after a cast of the sides that have a type here. It reads dictionaries as they are.
    Arrow { left: Option<DataType>, right: Option<DataType> },
    /// Arrow's kernel on floats of this type, after all NaNs are made the same, and -0.0 is made 0.0.
    Float(DataType),
    /// Whole numbers divided by ten to the power of `left` and `right`; `wide` if they need 256 bits.
    Scaled { left: i8, right: i8, wide: bool },
    /// A 64-bit integer on the left, a float on the right.
    IntegerFloat,
    /// A float on the left, a 64-bit integer on the right.
    FloatInteger,
    /// Dates, as the timestamps of their midnight: both sides are cast, then compared.
    Dates { left: DataType, right: DataType, then: Box<Comparison> },
}

impl Comparison {
    /// How to compare two types, if that is supported.
    pub(super) fn between(left: &DataType, right: &DataType) -> Option<Comparison> {
        let (l, r) = (value_type(left), value_type(right));
        let plain = |to: DataType| Comparison::Arrow { left: Some(to.clone()), right: Some(to) };
        Some(match (Kind::of(l), Kind::of(r)) {
            (Kind::Null, _) | (_, Kind::Null) => Comparison::Null,
            (Kind::Other | Kind::Interval, _) | (_, Kind::Other | Kind::Interval) => return None,
            (Kind::Float, Kind::Float) if l == r && *l == DataType::Float32 => Comparison::Float(DataType::Float32),
            (Kind::Float, Kind::Float) => Comparison::Float(DataType::Float64),
            _ if l == r => Comparison::Arrow { left: unless_arrow_reads(left), right: unless_arrow_reads(right) },
            (Kind::Number, Kind::Number) => match common_integer(l, r) {
                Some(common) => plain(common),
                None => scaled(l, r),
            },
            (Kind::Number, Kind::Float) if l.is_integer() => match is_long(l) {
                true => Comparison::IntegerFloat,
                false => Comparison::Float(DataType::Float64),
            },
            (Kind::Float, Kind::Number) if r.is_integer() => match is_long(r) {
                true => Comparison::FloatInteger,
                false => Comparison::Float(DataType::Float64),
            },
            (Kind::Text, Kind::Text) => plain(match (l, r) {
                (DataType::Utf8View, _) | (_, DataType::Utf8View) => DataType::Utf8View,
                _ => DataType::LargeUtf8,
            }),
            (Kind::Binary, Kind::Binary) => plain(match (l, r) {
                (DataType::BinaryView, _) | (_, DataType::BinaryView) => DataType::BinaryView,
                _ => DataType::LargeBinary,
            }),
            (Kind::Timestamp { zoned: l_zoned }, Kind::Timestamp { zoned: r_zoned }) if l_zoned == r_zoned => {
                scaled(l, r)
            }
            (Kind::Time, Kind::Time) | (Kind::Duration, Kind::Duration) => scaled(l, r),
            (Kind::Date32 | Kind::Date64, Kind::Date32 | Kind::Date64 | Kind::Timestamp { zoned: false })
            | (Kind::Timestamp { zoned: false }, Kind::Date32 | Kind::Date64) => {
                let (left, right) = (midnight(l), midnight(r));
                let then = Box::new(Comparison::between(&left, &right)?);
                Comparison::Dates { left, right, then }
            }
            _ => return None,
        })
    }

    /// Compares row by row. The result has one row if both operands hold for all pairs, else `rows`.
    pub(super) fn evaluate(&self, op: CompareOp, left: &Value, right: &Value, rows: usize) -> Result<BooleanArray> {
        if left.scalar && right.scalar {
            // Arrow's kernels panic on two scalars if one of them is a dictionary.
            let one_row = |value: &Value| Value { array: value.array.clone(), scalar: false };
            return self.evaluate(op, &one_row(left), &one_row(right), 1);
        }
        let len = if left.scalar && right.scalar { 1 } else { rows };
        if let CompareOp::Distinct | CompareOp::NotDistinct = op {
            let equal = self.evaluate(CompareOp::Eq, left, right, rows)?;
            let same = not_distinct(&equal, left, right)?;
            return Ok(if op == CompareOp::Distinct { boolean::not(&same)? } else { same });
        }
        if *self == Comparison::Null || left.is_null_scalar() || right.is_null_scalar() {
            return Ok(BooleanArray::new_null(len));
        }
        match self {
            Comparison::Null => Ok(BooleanArray::new_null(len)),
            Comparison::Arrow { left: to_left, right: to_right } => {
                let cast = |value: &Value, to: &Option<DataType>| match to {
                    Some(to) => value.cast(to),
                    None => Ok(Value { array: value.array.clone(), scalar: value.scalar }),
                };
                arrow_kernel(op, &cast(left, to_left)?, &cast(right, to_right)?)
            }
            Comparison::Float(to) => arrow_kernel(op, &canonical(left, to)?, &canonical(right, to)?),
            Comparison::Scaled { left: left_scale, right: right_scale, wide: false } => {
                let (l, r) = (whole_numbers(left)?, whole_numbers(right)?);
                let order = scaled_order_128(*left_scale, *right_scale);
                Ok(by_order(op, len, left, right, |i, j| order(l[i], r[j])))
            }
            Comparison::Scaled { left: left_scale, right: right_scale, wide: true } => {
                let (l, r) = (wide_numbers(left)?, wide_numbers(right)?);
                let order = scaled_order_256(*left_scale, *right_scale);
                Ok(by_order(op, len, left, right, |i, j| order(l[i], r[j])))
            }
            Comparison::Dates { left: to_left, right: to_right, then } => {
                then.evaluate(op, &left.cast(to_left)?, &right.cast(to_right)?, rows)
            }
            Comparison::IntegerFloat => {
                let (l, r) = (whole_numbers(left)?, right.cast(&DataType::Float64)?);
                let r = r.array.as_primitive::<Float64Type>().values();
                Ok(by_order(op, len, left, right, |i, j| integer_float_order(l[i], r[j])))
            }
            Comparison::FloatInteger => {
                let (l, r) = (left.cast(&DataType::Float64)?, whole_numbers(right)?);
                let l = l.array.as_primitive::<Float64Type>().values();
                Ok(by_order(op, len, left, right, |i, j| integer_float_order(r[j], l[i]).reverse()))
            }
        }
    }
}

/// The type to cast an encoded operand to, if it needs a cast: Arrow's kernels read plain dictionaries, but neither
/// run-end encoding nor a dictionary whose values are encoded again.
fn unless_arrow_reads(data_type: &DataType) -> Option<DataType> {
    let plain = value_type(data_type);
    match data_type {
        DataType::Dictionary(_, values) if **values == *plain => None,
        _ => (plain != data_type).then(|| plain.clone()),
    }
}

/// The 64-bit integer type that holds every value of both integer types, if there is one.
fn common_integer(left: &DataType, right: &DataType) -> Option<DataType> {
    if !left.is_integer() || !right.is_integer() {
        None
    } else if *left != DataType::UInt64 && *right != DataType::UInt64 {
        Some(DataType::Int64)
    } else {
        (left.is_unsigned_integer() && right.is_unsigned_integer()).then_some(DataType::UInt64)
    }
}

/// True for integer types with values that Float64 cannot hold exactly.
fn is_long(integer: &DataType) -> bool {
    integer.primitive_width() == Some(8)
}

/// The timestamp type that holds the midnight of every date of a type.
fn midnight(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Date32 => DataType::Timestamp(TimeUnit::Second, None),
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        other => other.clone(),
    }
}

fn scaled(left: &DataType, right: &DataType) -> Comparison {
    let wide = [left, right].iter().any(|t| matches!(t, DataType::Decimal256(..)));
    Comparison::Scaled { left: scale(left), right: scale(right), wide }
}

/// `IS NOT DISTINCT FROM`: true if both are null, or if neither is and they are equal.
fn not_distinct(equal: &BooleanArray, left: &Value, right: &Value) -> Result<BooleanArray> {
    let equal = match equal.nulls() {
        Some(valid) => equal.values() & valid.inner(),
        None => equal.values().clone(),
    };
    let null = |value: &Value| -> Result<BooleanBuffer> {
        let null = boolean::is_null(&value.array)?;
        Ok(match (value.scalar && null.len() != equal.len(), null.value(0)) {
            (false, _) => null.values().clone(),
            (true, true) => BooleanBuffer::new_set(equal.len()),
            (true, false) => BooleanBuffer::new_unset(equal.len()),
        })
    };
    Ok(BooleanArray::new(&(&null(left)? & &null(right)?) | &equal, None))
}

fn arrow_kernel(op: CompareOp, left: &Value, right: &Value) -> Result<BooleanArray> {
    Ok(match op {
        CompareOp::Distinct | CompareOp::NotDistinct => {
            return internal_err!("{op} has no kernel; it is computed from = and IS NULL");
        }
        CompareOp::Eq => cmp::eq(left, right),
        CompareOp::Ne => cmp::neq(left, right),
        CompareOp::Lt => cmp::lt(left, right),
        CompareOp::Le => cmp::lt_eq(left, right),
        CompareOp::Gt => cmp::gt(left, right),
        CompareOp::Ge => cmp::gt_eq(left, right),
    }?)
}

/// The floats with one form of NaN and one of zero, so that Arrow's total order is the order of our semantics.
pub(super) fn canonical(value: &Value, to: &DataType) -> Result<Value> {
    let cast = value.cast(to)?;
    let array: ArrayRef = match to {
        DataType::Float32 => {
            let array = cast.array.as_primitive::<Float32Type>();
            Arc::new(unary::<_, _, Float32Type>(array, |v| floats::canonical(v, f32::NAN)))
        }
        _ => {
            let array = cast.array.as_primitive::<Float64Type>();
            Arc::new(unary::<_, _, Float64Type>(array, |v| floats::canonical(v, f64::NAN)))
        }
    };
    Ok(Value { array, scalar: value.scalar })
}

/// The stored whole numbers of an integer, decimal of up to 128 bits, time, timestamp or duration.
fn whole_numbers(value: &Value) -> Result<Vec<i128>> {
    let value = value.cast(value_type(value.array.data_type()))?;
    Ok(match value.array.data_type() {
        DataType::UInt64 => value.array.as_primitive::<UInt64Type>().values().iter().map(|&v| v.into()).collect(),
        DataType::Decimal32(..) => {
            value.array.as_primitive::<Decimal32Type>().values().iter().map(|&v| v.into()).collect()
        }
        DataType::Decimal64(..) => {
            value.array.as_primitive::<Decimal64Type>().values().iter().map(|&v| v.into()).collect()
        }
        DataType::Decimal128(..) => value.array.as_primitive::<Decimal128Type>().values().to_vec(),
        _ => {
            let longs = value.cast(&DataType::Int64)?;
            longs.array.as_primitive::<arrow_array::types::Int64Type>().values().iter().map(|&v| v.into()).collect()
        }
    })
}

/// Like [`whole_numbers`], but in 256 bits, for Decimal256 as well.
fn wide_numbers(value: &Value) -> Result<Vec<i256>> {
    let value = value.cast(value_type(value.array.data_type()))?;
    match value.array.as_primitive_opt::<Decimal256Type>() {
        Some(decimals) => Ok(decimals.values().to_vec()),
        None => Ok(whole_numbers(&value)?.into_iter().map(i256::from_i128).collect()),
    }
}

/// The order of `l / 10^left` and `r / 10^right`, exact whatever the scales.
macro_rules! scaled_order {
    ($name:ident, $native:ty, $ten:expr, $zero:expr) => {
        fn $name(left: i8, right: i8) -> impl Fn($native, $native) -> Ordering {
            let difference = i16::from(left) - i16::from(right);
            let factor: Option<$native> = <$native>::checked_pow($ten, u32::from(difference.unsigned_abs()));
            // A number that overflows at the finer scale is beyond every number of that scale, so its sign decides.
            let order = move |coarse: $native, fine: $native| match factor.and_then(|f| coarse.checked_mul(f)) {
                Some(coarse) => coarse.cmp(&fine),
                None if coarse == $zero => coarse.cmp(&fine),
                None => coarse.cmp(&$zero),
            };
            move |l, r| if difference <= 0 { order(l, r) } else { order(r, l).reverse() }
        }
    };
}
scaled_order!(scaled_order_128, i128, 10, 0);
scaled_order!(scaled_order_256, i256, i256::from(10i64), i256::ZERO);

/// The order of a 64-bit integer and a float by value; NaN is greater than every number.
fn integer_float_order(integer: i128, float: f64) -> Ordering {
    if float.is_nan() {
        return Ordering::Less;
    }
    // The cast saturates far beyond 64 bits, which does not change the order.
    let whole = float as i128;
    integer.cmp(&whole).then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}

/// Evaluates a comparison from the order of each pair of rows.
fn by_order(
    op: CompareOp,
    len: usize,
    left: &Value,
    right: &Value,
    order: impl Fn(usize, usize) -> Ordering,
) -> BooleanArray {
    // Bit 0 is set if "less" passes, bit 1 for "equal", bit 2 for "greater".
    let passing = match op {
        CompareOp::Lt => 0b001,
        CompareOp::Eq | CompareOp::NotDistinct => 0b010,
        CompareOp::Le => 0b011,
        CompareOp::Gt => 0b100,
        CompareOp::Ne | CompareOp::Distinct => 0b101,
        CompareOp::Ge => 0b110,
    };
    let (step_left, step_right) = (left.step(), right.step());
    let values = BooleanBuffer::collect_bool(len, |row| {
        let order = order(row * step_left, row * step_right);
        (passing >> (order as i8 + 1)) & 1 == 1
    });
    // A null scalar was handled before, so a scalar adds no nulls here.
    let nulls = |value: &Value| if value.scalar && len != 1 { None } else { value.array.logical_nulls() };
    BooleanArray::new(values, NullBuffer::union(nulls(left).as_ref(), nulls(right).as_ref()))
}
