//! `prejoin.MemoryPool`.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;

use crate::memory::{MemoryPool, Pool};
use crate::python::arguments::count;
use crate::python::errors::guarded;

/// A memory pool: grants bytes up to a limit, and remembers the most that were granted at one time.
///
/// Builds are charged to a pool before they allocate, for as long as they live.
///
/// Args:
///     limit: The largest number of bytes that are granted at one time; None for any number.
///
/// Raises:
///     PlanError: For a limit that is negative or does not fit 64 bits.
///     TypeError: For a limit that is not an int.
///
/// Example:
///     >>> import prejoin
///     >>> prejoin.MemoryPool(64 << 20)
///     MemoryPool(limit=67108864, reserved=0, peak=0)
#[pyclass(name = "MemoryPool", module = "prejoin", frozen)]
pub(crate) struct PyMemoryPool {
    pool: Arc<MemoryPool>,
}

impl PyMemoryPool {
    /// The pool that Python code gave, else the one unlimited pool of this process.
    pub(crate) fn resolve(pool: Option<&Bound<'_, PyMemoryPool>>) -> Arc<dyn Pool> {
        static DEFAULT: OnceLock<Arc<MemoryPool>> = OnceLock::new();
        match pool {
            Some(given) => Arc::clone(&given.get().pool) as Arc<dyn Pool>,
            None => Arc::clone(DEFAULT.get_or_init(|| Arc::new(MemoryPool::unlimited()))) as Arc<dyn Pool>,
        }
    }
}

#[pymethods]
impl PyMemoryPool {
    #[new]
    #[pyo3(signature = (limit=None))]
    fn new(limit: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        guarded(|| {
            let limit = count("limit", limit)?;
            Ok(Self { pool: Arc::new(limit.map_or_else(MemoryPool::unlimited, MemoryPool::new)) })
        })
    }

    /// Bytes granted and not yet given back.
    #[getter]
    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    /// The largest number of bytes that were granted at one time.
    #[getter]
    fn peak(&self) -> usize {
        self.pool.peak()
    }

    /// The limit in bytes, None where there is none.
    #[getter]
    fn limit(&self) -> Option<usize> {
        self.pool.limit()
    }

    fn __repr__(&self) -> String {
        let limit = self.limit().map_or_else(|| "None".to_owned(), |limit| limit.to_string());
        format!("MemoryPool(limit={limit}, reserved={}, peak={})", self.reserved(), self.peak())
    }
}
