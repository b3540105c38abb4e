//! Builds the hash table and the row groups of a build, for the three index kinds that have a hash table.
//!
//! Where the keys seem distinct, the table is built at once and notices duplicates itself. Otherwise rows are spread over
//! partitions, and each partition is made distinct first.

use arrow_buffer::NullBuffer;

use super::allocate::{release, scratch_size, with_capacity};
use super::frozen_table::{Entries, FrozenTable};
use super::hash::{SEEDS, seed};
use super::key_chunk::KeyChunk;
use super::partition::{AllRows, Distinct, LARGE_PARTITION_ROWS, Source, Spread, identity, seem_distinct};
use super::ranked_bits::{Bits, RankedBits};
use super::{IndexContext, KeyRows, NONE};
use crate::error::{Error, Result, internal_err};

/// The table and the groups of a build.
pub(super) struct Built<const L: usize> {
    pub(super) table: FrozenTable<L>,
    pub(super) seed: u64,
    pub(super) groups: KeyRows,
    pub(super) num_keys: usize,
    /// Group of the rows whose only key is null, or `NONE`.
    pub(super) null_group: u32,
}

/// Builds the table of the keys of `rows` rows. `nulls` has the null rows of the only key column; with `nulls_equal` they form
/// a group. Groups are numbered in the order in which their keys first appear.
pub(super) fn build<const L: usize>(
    source: &impl Source<L>,
    rows: usize,
    nulls: Option<&NullBuffer>,
    nulls_equal: bool,
    buckets_per_key: f64,
    mut context: IndexContext<'_>,
) -> Result<Built<L>> {
    let context = &mut context;
    let null_count = nulls.map_or(0, NullBuffer::null_count);
    let group_nulls = nulls.filter(|_| nulls_equal);
    let first_null = group_nulls.and_then(|nulls| nulls.iter().position(|valid| !valid));
    let finish = |table, ranks, keys, seed, context: &mut IndexContext<'_>| {
        finish(table, ranks, keys, seed, group_nulls, first_null, rows, context)
    };
    if seem_distinct(source, seed(0), rows) {
        // Most likely there are no duplicates, and if there are, the table notices while it is built.
        if source.all_live() && rows <= LARGE_PARTITION_ROWS {
            let morsel = scratch_size(rows.min(KeyChunk::ROWS), 1, false)?;
            context.scratch.try_grow(morsel)?;
            let all = AllRows { source, seed: seed(0), rows, cancel: context.cancel };
            let table = unless_exhausted(freeze(&all, |row| row, buckets_per_key, false, context))?;
            context.scratch.shrink(morsel);
            if let Some(table) = table {
                return Ok(Built { table, seed: seed(0), groups: KeyRows::Identity, num_keys: rows, null_group: NONE });
            }
        } else if let Some(keys) = Distinct::partition_evenly(source, seed(0), rows, rows - null_count, context)? {
            let ranked =
                unless_exhausted(freeze_ranked(source, &keys, first_null, rows, buckets_per_key, false, context))?;
            match ranked {
                Some((table, ranks)) => return finish(table, ranks, keys, seed(0), context),
                None => keys.release(context),
            }
        }
    }
    for attempt in 0..SEEDS {
        let (seed, last) = (seed(attempt), attempt + 1 == SEEDS);
        let mut keys = Distinct::partition(source, seed, rows, context)?;
        let flooded = match last {
            true => keys.sort(source, rows, context).map(|()| false)?,
            false => !keys.dedupe(source, rows, context)?,
        };
        if !flooded
            && let Some((table, ranks)) =
                freeze_ranked(source, &keys, first_null, rows, buckets_per_key, last, context)?
        {
            return finish(table, ranks, keys, seed, context);
        }
        keys.release(context);
    }
    internal_err!("an index was neither built nor refused after {SEEDS} hash functions")
}

/// No table where the pool refuses its memory: without the duplicates it may be smaller.
fn unless_exhausted<T>(frozen: Result<Option<T>>) -> Result<Option<T>> {
    match frozen {
        Err(Error::ResourcesExhausted(_)) => Ok(None),
        other => other,
    }
}

