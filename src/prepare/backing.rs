//! The memory that a build lies in, and who pays for it.

use std::path::Path;
use std::sync::Arc;

use crate::memory::{Pool, Reservation};

/// The memory of a build: its own heap, or a file in memory. Dropped after all arrays that point into it.
pub(crate) trait Backing: Send + Sync {
    /// Bytes charged to a pool for as long as the build lives.
    fn reserved_bytes(&self) -> usize;

    /// The pool that pays for the build, and for what is made of it.
    fn pool(&self) -> Option<&Arc<dyn Pool>>;

    /// The file in memory; `None` for a build on the heap.
    fn file(&self) -> Option<BackingFile<'_>> {
        None
    }
}

/// A file that a build lies in.
pub(crate) struct BackingFile<'a> {
    /// The whole file.
    pub(crate) bytes: &'a [u8],
    /// Bytes of its rows.
    pub(crate) rows_bytes: usize,
    /// Its absolute path; `None` for a file without a name.
    pub(crate) path: Option<&'a Path>,
    /// Whether it is a copy in memory of this process alone.
    pub(crate) is_private: bool,
    /// Whether every offset, group id, row number and value in it was checked.
    pub(crate) is_verified: bool,
}

/// A build on the heap.
impl Backing for Reservation {
    fn reserved_bytes(&self) -> usize {
        self.size()
    }

    fn pool(&self) -> Option<&Arc<dyn Pool>> {
        Some(Reservation::pool(self))
    }
}
