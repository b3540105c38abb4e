//! Counts the steps of probes and builds, so that tests see quadratic work without looking at a clock.

#[cfg(debug_assertions)]
thread_local!(static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

/// Key comparisons plus buckets visited by this thread so far. Only counted with debug assertions (profile `ci`), else 0.
#[doc(hidden)]
pub fn probe_steps() -> u64 {
    #[cfg(debug_assertions)]
    return STEPS.get();
    #[cfg(not(debug_assertions))]
    0
}

/// Adds `steps()`, which is not evaluated in release builds.
#[inline(always)]
pub(super) fn count(steps: impl FnOnce() -> usize) {
    #[cfg(debug_assertions)]
    STEPS.set(STEPS.get() + steps() as u64);
    #[cfg(not(debug_assertions))]
    let _ = steps;
}