/// Makes the table. Gives back all memory where it returns `None` or an error.
fn freeze<const L: usize>(
    entries: &impl Entries<L>,
    group: impl Fn(u32) -> u32,
    buckets_per_key: f64,
    last: bool,
    context: &mut IndexContext<'_>,
) -> Result<Option<FrozenTable<L>>> {
    let (retained, scratch) = (context.retained.size(), context.scratch.size());
    let table = FrozenTable::freeze(entries, group, buckets_per_key, last, context);
    if !matches!(table, Ok(Some(_))) {
        context.retained.shrink(context.retained.size() - retained);
        context.scratch.shrink(context.scratch.size() - scratch);
    }
    table
}

/// Does the same where some rows are not the first of their key or have no key. The group id of a key is then the rank of its
/// first row among all first rows; these ranks are returned with the table.
fn freeze_ranked<const L: usize>(
    source: &impl Source<L>,
    distinct: &Distinct,
    first_null: Option<usize>,
    rows: usize,
    buckets_per_key: f64,
    last: bool,
    context: &mut IndexContext<'_>,
) -> Result<Option<(FrozenTable<L>, Option<RankedBits>)>> {
    let entries = Spread { source, distinct };
    if distinct.len() + usize::from(first_null.is_some()) == rows {
        return Ok(freeze(&entries, |row| row, buckets_per_key, last, context)?.map(|table| (table, None)));
    }
    let ranks = first_rows(distinct, first_null, rows, context)?;
    let table = freeze(&entries, |row| ranks.rank(row.into()).1, buckets_per_key, last, context);
    if !matches!(table, Ok(Some(_))) {
        context.scratch.shrink(ranks.memory_size());
    }
    Ok(table?.map(|table| (table, Some(ranks))))
}

/// Makes the row groups of a finished table.
#[allow(clippy::too_many_arguments)]
fn finish<const L: usize>(
    table: FrozenTable<L>,
    ranks: Option<RankedBits>,
    distinct: Distinct,
    seed: u64,
    group_nulls: Option<&NullBuffer>,
    first_null: Option<usize>,
    rows: usize,
    context: &mut IndexContext<'_>,
) -> Result<Built<L>> {
    let num_keys = distinct.len() + usize::from(first_null.is_some());
    let first_of = distinct.into_first_of(context);
    let (mut groups, mut null_group) = (KeyRows::Identity, first_null.map_or(NONE, |row| row as u32));
    if let Some(ranks) = ranks {
        null_group = first_null.map_or(NONE, |row| ranks.rank(row as u64).1);
        groups = row_groups(&ranks, first_of, group_nulls, rows, num_keys, context)?;
        context.scratch.shrink(ranks.memory_size());
    }
    Ok(Built { table, seed, groups, num_keys, null_group })
}

/// The set of the first rows of all groups. The rank of a first row is the id of its group.
fn first_rows(
    distinct: &Distinct,
    first_null: Option<usize>,
    rows: usize,
    context: &mut IndexContext<'_>,
) -> Result<RankedBits> {
    let mut bits = Bits::new(rows as u64, context.scratch)?;
    for p in 0..distinct.partitions() {
        context.cancel.check()?;
        distinct.rows(p).for_each(|row| bits.insert(row.into()));
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
) -> Result<KeyRows> {
    let null_count = group_nulls.map_or(0, NullBuffer::null_count);
    if first_of.is_none() && null_count < 2 {
        // Every key is in one row, and some rows are in no group.
        if ranks.iter().zip(0..).all(|(row, group)| row == group) {
            return Ok(KeyRows::Identity);
        }
        let mut unique = with_capacity(context.retained, num_keys)?;
        unique.extend(ranks.iter().map(|row| row as u32));
        return Ok(KeyRows::Unique { rows: unique.into() });
    }
    let mut group_of = match first_of {
        Some(first_of) => first_of,
        None => identity(rows, context)?,
    };
    // The groups get rows of their own below, so from here on this memory is scratch.
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
    let groups = KeyRows::from_group_of(&group_of, num_keys, context.retained, context.cancel)?;
    release(context.scratch, group_of);
    Ok(groups)
}
