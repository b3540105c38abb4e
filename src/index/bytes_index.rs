//! The index of byte keys: a hash table that holds keys of up to 16 bytes itself. For longer keys it holds half of the hash, and
//! the keys are compared in the key column of the build.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;

use super::byte_column::{ByteColumn, Bytes, with_column};
use super::fixed_width::null_rows;
use super::frozen_table::FrozenTable;
use super::hash_build::{Built, build};
use super::hits::ProbeChunk;
use super::key_chunk::KeyChunk;
use super::partition::KeySource;
use super::{Hits, IndexContext, KeyRows, hash};
use crate::columns::LazyColumn;
use crate::error::Result;

/// A table of byte keys.
#[derive(Debug)]
pub(super) struct BytesIndex {
    pub(super) table: Tables,
    pub(super) lengths: KeyLengths,
    pub(super) seed: u64,
    pub(super) collide: u64,
    /// The key column of the build, where the table does not hold the keys.
    pub(super) column: Option<LazyColumn>,
    /// The groups of the build, to find a row of a group in `column`.
    pub(super) groups: KeyRows,
}

/// One table type for each number of 32-bit lanes per key.
#[derive(Debug)]
pub(super) enum Tables {
    /// One lane: half of the hash of a long key.
    Hashes(FrozenTable<1>),
    Two(FrozenTable<2>),
    Three(FrozenTable<3>),
    Four(FrozenTable<4>),
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

/// The range of the lengths of the build's keys, and how a key of such a length becomes a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyLengths {
    pub(super) min: usize,
    pub(super) max: usize,
    /// For each length, what is added to a key that was padded with zeros: the length in the last byte, unless all keys are of
    /// equal length.
    length_code: [u128; 17],
    /// Number of 32-bit lanes that hold a key, 0 where the keys are too long for the table.
    pub(super) lanes: usize,
}

impl KeyLengths {
    // Inlined, the loop would share its registers with the whole build and keep the range in memory.
    #[inline(never)]
    fn of(bytes: &impl ByteColumn, rows: usize, nulls: Option<&NullBuffer>) -> Self {
        let wider = |(min, max): (usize, usize), len: usize| (min.min(len), max.max(len));
        let (none, lengths) = ((usize::MAX, 0), bytes.slots(0, rows).map(|(_, _, len)| len));
        let (min, max) = match nulls {
            None => lengths.fold(none, wider),
            Some(nulls) => lengths.zip(nulls.iter()).filter_map(|(len, valid)| valid.then_some(len)).fold(none, wider),
        };
        Self::new(min, max)
    }

    /// The lengths of keys of `min` to `max` bytes.
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

    /// The number of a key whose length is within the range.
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
    lengths: KeyLengths,
    collide: u64,
}

/// A key that is shorter or longer than all build keys cannot be in the index; it is left out as a null is.
impl ByteKeys<'_> {
    /// Fills `chunk` with the rows whose key can be in the index, the keys as numbers, and their hashes.
    fn hash_numbers(&self, seed: u64, start: usize, len: usize, chunk: &mut KeyChunk) {
        let n = with_column!(&self.bytes, |bytes| match self.nulls {
            None => self.numbers(bytes, start, len, chunk, |_| true),
            Some(nulls) => self.numbers(bytes, start, len, chunk, |row| nulls.is_valid(row)),
        });
        let (_, hashes, numbers) = chunk.room(n);
        for (hash, &number) in hashes.iter_mut().zip(&*numbers) {
            *hash = hash::short(number, 0, seed);
        }
        if self.collide > 0 {
            hashes.iter_mut().for_each(|hash| *hash = hash::collide(*hash, self.collide));
        }
        chunk.keep(n);
    }

    /// Writes the rows whose key can be in the index and the numbers of their keys, and returns how many there are.
    #[inline(never)]
    fn numbers(
        &self,
        bytes: &impl ByteColumn,
        start: usize,
        len: usize,
        chunk: &mut KeyChunk,
        valid: impl Fn(usize) -> bool,
    ) -> usize {
        let (rows, _, numbers) = chunk.room(len);
        let KeyLengths { min, max, .. } = self.lengths;
        // `fold` looks at all slots, even after one that differs, so that the loop has no branches.
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
            let live = self.lengths.fits(len) & valid(row);
            rows[n] = row as u32;
            numbers[n] = self.lengths.number((data, at, if live { len } else { 0 }));
            n += usize::from(live);
        }
        n
    }

    /// Fills `chunk` with the rows whose key can be in the index, and the hashes of their keys.
    fn hash_long(&self, seed: u64, start: usize, len: usize, chunk: &mut KeyChunk) {
        with_column!(&self.bytes, |bytes| self.long(bytes, seed, start, len, chunk))
    }

    #[inline(never)]
    fn long(&self, bytes: &impl ByteColumn, seed: u64, start: usize, len: usize, chunk: &mut KeyChunk) {
        let (rows, hashes, _) = chunk.room(len);
        let mut n = 0;
        for (row, (data, at, len)) in (start..start + len).zip(bytes.slots(start, len)) {
            if self.lengths.fits(len) && self.nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                rows[n] = row as u32;
                hashes[n] = hash::collide(hash::bytes(&data[at..at + len], seed), self.collide);
                n += 1;
            }
        }
        chunk.keep(n);
    }
}

