//! Reading a source whole or lazily, as the joins do; for tests and for finding out how a source arrives.

use arrow_array::RecordBatch;
use pyo3::prelude::*;

use super::errors::guarded;
use super::interchange::{BatchStream, PySchema, Source, reader, schema_of};
use super::pool::PyMemoryPool;
use super::signals::interruptible;
use crate::memory::Reservation;

/// Every batch of a source as one table. Copies for alignment are held from `pool` while the call lasts.
#[pyfunction]
#[pyo3(signature = (source, schema=None, pool=None))]
pub(super) fn read_all<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    schema: Option<&Bound<'py, PyAny>>,
    pool: Option<&Bound<'py, PyMemoryPool>>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        let mut source = Source::open(source, schema.map(schema_of).transpose()?)?;
        let mut copies = Reservation::new(&PyMemoryPool::resolve(pool), "alignment copies");
        let out = PySchema::new(py, source.schema().clone())?;
        let cancel = interruptible();
        let batches = py.detach(|| -> crate::Result<Vec<RecordBatch>> {
            let mut batches = Vec::new();
            while let Some(imported) = source.next(Some(&mut copies))? {
                batches.push(imported.batch);
                cancel.check()?;
            }
            Ok(batches)
        })?;
        out.table(py, &batches)
    })
}

/// The batches of a source as a reader that asks for them one by one.
#[pyfunction]
#[pyo3(signature = (source, schema=None))]
pub(super) fn read<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    schema: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        let source = Source::open(source, schema.map(schema_of).transpose()?)?;
        reader(py, PySchema::new(py, source.schema().clone())?, Box::new(source))
    })
}

impl BatchStream for Source {
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        Ok(self.next_attached(py, None)?.map(|imported| imported.batch))
    }
}
