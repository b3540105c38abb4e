//! The build side: collect, admit, concatenate, index, freeze.

pub mod admission;
pub(crate) mod bounds;
mod collector;
mod concat;
mod concat_encoded;
mod concat_nested;
mod fingerprint;
mod keep;
mod keys;
mod lease;
mod membership;
mod prepared;
mod shown;
mod spec;

pub use bounds::Bounds;
pub use collector::Collector;
pub(crate) use concat::concat;
pub use keep::Keep;
#[cfg(feature = "python")]
pub(crate) use lease::lease_batch;
pub(crate) use lease::{LeasedColumns, lease_column};
pub use membership::Membership;
pub(crate) use prepared::MappedBuild;
pub use prepared::{BuildMemory, PreparedBuild};
pub use spec::{BuildSpec, NullEquality};
pub(crate) use spec::{check_equality, names, position};
