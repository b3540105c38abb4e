//! What one join did, measured where it happens.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;

use crate::index::IndexKind;

/// Counters of one run of a join, shared by its partitions. An attached join builds nothing: its build counters stay 0.
#[derive(Debug, Default)]
pub(crate) struct JoinMetrics {
    pub(crate) build_input_rows: AtomicU64,
    pub(crate) build_input_batches: AtomicU64,
    pub(crate) build_mem_used: AtomicU64,
    pub(crate) build_nanos: AtomicU64,
    pub(crate) input_rows: AtomicU64,
    pub(crate) input_batches: AtomicU64,
    pub(crate) output_rows: AtomicU64,
    pub(crate) output_batches: AtomicU64,
    pub(crate) join_nanos: AtomicU64,
    pub(crate) index_kind: OnceLock<IndexKind>,
}

/// The counters of a join at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Rows that the build source gave to this join; 0 where a prepared build is attached.
    pub build_input_rows: u64,
    /// Batches that the build source gave to this join; 0 where a prepared build is attached.
    pub build_input_batches: u64,
    /// Bytes that this join charged for its own build; 0 where a prepared build is attached.
    pub build_mem_used: u64,
    /// Time spent on building, pulling from the source included; 0 where a prepared build is attached.
    pub build_time: Duration,
    /// Probe rows taken.
    pub input_rows: u64,
    /// Probe batches taken.
    pub input_batches: u64,
    /// Rows given.
    pub output_rows: u64,
    /// Batches given.
    pub output_batches: u64,
    /// Time spent on joining, pulling from the probe source excluded.
    pub join_time: Duration,
    /// The index structure probed, `None` before the build is known.
    pub index_kind: Option<IndexKind>,
}

impl JoinMetrics {
    /// Counts a batch of the build source.
    pub(crate) fn count_build(&self, batch: &RecordBatch) {
        add(&self.build_input_batches, 1);
        add(&self.build_input_rows, batch.num_rows());
    }

    pub(crate) fn snapshot(&self) -> Metrics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            build_input_rows: get(&self.build_input_rows),
            build_input_batches: get(&self.build_input_batches),
            build_mem_used: get(&self.build_mem_used),
            build_time: Duration::from_nanos(get(&self.build_nanos)),
            input_rows: get(&self.input_rows),
            input_batches: get(&self.input_batches),
            output_rows: get(&self.output_rows),
            output_batches: get(&self.output_batches),
            join_time: Duration::from_nanos(get(&self.join_nanos)),
            index_kind: self.index_kind.get().copied(),
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}

/// Adds the time since its making to a counter when it is dropped.
pub(crate) struct Timer<'a>(&'a AtomicU64, Instant);

impl<'a> Timer<'a> {
    pub(crate) fn start(counter: &'a AtomicU64) -> Self {
        Self(counter, Instant::now())
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(self.1.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}
