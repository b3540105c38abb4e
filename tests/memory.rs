//! Memory: what is charged, compared with what the heap holds as a counting allocator sees it.

mod arrays;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrays::{Rng, any_type, array, flat_types, nested_types};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal256Array, DictionaryArray, FixedSizeBinaryArray, Int8Array, Int32Array,
    Int64Array, ListViewArray, NullArray, RecordBatch, StringArray, UInt8Array, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat_batches;
use hashbrown::HashTable;
use prejoin::admission::copy_bound;
use prejoin::expr::Expr;
use prejoin::internals::hash_table_size;
use prejoin::{
    BatchStream, BuildSpec, Cancel, Collector, Error, HashJoin, IndexKind, JoinType, Keep, MemoryPool, NullEquality,
    Pool, PrepareOptions, RangeCounter, RunOptions, Source,
};
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

/// The bytes that this thread holds now; compare it with an earlier reading.
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
    Collector::new(spec, pool, PrepareOptions::default(), cancel)
}

/// The most that the heap may hold: 5% and 64 KiB more than what is charged.
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
            Box::new(starts.map(move |start| all.slice(start as usize, size.min(ROWS - start) as usize)))
        }
        false => Box::new(starts.map(move |start| rows_of(&data_type, start..ROWS.min(start + size)))),
    }
}

/// Not a power of two, so that a buffer that grows by doubling exceeds the limit.
const ROWS: i64 = 70_000;

/// After each push, at each check of the cancel signal, at the peak and at the end, the heap holds no more than is
/// charged. The metadata of arrays and schemas is not charged, so what batches hold in addition to their buffers is
/// allowed until they are dropped.
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
            let (charged, finishing) = (counting.clone(), Arc::new(AtomicBool::new(false)));
            let watched = finishing.clone();
            let watch = Cancel::with_hook(move || {
                let now = (held() - start, charged.reserved());
                let peak = (PEAK.get() - start, charged.peak());
                let fits = |(grown, charge)| grown <= tolerance(charge) + metadata;
                match !watched.load(Ordering::Relaxed) || fits(now) && fits(peak) {
                    true => Ok(()),
                    false => Err(Error::Internal(format!("(held, charged): now {now:?}, peak {peak:?}"))),
                }
            });
            let mut batches = layout(&data_type, size, sliced).peekable();
            let mut collector = collector(batches.peek().unwrap(), &pool, watch);
            for batch in batches {
                collector.push(batch).unwrap();
                assert!(held() - start <= tolerance(pool.reserved()) + metadata, "{case}");
            }
            finishing.store(true, Ordering::Relaxed);
            let before = held() - start;
            let (growth, build) = peak_growth(|| collector.finish().unwrap_or_else(|error| panic!("{case}: {error}")));
            let (peak, retained) = (before + growth, held() - start);
            // The general index charges its scratch after the fact.
            let whole = build.index_kind() != IndexKind::Rows;
            assert!(
                !whole || peak <= tolerance(counting.peak()) + metadata,
                "{case}: peak {peak} of {}",
                counting.peak()
            );
            assert!(retained <= tolerance(build.reserved_bytes()), "{case}: {retained} of {}", build.reserved_bytes());
        }
    }
}

/// S16: 65,536 rows (nullable int64 key `i*32`, int64 payload) in batches of 32, 64 or 8192 rows fit a pool of 4.5 MiB,
/// as slices of one table and as separate batches; the aim is 2.5 MiB.
#[test]
fn small_batches_fit_a_small_pool() {
    const ROWS: i64 = 65_536;
    for (size, sliced) in [32, 64, 8192].into_iter().flat_map(|size| [(size, false), (size, true)]) {
        let table = |start: i64, rows: i64| {
            let key = Int64Array::from_iter((start..start + rows).map(|i| Some(i * 32)));
            batch(vec![Arc::new(key), Arc::new(Int64Array::from_iter_values(start..start + rows))])
        };
        let starts = (0..ROWS).step_by(size as usize);
        let batches: Vec<RecordBatch> = match sliced {
            true => {
                let all = table(0, ROWS);
                starts.map(|start| all.slice(start as usize, size as usize)).collect()
            }
            false => starts.map(|start| table(start, size)).collect(),
        };
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(9 << 19));
        let mut collector = collector(&batches[0], &pool, Cancel::default());
        batches.into_iter().try_for_each(|batch| collector.push(batch)).unwrap();
        let build = collector.finish().unwrap();
        assert_eq!((build.num_rows(), build.num_keys()), (65_536, 65_536));
        assert_eq!(pool.reserved(), build.reserved_bytes());
        drop(build);
        assert_eq!(pool.reserved(), 0);
    }
}

