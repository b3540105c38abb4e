//! Preparing: what a collector takes, admits, keeps and gives back.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Int32Array, Int64Array, NullArray, RecordBatch, StringArray,
};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use prejoin::admission::{copy_bound, settle_copy, sliced_size};
use prejoin::{
    BuildSpec, Cancel, Collector, Config, Error, MemoryPool, NullEquality, Pool, PreparedBuild, RangeCounter,
    Reservation, Result,
};

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

fn int64(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// `rows` rows from number `start` on: int64 key, utf8 with nulls, Boolean with nulls, FixedSizeBinary, Null.
fn mixed(start: i64, rows: i64) -> RecordBatch {
    let rows = start..start + rows;
    let text: StringArray = rows.clone().map(|i| (i % 5 != 0).then(|| format!("text {i}"))).collect();
    let flag: BooleanArray = rows.clone().map(|i| (i % 7 != 0).then_some(i % 2 == 0)).collect();
    let bytes: Vec<u8> = rows.clone().flat_map(|i| (i as u32 * 3).to_be_bytes()).collect();
    let bytes = FixedSizeBinaryArray::new(4, Buffer::from(bytes), None);
    batch([
        ("key", int64(rows.clone())),
        ("text", Arc::new(text)),
        ("flag", Arc::new(flag)),
        ("bytes", Arc::new(bytes)),
        ("none", Arc::new(NullArray::new(rows.count()))),
    ])
}

fn collector(schema: &SchemaRef, pool: &Arc<dyn Pool>) -> Collector {
    collector_until(schema, pool, Cancel::default())
}

/// A collector keyed by the first column.
fn collector_until(schema: &SchemaRef, pool: &Arc<dyn Pool>, cancel: Cancel) -> Collector {
    let spec = BuildSpec::try_new(schema.clone(), vec![0], vec![NullEquality::NullEqualsNothing]).unwrap();
    Collector::new(spec, pool, Config::default(), cancel)
}

fn prepare(batches: &[RecordBatch], pool: &Arc<dyn Pool>) -> Result<Arc<PreparedBuild>> {
    let mut collector = collector(&batches[0].schema(), pool);
    batches.iter().try_for_each(|batch| collector.push(batch.clone()))?;
    collector.finish()
}

fn unlimited() -> Arc<dyn Pool> {
    Arc::new(MemoryPool::unlimited())
}

/// Distinct bytes of the buffers of some rows.
fn held(rows: &RecordBatch) -> usize {
    RangeCounter::default().add_batch(rows)
}

/// A pool that refuses its `refused`-th request.
#[derive(Debug)]
struct RefusingPool {
    inner: MemoryPool,
    refused: usize,
    requests: AtomicUsize,
}

impl RefusingPool {
    fn new(refused: usize) -> Arc<Self> {
        Arc::new(Self { inner: MemoryPool::unlimited(), refused, requests: AtomicUsize::new(0) })
    }
}

impl Pool for RefusingPool {
    fn try_grow(&self, consumer: &str, bytes: usize) -> Result<()> {
        if self.requests.fetch_add(1, Ordering::Relaxed) == self.refused {
            return Err(Error::ResourcesExhausted(format!(
                "{consumer:?} asked for {bytes} bytes, refused by the test"
            )));
        }
        self.inner.try_grow(consumer, bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.inner.shrink(bytes);
    }

    fn reserved(&self) -> usize {
        self.inner.reserved()
    }
}

/// S7: a dropped collector gives back what its batches were charged, as does one whose work is asked to stop.
#[test]
fn cancellation_releases_everything() {
    let pool = unlimited();
    let mut dropped = collector(&mixed(0, 1).schema(), &pool);
    dropped.push(mixed(0, 100)).unwrap();
    assert!(pool.reserved() > 0);
    drop(dropped);
    assert_eq!(pool.reserved(), 0);

    // Every poll in turn says stop, until the work has no further poll.
    for polls in 0.. {
        let left = AtomicUsize::new(polls);
        let step = |left: usize| left.checked_sub(1);
        let stop = move || match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Cancelled),
        };
        let mut stopped = collector_until(&mixed(0, 1).schema(), &pool, Cancel::with_hook(stop));
        let pushed = (0..2).try_for_each(|i| stopped.push(mixed(i * 100, 100)));
        match pushed.and_then(|()| stopped.finish()) {
            Ok(_) => {
                assert!(polls >= 2 + 2 * 4, "{polls} polls: two pushes, two pieces of each column but the Null one");
                break;
            }
            Err(error) => assert!(matches!(error, Error::Cancelled), "{error}"),
        }
        assert_eq!(pool.reserved(), 0);
    }
}

