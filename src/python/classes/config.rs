//! `prejoin.Config`.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use crate::prepare::PrepareOptions;
use crate::python::arguments::count;
use crate::python::errors::{guarded, plan, type_error};

/// Choices of one preparation; every field has a default that suits most builds.
///
/// Integer keys that lie close together get a dense index: a bitmap over the range from the least to the greatest
/// key, in which nothing is hashed. The two arguments for it have the name "perfect hash", by which such an index
/// is also known.
///
/// Args:
///     perfect_hash_min_density: The smallest share of distinct keys in their range, such as 0.15, at which integer
///         keys get a dense index; above 1 none do, apart from small ranges.
///     perfect_hash_small_range: The largest range of keys that gets a dense index whatever its density.
///     in_list_max_bytes: The largest key column, in bytes, that a filter gets as a list of keys; 0 turns lists
///         off.
///     in_list_max_values: The largest number of distinct keys that a filter gets as a list; 0 turns lists off.
///
/// Raises:
///     PlanError: For a number out of range.
///     TypeError: For a value that is not a number.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> config = prejoin.Config(perfect_hash_min_density=2.0, perfect_hash_small_range=0)
///     >>> prejoin.prepare(pa.table({"id": [1, 2]}), on="id", config=config).index_kind
///     'hashed'
#[pyclass(name = "Config", module = "prejoin", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyConfig {
    pub(crate) config: PrepareOptions,
}

#[pymethods]
impl PyConfig {
    #[new]
    #[pyo3(signature = (*, perfect_hash_min_density=None, perfect_hash_small_range=None, in_list_max_bytes=None,
                        in_list_max_values=None, _collide=None))]
    fn new(
        perfect_hash_min_density: Option<&Bound<'_, PyAny>>,
        perfect_hash_small_range: Option<&Bound<'_, PyAny>>,
        in_list_max_bytes: Option<&Bound<'_, PyAny>>,
        in_list_max_values: Option<&Bound<'_, PyAny>>,
        _collide: Option<u64>,
    ) -> PyResult<Self> {
        guarded(|| {
            let default = PrepareOptions::default();
            let density = match perfect_hash_min_density {
                None => default.dense_min_density,
                Some(given) if given.is_instance_of::<PyBool>() => {
                    return Err(type_error("perfect_hash_min_density is a share of at least 0, a bool was given"));
                }
                Some(given) => given.extract()?,
            };
            if density.is_nan() || density < 0.0 {
                return Err(plan(format!("perfect_hash_min_density is a share of at least 0, {density} was given")));
            }
            let small_range = count("perfect_hash_small_range", perfect_hash_small_range)?;
            let list_bytes = count("in_list_max_bytes", in_list_max_bytes)?;
            let list_values = count("in_list_max_values", in_list_max_values)?;
            Ok(Self {
                config: PrepareOptions {
                    dense_min_density: density,
                    dense_small_range: small_range.map_or(default.dense_small_range, |range| range as u64),
                    in_list_max_bytes: list_bytes.unwrap_or(default.in_list_max_bytes),
                    in_list_max_values: list_values.unwrap_or(default.in_list_max_values),
                    collide: _collide.unwrap_or(default.collide),
                },
            })
        })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("perfect_hash_min_density", self.config.dense_min_density)?;
        options.set_item("perfect_hash_small_range", self.config.dense_small_range)?;
        options.set_item("in_list_max_bytes", self.config.in_list_max_bytes)?;
        options.set_item("in_list_max_values", self.config.in_list_max_values)?;
        options.set_item("_collide", self.config.collide)?;
        Ok((PyTuple::empty(py), options))
    }

    /// Smallest share of distinct keys in their range at which integer keys get a dense index.
    #[getter]
    fn perfect_hash_min_density(&self) -> f64 {
        self.config.dense_min_density
    }

    /// Largest range of keys that gets a dense index whatever its density.
    #[getter]
    fn perfect_hash_small_range(&self) -> u64 {
        self.config.dense_small_range
    }

    /// Largest key column, in bytes, that a filter gets as a list of keys; 0 turns lists off.
    #[getter]
    fn in_list_max_bytes(&self) -> usize {
        self.config.in_list_max_bytes
    }

    /// Largest number of distinct keys that a filter gets as a list; 0 turns lists off.
    #[getter]
    fn in_list_max_values(&self) -> usize {
        self.config.in_list_max_values
    }

    fn __repr__(&self) -> String {
        format!(
            "Config(perfect_hash_min_density={:?}, perfect_hash_small_range={}, in_list_max_bytes={}, \
             in_list_max_values={})",
            self.config.dense_min_density,
            self.config.dense_small_range,
            self.config.in_list_max_bytes,
            self.config.in_list_max_values,
        )
    }
}
