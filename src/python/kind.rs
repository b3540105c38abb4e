//! Results in the kind of what the caller gave: a frame for a frame, a series for a series.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::errors::plan;
use super::interchange::{is_a, pyarrow, type_name};

/// Where a result of pyarrow is turned into objects of other libraries.
const CONVERSIONS: &str = "prejoin._frames";

/// What the rows of a join are given back as.
pub(crate) struct RowsKind<'a, 'py> {
    probe: &'a Bound<'py, PyAny>,
    /// The function that makes it of rows of pyarrow; `None` for these themselves.
    conversion: Option<&'static str>,
    dtype_backend: Option<&'a str>,
}

impl<'a, 'py> RowsKind<'a, 'py> {
    /// The kind of `probe`; `dtype_backend` is for frames of pandas only.
    pub(crate) fn of(probe: &'a Bound<'py, PyAny>, dtype_backend: Option<&'a str>) -> PyResult<Self> {
        let conversion = conversion_of(probe)?;
        if let Some(backend) = dtype_backend {
            if !["numpy_nullable", "pyarrow"].contains(&backend) {
                return Err(plan(format!(
                    "dtype_backend={backend:?} was given; it is \"numpy_nullable\" or \"pyarrow\", as in pandas"
                )));
            }
            if conversion != Some("pandas_frame") {
                return Err(plan(format!(
                    "dtype_backend={backend:?} chooses the types of a pandas.DataFrame, which a probe side of {} does not \
                     give",
                    type_name(probe)
                )));
            }
        }
        Ok(Self { probe, conversion, dtype_backend })
    }

    /// `rows` of pyarrow in this kind. `probe_columns` says which column of the probe side an output column is, if any.
    pub(crate) fn give(
        &self,
        rows: Bound<'py, PyAny>,
        probe_columns: impl FnOnce() -> Vec<Option<usize>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(conversion) = self.conversion else { return Ok(rows) };
        let conversions = rows.py().import(CONVERSIONS)?;
        match conversion {
            "pandas_frame" => {
                conversions.call_method1(conversion, (rows, self.probe, probe_columns(), self.dtype_backend))
            }
            _ => conversions.call_method1(conversion, (rows, self.probe)),
        }
    }
}

fn conversion_of(probe: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let (py, class) = (probe.py(), probe.get_type());
    let names = pyarrow(py)?;
    // Those that give themselves first, since small batches notice every look into a module.
    let own = class.is(&names.record_batch) || class.is(&names.table) || class.is(&names.reader);
    if own || probe.is_instance_of::<PyList>() || probe.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    first_of(
        probe,
        [
            ("polars", "DataFrame", "polars_frame"),
            ("pandas", "DataFrame", "pandas_frame"),
            ("arro3.core", "Table", "arro3_rows"),
            ("arro3.core", "RecordBatch", "arro3_rows"),
            ("nanoarrow", "Array", "nanoarrow_array"),
            ("nanoarrow._array", "CArray", "nanoarrow_c_array"),
        ],
    )
}

/// `values`, a batch of one column with one row for each of `keys`, as the keys are: a series or index of the same library
/// with their name and labels, or a `pyarrow.Array`.
pub(crate) fn values_like<'py>(keys: &Bound<'py, PyAny>, values: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // One key or a few come in a list, where looking into modules would take as long as the rest.
    let plain = keys.is_instance_of::<PyList>() || keys.is_instance_of::<PyTuple>() || keys.is_instance_of::<PyDict>();
    let kinds = [
        ("polars", "Series", "polars_series"),
        ("pandas", "Series", "pandas_series"),
        ("pandas", "Index", "pandas_index"),
    ];
    match if plain { None } else { first_of(keys, kinds)? } {
        Some(conversion) => keys.py().import(CONVERSIONS)?.call_method1(conversion, (values, keys)),
        None => values.call_method1(intern!(keys.py(), "column"), (0,)),
    }
}

/// What belongs to the first of the classes (module, name) that `object` is one of.
fn first_of<const N: usize>(
    object: &Bound<'_, PyAny>,
    classes: [(&str, &str, &'static str); N],
) -> PyResult<Option<&'static str>> {
    for (module, class, belongs) in classes {
        if is_a(object, module, class)? {
            return Ok(Some(belongs));
        }
    }
    Ok(None)
}
