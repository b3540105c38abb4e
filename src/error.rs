//! The one error type of the crate.

use std::fmt;

use arrow_schema::ArrowError;

/// Result with the crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. The text says what was asked, what was found, which column and type, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The request itself is wrong: unknown column, types that do not match, a build that does not fit the join.
    Plan(String),
    /// A memory pool refused a request; nothing was allocated for it.
    ResourcesExhausted(String),
    /// The data or its producer failed while the work ran.
    Execution(String),
    /// A size that no type or machine holds: of a column, a batch, or a copy.
    Overflow(String),
    /// A saved build whose bytes are not those that were written.
    Damaged(String),
    /// A valid request that this version does not support.
    NotSupported(String),
    /// A broken promise inside the crate; please report it.
    Internal(String),
    /// An Arrow kernel failed.
    Arrow(ArrowError),
    /// A failure of the caller's own code (a source, a callback), passed through unchanged.
    External(Box<dyn std::error::Error + Send + Sync>),
    /// The caller asked to stop; everything unfinished was released.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plan(text) => write!(f, "Plan error: {text}"),
            Error::ResourcesExhausted(text) => write!(f, "Resources exhausted: {text}"),
            Error::Execution(text) => write!(f, "Execution error: {text}"),
            Error::Overflow(text) => write!(f, "Overflow: {text}"),
            Error::Damaged(text) => write!(f, "Damaged: {text}"),
            Error::NotSupported(text) => write!(f, "Not supported: {text}"),
            Error::Internal(text) => write!(f, "Internal error: {text}; this is a bug in prejoin"),
            Error::Arrow(error) => write!(f, "Arrow error: {error}"),
            Error::External(error) => write!(f, "{error}"),
            Error::Cancelled => write!(f, "Cancelled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Arrow(error) => Some(error),
            Error::External(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

impl From<ArrowError> for Error {
    /// Keeps an error that one of our own types carried through Arrow's error type.
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => Error::External(other),
            },
            other => Error::Arrow(other),
        }
    }
}

/// `Err(Error::Plan(format!(..)))`.
macro_rules! plan_err {
    ($($arg:tt)*) => { Err($crate::error::Error::Plan(format!($($arg)*))) };
}
/// `Err(Error::Internal(format!(..)))`.
macro_rules! internal_err {
    ($($arg:tt)*) => { Err($crate::error::Error::Internal(format!($($arg)*))) };
}
/// `Err(Error::NotSupported(format!(..)))`.
macro_rules! not_supported {
    ($($arg:tt)*) => { Err($crate::error::Error::NotSupported(format!($($arg)*))) };
}
pub(crate) use {internal_err, not_supported, plan_err};
