//! How a constant takes on the type of what it stands beside: one rule for comparisons, `IN`, `BETWEEN` and arithmetic.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array};
use arrow_buffer::i256;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;

use super::kind::{Kind, has_fixed_days, scale, unit_scale, value_type};
use super::literal::{Literal, decimal, stored};
use super::temporal::{self, NANOS};
use super::tree::{ArithmeticOp, Expr};
use crate::error::{Error, Result, plan_err};

/// Nanoseconds of a day.
const DAY: i128 = 86_400 * NANOS;

/// What is done with a constant and the value beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Compared,
    Computed(ArithmeticOp),
}

/// One row of type `other` if that type holds the value exactly, else of a type in which it keeps its value.
///
/// Beside a float a decimal is the nearest value of that type, since `0.1` has no exact one; beside a decimal a float is
/// the decimal that it prints as.
pub(super) fn beside(literal: &Literal, other: &DataType, place: Place) -> Result<ArrayRef> {
    let taken_on = match place {
        Place::Computed(op) => computed(literal, other, op)?,
        Place::Compared => None,
    };
    match taken_on.map_or_else(|| compared(literal, other), |array| Ok(Some(array)))? {
        Some(array) => Ok(array),
        None => literal.to_array(),
    }
}

/// Where arithmetic needs more than the value: its result depends on the types.
fn computed(literal: &Literal, other: &DataType, op: ArithmeticOp) -> Result<Option<ArrayRef>> {
    Ok(match (literal, Kind::of(other)) {
        // A number with a point or an exponent never becomes an integer: `/ 2.0` is no integer division.
        (Literal::Float(_), Kind::Number) if other.is_integer() => Some(literal.to_array()?),
        (Literal::Decimal { value, scale }, Kind::Number) if other.is_integer() => Some(shortest(*value, *scale)?),
        (Literal::Integer(value), Kind::Number) if !other.is_integer() => {
            Some(operand(i256::from_i128(*value), 0, other, op)?)
        }
        (Literal::Decimal { value, scale }, Kind::Number) => Some(operand(*value, *scale, other, op)?),
        (Literal::Float(value), Kind::Number) => {
            let (digits, scale) = printed(literal, *value, other)?;
            Some(operand(digits, scale, other, op)?)
        }
        // A span without months is a count of units where days are 24 hours, which is much the quicker kernel.
        (Literal::Interval { days, .. }, Kind::Timestamp { .. }) if *days == 0 || has_fixed_days(other) => {
            Some(literal.as_duration().unwrap_or_else(|| literal.clone()).to_array()?)
        }
        (Literal::Interval { months, days, nanos }, Kind::Date32 | Kind::Date64) => {
            let (more, nanos) = ((i128::from(*nanos) / DAY) as i32, (i128::from(*nanos) % DAY) as i64);
            let days = days.checked_add(more).ok_or_else(|| Error::Plan(format!("{literal} has too many days")))?;
            Some(Literal::Interval { months: *months, days, nanos }.to_array()?)
        }
        _ => None,
    })
}

/// A number beside a decimal in arithmetic: of that type where its digits fit, which keeps the scale of a quotient. The
/// scales of factors add up, so a factor has no more digits than it needs.
fn operand(value: i256, from: i8, other: &DataType, op: ArithmeticOp) -> Result<ArrayRef> {
    let (DataType::Decimal32(precision, _)
    | DataType::Decimal64(precision, _)
    | DataType::Decimal128(precision, _)
    | DataType::Decimal256(precision, _)) = other
    else {
        return decimal(value, from);
    };
    let fits = rescaled_value(value, from, scale(other)).is_some_and(|value| digits(value) <= u32::from(*precision));
    match rescaled(value, from, other).filter(|_| fits && op != ArithmeticOp::Mul) {
        Some(array) => Ok(array),
        None => shortest(value, from),
    }
}

/// A decimal of no more precision than its digits need.
fn shortest(value: i256, scale: i8) -> Result<ArrayRef> {
    let Some(value) = (if scale < 0 { rescaled_value(value, scale, 0) } else { Some(value) }) else {
        return decimal(value, scale);
    };
    let scale = scale.max(0);
    // At most 78 digits, so that neither wraps.
    let precision = (digits(value) as u8).max(scale as u8).max(1);
    let data_type = match precision {
        ..=38 => DataType::Decimal128(precision, scale),
        39..=76 => DataType::Decimal256(precision, scale),
        _ => return decimal(value, scale),
    };
    stored(value, &data_type).map_or_else(|| decimal(value, scale), Ok)
}

