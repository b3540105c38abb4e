//! Every type as payload and every key type, over every kind of join, against a nested loop over plain values.

mod arrays;

use std::sync::Arc;

use arrays::{
    Rng, Value, any_type, array, dictionary, fields, flat_types, item, map, nested_types, run_ends, union, value,
};
use arrow_array::cast::AsArray;
use arrow_array::types::Int16Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, GenericListArray, Int16Array, Int64Array, NullArray, OffsetSizeTrait,
    RecordBatch, RunArray, StringArray, UInt8Array,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit, UnionFields, UnionMode};
use prejoin::{
    BatchStream, BuildSpec, Cancel, Collector, Config, DynamicFilter, Error, HashJoin, Hits, JoinType, Keep, Keys,
    Lookup, MemoryPool, NullEquality, OpenOptions, Pool, PreparedBuild, Result, RunOptions, SaveOptions, Source,
};
use proptest::prelude::*;

/// A schema with the given column types, each field with an extension name.
fn schema(types: &[DataType]) -> SchemaRef {
    let field = |(i, data_type): (usize, &DataType)| {
        let metadata = [("ARROW:extension:name".to_owned(), format!("test.{i}"))];
        Field::new(format!("c{i}"), data_type.clone(), true).with_metadata(metadata)
    };
    Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()))
}

/// One batch per entry of `cuts`, of so many rows.
fn batches(schema: &SchemaRef, cuts: &[usize], rng: &mut Rng) -> Vec<RecordBatch> {
    let batch = |&rows: &usize| {
        let columns = schema.fields().iter().map(|field| array(field.data_type(), rows, rng)).collect();
        RecordBatch::try_new(schema.clone(), columns).unwrap()
    };
    cuts.iter().map(batch).collect()
}

/// The values of all rows of some columns.
fn rows(batches: &[RecordBatch], columns: impl Iterator<Item = usize> + Clone, keys: bool) -> Vec<Vec<Value>> {
    let row = |batch: &RecordBatch, row| columns.clone().map(|i| value(batch.column(i), row, keys)).collect();
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |i| (batch, i))).map(|(b, i)| row(b, i)).collect()
}

struct Case {
    build: Vec<RecordBatch>,
    probe: Vec<RecordBatch>,
    on: Vec<(usize, usize)>,
    nulls_equal: Vec<bool>,
    batch_size: usize,
    collide: u64,
}

impl Case {
    /// The build rows that each probe row matches.
    fn partners(&self) -> Vec<Vec<usize>> {
        let keys = |batches, side: fn(&(usize, usize)) -> usize| rows(batches, self.on.iter().map(side), true);
        let (build_keys, probe_keys) = (keys(&self.build, |on| on.0), keys(&self.probe, |on| on.1));
        let equal = |b: &[Value], p: &[Value]| {
            let nulls = b.iter().zip(p).zip(&self.nulls_equal);
            b == p && nulls.into_iter().all(|((b, _), &nulls_equal)| nulls_equal || *b != Value::Null)
        };
        let of = |key| (0..build_keys.len()).filter(|&i| equal(&build_keys[i], key)).collect();
        probe_keys.iter().map(|key| of(key)).collect()
    }

    fn oracle(&self, kind: JoinType) -> Vec<Vec<Value>> {
        let all = |batches: &[RecordBatch]| rows(batches, 0..batches[0].num_columns(), false);
        let (build, probe) = (all(&self.build), all(&self.probe));
        let nulls = |side: &[RecordBatch]| vec![Value::Null; side[0].num_columns()];
        let (no_build, no_probe) = (nulls(&self.build), nulls(&self.probe));
        let mut visited = vec![false; build.len()];
        let mut out: Vec<Vec<Value>> = Vec::new();
        for (p, partners) in probe.iter().zip(self.partners()) {
            partners.iter().for_each(|&i| visited[i] = true);
            match kind {
                JoinType::ProbeSemi if !partners.is_empty() => out.push(p.clone()),
                JoinType::ProbeAnti if partners.is_empty() => out.push(p.clone()),
                JoinType::ProbeMark => {
                    out.push([p.as_slice(), &[Value::Bytes(vec![(!partners.is_empty()).into()])]].concat());
                }
                JoinType::Inner | JoinType::BuildOuter | JoinType::ProbeOuter | JoinType::FullOuter => {
                    out.extend(partners.iter().map(|&i| [build[i].as_slice(), p].concat()));
                    if partners.is_empty() && matches!(kind, JoinType::ProbeOuter | JoinType::FullOuter) {
                        out.push([no_build.as_slice(), p].concat());
                    }
                }
                _ => (),
            }
        }
        for (b, visited) in build.into_iter().zip(visited) {
            match kind {
                JoinType::BuildSemi if visited => out.push(b),
                JoinType::BuildAnti if !visited => out.push(b),
                JoinType::BuildOuter | JoinType::FullOuter if !visited => out.push([b.as_slice(), &no_probe].concat()),
                _ => (),
            }
        }
        out
    }

