//! `prejoin.DynamicFilter`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use super::source::Side;
use crate::python::arguments::names_or_positions;
use crate::python::errors::{guarded, plan};
use crate::python::interchange::batch_from_python;
use crate::python::lookup::array;
use crate::python::signals::detach_if_long;
use crate::run::DynamicFilter;

/// A filter on the probe rows of one join, empty until the build of that join is known.
///
/// Give it to the join, and let the probe source call `evaluate`. Before the first probe batch is asked for it is
/// complete, and from then on it tests bounds and membership of the build. It never drops a row that would match;
/// for joins that keep unmatched probe rows it keeps every row. In partitioned mode it is complete once the last
/// build is known. Each independent run needs another filter; a new run empties it. It keeps the builds that it
/// tests alive, so it may outlive its join. `await filter` waits until it is complete.
///
/// Args:
///     probe: The probe side of the join, or its schema.
///     on: The probe key columns by name or position, in key order.
///
/// Raises:
///     PlanError: For columns that do not exist.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> events = pa.record_batch({"id": [2, 3, 2], "at": [10, 20, 30]})
///     >>> filter = prejoin.DynamicFilter(events.schema, on="id")
///     >>> scan = lambda partition: iter([events.filter(filter.evaluate(events))])
///     >>> probe = prejoin.Source(scan, schema=events.schema, partitions=1)
///     >>> users = pa.table({"id": [1, 2]})
///     >>> join = prejoin.HashJoin(users, probe, on="id", dynamic_filter=filter, projection=["probe.at"])
///     >>> join.execute().read_all().to_pydict(), join.metrics()["input_rows"]
///     ({'at': [10, 30]}, 2)
///     >>> filter
///     DynamicFilter [ id@0 >= 1 AND id@0 <= 2 AND id@0 IN (list of 2) ]
#[pyclass(name = "DynamicFilter", module = "prejoin", frozen)]
pub(crate) struct PyDynamicFilter {
    pub(crate) filter: Arc<DynamicFilter>,
    waiting: Waiting,
}

/// The event loops and futures that wait for a filter. They live here alone, where the garbage collector sees them.
type Waiting = Arc<Mutex<Vec<(Py<PyAny>, Py<PyAny>)>>>;

/// The tasks that wait, taken out of the lock: waking them may run Python code.
fn taken(waiting: &Waiting) -> Vec<(Py<PyAny>, Py<PyAny>)> {
    std::mem::take(&mut *waiting.lock().unwrap_or_else(PoisonError::into_inner))
}

/// How often a waiting thread looks for signals.
const LOOK_UP: Duration = Duration::from_millis(50);

#[pymethods]
impl PyDynamicFilter {
    /// While a join has the filter, it may wake the tasks that wait: the filter alone does not keep them alive, so they are not
    /// shown to the garbage collector.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        if Arc::strong_count(&self.filter) > 1 {
            return Ok(());
        }
        let waiting = self.waiting.try_lock();
        waiting.map_or(Ok(()), |waiting| {
            waiting.iter().try_for_each(|(event_loop, future)| {
                visit.call(event_loop)?;
                visit.call(future)
            })
        })
    }

    fn __clear__(&self) {
        drop(taken(&self.waiting));
    }

    #[new]
    fn new(probe: &Bound<'_, PyAny>, on: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| {
            let schema = Side::new(probe)?.source.schema().clone();
            let keys = names_or_positions("on", on, &schema)?;
            Ok(Self { filter: DynamicFilter::try_new(schema, keys)?, waiting: Waiting::default() })
        })
    }

    /// Positions of the tested columns in the probe schema, in key order.
    #[getter]
    fn keys(&self) -> Vec<usize> {
        self.filter.keys().to_vec()
    }

    /// True once the build is known, or all builds in partitioned mode.
    #[getter]
    fn is_complete(&self) -> bool {
        self.filter.is_complete()
    }

    /// Waits until the filter is complete.
    ///
    /// The build is made by the thread that first pulls from the join, so another thread has to wait.
    ///
    /// Args:
    ///     timeout: The longest time to wait, in seconds; None waits without end.
    ///
    /// Returns:
    ///     Whether the filter is complete.
    ///
    /// Raises:
    ///     PlanError: For a timeout that is negative or not a number.
    #[pyo3(signature = (timeout=None))]
    fn wait_complete(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        guarded(|| {
            let end = timeout.map(|seconds| match Duration::try_from_secs_f64(seconds) {
                Ok(timeout) => Ok(Instant::now().checked_add(timeout)),
                Err(_) => Err(plan(format!("timeout is a number of seconds of at least 0, {seconds} was given"))),
            });
            let end = end.transpose()?.flatten();
            loop {
                let left = end.map_or(LOOK_UP, |end| end.saturating_duration_since(Instant::now()).min(LOOK_UP));
                if py.detach(|| self.filter.wait_complete(Some(left))) {
                    return Ok(true);
                }
                py.check_signals()?;
                if end.is_some_and(|end| end <= Instant::now()) {
                    return Ok(self.filter.is_complete());
                }
            }
        })
    }

    /// Waits in the running event loop until the filter is complete.
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
            let future = event_loop.call_method0("create_future")?;
            let wake = py.import("prejoin._wake")?.getattr("wake")?.unbind();
            let waits = (event_loop.unbind(), future.clone().unbind());
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waits);
            let waiting = Arc::clone(&self.waiting);
            self.filter.on_complete(move || {
                Python::try_attach(|py| {
                    for (event_loop, future) in taken(&waiting) {
                        // If the loop is closed by now, or at shutdown, no task waits any more.
                        let _ = wake.call1(py, (event_loop, future));
                    }
                });
            });
            future.call_method0("__await__")
        })
    }

    /// The rows of a batch that can match; all rows until the filter is complete.
    ///
    /// Args:
    ///     batch: A batch of the probe side. Columns are found by their position in the probe schema.
    ///
    /// Returns:
    ///     A pyarrow.BooleanArray of as many values as rows, without nulls.
    ///
    /// Raises:
    ///     PlanError: For a batch without these columns, or with columns of other types.
    fn evaluate<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let batch = batch_from_python(batch)?;
            let mask = detach_if_long(py, batch.num_rows(), || self.filter.evaluate(&batch))?;
            array(py, Arc::new(mask))
        })
    }

    /// Bounds and the kind of membership; no other table contents.
    fn __repr__(&self) -> PyResult<String> {
        guarded(|| Ok(self.filter.to_string()))
    }
}
