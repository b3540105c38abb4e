//! The dense index: a bitmap over the range of integer keys. The group id of a key is the number of keys below it.

use arrow_array::{Array, ArrayRef};

use super::allocate::{admitted, release, scratch_size};
use super::fixed_width::{Plain, Values, Words, null_rows, range};
use super::hits::ProbeChunk;
use super::key_chunk::KeyChunk;
use super::ranked_bits::{Bits, RankedBits, rank};
use super::{Hits, IndexContext, KeyRows, NONE, step_counter};
use crate::error::Result;

/// A bitmap from the smallest to the largest key.
#[derive(Debug)]
pub(super) struct DenseIndex {
    pub(super) words: Words,
    pub(super) min: u64,
    /// Largest key less the smallest.
    pub(super) span: u64,
    pub(super) bits: RankedBits,
}

/// What one pass over all keys finds out.
struct Survey {
    min: u64,
    max: u64,
    /// Number of rows that are indexed.
    rows: usize,
}

impl Survey {
    fn of(words: &Words, columns: &[ArrayRef], context: &IndexContext<'_>, chunk: &mut KeyChunk) -> Result<Self> {
        if let (Words::Single, [column]) = (words, columns) {
            let (min, max) = range(column, context.bounds.first().and_then(Option::as_ref), chunk, context.cancel)?;
            return Ok(Self { min, max, rows: column.len() - column.logical_null_count() });
        }
        let (mut min, mut max, mut rows) = (u64::MAX, 0, 0);
        for_each_chunk(words, columns, context, chunk, |chunk| {
            for &word in chunk.live_words() {
                min = min.min(word);
                max = max.max(word);
            }
            rows += chunk.live_words().len();
            true
        })?;
        Ok(Self { min: min.min(max), max, rows })
    }
}

