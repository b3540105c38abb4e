//! The lookup in a dense index eight words at a time, for processors with AVX-512. Beside the plain loop it takes about half
//! the time of a probe that hits the cache: no bounds checks, and the hits are packed by one instruction.

use std::arch::x86_64::*;

/// Words of one step.
const STEP: usize = 8;

/// True where the processor has what [`look_up`] needs.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vpopcntdq")
}

/// Looks up whole steps of `words`, the first of which belongs to row `first`, and returns how many words it read and how
/// many of them are hits: their rows and ranks are written to the fronts of `rows` and `groups`, as long as `words`.
///
/// `words - min` is a place in the set `bits`, of numbers up to `span`, as
/// [`RankedBits`](super::ranked_bits::RankedBits) has it.
#[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
pub(super) fn look_up(
    bits: &[u64],
    (min, span): (u64, u64),
    words: &[u64],
    first: u32,
    rows: &mut [u32],
    groups: &mut [u32],
) -> (usize, usize) {
    let (rows, groups) = (&mut rows[..words.len()], &mut groups[..words.len()]);
    // A file may claim a span that its bits do not cover; the plain loop finds out.
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
        // SAFETY: a step is 64 bytes.
        let value = _mm512_sub_epi64(unsafe { _mm512_loadu_si512(step.as_ptr().cast()) }, min);
        let inside = _mm512_cmple_epu64_mask(value, span);
        let place = _mm512_srli_epi64::<5>(value);
        // SAFETY: only places of values up to `span` are read, and `bits` is longer than `span / 32`.
        let word =
            unsafe { _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), inside, place, bits.as_ptr().cast()) };
        let bit = _mm512_sllv_epi64(one, _mm512_and_si512(value, low_bits));
        let member = _mm512_mask_test_epi64_mask(inside, word, bit);
        let below = _mm512_and_si512(word, _mm512_sub_epi64(bit, one));
        let rank = _mm512_add_epi64(_mm512_srli_epi64::<32>(word), _mm512_popcnt_epi64(below));
        // SAFETY: there were no more hits than words read before, so a whole step of room is left behind them.
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
