//! `prejoin.StarJoin`.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString, PyTuple};

use super::join_parameters::DEFAULT_BATCH_SIZE;
use super::leg::{PyLeg, is_leg, on_text};
use super::pool::PyMemoryPool;
use super::source::{self, Side, once};
use crate::error::Result;
use crate::join::{StarJoin, Validate};
use crate::probe::{StarPlan, StarProbe, StarRows};
use crate::python::arguments::{Form, count, selection, selection_object};
use crate::python::errors::{guarded, plan, type_error};
use crate::python::execution::PIECE_ROWS;
use crate::python::few_batches::few_batches;
use crate::python::foreign_words::{Callee, refuse_unknown};
use crate::python::interchange::{BatchStream as LazyBatches, Columns, PySchema, c_batch, reader, type_name};
use crate::python::kind::RowsKind;
use crate::python::recent::SharedRecent;
use crate::python::rows::{GivenRows, PlanCache, join_star};
use crate::python::signals::{detach_if_long, interruptible};
use crate::run::BatchStream;

/// Joins of one probe side with several prepared builds in one pass.
///
/// Args:
///     legs: A list of Leg or PreparedBuild, or a mapping {name: leg}. The legs of a list are named leg0, leg1, and so
///         on.
///     select: Output columns in their order, a list or {new name: column}: names of the output, or "probe.x" and
///         "planes.seats" with the leg's name, which also reach what does not come out by itself. "probe.*" and
///         "planes.*" are the columns of that table that come out without `select`. Others are not made at all; []
///         keeps the row count.
///     limit: Largest number of output rows.
///     batch_size: Largest number of rows of a batch of a lazy result (8192).
///
/// Rows, order, types and nulls are those of as many calls of `join` in a row, each with the output of the one before.
/// Each leg looks up the rows that are left only, and every output column is copied once, at the end. The output has
/// the probe's columns, then those of the legs in their order.
///
/// It never changes: any number of threads may call it at once. It pickles where its builds do.
///
/// Raises:
///     PlanError: For no legs, and names of legs that are taken.
///     TypeError: For anything but legs, and for arguments that do not exist.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "city": [7, 8]}), on="id")
///     >>> cities = prejoin.prepare(pa.table({"city": [7, 8], "name": ["Rome", "Oslo"]}), on="city")
///     >>> star = prejoin.StarJoin({"users": prejoin.Leg(users, on={"user": "id"}), "cities": cities})
///     >>> star(pa.record_batch({"user": [2, 3, 1]})).to_pylist()
///     [{'user': 2, 'city': 8, 'name': 'Oslo'}, {'user': 1, 'city': 7, 'name': 'Rome'}]
#[pyclass(name = "StarJoin", module = "prejoin", frozen)]
pub(crate) struct PyStarJoin {
    legs: Vec<Py<PyLeg>>,
    select: Option<Vec<(Option<String>, String)>>,
    batch_size: usize,
    star: StarJoin,
    /// The plans over the probe schemas that were joined lately.
    planned: SharedRecent<Planned>,
    /// Likewise those over rows that are dicts.
    row_joins: PlanCache,
    rows: Arc<StarRows>,
}

/// The star over one probe schema.
struct Planned {
    probe_schema: SchemaRef,
    /// The probe columns that are read; `None` is all.
    columns: Option<Arc<Columns>>,
    plan: Arc<StarPlan>,
    schema: PySchema,
}

