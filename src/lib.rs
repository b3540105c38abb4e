//! Prepare the build side of a hash join once: its rows, its index and its memory charge sit behind one `Arc`, and any
//! number of joins probe it.

mod cancel;
mod columns;
mod error;
pub mod expr;
mod file;
mod index;
mod join;
mod memory;
mod prepare;
mod probe;
#[cfg(feature = "python")]
mod python;
mod run;

pub use cancel::Cancel;
pub use columns::Bounds;
pub use error::{Error, Result};
pub use file::{OpenOptions, SaveOptions, SavedInfo, SharedBuild};
pub use index::{Hits, IndexKind, KeyIndex, KeyRows};
pub use join::{
    Estimate, ExplainFormat, JoinType, Leg, LegKey, PartitionMode, Properties, StarJoin, Statistics, Validate,
};
pub use memory::{MemoryPool, Pool, RangeCounter, Reservation};
pub use prepare::{
    BuildMemory, BuildSpec, Collector, Config, Keep, Membership, NullEquality, PreparedBuild, admission,
};
pub use probe::{Keys, Lookup, MapLookup, Metrics, Probe, StarPlan, StarProbe, StarRows};
pub use run::{
    BatchStream, DynamicFilter, HashJoin, HashJoinBuilder, JoinKey, JoinStream, ProjectedColumn, RunOptions, Source,
};

/// What the tests and benchmarks of this crate use beyond its API; it may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::index::{IndexContext, hash_table_size, probe_steps, scratch_size};
}
