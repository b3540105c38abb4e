//! `prejoin.join`: an attached join with a projection, validated once per (build, probe schema, options).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;

use super::arguments::{Form, count, how_of, join_type, pairs, selection, validate_of};
use super::attached::{Attached, Options};
use super::classes::hash_join::{DEFAULT_BATCH_SIZE, predicate};
use super::classes::pool::PyMemoryPool;
use super::classes::prepared::{PyPreparedBuild, collect};
use super::classes::source;
use super::classes::source::once;
use super::classes::star_join::{PyStarJoin, is_star};
use super::errors::{guarded, plan, type_error};
use super::execution::{Execution, PIECE_ROWS, run_options};
use super::interchange::{BatchStream, Columns, PySchema, c_batch, reader, type_name};
use super::signals::{detach_if_long, interruptible};
use crate::cancel::Cancel;
use crate::columns::{names, position};
use crate::error::{Error, Result, internal_err, plan_err};
use crate::expr::{Expr, Side};
use crate::join::JoinType;
use crate::prepare::Config;
use crate::prepare::{BuildSpec, Collector, NullEquality, PreparedBuild};
use crate::probe::few_batches;
use crate::run::{HashJoin, RunOptions};

/// Joins `probe` to `build` and answers in kind.
///
/// A batch gives one pyarrow.RecordBatch whatever its size; a table, a frame or a list of batches gives a
/// pyarrow.Table; a reader, dataset, scanner, lazy frame, relation, iterator or unknown stream gives a
/// pyarrow.RecordBatchReader that pulls lazily.
///
/// build: a PreparedBuild, rows that are prepared for this call (needs `on`), or several builds: a list of Leg or
///     PreparedBuild, or a mapping {name: leg}, as for `StarJoin`, which plans once for any number of calls.
/// on: None for the build's key names, one name, a list of names that both sides have, or {probe name: build name},
///     where a list of build names asks for equality with each. The build columns named are the build's keys, in any
///     order; several probe columns may meet one of them.
/// how: which rows come out. left keeps probe rows, right keeps build rows.
///     Words of other libraries are taken too: outer, left_semi, right anti.
/// where: a condition on matched pairs, SQL text or made with `col` and `lit`; null means "no".
/// select: output columns in their order: a list of names, or a mapping {new name: name}. A name is one of the output,
///     or "probe.x" or "build.y", which also reaches the build's keys and needs no suffix. Others are not made at all;
///     [] keeps the row count.
/// suffix: appended to the names of build columns that the probe side has too.
/// coalesce: for right and full, one key column that is filled from the build on unmatched build rows; by default where
///     the key types are equal and no probe column meets several build columns.
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
        let mut options = Options {
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
        if probe.cast::<PyPreparedBuild>().is_ok() {
            return Err(type_error(format!(
                "the first argument is the probe side and the second the build side; a PreparedBuild was given first, \
                 and {} second: call prejoin.join(rows, build)",
                type_name(build)
            )));
        }
        let prepared = match build.cast::<PyPreparedBuild>() {
            Ok(prepared) => prepared.clone(),
            Err(_) => Bound::new(py, prepare_for(py, build, &mut options)?)?,
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
                let mut run = run_options(Some(batch_size), None, None)?;
                if form == Form::Table {
                    // Pieces are put together at the end: the fewer there are, the less is copied twice.
                    run.batch_size = PIECE_ROWS;
                }
                let mut rows = source::open(probe, None)?;
                let attached = attach(py, prepared, &options, rows.schema())?;
                if let Some(columns) = &attached.columns {
                    rows.select(Arc::clone(columns));
                }
                let probe = once(attached.join.probe_source().schema().clone(), rows);
                let join = attached.join.to_builder().probe(probe).build()?;
                let schema = PySchema::new(py, join.schema()?)?;
                let mut joined = Execution::new(join, None, run)?;
                if form == Form::Reader {
                    return reader(py, schema, Box::new(joined));
                }
                let mut batches = Vec::new();
                while let Some(batch) = joined.next_batch(py)? {
                    batches.push(batch);
                }
                let rows = batches.iter().map(RecordBatch::num_rows).sum();
                let chunks = detach_if_long(py, rows, || few_batches(schema.arrow(), batches, &interruptible()));
                schema.table(py, &chunks?)
            }
        }
    })
}

