//! The index of fixed-width keys: a hash table of words. A word is one key of at most 8 bytes, or several keys packed into 8
//! bytes.

use std::cmp::Ordering;

use arrow_array::ArrayRef;

use super::fixed_width::{Words, has_nulls, null_rows};
use super::frozen_table::FrozenTable;
use super::hash;
use super::hash_build::{Built, build};
use super::hits::ProbeChunk;
use super::key_chunk::KeyChunk;
use super::partition::Source;
use super::{Hits, IndexContext, KeyRows};
use crate::error::Result;

/// With more buckets, more of the keys that are not indexed are recognised by the directory alone. Each takes 8 bytes.
const BUCKETS_PER_KEY: f64 = 1.25;

/// A table of hashed words. Different words have different hashes, so the table holds the hash in place of the word.
#[derive(Debug)]
pub(super) struct HashedIndex {
    pub(super) words: Words,
    pub(super) table: FrozenTable<2>,
    pub(super) seed: u64,
}

struct WordKeys<'a> {
    words: &'a Words,
    columns: &'a [ArrayRef],
}

#[inline(always)]
fn hash_words(words: &Words, columns: &[ArrayRef], seed: u64, start: usize, len: usize, chunk: &mut KeyChunk) {
    words.read(columns, start, len, chunk);
    for word in chunk.live_words_mut() {
        *word = hash::word(*word, seed);
    }
}

#[inline(always)]
fn lanes(hash: u64) -> [u32; 2] {
    [hash as u32, (hash >> 32) as u32]
}

impl Source<2> for WordKeys<'_> {
    fn all_live(&self) -> bool {
        !self.columns.iter().any(|column| has_nulls(column))
    }

    fn hash(&self, seed: u64, start: usize, len: usize, chunk: &mut KeyChunk) {
        hash_words(self.words, self.columns, seed, start, len, chunk);
    }

    #[inline(always)]
    fn lanes(&self, hash: u64, _: u32) -> [u32; 2] {
        lanes(hash)
    }

    #[inline(always)]
    fn lanes_in(&self, chunk: &KeyChunk, i: usize) -> [u32; 2] {
        lanes(chunk.live_words()[i])
    }

    #[inline(always)]
    fn compare(&self, _: u32, _: u32) -> Ordering {
        Ordering::Equal
    }
}

impl HashedIndex {
    pub(super) fn build(
        words: Words,
        columns: &[ArrayRef],
        nulls_equal: bool,
        context: IndexContext<'_>,
    ) -> Result<(Self, KeyRows, usize, u32)> {
        // A packed word has a code for null where null equals null.
        let nulls = if let Words::Single = words { null_rows(&columns[0]) } else { None };
        let source = WordKeys { words: &words, columns };
        let Built { table, seed, groups, num_keys, null_group } =
            build(&source, columns[0].len(), nulls.as_ref(), nulls_equal, BUCKETS_PER_KEY, context)?;
        Ok((Self { words, table, seed }, groups, num_keys, null_group))
    }

    pub(super) fn memory_size(&self) -> usize {
        self.table.memory_size()
    }

    pub(super) fn probe(&self, columns: &[ArrayRef], start: usize, len: usize, hits: &mut Hits) {
        hits.probe_chunks(start, len, &HashedProbe { index: self, columns });
    }
}

struct HashedProbe<'a> {
    index: &'a HashedIndex,
    columns: &'a [ArrayRef],
}

impl ProbeChunk for HashedProbe<'_> {
    #[inline(always)]
    fn probe_chunk(&self, start: usize, len: usize, chunk: &mut KeyChunk, out: (&mut [u32], &mut [u32])) -> usize {
        let HashedIndex { words, table, seed } = self.index;
        hash_words(words, self.columns, *seed, start, len, chunk);
        let (rows, hashes, candidates) = chunk.table();
        table.probe(hashes, |i| lanes(hashes[i]), |i| rows[i], |_, _| Ordering::Equal, candidates, out)
    }
}