/// S17: for a Boolean batch without nulls, followed by one null row, the validity bits of all rows are admitted before
/// they are made.
#[test]
fn concat_admits_validity_for_non_nullable_input_arrays() {
    let full = batch(vec![Arc::new(BooleanArray::from(vec![true; 100_000]))]);
    let null = batch(vec![Arc::new(BooleanArray::from(vec![None]))]);
    let admitted = copy_bound(&[full.clone(), null.clone()]).unwrap();
    let schema = full.schema();
    let (growth, rows) = peak_growth(|| concat_batches(&schema, [&full, &null]).unwrap());
    let buffers = RangeCounter::default().add_batch(&rows);
    assert!(buffers <= admitted, "{buffers} bytes of buffers, {admitted} admitted");
    assert!(growth <= admitted as isize + 1024, "{growth} bytes allocated, {admitted} admitted, 1 KiB of metadata");

    let counting = Arc::new(MemoryPool::unlimited());
    let pool: Arc<dyn Pool> = counting.clone();
    let mut collector = collector(&full, &pool, Cancel::default());
    collector.push(full.clone()).unwrap();
    collector.push(null).unwrap();
    let before = pool.reserved();
    assert_eq!(collector.finish().unwrap().rows().unwrap().column(0).null_count(), 1);
    assert!(counting.peak() >= before + buffers);
}