/// S9: memory shared between columns or batches is charged once, before the batch is kept.
#[test]
fn shared_memory_is_charged_once() {
    let pool = unlimited();
    let key = int64(0..1000);
    let rows = batch([("a", key.clone()), ("b", key.clone())]);
    let mut collector = collector(&rows.schema(), &pool);
    collector.push(rows.slice(0, 10)).unwrap();
    assert_eq!(pool.reserved(), 8000, "a slice keeps its whole Rust allocation alive");
    collector.push(rows.slice(10, 500)).unwrap();
    assert_eq!(pool.reserved(), 8000);
    collector.push(batch([("a", key), ("b", int64(0..1000))])).unwrap();
    assert_eq!(pool.reserved(), 16_000);
}

/// Rows of memory that Rust did not allocate, as over the C Data Interface.
fn foreign(memory: &Arc<Vec<i64>>, start: usize, rows: usize) -> RecordBatch {
    let part = &memory[start..start + rows];
    let pointer = NonNull::new(part.as_ptr().cast_mut().cast()).unwrap();
    // SAFETY: the pointer and length are those of a slice of `memory`, which the buffer keeps alive.
    let buffer = unsafe { Buffer::from_custom_allocation(pointer, size_of_val(part), memory.clone()) };
    batch([("key", Arc::new(Int64Array::new(ScalarBuffer::from(buffer), None)))])
}

fn extent(memory: &[i64]) -> Vec<std::ops::Range<usize>> {
    let start = memory.as_ptr() as usize;
    std::iter::once(start..start + size_of_val(memory)).collect()
}

/// S9: a foreign buffer is charged by the range that it shows, and a longer range of a known base pays the difference;
/// a known extent is charged whole.
#[test]
fn foreign_ranges_pay_the_difference() {
    let pool = unlimited();
    let memory = Arc::new((0..1000).collect::<Vec<i64>>());
    let mut shown = collector(&foreign(&memory, 0, 1).schema(), &pool);
    for (start, rows, charge) in [(0, 10, 80), (0, 30, 240), (20, 20, 320), (500, 1, 328), (0, 1000, 8000)] {
        shown.push_foreign(foreign(&memory, start, rows), None).unwrap();
        assert_eq!(pool.reserved(), charge, "rows {start}..{}", start + rows);
    }
    drop(shown);
    let mut known = collector(&foreign(&memory, 0, 1).schema(), &pool);
    known.push_foreign(foreign(&memory, 3, 10), Some(extent(&memory))).unwrap();
    assert_eq!(pool.reserved(), 8000);
}

/// S9: one column keeps its whole foreign batch alive, so its charge stays until the last column is copied.
#[test]
fn foreign_batches_are_charged_until_their_last_column() {
    let memory = Arc::new((0..2000).collect::<Vec<i64>>());
    let two = |start| {
        let column = |start| foreign(&memory, start, 500).column(0).clone();
        batch([("a", column(start)), ("b", column(start + 500))])
    };
    let bound = copy_bound(&[foreign(&memory, 0, 500), foreign(&memory, 0, 500)]).unwrap();
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(16_000 + 8000 + bound - 1));
    let mut collector = collector(&two(0).schema(), &pool);
    [0, 1000].into_iter().for_each(|start| collector.push_foreign(two(start), None).unwrap());
    let error = collector.finish().unwrap_err().to_string();
    assert!(error.contains(&format!("asked for {bound} bytes, 24000 of")), "{error}");
    assert_eq!((pool.reserved(), Arc::strong_count(&memory)), (0, 1));
}

