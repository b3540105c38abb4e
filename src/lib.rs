//! Prepare the build side of a hash join once, then probe it from any number of joins, batches and threads.
//!
//! A hash join collects its smaller input (the *build side*), hashes it, and then looks up the rows of its larger input
//! (the *probe side*). When the join ends, all of that is dropped, and the next join over the same table does it again.
//! This crate keeps the result: a [`PreparedBuild`] holds the rows of a build side, a finished index over its keys, and
//! one exact charge to a memory pool. It never changes, and any number of joins and threads share it behind an
//! [`Arc`](std::sync::Arc).
//!
//! # The path of the data
//!
//! 1. A [`Collector`] takes the Arrow batches of the build side and charges each one to a [`Pool`] before it keeps it.
//!    Its [`finish`](Collector::finish) concatenates the batches, builds the index, and returns the [`PreparedBuild`].
//!    [`prepare`] and [`HashJoin::prepare_build`] do both for a whole stream.
//! 2. A [`HashJoin`] describes a join: keys, join type, condition, output columns.
//!    [`with_prepared_build`](HashJoin::with_prepared_build) attaches a prepared build to it. Each join has a probe
//!    side and a state of its run, and shares everything else.
//! 3. [`execute`](HashJoin::execute) returns a [`JoinStream`]: for each probe batch it looks up the keys in the
//!    [`KeyIndex`], pairs the rows, tests the condition ([`expr`]), and gathers the output columns.
//!
//! A build can also be asked without a join ([`PreparedBuild::contains`], [`PreparedBuild::probe_indices`],
//! [`Lookup`]), and saved to a file that any number of processes map and probe in place ([`PreparedBuild::save`],
//! [`PreparedBuild::open`]).
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{RecordBatch, record_batch};
//! use prejoin::expr::{build, probe};
//! use prejoin::{BatchStream, HashJoin, MemoryPool, Pool, RunOptions, Source};
//!
//! let rates = record_batch!(
//!     ("currency", Utf8, ["EUR", "EUR", "USD"]),
//!     ("since", Int32, [1, 7, 1]),
//!     ("rate", Float64, [1.09, 1.07, 1.0])
//! )?;
//! let payments = record_batch!(("currency", Utf8, ["USD", "EUR", "CHF"]), ("month", Int32, [3, 8, 8]))?;
//!
//! // Prepare once. The pool is asked for every byte before it is taken.
//! let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
//! let join = HashJoin::builder(rates.schema(), payments.schema())
//!     .on([("currency", "currency")])
//!     .filter(Some(probe("month").ge(build("since"))))
//!     .build()?;
//! let snapshot = BatchStream::from_batches(rates.schema(), vec![rates]);
//! let prepared = join.prepare_build(snapshot, &pool, Default::default())?;
//! assert_eq!(pool.reserved(), prepared.reserved_bytes());
//!
//! // Probe any number of times, each time with another probe side.
//! for _ in 0..2 {
//!     let source = Source::from_batches(payments.schema(), vec![vec![payments.clone()]]);
//!     let task = join.to_builder().probe(source).build()?.with_prepared_build(Arc::clone(&prepared))?;
//!     let batches = task.execute(0, &RunOptions::default())?.collect::<prejoin::Result<Vec<RecordBatch>>>()?;
//!     // USD since 1, EUR since 1 and EUR since 7; no rate for CHF.
//!     assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
//! }
//!
//! // With the last user, the build and its charge are gone.
//! drop((join, prepared));
//! assert_eq!(pool.reserved(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Memory
//!
//! Whatever a build keeps is admitted by its [`Pool`] before it is allocated, and each byte is charged once, even if
//! several columns or batches share it. What preparing needs for a moment is charged as well, and given back. If the
//! pool refuses, the error is [`Error::ResourcesExhausted`], and the pool is as it was before. The charge of a build
//! ends when the last user drops it. Output columns own their bytes, apart from large dictionaries and views of which
//! most is used: these share the memory of the build and keep it alive. What joins hold while they run is charged to
//! the pool in [`RunOptions`].
//!
//! # Cancellation
//!
//! Work that can take long takes a [`Cancel`] and looks at it at least every 10 ms. Firing it from any thread, or from
//! a hook, ends the work with an error ([`Error::Cancelled`], or the error of the hook) and releases everything that
//! was unfinished. Dropping a [`Collector`] or a [`JoinStream`] has the same effect. The default [`Cancel`] never
//! fires.
//!
//! # Feature flags
//!
//! - `python`: the extension module of the Python package `prejoin`. Without it the crate does not link Python.
//! - `allocator`: makes that extension module allocate with mimalloc, as the wheels do. No effect without `python`.
//!
//! Neither is enabled by default. `docs/design.md` in the repository explains how the crate works and why.

mod cancel;
mod columns;
mod error;
pub mod expr;
mod file;
mod index;
mod join;
mod memory;
mod panics;
mod prepare;
mod probe;
#[cfg(feature = "python")]
mod python;
mod run;

pub use cancel::Cancel;
pub use columns::Bounds;
pub use error::{Error, Result};
pub use file::{OpenOptions, SaveOptions, SavedInfo, SharedBuild};
pub use index::{Hits, IndexKind, KeyIndex, KeyRows, RowOrder, Strategy};
pub use join::{
    AsOf, Estimate, ExplainFormat, JoinKey, JoinOptions, JoinSpec, JoinType, Leg, LegKey, PartitionMode,
    ProjectedColumn, Properties, StarJoin, Statistics, Tolerance, Validate,
};
pub use memory::{MemoryPool, Pool, RangeCounter, Reservation};
pub use panics::silence_caught_panics;
pub use prepare::{
    BuildMemory, BuildSpec, Collector, Keep, Membership, NullEquality, PrepareOptions, PreparedBuild, Snapshot,
    admission,
};
pub use probe::{Keys, Lookup, MapLookup, Metrics, StarPlan, StarProbe, StarRows};
pub use run::{
    BatchStream, DynamicFilter, HashJoin, HashJoinBuilder, JoinStream, Probe, RunOptions, Source, join, prepare,
};

/// What the tests and benchmarks of this crate use beyond its API; it may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::index::{IndexContext, IndexOptions, hash_table_size, probe_steps, scratch_size};
}
