//! The parameters of `prejoin.HashJoin` as values of the core.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use super::dynamic_filter::PyDynamicFilter;
use super::expr::{PyExpr, condition};
use crate::error::{Result, plan_err};
use crate::expr::Expr;
use crate::join::{JoinKey, PartitionMode, ProjectedColumn};
use crate::python::arguments::{count, hash_join_type, null_equalities, validate_of};
use crate::python::errors::{plan, type_error};
use crate::python::interchange::type_name;
use crate::run::HashJoinBuilder;

/// Rows of an output batch at most, where it is not said.
pub(crate) const DEFAULT_BATCH_SIZE: usize = 8192;

/// The parameters of the constructor. `on` comes before `null_equal`, which has an entry for each key.
pub(super) const PARAMETERS: [&str; 12] = [
    "build",
    "probe",
    "on",
    "how",
    "null_equal",
    "where",
    "projection",
    "limit",
    "mode",
    "null_aware",
    "validate",
    "dynamic_filter",
];

/// One change of `replace`, other than of a source or the keys.
pub(super) fn change(
    builder: HashJoinBuilder,
    name: &str,
    value: &Bound<'_, PyAny>,
    keys: usize,
) -> PyResult<HashJoinBuilder> {
    let some = Some(value).filter(|value| !value.is_none());
    Ok(match name {
        "how" => builder.join_type(hash_join_type(value.extract()?)?),
        "null_equal" => builder.null_equalities(null_equalities(some, keys)?),
        "where" => builder.filter(predicate(some)?),
        "projection" => builder.projected(projected(some)?),
        "limit" => builder.limit(count("limit", some)?),
        "mode" => builder.mode(mode_of(value.extract()?)?),
        "validate" => builder.validate(validate_of(value.extract()?)?),
        _ => builder.null_aware(value.extract()?),
    })
}

/// `dynamic_filter=`: a filter, or None.
pub(super) fn filter_of(given: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyDynamicFilter>>> {
    if given.is_none() {
        return Ok(None);
    }
    match given.cast::<PyDynamicFilter>() {
        Ok(filter) => Ok(Some(filter.clone().unbind())),
        Err(_) => Err(type_error(format!("dynamic_filter is a prejoin.DynamicFilter, {} was given", type_name(given)))),
    }
}

/// `where=`: a condition, its SQL text, or None.
pub(crate) fn predicate(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Expr>> {
    given.filter(|given| !given.is_none()).map(condition).transpose()
}

pub(super) fn mode_of(mode: &str) -> Result<PartitionMode> {
    match mode {
        "collect_left" => Ok(PartitionMode::CollectLeft),
        "partitioned" => Ok(PartitionMode::Partitioned),
        _ => plan_err!("mode={mode:?} is not a partition mode; the modes are collect_left and partitioned"),
    }
}

/// `on=`: a list of keys, each a pair (build key, probe key) or one name or position that serves both sides; or one
/// such name. A key is a name, a position or a column expression.
pub(super) fn key_pairs(on: &Bound<'_, PyAny>) -> PyResult<Vec<(JoinKey, JoinKey)>> {
    let refused = || {
        plan(format!(
            "on is a list of pairs (build key, probe key), each a column name or position, or of names that both sides \
             have; {} was given",
            on.repr().map_or_else(|_| type_name(on), |repr| repr.to_string())
        ))
    };
    let key = |key: &Bound<'_, PyAny>| -> PyResult<JoinKey> {
        if let Ok(expr) = key.cast::<PyExpr>() {
            return Ok(JoinKey::from(expr.get().expr()));
        }
        if let Ok(name) = key.extract::<String>() {
            return Ok(JoinKey::Name(name));
        }
        if key.is_instance_of::<PyBool>() {
            return Err(refused());
        }
        key.extract::<usize>().map(JoinKey::Position).map_err(|_| refused())
    };
    if on.is_instance_of::<PyString>() {
        let name = key(on)?;
        return Ok(vec![(name.clone(), name)]);
    }
    if on.is_instance_of::<PyDict>() {
        return Err(refused());
    }
    let pair = |pair: PyResult<Bound<'_, PyAny>>| -> PyResult<(JoinKey, JoinKey)> {
        let pair = pair?;
        match pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
            Ok((build, probe)) => Ok((key(&build)?, key(&probe)?)),
            Err(_) if pair.is_instance_of::<PyExpr>() => Err(refused()),
            Err(_) => key(&pair).map(|key| (key.clone(), key)),
        }
    };
    on.try_iter().map_err(|_| refused())?.map(pair).collect()
}

/// `projection=`: positions in (build columns, probe columns), or "build.x", "probe.y" and "mark"; None is all columns.
pub(super) fn projected(projection: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<ProjectedColumn>>> {
    let Some(projection) = projection.filter(|projection| !projection.is_none()) else { return Ok(None) };
    let refused = |found: &Bound<'_, PyAny>| {
        type_error(format!(
            "projection lists column positions, or names like \"build.x\" and \"probe.y\"; {} was given",
            type_name(found)
        ))
    };
    let one = |column: PyResult<Bound<'_, PyAny>>| -> PyResult<ProjectedColumn> {
        let column = column?;
        let Ok(name) = column.extract::<String>() else {
            let position = count("a position in projection", Some(&column))?.ok_or_else(|| refused(&column))?;
            return Ok(ProjectedColumn::Position(position));
        };
        if name == "mark" {
            return Ok(ProjectedColumn::Mark);
        }
        Ok(match name.split_once('.') {
            Some(("build", name)) => ProjectedColumn::Build(name.to_owned()),
            Some(("probe", name)) => ProjectedColumn::Probe(name.to_owned()),
            _ => return Err(plan(format!("projection names {name:?}; write \"build.{name}\" or \"probe.{name}\""))),
        })
    };
    if projection.is_instance_of::<PyString>() {
        return Err(refused(projection));
    }
    projection.try_iter().map_err(|_| refused(projection))?.map(one).collect::<PyResult<_>>().map(Some)
}
