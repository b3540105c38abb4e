//! A probe row whose bucket of the hash table may hold its key, as one word.

/// The first tuples of a bucket, which are compared whatever the length of the bucket.
pub(super) const WINDOW: usize = 4;

/// The bits of a [`candidate`] that hold the position of its hash in the chunk.
pub(super) const POSITION: u64 = LONGER - 1;

/// Set in a [`candidate`] whose bucket has more tuples than a window.
pub(super) const LONGER: u64 = 1 << 31;

/// The first tuple of the bucket in the upper half of the word, the position of the row in its chunk in the lower half.
#[inline(always)]
pub(super) fn candidate(position: usize, start: u32, end: u32) -> u64 {
    let longer = if end.wrapping_sub(start) as usize > WINDOW { LONGER } else { 0 };
    u64::from(start) << 32 | longer | position as u64
}

/// The tag of a hash: two of the 32 upper bits, chosen by bits of the hash that hardly influence its bucket.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u64 {
    1 << (32 | (hash >> 27 & 31)) | 1 << (32 | (hash >> 22 & 31))
}
