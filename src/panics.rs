//! Panics that are caught and become errors: those that damaged files cause in Arrow's reader, or in a build that was opened
//! without verification.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

thread_local! {
    /// Whether a panic of this thread is caught by [`caught`].
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `step` returns; `None` where it panics. It leaves nothing half done that is used afterwards.
pub(crate) fn caught<T>(step: impl FnOnce() -> T) -> Option<T> {
    let before = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(step));
    IS_CAUGHT.set(before);
    result.ok()
}

/// Keeps panics that become an error, as those over damaged files do, out of standard error. All other panics reach the panic
/// hook that is set now. A program calls it once, when it starts.
///
/// ```
/// prejoin::silence_caught_panics();
/// ```
pub fn silence_caught_panics() {
    let others = take_hook();
    set_hook(Box::new(move |panic| {
        if !IS_CAUGHT.get() {
            others(panic);
        }
    }));
}
