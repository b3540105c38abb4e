//! `prejoin.Source`, and what else Python code may give as a side of a join.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::pool::PyMemoryPool;
use crate::error::{Result, plan_err};
use crate::memory::Reservation;
use crate::python::arguments::{count, names_or_positions, pairs_of_columns};
use crate::python::errors::{guarded, plan, type_error};
use crate::python::interchange::{
    BatchStream as LazyBatches, PySchema, Source as Opened, is_a, reader, schema_of, type_name,
};
use crate::run::{BatchStream, Source};

/// A side of a join with what is known about its rows: order, equal columns, partitions.
///
/// What is declared is trusted, never checked. A Source may be given wherever rows are taken.
///
/// Args:
///     data: Any rows; with `partitions`, a sequence of as many sources, or a callable `open(partition)` that
///         returns rows each time it is called (needs `schema`).
///     schema: Names and types of the columns. Data that does not show its columns needs it; others are checked
///         against it.
///     partitions: The number of partitions.
///     ordering: Columns, by name or position, that the rows of each partition are ordered by, ascending.
///     equal: Pairs of columns, by name or position, that hold equal values in every row.
///
/// Raises:
///     PlanError: For columns that do not exist, and for a callable without a schema.
///     TypeError: For an object that gives no rows.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> rows = pa.table({"day": [1, 2, 2], "n": [5, 3, 4]})
///     >>> prejoin.Source(rows, ordering=["day"])
///     Source(day: Int64, n: Int64; partitions=1, ordering=[0], equal=[])
#[pyclass(name = "Source", module = "prejoin", frozen)]
pub(crate) struct PySource {
    source: Source,
    /// What was given: one source, a sequence of one per partition, or a callable that opens a partition.
    data: Held,
    /// The partitions that `source` opens, but for those of a callable.
    parts: Vec<Arc<Part>>,
    form: Form,
}

/// A Python object that a `prejoin.Source` shows to the garbage collector and the stream it opens uses. Changed only while
/// attached to Python, since the collector must find the same objects each time it looks.
#[derive(Clone)]
struct Held(Arc<Mutex<Option<Py<PyAny>>>>);

impl Held {
    fn new(object: &Bound<'_, PyAny>) -> Self {
        Self(Arc::new(Mutex::new(Some(object.clone().unbind()))))
    }

    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|object| object.clone_ref(py));
        let cleared = || plan("this source was given up by the garbage collector, with the objects that it reads");
        held.map(|object| object.into_bound(py)).ok_or_else(cleared)
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.0.try_lock().map_or(Ok(()), |held| visit.call(&*held))
    }

    fn clear(&self) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Without the lock: what goes may run Python code.
        drop(held);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    One,
    Listed,
    Opened,
}

