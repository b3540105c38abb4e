//! Arithmetic: which types meet in which, and the kernels with our errors.

use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float64Type};
use arrow_array::{Array, ArrayRef, new_empty_array, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, IntervalUnit, TimeUnit};

use super::compare::Value;
use super::kind::{Kind, finer, has_fixed_days, offset_zone, value_type};
use super::literal::Literal;
use super::temporal::NANOS;
use super::time;
use super::tree::{ArithmeticOp, Expr};
use crate::error::{Error, Result};

/// One operation between two types, chosen once at bind.
#[derive(Debug)]
pub(super) struct Arithmetic {
    op: ArithmeticOp,
    left: DataType,
    right: DataType,
    result: DataType,
    /// For errors.
    text: String,
}

/// How fine the spans of an operand are: those of an interval literal are known, those of a column may have any part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Span {
    /// Whole days, or no span of time.
    Days,
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Span {
    pub(super) fn of(expr: &Expr, data_type: &DataType) -> Span {
        match (expr, value_type(data_type)) {
            (Expr::Literal(Literal::Interval { nanos, .. }), DataType::Interval(_)) => {
                let nanos = i128::from(*nanos);
                [(Span::Days, DAY), (Span::Seconds, NANOS), (Span::Millis, 1_000_000), (Span::Micros, 1_000)]
                    .into_iter()
                    .find_map(|(span, one)| (nanos % one == 0).then_some(span))
                    .unwrap_or(Span::Nanos)
            }
            (_, DataType::Interval(IntervalUnit::DayTime)) => Span::Millis,
            // Nanoseconds reach from 1677 to 2262 only, which dates like 9999-12-31 do not fit.
            (_, DataType::Interval(IntervalUnit::MonthDayNano)) => Span::Micros,
            _ => Span::Days,
        }
    }

    fn unit(self) -> TimeUnit {
        match self {
            Span::Days | Span::Seconds => TimeUnit::Second,
            Span::Millis => TimeUnit::Millisecond,
            Span::Micros => TimeUnit::Microsecond,
            Span::Nanos => TimeUnit::Nanosecond,
        }
    }
}

/// Nanoseconds of a day.
const DAY: i128 = 86_400 * NANOS;

/// What to do about operands that do not go together.
pub(super) fn hint(left: &DataType, right: &DataType) -> &'static str {
    let named = |data_type: &DataType| !has_fixed_days(value_type(data_type));
    let kinds = (Kind::of(value_type(left)), Kind::of(value_type(right)));
    match kinds {
        (_, Kind::Interval) if named(left) => {
            ": days of a zone differ in length; add hours, or cast to a timestamp in UTC"
        }
        (Kind::Interval, _) if named(right) => {
            ": days of a zone differ in length; add hours, or cast to a timestamp in UTC"
        }
        (Kind::Date32 | Kind::Date64, Kind::Number) => "; add INTERVAL '1' DAY and the like to a date",
        (Kind::Date32 | Kind::Date64 | Kind::Timestamp { .. } | Kind::Time, Kind::Text)
        | (Kind::Text, Kind::Date32 | Kind::Date64 | Kind::Timestamp { .. } | Kind::Time) => {
            "; write DATE '2024-12-31', TIMESTAMP '2024-12-31 23:59:59', TIME '23:59:59' or INTERVAL '1 day', or cast the text"
        }
        _ => "",
    }
}

/// Unary minus of one type, chosen once at bind.
#[derive(Debug)]
pub(super) struct Negate {
    to: DataType,
    /// For errors.
    text: String,
}

impl Negate {
    /// The negative of a type, if it has one.
    pub(super) fn of(data_type: &DataType, expr: &Expr) -> Option<Negate> {
        let to = match Kind::of(data_type) {
            Kind::Null => DataType::Int64,
            Kind::Number if data_type.is_integer() => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Number | Kind::Duration | Kind::Interval => data_type.clone(),
            _ => return None,
        };
        Some(Negate { to, text: expr.short() })
    }

    /// The type of the result.
    pub(super) fn to(&self) -> &DataType {
        &self.to
    }

    pub(super) fn evaluate(&self, value: &Value) -> Result<Value> {
        let negative = value.cast(&self.to).and_then(|value| Ok(numeric::neg(&value.array)?));
        match negative {
            Ok(array) => Ok(Value { array, scalar: value.scalar }),
            Err(Error::Arrow(error)) => {
                Err(Error::Execution(format!("{} does not fit its type, {}: {error}", self.text, self.to)))
            }
            Err(other) => Err(other),
        }
    }
}

