//! `prejoin.join`: an attached join with a projection, validated once per (build, probe schema, options).

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::arguments::{count, key_names, validate_of};
use super::classes::hash_join::{DEFAULT_BATCH_SIZE, predicate};
use super::classes::pool::PyMemoryPool;
use super::classes::prepared::{PyPreparedBuild, collect};
use super::classes::source;
use super::classes::source::once;
use super::classes::star_join::{PyStarJoin, is_star};
use super::errors::{guarded, plan, type_error};
use super::execution::{Execution, run_options};
use super::interchange::{Columns, PySchema, c_batch, is_a, reader, type_name};
use super::signals::{detach_if_long, interruptible};
use crate::cancel::Cancel;
use crate::columns::{names, position};
use crate::error::{Result, plan_err};
use crate::expr::{Expr, Side};
use crate::join::{JoinType, Validate};
use crate::prepare::Config;
use crate::prepare::{BuildSpec, Collector, NullEquality, PreparedBuild};
use crate::probe::ProbePlan;
use crate::run::{HashJoin, RunOptions};

/// What a call of `prejoin.join` asks for, apart from its two inputs.
#[derive(Debug, Clone, PartialEq)]
struct Options {
    /// (probe name, build name); `None` is the build's key names on both sides.
    on: Option<Vec<(String, String)>>,
    how: JoinType,
    predicate: Option<Expr>,
    /// (its name, the column) of each output column; `None` is all, a column without name keeps its own.
    select: Option<Vec<(Option<String>, String)>>,
    suffix: String,
    coalesce: Option<bool>,
    limit: Option<usize>,
    validate: Validate,
}

/// A join that `prejoin.join` attached before.
pub(crate) struct Attached {
    options: Options,
    probe_schema: SchemaRef,
    /// The probe columns that the join reads; `None` is all.
    columns: Option<Arc<Columns>>,
    join: HashJoin,
    /// For whole batches: output is not cut.
    plan: Arc<ProbePlan>,
    schema: PySchema,
}

/// The joins that were attached to one build, most recently used first.
#[derive(Default)]
pub(crate) struct JoinCache(Mutex<Vec<Arc<Attached>>>);

/// How many joins a build remembers.
const REMEMBERED: usize = 8;

impl JoinCache {
    fn get(&self, options: &Options, schema: &SchemaRef) -> Option<Arc<Attached>> {
        let mut joins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |join: &Arc<Attached>| {
            (Arc::ptr_eq(&join.probe_schema, schema) || join.probe_schema == *schema) && join.options == *options
        };
        let at = joins.iter().position(fits)?;
        joins[..=at].rotate_right(1);
        Some(Arc::clone(&joins[0]))
    }

    fn add(&self, join: Arc<Attached>) {
        let mut joins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        joins.truncate(REMEMBERED - 1);
        joins.insert(0, join);
    }
}

/// Joins `probe` to `build` and answers in kind.
///
/// A batch gives one pyarrow.RecordBatch whatever its size; a table, a frame or a list of batches gives a
/// pyarrow.Table; a reader, dataset, scanner, lazy frame, relation, iterator or unknown stream gives a
/// pyarrow.RecordBatchReader that pulls lazily.
///
/// build: a PreparedBuild, rows that are prepared for this call (needs `on`), or several builds: a list of Leg or
///     PreparedBuild, or a mapping {name: leg}, as for `StarJoin`, which plans once for any number of calls.
/// on: None for the build's key names, one name, a list of names that both sides have, or {probe name: build name}.
/// how: which rows come out. left keeps probe rows, right keeps build rows.
/// where: a condition on matched pairs, SQL text or made with `col` and `lit`; null means "no".
/// select: output columns in their order: a list of names, or a mapping {new name: name}. A name is one of the output,
///     or "probe.x" or "build.y", which also reaches the build's keys and needs no suffix. Others are not made at all;
///     [] keeps the row count.
/// suffix: appended to the names of build columns that the probe side has too.
/// coalesce: for right and full, one key column that is filled from the build on unmatched build rows; by default where
///     the key types are equal.
/// limit: largest number of output rows.
/// batch_size: largest number of rows of a batch of a lazy result (8192).
/// validate: "m:m" checks nothing; "m:1" asks for a build with one row per key, which costs nothing per probe; "1:m"
///     for probe rows of which no two share a key of the build, over all batches of this join; "1:1" for both.
///
/// The output has the probe's columns, then the build's without its keys; semi, anti and mark have the probe's (mark
/// adds a Boolean column "mark"), build_semi and build_anti the build's.
///
/// Raises PlanError for unknown columns, key types that differ, names that clash after the suffix, and builds that
/// validate refuses; ExecutionError for probe rows that it refuses; TypeError for what gives no rows.
///
/// >>> import prejoin, pyarrow as pa
/// >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
/// >>> prejoin.join(pa.record_batch({"id": [2, 3], "at": [10, 20]}), users, how="left").to_pylist()
/// [{'id': 2, 'at': 10, 'name': 'bob'}, {'id': 3, 'at': 20, 'name': None}]
#[pyfunction]
#[pyo3(signature = (probe, build, on=None, how="inner", *, r#where=None, select=None, suffix="_right", coalesce=None,
                    limit=None, batch_size=None, validate=None))]
