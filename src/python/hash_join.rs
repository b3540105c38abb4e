//! `prejoin.HashJoin` and the session of `HashJoin.open`.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use super::config::PyConfig;
use super::errors::{guarded, plan};
use super::execution::{Execution, source_of};
use super::expr::PyExpr;
use super::interchange::{PySchema, Source as PySource, batch_from_python, reader, schema_of, type_name};
use super::join::{how_of, join_type};
use super::pool::PyMemoryPool;
use super::prepared::{PyPreparedBuild, collect, config_of, null_equalities};
use super::signals::{detach_if_long, interruptible};
use crate::error::{Error, Result, plan_err};
use crate::join::{HashJoin, HashJoinBuilder, JoinKey, PartitionMode, Probe, RunOptions, Source};

/// A hash join of a build side and a probe side, ordinary or attached to a PreparedBuild.
///
/// The attributes on, how, null_equal, where, projection, limit, mode and null_aware may be changed; every execution
/// validates them again.
#[pyclass(name = "HashJoin", module = "prejoin", frozen)]
pub(crate) struct PyHashJoin {
    /// Read or replaced once per call, never held while something runs.
    join: Mutex<HashJoin>,
}

impl PyHashJoin {
    fn new_from(join: HashJoin) -> Self {
        Self { join: Mutex::new(join) }
    }

    /// The join as it is now.
    fn join(&self) -> HashJoin {
        self.join.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut HashJoin) -> Result<()>) -> PyResult<()> {
        guarded(|| {
            let mut join = self.join();
            change(&mut join)?;
            *self.join.lock().unwrap_or_else(PoisonError::into_inner) = join;
            Ok(())
        })
    }
}

