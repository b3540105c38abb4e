//! Running joins: a join with its sources and its run state, streams of its output, its dynamic filter.

mod builder;
mod dynamic_filter;
mod hash_join;
mod join;
mod options;
mod prepare;
mod probe;
mod source;
mod state;
mod stream;

pub use builder::HashJoinBuilder;
pub use dynamic_filter::DynamicFilter;
pub use hash_join::HashJoin;
#[cfg(feature = "python")]
pub(crate) use join::attach_by_name;
pub use join::join;
pub use options::RunOptions;
pub use prepare::prepare;
pub use probe::Probe;
pub use source::{BatchStream, Source};
pub use stream::JoinStream;
