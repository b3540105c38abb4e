//! The hash functions of the index. They are pinned: files and group ids depend on them, so they never change silently.

/// Hash functions tried before a flooded bucket is accepted and searched by bisection.
pub(super) const SEEDS: usize = 8;

const K: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

/// The seed of the `attempt`-th hash function.
pub(super) fn seed(attempt: usize) -> u64 {
    K[2].wrapping_mul(attempt as u64)
}

/// Hash of one word. A bijection: equal hashes mean equal words, so a table of hashes needs no words beside them.
#[inline(always)]
pub(super) fn word(word: u64, seed: u64) -> u64 {
    let mut x = (word ^ seed).wrapping_mul(K[0]);
    x ^= x >> 32;
    x.wrapping_mul(K[1])
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hash of at most 16 bytes, padded with zeros, and their number.
#[inline(always)]
pub(super) fn short(padded: u128, len: usize, seed: u64) -> u64 {
    let lanes = fold(padded as u64 ^ K[2] ^ seed, (padded >> 64) as u64 ^ K[3]);
    fold(lanes ^ len as u64, K[0])
}

/// Hash of any bytes.
#[inline]
pub(super) fn bytes(bytes: &[u8], seed: u64) -> u64 {
    let len = bytes.len();
    if len <= 16 {
        return short(padded(bytes, 0, len), len, seed);
    }
    let mut state = seed;
    let mut at = 0;
    while at < len {
        // The last block overlaps the one before it.
        let block = padded(bytes, at.min(len - 16), 16);
        state = fold(block as u64 ^ K[2] ^ state, (block >> 64) as u64 ^ K[3]);
        at += 16;
    }
    fold(state ^ len as u64, K[0])
}

/// `data[at..at + len]`, at most 16 bytes, as a little-endian number.
#[inline(always)]
pub(super) fn padded(data: &[u8], at: usize, len: usize) -> u128 {
    padded_by(data, at, len, MASKS[len])
}

/// The same with the mask of the length at hand.
#[inline(always)]
pub(super) fn padded_by(data: &[u8], at: usize, len: usize, mask: u128) -> u128 {
    match data.get(at..).and_then(|data| data.first_chunk()) {
        // Reads past the value and masks: faster than a copy of unknown length.
        Some(block) => u128::from_le_bytes(*block) & mask,
        None => {
            let mut block = [0; 16];
            block[..len].copy_from_slice(&data[at..at + len]);
            u128::from_le_bytes(block)
        }
    }
}

/// The lower `len` bytes.
pub(super) const MASKS: [u128; 17] = {
    let mut masks = [u128::MAX; 17];
    let mut len = 0;
    while len < 16 {
        masks[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    masks
};

/// For tests, `IndexOptions::collide`: `hash` reduced to one of `collide` values that are spread over the hash range.
#[inline(always)]
pub(super) fn collide(hash: u64, collide: u64) -> u64 {
    if collide == 0 { hash } else { (hash % collide).wrapping_mul(u64::MAX / collide) }
}

/// Maps a hash to `0..n`, monotonically, without division.
#[inline(always)]
pub(super) fn scale(hash: u64, n: u64) -> usize {
    ((u128::from(hash) * u128::from(n)) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures come from another implementation of the same functions.
    #[test]
    fn pinned() {
        assert_eq!(word(42, 0), 0xdd4e_e9e2_633f_5514);
        assert_eq!(bytes(b"key-00000042", 0), 0xc7a3_20ff_301f_f873);
        assert_eq!(bytes(b"a key of more than sixteen bytes", seed(3)), 0x1ecf_1ad3_b057_a3d5);
    }

    #[test]
    fn padding_reads_only_the_value() {
        let data: Vec<u8> = (1..=40).collect();
        for at in 0..=40 {
            for len in 0..=16.min(40 - at) {
                let mut plain = [0; 16];
                plain[..len].copy_from_slice(&data[at..at + len]);
                assert_eq!(padded(&data, at, len), u128::from_le_bytes(plain));
            }
        }
    }
}