    fn join(&self, kind: JoinType) -> Result<HashJoin> {
        let probe = Source::from_batches(self.probe[0].schema(), vec![self.probe.clone()]);
        let null_equality = |&equal: &bool| match equal {
            true => NullEquality::NullEqualsNull,
            false => NullEquality::NullEqualsNothing,
        };
        let join = HashJoin::builder(self.build[0].schema(), probe).on(self.on.iter().copied()).join_type(kind);
        join.null_equalities(self.nulls_equal.iter().map(null_equality).collect()).build()
    }

    /// All kinds on one handle, each with the oracle's rows in its order; fields as they were; filters keep what matches;
    /// all memory given back.
    fn check(&self) -> std::result::Result<(), TestCaseError> {
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        self.check_build(self.prepare(&self.build, &pool), pool)
    }

    fn prepare(&self, build: &[RecordBatch], pool: &Arc<dyn Pool>) -> Arc<PreparedBuild> {
        let input = BatchStream::from_batches(build[0].schema(), build.to_vec());
        let config = Config { collide: self.collide, ..Config::default() };
        self.join(JoinType::Inner).unwrap().prepare_build(input, pool, config).unwrap()
    }

    /// B5: the build is saved, the same bytes again for the same batches, and answers alike in its file, which its pool
    /// pays for, verified or not. Its fingerprint does not tell how rows were cut and ordered.
    fn check_saved(&self, verify: bool) -> std::result::Result<(), TestCaseError> {
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        let prepared = self.prepare(&self.build, &pool);
        let path = temporary_path();
        prepared.save(&path, &SaveOptions::default()).unwrap();
        let first = std::fs::read(&path).unwrap();
        self.prepare(&self.build, &pool).save(&path, &SaveOptions::default()).unwrap();
        prop_assert!(first == std::fs::read(&path).unwrap(), "not the same file");
        let mut reversed: Vec<RecordBatch> = Vec::new();
        for batch in self.build.iter().rev() {
            reversed.extend((0..batch.num_rows()).rev().map(|row| batch.slice(row, 1)));
        }
        if !reversed.is_empty() {
            prop_assert_eq!(self.prepare(&reversed, &pool).fingerprint().unwrap(), prepared.fingerprint().unwrap());
        }
        let opened = PreparedBuild::open(
            &path,
            &OpenOptions { verify, pool: Some(Arc::clone(&pool)), ..OpenOptions::default() },
        )
        .unwrap();
        prop_assert_eq!(opened.schema(), prepared.schema());
        prop_assert_eq!(opened.fingerprint().unwrap(), prepared.fingerprint().unwrap());
        drop(prepared);
        std::fs::remove_file(&path).unwrap();
        prop_assert_eq!(opened.reserved_bytes(), first.len());
        self.check_build(opened, pool)
    }

    fn check_build(&self, prepared: Arc<PreparedBuild>, pool: Arc<dyn Pool>) -> std::result::Result<(), TestCaseError> {
        let options = RunOptions { batch_size: self.batch_size, pool: Arc::clone(&pool), ..RunOptions::default() };
        let marks = self.oracle(JoinType::ProbeMark).into_iter();
        let matched: Vec<bool> = marks.map(|row| row.last() == Some(&Value::Bytes(vec![1]))).collect();
        for kind in JoinType::ALL {
            let probe_keys = self.on.iter().map(|&(_, probe)| probe);
            let filter = DynamicFilter::try_new(self.probe[0].schema(), probe_keys).unwrap();
            let join = self.join(kind).unwrap().to_builder().dynamic_filter(Some(Arc::clone(&filter))).build().unwrap();
            let join = join.with_prepared_build(Arc::clone(&prepared)).unwrap();
            let output = join.execute(0, &options).unwrap().collect::<Result<Vec<_>>>().unwrap();
            for batch in &output {
                for column in batch.columns() {
                    column.to_data().validate_full().unwrap();
                }
                let sides = [&self.build[0], &self.probe[0]].map(|side| side.schema().fields().clone());
                let wanted = sides.iter().enumerate().flat_map(|(side, fields)| fields.iter().map(move |f| (side, f)));
                let given = wanted.filter(|(side, _)| match kind {
                    JoinType::BuildSemi | JoinType::BuildAnti => *side == 0,
                    JoinType::ProbeSemi | JoinType::ProbeAnti | JoinType::ProbeMark => *side == 1,
                    _ => true,
                });
                for ((_, wanted), found) in given.zip(batch.schema().fields()) {
                    prop_assert_eq!(wanted, found);
                }
            }
            let kept =
                self.probe.iter().flat_map(|batch| filter.evaluate(batch).unwrap().values().iter().collect::<Vec<_>>());
            let every =
                matches!(kind, JoinType::ProbeOuter | JoinType::FullOuter | JoinType::ProbeAnti | JoinType::ProbeMark);
            let wanted: Vec<bool> = matched.iter().map(|&matched| matched || every).collect();
            prop_assert_eq!(kept.collect::<Vec<_>>(), wanted, "the filter of {}", kind);
            let columns = output.first().map_or(0, RecordBatch::num_columns);
            prop_assert_eq!(rows(&output, 0..columns, false), self.oracle(kind), "{}", kind);
        }
        self.check_index(&prepared, &pool)?;
        prop_assert_eq!(pool.reserved(), prepared.reserved_bytes());
        drop(prepared);
        self.check_keep(&pool)?;
        prop_assert_eq!(pool.reserved(), 0);
        Ok(())
    }