/// S10: an empty build charges what its empty batch owns, whether no batch came or only batches without rows.
#[test]
fn empty_builds_charge_their_empty_batch() {
    for empties in 0..3 {
        let pool = unlimited();
        let mut collector = collector(&mixed(0, 1).schema(), &pool);
        (0..empties).for_each(|_| collector.push(mixed(0, 0)).unwrap());
        let build = collector.finish().unwrap();
        assert_eq!((build.num_rows(), build.num_keys()), (0, 0));
        assert_eq!(build.rows().unwrap().schema(), mixed(0, 1).schema());
        let owned = held(build.rows().unwrap());
        assert!(owned >= 4, "an empty Utf8 column owns one offset");
        let rest = build.reserved_bytes() - build.index().memory_size() - build.groups().memory_size();
        assert_eq!(rest, owned);
        assert_eq!(build.reserved_bytes(), pool.reserved());
        drop(build);
        assert_eq!(pool.reserved(), 0);
    }
}

/// S11: each part of the formula, by numbers worked out by hand.
#[test]
fn copy_bound_follows_the_formula() {
    let numbers = int64(0..1000);
    // Sliced: 100 * 8 each. No validity: 13 each. One data buffer + 1, once: 128.
    let one = batch([("a", numbers.slice(5, 100))]);
    assert_eq!(sliced_size(one.column(0)).unwrap(), 800);
    assert_eq!(copy_bound(std::slice::from_ref(&one)).unwrap(), 800 + 13 + 128);
    assert_eq!(copy_bound(&[one.clone(), one]).unwrap(), 2 * (800 + 13) + 128);

    // A validity bitmap of its own takes the place of the one that another batch may force.
    let nullable: ArrayRef = Arc::new(Int64Array::new(vec![1; 100].into(), Some(NullBuffer::new_null(100))));
    assert_eq!(sliced_size(&nullable).unwrap(), 813);
    assert_eq!(copy_bound(&[batch([("a", nullable.clone())])]).unwrap(), 813 + 128);

    // Utf8: 4 bytes per offset, one offset more than rows, the bytes between them; two data buffers + 1.
    let text: ArrayRef = Arc::new(StringArray::from(vec!["one", "three", "seven", "ten"]));
    assert_eq!(sliced_size(&text.slice(1, 2)).unwrap(), 3 * 4 + 10);
    assert_eq!(copy_bound(&[batch([("t", text.slice(1, 2))])]).unwrap(), 3 * 4 + 10 + 1 + 192);

    let flag: ArrayRef = Arc::new(BooleanArray::from(vec![true; 100]));
    assert_eq!(copy_bound(&[batch([("f", flag.slice(3, 9))])]).unwrap(), 2 + 2 + 128);
    let fixed: ArrayRef = Arc::new(FixedSizeBinaryArray::new(3, Buffer::from(vec![0u8; 300]), None));
    assert_eq!(copy_bound(&[batch([("b", fixed.slice(50, 10))])]).unwrap(), 30 + 2 + 128);
    let none: ArrayRef = Arc::new(NullArray::new(100));
    assert_eq!(copy_bound(&[batch([("n", none)])]).unwrap(), 13 + 64);

    // A column that appears twice counts twice.
    assert_eq!(
        copy_bound(&[batch([("a", nullable.clone()), ("b", nullable.clone())])]).unwrap(),
        2 * copy_bound(&[batch([("a", nullable)])]).unwrap()
    );
    assert_eq!(copy_bound(&[]).unwrap(), 0);
}

/// S11: a concatenation is admitted before it is made, with exactly the bound; a pool that lacks one byte refuses.
#[test]
fn concat_admission_with_small_batches() {
    let rows = batch([("key", int64(0..4096))]);
    let batches: Vec<_> = (0..128).map(|i| rows.slice(i * 32, 32)).collect();
    let bound = copy_bound(&batches).unwrap();
    let log = Arc::new(RequestLog::default());
    let pool: Arc<dyn Pool> = log.clone();
    prepare(&batches, &pool).unwrap();
    assert_eq!(log.requests.lock().unwrap()[..2], [32_768, bound]);

    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(32_768 + bound - 1));
    let error = prepare(&batches, &pool).unwrap_err();
    assert!(error.to_string().contains(&format!("asked for {bound} bytes")), "{error}");
    assert_eq!(pool.reserved(), 0);
}

