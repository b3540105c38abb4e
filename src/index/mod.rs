//! The index: keys in, dense group ids out, and from a group id to its build rows.
//!
//! [`KeyIndex`] knows keys only. It numbers the distinct indexed keys of a build `0..num_keys` and answers a whole
//! stretch of probe rows per call with the rows that hit and their group ids. [`RowGroups`] maps a group id to the build
//! rows that hold its key, in build order. Everything else (duplicates, join kinds, counts, membership) works on group
//! ids and is written once for all key types.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod byte_column;
mod bytes;
mod dense;
mod groups;
mod hash;
mod hash_build;
mod hashed;
mod hits;
mod key_index;
mod partition;
mod plain_rows;
mod ranked_bits;
mod rows;
mod scratch;
mod stage;
mod steps;
mod stored;
mod table;
#[cfg(test)]
mod tests;
mod words;

pub use groups::RowGroups;
pub use hits::Hits;
pub use key_index::{IndexContext, IndexKind, KeyIndex};
pub use scratch::scratch_size;
pub use steps::probe_steps;
pub(crate) use stored::{Indexed, Part, StoredIndex};

/// Group id of a row that is in no group.
pub(crate) const NONE: u32 = u32::MAX;
