//! An index and its groups as the numbers and buffers that a file holds, and back.
//!
//! A file may hold anything. Whatever is restored from it is used in safe code, or in code that checks it first: a number
//! out of range is found here where the file is verified, else by the check of the access.

use arrow_array::ArrayRef;
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use arrow_schema::DataType;

use super::byte_column::is_bytes;
use super::bytes::{BytesIndex, Shape, Tables};
use super::dense::DenseIndex;
use super::hashed::HashedIndex;
use super::key_index::Kind;
use super::ranked_bits::RankedBits;
use super::rows::{Encoder, Keys, RowsIndex};
use super::stage::Stage;
use super::table::{Table, WINDOW};
use super::words::{Digit, Words, is_integer_like, is_word};
use super::{IndexKind, KeyIndex, NONE, RowGroups};
use crate::columns::Column;
use crate::error::{Error, Result};

/// A buffer of an index or of its groups; the numbers are those of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Of a hash table: `u64` each.
    Directory = 16,
    /// Of a hash table: `u32` each.
    Tuples = 17,
    /// Of a perfect hash: `u64` each.
    Bits = 18,
    /// Where each encoded key begins, and the end: `u64` each.
    KeyOffsets = 19,
    /// Encoded keys.
    KeyBytes = 20,
    /// Of groups of several rows: `u32` each.
    GroupOffsets = 21,
    /// Rows of groups: `u32` each.
    GroupRows = 22,
}

impl Part {
    pub(crate) const ALL: [Part; 7] = [
        Part::Directory,
        Part::Tuples,
        Part::Bits,
        Part::KeyOffsets,
        Part::KeyBytes,
        Part::GroupOffsets,
        Part::GroupRows,
    ];
}

/// What a file holds of an index and its groups.
#[derive(Debug)]
pub(crate) struct StoredIndex {
    pub(crate) kind: IndexKind,
    pub(crate) num_keys: usize,
    pub(crate) null_group: u32,
    /// 0 identity, 1 unique, 2 runs, 3 offsets and rows.
    pub(crate) groups: u8,
    /// What else the kind needs, in its order.
    pub(crate) numbers: Vec<u64>,
    pub(crate) parts: Vec<(Part, Buffer)>,
}

/// The build that an index is of.
pub(crate) struct Indexed<'a> {
    /// Types of the keys as they are indexed.
    pub(crate) types: &'a [DataType],
    pub(crate) nulls_equal: &'a [bool],
    pub(crate) rows: usize,
    /// The only key column as it is indexed, for an index that reads it.
    pub(crate) column: Column,
}

impl StoredIndex {
    /// The parts of an index; they share its buffers.
    pub(crate) fn of(index: &KeyIndex, groups: &RowGroups) -> Self {
        let mut parts = Vec::new();
        let mut table = |directory: &ScalarBuffer<u64>, tuples: &ScalarBuffer<u32>| {
            parts.push((Part::Directory, directory.inner().clone()));
            parts.push((Part::Tuples, tuples.inner().clone()));
        };
        let mut numbers = Vec::new();
        match &index.kind {
            Kind::Dense(dense) => {
                numbers.extend([dense.min, dense.span]);
                write_words(&dense.words, &mut numbers);
                parts.push((Part::Bits, dense.bits.0.inner().clone()));
            }
            Kind::Hashed(hashed) => {
                numbers.extend([hashed.seed, hashed.table.collide]);
                write_words(&hashed.words, &mut numbers);
                table(&hashed.table.directory, &hashed.table.tuples);
            }
            Kind::Bytes(bytes) => {
                numbers.extend([bytes.seed, bytes.collide, bytes.shape.min as u64, bytes.shape.max as u64]);
                match &bytes.table {
                    Tables::Hashes(Table { directory, tuples, .. }) => table(directory, tuples),
                    Tables::Two(Table { directory, tuples, .. }) => table(directory, tuples),
                    Tables::Three(Table { directory, tuples, .. }) => table(directory, tuples),
                    Tables::Four(Table { directory, tuples, .. }) => table(directory, tuples),
                }
            }
            Kind::Rows(rows) => {
                numbers.extend([rows.seed, rows.collide]);
                table(&rows.table.directory, &rows.table.tuples);
                parts.push((Part::KeyOffsets, rows.keys.offsets.inner().clone()));
                parts.push((Part::KeyBytes, rows.keys.data.inner().clone()));
            }
        }
        let groups = match groups {
            RowGroups::Identity => 0,
            RowGroups::Unique { rows } => {
                parts.push((Part::GroupRows, rows.inner().clone()));
                1
            }
            RowGroups::Runs { offsets } => {
                parts.push((Part::GroupOffsets, offsets.inner().clone()));
                2
            }
            RowGroups::Csr { offsets, rows } => {
                parts.push((Part::GroupOffsets, offsets.inner().clone()));
                parts.push((Part::GroupRows, rows.inner().clone()));
                3
            }
        };
        let (kind, num_keys, null_group) = (index.kind(), index.num_keys, index.null_group);
        Self { kind, num_keys, null_group, groups, numbers, parts }
    }

