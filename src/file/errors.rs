//! Errors of saving and opening, which name the file.

use std::fmt;
use std::io;
use std::path::Path;

use crate::error::Error;

/// An error of the file system that says what was done with which file; in an [`io::Error`] of its kind.
#[derive(Debug)]
struct FileError {
    text: String,
    /// What the system said.
    source: io::Error,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// `error` with what was done with which file.
pub(super) fn io_error(doing: &str, path: &Path, error: io::Error) -> Error {
    let text = format!("cannot {doing} {}: {error}", path.display());
    let kind = error.kind();
    Error::External(Box::new(io::Error::new(kind, FileError { text, source: error })))
}

/// The same for any error.
pub(super) fn with_path(error: Error, doing: &str, path: &Path) -> Error {
    let named = |text: String| format!("cannot {doing} {}: {text}", path.display());
    match error {
        Error::Execution(text) => Error::Execution(named(text)),
        Error::Damaged(text) => Error::Damaged(named(text)),
        Error::NotSupported(text) => Error::NotSupported(named(text)),
        Error::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => io_error(doing, path, *error),
            Err(error) => Error::External(error),
        },
        other => other,
    }
}

/// What reading or writing failed with: an error of the system, or the error of this crate that was wrapped in it.
pub(super) fn unwrapped(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|error| Error::External(Box::new(error)))
}

/// An error whose text follows the name of the file.
pub(super) fn damaged(what: &str) -> Error {
    Error::Damaged(what.to_owned())
}
