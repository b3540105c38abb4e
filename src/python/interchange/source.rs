//! Any Python object that holds or gives tables, as a stream of record batches.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PyModule, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use super::batch::{CBatch, extents};
use super::capsule::take_stream;
use super::dicts::table_of_dicts;
use super::import::Columns;
use super::pyarrow::{PySchema, declared, pyarrow, schema_of, type_name};
use super::schema::check_same_columns;
use super::stream::CStream;
use crate::error::Result;
use crate::memory::Reservation;
use crate::python::errors::{plan, type_error};
use crate::python::shutdown::{attach, or_sleep};

/// What one pull gave.
pub(crate) struct Imported {
    /// The rows, under the batch's own schema (nullability and metadata may differ from the source's).
    pub(crate) batch: RecordBatch,
    /// The allocations behind the first batch of the source, as address ranges, if the producer shows them.
    pub(crate) extents: Option<Vec<Range<usize>>>,
}

/// A stream of record batches over a Python object.
pub(crate) struct Source {
    schema: SchemaRef,
    /// The columns that are looked into; None is all.
    columns: Option<Arc<Columns>>,
    pull: Pull,
    /// Batches given so far.
    given: usize,
    /// A reader or iterator that can be read once; remembered when its first batch is asked for.
    one_shot: Option<Py<PyAny>>,
}

enum Pull {
    Batch {
        batch: CBatch,
        object: Py<PyAny>,
    },
    /// Pulled by Python's `next`, so that exceptions keep their identity and each batch shows its own schema.
    Python {
        iterator: Py<PyAny>,
        /// The element that is being read; at first the one whose schema was taken.
        current: Option<Box<Source>>,
    },
    Stream(CStream),
    /// A scan that starts with the first pull, when it is known which columns are used.
    Scan {
        object: Py<PyAny>,
        scan: Scan,
    },
    /// A scan that has started; it gives the columns that are used alone.
    Scanning(Box<Source>),
    /// After the end or an error.
    Done,
}

/// What can read some of its columns alone.
#[derive(Clone, Copy)]
enum Scan {
    Dataset,
    LazyFrame,
}

impl Scan {
    /// Starts to read `columns` (None is all), which come in the order of `schema`.
    fn start(self, object: &Bound<'_, PyAny>, columns: Option<Vec<String>>, schema: SchemaRef) -> PyResult<Source> {
        let py = object.py();
        match self {
            Scan::Dataset => {
                let options = PyDict::new(py);
                options.set_item(intern!(py, "columns"), columns)?;
                let scanner = object.call_method(intern!(py, "scanner"), (), Some(&options))?;
                Source::of_reader(&scanner.call_method0(intern!(py, "to_reader"))?, Some(schema), false)
            }
            Scan::LazyFrame => {
                let frame = match columns {
                    Some(columns) => object.call_method1(intern!(py, "select"), (columns,))?,
                    None => object.clone(),
                };
                match frame.getattr_opt(intern!(py, "collect_batches"))? {
                    Some(method) => Source::of_iterator(&method.call0()?, Some(schema)),
                    // Before polars 1.34.
                    None => Source::open(&frame.call_method0(intern!(py, "collect"))?, Some(schema)),
                }
            }
        }
    }
}

