//! Values that an as-of search looks for: one, or one for each key.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;

use super::columns::{Column, by_pyarrow, column};
use super::keys::{Given, array_of, exported, is_iterable, one_column};
use crate::columns::{key_type, take_at};
use crate::python::errors::{is_plan_error, plan};

/// Values of `given`, which are compared with those of `field`: an array or another iterable, or one value for all `rows`.
/// Where there are no rows, as many as there are values.
pub(crate) fn order_values(given: &Bound<'_, PyAny>, field: &Field, rows: Option<usize>) -> PyResult<ArrayRef> {
    let values = match array_of(given)? {
        Some(Given::Array(array)) => one_column(&array)?,
        Some(Given::Values(values)) => read(&list(&values)?, field)?,
        None => match exported(given)? {
            Some(array) => one_column(&array)?,
            None if is_iterable(given)? => read(&list(given)?, field)?,
            None => {
                let value = read(std::slice::from_ref(given), field)?;
                return Ok(take_at(&value, (0..rows.unwrap_or(1)).map(|_| Some(0)))?);
            }
        },
    };
    match rows.filter(|&rows| rows != values.len()) {
        None => Ok(values),
        Some(rows) => {
            Err(plan(format!("asof has {} values for {rows} keys; give one for each, or one for all", values.len())))
        }
    }
}

fn list<'py>(values: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    values.try_iter()?.collect()
}

/// Values in the type of the column where it holds them exactly, else in one of theirs.
fn read(values: &[Bound<'_, PyAny>], field: &Field) -> PyResult<ArrayRef> {
    let data_type = key_type(field.data_type());
    match column(values, &data_type, field.name()) {
        Ok(Column::Typed(typed)) if typed.missing.is_none() => return Ok(typed.keys),
        Ok(Column::Array(array)) => return Ok(array),
        Err(error) if values.first().is_none_or(|value| !is_plan_error(value.py(), &error)) => return Err(error),
        _ => (),
    }
    by_pyarrow(values, &DataType::Null, field.name()).map_err(|error| match values {
        [value, ..] if is_plan_error(value.py(), &error) => plan(format!(
            "asof is compared with column {:?} of type {}, with which the given values do not compare: {error}",
            field.name(),
            field.data_type()
        )),
        _ => error,
    })
}
