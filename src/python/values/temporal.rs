//! Python's dates and times, and those of pandas, numpy and pyarrow, as keys of one type, exactly.

use arrow_array::ArrowPrimitiveType;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use super::columns::{Cell, primitives, refused};
use super::literal::{is_nat, literal, nanos, since_epoch};
use crate::columns::Coerced;
use crate::error::Error;
use crate::expr::Literal;
use crate::python::interchange::is_a;

/// Nanoseconds of a day.
const DAY: i128 = 86_400 * 1_000_000_000;

/// `values` as an array of `data_type`, a date, time, timestamp or duration.
pub(crate) fn temporal(values: &[Bound<'_, PyAny>], data_type: &DataType, name: &str) -> PyResult<Option<Coerced>> {
    let unit = match data_type {
        DataType::Date32 => DAY,
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Timestamp(unit, _) | DataType::Duration(unit) => {
            nanos_per(*unit)
        }
        _ => nanos_per(TimeUnit::Millisecond),
    };
    let counts = match data_type {
        DataType::Date32 | DataType::Time32(_) => counts::<Int32Type>(values, data_type, unit, name)?,
        _ => counts::<Int64Type>(values, data_type, unit, name)?,
    };
    let Some(Coerced { keys, missing }) = counts else { return Ok(None) };
    Ok(Some(Coerced { keys: cast(&keys, data_type).map_err(Error::from)?, missing }))
}

fn counts<T: ArrowPrimitiveType>(
    values: &[Bound<'_, PyAny>],
    data_type: &DataType,
    unit: i128,
    name: &str,
) -> PyResult<Option<Coerced>>
where
    T::Native: TryFrom<i128>,
{
    primitives::<T>(values, &T::DATA_TYPE, |value| {
        let nanos = read(value, data_type)?.ok_or_else(|| refused(value, data_type, name))?;
        Ok(Some(nanos.and_then(|nanos| T::Native::try_from(nanos / unit).ok().filter(|_| nanos % unit == 0))))
    })
}

/// The value in nanoseconds from the zero of its kind; None where it is of another kind than `data_type`.
fn read(value: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<Option<Cell<i128>>> {
    if value.is_none() || is_nat(value)? {
        return Ok(Some(Cell::Null));
    }
    match data_type {
        DataType::Timestamp(_, zone) if is_a(value, "datetime", "datetime")? => {
            let (nanos, zoned) = since_epoch(value)?;
            return Ok((zoned == zone.is_some()).then_some(Cell::Value(nanos)));
        }
        DataType::Duration(_) if is_a(value, "datetime", "timedelta")? => return Ok(Some(Cell::Value(nanos(value)?))),
        _ => (),
    }
    let literal = match literal(value) {
        Ok(literal) => literal,
        // An object that is not a constant is not a key either; Ctrl-C is passed on.
        Err(error) if error.is_instance_of::<PyException>(value.py()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let count = |value: i64, unit| Some(Cell::Value(i128::from(value) * nanos_per(unit)));
    Ok(match (literal, data_type) {
        (Literal::Null, _) => Some(Cell::Null),
        (Literal::Date(days), DataType::Date32 | DataType::Date64) => Some(Cell::Value(i128::from(days) * DAY)),
        (Literal::Time { value, unit }, DataType::Time32(_) | DataType::Time64(_)) => count(value, unit),
        (Literal::Duration { value, unit }, DataType::Duration(_)) => count(value, unit),
        (Literal::Timestamp { value, unit, zone: from }, DataType::Timestamp(_, to))
            if from.is_some() == to.is_some() =>
        {
            count(value, unit)
        }
        _ => None,
    })
}

fn nanos_per(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
