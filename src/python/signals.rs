//! When to release the interpreter lock, and how long work notices Ctrl-C.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::cancel::Cancel;

/// Work on more rows than this runs detached. Up to about this many take less than 200 us, and getting the lock back
/// costs up to 5 ms while another Python thread is busy.
const LONG_ROWS: usize = 8192;

/// How often long work looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

static MAIN_THREAD: OnceLock<Option<ThreadId>> = OnceLock::new();

/// Remembers which thread is Python's main thread; called once, at import.
pub(super) fn remember_main_thread(py: Python<'_>) -> PyResult<()> {
    let threading = py.import("threading")?;
    let is_main = threading.call_method0("current_thread")?.is(threading.call_method0("main_thread")?);
    let _ = MAIN_THREAD.set(is_main.then(|| std::thread::current().id()));
    Ok(())
}

/// False only where this cannot be Python's main thread, the one that runs signal handlers.
fn may_be_main_thread() -> bool {
    MAIN_THREAD.get().copied().flatten().is_none_or(|main| main == std::thread::current().id())
}

/// Runs `work` on about `rows` rows, detached from Python if that takes long enough to be worth it.
pub(crate) fn detach_if_long<T: Send>(py: Python<'_>, rows: usize, work: impl FnOnce() -> T + Send) -> T {
    if rows > LONG_ROWS { py.detach(work) } else { work() }
}

/// A cancel signal for work that one Python call waits for. On the main thread each poll looks for signals, at most
/// every 50 ms; what their handler raises (`KeyboardInterrupt`) ends the work and reaches the caller unchanged.
/// Elsewhere only [`Cancel::cancel`] fires it.
pub(crate) fn interruptible() -> Cancel {
    if !may_be_main_thread() {
        return Cancel::new();
    }
    let started = Instant::now();
    let last_millis = AtomicU64::new(0);
    Cancel::with_hook(move || {
        let now = started.elapsed();
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let due = Duration::from_millis(last_millis.load(Ordering::Relaxed)) + SIGNAL_INTERVAL <= now;
        if !due || !may_be_main_thread() {
            return Ok(());
        }
        last_millis.store(millis, Ordering::Relaxed);
        // `None` while the interpreter shuts down: no handler will run any more.
        Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(())).map_err(Into::into)
    })
}