/// S9: the charge of one allocation of each kind is what the heap holds for it.
#[test]
fn the_counter_agrees_with_the_heap() {
    let kinds: [fn() -> ArrayRef; 4] = [
        || Arc::new(Int64Array::from(vec![7; 100_000])),
        || Arc::new(StringArray::from(vec!["some text"; 10_000])),
        || Arc::new(BooleanArray::from(vec![Some(true); 100_000])),
        || Arc::new(Int64Array::from(vec![Some(7); 100_000]).slice(99_000, 10)),
    ];
    for make in kinds {
        let start = held();
        let array = make();
        let (heap, charge) = (held() - start, RangeCounter::default().add_array(&array) as isize);
        assert!((charge..charge + 1024).contains(&heap), "{heap} bytes held, {charge} charged");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// S9: the counter returns the size of the union of ranges, whatever their order and overlap, compared with a set
    /// of bytes.
    #[test]
    fn ranges_are_counted_once(ranges in prop::collection::vec((0..200_usize, 0..40_usize), 0..60)) {
        let (mut counter, mut oracle) = (RangeCounter::default(), BTreeSet::new());
        for (start, len) in ranges {
            let before = oracle.len();
            oracle.extend(start..start + len);
            prop_assert_eq!(counter.add_range(start..start + len), oracle.len() - before);
            prop_assert_eq!(counter.total(), oracle.len());
        }
    }

    /// S11, S17: for random columns of flat types in random batches, concatenation allocates no more than is admitted,
    /// and the rows are those of Arrow's concatenation.
    #[test]
    fn admitted_is_at_least_what_is_allocated(
        (columns, parts) in (prop::collection::vec(0..7_u8, 1..4), prop::collection::vec(
            (prop::collection::vec((any::<i64>(), 0..30_usize), 0..90), 0.0..1.0, any::<bool>()), 2..8,
        ))
    ) {
        let batches: Vec<RecordBatch> = parts.iter().map(|(rows, keep, nulls)| {
            let arrays = columns.iter().map(|&kind| flat(kind, rows, *nulls)).collect();
            let skip = (rows.len() as f64 * keep) as usize;
            batch(arrays).slice(skip, (rows.len() - skip).div_ceil(2))
        }).collect();
        let admitted = copy_bound(&batches).unwrap();
        let schema = batches[0].schema();
        let (growth, rows) = peak_growth(|| concat_batches(&schema, &batches).unwrap());
        let buffers = RangeCounter::default().add_batch(&rows);
        prop_assert!(buffers <= admitted, "{} bytes of buffers, {} admitted", buffers, admitted);
        // Arrow's array metadata: per column, and per array of it where it goes through `ArrayData`.
        let metadata = columns.len() * (1024 + batches.len() * 1024);
        prop_assert!(growth as usize <= admitted + metadata, "{} bytes allocated, {} admitted", growth, admitted);

        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        let mut collector = collector(&batches[0], &pool, Cancel::default());
        batches.iter().for_each(|batch| collector.push(batch.clone()).unwrap());
        let build = collector.finish().unwrap();
        prop_assert_eq!(build.rows().unwrap(), &rows);
        let own = RangeCounter::default().add_batch(build.rows().unwrap());
        let rest = build.reserved_bytes() - build.index().memory_size() - build.groups().memory_size();
        prop_assert_eq!(rest, own, "rows are charged exactly");
        let copied = batches.iter().filter(|batch| batch.num_rows() > 0).count() > 1;
        prop_assert!(!copied || own <= admitted, "{} bytes copied, {} admitted", own, admitted);
    }
}

/// The same array in memory that Rust did not allocate. Its producer sees when the last buffer is released.
fn foreign(data: &ArrayData, producer: &Arc<()>) -> ArrayData {
    let leased = |buffer: &Buffer| {
        let owner = Arc::new(AssertUnwindSafe((buffer.clone(), producer.clone())));
        let start = NonNull::new(buffer.as_ptr().cast_mut()).unwrap();
        // SAFETY: the owner holds the buffer.
        unsafe { Buffer::from_custom_allocation(start, buffer.len(), owner) }
    };
    let nulls = data
        .nulls()
        .map(|nulls| NullBuffer::new(BooleanBuffer::new(leased(nulls.buffer()), nulls.offset(), nulls.len())));
    let children = data.child_data().iter().map(|child| foreign(child, producer)).collect();
    let buffers = data.buffers().iter().map(leased).collect();
    data.clone().into_builder().nulls(nulls).buffers(buffers).child_data(children).build().unwrap()
}

/// The number of arrays that an array of `data_type` consists of.
fn parts(data: &ArrayData) -> usize {
    1 + data.child_data().iter().map(parts).sum::<usize>()
}

/// The number of buffers of an array and its children; views have many small ones.
fn buffers(data: &ArrayData) -> usize {
    data.buffers().len() + data.child_data().iter().map(buffers).sum::<usize>()
}

/// S9, S11, S14, S18: for every column type, as payload and as key, a build of several batches needs no more than is
/// admitted, holds what it is charged for, and keeps no memory of the batches.
#[test]
fn admission_covers_every_type() {
    let mut types = flat_types();
    types.extend([DataType::Int16, DataType::Utf8, DataType::Utf8View].iter().flat_map(nested_types));
    types.extend((0..150).map(|seed| any_type(&mut Rng(seed), 3)));
    // Byte keys, whose working memory is the largest part of what a small build takes.
    let small = types.len();
    types.extend([DataType::FixedSizeBinary(3), DataType::FixedSizeBinary(16)].iter().cycle().take(100).cloned());
    for (seed, data_type) in types.into_iter().enumerate() {
        for as_key in [false, true] {
            let mut rng = Rng(seed as u64);
            let sizes = match seed < small {
                true => [rng.below(3000), 1 + rng.below(500), rng.below(3), 1 + rng.below(3000)],
                false => [250 + rng.below(30); 4],
            };
            let producer = Arc::new(());
            let start = held();
            let batches = sizes.map(|rows| {
                let column = make_array(foreign(&array(&data_type, rows, &mut rng).to_data(), &producer));
                let number: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
                batch(if as_key { vec![column, number] } else { vec![number, column] })
            });
            let schema = batches[0].schema();
            if BuildSpec::try_new(schema, vec![0], vec![NullEquality::NullEqualsNothing]).is_err() {
                continue;
            }
            let column = batches[0].column(usize::from(!as_key));
            let metadata = (batches.len() + 4) as isize * 2048 * parts(&column.to_data()) as isize;
            let counting = Arc::new(MemoryPool::unlimited());
            let pool: Arc<dyn Pool> = counting.clone();
            let mut collector = collector(&batches[0], &pool, Cancel::default());
            batches.into_iter().for_each(|batch| collector.push_foreign(batch, None).unwrap());
            let charged = pool.reserved();
            let (growth, build) = peak_growth(|| collector.finish().unwrap());
            let admitted = (counting.peak() - charged) as isize;
            let case = format!("{data_type}, key {as_key}, {}", build.index_kind());
            // The general index charges its scratch after the fact.
            let whole = build.index_kind() != IndexKind::Rows;
            // Small enough to see working memory of a chunk that is not admitted.
            let slack = if seed < small { metadata } else { metadata / 4 };
            assert!(!whole || growth <= admitted + slack, "{case}: {growth} bytes allocated, {admitted} admitted");
            assert_eq!(Arc::strong_count(&producer), 1, "{case}: inputs are kept");
            let own = RangeCounter::default().add_batch(build.rows().unwrap());
            let rest = build.reserved_bytes() - build.index().memory_size() - build.groups().memory_size();
            // Byte keys that were decoded are held beside the rows.
            let encoded = matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..));
            let decoded = build.index_kind() == IndexKind::Bytes && encoded;
            assert!(rest == own || decoded && rest > own, "{case}: {rest} charged, {own} held");
            let retained = held() - start;
            assert!(retained <= build.reserved_bytes() as isize + metadata, "{case}: {retained} bytes retained");
            drop(build);
            assert_eq!(pool.reserved(), 0);
        }
    }
}

