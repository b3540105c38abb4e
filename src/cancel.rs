//! Asking long work to stop.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A shared stop signal, polled by every long loop at least every 10 ms. The default one never fires and costs nothing.
///
/// Once it fired it stays so, on every clone and thread.
#[derive(Clone, Default)]
pub struct Cancel(Option<Arc<Inner>>);

type Hook = Box<dyn Fn() -> Result<()> + Send + Sync>;

struct Inner {
    flag: AtomicBool,
    /// Called at each poll, e.g. to look for Ctrl-C; it limits its own rate.
    hook: Option<Hook>,
}

impl Cancel {
    /// A signal that [`cancel`](Self::cancel) fires.
    pub fn new() -> Self {
        Self(Some(Arc::new(Inner { flag: AtomicBool::new(false), hook: None })))
    }

    /// A signal that also asks `hook` at each poll; the hook's error ends the work, and later polls no longer ask it.
    pub fn with_hook(hook: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Inner { flag: AtomicBool::new(false), hook: Some(Box::new(hook)) })))
    }

    /// Asks the work to stop. Without effect on the default signal.
    pub fn cancel(&self) {
        if let Some(inner) = &self.0 {
            inner.flag.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the hook's error where the hook asks the work to stop now, [`Error::Cancelled`] where that was asked before.
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