/// S12: a Null column may claim 2^64-1 rows without owning a byte.
#[test]
fn sizing_rejects_overflow() {
    let claim = |columns: usize| {
        let none: ArrayRef = Arc::new(NullArray::new(usize::MAX));
        RecordBatch::try_from_iter((0..columns).map(|i| (i.to_string(), none.clone()))).unwrap()
    };
    let overflows =
        |batches: &[RecordBatch]| copy_bound(batches).is_err_and(|e| e.to_string().contains("copy size overflow"));
    assert!(overflows(&[claim(8)]));
    assert!(overflows(&[claim(4), claim(4)]));
    assert!(!overflows(&[claim(7)]));
    assert_eq!(sliced_size(claim(1).column(0)).unwrap(), 0);
}

/// More than 2^32-2 build rows are refused as they arrive, before anything is allocated for them.
#[test]
fn too_many_rows_are_refused() {
    const MAX: usize = u32::MAX as usize - 1;
    let none = |rows| batch([("none", Arc::new(NullArray::new(rows)) as ArrayRef)]);
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(0));
    for sizes in [vec![MAX + 1], vec![MAX, 1], vec![usize::MAX], vec![MAX / 2 + 1, MAX / 2 + 1], vec![1, usize::MAX]] {
        let mut collector = collector(&none(1).schema(), &pool);
        let error = sizes.iter().try_for_each(|&rows| collector.push(none(rows))).unwrap_err();
        assert!(
            matches!(error, Error::Execution(_)) && error.to_string().contains("4294967294 (2^32-2) rows"),
            "{error}"
        );
    }
    collector(&none(1).schema(), &pool).push(none(MAX)).unwrap();
}

/// S14: more than was admitted is an internal error that gives nothing back; less is given back.
#[test]
fn concat_rejects_under_admission_without_shrinking() {
    for (input, copy, retained, left) in
        [(64, 64, 129, None), (usize::MAX, 1, 0, None), (64, 64, 128, Some(256)), (64, 64, 80, Some(208))]
    {
        let pool = unlimited();
        let mut reservation = Reservation::new(&pool, "test");
        reservation.try_grow(256).unwrap();
        let settled = settle_copy(&mut reservation, input, copy, retained);
        assert_eq!(settled.is_ok(), left.is_some());
        assert_eq!((reservation.size(), pool.reserved()), (left.unwrap_or(256), left.unwrap_or(256)));
        if retained > 0 && left.is_none() {
            let error = settled.unwrap_err();
            assert!(
                matches!(error, Error::Internal(_)) && error.to_string().contains("exceeded its admitted copy bound")
            );
        }
    }
}

fn addresses(rows: &RecordBatch) -> Vec<usize> {
    let data = rows.columns().iter().map(|column| column.to_data());
    data.flat_map(|data| data.buffers().iter().map(|buffer| buffer.as_ptr() as usize).collect::<Vec<_>>()).collect()
}

