//! The hash table of a finished build, which never changes: tuples of key and group id sorted by bucket, and a directory of
//! the buckets.
//!
//! A directory entry holds the end of its bucket's tuples and a tag, a small Bloom filter of their hashes. Most keys that are
//! not in the table are recognised by the tag, without a look at any tuple. A hash is mapped to a bucket by multiplication, so
//! the number of buckets need not be a power of two (it is a multiple of the number of partitions), and memory is proportional
//! to the number of distinct keys.

use std::cmp::Ordering;
use std::hint::{black_box, select_unpredictable};

use arrow_buffer::ScalarBuffer;

use super::allocate::{admitted, held, release, with_capacity};
use super::avx512::Avx512;
use super::candidate::{LONGER, POSITION, WINDOW, candidate, tag};
use super::hash::{self, scale};
use super::key_chunk::{Candidates, KeyChunk};
use super::{IndexContext, NONE, step_counter};
use crate::error::Result;

/// Buckets up to this length are searched from front to back, longer ones by bisection.
pub(super) const LONG: usize = 32;

/// Building stops where more than one entry in this many may have the key of another entry. Without any equal keys it is about
/// one in a hundred.
const SUSPECTS: usize = 16;

/// A table whose keys are `L` lanes of 32 bits each. A tuple is the lanes of a key, then its group id.
#[derive(Debug)]
pub(super) struct FrozenTable<const L: usize> {
    /// One entry more than buckets. The lower half of entry `b + 1` is the end of bucket `b`, the upper half its tag; entry 0
    /// is 0, the start of the first bucket.
    pub(super) directory: ScalarBuffer<u64>,
    pub(super) tuples: ScalarBuffer<u32>,
    pub(super) collide: u64,
}

/// Lanes and group of the tuple at `at`.
#[inline(always)]
fn tuple<const L: usize>(tuples: &[u32], at: usize) -> ([u32; L], u32) {
    let tuple = &tuples[at * (L + 1)..(at + 1) * (L + 1)];
    (std::array::from_fn(|lane| tuple[lane]), tuple[L])
}

/// Sorts the few tuples of a bucket by their groups, where most are in order already.
fn sort_by_group<const L: usize>(tuples: &mut [u32]) {
    let width = L + 1;
    for end in (width..tuples.len()).step_by(width) {
        let mut at = end;
        while at > 0 && tuples[at - 1] > tuples[at + L] {
            (at - width..at).for_each(|i| tuples.swap(i, i + width));
            at -= width;
        }
    }
}

/// The keys that a table is made of, in partitions: partition `p` holds the hashes whose upper bits are `p`.
pub(super) trait TableEntries<const L: usize> {
    /// A power of two.
    fn partitions(&self) -> usize;
    fn len(&self) -> usize;
    /// Whether no two entries have the same key.
    fn are_distinct(&self) -> bool;
    /// Calls `each` with the hashes of partition `p` until it returns false. Returns whether it never did.
    fn hashes(&self, p: usize, each: impl FnMut(u64) -> bool) -> Result<bool>;
    /// Calls `each` with hash, lanes and row of the entries of partition `p`, as often as [`hashes`](Self::hashes) does.
    fn tuples(&self, p: usize, each: impl FnMut(u64, [u32; L], u32)) -> Result<()>;
    /// Calls `each` with the hashes of those entries of partition `p` that [`tuples`](Self::tuples) does not give in the order of
    /// their rows.
    fn late(&self, p: usize, each: impl FnMut(u64));
}

