//! Lazy results: a `pyarrow.RecordBatchReader` over an iterator of ours. Unlike a C stream it keeps the type of errors,
//! and a panic stays within the process's reach.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use pyo3::intern;
use pyo3::prelude::*;

use super::pyarrow::{PySchema, pyarrow};
use crate::python::errors::{guarded, plan};

/// Gives batches one by one to Python code.
pub(crate) trait BatchStream: Send {
    /// The next batch, None at the end; not asked again after the end or an error.
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>>;
}

/// The iterator under a lazy result. Dropping it drops the stream; so does the end, or an error.
#[pyclass(module = "prejoin._core", frozen)]
pub(crate) struct BatchIterator {
    schema: PySchema,
    /// Empty while a batch is made (the lock is not held then), and after the end.
    stream: Mutex<State>,
}

enum State {
    Idle(Box<dyn BatchStream>),
    Busy,
    Done,
}

impl BatchIterator {
    fn swap(&self, next: State) -> State {
        std::mem::replace(&mut *self.stream.lock().unwrap_or_else(PoisonError::into_inner), next)
    }
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut stream = match self.swap(State::Busy) {
            State::Idle(stream) => stream,
            State::Busy => {
                return Err(plan("this reader is being read already, by another thread or by what it reads from"));
            }
            State::Done => {
                self.swap(State::Done);
                return Ok(None);
            }
        };
        let next = guarded(|| stream.next_batch(py)?.map(|batch| self.schema.batch(py, &batch)).transpose());
        let after = if matches!(next, Ok(Some(_))) { State::Idle(stream) } else { State::Done };
        self.swap(after);
        next
    }
}

/// A `pyarrow.RecordBatchReader` of `schema` over `stream`.
pub(crate) fn reader<'py>(
    py: Python<'py>,
    schema: PySchema,
    stream: Box<dyn BatchStream>,
) -> PyResult<Bound<'py, PyAny>> {
    let object = schema.object(py).clone();
    let iterator = Bound::new(py, BatchIterator { schema, stream: Mutex::new(State::Idle(stream)) })?;
    reader_from_iterator(py, &object, iterator.as_any())
}

/// A `pyarrow.RecordBatchReader` of the `pyarrow.Schema` `schema` over a Python iterator of `pyarrow.RecordBatch`es.
pub(crate) fn reader_from_iterator<'py>(
    py: Python<'py>,
    schema: &Bound<'py, PyAny>,
    iterator: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    pyarrow(py)?.reader.bind(py).call_method1(intern!(py, "from_batches"), (schema, iterator))
}
