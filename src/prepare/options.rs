//! Choices of one preparation.

use crate::index::IndexOptions;

/// What [`prepare`](crate::HashJoin::prepare_build) may choose. The defaults suit most builds.
#[derive(Debug, Clone, PartialEq)]
pub struct PrepareOptions {
    /// Smallest share of distinct keys in their range (`keys / (max - min + 1)`) at which a dense index is made for
    /// integer-like keys. Default 1/64; above 1 turns the dense index off.
    pub dense_min_density: f64,
    /// Ranges (`max - min + 1`) up to this get a dense index whatever their density. Default 1024.
    pub dense_small_range: u64,
    /// Largest key column, in bytes, that membership keeps as an IN-list. Default 131,072; 0 turns IN-lists off.
    pub in_list_max_bytes: usize,
    /// Largest number of distinct keys that membership keeps as an IN-list. Default 150; 0 turns IN-lists off.
    pub in_list_max_values: usize,
    /// For tests: maps every hash to one of this many values, so that unequal keys collide. 0 (the default) is off.
    #[doc(hidden)]
    pub collide: u64,
}

impl PrepareOptions {
    /// The part that the index reads.
    pub(super) fn index(&self) -> IndexOptions {
        let Self { dense_min_density, dense_small_range, collide, .. } = *self;
        IndexOptions { dense_min_density, dense_small_range, collide }
    }
}

impl Default for PrepareOptions {
    fn default() -> Self {
        let IndexOptions { dense_min_density, dense_small_range, collide } = IndexOptions::default();
        Self { dense_min_density, dense_small_range, in_list_max_bytes: 128 * 1024, in_list_max_values: 150, collide }
    }
}
