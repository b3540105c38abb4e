//! Prepared builds as their users see them: preparing, attaching, running, explain, statistics and serialization. Of
//! the tests that S51 names, those of admission are in `build.rs` and `memory.rs`, those of membership in `filter.rs`,
//! and `matches_collect_left` is in `join.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, thread};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, record_batch};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use arrow_select::filter::filter_record_batch;
use prejoin::expr::{Expr, Literal, build, lit, probe};
use prejoin::{
    BatchStream, Cancel, Config, DynamicFilter, Error, Estimate, ExplainFormat, HashJoin, JoinKey, JoinType,
    MemoryPool, Metrics, NullEquality, PartitionMode, Pool, PreparedBuild, Result, RunOptions, Source, Validate,
};
use proptest::prelude::*;

/// (build key, build payload, probe key, probe payload)
type Row = [Option<i64>; 4];

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, true);
    Arc::new(Schema::new(vec![field("key"), field("payload")]))
}

fn table(rows: &[(i64, i64)]) -> RecordBatch {
    let columns = [Int64Array::from_iter_values(rows.iter().map(|row| row.0)), rows.iter().map(|row| row.1).collect()];
    RecordBatch::try_new(schema(), columns.map(|column| Arc::new(column) as ArrayRef).to_vec()).unwrap()
}

fn source(partitions: &[&[(i64, i64)]]) -> Source {
    Source::from_batches(schema(), partitions.iter().map(|rows| vec![table(rows)]).collect())
}

fn unlimited() -> Arc<dyn Pool> {
    Arc::new(MemoryPool::unlimited())
}

/// A join on `key` whose build source must never be opened.
fn join(probe: Source) -> HashJoin {
    HashJoin::builder(unopened(), probe).on([("key", "key")]).build().unwrap()
}

fn unopened() -> Source {
    Source::new(schema(), 1, |_| panic!("the join's own build source was opened"))
}

fn prepare(join: &HashJoin, rows: &[(i64, i64)], pool: &Arc<dyn Pool>) -> Arc<PreparedBuild> {
    let input = BatchStream::from_batches(schema(), vec![table(rows)]);
    join.prepare_build(input, pool, Config::default()).unwrap()
}

fn run(join: &HashJoin) -> Vec<RecordBatch> {
    run_with(join, &RunOptions::default())
}

fn run_with(join: &HashJoin, options: &RunOptions) -> Vec<RecordBatch> {
    (0..join.partitions()).flat_map(|i| join.execute(i, options).unwrap()).map(Result::unwrap).collect()
}

fn cells(batches: &[RecordBatch]) -> Vec<Vec<Option<i64>>> {
    let row = |batch: &RecordBatch, row| {
        batch.columns().iter().map(|c| c.as_primitive::<Int64Type>().iter().nth(row).unwrap()).collect()
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |i| row(batch, i))).collect()
}

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    cells(batches).into_iter().map(|row| row.try_into().unwrap()).collect()
}

fn pair(build: (i64, i64), probe: (i64, i64)) -> Row {
    [Some(build.0), Some(build.1), Some(probe.0), Some(probe.1)]
}

#[track_caller]
fn assert_plan_error<T: fmt::Debug>(result: Result<T>, text: &str) {
    match result {
        Err(Error::Plan(found)) => assert!(found.contains(text), "{found:?} does not contain {text:?}"),
        other => panic!("a plan error with {text:?} was expected, got {other:?}"),
    }
}

/// S27, S31, S1: the placeholder has only the schema of the source that it replaces and is never executed; the order of
/// the probe side stays; after reset the join runs again, with the same batches.
#[test]
fn placeholder_properties_and_reset() {
    let pool = unlimited();
    let declared = unopened().with_equal_columns(vec![(0, 1)]).with_ordering(vec![1]);
    let probe = source(&[&[(1, 10), (2, 20), (2, 21)]]).with_ordering(vec![0]);
    let join = HashJoin::builder(declared, probe).on([("key", "key")]).build().unwrap();
    let (build_payload, probe_key) = (1, 2);
    let before = join.properties().unwrap();
    assert!(before.is_ordered_by(&[probe_key]) && before.is_ordered_by(&[probe_key, build_payload]));
    assert!(before.are_equal(0, build_payload) && before.are_equal(probe_key, build_payload));

    let prepared = prepare(&join, &[(1, 2), (1, 1), (2, 5)], &pool);
    let mut attached = join.with_prepared_build(Arc::clone(&prepared)).unwrap();
    let after = attached.properties().unwrap();
    assert!(after.is_ordered_by(&[probe_key]) && !after.is_ordered_by(&[probe_key, build_payload]));
    assert!(!after.are_equal(0, build_payload) && !after.are_equal(probe_key, build_payload));
    assert_eq!(after.equal_columns, [[0, 2]]);
    assert_eq!(attached.build_source().schema(), &schema());
    assert_plan_error(attached.build_source().open(0), "no rows");

    let options = RunOptions { batch_size: 1, ..RunOptions::default() };
    let first = run_with(&attached, &options);
    let (a, b) = ((2, 20), (2, 21));
    assert_eq!(
        rows(&first),
        [pair((1, 2), (1, 10)), pair((1, 1), (1, 10)), pair((2, 5), a), pair((2, 5), b)],
        "rows that break what was declared come out, in build order"
    );
    assert_eq!(attached.metrics().output_batches, 4);
    attached.reset();
    assert_eq!(attached.metrics(), Metrics::default());
    assert!(Arc::ptr_eq(attached.prepared_build().unwrap(), &prepared));
    assert_eq!(run_with(&attached, &options), first);
}

