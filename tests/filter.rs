//! Bounds, membership and dynamic filters.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::filter_record_batch;
use prejoin::{
    BatchStream, Config, DynamicFilter, HashJoin, HashJoinBuilder, JoinType, MapLookup, Membership, MemoryPool,
    NullEquality, PartitionMode, Pool, PreparedBuild, Result, RunOptions, Source,
};
use proptest::prelude::*;

/// A batch of these key columns, named a, b, .., and a column `row` that numbers the rows.
fn batch(keys: Vec<ArrayRef>) -> RecordBatch {
    let rows = Int64Array::from_iter_values(0..keys[0].len() as i64);
    let field = |(i, key): (usize, &ArrayRef)| {
        Field::new(char::from(b'a' + i as u8).to_string(), key.data_type().clone(), true)
    };
    let mut fields: Vec<Field> = keys.iter().enumerate().map(field).collect();
    fields.push(Field::new("row", DataType::Int64, false));
    let columns = keys.into_iter().chain([Arc::new(rows) as ArrayRef]).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn ints<K: Into<Option<i64>>>(keys: impl IntoIterator<Item = K>) -> RecordBatch {
    batch(vec![Arc::new(keys.into_iter().map(Into::into).collect::<Int64Array>())])
}

fn keys_of(batch: &RecordBatch) -> Vec<usize> {
    (0..batch.num_columns() - 1).collect()
}

fn source(batch: &RecordBatch) -> Source {
    Source::from_batches(batch.schema(), vec![vec![batch.clone()]])
}

fn filter_over(probe: &RecordBatch) -> Arc<DynamicFilter> {
    DynamicFilter::try_new(probe.schema(), keys_of(probe)).unwrap()
}

fn join(build: &RecordBatch, probe: impl Into<Source>) -> HashJoinBuilder {
    let keys = keys_of(build);
    HashJoin::builder(build.schema(), probe).on(keys.iter().map(|&key| (key, key)).collect::<Vec<_>>())
}

fn prepare(build: &RecordBatch, cut: usize, nulls: NullEquality, config: Config) -> Arc<PreparedBuild> {
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    let batches = (0..build.num_rows()).step_by(cut.max(1));
    let batches = batches.map(|start| build.slice(start, cut.min(build.num_rows() - start))).collect();
    let input = BatchStream::from_batches(build.schema(), batches);
    let join = join(build, build.schema()).null_equality(nulls).build().unwrap();
    join.prepare_build(input, &pool, config).unwrap()
}

fn drain(join: &HashJoin) -> Vec<RecordBatch> {
    join.execute(0, &RunOptions::default()).unwrap().collect::<Result<_>>().unwrap()
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn mask(filter: &DynamicFilter, batch: &RecordBatch) -> Vec<bool> {
    let mask = filter.evaluate(batch).unwrap();
    assert_eq!((mask.len(), mask.null_count()), (batch.num_rows(), 0));
    mask.values().iter().collect()
}

/// S39, S40: the list is the key column itself, or a struct of the key columns themselves; it costs nothing.
#[test]
fn inlist_shares_accounted_build_buffers() {
    let column = || Arc::new(Int64Array::from(vec![Some(1), Some(1_000_000), None, Some(1)])) as ArrayRef;
    for build in [batch(vec![column()]), batch(vec![column(), column()])] {
        for cut in [4, 2] {
            let with = |change: fn(&mut Config)| {
                let mut config = Config::default();
                change(&mut config);
                prepare(&build, cut, NullEquality::NullEqualsNothing, config)
            };
            let prepared = with(|_| ());
            let Membership::InList(list) = prepared.membership() else { panic!("a list of 4 rows fits") };
            assert_eq!(list.len(), 4);
            match prepared.key_columns().unwrap().as_slice() {
                [key] => assert!(Arc::ptr_eq(list, key)),
                keys => {
                    let columns = list.as_struct().columns();
                    assert!(keys.len() == 2 && columns.iter().zip(keys).all(|(list, key)| Arc::ptr_eq(list, key)));
                }
            }
            for key in prepared.key_columns().unwrap() {
                assert_eq!(key.as_primitive::<Int64Type>(), column().as_primitive::<Int64Type>());
            }
            let off: [fn(&mut Config); 4] = [
                |config| config.in_list_max_bytes = 0,
                |config| config.in_list_max_values = 0,
                |config| config.in_list_max_values = 1,
                |config| config.in_list_max_bytes = 32,
            ];
            for change in off {
                let mapped = with(change);
                assert!(matches!(mapped.membership(), Membership::Map));
                assert_eq!(mapped.reserved_bytes(), prepared.reserved_bytes());
            }
            // Two distinct keys, 33 bytes for each key column: values and validity.
            let exact = with(|config| (config.in_list_max_values, config.in_list_max_bytes) = (2, 66));
            assert!(matches!(exact.membership(), Membership::InList(_)));
            let bounds = prepared.bounds().iter().map(|bounds| format!("{:?}", bounds.as_ref().unwrap()));
            assert!(bounds.eq(vec!["1..=1000000"; prepared.keys().len()]));
            assert!(!format!("{prepared:?}").contains("1000000"));
        }
    }
    // S39: many duplicates of few keys are no small build; an empty build has no bounds.
    let many = prepare(&ints(vec![7; 20_000]), 8192, NullEquality::NullEqualsNothing, Config::default());
    assert_eq!((many.num_keys(), matches!(many.membership(), Membership::Map)), (1, true));
    let empty = prepare(&ints(Vec::<i64>::new()), 1, NullEquality::NullEqualsNothing, Config::default());
    assert!(empty.bounds()[0].is_none());
}

/// S41: byte keys have neither bounds nor a list, whatever the config allows, and filter by the map.
#[test]
fn byte_keys_use_hash_membership() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    let bytes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8, 2], [3, 4]].iter()).unwrap());
    for keys in [vec![text.clone()], vec![bytes.clone()], vec![text, bytes]] {
        let build = batch(keys);
        let config = Config { in_list_max_bytes: usize::MAX, in_list_max_values: usize::MAX, ..Config::default() };
        let prepared = prepare(&build, 2, NullEquality::NullEqualsNothing, config);
        assert!(prepared.bounds().iter().all(Option::is_none));
        assert!(matches!(prepared.membership(), Membership::Map));
        let probe = build.slice(1, 1);
        let filter = filter_over(&probe);
        let task = join(&build, source(&probe)).dynamic_filter(Some(Arc::clone(&filter))).build().unwrap();
        let task = task.with_prepared_build(prepared).unwrap();
        assert_eq!(rows(&drain(&task)), 1);
        assert!(filter.is_complete());
        assert_eq!(mask(&filter, &probe), [true]);
    }
    // A byte key beside another one: no list, and only the other one has bounds.
    let mixed = batch(vec![Arc::new(Int64Array::from(vec![1])), Arc::new(StringArray::from(vec!["x"]))]);
    let mixed = prepare(&mixed, 1, NullEquality::NullEqualsNothing, Config::default());
    assert_eq!(mixed.bounds().iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    assert!(matches!(mixed.membership(), Membership::Map));
}

