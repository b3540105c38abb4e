//! From hashed build rows to distinct keys: rows are spread over partitions that fit the cache, and each partition drops
//! its duplicates.

use std::cmp::Ordering;

use super::hash;
use super::scratch::{admitted, release, scratch_size};
use super::stage::Stage;
use super::table::{Entries, LONG};
use super::{IndexContext, steps};
use crate::cancel::Cancel;
use crate::error::Result;

/// The keys of a build, as the table sees them.
pub(super) trait Source<const L: usize> {
    /// Whether every row is indexed.
    fn all_live(&self) -> bool;
    /// Fills `stage` with the indexed rows of `start..start + len` and their hashes.
    fn hash(&self, seed: u64, start: usize, len: usize, stage: &mut Stage);
    /// The lanes of the key of a row.
    fn lanes(&self, hash: u64, row: u32) -> [u32; L];
    /// The lanes of the key of the `i`-th row that is left in `stage` after [`hash`](Self::hash).
    fn lanes_in(&self, stage: &Stage, i: usize) -> [u32; L];
    /// Orders the keys of two rows whose hashes are equal.
    fn compare(&self, a: u32, b: u32) -> Ordering;
}

/// Hash (lower half first) and row; of a distinct key the first row.
type Entry = [u32; 3];

#[inline(always)]
fn entry(hash: u64, row: u32) -> Entry {
    [hash as u32, (hash >> 32) as u32, row]
}

#[inline(always)]
fn hash_of(entry: &Entry) -> u64 {
    u64::from(entry[0]) | u64::from(entry[1]) << 32
}

#[inline(always)]
fn row_of(entry: &Entry) -> u32 {
    entry[2]
}

/// Partitions of about this many rows keep their rows and their slots in the L1 or L2 cache.
const PARTITION_ROWS: usize = 4096;
/// Where no slots are needed: the part of the table that this many rows fill stays in the L2 cache.
pub(super) const LARGE_PARTITION_ROWS: usize = 1 << 16;
const MAX_PARTITION_BITS: u32 = 12;
/// Most slots that a partition starts with; it gets more when half of them are used.
const SLOTS: usize = 2 * PARTITION_ROWS;

/// The distinct keys of a build. Charged to the scratch reservation.
#[derive(Debug)]
pub(super) struct Distinct {
    entries: Vec<Entry>,
    /// Start and end of each partition in `entries`.
    bounds: Vec<[u32; 2]>,
    /// Start and end of what did not fit there; empty where all did.
    spilled: Vec<[u32; 2]>,
    /// First row of the key of each row; itself for rows that are first or not indexed. `None` without duplicates. It is
    /// charged to the retained reservation, in place of the groups' rows that are made of it.
    pub(super) first_of: Option<Vec<u32>>,
    /// Whether all duplicates are dropped.
    is_distinct: bool,
}

