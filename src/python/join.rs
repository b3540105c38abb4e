//! `prejoin.join`: an attached join with a projection, validated once per (build, probe schema, options).

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{Form, count, join_type, pairs, selection, validate_of};
use super::attached::Attached;
use super::classes::join_parameters::{DEFAULT_BATCH_SIZE, predicate};
use super::classes::pool::PyMemoryPool;
use super::classes::prepared::{PyPreparedBuild, collect};
use super::classes::source;
use super::classes::source::once;
use super::classes::star_join::{PyStarJoin, is_star};
use super::errors::{guarded, plan, type_error};
use super::execution::{Execution, PIECE_ROWS, run_options};
use super::foreign_words::{Callee, refuse_unknown};
use super::interchange::{BatchStream, Columns, PySchema, c_batch, reader, type_name};
use super::kind::RowsKind;
use super::map::join_defaults;
use super::rows::{GivenRows, join_one};
use super::signals::{detach_if_long, interruptible};
use crate::cancel::Cancel;
use crate::join::{AsOf, JoinOptions};
use crate::prepare::PrepareOptions;
use crate::prepare::{BuildSpec, Collector, NullEquality};
use crate::python::few_batches::few_batches;
use crate::run::RunOptions;
use crate::run::join_by_name::attach_by_name;

/// Joins `probe` to `build`: a batch with a batch as result, a table with a table, a stream with a stream.
///
/// A batch gives one pyarrow.RecordBatch whatever its size, and a table or a list of batches a pyarrow.Table. A
/// polars.DataFrame gives a polars.DataFrame, a pandas.DataFrame a pandas.DataFrame with a new index; tables, batches
/// and arrays of arro3 and nanoarrow give such objects. A reader, dataset, scanner, lazy frame, relation, iterator or
/// unknown stream gives a pyarrow.RecordBatchReader that pulls lazily.
///
/// A list of dicts, one for each row, gives a list of dicts: each is a copy of its row with the columns of the build.
/// Rows may have different names; a key that a row does not have is None. Rows that come from the build alone have None
/// for the other names. Only keys and what `where` tests is read. [] gives [], or rows of the build alone.
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
///     or "probe.x" or "build.y", which also reaches the build's keys. "probe.*" and "build.*" are the columns of that
///     side that come out without `select`; a list may hold mappings beside them. Others are not made at all; [] keeps
///     the row count.
/// prefix: put before the name of each build column, and before "mark".
/// suffix: appended to the names of build columns that are taken, as by the probe side; where that is taken too, it is
///     "build." before the name instead.
/// default: what probe rows of left and full joins without a match have instead of null: {build column: value}, or one
///     value for all build columns that come out, apart from keys. It is of the column's type.
/// coalesce: for right and full, one key column that is filled from the build on unmatched build rows; by default where
///     the key types are equal and no probe column meets several build columns.
/// limit: largest number of output rows.
/// batch_size: largest number of rows of a batch of a lazy result (8192).
/// validate: "m:m" checks nothing; "m:1" asks for a build with one row per key, which costs nothing per probe; "1:m"
///     for probe rows of which no two share a key of the build, over all batches of this join; "1:1" for both.
/// dtype_backend: for a pandas.DataFrame, "numpy_nullable" or "pyarrow" types in all columns. By default the columns of
///     the probe side keep theirs and the build's get pandas' own; integers and Booleans with nulls become "Int64" and
///     "boolean".
///
/// The output has the probe's columns, then the build's without its keys; semi, anti and mark have the probe's (mark
/// adds a Boolean column "mark"), build_semi and build_anti the build's.
///
/// Raises PlanError for unknown columns, key types that differ, a default of another type than its column, and builds
/// that validate refuses; ExecutionError for probe rows that it refuses; TypeError for what gives no rows, and for
/// arguments that do not exist.
///
/// >>> import prejoin, pyarrow as pa
/// >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
/// >>> prejoin.join(pa.record_batch({"id": [2, 3], "at": [10, 20]}), users, how="left").to_pylist()
/// [{'id': 2, 'at': 10, 'name': 'bob'}, {'id': 3, 'at': 20, 'name': None}]
#[pyfunction]
#[pyo3(signature = (probe, build, on=None, how="inner", *, r#where=None, select=None, prefix="", suffix="_right",
                    default=None, coalesce=None, limit=None, batch_size=None, validate=None, dtype_backend=None,
                    **unknown))]
#[allow(clippy::too_many_arguments)] // the signature of the Python function
pub(super) fn join<'py>(
    probe: &Bound<'py, PyAny>,
    build: &Bound<'py, PyAny>,
    on: Option<&Bound<'py, PyAny>>,
    how: &str,
    r#where: Option<&Bound<'py, PyAny>>,
    select: Option<&Bound<'py, PyAny>>,
    prefix: &str,
    suffix: &str,
    default: Option<&Bound<'py, PyAny>>,
    coalesce: Option<bool>,
    limit: Option<&Bound<'py, PyAny>>,
    batch_size: Option<&Bound<'py, PyAny>>,
    validate: Option<&str>,
    dtype_backend: Option<&str>,
    unknown: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        refuse_unknown(Callee::Join, unknown)?;
        if is_star(build)? {
            let for_one = [
                ("on", on.is_some()),
                ("how", how != "inner"),
                ("where", r#where.is_some()),
                ("prefix", !prefix.is_empty()),
                ("suffix", suffix != "_right"),
                ("default", default.is_some()),
                ("coalesce", coalesce.is_some()),
                ("validate", validate.is_some()),
            ];
            if let Some((name, _)) = for_one.into_iter().find(|(_, given)| *given) {
                return Err(plan(format!(
                    "{name}= belongs to each leg where there are several builds: write prejoin.Leg(build, {name}=..)"
                )));
            }
            return PyStarJoin::new(build, select, limit, batch_size, None)?.join(probe, dtype_backend);
        }
        let options = JoinOptions {
            on: on.map(pairs).transpose()?,
            join_type: join_type(how)?,
            as_of: None,
            filter: predicate(r#where)?,
            select: select.map(selection).transpose()?,
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            defaults: Vec::new(),
            coalesce,
            limit: count("limit", limit)?,
            validate: validate_of(validate)?,
        };
        let batch_size = count("batch_size", batch_size)?.unwrap_or(DEFAULT_BATCH_SIZE);
        join_with(probe, build, options, default, (batch_size, dtype_backend))
    })
}

