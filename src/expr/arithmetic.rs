//! Arithmetic: which types meet in which, and the kernels with our errors.

use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Datum, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType};

use super::compare::Value;
use super::kind::{Kind, value_type};
use super::tree::ArithmeticOp;
use crate::error::{Error, Result};

/// One operation between two types, chosen once at bind.
#[derive(Debug)]
pub(super) struct Arithmetic {
    op: ArithmeticOp,
    left: DataType,
    right: DataType,
    /// For errors.
    text: String,
}

impl Arithmetic {
    /// The operation between two types and the type of its result, if there is one.
    pub(super) fn between(
        op: ArithmeticOp,
        left: &DataType,
        right: &DataType,
        text: String,
    ) -> Option<(Arithmetic, DataType)> {
        let (left, right) = operand_types(value_type(left), value_type(right))?;
        // Arrow's kernel itself says which types it takes and gives.
        let result = kernel(op, &new_empty_array(&left), &new_empty_array(&right)).ok()?;
        Some((Arithmetic { op, left, right, text }, result.data_type().clone()))
    }

    pub(super) fn evaluate(&self, left: &Value, right: &Value) -> Result<Value> {
        let both = |left: &Value, right: &Value| -> Result<ArrayRef> {
            let (left, right) = (left.cast(&self.left)?, right.cast(&self.right)?);
            if matches!(self.op, ArithmeticOp::Div | ArithmeticOp::Rem) && divides_by_float_zero(&left, &right) {
                return Err(ArrowError::DivideByZero.into());
            }
            Ok(kernel(self.op, &left, &right)?)
        };
        match both(left, right) {
            Ok(array) => Ok(Value { array, scalar: left.scalar && right.scalar }),
            Err(Error::Arrow(ArrowError::DivideByZero)) => Err(Error::Execution(format!(
                "division by zero in {}; a row whose divisor is zero can be kept out by making it null",
                self.text
            ))),
            Err(Error::Arrow(error)) => {
                Err(Error::Execution(format!("{} does not fit its type, {}: {error}", self.text, self.left)))
            }
            Err(other) => Err(other),
        }
    }
}

fn kernel(op: ArithmeticOp, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    match op {
        ArithmeticOp::Add => numeric::add(left, right),
        ArithmeticOp::Sub => numeric::sub(left, right),
        ArithmeticOp::Mul => numeric::mul(left, right),
        ArithmeticOp::Div => numeric::div(left, right),
        ArithmeticOp::Rem => numeric::rem(left, right),
    }
}

/// The types to which both operands are brought.
fn operand_types(left: &DataType, right: &DataType) -> Option<(DataType, DataType)> {
    use DataType::*;
    let same = |data_type: DataType| Some((data_type.clone(), data_type));
    match (Kind::of(left), Kind::of(right)) {
        (Kind::Null, Kind::Null) => same(Int64),
        // Null takes the type of the other operand.
        (Kind::Null, _) => operand_types(right, right),
        (_, Kind::Null) => operand_types(left, left),
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
        (Kind::Timestamp { zoned: l }, Kind::Timestamp { zoned: r }) if l != r => None,
        (Kind::Timestamp { .. } | Kind::Duration, Kind::Timestamp { .. } | Kind::Duration) => {
            Some((left.clone(), right.clone()))
        }
        _ => None,
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
