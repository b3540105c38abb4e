//! The build side: collect, admit, concatenate, index, freeze.

pub mod admission;
pub(crate) mod bounds;
mod collector;
mod concat;
#[cfg(feature = "python")]
mod lease;
mod membership;
mod prepared;
mod spec;

pub use bounds::Bounds;
pub use collector::Collector;
#[cfg(feature = "python")]
pub(crate) use lease::lease_batch;
pub use membership::Membership;
pub use prepared::PreparedBuild;
pub use spec::{BuildSpec, NullEquality};
pub(crate) use spec::{names, position};
