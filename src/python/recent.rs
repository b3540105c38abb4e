//! Values that were used lately.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

/// At most `N` values, the most recently used one first.
pub(crate) struct Recent<T, const N: usize>(Vec<T>);

impl<T, const N: usize> Recent<T, N> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The first value that `fits`, which becomes the most recently used one.
    pub(crate) fn find<E>(&mut self, mut fits: impl FnMut(&T) -> Result<bool, E>) -> Result<Option<&T>, E> {
        for at in 0..self.0.len() {
            if fits(&self.0[at])? {
                self.0[..=at].rotate_right(1);
                return Ok(self.0.first());
            }
        }
        Ok(None)
    }

    /// Adds a value as the most recently used one; where there would be more than `N`, the least recently used one goes.
    pub(crate) fn add(&mut self, value: T) {
        self.0.truncate(N - 1);
        self.0.insert(0, value);
    }
}

impl<T, const N: usize> Default for Recent<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Values that the calls of all threads made or used lately.
pub(crate) struct SharedRecent<T>(Mutex<Recent<Arc<T>, 8>>);

impl<T> SharedRecent<T> {
    /// The value that `fits`, else the one that `make` makes now, without the lock: two threads may make it at the same time.
    pub(crate) fn get_or_make<E>(
        &self,
        mut fits: impl FnMut(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let values = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok::<_, Infallible>(known) = values().find(|value| Ok(fits(value))).map(|known| known.map(Arc::clone));
        if let Some(known) = known {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        values().add(Arc::clone(&made));
        Ok(made)
    }
}

impl<T> Default for SharedRecent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
