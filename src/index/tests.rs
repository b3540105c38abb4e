//! Every index kind against a plain hash map.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano, NullBuffer, i256};
use arrow_schema::DataType;
use proptest::prelude::*;
use proptest::strategy::Strategy;

use super::*;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::memory::{MemoryPool, Pool, Reservation};

/// Counts what is reserved per consumer and refuses one request.
#[derive(Debug)]
struct RefusingPool {
    requests: AtomicUsize,
    refused: usize,
    pool: MemoryPool,
}

impl Pool for RefusingPool {
    fn try_grow(&self, consumer: &str, bytes: usize) -> Result<()> {
        if self.requests.fetch_add(1, Ordering::Relaxed) == self.refused {
            return Err(Error::ResourcesExhausted(format!("{consumer} was refused {bytes} bytes")));
        }
        self.pool.try_grow(consumer, bytes)
    }
    fn shrink(&self, bytes: usize) {
        self.pool.shrink(bytes);
    }
    fn reserved(&self) -> usize {
        self.pool.reserved()
    }
}

fn build(
    keys: &[ArrayRef],
    nulls_equal: &[bool],
    options: &IndexOptions,
    pool: &Arc<dyn Pool>,
) -> Result<(KeyIndex, KeyRows)> {
    let mut retained = Reservation::new(pool, "retained");
    let mut scratch = Reservation::new(pool, "scratch");
    let context = IndexContext {
        options,
        retained: &mut retained,
        scratch: &mut scratch,
        bounds: &[],
        cancel: &Cancel::default(),
    };
    let built = KeyIndex::build(keys, nulls_equal, context);
    assert_eq!(scratch.size(), 0);
    match &built {
        Ok((index, groups)) => assert_eq!(retained.size(), index.memory_size() + groups.memory_size()),
        Err(_) => assert_eq!(retained.size(), 0),
    }
    built
}

fn unlimited() -> Arc<dyn Pool> {
    Arc::new(MemoryPool::unlimited())
}

fn rows_of(groups: &KeyRows, group: u32) -> Vec<u32> {
    let g = group as usize;
    match groups {
        KeyRows::Identity => vec![group],
        KeyRows::Unique { rows } => vec![rows[g]],
        KeyRows::Runs { offsets } => (offsets[g]..offsets[g + 1]).collect(),
        KeyRows::Csr { offsets, rows } => rows[offsets[g] as usize..offsets[g + 1] as usize].to_vec(),
    }
}

const KINDS: usize = 29;

