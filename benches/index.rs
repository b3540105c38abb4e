//! Time per row of preparing and probing the index alone, by kind of key and build size.
//!
//! 64 different probe batches of 4096 rows in random order, half of them match. The time of one element is one row.

mod keys;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::ArrayRef;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keys::{KINDS, Random, keys, shuffled};
use prejoin::internals::IndexContext;
use prejoin::{Cancel, Config, Hits, KeyIndex, KeyRows, MemoryPool, Pool, Reservation};

const BATCHES: usize = 64;
const BATCH_ROWS: usize = 4096;

fn prepare(keys: &[ArrayRef], pool: &Arc<dyn Pool>) -> (KeyIndex, KeyRows, Reservation) {
    let (mut retained, mut scratch) = (Reservation::new(pool, "retained"), Reservation::new(pool, "scratch"));
    let context = IndexContext {
        config: &Config::default(),
        retained: &mut retained,
        scratch: &mut scratch,
        bounds: &[],
        cancel: &Cancel::default(),
    };
    let (index, groups) = KeyIndex::build(keys, &vec![false; keys.len()], context).expect("an unlimited pool");
    (index, groups, retained)
}

fn index(c: &mut Criterion) {
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    for kind in KINDS {
        let mut group = c.benchmark_group(kind);
        group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
        for rows in [64, 65_536, 1_000_000] {
            let mut random = Random(1);
            let build = keys(kind, &shuffled(rows, &mut random));
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(format!("prepare/{rows}"), |b| b.iter(|| black_box(prepare(&build, &pool))));

            let (index, groups, retained) = prepare(&build, &pool);
            println!("{kind}/{rows}: {:.2} bytes per row", retained.size() as f64 / rows as f64);
            let mut numbers = || (0..BATCH_ROWS).map(|_| random.below(2 * rows)).collect::<Vec<_>>();
            let batches: Vec<_> = (0..BATCHES).map(|_| keys(kind, &numbers())).collect();
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
