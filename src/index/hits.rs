//! The result of a probe: rows whose key is indexed, and the group ids of their keys.

use super::avx512::Avx512;
use super::key_chunk::KeyChunk;

/// The probe rows whose key is in the index, in ascending order, each with the group id of its key.
///
/// It also holds the working memory of a probe, so a consumer that keeps one value for all its probes allocates once.
#[derive(Debug, Default)]
pub struct Hits {
    /// Probe rows, absolute positions in the probed arrays.
    pub rows: Vec<u32>,
    /// Group id of each of `rows`, below the index's `num_keys`.
    pub groups: Vec<u32>,
    pub(super) chunk: KeyChunk,
    /// Set by tests to probe without the instructions that only newer processors have.
    #[cfg(test)]
    pub(super) baseline: bool,
}

/// An index together with the columns that are looked up in it.
pub(super) trait ProbeChunk {
    /// Writes the hits among rows `start..start + len` to the fronts of the two slices of `out` (rows and groups, both `len`
    /// long) and returns their number. Implementations are always inlined, so that they are compiled for each set of
    /// instructions.
    fn probe_chunk(&self, start: usize, len: usize, chunk: &mut KeyChunk, out: (&mut [u32], &mut [u32])) -> usize;
}

impl Hits {
    /// Removes the hits of the rows that `keep` says no to.
    pub(crate) fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        let mut kept = 0;
        for at in 0..self.rows.len() {
            if keep(self.rows[at]) {
                (self.rows[kept], self.groups[kept]) = (self.rows[at], self.groups[at]);
                kept += 1;
            }
        }
        self.rows.truncate(kept);
        self.groups.truncate(kept);
    }

    /// Removes all hits and keeps the capacity.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Hits, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let mut hits = Hits::default();
    /// for _batch in 0..2 {
    ///     hits.clear();
    ///     build.index().probe(&build.key_columns()?, 0, 2, &mut hits)?;
    ///     assert_eq!(hits.rows, [0, 1]);
    /// }
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.rows.clear();
        self.groups.clear();
    }

    /// Removes, from position `from` on, the hits whose row and group `keep` rejects.
    pub(crate) fn retain_from(&mut self, from: usize, mut keep: impl FnMut(u32, u32) -> bool) {
        let mut kept = from;
        for i in from..self.rows.len() {
            let (row, group) = (self.rows[i], self.groups[i]);
            self.rows[kept] = row;
            self.groups[kept] = group;
            kept += usize::from(keep(row, group));
        }
        self.rows.truncate(kept);
        self.groups.truncate(kept);
    }

    /// The widest instructions that a probe may use.
    fn avx512(&self) -> Option<Avx512> {
        #[cfg(test)]
        if self.baseline {
            return None;
        }
        Avx512::detect()
    }

    /// Appends the hits among rows `start..start + len`. The work is compiled twice, for the baseline and for processors with
    /// AVX2 and BMI, which count bits and shift by a variable number in one instruction.
    pub(super) fn probe_chunks(&mut self, start: usize, len: usize, probe: &impl ProbeChunk) {
        #[cfg(test)]
        if self.baseline {
            return self.probe_chunks_baseline(start, len, probe);
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
        {
            // SAFETY: the processor has all features that the function is compiled for.
            return unsafe { self.probe_chunks_x86_64_v3(start, len, probe) };
        }
        self.probe_chunks_baseline(start, len, probe);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn probe_chunks_x86_64_v3(&mut self, start: usize, len: usize, probe: &impl ProbeChunk) {
        self.probe_chunks_baseline(start, len, probe);
    }

    #[inline(always)]
    fn probe_chunks_baseline(&mut self, start: usize, len: usize, probe: &impl ProbeChunk) {
        self.chunk.candidates.avx512 = self.avx512();
        let mut hits = self.rows.len();
        self.rows.resize(hits + len, 0);
        self.groups.resize(hits + len, 0);
        for offset in (0..len).step_by(KeyChunk::ROWS) {
            let len = KeyChunk::ROWS.min(len - offset);
            let out = (&mut self.rows[hits..hits + len], &mut self.groups[hits..hits + len]);
            hits += probe.probe_chunk(start + offset, len, &mut self.chunk, out);
        }
        self.rows.truncate(hits);
        self.groups.truncate(hits);
    }

    /// Merges `rows` (ascending, `count` of them, none a hit so far), all of group `group`, into the hits from position `from`
    /// on, so that these stay in the order of their rows.
    pub(super) fn merge(&mut self, from: usize, rows: impl DoubleEndedIterator<Item = u32>, count: usize, group: u32) {
        let mut read = self.rows.len();
        let mut write = read + count;
        self.rows.resize(write, 0);
        self.groups.resize(write, 0);
        for row in rows.rev() {
            while read > from && self.rows[read - 1] > row {
                read -= 1;
                write -= 1;
                self.rows[write] = self.rows[read];
                self.groups[write] = self.groups[read];
            }
            write -= 1;
            self.rows[write] = row;
            self.groups[write] = group;
        }
    }
}
