//! `default=` of `PreparedBuild.map`, of `lookup` and of joins.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use super::errors::plan;
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
