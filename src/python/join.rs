//! `prejoin.join`: an attached join with a projection, validated once per (build, probe schema, options).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::arguments::{count, key_names};
use super::errors::{guarded, plan};
use super::execution::{Execution, run_options};
use super::hash_join::{DEFAULT_BATCH_SIZE, predicate};
use super::interchange::{PySchema, batch_from_python, is_a, reader, type_name};
use super::pool::PyMemoryPool;
use super::prepared::{PyPreparedBuild, collect};
use super::signals::{detach_if_long, interruptible};
use super::source::{self, Side};
use crate::build::{BuildSpec, Collector, NullEquality, PreparedBuild, names};
use crate::cancel::Cancel;
use crate::config::Config;
use crate::error::{Result, plan_err};
use crate::expr::Expr;
use crate::join::{HashJoin, JoinType, ProbePlan, RunOptions};

/// What a call of `prejoin.join` asks for, apart from its two inputs.
#[derive(Debug, Clone, PartialEq)]
struct Options {
    /// (probe name, build name); `None` is the build's key names on both sides.
    on: Option<Vec<(String, String)>>,
    how: JoinType,
    predicate: Option<Expr>,
    suffix: String,
    coalesce: Option<bool>,
    limit: Option<usize>,
}

/// A join that `prejoin.join` attached before.
pub(crate) struct Attached {
    options: Options,
    probe_schema: SchemaRef,
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
/// build: a PreparedBuild, or rows that are prepared for this call (needs `on`).
/// on: None for the build's key names, one name, a list of names that both sides have, or {probe name: build name}.
/// how: which rows come out. left keeps probe rows, right keeps build rows.
/// where: a condition on matched pairs, SQL text or made with `col` and `lit`; null means "no".
/// suffix: appended to the names of build columns that the probe side has too.
/// coalesce: for right and full, one key column that is filled from the build on unmatched build rows; by default where
///     the key types are equal.
/// limit: largest number of output rows.
/// batch_size: largest number of rows of a batch of a lazy result (8192).
///
/// The output has the probe's columns, then the build's without its keys; semi, anti and mark have the probe's (mark
/// adds a Boolean column "mark"), build_semi and build_anti the build's.
///
/// Raises PlanError for unknown columns, key types that differ and names that clash after the suffix, TypeError for
/// what gives no rows.
///
/// >>> import prejoin, pyarrow as pa
/// >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
/// >>> prejoin.join(pa.record_batch({"id": [2, 3], "at": [10, 20]}), users, how="left").to_pylist()
/// [{'id': 2, 'at': 10, 'name': 'bob'}, {'id': 3, 'at': 20, 'name': None}]
#[pyfunction]
#[pyo3(signature = (probe, build, on=None, how="inner", *, r#where=None, suffix="_right", coalesce=None, limit=None,
                    batch_size=None))]
#[allow(clippy::too_many_arguments)] // the signature of the Python function
pub(super) fn join<'py>(
    probe: &Bound<'py, PyAny>,
    build: &Bound<'py, PyAny>,
    on: Option<&Bound<'py, PyAny>>,
    how: &str,
    r#where: Option<&Bound<'py, PyAny>>,
    suffix: &str,
    coalesce: Option<bool>,
    limit: Option<&Bound<'py, PyAny>>,
    batch_size: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        let py = probe.py();
        let options = Options {
            on: on.map(pairs).transpose()?,
            how: join_type(how)?,
            predicate: predicate(r#where)?,
            suffix: suffix.to_owned(),
            coalesce,
            limit: count("limit", limit)?,
        };
        let batch_size = count("batch_size", batch_size)?.unwrap_or(DEFAULT_BATCH_SIZE);
        let prepared = match build.cast::<PyPreparedBuild>() {
            Ok(prepared) => prepared.clone(),
            Err(_) => Bound::new(py, prepare_for(py, build, &options)?)?,
        };
        let prepared = prepared.get();
        match Form::of(probe)? {
            Form::Batch => {
                let batch = batch_from_python(probe)?;
                let attached = attach(py, prepared, &options, &batch.schema())?;
                let joined = detach_if_long(py, batch.num_rows(), || attached.run(batch))?;
                attached.schema.batch(py, &joined)
            }
            form => {
                let run = run_options(Some(batch_size), None, None)?;
                let source = Side::new(probe)?.source;
                let attached = attach(py, prepared, &options, source.schema())?;
                let join = attached.join.to_builder().probe(source).build()?;
                let schema = PySchema::new(py, join.schema()?)?;
                let lazy = reader(py, schema, Box::new(Execution::new(join, None, run)?))?;
                if form == Form::Table { lazy.call_method0(intern!(py, "read_all")) } else { Ok(lazy) }
            }
        }
    })
}

/// What the result of a join is, by what its probe side is.
#[derive(PartialEq)]
enum Form {
    Batch,
    Table,
    Reader,
}

impl Form {
    fn of(probe: &Bound<'_, PyAny>) -> PyResult<Form> {
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
fn pairs(on: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
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
    let join = plan_join(&prepared.build, options, schema)?;
    let whole = RunOptions { cancel: Cancel::default(), ..run_options(None, None, None)? };
    let plan = Arc::new(join.probe_plan(Arc::clone(&prepared.build), &whole)?);
    let schema_out = PySchema::new(py, join.schema()?)?;
    let attached =
        Arc::new(Attached { options: options.clone(), probe_schema: schema.clone(), join, plan, schema: schema_out });
    prepared.joins.add(Arc::clone(&attached));
    Ok(attached)
}

impl Attached {
    fn run(&self, batch: RecordBatch) -> Result<RecordBatch> {
        self.plan.run_once(batch, self.options.limit, Arc::default(), interruptible())
    }
}

fn plan_join(build: &Arc<PreparedBuild>, options: &Options, probe: &SchemaRef) -> Result<HashJoin> {
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
        on.iter().map(|(_, name)| crate::build::position(probe, name, "probe")).collect::<Result<_>>()?;
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
    let mut seen = HashSet::new();
    let probe_part = if options.how.has_probe_columns() { probes } else { 0 };
    for (i, name) in out.iter().enumerate() {
        // Names that the probe side repeats by itself are its own affair.
        if !seen.insert(name) && i >= probe_part {
            return plan_err!(
                "the output would have two columns {name:?}; choose another suffix= (probe columns: {}; \
                 build columns: {})",
                names(probe),
                names(schema)
            );
        }
    }
    let keys = on.iter().zip(&probe_keys).map(|((key, _), &probe)| (*key, probe));
    let join = HashJoin::builder(schema.clone(), probe.clone()).on(keys).join_type(options.how);
    let join = join.null_equalities(build.null_equality().to_vec()).projection(Some(projection)).limit(options.limit);
    let join = join.filter(options.predicate.clone());
    join.coalesce(coalesce && outer).output_names(Some(out)).build()?.with_prepared_build(Arc::clone(build))
}
