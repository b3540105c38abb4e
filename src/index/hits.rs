//! What a probe of the index answers.

/// The probe rows of one stretch whose key is in the index, in ascending order, each with the group id of its key.
#[derive(Debug, Default)]
pub struct Hits {
    /// Probe rows, absolute positions in the probed arrays.
    pub rows: Vec<u32>,
    /// Group id of each of `rows`, below the index's `num_keys`.
    pub groups: Vec<u32>,
}

impl Hits {
    /// Forgets all hits and keeps the capacity.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.groups.clear();
    }
}
