//! Joins: the descriptor, the probe, the output.

mod entries;
mod filter;
mod gather;
mod kind;
mod map_lookup;
mod metrics;
mod output;
mod plan;
mod probe;
mod run;
mod source;
mod stream;
mod visited;

pub use filter::DynamicFilter;
pub use kind::{JoinType, PartitionMode};
pub use map_lookup::MapLookup;
pub use metrics::Metrics;
pub use plan::{HashJoin, HashJoinBuilder, JoinKey, RunOptions};
pub use probe::Probe;
#[cfg(feature = "python")]
pub(crate) use probe::ProbePlan;
pub use source::{BatchStream, Source};
pub use stream::JoinStream;