/// S27: the order and the equal columns of every join type, also with projections; what a join type or a projection
/// breaks is not declared.
#[test]
fn properties_follow_kind_and_projection() {
    let of = |kind, projection: Option<Vec<usize>>, build_partitions: usize| {
        let build = Source::new(schema(), build_partitions, |_| unreachable!()).with_ordering(vec![1]);
        let probe = Source::schema_only(schema()).with_ordering(vec![0, 1]);
        let join = HashJoin::builder(build, probe).on([("key", "key")]).join_type(kind).projection(projection);
        join.build().unwrap().properties().unwrap()
    };
    let known = |kind, projection| {
        let properties = of(kind, projection, 1);
        (properties.ordering, properties.equal_columns)
    };
    assert_eq!(known(JoinType::Inner, None), (vec![2, 3], vec![vec![0, 2]]));
    assert_eq!(known(JoinType::ProbeOuter, None), (vec![2, 3], vec![]));
    assert_eq!(known(JoinType::BuildOuter, None), (vec![], vec![]));
    assert_eq!(known(JoinType::FullOuter, None), (vec![], vec![]));
    assert_eq!(known(JoinType::ProbeSemi, None), (vec![0, 1], vec![]));
    assert_eq!(known(JoinType::ProbeMark, None), (vec![0, 1], vec![]));
    assert_eq!(known(JoinType::BuildSemi, None), (vec![1], vec![]));
    // Several build partitions are collected one after the other.
    assert_eq!(of(JoinType::BuildAnti, None, 2).ordering, [] as [usize; 0]);
    // The build key stands for the probe key; where neither comes out, no order is known.
    assert_eq!(known(JoinType::Inner, Some(vec![3, 0])), (vec![1, 0], vec![]));
    assert_eq!(known(JoinType::Inner, Some(vec![1, 3])), (vec![], vec![]));
    let join = HashJoin::builder(unopened().with_ordering(vec![7]), schema()).on([("key", "key")]).build().unwrap();
    assert_plan_error(join.properties(), "column 7");
}

/// S32: a projection is embedded in the attached join, whatever its type; positions refer to its output, and a
/// projection without columns keeps the number of rows.
#[test]
fn projection_pushdown_preserves_rows() {
    let pool = unlimited();
    let kinds = [JoinType::Inner, JoinType::FullOuter, JoinType::ProbeSemi, JoinType::BuildAnti];
    for kind in kinds {
        let plain = join(source(&[&[(1, 10), (3, 30), (1, 11)]])).to_builder().join_type(kind).build().unwrap();
        let prepared = prepare(&plain, &[(1, 2), (2, 5), (1, 3)], &pool);
        let attached = plain.with_prepared_build(prepared).unwrap();
        let all = cells(&run(&attached));
        let width = all[0].len();
        let projected = attached.clone().with_embedded_projection(&[width - 1, 0]).unwrap();
        assert_eq!(projected.build_source().schema(), &schema(), "the build side keeps its columns");
        let expected: Vec<_> = all.iter().map(|row| vec![row[width - 1], row[0]]).collect();
        assert_eq!(cells(&run(&projected)), expected, "{kind}");
        let again = projected.clone().with_embedded_projection(&[1]).unwrap();
        assert_eq!(again.projection, Some(vec![projected.projection.as_ref().unwrap()[1]]));
        assert_eq!(cells(&run(&again)), all.iter().map(|row| vec![row[0]]).collect::<Vec<_>>(), "{kind}");
        let nothing = run(&again.with_embedded_projection(&[]).unwrap());
        assert_eq!(nothing.iter().map(RecordBatch::num_rows).sum::<usize>(), all.len(), "{kind}");
        assert_plan_error(projected.with_embedded_projection(&[2]), "column 2 of an output of 2");
    }
}

/// S34, S21, S22, S42: several consumers of one build at once, each with separate probe partitions, predicate and
/// filter. The charge does not change, and a filter that is kept is a lease.
#[test]
fn reuses_data_with_independent_dynamic_filters() {
    let pool = unlimited();
    let build_rows: Vec<(i64, i64)> = (0..2000).map(|i| (i % 500, i)).collect();
    let prepared = prepare(&join(Source::schema_only(schema())), &build_rows, &pool);
    let reserved = pool.reserved();
    assert_eq!(reserved, prepared.reserved_bytes());
    let filtered = |filter: &Arc<DynamicFilter>, i: i64| {
        let scan = Arc::clone(filter);
        let probe_source = Source::new(schema(), 2, move |partition| {
            assert!(scan.is_complete(), "the filter is complete before the first probe batch is asked for");
            let from = [0, 500][partition] / 2;
            let keys = (from..from + 250).flat_map(|key| [key, key + 500]);
            let batch = table(&keys.map(|key| (key, 1000 + i)).collect::<Vec<_>>());
            let kept = filter_record_batch(&batch, &scan.evaluate(&batch)?)?;
            assert_eq!((batch.num_rows(), kept.num_rows()), (500, 250));
            Ok(BatchStream::from_batches(schema(), vec![kept]))
        });
        let (payload, bound) = (build("payload"), probe("payload"));
        let predicate = if i % 2 == 0 { payload.gt(bound) } else { payload.lt(bound) };
        let task = join(probe_source).to_builder().filter(Some(predicate)).dynamic_filter(Some(Arc::clone(filter)));
        task.build().unwrap().with_prepared_build(Arc::clone(&prepared)).unwrap()
    };
    let consumer = |i: i64| {
        let filter = DynamicFilter::try_new(schema(), ["key"]).unwrap();
        let task = filtered(&filter, i);
        assert!(!filter.is_complete());
        let options = RunOptions { batch_size: 7, pool: Arc::clone(&pool), ..RunOptions::default() };
        let got = thread::scope(|scope| {
            let run = |partition| task.execute(partition, &options).unwrap().map(Result::unwrap).collect::<Vec<_>>();
            let other = scope.spawn(move || run(1));
            [run(0), other.join().unwrap()].concat()
        });
        let passes = |payload: i64| if i % 2 == 0 { payload > 1000 + i } else { payload < 1000 + i };
        let matches = (0..500).flat_map(|key| (0..4).map(move |n| (key, key + 500 * n)));
        let expected: Vec<Row> = matches.filter(|row| passes(row.1)).map(|row| pair(row, (row.0, 1000 + i))).collect();
        assert_eq!(rows(&got), expected);
        assert_eq!((task.metrics().input_rows, task.metrics().output_rows), (500, expected.len() as u64));
        assert!(filter.is_complete());
        filter
    };
    let idle = DynamicFilter::try_new(schema(), ["key"]).unwrap();
    let waiting = filtered(&idle, 9);
    let filters: Vec<_> = thread::scope(|scope| {
        let consumers: Vec<_> = (0..4).map(|i| scope.spawn(move || consumer(i))).collect();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    assert!(!idle.is_complete(), "the runs of others do not complete it");
    assert_eq!(pool.reserved(), reserved);
    drop((prepared, waiting, idle));
    assert_eq!(pool.reserved(), reserved);
    drop(filters);
    assert_eq!(pool.reserved(), 0);
}

#[derive(Debug, PartialEq)]
struct ProducerError(u32);

impl fmt::Display for ProducerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "producer error {}", self.0)
    }
}