/// A table of one lane holds half a hash of each key, all others hold the keys as numbers.
impl<const L: usize> KeySource<L> for ByteKeys<'_> {
    fn all_live(&self) -> bool {
        self.nulls.is_none()
    }

    fn hash(&self, seed: u64, start: usize, len: usize, chunk: &mut KeyChunk) {
        match L {
            1 => self.hash_long(seed, start, len, chunk),
            _ => self.hash_numbers(seed, start, len, chunk),
        }
    }

    #[inline(always)]
    fn lanes(&self, hash: u64, row: u32) -> [u32; L] {
        match L {
            1 => lanes(hash.into()),
            _ => with_column!(&self.bytes, |bytes| lanes(self.lengths.number(bytes.slot(row as usize)))),
        }
    }

    #[inline(always)]
    fn lanes_in(&self, chunk: &KeyChunk, i: usize) -> [u32; L] {
        // Asked for each row: were `L` asked, the compiler would store lanes in pairs, with which the table's loop takes twice
        // the time.
        match self.lengths.lanes {
            0 => lanes(chunk.live_words()[i].into()),
            _ => lanes(chunk.wide()[i]),
        }
    }

    #[inline(always)]
    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.bytes.value(a as usize).cmp(self.bytes.value(b as usize))
    }
}

impl BytesIndex {
    /// Builds the index. Returns it with the groups, the number of keys and the group of null.
    pub(super) fn build(
        column: &ArrayRef,
        nulls_equal: bool,
        context: IndexContext<'_>,
    ) -> Result<(Self, KeyRows, usize, u32)> {
        let (rows, nulls, collide) = (column.len(), null_rows(column), context.options.collide);
        let nulls = nulls.as_ref();
        let bytes = Bytes::of(column);
        let lengths = with_column!(&bytes, |bytes| KeyLengths::of(bytes, rows, nulls));
        let keys = ByteKeys { bytes, nulls, lengths, collide };
        macro_rules! table {
            ($kind:ident, $buckets_per_key:expr) => {{
                let Built { table, seed, groups, num_keys, null_group } =
                    build(&keys, rows, nulls, nulls_equal, $buckets_per_key, context)?;
                let column = (lengths.lanes == 0).then(|| LazyColumn::from(column.clone()));
                let this = Self { table: Tables::$kind(table), lengths, seed, collide, column, groups: groups.clone() };
                Ok((this, groups, num_keys, null_group))
            }};
        }
        // With more buckets, more of the keys that are not indexed are recognised by the directory alone. The wider the tuples are,
        // the fewer buckets stay within 22 bytes per key.
        match lengths.lanes {
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
        let keys = ByteKeys { bytes: Bytes::of(column), nulls, lengths: self.lengths, collide: self.collide };
        let (seed, groups) = (self.seed, &self.groups);
        with_table!(&self.table, |table| hits.probe_chunks(start, len, &NumberProbe { keys, table, seed }), |table| {
            match &self.column {
                Some(build) => {
                    let build = Bytes::of(build.get()?);
                    hits.probe_chunks(start, len, &LongProbe { keys, table, seed, build, groups });
                }
                None => debug_assert!(false, "a table of hashes without its keys"),
            }
        });
        Ok(())
    }
}

struct NumberProbe<'a, const L: usize> {
    keys: ByteKeys<'a>,
    table: &'a FrozenTable<L>,
    seed: u64,
}

impl<const L: usize> ProbeChunk for NumberProbe<'_, L> {
    #[inline(always)]
    fn probe_chunk(&self, start: usize, len: usize, chunk: &mut KeyChunk, out: (&mut [u32], &mut [u32])) -> usize {
        self.keys.hash_numbers(self.seed, start, len, chunk);
        let (rows, hashes, numbers, candidates) = chunk.wide_table();
        self.table.probe(hashes, |i| lanes(numbers[i]), |i| rows[i], |_, _| Ordering::Equal, candidates, out)
    }
}

struct LongProbe<'a> {
    keys: ByteKeys<'a>,
    table: &'a FrozenTable<1>,
    seed: u64,
    build: Bytes<'a>,
    groups: &'a KeyRows,
}

impl ProbeChunk for LongProbe<'_> {
    #[inline(always)]
    fn probe_chunk(&self, start: usize, len: usize, chunk: &mut KeyChunk, out: (&mut [u32], &mut [u32])) -> usize {
        self.keys.hash_long(self.seed, start, len, chunk);
        let build = |group: u32| self.build.value(self.groups.first_row(group) as usize);
        let probe = |row: u32| self.keys.bytes.value(row as usize);
        let equal = |group, row| build(group) == probe(row);
        let touch = |group| build(group).first().copied().unwrap_or(0);
        self.table.probe_verified(chunk, touch, equal, |group, row| build(group).cmp(probe(row)), out)
    }
}
