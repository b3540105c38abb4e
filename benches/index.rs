//! Time per row of preparing and probing the index alone, by kind of key and build size.
//!
//! 64 different probe batches of 4096 rows in random order, half of them match. The time of one element is one row.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prejoin::{Cancel, Config, Hits, IndexContext, KeyIndex, MemoryPool, Pool, Reservation, RowGroups};

const BATCHES: usize = 64;
const BATCH_ROWS: usize = 4096;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) as usize * n) >> 32
    }
}

/// The keys with the given numbers. Numbers from the build's size on are absent from it.
fn keys(kind: &str, numbers: impl Iterator<Item = usize>) -> ArrayRef {
    match kind {
        "int64_dense" => Arc::new(Int64Array::from_iter_values(numbers.map(|i| i as i64 * 17))),
        "int64_random" => Arc::new(Int64Array::from_iter_values(numbers.map(|i| Random(i as u64).next() as i64))),
        "utf8" => Arc::new(StringArray::from_iter_values(numbers.map(|i| format!("key-{i:08}")))),
        _ => Arc::new(StringArray::from_iter_values(numbers.map(|i| {
            let mut random = Random(i as u64);
            format!("{:016x}-{:016x}", random.next(), random.next())
        }))),
    }
}

fn prepare(keys: &ArrayRef, pool: &Arc<dyn Pool>) -> (KeyIndex, RowGroups, Reservation) {
    let (mut retained, mut scratch) = (Reservation::new(pool, "retained"), Reservation::new(pool, "scratch"));
    let context = IndexContext {
        config: &Config::default(),
        retained: &mut retained,
        scratch: &mut scratch,
        bounds: &[],
        cancel: &Cancel::default(),
    };
    let (index, groups) = KeyIndex::build(std::slice::from_ref(keys), &[false], context).expect("an unlimited pool");
    (index, groups, retained)
}

fn index(c: &mut Criterion) {
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    for kind in ["int64_dense", "int64_random", "utf8", "utf8_33"] {
        let mut group = c.benchmark_group(kind);
        group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
        for rows in [64, 65_536, 1_000_000] {
            let mut random = Random(1);
            let mut order: Vec<usize> = (0..rows).collect();
            for i in (1..rows).rev() {
                order.swap(i, random.below(i + 1));
            }
            let build = keys(kind, order.into_iter());
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(format!("prepare/{rows}"), |b| b.iter(|| black_box(prepare(&build, &pool))));

            let (index, groups, retained) = prepare(&build, &pool);
            println!("{kind}/{rows}: {:.2} bytes per row", retained.size() as f64 / rows as f64);
            let batches: Vec<[ArrayRef; 1]> =
                (0..BATCHES).map(|_| [keys(kind, (0..BATCH_ROWS).map(|_| random.below(2 * rows)))]).collect();
            let mut hits = Hits::default();
            group.throughput(Throughput::Elements((BATCHES * BATCH_ROWS) as u64));
            group.bench_function(format!("probe/{rows}"), |b| {
                b.iter(|| {
                    for batch in &batches {
                        hits.clear();
                        index.probe(batch, 0, BATCH_ROWS, &mut hits).expect("keys of the build's type");
                        black_box(&hits);
                    }
                });
            });
            drop(groups);
        }
        group.finish();
    }
}

criterion_group!(benches, index);
criterion_main!(benches);
