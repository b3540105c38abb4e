//! The names of pyarrow that we call, looked up once, and the conversions that go through it.

use std::cell::RefCell;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyException, PyNotImplementedError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};

use super::abi::ArrowSchema;
use super::capsule::take_schema;
use super::export::export_batch;
use super::schema::import_schema;
use crate::error::{Error, Result};
use crate::python::errors::type_error;
use crate::python::shutdown::or_sleep;

/// Classes and functions of pyarrow.
pub(crate) struct PyArrow {
    pub(crate) record_batch: Py<PyType>,
    pub(crate) table: Py<PyType>,
    pub(crate) reader: Py<PyType>,
    pub(crate) schema: Py<PyType>,
    /// `RecordBatch._export_to_c`, unbound.
    pub(super) export_to_c: Py<PyAny>,
    /// `RecordBatch._import_from_c`.
    import_from_c: Py<PyAny>,
}

/// pyarrow's names; imports it the first time.
pub(crate) fn pyarrow(py: Python<'_>) -> PyResult<&'static PyArrow> {
    static NAMES: PyOnceLock<PyArrow> = PyOnceLock::new();
    NAMES.get_or_try_init(py, || {
        let module = py.import("pyarrow")?;
        let class = |name: &str| -> PyResult<Py<PyType>> { Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind()) };
        let record_batch = class("RecordBatch")?;
        Ok(PyArrow {
            export_to_c: record_batch.getattr(py, "_export_to_c")?,
            import_from_c: record_batch.getattr(py, "_import_from_c")?,
            record_batch,
            table: class("Table")?,
            reader: class("RecordBatchReader")?,
            schema: class("Schema")?,
        })
    })
}

/// A schema in both worlds. Made once per output schema, since making the Python object costs more than a small batch.
pub(crate) struct PySchema {
    arrow: SchemaRef,
    object: Py<PyAny>,
}

impl PySchema {
    /// The `pyarrow.Schema` of `schema`, metadata and extension types included.
    pub(crate) fn new(py: Python<'_>, schema: SchemaRef) -> PyResult<Self> {
        let mut c_schema = FFI_ArrowSchema::try_from(schema.as_ref())
            .map_err(|error| Error::NotSupported(format!("cannot give this schema to pyarrow: {error}")))?;
        let address = (&raw mut c_schema).addr();
        let object = pyarrow(py)?.schema.bind(py).call_method1(intern!(py, "_import_from_c"), (address,))?.unbind();
        Ok(Self { arrow: schema, object })
    }

    /// The schema in Rust.
    pub(crate) fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// The `pyarrow.Schema`.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.object.bind(py)
    }

    /// `batch`, which has this schema, as a `pyarrow.RecordBatch` that shares its memory.
    pub(crate) fn batch<'py>(&self, py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyAny>> {
        debug_assert_eq!(batch.num_columns(), self.arrow.fields().len());
        let mut array = export_batch(batch);
        let import = pyarrow(py)?.import_from_c.bind(py);
        or_sleep(|| import.call1(((&raw mut array).addr(), &self.object)))
    }

    /// `batches`, which have this schema, as one `pyarrow.Table` that shares their memory.
    pub(crate) fn table<'py>(&self, py: Python<'py>, batches: &[RecordBatch]) -> PyResult<Bound<'py, PyAny>> {
        let batches = batches.iter().map(|batch| self.batch(py, batch)).collect::<PyResult<Vec<_>>>()?;
        let batches = PyList::new(py, batches)?;
        pyarrow(py)?.table.bind(py).call_method1(intern!(py, "from_batches"), (batches, &self.object))
    }
}

/// The schema that a Python object is or has: `pyarrow.Schema`, or anything with `__arrow_c_schema__`.
pub(crate) fn schema_of(object: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    let py = object.py();
    if object.get_type().is(pyarrow(py)?.schema.bind(py)) {
        let mut c_schema = ArrowSchema::empty();
        object.call_method1(intern!(py, "_export_to_c"), ((&raw mut c_schema).addr(),))?;
        return Ok(import_schema(&c_schema)?);
    }
    match object.getattr_opt(intern!(py, "__arrow_c_schema__"))? {
        Some(method) => Ok(import_schema(&take_schema(&method.call0()?)?)?),
        None => Err(type_error(format!(
            "a schema is a pyarrow.Schema or has __arrow_c_schema__, {} was given",
            type_name(object)
        ))),
    }
}

thread_local! {
    /// The `pyarrow.Schema`s that this thread met last, the newest first, and what they mean.
    static RECENT: RefCell<Vec<(Py<PyAny>, SchemaRef)>> = const { RefCell::new(Vec::new()) };
}

/// [`schema_of`] for a `pyarrow.Schema`, remembered: comparing two costs a fraction of reading one, and the batches of
/// a stream repeat theirs.
pub(super) fn recent_schema_of(schema: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    const REMEMBERED: usize = 4;
    let py = schema.py();
    for at in 0..REMEMBERED {
        // Not borrowed during the comparison, which may run other Python code.
        let known =
            RECENT.with_borrow(|recent| recent.get(at).map(|(object, arrow)| (object.clone_ref(py), arrow.clone())));
        let Some((object, arrow)) = known else { break };
        if schema.is(&object) || schema.call_method1(intern!(py, "equals"), (&object, true))?.is_truthy()? {
            return Ok(arrow);
        }
    }
    let arrow = schema_of(schema)?;
    let dropped = RECENT.with_borrow_mut(|recent| {
        recent.insert(0, (schema.clone().unbind(), arrow.clone()));
        recent.split_off(REMEMBERED.min(recent.len()))
    });
    drop(dropped);
    Ok(arrow)
}

/// `module.Class` of an object, for error texts.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// True where pyarrow says that the values do not suit; anything else, such as Ctrl-C, passes.
pub(crate) fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py)
        && (error.is_instance_of::<PyValueError>(py)
            || error.is_instance_of::<PyTypeError>(py)
            || error.is_instance_of::<PyOverflowError>(py)
            || error.is_instance_of::<PyNotImplementedError>(py))
}

/// `schema` where it is one that was asked for with these columns, else an error.
pub(super) fn declared(given: Option<SchemaRef>, found: SchemaRef) -> Result<SchemaRef> {
    match given {
        None => Ok(found),
        Some(given) => {
            super::schema::check_same_columns(&given, &found, format_args!("the source"))?;
            Ok(given)
        }
    }
}
