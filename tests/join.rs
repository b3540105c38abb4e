//! Joins of every kind against a nested-loop oracle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use prejoin::expr::{self, Expr};
use prejoin::{
    BatchStream, Cancel, Config, HashJoin, JoinType, MemoryPool, NullEquality, PartitionMode, Pool, ProjectedColumn,
    Result, RunOptions, Source,
};
use proptest::prelude::*;

type Key = Option<i64>;
/// (build key, build payload, probe key, probe payload, mark); payloads number the rows.
type Row = (Key, Key, Key, Key, Option<bool>);

fn schema(key: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("key", key, true), Field::new("payload", DataType::Int64, true)]))
}

/// Batches of `cut` rows; keys become strings where the schema says so.
fn batches(schema: &SchemaRef, keys: &[Key], cut: usize) -> Vec<RecordBatch> {
    let key_column = |keys: &[Key]| -> ArrayRef {
        match schema.field(0).data_type() {
            DataType::Utf8 => Arc::new(keys.iter().map(|k| k.map(|k| format!("key {k}"))).collect::<StringArray>()),
            _ => Arc::new(Int64Array::from(keys.to_vec())),
        }
    };
    let batch = |(i, chunk): (usize, &[Key])| {
        let payload = Int64Array::from_iter_values((0..chunk.len()).map(|j| (i * cut + j) as i64));
        RecordBatch::try_new(schema.clone(), vec![key_column(chunk), Arc::new(payload)]).unwrap()
    };
    keys.chunks(cut).enumerate().map(batch).collect()
}

fn key_at(column: &ArrayRef, row: usize) -> Key {
    match column.data_type() {
        _ if column.is_null(row) => None,
        DataType::Utf8 => column.as_string::<i32>().value(row).strip_prefix("key ").map(|k| k.parse().unwrap()),
        _ => Some(column.as_primitive::<Int64Type>().value(row)),
    }
}

/// Rows of a join's output in the oracle's form; columns of a side that the kind does not give are null.
fn rows_of(kind: JoinType, batches: &[RecordBatch]) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let at = |column: usize| key_at(batch.column(column), row);
            rows.push(match kind {
                JoinType::ProbeSemi | JoinType::ProbeAnti => (None, None, at(0), at(1), None),
                JoinType::BuildSemi | JoinType::BuildAnti => (at(0), at(1), None, None, None),
                JoinType::ProbeMark => {
                    let mark: &BooleanArray = batch.column(2).as_boolean();
                    (None, None, at(0), at(1), Some(mark.value(row)))
                }
                _ => (at(0), at(1), at(2), at(3), None),
            });
        }
    }
    rows
}

/// The residual predicate of some cases: null where the probe key is null, so that such a pair fails.
fn residual() -> Expr {
    let odd = (expr::build("payload") % expr::lit(3)).le(expr::probe("payload") % expr::lit(3));
    odd.and(expr::probe("key").is_null().not().or(expr::lit(None::<i64>).eq(expr::lit(1))))
}

fn passes(i: usize, j: usize, p: Key) -> bool {
    i % 3 <= j % 3 && p.is_some()
}

fn oracle(case: &Case<'_>) -> Vec<Row> {
    let Case { kind, nulls_equal, build, probe, residual, .. } = *case;
    let equal = |b: Key, p: Key| if b.is_none() || p.is_none() { nulls_equal && b == p } else { b == p };
    let matches = |i: usize, j: usize| equal(build[i], probe[j]) && (!residual || passes(i, j, probe[j]));
    let id = |i: usize| Some(i as i64);
    let mut rows = Vec::new();
    for (j, &p) in probe.iter().enumerate() {
        let partners: Vec<usize> = (0..build.len()).filter(|&i| matches(i, j)).collect();
        match kind {
            JoinType::ProbeSemi if !partners.is_empty() => rows.push((None, None, p, id(j), None)),
            JoinType::ProbeAnti if partners.is_empty() => rows.push((None, None, p, id(j), None)),
            JoinType::ProbeMark => rows.push((None, None, p, id(j), Some(!partners.is_empty()))),
            JoinType::Inner | JoinType::BuildOuter | JoinType::ProbeOuter | JoinType::FullOuter => {
                rows.extend(partners.iter().map(|&i| (build[i], id(i), p, id(j), None)));
                if partners.is_empty() && matches!(kind, JoinType::ProbeOuter | JoinType::FullOuter) {
                    rows.push((None, None, p, id(j), None));
                }
            }
            _ => (),
        }
    }
    let keeps = |hit: bool| match kind {
        JoinType::BuildSemi => hit,
        JoinType::BuildAnti | JoinType::BuildOuter | JoinType::FullOuter => !hit,
        _ => false,
    };
    let kept = (0..build.len()).filter(|&i| keeps((0..probe.len()).any(|j| matches(i, j))));
    rows.extend(kept.map(|i| (build[i], id(i), None, None, None)));
    rows
}