#[pymethods]
impl PyHashJoin {
    #[new]
    #[pyo3(signature = (build, probe, on, how="inner", *, null_equal=None, r#where=None, projection=None, limit=None,
                        mode="collect_left", null_aware=false))]
    #[allow(clippy::too_many_arguments)] // the signature of the Python class
    fn new(
        build: &Bound<'_, PyAny>,
        probe: &Bound<'_, PyAny>,
        on: &Bound<'_, PyAny>,
        how: &str,
        null_equal: Option<&Bound<'_, PyAny>>,
        r#where: Option<&PyExpr>,
        projection: Option<&Bound<'_, PyAny>>,
        limit: Option<usize>,
        mode: &str,
        null_aware: bool,
    ) -> PyResult<Self> {
        guarded(|| {
            let (build, probe) = (side(build)?, side(probe)?);
            let on = key_pairs(on)?;
            let null_equality = null_equalities(null_equal, on.len())?;
            let projection = positions(projection, build.schema(), probe.schema())?;
            let builder = HashJoin::builder(build, probe).on(on).null_equalities(null_equality).projection(projection);
            let builder = builder.join_type(join_type(how)?).limit(limit).mode(mode_of(mode)?).null_aware(null_aware);
            Ok(Self::new_from(builder.filter(r#where.map(PyExpr::expr)).build()?))
        })
    }

    /// A new join with some parameters of the constructor changed and a fresh run state.
    #[pyo3(signature = (**changes))]
    fn replace(&self, changes: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        guarded(|| {
            let join = self.join();
            let mut builder = join.to_builder();
            let empty = PyDict::new(self_py(changes));
            // Sources first: names in `on` and `projection` are looked up in them.
            let order =
                ["build", "probe", "on", "how", "null_equal", "where", "projection", "limit", "mode", "null_aware"];
            let changes = changes.unwrap_or(&empty);
            if let Some((unknown, _)) = changes.iter().find(|(key, _)| !order.contains(&key.to_string().as_str())) {
                return Err(plan(format!("HashJoin has no parameter {unknown}; it has {}", order.join(", "))));
            }
            let (mut build, mut probe) = (join.build_source().clone(), join.probe_source().clone());
            for name in order {
                let Some(value) = changes.get_item(name)? else { continue };
                builder = match name {
                    "build" => {
                        build = side(&value)?;
                        builder.build_source(build.clone())
                    }
                    "probe" => {
                        probe = side(&value)?;
                        builder.probe(probe.clone())
                    }
                    _ => change(builder, name, &value, &join, (build.schema(), probe.schema()))?,
                };
            }
            Ok(Self::new_from(builder.build()?))
        })
    }

    /// Prepares `source` as a build for joins like this one; the join's own build source is not touched.
    #[pyo3(signature = (source, *, pool=None, config=None))]
    fn prepare_build(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        pool: Option<&Bound<'_, PyMemoryPool>>,
        config: Option<&Bound<'_, PyConfig>>,
    ) -> PyResult<PyPreparedBuild> {
        guarded(|| {
            let join = self.join();
            // A plain iterator tells no schema of its own: it is taken at the join's word, and checked batch by batch.
            let declared = source.try_iter().is_ok_and(|iterator| iterator.is(source));
            let declared = declared && !source.hasattr(intern!(py, "schema"))?;
            let source = PySource::open(source, declared.then(|| join.build_source().schema().clone()))?;
            let pool = PyMemoryPool::resolve(pool);
            let collector = join.collector(source.schema(), &pool, config_of(config), interruptible())?;
            Ok(PyPreparedBuild::new(collect(py, collector, source, &pool)?))
        })
    }

    /// This join, attached to a prepared build; its build source is replaced by an empty placeholder.
    fn with_prepared_build(&self, build: &Bound<'_, PyPreparedBuild>) -> PyResult<Self> {
        guarded(|| Ok(Self::new_from(self.join().with_prepared_build(build.get().build.clone())?)))
    }

    /// Runs one probe partition, or all of them one after the other, as a pyarrow.RecordBatchReader that pulls lazily.
    #[pyo3(signature = (partition=None, batch_size=8192))]
    fn execute<'py>(
        &self,
        py: Python<'py>,
        partition: Option<usize>,
        batch_size: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let options = run_options(batch_size)?;
            let mut join = self.join();
            if partition.is_none() {
                // A whole run is a run of its own.
                self.change(|join| {
                    join.reset_run();
                    Ok(())
                })?;
                join = self.join();
            }
            let schema = PySchema::new(py, join.check()?.0.schema)?;
            reader(py, schema, Box::new(Execution::new(join, partition, options)?))
        })
    }

    /// Joins one probe batch as if it were the whole probe side; gives one batch of whatever size.
    fn __call__<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let mut join = self.join();
            join.reset_run();
            let schema = PySchema::new(py, join.check()?.0.schema)?;
            let batch = batch_from_python(batch)?;
            let joined = detach_if_long(py, batch.num_rows(), || join.run_once(batch, &whole()))?;
            schema.batch(py, &joined)
        })
    }

    /// Opens the join for probe batches that are pushed by hand.
    fn open(&self, py: Python<'_>) -> PyResult<PySession> {
        guarded(|| {
            let mut join = self.join();
            join.reset_run();
            let schema = PySchema::new(py, join.check()?.0.schema)?;
            let probe = py.detach(|| join.open(0, &whole()))?;
            Ok(PySession { schema, probe: Mutex::new(Some(probe)) })
        })
    }

    /// Forgets run state and keeps the prepared build, so that the same join runs again.
    fn reset(&self) -> PyResult<()> {
        self.change(|join| {
            join.reset();
            Ok(())
        })
    }

    /// The pyarrow.Schema of the output.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| Ok(PySchema::new(py, self.join().schema()?)?.object(py).clone()))
    }

    /// The prepared build that is attached, else None.
    #[getter]
    fn prepared_build(&self) -> Option<PyPreparedBuild> {
        self.join().prepared_build().cloned().map(PyPreparedBuild::new)
    }

    /// Key pairs as positions (build column, probe column).
    #[getter]
    fn on(&self) -> Vec<(usize, usize)> {
        self.join().on
    }

    #[setter]
    fn set_on(&self, on: &Bound<'_, PyAny>) -> PyResult<()> {
        let on = guarded(|| key_pairs(on))?;
        self.change(|join| join.set_on(&on))
    }

    /// The kind of the join, in the words of the constructor.
    #[getter]
    fn how(&self) -> &'static str {
        how_of(self.join().join_type)
    }

    #[setter]
    fn set_how(&self, how: &str) -> PyResult<()> {
        self.change(|join| {
            join.join_type = join_type(how)?;
            Ok(())
        })
    }

    /// Whether null matches null, for each key.
    #[getter]
    fn null_equal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.join().null_equality.iter().map(|equality| equality.nulls_equal()))
    }

    #[setter]
    fn set_null_equal(&self, null_equal: &Bound<'_, PyAny>) -> PyResult<()> {
        let equalities = guarded(|| null_equalities(Some(null_equal), self.join().on.len()))?;
        self.change(|join| {
            join.null_equality = equalities;
            Ok(())
        })
    }

    /// The residual predicate, else None.
    #[getter(r#where)]
    fn predicate(&self) -> Option<PyExpr> {
        self.join().filter.map(PyExpr::from)
    }

    #[setter(r#where)]
    fn set_predicate(&self, r#where: Option<&PyExpr>) -> PyResult<()> {
        self.change(|join| {
            join.filter = r#where.map(PyExpr::expr);
            Ok(())
        })
    }

    /// Output columns as positions in (build columns, probe columns), else None.
    #[getter]
    fn projection(&self) -> Option<Vec<usize>> {
        self.join().projection
    }

    #[setter]
    fn set_projection(&self, projection: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let join = self.join();
        let projection = guarded(|| positions(projection, join.build_source().schema(), join.probe_source().schema()))?;
        self.change(|join| {
            join.projection = projection;
            Ok(())
        })
    }

    /// Largest number of output rows of an execution, else None.
    #[getter]
    fn limit(&self) -> Option<usize> {
        self.join().limit
    }

    #[setter]
    fn set_limit(&self, limit: Option<usize>) -> PyResult<()> {
        self.change(|join| {
            join.limit = limit;
            Ok(())
        })
    }

    /// "collect_left" or "partitioned".
    #[getter]
    fn mode(&self) -> &'static str {
        match self.join().mode {
            PartitionMode::CollectLeft => "collect_left",
            PartitionMode::Partitioned => "partitioned",
        }
    }

    #[setter]
    fn set_mode(&self, mode: &str) -> PyResult<()> {
        self.change(|join| {
            join.mode = mode_of(mode)?;
            Ok(())
        })
    }

    /// SQL NOT IN for anti joins.
    #[getter]
    fn null_aware(&self) -> bool {
        self.join().null_aware
    }

    #[setter]
    fn set_null_aware(&self, null_aware: bool) -> PyResult<()> {
        self.change(|join| {
            join.null_aware = null_aware;
            Ok(())
        })
    }
}