impl std::error::Error for ProducerError {}

/// S7, S8, S20: whatever ends a preparation or a run, the error arrives as it was raised, and the pool is as before.
#[test]
fn errors_and_cancellation_release_reservations() {
    let pool = unlimited();
    let plain = join(source(&[&[(1, 10)]]));
    let failing = |pool: &Arc<dyn Pool>| {
        let seen = Arc::clone(pool);
        let batches = [Ok(table(&[(1, 2)])), Err(Error::External(Box::new(ProducerError(7))))].into_iter();
        BatchStream::new(schema(), batches.inspect(move |next| assert!(next.is_ok() || seen.reserved() > 0)))
    };
    let error = plain.prepare_build(failing(&pool), &pool, Config::default()).unwrap_err();
    let Error::External(error) = error else { panic!("{error:?}") };
    assert_eq!(error.downcast_ref(), Some(&ProducerError(7)));
    assert_eq!(pool.reserved(), 0);

    let none: Arc<dyn Pool> = Arc::new(MemoryPool::new(0));
    let input = BatchStream::from_batches(schema(), vec![table(&[(1, 2)])]);
    let refused = plain.prepare_build(input, &none, Config::default());
    assert!(matches!(refused, Err(Error::ResourcesExhausted(_))), "{refused:?}");
    assert_eq!(none.reserved(), 0);

    // The source is still pending.
    let mut collector = plain.collector(&schema(), &pool, Config::default(), Cancel::default()).unwrap();
    collector.push(table(&[(1, 2)])).unwrap();
    assert!(pool.reserved() > 0);
    drop(collector);
    assert_eq!(pool.reserved(), 0);

    // Consumers: a probe source that fails, a stop signal, a pool that refuses the visited bits.
    let prepared = prepare(&plain, &[(1, 2), (5, 6)], &pool);
    let probe = Source::new(schema(), 1, move |_| {
        let batches = [Ok(table(&[(1, 10)])), Err(Error::External(Box::new(ProducerError(8))))];
        Ok(BatchStream::new(schema(), batches))
    });
    let options = RunOptions { pool: Arc::clone(&pool), ..RunOptions::default() };
    for kind in [JoinType::Inner, JoinType::BuildOuter] {
        let task = plain.to_builder().probe(probe.clone()).join_type(kind).build().unwrap();
        let task = task.with_prepared_build(Arc::clone(&prepared)).unwrap();
        let mut stream = task.execute(0, &options).unwrap();
        assert_eq!(rows(&[stream.next().unwrap().unwrap()]), [pair((1, 2), (1, 10))]);
        let Some(Err(Error::External(error))) = stream.next() else { panic!("the probe source's error was expected") };
        assert_eq!(error.downcast_ref(), Some(&ProducerError(8)));
        assert!(stream.next().is_none(), "a stream ends with its error");
        assert_eq!(pool.reserved(), prepared.reserved_bytes());
    }
    let attached = plain.with_prepared_build(Arc::clone(&prepared)).unwrap();
    let cancel = Cancel::new();
    let mut stream = attached.execute(0, &RunOptions { cancel: cancel.clone(), ..options.clone() }).unwrap();
    cancel.cancel();
    assert!(matches!(stream.next(), Some(Err(Error::Cancelled))));
    let counting = attached.to_builder().join_type(JoinType::BuildSemi).build().unwrap();
    let refused = counting.execute(0, &RunOptions { pool: none, ..options }).unwrap().next();
    assert!(matches!(refused, Some(Err(Error::ResourcesExhausted(_)))), "{refused:?}");
    assert_eq!(pool.reserved(), prepared.reserved_bytes());
}

fn addresses(batch: &RecordBatch) -> Vec<usize> {
    let address = |buffer: &arrow_buffer::Buffer| buffer.data_ptr().as_ptr() as usize;
    batch
        .columns()
        .iter()
        .flat_map(|column| column.to_data().buffers().iter().map(address).collect::<Vec<_>>())
        .collect()
}

/// S15, S21, S23, S24: a single batch is kept with its buffers, all consumers hold the same build without a further
/// charge, outputs own their buffers, and the last lease frees memory and charge together.
#[test]
fn shares_single_batch_but_owns_output() {
    let pool = unlimited();
    let input = record_batch!(("key", Utf8, ["a", "b", "c", "b"]), ("payload", Int64, [1, 2, 3, 4])).unwrap();
    let probe = Source::from_batches(input.schema(), vec![vec![input.slice(1, 2)]]);
    let plain = HashJoin::builder(input.schema(), probe).on([("key", "key")]).build().unwrap();
    let stream = BatchStream::from_batches(input.schema(), vec![input.clone()]);
    let prepared = plain.prepare_build(stream, &pool, Config::default()).unwrap();
    assert_eq!(addresses(prepared.rows().unwrap()), addresses(&input));
    let reserved = pool.reserved();
    let tasks = [0, 1].map(|_| plain.clone().with_prepared_build(Arc::clone(&prepared)).unwrap());
    assert!(tasks.iter().all(|task| Arc::ptr_eq(task.prepared_build().unwrap(), &prepared)));
    let outputs: Vec<_> = tasks.iter().flat_map(run).collect();
    for output in &outputs {
        assert_eq!(output.column(1).as_primitive::<Int64Type>().values(), &[2, 4, 3]);
        assert!(addresses(output).iter().all(|address| !addresses(&input).contains(address)));
    }
    assert_eq!(pool.reserved(), reserved);

    let weak = Arc::downgrade(&prepared);
    let [task, other] = tasks;
    drop((prepared, other));
    let mut stream = task.execute(0, &RunOptions::default()).unwrap();
    drop(task);
    assert_eq!(stream.next().unwrap().unwrap(), outputs[0]);
    assert_eq!(pool.reserved(), reserved);
    drop(stream);
    assert_eq!((weak.strong_count(), pool.reserved()), (0, 0));
    assert_eq!(outputs[0].column(0).as_string::<i32>().value(0), "b", "outputs outlive the build");
}

