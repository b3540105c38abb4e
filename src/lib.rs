//! Prepare the build side of a hash join once: its rows, its index and its memory charge sit behind one `Arc`, and any
//! number of joins probe it.

mod build;
mod cancel;
mod column;
mod config;
mod error;
pub mod expr;
mod file;
mod index;
mod join;
mod memory;
#[cfg(feature = "python")]
mod python;

pub use build::{Bounds, BuildMemory, BuildSpec, Collector, Keep, Membership, NullEquality, PreparedBuild, admission};
pub use cancel::Cancel;
pub use config::Config;
pub use error::{Error, Result};
pub use file::{OpenOptions, SaveOptions, SavedInfo, SharedBuild};
pub use index::{Hits, IndexContext, IndexKind, KeyIndex, RowGroups, probe_steps, scratch_size};
pub use join::{
    BatchStream, DynamicFilter, Estimate, ExplainFormat, HashJoin, HashJoinBuilder, JoinKey, JoinStream, JoinType,
    Keys, Lookup, MapLookup, Metrics, PartitionMode, Probe, ProjectedColumn, Properties, RunOptions, Source,
    Statistics, Validate,
};
pub use memory::{MemoryPool, Pool, RangeCounter, Reservation};
