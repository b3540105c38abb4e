//! `default=` of `PreparedBuild.map` and `lookup`.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use super::errors::plan;
use super::values::default::default_of;
use crate::columns::names;

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
