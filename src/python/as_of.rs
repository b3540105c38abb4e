//! The arguments of as-of joins, lookups and legs.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::TimeUnit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::errors::{plan, type_error};
use super::interchange::type_name;
use super::values::literal::literal;
use super::values::order::order_values;
use crate::expr::Literal;
use crate::index::Strategy;
use crate::join::{AsOf, Tolerance};
use crate::prepare::PreparedBuild;

/// `asof=`: the columns of the probe and of the build.
pub(super) fn columns(asof: &Bound<'_, PyAny>) -> PyResult<(Option<String>, Option<String>)> {
    let refused = || {
        type_error(format!(
            "asof is the name of a column or {{probe name: build name}}, {} was given",
            asof.repr().map_or_else(|_| type_name(asof), |repr| repr.to_string())
        ))
    };
    if asof.is_instance_of::<PyString>() {
        let name: String = asof.extract()?;
        return Ok((Some(name.clone()), Some(name)));
    }
    let mapping = asof.cast::<PyDict>().map_err(|_| refused())?;
    match mapping.iter().collect::<Vec<_>>().as_slice() {
        [(probe, build)] => {
            let (probe, build) = (probe.extract().map_err(|_| refused())?, build.extract().map_err(|_| refused())?);
            Ok((Some(probe), Some(build)))
        }
        _ => Err(refused()),
    }
}

/// `asof=` of a leg: which columns, and how a row is chosen. None where it was not given.
pub(super) fn of_leg(
    asof: Option<&Bound<'_, PyAny>>,
    strategy: &str,
    tolerance: Option<&Bound<'_, PyAny>>,
    allow_exact_matches: bool,
) -> PyResult<Option<AsOf>> {
    let rule = rule(strategy, tolerance, allow_exact_matches)?;
    let Some(asof) = asof else { return only_with_asof(&rule).map(|()| None) };
    let (probe, build) = columns(asof)?;
    // "planes.since" may stand for the build's column "since".
    let build = if asof.is_instance_of::<PyString>() { None } else { build };
    Ok(Some(AsOf { probe, build, ..rule }))
}

fn only_with_asof(rule: &AsOf) -> PyResult<()> {
    match *rule == AsOf::default() {
        true => Ok(()),
        false => Err(plan("strategy, tolerance and allow_exact_matches say how asof= searches; give asof= too")),
    }
}

/// `strategy=`, `tolerance=` and `allow_exact_matches=`.
pub(super) fn rule(strategy: &str, tolerance: Option<&Bound<'_, PyAny>>, allow_exact_matches: bool) -> PyResult<AsOf> {
    let strategy = match strategy {
        "backward" => Strategy::Backward,
        "forward" => Strategy::Forward,
        "nearest" => Strategy::Nearest,
        _ => {
            return Err(plan(format!(
                "strategy={strategy:?} is none of the strategies, which are backward, forward, nearest"
            )));
        }
    };
    let tolerance = tolerance.map(tolerance_of).transpose()?;
    Ok(AsOf { probe: None, build: None, strategy, tolerance, allow_exact_matches })
}

fn tolerance_of(given: &Bound<'_, PyAny>) -> PyResult<Tolerance> {
    Ok(match literal(given) {
        Ok(Literal::Integer(value)) => Tolerance::Integer(value),
        Ok(Literal::Float(value)) => Tolerance::Float(value),
        Ok(Literal::Decimal { value, scale }) => Tolerance::Decimal { value, scale },
        Ok(Literal::Duration { value, unit }) => {
            let nanos = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1,
            };
            Tolerance::Nanoseconds(i128::from(value) * nanos)
        }
        _ => {
            return Err(type_error(format!(
                "tolerance is a number for columns of numbers and a timedelta for those of dates and times, {} was given",
                given.repr().map_or_else(|_| type_name(given), |repr| repr.to_string())
            )));
        }
    })
}

/// What an as-of lookup looks for.
pub(super) struct At<'a, 'py> {
    values: &'a Bound<'py, PyAny>,
    pub(super) as_of: AsOf,
}

impl<'a, 'py> At<'a, 'py> {
    /// `asof=` and how it searches. None where it was not given.
    pub(super) fn of(
        asof: Option<&'a Bound<'py, PyAny>>,
        strategy: &str,
        tolerance: Option<&Bound<'py, PyAny>>,
        allow_exact_matches: bool,
    ) -> PyResult<Option<Self>> {
        let as_of = rule(strategy, tolerance, allow_exact_matches)?;
        match asof {
            Some(values) => Ok(Some(Self { values, as_of })),
            None => only_with_asof(&as_of).map(|()| None),
        }
    }

    /// One value for each of `rows` keys, or as many as there are.
    pub(super) fn values(&self, build: &Arc<PreparedBuild>, rows: Option<usize>) -> PyResult<ArrayRef> {
        order_values(self.values, self.as_of.order_column(build)?, rows)
    }
}