#[pymethods]
impl PySource {
    #[new]
    #[pyo3(signature = (data, *, schema=None, partitions=None, ordering=None, equal=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        schema: Option<&Bound<'_, PyAny>>,
        partitions: Option<&Bound<'_, PyAny>>,
        ordering: Option<&Bound<'_, PyAny>>,
        equal: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        guarded(|| {
            let schema = schema.map(schema_of).transpose()?;
            let data_held = Held::new(data);
            let (form, (source, parts)) = match count("partitions", partitions)? {
                None if is_opener(data)? => {
                    return Err(plan("a callable open(partition) needs schema= and partitions= beside it"));
                }
                None => (Form::One, source_of(data, schema)?),
                Some(partitions) if is_opener(data)? => match schema {
                    Some(schema) => (Form::Opened, (opened_by(data_held.clone(), schema, partitions), vec![])),
                    None => return Err(plan("a callable open(partition) needs schema= beside it")),
                },
                Some(partitions) => {
                    let parts: Vec<Bound<'_, PyAny>> = data.try_iter()?.collect::<PyResult<_>>()?;
                    if parts.len() != partitions {
                        return Err(plan(format!("partitions={partitions}, but there are {} sources", parts.len())));
                    }
                    (Form::Listed, one_per_partition(&parts, schema)?)
                }
            };
            let schema = source.schema().clone();
            let ordering = ordering.map(|columns| names_or_positions("ordering", columns, &schema)).transpose()?;
            let equal = equal.map(|pairs| pairs_of_columns("equal", pairs, &schema)).transpose()?;
            let source = match ordering {
                Some(ordering) => source.with_ordering(ordering),
                None => source,
            };
            let source = match equal {
                Some(equal) => source.with_equal_columns(equal),
                None => source,
            };
            let data = match (form, parts.first()) {
                // One reference in one place.
                (Form::One, Some(part)) => part.object.clone(),
                _ => data_held,
            };
            Ok(Self { source, data, parts, form })
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.data.traverse(&visit)?;
        self.parts.iter().try_for_each(|part| {
            if !Arc::ptr_eq(&part.object.0, &self.data.0) {
                part.object.traverse(&visit)?;
            }
            let first = part.first.try_lock();
            first.map_or(Ok(()), |first| first.as_ref().map_or(Ok(()), |first| first.traverse(&visit)))
        })
    }

    fn __clear__(&self) {
        self.data.clear();
        for part in &self.parts {
            part.object.clear();
            let first = part.first.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(first);
        }
    }

    /// A source of several partitions with the same columns.
    ///
    /// Args:
    ///     sources: Any rows for each partition.
    ///     schema: As for `Source`.
    ///     ordering: As for `Source`.
    ///     equal: As for `Source`.
    ///
    /// Returns:
    ///     The source.
    ///
    /// Raises:
    ///     PlanError: For partitions whose columns differ, no partitions without a schema, and columns that do not
    ///         exist.
    ///     TypeError: For an object that gives no rows.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> prejoin.Source.partitioned([pa.table({"n": [1]}), pa.table({"n": [2]})]).partitions
    ///     2
    #[staticmethod]
    #[pyo3(signature = (sources, *, schema=None, ordering=None, equal=None))]
    fn partitioned(
        sources: &Bound<'_, PyAny>,
        schema: Option<&Bound<'_, PyAny>>,
        ordering: Option<&Bound<'_, PyAny>>,
        equal: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        guarded(|| {
            let iterable = sources.try_iter().map_err(|_| {
                type_error(format!("sources is a list of sources, one per partition; {} was given", type_name(sources)))
            })?;
            let parts = iterable.collect::<PyResult<Vec<_>>>()?;
            let parts = PyTuple::new(sources.py(), parts)?;
            let partitions = parts.len().into_pyobject(sources.py())?;
            Self::new(parts.as_any(), schema, Some(partitions.as_any()), ordering, equal)
        })
    }

    /// The pyarrow.Schema of the rows.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| Ok(PySchema::new(py, self.source.schema().clone())?.object(py).clone()))
    }

    /// Number of partitions.
    #[getter]
    fn partitions(&self) -> usize {
        self.source.partitions()
    }

    /// Positions of the columns that the rows of each partition are declared to be ordered by.
    #[getter]
    fn ordering(&self) -> Vec<usize> {
        self.source.ordering().to_vec()
    }

    /// Pairs of positions of columns that are declared to hold equal values.
    #[getter]
    fn equal(&self) -> Vec<(usize, usize)> {
        self.source.equal_columns().to_vec()
    }

    /// All rows, one partition after the other.
    ///
    /// Returns:
    ///     A pyarrow.RecordBatchReader that reads lazily.
    fn to_reader<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let rows = AllPartitions { source: self.source.clone(), next: 0, current: None };
            reader(py, PySchema::new(py, self.source.schema().clone())?, Box::new(rows))
        })
    }

    /// Pickles what was given to the constructor, if that pickles.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        guarded(|| {
            let options = PyDict::new(py);
            options.set_item("schema", self.schema(py)?)?;
            if self.form != Form::One {
                options.set_item("partitions", self.partitions())?;
            }
            options.set_item("ordering", self.ordering())?;
            options.set_item("equal", self.equal())?;
            Ok((PyTuple::new(py, [self.data.get(py)?])?, options))
        })
    }

    /// Never shows rows.
    fn __repr__(&self) -> String {
        let schema = self.source.schema();
        let columns: Vec<String> = schema.fields().iter().map(|f| format!("{}: {}", f.name(), f.data_type())).collect();
        format!(
            "Source({}; partitions={}, ordering={:?}, equal={:?})",
            columns.join(", "),
            self.partitions(),
            self.ordering(),
            self.equal()
        )
    }
}

