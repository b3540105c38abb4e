//! Arguments that several classes and functions take, each with an error that names the argument.

use arrow_schema::SchemaRef;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

use super::errors::{plan, type_error};
use super::interchange::{is_a, type_name};
use crate::columns::{Positions, names};
use crate::error::{Error, Result, plan_err};
use crate::join::{JoinType, Validate};
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

/// What the result of a join is, by what its probe side is.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Batch,
    Table,
    Reader,
}

impl Form {
    pub(crate) fn of(probe: &Bound<'_, PyAny>) -> PyResult<Form> {
        let py = probe.py();
        if is_a(probe, "pyarrow", "RecordBatch")? {
            return Ok(Form::Batch);
        }
        let tables = [
            ("pyarrow", "Table"),
            ("pandas", "DataFrame"),
            ("polars", "DataFrame"),
            ("arro3.core", "Table"),
            ("nanoarrow", "Array"),
        ];
        for (module, class) in tables {
            if is_a(probe, module, class)? {
                return Ok(Form::Table);
            }
        }
        if probe.is_instance_of::<PyList>() || probe.is_instance_of::<PyTuple>() {
            return Ok(Form::Table);
        }
        let stream = probe.hasattr(intern!(py, "__arrow_c_stream__"))?;
        if !stream && probe.hasattr(intern!(py, "__arrow_c_array__"))? {
            return Ok(Form::Batch);
        }
        Ok(Form::Reader)
    }
}

/// The join kind of a `how=` word where the probe side comes first, and so is the left one.
pub(crate) fn join_type(how: &str) -> Result<JoinType> {
    let of_left_or_right = left_or_right(how).map(|[probe_first, _]| probe_first);
    of_left_or_right.or_else(|| of_either_side(how)).ok_or_else(|| {
        Error::Plan(format!(
            "how={how:?} is not a kind of join; the kinds are inner, left, right, full, semi, anti, mark, build_semi, \
             build_anti (left keeps probe rows, right keeps build rows)"
        ))
    })
}

/// The join kind of a `how=` word where the build side comes first.
pub(crate) fn hash_join_type(how: &str) -> Result<JoinType> {
    if let Some([probe, build]) = left_or_right(how) {
        return plan_err!(
            "how={how:?} may mean either side, since HashJoin takes the build side first: write how={:?} for what \
             prejoin.join calls {how:?}, or how={:?} for the other side",
            hash_join_word(probe),
            hash_join_word(build)
        );
    }
    of_either_side(how).ok_or_else(|| {
        Error::Plan(format!(
            "how={how:?} is not a kind of join; the kinds are inner, probe_outer, build_outer, full, semi, anti, mark, \
             build_semi, build_anti"
        ))
    })
}

/// The word of [`hash_join_type`] for a join kind.
pub(crate) fn hash_join_word(join_type: JoinType) -> &'static str {
    match join_type {
        JoinType::ProbeOuter => "probe_outer",
        JoinType::BuildOuter => "build_outer",
        other => other.how(),
    }
}

/// The join kind of a word that does not say left or right.
fn of_either_side(how: &str) -> Option<JoinType> {
    Some(match how {
        "inner" => JoinType::Inner,
        "probe_outer" => JoinType::ProbeOuter,
        "build_outer" => JoinType::BuildOuter,
        "full" | "full_outer" | "full outer" | "outer" => JoinType::FullOuter,
        "semi" | "probe_semi" => JoinType::ProbeSemi,
        "anti" | "probe_anti" => JoinType::ProbeAnti,
        "mark" | "probe_mark" => JoinType::ProbeMark,
        "build_semi" => JoinType::BuildSemi,
        "build_anti" => JoinType::BuildAnti,
        _ => return None,
    })
}

/// The join kind of a word that says left or right: where the probe side is the left one, and where the build side is.
fn left_or_right(how: &str) -> Option<[JoinType; 2]> {
    let outer = [JoinType::ProbeOuter, JoinType::BuildOuter];
    let semi = [JoinType::ProbeSemi, JoinType::BuildSemi];
    let anti = [JoinType::ProbeAnti, JoinType::BuildAnti];
    let swapped = |[one, other]: [JoinType; 2]| [other, one];
    Some(match how {
        "left" | "left outer" | "left_outer" => outer,
        "right" | "right outer" | "right_outer" => swapped(outer),
        "left semi" | "left_semi" => semi,
        "right semi" | "right_semi" => swapped(semi),
        "left anti" | "left_anti" => anti,
        "right anti" | "right_anti" => swapped(anti),
        _ => return None,
    })
}

