//! An index and its groups as numbers and buffers, the form in which files hold them; and the way back.
//!
//! A file may hold any bytes. What is restored from it is only used by safe code, or by code that checks it first. A number that
//! is out of range is found here where the file is verified, and otherwise by the bounds check of the access.

use arrow_array::ArrayRef;
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use arrow_schema::DataType;

use super::byte_column::is_bytes;
use super::bytes_index::{BytesIndex, KeyLengths, Tables};
use super::candidate::WINDOW;
use super::dense_index::DenseIndex;
use super::fixed_width::{Digit, Words, is_integer_like, is_word};
use super::frozen_table::FrozenTable;
use super::hashed_index::HashedIndex;
use super::key_chunk::KeyChunk;
use super::key_index::Structure;
use super::ranked_bits::RankedBits;
use super::rows_index::{EncodedKeys, Encoder, RowsIndex};
use super::{IndexKind, KeyIndex, KeyRows, NONE};
use crate::cancel::Cancel;
use crate::columns::LazyColumn;
use crate::error::{Error, Result};

/// A buffer of an index or of its groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexPart {
    /// The directory of a hash table: `u64` values.
    Directory,
    /// The tuples of a hash table: `u32` values.
    Tuples,
    /// The bitmap of a dense index: `u64` values.
    Bits,
    /// The start of each encoded key, and the end of the last: `u64` values.
    KeyOffsets,
    /// The encoded keys, one after the other.
    KeyBytes,
    /// The offsets of groups: `u32` values.
    GroupOffsets,
    /// The rows of groups: `u32` values.
    GroupRows,
}

impl IndexPart {
    pub(crate) const ALL: [IndexPart; 7] = [
        IndexPart::Directory,
        IndexPart::Tuples,
        IndexPart::Bits,
        IndexPart::KeyOffsets,
        IndexPart::KeyBytes,
        IndexPart::GroupOffsets,
        IndexPart::GroupRows,
    ];

    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            IndexPart::Directory => "directory",
            IndexPart::Tuples => "tuples",
            IndexPart::Bits => "bits",
            IndexPart::KeyOffsets => "key_offsets",
            IndexPart::KeyBytes => "key_bytes",
            IndexPart::GroupOffsets => "group_offsets",
            IndexPart::GroupRows => "group_rows",
        }
    }
}

/// An index and its groups as a file holds them.
#[derive(Debug)]
pub(crate) struct StoredIndex {
    pub(crate) kind: IndexKind,
    pub(crate) num_keys: usize,
    pub(crate) null_group: u32,
    /// The variant of [`KeyRows`]: 0 `Identity`, 1 `Unique`, 2 `Runs`, 3 `Csr`.
    pub(crate) groups: u8,
    /// Further numbers of the index, which and in which order depends on its kind.
    pub(crate) numbers: Vec<u64>,
    pub(crate) parts: Vec<(IndexPart, Buffer)>,
}

/// What is known of the build whose index is restored.
pub(crate) struct Indexed<'a> {
    /// The types in which the keys are indexed.
    pub(crate) types: &'a [DataType],
    pub(crate) nulls_equal: &'a [bool],
    pub(crate) rows: usize,
    /// The only key column in the type in which it is indexed, for an index that compares keys there.
    pub(crate) column: LazyColumn,
}