/// A stream over any rows that Python code gives; the partitions of a `prejoin.Source` follow each other.
pub(crate) fn open(object: &Bound<'_, PyAny>, schema: Option<SchemaRef>) -> PyResult<Opened> {
    let py = object.py();
    match object.cast::<PySource>() {
        Err(_) => Opened::open(object, schema),
        Ok(source) => match source.get() {
            PySource { form: Form::One, data, source, .. } => {
                Opened::open(&data.get(py)?, schema.or_else(|| Some(source.schema().clone())))
            }
            listed => Opened::open(&listed.to_reader(py)?, schema),
        },
    }
}

/// A side of a join, and the Python object that gives its rows.
pub(crate) struct Side {
    pub(crate) source: Source,
    /// None where there is a schema only.
    pub(crate) object: Option<Py<PyAny>>,
}

impl Side {
    /// A `prejoin.Source`, a schema alone, or any object that holds tables.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let holds_rows =
            object.hasattr(intern!(py, "__arrow_c_stream__"))? || object.hasattr(intern!(py, "__arrow_c_array__"))?;
        let held = match object.cast::<PySource>() {
            Ok(source) => source.clone(),
            Err(_) if !holds_rows && object.hasattr(intern!(py, "__arrow_c_schema__"))? => {
                return Ok(Self { source: Source::schema_only(schema_of(object)?), object: None });
            }
            // The one place that holds the object.
            Err(_) => Bound::new(py, PySource::new(object, None, None, None, None)?)?,
        };
        Ok(Self { source: held.get().source.clone(), object: Some(held.into_any().unbind()) })
    }
}

/// A join source over one Python object.
fn source_of(object: &Bound<'_, PyAny>, schema: Option<SchemaRef>) -> PyResult<(Source, Vec<Arc<Part>>)> {
    let part = Arc::new(Part::open(object, schema)?);
    let rows = known_rows(object)?;
    let opened = Arc::clone(&part);
    let source = Source::new(part.schema.clone(), 1, move |_| opened.stream());
    Ok((rows.map_or(source.clone(), |rows| source.with_num_rows(rows)), vec![part]))
}

fn one_per_partition(parts: &[Bound<'_, PyAny>], schema: Option<SchemaRef>) -> PyResult<(Source, Vec<Arc<Part>>)> {
    let Some((first, rest)) = parts.split_first() else {
        return Err(plan("a source has at least one partition, none was given"));
    };
    let rows = parts.iter().map(known_rows).collect::<PyResult<Vec<_>>>()?;
    let rows = rows.into_iter().try_fold(0_usize, |sum, rows| sum.checked_add(rows?));
    let first = Part::open(first, schema)?;
    let schema = first.schema.clone();
    // The others are opened when they are asked for: opening may start to read ahead.
    let rest = rest.iter().map(|part| Part::unopened(part, schema.clone()));
    let parts: Vec<Arc<Part>> = std::iter::once(first).chain(rest).map(Arc::new).collect();
    let opened = parts.clone();
    let source = Source::new(schema, parts.len(), move |partition| opened[partition].stream());
    Ok((rows.map_or(source.clone(), |rows| source.with_num_rows(rows)), parts))
}

fn opened_by(open: Held, schema: SchemaRef, partitions: usize) -> Source {
    let stream_schema = schema.clone();
    Source::new(schema, partitions, move |partition| {
        let opened =
            Python::attach(|py| Opened::open(&open.get(py)?.call1((partition,))?, Some(stream_schema.clone())))?;
        Ok(stream_of(opened))
    })
}

/// True for a function that opens a partition; objects that hold tables may be callable too.
fn is_opener(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = data.py();
    Ok(data.is_callable()
        && !data.hasattr(intern!(py, "__arrow_c_stream__"))?
        && !data.hasattr(intern!(py, "__arrow_c_array__"))?
        && !data.hasattr(intern!(py, "__iter__"))?)
}

/// The number of rows of objects that know it without work.
fn known_rows(object: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    for (module, class) in [("pyarrow", "Table"), ("pyarrow", "RecordBatch")] {
        if is_a(object, module, class)? {
            return object.getattr(intern!(object.py(), "num_rows"))?.extract().map(Some);
        }
    }
    for (module, class) in [("pandas", "DataFrame"), ("polars", "DataFrame")] {
        if is_a(object, module, class)? {
            return object.len().map(Some);
        }
    }
    Ok(None)
}

/// A join source over rows that are read once.
pub(crate) fn once(schema: SchemaRef, rows: Opened) -> Source {
    let (rows, stream_schema) = (Mutex::new(Some(rows)), schema.clone());
    Source::new(schema, 1, move |_| match rows.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(rows) => Ok(BatchStream::foreign(stream_schema.clone(), Batches::new(rows))),
        None => plan_err!("rows that are read once were asked for a second time"),
    })
}