    /// B3: what the index says about the keys of each probe batch, asked by itself.
    fn check_index(
        &self,
        prepared: &Arc<PreparedBuild>,
        pool: &Arc<dyn Pool>,
    ) -> std::result::Result<(), TestCaseError> {
        let (cancel, mut hits, mut partners) = (Cancel::default(), Hits::default(), self.partners().into_iter());
        let every: Vec<usize> = (0..self.build[0].num_columns()).collect();
        let build = rows(std::slice::from_ref(prepared.rows().unwrap()), every.iter().copied(), false);
        for batch in &self.probe {
            let keys: Vec<usize> = self.on.iter().map(|on| on.1).collect();
            let keys = batch.project(&keys).unwrap();
            let read = || Keys::read(prepared, &keys).unwrap();
            let partners: Vec<Vec<usize>> = partners.by_ref().take(batch.num_rows()).collect();
            let contains = prepared.contains(&read(), &mut hits, &cancel).unwrap();
            prop_assert!(contains.iter().eq(partners.iter().map(|found| Some(!found.is_empty()))));
            let counts = prepared.count_matches(&read(), &mut hits, &cancel).unwrap();
            prop_assert!(counts.iter().eq(partners.iter().map(|found| Some(found.len() as u32))));
            for kind in [JoinType::Inner, JoinType::ProbeOuter, JoinType::BuildOuter, JoinType::FullOuter] {
                let mut wanted: Vec<(Option<u32>, Option<u32>)> = Vec::new();
                for (row, found) in partners.iter().enumerate() {
                    wanted.extend(found.iter().map(|&i| (Some(row as u32), Some(i as u32))));
                    if found.is_empty() && matches!(kind, JoinType::ProbeOuter | JoinType::FullOuter) {
                        wanted.push((Some(row as u32), None));
                    }
                }
                if matches!(kind, JoinType::BuildOuter | JoinType::FullOuter) {
                    let alone = (0..build.len()).filter(|i| !partners.iter().any(|found| found.contains(i)));
                    wanted.extend(alone.map(|i| (None, Some(i as u32))));
                }
                let (probe, found) = prepared.probe_indices(read(), kind, pool, &cancel).unwrap();
                prop_assert_eq!(probe.iter().zip(found.iter()).collect::<Vec<_>>(), wanted, "{}", kind);
            }
            for keep in [Keep::First, Keep::Last] {
                let row = |found: &Vec<usize>| if keep == Keep::First { found.first() } else { found.last() }.copied();
                let wanted: Vec<Option<usize>> = partners.iter().map(row).collect();
                let found = prepared.rows_of(&read(), keep, &mut hits, &cancel).unwrap();
                prop_assert!(found.iter().eq(wanted.iter().map(|row| row.map(|row| row as u32))));
                let Ok(lookup) = Lookup::try_new(Arc::clone(prepared), &every) else { continue };
                let output = lookup.rows(&read(), keep, &mut hits, &cancel).unwrap();
                output.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
                let absent = vec![Value::Null; every.len()];
                let wanted: Vec<_> =
                    wanted.iter().map(|row| row.map_or(absent.clone(), |i| build[i].clone())).collect();
                prop_assert_eq!(rows(&[output], every.iter().copied(), false), wanted);
            }
        }
        Ok(())
    }