struct Case<'a> {
    kind: JoinType,
    nulls_equal: bool,
    build: &'a [Key],
    probe: &'a [Key],
    data_type: DataType,
    cut: usize,
    batch_size: usize,
    config: Config,
    residual: bool,
}

impl<'a> Case<'a> {
    fn plain(kind: JoinType, build: &'a [Key], probe: &'a [Key]) -> Self {
        let (data_type, config) = (DataType::Int64, Config::default());
        Case { kind, nulls_equal: false, build, probe, data_type, cut: 2, batch_size: 3, config, residual: false }
    }

    fn join(&self) -> HashJoin {
        let schema = schema(self.data_type.clone());
        let null_equality =
            if self.nulls_equal { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing };
        let probe = Source::from_batches(schema.clone(), vec![batches(&schema, self.probe, self.cut)]);
        let build = Source::from_batches(schema.clone(), vec![batches(&schema, self.build, self.cut)]);
        let join = HashJoin::builder(build, probe).on([("key", "key")]).join_type(self.kind);
        join.null_equality(null_equality).filter(self.residual.then(residual)).build().unwrap()
    }

    fn options(&self, pool: &Arc<dyn Pool>) -> RunOptions {
        let (pool, config) = (Arc::clone(pool), self.config.clone());
        RunOptions { batch_size: self.batch_size, pool, config, ..RunOptions::default() }
    }

    fn run(&self, join: &HashJoin, pool: &Arc<dyn Pool>) -> Vec<Row> {
        let batches = join.execute(0, &self.options(pool)).unwrap().collect::<Result<Vec<_>>>().unwrap();
        assert!(batches.iter().all(|batch| (1..=self.batch_size).contains(&batch.num_rows())));
        rows_of(self.kind, &batches)
    }

    /// Ordinary and attached give the oracle's rows in the oracle's order, and the pool is as it was.
    fn check(&self) {
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        let join = self.join();
        let expected = oracle(self);
        assert_eq!(self.run(&join, &pool), expected, "ordinary {}", self.kind);
        drop(join);
        assert_eq!(pool.reserved(), 0);
        let schema = schema(self.data_type.clone());
        let input = BatchStream::from_batches(schema.clone(), batches(&schema, self.build, self.cut));
        let prepared = self.join().prepare_build(input, &pool, self.config.clone()).unwrap();
        assert_eq!(prepared.num_rows(), self.build.len());
        let attached = self.join().with_prepared_build(Arc::clone(&prepared)).unwrap();
        assert_eq!(self.run(&attached, &pool), expected, "attached {}", self.kind);
        assert_eq!(pool.reserved(), prepared.reserved_bytes());
        drop((attached, prepared));
        assert_eq!(pool.reserved(), 0);
    }
}

/// S33, over all kinds: the listed build and probe keys, both null equalities, cut into batches of 2, batch sizes 1, 7.
#[test]
fn matches_collect_left() {
    let builds: [&[Key]; 4] = [&[], &[Some(1)], &[None, None], &[None, Some(0), Some(0), Some(-4096), Some(4096)]];
    let probes: [&[Key]; 4] = [&[Some(1)], &[], &[None, Some(1)], &[Some(0), None, Some(4096), Some(2)]];
    for kind in JoinType::ALL {
        for nulls_equal in [false, true] {
            for (build, probe) in builds.iter().flat_map(|build| probes.iter().map(move |probe| (*build, *probe))) {
                for batch_size in [1, 7] {
                    for data_type in [DataType::Int64, DataType::Utf8] {
                        let config = Config::default();
                        Case {
                            kind,
                            nulls_equal,
                            build,
                            probe,
                            data_type,
                            cut: 2,
                            batch_size,
                            config,
                            residual: false,
                        }
                        .check();
                    }
                }
            }
        }
    }
}

