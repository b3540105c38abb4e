//! Python values that take the place of an absent key's, in the type of their column.

use std::slice::from_ref;

use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, Field};
use pyo3::intern;
use pyo3::prelude::*;

use super::columns::{by_pyarrow, typed};
use crate::columns::key_type;
use crate::error::Error;
use crate::python::errors::{is_plan_error, plan};
use crate::python::interchange::{is_a, type_name};

/// `value` as an array of one value of the type of `field`; `None` for a null.
///
/// # Errors
/// PlanError for a value that the type does not hold exactly.
pub(crate) fn default_of(value: &Bound<'_, PyAny>, field: &Field) -> PyResult<Option<ArrayRef>> {
    let (py, data_type) = (value.py(), field.data_type());
    let given = plain(value)?;
    if given.is_none() {
        return Ok(None);
    }
    let held = match read(&given, &key_type(data_type), field.name()) {
        Err(error) if is_plan_error(py, &error) => None,
        held => held?,
    };
    match held {
        Some(held) if held.data_type() == data_type => Ok(Some(held)),
        // The same value in another layout: a dictionary, runs, list views.
        Some(held) if can_cast_types(held.data_type(), data_type) => {
            let exact = CastOptions { safe: false, ..CastOptions::default() };
            Ok(Some(cast_with_options(&held, data_type, &exact).map_err(Error::from)?))
        }
        _ => Err(plan(format!(
            "default={} is of type {}, column {:?} has type {data_type}; give a value that this type holds exactly",
            value.repr().map_or_else(|_| "..".to_owned(), |repr| repr.to_string()),
            type_name(value),
            field.name()
        ))),
    }
}

/// `value` in `data_type`; `None` where the type does not hold it.
fn read(value: &Bound<'_, PyAny>, data_type: &DataType, name: &str) -> PyResult<Option<ArrayRef>> {
    match typed(from_ref(value), data_type, name)? {
        Some(held) => Ok(held.missing.is_none().then_some(held.keys)),
        None if data_type.is_nested() || matches!(data_type, DataType::Interval(_)) => {
            let read = by_pyarrow(from_ref(value), data_type, name)?;
            Ok(Some(read).filter(|read| read.data_type() == data_type))
        }
        None => Ok(None),
    }
}

/// The Python value of a scalar of pyarrow or numpy; pandas' own null is None.
fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if is_a(value, "pyarrow", "Scalar")? {
        return value.call_method0(intern!(py, "as_py"));
    }
    if is_a(value, "pandas._libs.missing", "NAType")? {
        return Ok(py.None().into_bound(py));
    }
    // Those of times have more digits than Python's.
    let of_time = is_a(value, "numpy", "datetime64")? || is_a(value, "numpy", "timedelta64")?;
    if !of_time && is_a(value, "numpy", "generic")? {
        return value.call_method0(intern!(py, "item"));
    }
    Ok(value.clone())
}
