//! Lookups of eight words at a time, for processors with AVX-512: many loads are under way at once, no load checks its bounds,
//! and one instruction packs the words that were found. At 65,536 keys the dense index takes 0.9 ns a row with it and 2.2
//! without.
//!
//! Each function does the same as a plain loop beside its caller. The plain loop takes the words that are left at the end, and
//! all words on other processors.

#[cfg(not(target_arch = "x86_64"))]
pub(super) use elsewhere::Avx512;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::Avx512;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::*;

    use crate::index::frozen_table::{LONGER, WINDOW};

    /// Proof that the processor has the instructions that this file uses. Only [`detect`](Self::detect) makes one.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::index) struct Avx512(());

    impl Avx512 {
        pub(in crate::index) fn detect() -> Option<Self> {
            let found = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vpopcntdq");
            found.then_some(Self(()))
        }

        /// Looks up `words`, of which the first belongs to row `first`, in a dense index. Returns how many words it read and
        /// how many of them were found. The rows and ranks of those are written to the fronts of `rows` and `groups`, which
        /// are as long as `words`.
        ///
        /// `words - min` is looked for in the set `bits` of numbers up to `span`, which is laid out as
        /// [`RankedBits`](crate::index::ranked_bits::RankedBits) says.
        #[inline(always)]
        pub(in crate::index) fn dense(
            self,
            bits: &[u64],
            range: (u64, u64),
            words: &[u64],
            first: u32,
            rows: &mut [u32],
            groups: &mut [u32],
        ) -> (usize, usize) {
            // SAFETY: `self` proves that the processor has the features.
            unsafe { dense(bits, range, words, first, rows, groups) }
        }

        /// Finds the buckets of `hashes`. Returns how many hashes it read and how many of them may be in their bucket, as its
        /// tag says. Those are written to the front of `candidates`, which is as long as `hashes`.
        ///
        /// Directory, tags and candidates are those of [`FrozenTable`](crate::index::frozen_table::FrozenTable).
        #[inline(always)]
        pub(in crate::index) fn candidates(
            self,
            directory: &[u64],
            hashes: &[u64],
            candidates: &mut [u64],
        ) -> (usize, usize) {
            // SAFETY: `self` proves that the processor has the features.
            unsafe { find_candidates(directory, hashes, candidates) }
        }
    }

    /// Words of one step.
    const STEP: usize = 8;

    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
    fn dense(
        bits: &[u64],
        (min, span): (u64, u64),
        words: &[u64],
        first: u32,
        rows: &mut [u32],
        groups: &mut [u32],
    ) -> (usize, usize) {
        let (rows, groups) = (&mut rows[..words.len()], &mut groups[..words.len()]);
        // A file that was not verified may claim a span that its bits do not cover; the plain loop stops there.
        if span / 32 >= bits.len() as u64 {
            return (0, 0);
        }
        let (min, span) = (_mm512_set1_epi64(min as i64), _mm512_set1_epi64(span as i64));
        let (one, low_bits) = (_mm512_set1_epi64(1), _mm512_set1_epi64(31));
        let mut row = _mm256_add_epi32(_mm256_set1_epi32(first as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        let mut hits = 0;
        let steps = words.chunks_exact(STEP);
        let read = words.len() - steps.remainder().len();
        for step in steps {
            // SAFETY: a step is eight words, 64 bytes.
            let value = _mm512_sub_epi64(unsafe { _mm512_loadu_si512(step.as_ptr().cast()) }, min);
            let inside = _mm512_cmple_epu64_mask(value, span);
            let place = _mm512_srli_epi64::<5>(value);
            // SAFETY: only places of values up to `span` are read, and `bits` is longer than `span / 32`.
            let word = unsafe {
                _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), inside, place, bits.as_ptr().cast())
            };
            let bit = _mm512_sllv_epi64(one, _mm512_and_si512(value, low_bits));
            let member = _mm512_mask_test_epi64_mask(inside, word, bit);
            let below = _mm512_and_si512(word, _mm512_sub_epi64(bit, one));
            let rank = _mm512_add_epi64(_mm512_srli_epi64::<32>(word), _mm512_popcnt_epi64(below));
            // SAFETY: at most as many words were found as were read before this step, so there is room for a whole step.
            unsafe {
                let (rows, groups) = (rows.as_mut_ptr().add(hits), groups.as_mut_ptr().add(hits));
                _mm256_storeu_si256(rows.cast(), _mm256_maskz_compress_epi32(member, row));
                _mm256_storeu_si256(groups.cast(), _mm256_maskz_compress_epi32(member, _mm512_cvtepi64_epi32(rank)));
            }
            hits += member.count_ones() as usize;
            row = _mm256_add_epi32(row, _mm256_set1_epi32(STEP as i32));
        }
        (read, hits)
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
    fn find_candidates(directory: &[u64], hashes: &[u64], candidates: &mut [u64]) -> (usize, usize) {
        let candidates = &mut candidates[..hashes.len()];
        // Without a bucket there is no second entry to read; above 2^32 buckets the products below overflow.
        let buckets = directory.len().checked_sub(1).filter(|&buckets| buckets > 0);
        let Some(buckets) = buckets.and_then(|buckets| u32::try_from(buckets).ok()) else {
            return (0, 0);
        };
        let buckets = _mm512_set1_epi64(buckets.into());
        let (low_bits, tag_bit) = (_mm512_set1_epi64(31), _mm512_set1_epi64(1 << 32));
        let (low_half, window) = (_mm512_set1_epi64(u32::MAX.into()), _mm512_set1_epi64(WINDOW as i64));
        let longer = _mm512_set1_epi64(LONGER as i64);
        let mut position = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
        let mut found = 0;
        let steps = hashes.chunks_exact(STEP);
        let read = hashes.len() - steps.remainder().len();
        for step in steps {
            // SAFETY: a step is eight words, 64 bytes.
            let hash = unsafe { _mm512_loadu_si512(step.as_ptr().cast()) };
            // The upper half of a product of 96 bits, as `scale` takes it: below the number of buckets.
            let upper = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), buckets);
            let lower = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hash, buckets));
            let bucket = _mm512_srli_epi64::<32>(_mm512_add_epi64(upper, lower));
            // SAFETY: `bucket` is below the number of buckets, and the directory has one entry more than that.
            let (before, this) = unsafe {
                let before = directory.as_ptr().cast();
                (_mm512_i64gather_epi64::<8>(bucket, before), _mm512_i64gather_epi64::<8>(bucket, before.add(1)))
            };
            let bit = |bits| _mm512_sllv_epi64(tag_bit, _mm512_and_si512(bits, low_bits));
            let tag = _mm512_or_si512(bit(_mm512_srli_epi64::<27>(hash)), bit(_mm512_srli_epi64::<22>(hash)));
            let maybe = _mm512_cmpeq_epi64_mask(_mm512_and_si512(this, tag), tag);
            let len = _mm512_and_si512(_mm512_sub_epi64(this, before), low_half);
            let candidate = _mm512_or_si512(_mm512_slli_epi64::<32>(before), position);
            let candidate = _mm512_mask_or_epi64(candidate, _mm512_cmpgt_epu64_mask(len, window), candidate, longer);
            // SAFETY: at most as many were found as were read before this step, so there is room for a whole step.
            unsafe {
                let to = candidates.as_mut_ptr().add(found);
                _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi64(maybe, candidate));
            }
            found += maybe.count_ones() as usize;
            position = _mm512_add_epi64(position, _mm512_set1_epi64(STEP as i64));
        }
        (read, found)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Slices that have no room for a bucket or do not cover the span are left to the plain loop.
        #[test]
        fn short_inputs_are_not_read() {
            let Some(avx512) = Avx512::detect() else { return };
            let hashes = [u64::MAX; 16];
            for directory in [&[][..], &[0]] {
                assert_eq!(avx512.candidates(directory, &hashes, &mut [0; 16]), (0, 0));
            }
            for bits in [&[][..], &[u64::MAX]] {
                assert_eq!(avx512.dense(bits, (0, 32), &[32; 16], 0, &mut [0; 16], &mut [0; 16]), (0, 0));
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    /// Other processors do not have the instructions, so there is no value of this type.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::index) enum Avx512 {}

    impl Avx512 {
        pub(in crate::index) fn detect() -> Option<Self> {
            None
        }

        pub(in crate::index) fn dense(
            self,
            _: &[u64],
            _: (u64, u64),
            _: &[u64],
            _: u32,
            _: &mut [u32],
            _: &mut [u32],
        ) -> (usize, usize) {
            match self {}
        }

        pub(in crate::index) fn candidates(self, _: &[u64], _: &[u64], _: &mut [u64]) -> (usize, usize) {
            match self {}
        }
    }
}