/// S42: empty until the build is known, complete when the probe side is opened; attached, ordinary, and by push.
#[test]
fn the_filter_is_complete_before_the_first_probe_batch() {
    let build = ints([Some(2), Some(9), None]);
    let probe = ints([Some(1), Some(2), Some(5), Some(9), Some(10), None]);
    let filter = filter_over(&probe);
    let opened = Arc::new(AtomicUsize::new(0));
    let (scan, seen, rows_of_scan) = (Arc::clone(&filter), Arc::clone(&opened), probe.clone());
    let scanned = Source::new(probe.schema(), 1, move |_| {
        assert!(scan.is_complete());
        seen.fetch_add(1, Ordering::Relaxed);
        let kept = filter_record_batch(&rows_of_scan, &scan.evaluate(&rows_of_scan)?)?;
        assert_eq!(kept.num_rows(), 2);
        Ok(BatchStream::from_batches(kept.schema(), vec![kept]))
    });
    let attached = join(&build, scanned.clone()).dynamic_filter(Some(Arc::clone(&filter))).build().unwrap();
    let prepared = prepare(&build, 8, NullEquality::NullEqualsNothing, Config::default());
    let attached = attached.with_prepared_build(prepared).unwrap();
    assert!(!filter.is_complete());
    let called = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&called);
    filter.on_complete(move || _ = calls.fetch_add(1, Ordering::Relaxed));
    let stream = attached.execute(0, &RunOptions::default()).unwrap();
    assert!(!filter.is_complete() && !filter.wait_complete(Some(Duration::from_millis(1))));
    assert_eq!(mask(&filter, &probe), [true; 6]);
    let waiting = Arc::clone(&filter);
    let waiter = std::thread::spawn(move || waiting.wait_complete(None));
    assert_eq!(stream.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
    assert!(waiter.join().unwrap() && filter.wait_complete(Some(Duration::ZERO)));
    assert_eq!(called.load(Ordering::Relaxed), 1);
    let calls = Arc::clone(&called);
    filter.on_complete(move || _ = calls.fetch_add(1, Ordering::Relaxed));
    assert_eq!(called.load(Ordering::Relaxed), 2);
    assert_eq!(mask(&filter, &probe), [false, true, false, true, false, false]);

    let ordinary = join(&build, scanned).build_source(source(&build)).dynamic_filter(Some(Arc::clone(&filter)));
    let ordinary = ordinary.build().unwrap();
    assert!(!filter.is_complete());
    assert_eq!(rows(&drain(&ordinary)), 2);
    assert_eq!(opened.load(Ordering::Relaxed), 2);

    let pushed = ordinary.to_builder().build().unwrap();
    assert!(!filter.is_complete());
    let session = pushed.open(0, &RunOptions::default()).unwrap();
    assert!(filter.is_complete());
    drop(session);

    let empty = ints(Vec::<i64>::new());
    let nothing = join(&empty, source(&probe)).build_source(source(&empty)).dynamic_filter(Some(Arc::clone(&filter)));
    assert_eq!(rows(&drain(&nothing.build().unwrap())), 0);
    assert_eq!(mask(&filter, &probe), [false; 6]);
    assert_eq!(filter.to_string(), "DynamicFilter [ false ]");
}

