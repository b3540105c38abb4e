//! From build rows to distinct keys: the rows are spread over partitions by the upper bits of their hashes, and duplicates are
//! removed within each partition, whose rows fit the cache.

use std::cmp::Ordering;

use hashbrown::HashTable;

use super::allocate::{admitted, release, release_table, reserve};
use super::frozen_table::{LONG, TableEntries};
use super::hash;
use super::key_chunk::KeyChunk;
use super::{IndexContext, step_counter};
use crate::cancel::Cancel;
use crate::error::Result;

/// The keys of a build, for the code that all kinds of keys share.
pub(super) trait KeySource<const L: usize> {
    /// Whether every row is indexed (no null keeps one from matching).
    fn all_live(&self) -> bool;
    /// Fills `chunk` with the indexed rows of `start..start + len` and their hashes.
    fn hash(&self, seed: u64, start: usize, len: usize, chunk: &mut KeyChunk);
    /// The lanes of the key of a row.
    fn lanes(&self, hash: u64, row: u32) -> [u32; L];
    /// The lanes of the key of the `i`-th row in `chunk`, as [`hash`](Self::hash) filled it.
    fn lanes_in(&self, chunk: &KeyChunk, i: usize) -> [u32; L];
    /// Orders the keys of two rows whose hashes are equal.
    fn compare(&self, a: u32, b: u32) -> Ordering;
}

/// Lower half of the hash, upper half, and row: of a distinct key its first row.
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

/// With about this many rows, the rows of a partition and the hash table for its duplicates stay in the L1 or L2 cache.
const PARTITION_ROWS: usize = 4096;
/// For builds without duplicates: the part of the finished table that this many rows fill stays in the L2 cache.
pub(super) const LARGE_PARTITION_ROWS: usize = 1 << 16;
const MAX_PARTITION_BITS: u32 = 12;

/// The keys of a build in partitions. Charged to the scratch reservation.
#[derive(Debug)]
pub(super) struct Distinct {
    entries: Vec<Entry>,
    /// Start and end of each partition in `entries`.
    bounds: Vec<[u32; 2]>,
    /// For each partition, start and end in `entries` of those that had no room there; empty where all had.
    spilled: Vec<[u32; 2]>,
    /// For each row the first row of its key, which is the row itself where it is first or not indexed. `None` without
    /// duplicates. Charged to the retained reservation, because row groups of the same size take its place.
    pub(super) first_of: Option<Vec<u32>>,
    /// Whether all duplicates are removed.
    is_distinct: bool,
    /// Whether the entries of each partition are in the order of their keys and not of their rows.
    is_sorted: bool,
}

