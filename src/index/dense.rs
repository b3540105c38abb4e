//! Perfect hash: a bitmap over the range of word keys, whose ranks are the group ids.

use arrow_array::ArrayRef;

use super::hits::ProbeStage;
use super::ranked_bits::{Bits, RankedBits, rank};
use super::scratch::{admitted, release};
use super::stage::Stage;
use super::words::{Words, null_rows};
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
    rows: usize,
    strictly_ascending: bool,
}

fn for_each_stage(
    words: &Words,
    columns: &[ArrayRef],
    context: &IndexContext<'_>,
    stage: &mut Stage,
    mut work: impl FnMut(&Stage),
) -> Result<()> {
    let rows = columns[0].len();
    for start in (0..rows).step_by(Stage::ROWS) {
        context.cancel.check()?;
        words.read(columns, start, Stage::ROWS.min(rows - start), stage);
        work(stage);
    }
    Ok(())
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
        let mut survey = Survey { min: u64::MAX, max: 0, rows: 0, strictly_ascending: true };
        for_each_stage(&words, columns, context, stage, |stage| {
            for &word in stage.live_words() {
                survey.strictly_ascending &= word > survey.max || survey.rows == 0;
                survey.min = survey.min.min(word);
                survey.max = survey.max.max(word);
                survey.rows += 1;
            }
        })?;
        let min = survey.min.min(survey.max);
        let span = survey.max - min;
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
        let groups = if survey.strictly_ascending && values == rows {
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
        context: &IndexContext<'_>,
        stage: &mut Stage,
        mut work: impl FnMut(u32, u32),
    ) -> Result<()> {
        for_each_stage(&self.words, columns, context, stage, |stage| {
            for (&row, &word) in stage.live_rows().iter().zip(stage.live_words()) {
                work(row, self.bits.rank(word - self.min).1);
            }
        })
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
        words.read(self.columns, start, len, stage);
        let (min, span, bits, words) = (*min, *span, bits.as_ref(), stage.live_words());
        steps::count(|| words.len());
        let (rows, groups) = (&mut rows[..words.len()], &mut groups[..words.len()]);
        let mut hits = 0;
        for (&row, &word) in stage.live_rows().iter().zip(words) {
            let value = word.wrapping_sub(min);
            let inside = value <= span;
            let (member, rank) = rank(bits, if inside { value } else { 0 });
            rows[hits] = row;
            groups[hits] = rank;
            hits += usize::from(member & inside);
        }
        hits
    }
}
