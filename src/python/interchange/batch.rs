//! One Python batch to one record batch.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyNone;

use super::abi::ArrowArray;
use super::capsule::take_pair;
use super::import::{Columns, import_batch};
use super::import_size::bytes_read;
use super::pyarrow::{pyarrow, recent_schema_of, type_name};
use super::schema::import_schema;
use crate::columns::any_part;
use crate::error::Result;
use crate::memory::Reservation;
use crate::python::errors::type_error;
use crate::python::shutdown::or_sleep;
use crate::python::signals::detach_if_long;

/// A batch in C form, not looked into yet, with its own schema.
pub(crate) struct CBatch {
    array: ArrowArray,
    schema: SchemaRef,
}

impl CBatch {
    /// Takes the batch from a `pyarrow.RecordBatch` or anything with `__arrow_c_array__`; None from other objects.
    pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        let names = pyarrow(py)?;
        if object.get_type().is(names.record_batch.bind(py)) {
            let schema = recent_schema_of(&object.getattr(intern!(py, "schema"))?)?;
            let mut array = ArrowArray::empty();
            or_sleep(|| names.export_to_c.bind(py).call1((object, (&raw mut array).addr())))?;
            return Ok(Some(Self { schema, array }));
        }
        let Some(method) = object.getattr_opt(intern!(py, "__arrow_c_array__"))? else {
            return Ok(None);
        };
        let (schema, array) = take_pair(&or_sleep(|| method.call0())?)?;
        Ok(Some(Self { schema: import_schema(&schema)?, array }))
    }

    /// The batch's own schema.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// As the producer counts them; not checked yet.
    pub(crate) fn num_rows(&self) -> usize {
        usize::try_from(self.array.length).unwrap_or(0)
    }

    /// How long [`Self::import`] takes, as the number of rows whose join takes about as long.
    pub(crate) fn work(&self, columns: Option<&Columns>) -> usize {
        const BYTES_PER_ROW: usize = 16;
        bytes_read(&self.array, &self.schema, columns) / BYTES_PER_ROW
    }

    /// [`Self::import`] for callers that are attached to Python; what takes long is done detached.
    pub(crate) fn import_attached(
        self,
        py: Python<'_>,
        columns: Option<&Columns>,
        copies: Option<&mut Reservation>,
    ) -> Result<RecordBatch> {
        detach_if_long(py, self.work(columns), || self.import(columns, copies))
    }

    /// Looks into it, or into some `columns`. See [`import_batch`] for `copies`.
    pub(crate) fn import(self, columns: Option<&Columns>, copies: Option<&mut Reservation>) -> Result<RecordBatch> {
        import_batch(self.array, &self.schema, columns, copies)
    }
}

/// The record batch that `object` is (`pyarrow.RecordBatch`, or anything with `__arrow_c_array__`).
pub(crate) fn batch_from_python(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    Ok(c_batch(object)?.import_attached(object.py(), None, None)?)
}

/// The same, not looked into yet.
pub(crate) fn c_batch(object: &Bound<'_, PyAny>) -> PyResult<CBatch> {
    match CBatch::from_python(object)? {
        Some(batch) => Ok(batch),
        None => Err(type_error(format!(
            "expected a pyarrow.RecordBatch or an object with __arrow_c_array__, got {}",
            type_name(object)
        ))),
    }
}

/// The allocations behind a `pyarrow.RecordBatch`, as address ranges; None for other objects, and where pyarrow does
/// not list every buffer (dictionaries).
pub(super) fn extents(object: &Bound<'_, PyAny>, schema: &SchemaRef) -> PyResult<Option<Vec<Range<usize>>>> {
    let py = object.py();
    if !object.get_type().is(pyarrow(py)?.record_batch.bind(py)) || schema.fields().iter().any(|f| hides(f.data_type()))
    {
        return Ok(None);
    }
    let mut ranges = Vec::new();
    for column in object.getattr(intern!(py, "columns"))?.try_iter()? {
        for buffer in column?.call_method0(intern!(py, "buffers"))?.try_iter()? {
            let buffer = buffer?;
            if buffer.is(PyNone::get(py)) {
                continue;
            }
            let start: usize = buffer.getattr(intern!(py, "address"))?.extract()?;
            let size: usize = buffer.getattr(intern!(py, "size"))?.extract()?;
            ranges.push(start..start.saturating_add(size));
        }
    }
    Ok(Some(ranges))
}

/// True where `Array.buffers()` leaves buffers out.
fn hides(data_type: &DataType) -> bool {
    use DataType::{Dictionary, RunEndEncoded, Union};
    any_part(data_type, &|part| matches!(part, Dictionary(_, _) | RunEndEncoded(_, _) | Union(_, _)))
}