/// S42: the filter prints bounds and the kind of membership, and refuses batches that are not probe batches.
#[test]
fn the_filter_prints_itself_and_checks_its_batches() {
    let build = batch(vec![
        Arc::new(Int64Array::from(vec![Some(3), Some(40), None])),
        Arc::new(UInt64Array::from(vec![u64::MAX, 5, 6])),
    ]);
    let filter = filter_over(&build);
    let told = |config: Config, nulls| {
        let task = join(&build, source(&build)).null_equality(nulls).dynamic_filter(Some(Arc::clone(&filter)));
        drain(&task.build().unwrap().with_prepared_build(prepare(&build, 8, nulls, config)).unwrap());
        filter.to_string()
    };
    let bounds = "a@0 >= 3 AND a@0 <= 40 AND b@1 >= 5 AND b@1 <= 18446744073709551615";
    let listed = told(Config::default(), NullEquality::NullEqualsNothing);
    assert_eq!(listed, format!("DynamicFilter [ {bounds} AND (a@0, b@1) IN (list of 3) ]"));
    let mapped = told(Config { in_list_max_values: 0, ..Config::default() }, NullEquality::NullEqualsNull);
    assert!(mapped.contains("(a@0 >= 3 AND a@0 <= 40 OR a@0 IS NULL)") && mapped.ends_with("IN (map of 3) ]"));
    let text = |batch: &RecordBatch| filter.evaluate(batch).unwrap_err().to_string();
    assert!(text(&build.project(&[0]).unwrap()).contains("key column 1 was asked of a batch of 1 columns"));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["3"]));
    let unlike = RecordBatch::try_from_iter([("a", texts), ("b", Arc::new(UInt64Array::from(vec![5])) as _)]).unwrap();
    assert!(
        text(&unlike).contains("column \"a\" has type Utf8, which does not compare with the build's key of type Int64")
    );
    // Other types of equal values are read as what they are.
    let signs: ArrayRef = Arc::new(Int64Array::from(vec![5, -5]));
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![40, 40]));
    let kept = filter.evaluate(&RecordBatch::try_from_iter([("a", narrow), ("b", signs)]).unwrap()).unwrap();
    assert!(!kept.value(1));
}

