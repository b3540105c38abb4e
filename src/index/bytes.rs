//! Hash table over byte keys. Short keys stand in the table itself; of longer ones it holds the hash, and the key is
//! compared in the build's own column.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;

use super::byte_column::{ByteColumn, with_bytes};
use super::hash_build::{Built, build};
use super::partition::Source;
use super::stage::Stage;
use super::table::Table;
use super::words::null_rows;
use super::{Hits, IndexContext, RowGroups, hash};
use crate::error::Result;

/// A table of byte keys.
#[derive(Debug)]
pub(super) struct BytesIndex {
    table: Tables,
    shape: Shape,
    seed: u64,
    collide: u64,
    /// The build's key column, shared, where the table does not hold the keys.
    column: Option<ArrayRef>,
    /// Shared with the build.
    groups: RowGroups,
}

/// By the number of 32-bit lanes of the key.
#[derive(Debug)]
enum Tables {
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
struct Shape {
    min: usize,
    max: usize,
    /// Times the length is added to the padded key: it puts the length into the last byte, unless all lengths are equal.
    length_unit: u128,
    /// 32-bit lanes that hold the key, 0 where it is too long for a table.
    lanes: usize,
}

impl Shape {
    fn of(bytes: &impl ByteColumn, rows: usize, nulls: Option<&NullBuffer>) -> Self {
        let (mut min, mut max) = (usize::MAX, 0);
        for row in (0..rows).filter(|&row| nulls.is_none_or(|nulls| nulls.is_valid(row))) {
            let len = bytes.slot(row).2;
            min = min.min(len);
            max = max.max(len);
        }
        let width = if min == max { max } else { max.saturating_add(1) };
        let lanes = match width {
            0..=8 => 2,
            9..=12 => 3,
            13..=16 => 4,
            _ => 0,
        };
        let length_unit = if min == max || lanes == 0 { 0 } else { 1 << (32 * lanes - 8) };
        Self { min, max, length_unit, lanes }
    }

    #[inline(always)]
    fn fits(&self, len: usize) -> bool {
        len >= self.min && len <= self.max
    }

    /// The number of a key whose length fits.
    #[inline(always)]
    fn number(&self, (data, at, len): (&[u8], usize, usize)) -> u128 {
        hash::padded(data, at, len) | len as u128 * self.length_unit
    }
}

#[inline(always)]
fn lanes<const L: usize>(number: u128) -> [u32; L] {
    std::array::from_fn(|lane| (number >> (32 * lane)) as u32)
}

/// Hashes the keys of a stage; those of a length that no build key has are left out.
#[inline(always)]
fn hash_keys(
    bytes: &impl ByteColumn,
    nulls: Option<&NullBuffer>,
    shape: Shape,
    hash_of: impl Fn(u128, &[u8]) -> u64,
    start: usize,
    len: usize,
    stage: &mut Stage,
) {
    stage.fill(start, len, |row| {
        let slot = bytes.slot(row);
        let fits = shape.fits(slot.2) && nulls.is_none_or(|nulls| nulls.is_valid(row));
        if shape.lanes == 0 {
            let hash = if fits { hash_of(0, &slot.0[slot.1..slot.1 + slot.2]) } else { 0 };
            return (fits, hash, 0);
        }
        let number = shape.number(if fits { slot } else { (slot.0, 0, 0) });
        (fits, hash_of(number, &[]), number)
    });
}

/// The hash of a key: of its number where it has one.
#[inline(always)]
fn hasher(shape: Shape, seed: u64, collide: u64) -> impl Fn(u128, &[u8]) -> u64 {
    move |number, bytes| {
        let hash = if shape.lanes == 0 { hash::bytes(bytes, seed) } else { hash::short(number, 0, seed) };
        hash::collide(hash, collide)
    }
}

struct ByteKeys<'a, B> {
    bytes: B,
    nulls: Option<&'a NullBuffer>,
    shape: Shape,
    collide: u64,
}

impl<const L: usize, B: ByteColumn> Source<L> for ByteKeys<'_, B> {
    fn hash(&self, seed: u64, start: usize, len: usize, stage: &mut Stage) {
        let hash_of = hasher(self.shape, seed, self.collide);
        hash_keys(&self.bytes, self.nulls, self.shape, hash_of, start, len, stage);
    }

    #[inline(always)]
    fn lanes(&self, hash: u64, row: u32) -> [u32; L] {
        match self.shape.lanes {
            0 => lanes(hash.into()),
            _ => lanes(self.shape.number(self.bytes.slot(row as usize))),
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
        with_bytes!(column, |bytes| {
            let shape = Shape::of(&bytes, rows, nulls);
            let keys = ByteKeys { bytes, nulls, shape, collide };
            macro_rules! table {
                ($kind:ident, $buckets_per_key:expr) => {{
                    let Built { table, seed, groups, num_keys, null_group } =
                        build(&keys, rows, nulls, nulls_equal, $buckets_per_key, context)?;
                    let column = (shape.lanes == 0).then(|| column.clone());
                    let table = Tables::$kind(table);
                    let this = Self { table, shape, seed, collide, column, groups: groups.clone() };
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
        })
    }

    pub(super) fn memory_size(&self) -> usize {
        with_table!(&self.table, |table| table.memory_size(), |hashes| hashes.memory_size())
    }

    pub(super) fn probe(&self, column: &ArrayRef, start: usize, len: usize, hits: &mut Hits) {
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        let (shape, hash_of) = (self.shape, &hasher(self.shape, self.seed, self.collide));
        with_bytes!(column, |bytes| with_table!(
            &self.table,
            |table| hits.stages(start, len, |start, len, stage, out| {
                hash_keys(&bytes, nulls, shape, hash_of, start, len, stage);
                let (rows, hashes, numbers, candidates) = stage.wide_table();
                let key = |i: usize| lanes(numbers[i]);
                table.probe(hashes, key, |i| rows[i], |_, _| Ordering::Equal, candidates, out)
            }),
            |table| match &self.column {
                Some(build) => with_bytes!(build, |build| {
                    let compare = |group: u32, row: u32| {
                        build.value(self.groups.first_row(group) as usize).cmp(bytes.value(row as usize))
                    };
                    let equal = |group: u32, row: u32| {
                        build.value(self.groups.first_row(group) as usize) == bytes.value(row as usize)
                    };
                    hits.stages(start, len, |start, len, stage, out| {
                        hash_keys(&bytes, nulls, shape, hash_of, start, len, stage);
                        table.probe_verified(stage, equal, compare, out)
                    })
                }),
                None => debug_assert!(false, "a table of hashes without its keys"),
            }
        ))
    }
}
