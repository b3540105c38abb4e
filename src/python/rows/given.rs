//! The dicts that a caller gives, and columns of them.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::columns::{Coerced, coerce, comparable, key_type};
use crate::index::NONE;
use crate::python::errors::{plan, type_error};
use crate::python::interchange::{is_refusal, type_name};
use crate::python::values::columns::{Column, column};
use crate::python::values::keys::one_column;

/// A list of dicts, one for each row. Rows may have different names.
pub(crate) struct GivenRows<'py> {
    pub(super) rows: Vec<Bound<'py, PyDict>>,
    /// The names of all rows, in the order in which they appear.
    pub(super) names: Vec<Bound<'py, PyString>>,
}

impl<'py> GivenRows<'py> {
    /// `given` as rows where it is a list or tuple whose first element is a dict, or that is empty.
    pub(crate) fn of(given: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let elements: Vec<Bound<'py, PyAny>> = match (given.cast::<PyList>(), given.cast::<PyTuple>()) {
            (Ok(list), _) if list.is_empty() || list.get_item(0)?.is_instance_of::<PyDict>() => list.iter().collect(),
            (_, Ok(tuple)) if tuple.is_empty() || tuple.get_item(0)?.is_instance_of::<PyDict>() => {
                tuple.iter().collect()
            }
            _ => return Ok(None),
        };
        if elements.len() >= NONE as usize {
            return Err(plan(format!(
                "{} rows were given, at most {} are possible; cut them",
                elements.len(),
                NONE - 1
            )));
        }
        let row = |(at, row): (usize, Bound<'py, PyAny>)| {
            row.cast_into::<PyDict>().map_err(|error| {
                type_error(format!(
                    "rows are dicts, as the first one is; row {at} is of type {}",
                    type_name(&error.into_inner())
                ))
            })
        };
        let rows = elements.into_iter().enumerate().map(row).collect::<PyResult<Vec<_>>>()?;
        let names = names_of(given.py(), &rows)?;
        Ok(Some(Self { rows, names }))
    }

    /// The values of one name; None where a row does not have it.
    fn values(&self, name: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(name) = self.names.get(name) else { return Ok(vec![]) };
        let none = name.py().None().into_bound(name.py());
        self.rows.iter().map(|row| Ok(row.get_item(name)?.unwrap_or_else(|| none.clone()))).collect()
    }

    /// The column of a name in the type of a key, and the rows whose value equals no value of that type.
    pub(super) fn keys(&self, name: usize, data_type: &DataType) -> PyResult<Coerced> {
        let label = self.label(name)?;
        match column(&self.values(name)?, data_type, &label)? {
            Column::Typed(typed) => Ok(typed),
            Column::Array(array) if comparable(data_type, array.data_type()) => {
                Ok(coerce(&array, &key_type(data_type))?)
            }
            Column::Array(array) => Err(plan(format!(
                "key {label:?} has type {data_type}, the values of the rows are {}; give values of the key's type",
                array.data_type()
            ))),
        }
    }

    /// The column of a name in the type that pyarrow finds in its values.
    pub(super) fn inferred(&self, name: usize) -> PyResult<ArrayRef> {
        let label = self.label(name)?;
        let Some(py) = self.names.get(name).map(Bound::py) else {
            return Ok(arrow_array::new_empty_array(&DataType::Null));
        };
        let values = PyList::new(py, self.values(name)?)?;
        let made = py.import(intern!(py, "pyarrow"))?.call_method1(intern!(py, "array"), (values,));
        one_column(&made.map_err(|error| match is_refusal(py, &error) {
            true => plan(format!("column {label:?} of the rows is read by the join, and has no one type: {error}")),
            false => error,
        })?)
    }

    fn label(&self, name: usize) -> PyResult<String> {
        self.names.get(name).map_or(Ok(String::new()), |name| Ok(name.to_str()?.to_owned()))
    }

    /// A field for each name: of the type that `known` has for it, or of type Null.
    pub(super) fn fields(&self, known: impl Fn(usize) -> Option<DataType>) -> PyResult<Vec<Arc<Field>>> {
        let field = |at| Ok(Arc::new(Field::new(self.label(at)?, known(at).unwrap_or(DataType::Null), true)));
        (0..self.names.len()).map(field).collect()
    }
}

/// The names in all rows. Rows of one origin have the same objects as names, which are compared first.
fn names_of<'py>(py: Python<'py>, rows: &[Bound<'py, PyDict>]) -> PyResult<Vec<Bound<'py, PyString>>> {
    let (known, mut names) = (PyDict::new(py), Vec::new());
    let mut last: Vec<Bound<'py, PyAny>> = Vec::new();
    for row in rows {
        let mut at = 0;
        for (name, _) in row {
            let same = last.get(at).is_some_and(|last| last.is(&name));
            at += 1;
            if same {
                continue;
            }
            // A name that is no text stays in its row and is no column.
            if let Ok(text) = name.cast::<PyString>()
                && !known.contains(text)?
            {
                known.set_item(text, py.None())?;
                names.push(text.clone());
            }
            last.truncate(at - 1);
            last.push(name);
        }
    }
    Ok(names)
}
