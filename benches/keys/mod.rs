//! Key columns that the benches share: one kind per index, and numbers in a random order that never changes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray};

/// Kinds of keys: one column that makes a dense index, one for the hash table, byte keys inside and outside of the table,
/// two integers that pack into one word, and an integer beside a string; `_x4` has each key four times.
#[allow(dead_code)] // Not every bench reads it.
pub(crate) const KINDS: [&str; 9] =
    ["int64_dense", "int64_random", "utf8", "utf8_33", "packed", "mixed", "int64_random_x4", "utf8_33_x4", "mixed_x4"];

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) as usize * n) >> 32
    }
}

/// The numbers below `n` in random order.
pub(crate) fn shuffled(n: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

/// The keys with the given numbers; different numbers are different keys, unless the kind ends in `_x4`.
pub(crate) fn keys(kind: &str, numbers: &[usize]) -> Vec<ArrayRef> {
    if let Some(kind) = kind.strip_suffix("_x4") {
        return keys(kind, &numbers.iter().map(|&i| i / 4).collect::<Vec<_>>());
    }
    let ints = |f: &dyn Fn(usize) -> i64| Arc::new(Int64Array::from_iter_values(numbers.iter().map(|&i| f(i)))) as _;
    let texts =
        |f: &dyn Fn(usize) -> String| Arc::new(StringArray::from_iter_values(numbers.iter().map(|&i| f(i)))) as _;
    match kind {
        "int64_dense" => vec![ints(&|i| i as i64 * 17)],
        "int64_random" => vec![ints(&|i| Random(i as u64).next() as i64)],
        "utf8" => vec![texts(&|i| format!("key-{i:08}"))],
        "utf8_33" => vec![texts(&|i| {
            let mut random = Random(i as u64);
            format!("{:016x}-{:016x}", random.next(), random.next())
        })],
        "packed" => {
            let day = Int32Array::from_iter_values(numbers.iter().map(|&i| (i % 365) as i32));
            vec![ints(&|i| i as i64 / 365 * 1009), Arc::new(day)]
        }
        "mixed" => vec![ints(&|i| i as i64 / 7), texts(&|i| format!("part-{}", i % 7))],
        other => panic!("unknown kind of keys {other}"),
    }
}