    /// B4: a build that keeps the first or the last row of each key has these rows, in order, and their charge.
    fn check_keep(&self, pool: &Arc<dyn Pool>) -> std::result::Result<(), TestCaseError> {
        let keys = rows(&self.build, self.on.iter().map(|on| on.0), true);
        let matches_none =
            |key: &[Value]| key.iter().zip(&self.nulls_equal).any(|(v, &equal)| *v == Value::Null && !equal);
        let columns = 0..self.build[0].num_columns();
        let all = rows(&self.build, columns.clone(), false);
        for keep in [Keep::First, Keep::Last] {
            let repeated = |i: usize| match keep {
                Keep::First => keys[..i].contains(&keys[i]),
                _ => keys[i + 1..].contains(&keys[i]),
            };
            let stays = (0..keys.len()).filter(|&i| matches_none(&keys[i]) || !repeated(i));
            let wanted: Vec<_> = stays.map(|i| all[i].clone()).collect();
            let config = Config { collide: self.collide, ..Config::default() };
            let join = self.join(JoinType::Inner).unwrap();
            let collector = join.collector(&self.build[0].schema(), pool, config, Cancel::default()).unwrap();
            let mut collector = collector.with_keep(keep);
            self.build.iter().for_each(|batch| collector.push(batch.clone()).unwrap());
            let kept = collector.finish().unwrap();
            prop_assert_eq!(rows(std::slice::from_ref(kept.rows().unwrap()), columns.clone(), false), wanted);
            prop_assert!(kept.is_unique());
            prop_assert_eq!(pool.reserved(), kept.reserved_bytes());
        }
        Ok(())
    }
}

/// A new file name.
fn temporary_path() -> std::path::PathBuf {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("types-{}-{number}", std::process::id()))
}

/// An int64 key that half of the rows match on, then payload columns of `types` on both sides.
fn payload_case(types: &[DataType], seed: u64) -> Case {
    let mut rng = Rng(seed);
    let schema = schema(&[&[DataType::Int64], types].concat());
    let side = |cuts: &[usize], from: i64, rng: &mut Rng| {
        let made = batches(&schema, cuts, rng);
        let keyed = |batch: RecordBatch| {
            let key = (0..batch.num_rows()).map(|_| (rng.below(8) > 0).then(|| from + rng.below(6) as i64));
            let key: ArrayRef = Arc::new(key.collect::<Int64Array>());
            RecordBatch::try_new(schema.clone(), [&[key], &batch.columns()[1..]].concat()).unwrap()
        };
        made.into_iter().map(keyed).collect::<Vec<_>>()
    };
    let cuts = |rng: &mut Rng| (0..1 + rng.below(3)).map(|_| rng.below(7)).collect::<Vec<_>>();
    let (build_cuts, probe_cuts) = (cuts(&mut rng), cuts(&mut rng));
    let (build, probe) = (side(&build_cuts, 0, &mut rng), side(&probe_cuts, 3, &mut rng));
    let (nulls_equal, batch_size) = (vec![rng.flip()], 1 + rng.below(9));
    Case { build, probe, on: vec![(0, 0)], nulls_equal, batch_size, collide: 0 }
}

/// S11, B1, B2: every type, and every combination of depth 1, as payload of every kind.
#[test]
fn every_type_is_carried_by_every_kind() {
    let inner = [DataType::Int16, DataType::Utf8, DataType::Utf8View, DataType::Boolean];
    let mut types = flat_types();
    types.extend(inner.iter().flat_map(nested_types));
    for data_type in types {
        for seed in 0..6 {
            let case = payload_case(std::slice::from_ref(&data_type), seed);
            case.check().unwrap_or_else(|error| panic!("{data_type}, seed {seed}: {error}"));
            case.check_saved(seed % 2 == 0).unwrap_or_else(|error| panic!("{data_type}, seed {seed}, saved: {error}"));
        }
    }
}

/// B5: run-ends of views in lists that show a part of them, whose buffers are not those of the whole.
#[test]
fn run_ends_of_views_in_lists_are_saved() {
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    let views = DataType::RunEndEncoded(ends, Arc::new(Field::new("values", DataType::BinaryView, true)));
    let data_type = DataType::LargeList(Arc::new(Field::new("item", views, true)));
    for seed in 0..200 {
        payload_case(std::slice::from_ref(&data_type), seed).check_saved(seed % 2 == 0).unwrap();
    }
}