impl Distinct {
    /// Spreads the indexed ones of `rows` rows over partitions. No duplicates are dropped yet.
    pub(super) fn partition<const L: usize>(
        source: &impl Source<L>,
        seed: u64,
        rows: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<Self> {
        let mut this = Self::empty(rows, PARTITION_ROWS, context)?;
        this.count(source, seed, rows, context)?;
        this.spread(source, seed, rows, usize::MAX, context)?;
        Ok(this)
    }

    /// Does the same with larger partitions and without counting first. `None` where it does not work out.
    pub(super) fn partition_evenly<const L: usize>(
        source: &impl Source<L>,
        seed: u64,
        rows: usize,
        indexed: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<Self>> {
        let mut this = Self::empty(rows, LARGE_PARTITION_ROWS, context)?;
        let partitions = this.bounds.len();
        // Hashes spread keys evenly: each partition has room for few less than the mean, and the rest is spilled.
        let mean = indexed / partitions;
        let room = mean - (4 * mean.isqrt()).min(mean);
        for (p, bound) in this.bounds.iter_mut().enumerate() {
            *bound = [(p * room) as u32; 2];
        }
        this.entries = admitted(context.scratch, indexed)?;
        let Some(end) = this.spread(source, seed, rows, room, context)? else {
            this.release(context);
            return Ok(None);
        };
        let start = room * partitions;
        let spill = &mut this.entries[start..end];
        spill.sort_unstable_by_key(|entry| (hash_of(entry), row_of(entry)));
        this.spilled = admitted(context.scratch, partitions)?;
        let place = Place::new(partitions, context);
        let mut at = 0;
        for (p, bound) in this.spilled.iter_mut().enumerate() {
            let len = spill[at..].partition_point(|entry| place.of(hash_of(entry)) <= p);
            *bound = [(start + at) as u32, (start + at + len) as u32];
            at += len;
        }
        Ok(Some(this))
    }

    /// No entries, and empty partitions for `rows` rows.
    fn empty(rows: usize, partition_rows: usize, context: &mut IndexContext<'_>) -> Result<Self> {
        let bits = rows.div_ceil(partition_rows).next_power_of_two().ilog2().min(MAX_PARTITION_BITS);
        let bounds = admitted(context.scratch, 1 << bits)?;
        Ok(Self { entries: Vec::new(), bounds, spilled: Vec::new(), first_of: None, is_distinct: false })
    }

    /// Makes the partitions as large as they have to be.
    fn count<const L: usize>(
        &mut self,
        source: &impl Source<L>,
        seed: u64,
        rows: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<()> {
        let place = Place::new(self.bounds.len(), context);
        let bounds = &mut self.bounds;
        bounds.fill([0; 2]);
        for_each_stage(source, seed, rows, context, |hashes, _| {
            hashes.iter().for_each(|&hash| bounds[place.of(hash)][1] += 1);
            true
        })?;
        let mut total = 0;
        for bound in bounds {
            let start = total as u32;
            total += bound[1] as usize;
            *bound = [start; 2];
        }
        self.entries = admitted(context.scratch, total)?;
        Ok(())
    }

    /// Writes each row to its partition. What needs more than `room` is spilled, behind the last of them; answers the end of
    /// that, and `None` where there is no more place.
    fn spread<const L: usize>(
        &mut self,
        source: &impl Source<L>,
        seed: u64,
        rows: usize,
        room: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<usize>> {
        let place = Place::new(self.bounds.len(), context);
        let mut spill = self.bounds.len().saturating_mul(room).min(self.entries.len());
        let (bounds, entries) = (&mut self.bounds[..], &mut self.entries[..]);
        let fits = for_each_stage(source, seed, rows, context, |hashes, rows| {
            for (&hash, &row) in hashes.iter().zip(rows) {
                let [start, end] = &mut bounds[place.of(hash)];
                let mut at = *end as usize;
                if at - *start as usize == room {
                    if spill == entries.len() {
                        return false;
                    }
                    at = spill;
                    spill += 1;
                } else {
                    *end += 1;
                }
                entries[at] = entry(hash, row);
            }
            true
        })?;
        Ok(fits.then_some(spill))
    }

    /// Keeps the first entry of each key. False where the slots are flooded.
    pub(super) fn dedupe<const L: usize>(
        &mut self,
        source: &impl Source<L>,
        rows: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<bool> {
        let bits = self.bounds.len().ilog2();
        let collide = context.config.collide;
        let largest = self.bounds.iter().map(|[start, end]| (end - start) as usize).max().unwrap_or(0);
        // 0 is a free slot, else the position of an entry within its partition, plus 1.
        let mut slots: Vec<u32> = admitted(context.scratch, (largest * 2).next_power_of_two().clamp(2, SLOTS))?;
        for [start, end] in &mut self.bounds {
            context.cancel.check()?;
            let entries = &mut self.entries[*start as usize..*end as usize];
            let mut used = (entries.len() * 2).next_power_of_two().clamp(2, slots.len());
            slots[..used].fill(0);
            let place =
                |entry: &Entry, used: usize| scale_bits(hash::collide(hash_of(entry), collide) << bits, used.ilog2());
            let (mut kept, mut walked) = (0, 0);
            for i in 0..entries.len() {
                let entry = entries[i];
                let mut slot = place(&entry, used);
                loop {
                    let Some(other) = (slots[slot] as usize).checked_sub(1) else {
                        entries[kept] = entry;
                        kept += 1;
                        slots[slot] = kept as u32;
                        break;
                    };
                    let other = entries[other];
                    if hash_of(&other) == hash_of(&entry) && source.compare(row_of(&other), row_of(&entry)).is_eq() {
                        let first_of = match &mut self.first_of {
                            Some(first_of) => first_of,
                            none => none.insert(identity(rows, context)?),
                        };
                        first_of[row_of(&entry) as usize] = row_of(&other);
                        break;
                    }
                    walked += 1;
                    slot = (slot + 1) & (used - 1);
                }
                if walked > LONG * (i + LONG) {
                    steps::count(|| walked);
                    release(context.scratch, slots);
                    return Ok(false);
                }
                if kept * 2 > used {
                    used *= 2;
                    if used > slots.len() {
                        let larger = admitted(context.scratch, used)?;
                        release(context.scratch, std::mem::replace(&mut slots, larger));
                    } else {
                        slots[..used].fill(0);
                    }
                    for (k, entry) in entries[..kept].iter().enumerate() {
                        let mut slot = place(entry, used);
                        while slots[slot] != 0 {
                            walked += 1;
                            slot = (slot + 1) & (used - 1);
                        }
                        slots[slot] = k as u32 + 1;
                    }
                }
            }
            steps::count(|| walked + entries.len());
            *end = *start + kept as u32;
        }
        self.is_distinct = true;
        release(context.scratch, slots);
        Ok(true)
    }

    /// Does what [`dedupe`](Self::dedupe) does by sorting, in bounded time whatever the hashes, and leaves the entries of
    /// each partition in the order in which the table searches long buckets.
    pub(super) fn sort<const L: usize>(
        &mut self,
        source: &impl Source<L>,
        rows: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<()> {
        for [start, end] in &mut self.bounds {
            context.cancel.check()?;
            let entries = &mut self.entries[*start as usize..*end as usize];
            let lanes = |entry: &Entry| source.lanes(hash_of(entry), row_of(entry));
            let order =
                |a: &Entry, b: &Entry| lanes(a).cmp(&lanes(b)).then_with(|| source.compare(row_of(a), row_of(b)));
            entries.sort_unstable_by(|a, b| order(a, b).then(row_of(a).cmp(&row_of(b))));
            let mut kept = 0;
            for i in 0..entries.len() {
                if i > 0 && order(&entries[kept - 1], &entries[i]).is_eq() {
                    let first_of = match &mut self.first_of {
                        Some(first_of) => first_of,
                        none => none.insert(identity(rows, context)?),
                    };
                    first_of[row_of(&entries[i]) as usize] = row_of(&entries[kept - 1]);
                } else {
                    entries[kept] = entries[i];
                    kept += 1;
                }
            }
            *end = *start + kept as u32;
        }
        self.is_distinct = true;
        Ok(())
    }

    /// Number of entries that are left.
    pub(super) fn len(&self) -> usize {
        (0..self.partitions()).flat_map(|p| self.entries(p)).map(<[Entry]>::len).sum()
    }

    /// Number of partitions, a power of two. Partition `p` holds the hashes whose upper bits are `p`.
    pub(super) fn partitions(&self) -> usize {
        self.bounds.len()
    }

    /// The entries of partition `p`, in two parts.
    fn entries(&self, p: usize) -> [&[Entry]; 2] {
        let part = |&[start, end]: &[u32; 2]| &self.entries[start as usize..end as usize];
        [part(&self.bounds[p]), self.spilled.get(p).map_or(&[], part)]
    }

    /// The rows of the entries of partition `p`.
    pub(super) fn rows(&self, p: usize) -> impl Iterator<Item = u32> {
        self.entries(p).into_iter().flatten().map(row_of)
    }

    /// Frees all but `first_of`.
    pub(super) fn into_first_of(self, context: &mut IndexContext<'_>) -> Option<Vec<u32>> {
        release(context.scratch, self.entries);
        release(context.scratch, self.bounds);
        release(context.scratch, self.spilled);
        self.first_of
    }

    /// Frees everything.
    pub(super) fn release(self, context: &mut IndexContext<'_>) {
        if let Some(first_of) = self.into_first_of(context) {
            release(context.retained, first_of);
        }
    }
}

/// Finds the partition of a hash.
#[derive(Clone, Copy)]
struct Place {
    bits: u32,
    collide: u64,
}

impl Place {
    fn new(partitions: usize, context: &IndexContext<'_>) -> Self {
        Self { bits: partitions.ilog2(), collide: context.config.collide }
    }

    #[inline(always)]
    fn of(self, hash: u64) -> usize {
        scale_bits(hash::collide(hash, self.collide), self.bits)
    }
}

/// Entries as the table reads them.
pub(super) struct Spread<'a, S> {
    pub(super) source: &'a S,
    pub(super) distinct: &'a Distinct,
}

impl<const L: usize, S: Source<L>> Entries<L> for Spread<'_, S> {
    fn partitions(&self) -> usize {
        self.distinct.partitions()
    }

    fn len(&self) -> usize {
        self.distinct.len()
    }

    fn are_distinct(&self) -> bool {
        self.distinct.is_distinct
    }

    #[inline(always)]
    fn hashes(&self, p: usize, mut each: impl FnMut(u64) -> bool) -> Result<bool> {
        for part in self.distinct.entries(p) {
            for entry in part {
                if !each(hash_of(entry)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    #[inline(always)]
    fn tuples(&self, p: usize, mut each: impl FnMut(u64, [u32; L], u32)) -> Result<()> {
        for part in self.distinct.entries(p) {
            for entry in part {
                let (hash, row) = (hash_of(entry), row_of(entry));
                each(hash, self.source.lanes(hash, row), row);
            }
        }
        Ok(())
    }
}

/// All rows of a small build as entries, hashed twice instead of stored: none is null, and they seem distinct.
pub(super) struct AllRows<'a, S> {
    pub(super) source: &'a S,
    pub(super) seed: u64,
    pub(super) rows: usize,
    pub(super) cancel: &'a Cancel,
}

impl<S> AllRows<'_, S> {
    #[inline(always)]
    fn for_each_stage<const L: usize>(&self, mut work: impl FnMut(&Stage) -> bool) -> Result<bool>
    where
        S: Source<L>,
    {
        let mut stage = Stage::default();
        for start in (0..self.rows).step_by(Stage::ROWS) {
            self.cancel.check()?;
            self.source.hash(self.seed, start, Stage::ROWS.min(self.rows - start), &mut stage);
            if !work(&stage) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<const L: usize, S: Source<L>> Entries<L> for AllRows<'_, S> {
    fn partitions(&self) -> usize {
        1
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn are_distinct(&self) -> bool {
        false
    }

    #[inline(always)]
    fn hashes(&self, _: usize, mut each: impl FnMut(u64) -> bool) -> Result<bool> {
        self.for_each_stage(|stage| stage.live_words().iter().all(|&hash| each(hash)))
    }

    #[inline(always)]
    fn tuples(&self, _: usize, mut each: impl FnMut(u64, [u32; L], u32)) -> Result<()> {
        self.for_each_stage(|stage| {
            for (i, (&hash, &row)) in stage.live_words().iter().zip(stage.live_rows()).enumerate() {
                each(hash, self.source.lanes_in(stage, i), row);
            }
            true
        })?;
        Ok(())
    }
}

/// Hashes all rows, stage by stage, until `work` says to stop; returns whether it never did.
fn for_each_stage<const L: usize>(
    source: &impl Source<L>,
    seed: u64,
    rows: usize,
    context: &mut IndexContext<'_>,
    mut work: impl FnMut(&[u64], &[u32]) -> bool,
) -> Result<bool> {
    let morsel = scratch_size(rows.min(Stage::ROWS), 1, false)?;
    context.scratch.try_grow(morsel)?;
    let all = AllRows { source, seed, rows, cancel: context.cancel };
    let finished = all.for_each_stage(|stage| work(stage.live_words(), stage.live_rows()))?;
    context.scratch.shrink(morsel);
    Ok(finished)
}

/// False where some of the first rows have the same hash, so likely the same key.
pub(super) fn seem_distinct<const L: usize>(source: &impl Source<L>, seed: u64, rows: usize) -> bool {
    let mut stage = Stage::default();
    source.hash(seed, 0, rows.min(Stage::ROWS), &mut stage);
    let hashes = stage.live_words_mut();
    hashes.sort_unstable();
    hashes.windows(2).all(|pair| pair[0] != pair[1])
}

/// The upper `bits` bits.
#[inline(always)]
fn scale_bits(hash: u64, bits: u32) -> usize {
    // Two shifts, because a shift by 64 is not defined.
    (hash >> 1 >> (63 - bits)) as usize
}

/// Every row the first of its key.
pub(super) fn identity(rows: usize, context: &mut IndexContext<'_>) -> Result<Vec<u32>> {
    let mut first_of: Vec<u32> = admitted(context.retained, rows)?;
    for (row, first) in first_of.iter_mut().enumerate() {
        *first = row as u32;
    }
    Ok(first_of)
}