/// The value `v` of a kind of column, as an array of `picks.len()` rows and as texts that are equal where keys are. Beneath
/// nulls stands the value of the pick.
fn column(kind: usize, picks: &[(u32, bool)]) -> (ArrayRef, Vec<Option<String>>) {
    let ids = || picks.iter().map(|&(v, _)| v);
    macro_rules! primitive {
        ($t:ty, $value:expr) => {{
            let values: Vec<<$t as ArrowPrimitiveType>::Native> = ids().map($value).collect();
            let texts: Vec<String> = values.iter().map(|v| format!("{v:?}")).collect();
            (Arc::new(PrimitiveArray::<$t>::new(values.into(), None)) as ArrayRef, texts)
        }};
    }
    macro_rules! strings {
        ($array:ty, $value:expr) => {{
            let values: Vec<String> = ids().map($value).collect();
            let array: $array = values.iter().map(|v| Some(v.as_str())).collect();
            (Arc::new(array) as ArrayRef, values)
        }};
    }
    macro_rules! fixed {
        ($width:expr) => {{
            let values: Vec<Vec<u8>> = ids().map(|v| (0..$width).map(|i| (v >> (i % 3 * 8)) as u8).collect()).collect();
            let texts: Vec<String> = values.iter().map(|v| format!("{v:?}")).collect();
            (Arc::new(FixedSizeBinaryArray::try_from_iter(values.iter()).unwrap()) as ArrayRef, texts)
        }};
    }
    const I64: [i64; 8] = [i64::MIN, i64::MAX, 0, -1, 1, i64::MIN + 1, i64::MAX - 1, 1 << 40];
    const U64: [u64; 6] = [0, u64::MAX, 1 << 63, (1 << 63) - 1, (1 << 63) + 1, 7];
    const F64: [f64; 7] = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, f64::MIN_POSITIVE];
    let random = |v: u32| u64::from(v + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let float = |v: u32| match v {
        // A NaN of another sign and payload.
        8 => f64::from_bits(0xfff8_0000_0000_0123),
        v => F64.get(v as usize).copied().unwrap_or(f64::from(v) * 0.25),
    };
    let float_text = |v: u32| match float(v) {
        f if f.is_nan() => "NaN".to_owned(),
        f => format!("{:?}", f + 0.0),
    };
    let (array, texts): (ArrayRef, Vec<String>) = match kind {
        0 => primitive!(Int64Type, |v| i64::from(v) * 17 - 1000),
        1 => primitive!(Int64Type, |v| random(v) as i64),
        2 => primitive!(Int64Type, |v| I64.get(v as usize).copied().unwrap_or(i64::MAX - i64::from(v))),
        3 => primitive!(UInt64Type, |v| U64.get(v as usize).copied().unwrap_or(u64::MAX - u64::from(v))),
        4 => primitive!(UInt64Type, |v| (1 << 63) - 5 + u64::from(v)),
        5 => primitive!(Int8Type, |v| v as i8),
        6 => primitive!(UInt16Type, |v| v as u16),
        7 => primitive!(Date32Type, |v| v as i32 - 9),
        8 => primitive!(TimestampMicrosecondType, |v| random(v) as i64),
        9 => primitive!(IntervalDayTimeType, |v| IntervalDayTime::new(v as i32 % 3, v as i32)),
        10 => primitive!(Decimal128Type, |v| i128::from(random(v)) << (v % 60)),
        11 => primitive!(Decimal256Type, |v| i256::from_i128(-i128::from(random(v)))),
        12 => primitive!(IntervalMonthDayNanoType, |v| IntervalMonthDayNano::new(v as i32 % 2, 3, i64::from(v))),
        13 => {
            let (array, _) = primitive!(Float64Type, float);
            (array, ids().map(float_text).collect())
        }
        14 => {
            let (array, _) = primitive!(Float32Type, |v| float(v) as f32);
            (array, ids().map(|v| if v == 6 { float_text(0) } else { float_text(v) }).collect())
        }
        15 => (
            Arc::new(BooleanArray::from_iter(ids().map(|v| Some(v % 2 == 1)))),
            ids().map(|v| (v % 2).to_string()).collect(),
        ),
        16 => strings!(StringArray, |v| format!("key-{v:08}")),
        17 => strings!(StringArray, |v| "x".repeat(v as usize % 12)),
        18 => strings!(StringArray, |v| format!("{}\0{}", "\0".repeat(v as usize % 5), v % 3)),
        19 => strings!(LargeStringArray, |v| format!("{}{v}", "longer than inline ".repeat(v as usize % 3))),
        20 => strings!(StringViewArray, |v| format!("{}{v}", "a view of some length ".repeat(v as usize % 2))),
        21 => strings!(StringArray, |v| format!("{v:016}")),
        22 => fixed!(3),
        23 => fixed!(16),
        24 => fixed!(20),
        25 => {
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            ids().for_each(|v| builder.append_value(v.to_string()));
            (Arc::new(builder.finish()), ids().map(|v| v.to_string()).collect())
        }
        26 => {
            let mut builder = ListBuilder::new(Float64Builder::new());
            for v in ids() {
                (0..v % 3).for_each(|i| builder.values().append_value(float(v + i)));
                builder.append(true);
            }
            let text = |v: u32| (0..v % 3).map(|i| float_text(v + i) + ",").collect();
            (Arc::new(builder.finish()), ids().map(text).collect())
        }
        27 => return (Arc::new(NullArray::new(picks.len())), vec![None; picks.len()]),
        _ => {
            let (array, _) = primitive!(Float32Type, |v| float(v) as f32);
            let array = arrow_cast::cast(&array, &DataType::Float16).unwrap();
            (array, ids().map(|v| if v == 6 { float_text(0) } else { float_text(v) }).collect())
        }
    };
    let nulls = NullBuffer::from_iter(picks.iter().map(|&(_, valid)| valid));
    let data = array.to_data().into_builder().nulls(Some(nulls).filter(|n| n.null_count() > 0)).build().unwrap();
    let texts = texts.into_iter().zip(picks).map(|(text, &(_, valid))| valid.then_some(text)).collect();
    (make_array(data), texts)
}