impl Arithmetic {
    /// The operation between two types and the type of its result, if there is one.
    pub(super) fn between(
        op: ArithmeticOp,
        left: &DataType,
        right: &DataType,
        span: Span,
        text: String,
    ) -> Option<(Arithmetic, DataType)> {
        let (left, right) = operand_types(op, value_type(left), value_type(right), span)?;
        let scalar = |data_type: &DataType| Value { array: new_empty_array(data_type), scalar: false };
        // The kernel itself says which types it takes and gives.
        let result = kernel(op, &scalar(&left), &scalar(&right)).ok()?.data_type().clone();
        Some((Arithmetic { op, left, right, result: result.clone(), text }, result))
    }

    pub(super) fn evaluate(&self, left: &Value, right: &Value) -> Result<Value> {
        let scalar = left.scalar && right.scalar;
        match self.compute(left, right) {
            Ok(array) => Ok(Value { array, scalar }),
            Err(Error::Arrow(ArrowError::DivideByZero)) => Err(Error::Execution(format!(
                "division by zero in {}; a row whose divisor is zero can be kept out by making it null",
                self.text
            ))),
            Err(Error::Arrow(error)) => {
                Err(Error::Execution(format!("{} does not fit its type, {}: {error}", self.text, self.result)))
            }
            Err(other) => Err(other),
        }
    }

    fn compute(&self, left: &Value, right: &Value) -> Result<ArrayRef> {
        if left.is_all_null() || right.is_all_null() {
            let rows = if left.scalar { right.array.len() } else { left.array.len() };
            return Ok(new_null_array(&self.result, rows));
        }
        // Null with anything is null, so a value beside a null is not brought to a type that may not hold it.
        let (l, r) = (left.null_where(right, &self.left)?, right.null_where(left, &self.right)?);
        let (left, right) = (l.cast(&self.left)?, r.cast(&self.right)?);
        if matches!(self.op, ArithmeticOp::Div | ArithmeticOp::Rem) && divides_by_float_zero(&left, &right) {
            return Err(ArrowError::DivideByZero.into());
        }
        let array = kernel(self.op, &left, &right)?;
        // Arrow lets a sum have one digit more than its type.
        match array.data_type() {
            DataType::Decimal128(precision, _) => {
                array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)?;
            }
            DataType::Decimal256(precision, _) => {
                array.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)?;
            }
            _ => (),
        }
        Ok(array)
    }
}

fn kernel(op: ArithmeticOp, left: &Value, right: &Value) -> Result<ArrayRef> {
    if let (DataType::Time64(_), _) | (_, DataType::Time64(_)) = (left.array.data_type(), right.array.data_type()) {
        return time::kernel(op, left, right);
    }
    Ok(match op {
        ArithmeticOp::Add => numeric::add(left, right),
        ArithmeticOp::Sub => numeric::sub(left, right),
        ArithmeticOp::Mul => numeric::mul(left, right),
        ArithmeticOp::Div => numeric::div(left, right),
        ArithmeticOp::Rem => numeric::rem(left, right),
    }?)
}

/// The types to which both operands are brought.
fn operand_types(op: ArithmeticOp, left: &DataType, right: &DataType, span: Span) -> Option<(DataType, DataType)> {
    use DataType::*;
    let same = |data_type: DataType| Some((data_type.clone(), data_type));
    match (Kind::of(left), Kind::of(right)) {
        (Kind::Null, Kind::Null) => same(Int64),
        // Null takes the type of the other operand.
        (Kind::Null, _) => operand_types(op, right, right, span),
        (_, Kind::Null) => operand_types(op, left, left, span),
        (Kind::Float, Kind::Float) => same(Float64),
        (Kind::Number, Kind::Float) if left.is_integer() => same(Float64),
        (Kind::Float, Kind::Number) if right.is_integer() => same(Float64),
        (Kind::Number, Kind::Number) if left.is_integer() && right.is_integer() => {
            let long = *left == UInt64 || *right == UInt64;
            let unsigned = left.is_unsigned_integer() && right.is_unsigned_integer();
            same(if long && unsigned { UInt64 } else { Int64 })
        }
        (Kind::Number, Kind::Number) => {
            let wide = matches!(left, Decimal256(..)) || matches!(right, Decimal256(..));
            let decimal = |data_type: &DataType| {
                let (precision, scale) = match data_type {
                    Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s) => (*p, *s),
                    UInt64 => (20, 0),
                    _ => (19, 0),
                };
                if wide { Decimal256(precision, scale) } else { Decimal128(precision, scale) }
            };
            Some((decimal(left), decimal(right)))
        }
        _ => span_types(op, left, right, span),
    }
}

