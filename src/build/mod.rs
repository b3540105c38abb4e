//! The build side: collect, admit, concatenate, index, freeze.

mod admission;
mod collector;
mod prepared;
mod spec;

pub use collector::Collector;
pub use prepared::PreparedBuild;
pub use spec::{BuildSpec, NullEquality};
pub(crate) use spec::{names, position};
