//! Arithmetic on times of day: plus and minus a duration or interval, which wraps around at midnight, and differences.

use std::sync::Arc;

use arrow_arith::arity::unary;
use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, IntervalMonthDayNanoType, Time64NanosecondType};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::compare::Value;
use super::tree::ArithmeticOp;
use crate::error::Result;

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// `time + span`, `span + time`, `time - span` or `time - time`, all in nanoseconds.
pub(super) fn kernel(op: ArithmeticOp, left: &Value, right: &Value) -> Result<ArrayRef> {
    let is_time = |value: &Value| matches!(value.array.data_type(), DataType::Time64(_));
    if is_time(left) && is_time(right) {
        return match op {
            ArithmeticOp::Sub => {
                let array = numeric::sub(&left.cast(&DataType::Int64)?, &right.cast(&DataType::Int64)?)?;
                Ok(Value { array, scalar: false }.cast(&DataType::Duration(TimeUnit::Nanosecond))?.array)
            }
            _ => Err(ArrowError::InvalidArgumentError("two times can only be subtracted".to_owned()).into()),
        };
    }
    // Both are less than a day, so the sum cannot overflow.
    let (left, right) = (within_day(left)?, within_day(right)?);
    let sum = match op {
        ArithmeticOp::Sub => numeric::sub(&left, &right)?,
        _ => numeric::add(&left, &right)?,
    };
    Ok(Arc::new(unary::<_, _, Time64NanosecondType>(sum.as_primitive::<Int64Type>(), |v| v.rem_euclid(DAY))))
}

/// The nanoseconds of a time, duration or interval, without its whole days.
fn within_day(value: &Value) -> Result<Value> {
    let array: ArrayRef = match value.array.as_primitive_opt::<IntervalMonthDayNanoType>() {
        Some(spans) => Arc::new(unary::<_, _, Int64Type>(spans, |span| span.nanoseconds % DAY)),
        None => {
            let counts = value.cast(&DataType::Int64)?;
            Arc::new(unary::<_, _, Int64Type>(counts.array.as_primitive::<Int64Type>(), |count| count % DAY))
        }
    };
    Ok(Value { array, scalar: value.scalar })
}
