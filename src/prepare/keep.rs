//! Which rows of a key a build keeps.

use std::fmt;

use arrow_array::RecordBatch;

use super::admission::settle_copy;
use crate::cancel::Cancel;
use crate::columns::copy_size::gather_bound;
use crate::columns::{Selection, Share, gather_shared};
use crate::error::Result;
use crate::index::KeyRows;
use crate::memory::{RangeCounter, Reservation};

/// Rows between two looks at the cancel signal.
const MORSEL: usize = 1 << 16;

/// Which of the rows that share a key a build keeps. Rows whose key no probe can match, such as a null that matches
/// nothing, share it with no other row and stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Keep {
    /// All of them.
    #[default]
    All,
    /// The first in build order.
    First,
    /// The last in build order.
    Last,
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keep::All => "all",
            Keep::First => "first",
            Keep::Last => "last",
        })
    }
}

impl Keep {
    /// The build row of `group` that stays; the first one for `All`.
    fn row(self, groups: &KeyRows, group: u32) -> u32 {
        match self {
            Keep::All | Keep::First => groups.first_row(group),
            Keep::Last => groups.last_row(group),
        }
    }

    /// Puts the build row that stays in the place of each of `ids`, groups of `groups`; the first row for `All`.
    pub(crate) fn to_rows(self, groups: &KeyRows, ids: &mut [u32]) {
        match self {
            Keep::All | Keep::First => groups.to_first_rows(ids),
            Keep::Last => ids.iter_mut().for_each(|id| *id = groups.last_row(*id)),
        }
    }

    /// A copy of the rows of `rows` that stay, in their order. `groups` are those of the `num_keys` keys. `reservation` holds
    /// `held` bytes of `rows`, for a moment both, and then those of the copy.
    pub(crate) fn copy(
        self,
        (rows, held): (RecordBatch, usize),
        (groups, num_keys): (&KeyRows, usize),
        reservation: &mut Reservation,
        cancel: &Cancel,
    ) -> Result<RecordBatch> {
        let mut scratch = Reservation::new(reservation.pool(), "prepared build scratch");
        let words = rows.num_rows().div_ceil(64);
        scratch.try_grow(words * size_of::<u64>() + rows.num_rows() * size_of::<u32>())?;
        let mut dropped = vec![0u64; words];
        groups.try_for_each_row(
            num_keys,
            cancel,
            |_| true,
            |group, row| {
                dropped[row as usize / 64] |= u64::from(row != self.row(groups, group)) << (row % 64);
            },
        )?;
        let stays = |&row: &u32| dropped[row as usize / 64] >> (row % 64) & 1 == 0;
        let mut kept: Vec<u32> = Vec::with_capacity(rows.num_rows());
        for start in (0..rows.num_rows()).step_by(MORSEL) {
            cancel.check()?;
            let end = rows.num_rows().min(start + MORSEL);
            kept.extend((start as u32..end as u32).filter(stays));
        }

        let mut admitted = 0usize;
        for column in rows.columns() {
            admitted = admitted.saturating_add(gather_bound(column)?);
        }
        reservation.try_grow(admitted)?;
        let selection = Selection::try_new(&kept, rows.num_rows())?;
        let mut columns = Vec::with_capacity(rows.num_columns());
        for column in rows.columns() {
            cancel.check()?;
            columns.push(gather_shared(column, selection, Share::Never)?);
        }
        let copy = RecordBatch::try_new(rows.schema(), columns)?;
        drop(rows);
        settle_copy(reservation, held, admitted, RangeCounter::default().add_batch(&copy))?;
        Ok(copy)
    }
}