/// S42: a join that gives unmatched probe rows, or looks at them, filters nothing; the filter is complete all the same.
#[test]
fn joins_that_need_every_probe_row_filter_nothing() {
    let (build, probe) = (ints([Some(1), None]), ints([Some(1), Some(2), None]));
    for kind in JoinType::ALL {
        for null_aware in [false, true] {
            let anti = matches!(kind, JoinType::ProbeAnti | JoinType::BuildAnti);
            if null_aware && !anti {
                continue;
            }
            let filter = filter_over(&probe);
            let task = join(&build, source(&probe)).build_source(source(&build)).join_type(kind).null_aware(null_aware);
            drain(&task.dynamic_filter(Some(Arc::clone(&filter))).build().unwrap());
            let keeps = ["ProbeOuter", "FullOuter", "ProbeAnti", "ProbeMark"].contains(&kind.to_string().as_str());
            let keeps = keeps || null_aware;
            assert!(filter.is_complete());
            assert_eq!(mask(&filter, &probe), [true, keeps, keeps], "{kind}");
            assert_eq!(filter.lookups().is_none(), keeps);
            assert_eq!(filter.to_string() == "DynamicFilter [ true ]", keeps);
        }
    }
}

fn partitioned(parts: [&RecordBatch; 2], probe: &RecordBatch, filter: &Arc<DynamicFilter>) -> HashJoin {
    let probes = Source::from_batches(probe.schema(), vec![vec![probe.clone()]; 2]);
    let builds = Source::from_batches(probe.schema(), parts.map(|part| vec![part.clone()]).to_vec());
    let task = join(parts[0], probes).build_source(builds).mode(PartitionMode::Partitioned);
    task.dynamic_filter(Some(Arc::clone(filter))).build().unwrap()
}

/// S42: a Partitioned join's filter is the union of all partitions, complete when the last one's build is known.
#[test]
fn partitions_complete_the_filter_together() {
    let (first, second, probe) = (ints([1, 2]), ints([100]), ints([1, 50, 100, 3]));
    let options = RunOptions::default();
    let filter = filter_over(&probe);
    let task = partitioned([&first, &second], &probe, &filter);
    assert_eq!(task.execute(0, &options).unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
    assert!(!filter.is_complete());
    assert_eq!(mask(&filter, &probe), [true; 4]);
    let again = task.execute(0, &options).unwrap_err().to_string();
    assert!(again.contains("executed before"), "{again}");
    assert_eq!(task.execute(1, &options).unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
    assert!(filter.is_complete());
    assert_eq!(mask(&filter, &probe), [true, false, true, false]);
    let text = filter.to_string();
    assert!(text.contains("a@0 >= 1 AND a@0 <= 2") && text.contains(") OR (a@0 >= 100"), "{text}");

    // S35: a partition that is dropped unread, or fails, has no rows to filter.
    let task = partitioned([&first, &second], &probe, &filter);
    assert!(!filter.is_complete());
    drop(task.execute(0, &options).unwrap());
    assert!(!filter.is_complete());
    assert_eq!(task.execute(1, &options).unwrap().count(), 1);
    assert_eq!(mask(&filter, &probe), [false, false, true, false]);
    let task = partitioned([&first, &second], &probe, &filter);
    assert_eq!(task.execute(1, &options).unwrap().count(), 1);
    let poor = RunOptions { pool: Arc::new(MemoryPool::new(0)), ..RunOptions::default() };
    assert!(task.execute(0, &poor).unwrap().next().unwrap().is_err());
    assert_eq!(mask(&filter, &probe), [false, false, true, false]);
}

/// S28: each build() of a builder empties the filter, which stays the same object; S31: reset() detaches it.
#[test]
fn builders_keep_the_filter_and_reset_detaches_it() {
    let (build, probe) = (ints([1, 2]), ints([2, 3]));
    let filter = filter_over(&probe);
    let prepared = prepare(&build, 8, NullEquality::NullEqualsNothing, Config::default());
    let task = join(&build, source(&probe)).dynamic_filter(Some(Arc::clone(&filter))).build().unwrap();
    let mut task = task.with_prepared_build(Arc::clone(&prepared)).unwrap();
    let output = drain(&task);
    assert!(filter.is_complete());
    let rebuilt = task.to_builder().limit(Some(1)).build().unwrap();
    assert!(Arc::ptr_eq(rebuilt.dynamic_filter().unwrap(), &filter));
    assert!(!filter.is_complete());
    assert_eq!((mask(&filter, &probe), Arc::strong_count(&prepared)), (vec![true; 2], 3));
    assert_eq!(rows(&drain(&rebuilt)), 1);
    assert_eq!(mask(&filter, &probe), [true, false]);
    // The first descriptor still runs, as often as asked, and completes the filter again.
    assert!(task.clone().with_embedded_projection(&[0]).is_ok() && !filter.is_complete());
    assert_eq!(drain(&task), output);
    assert_eq!(mask(&filter, &probe), [true, false]);
    assert!(task.to_builder().dynamic_filter(None).build().unwrap().dynamic_filter().is_none());

    task.reset();
    assert!(task.dynamic_filter().is_none() && task.prepared_build().is_some());
    assert_eq!(drain(&task), output);
}

/// S30: at build(), at attaching, and at execution after a public field changed.
#[test]
fn filters_are_over_the_probe_keys() {
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![1])), Arc::new(Int64Array::from(vec![2]))];
    let both = batch(columns);
    let filter = DynamicFilter::try_new(both.schema(), ["a"]).unwrap();
    let prepared = {
        let join = HashJoin::builder(both.schema(), both.schema()).on([("a", "a")]).build().unwrap();
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        let input = BatchStream::from_batches(both.schema(), vec![both.clone()]);
        join.prepare_build(input, &pool, Config::default()).unwrap()
    };
    let task = HashJoin::builder(both.schema(), source(&both)).on([("a", "a")]).dynamic_filter(Some(filter));
    let task = task.build().unwrap().with_prepared_build(prepared).unwrap();
    let message = "dynamic filter keys do not match probe keys";
    let assert_refused = |error: prejoin::Error| assert!(error.to_string().contains(message), "{error}");
    assert_refused(task.to_builder().on([("a", "b")]).build().unwrap_err());
    assert_refused(
        task.to_builder().on([("a", "a"), ("b", "b")]).null_equality(NullEquality::default()).build().unwrap_err(),
    );
    // The key is found by its name, in another place than the filter's.
    let moved = Arc::new(Schema::new(["z", "a"].map(|name| Field::new(name, DataType::Int64, true)).to_vec()));
    assert_refused(task.to_builder().probe(moved).build().unwrap_err());
    let mut changed = task.clone();
    changed.on = vec![(0, 1)];
    assert_refused(changed.execute(0, &RunOptions::default()).unwrap_err());
    assert!(task.to_builder().probe(source(&both)).build().is_ok());
    let unknown = DynamicFilter::try_new(both.schema(), ["nope"]).unwrap_err().to_string();
    assert!(unknown.contains("no column \"nope\""), "{unknown}");
    assert!(DynamicFilter::try_new(both.schema(), Vec::<usize>::new()).is_err());
}

