//! A column that is in memory, or that is checked and made when it is first asked for.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;

use crate::error::Result;

type Make = dyn Fn() -> Result<ArrayRef> + Send + Sync;

/// A column of a build. That of an unverified file is checked and made by its first user; clones share it.
#[derive(Clone)]
pub(crate) struct LazyColumn(Arc<Inner>);

struct Inner {
    array: OnceLock<ArrayRef>,
    make: Option<Box<Make>>,
}

impl LazyColumn {
    /// A column that `make` makes when it is first asked for.
    pub(crate) fn later(make: impl Fn() -> Result<ArrayRef> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { array: OnceLock::new(), make: Some(Box::new(make)) }))
    }

    /// The column.
    ///
    /// # Errors
    /// What making it fails with, at each call.
    pub(crate) fn get(&self) -> Result<&ArrayRef> {
        if let Some(array) = self.0.array.get() {
            return Ok(array);
        }
        match &self.0.make {
            // Two threads may make it at the same time; one of the two equal columns is kept.
            Some(make) => {
                let array = make()?;
                Ok(self.0.array.get_or_init(|| array))
            }
            None => crate::error::internal_err!("a column that is neither in memory nor can be made"),
        }
    }
}

impl From<ArrayRef> for LazyColumn {
    fn from(array: ArrayRef) -> Self {
        Self(Arc::new(Inner { array: array.into(), make: None }))
    }
}

impl fmt::Debug for LazyColumn {
    /// Never shows table contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.array.get() {
            Some(array) => write!(f, "{} x {}", array.len(), array.data_type()),
            None => f.write_str("not made yet"),
        }
    }
}