/// S3, S25, S28, S29: what a builder refuses and with which error, with an attached build and without; what it allows
/// resets the run.
#[test]
fn validates_descriptor_and_builder_changes() {
    let pool = unlimited();
    let probe_source = source(&[&[(1, 10), (9, 90)]]);
    let plain = join(probe_source.clone());
    let schema_of =
        |key| Arc::new(Schema::new(vec![Field::new("key", key, true), Field::new("payload", DataType::Int64, true)]));
    let text = schema_of(DataType::Utf8);
    let builder = || plain.to_builder();

    assert_plan_error(builder().on([("kee", "key")]).build(), "the build side has no column \"kee\"");
    assert_plan_error(builder().on([(0, 7)]).build(), "the probe side has no column 7");
    assert_plan_error(builder().on(Vec::<(usize, usize)>::new()).build(), "at least one key pair");
    assert_plan_error(builder().probe(text.clone()).build(), "key types must match");
    let computed = JoinKey::from(build("key") + lit(1));
    assert_plan_error(builder().on([(computed, JoinKey::from(0))]).build(), "require direct column keys");
    assert_plan_error(builder().on([(probe("key"), probe("key"))]).build(), "the build side's key is probe.key");
    assert!(builder().on([(build("payload"), probe(1))]).build().is_ok());
    assert_plan_error(builder().projection(Some(vec![4])).build(), "projection names column 4");
    assert_plan_error(builder().filter(Some(build("no").is_null())).build(), "no column \"no\"");
    assert_plan_error(
        builder().null_equalities(vec![]).on([(0, 0), (1, 1)]).null_equalities(vec![NullEquality::default()]).build(),
        "2 key pairs",
    );
    let halves = Source::new(schema(), 2, |_| unreachable!());
    assert_plan_error(
        builder().probe(halves).mode(PartitionMode::Partitioned).build(),
        "as many build as probe partitions",
    );

    // What a prepared build does not fit.
    let prepared = prepare(&plain, &[(1, 2), (2, 5)], &pool);
    let attach = |join: HashJoin| join.with_prepared_build(Arc::clone(&prepared));
    let mismatch = "does not match schema, keys or null equality";
    assert_plan_error(attach(builder().on([("payload", "key")]).build().unwrap()), mismatch);
    assert_plan_error(
        attach(builder().on([(0, 0), (1, 1)]).null_equality(NullEquality::default()).build().unwrap()),
        mismatch,
    );
    assert_plan_error(attach(builder().null_equality(NullEquality::NullEqualsNull).build().unwrap()), mismatch);
    let renamed =
        Arc::new(Schema::new(vec![Field::new("key", DataType::Int64, true), Field::new("v", DataType::Int64, true)]));
    assert_plan_error(attach(builder().build_source(renamed).build().unwrap()), mismatch);
    let partitioned = builder().mode(PartitionMode::Partitioned).build().unwrap();
    assert_plan_error(attach(partitioned.clone()), "mode is Partitioned");
    let input = BatchStream::new(schema(), std::iter::from_fn(|| panic!("polled")));
    assert_plan_error(partitioned.prepare_build(input, &pool, Config::default()), "require a CollectLeft join");

    // Changes of an attached join.
    let attached = attach(plain.clone()).unwrap();
    assert_eq!(rows(&run(&attached)), [pair((1, 2), (1, 10))]);
    let builder = || attached.to_builder();
    for replaced in [unopened(), plain.build_source().clone(), attach(plain.clone()).unwrap().build_source().clone()] {
        assert_plan_error(builder().build_source(replaced).build(), "Cannot replace the build child");
    }
    assert_plan_error(builder().mode(PartitionMode::Partitioned).build(), "mode is Partitioned");
    assert_plan_error(builder().on([("payload", "payload")]).build(), mismatch);
    assert_plan_error(builder().null_equality(NullEquality::NullEqualsNull).build(), mismatch);
    let same_build =
        builder().build_source(attached.build_source().clone()).probe(source(&[&[(2, 20)]])).build().unwrap();
    assert_eq!(rows(&run(&same_build)), [pair((2, 5), (2, 20))]);
    assert!(attached.metrics().output_rows == 1 && builder().build().unwrap().metrics() == Metrics::default());
    let anti = builder().join_type(JoinType::ProbeAnti).build().unwrap();
    assert_eq!(cells(&run(&anti)), [[Some(9), Some(90)]]);
    let rest = builder().join_type(JoinType::BuildAnti).build().unwrap();
    assert_eq!(cells(&run(&rest)), [[Some(2), Some(5)]]);
    assert_plan_error(builder().join_type(JoinType::ProbeSemi).projection(Some(vec![0])).build(), "ProbeSemi");

    // Attaching again replaces the build.
    let other = prepare(&plain, &[(9, 1)], &pool);
    let again = attached.with_prepared_build(Arc::clone(&other)).unwrap();
    assert!(Arc::ptr_eq(again.prepared_build().unwrap(), &other));
    assert_eq!(rows(&run(&again)), [pair((9, 1), (9, 90))]);
}

/// S26: public fields that were changed after attaching are checked when the join is executed, without a panic.
#[test]
fn revalidates_public_keys_at_execution() {
    let pool = unlimited();
    let plain = join(source(&[&[(1, 10), (2, 20)]]));
    let prepared = prepare(&plain, &[(1, 2), (2, 1)], &pool);
    let attached = plain.with_prepared_build(prepared).unwrap();
    let options = RunOptions::default();
    let changed = |change: &dyn Fn(&mut HashJoin), text: &str| {
        let mut task = attached.clone();
        change(&mut task);
        assert_plan_error(task.execute(0, &options), text);
        assert_plan_error(task.open(0, &options), text);
        _ = (task.properties(), task.statistics(), task.explain(ExplainFormat::Tree), task.to_bytes());
        task.schema().err().map(|error| error.to_string())
    };
    let mismatch = "does not match schema, keys or null equality";
    changed(&|task| task.on = vec![(1, 0)], mismatch);
    changed(&|task| task.on = vec![(0, 0), (1, 1)], "2 key pairs need as many null equalities");
    changed(&|task| task.on = vec![(0, 9)], "outside of 2 build and 2 probe columns");
    changed(&|task| task.null_equality = vec![NullEquality::NullEqualsNull], mismatch);
    changed(&|task| task.mode = PartitionMode::Partitioned, "mode is Partitioned");
    changed(&|task| task.null_aware = true, "needs an anti join");
    changed(&|task| task.projection = Some(vec![usize::MAX]), "projection names column");
    assert!(changed(&|task| task.on = vec![], "at least one key pair").unwrap().contains("at least one key pair"));
    assert_eq!(rows(&run(&attached)).len(), 2);

    // The partition counts of an ordinary join too: partitions must not be left out in silence.
    let mut ordinary =
        HashJoin::builder(source(&[&[(1, 2)], &[(2, 1)]]), source(&[&[(2, 20)]])).on([("key", "key")]).build().unwrap();
    ordinary.mode = PartitionMode::Partitioned;
    assert_plan_error(ordinary.execute(0, &options), "as many build as probe partitions");
}