/// S15: a single batch is kept as it came, and copied where it shows under half of an allocation of more than 64 KiB.
#[test]
fn single_batches_are_kept_as_they_came() {
    let parent = batch([("key", int64(0..10_000)), ("payload", int64(0..10_000))]);
    let small = parent.slice(0, 8192);
    // (rows, kept as they came): allocations of 80,000 bytes, then of 65,536.
    let small_parent = batch([("key", int64(0..8192))]);
    for (rows, kept) in [
        (parent.clone(), true),
        (parent.slice(100, 5000), true),
        (parent.slice(100, 4999), false),
        (small.slice(0, 32), false),
        (small_parent.slice(0, 32), true),
        (mixed(0, 1000), true),
        (mixed(0, 1000).slice(3, 5), true),
    ] {
        let pool = unlimited();
        let build = prepare(std::slice::from_ref(&rows), &pool).unwrap();
        assert_eq!(build.rows().unwrap(), &rows);
        assert_eq!(addresses(build.rows().unwrap()) == addresses(&rows), kept, "{} rows", rows.num_rows());
        if !kept {
            assert!(held(build.rows().unwrap()) <= copy_bound(std::slice::from_ref(&rows)).unwrap());
        }
        let rest = build.reserved_bytes() - build.index().memory_size() - build.groups().memory_size();
        assert_eq!(rest, held(build.rows().unwrap()), "rows are charged exactly");
        // The empty batches around a single one do not make it many.
        let surrounded = prepare(&[rows.slice(0, 0), rows.clone(), rows.slice(0, 0)], &pool).unwrap();
        assert_eq!(addresses(surrounded.rows().unwrap()) == addresses(&rows), kept);
    }

    // No copy charge: the rows are asked for once.
    let log = Arc::new(RequestLog::default());
    let pool: Arc<dyn Pool> = log.clone();
    let bound = copy_bound(std::slice::from_ref(&parent)).unwrap();
    prepare(&[parent], &pool).unwrap();
    let requests = log.requests.lock().unwrap();
    assert!(requests[0] == 160_000 && !requests.contains(&bound), "{requests:?}");
}

/// Grants everything and remembers the requests.
#[derive(Debug, Default)]
struct RequestLog {
    requests: Mutex<Vec<usize>>,
    reserved: AtomicUsize,
}

impl Pool for RequestLog {
    fn try_grow(&self, _: &str, bytes: usize) -> Result<()> {
        self.requests.lock().unwrap().push(bytes);
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }
}

/// S15: the end of a foreign allocation is unknown, so a foreign single batch is copied unless its extents are told.
#[test]
fn foreign_single_batches_are_copied_unless_known() {
    let memory = Arc::new((0..20_000).collect::<Vec<i64>>());
    for (rows, known, kept) in [(32, false, false), (20_000, false, false), (20_000, true, true), (32, true, false)] {
        let pool = unlimited();
        let shown = foreign(&memory, 0, rows);
        let mut collector = collector(&shown.schema(), &pool);
        collector.push_foreign(shown.clone(), known.then(|| extent(&memory))).unwrap();
        let build = collector.finish().unwrap();
        assert_eq!(build.rows().unwrap(), &shown);
        assert_eq!(addresses(build.rows().unwrap()) == addresses(&shown), kept, "{rows} rows, known {known}");
        drop(shown);
        assert_eq!(Arc::strong_count(&memory), 1 + usize::from(kept), "a copy lets go of the foreign memory");
        let rest = build.reserved_bytes() - build.index().memory_size() - build.groups().memory_size();
        assert_eq!(rest, held(build.rows().unwrap()));
    }
}

/// Several batches become what Arrow's own concatenation makes of them; a foreign batch is let go.
#[test]
fn many_batches_are_concatenated_in_order() {
    let pool = unlimited();
    let all = mixed(0, 3000);
    let cuts = [0, 1, 9, 1000, 1000, 2999, 3000];
    let batches: Vec<_> = cuts.windows(2).map(|cut| all.slice(cut[0], cut[1] - cut[0])).collect();
    let build = prepare(&batches, &pool).unwrap();
    assert_eq!(build.rows().unwrap(), &concat_batches(&all.schema(), &batches).unwrap());
    assert_eq!(build.num_rows(), 3000);

    // One piece is 65,536 rows: columns longer than that are cut.
    let long = batch([("key", int64(0..150_000))]);
    let build = prepare(&[long.clone(), long.slice(3, 70_000)], &pool).unwrap();
    assert_eq!(build.rows().unwrap(), &concat_batches(&long.schema(), [&long, &long.slice(3, 70_000)]).unwrap());

    let memory = Arc::new((0..100).collect::<Vec<i64>>());
    let mut collector = collector(&foreign(&memory, 0, 1).schema(), &pool);
    for start in [40, 0] {
        collector.push_foreign(foreign(&memory, start, 40), None).unwrap();
    }
    let build = collector.finish().unwrap();
    assert_eq!(build.rows().unwrap().column(0).as_ref(), int64((40..80).chain(0..40)).as_ref());
    assert_eq!(Arc::strong_count(&memory), 1);
}