impl StoredIndex {
    /// Takes an index and its groups apart. The parts share its buffers.
    pub(crate) fn of(index: &KeyIndex, groups: &KeyRows) -> Self {
        let mut parts = Vec::new();
        let mut table = |directory: &ScalarBuffer<u64>, tuples: &ScalarBuffer<u32>| {
            parts.push((IndexPart::Directory, directory.inner().clone()));
            parts.push((IndexPart::Tuples, tuples.inner().clone()));
        };
        let mut numbers = Vec::new();
        match &index.structure {
            Structure::Dense(dense) => {
                numbers.extend([dense.min, dense.span]);
                write_words(&dense.words, &mut numbers);
                parts.push((IndexPart::Bits, dense.bits.0.inner().clone()));
            }
            Structure::Hashed(hashed) => {
                numbers.extend([hashed.seed, hashed.table.collide]);
                write_words(&hashed.words, &mut numbers);
                table(&hashed.table.directory, &hashed.table.tuples);
            }
            Structure::Bytes(bytes) => {
                numbers.extend([bytes.seed, bytes.collide, bytes.lengths.min as u64, bytes.lengths.max as u64]);
                match &bytes.table {
                    Tables::Hashes(FrozenTable { directory, tuples, .. }) => table(directory, tuples),
                    Tables::Two(FrozenTable { directory, tuples, .. }) => table(directory, tuples),
                    Tables::Three(FrozenTable { directory, tuples, .. }) => table(directory, tuples),
                    Tables::Four(FrozenTable { directory, tuples, .. }) => table(directory, tuples),
                }
            }
            Structure::Rows(rows) => {
                numbers.extend([rows.seed, rows.collide]);
                table(&rows.table.directory, &rows.table.tuples);
                parts.push((IndexPart::KeyOffsets, rows.keys.offsets.inner().clone()));
                parts.push((IndexPart::KeyBytes, rows.keys.data.inner().clone()));
            }
            Structure::Single => (),
        }
        let groups = match groups {
            KeyRows::Identity => 0,
            KeyRows::Unique { rows } => {
                parts.push((IndexPart::GroupRows, rows.inner().clone()));
                1
            }
            KeyRows::Runs { offsets } => {
                parts.push((IndexPart::GroupOffsets, offsets.inner().clone()));
                2
            }
            KeyRows::Csr { offsets, rows } => {
                parts.push((IndexPart::GroupOffsets, offsets.inner().clone()));
                parts.push((IndexPart::GroupRows, rows.inner().clone()));
                3
            }
        };
        let (kind, num_keys, null_group) = (index.kind(), index.num_keys, index.null_group);
        Self { kind, num_keys, null_group, groups, numbers, parts }
    }

    /// The index and its groups over the same buffers. `verify` is the cancel signal of checking every offset, group id and row
    /// number; without it, only the lengths of the buffers are checked.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the parts cannot be an index of such a build, [`Error::Cancelled`].
    pub(crate) fn restore(&self, of: &Indexed<'_>, verify: Option<&Cancel>) -> Result<(KeyIndex, KeyRows)> {
        let groups = self.restore_groups(of.rows)?;
        if let Some(cancel) = verify {
            check_groups(&groups, self.num_keys, of.rows, cancel)?;
        }
        let (structure, num_keys, null_group) =
            (self.restore_structure(of, &groups, verify)?, self.num_keys, self.null_group);
        Ok((KeyIndex { structure, num_keys, null_group }, groups))
    }

