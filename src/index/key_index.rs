//! One front for all index kinds.

use std::fmt;

use arrow_array::ArrayRef;
use arrow_buffer::ScalarBuffer;

use super::rows::RowsIndex;
use super::{Hits, NONE, RowGroups};
use crate::cancel::Cancel;
use crate::config::Config;
use crate::error::Result;
use crate::memory::Reservation;

/// Which structure answers the keys of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IndexKind {
    /// Perfect hash: a bitmap over the range of the keys with a running rank.
    Dense,
    /// Hash table over fixed-width keys.
    Hashed,
    /// Hash table over byte keys.
    Bytes,
    /// Hash table over encoded keys of any type and number.
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

/// The frozen index of the distinct keys of a build.
#[derive(Debug)]
pub struct KeyIndex(Kind);

#[derive(Debug)]
enum Kind {
    Rows(RowsIndex),
}

/// What an index build may use.
pub struct IndexContext<'a> {
    /// Choices of the caller.
    pub config: &'a Config,
    /// Pays for what the finished index holds; grown before each allocation, exact at the end.
    pub retained: &'a mut Reservation,
    /// Pays for what is needed only while building.
    pub scratch: &'a mut Reservation,
    /// Polled in every long loop.
    pub cancel: &'a Cancel,
}

impl KeyIndex {
    /// Indexes the rows of `keys` (one array per key column, equally long, fewer than 2^32-1 rows). A row with a null in a
    /// key whose `nulls_equal` entry is false is indexed under no group.
    pub fn build(keys: &[ArrayRef], nulls_equal: &[bool], context: IndexContext<'_>) -> Result<(Self, RowGroups)> {
        context.cancel.check()?;
        let mut groups = Vec::with_capacity(keys[0].len());
        let index = RowsIndex::build(keys, nulls_equal, &mut groups)?;
        let num_keys = index.num_keys();
        let mut offsets = vec![0u32; num_keys + 1];
        for &g in groups.iter().filter(|&&g| g != NONE) {
            offsets[g as usize + 1] += 1;
        }
        for i in 0..num_keys {
            offsets[i + 1] += offsets[i];
        }
        let mut at = offsets.clone();
        let mut rows = vec![0u32; *offsets.last().unwrap_or(&0) as usize];
        for (row, &g) in groups.iter().enumerate().filter(|&(_, &g)| g != NONE) {
            rows[at[g as usize] as usize] = row as u32;
            at[g as usize] += 1;
        }
        let groups = if rows.len() == num_keys {
            RowGroups::Unique { rows: ScalarBuffer::from(rows) }
        } else {
            RowGroups::Csr { offsets: ScalarBuffer::from(offsets), rows: ScalarBuffer::from(rows) }
        };
        context.retained.try_grow(index.memory_size() + groups.memory_size())?;
        let _ = (context.config, context.scratch);
        Ok((Self(Kind::Rows(index)), groups))
    }

    /// Which structure this is.
    pub fn kind(&self) -> IndexKind {
        match &self.0 {
            Kind::Rows(_) => IndexKind::Rows,
        }
    }

    /// Number of distinct indexed keys.
    pub fn num_keys(&self) -> usize {
        match &self.0 {
            Kind::Rows(index) => index.num_keys(),
        }
    }

    /// Heap bytes held.
    pub fn memory_size(&self) -> usize {
        match &self.0 {
            Kind::Rows(index) => index.memory_size(),
        }
    }

    /// Appends to `hits` the rows of `start..start + len` of `keys` whose key is indexed, ascending, with their group ids.
    ///
    /// `keys` has the types that the index was built with. Rows with a null in a key whose nulls do not match never hit.
    pub fn probe(&self, keys: &[ArrayRef], start: usize, len: usize, hits: &mut Hits) -> Result<()> {
        match &self.0 {
            Kind::Rows(index) => index.probe(keys, start, len, hits),
        }
    }
}
