//! How many rows each leg of a star join was given and gave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::join::StarJoin;
use crate::probe::metrics::add;

/// For each leg of a star, how many rows reached it and how many it gave. Plans of one star may share it.
#[derive(Debug)]
pub struct StarRows(Vec<[AtomicU64; 2]>);

impl StarRows {
    /// Nothing counted yet for the legs of `star`.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin, StarRows};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &RunOptions::default())?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// assert_eq!(StarRows::new(&star).get(), [[0, 0]]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(star: &StarJoin) -> Arc<Self> {
        Arc::new(Self(star.legs().iter().map(|_| Default::default()).collect()))
    }

    /// Rows in and rows out of each leg, in all runs so far.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3, 2]))?);
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &events.schema(), &options.pool)?);
    /// plan.run_once(events, Cancel::default())?;
    /// // Three rows reached the leg, two came out.
    /// assert_eq!(plan.rows().get(), [[3, 2]]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn get(&self) -> Vec<[u64; 2]> {
        self.0.iter().map(|leg| leg.each_ref().map(|counter| counter.load(Ordering::Relaxed))).collect()
    }

    pub(super) fn add_in(&self, leg: usize, rows: usize) {
        add(&self.0[leg][0], rows);
    }

    pub(super) fn add_out(&self, leg: usize, rows: usize) {
        add(&self.0[leg][1], rows);
    }
}