impl<const L: usize> FrozenTable<L> {
    /// Makes the table of `entries`; `group` maps a row to its group. With `accept_long`, buckets may be longer than [`LONG`]
    /// and the entries of each partition have to be sorted by key.
    ///
    /// Returns `None` where a bucket is too long, or where two entries that were not known to be distinct seem to have the same
    /// key.
    pub(super) fn freeze(
        entries: &impl TableEntries<L>,
        group: impl Fn(u32) -> u32,
        buckets_per_key: f64,
        accept_long: bool,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<Self>> {
        let collide = context.options.collide;
        let (len, partitions) = (entries.len(), entries.partitions());
        let per_partition = ((len as f64 * buckets_per_key / partitions as f64) as usize).max(1);
        let buckets = per_partition * partitions;
        let mut directory: Vec<u64> = admitted(context.retained, buckets + 1)?;
        let mut tuples: Vec<u32> = admitted(context.retained, (len + WINDOW - 1) * (L + 1))?;
        // Buckets that may hold a key twice, because the bits of an entry's tag were set when it came.
        let most = if entries.are_distinct() { 0 } else { len / partitions / SUSPECTS + SUSPECTS };
        let mut suspects: Vec<u32> = with_capacity(context.scratch, most)?;
        // Slices, so that the loops below keep their addresses in registers.
        let (filled, keys) = (&mut directory[..], &mut tuples[..]);
        let mut start = 0u32;
        for p in 0..partitions {
            context.cancel.check()?;
            let counted = entries.hashes(p, |hash| {
                let hash = hash::collide(hash, collide);
                let (at, tag) = (scale(hash, buckets as u64), tag(hash));
                let bucket = &mut filled[at + 1];
                if most > 0 && *bucket & tag == tag {
                    if suspects.len() == most {
                        return false;
                    }
                    suspects.push(at as u32);
                }
                *bucket = (*bucket + 1) | tag;
                true
            })?;
            if !counted {
                return Ok(None);
            }
            for bucket in &mut filled[p * per_partition + 1..][..per_partition] {
                let len = *bucket as u32;
                if len as usize > LONG && !accept_long {
                    return Ok(None);
                }
                *bucket = *bucket >> 32 << 32 | u64::from(start);
                start += len;
            }
            entries.tuples(p, |hash, lanes, row| {
                let bucket = &mut filled[scale(hash::collide(hash, collide), buckets as u64) + 1];
                let at = *bucket as u32 as usize * (L + 1);
                *bucket += 1;
                let tuple = &mut keys[at..at + L + 1];
                tuple[..L].copy_from_slice(&lanes);
                tuple[L] = group(row);
            })?;
            // Tuples of a bucket are in the order of their groups, however the entries were spread. Long ones stay as they are.
            entries.late(p, |hash| {
                let bucket = scale(hash::collide(hash, collide), buckets as u64);
                let (start, end) = (filled[bucket] as u32 as usize, filled[bucket + 1] as u32 as usize);
                if end - start <= LONG {
                    sort_by_group::<L>(&mut keys[start * (L + 1)..end * (L + 1)]);
                }
            });
            for bucket in suspects.drain(..) {
                let end = |at: usize| filled[at] as u32 as usize;
                let (bucket, lanes) = (bucket as usize, |at| tuple::<L>(keys, at).0);
                let mut pairs =
                    (end(bucket)..end(bucket + 1)).flat_map(|a| (a + 1..end(bucket + 1)).map(move |b| (a, b)));
                if pairs.any(|(a, b)| lanes(a) == lanes(b)) {
                    return Ok(None);
                }
            }
        }
        release(context.scratch, suspects);
        // The window of the last bucket reads past its end, into tuples of no group.
        tuples[len * (L + 1)..].fill(NONE);
        Ok(Some(Self { directory: directory.into(), tuples: tuples.into(), collide }))
    }

    pub(super) fn memory_size(&self) -> usize {
        held(&self.directory) + held(&self.tuples)
    }

    /// Start and end of the bucket of `hash`, and whether its tag says that it may hold `hash`.
    #[inline(always)]
    fn bucket(directory: &[u64], hash: u64) -> (u32, u32, bool) {
        let bucket = scale(hash, directory.len() as u64 - 1);
        let (before, this) = (directory[bucket], directory[bucket + 1]);
        (before as u32, this as u32, this & tag(hash) == tag(hash))
    }

    /// Writes a [`candidate`] for each of `hashes` that its bucket may hold, and returns their number.
    #[inline(always)]
    fn candidates(&self, hashes: &[u64], avx512: Option<Avx512>, candidates: &mut [u64]) -> usize {
        step_counter::count(|| hashes.len());
        let (directory, candidates): (&[u64], _) = (&self.directory, &mut candidates[..hashes.len()]);
        let (read, n) = match avx512 {
            Some(avx512) if self.collide == 0 => avx512.candidates(directory, hashes, candidates),
            _ => (0, 0),
        };
        let found = &mut candidates[n..];
        n + match self.collide {
            0 => Self::plain_candidates(directory, &hashes[read..], read, |hash| hash, found),
            n => Self::plain_candidates(directory, &hashes[read..], read, |hash| hash::collide(hash, n), found),
        }
    }

    /// Does the same one hash at a time. The first of `hashes` has position `first` in its chunk.
    #[inline(always)]
    fn plain_candidates(
        directory: &[u64],
        hashes: &[u64],
        first: usize,
        place: impl Fn(u64) -> u64,
        candidates: &mut [u64],
    ) -> usize {
        let candidates = &mut candidates[..hashes.len()];
        let mut n = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            let (start, end, maybe) = Self::bucket(directory, place(hash));
            candidates[n] = candidate(first + i, start, end);
            n += usize::from(maybe);
        }
        n
    }

