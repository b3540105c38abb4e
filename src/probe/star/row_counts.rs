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
    pub fn new(star: &StarJoin) -> Arc<Self> {
        Arc::new(Self(star.legs().iter().map(|_| Default::default()).collect()))
    }

    /// Rows in and rows out of each leg, in all runs so far.
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
