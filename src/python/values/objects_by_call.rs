//! Objects of Python's standard library, made by calling their class: dates and times, decimals, UUIDs.

use std::fmt::Display;

use arrow_schema::TimeUnit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};

const DAY: i64 = 86_400;

/// A class of the standard library, imported once.
macro_rules! class {
    ($py:expr, $module:literal, $name:literal) => {{
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        CLASS.import($py, $module, $name)
    }};
}

/// The beginnings of 1970: a date, a time without a zone, and one in UTC.
struct Epochs {
    date: Py<PyAny>,
    local: Py<PyAny>,
    utc: Py<PyAny>,
}

fn epochs(py: Python<'_>) -> PyResult<&'static Epochs> {
    static EPOCHS: PyOnceLock<Epochs> = PyOnceLock::new();
    EPOCHS.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let (class, options) = (module.getattr("datetime")?, PyDict::new(py));
        options.set_item("tzinfo", module.getattr("timezone")?.getattr("utc")?)?;
        Ok(Epochs {
            date: module.getattr("date")?.call1((1970, 1, 1))?.unbind(),
            local: class.call1((1970, 1, 1))?.unbind(),
            utc: class.call((1970, 1, 1), Some(&options))?.unbind(),
        })
    })
}

/// A count of `unit`s in whole seconds, and the microseconds that are left; those of nanoseconds are not made here.
fn parts(count: i64, unit: TimeUnit) -> (i64, i64) {
    let (per_second, micros) = match unit {
        TimeUnit::Second => (1, 0),
        TimeUnit::Millisecond => (1_000, 1_000),
        TimeUnit::Microsecond | TimeUnit::Nanosecond => (1_000_000, 1),
    };
    (count.div_euclid(per_second), count.rem_euclid(per_second) * micros)
}

fn span<'py>(py: Python<'py>, seconds: i64, micros: i64) -> PyResult<Bound<'py, PyAny>> {
    let class = class!(py, "datetime", "timedelta")?;
    class.call1((seconds.div_euclid(DAY), seconds.rem_euclid(DAY), micros))
}

/// A `datetime.date`, from days since 1970.
pub(super) fn date(py: Python<'_>, days: i64) -> PyResult<Bound<'_, PyAny>> {
    epochs(py)?.date.bind(py).add(class!(py, "datetime", "timedelta")?.call1((days,))?)
}

/// A `datetime.datetime`, in `zone` where there is one.
pub(super) fn timestamp<'py>(
    py: Python<'py>,
    count: i64,
    unit: TimeUnit,
    zone: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (seconds, micros) = parts(count, unit);
    let span = span(py, seconds, micros)?;
    let epochs = epochs(py)?;
    match zone {
        None => epochs.local.bind(py).add(span),
        Some(zone) => epochs.utc.bind(py).add(span)?.call_method1(intern!(py, "astimezone"), (zone,)),
    }
}

/// A `datetime.timedelta`.
pub(super) fn duration(py: Python<'_>, count: i64, unit: TimeUnit) -> PyResult<Bound<'_, PyAny>> {
    let (seconds, micros) = parts(count, unit);
    span(py, seconds, micros)
}

/// A `datetime.time`.
pub(super) fn time(py: Python<'_>, count: i64, unit: TimeUnit) -> PyResult<Bound<'_, PyAny>> {
    let (seconds, micros) = parts(count, unit);
    let seconds = seconds.rem_euclid(DAY);
    class!(py, "datetime", "time")?.call1((seconds / 3600, seconds / 60 % 60, seconds % 60, micros))
}

/// A `decimal.Decimal` of `digits` units of 10^-`scale`, with as many places as the type has.
pub(super) fn decimal<'py>(py: Python<'py>, digits: &impl Display, scale: i8) -> PyResult<Bound<'py, PyAny>> {
    let text = if scale == 0 { digits.to_string() } else { format!("{digits}E{}", -i16::from(scale)) };
    class!(py, "decimal", "Decimal")?.call1((text,))
}

/// A `uuid.UUID`.
pub(super) fn uuid<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let options = PyDict::new(py);
    options.set_item(intern!(py, "bytes"), PyBytes::new(py, bytes))?;
    class!(py, "uuid", "UUID")?.call((), Some(&options))
}