/// S2, S3: what is not eligible is refused with column and type before the input is asked for its first batch; nothing
/// is charged.
#[test]
fn rejects_view_payload_before_consumption() {
    let pool = unlimited();
    let untouched = |schema: &SchemaRef| BatchStream::new(schema.clone(), std::iter::from_fn(|| panic!("polled")));
    let int = |name| Field::new(name, DataType::Int64, false);
    // Views and all other types are payload by now; what is left are key types without an equality.
    let views = Arc::new(Schema::new(vec![int("key"), Field::new("note", DataType::Utf8View, true)]));
    let entries =
        Fields::from(vec![Field::new("keys", DataType::Utf8, false), Field::new("values", DataType::Int64, true)]);
    let map = DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false);
    let maps = Arc::new(Schema::new(vec![int("payload"), Field::new("tags", map, true)]));
    assert_plan_error(HashJoin::builder(maps.clone(), maps.clone()).on([("tags", "tags")]).build(), "has type Map");
    let mut join = HashJoin::builder(maps.clone(), maps.clone()).on([("payload", "payload")]).build().unwrap();
    join.on = vec![(1, 1)];
    let refused = join.prepare_build(untouched(&maps), &pool, Config::default());
    assert_plan_error(refused, "key column \"tags\" has type Map");
    assert_eq!(pool.reserved(), 0);

    let plain = Arc::new(Schema::new(vec![int("key"), int("payload")]));
    let join = HashJoin::builder(plain.clone(), views).on([("key", "key")]).build().unwrap();
    let differing = [
        Schema::new(vec![int("payload"), int("key")]),
        Schema::new(vec![int("key"), int("other")]),
        Schema::new(vec![int("key"), Field::new("payload", DataType::Int32, false)]),
        Schema::new(vec![int("key"), Field::new("payload", DataType::Int64, true)]),
        Schema::new(vec![int("key")]),
        plain.as_ref().clone().with_metadata([("a".to_owned(), "b".to_owned())]),
    ];
    for schema in differing {
        let refused = join.prepare_build(untouched(&Arc::new(schema)), &pool, Config::default());
        assert_plan_error(refused, "input schema does not match build schema");
    }
    assert_eq!(pool.reserved(), 0);
    // The control: the same input is polled where it is eligible.
    let polled = || join.prepare_build(untouched(&plain), &pool, Config::default());
    assert!(catch_unwind(AssertUnwindSafe(polled)).is_err());
    assert_eq!(pool.reserved(), 0);
}

/// A pool that records whether a flag is set when the collector requests memory for the copy.
#[derive(Debug)]
struct Watching {
    inner: MemoryPool,
    dropped: Arc<AtomicBool>,
    requests: Mutex<Vec<bool>>,
}

