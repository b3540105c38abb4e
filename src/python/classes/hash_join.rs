//! `prejoin.HashJoin`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::config::PyConfig;
use super::current_join::CurrentJoin;
use super::dynamic_filter::PyDynamicFilter;
use super::expr::PyExpr;
use super::join_parameters::{
    DEFAULT_BATCH_SIZE, PARAMETERS, change, filter_of, key_pairs, mode_of, predicate, projected,
};
use super::pool::PyMemoryPool;
use super::prepared::{PyPreparedBuild, collect, config_of};
use super::session::PySession;
use super::source::{self, Side};
use crate::join::{ExplainFormat, PartitionMode};
use crate::python::arguments::{count, hash_join_type, hash_join_word, keep_of, null_equalities, validate_of};
use crate::python::errors::{guarded, plan};
use crate::python::execution::{Execution, run_options};
use crate::python::interchange::{PySchema, batch_from_python, reader};
use crate::python::report;
use crate::python::signals::{detach_if_long, interruptible};
use crate::run::HashJoin;

/// A hash join of a build side and a probe side, ordinary or attached to a PreparedBuild.
///
/// The output has the build's columns, then the probe's, both key columns included; semi, anti and mark joins have
/// the probe's, build_semi and build_anti joins the build's. Rows come in probe order, matches of one row in build
/// order, and unmatched build rows last.
///
/// The attributes on, how, null_equal, where, projection, limit, mode, null_aware and validate may be changed;
/// every execution validates them again. `replace` and `with_prepared_build` return a new join with other sources
/// or another prepared build.
///
/// A join that is not attached can be pickled if the objects behind its sources can; if not, pickle
/// `join.replace(build=schema, probe=schema)`. Pickling an attached join raises NotSupported.
///
/// Args:
///     build: A schema alone, any rows, or a `Source`.
///     probe: A schema alone, any rows, or a `Source`.
///     on: Pairs (build key, probe key), each a name, a position or `col(...)`; or names that both sides have.
///     how: Which rows come out: "inner", "probe_outer" (all probe rows), "build_outer" (all build rows), "full",
///         "semi", "anti", "mark", "build_semi" or "build_anti". "left" and "right" are refused, since the build
///         side comes first here.
///     null_equal: Whether null matches null; one bool, or one for each key. By default null matches nothing.
///     where: A condition on matched pairs, SQL text or made with `col` and `lit`. A pair passes only if it is
///         true.
///     projection: Output columns, as positions in (build columns, probe columns) or names "build.x", "probe.y"; an
///         empty list keeps the row count.
///     limit: The largest number of output rows.
///     mode: "collect_left" makes one build for all probe partitions, "partitioned" one for each.
///     null_aware: SQL NOT IN, for anti and build_anti.
///     validate: "m:m", "m:1" (a build with one row per key), "1:m" (no two probe rows of one run share a key of
///         the build) or "1:1".
///     dynamic_filter: A filter that tests probe rows against the build of this join, once the build is known.
///
/// Raises:
///     PlanError: For unknown columns, key types that differ and options that do not go together.
///     TypeError: For an object that gives no rows and has no schema.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> users = pa.table({"id": [1, 2], "name": ["ada", "bob"]})
///     >>> events = pa.table({"user": [2, 3, 2], "at": [10, 20, 30]})
///     >>> columns = ["build.name", "probe.at"]
///     >>> join = prejoin.HashJoin(users.schema, events.schema, on=[("id", "user")], projection=columns)
///     >>> prepared = join.prepare_build(users)
///     >>> task = join.replace(probe=events).with_prepared_build(prepared)
///     >>> task.execute().read_all().to_pylist()
///     [{'name': 'bob', 'at': 10}, {'name': 'bob', 'at': 30}]
#[pyclass(name = "HashJoin", module = "prejoin", frozen)]
pub(crate) struct PyHashJoin {
    current: CurrentJoin,
    /// The objects behind the sources, which pickling needs.
    build: Option<Py<PyAny>>,
    probe: Option<Py<PyAny>>,
    prepared: Option<Py<PyPreparedBuild>>,
    /// The join's own until `reset`.
    dynamic_filter: Option<Py<PyDynamicFilter>>,
}

