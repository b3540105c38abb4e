//! From hashed build rows to distinct keys: rows are spread over partitions that fit the cache, and each partition drops
//! its duplicates.

use std::cmp::Ordering;

use super::hash;
use super::scratch::{admitted, release, scratch_size};
use super::stage::Stage;
use super::table::LONG;
use super::{IndexContext, steps};
use crate::error::Result;

/// The keys of a build, as the table sees them.
pub(super) trait Source<const L: usize> {
    /// Fills `stage` with the indexed rows of `start..start + len` and their hashes.
    fn hash(&self, seed: u64, start: usize, len: usize, stage: &mut Stage);
    /// The lanes of the key of a row.
    fn lanes(&self, hash: u64, row: u32) -> [u32; L];
    /// Orders the keys of two rows whose hashes are equal.
    fn compare(&self, a: u32, b: u32) -> Ordering;
}

/// Hash (lower half first) and row; of a distinct key the first row.
pub(super) type Entry = [u32; 3];

#[inline(always)]
pub(super) fn hash_of(entry: &Entry) -> u64 {
    u64::from(entry[0]) | u64::from(entry[1]) << 32
}

#[inline(always)]
pub(super) fn row_of(entry: &Entry) -> u32 {
    entry[2]
}

/// Partitions of about this many rows keep their rows and their slots in the L1 or L2 cache.
const PARTITION_ROWS: usize = 4096;
const MAX_PARTITION_BITS: u32 = 12;
/// First number of slots of a partition with at least half as many rows.
const SLOTS: usize = 4 * PARTITION_ROWS;

/// The distinct keys of a build. Charged to the scratch reservation.
#[derive(Debug)]
pub(super) struct Distinct {
    entries: Vec<Entry>,
    /// Start and end of each partition in `entries`.
    bounds: Vec<[u32; 2]>,
    /// First row of the key of each row; itself for rows that are first or not indexed. `None` without duplicates. It is
    /// charged to the retained reservation, in place of the groups' rows that are made of it.
    pub(super) first_of: Option<Vec<u32>>,
    len: usize,
}

impl Distinct {
    /// The distinct keys of the first `rows` rows, of which at most `indexed` are indexed. `None` where too many distinct
    /// keys share a slot, unless `last`: then the entries are sorted instead.
    pub(super) fn find<const L: usize>(
        source: &impl Source<L>,
        seed: u64,
        rows: usize,
        indexed: usize,
        last: bool,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<Self>> {
        let mut this = Self::partition(source, seed, rows, indexed, context)?;
        let found = if last {
            this.sort(source, rows, context)?;
            true
        } else {
            this.dedupe(source, rows, context)?
        };
        if !found {
            this.release(context);
            return Ok(None);
        }
        Ok(Some(this))
    }

    fn partition<const L: usize>(
        source: &impl Source<L>,
        seed: u64,
        rows: usize,
        indexed: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<Self> {
        let bits = rows.div_ceil(PARTITION_ROWS).next_power_of_two().ilog2().min(MAX_PARTITION_BITS);
        let place = |hash: u64| scale_bits(hash::collide(hash, context.config.collide), bits);
        let morsel = scratch_size(rows.min(Stage::ROWS), 1, false)?;
        context.scratch.try_grow(morsel)?;
        let mut stage = Stage::default();
        let mut bounds: Vec<[u32; 2]> = admitted(context.scratch, 1 << bits)?;
        let mut total = indexed;
        let morsels = || (0..rows).step_by(Stage::ROWS).map(|start| (start, Stage::ROWS.min(rows - start)));
        if bits > 0 {
            for (start, len) in morsels() {
                context.cancel.check()?;
                source.hash(seed, start, len, &mut stage);
                for &hash in stage.live_words() {
                    bounds[place(hash)][1] += 1;
                }
            }
            total = 0;
            for bound in &mut bounds {
                let start = total as u32;
                total += bound[1] as usize;
                *bound = [start; 2];
            }
        }
        let mut entries: Vec<Entry> = admitted(context.scratch, total)?;
        for (start, len) in morsels() {
            context.cancel.check()?;
            source.hash(seed, start, len, &mut stage);
            for (&hash, &row) in stage.live_words().iter().zip(stage.live_rows()) {
                let end = &mut bounds[place(hash)][1];
                entries[*end as usize] = [hash as u32, (hash >> 32) as u32, row];
                *end += 1;
            }
        }
        context.scratch.shrink(morsel);
        Ok(Self { entries, bounds, first_of: None, len: 0 })
    }

    /// Keeps the first entry of each key. False where the slots are flooded.
    fn dedupe<const L: usize>(
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
                |entry: &Entry, used: usize| scale_bits(hash::collide(hash_of(&entry), collide) << bits, used.ilog2());
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
                if walked > LONG * (kept + LONG) {
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
            self.len += kept;
        }
        release(context.scratch, slots);
        Ok(true)
    }

    /// Does what [`dedupe`](Self::dedupe) does by sorting, in bounded time whatever the hashes, and leaves the entries of
    /// each partition in the order in which the table searches long buckets.
    fn sort<const L: usize>(
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
            self.len += kept;
        }
        Ok(())
    }

    /// Number of distinct keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of partitions, a power of two. Partition `p` holds the hashes whose upper bits are `p`.
    pub(super) fn partitions(&self) -> usize {
        self.bounds.len()
    }

    /// The distinct keys of each partition.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[Entry]> {
        self.bounds.iter().map(|&[start, end]| &self.entries[start as usize..end as usize])
    }

    /// Frees all but `first_of`.
    pub(super) fn into_first_of(self, context: &mut IndexContext<'_>) -> Option<Vec<u32>> {
        release(context.scratch, self.entries);
        release(context.scratch, self.bounds);
        self.first_of
    }

    /// Frees everything.
    pub(super) fn release(self, context: &mut IndexContext<'_>) {
        if let Some(first_of) = self.into_first_of(context) {
            release(context.retained, first_of);
        }
    }
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
