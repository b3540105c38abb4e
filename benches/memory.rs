//! Memory of prepared builds, measured by a counting allocator: the bytes per row that are kept in addition to the
//! data, at the worst of many build sizes; the peak while preparing; and how far the charge is from what the heap
//! holds.

mod keys;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use keys::{Random, keys, shuffled};
use prejoin::{BuildSpec, Cancel, Collector, Config, MemoryPool, NullEquality, Pool, PreparedBuild};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Build sizes around powers of two and between them, where a table that doubles its size would waste most.
const SIZES: [usize; 14] = [
    50_000, 65_536, 65_537, 100_000, 131_073, 200_000, 262_145, 400_000, 524_289, 750_000, 1_000_000, 1_048_577,
    1_500_000, 2_000_000,
];

/// The memory that preparing took, in bytes.
struct Cost {
    data: usize,
    retained: usize,
    peak: usize,
    charged: usize,
}

/// Prepares a build of these batches and measures its memory.
fn prepare(batches: Vec<RecordBatch>) -> Cost {
    let held = || HELD.load(Ordering::Relaxed);
    let data = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    // The heap before the data was made.
    let before = held() - data;
    PEAK.store(held(), Ordering::Relaxed);
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    let spec =
        BuildSpec::by_name(batches[0].schema(), &["key"], NullEquality::NullEqualsNothing).expect("a key column");
    let mut collector = Collector::new(spec, &pool, Config::default(), Cancel::default());
    batches.into_iter().for_each(|batch| collector.push(batch).expect("an unlimited pool"));
    let build: Arc<PreparedBuild> = collector.finish().expect("an unlimited pool");
    let (retained, peak) = (held() - before, PEAK.load(Ordering::Relaxed) - before);
    Cost { data, retained, peak, charged: build.reserved_bytes() }
}

fn batches(key: ArrayRef, batch_rows: usize) -> Vec<RecordBatch> {
    let rows = key.len();
    let payload: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let all = RecordBatch::try_from_iter([("key", key), ("payload", payload)]).expect("columns of one length");
    // Each batch owns its memory, as batches from a file do.
    let copy = |start: usize| {
        let indices = arrow_array::UInt32Array::from_iter_values(start as u32..(start + batch_rows).min(rows) as u32);
        arrow_select::take::take_record_batch(&all, &indices).expect("rows that exist")
    };
    (0..rows).step_by(batch_rows).map(copy).collect()
}

fn bar(what: &str, value: f64, bar: f64, unit: &str) {
    let verdict = if value <= bar { "reached" } else { "NOT reached" };
    println!("{what:64} {value:8.2}  bar {bar:6.2}  {verdict}  ({unit})");
}

fn main() {
    let mut random = Random(1);
    for (kind, most) in [("int64_dense", 8.5), ("int64_random", 28.0), ("utf8", 26.0)] {
        let (mut worst, mut at, mut least) = (0.0, 0, f64::MAX);
        for rows in SIZES {
            let cost = prepare(batches(keys(kind, &shuffled(rows, &mut random)).remove(0), rows));
            let beyond = (cost.retained as f64 - cost.data as f64) / rows as f64;
            least = beyond.min(least);
            if beyond > worst {
                (worst, at) = (beyond, rows);
            }
        }
        bar(&format!("{kind}: beyond the data, worst at {at} rows, best {least:.2}"), worst, most, "bytes per row");
        let rows = 1_000_000;
        for batch_rows in [8192, rows] {
            let cost = prepare(batches(keys(kind, &shuffled(rows, &mut random)).remove(0), batch_rows));
            let copy = if batch_rows < rows { cost.data } else { 0 };
            let allowed = 1.1 * (cost.data + copy).max(cost.retained) as f64 + 12.0 * rows as f64;
            let what = format!("{kind}: peak while preparing, batches of {batch_rows}");
            bar(&what, cost.peak as f64 / rows as f64, allowed / rows as f64, "bytes per row");
            let off = (cost.retained.abs_diff(cost.charged) as f64 - 1_048_576.0).max(0.0) / cost.charged as f64;
            bar(&format!("{kind}: growth off the charge beyond 1 MiB, {batch_rows}"), 100.0 * off, 5.0, "percent");
        }
    }
    let rows = 1_000_000;
    let ten: [(&str, ArrayRef); 2] = [
        ("int64", Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i % 10 * 1_000_000_007)))),
        ("utf8", Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("key-{:08}", i % 10))))),
    ];
    for (kind, key) in ten {
        let cost = prepare(batches(key, rows as usize));
        let beyond = (cost.retained as f64 - cost.data as f64) / rows as f64;
        bar(&format!("{kind}: 1M rows over 10 keys, beyond the data"), beyond, 4.5, "bytes per row");
        let allowed = 1.1 * cost.retained as f64 + 12.0 * rows as f64;
        bar(
            &format!("{kind}: 1M rows over 10 keys, peak"),
            cost.peak as f64 / rows as f64,
            allowed / rows as f64,
            "bytes per row",
        );
    }
}