/// The same for dates, times and spans of time.
fn span_types(op: ArithmeticOp, left: &DataType, right: &DataType, span: Span) -> Option<(DataType, DataType)> {
    use ArithmeticOp::{Add, Mul, Sub};
    use DataType::*;
    let swapped = || span_types(op, right, left, span).map(|(right, left)| (left, right));
    let interval = |unit| Interval(unit);
    match (op, left, right) {
        (Sub, Timestamp(l, l_zone), Timestamp(r, r_zone)) if l_zone.is_some() == r_zone.is_some() => {
            let common = instant(finer(*l, *r), l_zone.is_some());
            Some((common.clone(), common))
        }
        (Sub, Date32, Date32) | (Sub, Date64, Date64) => Some((left.clone(), right.clone())),
        (Sub, Date32 | Date64, Date32 | Date64 | Timestamp(_, None)) | (Sub, Timestamp(_, None), Date32 | Date64) => {
            let unit = finer(date_unit(left), date_unit(right));
            Some((Timestamp(unit, None), Timestamp(unit, None)))
        }
        (Add | Sub, Timestamp(unit, zone), Duration(span)) => {
            let unit = finer(*unit, *span);
            Some((instant(unit, zone.is_some()), Duration(unit)))
        }
        (Add | Sub, Timestamp(unit, zone), Interval(_)) if has_fixed_days(left) => {
            Some((Timestamp(finer(*unit, span.unit()), zone.as_deref().map(offset_zone)), right.clone()))
        }
        (Add | Sub, Date32 | Date64, Duration(span)) => {
            let unit = finer(date_unit(left), *span);
            Some((Timestamp(unit, None), Duration(unit)))
        }
        // A date in milliseconds may be no midnight.
        (Add | Sub, Date32, Interval(_)) if span == Span::Days => Some((left.clone(), right.clone())),
        (Add | Sub, Date32 | Date64, Interval(_)) => {
            Some((Timestamp(finer(date_unit(left), span.unit()), None), right.clone()))
        }
        (Add | Sub, Time32(_) | Time64(_), Duration(_)) => {
            Some((Time64(TimeUnit::Nanosecond), Duration(TimeUnit::Nanosecond)))
        }
        (Add | Sub, Time32(_) | Time64(_), Interval(_)) => {
            Some((Time64(TimeUnit::Nanosecond), interval(IntervalUnit::MonthDayNano)))
        }
        (Sub, Time32(_) | Time64(_), Time32(_) | Time64(_)) => {
            Some((Time64(TimeUnit::Nanosecond), Time64(TimeUnit::Nanosecond)))
        }
        (Add, Duration(_) | Interval(_), Timestamp(..) | Date32 | Date64 | Time32(_) | Time64(_)) => swapped(),
        (Add | Sub, Duration(l), Duration(r)) => Some((Duration(finer(*l, *r)), Duration(finer(*l, *r)))),
        (Add | Sub, Interval(l), Interval(r)) => {
            let common = interval(if l == r { *l } else { IntervalUnit::MonthDayNano });
            Some((common.clone(), common))
        }
        (Mul, Interval(_), number) if number.is_integer() => Some((left.clone(), Int64)),
        (Mul, number, Interval(_)) if number.is_integer() => Some((Int64, right.clone())),
        _ => None,
    }
}

/// A timestamp whose zone, if any, Arrow reads: another zone is the same instant.
fn instant(unit: TimeUnit, zoned: bool) -> DataType {
    DataType::Timestamp(unit, zoned.then(|| offset_zone("UTC")))
}

fn date_unit(data_type: &DataType) -> TimeUnit {
    match data_type {
        DataType::Timestamp(unit, _) => *unit,
        DataType::Date64 => TimeUnit::Millisecond,
        _ => TimeUnit::Second,
    }
}

/// True if a row divides a float by zero, for which Arrow's kernel gives an infinity or NaN.
fn divides_by_float_zero(left: &Value, right: &Value) -> bool {
    let Some(divisors) = right.array.as_primitive_opt::<Float64Type>() else { return false };
    if !divisors.values().contains(&0.0) {
        return false;
    }
    match (left.scalar, right.scalar) {
        (false, true) => divisors.is_valid(0) && left.array.null_count() < left.array.len(),
        (true, false) => {
            left.array.is_valid(0) && (0..divisors.len()).any(|i| zero(divisors.is_valid(i), divisors.value(i)))
        }
        _ => {
            let valid = NullBuffer::union(left.array.nulls(), divisors.nulls());
            (0..divisors.len()).any(|i| zero(valid.as_ref().is_none_or(|v| v.is_valid(i)), divisors.value(i)))
        }
    }
}

fn zero(valid: bool, value: f64) -> bool {
    valid && value == 0.0
}
