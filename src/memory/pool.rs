//! Who grants memory.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Grants and takes back bytes. An engine plugs in its own; a refused request must leave the pool as it was.
pub trait Pool: fmt::Debug + Send + Sync {
    /// Grants `bytes` to `consumer`.
    ///
    /// # Errors
    /// [`Error::ResourcesExhausted`] where the pool refuses.
    fn try_grow(&self, consumer: &str, bytes: usize) -> Result<()>;
    /// Takes back `bytes` granted before.
    fn shrink(&self, bytes: usize);
    /// Bytes granted and not yet given back.
    fn reserved(&self) -> usize;
}

/// A pool with an optional limit that remembers its peak. All figures are bytes.
///
/// ```
/// use prejoin::{MemoryPool, Pool};
/// let pool = MemoryPool::new(1024);
/// pool.try_grow("rows", 1000)?;
/// let refused = pool.try_grow("index", 100).unwrap_err().to_string();
/// assert!(refused.contains("\"index\" asked for 100 bytes"));
/// pool.shrink(1000);
/// assert_eq!((pool.reserved(), pool.peak()), (0, 1000));
/// # Ok::<(), prejoin::Error>(())
/// ```
#[derive(Debug)]
pub struct MemoryPool {
    limit: Option<usize>,
    reserved: AtomicUsize,
    peak: AtomicUsize,
}

impl MemoryPool {
    /// A pool that grants at most `limit` bytes at a time.
    ///
    /// ```
    /// use prejoin::{MemoryPool, Pool};
    ///
    /// let pool = MemoryPool::new(1024);
    /// assert!(pool.try_grow("rows", 1024).is_ok());
    /// assert!(pool.try_grow("rows", 1).is_err());
    /// ```
    pub fn new(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::unlimited() }
    }

    /// A pool that only counts.
    ///
    /// ```
    /// use prejoin::{MemoryPool, Pool};
    ///
    /// let pool = MemoryPool::unlimited();
    /// pool.try_grow("rows", 1 << 40)?;
    /// assert_eq!(pool.reserved(), 1 << 40);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn unlimited() -> Self {
        Self { limit: None, reserved: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// The limit in bytes, `None` where there is none.
    ///
    /// ```
    /// use prejoin::MemoryPool;
    ///
    /// assert_eq!(MemoryPool::new(1024).limit(), Some(1024));
    /// assert_eq!(MemoryPool::unlimited().limit(), None);
    /// ```
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// The largest number of bytes that were granted at one time.
    ///
    /// ```
    /// use prejoin::{MemoryPool, Pool};
    ///
    /// let pool = MemoryPool::new(1024);
    /// pool.try_grow("rows", 1000)?;
    /// pool.shrink(900);
    /// assert_eq!((pool.reserved(), pool.peak()), (100, 1000));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

impl Pool for MemoryPool {
    fn try_grow(&self, consumer: &str, bytes: usize) -> Result<()> {
        let grown =
            |used: usize| used.checked_add(bytes).filter(|&total| self.limit.is_none_or(|limit| total <= limit));
        match self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(used) => Err(Error::ResourcesExhausted(format!(
                "{consumer:?} asked for {bytes} bytes, {used} of {} are in use; raise the pool's limit or prepare a smaller build",
                self.limit().map_or_else(|| "unlimited bytes".to_owned(), |limit| format!("{limit} bytes")),
            ))),
        }
    }

    fn shrink(&self, bytes: usize) {
        let before = self.reserved.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes given back, {before} were granted");
    }

    fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }
}