/// Decimal digits of a whole number, none of zero.
fn digits(value: i256) -> u32 {
    let ten = i256::from(10i64);
    let (mut rest, mut digits) = (value, 0);
    while rest != i256::ZERO {
        rest = rest.wrapping_div(ten);
        digits += 1;
    }
    digits
}

fn compared(literal: &Literal, other: &DataType) -> Result<Option<ArrayRef>> {
    Ok(match (literal, Kind::of(other)) {
        (Literal::Integer(value), Kind::Number) => rescaled(i256::from_i128(*value), 0, other),
        (Literal::Integer(value), Kind::Float) => {
            let float = *value as f64;
            // `as` saturates, so a float of 2^127 would come back as i128::MAX.
            let exact = float.abs() < 2f64.powi(126) && float as i128 == *value;
            let long = i64::try_from(*value).is_err() && u64::try_from(*value).is_err();
            (exact || long).then(|| double(float))
        }
        (Literal::Decimal { value, scale }, Kind::Number) => rescaled(*value, *scale, other),
        (Literal::Decimal { value, scale }, Kind::Float) => nearest(&format!("{value}e{}", -i16::from(*scale)), other)?,
        (Literal::Float(value), Kind::Number) if other.is_integer() => {
            let whole = value.fract() == 0.0 && value.abs() < 2f64.powi(126);
            whole.then(|| rescaled(i256::from_i128(*value as i128), 0, other)).flatten()
        }
        (Literal::Float(value), Kind::Number) => {
            let (digits, scale) = printed(literal, *value, other)?;
            Some(rescaled(digits, scale, other).map_or_else(|| decimal(digits, scale), Ok)?)
        }
        (Literal::Float(value), Kind::Float) if *other == DataType::Float32 => {
            let single = *value as f32;
            let exact = value.is_nan() || f64::from(single) == *value;
            exact.then(|| Arc::new(Float32Array::from(vec![single])) as ArrayRef)
        }
        (Literal::Text(_), Kind::Text) | (Literal::Binary(_), Kind::Binary) => {
            // A FixedSizeBinary of another length is refused here and compared as it is.
            cast_with_options(&literal.to_array()?, other, &strict()).ok()
        }
        (Literal::Date(days), Kind::Date64) => stored(i256::from(i64::from(*days) * 86_400_000), other),
        (Literal::Date(days), Kind::Timestamp { zoned: false }) => {
            rescaled(i256::from(i64::from(*days) * 86_400), 0, other)
        }
        (Literal::Timestamp { value, unit, zone: None }, Kind::Date32) => {
            let day = 86_400 * 10i64.pow(unit_scale(*unit) as u32);
            (value % day == 0).then(|| stored(i256::from(value / day), other)).flatten()
        }
        (Literal::Timestamp { value, unit, zone: None }, Kind::Date64) => {
            rescaled(i256::from(*value), unit_scale(*unit) - 3, other)
        }
        (Literal::Time { value, unit }, Kind::Time) | (Literal::Duration { value, unit }, Kind::Duration) => {
            rescaled(i256::from(*value), unit_scale(*unit), other)
        }
        (Literal::Interval { .. }, Kind::Duration) => {
            let Some(duration) = literal.as_duration() else {
                return plan_err!("{literal} has months, which have no fixed length, but stands beside {other}");
            };
            return beside(&duration, other, Place::Compared).map(Some);
        }
        (Literal::Timestamp { value, unit, zone }, Kind::Timestamp { zoned }) if zoned == zone.is_some() => {
            rescaled(i256::from(*value), unit_scale(*unit), other)
        }
        _ => None,
    })
}

fn strict() -> CastOptions<'static> {
    CastOptions { safe: false, ..Default::default() }
}

fn double(value: f64) -> ArrayRef {
    Arc::new(Float64Array::from(vec![value]))
}

