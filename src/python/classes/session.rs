//! The session of `HashJoin.open`.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use pyo3::prelude::*;

use crate::error::Result;
use crate::python::errors::{guarded, plan};
use crate::python::interchange::{PySchema, batch_from_python};
use crate::python::signals::detach_if_long;
use crate::run::Probe;

/// A join whose probe batches are pushed by hand. `HashJoin.open` makes it.
///
/// After an error, and after `finish`, it is done: another call raises PlanError.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> users, events = pa.table({"id": [1, 2]}), pa.record_batch({"user": [2, 3]})
///     >>> session = prejoin.HashJoin(users, events.schema, on=[("id", "user")], how="build_outer").open()
///     >>> session.push(events).to_pydict(), session.finish().num_rows
///     ({'id': [2], 'user': [2]}, 1)
#[pyclass(name = "Session", module = "prejoin", frozen)]
pub(crate) struct PySession {
    schema: PySchema,
    /// Rows that `finish` may have to look at.
    build_rows: usize,
    /// Taken while a call works on it, and for good at the end or after an error.
    probe: Mutex<Option<Probe>>,
}

impl PySession {
    pub(crate) fn new(schema: PySchema, build_rows: usize, probe: Probe) -> Self {
        Self { schema, build_rows, probe: Mutex::new(Some(probe)) }
    }

    fn put(&self, probe: Option<Probe>) -> Option<Probe> {
        std::mem::replace(&mut *self.probe.lock().unwrap_or_else(PoisonError::into_inner), probe)
    }

    fn step<'py>(
        &self,
        py: Python<'py>,
        rows: usize,
        step: impl FnOnce(Probe) -> Result<(Option<Probe>, RecordBatch)> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(probe) = self.put(None) else {
            return Err(plan(
                "this session is finished, failed, or used by another thread right now; open the join again",
            ));
        };
        let (probe, batch) = detach_if_long(py, rows, || step(probe))?;
        self.put(probe);
        self.schema.batch(py, &batch)
    }
}

#[pymethods]
impl PySession {
    /// Joins one probe batch.
    ///
    /// Args:
    ///     batch: A batch with the columns of the probe side.
    ///
    /// Returns:
    ///     One pyarrow.RecordBatch of any number of rows.
    ///
    /// Raises:
    ///     PlanError: For a batch with other columns, and for a session that is done.
    ///     ExecutionError: For a condition that fails, and a probe row that `validate` refuses.
    fn push<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let batch = batch_from_python(batch)?;
            self.step(py, batch.num_rows(), |mut probe| {
                probe.push(batch)?;
                let joined = probe.drain()?;
                Ok((Some(probe), joined))
            })
        })
    }

    /// Ends the probe side.
    ///
    /// Returns:
    ///     The rows that are left, as one pyarrow.RecordBatch: unmatched build rows of joins that keep build rows, all
    ///     rows of build_semi and build_anti, none of others.
    ///
    /// Raises:
    ///     PlanError: For a session that is done.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            self.step(py, self.build_rows, |mut probe| {
                probe.finish()?;
                Ok((None, probe.drain()?))
            })
        })
    }

    /// The pyarrow.Schema of the output.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.schema.object(py).clone()
    }
}