#[allow(clippy::too_many_arguments)] // the signature of the Python function
pub(super) fn join<'py>(
    probe: &Bound<'py, PyAny>,
    build: &Bound<'py, PyAny>,
    on: Option<&Bound<'py, PyAny>>,
    how: &str,
    r#where: Option<&Bound<'py, PyAny>>,
    select: Option<&Bound<'py, PyAny>>,
    suffix: &str,
    coalesce: Option<bool>,
    limit: Option<&Bound<'py, PyAny>>,
    batch_size: Option<&Bound<'py, PyAny>>,
    validate: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        let py = probe.py();
        if is_star(build)? {
            let for_one = [
                ("on", on.is_some()),
                ("how", how != "inner"),
                ("where", r#where.is_some()),
                ("suffix", suffix != "_right"),
                ("coalesce", coalesce.is_some()),
                ("validate", validate.is_some()),
            ];
            if let Some((name, _)) = for_one.into_iter().find(|(_, given)| *given) {
                return Err(plan(format!(
                    "{name}= is said by each leg where there are several builds: prejoin.Leg(build, {name}=..)"
                )));
            }
            return PyStarJoin::new(build, select, limit, batch_size)?.join(probe);
        }
        let options = Options {
            on: on.map(pairs).transpose()?,
            how: join_type(how)?,
            predicate: predicate(r#where)?,
            select: select.map(selection).transpose()?,
            suffix: suffix.to_owned(),
            coalesce,
            limit: count("limit", limit)?,
            validate: validate_of(validate)?,
        };
        let batch_size = count("batch_size", batch_size)?.unwrap_or(DEFAULT_BATCH_SIZE);
        let prepared = match build.cast::<PyPreparedBuild>() {
            Ok(prepared) => prepared.clone(),
            Err(_) => Bound::new(py, prepare_for(py, build, &options)?)?,
        };
        let prepared = prepared.get();
        match Form::of(probe)? {
            Form::Batch => {
                let batch = c_batch(probe)?;
                let attached = attach(py, prepared, &options, batch.schema())?;
                let batch = batch.import(attached.columns.as_deref(), None)?;
                let joined = detach_if_long(py, batch.num_rows(), || attached.run(batch))?;
                attached.schema.batch(py, &joined)
            }
            form => {
                let run = run_options(Some(batch_size), None, None)?;
                let mut rows = source::open(probe, None)?;
                let attached = attach(py, prepared, &options, rows.schema())?;
                if let Some(columns) = &attached.columns {
                    rows.select(Arc::clone(columns));
                }
                let probe = once(attached.join.probe_source().schema().clone(), rows);
                let join = attached.join.to_builder().probe(probe).build()?;
                let schema = PySchema::new(py, join.schema()?)?;
                let lazy = reader(py, schema, Box::new(Execution::new(join, None, run)?))?;
                if form == Form::Table { lazy.call_method0(intern!(py, "read_all")) } else { Ok(lazy) }
            }
        }
    })
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
        let tables = [("pyarrow", "Table"), ("pandas", "DataFrame"), ("polars", "DataFrame"), ("arro3.core", "Table")];
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