/// Joins `probe` to `build`, which are what Python gave. Output batches of a lazy result have at most `batch_size` rows.
pub(super) fn join_with<'py>(
    probe: &Bound<'py, PyAny>,
    build: &Bound<'py, PyAny>,
    mut options: JoinOptions,
    default: Option<&Bound<'py, PyAny>>,
    (batch_size, dtype_backend): (usize, Option<&str>),
) -> PyResult<Bound<'py, PyAny>> {
    let py = probe.py();
    if probe.cast::<PyPreparedBuild>().is_ok() {
        return Err(type_error(format!(
            "the first argument is the probe side and the second the build side; a PreparedBuild was given first, \
                 and {} second: call prejoin.join(rows, build)",
            type_name(build)
        )));
    }
    let kind = RowsKind::of(probe, dtype_backend)?;
    let prepared = match build.cast::<PyPreparedBuild>() {
        Ok(prepared) => prepared.clone(),
        Err(_) => Bound::new(py, prepare_for(py, build, &mut options)?)?,
    };
    let prepared = prepared.get();
    if let Some(rows) = GivenRows::of(probe)? {
        return Ok(join_one(py, rows, &prepared.build, &options, default, &prepared.row_joins)?.into_any());
    }
    match Form::of(probe)? {
        Form::Batch => {
            let batch = c_batch(probe)?;
            let attached = attach(py, prepared, &options, default, batch.schema())?;
            let work = batch.num_rows().max(batch.work(attached.columns.as_deref()));
            let run = || attached.run(batch.import(attached.columns.as_deref(), None)?);
            let joined = detach_if_long(py, work, run)?;
            kind.give(attached.schema.batch(py, &joined)?, || attached.probe_columns())
        }
        form => {
            let mut run = run_options(Some(batch_size), None, None)?;
            if form == Form::Table {
                // Pieces are put together at the end: the fewer there are, the less is copied twice.
                run.batch_size = PIECE_ROWS;
            }
            let mut rows = source::open(probe, None)?;
            let attached = attach(py, prepared, &options, default, rows.schema())?;
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
            kind.give(schema.table(py, &chunks?)?, || attached.probe_columns())
        }
    }
}

/// Prepares an unprepared second argument for this call.
fn prepare_for(py: Python<'_>, build: &Bound<'_, PyAny>, options: &mut JoinOptions) -> PyResult<PyPreparedBuild> {
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
    let schema = source.schema().clone();
    let spec = match &options.as_of {
        None => BuildSpec::by_name(schema, &keys, NullEquality::NullEqualsNothing)?,
        Some(AsOf { build, probe, .. }) => {
            let Some(order) = build.as_ref().or(probe.as_ref()) else {
                return Err(plan(
                    "rows that are prepared for this call need asof=, the column that they are searched in",
                ));
            };
            let nulls = vec![NullEquality::NullEqualsNothing; keys.len()];
            BuildSpec::ordered_by_name(schema, &keys, nulls, order)?
        }
    };
    let pool = PyMemoryPool::resolve(None);
    let collector = Collector::new(spec, &pool, PrepareOptions::default(), interruptible());
    Ok(PyPreparedBuild::new(collect(py, collector, source, &pool)?))
}

/// The join of these options over this probe schema, attached to `prepared`: remembered, or validated now.
fn attach(
    py: Python<'_>,
    prepared: &PyPreparedBuild,
    options: &JoinOptions,
    default: Option<&Bound<'_, PyAny>>,
    schema: &SchemaRef,
) -> PyResult<Arc<Attached>> {
    if default.is_some_and(|default| !default.is_none()) {
        // What comes out is known once the join without a default is planned.
        let plain = attach(py, prepared, options, None, schema)?;
        let projection = plain.join.spec.projection.as_deref().unwrap_or_default();
        let defaults = join_defaults(default, &prepared.build, |column| projection.contains(&column))?;
        return attach(py, prepared, &JoinOptions { defaults, ..options.clone() }, None, schema);
    }
    prepared.joins.get_or_attach(options, schema, || {
        let (join, columns) = attach_by_name(&prepared.build, options, schema)?;
        let columns = columns.map(|columns| Columns::try_new(schema, columns).map(Arc::new)).transpose()?;
        let whole = RunOptions { cancel: Cancel::default(), ..run_options(None, None, None)? };
        let plan = Arc::new(join.probe_plan(Arc::clone(&prepared.build), &whole)?);
        let schema_out = PySchema::new(py, join.schema()?)?;
        let (options, probe_schema) = (options.clone(), schema.clone());
        Ok(Attached { options, probe_schema, columns, join, plan, schema: schema_out })
    })
}
