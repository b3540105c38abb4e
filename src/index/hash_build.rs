//! Builds a hash table and the row groups of its keys, whatever the keys are.

use arrow_buffer::NullBuffer;

use super::hash::{SEEDS, seed};
use super::partition::{Distinct, Source, hash_of, identity, row_of};
use super::ranked_bits::{Bits, RankedBits};
use super::scratch::{release, with_capacity};
use super::table::Table;
use super::{IndexContext, NONE, RowGroups};
use crate::error::Result;

/// What became of the keys of a build.
pub(super) struct Built<const L: usize> {
    pub(super) table: Table<L>,
    pub(super) seed: u64,
    pub(super) groups: RowGroups,
    pub(super) num_keys: usize,
    /// Group of the rows whose only key is null, or `NONE`.
    pub(super) null_group: u32,
}

/// Builds the table of the keys of `rows` rows. `nulls` are the rows of the only key column that are null, and
/// `nulls_equal` tells whether they form a group. Groups are numbered in the order in which they first appear.
pub(super) fn build<const L: usize>(
    source: &impl Source<L>,
    rows: usize,
    nulls: Option<&NullBuffer>,
    nulls_equal: bool,
    buckets_per_key: f64,
    mut context: IndexContext<'_>,
) -> Result<Built<L>> {
    let context = &mut context;
    let retained = context.retained.size();
    let null_count = nulls.map_or(0, NullBuffer::null_count);
    let group_nulls = nulls.filter(|_| nulls_equal);
    let first_null = group_nulls.and_then(|nulls| nulls.iter().position(|valid| !valid));
    for attempt in 0..SEEDS {
        let (seed, last) = (seed(attempt), attempt + 1 == SEEDS);
        let Some(distinct) = Distinct::find(source, seed, rows, rows - null_count, last, context)? else { continue };
        let num_keys = distinct.len() + usize::from(first_null.is_some());
        let ranks = match num_keys == rows {
            true => None,
            false => Some(first_rows(&distinct, first_null, rows, context)?),
        };
        let group = |row: u32| ranks.as_ref().map_or(row, |ranks| ranks.rank(row.into()).1);
        let lanes = |entry: &_| source.lanes(hash_of(entry), row_of(entry));
        let Some(table) = Table::freeze(&distinct, lanes, group, buckets_per_key, last, context)? else {
            distinct.release(context);
            context.scratch.shrink(ranks.map_or(0, |ranks| ranks.memory_size()));
            context.retained.shrink(context.retained.size() - retained);
            continue;
        };
        let null_group = first_null.map_or(NONE, |row| group(row as u32));
        let first_of = distinct.into_first_of(context);
        let groups = match ranks {
            None => RowGroups::Identity,
            Some(ranks) => {
                let groups = row_groups(&ranks, first_of, group_nulls, rows, num_keys, context)?;
                context.scratch.shrink(ranks.memory_size());
                groups
            }
        };
        return Ok(Built { table, seed, groups, num_keys, null_group });
    }
    crate::error::internal_err!("an index was neither built nor refused after {SEEDS} hash functions")
}

/// The first rows of all groups. Their ranks are the group ids.
fn first_rows(
    distinct: &Distinct,
    first_null: Option<usize>,
    rows: usize,
    context: &mut IndexContext<'_>,
) -> Result<RankedBits> {
    let mut bits = Bits::new(rows as u64, context.scratch)?;
    for entries in distinct.iter() {
        context.cancel.check()?;
        for entry in entries {
            bits.insert(row_of(entry).into());
        }
    }
    if let Some(row) = first_null {
        bits.insert(row as u64);
    }
    Ok(bits.rank(context.cancel)?.0)
}

fn row_groups(
    ranks: &RankedBits,
    first_of: Option<Vec<u32>>,
    group_nulls: Option<&NullBuffer>,
    rows: usize,
    num_keys: usize,
    context: &mut IndexContext<'_>,
) -> Result<RowGroups> {
    let null_count = group_nulls.map_or(0, NullBuffer::null_count);
    if first_of.is_none() && null_count < 2 {
        // All keys are unique and some rows are in no group.
        if ranks.iter().zip(0..).all(|(row, group)| row == group) {
            return Ok(RowGroups::Identity);
        }
        let mut unique = with_capacity(context.retained, num_keys)?;
        unique.extend(ranks.iter().map(|row| row as u32));
        return Ok(RowGroups::Unique { rows: unique.into() });
    }
    let mut group_of = match first_of {
        Some(first_of) => first_of,
        None => identity(rows, context)?,
    };
    // From here it is scratch beside the groups' own rows.
    let size = group_of.capacity() * size_of::<u32>();
    context.retained.shrink(size);
    context.scratch.try_grow(size)?;
    if let Some(nulls) = group_nulls {
        let mut null_rows = (0..rows).filter(|&row| nulls.is_null(row));
        if let Some(first) = null_rows.next() {
            null_rows.for_each(|row| group_of[row] = first as u32);
        }
    }
    for first in &mut group_of {
        let (is_first, group) = ranks.rank((*first).into());
        *first = if is_first { group } else { NONE };
    }
    let groups = RowGroups::from_group_of(&group_of, num_keys, context.retained, context.cancel)?;
    release(context.scratch, group_of);
    Ok(groups)
}
