//! The index of a build: from a key to a group id, and from a group id to the build rows that hold the key.
//!
//! [`KeyIndex`] knows keys only. It numbers the distinct indexed keys of a build `0..num_keys`; the number of a key is its
//! group id. One call looks up a whole range of probe rows and returns the rows whose key is indexed with their group ids.
//! [`KeyRows`] maps a group id to the build rows that hold its key, in build order or in that of a column ([`RowOrder`]).
//! Everything else (duplicates, join types,
//! counts, membership) works on group ids, so it is written once for all key types.
//!
//! There are four kinds of index ([`IndexKind`]): a bitmap for integers whose range is dense, and three that share one hash
//! table, for fixed-width keys, byte keys, and keys of any type and number.

mod allocate;
mod as_of;
mod avx512;
mod byte_column;
mod bytes_index;
mod candidate;
mod dense_index;
mod fixed_width;
mod frozen_table;
mod hash;
mod hash_build;
mod hashed_index;
mod hits;
mod index_parts;
mod key_chunk;
mod key_index;
mod key_rows;
mod options;
mod order_code;
mod partition;
mod plain_rows;
mod ranked_bits;
mod row_order;
mod rows_index;
mod step_counter;
#[cfg(test)]
mod tests;

pub use allocate::{hash_table_size, scratch_size};
pub use as_of::Strategy;
pub(crate) use as_of::{Choice, Reach};
pub use hits::Hits;
pub(crate) use index_parts::{IndexPart, Indexed, StoredIndex};
pub use key_index::{IndexContext, IndexKind, KeyIndex};
pub use key_rows::KeyRows;
pub use options::IndexOptions;
pub(crate) use order_code::{OrderKind, ProbeValues, Units, order_kind};
pub(crate) use row_order::OrderContext;
pub use row_order::RowOrder;
pub use step_counter::probe_steps;

/// Stands for a group id where a row is in no group, as it stands for a row where there is none.
pub(crate) use crate::columns::NONE;