/// One partition over a Python object. It was opened to learn its schema; the first run reads that stream, later ones
/// open the object anew, which a one-shot object refuses.
struct Part {
    object: Held,
    schema: SchemaRef,
    opened: AtomicBool,
    first: Mutex<Option<Opened>>,
}

impl Part {
    fn open(object: &Bound<'_, PyAny>, schema: Option<SchemaRef>) -> PyResult<Self> {
        let opened = Opened::open(object, schema)?;
        let schema = opened.schema().clone();
        let first = Mutex::new(Some(opened));
        Ok(Self { object: Held::new(object), schema, opened: AtomicBool::new(true), first })
    }

    fn unopened(object: &Bound<'_, PyAny>, schema: SchemaRef) -> Self {
        Self { object: Held::new(object), schema, opened: AtomicBool::new(false), first: Mutex::new(None) }
    }

    fn stream(&self) -> Result<BatchStream> {
        let opened = Python::attach(|py| {
            let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
            first.map_or_else(|| self.reopen(&self.object.get(py)?), Ok)
        });
        Ok(stream_of(opened?))
    }

    /// An iterator gives its rows once; one that was read would be empty now, in silence.
    fn reopen(&self, object: &Bound<'_, PyAny>) -> PyResult<Opened> {
        let once = object.hasattr(intern!(object.py(), "__next__"))?;
        if self.opened.swap(true, Ordering::Relaxed) && once {
            return Err(plan(format!(
                "this {} was read before and is empty now; give a source that can be read many times, or \
                 join.replace() it",
                type_name(object)
            )));
        }
        Opened::open(object, Some(self.schema.clone()))
    }
}

fn stream_of(opened: Opened) -> BatchStream {
    BatchStream::foreign(opened.schema().clone(), Batches::new(opened))
}

/// The batches of a Python source; copies that alignment needs are charged while their batch is read.
struct Batches {
    opened: Opened,
    copies: Reservation,
}

impl Batches {
    fn new(opened: Opened) -> Self {
        Self { opened, copies: Reservation::new(&PyMemoryPool::resolve(None), "alignment copy") }
    }
}

impl Iterator for Batches {
    type Item = Result<(RecordBatch, Option<Vec<Range<usize>>>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.copies.shrink(self.copies.size());
        let next = Python::attach(|py| self.opened.next_attached(py, Some(&mut self.copies)));
        next.map(|next| next.map(|imported| (imported.batch, imported.extents))).transpose()
    }
}

/// The rows of a source, one partition after the other.
struct AllPartitions {
    source: Source,
    next: usize,
    current: Option<BatchStream>,
}

impl LazyBatches for AllPartitions {
    fn next_batch(&mut self, _: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(Iterator::next).transpose()? {
                return Ok(Some(batch));
            }
            if self.next == self.source.partitions() {
                return Ok(None);
            }
            self.current = Some(self.source.open(self.next)?);
            self.next += 1;
        }
    }
}