/// Two types that compare with each other, the build's first.
fn key_types(rng: &mut Rng, depth: usize) -> (DataType, DataType) {
    use DataType::*;
    let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    let both = |data_type: DataType| (data_type.clone(), data_type);
    let family = |family: Vec<DataType>, rng: &mut Rng| (rng.pick(&family), rng.pick(&family));
    let (build, probe) = match rng.below(if depth == 0 { 11 } else { 16 }) {
        0 => family(vec![Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64], rng),
        1 => {
            let scales = [-2, 0, 1, 3];
            let mut decimal = || match rng.below(4) {
                0 => Decimal32(9, rng.pick(&scales)),
                1 => Decimal64(18, rng.pick(&scales)),
                2 => Decimal128(38, rng.pick(&scales)),
                _ => Decimal256(76, rng.pick(&scales)),
            };
            (decimal(), decimal())
        }
        2 => family(units.map(|unit| Timestamp(unit, None)).to_vec(), rng),
        3 => {
            let zones = ["UTC", "Europe/Berlin", "+02:00"];
            let mut zoned = || Timestamp(rng.pick(&units), Some(rng.pick(&zones).into()));
            (zoned(), zoned())
        }
        4 => family(vec![Time32(units[0]), Time32(units[1]), Time64(units[2]), Time64(units[3])], rng),
        5 => family(units.map(Duration).to_vec(), rng),
        6 => family(vec![Utf8, LargeUtf8, Utf8View], rng),
        7 => family(vec![Binary, LargeBinary, BinaryView], rng),
        8 => both(rng.pick(&[Float16, Float32, Float64])),
        9 => {
            let rest = [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval);
            let rest = [&rest[..], &[Boolean, Date32, Date64, FixedSizeBinary(0), FixedSizeBinary(3)]].concat();
            both(rng.pick(&rest))
        }
        10 => {
            let other = rng.pick(&flat_types());
            if rng.flip() { (Null, other) } else { (other, Null) }
        }
        n => {
            let (build, probe) = key_types(rng, depth - 1);
            let (build_item, probe_item) = (item(build.clone()), item(probe.clone()));
            match n {
                11 => (List(build_item), List(probe_item)),
                12 => (ListView(build_item), ListView(probe_item)),
                13 => (FixedSizeList(build_item, 2), FixedSizeList(probe_item, 2)),
                14 => (LargeList(build_item), LargeList(probe_item)),
                _ => {
                    let (b, p) = key_types(rng, depth - 1);
                    (Struct(fields([build, b])), Struct(fields([probe, p])))
                }
            }
        }
    };
    let encode = |data_type: DataType, rng: &mut Rng| match rng.below(8) {
        0 if !data_type.is_nested() => dictionary(rng.pick(&[Int8, UInt16, Int64]), data_type),
        1 if !data_type.is_nested() => run_ends(rng.pick(&[Int16, Int64]), data_type),
        _ => data_type,
    };
    (encode(build, rng), encode(probe, rng))
}

fn key_case(seed: u64, cuts: [Vec<usize>; 2]) -> Case {
    let mut rng = Rng(seed);
    let (mut build_types, mut probe_types) = (vec![DataType::Int64], vec![DataType::Int64]);
    let keys = 1 + rng.below(3);
    for _ in 0..keys {
        let (build, probe) = key_types(&mut rng, 2);
        build_types.push(build);
        probe_types.push(probe);
    }
    let [build_cuts, probe_cuts] = cuts;
    Case {
        build: batches(&schema(&build_types), &build_cuts, &mut rng),
        probe: batches(&schema(&probe_types), &probe_cuts, &mut rng),
        on: (1..=keys).map(|key| (key, key)).collect(),
        nulls_equal: (0..keys).map(|_| rng.flip()).collect(),
        batch_size: 1 + rng.below(20),
        collide: rng.pick(&[0, 3]),
    }
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..12_usize, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 256, ..ProptestConfig::default() })]

    /// B2: nested combinations, several payload columns at once.
    #[test]
    fn any_payload_is_carried_by_every_kind(seed: u64, columns in 1..4_usize) {
        let types: Vec<DataType> = (0..columns as u64).map(|i| any_type(&mut Rng(seed ^ i), 3)).collect();
        let case = payload_case(&types, seed);
        let checked = if seed % 4 == 0 { case.check_saved(seed % 8 == 0) } else { case.check() };
        checked.map_err(|error| TestCaseError::fail(format!("{types:?}: {error}")))?;
    }

    /// B2, B4, S36, S42: one to three keys of any types that compare, null equality of each key, colliding hashes.
    #[test]
    fn any_keys_match_by_value(seed: u64, build in cuts(), probe in cuts()) {
        let case = key_case(seed, [build, probe]);
        let types = |side: &[RecordBatch]| format!("{:?}", side[0].schema().fields().iter().map(|f| f.data_type().clone()).collect::<Vec<_>>());
        let checked = if seed % 3 == 0 { case.check_saved(seed % 2 == 0) } else { case.check() };
        checked.map_err(|error| TestCaseError::fail(format!("{} = {}: {error}", types(&case.build), types(&case.probe))))?;
    }
}

fn collect(batches: &[RecordBatch], pool: &Arc<dyn Pool>) -> Result<Arc<PreparedBuild>> {
    let spec = BuildSpec::try_new(batches[0].schema(), vec![0], vec![NullEquality::NullEqualsNothing])?;
    let mut collector = Collector::new(spec, pool, Config::default(), Cancel::default());
    batches.iter().try_for_each(|batch| collector.push(batch.clone()))?;
    collector.finish()
}

