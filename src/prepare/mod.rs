//! The build side: collect, admit, concatenate, index, freeze.

pub mod admission;
mod backing;
mod collector;
mod fingerprint;
mod index_keys;
mod keep;
mod lease;
mod membership;
mod options;
mod prepared_build;
mod snapshot;
mod spec;

pub(crate) use backing::{Backing, BackingFile};
pub use collector::Collector;
pub(crate) use collector::Origin;
pub(crate) use fingerprint::Fingerprint;
pub use keep::Keep;
pub(crate) use lease::{LeasedColumns, lease_column};
pub use membership::Membership;
pub use options::PrepareOptions;
pub(crate) use prepared_build::BuildParts;
pub use prepared_build::{BuildMemory, PreparedBuild};
pub use snapshot::Snapshot;
pub(crate) use spec::check_equality;
pub use spec::{BuildSpec, NullEquality};