impl Source {
    /// Opens `object`. `schema` is needed for an iterator that may be empty; if the source shows one, names
    /// and types must be the same. Only a plain iterator without `schema` is asked for a batch; of one that gives rows as
    /// dicts all rows are read, since any of them may show what a type is.
    pub(crate) fn open(object: &Bound<'_, PyAny>, schema: Option<SchemaRef>) -> PyResult<Self> {
        let py = object.py();
        let names = pyarrow(py)?;
        if object.is_instance(names.record_batch.bind(py))?
            && let Some(batch) = CBatch::from_python(object)?
        {
            return Self::of_batch(batch, object, schema);
        }
        if object.is_instance(names.table.bind(py))? {
            return Self::of_reader(&object.call_method0(intern!(py, "to_reader"))?, schema, false);
        }
        if object.is_instance(names.reader.bind(py))? {
            return Self::of_reader(object, schema, true);
        }
        if is_a(object, "pyarrow.dataset", "Dataset")? {
            let schema = declared(schema, schema_of(&object.getattr(intern!(py, "schema"))?)?)?;
            return Ok(Self::new(schema, Pull::Scan { object: object.clone().unbind(), scan: Scan::Dataset }));
        }
        if is_a(object, "pyarrow.dataset", "Scanner")? {
            return Self::of_reader(&object.call_method0(intern!(py, "to_reader"))?, schema, false);
        }
        if is_a(object, "polars", "LazyFrame")? {
            let empty = object.call_method0(intern!(py, "collect_schema"))?.call_method0(intern!(py, "to_frame"))?;
            let schema = declared(schema, Self::open(&empty, None)?.schema.clone())?;
            return Ok(Self::new(schema, Pull::Scan { object: object.clone().unbind(), scan: Scan::LazyFrame }));
        }
        if is_a(object, "pandas", "DataFrame")? {
            return Self::of_pandas(object, schema);
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            return Self::of_iterator(object, schema);
        }
        if let Some(method) = object.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
            let stream = take_stream(&method.call0()?)?;
            let stream = py.detach(|| CStream::open(stream))?;
            refuse_objects(object, stream.schema())?;
            let schema = declared(schema, stream.schema().clone())?;
            return Ok(Self::new(schema, Pull::Stream(stream)));
        }
        if let Some(batch) = CBatch::from_python(object)? {
            return Self::of_batch(batch, object, schema);
        }
        if object.hasattr(intern!(py, "__aiter__"))? {
            return Err(type_error(format!("{} is asynchronous; this call is not", type_name(object))));
        }
        let text = object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>();
        // A schema can be iterated, and would fail at its first field.
        if text
            || object.hasattr(intern!(py, "__arrow_c_schema__"))?
            || object.is_instance_of::<PyDict>()
            || !object.hasattr(intern!(py, "__iter__"))?
        {
            return Err(type_error(format!(
                "a source is a table, a reader, an iterable of batches or of dicts, or has __arrow_c_stream__ or \
                 __arrow_c_array__; {} was given",
                type_name(object)
            )));
        }
        Self::of_iterator(object, schema)
    }

    fn new(schema: SchemaRef, pull: Pull) -> Self {
        Self { schema, columns: None, pull, given: 0, one_shot: None }
    }

    fn of_batch(batch: CBatch, object: &Bound<'_, PyAny>, schema: Option<SchemaRef>) -> PyResult<Self> {
        let schema = declared(schema, batch.schema().clone())?;
        Ok(Self::new(schema, Pull::Batch { batch, object: object.clone().unbind() }))
    }

    fn of_reader(reader: &Bound<'_, PyAny>, schema: Option<SchemaRef>, one_shot: bool) -> PyResult<Self> {
        let py = reader.py();
        if one_shot {
            refuse_seen(reader)?;
        }
        let schema = declared(schema, schema_of(&reader.getattr(intern!(py, "schema"))?)?)?;
        let mut source = Self::new(schema, Pull::Python { iterator: reader.clone().unbind(), current: None });
        source.one_shot = one_shot.then(|| reader.clone().unbind());
        Ok(source)
    }

    fn of_pandas(frame: &Bound<'_, PyAny>, schema: Option<SchemaRef>) -> PyResult<Self> {
        let py = frame.py();
        let options = PyDict::new(py);
        options.set_item(intern!(py, "preserve_index"), false)?;
        if let Some(schema) = &schema {
            options.set_item(intern!(py, "schema"), PySchema::new(py, schema.clone())?.object(py))?;
        }
        let table = pyarrow(py)?.table.bind(py).call_method(intern!(py, "from_pandas"), (frame,), Some(&options))?;
        // pandas' own notes on dtypes and index say nothing true about a join's result.
        let table = if schema.is_none() {
            table.call_method1(intern!(py, "replace_schema_metadata"), (py.None(),))?
        } else {
            table
        };
        Self::of_reader(&table.call_method0(intern!(py, "to_reader"))?, schema, false)
    }

    fn of_iterator(iterable: &Bound<'_, PyAny>, schema: Option<SchemaRef>) -> PyResult<Self> {
        refuse_seen(iterable)?;
        let iterator = iterable.try_iter()?;
        let one_shot = iterator.is(iterable);
        let mut current = None;
        let schema = match schema {
            Some(schema) => schema,
            None => {
                if one_shot {
                    remember(iterable);
                }
                let Some(first) = next_element(&iterator)? else {
                    return Err(plan(format!(
                        "{} gave no batches, so its schema is not known; pass schema=",
                        type_name(iterable)
                    )));
                };
                if first.is_instance_of::<PyDict>() {
                    let rows = dicts(&first, &iterator, usize::MAX)?;
                    return Self::open(&table_of_dicts(&rows, None)?, None);
                }
                let first = Self::open_element(&first, 0)?;
                let schema = first.schema.clone();
                current = Some(Box::new(first));
                schema
            }
        };
        let mut source = Self::new(schema, Pull::Python { iterator: iterator.into_any().unbind(), current });
        source.one_shot = one_shot.then(|| iterable.clone().unbind());
        Ok(source)
    }

    /// A batch, or a frame or table of batches, that an iterator gave.
    fn open_element(element: &Bound<'_, PyAny>, at: usize) -> PyResult<Self> {
        let py = element.py();
        let tabular = element.hasattr(intern!(py, "__arrow_c_stream__"))?
            || element.hasattr(intern!(py, "__arrow_c_array__"))?
            || is_a(element, "pandas", "DataFrame")?;
        if !tabular {
            return Err(type_error(format!(
                "element {at} of the source is not a batch of rows but {}",
                type_name(element)
            )));
        }
        Self::open(element, None)
    }

    /// From now on batches have these columns of [`schema`](Self::schema) only.
    pub(crate) fn select(&mut self, columns: Arc<Columns>) {
        self.columns = Some(columns);
    }

    /// Names, types, nullability and metadata of the columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch, None at the end and ever after. Copies for alignment are held by `copies`, where there is one,
    /// before they are made; give that back once the batch itself is charged. An error is the last thing a source says.
    ///
    /// To be called detached from Python (it attaches itself where it must); attached, call [`Self::next_attached`].
    pub(crate) fn next(&mut self, copies: Option<&mut Reservation>) -> Result<Option<Imported>> {
        if let Some(reader) = self.one_shot.take() {
            attach(|py| remember(&reader.into_bound(py)));
        }
        // Taken, so that an error or the end leaves nothing to ask again. Python objects are let go attached, which is at
        // once.
        let next = match std::mem::replace(&mut self.pull, Pull::Done) {
            Pull::Done => None,
            Pull::Batch { batch, object } => attach(|py| -> Result<_> {
                let extents = extents(&object.into_bound(py), batch.schema())?;
                Ok(Some(Imported { batch: batch.import_attached(py, self.columns.as_deref(), copies)?, extents }))
            })?,
            Pull::Stream(mut stream) => {
                let next = stream.next(self.columns.as_deref(), copies)?;
                next.map(|batch| {
                    self.pull = Pull::Stream(stream);
                    Imported { batch, extents: None }
                })
            }
            Pull::Scan { object, scan } => {
                let inner = attach(|py| self.start(scan, object.into_bound(py)))?;
                self.pull = Pull::Scanning(Box::new(inner));
                return self.next(copies);
            }
            Pull::Scanning(mut inner) => {
                let next = inner.next(copies)?;
                if next.is_some() {
                    self.pull = Pull::Scanning(inner);
                }
                next
            }
            Pull::Python { iterator, current } => {
                attach(|py| self.next_element(iterator.into_bound(py), current, copies))?
            }
        };
        self.given += usize::from(next.is_some());
        Ok(next)
    }

    /// Starts a scan of the columns that are used; of all where a name would not say which is meant.
    fn start(&self, scan: Scan, object: Bound<'_, PyAny>) -> PyResult<Source> {
        let mut names = HashSet::new();
        let repeated = self.schema.fields().iter().any(|field| !names.insert(field.name()));
        match &self.columns {
            Some(columns) if !repeated => {
                let names = columns.schema().fields().iter().map(|field| field.name().clone()).collect();
                scan.start(&object, Some(names), columns.schema().clone())
            }
            columns => {
                let mut source = scan.start(&object, None, self.schema.clone())?;
                source.columns.clone_from(columns);
                Ok(source)
            }
        }
    }

    /// Shows the Python objects that this stream holds to the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.one_shot)?;
        match &self.pull {
            Pull::Batch { object, .. } | Pull::Scan { object, .. } => visit.call(object),
            Pull::Python { iterator, current } => {
                visit.call(iterator)?;
                current.as_ref().map_or(Ok(()), |current| current.traverse(visit))
            }
            Pull::Scanning(inner) => inner.traverse(visit),
            Pull::Stream(_) | Pull::Done => Ok(()),
        }
    }

    /// [`Self::next`] for callers that are attached to Python; a C stream is asked detached all the same.
    pub(crate) fn next_attached(
        &mut self,
        py: Python<'_>,
        copies: Option<&mut Reservation>,
    ) -> Result<Option<Imported>> {
        match self.pull {
            Pull::Stream(_) => py.detach(|| self.next(copies)),
            _ => self.next(copies),
        }
    }

    fn next_element(
        &mut self,
        iterator: Bound<'_, PyAny>,
        mut current: Option<Box<Source>>,
        mut copies: Option<&mut Reservation>,
    ) -> Result<Option<Imported>> {
        let py = iterator.py();
        loop {
            if let Some(mut element) = current.take() {
                let what = format_args!("batch {} of the source", self.given);
                let same = check_same_columns(&self.schema, &element.schema, what);
                element.columns = self.columns.clone().filter(|_| same.is_ok());
                let Some(mut imported) = element.next_attached(py, copies.as_deref_mut())? else { continue };
                same?;
                imported.extents = imported.extents.filter(|_| self.given == 0);
                let current = Some(element).filter(|element| !matches!(element.pull, Pull::Done));
                self.pull = Pull::Python { iterator: iterator.unbind(), current };
                return Ok(Some(imported));
            }
            let Some(element) = next_element(&iterator)? else {
                return Ok(None);
            };
            // The usual case goes without the detour. (A first batch takes it, for its extents.)
            if self.given > 0
                && element.get_type().is(pyarrow(py)?.record_batch.bind(py))
                && let Some(batch) = CBatch::from_python(&element)?
            {
                check_same_columns(&self.schema, batch.schema(), format_args!("batch {} of the source", self.given))?;
                let batch = batch.import_attached(py, self.columns.as_deref(), copies)?;
                self.pull = Pull::Python { iterator: iterator.unbind(), current: None };
                return Ok(Some(Imported { batch, extents: None }));
            }
            current = Some(Box::new(match element.is_instance_of::<PyDict>() {
                true => {
                    let rows = dicts(&element, &iterator, DICTS)?;
                    Self::open(&table_of_dicts(&rows, Some(&self.schema))?, None)?
                }
                false => Self::open_element(&element, self.given)?,
            }));
        }
    }
}

