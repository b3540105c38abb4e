//! The index of a build, whatever its kind.

use std::fmt;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::byte_column::is_bytes;
use super::bytes_index::BytesIndex;
use super::dense_index::DenseIndex;
use super::fixed_width::{Words, is_integer_like, is_word, null_rows};
use super::hashed_index::HashedIndex;
use super::key_chunk::KeyChunk;
use super::rows_index::RowsIndex;
use super::{Hits, IndexOptions, KeyRows, NONE};
use crate::cancel::Cancel;
use crate::columns::Bounds;
use crate::error::{Result, internal_err};
use crate::memory::Reservation;

/// The kind of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IndexKind {
    /// A bitmap over the range of integer keys; nothing is hashed.
    Dense,
    /// A hash table of fixed-width keys.
    Hashed,
    /// A hash table of byte keys.
    Bytes,
    /// A hash table of encoded keys, of any type and number.
    Rows,
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IndexKind::Dense => "dense",
            IndexKind::Hashed => "hashed",
            IndexKind::Bytes => "bytes",
            IndexKind::Rows => "rows",
        })
    }
}

/// The index of the distinct keys of a build. It never changes.
#[derive(Debug)]
pub struct KeyIndex {
    pub(super) structure: Structure,
    pub(super) num_keys: usize,
    /// Group of the rows whose only key is null, where null equals null; else [`NONE`].
    pub(super) null_group: u32,
}

/// The data structure of an index, of one [`IndexKind`] each.
#[derive(Debug)]
pub(super) enum Structure {
    Dense(DenseIndex),
    Hashed(HashedIndex),
    Bytes(Box<BytesIndex>),
    Rows(RowsIndex),
}

/// Options, memory and other inputs of [`KeyIndex::build`].
pub struct IndexContext<'a> {
    /// Which index is made.
    pub options: &'a IndexOptions,
    /// Pays for the memory of the finished index. Grows before each allocation, and is exact at the end.
    pub retained: &'a mut Reservation,
    /// Pays for memory that is needed only while the index is built.
    pub scratch: &'a mut Reservation,
    /// Least and greatest value of each key, where they are known; empty where none are.
    pub bounds: &'a [Option<Bounds>],
    /// Checked in every long loop.
    pub cancel: &'a Cancel,
}

impl KeyIndex {
    /// Indexes the rows of `keys`: one array per key column, all of the same length, with fewer than 2^32-1 rows. A row is in no
    /// group where a key is null whose entry in `nulls_equal` is false.
    ///
    /// # Errors
    /// Whatever the memory pool refuses, cancellation, and errors of Arrow. Both reservations are then what they were before.
    #[doc(hidden)]
    pub fn build(keys: &[ArrayRef], nulls_equal: &[bool], context: IndexContext<'_>) -> Result<(Self, KeyRows)> {
        context.cancel.check()?;
        let IndexContext { options, retained, scratch, bounds, cancel } = context;
        let (held, temporary) = (retained.size(), scratch.size());
        // Every step below reads the keys chunk by chunk, and no two chunks live at one time.
        let chunk = KeyChunk::size(keys.first().map_or(0, |key| key.len()));
        scratch.try_grow(chunk)?;
        let built = Self::choose(keys, nulls_equal, IndexContext { options, retained, scratch, bounds, cancel });
        debug_assert!(
            built.is_err() || scratch.size() == temporary + chunk,
            "scratch of an index build was not given back"
        );
        scratch.shrink(scratch.size() - temporary);
        match built {
            Ok((index, groups)) => {
                let size = index.memory_size() + groups.memory_size();
                debug_assert_eq!(retained.size() - held, size, "the index's charge is not what it holds");
                Ok((index, groups))
            }
            Err(error) => {
                retained.shrink(retained.size() - held);
                Err(error)
            }
        }
    }