#[pymethods]
impl PyStarJoin {
    #[new]
    #[pyo3(signature = (legs, *, select=None, limit=None, batch_size=None, **unknown),
           text_signature = "(legs, *, select=None, limit=None, batch_size=None)")]
    pub(crate) fn new(
        legs: &Bound<'_, PyAny>,
        select: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
        batch_size: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        guarded(|| {
            refuse_unknown(Callee::StarJoin, unknown)?;
            let named = named_legs(legs)?;
            let select = select.map(selection).transpose()?;
            let legs = named.iter().map(|(name, leg)| (name.clone(), leg.get().leg().clone())).collect();
            let star = StarJoin::try_new(legs, select.clone(), count("limit", limit)?)?;
            let batch_size = count("batch_size", batch_size)?.unwrap_or(DEFAULT_BATCH_SIZE);
            if batch_size == 0 {
                return Err(plan("batch_size is a number of rows of at least 1, 0 was given"));
            }
            let rows = StarRows::new(&star);
            let legs = named.into_iter().map(|(_, leg)| leg.unbind()).collect();
            Ok(Self {
                legs,
                select,
                batch_size,
                star,
                planned: SharedRecent::default(),
                row_joins: PlanCache::default(),
                rows,
            })
        })
    }

    /// Joins `probe`: a batch with a batch as result, a table with a table, a stream with a stream, as `join` does.
    ///
    /// A batch gives one pyarrow.RecordBatch whatever its size; a table or a list of batches gives a pyarrow.Table; a
    /// frame gives a frame of the same library; a stream gives a pyarrow.RecordBatchReader that pulls lazily; a list of
    /// dicts gives a list of dicts.
    ///
    /// Args:
    ///     probe: Any rows.
    ///     dtype_backend: Types of a pandas.DataFrame, as of `join`.
    ///
    /// Raises:
    ///     PlanError: For columns that are not there or not unique, and key types that differ.
    ///     ExecutionError: For rows that `validate` refuses, and conditions that fail.
    #[pyo3(signature = (probe, *, dtype_backend=None))]
    fn __call__<'py>(&self, probe: &Bound<'py, PyAny>, dtype_backend: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| self.join(probe, dtype_backend))
    }

    /// The pyarrow.Schema of the output over a probe side of this schema, without any rows.
    ///
    /// Args:
    ///     probe_schema: A pyarrow.Schema, anything with __arrow_c_schema__, or rows, which are not read.
    ///
    /// Returns:
    ///     The schema that the output of a call has.
    ///
    /// Raises:
    ///     PlanError: For columns that are not there or not unique, and key types that differ.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
    ///     >>> prejoin.StarJoin([users]).schema(pa.schema({"id": pa.int64()})).names
    ///     ['id', 'name']
    fn schema<'py>(&self, probe_schema: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let py = probe_schema.py();
            let probe = Side::new(probe_schema)?.source;
            Ok(self.planned(py, probe.schema())?.schema.object(py).clone())
        })
    }

    /// The star as text.
    ///
    /// Returns:
    ///     One line for each leg, with the rows that reached it and the rows that it gave in all calls so far.
    fn explain(&self) -> String {
        let mut lines = vec![format!("StarJoin: {}", self.options().join(", "))];
        for ((name, leg), [rows_in, rows_out]) in self.star.legs().iter().zip(self.rows.get()) {
            let mut line = format!("  {name}: {} {}", leg.join_type.how(), on_text(leg));
            if let Some(filter) = &leg.filter {
                line += &format!(", where {filter}");
            }
            if leg.validate != Validate::default() {
                line += &format!(", validate {}", leg.validate);
            }
            let build = &leg.build;
            line += &format!("; build of {} rows, {} index", build.num_rows(), build.index_kind());
            line += &format!("; rows in {rows_in}, rows out {rows_out}");
            lines.push(line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect());
        }
        lines.join("\n")
    }

    /// The legs by name, in order.
    #[getter]
    fn legs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let legs = PyDict::new(py);
        for ((name, _), leg) in self.star.legs().iter().zip(&self.legs) {
            legs.set_item(name, leg)?;
        }
        Ok(legs)
    }

    /// The output columns, as they were chosen.
    #[getter]
    fn select<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.select.as_ref().map(|select| selection_object(py, select)).transpose()
    }

    /// Largest number of output rows.
    #[getter]
    fn limit(&self) -> Option<usize> {
        self.star.limit()
    }

    /// Largest number of rows of a batch of a lazy result.
    #[getter]
    fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Pickles where the builds do.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        guarded(|| {
            let options = PyDict::new(py);
            options.set_item("select", self.select(py)?)?;
            options.set_item("limit", self.limit())?;
            options.set_item("batch_size", self.batch_size)?;
            Ok((PyTuple::new(py, [self.legs(py)?])?, options))
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.legs.iter().try_for_each(|leg| visit.call(leg))
    }

    /// Never shows table contents.
    fn __repr__(&self) -> String {
        let leg =
            |(name, leg): &(String, crate::join::Leg)| format!("{name}: {} {}", leg.join_type.how(), on_text(leg));
        let legs: Vec<String> = self.star.legs().iter().map(leg).collect();
        format!("StarJoin({}; {})", legs.join("; "), self.options().join(", "))
    }
}

