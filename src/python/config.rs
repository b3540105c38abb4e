//! `prejoin.Config`.

use pyo3::prelude::*;

use super::errors::plan;
use crate::config::Config;

/// Choices of one preparation; every field has a default that suits most builds.
#[pyclass(name = "Config", module = "prejoin", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyConfig {
    pub(crate) config: Config,
}

#[pymethods]
impl PyConfig {
    #[new]
    #[pyo3(signature = (*, perfect_hash_min_density=None, perfect_hash_small_range=None, in_list_max_bytes=None,
                        in_list_max_values=None))]
    fn new(
        perfect_hash_min_density: Option<f64>,
        perfect_hash_small_range: Option<u64>,
        in_list_max_bytes: Option<usize>,
        in_list_max_values: Option<usize>,
    ) -> PyResult<Self> {
        let default = Config::default();
        let density = perfect_hash_min_density.unwrap_or(default.perfect_hash_min_density);
        if density.is_nan() || density < 0.0 {
            return Err(plan(format!("perfect_hash_min_density is a share of at least 0, {density} was given")));
        }
        Ok(Self {
            config: Config {
                perfect_hash_min_density: density,
                perfect_hash_small_range: perfect_hash_small_range.unwrap_or(default.perfect_hash_small_range),
                in_list_max_bytes: in_list_max_bytes.unwrap_or(default.in_list_max_bytes),
                in_list_max_values: in_list_max_values.unwrap_or(default.in_list_max_values),
                ..default
            },
        })
    }

    /// Smallest share of distinct keys in their range that gets a perfect-hash index; above 1 turns it off.
    #[getter]
    fn perfect_hash_min_density(&self) -> f64 {
        self.config.perfect_hash_min_density
    }

    /// Key ranges up to this are indexed by perfect hash whatever their density.
    #[getter]
    fn perfect_hash_small_range(&self) -> u64 {
        self.config.perfect_hash_small_range
    }

    /// Largest key column, in bytes, that membership keeps as an IN-list; 0 turns IN-lists off.
    #[getter]
    fn in_list_max_bytes(&self) -> usize {
        self.config.in_list_max_bytes
    }

    /// Largest number of distinct keys that membership keeps as an IN-list; 0 turns IN-lists off.
    #[getter]
    fn in_list_max_values(&self) -> usize {
        self.config.in_list_max_values
    }

    fn __repr__(&self) -> String {
        format!(
            "Config(perfect_hash_min_density={:?}, perfect_hash_small_range={}, in_list_max_bytes={}, \
             in_list_max_values={})",
            self.config.perfect_hash_min_density,
            self.config.perfect_hash_small_range,
            self.config.in_list_max_bytes,
            self.config.in_list_max_values,
        )
    }
}
