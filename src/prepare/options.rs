//! Choices of one preparation.

/// What [`prepare`](crate::HashJoin::prepare_build) may choose. The defaults suit most builds.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Smallest share of distinct keys in their range (`keys / (max - min + 1)`) at which a perfect-hash index is made
    /// for integer-like keys. Default 1/64; above 1 turns the perfect-hash index off.
    pub perfect_hash_min_density: f64,
    /// Ranges (`max - min + 1`) up to this are indexed by perfect hash whatever their density. Default 1024.
    pub perfect_hash_small_range: u64,
    /// Largest key column, in bytes, that membership keeps as an IN-list. Default 131,072; 0 turns IN-lists off.
    pub in_list_max_bytes: usize,
    /// Largest number of distinct keys that membership keeps as an IN-list. Default 150; 0 turns IN-lists off.
    pub in_list_max_values: usize,
    /// Test seam: maps every hash to one of this many values, so that unequal keys collide. 0 (the default) is off.
    #[doc(hidden)]
    pub collide: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            perfect_hash_min_density: 1.0 / 64.0,
            perfect_hash_small_range: 1024,
            in_list_max_bytes: 128 * 1024,
            in_list_max_values: 150,
            collide: 0,
        }
    }
}