/// Calls `work` with the words of each chunk of rows until it returns false. Returns whether it never did.
fn for_each_chunk(
    words: &Words,
    columns: &[ArrayRef],
    context: &IndexContext<'_>,
    chunk: &mut KeyChunk,
    mut work: impl FnMut(&KeyChunk) -> bool,
) -> Result<bool> {
    let rows = columns[0].len();
    for start in (0..rows).step_by(KeyChunk::ROWS) {
        context.cancel.check()?;
        words.read(columns, start, KeyChunk::ROWS.min(rows - start), chunk);
        if !work(chunk) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl DenseIndex {
    /// Builds the index. Returns it with the groups, the number of keys and the group of null, or `None` where the keys are not
    /// dense enough.
    pub(super) fn build(
        words: Words,
        columns: &[ArrayRef],
        nulls_equal: bool,
        chunk: &mut KeyChunk,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<(Self, KeyRows, usize, u32)>> {
        if context.config.perfect_hash_min_density > 1.0 {
            return Ok(None);
        }
        let rows = columns[0].len();
        let survey = Survey::of(&words, columns, context, chunk)?;
        let (min, span) = (survey.min, survey.max - survey.min);
        let enough = |keys: usize| {
            span < context.config.perfect_hash_small_range
                || keys as f64 / (span as f64 + 1.0) >= context.config.perfect_hash_min_density
        };
        if !enough(survey.rows) {
            return Ok(None);
        }
        let retained = context.retained.size();
        let mut bits = Bits::new(span, context.retained)?;
        for_each_chunk(&words, columns, context, chunk, |chunk| {
            for &word in chunk.live_words() {
                bits.insert(word - min);
            }
            true
        })?;
        let (bits, values) = bits.rank(context.cancel)?;
        if !enough(values) {
            context.retained.shrink(context.retained.size() - retained);
            return Ok(None);
        }
        let this = Self { words, min, span, bits };
        let nulls = match this.words {
            Words::Single if nulls_equal => null_rows(&columns[0]),
            _ => None,
        };
        // The rows with a null key are the last group.
        let null_group = nulls.as_ref().map_or(NONE, |_| values as u32);
        let num_keys = values + usize::from(nulls.is_some());
        let mut last = None;
        let mut ascending = |word: u64| last.replace(word).is_none_or(|last| last < word);
        let groups = if values == rows
            && for_each_chunk(&this.words, columns, context, chunk, |chunk| {
                chunk.live_words().iter().all(|&word| ascending(word))
            })? {
            KeyRows::Identity
        } else if values == survey.rows && nulls.is_none() {
            let mut unique: Vec<u32> = admitted(context.retained, values)?;
            this.for_each_group(columns, context, chunk, |row, group| unique[group as usize] = row)?;
            match unique.iter().zip(0..).all(|(&row, group)| row == group) {
                true => {
                    release(context.retained, unique);
                    KeyRows::Identity
                }
                false => KeyRows::Unique { rows: unique.into() },
            }
        } else {
            let mut group_of: Vec<u32> = admitted(context.scratch, rows)?;
            group_of.fill(NONE);
            this.for_each_group(columns, context, chunk, |row, group| group_of[row as usize] = group)?;
            if let Some(nulls) = &nulls {
                for (group, _) in group_of.iter_mut().zip(nulls.iter()).filter(|(_, valid)| !valid) {
                    *group = null_group;
                }
            }
            let groups = KeyRows::from_group_of(&group_of, num_keys, context.retained, context.cancel)?;
            release(context.scratch, group_of);
            groups
        };
        Ok(Some((this, groups, num_keys, null_group)))
    }

    fn for_each_group(
        &self,
        columns: &[ArrayRef],
        context: &mut IndexContext<'_>,
        chunk: &mut KeyChunk,
        mut work: impl FnMut(u32, u32),
    ) -> Result<()> {
        let rows = columns[0].len();
        let morsel = scratch_size(rows.min(KeyChunk::ROWS), 1, false)?;
        context.scratch.try_grow(morsel)?;
        let mut hits = Hits { chunk: std::mem::take(chunk), ..Hits::default() };
        for start in (0..rows).step_by(KeyChunk::ROWS) {
            context.cancel.check()?;
            hits.clear();
            self.probe(columns, start, KeyChunk::ROWS.min(rows - start), &mut hits);
            for (&row, &group) in hits.rows.iter().zip(&hits.groups) {
                work(row, group);
            }
        }
        *chunk = hits.chunk;
        context.scratch.shrink(morsel);
        Ok(())
    }

    pub(super) fn memory_size(&self) -> usize {
        self.bits.memory_size()
    }

    pub(super) fn probe(&self, columns: &[ArrayRef], start: usize, len: usize, hits: &mut Hits) {
        hits.probe_chunks(start, len, &DenseProbe { index: self, columns });
    }
}

struct DenseProbe<'a> {
    index: &'a DenseIndex,
    columns: &'a [ArrayRef],
}

impl ProbeChunk for DenseProbe<'_> {
    #[inline(always)]
    fn probe_chunk(
        &self,
        start: usize,
        len: usize,
        chunk: &mut KeyChunk,
        (rows, groups): (&mut [u32], &mut [u32]),
    ) -> usize {
        let DenseIndex { words, min, span, bits } = self.index;
        let (bits, span) = (bits.as_ref(), *span);
        if let (Words::Single, Some(plain)) = (words, Plain::of(&self.columns[0])) {
            let min = plain.value(*min);
            let first = start as u32;
            return match plain.values {
                Values::Wide(values) => {
                    let values = &values[start..start + len];
                    let (read, hits) = match chunk.candidates.avx512 {
                        Some(avx512) => {
                            step_counter::count(|| values.len());
                            avx512.dense(bits, (min, span), values, first, rows, groups)
                        }
                        None => (0, 0),
                    };
                    let rest = (first + read as u32..).zip(values[read..].iter().map(|value| value.wrapping_sub(min)));
                    hits + look_up(bits, span, rest, len - read, &mut rows[hits..], &mut groups[hits..])
                }
                Values::Signed(values) => {
                    let values = values[start..start + len].iter().map(|&value| (value as u64).wrapping_sub(min));
                    look_up(bits, span, (first..).zip(values), len, rows, groups)
                }
            };
        }
        words.read(self.columns, start, len, chunk);
        let values = chunk.live_words().iter().map(|word| word.wrapping_sub(*min));
        look_up(bits, span, chunk.live_rows().iter().copied().zip(values), chunk.live_words().len(), rows, groups)
    }
}

/// Writes the rows whose value is in the set, and their ranks, and returns their number.
#[inline(always)]
fn look_up(
    bits: &[u64],
    span: u64,
    keys: impl Iterator<Item = (u32, u64)>,
    len: usize,
    rows: &mut [u32],
    groups: &mut [u32],
) -> usize {
    step_counter::count(|| len);
    let (rows, groups) = (&mut rows[..len], &mut groups[..len]);
    let mut hits = 0;
    for (row, value) in keys {
        let inside = value <= span;
        let (member, rank) = rank(bits, if inside { value } else { 0 });
        rows[hits] = row;
        groups[hits] = rank;
        hits += usize::from(member & inside);
    }
    hits
}