fn self_py<'py>(changes: Option<&Bound<'py, PyDict>>) -> Python<'py> {
    match changes {
        Some(changes) => changes.py(),
        // SAFETY: called from a method that Python called, so this thread is attached.
        None => unsafe { Python::assume_attached() },
    }
}

/// One change of `replace`, other than of a source.
fn change(
    builder: HashJoinBuilder,
    name: &str,
    value: &Bound<'_, PyAny>,
    join: &HashJoin,
    (build, probe): (&SchemaRef, &SchemaRef),
) -> PyResult<HashJoinBuilder> {
    Ok(match name {
        "on" => builder.on(key_pairs(value)?),
        "how" => builder.join_type(join_type(value.extract()?)?),
        "null_equal" => builder.null_equalities(null_equalities(Some(value), join.on.len())?),
        "where" => builder.filter(value.extract::<Option<PyRef<'_, PyExpr>>>()?.map(|expr| expr.expr())),
        "projection" => builder.projection(positions(Some(value).filter(|value| !value.is_none()), build, probe)?),
        "limit" => builder.limit(value.extract()?),
        "mode" => builder.mode(mode_of(value.extract()?)?),
        _ => builder.null_aware(value.extract()?),
    })
}

fn run_options(batch_size: usize) -> Result<RunOptions> {
    if batch_size == 0 {
        return plan_err!("batch_size is a number of rows of at least 1, 0 was given");
    }
    Ok(RunOptions { batch_size, pool: PyMemoryPool::resolve(None), cancel: interruptible(), ..RunOptions::default() })
}

/// Options of a run whose output is not cut.
fn whole() -> RunOptions {
    let (pool, cancel) = (PyMemoryPool::resolve(None), interruptible());
    RunOptions { batch_size: usize::MAX, pool, cancel, ..RunOptions::default() }
}

/// A schema alone, or a source.
fn side(object: &Bound<'_, PyAny>) -> PyResult<Source> {
    let py = object.py();
    let holds_rows = ["__arrow_c_stream__", "__arrow_c_array__", "__iter__"];
    let is_schema =
        object.get_type().name()? == "Schema" || !holds_rows.iter().any(|name| object.hasattr(*name).unwrap_or(false));
    if is_schema && object.hasattr(intern!(py, "__arrow_c_schema__"))? {
        return Ok(Source::schema_only(schema_of(object)?));
    }
    source_of(object)
}

fn mode_of(mode: &str) -> Result<PartitionMode> {
    match mode {
        "collect_left" => Ok(PartitionMode::CollectLeft),
        "partitioned" => Ok(PartitionMode::Partitioned),
        _ => plan_err!("mode={mode:?} is no partition mode; the modes are collect_left and partitioned"),
    }
}

/// `on=`: pairs (build key, probe key), each a name, a position or a column expression.
fn key_pairs(on: &Bound<'_, PyAny>) -> PyResult<Vec<(JoinKey, JoinKey)>> {
    let refused = || {
        plan(format!(
            "on is a list of pairs (build key, probe key), each a column name or position; {} was given",
            on.repr().map_or_else(|_| type_name(on), |repr| repr.to_string())
        ))
    };
    let key = |key: &Bound<'_, PyAny>| -> PyResult<JoinKey> {
        if let Ok(expr) = key.extract::<PyRef<'_, PyExpr>>() {
            return Ok(JoinKey::from(expr.expr()));
        }
        if let Ok(name) = key.extract::<String>() {
            return Ok(JoinKey::Name(name));
        }
        if key.is_instance_of::<PyBool>() {
            return Err(refused());
        }
        key.extract::<usize>().map(JoinKey::Position).map_err(|_| refused())
    };
    if on.is_instance_of::<pyo3::types::PyString>() {
        return Err(refused());
    }
    let pair = |pair: PyResult<Bound<'_, PyAny>>| -> PyResult<(JoinKey, JoinKey)> {
        let pair = pair?;
        let (build, probe) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().map_err(|_| refused())?;
        Ok((key(&build)?, key(&probe)?))
    };
    on.try_iter().map_err(|_| refused())?.map(pair).collect()
}

