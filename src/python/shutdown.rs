//! Threads that outlive the interpreter.

use pyo3::prelude::*;

/// Runs `work`, which calls into Python or returns to it.
///
/// While Python before 3.14 shuts down it ends a daemon thread that asks for the lock by unwinding it. That must pass
/// neither the guards of PyO3, which would touch the lost lock, nor an `extern "C"` frame: both abort the process. So
/// the thread stops here and sleeps for what is left of the process, as it does by itself since 3.14. Best close to the
/// call: references to Python objects that are dropped on the way here are dropped without the lock.
pub(crate) fn or_sleep<T>(work: impl FnOnce() -> T) -> T {
    let guard = SleepForever;
    let result = work();
    std::mem::forget(guard);
    result
}

/// `Python::attach` for work that calls into Python, see [`or_sleep`].
pub(crate) fn attach<T>(work: impl for<'py> FnOnce(Python<'py>) -> T) -> T {
    Python::attach(|py| or_sleep(|| work(py)))
}

/// Dropped only by unwinding; lets panics pass.
struct SleepForever;

impl Drop for SleepForever {
    fn drop(&mut self) {
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}