    /// Chooses the kind of index, and builds it.
    fn choose(keys: &[ArrayRef], nulls_equal: &[bool], mut context: IndexContext<'_>) -> Result<(Self, KeyRows)> {
        let Some(first) = keys.first() else { return internal_err!("an index of no key columns") };
        if keys.iter().any(|key| key.len() != first.len()) || first.len() >= NONE as usize {
            return internal_err!("an index of {} rows in {} columns", first.len(), keys.len());
        }
        let mut chunk = KeyChunk::default();
        let words = match keys {
            [key] if is_word(key.data_type()) => Some(Words::Single),
            [_] => None,
            _ if keys.iter().all(|key| is_word(key.data_type())) => {
                Words::pack(keys, nulls_equal, context.bounds, &mut chunk, context.cancel)?
            }
            _ => None,
        };
        let new = |structure, num_keys, null_group| Self { structure, num_keys, null_group };
        if let Some(words) = words {
            if keys.iter().all(|key| is_integer_like(key.data_type()))
                && let Some((index, groups, num_keys, null_group)) =
                    DenseIndex::build(words.clone(), keys, nulls_equal[0], &mut chunk, &mut context)?
            {
                return Ok((new(Structure::Dense(index), num_keys, null_group), groups));
            }
            drop(chunk);
            let (index, groups, num_keys, null_group) = HashedIndex::build(words, keys, nulls_equal[0], context)?;
            return Ok((new(Structure::Hashed(index), num_keys, null_group), groups));
        }
        drop(chunk);
        if keys.len() == 1 && is_bytes(first.data_type()) {
            let (index, groups, num_keys, null_group) = BytesIndex::build(first, nulls_equal[0], context)?;
            return Ok((new(Structure::Bytes(Box::new(index)), num_keys, null_group), groups));
        }
        let (index, groups, num_keys) = RowsIndex::build(keys, nulls_equal, context)?;
        Ok((new(Structure::Rows(index), num_keys, NONE), groups))
    }

    /// The kind of this index.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{IndexKind, RunOptions};
    ///
    /// let users = record_batch!(("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users, &["name"], &RunOptions::default())?;
    /// assert_eq!(build.index().kind(), IndexKind::Bytes);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn kind(&self) -> IndexKind {
        match &self.structure {
            Structure::Dense(_) => IndexKind::Dense,
            Structure::Hashed(_) => IndexKind::Hashed,
            Structure::Bytes(_) => IndexKind::Bytes,
            Structure::Rows(_) => IndexKind::Rows,
        }
    }

    /// True where [`probe`](Self::probe) takes key column `key` in type `probe`: this is the type that was `indexed`, or for
    /// byte keys another layout of the same bytes.
    pub(crate) fn reads(&self, key: usize, indexed: &DataType, probe: &DataType) -> bool {
        use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
        let text = |data_type: &DataType| matches!(data_type, Utf8 | LargeUtf8 | Utf8View);
        let binary = |data_type: &DataType| matches!(data_type, Binary | LargeBinary | BinaryView);
        let forms = key == 0 && matches!(self.structure, Structure::Bytes(_));
        indexed == probe || forms && (text(indexed) && text(probe) || binary(indexed) && binary(probe))
    }

    /// Number of distinct indexed keys.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(build.index().num_keys(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn num_keys(&self) -> usize {
        self.num_keys
    }

    /// Heap bytes held.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(build.index().memory_size(), build.memory().index);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn memory_size(&self) -> usize {
        match &self.structure {
            Structure::Dense(index) => index.memory_size(),
            Structure::Hashed(index) => index.memory_size(),
            Structure::Bytes(index) => index.memory_size(),
            Structure::Rows(index) => index.memory_size(),
        }
    }

    /// Appends to `hits` the rows among `start..start + len` of `keys` whose key is indexed, ascending, with their group ids.
    ///
    /// `keys` has the types that the index was built with. A null matches only where null equals null.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Hits, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [5, 7]))?;
    /// let events = record_batch!(("id", Int64, [7, 9, 5]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let mut hits = Hits::default();
    /// build.index().probe(events.columns(), 0, 3, &mut hits)?;
    /// assert_eq!(hits.rows, [0, 2]);
    /// assert_ne!(hits.groups[0], hits.groups[1]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of Arrow while keys are encoded, and damage of a file that was opened without verification.
    pub fn probe(&self, keys: &[ArrayRef], start: usize, len: usize, hits: &mut Hits) -> Result<()> {
        let from = hits.rows.len();
        match &self.structure {
            Structure::Dense(index) => index.probe(keys, start, len, hits),
            Structure::Hashed(index) => index.probe(keys, start, len, hits),
            Structure::Bytes(index) => index.probe(&keys[0], start, len, hits)?,
            Structure::Rows(index) => index.probe(keys, start, len, hits)?,
        }
        if self.null_group != NONE
            && let Some(nulls) = null_rows(&keys[0])
        {
            let null_rows = (start..start + len).filter(|&row| nulls.is_null(row)).map(|row| row as u32);
            hits.merge(from, null_rows.clone(), null_rows.count(), self.null_group);
        }
        Ok(())
    }
}
