//! Text as values of another type. What a constant takes in quotes a cast takes too, and the other way round.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal256Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::i256;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::kind::{scale, unit_scale};
use super::literal::Literal;
use super::temporal;

/// True for the types that are read here; Arrow reads the others.
pub(super) fn reads(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(
        data_type,
        Float16
            | Float32
            | Float64
            | Decimal32(..)
            | Decimal64(..)
            | Decimal128(..)
            | Decimal256(..)
            | Date32
            | Date64
            | Time32(_)
            | Time64(_)
            | Timestamp(..)
            | Duration(_)
            | Interval(IntervalUnit::MonthDayNano)
    )
}

/// Each text of an array as a value of `to`; what does not read as one is an error, or null.
pub(super) fn read(array: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef, String> {
    let options = CastOptions { safe: or_null, ..Default::default() };
    let cast = |array: &ArrayRef, to: &DataType| cast_with_options(array, to, &options).map_err(|e| e.to_string());
    let texts = cast(array, &DataType::Utf8View)?;
    let reader = Reader { texts: &texts, to, or_null };
    match to {
        DataType::Float32 => reader.values::<Float32Type>(|text| text.trim().parse().ok()),
        DataType::Float16 | DataType::Float64 => {
            cast(&reader.values::<Float64Type>(|text| text.trim().parse().ok())?, to)
        }
        DataType::Interval(_) => reader.values::<arrow_array::types::IntervalMonthDayNanoType>(|text| {
            match temporal::parse_interval(text, None)? {
                Literal::Interval { months, days, nanos } => {
                    Some(arrow_array::types::IntervalMonthDayNanoType::make_value(months, days, nanos))
                }
                _ => None,
            }
        }),
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _)
        | DataType::Decimal256(precision, _) => {
            let least = i256::from(10i64).wrapping_pow((*precision).into());
            let values = reader.values::<Decimal256Type>(|text| {
                rounded(text, scale(to)).filter(|value| *value < least && *value > least.wrapping_neg())
            })?;
            let typed = values.as_primitive::<Decimal256Type>().clone();
            let typed = typed.with_precision_and_scale(76, scale(to)).map_err(|error| error.to_string())?;
            cast(&(Arc::new(typed) as ArrayRef), to)
        }
        _ => {
            let counts = reader.values::<Int64Type>(|text| i64::try_from(count(text, to)?).ok())?;
            match to.primitive_width() {
                Some(4) => cast(&cast(&counts, &DataType::Int32)?, to),
                _ => cast(&counts, to),
            }
        }
    }
}

struct Reader<'a> {
    texts: &'a ArrayRef,
    to: &'a DataType,
    or_null: bool,
}

impl Reader<'_> {
    fn values<T: ArrowPrimitiveType>(&self, read: impl Fn(&str) -> Option<T::Native>) -> Result<ArrayRef, String> {
        let values = self.texts.as_string_view().iter().map(|text| match text {
            None => Ok(None),
            Some(text) => match read(text) {
                None if !self.or_null => {
                    let shown: String = text.chars().take(40).collect();
                    let end = if shown.len() < text.len() { ".." } else { "" };
                    Err(format!("Cannot cast string '{shown}{end}' to value of {} type", self.to))
                }
                value => Ok(value),
            },
        });
        Ok(Arc::new(values.collect::<Result<PrimitiveArray<T>, String>>()?))
    }
}

/// The stored count of a date, time, timestamp or duration; what is finer than the type's unit is dropped, downwards.
fn count(text: &str, to: &DataType) -> Option<i128> {
    let (value, unit) = match to {
        DataType::Date32 | DataType::Date64 => {
            let Literal::Date(days) = temporal::parse_date(text)? else { return None };
            return Some(i128::from(days) * if *to == DataType::Date32 { 1 } else { 86_400_000 });
        }
        DataType::Time32(_) | DataType::Time64(_) => match temporal::parse_time(text)? {
            Literal::Time { value, unit } => (value, unit),
            _ => return None,
        },
        DataType::Timestamp(to_unit, zone) => match temporal::parse_timestamp(text)? {
            Literal::Timestamp { value, unit, zone: None } => {
                // Without an offset it is the time of the type's zone.
                let offset = zone.as_deref().map_or(Some(0), temporal::offset_of)?;
                let seconds = offset * 10i128.pow(unit_scale(*to_unit) as u32);
                return Some(at_unit(value, unit, *to_unit) - seconds);
            }
            Literal::Timestamp { value, unit, .. } => (value, unit),
            _ => return None,
        },
        _ => match temporal::parse_duration(text)? {
            Literal::Duration { value, unit } => (value, unit),
            _ => return None,
        },
    };
    let (DataType::Time32(to) | DataType::Time64(to) | DataType::Timestamp(to, _) | DataType::Duration(to)) = to else {
        return None;
    };
    Some(at_unit(value, unit, *to))
}

fn at_unit(value: i64, from: TimeUnit, to: TimeUnit) -> i128 {
    let up = unit_scale(to) - unit_scale(from);
    let factor = 10i128.pow(u32::from(up.unsigned_abs()));
    if up >= 0 { i128::from(value) * factor } else { i128::from(value).div_euclid(factor) }
}

/// A number in units of `10^-to`, rounded half away from zero.
fn rounded(text: &str, to: i8) -> Option<i256> {
    let Literal::Decimal { value, scale } = super::sql::decimal(text)? else { return None };
    let up = i16::from(to) - i16::from(scale);
    let factor = i256::from(10i64).checked_pow(u32::from(up.unsigned_abs()));
    if up >= 0 {
        return if value == i256::ZERO { Some(value) } else { value.checked_mul(factor?) };
    }
    let Some(factor) = factor else { return Some(i256::ZERO) };
    let (quotient, remainder) = value.checked_div_rem(factor)?;
    let away = remainder.wrapping_abs() >= factor.wrapping_sub(remainder.wrapping_abs());
    Some(match (away, value.is_negative()) {
        (false, _) => quotient,
        (true, false) => quotient.wrapping_add(i256::ONE),
        (true, true) => quotient.wrapping_sub(i256::ONE),
    })
}
