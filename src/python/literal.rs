//! Python values as constants of expressions.

use arrow_buffer::i256;
use arrow_schema::TimeUnit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

use super::errors::{plan, type_error};
use super::interchange::{is_a, type_name};
use crate::expr::Literal;

/// Days from 0001-01-01, which is day 1 in Python, to 1970-01-01.
const EPOCH_ORDINAL: i32 = 719_163;

/// The constant that a Python value stands for.
pub(super) fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let py = value.py();
    Ok(match value {
        value if value.is_none() => Literal::Null,
        value if value.is_instance_of::<PyBool>() => Literal::Boolean(value.extract()?),
        value if value.is_instance_of::<PyInt>() => integer(value)?,
        value if value.is_instance_of::<PyFloat>() => Literal::Float(value.extract()?),
        value if value.is_instance_of::<PyString>() => Literal::Text(value.extract()?),
        value if value.is_instance_of::<PyBytes>() => Literal::Binary(value.extract()?),
        // A datetime is a date as well.
        value if is_a(value, "datetime", "datetime")? => timestamp(value)?,
        value if is_a(value, "datetime", "date")? => {
            let ordinal: i32 = value.call_method0(intern!(py, "toordinal"))?.extract()?;
            Literal::Date(ordinal - EPOCH_ORDINAL)
        }
        value if is_a(value, "datetime", "time")? => time(value)?,
        value if is_a(value, "datetime", "timedelta")? => {
            let (value, unit) = span(value)?;
            Literal::Duration { value, unit }
        }
        value if is_a(value, "decimal", "Decimal")? => decimal(value)?,
        // Integers of other libraries.
        value if value.hasattr(intern!(py, "__index__"))? => integer(&value.call_method0(intern!(py, "__index__"))?)?,
        other => {
            return Err(type_error(format!(
                "a literal is None, bool, int, float, str, bytes, date, datetime, time, timedelta or Decimal; \
                 {} was given",
                type_name(other)
            )));
        }
    })
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    value.extract().map(Literal::Integer).map_err(|_| plan(format!("the integer {value} does not fit 128 bits")))
}

/// An instant if the value has a zone, else local time.
fn timestamp(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let py = value.py();
    // pandas' NaT is a datetime that differs from itself.
    if value.ne(value)? {
        return Ok(Literal::Null);
    }
    let module = py.import("datetime")?;
    let zoned = !value.call_method0(intern!(py, "utcoffset"))?.is_none();
    let options = PyDict::new(py);
    if zoned {
        options.set_item("tzinfo", module.getattr("timezone")?.getattr("utc")?)?;
    }
    let epoch = module.getattr("datetime")?.call((1970, 1, 1), Some(&options))?;
    let (value, unit) = span(&value.sub(epoch)?)?;
    Ok(Literal::Timestamp { value, unit, zone: zoned.then(|| "UTC".into()) })
}

fn time(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    if !value.getattr("tzinfo")?.is_none() {
        return Err(plan(format!("the time {value} has a time zone, which no Arrow time has; remove it")));
    }
    let part = |name: &str| value.getattr(name)?.extract::<i64>();
    let seconds = (part("hour")? * 60 + part("minute")?) * 60 + part("second")?;
    Ok(Literal::Time { value: seconds * 1_000_000 + part("microsecond")?, unit: TimeUnit::Microsecond })
}

/// A timedelta in microseconds, or in nanoseconds where pandas' own has some.
fn span(value: &Bound<'_, PyAny>) -> PyResult<(i64, TimeUnit)> {
    let part = |name: &str| value.getattr(name)?.extract::<i128>();
    let micros = (part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?;
    let nanos: i128 = match value.getattr_opt("nanoseconds")? {
        Some(nanos) => nanos.extract()?,
        None => 0,
    };
    let (count, unit) = match nanos {
        0 => (micros, TimeUnit::Microsecond),
        nanos => (micros * 1000 + nanos, TimeUnit::Nanosecond),
    };
    let count = i64::try_from(count).map_err(|_| plan(format!("{value} does not fit 64 bits of {unit:?}s")))?;
    Ok((count, unit))
}

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let refused = || plan(format!("the decimal {value} does not fit: at most 76 digits, at most 76 after the point"));
    let (negative, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) =
        value.call_method0(intern!(value.py(), "as_tuple"))?.extract()?;
    let Ok(exponent) = exponent.extract::<i64>() else {
        return Err(plan(format!("the decimal {value} is no number; compare with float('nan') or float('inf')")));
    };
    let mut text = if negative == 1 { "-".to_owned() } else { String::new() };
    text.extend(digits.iter().map(|&digit| char::from(b'0' + digit)));
    let zeros = usize::try_from(exponent.max(0)).ok().filter(|zeros| *zeros <= 76).ok_or_else(refused)?;
    text.extend(std::iter::repeat_n('0', zeros));
    let scale = i8::try_from(-exponent.min(0)).ok().filter(|scale| *scale <= 76).ok_or_else(refused)?;
    Ok(Literal::Decimal { value: i256::from_string(&text).ok_or_else(refused)?, scale })
}
