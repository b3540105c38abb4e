//! The build rows of each key: from a group id to the rows that hold its key.

use arrow_buffer::ScalarBuffer;

use super::NONE;
use super::allocate::{admitted, held};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::memory::Reservation;

/// The build rows of each group, in build order or, in an ordered build, in that of a column. Build rows fit `u32`: a build has at most 2^32-2 rows.
///
/// Unique keys need no offsets; groups whose rows follow each other in build order need no rows. Storage is Arrow
/// buffers, so that a mapped file can back it.
#[derive(Debug, Clone)]
pub enum KeyRows {
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
        /// The build rows of all groups, one group after the other, each in its order.
        rows: ScalarBuffer<u32>,
    },
}

/// Rows between two checks for cancellation.
const MORSEL: usize = 1 << 16;

impl KeyRows {
    /// True where every group is one row.
    ///
    /// ```
    /// use prejoin::KeyRows;
    ///
    /// assert!(KeyRows::Unique { rows: vec![1, 0].into() }.is_unique());
    /// assert!(!KeyRows::Runs { offsets: vec![0, 2, 3].into() }.is_unique());
    /// ```
    pub fn is_unique(&self) -> bool {
        matches!(self, KeyRows::Identity | KeyRows::Unique { .. })
    }

    /// Number of build rows of `group`.
    ///
    /// ```
    /// use prejoin::KeyRows;
    ///
    /// let groups = KeyRows::Runs { offsets: vec![0, 2, 3].into() };
    /// assert_eq!((groups.group_len(0), groups.group_len(1)), (2, 1));
    /// ```
    #[inline]
    pub fn group_len(&self, group: u32) -> usize {
        match self {
            KeyRows::Identity | KeyRows::Unique { .. } => 1,
            KeyRows::Runs { offsets } | KeyRows::Csr { offsets, .. } => {
                (offsets[group as usize + 1] - offsets[group as usize]) as usize
            }
        }
    }

    /// Appends up to `take` build rows of `group` to `out`, after the first `skip`.
    ///
    /// ```
    /// use prejoin::KeyRows;
    ///
    /// let groups = KeyRows::Csr { offsets: vec![0, 3, 4].into(), rows: vec![0, 2, 3, 1].into() };
    /// let mut rows = Vec::new();
    /// groups.extend_rows(0, 1, 2, &mut rows);
    /// assert_eq!(rows, [2, 3]);
    /// ```
    #[inline]
    pub fn extend_rows(&self, group: u32, skip: usize, take: usize, out: &mut Vec<u32>) {
        let g = group as usize;
        match self {
            KeyRows::Identity => out.extend((skip == 0 && take > 0).then_some(group)),
            KeyRows::Unique { rows } => out.extend((skip == 0 && take > 0).then_some(rows[g])),
            KeyRows::Runs { offsets } => {
                out.extend((offsets[g]..offsets[g + 1]).skip(skip).take(take));
            }
            KeyRows::Csr { offsets, rows } => {
                let rows = &rows[offsets[g] as usize..offsets[g + 1] as usize];
                out.extend(rows.iter().skip(skip).take(take));
            }
        }
    }