impl PyStarJoin {
    /// [`__call__`](Self::__call__) within a guarded call.
    pub(crate) fn join<'py>(
        &self,
        probe: &Bound<'py, PyAny>,
        dtype_backend: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = probe.py();
        let kind = RowsKind::of(probe, dtype_backend)?;
        if let Some(rows) = GivenRows::of(probe)? {
            let chosen = self.select.is_some();
            return Ok(join_star(py, &rows, &self.star, chosen, &self.rows, &self.row_joins)?.into_any());
        }
        match Form::of(probe)? {
            Form::Batch => {
                let batch = c_batch(probe)?;
                let planned = self.planned(py, batch.schema())?;
                let batch = batch.import(planned.columns.as_deref(), None)?;
                let rows = batch.num_rows().saturating_mul(self.legs.len());
                let joined = detach_if_long(py, rows, || planned.plan.run_once_read(batch, interruptible()))?;
                kind.give(planned.schema.batch(py, &joined)?, || planned.plan.probe_columns())
            }
            form => {
                let mut rows = source::open(probe, None)?;
                let planned = self.planned(py, rows.schema())?;
                let read = match &planned.columns {
                    None => rows.schema().clone(),
                    Some(columns) => {
                        rows.select(Arc::clone(columns));
                        Arc::clone(columns.schema())
                    }
                };
                // A table is put together of pieces at the end: the fewer there are, the less is copied twice.
                let batch_size = if form == Form::Table { PIECE_ROWS } else { self.batch_size };
                let run = planned.plan.open(batch_size, interruptible())?;
                let mut run = StarRun { run, probe: Some(once(read, rows).open(0)?) };
                let schema = PySchema::new(py, planned.plan.schema().clone())?;
                if form == Form::Reader {
                    return reader(py, schema, Box::new(run));
                }
                let mut batches = Vec::new();
                while let Some(batch) = run.next_batch(py)? {
                    batches.push(batch);
                }
                let rows = batches.iter().map(RecordBatch::num_rows).sum();
                let chunks = detach_if_long(py, rows, || few_batches(schema.arrow(), batches, &interruptible()));
                kind.give(schema.table(py, &chunks?)?, || planned.plan.probe_columns())
            }
        }
    }

    /// The plan over this probe schema: remembered, or made now.
    fn planned(&self, py: Python<'_>, schema: &SchemaRef) -> PyResult<Arc<Planned>> {
        let fits = |known: &Planned| Arc::ptr_eq(&known.probe_schema, schema) || known.probe_schema == *schema;
        self.planned.get_or_make(fits, || {
            let plan = StarPlan::try_new(&self.star, schema, &PyMemoryPool::resolve(None))?.counted_in(&self.rows);
            let columns = match plan.columns().len() == schema.fields().len() {
                true => None,
                false => Some(Arc::new(Columns::try_new(schema, plan.columns().to_vec())?)),
            };
            let schema_out = PySchema::new(py, plan.schema().clone())?;
            Ok(Planned { probe_schema: schema.clone(), columns, plan: Arc::new(plan), schema: schema_out })
        })
    }

    fn options(&self) -> Vec<String> {
        let legs = self.legs.len();
        let mut options = vec![format!("{legs} {}", if legs == 1 { "leg" } else { "legs" })];
        if let Some(select) = &self.select {
            let column = |(new, name): &(Option<String>, String)| match new {
                Some(new) => format!("{name} as {new}"),
                None => name.clone(),
            };
            options.push(format!("select=[{}]", select.iter().map(column).collect::<Vec<_>>().join(", ")));
        }
        if let Some(limit) = self.limit() {
            options.push(format!("limit={limit}"));
        }
        if self.batch_size != DEFAULT_BATCH_SIZE {
            options.push(format!("batch_size={}", self.batch_size));
        }
        options
    }
}

/// True for a second argument of `prejoin.join` that is legs: a leg, or a list of or a mapping to some.
pub(crate) fn is_star(build: &Bound<'_, PyAny>) -> PyResult<bool> {
    if build.is_instance_of::<PyStarJoin>() {
        return Err(type_error("a StarJoin is called with the rows that it joins: star(probe)"));
    }
    if build.is_instance_of::<PyLeg>() {
        return Ok(true);
    }
    if build.is_instance_of::<PyList>() || build.is_instance_of::<PyTuple>() {
        return Ok(build.try_iter()?.flatten().any(|one| is_leg(&one)));
    }
    let Ok(mapping) = build.cast::<PyDict>() else { return Ok(false) };
    Ok(mapping.values().iter().any(|one| is_leg(&one)))
}

/// The legs of a list, named by their places, or those of a mapping.
fn named_legs<'py>(legs: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyLeg>)>> {
    let leg = |name: String, leg: &Bound<'py, PyAny>| {
        if !is_leg(leg) {
            return Err(type_error(format!(
                "leg {name:?} is a Leg or a PreparedBuild, {} was given; prejoin.prepare(rows, on=..) makes a build of \
                 rows",
                type_name(leg)
            )));
        }
        Ok((name, PyLeg::of(leg)?))
    };
    if legs.is_instance_of::<PyLeg>() {
        return Ok(vec![leg("leg0".to_owned(), legs)?]);
    }
    if let Ok(mapping) = legs.cast::<PyMapping>() {
        let named = |item: PyResult<Bound<'py, PyAny>>| {
            let (name, of): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
            let name = name.cast::<PyString>().map_err(|_| {
                type_error(format!("the legs of a mapping are named by str, {} was given", type_name(&name)))
            })?;
            leg(name.to_str()?.to_owned(), &of)
        };
        return mapping.items()?.try_iter()?.map(named).collect();
    }
    let refused = || {
        type_error(format!(
            "legs is a list of Leg or PreparedBuild, or a mapping {{name: leg}}; {} was given",
            type_name(legs)
        ))
    };
    if !legs.is_instance_of::<PyList>() && !legs.is_instance_of::<PyTuple>() {
        return Err(refused());
    }
    legs.try_iter()?.enumerate().map(|(i, of)| leg(format!("leg{i}"), &of?)).collect()
}

/// A lazy result.
struct StarRun {
    run: StarProbe,
    /// `None` when no more is asked of it.
    probe: Option<BatchStream>,
}

impl LazyBatches for StarRun {
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            let rows = self.run.pending_rows();
            if let Some(batch) = detach_if_long(py, rows, || self.run.next_output())? {
                return Ok(Some(batch));
            }
            if !self.run.wants_input() {
                self.probe = None;
            }
            let next = self.probe.as_mut().and_then(Iterator::next).transpose()?;
            match next {
                Some(batch) => self.run.push_read(batch)?,
                None => return Ok(None),
            }
        }
    }
}