/// S22, S34: consumers at once over one build, each with a filter of its own that its own run completes.
#[test]
fn reuses_data_with_independent_dynamic_filters() {
    let pool = Arc::new(MemoryPool::unlimited());
    let shared: Arc<dyn Pool> = Arc::clone(&pool) as _;
    let build = ints(0..1000);
    let input = BatchStream::from_batches(build.schema(), vec![build.clone()]);
    let plain = join(&build, build.schema()).build().unwrap();
    let prepared = plain.prepare_build(input, &shared, Config::default()).unwrap();
    let consumers: Vec<_> = (0..4)
        .map(|i| {
            let probe = ints([i, 5000 + i, 999]);
            let filter = filter_over(&probe);
            let task = join(&build, source(&probe)).dynamic_filter(Some(Arc::clone(&filter))).build().unwrap();
            (task.with_prepared_build(Arc::clone(&prepared)).unwrap(), filter, probe)
        })
        .collect();
    drain(&consumers[0].0);
    assert_eq!(
        consumers.iter().map(|(_, filter, _)| filter.is_complete()).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    std::thread::scope(|scope| {
        for (task, filter, probe) in &consumers[1..] {
            scope.spawn(move || {
                assert_eq!(rows(&drain(task)), 2);
                assert_eq!(mask(filter, probe), [true, false, true]);
            });
        }
    });
    assert_eq!(pool.reserved(), prepared.reserved_bytes());
}

/// S42, against a caller that shares one filter between two runs after all: neither loses a row.
#[test]
fn runs_that_share_a_filter_at_a_time_test_their_union() {
    let (one, two, probe) = (ints([1]), ints([2]), ints([1, 2, 3]));
    let filter = filter_over(&probe);
    let task = |build: &RecordBatch| {
        let task = join(build, source(&probe)).build_source(source(build));
        task.dynamic_filter(Some(Arc::clone(&filter))).build().unwrap()
    };
    let options = RunOptions { batch_size: 1, ..RunOptions::default() };
    let first = task(&one);
    let mut open = first.execute(0, &options).unwrap();
    assert_eq!(open.next().unwrap().unwrap().num_rows(), 1);
    assert_eq!(mask(&filter, &probe), [true, false, false]);
    let second = task(&two);
    assert_eq!(mask(&filter, &probe), [true; 3]);
    drain(&second);
    assert_eq!(mask(&filter, &probe), [true, true, false]);
    drop(open);
    drain(&task(&two));
    assert_eq!(mask(&filter, &probe), [false, true, false]);
    // S26: the kind changes between two executions of one run.
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (scan, seen, all) = (Arc::clone(&filter), Arc::clone(&kept), probe.clone());
    let scanned = Source::new(probe.schema(), 1, move |_| {
        *seen.lock().unwrap() = mask(&scan, &all);
        Ok(BatchStream::from_batches(all.schema(), vec![all.clone()]))
    });
    let mut changed = task(&two).to_builder().probe(scanned).build().unwrap();
    drain(&changed);
    assert_eq!(*kept.lock().unwrap(), [false, true, false]);
    changed.join_type = JoinType::ProbeAnti;
    drain(&changed);
    assert_eq!(*kept.lock().unwrap(), [true; 3]);
}

/// S43: equality is that of the map, by identity, and of all else that was given; hashes agree.
#[test]
fn map_lookups_are_equal_by_identity() {
    let build = ints([1, 2]);
    let prepare = || prepare(&build, 8, NullEquality::NullEqualsNothing, Config::default());
    let (map, twin) = (prepare(), prepare());
    let lookup = |map: &Arc<PreparedBuild>, column, text: &str, seed| {
        MapLookup::new(Arc::clone(map), vec![column], text, seed).unwrap()
    };
    let one = lookup(&map, 0, "keys", 7);
    let hasher = RandomState::new();
    let same = lookup(&map, 0, "keys", 7);
    assert_eq!((&one, hasher.hash_one(&one)), (&same, hasher.hash_one(&same)));
    let others = [
        lookup(&twin, 0, "keys", 7),
        lookup(&map, 1, "keys", 7),
        lookup(&map, 0, "key", 7),
        lookup(&map, 0, "keys", 8),
    ];
    assert!(others.iter().all(|other| *other != one));
    #[allow(clippy::mutable_key_type)] // equal and hashed by identity
    let set: HashSet<MapLookup> = others.into_iter().chain([one.clone(), same]).collect();
    assert_eq!(set.len(), 5);
    assert!(MapLookup::new(Arc::clone(&map), vec![], "keys", 7).is_err());
    let mask = one.evaluate(&ints([Some(2), Some(3), None])).unwrap();
    assert_eq!(mask.values().iter().collect::<Vec<_>>(), [true, false, false]);
}

/// S44, S24: a filter outlives its join; the last lease gives everything back.
#[test]
fn a_filter_may_outlive_its_join() {
    let pool = Arc::new(MemoryPool::unlimited());
    let (build, probe) = (ints([1, 2]), ints([2, 3]));
    let filter = filter_over(&probe);
    let task = join(&build, source(&probe)).build_source(source(&build)).dynamic_filter(Some(Arc::clone(&filter)));
    let task = task.build().unwrap();
    let options = RunOptions { pool: Arc::clone(&pool) as _, ..RunOptions::default() };
    assert_eq!(task.execute(0, &options).unwrap().count(), 1);
    drop((task, options));
    assert!(pool.reserved() > 0);
    assert_eq!(mask(&filter, &probe), [true, false]);
    let lookups = filter.lookups().unwrap();
    drop(filter);
    assert_eq!(pool.reserved(), lookups[0].build().reserved_bytes());
    drop(lookups);
    assert_eq!(pool.reserved(), 0);
}

#[derive(Debug, Clone, Copy)]
enum KeyType {
    Int,
    UInt,
    Float,
    Text,
}

/// Key columns of `types` whose values are picked from a few special ones by `picks`.
fn key_columns(types: &[KeyType], picks: &[(Option<u8>, Option<u8>)]) -> Vec<ArrayRef> {
    let floats = [
        0.0,
        -0.0,
        f64::NAN,
        f64::from_bits(0xfff8_0000_0000_0001),
        f64::INFINITY,
        f64::NEG_INFINITY,
        1.5,
        -1.5,
        f64::MIN_POSITIVE,
        -3e300,
    ];
    let ints = [0, 1, -1, i64::MAX, i64::MIN, 7, 8, 9, 1 << 40, -5];
    let column = |(i, key): (usize, &KeyType)| -> ArrayRef {
        let picks = picks.iter().map(|pick| if i == 0 { pick.0 } else { pick.1 });
        match key {
            KeyType::Int => Arc::new(picks.map(|p| p.map(|p| ints[p as usize])).collect::<Int64Array>()),
            KeyType::UInt => Arc::new(picks.map(|p| p.map(|p| ints[p as usize] as u64)).collect::<UInt64Array>()),
            KeyType::Float => Arc::new(picks.map(|p| p.map(|p| floats[p as usize])).collect::<Float64Array>()),
            KeyType::Text => Arc::new(picks.map(|p| p.map(|p| "x".repeat(p as usize))).collect::<StringArray>()),
        }
    };
    types.iter().enumerate().map(column).collect()
}

/// Values by index into the special ones; a build from the lower half leaves probe rows outside of its bounds.
fn picks(to: u8, max: usize) -> impl Strategy<Value = Vec<(Option<u8>, Option<u8>)>> {
    let pick = move || proptest::option::weighted(0.8, 0..to);
    proptest::collection::vec((pick(), pick()), 0..max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// S42: every kind gives the same rows from filtered probe rows as from all; where rows are filtered, those kept are
    /// exactly those with a match. S39: lists, maps, bounds and their absence alike.
    #[test]
    fn filters_change_no_join(
        build in prop_oneof![picks(3, 12), picks(10, 12)],
        probe in picks(10, 40),
        first in prop_oneof![Just(KeyType::Int), Just(KeyType::UInt), Just(KeyType::Float), Just(KeyType::Text)],
        second in proptest::option::of(prop_oneof![Just(KeyType::Int), Just(KeyType::Float), Just(KeyType::Text)]),
        nulls in any::<(bool, bool)>(),
        in_list_max_values in prop_oneof![Just(0usize), Just(150)],
    ) {
        let types: Vec<KeyType> = [first].into_iter().chain(second).collect();
        let nulls = [nulls.0, nulls.1].map(|equal| if equal { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing });
        let (build, probe) = (batch(key_columns(&types, &build)), batch(key_columns(&types, &probe)));
        let options = RunOptions { config: Config { in_list_max_values, ..Config::default() }, ..RunOptions::default() };
        let task = |kind, probe: Source| {
            let task = join(&build, probe).build_source(source(&build)).join_type(kind);
            task.null_equalities(nulls[..types.len()].to_vec())
        };
        let run = |task: HashJoin| task.execute(0, &options).unwrap().collect::<Result<Vec<_>>>().unwrap();
        let row = probe.num_columns() - 1;
        let matching: HashSet<i64> = run(task(JoinType::ProbeSemi, source(&probe)).build().unwrap())
            .iter()
            .flat_map(|batch| batch.column(row).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        for kind in JoinType::ALL {
            let filter = filter_over(&probe);
            let (scan, all) = (Arc::clone(&filter), probe.clone());
            let filtered = Source::new(probe.schema(), 1, move |_| {
                let kept = filter_record_batch(&all, &scan.evaluate(&all)?)?;
                Ok(BatchStream::from_batches(kept.schema(), vec![kept]))
            });
            let plain = run(task(kind, source(&probe)).build().unwrap());
            let output = run(task(kind, filtered).dynamic_filter(Some(Arc::clone(&filter))).build().unwrap());
            prop_assert_eq!(format!("{output:?}"), format!("{plain:?}"), "{}", kind);
            let keeps_all = ["ProbeOuter", "FullOuter", "ProbeAnti", "ProbeMark"].contains(&kind.to_string().as_str());
            for (i, kept) in mask(&filter, &probe).into_iter().enumerate() {
                prop_assert_eq!(kept, keeps_all || matching.contains(&(i as i64)), "{} row {}", kind, i);
            }
        }
    }
}