impl Pool for Watching {
    fn try_grow(&self, consumer: &str, bytes: usize) -> Result<()> {
        self.requests.lock().unwrap().push(self.dropped.load(Ordering::Relaxed));
        self.inner.try_grow(consumer, bytes)
    }
    fn shrink(&self, bytes: usize) {
        self.inner.shrink(bytes);
    }
    fn reserved(&self) -> usize {
        self.inner.reserved()
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// S4: the input stream is dropped before memory for the copy of its rows is requested.
#[test]
fn the_stream_is_dropped_before_concatenation() {
    let dropped = Arc::new(AtomicBool::new(false));
    let pool = Arc::new(Watching {
        inner: MemoryPool::unlimited(),
        dropped: Arc::clone(&dropped),
        requests: Mutex::default(),
    });
    let guard = SetOnDrop(dropped);
    let batches = [table(&[(1, 2)]), table(&[(3, 4)])].into_iter().map(move |batch| {
        let _kept = &guard;
        Ok(batch)
    });
    let shared: Arc<dyn Pool> = pool.clone();
    let plain = join(Source::schema_only(schema()));
    plain.prepare_build(BatchStream::new(schema(), batches), &shared, Config::default()).unwrap();
    let requests = pool.requests.lock().unwrap();
    let arrivals = requests.iter().take_while(|dropped| !**dropped).count();
    assert_eq!(arrivals, 2, "one request for each batch while the stream lives: {requests:?}");
    assert!(requests.len() > arrivals && requests[arrivals..].iter().all(|dropped| *dropped), "{requests:?}");
}

/// S5: the handle counts every row, reports its charge, and shows no contents.
#[test]
fn the_handle_counts_all_rows_and_shows_none() {
    let pool = unlimited();
    let batch = record_batch!(
        ("key", Int64, [Some(77001), None, Some(77001), None]),
        ("payload", Int64, [88001, 88002, 88003, 88004])
    )
    .unwrap();
    let plain = HashJoin::builder(batch.schema(), batch.schema()).on([("key", "key")]).build().unwrap();
    let input = BatchStream::from_batches(batch.schema(), vec![batch]);
    let prepared = plain.prepare_build(input, &pool, Config::default()).unwrap();
    assert_eq!((prepared.num_rows(), prepared.num_keys()), (4, 1));
    assert_eq!(prepared.reserved_bytes(), pool.reserved());
    let attached = plain.with_prepared_build(Arc::clone(&prepared)).unwrap();
    for text in [format!("{prepared:?}"), format!("{prepared:#?}"), format!("{attached:?}")] {
        assert!(text.contains("num_rows") && text.contains("payload") && text.contains("reserved_bytes"), "{text}");
        assert!(!text.contains("7700") && !text.contains("8800"), "{text}");
    }
}

/// S6: each key has its null equality, which the build fixes.
#[test]
fn each_key_has_its_null_equality() {
    let batch = record_batch!(("a", Int64, [None, Some(1), Some(2)]), ("b", Int64, [Some(1), None, Some(2)])).unwrap();
    let (nothing, null) = (NullEquality::NullEqualsNothing, NullEquality::NullEqualsNull);
    for (equalities, expected) in [
        ([nothing, nothing], vec![2]),
        ([null, nothing], vec![0, 2]),
        ([nothing, null], vec![1, 2]),
        ([null, null], vec![0, 1, 2]),
    ] {
        let side = Source::from_batches(batch.schema(), vec![vec![batch.clone()]]);
        let join = HashJoin::builder(side.clone(), side)
            .on([("a", "a"), ("b", "b")])
            .null_equalities(equalities.to_vec())
            .build()
            .unwrap();
        let input = BatchStream::from_batches(batch.schema(), vec![batch.clone()]);
        let prepared = join.prepare_build(input, &unlimited(), Config::default()).unwrap();
        let attached = join.clone().with_prepared_build(prepared).unwrap();
        let all = cells(std::slice::from_ref(&batch));
        let expected: Vec<_> = expected.into_iter().map(|i: usize| [all[i].clone(), all[i].clone()].concat()).collect();
        assert_eq!(cells(&run(&attached)), expected);
        assert_eq!(cells(&run(&join)), expected);
    }
}

/// S35, S36: a consumer that is dropped half read or unread changes nothing for the others or for the pool, and a limit
/// reads no further batch.
#[test]
fn dropped_consumers_change_nothing() {
    let pool = unlimited();
    let pulled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&pulled);
    let probe = Source::new(schema(), 1, move |_| {
        let counter = Arc::clone(&counter);
        let next = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Some(Ok(table(&[(1, 10), (2, 20)])))
        };
        Ok(BatchStream::new(schema(), std::iter::from_fn(next)))
    });
    let plain = join(probe);
    let prepared = prepare(&plain, &[(1, 2), (2, 5)], &pool);
    let options = RunOptions { pool: Arc::clone(&pool), batch_size: 1, ..RunOptions::default() };
    for kind in [JoinType::Inner, JoinType::BuildSemi] {
        let task = plain.to_builder().join_type(kind).build().unwrap();
        let task = task.with_prepared_build(Arc::clone(&prepared)).unwrap();
        pulled.store(0, Ordering::Relaxed);
        drop(task.execute(0, &options).unwrap());
        assert_eq!(pulled.load(Ordering::Relaxed), 0);
        drop(task);
        assert_eq!(pool.reserved(), prepared.reserved_bytes());
    }
    let attached = plain.with_prepared_build(Arc::clone(&prepared)).unwrap();
    let mut kept = attached.execute(0, &options).unwrap();
    let mut dropped = attached.to_builder().build().unwrap().execute(0, &options).unwrap();
    assert_eq!(kept.next().unwrap().unwrap(), dropped.next().unwrap().unwrap());
    drop(dropped);
    assert_eq!(rows(&[kept.next().unwrap().unwrap()]), [pair((2, 5), (2, 20))]);
    drop(kept);
    assert_eq!(pool.reserved(), prepared.reserved_bytes());

    pulled.store(0, Ordering::Relaxed);
    let limited = attached.to_builder().limit(Some(3)).build().unwrap();
    assert_eq!(rows(&run_with(&limited, &options)).len(), 3);
    assert_eq!(pulled.load(Ordering::Relaxed), 2);
    let nothing = attached.to_builder().limit(Some(0)).build().unwrap();
    assert!(run(&nothing).is_empty() && pulled.load(Ordering::Relaxed) == 2);
}

/// S45: on one line and as a tree, explain shows mode, join type, keys, predicate, projection, limit, null equality and
/// the prepared rows.
#[test]
fn explain_shows_every_choice() {
    let pool = unlimited();
    let probe_source = source(&[&[(1, 10)], &[(2, 20)]]).with_ordering(vec![0]);
    let plain = HashJoin::builder(schema(), probe_source).on([("key", "key")]);
    let plain = plain
        .filter(Some(build("payload").lt(probe("payload"))))
        .projection(Some(vec![3, 0]))
        .limit(Some(7))
        .build()
        .unwrap();
    let prepared = prepare(&plain, &[(1, 2), (2, 5), (2, 6)], &pool);
    let attached = plain.clone().with_prepared_build(prepared).unwrap();
    let filter = DynamicFilter::try_new(schema(), ["key"]).unwrap();
    let filtered = plain.to_builder().dynamic_filter(Some(filter)).build().unwrap();
    let line = "HashJoin: mode=CollectLeft, join_type=Inner, on=[(build.key, probe.key)], \
                filter=build.payload < probe.payload, projection=[probe.payload, build.key], limit=7, \
                null_equality=NullEqualsNothing";
    assert_eq!(plain.explain(ExplainFormat::Indent), line);
    let empty = "dynamic_filter=DynamicFilter [ empty ]";
    assert_eq!(filtered.explain(ExplainFormat::Indent), format!("{line}, {empty}"));
    assert_eq!(attached.explain(ExplainFormat::Indent), format!("{line}, prepared_build=3 rows"));
    assert_eq!(
        attached.explain(ExplainFormat::Tree),
        "HashJoin\n\
         │   mode=CollectLeft\n\
         │   join_type=Inner\n\
         │   on=[(build.key, probe.key)]\n\
         │   filter=build.payload < probe.payload\n\
         │   projection=[probe.payload, build.key]\n\
         │   limit=7\n\
         │   null_equality=NullEqualsNothing\n\
         │   prepared_build=3 rows\n\
         ├── build: Placeholder, columns=[key: Int64, payload: Int64]\n\
         └── probe: Source, partitions=2, columns=[key: Int64, payload: Int64], rows=2, ordered_by=[key]"
    );

    let twice = Arc::new(Schema::new(vec![
        Field::new("a\nb", DataType::Int64, true),
        Field::new("x", DataType::Int64, true),
        Field::new("x", DataType::Int64, true),
    ]));
    let mixed = vec![NullEquality::NullEqualsNull, NullEquality::NullEqualsNothing];
    let odd = HashJoin::builder(twice.clone(), twice).on([(0, 0), (1, 2)]).null_equalities(mixed).build().unwrap();
    assert_eq!(
        odd.explain(ExplainFormat::Indent),
        "HashJoin: mode=CollectLeft, join_type=Inner, on=[(build.\"a\\nb\", probe.\"a\\nb\"), (build[1], probe[2])], \
         null_equality=[NullEqualsNull, NullEqualsNothing]"
    );
}