    /// The `n`th build row of `group`, which has more rows than that.
    ///
    /// ```
    /// use prejoin::KeyRows;
    ///
    /// let groups = KeyRows::Csr { offsets: vec![0, 3, 4].into(), rows: vec![0, 2, 3, 1].into() };
    /// assert_eq!(groups.nth_row(0, 2), 3);
    /// ```
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline]
    pub fn nth_row(&self, group: u32, n: usize) -> u32 {
        match self {
            KeyRows::Identity => group,
            KeyRows::Unique { rows } => rows[group as usize],
            KeyRows::Runs { offsets } => offsets[group as usize] + n as u32,
            KeyRows::Csr { offsets, rows } => rows[offsets[group as usize] as usize + n],
        }
    }

    /// Number of rows of all `num_keys` groups.
    pub(crate) fn num_positions(&self, num_keys: usize) -> usize {
        match self {
            KeyRows::Identity | KeyRows::Unique { .. } => num_keys,
            KeyRows::Runs { offsets } => (offsets[num_keys] - offsets[0]) as usize,
            KeyRows::Csr { rows, .. } => rows.len(),
        }
    }

    /// The positions of the rows of `group`, from the first to behind the last, where the rows of all groups are counted one
    /// group after the other.
    #[inline(always)]
    pub(crate) fn positions(&self, group: u32) -> (u32, u32) {
        let g = group as usize;
        match self {
            KeyRows::Identity | KeyRows::Unique { .. } => (group, group + 1),
            KeyRows::Runs { offsets } => (offsets[g] - offsets[0], offsets[g + 1] - offsets[0]),
            KeyRows::Csr { offsets, .. } => (offsets[g], offsets[g + 1]),
        }
    }

    /// The build row at a position.
    ///
    /// # Panics
    /// Where there is no such position and rows are listed.
    #[inline(always)]
    pub(crate) fn row_at(&self, position: u32) -> u32 {
        match self {
            KeyRows::Identity => position,
            KeyRows::Unique { rows } | KeyRows::Csr { rows, .. } => rows[position as usize],
            KeyRows::Runs { offsets } => offsets[0] + position,
        }
    }

    /// Calls `f` with each build row of `group`, in order.
    ///
    /// ```
    /// use prejoin::KeyRows;
    ///
    /// let groups = KeyRows::Csr { offsets: vec![0, 3, 4].into(), rows: vec![0, 2, 3, 1].into() };
    /// let mut rows = Vec::new();
    /// groups.for_each_row(0, |row| rows.push(row));
    /// assert_eq!(rows, [0, 2, 3]);
    /// ```
    pub fn for_each_row(&self, group: u32, f: impl FnMut(u32)) {
        let g = group as usize;
        match self {
            KeyRows::Identity => std::iter::once(group).for_each(f),
            KeyRows::Unique { rows } => std::iter::once(rows[g]).for_each(f),
            KeyRows::Runs { offsets } => (offsets[g]..offsets[g + 1]).for_each(f),
            KeyRows::Csr { offsets, rows } => {
                rows[offsets[g] as usize..offsets[g + 1] as usize].iter().copied().for_each(f);
            }
        }
    }

    /// Calls `f` with each of the groups `0..num_keys` that `wanted` accepts and each of its build rows, in order.
    ///
    /// # Errors
    /// Those of `cancel`, which it looks at in between.
    pub(crate) fn try_for_each_row(
        &self,
        num_keys: usize,
        cancel: &Cancel,
        wanted: impl Fn(u32) -> bool,
        mut f: impl FnMut(u32, u32),
    ) -> Result<()> {
        let mut steps = 0;
        for group in 0..num_keys as u32 {
            let rows = if wanted(group) { self.group_len(group) } else { 0 };
            // At least once, so that groups without rows count too.
            for skip in (0..rows.max(1)).step_by(MORSEL) {
                let end = rows.min(skip + MORSEL);
                (skip..end).for_each(|n| f(group, self.nth_row(group, n)));
                steps += 1 + end - skip.min(end);
                if steps >= MORSEL {
                    steps = 0;
                    cancel.check()?;
                }
            }
        }
        Ok(())
    }

    /// Replaces each group id of unique keys by its build row.
    ///
    /// ```
    /// use prejoin::KeyRows;
    ///
    /// let mut groups = [1, 1, 0];
    /// KeyRows::Unique { rows: vec![5, 6].into() }.unique_rows(&mut groups);
    /// assert_eq!(groups, [6, 6, 5]);
    /// ```
    ///
    /// # Panics
    /// Debug builds panic where keys are not unique.
    pub fn unique_rows(&self, groups: &mut [u32]) {
        debug_assert!(self.is_unique());
        if let KeyRows::Unique { rows } = self {
            groups.iter_mut().for_each(|group| *group = rows[*group as usize]);
        }
    }

    /// Heap bytes held.
    ///
    /// ```
    /// use prejoin::KeyRows;
    ///
    /// assert_eq!(KeyRows::Identity.memory_size(), 0);
    /// assert!(KeyRows::Runs { offsets: vec![0, 2, 3].into() }.memory_size() >= 3 * 4);
    /// ```
    pub fn memory_size(&self) -> usize {
        match self {
            KeyRows::Identity => 0,
            KeyRows::Unique { rows } => held(rows),
            KeyRows::Runs { offsets } => held(offsets),
            KeyRows::Csr { offsets, rows } => held(offsets) + held(rows),
        }
    }

    /// The first build row of `group`.
    #[inline(always)]
    pub(crate) fn first_row(&self, group: u32) -> u32 {
        let group = group as usize;
        match self {
            KeyRows::Identity => group as u32,
            KeyRows::Unique { rows } => rows[group],
            KeyRows::Runs { offsets } => offsets[group],
            KeyRows::Csr { offsets, rows } => rows[offsets[group] as usize],
        }
    }

    /// Puts the first build row of each group in its place: one loop for each kind, so that the reads are in flight together.
    pub(crate) fn to_first_rows(&self, groups: &mut [u32]) {
        match self {
            KeyRows::Identity => {}
            KeyRows::Unique { rows } => groups.iter_mut().for_each(|group| *group = rows[*group as usize]),
            KeyRows::Runs { offsets } => groups.iter_mut().for_each(|group| *group = offsets[*group as usize]),
            KeyRows::Csr { offsets, rows } => {
                groups.iter_mut().for_each(|group| *group = rows[offsets[*group as usize] as usize]);
            }
        }
    }

    /// The last build row of `group`.
    pub(crate) fn last_row(&self, group: u32) -> u32 {
        let group = group as usize;
        match self {
            KeyRows::Identity => group as u32,
            KeyRows::Unique { rows } => rows[group],
            KeyRows::Runs { offsets } => offsets[group + 1] - 1,
            KeyRows::Csr { offsets, rows } => rows[offsets[group + 1] as usize - 1],
        }
    }

    /// Groups of `num_keys` keys, from the group of each row ([`NONE`] for rows in no group).
    pub(super) fn from_group_of(
        group_of: &[u32],
        num_keys: usize,
        retained: &mut Reservation,
        cancel: &Cancel,
    ) -> Result<Self> {
        let Some(lead) = group_of.iter().position(|&g| g != NONE) else {
            return Ok(KeyRows::Identity);
        };
        let indexed = group_of.iter().filter(|&&g| g != NONE).count();
        // NONE is the largest number, so rows in no group may also follow the last group.
        let clustered = group_of[lead..].is_sorted();
        if indexed == num_keys {
            if clustered && lead == 0 {
                return Ok(KeyRows::Identity);
            }
            let mut rows: Vec<u32> = admitted(retained, num_keys)?;
            for (row, &g) in group_of.iter().enumerate().filter(|&(_, &g)| g != NONE) {
                rows[g as usize] = row as u32;
            }
            return Ok(KeyRows::Unique { rows: rows.into() });
        }
        let mut offsets: Vec<u32> = admitted(retained, num_keys + 1)?;
        for morsel in group_of.chunks(MORSEL) {
            cancel.check()?;
            for &g in morsel.iter().filter(|&&g| g != NONE) {
                offsets[g as usize] += 1;
            }
        }
        let mut end = if clustered { lead as u32 } else { 0 };
        for offset in &mut offsets {
            let count = std::mem::replace(offset, end);
            end += count;
        }
        if clustered {
            return Ok(KeyRows::Runs { offsets: offsets.into() });
        }
        let mut rows: Vec<u32> = admitted(retained, indexed)?;
        // Each start moves to the end of its group, which is the start of the next one.
        for (morsel, start) in group_of.chunks(MORSEL).zip((0..).step_by(MORSEL)) {
            cancel.check()?;
            for (&g, row) in morsel.iter().zip(start as u32..).filter(|&(&g, _)| g != NONE) {
                let at = &mut offsets[g as usize];
                rows[*at as usize] = row;
                *at += 1;
            }
        }
        offsets.copy_within(..num_keys, 1);
        offsets[0] = 0;
        Ok(KeyRows::Csr { offsets: offsets.into(), rows: rows.into() })
    }
}