type Texts = Vec<Vec<Option<String>>>;

/// Columns whose first and last two rows are cut off.
fn columns(kinds: &[usize], picks: &[Vec<(u32, bool)>]) -> (Vec<ArrayRef>, Texts) {
    let cut = |kind: &usize, picks: &Vec<(u32, bool)>| {
        let (array, texts) = column(*kind, picks);
        let len = picks.len() - 4;
        (array.slice(2, len), texts[2..2 + len].to_vec())
    };
    kinds.iter().zip(picks).map(|(kind, picks)| cut(kind, picks)).unzip()
}

fn key(texts: &Texts, row: usize, nulls_equal: &[bool]) -> Option<Vec<Option<String>>> {
    let key: Vec<_> = texts.iter().map(|texts| texts[row].clone()).collect();
    let dropped = key.iter().zip(nulls_equal).any(|(part, equal)| part.is_none() && !equal);
    (!dropped).then_some(key)
}

/// Checks an index of `build_side` against a hash map with the rows of `probe_side`.
fn check(
    build_side: &(Vec<ArrayRef>, Texts),
    probe_side: &(Vec<ArrayRef>, Texts),
    nulls_equal: &[bool],
    options: &IndexOptions,
) {
    let pool = unlimited();
    let (index, groups) = build(&build_side.0, nulls_equal, options, &pool).unwrap();
    assert_eq!(pool.reserved(), 0);
    let mut expected: HashMap<_, Vec<u32>> = HashMap::new();
    for row in 0..build_side.0[0].len() {
        if let Some(key) = key(&build_side.1, row, nulls_equal) {
            expected.entry(key).or_default().push(row as u32);
        }
    }
    assert_eq!(index.num_keys(), expected.len());
    assert_eq!(groups.is_unique(), expected.values().all(|rows| rows.len() == 1));
    let mut all: Vec<u32> = (0..index.num_keys() as u32).flat_map(|group| rows_of(&groups, group)).collect();
    all.sort_unstable();
    let mut all_expected: Vec<u32> = expected.values().flatten().copied().collect();
    all_expected.sort_unstable();
    assert_eq!(all, all_expected);
    for (side, start) in [(build_side, 0), (probe_side, 0), (probe_side, 3)] {
        let len = side.0[0].len().saturating_sub(start + start / 2);
        let mut hits = Hits::default();
        // Hits are appended to what is there.
        hits.rows.push(7);
        hits.groups.push(9);
        index.probe(&side.0, start, len, &mut hits).unwrap();
        // The instructions of this processor and the plain ones answer alike.
        let mut plain = Hits { baseline: true, ..Hits::default() };
        index.probe(&side.0, start, len, &mut plain).unwrap();
        assert_eq!((&plain.rows[..], &plain.groups[..]), (&hits.rows[1..], &hits.groups[1..]));
        let found: Vec<_> =
            hits.rows.iter().zip(&hits.groups).skip(1).map(|(&r, &g)| (r, rows_of(&groups, g))).collect();
        let wanted: Vec<_> = (start..start + len)
            .filter_map(|row| Some((row as u32, expected.get(&key(&side.1, row, nulls_equal)?)?.clone())))
            .collect();
        assert_eq!(found, wanted);
    }
}