/// Text beyond 2^31-1 bytes does not fit a Utf8 column: an error that names the column, before they are copied.
#[test]
fn outgrown_offsets_name_the_column() {
    let half = "x".repeat(1 << 20);
    let text: ArrayRef = Arc::new(StringArray::from(vec![half.as_str(); 64]));
    let rows = batch([("key", int64(0..64)), ("text", text)]);
    let pool = unlimited();
    let error = prepare(&vec![rows; 32], &pool).unwrap_err();
    assert!(matches!(error, Error::Overflow(_)), "{error}");
    assert!(error.to_string().contains("\"text\"") && error.to_string().contains("2147483648 bytes"), "{error}");
    assert_eq!(pool.reserved(), 0);
}

/// S17: a batch may hold nulls in a column that is declared without, also across batches; rows that hold nulls say so.
#[test]
fn nulls_in_non_nullable_columns_are_held() {
    let declared = Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, false).with_metadata([("unit".to_owned(), "m".to_owned())]),
        Field::new("payload", DataType::Int32, false),
    ]));
    let full = batch([("key", int64([1])), ("payload", Arc::new(Int32Array::from(vec![1])))]);
    let null = batch([("key", int64([2])), ("payload", Arc::new(Int32Array::from(vec![None])))]);
    for batches in [vec![full.clone(), null.clone()], vec![null]] {
        let pool = unlimited();
        let mut collector = collector(&declared, &pool);
        batches.iter().for_each(|batch| collector.push(batch.clone()).unwrap());
        let build = collector.finish().unwrap();
        assert_eq!(build.schema(), &declared);
        assert_eq!(build.rows().unwrap().column(1).null_count(), 1);
        let schema = build.rows().unwrap().schema();
        assert!(!schema.field(0).is_nullable() && schema.field(1).is_nullable());
        assert_eq!(schema.field(0).metadata(), declared.field(0).metadata());
    }
}

/// S18: with an indexed key the charge exceeds the rows, and it covers rows, index and groups.
#[test]
fn the_index_is_charged() {
    let pool = unlimited();
    for batches in [vec![mixed(0, 1)], vec![mixed(0, 500), mixed(250, 500)]] {
        let build = prepare(&batches, &pool).unwrap();
        assert!(build.num_keys() > 0);
        assert!(build.reserved_bytes() > held(build.rows().unwrap()));
        let parts = held(build.rows().unwrap()) + build.index().memory_size() + build.groups().memory_size();
        assert!(build.reserved_bytes() >= parts, "{} bytes charged, {parts} held", build.reserved_bytes());
        assert_eq!(pool.reserved(), build.reserved_bytes(), "scratch is given back at freeze");
    }
}

/// S19: when the pool gets the last bytes back, the memory they paid for is gone already.
#[test]
fn memory_goes_before_its_charge() {
    #[derive(Debug)]
    struct Watching {
        inner: MemoryPool,
        memory: Arc<Vec<i64>>,
        owners_at_release: AtomicUsize,
    }
    impl Pool for Watching {
        fn try_grow(&self, consumer: &str, bytes: usize) -> Result<()> {
            self.inner.try_grow(consumer, bytes)
        }
        fn shrink(&self, bytes: usize) {
            self.inner.shrink(bytes);
            self.owners_at_release.store(Arc::strong_count(&self.memory), Ordering::Relaxed);
        }
        fn reserved(&self) -> usize {
            self.inner.reserved()
        }
    }
    let memory = Arc::new((0..100).collect::<Vec<i64>>());
    let watching = Arc::new(Watching {
        inner: MemoryPool::unlimited(),
        memory: memory.clone(),
        owners_at_release: AtomicUsize::new(usize::MAX),
    });
    let pool: Arc<dyn Pool> = watching.clone();
    let push = || {
        let mut collector = collector(&foreign(&memory, 0, 1).schema(), &pool);
        collector.push_foreign(foreign(&memory, 0, 100), Some(extent(&memory))).unwrap();
        collector
    };
    let released = || watching.owners_at_release.swap(usize::MAX, Ordering::Relaxed);
    drop(push());
    assert_eq!((released(), pool.reserved()), (2, 0), "this test and its pool own the memory, the collector does not");
    let build = push().finish().unwrap();
    released();
    drop(build);
    assert_eq!((released(), pool.reserved()), (2, 0));
}