/// The number of a text as the nearest float of the type; beyond its range, where that would be infinite, as a double.
fn nearest(text: &str, data_type: &DataType) -> Result<Option<ArrayRef>> {
    let Ok(value) = text.parse::<f64>() else { return Ok(None) };
    let single: Option<f32> = text.parse().ok();
    Ok(Some(match (data_type, single) {
        (DataType::Float32, Some(single)) if single.is_finite() => Arc::new(Float32Array::from(vec![single])),
        // Half floats end at 65504; from 65520 on the nearest one would be infinite.
        (DataType::Float16, _) if value.abs() < 65_520.0 => cast_with_options(&double(value), data_type, &strict())?,
        _ => double(value),
    }))
}

/// A float as digits and scale, beside a decimal.
fn printed(literal: &Literal, value: f64, other: &DataType) -> Result<(i256, i8)> {
    match shortest_decimal(value) {
        Some(printed) => Ok(printed),
        None => plan_err!("the literal {literal} is no decimal, but stands beside {other}"),
    }
}

/// Digits and scale of the shortest decimal text that reads as `value`, if a decimal holds it.
fn shortest_decimal(value: f64) -> Option<(i256, i8)> {
    if !value.is_finite() {
        return None;
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let after_point = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits: i128 = mantissa.replace('.', "").parse().ok()?;
    let scale = i16::try_from(after_point).ok()? - exponent.parse::<i16>().ok()?;
    // A negative scale would be refused by some decimal types: shift the digits instead.
    let shift = u32::from(scale.min(0).unsigned_abs());
    let digits = i256::from_i128(digits).checked_mul(i256::from(10i64).checked_pow(shift)?)?;
    Some((digits, i8::try_from(scale.max(0)).ok()?)).filter(|(_, scale)| *scale <= 76)
}

/// `value / 10^from` as one row of `data_type`, if that type holds it exactly.
fn rescaled(value: i256, from: i8, data_type: &DataType) -> Option<ArrayRef> {
    stored(rescaled_value(value, from, scale(data_type))?, data_type)
}

/// `value / 10^from` in units of `10^-to`, if it is a whole number of them.
fn rescaled_value(value: i256, from: i8, to: i8) -> Option<i256> {
    let up = i16::from(to) - i16::from(from);
    let factor = i256::from(10i64).checked_pow(u32::from(up.unsigned_abs()))?;
    if up >= 0 {
        return value.checked_mul(factor);
    }
    let (quotient, remainder) = value.checked_div_rem(factor)?;
    (remainder == i256::ZERO).then_some(quotient)
}

/// How to write the text that a comparison has beside another type.
pub(super) fn text_hint(expr: &Expr, left: &DataType, right: &DataType) -> String {
    let other = if Kind::of(value_type(left)) == Kind::Text { value_type(right) } else { value_type(left) };
    let texts = expr.children().into_iter().filter_map(|child| match child {
        Expr::Literal(Literal::Text(text)) => Some(text),
        _ => None,
    });
    let Some(text) = texts.into_iter().next() else { return "; cast one of them".to_owned() };
    let written = |literal: Option<Literal>, form: &str| literal.map_or_else(|| form.to_owned(), |l| l.to_string());
    let form = match Kind::of(other) {
        Kind::Date32 | Kind::Date64 => written(temporal::parse_date(text), "DATE '2024-12-31'"),
        Kind::Time => written(temporal::parse_time(text), "TIME '23:59:59'"),
        Kind::Timestamp { zoned: false } => {
            let local = temporal::parse_timestamp(text).filter(|l| matches!(l, Literal::Timestamp { zone: None, .. }));
            written(local, "TIMESTAMP '2024-12-31 23:59:59'")
        }
        Kind::Timestamp { zoned: true } => {
            let instant = temporal::parse_timestamp(text).map(|literal| match literal {
                Literal::Timestamp { value, unit, zone: None } => {
                    Literal::Timestamp { value, unit, zone: Some("UTC".into()) }
                }
                other => other,
            });
            written(instant, "TIMESTAMP '2024-12-31 23:59:59Z'")
        }
        Kind::Duration | Kind::Interval => written(temporal::parse_interval(text, None), "INTERVAL '1 day'"),
        Kind::Number | Kind::Float if text.trim().parse::<f64>().is_ok() => {
            return format!("; write {} without quotes, or cast one of them", text.trim());
        }
        Kind::Boolean => "TRUE or FALSE".to_owned(),
        Kind::Binary => "X'00FF'".to_owned(),
        _ => return "; cast one of them".to_owned(),
    };
    format!("; write {form}, or cast one of them")
}