    /// The index over the same buffers, and its groups. With `verify` every offset, group id and row number is checked;
    /// without, the lengths alone.
    ///
    /// # Errors
    /// [`Error::Execution`] for parts that do not make an index of such a build.
    pub(crate) fn restore(&self, of: &Indexed<'_>, verify: bool) -> Result<(KeyIndex, RowGroups)> {
        let groups = self.restore_groups(of.rows)?;
        if verify {
            check_groups(&groups, self.num_keys, of.rows)?;
        }
        let (kind, num_keys, null_group) = (self.restore_kind(of, &groups, verify)?, self.num_keys, self.null_group);
        Ok((KeyIndex { kind, num_keys, null_group }, groups))
    }

    fn restore_kind(&self, of: &Indexed<'_>, groups: &RowGroups, verify: bool) -> Result<Kind> {
        let single = of.types.len() == 1;
        let has_null_group = self.null_group != NONE;
        let in_table = self.num_keys.checked_sub(usize::from(has_null_group)).ok_or_else(|| damaged("no keys"))?;
        if has_null_group && (self.null_group as usize >= self.num_keys || !single || !of.nulls_equal[0]) {
            return Err(damaged("a group of null keys where there can be none"));
        }
        let mut numbers = self.numbers.iter().copied();
        let mut next = || numbers.next().ok_or_else(|| damaged("its numbers end early"));
        let kind = match self.kind {
            IndexKind::Dense => {
                let (min, span) = (next()?, next()?);
                let words = read_words(of.types, &mut next)?;
                let bits = self.part::<u64>(Part::Bits)?;
                if !of.types.iter().all(is_integer_like) || bits.len() as u64 != span / 32 + 1 {
                    return Err(damaged("a bitmap that does not fit its keys"));
                }
                if has_null_group && self.null_group as usize != in_table {
                    return Err(damaged("a null group that is not the last"));
                }
                if verify {
                    check_ranks(&bits, in_table)?;
                }
                Kind::Dense(DenseIndex { words, min, span, bits: RankedBits(bits) })
            }
            IndexKind::Hashed => {
                let (seed, collide) = (next()?, next()?);
                let words = read_words(of.types, &mut next)?;
                Kind::Hashed(HashedIndex { words, table: self.table(collide, in_table, verify)?, seed })
            }
            IndexKind::Bytes => {
                let (seed, collide) = (next()?, next()?);
                let length = |number: u64| usize::try_from(number).map_err(|_| damaged("a key length out of range"));
                let shape = Shape::new(length(next()?)?, length(next()?)?);
                if !single || !is_bytes(&of.types[0]) {
                    return Err(damaged("an index of byte keys over other keys"));
                }
                let table = match shape.lanes {
                    0 => Tables::Hashes(self.table(collide, in_table, verify)?),
                    2 => Tables::Two(self.table(collide, in_table, verify)?),
                    3 => Tables::Three(self.table(collide, in_table, verify)?),
                    _ => Tables::Four(self.table(collide, in_table, verify)?),
                };
                let column = (shape.lanes == 0).then(|| of.column.clone());
                Kind::Bytes(Box::new(BytesIndex { table, shape, seed, collide, column, groups: groups.clone() }))
            }
            IndexKind::Rows => {
                let (seed, collide) = (next()?, next()?);
                let keys = Keys { offsets: self.part(Part::KeyOffsets)?, data: self.part(Part::KeyBytes)? };
                if has_null_group || keys.offsets.len() != self.num_keys + 1 {
                    return Err(damaged("encoded keys of another number"));
                }
                if verify {
                    check_offsets(&keys.offsets, keys.data.len(), false)?;
                }
                let encoder = Encoder::of_types(of.types.iter(), of.nulls_equal)?;
                let table = self.table(collide, in_table, verify)?;
                Kind::Rows(RowsIndex { encoder, table, seed, collide, keys })
            }
        };
        match next() {
            Ok(_) => Err(damaged("numbers follow its end")),
            Err(_) => Ok(kind),
        }
    }