/// Rows of an int64 key from `start` on, and beside it a dictionary of texts `t<number>`, its keys of type u8.
fn u8_dictionary(start: i64, numbers: &[i64], used: impl Iterator<Item = u8>) -> RecordBatch {
    let values = StringArray::from_iter_values(numbers.iter().map(|number| format!("t{number}")));
    let keys = UInt8Array::from_iter_values(used);
    let key = Int64Array::from_iter_values(start..start + keys.len() as i64);
    let dictionary = DictionaryArray::new(keys, Arc::new(values));
    RecordBatch::try_from_iter([("k", Arc::new(key) as ArrayRef), ("d", Arc::new(dictionary))]).unwrap()
}

/// The dictionaries of several batches fill their key type to the last entry; values that no row shows or that are equal
/// do not count; one more is an error that names the column and says what to do.
#[test]
fn dictionaries_fill_their_key_type() {
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    let (low, high): (Vec<i64>, Vec<i64>) = ((0..128).collect(), (128..256).collect());
    let all = |start, numbers: &[i64]| u8_dictionary(start, numbers, 0..numbers.len() as u8);
    let exact = [all(0, &low), all(128, &high)];
    let repeated = [all(0, &low), all(128, &high), all(256, &low)];
    let unused = [all(0, &low), u8_dictionary(128, &(100..300).collect::<Vec<_>>(), 0..128)];
    for batches in [exact.as_slice(), &repeated, &unused] {
        let build = collect(batches, &pool).unwrap();
        let texts = |batches: &[RecordBatch]| rows(batches, 1..2, false);
        assert_eq!(texts(std::slice::from_ref(build.rows().unwrap())), texts(batches));
        assert!(build.rows().unwrap().column(1).as_any_dictionary().values().len() <= 256);
    }
    let error = collect(&[all(0, &low), all(128, &high), all(256, &[256])], &pool).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Overflow(_)), "{text}");
    assert!(text.contains("build column \"d\"") && text.contains("cast the column"), "{text}");
    assert_eq!(pool.reserved(), 0);
}

/// Run ends that do not reach the number of rows are an error that names the column, in a build and in an output.
#[test]
fn run_ends_that_are_too_narrow_are_refused() {
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    let batch = |rows: usize| {
        let ends = Int16Array::from(vec![rows as i16]);
        let runs = RunArray::<Int16Type>::try_new(&ends, &StringArray::from(vec!["x"])).unwrap();
        let key = Int64Array::from(vec![1; rows]);
        RecordBatch::try_from_iter([("k", Arc::new(key) as ArrayRef), ("r", Arc::new(runs))]).unwrap()
    };
    let text = collect(&[batch(20_000), batch(20_000)], &pool).unwrap_err().to_string();
    assert!(text.contains("build column \"r\": 40000 rows do not fit the run ends"), "{text}");
    let build = collect(&[batch(200)], &pool).unwrap();
    for (kind, rows) in [(JoinType::Inner, 300), (JoinType::BuildOuter, 0)] {
        let probe = Source::from_batches(batch(1).schema(), vec![if rows > 0 { vec![batch(rows)] } else { vec![] }]);
        let join = HashJoin::builder(batch(1).schema(), probe).on([("k", "k")]).join_type(kind).build().unwrap();
        let join = join.with_prepared_build(Arc::clone(&build)).unwrap();
        let run = |batch_size| {
            let options = RunOptions { batch_size, ..RunOptions::default() };
            join.to_builder().build().unwrap().execute(0, &options).unwrap().collect::<Result<Vec<_>>>()
        };
        assert_eq!(run(30_000).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 200 * rows.max(1));
        if rows > 0 {
            // More than run ends of 16 bits reach comes in more batches.
            assert_eq!(run(60_000).unwrap().iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [30_000, 30_000]);
        }
    }
}

/// More list values than 32-bit offsets reach are an error in a build, and come in more batches in an output; larger
/// offsets carry them.
#[test]
fn list_offsets_that_are_outgrown() {
    const LEN: usize = 1 << 30;
    fn batch<O: OffsetSizeTrait>(rows: usize) -> RecordBatch {
        let offsets = OffsetBuffer::<O>::from_lengths(vec![LEN; rows]);
        let lists = GenericListArray::new(item(DataType::Null), offsets, Arc::new(NullArray::new(rows * LEN)), None);
        let key = Int64Array::from(vec![1; rows]);
        RecordBatch::try_from_iter([("k", Arc::new(key) as ArrayRef), ("l", Arc::new(lists))]).unwrap()
    }
    fn output<O: OffsetSizeTrait>(pool: &Arc<dyn Pool>) -> Result<Vec<RecordBatch>> {
        let build = collect(&[batch::<O>(1)], pool).unwrap();
        let key = Int64Array::from(vec![1; 3]);
        let probe = RecordBatch::try_from_iter([("k", Arc::new(key) as ArrayRef)]).unwrap();
        let probe = Source::from_batches(probe.schema(), vec![vec![probe]]);
        let join = HashJoin::builder(batch::<O>(1).schema(), probe).on([("k", "k")]).build()?;
        join.with_prepared_build(build)?.execute(0, &RunOptions::default())?.collect()
    }
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    let text = collect(&[batch::<i32>(1), batch::<i32>(1)], &pool).unwrap_err().to_string();
    assert!(text.contains("build column \"l\": 2147483648 list values do not fit"), "{text}");
    assert_eq!(collect(&[batch::<i64>(1), batch::<i64>(1)], &pool).unwrap().num_rows(), 2);
    let batches: Vec<usize> = output::<i32>(&pool).unwrap().iter().map(RecordBatch::num_rows).collect();
    assert_eq!(batches, [1, 1, 1]);
    assert_eq!(output::<i64>(&pool).unwrap()[0].num_rows(), 3);
    assert_eq!(pool.reserved(), 0);
}

