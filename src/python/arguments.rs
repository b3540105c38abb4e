//! Arguments that several classes and functions take, each with an error that names the argument.

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use super::errors::{plan, type_error};
use super::interchange::type_name;
use crate::columns::{Positions, names};
use crate::join::Validate;
use crate::prepare::{Keep, NullEquality};

/// A whole number of at least 0, None where it was left out.
pub(crate) fn count(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    let Some(given) = given else { return Ok(None) };
    if given.is_instance_of::<PyBool>() {
        return Err(type_error(format!("{name} is a whole number, {} was given", type_name(given))));
    }
    let index = given
        .call_method0("__index__")
        .map_err(|_| type_error(format!("{name} is a whole number, {} was given", type_name(given))))?;
    index.extract().map(Some).map_err(|_| plan(format!("{name} is a whole number from 0 to 2^64-1, {index} was given")))
}

/// A name or a sequence of names.
pub(crate) fn key_names(on: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(name) = on.extract::<String>() {
        return Ok(vec![name]);
    }
    on.extract::<Vec<String>>()
        .map_err(|_| plan(format!("on is a column name or a list of column names, {} was given", type_name(on))))
}

/// `keep=`: which of the rows that share a key.
pub(crate) fn keep_of(keep: &str) -> PyResult<Keep> {
    match keep {
        "all" => Ok(Keep::All),
        "first" => Ok(Keep::First),
        "last" => Ok(Keep::Last),
        _ => Err(plan(format!("keep={keep:?} is no choice of rows; the choices are all, first, last"))),
    }
}

/// `validate=`: how many rows of each side may share a key.
pub(crate) fn validate_of(validate: Option<&str>) -> PyResult<Validate> {
    match validate {
        None | Some("m:m") => Ok(Validate::ManyToMany),
        Some("1:1") => Ok(Validate::OneToOne),
        Some("1:m") => Ok(Validate::OneToMany),
        Some("m:1") => Ok(Validate::ManyToOne),
        Some(other) => Err(plan(format!(
            "validate={other:?} is none of m:m, 1:1, 1:m, m:1 (the probe side first: m:1 is a build with one row per key)"
        ))),
    }
}

/// One bool for all keys, or one for each.
pub(crate) fn null_equalities(given: Option<&Bound<'_, PyAny>>, keys: usize) -> PyResult<Vec<NullEquality>> {
    let equality = |equal: bool| if equal { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing };
    let Some(given) = given else { return Ok(vec![NullEquality::default(); keys]) };
    if let Ok(equal) = given.extract::<bool>() {
        return Ok(vec![equality(equal); keys]);
    }
    match given.extract::<Vec<bool>>() {
        Ok(each) if each.len() == keys => Ok(each.into_iter().map(equality).collect()),
        Ok(each) => Err(plan(format!(
            "null_equal has {} entries for {keys} keys; give one bool, or one for each key",
            each.len()
        ))),
        Err(_) => Err(plan(format!("null_equal is a bool or a list of bools, {} was given", type_name(given)))),
    }
}

/// Columns of one schema: a name or position, or a sequence of them.
pub(crate) fn names_or_positions(name: &str, given: &Bound<'_, PyAny>, schema: &SchemaRef) -> PyResult<Vec<usize>> {
    let positions = Positions::new(schema, "");
    if given.is_instance_of::<PyString>() {
        return Ok(vec![column(name, given, schema, &positions)?]);
    }
    let refused = |_| type_error(format!("{name} lists column names or positions, {} was given", type_name(given)));
    given.try_iter().map_err(refused)?.map(|item| column(name, &item?, schema, &positions)).collect()
}

/// Pairs of columns of one schema, each a name or position.
pub(crate) fn pairs_of_columns(
    name: &str,
    given: &Bound<'_, PyAny>,
    schema: &SchemaRef,
) -> PyResult<Vec<(usize, usize)>> {
    let refused = || type_error(format!("{name} lists pairs of columns, {} was given", type_name(given)));
    if given.is_instance_of::<PyString>() {
        return Err(refused());
    }
    let positions = Positions::new(schema, "");
    let column = |given: &Bound<'_, PyAny>| column(name, given, schema, &positions);
    let pair = |pair: PyResult<Bound<'_, PyAny>>| -> PyResult<(usize, usize)> {
        let (a, b) = pair?.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().map_err(|_| refused())?;
        Ok((column(&a)?, column(&b)?))
    };
    given.try_iter().map_err(|_| refused())?.map(pair).collect()
}

fn column(name: &str, given: &Bound<'_, PyAny>, schema: &SchemaRef, positions: &Positions<'_>) -> PyResult<usize> {
    if let Ok(column) = given.extract::<String>() {
        return positions.get(&column).map_err(|_| {
            plan(format!(
                "{name} names column {column:?}, of which there is not one; the columns are {}",
                names(schema)
            ))
        });
    }
    let Some(column) = count(name, Some(given))? else { return Err(plan(format!("{name} is empty"))) };
    if column >= schema.fields().len() {
        return Err(plan(format!("{name} names column {column}, there are {}", schema.fields().len())));
    }
    Ok(column)
}
