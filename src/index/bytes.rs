//! Hash table over byte keys. Short keys stand in the table itself; of longer ones it holds the hash, and the key is
//! compared in the build's own column.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;

use super::byte_column::{ByteColumn, Bytes, with_column};
use super::hash_build::{Built, build};
use super::hits::ProbeStage;
use super::partition::Source;
use super::stage::Stage;
use super::table::Table;
use super::words::null_rows;
use super::{Hits, IndexContext, RowGroups, hash};
use crate::columns::Column;
use crate::error::Result;

/// A table of byte keys.
#[derive(Debug)]
pub(super) struct BytesIndex {
    pub(super) table: Tables,
    pub(super) shape: Shape,
    pub(super) seed: u64,
    pub(super) collide: u64,
    /// The build's key column, shared, where the table does not hold the keys.
    pub(super) column: Option<Column>,
    /// Shared with the build.
    pub(super) groups: RowGroups,
}

/// By the number of 32-bit lanes of the key.
#[derive(Debug)]
pub(super) enum Tables {
    /// Half a hash.
    Hashes(Table<1>),
    Two(Table<2>),
    Three(Table<3>),
    Four(Table<4>),
}

macro_rules! with_table {
    ($tables:expr, |$table:ident| $body:expr, |$hashes:ident| $other:expr) => {
        match $tables {
            Tables::Hashes($hashes) => $other,
            Tables::Two($table) => $body,
            Tables::Three($table) => $body,
            Tables::Four($table) => $body,
        }
    };
}

/// The lengths of the build's keys, and how a key of such a length becomes a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) min: usize,
    pub(super) max: usize,
    /// By length, what is added to the padded key: the length in the last byte, unless all lengths are equal.
    length_code: [u128; 17],
    /// 32-bit lanes that hold the key, 0 where it is too long for a table.
    pub(super) lanes: usize,
}

impl Shape {
    fn of(bytes: &impl ByteColumn, rows: usize, nulls: Option<&NullBuffer>) -> Self {
        let (mut min, mut max) = (usize::MAX, 0);
        let mut see = |len: usize| {
            min = min.min(len);
            max = max.max(len);
        };
        let slots = bytes.slots(0, rows);
        match nulls {
            None => slots.for_each(|(_, _, len)| see(len)),
            Some(nulls) => slots.zip(nulls.iter()).filter(|(_, valid)| *valid).for_each(|((_, _, len), _)| see(len)),
        }
        Self::new(min, max)
    }

    /// The shape of keys of `min` to `max` bytes.
    pub(super) fn new(min: usize, max: usize) -> Self {
        let width = if min == max { max } else { max.saturating_add(1) };
        let lanes = match width {
            0..=8 => 2,
            9..=12 => 3,
            13..=16 => 4,
            _ => 0,
        };
        let mut length_code = [0; 17];
        if lanes > 0 && min < max {
            for (len, code) in length_code.iter_mut().enumerate() {
                *code = (len as u128) << (32 * lanes - 8);
            }
        }
        Self { min, max, length_code, lanes }
    }

    #[inline(always)]
    fn fits(&self, len: usize) -> bool {
        len >= self.min && len <= self.max
    }

    /// The number of a key whose length fits.
    #[inline(always)]
    fn number(&self, (data, at, len): (&[u8], usize, usize)) -> u128 {
        hash::padded(data, at, len) | self.length_code[len]
    }
}

#[inline(always)]
fn lanes<const L: usize>(number: u128) -> [u32; L] {
    std::array::from_fn(|lane| (number >> (32 * lane)) as u32)
}

struct ByteKeys<'a> {
    bytes: Bytes<'a>,
    nulls: Option<&'a NullBuffer>,
    shape: Shape,
    collide: u64,
}

/// Keys of a length that no build key has are left out, like nulls.
impl ByteKeys<'_> {
    /// Fills `stage` with short keys as numbers, and their hashes.
    fn hash_numbers(&self, seed: u64, start: usize, len: usize, stage: &mut Stage) {
        let n = with_column!(&self.bytes, |bytes| match self.nulls {
            None => self.numbers(bytes, start, len, stage, |_| true),
            Some(nulls) => self.numbers(bytes, start, len, stage, |row| nulls.is_valid(row)),
        });
        let (_, hashes, numbers) = stage.room(n);
        for (hash, &number) in hashes.iter_mut().zip(&*numbers) {
            *hash = hash::short(number, 0, seed);
        }
        if self.collide > 0 {
            hashes.iter_mut().for_each(|hash| *hash = hash::collide(*hash, self.collide));
        }
        stage.keep(n);
    }

    /// Writes the rows and numbers of the short keys and returns how many there are.
    #[inline(never)]
    fn numbers(
        &self,
        bytes: &impl ByteColumn,
        start: usize,
        len: usize,
        stage: &mut Stage,
        valid: impl Fn(usize) -> bool,
    ) -> usize {
        let (rows, _, numbers) = stage.room(len);
        let Shape { min, max, .. } = self.shape;
        // Without early end, so that the loop has no branches.
        if min == max && self.nulls.is_none() && bytes.slots(start, len).fold(true, |all, slot| all & (slot.2 == max)) {
            let mask = hash::MASKS[max];
            for (row, at) in rows.iter_mut().zip(start as u32..) {
                *row = at;
            }
            for (number, (data, at, _)) in numbers.iter_mut().zip(bytes.slots(start, len)) {
                *number = hash::padded_by(data, at, max, mask);
            }
            return len;
        }
        let mut n = 0;
        for (row, (data, at, len)) in (start..start + len).zip(bytes.slots(start, len)) {
            let live = self.shape.fits(len) & valid(row);
            rows[n] = row as u32;
            numbers[n] = self.shape.number((data, at, if live { len } else { 0 }));
            n += usize::from(live);
        }
        n
    }

    /// Fills `stage` with the hashes of keys of any length.
    fn hash_long(&self, seed: u64, start: usize, len: usize, stage: &mut Stage) {
        with_column!(&self.bytes, |bytes| self.long(bytes, seed, start, len, stage))
    }

    #[inline(never)]
    fn long(&self, bytes: &impl ByteColumn, seed: u64, start: usize, len: usize, stage: &mut Stage) {
        let (rows, hashes, _) = stage.room(len);
        let mut n = 0;
        for (row, (data, at, len)) in (start..start + len).zip(bytes.slots(start, len)) {
            if self.shape.fits(len) && self.nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                rows[n] = row as u32;
                hashes[n] = hash::collide(hash::bytes(&data[at..at + len], seed), self.collide);
                n += 1;
            }
        }
        stage.keep(n);
    }
}

