//! Running joins: a join with its sources and its run state, streams of its output, its dynamic filter.

mod dynamic_filter;
mod hash_join;
mod source;
mod state;
mod stream;

pub use dynamic_filter::DynamicFilter;
pub(crate) use dynamic_filter::FilterShare;
pub use hash_join::{HashJoin, HashJoinBuilder, JoinKey, ProjectedColumn, RunOptions};
pub use source::{BatchStream, Source};
pub use stream::JoinStream;
