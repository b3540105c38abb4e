//! From a group id to the build rows that hold its key.

use arrow_buffer::ScalarBuffer;

/// The build rows of each group, in build order. Build rows fit `u32`: a build has at most 2^32-2 rows.
///
/// Unique keys need no offsets; groups whose rows follow each other in build order need no rows. Storage is Arrow
/// buffers, so that a mapped file can back it.
#[derive(Debug, Clone)]
pub enum RowGroups {
    /// Unique keys in build order: group `g` is build row `g`.
    Identity,
    /// Unique keys: group `g` is build row `rows[g]`.
    Unique {
        /// One build row per group.
        rows: ScalarBuffer<u32>,
    },
    /// Group `g` is the build rows `offsets[g]..offsets[g + 1]`.
    Runs {
        /// `num_keys + 1` ascending build rows.
        offsets: ScalarBuffer<u32>,
    },
    /// Group `g` is the build rows `rows[offsets[g]..offsets[g + 1]]`.
    Csr {
        /// `num_keys + 1` ascending positions in `rows`.
        offsets: ScalarBuffer<u32>,
        /// The build rows of all groups, one group after the other, each in build order.
        rows: ScalarBuffer<u32>,
    },
}

impl RowGroups {
    /// True where every group is one row.
    pub fn is_unique(&self) -> bool {
        matches!(self, RowGroups::Identity | RowGroups::Unique { .. })
    }

    /// Heap bytes held.
    pub fn memory_size(&self) -> usize {
        let bytes = |buffer: &ScalarBuffer<u32>| buffer.inner().capacity();
        match self {
            RowGroups::Identity => 0,
            RowGroups::Unique { rows } => bytes(rows),
            RowGroups::Runs { offsets } => bytes(offsets),
            RowGroups::Csr { offsets, rows } => bytes(offsets) + bytes(rows),
        }
    }
}