fn keys(values: std::ops::Range<i64>, max: usize) -> impl Strategy<Value = Vec<Key>> {
    proptest::collection::vec(proptest::option::weighted(0.85, values), 0..max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// S33, S36, S37: order included, with and without a residual predicate.
    #[test]
    fn every_kind_matches_the_oracle(
        build in keys(-20..20, 60),
        probe in keys(-30..30, 60),
        nulls_equal: bool,
        cut in 1usize..9,
        batch_size in 1usize..40,
        text: bool,
        sparse: bool,
        residual: bool,
        collide in prop_oneof![Just(0u64), Just(3u64)],
    ) {
        let data_type = if text { DataType::Utf8 } else { DataType::Int64 };
        let spread = |keys: &[Key]| keys.iter().map(|k| k.map(|k| if sparse { k * 0x0012_3456_789a_bcdf } else { k })).collect::<Vec<_>>();
        let (build, probe) = (spread(&build), spread(&probe));
        for kind in JoinType::ALL {
            let config = Config { collide, ..Config::default() };
            Case { kind, nulls_equal, build: &build, probe: &probe, data_type: data_type.clone(), cut, batch_size, config, residual }.check();
        }
    }

    /// B1: partitions of one join share what was visited; the last one to end gives the unmatched build rows, also where
    /// another one was dropped unread.
    #[test]
    fn partitions_share_visited_rows(build in keys(0..20, 40), probe in keys(0..30, 60), dropped: bool) {
        let schema = schema(DataType::Int64);
        let (left, right) = probe.split_at(probe.len() / 2);
        let sides = [left, right].map(|keys| batches(&schema, keys, 8));
        let probe_source = Source::from_batches(schema.clone(), sides.to_vec());
        let input = BatchStream::from_batches(schema.clone(), batches(&schema, &build, 8));
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        let join = HashJoin::builder(schema.clone(), probe_source).on([("key", "key")]).join_type(JoinType::BuildAnti).build().unwrap();
        let prepared = join.prepare_build(input, &pool, Config::default()).unwrap();
        let join = join.with_prepared_build(Arc::clone(&prepared)).unwrap();
        let options = RunOptions { pool: Arc::clone(&pool), ..RunOptions::default() };
        let first = join.execute(0, &options).unwrap();
        let mut rows = Vec::new();
        if dropped {
            let mut first = first;
            prop_assert!(first.next().transpose().unwrap().is_none_or(|_| true));
        } else {
            rows.extend(first.map(|batch| batch.unwrap()));
        }
        rows.extend(join.execute(1, &options).unwrap().map(|batch| batch.unwrap()));
        let mut got = rows_of(JoinType::BuildAnti, &rows);
        got.sort();
        let mut expected = oracle(&Case::plain(JoinType::BuildAnti, &build, &probe));
        expected.sort();
        prop_assert_eq!(got, expected);
        drop((join, options));
        prop_assert_eq!(pool.reserved(), prepared.reserved_bytes());
    }
}

/// S36: the limit cuts the output and stops pulling.
#[test]
fn limit_stops_the_probe_side() {
    let schema = schema(DataType::Int64);
    let build = batches(&schema, &[Some(1), Some(1), Some(2)], 8);
    let opened = schema.clone();
    let endless = Source::new(schema.clone(), 1, move |_| {
        let batch = batches(&opened, &[Some(1), Some(2)], 8).remove(0);
        Ok(BatchStream::new(opened.clone(), std::iter::repeat_with(move || Ok(batch.clone()))))
    });
    let build = Source::from_batches(schema, vec![build]);
    let join = HashJoin::builder(build, endless).on([("key", "key")]).limit(Some(7)).build().unwrap();
    let rows: usize = join.execute(0, &RunOptions::default()).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 7);
    assert_eq!(join.metrics().output_rows, 7);
}