impl Distinct {
    /// Spreads the indexed rows among `rows` over partitions, after counting how many go to each. Duplicates stay.
    pub(super) fn partition<const L: usize>(
        source: &impl KeySource<L>,
        seed: u64,
        rows: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<Self> {
        let mut this = Self::empty(rows, PARTITION_ROWS, context)?;
        this.count(source, seed, rows, context)?;
        this.spread(source, seed, rows, usize::MAX, context)?;
        Ok(this)
    }

    /// Does the same with larger partitions and without counting first, for keys that seem distinct. `None` where so many hashes
    /// are equal that the partitions differ too much in size.
    pub(super) fn partition_evenly<const L: usize>(
        source: &impl KeySource<L>,
        seed: u64,
        rows: usize,
        indexed: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<Self>> {
        let mut this = Self::empty(rows, LARGE_PARTITION_ROWS, context)?;
        let partitions = this.bounds.len();
        // Hashes spread distinct keys evenly. Each partition has room for a little less than the mean, so nearly all of them
        // become full; what has no room goes to a common rest.
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
        Ok(Self {
            entries: Vec::new(),
            bounds,
            spilled: Vec::new(),
            first_of: None,
            is_distinct: false,
            is_sorted: false,
        })
    }

    /// Counts the rows of each partition and allocates the entries.
    fn count<const L: usize>(
        &mut self,
        source: &impl KeySource<L>,
        seed: u64,
        rows: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<()> {
        let place = Place::new(self.bounds.len(), context);
        let bounds = &mut self.bounds;
        bounds.fill([0; 2]);
        for_each_chunk(source, seed, rows, context, |hashes, _| {
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

    /// Writes each row to its partition. Once a partition holds `room` rows, further ones go behind all partitions. Returns the
    /// end of those, or `None` where there are too many.
    fn spread<const L: usize>(
        &mut self,
        source: &impl KeySource<L>,
        seed: u64,
        rows: usize,
        room: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<usize>> {
        let place = Place::new(self.bounds.len(), context);
        let mut spill = self.bounds.len().saturating_mul(room).min(self.entries.len());
        let (bounds, entries) = (&mut self.bounds[..], &mut self.entries[..]);
        let fits = for_each_chunk(source, seed, rows, context, |hashes, rows| {
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

    /// Keeps the first entry of each key. False where too many keys meet in one place of the hash table.
    #[inline(never)]
    pub(super) fn dedupe<const L: usize>(
        &mut self,
        source: &impl KeySource<L>,
        rows: usize,
        context: &mut IndexContext<'_>,
    ) -> Result<bool> {
        let collide = context.options.collide;
        // hashbrown finds the place of a key by the lowest bits of its hash and compares the highest. The highest are equal within
        // a partition, so the halves are exchanged.
        let hash = |entry: &Entry| hash::collide(hash_of(entry), collide).rotate_left(32);
        // Of each key, the position of its first entry in the partition.
        let mut firsts = HashTable::<u32>::new();
        for [start, end] in &mut self.bounds {
            context.cancel.check()?;
            let entries = &mut self.entries[*start as usize..*end as usize];
            firsts.clear();
            if firsts.capacity() > 2 * PARTITION_ROWS.max(entries.len()) {
                // It grew for a partition with very many keys, and clearing it for each small one would take longer than filling.
                release_table(context.scratch, std::mem::take(&mut firsts));
            }
            let (mut kept, mut compared) = (0, 0);
            for i in 0..entries.len() {
                let entry = entries[i];
                let place = hash(&entry);
                let found = firsts.find(place, |&first| {
                    compared += 1;
                    let first = &entries[first as usize];
                    hash_of(first) == hash_of(&entry) && source.compare(row_of(first), row_of(&entry)).is_eq()
                });
                if let Some(&first) = found {
                    let first_of = match &mut self.first_of {
                        Some(first_of) => first_of,
                        none => none.insert(identity(rows, context)?),
                    };
                    first_of[row_of(&entry) as usize] = row_of(&entries[first as usize]);
                } else {
                    let hash = |&first: &u32| hash(&entries[first as usize]);
                    if firsts.len() == firsts.capacity() {
                        let more = (entries.len() - i).min(PARTITION_ROWS.max(firsts.len()));
                        reserve(&mut firsts, more, context.scratch, hash)?;
                    }
                    firsts.insert_unique(place, kept as u32, hash);
                    entries[kept] = entry;
                    kept += 1;
                }
                // Many hashes that share a place also share tags, of which there are 128, so they show in the comparisons.
                if compared > LONG * (i + LONG) {
                    step_counter::count(|| compared);
                    release_table(context.scratch, firsts);
                    return Ok(false);
                }
            }
            step_counter::count(|| compared + entries.len());
            *end = *start + kept as u32;
        }
        self.is_distinct = true;
        release_table(context.scratch, firsts);
        Ok(true)
    }

    /// Does what [`dedupe`](Self::dedupe) does by sorting, in bounded time whatever the hashes, and leaves the entries of each
    /// partition in the order by which the table bisects long buckets.
    pub(super) fn sort<const L: usize>(
        &mut self,
        source: &impl KeySource<L>,
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
        (self.is_distinct, self.is_sorted) = (true, true);
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

    /// The entries of partition `p`: those within it, and those that had no room there.
    fn entries(&self, p: usize) -> [&[Entry]; 2] {
        let part = |&[start, end]: &[u32; 2]| &self.entries[start as usize..end as usize];
        [part(&self.bounds[p]), self.spilled.get(p).map_or(&[], part)]
    }

    /// The rows of the entries of partition `p`.
    pub(super) fn rows(&self, p: usize) -> impl Iterator<Item = u32> {
        self.entries(p).into_iter().flatten().map(row_of)
    }

    /// Frees the partitions and returns `first_of`.
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
        Self { bits: partitions.ilog2(), collide: context.options.collide }
    }

    #[inline(always)]
    fn of(self, hash: u64) -> usize {
        scale_bits(hash::collide(hash, self.collide), self.bits)
    }
}

/// The entries of all partitions, for building the table.
pub(super) struct Spread<'a, S> {
    pub(super) source: &'a S,
    pub(super) distinct: &'a Distinct,
}

impl<const L: usize, S: KeySource<L>> TableEntries<L> for Spread<'_, S> {
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

    fn late(&self, p: usize, mut each: impl FnMut(u64)) {
        let in_order = usize::from(!self.distinct.is_sorted);
        self.distinct.entries(p)[in_order..].iter().copied().flatten().for_each(|entry| each(hash_of(entry)));
    }
}

/// All rows of a small build that has no null keys and seems distinct, for building the table. The table reads the hashes
/// twice; hashing twice is quicker than storing them.
pub(super) struct AllRows<'a, S> {
    pub(super) source: &'a S,
    pub(super) seed: u64,
    pub(super) rows: usize,
    pub(super) cancel: &'a Cancel,
}

impl<S> AllRows<'_, S> {
    #[inline(always)]
    fn for_each_chunk<const L: usize>(&self, mut work: impl FnMut(&KeyChunk) -> bool) -> Result<bool>
    where
        S: KeySource<L>,
    {
        let mut chunk = KeyChunk::default();
        for start in (0..self.rows).step_by(KeyChunk::ROWS) {
            self.cancel.check()?;
            self.source.hash(self.seed, start, KeyChunk::ROWS.min(self.rows - start), &mut chunk);
            if !work(&chunk) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<const L: usize, S: KeySource<L>> TableEntries<L> for AllRows<'_, S> {
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
        self.for_each_chunk(|chunk| chunk.live_words().iter().all(|&hash| each(hash)))
    }

    #[inline(always)]
    fn tuples(&self, _: usize, mut each: impl FnMut(u64, [u32; L], u32)) -> Result<()> {
        self.for_each_chunk(|chunk| {
            for (i, (&hash, &row)) in chunk.live_words().iter().zip(chunk.live_rows()).enumerate() {
                each(hash, self.source.lanes_in(chunk, i), row);
            }
            true
        })?;
        Ok(())
    }

    fn late(&self, _: usize, _: impl FnMut(u64)) {}
}

/// Calls `work` with the hashes and rows of each chunk until it returns false. Returns whether it never did.
fn for_each_chunk<const L: usize>(
    source: &impl KeySource<L>,
    seed: u64,
    rows: usize,
    context: &mut IndexContext<'_>,
    mut work: impl FnMut(&[u64], &[u32]) -> bool,
) -> Result<bool> {
    let all = AllRows { source, seed, rows, cancel: context.cancel };
    all.for_each_chunk(|chunk| work(chunk.live_words(), chunk.live_rows()))
}

/// False where two rows of the first chunk have the same hash, so most likely the same key.
pub(super) fn seem_distinct<const L: usize>(source: &impl KeySource<L>, seed: u64, rows: usize) -> bool {
    let mut chunk = KeyChunk::default();
    source.hash(seed, 0, rows.min(KeyChunk::ROWS), &mut chunk);
    let hashes = chunk.live_words_mut();
    hashes.sort_unstable();
    hashes.windows(2).all(|pair| pair[0] != pair[1])
}

/// The upper `bits` bits of a hash.
#[inline(always)]
fn scale_bits(hash: u64, bits: u32) -> usize {
    // Two shifts, because one by 64 bits is an overflow.
    (hash >> 1 >> (63 - bits)) as usize
}

/// The numbers of all rows: each row as the first row of its key.
pub(super) fn identity(rows: usize, context: &mut IndexContext<'_>) -> Result<Vec<u32>> {
    let mut first_of: Vec<u32> = admitted(context.retained, rows)?;
    for (row, first) in first_of.iter_mut().enumerate() {
        *first = row as u32;
    }
    Ok(first_of)
}
