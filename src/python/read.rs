//! Reading a source whole or lazily, as the joins do; for tests and for finding out how a source arrives.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;

use super::classes::pool::PyMemoryPool;
use super::errors::guarded;
use super::interchange::{BatchStream, PySchema, Source, batch_from_python, reader, schema_of};
use super::signals::interruptible;
use crate::memory::Reservation;

/// Every batch of a source as one table; for tests. `pool` holds copies for alignment while the call lasts.
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

/// The batches of a source as a reader that asks for them one by one; for tests.
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

/// A batch of two columns in, three columns out, and nothing between: what any join of such batches pays at least.
#[pyfunction]
#[pyo3(name = "_crossing")]
pub(super) fn crossing<'py>(py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static LAST: Mutex<Option<Arc<(SchemaRef, SchemaRef, PySchema)>>> = Mutex::new(None);
    guarded(|| {
        let batch = batch_from_python(batch)?;
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let schemas = match last.filter(|last| Arc::ptr_eq(&last.0, batch.schema_ref())) {
            Some(last) => last,
            None => {
                let out = Arc::new(batch.schema().project(&[0, 1, 1]).map_err(crate::Error::from)?);
                let made = Arc::new((batch.schema(), Arc::clone(&out), PySchema::new(py, out)?));
                *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&made));
                made
            }
        };
        let columns = [0, 1, 1].map(|column| batch.column(column).clone()).to_vec();
        let out = RecordBatch::try_new(schemas.1.clone(), columns).map_err(crate::Error::from)?;
        schemas.2.batch(py, &out)
    })
}

impl BatchStream for Source {
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        Ok(self.next_attached(py, None)?.map(|imported| imported.batch))
    }
}
