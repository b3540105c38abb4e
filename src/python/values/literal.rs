//! Python values as constants of expressions.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::i256;
use arrow_schema::TimeUnit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::expr::Literal;
use crate::python::errors::{plan, type_error};
use crate::python::interchange::{batch_from_python, is_a, type_name};

/// Days from 0001-01-01, which is day 1 in Python, to 1970-01-01.
const EPOCH_ORDINAL: i32 = 719_163;

/// A Python value as a constant.
pub(crate) fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
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
        value if is_a(value, "pyarrow", "Scalar")? => scalar(value)?,
        value if is_a(value, "numpy", "generic")? => numpy(value)?,
        // Integers of other libraries.
        value if value.hasattr(intern!(py, "__index__"))? => integer(&value.call_method0(intern!(py, "__index__"))?)?,
        other => {
            return Err(type_error(format!(
                "a literal is None, bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, or a scalar of \
                 numpy or pyarrow; {} was given",
                type_name(other)
            )));
        }
    })
}

/// The values of a pyarrow array; `None` for other objects.
pub(crate) fn literals(values: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Literal>>> {
    let chunks: Vec<Bound<'_, PyAny>> = match () {
        () if is_a(values, "pyarrow", "Array")? => vec![values.clone()],
        () if is_a(values, "pyarrow", "ChunkedArray")? => values.getattr(intern!(values.py(), "chunks"))?.extract()?,
        () => return Ok(None),
    };
    let mut literals = Vec::new();
    for chunk in &chunks {
        let column = column(chunk)?;
        for row in 0..column.len() {
            match Literal::from_array(&column.slice(row, 1))? {
                Some(literal) => literals.push(literal),
                None => return Err(type_error(format!("no literal has the type {}", column.data_type()))),
            }
        }
    }
    Ok(Some(literals))
}

/// A pyarrow array as ours.
fn column(array: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let columns = PyDict::new(array.py());
    columns.set_item("value", array)?;
    let batch = array.py().import("pyarrow")?.call_method1("record_batch", (columns,))?;
    Ok(batch_from_python(&batch)?.column(0).clone())
}

/// A `pyarrow.Scalar`.
fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item("type", value.getattr(intern!(py, "type"))?)?;
    let array = py.import("pyarrow")?.call_method("array", (vec![value],), Some(&options))?;
    let literal = Literal::from_array(&column(&array)?)?;
    literal.ok_or_else(|| type_error(format!("a literal cannot be a {}", type_name(value))))
}

/// A scalar of numpy.
fn numpy(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let py = value.py();
    let (point, span) = (is_a(value, "numpy", "datetime64")?, is_a(value, "numpy", "timedelta64")?);
    if point || span {
        if py.import("numpy")?.call_method1("isnat", (value,))?.is_truthy()? {
            return Ok(Literal::Null);
        }
        let (unit, _): (String, u32) =
            py.import("numpy")?.call_method1("datetime_data", (value.getattr("dtype")?,))?.extract()?;
        // The units that Arrow has.
        let to = match (unit.as_str(), span) {
            ("s" | "ms" | "us" | "ns", _) | ("D", false) => None,
            ("W" | "D" | "h" | "m", true) => Some("timedelta64[s]"),
            ("h" | "m", false) => Some("datetime64[s]"),
            ("Y" | "M" | "W", false) => Some("datetime64[D]"),
            _ => return Err(type_error(format!("a literal cannot be a {} in units of {unit}", type_name(value)))),
        };
        let value = to.map_or_else(|| Ok(value.clone()), |to| value.call_method1("astype", (to,)))?;
        let array = py.import("pyarrow")?.call_method1("array", (value.call_method1("reshape", (1,))?,))?;
        return Ok(Literal::from_array(&column(&array)?)?.unwrap_or(Literal::Null));
    }
    let item = value.call_method0(intern!(py, "item"))?;
    // An extended float is its own item.
    if is_a(&item, "numpy", "generic")? {
        return Err(type_error(format!("a literal cannot be a {}", type_name(value))));
    }
    literal(&item)
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    value.extract().map(Literal::Integer).map_err(|_| plan(format!("the integer {value} does not fit 128 bits")))
}

