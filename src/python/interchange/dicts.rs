//! Rows that are dicts as a table, for sides that are read into columns.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::pyarrow::{PySchema, is_refusal, pyarrow, type_name};
use crate::python::errors::{plan, type_error};

/// The rows as a `pyarrow.Table`: with the columns of `schema`, or with all names that some row has, in the order in which they
/// appear and of the types that pyarrow finds in their values. What a row does not have is null.
pub(super) fn table_of_dicts<'py>(
    rows: &Bound<'py, PyList>,
    schema: Option<&SchemaRef>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = rows.py();
    let table = pyarrow(py)?.table.bind(py);
    if let Some(schema) = schema {
        let schema = PySchema::new(py, Arc::clone(schema))?;
        let made = table.call_method1(intern!(py, "from_pylist"), (rows, schema.object(py)));
        return made.map_err(|error| match is_refusal(py, &error) {
            true => plan(format!("the rows are not of the schema that was given: {error}")),
            false => error,
        });
    }
    let names = PyDict::new(py);
    for row in rows {
        for (name, _) in row.cast_into::<PyDict>()? {
            if !name.is_instance_of::<PyString>() {
                return Err(type_error(format!(
                    "the names of a row become columns and are str, {} was found",
                    type_name(&name)
                )));
            }
            names.set_item(name, py.None())?;
        }
    }
    let array = py.import(intern!(py, "pyarrow"))?.getattr(intern!(py, "array"))?;
    let columns = PyDict::new(py);
    for name in names.keys() {
        let value = |row: Bound<'py, PyAny>| row.cast_into::<PyDict>()?.get_item(&name);
        let values = PyList::new(py, rows.iter().map(value).collect::<PyResult<Vec<_>>>()?)?;
        let column = array.call1((values,)).map_err(|error| match is_refusal(py, &error) {
            true => plan(format!(
                "the values of {} in the rows are of no one type: {error}; give schema=",
                name.repr().map_or_else(|_| "a name".to_owned(), |name| name.to_string())
            )),
            false => error,
        })?;
        columns.set_item(name, column)?;
    }
    if columns.is_empty() {
        return Err(plan("the rows have no names, so they have no columns"));
    }
    table.call_method1(intern!(py, "from_pydict"), (columns,))
}
