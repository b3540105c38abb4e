//! Who holds memory.

use std::fmt;
use std::sync::Arc;

use super::Pool;
use super::system::count_given_back;
use crate::error::Result;

/// Bytes held from a [`Pool`] under a consumer's name, given back on drop.
///
/// Keep it as the last field of what it pays for: fields drop in order, so the memory goes before its charge.
pub struct Reservation {
    pool: Arc<dyn Pool>,
    consumer: &'static str,
    size: usize,
}

impl Reservation {
    /// An empty reservation; `consumer` is named when the pool refuses.
    pub fn new(pool: &Arc<dyn Pool>, consumer: &'static str) -> Self {
        Self { pool: Arc::clone(pool), consumer, size: 0 }
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The pool that grants the bytes.
    pub fn pool(&self) -> &Arc<dyn Pool> {
        &self.pool
    }

    /// Holds `bytes` more, or changes nothing.
    pub fn try_grow(&mut self, bytes: usize) -> Result<()> {
        if bytes > 0 {
            self.pool.try_grow(self.consumer, bytes)?;
            self.size += bytes;
        }
        Ok(())
    }

    /// Holds exactly `bytes`, or changes nothing where more are refused.
    pub fn try_resize(&mut self, bytes: usize) -> Result<()> {
        match bytes.checked_sub(self.size) {
            Some(more) => self.try_grow(more),
            None => {
                self.shrink(self.size - bytes);
                Ok(())
            }
        }
    }

    /// Gives back `bytes`, at most all.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.size);
        if bytes > 0 {
            self.pool.shrink(bytes);
            self.size -= bytes;
            count_given_back(bytes);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.size);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("consumer", &self.consumer).field("size", &self.size).finish()
    }
}
