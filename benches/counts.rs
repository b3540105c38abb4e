//! The work whose instructions benches/counts.py counts: `counts <kind> <prepare|probe> <repetitions>`.

mod keys;

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use keys::{KINDS, Random, keys, shuffled};
use prejoin::{BuildSpec, Cancel, Collector, Config, Hits, MemoryPool, NullEquality, Pool};

const ROWS: usize = 65_536;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kind, work, repetitions] = arguments.as_slice() else {
        // `cargo bench` calls it without arguments; there is nothing to time.
        return println!("{}", KINDS.join(" "));
    };
    let repetitions: usize = repetitions.parse().expect("a number of repetitions");
    let mut random = Random(1);
    let mut columns = keys(kind, &shuffled(ROWS, &mut random));
    let spec_keys: Vec<usize> = (0..columns.len()).collect();
    columns.push(Arc::new(Int64Array::from_iter_values(0..ROWS as i64)));
    let named = columns.into_iter().enumerate().map(|(i, column)| (format!("c{i}"), column));
    let rows = RecordBatch::try_from_iter(named).expect("columns of one length");
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    let prepare = || {
        let nulls = vec![NullEquality::NullEqualsNothing; spec_keys.len()];
        let spec = BuildSpec::try_new(rows.schema(), spec_keys.clone(), nulls).expect("keys that exist");
        let mut collector = Collector::new(spec, &pool, Config::default(), Cancel::default());
        collector.push(rows.clone()).expect("an unlimited pool");
        collector.finish().expect("an unlimited pool")
    };
    match work.as_str() {
        "prepare" => (0..repetitions).for_each(|_| drop(black_box(prepare()))),
        "probe" => {
            let build = prepare();
            let numbers: Vec<usize> = (0..ROWS).map(|_| random.below(2 * ROWS)).collect();
            let probe: Vec<ArrayRef> = keys(kind, &numbers);
            let mut hits = Hits::default();
            for _ in 0..repetitions {
                for start in (0..ROWS).step_by(8192) {
                    hits.clear();
                    build.index().probe(&probe, start, 8192, &mut hits).expect("keys of the build's type");
                    black_box(&hits);
                }
            }
        }
        other => panic!("unknown work {other}"),
    }
}
