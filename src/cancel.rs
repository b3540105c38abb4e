//! Asking long work to stop.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A shared stop signal, polled by every long loop at least every 10 ms. The default one never fires and costs nothing.
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

    /// A signal that also asks `hook` at each poll; the hook's error ends the work.
    pub fn with_hook(hook: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Inner { flag: AtomicBool::new(false), hook: Some(Box::new(hook)) })))
    }

    /// Asks the work to stop. Without effect on the default signal.
    pub fn cancel(&self) {
        if let Some(inner) = &self.0 {
            inner.flag.store(true, Ordering::Relaxed);
        }
    }

    /// Returns [`Error::Cancelled`] or the hook's error if the work must stop.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            None => Ok(()),
            Some(inner) if inner.flag.load(Ordering::Relaxed) => Err(Error::Cancelled),
            Some(inner) => inner.hook.as_ref().map_or(Ok(()), |hook| hook()),
        }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fired = self.0.as_ref().is_some_and(|inner| inner.flag.load(Ordering::Relaxed));
        f.debug_struct("Cancel").field("fired", &fired).finish()
    }
}