    fn restore_groups(&self, rows: usize) -> Result<RowGroups> {
        let per_key = |rows: ScalarBuffer<u32>, more: usize| match rows.len() == self.num_keys + more {
            true => Ok(rows),
            false => Err(damaged("groups of another number")),
        };
        Ok(match self.groups {
            0 if self.num_keys <= rows => RowGroups::Identity,
            1 => RowGroups::Unique { rows: per_key(self.part(Part::GroupRows)?, 0)? },
            2 => RowGroups::Runs { offsets: per_key(self.part(Part::GroupOffsets)?, 1)? },
            3 => {
                let offsets = per_key(self.part(Part::GroupOffsets)?, 1)?;
                RowGroups::Csr { offsets, rows: self.part(Part::GroupRows)? }
            }
            _ => return Err(damaged("groups of an unknown form")),
        })
    }

    fn table<const L: usize>(&self, collide: u64, keys: usize, verify: bool) -> Result<Table<L>> {
        let table = Table::<L> { directory: self.part(Part::Directory)?, tuples: self.part(Part::Tuples)?, collide };
        let tuples = keys.checked_add(WINDOW - 1).and_then(|tuples| tuples.checked_mul(L + 1));
        if table.directory.len() < 2 || tuples != Some(table.tuples.len()) {
            return Err(damaged("a hash table of another size"));
        }
        if verify {
            check_table(&table, keys, self.num_keys)?;
        }
        Ok(table)
    }

    fn part<T: ArrowNativeType>(&self, part: Part) -> Result<ScalarBuffer<T>> {
        let found = self.parts.iter().find(|(found, _)| *found == part).map(|(_, buffer)| buffer);
        let fits = |buffer: &&Buffer| {
            buffer.len().is_multiple_of(size_of::<T>()) && (buffer.as_ptr() as usize).is_multiple_of(align_of::<T>())
        };
        match found.filter(fits) {
            Some(buffer) => Ok(buffer.clone().into()),
            None => Err(damaged("a part is missing or cut")),
        }
    }
}

impl KeyIndex {
    /// The build's key column, for an index that reads it.
    pub(crate) fn key_column(&self) -> Option<&Column> {
        match &self.kind {
            Kind::Bytes(bytes) => bytes.column.as_ref(),
            _ => None,
        }
    }

    /// Compares a few stored keys with what this version makes of them: an encoding that changed shows here. `key` gives
    /// the key columns of one row.
    ///
    /// # Errors
    /// [`Error::Execution`] for a key that is encoded otherwise.
    pub(crate) fn check_encoding(
        &self,
        groups: &RowGroups,
        key: impl Fn(usize) -> Result<Vec<ArrayRef>>,
    ) -> Result<()> {
        const SAMPLES: usize = 8;
        let Kind::Rows(RowsIndex { encoder, keys, .. }) = &self.kind else { return Ok(()) };
        let mut stage = Stage::default();
        for group in (0..self.num_keys).step_by((self.num_keys / SAMPLES).max(1)) {
            let row = groups.first_row(group as u32) as usize;
            let encoded = encoder.encode(&key(row)?, 0, 1, &mut stage)?;
            if encoded.key(0) != keys.value(group as u32) {
                return Err(damaged("its keys are encoded as this version does not; prepare and save the build again"));
            }
        }
        Ok(())
    }
}

fn damaged(what: &str) -> Error {
    Error::Execution(format!("the index: {what}"))
}

