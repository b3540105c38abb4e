//! `PreparedBuild.lookup_rows`.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::made::{BuildColumn, breathe, distinct};
use crate::columns::{Positions, names};
use crate::index::NONE;
use crate::prepare::PreparedBuild;
use crate::python::errors::plan;

/// The rows of a build as dicts of some of its columns.
pub(crate) struct RowDicts {
    /// As they were asked for; `None` is all.
    pub(crate) columns: Option<Vec<String>>,
    made: Vec<(Py<PyString>, BuildColumn)>,
    /// Schema of these columns.
    schema: SchemaRef,
}

/// Rows that are made before signals are looked for and other threads may run.
const CHUNK: usize = 8192;

impl RowDicts {
    pub(crate) fn try_new(py: Python<'_>, build: &Arc<PreparedBuild>, columns: Option<Vec<String>>) -> PyResult<Self> {
        let schema = build.rows_schema();
        let positions = Positions::new(schema, "build");
        let all: Vec<String> = match &columns {
            Some(columns) => columns.clone(),
            None => schema.fields().iter().map(|field| field.name().clone()).collect(),
        };
        let column = |name: &String| {
            let at = positions.get(name).map_err(|error| match columns {
                Some(_) => error.into(),
                None => plan(format!(
                    "a dict has each name once, the columns of the build are {}; say which by columns=, or use lookup",
                    names(schema)
                )),
            })?;
            Ok((PyString::intern(py, name).unbind(), BuildColumn::try_new(py, 1, build, at)?))
        };
        let made = all.iter().map(column).collect::<PyResult<_>>()?;
        let fields = all.iter().map(|name| positions.get(name).map(|at| Arc::clone(&schema.fields()[at])));
        let schema = Arc::new(Schema::new(fields.collect::<Result<Vec<_>, _>>()?));
        Ok(Self { columns, made, schema })
    }

    /// Schema of the columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The dict of one row.
    pub(crate) fn one<'py>(&self, py: Python<'py>, row: u32) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, column) in &self.made {
            dict.set_item(name, column.one(py, row)?)?;
        }
        Ok(dict)
    }
}

/// One dict for each of `rows`, which may be [`NONE`]: then with `defaults`, for each column an array of one value, `None` for
/// None; no defaults are None for all.
pub(crate) fn lookup_rows<'py>(
    py: Python<'py>,
    build: &PreparedBuild,
    dicts: &RowDicts,
    rows: &[u32],
    defaults: &[Option<ArrayRef>],
) -> PyResult<Bound<'py, PyList>> {
    let absent = || -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (at, (name, column)) in dicts.made.iter().enumerate() {
            match defaults.get(at) {
                Some(Some(default)) => dict.set_item(name, column.of_array(py, default)?)?,
                _ => dict.set_item(name, py.None())?,
            }
        }
        Ok(dict)
    };
    // A copy has room for all names, so that setting them is quick.
    let begin = absent()?;
    let copied = defaults.is_empty() || dicts.made.iter().all(|(_, column)| column.shared());
    let mut all = Vec::with_capacity(rows.len());
    for (chunk, rows) in rows.chunks(CHUNK).enumerate() {
        if chunk > 0 {
            breathe(py)?;
        }
        let distinct = distinct(rows, build);
        let values = dicts.made.iter().map(|(_, column)| column.values(py, rows, &distinct));
        let values = values.collect::<PyResult<Vec<_>>>()?;
        for (at, &row) in rows.iter().enumerate() {
            if row == NONE {
                all.push(if copied { begin.copy()? } else { absent()? });
                continue;
            }
            let dict = begin.copy()?;
            for ((name, _), values) in dicts.made.iter().zip(&values) {
                dict.set_item(name, values.get(at))?;
            }
            all.push(dict);
        }
    }
    PyList::new(py, all)
}
