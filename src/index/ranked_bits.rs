//! A set of small numbers that knows the rank of each member, the number of members below it. Each word holds 32 bits of the
//! set and the rank of the first of them.

use arrow_buffer::ScalarBuffer;

use super::allocate::{admitted, held};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::memory::Reservation;

/// Words between two checks for cancellation.
const MORSEL: usize = 1 << 16;

/// The set while members are inserted.
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// The empty set of numbers up to `max`.
    pub(super) fn new(max: u64, reservation: &mut Reservation) -> Result<Self> {
        Ok(Self(admitted(reservation, (max / 32) as usize + 1)?))
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, value: u64) {
        self.0[(value / 32) as usize] |= 1 << (value % 32);
    }

    /// Adds the ranks. Returns the finished set and the number of its members.
    pub(super) fn rank(mut self, cancel: &Cancel) -> Result<(RankedBits, usize)> {
        let mut rank = 0u64;
        for morsel in self.0.chunks_mut(MORSEL) {
            cancel.check()?;
            for word in morsel {
                let members = u64::from(word.count_ones());
                *word |= rank << 32;
                rank += members;
            }
        }
        Ok((RankedBits(self.0.into()), rank as usize))
    }
}

/// [`RankedBits::rank`] for loops that hold the words of the set.
#[inline(always)]
pub(super) fn rank(words: &[u64], value: u64) -> (bool, u32) {
    let (word, bit) = (words[(value / 32) as usize], value % 32);
    let below = word as u32 & ((1u32 << bit) - 1);
    (word >> bit & 1 != 0, (word >> 32) as u32 + below.count_ones())
}

/// A set of numbers in `0..32 * words`: bits in the lower half of each word, the rank of its first bit in the upper one.
#[derive(Debug)]
pub(super) struct RankedBits(pub(super) ScalarBuffer<u64>);

impl RankedBits {
    /// Whether `value`, which is at most the set's `max`, is a member, and how many members are below it.
    #[inline(always)]
    pub(super) fn rank(&self, value: u64) -> (bool, u32) {
        rank(&self.0, value)
    }

    pub(super) fn as_ref(&self) -> &[u64] {
        &self.0
    }

    /// All members, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().zip((0..).step_by(32)).flat_map(|(&word, base)| {
            let mut bits = word as u32;
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.checked_sub(1)?;
                Some(base + u64::from(bit))
            })
        })
    }

    pub(super) fn memory_size(&self) -> usize {
        held(&self.0)
    }
}