/// The join kind of a `how=` word.
pub(crate) fn join_type(how: &str) -> Result<JoinType> {
    Ok(match how {
        "inner" => JoinType::Inner,
        "left" => JoinType::ProbeOuter,
        "right" => JoinType::BuildOuter,
        "full" => JoinType::FullOuter,
        "semi" => JoinType::ProbeSemi,
        "anti" => JoinType::ProbeAnti,
        "mark" => JoinType::ProbeMark,
        "build_semi" => JoinType::BuildSemi,
        "build_anti" => JoinType::BuildAnti,
        _ => {
            return plan_err!(
                "how={how:?} is no join kind; the kinds are inner, left, right, full, semi, anti, mark, build_semi, \
                 build_anti (left keeps probe rows, right keeps build rows)"
            );
        }
    })
}

/// The `how=` word of a join kind.
pub(crate) fn how_of(join_type: JoinType) -> &'static str {
    match join_type {
        JoinType::Inner => "inner",
        JoinType::ProbeOuter => "left",
        JoinType::BuildOuter => "right",
        JoinType::FullOuter => "full",
        JoinType::ProbeSemi => "semi",
        JoinType::ProbeAnti => "anti",
        JoinType::ProbeMark => "mark",
        JoinType::BuildSemi => "build_semi",
        JoinType::BuildAnti => "build_anti",
    }
}

