//! Errors on their way to Python: the classes, and which class each [`Error`] becomes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_schema::ArrowError;
use pyo3::exceptions::{
    PyException, PyMemoryError, PyNotImplementedError, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::shutdown::or_sleep;
use crate::error::Error;

/// The error classes of the package. `PrejoinError` is the base of all others.
struct Classes {
    base: Py<PyType>,
    plan: Py<PyType>,
    resources_exhausted: Py<PyType>,
    execution: Py<PyType>,
    not_supported: Py<PyType>,
    internal: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&'static Classes> {
    CLASSES.get_or_try_init(py, || {
        let make = |name: &str, bases: Vec<Bound<'_, PyType>>, doc: &str| -> PyResult<Py<PyType>> {
            let namespace = PyDict::new(py);
            namespace.set_item("__module__", "prejoin")?;
            namespace.set_item("__doc__", doc)?;
            let class = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, namespace))?;
            Ok(class.cast_into::<PyType>()?.unbind())
        };
        let base = make("PrejoinError", vec![py.get_type::<PyException>()], "Base of all errors of prejoin.")?;
        let with =
            |name: &str, builtin: Bound<'_, PyType>, doc: &str| make(name, vec![base.bind(py).clone(), builtin], doc);
        Ok(Classes {
            plan: with(
                "PlanError",
                py.get_type::<PyValueError>(),
                "The request itself is wrong: unknown column, types that do not match, a build that does not fit.",
            )?,
            resources_exhausted: with(
                "ResourcesExhausted",
                py.get_type::<PyMemoryError>(),
                "A memory pool refused a request; nothing was allocated for it.",
            )?,
            execution: with(
                "ExecutionError",
                py.get_type::<PyRuntimeError>(),
                "The data or its producer failed while the work ran.",
            )?,
            not_supported: with(
                "NotSupported",
                py.get_type::<PyNotImplementedError>(),
                "A valid request that this version does not support.",
            )?,
            internal: with(
                "InternalError",
                py.get_type::<PyRuntimeError>(),
                "A broken promise inside prejoin; please report it.",
            )?,
            base,
        })
    })
}

/// Adds the error classes to the extension module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let all = classes(py)?;
    for class in [&all.base, &all.plan, &all.resources_exhausted, &all.execution, &all.not_supported, &all.internal] {
        let class = class.bind(py);
        module.add(class.name()?, class)?;
    }
    Ok(())
}

/// The Python exception for `error`. An exception that Python code raised comes back as the very same object.
pub(crate) fn to_py_err(py: Python<'_>, error: Error) -> PyErr {
    let all = match classes(py) {
        Ok(all) => all,
        Err(failed) => return failed,
    };
    let (class, text) = match error {
        Error::Plan(text) => (&all.plan, text),
        Error::ResourcesExhausted(text) | Error::Arrow(ArrowError::MemoryError(text)) => {
            (&all.resources_exhausted, text)
        }
        Error::Execution(text) | Error::Overflow(text) | Error::Damaged(text) => (&all.execution, text),
        Error::NotSupported(text) => (&all.not_supported, text),
        internal @ Error::Internal(_) => (&all.internal, internal.to_string()),
        Error::Arrow(error) => (&all.execution, error.to_string()),
        Error::External(error) => match error.downcast::<PyErr>() {
            Ok(raised) => return *raised,
            // FileNotFoundError and its like.
            Err(other) => match other.downcast::<std::io::Error>() {
                Ok(error) => return os_error(*error),
                Err(other) => (&all.execution, other.to_string()),
            },
        },
        Error::Cancelled => (&all.execution, "cancelled before it was done; everything unfinished was released".into()),
    };
    PyErr::from_type(class.bind(py).clone(), text)
}

/// With its `errno` where the system gave one, from which Python finds the class.
fn os_error(error: std::io::Error) -> PyErr {
    let source = error.get_ref().and_then(|named| named.source()?.downcast_ref::<std::io::Error>());
    let code = source.and_then(std::io::Error::raw_os_error);
    match code {
        Some(code) if cfg!(unix) => PyOSError::new_err((code, error.to_string())),
        _ => PyErr::from(error),
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        Python::attach(|py| to_py_err(py, error))
    }
}

impl From<PyErr> for Error {
    /// Carries the exception unchanged; [`to_py_err`] gives it back.
    fn from(error: PyErr) -> Self {
        Error::External(Box::new(error))
    }
}

/// True for a `PlanError`.
pub(crate) fn is_plan_error(py: Python<'_>, error: &PyErr) -> bool {
    classes(py).is_ok_and(|all| error.get_type(py).is(&all.plan))
}

/// A `PlanError` with this text.
pub(crate) fn plan(text: impl Into<String>) -> PyErr {
    Error::Plan(text.into()).into()
}

/// A `TypeError`: an argument of a wrong type.
pub(crate) fn type_error(text: impl Into<String>) -> PyErr {
    PyTypeError::new_err(text.into())
}

/// Runs the body of a function, method or `__next__` that Python calls: a panic becomes an `InternalError`.
pub(crate) fn guarded<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(|| or_sleep(body)))
        .unwrap_or_else(|panic| Err(Error::Internal(panic_text(&*panic)).into()))
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no text"))
}