/// One probe row with a million matches comes out in bounded batches, each made on demand.
#[test]
fn a_million_matches_of_one_row_come_in_batches() {
    let schema = schema(DataType::Int64);
    let keys = vec![Some(5); 1_000_000];
    let build = Source::from_batches(schema.clone(), vec![batches(&schema, &keys, 1 << 16)]);
    let probe = Source::from_batches(schema.clone(), vec![batches(&schema, &[Some(4), Some(5)], 8)]);
    let join = HashJoin::builder(build, probe).on([("key", "key")]).build().unwrap();
    let options = RunOptions { batch_size: 1000, ..RunOptions::default() };
    let mut next = 0;
    for batch in join.execute(0, &options).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.num_rows(), 1000);
        let payload = batch.column(1).as_primitive::<Int64Type>();
        assert!(payload.values().iter().all(|&row| std::mem::replace(&mut next, row + 1) == row));
    }
    assert_eq!(next, 1_000_000);
}

/// SQL NOT IN from both sides.
#[test]
fn null_aware_anti_joins_follow_not_in() {
    let (n, one, two): (Key, Key, Key) = (None, Some(1), Some(2));
    let run = |kind, build: &[Key], probe: &[Key]| {
        let case = Case::plain(kind, build, probe);
        let join = case.join().to_builder().null_aware(true).build().unwrap();
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        case.run(&join, &pool)
            .into_iter()
            .map(|row| if kind == JoinType::ProbeAnti { row.2 } else { row.0 })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(JoinType::ProbeAnti, &[one], &[one, two, n]), [two]);
    assert_eq!(run(JoinType::ProbeAnti, &[one, n], &[one, two, n]), [] as [Key; 0]);
    assert_eq!(run(JoinType::ProbeAnti, &[], &[one, n]), [one, n]);
    assert_eq!(run(JoinType::BuildAnti, &[one, two, n], &[one]), [two]);
    assert_eq!(run(JoinType::BuildAnti, &[one, two, n], &[one, n]), [] as [Key; 0]);
    assert_eq!(run(JoinType::BuildAnti, &[one, two, n], &[]), [one, two, n]);
}

/// Partitioned mode joins partition i with partition i.
#[test]
fn partitioned_mode_joins_pairs_of_partitions() {
    let schema = schema(DataType::Int64);
    let part =
        |keys: [&[Key]; 2]| Source::from_batches(schema.clone(), keys.map(|keys| batches(&schema, keys, 8)).to_vec());
    let (build, probe) =
        (part([&[Some(2), Some(4)], &[Some(1), Some(3)]]), part([&[Some(4), Some(6)], &[Some(1), Some(5)]]));
    let join = HashJoin::builder(build, probe)
        .on([("key", "key")])
        .mode(PartitionMode::Partitioned)
        .join_type(JoinType::FullOuter);
    let join = join.build().unwrap();
    let rows =
        (0..2).flat_map(|i| join.execute(i, &RunOptions::default()).unwrap()).map(Result::unwrap).collect::<Vec<_>>();
    let keys = rows_of(JoinType::FullOuter, &rows).into_iter().map(|row| (row.0, row.2)).collect::<Vec<_>>();
    let (k, n) = (Some, None);
    assert_eq!(keys, [(k(4), k(4)), (n, k(6)), (k(2), n), (k(1), k(1)), (n, k(5)), (k(3), n)]);
}

