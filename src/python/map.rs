//! `PreparedBuild.map`, and `default=` of it, of `lookup` and of joins.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use super::errors::plan;
use super::interchange::is_a;
use super::values::default::default_of;
use crate::columns::names;
use crate::prepare::PreparedBuild;

/// `default=`: for each field its value, from a mapping of names or one value for all. Empty where there are none.
pub(super) fn defaults(default: Option<&Bound<'_, PyAny>>, schema: &SchemaRef) -> PyResult<Vec<Option<ArrayRef>>> {
    let Some(default) = default.filter(|default| !default.is_none()) else { return Ok(vec![]) };
    let Ok(mapping) = default.cast::<PyMapping>() else {
        return schema.fields().iter().map(|field| default_of(default, field)).collect();
    };
    let mut values = vec![None; schema.fields().len()];
    for item in mapping.items()?.iter() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let named = |(_, field): &(usize, &Arc<arrow_schema::Field>)| *field.name() == name;
        let Some((at, field)) = schema.fields().iter().enumerate().find(named) else {
            return Err(plan(format!("default names the column {name:?}, the columns are {}", names(schema))));
        };
        values[at] = default_of(&value, field)?;
    }
    Ok(values)
}

/// `default=` of a join: for each build column a value of rows without a match, from a mapping of names or one value for
/// those columns beside the keys that are `given`. Empty where there are none.
pub(super) fn join_defaults(
    default: Option<&Bound<'_, PyAny>>,
    build: &PreparedBuild,
    given: impl Fn(usize) -> bool,
) -> PyResult<Vec<Option<ArrayRef>>> {
    let Some(default) = default.filter(|default| !default.is_none()) else { return Ok(vec![]) };
    if default.cast::<PyMapping>().is_ok() {
        return defaults(Some(default), build.schema());
    }
    let value = |(column, field): (usize, &Arc<arrow_schema::Field>)| match given(column) {
        true if !build.keys().contains(&column) => default_of(default, field),
        _ => Ok(None),
    };
    build.schema().fields().iter().enumerate().map(value).collect()
}

/// A `pyarrow.Array` as `keys` are: a series of the same library with their name and index, or the array itself.
pub(super) fn like<'py>(keys: &Bound<'py, PyAny>, values: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let name = intern!(py, "name");
    if is_a(keys, "polars", "Series")? {
        let series = py.import(intern!(py, "polars"))?.call_method1(intern!(py, "from_arrow"), (values,))?;
        return series.call_method1(intern!(py, "alias"), (keys.getattr(name)?,));
    }
    if is_a(keys, "pandas", "Series")? {
        let series = to_pandas(&values)?;
        series.setattr(intern!(py, "index"), keys.getattr(intern!(py, "index"))?)?;
        series.setattr(name, keys.getattr(name)?)?;
        return Ok(series);
    }
    Ok(values)
}

/// In pandas' own types; integers and Booleans with nulls in those that have nulls, never as floats or objects.
fn to_pandas<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let options = PyDict::new(py);
    if values.getattr(intern!(py, "null_count"))?.extract::<usize>()? > 0 {
        let data_type = values.getattr(intern!(py, "type"))?;
        let of_nulls = match data_type.str()?.to_str()? {
            "bool" => Some("boolean"),
            "int8" => Some("Int8"),
            "int16" => Some("Int16"),
            "int32" => Some("Int32"),
            "int64" => Some("Int64"),
            "uint8" => Some("UInt8"),
            "uint16" => Some("UInt16"),
            "uint32" => Some("UInt32"),
            "uint64" => Some("UInt64"),
            _ => None,
        };
        if let Some(of_nulls) = of_nulls {
            let types = PyDict::new(py);
            let class = py.import(intern!(py, "pandas"))?.getattr(intern!(py, "api"))?.getattr("types")?;
            types.set_item(data_type, class.call_method1(intern!(py, "pandas_dtype"), (of_nulls,))?)?;
            options.set_item(intern!(py, "types_mapper"), types.getattr(intern!(py, "get"))?)?;
        }
    }
    let series = values.call_method(intern!(py, "to_pandas"), (), Some(&options))?;
    // It may be a read-only view of Arrow's memory.
    series.call_method0(intern!(py, "copy"))
}