/// S20: whichever request the pool refuses, the error is clean and everything is given back.
#[test]
fn every_refusal_gives_everything_back() {
    let layouts = [
        vec![mixed(0, 1000)],
        vec![mixed(0, 2000).slice(5, 7)],
        (0..7).map(|i| mixed(i * 90, 100)).collect(),
        vec![mixed(0, 0)],
    ];
    for batches in layouts {
        for refused in 0.. {
            let refusing = RefusingPool::new(refused);
            let pool: Arc<dyn Pool> = refusing.clone();
            match prepare(&batches, &pool) {
                Ok(build) => {
                    assert_eq!(build.num_rows(), batches.iter().map(RecordBatch::num_rows).sum::<usize>());
                    assert_eq!(pool.reserved(), build.reserved_bytes());
                    let requests = refusing.requests.load(Ordering::Relaxed);
                    assert_eq!(requests, refused, "every request was refused once");
                    drop(build);
                    assert_eq!(pool.reserved(), 0);
                    break;
                }
                Err(error) => assert!(matches!(error, Error::ResourcesExhausted(_)), "{error}"),
            }
            assert_eq!(pool.reserved(), 0, "request {refused}");
        }
    }
    let empty: Arc<dyn Pool> = Arc::new(MemoryPool::new(0));
    assert!(matches!(prepare(&[mixed(0, 1)], &empty), Err(Error::ResourcesExhausted(_))));
}

/// S20: an error releases the batches at once, also while the collector lives on, and later calls say so.
#[test]
fn a_failed_collector_holds_nothing() {
    let pool = unlimited();
    for wrong in [
        batch([("key", Arc::new(Int32Array::from(vec![1])) as ArrayRef), ("text", int64([1]))]),
        batch([("key", int64([1])), ("other", int64([1]))]),
        batch([("key", int64([1]))]),
    ] {
        let mut collector = collector(&batch([("key", int64([1])), ("text", int64([1]))]).schema(), &pool);
        collector.push(batch([("key", int64(0..100)), ("text", int64(0..100))])).unwrap();
        assert!(pool.reserved() > 0);
        let error = collector.push(wrong).unwrap_err();
        assert!(matches!(error, Error::Plan(_)), "{error}");
        assert_eq!(pool.reserved(), 0);
        let later = collector.push(batch([("key", int64([1])), ("text", int64([1]))])).unwrap_err();
        assert!(later.to_string().contains("failed before"), "{later}");
        assert!(collector.finish().unwrap_err().to_string().contains("failed before"));
    }
}

/// S2: a batch with other columns is refused with both names and types; nullability and metadata may differ.
#[test]
fn batches_must_match_the_build_schema() {
    let pool = unlimited();
    let schema = Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, false),
        Field::new("n", DataType::Int64, true).with_metadata([("a".to_owned(), "b".to_owned())]),
    ]));
    let refused = |rows: RecordBatch| collector(&schema, &pool).push(rows).unwrap_err().to_string();
    let text = refused(batch([("key", int64([1])), ("n", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]));
    assert!(text.contains("\"n\" of type Int32") && text.contains("\"n\" of type Int64"), "{text}");
    let text = refused(batch([("n", int64([1])), ("key", int64([1]))]));
    assert!(text.contains("column 0") && text.contains("\"n\"") && text.contains("\"key\""), "{text}");
    let text = refused(batch([("key", int64([1]))]));
    assert!(text.contains("1 columns") && text.contains("2"), "{text}");

    let mut collector = collector(&schema, &pool);
    collector.push(batch([("key", int64([1])), ("n", int64([1]))])).unwrap();
    assert_eq!(collector.finish().unwrap().rows().unwrap().schema(), schema);
}
