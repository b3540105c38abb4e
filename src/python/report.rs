//! Statistics, properties and metrics of a join as Python dicts.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::join::{Estimate, Properties, Statistics};
use crate::probe::Metrics;

/// {name: None, or {"rows": n, "exact": bool}}
pub(crate) fn statistics(py: Python<'_>, statistics: Statistics) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, estimate) in [
        ("build_rows", statistics.build_rows),
        ("probe_rows", statistics.probe_rows),
        ("output_rows", statistics.output_rows),
    ] {
        let Some(rows) = estimate.value() else {
            dict.set_item(name, py.None())?;
            continue;
        };
        let value = PyDict::new(py);
        value.set_item("rows", rows)?;
        value.set_item("exact", matches!(estimate, Estimate::Exact(_)))?;
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// Columns are positions in the output.
pub(crate) fn properties(py: Python<'_>, properties: Properties) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("ordering", properties.ordering)?;
    dict.set_item("equal_columns", properties.equal_columns)?;
    dict.set_item("partitions", properties.partitions)?;
    Ok(dict)
}

/// Times are seconds, memory is bytes.
pub(crate) fn metrics(py: Python<'_>, metrics: Metrics) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, count) in [
        ("build_input_rows", metrics.build_input_rows),
        ("build_input_batches", metrics.build_input_batches),
        ("build_mem_used", metrics.build_mem_used),
        ("input_rows", metrics.input_rows),
        ("input_batches", metrics.input_batches),
        ("output_rows", metrics.output_rows),
        ("output_batches", metrics.output_batches),
    ] {
        dict.set_item(name, count)?;
    }
    dict.set_item("build_time", metrics.build_time.as_secs_f64())?;
    dict.set_item("join_time", metrics.join_time.as_secs_f64())?;
    dict.set_item("index_kind", metrics.index_kind.map(|kind| kind.to_string()))?;
    Ok(dict)
}
