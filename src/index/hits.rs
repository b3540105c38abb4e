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
    /// Makes a test use the plain instructions.
    #[cfg(test)]
    pub(super) baseline: bool,
}

/// An index with the columns to probe it with.
pub(super) trait ProbeStage {
    /// Writes the hits of `start..start + len` to the fronts of `rows` and `groups`, which are `len` long, and returns their
    /// number. Implementations are always inlined, so that they are compiled for each set of instructions.
    fn probe_stage(&self, start: usize, len: usize, stage: &mut Stage, out: (&mut [u32], &mut [u32])) -> usize;
}

impl Hits {
    /// Forgets all hits and keeps the capacity.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.groups.clear();
    }

    /// Keeps, of the hits from position `from` on, those whose row and group `keep` accepts.
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

    /// True where a probe may use the widest instructions there are.
    fn is_wide(&self) -> bool {
        #[cfg(test)]
        if self.baseline {
            return false;
        }
        #[cfg(target_arch = "x86_64")]
        return super::avx512::is_available();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Probes `start..start + len`, compiled once for the baseline and once for processors that count bits and shift by any
    /// number in single instructions.
    pub(super) fn stages(&mut self, start: usize, len: usize, probe: &impl ProbeStage) {
        #[cfg(test)]
        if self.baseline {
            return self.stages_baseline(start, len, probe);
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has the features.
            return unsafe { self.stages_x86_64_v3(start, len, probe) };
        }
        self.stages_baseline(start, len, probe);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn stages_x86_64_v3(&mut self, start: usize, len: usize, probe: &impl ProbeStage) {
        self.stages_baseline(start, len, probe);
    }

    #[inline(always)]
    fn stages_baseline(&mut self, start: usize, len: usize, probe: &impl ProbeStage) {
        self.stage.candidates.is_wide = self.is_wide();
        let mut hits = self.rows.len();
        self.rows.resize(hits + len, 0);
        self.groups.resize(hits + len, 0);
        for offset in (0..len).step_by(Stage::ROWS) {
            let len = Stage::ROWS.min(len - offset);
            let out = (&mut self.rows[hits..hits + len], &mut self.groups[hits..hits + len]);
            hits += probe.probe_stage(start + offset, len, &mut self.stage, out);
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