impl Drop for Source {
    /// The producer's objects go now, not when this thread next attaches.
    fn drop(&mut self) {
        if let Pull::Python { .. } | Pull::Batch { .. } | Pull::Scan { .. } = self.pull {
            Python::try_attach(|_| self.pull = Pull::Done);
        }
    }
}

/// Refuses columns of Python objects in a frame of polars, which exports their addresses: as byte strings of eight bytes each,
/// a type that no other column of polars has.
fn refuse_objects(object: &Bound<'_, PyAny>, schema: &SchemaRef) -> PyResult<()> {
    let addresses = |field: &&Arc<Field>| *field.data_type() == DataType::FixedSizeBinary(8);
    match schema.fields().iter().find(addresses) {
        Some(field) if is_a(object, "polars", "DataFrame")? => Err(plan(format!(
            "column {:?} holds Python objects, which polars gives to no other library; leave it out or cast it",
            field.name()
        ))),
        _ => Ok(()),
    }
}

/// Rows that are dicts and become one batch, where the schema is known before.
const DICTS: usize = 8192;

/// `first` and the elements that follow it, at most `most`; all of them dicts.
fn dicts<'py>(first: &Bound<'py, PyAny>, iterator: &Bound<'py, PyAny>, most: usize) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::new(first.py(), [first])?;
    while rows.len() < most
        && let Some(row) = next_element(iterator)?
    {
        if !row.is_instance_of::<PyDict>() {
            let found = type_name(&row);
            return Err(type_error(format!("rows are dicts, as the first one is; {found} was found among them")));
        }
        rows.append(row)?;
    }
    Ok(rows)
}

