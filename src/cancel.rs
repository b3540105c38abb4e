//! A signal that asks long work to stop.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A signal that asks work to stop. Every long loop checks it at least every 10 ms.
///
/// All clones of a signal share one state: once fired, it stays fired on every thread. The default signal never fires,
/// and checking it costs nothing.
///
/// ```
/// use prejoin::{Cancel, Error};
///
/// let cancel = Cancel::new();
/// let watcher = cancel.clone();
/// std::thread::spawn(move || watcher.cancel()).join().unwrap();
/// assert!(matches!(cancel.check(), Err(Error::Cancelled)));
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Option<Arc<Inner>>);

type Hook = Box<dyn Fn() -> Result<()> + Send + Sync>;

struct Inner {
    flag: AtomicBool,
    /// Called at each check, for example to look for Ctrl-C. It has to be quick: it is called often.
    hook: Option<Hook>,
}

impl Cancel {
    /// A signal that [`cancel`](Self::cancel) fires.
    ///
    /// ```
    /// use prejoin::Cancel;
    ///
    /// let cancel = Cancel::new();
    /// assert!(cancel.check().is_ok());
    /// cancel.cancel();
    /// assert!(cancel.check().is_err());
    /// ```
    pub fn new() -> Self {
        Self(Some(Arc::new(Inner { flag: AtomicBool::new(false), hook: None })))
    }

    /// A signal that also calls `hook` at each check. If the hook returns an error, the work ends with that error, and
    /// the signal stays fired without calling the hook again.
    ///
    /// ```
    /// use prejoin::{Cancel, Error};
    ///
    /// let cancel = Cancel::with_hook(|| Err(Error::External("the client has gone".into())));
    /// assert_eq!(cancel.check().unwrap_err().to_string(), "the client has gone");
    /// assert!(matches!(cancel.check(), Err(Error::Cancelled)));
    /// ```
    pub fn with_hook(hook: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Inner { flag: AtomicBool::new(false), hook: Some(Box::new(hook)) })))
    }

    /// Fires the signal. The default signal cannot be fired.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, Cancel, Collector, Error, NullEquality, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let (cancel, options) = (Cancel::new(), RunOptions::default());
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
    /// let mut collector = Collector::new(spec, &options.pool, options.config, cancel.clone());
    /// cancel.cancel();
    /// assert!(matches!(collector.push(users), Err(Error::Cancelled)));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn cancel(&self) {
        if let Some(inner) = &self.0 {
            inner.flag.store(true, Ordering::Relaxed);
        }
    }

    /// Returns an error if the work has to stop.
    ///
    /// ```
    /// use prejoin::Cancel;
    ///
    /// let cancel = Cancel::new();
    /// for _row in 0..10 {
    ///     cancel.check()?;
    /// }
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the signal was fired before, else the error of the hook if it returns one.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            None => Ok(()),
            Some(inner) if inner.flag.load(Ordering::Relaxed) => Err(Error::Cancelled),
            Some(inner) => match &inner.hook {
                None => Ok(()),
                Some(hook) => hook().inspect_err(|_| inner.flag.store(true, Ordering::Relaxed)),
            },
        }
    }
}

/// How many rows, or other things that take as little time each, a long loop handles between two checks of its signal.
pub(crate) const POLL_ROWS: usize = 1 << 16;

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fired = self.0.as_ref().is_some_and(|inner| inner.flag.load(Ordering::Relaxed));
        f.debug_struct("Cancel").field("fired", &fired).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A hook that fails once stops everything that shares the signal, for good.
    #[test]
    fn what_a_hook_stops_stays_stopped() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let cancel = Cancel::with_hook(move || match counted.fetch_add(1, Ordering::Relaxed) {
            1 => Err(Error::Execution("stop".to_owned())),
            _ => Ok(()),
        });
        let clone = cancel.clone();
        assert!(clone.check().is_ok());
        assert!(matches!(cancel.check(), Err(Error::Execution(_))));
        for signal in [&cancel, &clone] {
            assert!(matches!(signal.check(), Err(Error::Cancelled)));
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(matches!(signal.check(), Err(Error::Cancelled))));
            });
        }
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
