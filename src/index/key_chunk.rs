//! The working memory for one chunk of rows. Probes and builds take rows in chunks that fit the cache: each step of the work
//! runs over the whole chunk before the next step begins.

use super::avx512::Avx512;

/// The rows of a chunk that are still under consideration, and what was computed from their keys. Rows leave where a null
/// keeps them from matching, or where no indexed key can equal theirs. Kept between calls, so that small probes do not
/// allocate.
#[derive(Debug, Default)]
pub(super) struct KeyChunk {
    len: usize,
    /// Numbers of the rows that are left, counted from the start of the column.
    rows: Vec<u32>,
    /// One word (or hash) per row that is left.
    words: Vec<u64>,
    /// Byte keys of at most 16 bytes as numbers, one per row that is left.
    wide: Vec<u128>,
    live: Vec<bool>,
    valid: Vec<bool>,
    sums: Vec<u64>,
    pub(super) candidates: Candidates,
}

/// The probe rows whose bucket may hold their key.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Set where the processor can look up eight words at a time.
    pub(super) avx512: Option<Avx512>,
    words: Vec<u64>,
}

impl Candidates {
    /// Room for `len` candidates, as [`FrozenTable`](super::frozen_table::FrozenTable) writes them.
    #[inline(always)]
    pub(super) fn room(&mut self, len: usize) -> &mut [u64] {
        grown(&mut self.words, len)
    }
}

fn grown<T: Clone + Default>(values: &mut Vec<T>, len: usize) -> &mut [T] {
    if values.len() < len {
        values.resize(len, T::default());
    }
    &mut values[..len]
}

impl KeyChunk {
    /// Rows of a full chunk.
    pub(super) const ROWS: usize = 1024;

    pub(super) fn words(&mut self, len: usize) -> &mut [u64] {
        grown(&mut self.words, len)
    }

    /// `len` flags, all true.
    pub(super) fn live(&mut self, len: usize) -> &mut [bool] {
        let live = grown(&mut self.live, len);
        live.fill(true);
        live
    }

    /// Keeps all rows.
    pub(super) fn all(&mut self, start: usize, len: usize) {
        self.len = len;
        for (row, absolute) in grown(&mut self.rows, len).iter_mut().zip(start as u32..) {
            *row = absolute;
        }
    }

    /// Keeps the rows that are live, and their words.
    pub(super) fn compact(&mut self, start: usize, len: usize) {
        let (live, words, rows) = (&self.live[..len], &mut self.words[..len], grown(&mut self.rows, len));
        let mut n = 0;
        for (i, &live) in live.iter().enumerate() {
            rows[n] = (start + i) as u32;
            words[n] = words[i];
            n += usize::from(live);
        }
        self.len = n;
    }

    /// Begins words that are packed from several columns: all rows live, all sums 0.
    pub(super) fn clear_sums(&mut self, len: usize) {
        self.live(len);
        grown(&mut self.sums, len).fill(0);
    }

    /// Words, live flags, sums and validity flags, for adding one column to the packed words.
    pub(super) fn packing(&mut self, len: usize) -> (&mut [u64], &mut [bool], &mut [u64], &mut [bool]) {
        (grown(&mut self.words, len), &mut self.live[..len], &mut self.sums[..len], grown(&mut self.valid, len))
    }

    /// Keeps the rows that are live, with the sums as their words.
    pub(super) fn compact_sums(&mut self, start: usize, len: usize) {
        std::mem::swap(&mut self.words, &mut self.sums);
        self.compact(start, len);
    }

    /// Rows that are left.
    pub(super) fn live_rows(&self) -> &[u32] {
        &self.rows[..self.len]
    }

    /// Words of the rows that are left.
    pub(super) fn live_words(&self) -> &[u64] {
        &self.words[..self.len]
    }

    /// Byte keys, as numbers, of the rows that are left.
    pub(super) fn wide(&self) -> &[u128] {
        &self.wide[..self.len]
    }

    pub(super) fn live_words_mut(&mut self) -> &mut [u64] {
        &mut self.words[..self.len]
    }

    /// Rows that are left, their hashes, and room for candidates.
    pub(super) fn table(&mut self) -> (&[u32], &[u64], &mut Candidates) {
        (&self.rows[..self.len], &self.words[..self.len], &mut self.candidates)
    }

    /// Rows that are left, their hashes, their byte keys as numbers, and room for candidates.
    #[allow(clippy::type_complexity)]
    pub(super) fn wide_table(&mut self) -> (&[u32], &[u64], &[u128], &mut Candidates) {
        (&self.rows[..self.len], &self.words[..self.len], &self.wide[..self.len], &mut self.candidates)
    }

    /// Room for `len` rows, their hashes, and their byte keys as numbers.
    #[inline(always)]
    pub(super) fn room(&mut self, len: usize) -> (&mut [u32], &mut [u64], &mut [u128]) {
        (grown(&mut self.rows, len), grown(&mut self.words, len), grown(&mut self.wide, len))
    }

    /// Keeps the first `len` of the rows that were written to [`room`](Self::room).
    pub(super) fn keep(&mut self, len: usize) {
        self.len = len;
    }

    /// Replaces the words by the hashes of the rows that are left.
    #[inline(always)]
    pub(super) fn hash_live(&mut self, hash: impl Fn(u32) -> u64) {
        for (word, &row) in self.words[..self.len].iter_mut().zip(&self.rows[..self.len]) {
            *word = hash(row);
        }
    }
}