/// Python's `next`.
fn next_element<'py>(iterator: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut iterator = match iterator.cast::<PyIterator>() {
        Ok(iterator) => iterator.clone(),
        Err(_) => iterator.try_iter()?,
    };
    or_sleep(|| iterator.next()).transpose()
}

/// True where `object` is an instance of `module.class`; never imports the module.
pub(crate) fn is_a(object: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    let py = object.py();
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let modules = MODULES.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind())
    })?;
    let Some(found) = modules.bind(py).get_item(module)? else { return Ok(false) };
    // The names of the module itself: asking for an attribute could import more, and a module that another thread is
    // importing, a stub or a blocked one need not have the class.
    let found = found.cast::<PyModule>().map(|found| found.dict().get_item(class));
    if let Some(found) = found.ok().transpose()?.flatten()
        && found.is_instance_of::<PyType>()
    {
        return object.is_instance(&found);
    }
    // The object may be of the real library all the same.
    let package = module.split('.').next().unwrap_or(module);
    Ok(object.get_type().mro().iter().any(|base| {
        let Ok(base) = base.cast_into::<PyType>() else { return false };
        let root =
            base.module().is_ok_and(|name| name.to_str().is_ok_and(|name| name.split('.').next() == Some(package)));
        root && base.name().is_ok_and(|name| name.to_str().is_ok_and(|name| name == class))
    }))
}

/// The one-shot readers that were read already, by weak reference.
fn seen(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static SEEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let seen =
        SEEN.get_or_try_init(py, || -> PyResult<_> { Ok(py.import("weakref")?.call_method0("WeakSet")?.unbind()) })?;
    Ok(seen.bind(py))
}

/// Objects without weak references or a hash cannot be remembered; they are let through.
fn refuse_seen(reader: &Bound<'_, PyAny>) -> PyResult<()> {
    if seen(reader.py())?.contains(reader).unwrap_or(false) {
        return Err(plan(format!(
            "this {} was read before and is empty now; open it again, or pass a table that can be read many times",
            type_name(reader)
        )));
    }
    Ok(())
}

fn remember(reader: &Bound<'_, PyAny>) {
    // As above.
    let _ = seen(reader.py()).and_then(|seen| seen.call_method1("add", (reader,)));
}