    fn restore_structure(&self, of: &Indexed<'_>, groups: &KeyRows, verify: Option<&Cancel>) -> Result<Structure> {
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
                let bits = self.part::<u64>(IndexPart::Bits)?;
                if !of.types.iter().all(is_integer_like) || bits.len() as u64 != span / 32 + 1 {
                    return Err(damaged("a bitmap that does not fit its keys"));
                }
                if has_null_group && self.null_group as usize != in_table {
                    return Err(damaged("a null group that is not the last"));
                }
                if let Some(cancel) = verify {
                    check_ranks(&bits, in_table, cancel)?;
                }
                Structure::Dense(DenseIndex { words, min, span, bits: RankedBits(bits) })
            }
            IndexKind::Hashed => {
                let (seed, collide) = (next()?, next()?);
                let words = read_words(of.types, &mut next)?;
                Structure::Hashed(HashedIndex { words, table: self.table(collide, in_table, verify)?, seed })
            }
            IndexKind::Bytes => {
                let (seed, collide) = (next()?, next()?);
                let length = |number: u64| usize::try_from(number).map_err(|_| damaged("a key length out of range"));
                let lengths = KeyLengths::new(length(next()?)?, length(next()?)?);
                if !single || !is_bytes(&of.types[0]) {
                    return Err(damaged("an index of byte keys over other keys"));
                }
                let table = match lengths.lanes {
                    0 => Tables::Hashes(self.table(collide, in_table, verify)?),
                    2 => Tables::Two(self.table(collide, in_table, verify)?),
                    3 => Tables::Three(self.table(collide, in_table, verify)?),
                    _ => Tables::Four(self.table(collide, in_table, verify)?),
                };
                let column = (lengths.lanes == 0).then(|| of.column.clone());
                Structure::Bytes(Box::new(BytesIndex { table, lengths, seed, collide, column, groups: groups.clone() }))
            }
            IndexKind::Rows => {
                let (seed, collide) = (next()?, next()?);
                let keys =
                    EncodedKeys { offsets: self.part(IndexPart::KeyOffsets)?, data: self.part(IndexPart::KeyBytes)? };
                if has_null_group || keys.offsets.len() != self.num_keys + 1 {
                    return Err(damaged("encoded keys of another number"));
                }
                if let Some(cancel) = verify {
                    check_offsets(&keys.offsets, keys.data.len(), false, cancel)?;
                }
                let encoder = Encoder::of_types(of.types.iter(), of.nulls_equal)?;
                let table = self.table(collide, in_table, verify)?;
                Structure::Rows(RowsIndex { encoder, table, seed, collide, keys })
            }
            IndexKind::Single if of.types.is_empty() && self.num_keys <= 1 && !has_null_group => Structure::Single,
            IndexKind::Single => return Err(damaged("an index of no keys over keys")),
        };
        match next() {
            Ok(_) => Err(damaged("numbers follow its end")),
            Err(_) => Ok(kind),
        }
    }

    fn restore_groups(&self, rows: usize) -> Result<KeyRows> {
        let per_key = |rows: ScalarBuffer<u32>, more: usize| match rows.len() == self.num_keys + more {
            true => Ok(rows),
            false => Err(damaged("groups of another number")),
        };
        Ok(match self.groups {
            0 if self.num_keys <= rows => KeyRows::Identity,
            1 => KeyRows::Unique { rows: per_key(self.part(IndexPart::GroupRows)?, 0)? },
            2 => KeyRows::Runs { offsets: per_key(self.part(IndexPart::GroupOffsets)?, 1)? },
            3 => {
                let offsets = per_key(self.part(IndexPart::GroupOffsets)?, 1)?;
                KeyRows::Csr { offsets, rows: self.part(IndexPart::GroupRows)? }
            }
            _ => return Err(damaged("groups of an unknown form")),
        })
    }

    fn table<const L: usize>(&self, collide: u64, keys: usize, verify: Option<&Cancel>) -> Result<FrozenTable<L>> {
        let table = FrozenTable::<L> {
            directory: self.part(IndexPart::Directory)?,
            tuples: self.part(IndexPart::Tuples)?,
            collide,
        };
        let tuples = keys.checked_add(WINDOW - 1).and_then(|tuples| tuples.checked_mul(L + 1));
        if table.directory.len() < 2 || tuples != Some(table.tuples.len()) {
            return Err(damaged("a hash table of another size"));
        }
        if let Some(cancel) = verify {
            check_table(&table, keys, self.num_keys, cancel)?;
        }
        Ok(table)
    }

    fn part<T: ArrowNativeType>(&self, part: IndexPart) -> Result<ScalarBuffer<T>> {
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
    /// The key column of the build, for an index that compares keys there.
    pub(crate) fn key_column(&self) -> Option<&LazyColumn> {
        match &self.structure {
            Structure::Bytes(bytes) => bytes.column.as_ref(),
            _ => None,
        }
    }

    /// Encodes a few keys anew and compares them with those that are stored, to notice where another version encodes them
    /// differently. `key` returns the key columns of one row.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a key that is encoded differently.
    pub(crate) fn check_encoding(&self, groups: &KeyRows, key: impl Fn(usize) -> Result<Vec<ArrayRef>>) -> Result<()> {
        const SAMPLES: usize = 8;
        let Structure::Rows(RowsIndex { encoder, keys, .. }) = &self.structure else { return Ok(()) };
        let mut chunk = KeyChunk::default();
        for group in (0..self.num_keys).step_by((self.num_keys / SAMPLES).max(1)) {
            let row = groups.first_row(group as u32) as usize;
            let encoded = encoder.encode(&key(row)?, 0, 1, &mut chunk)?;
            if encoded.key(0) != keys.value(group as u32) {
                return Err(damaged("its keys are encoded as this version does not; prepare and save the build again"));
            }
        }
        Ok(())
    }
}

