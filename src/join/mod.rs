//! Joins: the descriptor, the probe, the output.

mod codec;
mod entries;
mod explain;
mod filter;
mod gather;
mod keys;
mod kind;
mod lookup;
mod map_lookup;
mod metrics;
mod output;
mod plan;
mod probe;
mod properties;
mod residual;
mod run;
mod source;
mod statistics;
mod stream;
mod validate;
mod visited;

pub use explain::ExplainFormat;
pub use filter::DynamicFilter;
pub(crate) use gather::{Selection, gather};
pub use keys::Keys;
pub use kind::{JoinType, PartitionMode};
pub use lookup::Lookup;
pub use map_lookup::MapLookup;
pub use metrics::Metrics;
pub use plan::{HashJoin, HashJoinBuilder, JoinKey, RunOptions};
pub use probe::Probe;
#[cfg(feature = "python")]
pub(crate) use probe::ProbePlan;
#[cfg(feature = "python")]
pub(crate) use probe::few_batches;
pub use properties::Properties;
pub use source::{BatchStream, Source};
pub use statistics::{Estimate, Statistics};
pub use stream::JoinStream;
pub use validate::Validate;
