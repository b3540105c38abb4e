//! Who holds memory.

use std::fmt;
use std::sync::Arc;

use super::Pool;
use super::system::{count_given_back, count_taken};
use crate::error::Result;

/// Bytes held from a [`Pool`] under a consumer's name, given back on drop.
///
/// Keep it as the last field of what it pays for: fields drop in order, so the memory is freed before its charge is given back.
pub struct Reservation {
    pool: Arc<dyn Pool>,
    consumer: &'static str,
    size: usize,
}

impl Reservation {
    /// An empty reservation; `consumer` is named when the pool refuses.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use prejoin::{MemoryPool, Pool, Reservation};
    ///
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1024));
    /// let mut reservation = Reservation::new(&pool, "rows");
    /// reservation.try_grow(1000)?;
    /// assert_eq!(pool.reserved(), 1000);
    /// drop(reservation);
    /// assert_eq!(pool.reserved(), 0);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(pool: &Arc<dyn Pool>, consumer: &'static str) -> Self {
        Self { pool: Arc::clone(pool), consumer, size: 0 }
    }

    /// Bytes held.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use prejoin::{MemoryPool, Pool, Reservation};
    ///
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1024));
    /// let mut reservation = Reservation::new(&pool, "rows");
    /// reservation.try_grow(1000)?;
    /// assert_eq!(reservation.size(), 1000);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn size(&self) -> usize {
        self.size
    }

    /// The pool that grants the bytes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use prejoin::{MemoryPool, Pool, Reservation};
    ///
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1024));
    /// let rows = Reservation::new(&pool, "rows");
    /// let index = Reservation::new(rows.pool(), "index");
    /// assert!(Arc::ptr_eq(index.pool(), &pool));
    /// ```
    pub fn pool(&self) -> &Arc<dyn Pool> {
        &self.pool
    }

    /// Holds `bytes` more, or changes nothing.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use prejoin::{MemoryPool, Pool, Reservation};
    ///
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1024));
    /// let mut reservation = Reservation::new(&pool, "rows");
    /// reservation.try_grow(1000)?;
    /// assert!(reservation.try_grow(100).is_err());
    /// assert_eq!(reservation.size(), 1000);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the pool refuses with: [`Error::ResourcesExhausted`](crate::Error::ResourcesExhausted).
    pub fn try_grow(&mut self, bytes: usize) -> Result<()> {
        if bytes > 0 {
            self.pool.try_grow(self.consumer, bytes)?;
            count_taken(bytes);
            self.size += bytes;
        }
        Ok(())
    }

    /// Holds exactly `bytes`, or changes nothing where more are refused.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use prejoin::{MemoryPool, Pool, Reservation};
    ///
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1024));
    /// let mut reservation = Reservation::new(&pool, "rows");
    /// reservation.try_resize(1000)?;
    /// reservation.try_resize(100)?;
    /// assert_eq!(pool.reserved(), 100);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`try_grow`](Self::try_grow).
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
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use prejoin::{MemoryPool, Pool, Reservation};
    ///
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1024));
    /// let mut reservation = Reservation::new(&pool, "rows");
    /// reservation.try_grow(1000)?;
    /// reservation.shrink(900);
    /// assert_eq!((reservation.size(), pool.reserved()), (100, 100));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
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