/// B4: keeping one row of each key needs no more than is admitted, whatever the type of the payload, and the build
/// holds what it is charged for.
#[test]
fn keeping_one_row_of_a_key_is_admitted() {
    let mut types = flat_types();
    types.extend([DataType::Int16, DataType::Utf8, DataType::Utf8View].iter().flat_map(nested_types));
    for (seed, data_type) in types.into_iter().enumerate() {
        let mut rng = Rng(seed as u64);
        let start = held();
        let whole = batch(vec![
            Arc::new(Int64Array::from_iter_values((0..5000).map(|row| row / 2))),
            array(&data_type, 5000, &mut rng),
        ]);
        let data = whole.column(1).to_data();
        let metadata = (16 * 1024 * parts(&data) + 128 * buffers(&data)) as isize;
        drop(data);
        let counting = Arc::new(MemoryPool::unlimited());
        let pool: Arc<dyn Pool> = counting.clone();
        let mut collector = collector(&whole, &pool, Cancel::default()).with_keep(Keep::Last);
        collector.push(whole).unwrap();
        let charged = pool.reserved();
        let (growth, build) = peak_growth(|| collector.finish().unwrap());
        let admitted = (counting.peak() - charged) as isize;
        assert!(growth <= admitted + metadata, "{data_type}: {growth} bytes allocated, {admitted} admitted");
        assert_eq!(build.num_rows(), 2500);
        let retained = held() - start;
        assert!(
            retained <= build.reserved_bytes() as isize + metadata,
            "{data_type}: {retained} bytes retained, {} charged",
            build.reserved_bytes()
        );
        let own = RangeCounter::default().add_batch(build.rows().unwrap());
        let index = build.index().memory_size() + build.groups().memory_size();
        assert_eq!(build.reserved_bytes() - index, own, "{data_type}");
        drop(build);
        assert_eq!(pool.reserved(), 0);
    }
}

/// S11: finding the distinct values of dictionaries that do not fit their key type is admitted as well.
#[test]
fn making_dictionaries_distinct_is_admitted() {
    let batch = |start: i64| {
        let values = StringArray::from_iter_values((0..100).map(|i| format!("{i:0900}")));
        let column = DictionaryArray::new(Int8Array::from_iter_values(0..100), Arc::new(values));
        batch(vec![Arc::new(Int64Array::from_iter_values(start..start + 100)), Arc::new(column)])
    };
    let counting = Arc::new(MemoryPool::unlimited());
    let pool: Arc<dyn Pool> = counting.clone();
    let mut collector = collector(&batch(0), &pool, Cancel::default());
    (0..3).for_each(|i| collector.push(batch(100 * i)).unwrap());
    let charged = pool.reserved();
    let (growth, build) = peak_growth(|| collector.finish().unwrap());
    let admitted = counting.peak() - charged;
    assert!(growth <= (admitted + 16 * 1024) as isize, "{growth} bytes allocated, {admitted} admitted");
    assert!(growth > 5 * 90_000, "no dictionary was made distinct");
    let own = RangeCounter::default().add_batch(build.rows().unwrap());
    assert_eq!(build.reserved_bytes() - build.index().memory_size() - build.groups().memory_size(), own);
}