/// Prepares an unprepared second argument for this call.
fn prepare_for(py: Python<'_>, build: &Bound<'_, PyAny>, options: &mut Options) -> PyResult<PyPreparedBuild> {
    let Some(on) = &mut options.on else {
        return Err(plan(format!(
            "the second argument is the build side: a PreparedBuild as prejoin.prepare(rows, on) makes it, or rows \
             together with on=; {} was given without on=",
            type_name(build)
        )));
    };
    let source = source::open(build, None)?;
    let mut seen = HashSet::new();
    on.retain(|pair| seen.insert(pair.clone()));
    let mut keys: Vec<&str> = Vec::with_capacity(on.len());
    for (_, build) in on.iter() {
        if !keys.contains(&build.as_str()) {
            keys.push(build);
        }
    }
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

/// The join, and the probe columns that it reads where these are not all.
fn plan_join(
    build: &Arc<PreparedBuild>,
    options: &Options,
    probe: &SchemaRef,
) -> Result<(HashJoin, Option<Arc<Columns>>)> {
    let schema = build.schema();
    let pairs = key_pairs(build, options.on.as_deref(), probe)?;
    // Each key of the build is looked up by the first probe column that meets it, and equal to the others.
    let mut also = pairs.clone();
    let mut on: Vec<(usize, usize)> = Vec::with_capacity(build.keys().len());
    for &key in build.keys() {
        let Some(&pair) = pairs.iter().find(|&&(of, _)| of == key) else {
            return internal_err!("key column {key} of the build is in no pair");
        };
        also.retain(|other| *other != pair);
        on.push(pair);
    }
    let same_types = pairs.iter().all(|&(b, p)| schema.field(b).data_type() == probe.field(p).data_type());
    let several = pairs.iter().find(|&&(b, p)| pairs.iter().any(|&(other, of)| of == p && other != b));
    let outer = matches!(options.how, JoinType::BuildOuter | JoinType::FullOuter);
    let coalesce = options.coalesce.unwrap_or(!outer || (same_types && several.is_none()));
    if coalesce && outer {
        if !same_types {
            return plan_err!(
                "coalesce=True needs key columns of one type on both sides; pass coalesce=False to keep both"
            );
        }
        if let Some(&(_, column)) = several {
            return plan_err!(
                "coalesce=True needs one value for the probe column {:?} on unmatched build rows, several build columns \
                 are joined with it; pass coalesce=False to keep them",
                probe.field(column).name()
            );
        }
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
        let probe_names: HashSet<&String> = probe.fields().iter().map(|field| field.name()).collect();
        for i in (0..builds).filter(|i| !both || !coalesce || !build.keys().contains(i)) {
            projection.push(i);
            let name = schema.field(i).name();
            let clashes = both && probe_names.contains(name);
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
    let read: BTreeSet<usize> = pairs.iter().map(|&(_, p)| p).chain(tested).chain(given).chain(all).collect();
    let read: Vec<usize> = read.into_iter().collect();
    let columns = match read.len() == probes {
        true => None,
        false => {
            let place = |column: usize| read.partition_point(|&other| other < column);
            for position in projection.iter_mut().filter(|position| **position >= builds) {
                *position = builds + if *position == builds + probes { read.len() } else { place(*position - builds) };
            }
            on.iter_mut().chain(&mut also).for_each(|(_, column)| *column = place(*column));
            Some(Arc::new(Columns::try_new(probe, read)?))
        }
    };
    let probe = columns.as_ref().map_or(probe, |columns| columns.schema()).clone();
    let join = HashJoin::builder(schema.clone(), probe).on(on).also(also);
    let join = join.join_type(options.how).null_equalities(build.null_equality().to_vec()).limit(options.limit);
    let join = join.projection(Some(projection)).filter(options.predicate.clone()).validate(options.validate);
    let join = join.coalesce(coalesce && outer).output_names(Some(out)).build()?;
    Ok((join.with_prepared_build(Arc::clone(build))?, columns))
}

/// All pairs (key column of the build, probe column) that `on` asks for, each once; without it the build's key names on
/// both sides. Every key column is in some pair.
fn key_pairs(build: &PreparedBuild, on: Option<&[(String, String)]>, probe: &SchemaRef) -> Result<Vec<(usize, usize)>> {
    let schema = build.schema();
    let name = |key: usize| schema.field(key).name();
    let keys: BTreeSet<usize> = build.keys().iter().copied().collect();
    let asked: Vec<(usize, &str)> = match on {
        None => build.keys().iter().map(|&key| (key, name(key).as_str())).collect(),
        Some(on) => {
            let refused = || {
                Error::Plan(format!(
                    "on names the build columns {:?}, the build was prepared on {:?}; prepare it on the columns that are \
                     joined",
                    on.iter().map(|(_, build)| build).collect::<Vec<_>>(),
                    build.keys().iter().map(|&key| name(key)).collect::<Vec<_>>()
                ))
            };
            let mut asked = Vec::with_capacity(on.len());
            for (of_probe, of_build) in on {
                let mut named = keys.iter().copied().filter(|&key| name(key) == of_build);
                match (named.next(), named.next()) {
                    (Some(key), None) => asked.push((key, of_probe.as_str())),
                    (Some(_), Some(_)) => {
                        return plan_err!(
                            "on names the build column {of_build:?}, of which the build has more than one as a key; use \
                             HashJoin, whose keys may be positions"
                        );
                    }
                    (None, _) => return Err(refused()),
                }
            }
            let missing = keys.iter().any(|key| !asked.iter().any(|(of, _)| of == key));
            if missing || (1..asked.len()).any(|i| asked[..i].contains(&asked[i])) {
                return Err(refused());
            }
            asked
        }
    };
    let mut pairs = Vec::with_capacity(asked.len());
    for (key, of_probe) in asked {
        let pair = (key, position(probe, of_probe, "probe")?);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    Ok(pairs)
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
