//! `prejoin.join_asof`: a join of which the build's order chooses the rows.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{count, join_type, pairs, selection};
use super::as_of::{columns, rule};
use super::classes::join_parameters::{DEFAULT_BATCH_SIZE, predicate};
use super::errors::{guarded, type_error};
use super::join::join_with;
use crate::join::{AsOf, JoinOptions, Validate};

/// Joins each row of `probe` with the one row of its key in `build` that is nearest in the build's order.
///
/// Probe rows come in any order and keep it. A build is prepared once with `order_by` and searched by any number of
/// calls.
///
/// Args:
///     probe: Rows, as for `join`.
///     build: A PreparedBuild that was prepared with `order_by`, or rows that are prepared for this call (needs `on`
///         and `asof`; `on=[]` where there are no keys).
///     on: Key columns, which are equal in a match, as for `join`.
///     asof: The values that are compared: a column name that both sides have, or {probe name: build name}; by default
///         the name of the build's order column. The types compare as those of keys do: integers, decimals and
///         timestamps by value over widths, scales and units.
///     strategy: "backward" takes the last build row at or before the probe's value, of equal ones the last; "forward"
///         the first row at or after it, of equal ones the first; "nearest" the nearer one of both, at the same
///         distance the one of backward. Texts have no nearest.
///     tolerance: Largest distance of a match: a number for numbers, a timedelta for dates and times; None is any.
///     allow_exact_matches: Whether a build row at the probe's value itself counts.
///     how: "left" keeps probe rows without a match, beside nulls; "inner", "semi", "anti" and "mark" as for `join`.
///     where: A condition on the pairs that the search gave; a pair that does not meet it is no match. Other rows of
///         the key are not tried then.
///     select: Output columns, as for `join`.
///     prefix: Put before the name of each build column.
///     suffix: Appended to the names of build columns that the probe side has too, the order column among them.
///     default: What probe rows without a match have instead of null, as for `join`.
///     limit: Largest number of output rows.
///     batch_size: Largest number of rows of a batch of a lazy result (8192).
///     dtype_backend: Types of a pandas.DataFrame, as of `join`.
///     **others: None; those of other libraries are refused with their name here.
///
/// Build rows whose order value is null or NaN match nothing, nor do probe rows.
///
/// Returns:
///     The probe's columns, then the build's without its keys, in the kind of `probe`, as for `join`.
///
/// Raises:
///     PlanError: For a build that has no order, unknown columns, types that do not compare, a tolerance that does not
///         fit them, and names that clash after the suffix.
///     TypeError: For what gives no rows, and for arguments of other libraries.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> quotes = pa.table({"symbol": ["A", "A", "B"], "ts": [1, 5, 2], "bid": [10.0, 10.5, 7.0]})
///     >>> quotes = prejoin.prepare(quotes, on="symbol", order_by="ts")
///     >>> trades = pa.record_batch({"symbol": ["A", "B", "A"], "ts": [6, 1, 4]})
///     >>> prejoin.join_asof(trades, quotes).to_pydict()
///     {'symbol': ['A', 'B', 'A'], 'ts': [6, 1, 4], 'ts_right': [5, None, 1], 'bid': [10.5, None, 10.0]}
#[pyfunction]
#[pyo3(signature = (probe, build, on=None, *, asof=None, strategy="backward", tolerance=None, allow_exact_matches=true,
                    how="left", r#where=None, select=None, prefix="", suffix="_right", default=None, limit=None,
                    batch_size=None, dtype_backend=None, **others))]
#[allow(clippy::too_many_arguments)] // the signature of the Python function
pub(super) fn join_asof<'py>(
    probe: &Bound<'py, PyAny>,
    build: &Bound<'py, PyAny>,
    on: Option<&Bound<'py, PyAny>>,
    asof: Option<&Bound<'py, PyAny>>,
    strategy: &str,
    tolerance: Option<&Bound<'py, PyAny>>,
    allow_exact_matches: bool,
    how: &str,
    r#where: Option<&Bound<'py, PyAny>>,
    select: Option<&Bound<'py, PyAny>>,
    prefix: &str,
    suffix: &str,
    default: Option<&Bound<'py, PyAny>>,
    limit: Option<&Bound<'py, PyAny>>,
    batch_size: Option<&Bound<'py, PyAny>>,
    dtype_backend: Option<&str>,
    others: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        if let Some(others) = others {
            refuse(others)?;
        }
        let (probe_column, build_column) = asof.map(columns).transpose()?.unwrap_or_default();
        let rule = rule(strategy, tolerance, allow_exact_matches)?;
        let options = JoinOptions {
            on: on.map(pairs).transpose()?,
            join_type: join_type(how)?,
            as_of: Some(AsOf { probe: probe_column, build: build_column, ..rule }),
            filter: predicate(r#where)?,
            select: select.map(selection).transpose()?,
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            defaults: Vec::new(),
            coalesce: None,
            limit: count("limit", limit)?,
            validate: Validate::default(),
        };
        let batch_size = count("batch_size", batch_size)?.unwrap_or(DEFAULT_BATCH_SIZE);
        join_with(probe, build, options, default, (batch_size, dtype_backend))
    })
}

/// Says what an argument of another library is called here.
fn refuse(others: &Bound<'_, PyDict>) -> PyResult<()> {
    let Some(name) = others.keys().iter().next() else { return Ok(()) };
    let name = name.to_string();
    let advice = match name.as_str() {
        "by" | "left_by" | "right_by" | "left_on" | "right_on" => {
            "in polars and pandas by= names the keys and on= the time; here on= names the keys and asof= the time: \
             join_asof(probe, build, on=keys, asof=time), where other names are given as {probe name: build name}"
        }
        "direction" => "it is called strategy= here: \"backward\", \"forward\" or \"nearest\"",
        "suffixes" => "it is called suffix= here, and is appended to names of the build side",
        _ => {
            "its arguments are on, asof, strategy, tolerance, allow_exact_matches, how, where, select, prefix, suffix, default, \
             limit, batch_size"
        }
    };
    Err(type_error(format!("join_asof has no argument {name}=; {advice}")))
}
