//! `prejoin.join` and `StarJoin` of a list of dicts.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::given::GivenRows;
use super::plan::{Engine, Joined, Names, PlanCache, Planned, Read, RowsPlan};
use crate::error::Error;
use crate::join::{JoinOptions, StarJoin};
use crate::prepare::PreparedBuild;
use crate::probe::StarRows;
use crate::python::map::join_defaults;
use crate::python::signals::{detach_if_long, interruptible};
use crate::python::values::keys::either;

/// The rows joined with one build.
pub(crate) fn join_one<'py>(
    py: Python<'py>,
    mut given: GivenRows<'py>,
    build: &Arc<PreparedBuild>,
    options: &JoinOptions,
    default: Option<&Bound<'py, PyAny>>,
    plans: &PlanCache,
) -> PyResult<Bound<'py, PyList>> {
    if !given.rows.is_empty() {
        return join(py, &given, Joined::One(build, options), default, plans);
    }
    if !options.join_type.is_build_driven() {
        return Ok(PyList::empty(py));
    }
    // No row says which names there are: those that are asked for.
    let keys = || build.keys().iter().map(|&key| build.schema().field(key).name().clone()).collect::<Vec<_>>();
    let mut names = options.on.as_ref().map_or_else(keys, |on| on.iter().map(|(probe, _)| probe.clone()).collect());
    let chosen = options.select.iter().flatten().filter_map(|(_, name)| name.strip_prefix("probe."));
    names.extend(chosen.map(str::to_owned));
    let mut seen = HashSet::new();
    given.names.extend(names.iter().filter(|name| seen.insert(*name)).map(|name| PyString::new(py, name)));
    join(py, &given, Joined::One(build, &JoinOptions { filter: None, ..options.clone() }), default, plans)
}

/// The rows joined by a star; `chosen` says whether its output columns were chosen.
pub(crate) fn join_star<'py>(
    py: Python<'py>,
    given: &GivenRows<'py>,
    star: &StarJoin,
    chosen: bool,
    rows: &Arc<StarRows>,
    plans: &PlanCache,
) -> PyResult<Bound<'py, PyList>> {
    match given.rows.is_empty() {
        true => Ok(PyList::empty(py)),
        false => join(py, given, Joined::Star(star, chosen, rows), None, plans),
    }
}

fn join<'py>(
    py: Python<'py>,
    given: &GivenRows<'py>,
    joined: Joined<'_>,
    default: Option<&Bound<'py, PyAny>>,
    plans: &PlanCache,
) -> PyResult<Bound<'py, PyList>> {
    // The columns whose types are those of their values.
    let mut inferred: BTreeMap<usize, ArrayRef> = BTreeMap::new();
    loop {
        let fields = given.fields(|at| inferred.get(&at).map(|column| column.data_type().clone()))?;
        let names = Names { schema: Arc::new(Schema::new(fields)), found: inferred.keys().copied().collect() };
        let planned = plans.get(py, joined, names)?;
        let needed = match planned.as_ref() {
            Planned::Needs(needed) => needed.clone(),
            Planned::Plan(plan) => {
                if let (Joined::One(build, options), Some(default)) = (joined, default.filter(|given| !given.is_none()))
                {
                    // What comes out is known once the join without a default is planned.
                    let defaults = join_defaults(Some(default), build, |column| plan.output.gives(column))?;
                    let options = JoinOptions { defaults, ..options.clone() };
                    return join(py, given, Joined::One(build, &options), None, plans);
                }
                match read(given, plan, &inferred)? {
                    Ok((batch, never)) => return run(py, given, joined, plan, batch, never),
                    Err(needed) => needed.into_iter().map(|at| (at, DataType::Null)).collect(),
                }
            }
        };
        for (at, of_nulls) in needed {
            let column = given.inferred(at)?;
            let nulls = *column.data_type() == DataType::Null;
            inferred.insert(at, if nulls { new_null_array(&of_nulls, column.len()) } else { column });
        }
    }
}

type Never = Vec<Option<BooleanBuffer>>;

/// The columns that the join reads, and for each join the rows that match nothing. Where a condition tests a value that the
/// type of a key does not hold, the columns whose own types are needed.
fn read(
    given: &GivenRows<'_>,
    plan: &RowsPlan,
    inferred: &BTreeMap<usize, ArrayRef>,
) -> PyResult<Result<(RecordBatch, Never), Vec<usize>>> {
    let rows = given.rows.len();
    let mut missing: BTreeMap<usize, BooleanBuffer> = BTreeMap::new();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(plan.reads.len());
    for (name, read) in &plan.reads {
        columns.push(match read {
            Read::Nothing => Arc::new(NullArray::new(rows)),
            Read::Key(data_type) => {
                let keys = given.keys(*name, data_type)?;
                if let Some(unknown) = keys.missing {
                    missing.insert(*name, unknown);
                }
                keys.keys
            }
            Read::Inferred => match inferred.get(name) {
                Some(column) => Arc::clone(column),
                None => return Ok(Err(vec![*name])),
            },
        });
    }
    let needed: Vec<usize> = plan.tested.iter().copied().filter(|name| missing.contains_key(name)).collect();
    if !needed.is_empty() {
        return Ok(Err(needed));
    }
    let never = |names: &Vec<usize>| names.iter().fold(None, |all, name| either(all, missing.get(name).cloned()));
    let never = plan.keys.iter().map(never).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&plan.schema), columns, &options);
    Ok(Ok((batch.map_err(Error::from)?, never)))
}

fn run<'py>(
    py: Python<'py>,
    given: &GivenRows<'py>,
    joined: Joined<'_>,
    plan: &RowsPlan,
    batch: RecordBatch,
    mut never: Never,
) -> PyResult<Bound<'py, PyList>> {
    let cancel = interruptible();
    let rows = batch.num_rows();
    let (count, sides) = match (&plan.engine, joined) {
        (Engine::One(one), Joined::One(build, options)) => {
            let all = if options.join_type.is_build_driven() { rows.max(build.num_rows()) } else { rows };
            let never = never.pop().flatten();
            let numbers = detach_if_long(py, all, || one.row_numbers(batch, never, options.limit, &cancel));
            let (probe, build) = numbers?;
            (probe.len(), vec![Some(probe), Some(build)])
        }
        (Engine::Star(star), _) => {
            let work = rows.saturating_mul(plan.keys.len());
            detach_if_long(py, work, || star.row_numbers(batch, never, cancel))?
        }
        (Engine::One(_), Joined::Star(..)) => {
            return Err(Error::Internal("a star was planned as one join".to_owned()).into());
        }
    };
    plan.output.dicts(py, &given.rows, count, &sides)
}
