//! Choices of one index.

/// What [`KeyIndex::build`](super::KeyIndex::build) may choose.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexOptions {
    /// Smallest share of distinct keys in their range (`keys / (max - min + 1)`) at which a dense index is made. Above 1 none is.
    pub dense_min_density: f64,
    /// Ranges (`max - min + 1`) up to this get a dense index whatever their density.
    pub dense_small_range: u64,
    /// For tests: maps every hash to one of this many values, so that unequal keys collide. 0 is off.
    pub collide: u64,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self { dense_min_density: 1.0 / 64.0, dense_small_range: 1024, collide: 0 }
    }
}
