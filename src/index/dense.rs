//! Perfect hash: a bitmap over the range of word keys, whose ranks are the group ids.

use arrow_array::{Array, ArrayRef};

use super::hits::ProbeStage;
use super::ranked_bits::{Bits, RankedBits, rank};
use super::scratch::{admitted, release, scratch_size};
use super::stage::Stage;
use super::words::{Plain, Values, Words, null_rows, range};
use super::{Hits, IndexContext, NONE, RowGroups, steps};
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

/// What one look at all keys tells.
struct Survey {
    min: u64,
    max: u64,
    /// Rows that are indexed.
    rows: usize,
}

impl Survey {
    fn of(words: &Words, columns: &[ArrayRef], context: &IndexContext<'_>, stage: &mut Stage) -> Result<Self> {
        if let (Words::Single, [column]) = (words, columns) {
            let (min, max) = range(column, context.bounds.first().and_then(Option::as_ref), stage, context.cancel)?;
            return Ok(Self { min, max, rows: column.len() - column.logical_null_count() });
        }
        let (mut min, mut max, mut rows) = (u64::MAX, 0, 0);
        for_each_stage(words, columns, context, stage, |stage| {
            for &word in stage.live_words() {
                min = min.min(word);
                max = max.max(word);
            }
            rows += stage.live_words().len();
            true
        })?;
        Ok(Self { min: min.min(max), max, rows })
    }
}

/// Reads all keys, stage by stage, until `work` says to stop; returns whether it never did.
fn for_each_stage(
    words: &Words,
    columns: &[ArrayRef],
    context: &IndexContext<'_>,
    stage: &mut Stage,
    mut work: impl FnMut(&Stage) -> bool,
) -> Result<bool> {
    let rows = columns[0].len();
    for start in (0..rows).step_by(Stage::ROWS) {
        context.cancel.check()?;
        words.read(columns, start, Stage::ROWS.min(rows - start), stage);
        if !work(stage) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl DenseIndex {
    /// Builds the index and answers it with the groups, the number of keys and the group of null; `None` where the keys are
    /// not dense enough.
    pub(super) fn build(
        words: Words,
        columns: &[ArrayRef],
        nulls_equal: bool,
        stage: &mut Stage,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<(Self, RowGroups, usize, u32)>> {
        if context.config.perfect_hash_min_density > 1.0 {
            return Ok(None);
        }
        let rows = columns[0].len();
        let survey = Survey::of(&words, columns, context, stage)?;
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
        for_each_stage(&words, columns, context, stage, |stage| {
            for &word in stage.live_words() {
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
        // Null is the last group.
        let null_group = nulls.as_ref().map_or(NONE, |_| values as u32);
        let num_keys = values + usize::from(nulls.is_some());
        let mut last = None;
        let mut ascending = |word: u64| last.replace(word).is_none_or(|last| last < word);
        let groups = if values == rows
            && for_each_stage(&this.words, columns, context, stage, |stage| {
                stage.live_words().iter().all(|&word| ascending(word))
            })? {
            RowGroups::Identity
        } else if values == survey.rows && nulls.is_none() {
            let mut unique: Vec<u32> = admitted(context.retained, values)?;
            this.for_each_group(columns, context, stage, |row, group| unique[group as usize] = row)?;
            match unique.iter().zip(0..).all(|(&row, group)| row == group) {
                true => {
                    release(context.retained, unique);
                    RowGroups::Identity
                }
                false => RowGroups::Unique { rows: unique.into() },
            }
        } else {
            let mut group_of: Vec<u32> = admitted(context.scratch, rows)?;
            group_of.fill(NONE);
            this.for_each_group(columns, context, stage, |row, group| group_of[row as usize] = group)?;
            if let Some(nulls) = &nulls {
                for (group, _) in group_of.iter_mut().zip(nulls.iter()).filter(|(_, valid)| !valid) {
                    *group = null_group;
                }
            }
            let groups = RowGroups::from_group_of(&group_of, num_keys, context.retained, context.cancel)?;
            release(context.scratch, group_of);
            groups
        };
        Ok(Some((this, groups, num_keys, null_group)))
    }

    fn for_each_group(
        &self,
        columns: &[ArrayRef],
        context: &mut IndexContext<'_>,
        stage: &mut Stage,
        mut work: impl FnMut(u32, u32),
    ) -> Result<()> {
        let rows = columns[0].len();
        let morsel = scratch_size(rows.min(Stage::ROWS), 1, false)?;
        context.scratch.try_grow(morsel)?;
        let mut hits = Hits { stage: std::mem::take(stage), ..Hits::default() };
        for start in (0..rows).step_by(Stage::ROWS) {
            context.cancel.check()?;
            hits.clear();
            self.probe(columns, start, Stage::ROWS.min(rows - start), &mut hits);
            for (&row, &group) in hits.rows.iter().zip(&hits.groups) {
                work(row, group);
            }
        }
        *stage = hits.stage;
        context.scratch.shrink(morsel);
        Ok(())
    }

    pub(super) fn memory_size(&self) -> usize {
        self.bits.memory_size()
    }

    pub(super) fn probe(&self, columns: &[ArrayRef], start: usize, len: usize, hits: &mut Hits) {
        hits.stages(start, len, &DenseProbe { index: self, columns });
    }
}

struct DenseProbe<'a> {
    index: &'a DenseIndex,
    columns: &'a [ArrayRef],
}

impl ProbeStage for DenseProbe<'_> {
    #[inline(always)]
    fn probe_stage(
        &self,
        start: usize,
        len: usize,
        stage: &mut Stage,
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
                    let (read, hits) = match stage.candidates.is_wide {
                        true => self.wide_look_up((min, span), values, first, rows, groups),
                        false => (0, 0),
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
        words.read(self.columns, start, len, stage);
        let values = stage.live_words().iter().map(|word| word.wrapping_sub(*min));
        look_up(bits, span, stage.live_rows().iter().copied().zip(values), stage.live_words().len(), rows, groups)
    }
}

impl DenseProbe<'_> {
    /// Looks up as many of `values` as it can at once: how many, and how many are hits.
    #[inline(always)]
    fn wide_look_up(
        &self,
        (min, span): (u64, u64),
        values: &[u64],
        first: u32,
        rows: &mut [u32],
        groups: &mut [u32],
    ) -> (usize, usize) {
        steps::count(|| values.len());
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller found that the processor has the features.
        return unsafe { super::avx512::dense(self.index.bits.as_ref(), (min, span), values, first, rows, groups) };
        #[cfg(not(target_arch = "x86_64"))]
        (0, 0)
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
    steps::count(|| len);
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
