//! What a probe of the index answers.

use super::stage::Stage;

/// The probe rows of one stretch whose key is in the index, in ascending order, each with the group id of its key.
///
/// Keep one per consumer: it also holds the working memory of probes.
#[derive(Debug, Default)]
pub struct Hits {
    /// Probe rows, absolute positions in the probed arrays.
    pub rows: Vec<u32>,
    /// Group id of each of `rows`, below the index's `num_keys`.
    pub groups: Vec<u32>,
    pub(super) stage: Stage,
}

impl Hits {
    /// Forgets all hits and keeps the capacity.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.groups.clear();
    }

    /// Keeps, of the hits from position `from` on, those whose row `keep` accepts.
    pub(crate) fn retain_from(&mut self, from: usize, keep: impl Fn(u32) -> bool) {
        let mut kept = from;
        for i in from..self.rows.len() {
            let (row, group) = (self.rows[i], self.groups[i]);
            self.rows[kept] = row;
            self.groups[kept] = group;
            kept += usize::from(keep(row));
        }
        self.rows.truncate(kept);
        self.groups.truncate(kept);
    }

    /// Calls `probe(start, len, stage, (rows, groups))` for each stage of `start..start + len`. It writes its hits to the
    /// fronts of `rows` and `groups`, which are `len` long, and returns their number.
    #[inline(always)]
    pub(super) fn stages(
        &mut self,
        start: usize,
        len: usize,
        mut probe: impl FnMut(usize, usize, &mut Stage, (&mut [u32], &mut [u32])) -> usize,
    ) {
        let mut hits = self.rows.len();
        self.rows.resize(hits + len, 0);
        self.groups.resize(hits + len, 0);
        for offset in (0..len).step_by(Stage::ROWS) {
            let len = Stage::ROWS.min(len - offset);
            let out = (&mut self.rows[hits..hits + len], &mut self.groups[hits..hits + len]);
            hits += probe(start + offset, len, &mut self.stage, out);
        }
        self.rows.truncate(hits);
        self.groups.truncate(hits);
    }

    /// Adds `rows`, ascending and none of them a hit, with `group` to the hits from position `from` on.
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
