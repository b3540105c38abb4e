//! The time of a residual predicate per candidate pair. A range condition tests keys with 10,000 build rows each, of
//! which 3 pass; for comparison, Arrow's kernels run on the same pairs, gathered before (kernels) or within the timed
//! part (take_and_kernels).
//!
//! `cargo bench --bench residual`; all figures are per pair.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow_arith::boolean::and;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array};
use arrow_ord::cmp::{gt_eq, lt};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::take::take;
use criterion::{Criterion, Throughput};
use prejoin::{BatchStream, Config, HashJoin, JoinType, MemoryPool, Pool, RunOptions, Source, expr::Expr};

const KEYS: usize = 16;
const MATCHES: usize = 10_000;
const PROBE_ROWS: usize = 128;
const PAIRS: usize = PROBE_ROWS * MATCHES;
const CHUNK: usize = 8192;

fn batch(names: [&str; 2], columns: [Vec<i64>; 2]) -> RecordBatch {
    let fields = names.map(|name| Field::new(name, DataType::Int64, false));
    let columns = columns.map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns.to_vec()).unwrap()
}

/// The pairs of a nested loop as rows of both sides, one chunk at a time.
fn chunks(build: &RecordBatch, probe: &RecordBatch) -> Vec<(UInt32Array, UInt32Array)> {
    let key = |batch: &RecordBatch, row: usize| {
        batch.column(0).as_any().downcast_ref::<Int64Array>().map(|keys| keys.value(row)).unwrap()
    };
    let rows: Vec<Vec<u32>> = (0..KEYS as i64)
        .map(|k| (0..build.num_rows()).filter(|&row| key(build, row) == k).map(|row| row as u32).collect())
        .collect();
    let pairs: Vec<(u32, u32)> = (0..PROBE_ROWS)
        .flat_map(|row| rows[key(probe, row) as usize].iter().map(move |&build| (build, row as u32)))
        .collect();
    let column =
        |chunk: &[(u32, u32)], side: fn(&(u32, u32)) -> u32| UInt32Array::from_iter_values(chunk.iter().map(side));
    pairs.chunks(CHUNK).map(|chunk| (column(chunk, |pair| pair.0), column(chunk, |pair| pair.1))).collect()
}

fn kernels(at: &ArrayRef, low: &ArrayRef, least: &Int64Array) -> BooleanArray {
    let span = arrow_arith::numeric::add(low, &Int64Array::new_scalar(3)).unwrap();
    and(
        &and(&gt_eq(at, low).unwrap(), &lt(at, &span).unwrap()).unwrap(),
        &gt_eq(at, &arrow_array::Scalar::new(least)).unwrap(),
    )
    .unwrap()
}

fn main() {
    // The rows of a key do not lie together, as in a table that is ordered by time.
    let rows = KEYS * MATCHES;
    let keys = (0..rows).map(|i| (i % KEYS) as i64).collect();
    let at = (0..rows).map(|i| ((i / KEYS) * 7 % MATCHES) as i64).collect();
    let build = batch(["k", "at"], [keys, at]);
    let mut criterion = Criterion::default()
        .configure_from_args()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    let mut group = criterion.benchmark_group("residual");
    group.throughput(Throughput::Elements(PAIRS as u64));
    // Probe rows of the same key follow each other, or the key changes with each row.
    for (order, keys) in
        [("sorted", |i| i * KEYS / PROBE_ROWS), ("mixed", |i| i % KEYS)] as [(_, fn(usize) -> usize); 2]
    {
        let keys = (0..PROBE_ROWS).map(|i| keys(i) as i64).collect();
        let probe = batch(["k", "low"], [keys, (0..PROBE_ROWS).map(|i| (i * 37 % 9000) as i64).collect()]);
        let chunks = chunks(&build, &probe);
        let least = Int64Array::from(vec![0]);
        let pick = |batch: &RecordBatch, rows: &UInt32Array| take(batch.column(1), rows, None).unwrap();
        let ready: Vec<(ArrayRef, ArrayRef)> = chunks.iter().map(|(b, p)| (pick(&build, b), pick(&probe, p))).collect();
        let passing: usize = ready.iter().map(|(at, low)| kernels(at, low, &least).true_count()).sum();
        assert_eq!(passing, 3 * PROBE_ROWS);
        group.bench_function(format!("{order}/kernels"), |bencher| {
            bencher.iter(|| ready.iter().map(|(at, low)| kernels(at, low, &least).true_count()).sum::<usize>());
        });
        group.bench_function(format!("{order}/take_and_kernels"), |bencher| {
            bencher.iter(|| {
                let count = |(b, p): &(_, _)| kernels(&pick(&build, b), &pick(&probe, p), &least).true_count();
                chunks.iter().map(count).sum::<usize>()
            });
        });
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        for kind in
            [JoinType::Inner, JoinType::ProbeOuter, JoinType::FullOuter, JoinType::ProbeSemi, JoinType::ProbeAnti]
        {
            let source = {
                let probe = probe.clone();
                Source::new(probe.schema(), 1, move |_| {
                    Ok(BatchStream::from_batches(probe.schema(), vec![probe.clone()]))
                })
            };
            let filter = Expr::parse_sql("at >= low and at < low + 3 and at >= 0").unwrap();
            let join = HashJoin::builder(build.schema(), source).on([("k", "k")]).join_type(kind).filter(Some(filter));
            let join = join.build().unwrap();
            let input = BatchStream::from_batches(build.schema(), vec![build.clone()]);
            let prepared = join.prepare_build(input, &pool, Config::default()).unwrap();
            let join = join.with_prepared_build(prepared).unwrap();
            let options = RunOptions::default();
            group.bench_function(format!("{order}/{kind}"), |bencher| {
                bencher.iter(|| {
                    let mut join = join.clone();
                    join.reset();
                    let rows: usize = join.execute(0, &options).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
                    black_box(rows)
                });
            });
        }
    }
    group.finish();
    criterion.final_summary();
}
