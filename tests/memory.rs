//! Memory: what is charged against what the heap really holds, seen by a counting allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Int64Array, NullArray, RecordBatch, StringArray, UInt8Array,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::{concat, concat_batches};
use prejoin::admission::copy_bound;
use prejoin::{BuildSpec, Cancel, Collector, Config, Error, MemoryPool, NullEquality, Pool, RangeCounter};
use proptest::prelude::*;

/// Counts the bytes that each thread holds; tests run on one thread each, so they do not see each other. `realloc` is
/// the trait's own, which holds the old and the new block together.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system allocator unchanged; the counters are plain cells without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.get() + layout.size() as isize;
        HELD.set(held);
        PEAK.set(PEAK.get().max(held));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that this thread holds now, against any earlier reading.
fn held() -> isize {
    HELD.get()
}

/// The largest growth of the heap while `work` runs, and its result.
fn peak_growth<T>(work: impl FnOnce() -> T) -> (isize, T) {
    let before = held();
    PEAK.set(before);
    let result = work();
    (PEAK.get() - before, result)
}

fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let columns = columns.into_iter().enumerate();
    RecordBatch::try_from_iter_with_nullable(columns.map(|(i, array)| (i.to_string(), array, true))).unwrap()
}

/// A collector of builds of the batch's schema, keyed by the first column.
fn collector(batch: &RecordBatch, pool: &Arc<dyn Pool>, cancel: Cancel) -> Collector {
    let spec = BuildSpec::try_new(batch.schema(), vec![0], vec![NullEquality::NullEqualsNothing]).unwrap();
    Collector::new(spec, pool, Config::default(), cancel)
}

/// 5% and 64 KiB more than what is charged.
fn tolerance(charge: usize) -> isize {
    (charge + charge / 20 + 64 * 1024) as isize
}

/// A nullable int64 key and payload columns of one type; rows are numbered from `rows.start`.
fn rows_of(data_type: &DataType, rows: Range<i64>) -> RecordBatch {
    let payload = || -> ArrayRef {
        match data_type {
            DataType::Int64 => Arc::new(Int64Array::from_iter_values(rows.clone())),
            DataType::Utf8 => {
                Arc::new(StringArray::from_iter(rows.clone().map(|i| (i % 9 != 0).then(|| format!("row {i}")))))
            }
            _ => Arc::new(rows.clone().map(|i| (i % 9 != 0).then_some(i % 2 == 0)).collect::<BooleanArray>()),
        }
    };
    let key = Int64Array::from_iter(rows.clone().map(|i| (i % 100 != 0).then_some(i * 32)));
    batch(vec![Arc::new(key), payload(), payload()])
}

/// The batches of one preparation, made one by one.
fn layout(data_type: &DataType, size: i64, sliced: bool) -> Box<dyn Iterator<Item = RecordBatch>> {
    let (data_type, starts) = (data_type.clone(), (0..ROWS).step_by(size as usize));
    match sliced {
        true => {
            let all = rows_of(&data_type, 0..ROWS);
            Box::new(starts.map(move |start| all.slice(start as usize, size as usize)))
        }
        false => Box::new(starts.map(move |start| rows_of(&data_type, start..ROWS.min(start + size)))),
    }
}

const ROWS: i64 = 65_536;

/// After each push, at each look at the stop signal, at the peak and at the end, the heap holds no more than is charged.
/// Array and schema metadata are outside the charge: what batches hold beyond their buffers is allowed for until they go.
#[test]
fn heap_growth_stays_within_the_charge() {
    for data_type in [DataType::Int64, DataType::Utf8, DataType::Boolean] {
        for (size, sliced) in [(ROWS, false), (8192, false), (1000, false), (8192, true), (64, true)] {
            let case = format!("{data_type}, {size} rows a batch, sliced {sliced}");
            let start = held();
            let batches: Vec<RecordBatch> = layout(&data_type, size, sliced).collect();
            let mut counter = RangeCounter::default();
            let buffers: usize = batches.iter().map(|batch| counter.add_batch(batch)).sum();
            drop(counter);
            let metadata = held() - start - buffers as isize;
            drop(batches);
            assert_eq!(held(), start);

            let counting = Arc::new(MemoryPool::unlimited());
            let pool: Arc<dyn Pool> = counting.clone();
            let (charged, finishing) = (pool.clone(), Arc::new(AtomicBool::new(false)));
            let watched = finishing.clone();
            let watch = Cancel::with_hook(move || {
                let (grown, charge) = (held() - start, charged.reserved());
                let fits = !watched.load(Ordering::Relaxed) || grown <= tolerance(charge) + metadata;
                if fits { Ok(()) } else { Err(Error::Internal(format!("{grown} bytes held, {charge} charged"))) }
            });
            let mut batches = layout(&data_type, size, sliced).peekable();
            let mut collector = collector(batches.peek().unwrap(), &pool, watch);
            while let Some(batch) = batches.next() {
                collector.push(batch).unwrap();
                assert!(held() - start <= tolerance(pool.reserved()) + metadata, "{case}");
            }
            drop(batches);
            finishing.store(true, Ordering::Relaxed);
            let before = held() - start;
            let (growth, build) = peak_growth(|| collector.finish().unwrap_or_else(|error| panic!("{case}: {error}")));
            let (peak, retained) = (before + growth, held() - start);
            println!("{case}: peak {peak} of {}, retained {retained} of {}", counting.peak(), build.reserved_bytes());
            assert!(peak <= tolerance(counting.peak()) + metadata, "{case}: peak {peak} of {}", counting.peak());
            assert!(retained <= tolerance(build.reserved_bytes()), "{case}: {retained} of {}", build.reserved_bytes());
            drop(build);
            drop((pool, counting));
        }
    }
}