/// A side that a join null-extends must be able to hold nulls: unions and run-ends have none of their own.
#[test]
fn columns_that_cannot_hold_nulls_are_not_extended() {
    let solid = |data_type| Arc::new(Field::new("values", data_type, false));
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    let union = UnionFields::try_new([0], [Field::new("x", DataType::Int8, false)]).unwrap();
    for data_type in [
        DataType::RunEndEncoded(ends, solid(DataType::Int8)),
        DataType::Union(union.clone(), UnionMode::Dense),
        DataType::Union(union, UnionMode::Sparse),
    ] {
        let schema = schema(&[DataType::Int64, data_type.clone()]);
        let join = |kind| HashJoin::builder(schema.clone(), schema.clone()).on([(0, 0)]).join_type(kind).build();
        for kind in JoinType::ALL {
            let extends = matches!(kind, JoinType::ProbeOuter | JoinType::BuildOuter | JoinType::FullOuter);
            match join(kind) {
                Ok(_) => assert!(!extends, "{kind} {data_type}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(extends && matches!(error, Error::Plan(_)), "{kind} {data_type}: {text}");
                    assert!(text.contains("\"c1\"") && text.contains(&data_type.to_string()), "{text}");
                }
            }
        }
    }
}

/// What is no key: types without an equality, and types that have none in common; both columns and types are named.
#[test]
fn keys_without_a_common_equality_are_refused() {
    use DataType::*;
    let refused = |build: &DataType, probe: &DataType| {
        let (build_schema, probe_schema) = (schema(&[Int64, build.clone()]), schema(std::slice::from_ref(probe)));
        let error = HashJoin::builder(build_schema, probe_schema).on([(1, 0)]).build().unwrap_err();
        assert!(matches!(error, Error::Plan(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("\"c1\"") && text.contains(&build.to_string()), "{text}");
        text
    };
    let zoned = Timestamp(TimeUnit::Second, Some("UTC".into()));
    let pairs = [
        (Int64, Utf8),
        (Int32, Float64),
        (Float32, Float64),
        (Int64, Decimal128(10, 0)),
        (Date32, Date64),
        (Utf8, Binary),
        (zoned, Timestamp(TimeUnit::Second, None)),
        (Timestamp(TimeUnit::Second, None), Date32),
        (Time32(TimeUnit::Second), Timestamp(TimeUnit::Second, None)),
        (FixedSizeBinary(3), FixedSizeBinary(4)),
        (FixedSizeBinary(3), Binary),
        (Interval(IntervalUnit::DayTime), Interval(IntervalUnit::YearMonth)),
        (List(item(Int8)), LargeList(item(Int8))),
        (List(item(Int8)), List(item(Utf8))),
        (FixedSizeList(item(Int8), 2), FixedSizeList(item(Int8), 3)),
        (Struct(fields([Int8])), Struct(fields([Int8, Int8]))),
        (dictionary(Int8, Utf8), Int64),
    ];
    for (build, probe) in pairs {
        for (build, probe) in [(&build, &probe), (&probe, &build)] {
            let text = refused(build, probe);
            assert!(text.contains("key types must match") && text.contains("\"c0\""), "{text}");
            assert!(text.contains(&probe.to_string()), "{text}");
        }
    }
    let no_equality = [map(Int8), union(UnionMode::Dense, [Int8]), union(UnionMode::Sparse, [Int8])];
    for data_type in no_equality.into_iter().flat_map(|t| [List(item(t.clone())), Struct(fields([t.clone()])), t]) {
        assert!(refused(&data_type, &data_type).contains("no equality"));
    }
}

/// Addresses of the buffers of an array, empty ones aside.
fn ranges(array: &ArrayRef) -> Vec<std::ops::Range<usize>> {
    fn walk(data: &ArrayData, out: &mut Vec<std::ops::Range<usize>>) {
        let buffers = data.buffers().iter().chain(data.nulls().map(|nulls| nulls.buffer()));
        let range = |b: &Buffer| b.as_ptr() as usize..b.as_ptr() as usize + b.len();
        out.extend(buffers.map(range).filter(|range| !range.is_empty()));
        data.child_data().iter().for_each(|child| walk(child, out));
    }
    let mut out = Vec::new();
    walk(&array.to_data(), &mut out);
    out
}

/// True for types that share with a small build by what S23 allows: the values of small dictionaries are copied.
fn may_share(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        Utf8View | BinaryView | ListView(_) | LargeListView(_) => true,
        RunEndEncoded(_, f) | List(f) | LargeList(f) | FixedSizeList(f, _) | Map(f, _) => may_share(f.data_type()),
        Struct(fields) => fields.iter().any(|field| may_share(field.data_type())),
        Union(fields, _) => fields.iter().any(|(_, field)| may_share(field.data_type())),
        _ => false,
    }
}

/// S23, S24: what an output shares with the build keeps the build and its charge; flat types share nothing, nor does an
/// output that is gone.
#[test]
fn outputs_share_under_a_lease_or_not_at_all() {
    let mut types = flat_types();
    types.extend([DataType::Int16, DataType::Utf8, DataType::Utf8View].iter().flat_map(nested_types));
    let mut shared_types = Vec::new();
    for data_type in types {
        for batches in [1, 3] {
            let mut rng = Rng(7);
            let schema = schema(&[DataType::Int64, data_type.clone()]);
            let keyed = |batch: RecordBatch| {
                let key: ArrayRef = Arc::new(Int64Array::from_iter_values(0..batch.num_rows() as i64));
                RecordBatch::try_new(schema.clone(), vec![key, batch.column(1).clone()]).unwrap()
            };
            let build: Vec<_> = self::batches(&schema, &[40; 3][..batches], &mut rng).into_iter().map(keyed).collect();
            let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
            let prepared = collect(&build, &pool).unwrap();
            let probe = Source::from_batches(schema.clone(), vec![vec![build[0].clone()]]);
            drop(build);
            let join = HashJoin::builder(schema.clone(), probe).on([(0, 0)]).projection(Some(vec![1])).build().unwrap();
            let join = join.with_prepared_build(Arc::clone(&prepared)).unwrap();
            let output = join.execute(0, &RunOptions::default()).unwrap().collect::<Result<Vec<_>>>().unwrap();
            let own = ranges(prepared.rows().unwrap().column(1));
            let overlaps =
                |range: &std::ops::Range<usize>| own.iter().any(|o| o.start < range.end && range.start < o.end);
            let shared = output.iter().any(|batch| ranges(batch.column(0)).iter().any(overlaps));
            assert!(!shared || may_share(&data_type), "{data_type} shares with the build");
            let (reserved, values) = (prepared.reserved_bytes(), rows(&output, 0..1, false));
            drop((join, prepared));
            if shared {
                assert_eq!(pool.reserved(), reserved, "{data_type}: shared without a lease");
                shared_types.push(data_type.clone());
            }
            assert_eq!(rows(&output, 0..1, false), values);
            drop(output);
            assert_eq!(pool.reserved(), 0, "{data_type}");
        }
    }
    assert!(shared_types.contains(&DataType::Utf8View), "all text is used and yet copied");
}

/// S23, S24: the values of a dictionary stay whole; large ones are shared under a lease, whatever is used of them.
#[test]
fn large_dictionaries_are_shared_under_a_lease() {
    for (count, shared) in [(100, false), (20_000, true)] {
        let values = StringArray::from_iter_values((0..count).map(|i| format!("value {i}")));
        let column = DictionaryArray::new(Int16Array::from_iter_values(0..count), Arc::new(values));
        let key: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::from(count)));
        let batch = RecordBatch::try_from_iter([("k", key), ("v", Arc::new(column))]).unwrap();
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        let prepared = collect(std::slice::from_ref(&batch), &pool).unwrap();
        let lookup = Lookup::try_new(Arc::clone(&prepared), &[1]).unwrap();
        let key: ArrayRef = Arc::new(Int64Array::from(vec![7]));
        let keys = Keys::read(&prepared, &RecordBatch::try_from_iter([("k", key)]).unwrap()).unwrap();
        let output = lookup.rows(&keys, Keep::All, &mut Hits::default(), &Cancel::default()).unwrap();
        let wanted = rows(&[batch.slice(7, 1)], 1..2, false);
        let reserved = prepared.reserved_bytes();
        drop((batch, lookup, prepared));
        assert_eq!(pool.reserved(), if shared { reserved } else { 0 });
        assert_eq!(output.column(0).as_any_dictionary().values().len(), count as usize);
        assert_eq!(rows(&[output], 0..1, false), wanted);
        assert_eq!(pool.reserved(), 0);
    }
}