/// S46: with an attached build its number of rows is exact, and the estimate of the output is not 0.
#[test]
fn statistics_take_the_attached_rows_as_exact() {
    let pool = unlimited();
    let unknown = Source::new(schema(), 1, |_| unreachable!());
    let plain = HashJoin::builder(schema(), unknown).on([("key", "key")]).build().unwrap();
    let statistics = plain.statistics();
    assert_eq!([statistics.build_rows, statistics.probe_rows, statistics.output_rows], [Estimate::Unknown; 3]);
    let prepared = prepare(&plain, &[(1, 2), (1, 5), (1, 6)], &pool);
    let attached = plain.with_prepared_build(prepared).unwrap();
    assert_eq!(attached.statistics().build_rows, Estimate::Exact(3));
    for kind in JoinType::ALL {
        let any = attached.to_builder().join_type(kind).build().unwrap().statistics().output_rows;
        assert!(any.value() > Some(0), "{kind} {any:?}");
    }
    let probed = attached.to_builder().probe(source(&[&[(1, 1), (2, 2)], &[(3, 3)]]));
    let output = |kind, limit| {
        let join = probed.clone().join_type(kind).limit(limit).build().unwrap();
        assert_eq!(join.statistics().probe_rows, Estimate::Exact(3));
        join.statistics().output_rows
    };
    assert_eq!(output(JoinType::Inner, None), Estimate::Inexact(9));
    assert_eq!(output(JoinType::ProbeMark, None), Estimate::Exact(3));
    // A limit holds for each of the two partitions.
    assert_eq!(output(JoinType::Inner, Some(2)), Estimate::Inexact(4));
    assert_eq!(output(JoinType::Inner, Some(0)), Estimate::Exact(0));
    let empty = prepare(&attached, &[], &pool);
    let empty = attached.with_prepared_build(empty).unwrap();
    assert_eq!(empty.statistics().output_rows, Estimate::Exact(0));
    let outer = empty.to_builder().probe(source(&[&[(1, 1), (2, 2)]])).join_type(JoinType::ProbeOuter).build().unwrap();
    assert_eq!(outer.statistics().output_rows, Estimate::Inexact(2));
}

/// S47: metrics count what a run did; a join with an attached build built nothing.
#[test]
fn metrics_count_what_a_run_did() {
    let build_rows: Vec<(i64, i64)> = (0..10_000).map(|i| (i, i)).collect();
    let probe = source(&[&[(1, 10), (2, 20), (2, 21)], &[(20_000, 1)]]);
    let join = HashJoin::builder(source(&[&build_rows[..6000], &build_rows[6000..]]), probe)
        .on([("key", "key")])
        .build()
        .unwrap();
    let pool = unlimited();
    let options = RunOptions { batch_size: 2, pool: Arc::clone(&pool), ..RunOptions::default() };
    run_with(&join, &options);
    let metrics = join.metrics();
    assert_eq!((metrics.build_input_rows, metrics.build_input_batches), (10_000, 2));
    assert_eq!((metrics.input_rows, metrics.input_batches), (4, 2));
    assert_eq!((metrics.output_rows, metrics.output_batches), (3, 2));
    assert_eq!(metrics.build_mem_used, pool.reserved() as u64);
    assert!(metrics.build_time > Duration::ZERO && metrics.join_time > Duration::ZERO);
    assert!(metrics.index_kind.is_some());

    let prepared = prepare(&join, &build_rows, &pool);
    let attached = join.with_prepared_build(Arc::clone(&prepared)).unwrap();
    run_with(&attached, &options);
    let metrics = attached.metrics();
    assert_eq!((metrics.build_input_rows, metrics.build_input_batches, metrics.build_mem_used), (0, 0, 0));
    assert_eq!(metrics.build_time, Duration::ZERO);
    assert_eq!((metrics.input_rows, metrics.output_rows, metrics.output_batches), (4, 3, 2));
    assert!(metrics.join_time > Duration::ZERO);
    assert_eq!(metrics.index_kind, Some(prepared.index_kind()));
}

fn literal() -> impl Strategy<Value = Literal> {
    let unit = prop_oneof![
        Just(TimeUnit::Second),
        Just(TimeUnit::Millisecond),
        Just(TimeUnit::Microsecond),
        Just(TimeUnit::Nanosecond)
    ];
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Boolean),
        any::<i128>().prop_map(Literal::Integer),
        any::<u64>().prop_map(|bits| Literal::Float(f64::from_bits(bits))),
        (any::<i128>(), 0i8..77)
            .prop_map(|(value, scale)| Literal::Decimal { value: arrow_buffer::i256::from_i128(value), scale }),
        any::<String>().prop_map(Literal::Text),
        any::<Vec<u8>>().prop_map(Literal::Binary),
        any::<i32>().prop_map(Literal::Date),
        (any::<i64>(), unit.clone()).prop_map(|(value, unit)| Literal::Duration { value, unit }),
        (0i64..86_400, unit.clone()).prop_map(|(value, unit)| Literal::Time { value, unit }),
        (any::<i64>(), unit, prop::option::of("[a-z]{0,9}")).prop_map(|(value, unit, zone)| Literal::Timestamp {
            value,
            unit,
            zone: zone.map(Into::into)
        }),
    ]
}

/// Predicates that can be bound: null literals, comparisons of numbers, AND, OR and NOT.
fn predicate() -> impl Strategy<Value = Expr> {
    let number = prop_oneof![
        Just(build("key")),
        Just(probe(1)),
        Just(build("key") * lit(3) - probe("payload")),
        Just(probe(0) % lit(7) + lit(1) / lit(2)),
        any::<i64>().prop_map(lit),
    ];
    let leaf = prop_oneof![
        literal().prop_map(|literal| lit(literal).is_null()),
        (number.clone(), 0usize..6, number).prop_map(|(left, op, right)| match op {
            0 => left.eq(right),
            1 => left.ne(right),
            2 => left.lt(right),
            3 => left.le(right),
            4 => left.gt(right),
            _ => left.ge(right),
        }),
    ];
    leaf.prop_recursive(5, 20, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Expr::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Expr::Or),
            inner.prop_map(Expr::not),
        ]
    })
}