#[pymethods]
impl PyHashJoin {
    /// What can lead back to this join are its sources, which are the ones that give their objects up.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.build)?;
        visit.call(&self.probe)?;
        visit.call(&self.prepared)?;
        visit.call(&self.dynamic_filter)
    }

    #[new]
    #[pyo3(signature = (build, probe, on, how="inner", *, null_equal=None, r#where=None, projection=None, limit=None,
                        mode="collect_left", null_aware=false, validate=None, dynamic_filter=None))]
    #[allow(clippy::too_many_arguments)] // the signature of the Python class
    fn new(
        build: &Bound<'_, PyAny>,
        probe: &Bound<'_, PyAny>,
        on: &Bound<'_, PyAny>,
        how: &str,
        null_equal: Option<&Bound<'_, PyAny>>,
        r#where: Option<&Bound<'_, PyAny>>,
        projection: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
        mode: &str,
        null_aware: bool,
        validate: Option<&str>,
        dynamic_filter: Option<&Bound<'_, PyDynamicFilter>>,
    ) -> PyResult<Self> {
        guarded(|| {
            let (build, probe) = (Side::new(build)?, Side::new(probe)?);
            let on = key_pairs(on)?;
            let null_equality = null_equalities(null_equal, on.len())?;
            let join = HashJoin::builder(build.source, probe.source)
                .on(on)
                .null_equalities(null_equality)
                .projected(projected(projection)?)
                .join_type(hash_join_type(how)?)
                .filter(predicate(r#where)?)
                .limit(count("limit", limit)?)
                .mode(mode_of(mode)?)
                .null_aware(null_aware)
                .validate(validate_of(validate)?)
                .dynamic_filter(dynamic_filter.map(|filter| filter.get().filter.clone()));
            let current = CurrentJoin::new(join.build()?);
            let dynamic_filter = dynamic_filter.map(|filter| filter.clone().unbind());
            Ok(Self { current, build: build.object, probe: probe.object, prepared: None, dynamic_filter })
        })
    }

    /// A new join with some parameters of the constructor changed and a fresh run state.
    ///
    /// If a source is replaced, names in on, projection and where are looked up in the new one. What was given by
    /// position needs a source with the same columns.
    ///
    /// Args:
    ///     **changes: Parameters of the constructor.
    ///
    /// Returns:
    ///     The new join.
    ///
    /// Raises:
    ///     PlanError: For an unknown parameter, a position if the columns of the new source differ, and a change of the
    ///         build source, its keys or the mode while a prepared build is attached.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> join = prejoin.HashJoin(pa.schema({"id": pa.int64()}), pa.schema({"id": pa.int64()}), on="id")
    ///     >>> changed = join.replace(how="anti", limit=10)
    ///     >>> changed.how, changed.limit, join.limit
    ///     ('anti', 10, None)
    #[pyo3(signature = (**changes))]
    fn replace(&self, py: Python<'_>, changes: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        guarded(|| {
            let join = self.current.get();
            let clone = |object: &Option<Py<PyAny>>| object.as_ref().map(|object| object.clone_ref(py));
            let mut build = Side { source: join.build_source().clone(), object: clone(&self.build) };
            let mut probe = Side { source: join.probe_source().clone(), object: clone(&self.probe) };
            let mut dynamic_filter = self.dynamic_filter(py);
            let mut builder = join.to_builder();
            if let Some(changes) = changes {
                if let Some((unknown, _)) =
                    changes.iter().find(|(key, _)| !PARAMETERS.contains(&key.to_string().as_str()))
                {
                    return Err(plan(format!("HashJoin has no parameter {unknown}; it has {}", PARAMETERS.join(", "))));
                }
                let mut keys = join.spec.on.len();
                for name in PARAMETERS {
                    let Some(value) = changes.get_item(name)? else { continue };
                    builder = match name {
                        "build" => {
                            build = Side::new(&value)?;
                            builder.build_source(build.source.clone())
                        }
                        "probe" => {
                            probe = Side::new(&value)?;
                            builder.probe(probe.source.clone())
                        }
                        "dynamic_filter" => {
                            dynamic_filter = filter_of(&value)?;
                            builder.dynamic_filter(dynamic_filter.as_ref().map(|filter| filter.get().filter.clone()))
                        }
                        "on" => {
                            let on = key_pairs(&value)?;
                            keys = on.len();
                            builder.on(on)
                        }
                        _ => change(builder, name, &value, keys)?,
                    };
                }
            }
            let prepared = self.prepared.as_ref().map(|prepared| prepared.clone_ref(py));
            let current = CurrentJoin::new(builder.build()?);
            Ok(Self { current, build: build.object, probe: probe.object, prepared, dynamic_filter })
        })
    }

    /// Prepares `source` as a build for joins like this one; the join's own build source is not touched.
    ///
    /// The caller chooses which rows, and nothing compares them with the rows of the build source.
    ///
    /// Args:
    ///     source: Any rows, with the columns of the join's build side.
    ///     keep: "all" rows of a key, or only its "first" or "last".
    ///     pool: Pays for the build for as long as it lives. By default one unlimited pool per process.
    ///     config: Choices about index and filters.
    ///
    /// Returns:
    ///     The finished build.
    ///
    /// Raises:
    ///     PlanError: For a join that cannot have a prepared build, and for other columns, before the first batch is
    ///         asked for.
    ///     ResourcesExhausted: If the pool refuses. After an error the pool is as it was before.
    ///     Exception: What the source raises, unchanged.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = pa.table({"id": [1, 2]})
    ///     >>> prejoin.HashJoin(users.schema, users.schema, on="id").prepare_build(users).num_rows
    ///     2
    #[pyo3(signature = (source, *, keep="all", pool=None, config=None))]
    fn prepare_build(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        keep: &str,
        pool: Option<&Bound<'_, PyMemoryPool>>,
        config: Option<&Bound<'_, PyConfig>>,
    ) -> PyResult<PyPreparedBuild> {
        guarded(|| {
            let (join, keep) = (self.current.get(), keep_of(keep)?);
            // A plain iterator does not show its schema: it is taken to be the join's, and each batch is checked.
            let declared = source.try_iter().is_ok_and(|iterator| iterator.is(source));
            let declared = declared && !source.hasattr(intern!(py, "schema"))?;
            let source = source::open(source, declared.then(|| join.build_source().schema().clone()))?;
            let pool = PyMemoryPool::resolve(pool);
            let collector = join.collector(source.schema(), &pool, config_of(config), interruptible())?;
            Ok(PyPreparedBuild::new(collect(py, collector.with_keep(keep), source, &pool)?))
        })
    }

    /// The join attached to a prepared build; its build source is replaced by an empty placeholder.
    ///
    /// Args:
    ///     build: A build with the schema, keys and null equality of this join.
    ///
    /// Returns:
    ///     The attached join.
    ///
    /// Raises:
    ///     PlanError: For a build that does not fit, and for a join in partitioned mode.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = prejoin.prepare(pa.table({"id": [1, 2]}), on="id")
    ///     >>> join = prejoin.HashJoin(users.schema, pa.schema({"id": pa.int64()}), on="id").with_prepared_build(users)
    ///     >>> join(pa.record_batch({"id": [2, 3]})).num_rows
    ///     1
    fn with_prepared_build(&self, py: Python<'_>, build: &Bound<'_, PyPreparedBuild>) -> PyResult<Self> {
        guarded(|| {
            let current = CurrentJoin::new(self.current.get().with_prepared_build(build.get().build.clone())?);
            let probe = self.probe.as_ref().map(|probe| probe.clone_ref(py));
            let (prepared, dynamic_filter) = (Some(build.clone().unbind()), self.dynamic_filter(py));
            Ok(Self { current, build: None, probe, prepared, dynamic_filter })
        })
    }

    /// Runs one probe partition, or all of them one after the other, as a reader that pulls lazily.
    ///
    /// Each call without `partition` is a new run. The partitions of one run are executed one by one.
    ///
    /// Unmatched build rows of build_outer and full joins, and all rows of build_semi and build_anti joins, come once
    /// per run, from the last partition that is read to its end or dropped. A partition that fails or is dropped counts
    /// with the probe rows that it has read so far. If it is the last one after all others have been read, these rows
    /// do not come; while a partition is not executed at all, they wait for it.
    ///
    /// Args:
    ///     partition: The number of a probe partition; None for all of them.
    ///     batch_size: The largest number of rows of an output batch (8192).
    ///     pool: Pays for the build of a join that is not attached, and for the bits that say which build rows have
    ///         matched. By default one unlimited pool per process.
    ///     config: Choices about the index of a join that is not attached.
    ///
    /// Returns:
    ///     A pyarrow.RecordBatchReader. Dropping it releases everything.
    ///
    /// Raises:
    ///     PlanError: For a join that is not valid any more since it was changed, a partition that does not exist, and
    ///         one that was executed before.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> join = prejoin.HashJoin(pa.table({"id": [1, 2]}), pa.table({"user": [2, 3]}), on=[("id", "user")])
    ///     >>> join.execute().read_all().to_pylist()
    ///     [{'id': 2, 'user': 2}]
    #[pyo3(signature = (partition=None, batch_size=None, *, pool=None, config=None))]
    fn execute<'py>(
        &self,
        py: Python<'py>,
        partition: Option<&Bound<'py, PyAny>>,
        batch_size: Option<&Bound<'py, PyAny>>,
        pool: Option<&Bound<'py, PyMemoryPool>>,
        config: Option<&Bound<'py, PyConfig>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let partition = count("partition", partition)?;
            let batch_size = count("batch_size", batch_size)?.unwrap_or(DEFAULT_BATCH_SIZE);
            let options = run_options(Some(batch_size), pool, config)?;
            let join = if partition.is_none() { self.current.new_run()? } else { self.current.get() };
            let schema = PySchema::new(py, join.schema()?)?;
            reader(py, schema, Box::new(Execution::new(join, partition, options)?))
        })
    }

    /// Joins one batch as if it were the whole probe side.
    ///
    /// A join that is not attached collects its build at each call.
    ///
    /// Args:
    ///     batch: A batch with the columns of the probe side.
    ///     pool: As for `execute`.
    ///     config: As for `execute`.
    ///
    /// Returns:
    ///     One pyarrow.RecordBatch of any number of rows.
    ///
    /// Raises:
    ///     PlanError: For a batch with other columns, and for a join that is not valid any more since it was changed.
    ///     ExecutionError: For a condition that fails, a probe row that `validate` refuses, and an output that does not
    ///         fit one batch.
    #[pyo3(signature = (batch, *, pool=None, config=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyAny>,
        pool: Option<&Bound<'py, PyMemoryPool>>,
        config: Option<&Bound<'py, PyConfig>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let batch = batch_from_python(batch)?;
            let rows = batch.num_rows();
            if let (Some(prepared), None, None) = (&self.prepared, pool, config) {
                let called = self.current.called(py, &prepared.get().build)?;
                let (join, cancel) = (self.current.new_run()?, interruptible());
                let run = || join.run_planned(&called.plan, batch, cancel);
                return called.schema.batch(py, &detach_if_long(py, rows, run)?);
            }
            let join = self.current.new_run()?;
            let options = run_options(None, pool, config)?;
            let schema = PySchema::new(py, join.schema()?)?;
            // An ordinary join collects its build now.
            let rows = if self.prepared.is_some() { batch.num_rows() } else { usize::MAX };
            let joined = detach_if_long(py, rows, || join.run_once(batch, &options))?;
            schema.batch(py, &joined)
        })
    }

    /// Opens the join for probe batches that are pushed by hand.
    ///
    /// Args:
    ///     partition: The number of a probe partition of a run; None for a new run of a join with one partition.
    ///     pool: As for `execute`.
    ///     config: As for `execute`.
    ///
    /// Returns:
    ///     A session.
    ///
    /// Raises:
    ///     PlanError: For a join that is not valid any more since it was changed, a partition that does not exist or
    ///         was executed before, and None if there are several.
    #[pyo3(signature = (partition=None, *, pool=None, config=None))]
    fn open(
        &self,
        py: Python<'_>,
        partition: Option<&Bound<'_, PyAny>>,
        pool: Option<&Bound<'_, PyMemoryPool>>,
        config: Option<&Bound<'_, PyConfig>>,
    ) -> PyResult<PySession> {
        guarded(|| {
            let partition = count("partition", partition)?;
            let options = run_options(None, pool, config)?;
            let join = if partition.is_none() { self.current.new_run()? } else { self.current.get() };
            if partition.is_none() && join.partitions() != 1 {
                return Err(plan(format!(
                    "this join has {} probe partitions, each of which is a session; open(partition) opens one",
                    join.partitions()
                )));
            }
            let schema = PySchema::new(py, join.schema()?)?;
            let open = || join.open(partition.unwrap_or(0), &options);
            let (rows, probe) = match join.prepared_build() {
                Some(prepared) => (prepared.num_rows(), open()?),
                None => (usize::MAX, py.detach(open)?),
            };
            Ok(PySession::new(schema, rows, probe))
        })
    }

    /// Prepares the join for another run: metrics start at 0, and the dynamic filter is detached.
    ///
    /// A prepared build stays attached.
    fn reset(&self) -> PyResult<()> {
        guarded(|| {
            self.current.set(|join| {
                join.reset();
                Ok(())
            })
        })
    }

    /// The join as text.
    ///
    /// Args:
    ///     format: "indent" for one line, "tree" for a tree.
    ///
    /// Returns:
    ///     Everything that is set, whether or not the join is still valid.
    ///
    /// Raises:
    ///     PlanError: For another format.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> join = prejoin.HashJoin(pa.schema({"id": pa.int64()}), pa.schema({"id": pa.int64()}), on="id")
    ///     >>> join.explain()
    ///     'HashJoin: mode=CollectLeft, join_type=Inner, on=[(build.id, probe.id)], null_equality=NullEqualsNothing'
    #[pyo3(signature = (format="indent"))]
    fn explain(&self, format: &str) -> PyResult<String> {
        guarded(|| {
            let format = match format {
                "indent" => ExplainFormat::Indent,
                "tree" => ExplainFormat::Tree,
                _ => {
                    return Err(plan(format!("format={format:?} is not a format; the formats are indent and tree")));
                }
            };
            Ok(self.current.get().explain(format))
        })
    }

    /// Row counts before the join runs.
    ///
    /// Returns:
    ///     A dict of build_rows, probe_rows and output_rows, each {"rows": number, "exact": bool}, or None if nothing
    ///     is known.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| report::statistics(py, self.current.get().statistics()))
    }

    /// Order, equal columns and partitions of the output; columns are positions in the output.
    ///
    /// Returns:
    ///     A dict of ordering, equal_columns and partitions.
    ///
    /// Raises:
    ///     PlanError: For a join that is not valid any more since it was changed.
    fn properties<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| report::properties(py, self.current.get().properties()?))
    }

    /// What the current run did so far.
    ///
    /// Returns:
    ///     A dict of counters; times are seconds, memory is bytes.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| report::metrics(py, self.current.get().metrics()))
    }

    /// One line of explain.
    fn __repr__(&self) -> PyResult<String> {
        self.explain("indent")
    }

    /// An unattached join travels with the objects behind its sources, if these pickle.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        guarded(|| {
            let bytes = PyBytes::new(py, &self.current.get().to_bytes()?);
            let load = py.import("prejoin._core")?.getattr("_load_join")?;
            Ok((load, (bytes, &self.build, &self.probe).into_pyobject(py)?))
        })
    }

    /// The pyarrow.Schema of the output.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| Ok(PySchema::new(py, self.current.get().schema()?)?.object(py).clone()))
    }

    /// The prepared build that is attached, else None.
    #[getter]
    fn prepared_build(&self, py: Python<'_>) -> Option<Py<PyPreparedBuild>> {
        self.prepared.as_ref().map(|prepared| prepared.clone_ref(py))
    }

    /// The filter that tests probe rows against the build of this join, else None.
    #[getter]
    fn dynamic_filter(&self, py: Python<'_>) -> Option<Py<PyDynamicFilter>> {
        let attached = self.current.get().dynamic_filter().is_some();
        self.dynamic_filter.as_ref().filter(|_| attached).map(|filter| filter.clone_ref(py))
    }

    /// Key pairs as positions (build column, probe column).
    #[getter]
    fn on(&self) -> Vec<(usize, usize)> {
        self.current.get().spec.on
    }

    #[setter]
    fn set_on(&self, on: &Bound<'_, PyAny>) -> PyResult<()> {
        guarded(|| {
            let on = key_pairs(on)?;
            self.current.set(|join| join.spec.set_on(&on))
        })
    }

    /// The kind of the join.
    #[getter]
    fn how(&self) -> &'static str {
        hash_join_word(self.current.get().spec.join_type)
    }

    #[setter]
    fn set_how(&self, how: &str) -> PyResult<()> {
        guarded(|| {
            self.current.set(|join| {
                join.spec.join_type = hash_join_type(how)?;
                Ok(())
            })
        })
    }

    /// Whether null matches null, for each key.
    #[getter]
    fn null_equal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.current.get().spec.null_equality.iter().map(|equality| equality.nulls_equal()))
    }

    #[setter]
    fn set_null_equal(&self, null_equal: &Bound<'_, PyAny>) -> PyResult<()> {
        guarded(|| {
            let equalities = null_equalities(Some(null_equal), self.current.get().spec.on.len())?;
            self.current.set(|join| {
                join.spec.null_equality = equalities;
                Ok(())
            })
        })
    }

    /// The residual predicate, else None.
    #[getter(r#where)]
    fn predicate(&self) -> Option<PyExpr> {
        self.current.get().spec.filter.map(PyExpr::from)
    }

    #[setter(r#where)]
    fn set_predicate(&self, r#where: &Bound<'_, PyAny>) -> PyResult<()> {
        guarded(|| {
            let predicate = predicate(Some(r#where))?;
            self.current.set(|join| {
                join.spec.filter = predicate;
                Ok(())
            })
        })
    }

    /// Output columns as positions in (build columns, probe columns), else None.
    #[getter]
    fn projection(&self) -> Option<Vec<usize>> {
        self.current.get().spec.projection
    }

    #[setter]
    fn set_projection(&self, projection: &Bound<'_, PyAny>) -> PyResult<()> {
        guarded(|| {
            let projection = projected(Some(projection))?;
            self.current.set(|join| join.spec.set_projection(projection))
        })
    }

    /// Largest number of output rows, else None.
    #[getter]
    fn limit(&self) -> Option<usize> {
        self.current.get().spec.limit
    }

    #[setter]
    fn set_limit(&self, limit: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guarded(|| {
            let limit = count("limit", limit)?;
            self.current.set(|join| {
                join.spec.limit = limit;
                Ok(())
            })
        })
    }

    /// One build for all probe partitions, "collect_left", or one for each, "partitioned".
    #[getter]
    fn mode(&self) -> &'static str {
        match self.current.get().spec.mode {
            PartitionMode::CollectLeft => "collect_left",
            PartitionMode::Partitioned => "partitioned",
        }
    }

    #[setter]
    fn set_mode(&self, mode: &str) -> PyResult<()> {
        guarded(|| {
            self.current.set(|join| {
                join.spec.mode = mode_of(mode)?;
                Ok(())
            })
        })
    }

    /// SQL NOT IN for anti joins.
    #[getter]
    fn null_aware(&self) -> bool {
        self.current.get().spec.null_aware
    }

    #[setter]
    fn set_null_aware(&self, null_aware: bool) -> PyResult<()> {
        guarded(|| {
            self.current.set(|join| {
                join.spec.null_aware = null_aware;
                Ok(())
            })
        })
    }

    /// How many rows of each side may share a key.
    #[getter]
    fn validate(&self) -> String {
        self.current.get().spec.validate.to_string()
    }

    #[setter]
    fn set_validate(&self, validate: Option<&str>) -> PyResult<()> {
        guarded(|| {
            let validate = validate_of(validate)?;
            self.current.set(|join| {
                join.spec.validate = validate;
                Ok(())
            })
        })
    }
}

/// A join that `HashJoin.__reduce__` took apart.
#[pyfunction]
#[pyo3(name = "_load_join")]
pub(crate) fn load_join(
    bytes: &[u8],
    build: Option<&Bound<'_, PyAny>>,
    probe: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyHashJoin> {
    guarded(|| {
        let join = HashJoin::from_bytes(bytes)?;
        let mut builder = join.to_builder();
        let (build, probe) = (build.map(Side::new).transpose()?, probe.map(Side::new).transpose()?);
        if let Some(build) = &build {
            builder = builder.build_source(build.source.clone());
        }
        if let Some(probe) = &probe {
            builder = builder.probe(probe.source.clone());
        }
        let current = CurrentJoin::new(builder.build()?);
        let object = |side: Option<Side>| side.and_then(|side| side.object);
        Ok(PyHashJoin { current, build: object(build), probe: object(probe), prepared: None, dynamic_filter: None })
    })
}