impl<const L: usize> Source<L> for ByteKeys<'_> {
    fn all_live(&self) -> bool {
        self.nulls.is_none()
    }

    fn hash(&self, seed: u64, start: usize, len: usize, stage: &mut Stage) {
        match self.shape.lanes {
            0 => self.hash_long(seed, start, len, stage),
            _ => self.hash_numbers(seed, start, len, stage),
        }
    }

    #[inline(always)]
    fn lanes(&self, hash: u64, row: u32) -> [u32; L] {
        match self.shape.lanes {
            0 => lanes(hash.into()),
            _ => with_column!(&self.bytes, |bytes| lanes(self.shape.number(bytes.slot(row as usize)))),
        }
    }

    #[inline(always)]
    fn lanes_in(&self, stage: &Stage, i: usize) -> [u32; L] {
        match self.shape.lanes {
            0 => lanes(stage.live_words()[i].into()),
            _ => lanes(stage.wide()[i]),
        }
    }

    #[inline(always)]
    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.bytes.value(a as usize).cmp(self.bytes.value(b as usize))
    }
}

impl BytesIndex {
    /// Builds the index and answers it with the groups, the number of keys and the group of null.
    pub(super) fn build(
        column: &ArrayRef,
        nulls_equal: bool,
        context: IndexContext<'_>,
    ) -> Result<(Self, RowGroups, usize, u32)> {
        let (rows, nulls, collide) = (column.len(), null_rows(column), context.config.collide);
        let nulls = nulls.as_ref();
        let bytes = Bytes::of(column);
        let shape = with_column!(&bytes, |bytes| Shape::of(bytes, rows, nulls));
        let keys = ByteKeys { bytes, nulls, shape, collide };
        macro_rules! table {
            ($kind:ident, $buckets_per_key:expr) => {{
                let Built { table, seed, groups, num_keys, null_group } =
                    build(&keys, rows, nulls, nulls_equal, $buckets_per_key, context)?;
                let column = (shape.lanes == 0).then(|| Column::from(column.clone()));
                let this = Self { table: Tables::$kind(table), shape, seed, collide, column, groups: groups.clone() };
                Ok((this, groups, num_keys, null_group))
            }};
        }
        // More buckets tell more absent keys from the directory alone; the wider the tuples, the fewer fit the budget.
        match shape.lanes {
            0 => table!(Hashes, 1.25),
            2 => table!(Two, 1.25),
            3 => table!(Three, 0.75),
            _ => table!(Four, 0.75),
        }
    }

    pub(super) fn memory_size(&self) -> usize {
        with_table!(&self.table, |table| table.memory_size(), |hashes| hashes.memory_size())
    }

    pub(super) fn probe(&self, column: &ArrayRef, start: usize, len: usize, hits: &mut Hits) -> Result<()> {
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        let keys = ByteKeys { bytes: Bytes::of(column), nulls, shape: self.shape, collide: self.collide };
        let (seed, groups) = (self.seed, &self.groups);
        with_table!(&self.table, |table| hits.stages(start, len, &NumberProbe { keys, table, seed }), |table| {
            match &self.column {
                Some(build) => {
                    let build = Bytes::of(build.get()?);
                    hits.stages(start, len, &LongProbe { keys, table, seed, build, groups });
                }
                None => debug_assert!(false, "a table of hashes without its keys"),
            }
        });
        Ok(())
    }
}

struct NumberProbe<'a, const L: usize> {
    keys: ByteKeys<'a>,
    table: &'a Table<L>,
    seed: u64,
}

impl<const L: usize> ProbeStage for NumberProbe<'_, L> {
    #[inline(always)]
    fn probe_stage(&self, start: usize, len: usize, stage: &mut Stage, out: (&mut [u32], &mut [u32])) -> usize {
        self.keys.hash_numbers(self.seed, start, len, stage);
        let (rows, hashes, numbers, candidates) = stage.wide_table();
        self.table.probe(hashes, |i| lanes(numbers[i]), |i| rows[i], |_, _| Ordering::Equal, candidates, out)
    }
}

struct LongProbe<'a> {
    keys: ByteKeys<'a>,
    table: &'a Table<1>,
    seed: u64,
    build: Bytes<'a>,
    groups: &'a RowGroups,
}

impl ProbeStage for LongProbe<'_> {
    #[inline(always)]
    fn probe_stage(&self, start: usize, len: usize, stage: &mut Stage, out: (&mut [u32], &mut [u32])) -> usize {
        self.keys.hash_long(self.seed, start, len, stage);
        let build = |group: u32| self.build.value(self.groups.first_row(group) as usize);
        let probe = |row: u32| self.keys.bytes.value(row as usize);
        let equal = |group, row| build(group) == probe(row);
        let touch = |group| build(group).first().copied().unwrap_or(0);
        self.table.probe_verified(stage, touch, equal, |group, row| build(group).cmp(probe(row)), out)
    }
}