fn write_words(words: &Words, numbers: &mut Vec<u64>) {
    if let Words::Packed(digits) = words {
        for Digit { min, span, null, factor } in digits {
            numbers.extend([*min, *span, u64::from(null.is_some()), null.unwrap_or(0), *factor]);
        }
    }
}

fn read_words(types: &[DataType], next: &mut impl FnMut() -> Result<u64>) -> Result<Words> {
    if !types.iter().all(is_word) {
        return Err(damaged("an index of words over other keys"));
    }
    if types.len() == 1 {
        return Ok(Words::Single);
    }
    let mut digit = || {
        let (min, span, has_null, null, factor) = (next()?, next()?, next()?, next()?, next()?);
        Ok(Digit { min, span, null: (has_null != 0).then_some(null), factor })
    };
    Ok(Words::Packed(types.iter().map(|_| digit()).collect::<Result<_>>()?))
}

/// Bits whose running ranks are right, `members` in all.
fn check_ranks(words: &[u64], members: usize) -> Result<()> {
    let mut rank = 0u64;
    let mut right = true;
    for word in words {
        right &= word >> 32 == rank;
        rank += u64::from((*word as u32).count_ones());
    }
    if right && rank == members as u64 { Ok(()) } else { Err(damaged("a rank of its bitmap is wrong")) }
}

/// Offsets that begin at 0, ascend (strictly, where nothing is empty) and end at `end`.
fn check_offsets<T: ArrowNativeType + Ord>(offsets: &[T], end: usize, strictly: bool) -> Result<()> {
    let ends = offsets.first().map(|first| first.as_usize()) == Some(0)
        && offsets.last().map(|last| last.as_usize()) == Some(end);
    // No early end, so that the loop has no branches.
    let ascending = offsets
        .windows(2)
        .fold(true, |ascending, pair| ascending & (if strictly { pair[0] < pair[1] } else { pair[0] <= pair[1] }));
    if ends && ascending { Ok(()) } else { Err(damaged("an offset is out of order or out of range")) }
}

fn check_groups(groups: &RowGroups, keys: usize, rows: usize) -> Result<()> {
    let below = |numbers: &[u32], end: usize| match numbers.iter().fold(0, |most, &row| most.max(row)) {
        most if (most as usize) < end || numbers.is_empty() => Ok(()),
        _ => Err(damaged("a row number is out of range")),
    };
    match groups {
        RowGroups::Identity => Ok(()),
        RowGroups::Unique { rows: first } => below(first, rows),
        RowGroups::Runs { offsets } => {
            let begins = offsets.first().map_or(0, |first| first.as_usize());
            let ascending = offsets.windows(2).fold(true, |ascending, pair| ascending & (pair[0] < pair[1]));
            let end = offsets.last().map_or(0, |last| last.as_usize());
            match ascending && begins <= end && end <= rows {
                true => Ok(()),
                false => Err(damaged("an offset is out of order or out of range")),
            }
        }
        RowGroups::Csr { offsets, rows: all } => {
            check_offsets(offsets, all.len(), true)?;
            debug_assert_eq!(offsets.len(), keys + 1);
            below(all, rows)
        }
    }
}

fn check_table<const L: usize>(table: &Table<L>, in_table: usize, keys: usize) -> Result<()> {
    let ends = &table.directory;
    let in_order = ends.windows(2).fold(true, |in_order, pair| {
        // A bucket without tuples has no tag: the window of one behind the last tuple would end outside.
        let (start, end, tag) = (pair[0] as u32, pair[1] as u32, pair[1] >> 32);
        in_order & (start < end || start == end && tag == 0)
    });
    let (first, last) = (ends.first().map_or(1, |end| *end as u32), ends.last().map_or(0, |end| *end as u32));
    if !in_order || first != 0 || last as usize != in_table {
        return Err(damaged("a bucket of its hash table is out of range"));
    }
    let (tuples, window) = table.tuples.split_at(in_table * (L + 1));
    let groups = tuples.chunks_exact(L + 1).fold(true, |below, tuple| below & ((tuple[L] as usize) < keys));
    let past = window.chunks_exact(L + 1).all(|tuple| tuple[L] == NONE);
    if groups && past { Ok(()) } else { Err(damaged("a group of its hash table is out of range")) }
}