proptest! {
    /// S13: what is admitted for a growing hash table is what hashbrown allocates for it.
    #[test]
    fn hash_tables_are_admitted(capacity in prop_oneof![1..64_usize, 1..200_000_usize]) {
        let (growth, table) = peak_growth(|| HashTable::<u32>::with_capacity(capacity));
        prop_assert_eq!(growth as usize, hash_table_size::<u32>(capacity).unwrap());
        drop(table);
        let (growth, table) = peak_growth(|| HashTable::<u64>::with_capacity(capacity));
        prop_assert_eq!(growth as usize, hash_table_size::<u64>(capacity).unwrap());
        drop(table);
    }
}

/// S13, S18: finding the distinct keys of a build with duplicates is admitted, for few keys and for many.
#[test]
fn finding_duplicates_is_admitted() {
    for distinct in [10, 10_000, 60_000] {
        let numbers = || (0..ROWS).map(|i| (i * 7919 % distinct).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
        let integers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers()));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(numbers().map(|i| format!("{i:024}"))));
        for keys in [integers, texts] {
            let rows = batch(vec![keys]);
            let counting = Arc::new(MemoryPool::unlimited());
            let pool: Arc<dyn Pool> = counting.clone();
            let mut collector = collector(&rows, &pool, Cancel::default());
            collector.push(rows.clone()).unwrap();
            let charged = pool.reserved();
            let (growth, build) = peak_growth(|| collector.finish().unwrap());
            let admitted = counting.peak() - charged;
            assert!(growth <= (admitted + 16 * 1024) as isize, "{growth} bytes allocated, {admitted} admitted");
            assert_eq!(build.index().num_keys(), distinct as usize);
        }
    }
}

/// B10: what it takes to find the keys that repeat is admitted, but for the answer, and given back; a pool that refuses it
/// keeps nothing.
#[test]
fn finding_repeated_keys_is_admitted() {
    let keys = (0..ROWS).map(|i| i * 7919 % (ROWS / 3));
    let rows = batch(vec![Arc::new(Int64Array::from_iter_values(keys))]);
    let mut collector = collector(&rows, &(Arc::new(MemoryPool::unlimited()) as Arc<dyn Pool>), Cancel::default());
    collector.push(rows).unwrap();
    let build = collector.finish().unwrap();
    for limit in [None, Some(10)] {
        let counting = Arc::new(MemoryPool::unlimited());
        let pool: Arc<dyn Pool> = counting.clone();
        let (growth, found) = peak_growth(|| build.repeated_keys(limit, &pool, &Cancel::default()).unwrap());
        assert_eq!(found.num_rows(), limit.unwrap_or(ROWS as usize / 3));
        let answer = found.get_array_memory_size();
        let admitted = counting.peak();
        assert!(growth <= (admitted + answer + 16 * 1024) as isize, "{growth} allocated, {admitted} admitted");
        assert_eq!(pool.reserved(), 0);
    }
    let small: Arc<dyn Pool> = Arc::new(MemoryPool::new(64));
    let refused = build.repeated_keys(None, &small, &Cancel::default()).unwrap_err();
    assert!(matches!(refused, Error::ResourcesExhausted(_)), "{refused}");
    assert_eq!(small.reserved(), 0);
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(matches!(build.repeated_keys(None, &small, &cancel), Err(Error::Cancelled)));
}