fn damaged(what: &str) -> Error {
    Error::Damaged(format!("the index: {what}"))
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

/// Entries that are checked between two looks at the cancel signal.
const PIECE: usize = 1 << 18;

/// Whether `holds` is true for every piece of `values`. A piece is a number of whole entries of `width` values each, and
/// `overlap` values of the next piece. `holds` reads a piece to its end, so that its loop has no branches.
fn all_pieces<T>(
    values: &[T],
    (width, overlap): (usize, usize),
    cancel: &Cancel,
    mut holds: impl FnMut(&[T]) -> bool,
) -> Result<bool> {
    let piece = PIECE * width;
    for start in (0..values.len()).step_by(piece) {
        cancel.check()?;
        if !holds(&values[start..values.len().min(start + piece + overlap)]) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Checks that the running ranks of the bits are right, and that there are `members` of them.
fn check_ranks(words: &[u64], members: usize, cancel: &Cancel) -> Result<()> {
    let mut rank = 0u64;
    let right = all_pieces(words, (1, 0), cancel, |words| {
        words.iter().fold(true, |right, word| {
            let expected = rank;
            rank += u64::from((*word as u32).count_ones());
            right & (word >> 32 == expected)
        })
    })?;
    if right && rank == members as u64 { Ok(()) } else { Err(damaged("a rank of its bitmap is wrong")) }
}

/// Whether `in_order` is true for each of `numbers` and the next one.
fn all_in_order<T>(numbers: &[T], cancel: &Cancel, in_order: impl Fn(&T, &T) -> bool) -> Result<bool> {
    all_pieces(numbers, (1, 1), cancel, |numbers| {
        numbers.windows(2).fold(true, |all, pair| all & in_order(&pair[0], &pair[1]))
    })
}

/// Checks that offsets begin at 0, ascend (strictly, where nothing is empty) and end at `end`.
fn check_offsets<T: ArrowNativeType + Ord>(offsets: &[T], end: usize, strictly: bool, cancel: &Cancel) -> Result<()> {
    let ends = offsets.first().map(|first| first.as_usize()) == Some(0)
        && offsets.last().map(|last| last.as_usize()) == Some(end);
    let ascending = all_in_order(offsets, cancel, |a, b| if strictly { a < b } else { a <= b })?;
    if ends && ascending { Ok(()) } else { Err(damaged("an offset is out of order or out of range")) }
}

fn check_groups(groups: &KeyRows, keys: usize, rows: usize, cancel: &Cancel) -> Result<()> {
    let below = |numbers: &[u32], end: usize| {
        let most = |numbers: &[u32]| numbers.iter().fold(0, |most, &row| most.max(row));
        match all_pieces(numbers, (1, 0), cancel, |numbers| (most(numbers) as usize) < end)? {
            true => Ok(()),
            false => Err(damaged("a row number is out of range")),
        }
    };
    match groups {
        KeyRows::Identity => Ok(()),
        KeyRows::Unique { rows: first } => below(first, rows),
        KeyRows::Runs { offsets } => {
            let begins = offsets.first().map_or(0, |first| first.as_usize());
            let ascending = all_in_order(offsets, cancel, |a, b| a < b)?;
            let end = offsets.last().map_or(0, |last| last.as_usize());
            match ascending && begins <= end && end <= rows {
                true => Ok(()),
                false => Err(damaged("an offset is out of order or out of range")),
            }
        }
        KeyRows::Csr { offsets, rows: all } => {
            check_offsets(offsets, all.len(), true, cancel)?;
            debug_assert_eq!(offsets.len(), keys + 1);
            below(all, rows)
        }
    }
}

fn check_table<const L: usize>(table: &FrozenTable<L>, in_table: usize, keys: usize, cancel: &Cancel) -> Result<()> {
    let ends = &table.directory;
    let in_order = all_in_order(ends, cancel, |&before, &bucket| {
        // A bucket without tuples has no tag: the window of one behind the last tuple would end outside.
        let (start, end, tag) = (before as u32, bucket as u32, bucket >> 32);
        start < end || start == end && tag == 0
    })?;
    let (first, last) = (ends.first().map_or(1, |end| *end as u32), ends.last().map_or(0, |end| *end as u32));
    if !in_order || first != 0 || last as usize != in_table {
        return Err(damaged("a bucket of its hash table is out of range"));
    }
    let (tuples, window) = table.tuples.split_at(in_table * (L + 1));
    let groups = all_pieces(tuples, (L + 1, 0), cancel, |tuples| {
        tuples.chunks_exact(L + 1).fold(true, |below, tuple| below & ((tuple[L] as usize) < keys))
    })?;
    let past = window.chunks_exact(L + 1).all(|tuple| tuple[L] == NONE);
    if groups && past { Ok(()) } else { Err(damaged("a group of its hash table is out of range")) }
}