/// S23: no output buffer is one of the build's, also where both sides are slices of one parent and all rows match.
#[test]
fn outputs_own_their_buffers() {
    let schema = schema(DataType::Utf8);
    let keys: Vec<Key> = (0..100).map(Some).collect();
    let parent = batches(&schema, &keys, 100).remove(0);
    let side = || Source::from_batches(schema.clone(), vec![vec![parent.slice(10, 50)]]);
    let join = HashJoin::builder(side(), side()).on([("key", "key")]).build().unwrap();
    let output = join.execute(0, &RunOptions::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(output.num_rows(), 50);
    let addresses = |batch: &RecordBatch| {
        let datas = batch.columns().iter().map(|column| column.to_data()).collect::<Vec<_>>();
        datas.iter().flat_map(|data| data.buffers().iter().map(|b| b.data_ptr().as_ptr() as usize)).collect::<Vec<_>>()
    };
    let parents = addresses(&parent);
    assert!(addresses(&output).iter().all(|address| !parents.contains(address)));
}

/// A build source that asks for another partition of its own run gets an error, not a deadlock.
#[test]
fn a_build_that_waits_for_itself_is_an_error() {
    let schema = schema(DataType::Int64);
    let join = Arc::new(std::sync::OnceLock::<HashJoin>::new());
    let (own, stream_schema) = (Arc::clone(&join), schema.clone());
    let build = Source::new(schema.clone(), 1, move |_| {
        let error = own.get().unwrap().execute(1, &RunOptions::default())?.next().unwrap().unwrap_err();
        assert!(error.to_string().contains("asked for another partition of the same run"), "{error}");
        Ok(BatchStream::from_batches(stream_schema.clone(), batches(&stream_schema, &[Some(1)], 1)))
    });
    let side = || batches(&schema, &[Some(1)], 1);
    let probe = Source::from_batches(schema.clone(), vec![side(), side()]);
    join.set(HashJoin::builder(build, probe).on([("key", "key")]).build().unwrap()).unwrap();
    let rows = |partition| join.get().unwrap().execute(partition, &RunOptions::default()).unwrap().count();
    assert_eq!((rows(0), rows(1)), (1, 1));
}

/// State of a run grows with the partitions that are executed, not with those that there are.
#[test]
fn partitions_cost_nothing_before_they_run() {
    let schema = schema(DataType::Int64);
    let opened = schema.clone();
    let many = Source::new(schema.clone(), usize::MAX, move |_| {
        Ok(BatchStream::from_batches(opened.clone(), batches(&opened, &[Some(1)], 1)))
    });
    let build = Source::from_batches(schema.clone(), vec![batches(&schema, &[Some(1)], 1)]);
    let join = HashJoin::builder(build, many).on([("key", "key")]).build().unwrap();
    let last = join.execute(usize::MAX - 1, &RunOptions::default()).unwrap();
    assert_eq!(last.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
    assert!(join.execute(usize::MAX, &RunOptions::default()).unwrap_err().to_string().contains("partition"));
}

/// Where partition `i` of a run stops.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// Executed, and dropped before its first pull.
    Unread,
    /// Its probe source does not open.
    FailedAtStart,
    /// The pool refuses its bits, if it is the one that makes them.
    Refused,
    /// One batch is pulled.
    HalfRead,
    Read,
}

/// S35: every partition counts once it is read, fails or is dropped, started or not; the last one gives the closing rows
/// where it is read to its end, once and the right ones, and the bits are given back.
#[test]
fn every_end_of_a_partition_counts() {
    let schema = schema(DataType::Int64);
    let keys: Vec<Key> = (0..12).map(|i| (i % 4 != 3).then_some(i / 2)).collect();
    let ends = [End::Unread, End::FailedAtStart, End::Refused, End::HalfRead, End::Read];
    let kinds = [JoinType::BuildAnti, JoinType::BuildSemi, JoinType::BuildOuter, JoinType::FullOuter];
    for partitions in 2..=3_u32 {
        for (case, kind) in (0..ends.len().pow(partitions)).flat_map(|case| kinds.map(|kind| (case, kind))) {
            let ends: Vec<End> = (0..partitions).map(|i| ends[case / ends.len().pow(i) % ends.len()]).collect();
            for all_first in [false, true] {
                // Batches of two rows: keys (2i, 2i + 1), then 0 twice.
                let sides: Vec<Vec<Key>> =
                    (0..i64::from(partitions)).map(|i| vec![Some(2 * i), Some(2 * i + 1), Some(0), None]).collect();
                let (opened, of_source, failing) = (schema.clone(), sides.clone(), ends.clone());
                let probe = Source::new(schema.clone(), sides.len(), move |i| match failing[i] {
                    End::FailedAtStart => Err(prejoin::Error::Execution("does not open".to_owned())),
                    _ => Ok(BatchStream::from_batches(opened.clone(), batches(&opened, &of_source[i], 2))),
                });
                let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
                let join =
                    HashJoin::builder(schema.clone(), probe).on([("key", "key")]).join_type(kind).build().unwrap();
                let input = BatchStream::from_batches(schema.clone(), batches(&schema, &keys, 8));
                let prepared = join.prepare_build(input, &pool, Config::default()).unwrap();
                let join = join.with_prepared_build(Arc::clone(&prepared)).unwrap();
                let options = RunOptions { pool: Arc::clone(&pool), batch_size: 4, ..RunOptions::default() };
                let none: Arc<dyn Pool> = Arc::new(MemoryPool::new(0));
                let refusing = RunOptions { pool: none, ..options.clone() };
                let execute =
                    |i: usize| join.execute(i, if ends[i] == End::Refused { &refusing } else { &options }).unwrap();

                let mut streams: Vec<_> = (0..sides.len()).map(|i| all_first.then(|| execute(i))).collect();
                let (mut read, mut got, mut made) = (vec![], vec![], false);
                for (i, &end) in ends.iter().enumerate() {
                    let mut stream = streams[i].take().unwrap_or_else(|| execute(i));
                    match end {
                        End::Unread => drop(stream),
                        End::FailedAtStart => {
                            assert!(stream.next().unwrap().is_err());
                            assert!(stream.next().is_none());
                            // Kept: what failed holds nothing.
                            streams[i] = Some(stream);
                            made = true;
                        }
                        End::Refused if !made => {
                            assert!(matches!(stream.next(), Some(Err(prejoin::Error::ResourcesExhausted { .. }))));
                        }
                        End::HalfRead if i + 1 < sides.len() => {
                            // Pairs come with the first batch, kinds without pairs read on to their end.
                            made = true;
                            if kind == JoinType::FullOuter || kind == JoinType::BuildOuter {
                                got.extend(stream.next().map(|batch| batch.unwrap()));
                                read.extend(sides[i][..2].iter().map(|key| (i, *key)));
                            }
                        }
                        End::Refused | End::HalfRead | End::Read => {
                            made = true;
                            // The bits that are there already are shared; what they become at the end is charged too.
                            let last: Result<Vec<_>> = stream.collect();
                            match last {
                                Ok(batches) => {
                                    got.extend(batches);
                                    read.extend(sides[i].iter().map(|key| (i, *key)));
                                }
                                Err(_) => assert_eq!(end, End::Refused),
                            }
                        }
                    }
                }
                drop(streams);
                let closes = !matches!(ends.last(), Some(End::Unread | End::FailedAtStart | End::Refused));
                let hit = |key: &Key| key.is_some() && read.iter().any(|(_, of)| of == key);
                let wanted = |key: &&Key| hit(key) == (kind == JoinType::BuildSemi);
                let due = if closes { keys.iter().filter(wanted).count() } else { 0 };
                let closing: usize = match kind {
                    JoinType::BuildAnti | JoinType::BuildSemi => got.iter().map(RecordBatch::num_rows).sum(),
                    // Unmatched build rows stand beside a null payload of the probe side.
                    _ => got.iter().map(|batch| batch.column(3).null_count()).sum(),
                };
                assert_eq!(closing, due, "{kind} {ends:?} {all_first}");
                assert_eq!(pool.reserved(), prepared.reserved_bytes(), "{kind} {ends:?} {all_first}");
            }
        }
    }
}

/// A long batch of which no row has an entry, and a long build of which no row comes out, are interrupted in between.
#[test]
fn work_without_rows_looks_at_the_stop_signal() {
    let schema = schema(DataType::Int64);
    let (rows, other): (Vec<Key>, Vec<Key>) = ((0..400_000).map(Some).collect(), (-400_000..0).map(Some).collect());
    let repeated: Vec<Key> = rows.iter().map(|key| key.map(|key| key / 2)).collect();
    for build in [&rows, &repeated] {
        for kind in [JoinType::Inner, JoinType::ProbeSemi, JoinType::BuildSemi] {
            let polls = Arc::new(AtomicUsize::new(0));
            let join =
                HashJoin::builder(schema.clone(), schema.clone()).on([("key", "key")]).join_type(kind).build().unwrap();
            let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
            let input = BatchStream::from_batches(schema.clone(), batches(&schema, build, 1 << 20));
            let prepared = join.prepare_build(input, &pool, Config::default()).unwrap();
            let join = join.with_prepared_build(prepared).unwrap();
            let count = |stop_at: usize| {
                let counted = Arc::clone(&polls);
                counted.store(0, Ordering::Relaxed);
                let hook = move || match counted.fetch_add(1, Ordering::Relaxed) {
                    polls if polls == stop_at => Err(prejoin::Error::Cancelled),
                    _ => Ok(()),
                };
                let options = RunOptions { cancel: Cancel::with_hook(hook), ..RunOptions::default() };
                let mut probe = join.to_builder().build()?.open(0, &options)?;
                probe.push(batches(&schema, &other, 1 << 20).remove(0))?;
                while probe.next_output()?.is_some() {}
                let after_probe = polls.load(Ordering::Relaxed);
                probe.finish()?;
                while probe.next_output()?.is_some() {}
                Result::Ok((after_probe, polls.load(Ordering::Relaxed) - after_probe))
            };
            let (probing, closing) = count(usize::MAX).unwrap();
            assert!(probing > 400_000 / 8192, "{probing} polls of {kind}");
            assert!(kind != JoinType::BuildSemi || closing > 400_000 / 65_536, "{closing} polls of {kind}");
            assert!(matches!(count(20), Err(prejoin::Error::Cancelled)));
        }
    }
}

/// Names are looked up in a source that replaces another, positions need the same columns.
#[test]
fn names_follow_a_replaced_source() {
    let schema = schema(DataType::Int64);
    let turned = Arc::new(schema.project(&[1, 0]).unwrap());
    let probe = batches(&schema, &[Some(1), Some(2)], 8);
    let other = vec![vec![probe[0].project(&[1, 0]).unwrap()]];
    let build = Source::from_batches(schema.clone(), vec![batches(&schema, &[Some(7), Some(2)], 8)]);
    let columns = vec![ProjectedColumn::Probe("key".to_owned()), ProjectedColumn::Build("payload".to_owned())];
    let join = HashJoin::builder(build, schema.clone()).on([("key", "key")]).projected(Some(columns)).build().unwrap();
    let carried = HashJoin::from_bytes(&join.to_bytes().unwrap()).unwrap();
    assert_eq!(carried.on, [(0, 0)]);
    for join in [join.clone(), carried.to_builder().build_source(join.build_source().clone()).build().unwrap()] {
        let moved = join.to_builder().probe(Source::from_batches(turned.clone(), other.clone())).build().unwrap();
        assert_eq!((moved.on.as_slice(), moved.projection.as_deref()), ([(0, 1)].as_slice(), Some([3, 1].as_slice())));
        let out = moved.execute(0, &RunOptions::default()).unwrap().next().unwrap().unwrap();
        assert_eq!((key_at(out.column(0), 0), key_at(out.column(1), 0), out.num_rows()), (Some(2), Some(1), 1));
        let embedded =
            moved.with_embedded_projection(&[1, 0]).unwrap().to_builder().probe(schema.clone()).build().unwrap();
        assert_eq!(embedded.projection.as_deref(), Some([1, 2].as_slice()));
    }
    // What a public field is set to is a position.
    let mut changed = join.clone();
    changed.projection = Some(vec![1, 3]);
    let error = changed.to_builder().probe(turned.clone()).build().unwrap_err().to_string();
    assert!(error.contains("column 3 of the projection is given by position"), "{error}");
    let by_position = HashJoin::builder(schema.clone(), schema.clone()).on([(0, 0)]).build().unwrap();
    let error = by_position.to_builder().probe(turned).build().unwrap_err().to_string();
    assert!(error.contains("key column probe[0] is given by position"), "{error}");
}