/// A schema with a nested, a dictionary and a zoned column behind key and payload, and metadata.
fn rich_schema() -> SchemaRef {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8));
    let item = Field::new("item", DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into())), false);
    let tagged = Field::new("tagged", dictionary, true).with_metadata([("k".to_owned(), "v".to_owned())]);
    let list = Field::new("list", DataType::List(Arc::new(item)), true);
    let decimal = Field::new("decimal", DataType::Decimal256(70, -3), false);
    let more = [tagged, list, decimal, Field::new("wide", DataType::FixedSizeBinary(3), true)].map(Arc::new);
    let fields: Vec<_> = schema().fields().iter().cloned().chain(more).collect();
    Arc::new(Schema::new_with_metadata(fields, [("table".to_owned(), "t".to_owned())]))
}

fn joins() -> impl Strategy<Value = HashJoin> {
    let kinds = prop::sample::select(JoinType::ALL.to_vec());
    let equality = prop_oneof![Just(NullEquality::NullEqualsNothing), Just(NullEquality::NullEqualsNull)];
    let equalities = prop::collection::vec(equality, 1..3);
    use Validate::{ManyToMany, ManyToOne, OneToMany, OneToOne};
    let validations = prop::sample::select(vec![ManyToMany, ManyToOne, OneToMany, OneToOne]);
    let options =
        (prop::option::of(predicate()), prop::option::of(0usize..9), any::<bool>(), any::<bool>(), validations);
    (kinds, equalities, options).prop_map(|(kind, equalities, (filter, limit, partitioned, declared, validate))| {
        let mut probe = Source::schema_only(rich_schema());
        if declared {
            probe = probe.with_ordering(vec![1, 0]).with_equal_columns(vec![(0, 5)]);
        }
        let on: Vec<_> = (0..equalities.len()).map(|i| (i, 1 - i)).collect();
        let mode = if partitioned { PartitionMode::Partitioned } else { PartitionMode::CollectLeft };
        let of_probe = !matches!(kind, JoinType::BuildSemi | JoinType::BuildAnti);
        let projection = limit.map(|limit| vec![if of_probe { 2 } else { 0 }; limit]);
        let join = HashJoin::builder(schema(), probe).on(on).join_type(kind).null_equalities(equalities).filter(filter);
        join.limit(limit).mode(mode).projection(projection).validate(validate).build().unwrap()
    })
}

proptest! {
    /// S48: a join without an attached build is read back unchanged; damaged bytes give a plan error at most.
    #[test]
    fn joins_are_read_back_from_bytes(
        join in joins(),
        cut: prop::sample::Index,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let fields = |join: &HashJoin| {
            let keys = (join.on.clone(), join.null_equality.clone(), join.join_type, join.null_aware);
            (keys, join.filter.clone(), join.projection.clone(), join.limit, join.mode, join.validate)
        };
        let bytes = join.to_bytes().unwrap();
        let back = HashJoin::from_bytes(&bytes).unwrap();
        prop_assert_eq!(fields(&back), fields(&join));
        prop_assert_eq!(back.build_source().schema(), join.build_source().schema());
        prop_assert_eq!(back.probe_source().schema(), join.probe_source().schema());
        prop_assert_eq!(back.explain(ExplainFormat::Tree), join.explain(ExplainFormat::Tree));
        prop_assert_eq!(back.properties().unwrap(), join.properties().unwrap());
        prop_assert_eq!(&back.to_bytes().unwrap(), &bytes);

        let is_plan = |result: &Result<HashJoin>| matches!(result, Ok(_) | Err(Error::Plan(_)));
        let cut = HashJoin::from_bytes(&bytes[..cut.index(bytes.len())]);
        prop_assert!(matches!(cut, Err(Error::Plan(_))), "{:?}", cut);
        prop_assert!(HashJoin::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_err());
        let mut damaged = bytes;
        flips.iter().for_each(|(at, byte)| *at.get_mut(&mut damaged) = *byte);
        let read = HashJoin::from_bytes(&damaged);
        prop_assert!(is_plan(&read), "{:?}", read);
    }

    /// S48: so do random bytes after a valid header.
    #[test]
    fn random_bytes_are_not_a_join(noise: Vec<u8>, kept in 0usize..600) {
        let join = HashJoin::builder(schema(), schema()).on([("key", "key")]).build().unwrap();
        let bytes = join.to_bytes().unwrap();
        let bytes = [&bytes[..kept.min(bytes.len() - 1)], noise.as_slice()].concat();
        prop_assert!(matches!(HashJoin::from_bytes(&bytes), Ok(_) | Err(Error::Plan(_))));
    }
}

/// S48: a join with an attached build is not serialized; a predicate that would exhaust the stack is refused.
#[test]
fn serialization_is_refused() {
    let plain = join(Source::schema_only(schema()));
    let prepared = prepare(&plain, &[(1, 2)], &unlimited());
    let bytes = plain.to_bytes().unwrap();
    let attached = plain.with_prepared_build(prepared).unwrap();
    let refused = attached.to_bytes();
    assert!(matches!(&refused, Err(Error::NotSupported(text)) if text.contains("prepared build")), "{refused:?}");

    let back = HashJoin::from_bytes(&bytes).unwrap();
    assert_plan_error(back.execute(0, &RunOptions::default()).unwrap().next().unwrap(), "replace it");
    let version = b"prejoin.HashJoin".len();
    let mut newer = bytes.clone();
    newer[version] = 9;
    assert_plan_error(HashJoin::from_bytes(&newer), "version 9");
    let tail = [0; 8];
    assert!(
        bytes.ends_with(&tail),
        "no filter, projection, limit; collect-left; not null-aware, coalesced, renamed or validated"
    );
    let mut deep = bytes[..bytes.len() - tail.len()].to_vec();
    deep.push(1);
    deep.extend([6; 1_000_000]);
    assert_plan_error(HashJoin::from_bytes(&deep), "nested too deeply");
    assert_plan_error(HashJoin::from_bytes(b"PK"), "magic");
}