/// An instant if the value has a zone, else local time.
fn timestamp(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    if is_nat(value)? {
        return Ok(Literal::Null);
    }
    let (nanos, zoned) = since_epoch(value)?;
    let (count, unit) = count(value, nanos)?;
    Ok(Literal::Timestamp { value: count, unit, zone: zoned.then(|| "UTC".into()) })
}

/// pandas' NaT is a datetime that differs from itself.
pub(crate) fn is_nat(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_a(value, "datetime", "datetime")? && value.ne(value)?)
}

/// Nanoseconds of a datetime since 1970, and whether it has a zone: then they are those of UTC.
pub(crate) fn since_epoch(value: &Bound<'_, PyAny>) -> PyResult<(i128, bool)> {
    static EPOCHS: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();
    let py = value.py();
    let [local, utc] = EPOCHS.get_or_try_init(py, || -> PyResult<_> {
        let module = py.import("datetime")?;
        let (class, options) = (module.getattr("datetime")?, PyDict::new(py));
        options.set_item("tzinfo", module.getattr("timezone")?.getattr("utc")?)?;
        Ok([class.call1((1970, 1, 1))?.unbind(), class.call((1970, 1, 1), Some(&options))?.unbind()])
    })?;
    let zoned = !value.call_method0(intern!(py, "utcoffset"))?.is_none();
    let epoch = if zoned { utc } else { local };
    Ok((nanos(&value.sub(epoch)?)?, zoned))
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
    count(value, nanos(value)?)
}

fn count(value: &Bound<'_, PyAny>, nanos: i128) -> PyResult<(i64, TimeUnit)> {
    let (count, unit) = match nanos % 1000 {
        0 => (nanos / 1000, TimeUnit::Microsecond),
        _ => (nanos, TimeUnit::Nanosecond),
    };
    let count = i64::try_from(count).map_err(|_| plan(format!("{value} does not fit 64 bits of {unit:?}s")))?;
    Ok((count, unit))
}

/// Nanoseconds of a timedelta, pandas' own among them.
pub(crate) fn nanos(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let py = value.py();
    let part = |name: &Bound<'_, PyString>| value.getattr(name)?.extract::<i64>().map(i128::from);
    let seconds = part(intern!(py, "days"))? * 86_400 + part(intern!(py, "seconds"))?;
    let nanos = match value.getattr_opt(intern!(py, "nanoseconds"))? {
        Some(nanos) => nanos.extract::<i64>()?,
        None => 0,
    };
    Ok((seconds * 1_000_000 + part(intern!(py, "microseconds"))?) * 1000 + i128::from(nanos))
}

/// The number `digits * 10^exponent`.
pub(crate) struct Digits {
    pub(crate) negative: bool,
    /// Each from 0 to 9, the highest first.
    pub(crate) digits: Vec<u8>,
    pub(crate) exponent: i64,
}

/// The digits of a `decimal.Decimal`; None for infinities and NaN.
pub(crate) fn digits(value: &Bound<'_, PyAny>) -> PyResult<Option<Digits>> {
    let (negative, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) =
        value.call_method0(intern!(value.py(), "as_tuple"))?.extract()?;
    let exponent = exponent.extract().ok();
    Ok(exponent.map(|exponent| Digits { negative: negative == 1, digits, exponent }))
}

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    let refused = || plan(format!("the decimal {value} does not fit: at most 76 digits, at most 76 after the point"));
    let Some(Digits { negative, digits, exponent }) = digits(value)? else {
        return Err(plan(format!("the decimal {value} is not a number; compare with float('nan') or float('inf')")));
    };
    let mut text = if negative { "-".to_owned() } else { String::new() };
    text.extend(digits.iter().map(|&digit| char::from(b'0' + digit)));
    let zeros = usize::try_from(exponent.max(0)).ok().filter(|zeros| *zeros <= 76).ok_or_else(refused)?;
    text.extend(std::iter::repeat_n('0', zeros));
    let scale = i8::try_from(-exponent.min(0)).ok().filter(|scale| *scale <= 76).ok_or_else(refused)?;
    Ok(Literal::Decimal { value: i256::from_string(&text).ok_or_else(refused)?, scale })
}
