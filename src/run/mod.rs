//! Running joins: a join with its sources and its run state, streams of its output, its dynamic filter.

mod builder;
mod dynamic_filter;
mod hash_join;
pub(crate) mod join_by_name;
mod options;
mod prepare_by_name;
mod probe;
mod source;
mod state;
mod stream;

pub use builder::HashJoinBuilder;
pub use dynamic_filter::DynamicFilter;
pub use hash_join::HashJoin;
pub use join_by_name::join;
pub use options::RunOptions;
pub use prepare_by_name::prepare;
pub use probe::Probe;
pub use source::{BatchStream, Source};
pub use stream::JoinStream;