    /// Looks up a chunk of keys. Writes `row(i)` and the group of each key `i` that is found, ascending in `i`, and returns
    /// their number. `out` is as long as `hashes`.
    ///
    /// `compare(group, i)` orders the whole key of a group against key `i`, whose lanes are equal. It is called in long buckets
    /// only. A caller whose lanes are not the whole key has to compare the whole key of every match, and to call
    /// [`search`](Self::search) where it differs.
    #[inline(always)]
    pub(super) fn probe(
        &self,
        hashes: &[u64],
        key: impl Fn(usize) -> [u32; L],
        row: impl Fn(usize) -> u32,
        compare: impl Fn(u32, usize) -> Ordering,
        candidates: &mut Candidates,
        out: (&mut [u32], &mut [u32]),
    ) -> usize {
        let avx512 = candidates.avx512;
        let candidates = candidates.room(hashes.len());
        let n = self.candidates(hashes, avx512, candidates);
        let (rows, groups) = (&mut out.0[..hashes.len()], &mut out.1[..hashes.len()]);
        let tuples: &[u32] = &self.tuples;
        let mut hits = 0;
        for &candidate in &candidates[..n] {
            let (i, start) = ((candidate & POSITION) as usize, (candidate >> 32) as usize);
            let key = key(i);
            step_counter::count(|| WINDOW);
            let mut group = NONE;
            // Tuples of the next bucket cannot equal the key, so the window need not stop at the end of this one.
            for at in (0..WINDOW).rev() {
                let (lanes, this) = tuple::<L>(tuples, start + at);
                let differs = lanes.iter().zip(&key).fold(0, |differs, (a, b)| differs | (a ^ b));
                group = select_unpredictable(differs == 0, this, group);
            }
            if group == NONE && candidate & LONGER != 0 {
                group = self.search(hashes[i], key, |group| compare(group, i));
            }
            rows[hits] = row(i);
            groups[hits] = group;
            hits += usize::from(group != NONE);
        }
        hits
    }

    /// The group of one key, or [`NONE`].
    #[cold]
    pub(super) fn search(&self, hash: u64, key: [u32; L], compare: impl Fn(u32) -> Ordering) -> u32 {
        let (start, end, maybe) = Self::bucket(&self.directory, hash::collide(hash, self.collide));
        step_counter::count(|| 1);
        if maybe { self.search_range(start, end, key, compare) } else { NONE }
    }

    fn search_range(&self, mut start: u32, mut end: u32, key: [u32; L], compare: impl Fn(u32) -> Ordering) -> u32 {
        let order = |at: u32| {
            let (lanes, group) = tuple(&self.tuples, at as usize);
            step_counter::count(|| 1);
            (lanes.cmp(&key).then_with(|| compare(group)), group)
        };
        if (end - start) as usize <= LONG {
            return (start..end).map(order).find(|(order, _)| order.is_eq()).map_or(NONE, |(_, group)| group);
        }
        while start < end {
            let middle = start + (end - start) / 2;
            match order(middle) {
                (Ordering::Less, _) => start = middle + 1,
                (Ordering::Greater, _) => end = middle,
                (Ordering::Equal, group) => return group,
            }
        }
        NONE
    }
}

impl FrozenTable<1> {
    /// Looks up a chunk of keys in a table that holds half a hash of each key in place of the key. `touch(group)` reads a byte
    /// of the key of a group; `equal(group, row)` and `compare(group, row)` compare the key of a group with that of a row.
    #[inline(always)]
    pub(super) fn probe_verified(
        &self,
        chunk: &mut KeyChunk,
        touch: impl Fn(u32) -> u8,
        equal: impl Fn(u32, u32) -> bool,
        compare: impl Fn(u32, u32) -> Ordering,
        (rows, groups): (&mut [u32], &mut [u32]),
    ) -> usize {
        let (live_rows, hashes, candidates) = chunk.table();
        let lanes = |i: usize| [hashes[i] as u32];
        let order = |group, i: usize| compare(group, live_rows[i]);
        let found = self.probe(hashes, lanes, |i| i as u32, order, candidates, (rows, groups));
        // One byte of every key is read before the first key is compared, so that their cache misses overlap.
        black_box(groups[..found].iter().fold(0, |sum, &group| sum ^ touch(group)));
        let mut hits = 0;
        for at in 0..found {
            let (i, mut group) = (rows[at] as usize, groups[at]);
            let row = live_rows[i];
            step_counter::count(|| 1);
            if !equal(group, row) {
                group = self.search(hashes[i], lanes(i), |group| compare(group, row));
            }
            rows[hits] = row;
            groups[hits] = group;
            hits += usize::from(group != NONE);
        }
        hits
    }
}
