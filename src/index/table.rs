//! The frozen hash table: tuples sorted by bucket, and a directory of buckets.
//!
//! A directory entry holds where its bucket's tuples end and a Bloom tag of their hashes, so that most absent keys are
//! told from the directory alone. Tuples hold key and group id side by side. The number of buckets is any multiple of
//! the number of partitions (multiply-shift instead of powers of two), so memory follows the number of distinct keys.

use std::cmp::Ordering;
use std::hint::{black_box, select_unpredictable};

use arrow_buffer::ScalarBuffer;

use super::hash::{self, scale};
use super::scratch::{admitted, held, release, with_capacity};
use super::stage::{Candidates, Stage};
use super::{IndexContext, NONE, steps};
use crate::error::Result;

/// Tuples of a bucket that are compared without a look at the bucket's length.
pub(super) const WINDOW: usize = 4;

/// Longest bucket that is searched one tuple after the other.
pub(super) const LONG: usize = 32;

/// At most one entry of this many may be suspected of having the same key as another: about 1% are without reason.
const SUSPECTS: usize = 16;

/// A table whose keys are `L` lanes of 32 bits. A tuple is the key's lanes and the group id.
#[derive(Debug)]
pub(super) struct Table<const L: usize> {
    /// The first entry is 0; entry `b + 1` is the end of bucket `b` and, in its upper half, the bucket's tag.
    pub(super) directory: ScalarBuffer<u64>,
    pub(super) tuples: ScalarBuffer<u32>,
    pub(super) collide: u64,
}

/// Position of a hash in its stage, within a [`candidate`].
pub(super) const POSITION: u64 = LONGER - 1;

/// Set in a [`candidate`] whose bucket has more tuples than a window.
pub(super) const LONGER: u64 = 1 << 31;

/// A key that may be in the table, as one word: the first tuple of its bucket in the upper half.
#[inline(always)]
fn candidate(position: usize, start: u32, end: u32) -> u64 {
    let longer = if end.wrapping_sub(start) as usize > WINDOW { LONGER } else { 0 };
    u64::from(start) << 32 | longer | position as u64
}

/// Two of 32 bits, taken from hash bits that no directory of less than 2^32 buckets uses up.
#[inline(always)]
fn tag(hash: u64) -> u64 {
    1 << (32 | (hash >> 27 & 31)) | 1 << (32 | (hash >> 22 & 31))
}

/// Lanes and group of the tuple at `at`.
#[inline(always)]
fn tuple<const L: usize>(tuples: &[u32], at: usize) -> ([u32; L], u32) {
    let tuple = &tuples[at * (L + 1)..(at + 1) * (L + 1)];
    (std::array::from_fn(|lane| tuple[lane]), tuple[L])
}

/// What a table is made of. Partition `p` holds the hashes whose upper bits are `p`.
pub(super) trait Entries<const L: usize> {
    /// A power of two.
    fn partitions(&self) -> usize;
    fn len(&self) -> usize;
    /// Whether no two entries have the same key.
    fn are_distinct(&self) -> bool;
    /// Calls `each` with the hashes of partition `p` until it says to stop; answers whether it never did.
    fn hashes(&self, p: usize, each: impl FnMut(u64) -> bool) -> Result<bool>;
    /// Calls `each` with hash, lanes and row of the entries of partition `p`, as often as [`hashes`](Self::hashes) does.
    fn tuples(&self, p: usize, each: impl FnMut(u64, [u32; L], u32)) -> Result<()>;
}

