//! Hash table over word keys: one fixed-width key of at most 8 bytes, or several packed into a word.

use std::cmp::Ordering;

use arrow_array::ArrayRef;

use super::hash;
use super::hash_build::{Built, build};
use super::hits::ProbeStage;
use super::partition::Source;
use super::stage::Stage;
use super::table::Table;
use super::words::{Words, has_nulls, null_rows};
use super::{Hits, IndexContext, RowGroups};
use crate::error::Result;

/// Buckets per key: more of them tell more absent keys from the directory alone, at 8 bytes each.
const BUCKETS_PER_KEY: f64 = 1.25;

/// A table of hashed words. The hash is a bijection, so it is stored in place of the word.
#[derive(Debug)]
pub(super) struct HashedIndex {
    pub(super) words: Words,
    pub(super) table: Table<2>,
    pub(super) seed: u64,
}

struct WordKeys<'a> {
    words: &'a Words,
    columns: &'a [ArrayRef],
}

#[inline(always)]
fn hash_words(words: &Words, columns: &[ArrayRef], seed: u64, start: usize, len: usize, stage: &mut Stage) {
    words.read(columns, start, len, stage);
    for word in stage.live_words_mut() {
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

    fn hash(&self, seed: u64, start: usize, len: usize, stage: &mut Stage) {
        hash_words(self.words, self.columns, seed, start, len, stage);
    }

    #[inline(always)]
    fn lanes(&self, hash: u64, _: u32) -> [u32; 2] {
        lanes(hash)
    }

    #[inline(always)]
    fn lanes_in(&self, stage: &Stage, i: usize) -> [u32; 2] {
        lanes(stage.live_words()[i])
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
    ) -> Result<(Self, RowGroups, usize, u32)> {
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
        hits.stages(start, len, &HashedProbe { index: self, columns });
    }
}

struct HashedProbe<'a> {
    index: &'a HashedIndex,
    columns: &'a [ArrayRef],
}

impl ProbeStage for HashedProbe<'_> {
    #[inline(always)]
    fn probe_stage(&self, start: usize, len: usize, stage: &mut Stage, out: (&mut [u32], &mut [u32])) -> usize {
        let HashedIndex { words, table, seed } = self.index;
        hash_words(words, self.columns, *seed, start, len, stage);
        let (rows, hashes, candidates) = stage.table();
        table.probe(hashes, |i| lanes(hashes[i]), |i| rows[i], |_, _| Ordering::Equal, candidates, out)
    }
}
