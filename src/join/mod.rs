//! Joins: the descriptor, the probe, the output.

mod entries;
mod gather;
mod kind;
mod metrics;
mod output;
mod plan;
mod probe;
mod run;
mod source;
mod stream;
mod visited;

pub use kind::{JoinType, PartitionMode};
pub use metrics::Metrics;
pub use plan::{HashJoin, HashJoinBuilder, JoinKey, RunOptions};
pub use probe::Probe;
#[cfg(feature = "python")]
pub(crate) use probe::ProbePlan;
pub use source::{BatchStream, Source};
pub use stream::JoinStream;