fn picks(rows: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(u32, bool)>> {
    // Few to many distinct values, few to many nulls, shuffled or clustered.
    (1u32..60, 0usize..4, any::<bool>()).prop_flat_map(move |(distinct, nulls, sorted)| {
        let row = (0..distinct, (0usize..4).prop_map(move |n| n >= nulls || nulls == 1 && n == 3));
        prop::collection::vec(row, rows.start + 4..rows.end + 4).prop_map(move |mut rows| {
            if sorted {
                rows.sort_unstable();
            }
            rows
        })
    })
}

fn side(columns: usize, rows: usize) -> impl Strategy<Value = Vec<Vec<(u32, bool)>>> {
    (0..rows).prop_flat_map(move |rows| prop::collection::vec(picks(rows..rows + 1), columns))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// S18, S38
    #[test]
    fn one_key(
        kind in 0..KINDS,
        build in side(1, 90),
        probe in side(1, 90),
        nulls_equal: bool,
        collide in prop_oneof![3 => Just(0u64), 1 => 1..4u64],
        density in prop_oneof![Just(1.0 / 64.0), Just(2.0)],
    ) {
        let options = IndexOptions { collide, dense_min_density: density, dense_small_range: 100 };
        check(&columns(&[kind], &build), &columns(&[kind], &probe), &[nulls_equal], &options);
    }

    #[test]
    fn several_keys(
        kinds in prop::collection::vec(prop_oneof![2 => 0..10usize, 1 => 0..KINDS], 2..4),
        build in side(3, 60),
        probe in side(3, 60),
        nulls_equal: [bool; 3],
        collide in prop_oneof![3 => Just(0u64), 1 => 1..4u64],
    ) {
        let options = IndexOptions { collide, ..IndexOptions::default() };
        check(&columns(&kinds, &build), &columns(&kinds, &probe), &nulls_equal[..kinds.len()], &options);
    }

    /// S20: whichever request is refused, everything is given back.
    #[test]
    fn refusals(
        kinds in prop::collection::vec(0..KINDS, 1..3),
        rows in side(2, 40),
        nulls_equal: [bool; 2],
        collide in 0..2u64,
    ) {
        let (columns, _) = columns(&kinds, &rows);
        let options = IndexOptions { collide, ..IndexOptions::default() };
        for refused in 0.. {
            let pool = RefusingPool { requests: AtomicUsize::new(0), refused, pool: MemoryPool::unlimited() };
            let pool: Arc<dyn Pool> = Arc::new(pool);
            let built = build(&columns, &nulls_equal[..kinds.len()], &options, &pool);
            prop_assert_eq!(pool.reserved(), 0);
            match built {
                Ok(_) => break,
                Err(error) => prop_assert!(matches!(error, Error::ResourcesExhausted(_)), "{}", error),
            }
        }
    }
}

fn kind_of<const N: usize>(columns: [&ArrayRef; N], options: &IndexOptions) -> (IndexKind, KeyRows, usize) {
    let (index, groups) = build(&columns.map(Arc::clone), &[false; N], options, &unlimited()).unwrap();
    let size = index.memory_size() + groups.memory_size();
    (index.kind(), groups, size)
}

fn int64(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn shuffled(rows: usize) -> impl Iterator<Item = i64> + Clone {
    // A walk in steps that share no factor with the number of rows meets each row once.
    let step = (0..).map(|i| 7_919 + i).find(|&step| gcd(step, rows) == 1).unwrap();
    (0..rows).map(move |i| ((i * step) % rows) as i64)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// S38
#[test]
fn kinds_and_groups() {
    let options = IndexOptions::default();
    let ascending = int64((0..5000).map(|i| i * 17));
    assert!(matches!(kind_of([&ascending], &options), (IndexKind::Dense, KeyRows::Identity, _)));
    let runs = int64((0..5000).map(|i| i / 3));
    assert!(matches!(kind_of([&runs], &options), (IndexKind::Dense, KeyRows::Runs { .. }, _)));
    let sparse = int64(shuffled(5000).map(|i| i * 1_000_003));
    assert!(matches!(kind_of([&sparse], &options), (IndexKind::Hashed, KeyRows::Identity, _)));
    let off = IndexOptions { dense_min_density: 1.5, ..IndexOptions::default() };
    assert!(matches!(kind_of([&runs], &off), (IndexKind::Hashed, KeyRows::Runs { .. }, _)));
    let text = arrow_cast::cast(&sparse, &DataType::Utf8).unwrap();
    assert!(matches!(kind_of([&text], &options), (IndexKind::Bytes, KeyRows::Identity, _)));
    let small = int64(shuffled(5000).map(|i| i % 50));
    assert!(matches!(kind_of([&small, &small], &options), (IndexKind::Dense, KeyRows::Csr { .. }, _)));
    assert!(matches!(kind_of([&small, &sparse], &options), (IndexKind::Hashed, KeyRows::Identity, _)));
    assert!(matches!(kind_of([&small, &text], &options), (IndexKind::Rows, KeyRows::Identity, _)));
    // Ranges of 2^64 - 1 each do not pack.
    let wide = int64([i64::MIN, i64::MAX].into_iter());
    assert!(matches!(kind_of([&wide, &wide], &options), (IndexKind::Rows, KeyRows::Identity, _)));
}

/// Bytes per row that are retained beyond the data, for numbers of rows around powers of two; and per duplicate row.
#[test]
fn memory_per_row() {
    let options = IndexOptions::default();
    for rows in [50_000, 65_535, 65_537, 100_000, 131_073, 200_000] {
        let per_row = |column: ArrayRef| kind_of([&column], &options).2 as f64 / rows as f64;
        let random = |i: i64| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
        let dense = per_row(int64(shuffled(rows).map(|i| i * 17)));
        assert!(dense <= 8.5, "dense: {dense}");
        let hashed = per_row(int64(shuffled(rows).map(random)));
        assert!(hashed <= 24.0, "hashed: {hashed}");
        let bytes = per_row(Arc::new(StringArray::from_iter_values(shuffled(rows).map(|i| format!("key-{i:08}")))));
        assert!(bytes <= 22.5, "bytes: {bytes}");
        let few = per_row(int64(shuffled(rows).map(|i| random(i % 10))));
        assert!(few <= 4.5, "10 keys: {few}");
    }
}

/// S13: scratch is at most 12 bytes per row, and 64 KiB whatever the number of rows.
#[test]
fn scratch_per_row() {
    let rows = 70_000;
    let sparse = |duplicates: i64| int64(shuffled(rows).map(move |i| i / duplicates * 1_000_003));
    for duplicates in [1, 2, 1000] {
        let text = arrow_cast::cast(&sparse(duplicates), &DataType::Utf8).unwrap();
        let dense = int64(shuffled(rows).map(|i| i / duplicates));
        for keys in [vec![dense], vec![sparse(duplicates)], vec![text.clone()], vec![text, sparse(1)]] {
            let (retained, peak) = (unlimited(), Arc::new(MemoryPool::unlimited()));
            let scratch: Arc<dyn Pool> = peak.clone();
            let context = IndexContext {
                options: &IndexOptions::default(),
                retained: &mut Reservation::new(&retained, "retained"),
                scratch: &mut Reservation::new(&scratch, "scratch"),
                bounds: &[],
                cancel: &Cancel::default(),
            };
            let (index, _) = KeyIndex::build(&keys, &vec![false; keys.len()], context).unwrap();
            assert!(peak.peak() <= 12 * rows + (64 << 10), "{:?}: {} bytes", index.kind(), peak.peak());
        }
    }
}

/// No walk grows with the number of duplicates or with colliding hashes.
#[test]
fn steps_are_bounded() {
    let rows = 60_000;
    let keys: [ArrayRef; 4] = [
        int64(shuffled(rows).map(|i| if i % 2 == 0 { 5 } else { i * 1_000_003 })),
        int64(shuffled(rows).map(|i| i % 3 * (1 << 40))),
        Arc::new(StringArray::from_iter_values(
            shuffled(rows).map(|i| format!("{:030}", if i % 2 == 0 { 5 } else { i })),
        )),
        Arc::new(StringArray::from_iter_values(shuffled(rows).map(|i| format!("{:010}", i % 2)))),
    ];
    for key in keys {
        for keys in [vec![key.clone()], vec![key.clone(), Arc::new(Float64Array::from(vec![0.5; rows]))]] {
            let before = probe_steps();
            let (index, _) = build(&keys, &vec![false; keys.len()], &IndexOptions::default(), &unlimited()).unwrap();
            let mut hits = Hits::default();
            index.probe(&keys, 0, rows, &mut hits).unwrap();
            assert_eq!(hits.rows.len(), rows);
            let steps = (probe_steps() - before) as usize;
            assert!(steps > 0 || !cfg!(debug_assertions));
            assert!(steps <= 12 * rows, "{steps} steps for {rows} rows: {:?}", index.kind());
        }
    }
    let colliding = int64(shuffled(4096).map(|i| i * 1_000_003));
    let options = IndexOptions { collide: 2, ..IndexOptions::default() };
    let (index, _) = build(std::slice::from_ref(&colliding), &[false], &options, &unlimited()).unwrap();
    let before = probe_steps();
    index.probe(&[colliding], 0, 4096, &mut Hits::default()).unwrap();
    assert!(probe_steps() - before <= 4096 * 20);
}

/// The integer whose word has this hash.
fn key_with_hash(hash: u64) -> i64 {
    // Newton's method doubles the correct bits of an inverse modulo 2^64; an odd number is its own in the lowest three.
    let inverse = |k: u64| (0..5).fold(k, |x, _| x.wrapping_mul(2u64.wrapping_sub(k.wrapping_mul(x))));
    let x = hash.wrapping_mul(inverse(0xd6e8_feb8_6659_fd93));
    let word = (x ^ x >> 32).wrapping_mul(inverse(0x9e37_79b9_7f4a_7c15));
    assert_eq!(super::hash::word(word, 0), hash);
    (word ^ 1 << 63) as i64
}

/// Keys that somebody chose by their hashes: all in one partition, and all in one place of the table that finds duplicates.
#[test]
fn chosen_hashes() {
    let rows = 60_000;
    // Every fourth row has the key of the row before it.
    let number = |row: u64| row - row % 4 / 3;
    let one_partition = |row: u64| number(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
    let one_place = |row: u64| number(row).wrapping_mul(0x9e37_79b9) & 0xffff_ffff;
    for hash in [&one_partition as &dyn Fn(u64) -> u64, &one_place] {
        let keys: Vec<i64> = (0..rows).map(|row| key_with_hash(hash(row))).collect();
        let texts = keys.iter().map(|key| Some(key.to_string())).collect();
        let side = (vec![int64(keys.into_iter())], vec![texts]);
        let before = probe_steps();
        check(&side, &side, &[false], &IndexOptions::default());
        let steps = probe_steps() - before;
        assert!(steps <= 40 * rows, "{steps} steps for {rows} rows");
    }
}

/// Several partitions and chunks, and partitions that hold far more rows than the others.
#[test]
fn many_rows() {
    let options = IndexOptions::default();
    for kind in [1, 13, 16, 19] {
        for distinct in [3, 20_000, u32::MAX] {
            let pick = |row: u32| (row.wrapping_mul(0x9e37_79b1) % distinct.min(50_000), row % 11 != 3);
            let skewed = |row: u32| if row.is_multiple_of(2) { (77, true) } else { pick(row) };
            let probe = columns(&[kind], &[(0..9000).map(|row| pick(row * 3)).collect()]);
            check(&columns(&[kind], &[(0..30_000).map(pick).collect()]), &probe, &[true], &options);
            check(&columns(&[kind], &[(0..30_000).map(skewed).collect()]), &probe, &[false], &options);
        }
    }
}

/// B13: the tuples of a bucket are in the order of their groups, so that a file does not depend on how a build was made:
/// at once, in partitions with a rest, or made distinct first. Long buckets are in the order of their lanes.
#[test]
fn buckets_are_in_order() {
    let spread = |rows: usize| int64(shuffled(rows).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)));
    let repeated = int64(shuffled(200_000).map(|i| (i / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)));
    let flooded = spread(3000);
    for (keys, is_long) in [(spread(3000), false), (spread(200_000), false), (repeated, false), (flooded, true)] {
        let options = IndexOptions { collide: if is_long { 1 } else { 0 }, ..IndexOptions::default() };
        let (index, groups) = build(&[keys], &[false], &options, &unlimited()).unwrap();
        assert_eq!(index.kind(), IndexKind::Hashed);
        let parts = StoredIndex::of(&index, &groups).parts;
        let part = |wanted| &parts.iter().find(|(part, _)| *part == wanted).unwrap().1;
        let ends = part(IndexPart::Directory).typed_data::<u64>();
        let tuples = part(IndexPart::Tuples).typed_data::<u32>();
        let mut longest = 0;
        for bucket in ends.windows(2) {
            let bucket = bucket[0] as u32 as usize..bucket[1] as u32 as usize;
            let order = |at: usize| match bucket.len() > 32 {
                true => (tuples[3 * at], tuples[3 * at + 1]),
                false => (tuples[3 * at + 2], 0),
            };
            longest = longest.max(bucket.len());
            assert!(bucket.clone().skip(1).all(|at| order(at - 1) < order(at)), "{bucket:?}");
        }
        assert_eq!(longest > 32, is_long);
    }
}
