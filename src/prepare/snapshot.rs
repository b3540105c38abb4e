//! Which snapshot of a table a build is.

use std::time::SystemTime;

/// Which snapshot of a table a build is, as whoever loaded it says. A saved build carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The name of the table.
    pub name: String,
    /// Its version, if it has versions. The Python package writes a JSON value.
    pub version: Option<String>,
    /// When it was loaded. Files keep microseconds.
    pub loaded_at: SystemTime,
}