/// S9, S11: a dictionary whose values all batches share is charged and admitted once, as are slices of list views.
#[test]
fn shared_values_are_admitted_once() {
    let texts = StringArray::from_iter_values((0..1000).map(|i| format!("{i:01000}")));
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from_iter_values(0..1000), Arc::new(texts)));
    let (offsets, sizes) = ((0..1000).collect::<Vec<_>>(), vec![1; 1000]);
    let texts = dictionary.as_any_dictionary().values().clone();
    let field = Arc::new(Field::new("item", DataType::Utf8, true));
    let views: ArrayRef = Arc::new(ListViewArray::new(field, offsets.into(), sizes.into(), texts, None));
    for column in [dictionary, views] {
        let whole = batch(vec![Arc::new(Int64Array::from_iter_values(0..1000)), column]);
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(5 << 19));
        let mut collector = collector(&whole, &pool, Cancel::default());
        (0..200).for_each(|i| collector.push(whole.slice(5 * i, 5)).unwrap());
        assert_eq!(collector.finish().unwrap().rows().unwrap().num_rows(), 1000);
    }
}

/// B3: of 20 million candidate pairs, 3 of each 10,000 pass. The pairs and their columns are never all in memory at
/// once, although all pairs that pass are one batch.
#[test]
fn skewed_keys_under_a_predicate_take_bounded_memory() {
    const MATCHES: i64 = 10_000;
    let long = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    // Two keys in turn, so that the rows of a key lie apart.
    let build =
        batch(vec![long((0..2 * MATCHES).map(|i| i % 2).collect()), long((0..2 * MATCHES).map(|i| i / 2).collect())]);
    let rows = 2000;
    let probe = batch(vec![long((0..rows).map(|i| i * 2 / rows).collect()), long((0..rows).collect())]);
    for kind in [JoinType::Inner, JoinType::FullOuter, JoinType::ProbeAnti] {
        let source = {
            let probe = probe.clone();
            Source::new(probe.schema(), 1, move |_| Ok(BatchStream::from_batches(probe.schema(), vec![probe.clone()])))
        };
        let filter = Expr::parse_sql("build[1] >= probe[1] and build[1] < probe[1] + 3").unwrap();
        let join = HashJoin::builder(build.schema(), source).on([(0, 0)]).join_type(kind).filter(Some(filter));
        let join = join.build().unwrap();
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        let input = BatchStream::from_batches(build.schema(), vec![build.clone()]);
        let prepared = join.prepare_build(input, &pool, PrepareOptions::default()).unwrap();
        let join = join.with_prepared_build(prepared).unwrap();
        let options = RunOptions { batch_size: usize::MAX, ..RunOptions::default() };
        let (peak, found) = peak_growth(|| -> usize {
            join.execute(0, &options).unwrap().map(|batch| batch.unwrap().num_rows()).sum()
        });
        let expected = match kind {
            JoinType::Inner => 3 * rows,
            JoinType::FullOuter => 3 * rows + 2 * MATCHES - (rows + 4),
            _ => 0,
        };
        assert_eq!(found as i64, expected, "{kind}");
        assert!(peak < 2 << 20, "{kind}: {peak} bytes");
    }
}

/// A column of one of the flat types from (value, length) pairs; with `nulls`, every odd value is null.
fn flat(kind: u8, rows: &[(i64, usize)], nulls: bool) -> ArrayRef {
    let rows = || rows.iter().map(|&(value, len)| (!nulls || value % 2 == 0).then_some((value, len)));
    let validity = || nulls.then(|| NullBuffer::from_iter(rows().map(|row| row.is_some())));
    match kind {
        0 => Arc::new(rows().map(|row| row.map(|(value, _)| value)).collect::<Int64Array>()),
        1 => Arc::new(rows().map(|row| row.map(|(value, _)| value as u8)).collect::<UInt8Array>()),
        2 => Arc::new(rows().map(|row| row.map(|(value, _)| value > 0)).collect::<BooleanArray>()),
        3 => Arc::new(rows().map(|row| row.map(|(value, len)| value.to_string().repeat(len))).collect::<StringArray>()),
        4 => {
            let bytes: Vec<u8> =
                rows().flat_map(|row| row.map_or([0; 3], |(value, len)| [value as u8, len as u8, 1])).collect();
            Arc::new(FixedSizeBinaryArray::new(3, Buffer::from(bytes), validity()))
        }
        5 => Arc::new(Decimal256Array::from_iter(rows().map(|row| row.map(|(value, _)| i256::from(value))))),
        _ => Arc::new(NullArray::new(rows().count())),
    }
}