/// A name or a sequence of names.
pub(crate) fn key_names(on: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(name) = on.extract::<String>() {
        return Ok(vec![name]);
    }
    on.extract::<Vec<String>>()
        .map_err(|_| plan(format!("on is a column name or a list of column names, {} was given", type_name(on))))
}

/// `on=`: a name, a list of common names, or a mapping {probe name: build name or names}; as (probe name, build name).
pub(crate) fn pairs(on: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    if let Ok(mapping) = on.cast::<PyDict>() {
        let refused =
            |_: PyErr| plan("on={probe name: build name} takes names only; a build name may be a list of names");
        let mut pairs = Vec::with_capacity(mapping.len());
        for (probe, build) in mapping {
            let probe: String = probe.extract().map_err(refused)?;
            let builds = key_names(&build).map_err(refused)?;
            if builds.is_empty() {
                return Err(plan(format!("on names no build column for the probe column {probe:?}")));
            }
            pairs.extend(builds.into_iter().map(|build| (probe.clone(), build)));
        }
        return Ok(pairs);
    }
    let refused = |_| {
        plan(format!(
            "on is a column name, a list of names that both sides have, or a mapping {{probe name: build name}}; \
             {} was given (pairs are not taken, since their order would have to be guessed)",
            on.repr().map_or_else(|_| type_name(on), |repr| repr.to_string())
        ))
    };
    Ok(key_names(on).map_err(refused)?.into_iter().map(|name| (name.clone(), name)).collect())
}

/// `select=`: a mapping {new name: name}, or a list of names and of such mappings.
pub(crate) fn selection(select: &Bound<'_, PyAny>) -> PyResult<Vec<(Option<String>, String)>> {
    let refused = |_| {
        type_error(format!(
            "select is a list of column names or a mapping {{new name: name}}, {} was given",
            select.repr().map_or_else(|_| type_name(select), |repr| repr.to_string())
        ))
    };
    let renamed = |mapping: &Bound<'_, PyDict>| {
        let pair = |(new, name): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((Some(new.extract()?), name.extract()?));
        mapping.iter().map(pair).collect::<PyResult<Vec<_>>>().map_err(refused)
    };
    if let Ok(mapping) = select.cast::<PyDict>() {
        return renamed(mapping);
    }
    if select.is_instance_of::<PyString>() {
        return Err(refused(plan("")));
    }
    let mut chosen = Vec::new();
    for item in select.extract::<Vec<Bound<'_, PyAny>>>().map_err(refused)? {
        match item.cast::<PyDict>() {
            Ok(mapping) => chosen.extend(renamed(mapping)?),
            Err(_) => chosen.push((None, item.extract().map_err(refused)?)),
        }
    }
    Ok(chosen)
}

/// What [`selection`] was given.
pub(crate) fn selection_object<'py>(
    py: Python<'py>,
    select: &[(Option<String>, String)],
) -> PyResult<Bound<'py, PyAny>> {
    if !select.is_empty() && select.iter().all(|(new, _)| new.is_some()) {
        let mapping = PyDict::new(py);
        select.iter().try_for_each(|(new, name)| mapping.set_item(new, name))?;
        return Ok(mapping.into_any());
    }
    let list = PyList::empty(py);
    for (new, name) in select {
        match new {
            None => list.append(name)?,
            Some(new) => {
                let mapping = PyDict::new(py);
                mapping.set_item(new, name)?;
                list.append(mapping)?;
            }
        }
    }
    Ok(list.into_any())
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
        None | Some("m:m" | "many_to_many") => Ok(Validate::ManyToMany),
        Some("1:1" | "one_to_one") => Ok(Validate::OneToOne),
        Some("1:m" | "one_to_many") => Ok(Validate::OneToMany),
        Some("m:1" | "many_to_one") => Ok(Validate::ManyToOne),
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