/// `on=`: a name, a list of common names, or a mapping {probe name: build name}; as (probe name, build name).
pub(crate) fn pairs(on: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    if let Ok(mapping) = on.cast::<PyDict>() {
        let pair = |(probe, build): (Bound<'_, PyAny>, Bound<'_, PyAny>)| -> PyResult<(String, String)> {
            Ok((probe.extract()?, build.extract()?))
        };
        return mapping
            .iter()
            .map(pair)
            .collect::<PyResult<_>>()
            .map_err(|_: PyErr| plan("on={probe name: build name} takes names only"));
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

/// Prepares an unprepared second argument for this call.
fn prepare_for(py: Python<'_>, build: &Bound<'_, PyAny>, options: &Options) -> PyResult<PyPreparedBuild> {
    let Some(on) = &options.on else {
        return Err(plan("on= is needed where the build side is no PreparedBuild, to know its key columns"));
    };
    let source = source::open(build, None)?;
    let keys: Vec<&str> = on.iter().map(|(_, build)| build.as_str()).collect();
    let spec = BuildSpec::by_name(source.schema().clone(), &keys, NullEquality::NullEqualsNothing)?;
    let pool = PyMemoryPool::resolve(None);
    let collector = Collector::new(spec, &pool, Config::default(), interruptible());
    Ok(PyPreparedBuild::new(collect(py, collector, source, &pool)?))
}

/// The join of these options over this probe schema, attached to `prepared`: remembered, or validated now.
fn attach(
    py: Python<'_>,
    prepared: &PyPreparedBuild,
    options: &Options,
    schema: &SchemaRef,
) -> PyResult<Arc<Attached>> {
    if let Some(attached) = prepared.joins.get(options, schema) {
        return Ok(attached);
    }
    let (join, columns) = plan_join(&prepared.build, options, schema)?;
    let whole = RunOptions { cancel: Cancel::default(), ..run_options(None, None, None)? };
    let plan = Arc::new(join.probe_plan(Arc::clone(&prepared.build), &whole)?);
    let schema_out = PySchema::new(py, join.schema()?)?;
    let (options, probe_schema) = (options.clone(), schema.clone());
    let attached = Arc::new(Attached { options, probe_schema, columns, join, plan, schema: schema_out });
    prepared.joins.add(Arc::clone(&attached));
    Ok(attached)
}

impl Attached {
    fn run(&self, batch: RecordBatch) -> Result<RecordBatch> {
        self.plan.run_once(batch, self.options.limit, Arc::default(), interruptible())
    }
}

/// `select=`: a list of names, or a mapping {new name: name}.
pub(crate) fn selection(select: &Bound<'_, PyAny>) -> PyResult<Vec<(Option<String>, String)>> {
    let refused = |_| {
        type_error(format!(
            "select is a list of column names or a mapping {{new name: name}}, {} was given",
            select.repr().map_or_else(|_| type_name(select), |repr| repr.to_string())
        ))
    };
    if let Ok(mapping) = select.cast::<PyDict>() {
        let pair = |(new, name): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((Some(new.extract()?), name.extract()?));
        return mapping.iter().map(pair).collect::<PyResult<_>>().map_err(refused);
    }
    if select.is_instance_of::<PyString>() {
        return Err(refused(plan("")));
    }
    let names = select.extract::<Vec<String>>().map_err(refused)?;
    Ok(names.into_iter().map(|name| (None, name)).collect())
}

/// The join, and the probe columns that it reads where these are not all.
fn plan_join(
    build: &Arc<PreparedBuild>,
    options: &Options,
    probe: &SchemaRef,
) -> Result<(HashJoin, Option<Arc<Columns>>)> {
    let schema = build.schema();
    let build_keys: Vec<&str> = build.keys().iter().map(|&key| schema.field(key).name().as_str()).collect();
    // The build's key order, whatever order `on` names them in.
    let on: Vec<(usize, String)> = match &options.on {
        None => build.keys().iter().zip(&build_keys).map(|(&key, &name)| (key, name.to_owned())).collect(),
        Some(pairs) => {
            let probe_name = |(&key, &name): (&usize, &&str)| match pairs.iter().find(|(_, build)| build == name) {
                Some((probe, _)) if pairs.len() == build_keys.len() => Ok((key, probe.clone())),
                _ => plan_err!(
                    "on names the build columns {:?}, the build was prepared on {:?}; prepare it on the \
                     columns that are joined",
                    pairs.iter().map(|(_, build)| build).collect::<Vec<_>>(),
                    build_keys
                ),
            };
            build.keys().iter().zip(&build_keys).map(probe_name).collect::<Result<_>>()?
        }
    };
    let probe_keys: Vec<usize> =
        on.iter().map(|(_, name)| crate::columns::position(probe, name, "probe")).collect::<Result<_>>()?;
    let same_types =
        on.iter().zip(&probe_keys).all(|((key, _), &p)| schema.field(*key).data_type() == probe.field(p).data_type());
    let outer = matches!(options.how, JoinType::BuildOuter | JoinType::FullOuter);
    let coalesce = options.coalesce.unwrap_or(!outer || same_types);
    if coalesce && outer && !same_types {
        return plan_err!(
            "coalesce=True needs key columns of one type on both sides; pass coalesce=False to keep both"
        );
    }
    let (builds, probes) = (schema.fields().len(), probe.fields().len());
    let mut projection: Vec<usize> = Vec::new();
    let mut out: Vec<String> = Vec::new();
    if options.how.has_probe_columns() {
        projection.extend(builds..builds + probes);
        out.extend(probe.fields().iter().map(|field| field.name().clone()));
    }
    if options.how == JoinType::ProbeMark {
        projection.push(builds + probes);
        out.push("mark".to_owned());
    }
    if options.how.has_build_columns() {
        let both = options.how.pairs();
        for i in (0..builds).filter(|i| !both || !coalesce || !build.keys().contains(i)) {
            projection.push(i);
            let name = schema.field(i).name();
            let clashes = both && probe.fields().iter().any(|field| field.name() == name);
            out.push(if clashes { format!("{name}{}", options.suffix) } else { name.clone() });
        }
    }
    let probe_part = if options.how.has_probe_columns() { probes } else { 0 };
    if let Some(select) = &options.select {
        (projection, out) = select_columns(select, options.how, (&projection, &out), schema, probe)?;
    }
    let mut seen = HashSet::new();
    for (i, name) in out.iter().enumerate() {
        // Names that the probe side repeats by itself are its own affair.
        if !seen.insert(name) && (i >= probe_part || options.select.is_some()) {
            let advice = match options.how {
                _ if options.select.is_some() => "rename one by select={new name: name}",
                JoinType::ProbeMark => "rename the probe column, or choose columns by select=",
                _ => "choose another suffix=, or columns by select=",
            };
            return plan_err!(
                "the output would have two columns {name:?}; {advice} (probe columns: {}; build columns: {})",
                names(probe),
                names(schema)
            );
        }
    }
    let predicate = options.predicate.as_ref().map(|predicate| predicate.bind(schema, probe)).transpose()?;
    let tested = predicate.iter().flat_map(|predicate| predicate.columns());
    let tested = tested.filter(|(side, _)| *side == Side::Probe).map(|&(_, column)| column);
    let given = projection.iter().filter(|&&p| p >= builds && p < builds + probes).map(|p| p - builds);
    // A position in the condition is one of all columns.
    let all = 0..if options.predicate.as_ref().is_some_and(Expr::has_positions) { probes } else { 0 };
    let read: BTreeSet<usize> = probe_keys.iter().copied().chain(tested).chain(given).chain(all).collect();
    let read: Vec<usize> = read.into_iter().collect();
    let keys: Vec<usize> = on.iter().map(|(key, _)| *key).collect();
    let (probe_keys, columns) = match read.len() == probes {
        true => (probe_keys, None),
        false => {
            let place = |column: usize| read.partition_point(|&other| other < column);
            for position in projection.iter_mut().filter(|position| **position >= builds) {
                *position = builds + if *position == builds + probes { read.len() } else { place(*position - builds) };
            }
            let probe_keys = probe_keys.into_iter().map(place).collect();
            (probe_keys, Some(Arc::new(Columns::try_new(probe, read)?)))
        }
    };
    let probe = columns.as_ref().map_or(probe, |columns| columns.schema()).clone();
    let join = HashJoin::builder(schema.clone(), probe).on(keys.into_iter().zip(probe_keys));
    let join = join.join_type(options.how).null_equalities(build.null_equality().to_vec()).limit(options.limit);
    let join = join.projection(Some(projection)).filter(options.predicate.clone()).validate(options.validate);
    let join = join.coalesce(coalesce && outer).output_names(Some(out)).build()?;
    Ok((join.with_prepared_build(Arc::clone(build))?, columns))
}

/// The columns that `select` asks for, as projection and names; `projection` and `out` are those of all of them.
fn select_columns(
    select: &[(Option<String>, String)],
    how: JoinType,
    (projection, out): (&[usize], &[String]),
    build: &SchemaRef,
    probe: &SchemaRef,
) -> Result<(Vec<usize>, Vec<String>)> {
    let column = |(new, name): &(Option<String>, String)| -> Result<(usize, String)> {
        let mut found = out.iter().zip(projection).filter(|(other, _)| *other == name).map(|(_, &position)| position);
        let (position, own) = match (found.next(), found.next(), name.split_once('.')) {
            (Some(position), None, _) => (position, name.as_str()),
            (Some(_), Some(_), _) => {
                return plan_err!(
                    "select names {name:?}, of which the output has two; say \"probe.{name}\" or \"build.{name}\""
                );
            }
            (None, _, Some((side @ ("build" | "probe"), _)))
                if !(if side == "build" { how.has_build_columns() } else { how.has_probe_columns() }) =>
            {
                return plan_err!("select names {name:?}, a {} join gives no {side} columns", how_of(how));
            }
            (None, _, Some(("build", own))) => (position(build, own, "build")?, own),
            (None, _, Some(("probe", own))) => (build.fields().len() + position(probe, own, "probe")?, own),
            (None, _, _) => {
                let all: Vec<String> = out.iter().map(|name| format!("{name:?}")).collect();
                return plan_err!(
                    "select names {name:?}, which the output does not have; it has {}, and \"probe.x\" and \"build.x\" \
                     reach any column",
                    all.join(", ")
                );
            }
        };
        Ok((position, new.clone().unwrap_or_else(|| own.to_owned())))
    };
    Ok(select.iter().map(column).collect::<Result<Vec<_>>>()?.into_iter().unzip())
}