/// `projection=`: positions in (build columns, probe columns), or "build.x" and "probe.y".
fn positions(
    projection: Option<&Bound<'_, PyAny>>,
    build: &SchemaRef,
    probe: &SchemaRef,
) -> PyResult<Option<Vec<usize>>> {
    let Some(projection) = projection else { return Ok(None) };
    let one = |column: PyResult<Bound<'_, PyAny>>| -> PyResult<usize> {
        let column = column?;
        if let Ok(position) = column.extract::<usize>() {
            return Ok(position);
        }
        let name: String = column.extract().map_err(|_| {
            plan(format!(
                "projection lists column positions or names like \"build.x\", {} is in it",
                type_name(&column)
            ))
        })?;
        Ok(match name.split_once('.') {
            Some(("build", name)) => crate::build::position(build, name, "build")?,
            Some(("probe", name)) => build.fields().len() + crate::build::position(probe, name, "probe")?,
            _ => return Err(plan(format!("projection names {name:?}; write \"build.{name}\" or \"probe.{name}\""))),
        })
    };
    projection.try_iter()?.map(one).collect::<PyResult<_>>().map(Some)
}

/// A join whose probe batches are pushed by hand. Build-driven kinds give their unmatched rows at `finish`.
#[pyclass(name = "Session", module = "prejoin", frozen)]
pub(crate) struct PySession {
    schema: PySchema,
    /// Taken while a call works on it, and for good at the end or after an error.
    probe: Mutex<Option<Probe>>,
}

impl PySession {
    fn step(
        &self,
        py: Python<'_>,
        step: impl FnOnce(Probe) -> Result<(Option<Probe>, RecordBatch)> + Send,
        rows: usize,
    ) -> PyResult<RecordBatch> {
        let taken = self.probe.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(probe) = taken else {
            return Err(Error::Plan("this session is finished, failed, or used by another thread".to_owned()).into());
        };
        let (probe, batch) = detach_if_long(py, rows, || step(probe))?;
        *self.probe.lock().unwrap_or_else(PoisonError::into_inner) = probe;
        Ok(batch)
    }
}

#[pymethods]
impl PySession {
    /// Joins one probe batch; gives one batch of whatever size.
    fn push<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let batch = batch_from_python(batch)?;
            let step = |mut probe: Probe, batch| -> Result<_> {
                probe.push(batch)?;
                let joined = probe.drain()?;
                Ok((Some(probe), joined))
            };
            let rows = batch.num_rows();
            let joined = self.step(py, |probe| step(probe, batch), rows)?;
            self.schema.batch(py, &joined)
        })
    }

    /// Says that no batch follows; gives the rows that are left.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let step = |mut probe: Probe| -> Result<_> {
                probe.finish()?;
                Ok((None, probe.drain()?))
            };
            let joined = self.step(py, step, usize::MAX)?;
            self.schema.batch(py, &joined)
        })
    }

    /// The pyarrow.Schema of the output.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.schema.object(py).clone()
    }
}