impl<const L: usize> Table<L> {
    /// Makes the table of `entries`; `group` gives the group of a row. With `accept_long` the entries of each partition are
    /// sorted, and buckets may be longer than [`LONG`].
    ///
    /// Answers none where a bucket is longer, or where keys that were not known to be distinct seem to be equal.
    pub(super) fn freeze(
        entries: &impl Entries<L>,
        group: impl Fn(u32) -> u32,
        buckets_per_key: f64,
        accept_long: bool,
        context: &mut IndexContext<'_>,
    ) -> Result<Option<Self>> {
        let collide = context.config.collide;
        let (len, partitions) = (entries.len(), entries.partitions());
        let per_partition = ((len as f64 * buckets_per_key / partitions as f64) as usize).max(1);
        let buckets = per_partition * partitions;
        let mut directory: Vec<u64> = admitted(context.retained, buckets + 1)?;
        let mut tuples: Vec<u32> = admitted(context.retained, (len + WINDOW - 1) * (L + 1))?;
        // Buckets that may hold a key twice: the tag of an entry was in its bucket before.
        let most = if entries.are_distinct() { 0 } else { len / partitions / SUSPECTS + SUSPECTS };
        let mut suspects: Vec<u32> = with_capacity(context.scratch, most)?;
        let mut start = 0u32;
        for p in 0..partitions {
            context.cancel.check()?;
            let counted = entries.hashes(p, |hash| {
                let hash = hash::collide(hash, collide);
                let (at, tag) = (scale(hash, buckets as u64), tag(hash));
                let bucket = &mut directory[at + 1];
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
            for bucket in &mut directory[p * per_partition + 1..][..per_partition] {
                let len = *bucket as u32;
                if len as usize > LONG && !accept_long {
                    return Ok(None);
                }
                *bucket = *bucket >> 32 << 32 | u64::from(start);
                start += len;
            }
            entries.tuples(p, |hash, lanes, row| {
                let bucket = &mut directory[scale(hash::collide(hash, collide), buckets as u64) + 1];
                let at = *bucket as u32 as usize * (L + 1);
                *bucket += 1;
                let tuple = &mut tuples[at..at + L + 1];
                tuple[..L].copy_from_slice(&lanes);
                tuple[L] = group(row);
            })?;
            for bucket in suspects.drain(..) {
                let end = |at: usize| directory[at] as u32 as usize;
                let (bucket, lanes) = (bucket as usize, |at| tuple::<L>(&tuples, at).0);
                let mut pairs =
                    (end(bucket)..end(bucket + 1)).flat_map(|a| (a + 1..end(bucket + 1)).map(move |b| (a, b)));
                if pairs.any(|(a, b)| lanes(a) == lanes(b)) {
                    return Ok(None);
                }
            }
        }
        release(context.scratch, suspects);
        // The window of the last tuples ends in tuples of no group.
        tuples[len * (L + 1)..].fill(NONE);
        Ok(Some(Self { directory: directory.into(), tuples: tuples.into(), collide }))
    }

    pub(super) fn memory_size(&self) -> usize {
        held(&self.directory) + held(&self.tuples)
    }

    /// First tuple and end of the bucket of `hash`, and whether its tag allows for `hash`.
    #[inline(always)]
    fn bucket(directory: &[u64], hash: u64) -> (u32, u32, bool) {
        let bucket = scale(hash, directory.len() as u64 - 1);
        let (before, this) = (directory[bucket], directory[bucket + 1]);
        (before as u32, this as u32, this & tag(hash) == tag(hash))
    }

    /// Writes a [`candidate`] for each of `hashes` whose bucket may hold it, and returns their number.
    #[inline(always)]
    fn candidates(&self, hashes: &[u64], is_wide: bool, candidates: &mut [u64]) -> usize {
        steps::count(|| hashes.len());
        let (directory, candidates): (&[u64], _) = (&self.directory, &mut candidates[..hashes.len()]);
        #[cfg(target_arch = "x86_64")]
        let (read, n) = match is_wide && self.collide == 0 {
            // SAFETY: the processor has the features.
            true => unsafe { super::avx512::candidates(directory, hashes, candidates) },
            false => (0, 0),
        };
        #[cfg(not(target_arch = "x86_64"))]
        let (read, n) = (0, 0);
        let found = &mut candidates[n..];
        n + match self.collide {
            0 => Self::plain_candidates(directory, &hashes[read..], read, |hash| hash, found),
            n => Self::plain_candidates(directory, &hashes[read..], read, |hash| hash::collide(hash, n), found),
        }
    }

    /// Does the same one by one; the first of `hashes` is at position `first`.
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

    /// Looks up a stage of keys. Writes for each that is found `row(i)` and its group, ascending in `i`, and returns their
    /// number. `out` is as long as `hashes`.
    ///
    /// `compare(group, i)` orders the whole key of a group against that of probe `i` where the lanes of both are equal.
    /// It is asked in long buckets only: where lanes are not the whole key, the caller checks every match itself and
    /// turns to [`search`](Self::search) where it fails.
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
        let is_wide = candidates.is_wide;
        let candidates = candidates.room(hashes.len());
        let n = self.candidates(hashes, is_wide, candidates);
        let (rows, groups) = (&mut out.0[..hashes.len()], &mut out.1[..hashes.len()]);
        let tuples: &[u32] = &self.tuples;
        let mut hits = 0;
        for &candidate in &candidates[..n] {
            let (i, start) = ((candidate & POSITION) as usize, (candidate >> 32) as usize);
            let key = key(i);
            steps::count(|| WINDOW);
            let mut group = NONE;
            // Tuples past the bucket's end cannot hold the whole key, so the window needs no end.
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

    /// The group of one key, or `NONE`.
    #[cold]
    pub(super) fn search(&self, hash: u64, key: [u32; L], compare: impl Fn(u32) -> Ordering) -> u32 {
        let (start, end, maybe) = Self::bucket(&self.directory, hash::collide(hash, self.collide));
        steps::count(|| 1);
        if maybe { self.search_range(start, end, key, compare) } else { NONE }
    }

    fn search_range(&self, mut start: u32, mut end: u32, key: [u32; L], compare: impl Fn(u32) -> Ordering) -> u32 {
        let order = |at: u32| {
            let (lanes, group) = tuple(&self.tuples, at as usize);
            steps::count(|| 1);
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

impl Table<1> {
    /// Looks up a stage of keys of which the table holds half the hash. `touch(group)` reads a byte of the key of a group;
    /// `equal(group, row)` and `compare(group, row)` compare it with that of a probe row.
    #[inline(always)]
    pub(super) fn probe_verified(
        &self,
        stage: &mut Stage,
        touch: impl Fn(u32) -> u8,
        equal: impl Fn(u32, u32) -> bool,
        compare: impl Fn(u32, u32) -> Ordering,
        (rows, groups): (&mut [u32], &mut [u32]),
    ) -> usize {
        let (live_rows, hashes, candidates) = stage.table();
        let lanes = |i: usize| [hashes[i] as u32];
        let order = |group, i: usize| compare(group, live_rows[i]);
        let found = self.probe(hashes, lanes, |i| i as u32, order, candidates, (rows, groups));
        // All keys are asked for before the first is compared, so that their cache misses overlap.
        black_box(groups[..found].iter().fold(0, |sum, &group| sum ^ touch(group)));
        let mut hits = 0;
        for at in 0..found {
            let (i, mut group) = (rows[at] as usize, groups[at]);
            let row = live_rows[i];
            steps::count(|| 1);
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
