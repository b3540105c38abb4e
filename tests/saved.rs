//! Saved builds: whatever the bytes of a file are, opening and probing it gives the right rows or an error.

mod arrays;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrays::{Rng, array, dictionary, item, map, run_ends, union};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, UnionMode};
use prejoin::{
    BuildSpec, Cancel, Collector, Error, HashJoin, IndexKind, JoinType, MemoryPool, NullEquality, OpenOptions, Pool,
    PrepareOptions, PreparedBuild, Result, RunOptions, SaveOptions, SavedInfo, Snapshot, Source,
};
use proptest::prelude::*;

/// A file that is removed at the end of the test.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("saved-{}-{number}", std::process::id())))
    }

    fn of(bytes: &[u8]) -> Self {
        let this = Self::new();
        fs::write(&this.0, bytes).unwrap();
        this
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn unverified() -> OpenOptions {
    OpenOptions { verify: false, ..OpenOptions::default() }
}

fn prepare(
    columns: Vec<ArrayRef>,
    keys: usize,
    null_equality: NullEquality,
    config: PrepareOptions,
) -> Arc<PreparedBuild> {
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(i, column)| Field::new(format!("c{i}"), column.data_type().clone(), true));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap();
    let spec = BuildSpec::try_new(batch.schema(), (0..keys).collect(), vec![null_equality; keys]).unwrap();
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    let mut collector = Collector::new(spec, &pool, config, Cancel::default());
    collector.push(batch).unwrap();
    collector.finish().unwrap()
}

fn int64(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

fn texts(rows: i64, text: impl Fn(i64) -> Option<String>) -> ArrayRef {
    Arc::new((0..rows).map(text).collect::<StringArray>())
}

/// Every index, every form of groups, null groups, an empty build, and payload with offsets, views, dictionaries, runs.
fn builds() -> Vec<(&'static str, Arc<PreparedBuild>)> {
    const ROWS: i64 = 150;
    let hashed = || PrepareOptions { dense_min_density: 2.0, ..PrepareOptions::default() };
    let colliding = || PrepareOptions { collide: 3, dense_min_density: 2.0, ..PrepareOptions::default() };
    let (equal, unequal) = (NullEquality::NullEqualsNull, NullEquality::NullEqualsNothing);
    let all = || int64((0..ROWS).map(Some));
    let shuffled = || int64((0..ROWS).map(|i| Some(i * 7 % ROWS)));
    let runs = || int64((0..ROWS).map(|i| Some(i / 3)));
    let repeated = || int64((0..ROWS).map(|i| (i % 5 > 0).then_some(i % 40)));
    let payload = || -> Vec<ArrayRef> {
        use DataType::{BinaryView, Boolean, Int8, Int16, Int64, LargeList, List, ListView, Utf8, Utf8View};
        let types = [
            Utf8,
            Utf8View,
            Boolean,
            dictionary(Int8, Utf8),
            List(item(Utf8)),
            ListView(item(Int64)),
            LargeList(item(BinaryView)),
            run_ends(Int16, Utf8),
            map(Int64),
            union(UnionMode::Dense, [Utf8, Int64]),
        ];
        let mut rng = Rng(7);
        types.iter().map(|data_type| array(data_type, ROWS as usize, &mut rng)).collect()
    };
    let with = |keys: Vec<ArrayRef>, mut more: Vec<ArrayRef>| {
        let mut columns = keys;
        columns.append(&mut more);
        columns
    };
    let long = |i: i64| Some(format!("a key of more than sixteen bytes, {}", i % 40));
    let encoded = || {
        let values: ArrayRef = texts(40, long);
        let keys: Int32Array = (0..ROWS as i32).map(|i| (i % 7 > 0).then_some(i * 3 % 40)).collect();
        Arc::new(DictionaryArray::<Int32Type>::new(keys, values)) as ArrayRef
    };
    let two = || vec![all(), texts(ROWS, |i| (i % 4 > 0).then(|| format!("k{}", i % 9)))];
    vec![
        ("dense identity", prepare(with(vec![all()], payload()), 1, unequal, PrepareOptions::default())),
        ("dense unique", prepare(vec![shuffled(), all()], 1, unequal, PrepareOptions::default())),
        ("dense runs", prepare(vec![runs(), all()], 1, unequal, PrepareOptions::default())),
        ("dense rows, null group", prepare(vec![repeated(), all()], 1, equal, PrepareOptions::default())),
        ("dense packed", prepare(vec![runs(), repeated(), all()], 2, equal, PrepareOptions::default())),
        ("hashed", prepare(vec![shuffled(), all()], 1, unequal, hashed())),
        ("hashed rows, null group", prepare(vec![repeated(), all()], 1, equal, hashed())),
        ("hashed, long buckets", prepare(vec![shuffled()], 1, unequal, colliding())),
        (
            "bytes of 2 lanes",
            prepare(vec![texts(ROWS, |i| Some(format!("{}", i % 40)))], 1, unequal, PrepareOptions::default()),
        ),
        (
            "bytes of 3 lanes",
            prepare(vec![texts(ROWS, |i| Some(format!("{i:0>11}")))], 1, unequal, PrepareOptions::default()),
        ),
        (
            "bytes of 4 lanes",
            prepare(vec![texts(ROWS, |i| Some(format!("{i:0>15}")))], 1, unequal, PrepareOptions::default()),
        ),
        ("long bytes, null group", {
            prepare(vec![texts(ROWS, |i| long(i).filter(|_| i % 6 > 0)), all()], 1, equal, PrepareOptions::default())
        }),
        ("long bytes in a dictionary", prepare(vec![encoded(), all()], 1, unequal, PrepareOptions::default())),
        ("encoded rows", prepare(with(two(), payload()), 2, unequal, PrepareOptions::default())),
        ("encoded rows, nulls equal", prepare(two(), 2, equal, PrepareOptions::default())),
        ("empty", prepare(vec![int64([]), texts(0, |_| None)], 1, unequal, PrepareOptions::default())),
        ("empty, encoded", prepare(vec![int64([]), texts(0, |_| None)], 2, equal, PrepareOptions::default())),
    ]
}

/// Runs whatever reads a build: joins of all types, its rows, its filter. Returns some of the output rows.
fn use_all(build: &Arc<PreparedBuild>) -> Result<Vec<RecordBatch>> {
    let schema = build.rows_schema();
    let on = build.keys().to_vec();
    // Keys of the build itself and others.
    let mut probe = vec![RecordBatch::new_empty(Arc::clone(schema))];
    probe.extend(build.rows().cloned());
    let mut rng = Rng(3);
    let random = schema.fields().iter().map(|field| array(field.data_type(), 40, &mut rng)).collect();
    let nullable = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect::<Vec<_>>();
    let nullable = Arc::new(Schema::new(nullable));
    let widen = |batch: &RecordBatch| RecordBatch::try_new(Arc::clone(&nullable), batch.columns().to_vec()).unwrap();
    let mut probe: Vec<RecordBatch> = probe.iter().map(widen).collect();
    probe.push(RecordBatch::try_new(Arc::clone(&nullable), random).unwrap());
    let mut outputs = vec![build.rows().cloned()];
    for kind in JoinType::ALL {
        let source = Source::from_batches(Arc::clone(&nullable), vec![probe.clone()]);
        let join = HashJoin::builder(Arc::clone(build.schema()), source).on(on.iter().map(|&key| (key, key)));
        let join = join.join_type(kind).null_equalities(build.null_equality().to_vec()).build();
        let join = join.and_then(|join| join.with_prepared_build(Arc::clone(build)));
        match join.and_then(|join| join.execute(0, &RunOptions { batch_size: 64, ..RunOptions::default() })) {
            Ok(stream) => outputs.extend(stream.take(1000)),
            Err(error) => outputs.push(Err(error)),
        }
    }
    for batch in outputs.iter().flatten() {
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
        // Reads every byte.
        arrow_row_like(batch);
    }
    let text = format!("{build:?} {:?} {:?}", build.bounds(), build.membership());
    assert!(!text.is_empty());
    outputs.into_iter().collect()
}

fn arrow_row_like(batch: &RecordBatch) {
    for column in batch.columns() {
        for row in 0..column.len() {
            let _ = arrays::value(column, row, false);
        }
    }
}

struct Section {
    entry: usize,
    offset: usize,
    length: usize,
}

/// Bytes of an entry of the section table: name, flags, checksum, offset, length.
const ENTRY: usize = 40;

fn name_of(file: &[u8], section: &Section) -> String {
    let name = file[section.entry..][..16].split(|&byte| byte == 0).next().unwrap();
    String::from_utf8(name.to_vec()).unwrap()
}

/// The section table, as described in docs/format.md.
fn sections(file: &[u8]) -> Vec<Section> {
    let u64_at = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let count = u32::from_le_bytes(file[24..28].try_into().unwrap()) as usize;
    let section = |entry| Section { entry, offset: u64_at(entry + 24), length: u64_at(entry + 32) };
    (0..count).map(|i| section(64 + ENTRY * i)).collect()
}

/// Computes all checksums again.
fn seal(file: &mut [u8]) {
    let sections = sections(file);
    for section in &sections {
        let checksum = crc32fast::hash(&file[section.offset..section.offset + section.length]);
        file[section.entry + 20..section.entry + 24].copy_from_slice(&checksum.to_le_bytes());
    }
    seal_header(file);
}

fn seal_header(file: &mut [u8]) {
    let size = (64 + ENTRY * sections(file).len()).next_multiple_of(64);
    file[28..32].fill(0);
    let checksum = crc32fast::hash(&file[..size]);
    file[28..32].copy_from_slice(&checksum.to_le_bytes());
}

fn saved(build: &PreparedBuild) -> Vec<u8> {
    let path = Temp::new();
    build.save(&path.0, &SaveOptions::default()).unwrap();
    fs::read(&path.0).unwrap()
}

fn open(bytes: &[u8], options: &OpenOptions) -> Result<Arc<PreparedBuild>> {
    PreparedBuild::open(&Temp::of(bytes).0, options)
}

/// B5: every kind of index and of groups gives the same rows from its file as in memory; saving an opened build gives
/// the same file.
#[test]
fn every_index_round_trips() {
    let mut kinds = Vec::new();
    for (name, build) in builds() {
        let bytes = saved(&build);
        let info = SavedInfo::read(&Temp::of(&bytes).0).unwrap();
        assert_eq!((info.num_rows, info.num_keys), (build.num_rows(), build.num_keys()), "{name}");
        assert_eq!(info.fingerprint, build.fingerprint().unwrap());
        assert_eq!(info.duplicates == 0, build.is_unique() || build.num_rows() == 0, "{name}");
        for options in [OpenOptions::default(), unverified()] {
            let opened = open(&bytes, &options).unwrap();
            assert_eq!(use_all(&opened).unwrap(), use_all(&build).unwrap(), "{name}");
            assert_eq!(saved(&opened), bytes, "{name}");
            assert_eq!((opened.has_null_key(), opened.is_unique()), (build.has_null_key(), build.is_unique()));
            assert_eq!(format!("{:?}", opened.bounds()), format!("{:?}", build.bounds()));
            assert_eq!(format!("{:?}", opened.membership()), format!("{:?}", build.membership()));
            let memory = opened.memory();
            assert_eq!((memory.mapped, memory.private), (bytes.len(), 0));
            assert_eq!((memory.index, memory.groups), (build.index().memory_size(), build.groups().memory_size()));
        }
        kinds.push(build.index_kind());
    }
    for kind in [IndexKind::Dense, IndexKind::Hashed, IndexKind::Bytes, IndexKind::Rows] {
        assert!(kinds.contains(&kind));
    }
}

/// B5: probing in place copies nothing: the columns and the index lie in the one mapping, each buffer at 64 bytes.
#[test]
fn rows_lie_in_the_file() {
    let (_, build) = builds().remove(0);
    let opened = open(&saved(&build), &OpenOptions::default()).unwrap();
    let mut addresses = Vec::new();
    for column in opened.rows().unwrap().columns() {
        let data = column.to_data();
        addresses.extend(data.buffers().iter().map(|buffer| buffer.as_ptr() as usize));
    }
    let (least, most) = (addresses.iter().min().unwrap(), addresses.iter().max().unwrap());
    assert!(most - least < opened.memory().mapped);
    assert!(addresses.iter().all(|address| address.is_multiple_of(64)));
}

/// B5: a file that is cut anywhere, also within the header, is refused, with and without verification.
#[test]
fn cut_files_are_refused() {
    for (name, build) in builds() {
        let bytes = saved(&build);
        let cuts = (0..64).map(|i| bytes.len() * i / 64).chain([1, 7, 8, 63, 64, bytes.len() - 1, bytes.len() - 64]);
        for cut in cuts {
            for options in [OpenOptions::default(), unverified()] {
                let error = open(&bytes[..cut], &options).unwrap_err();
                assert!(matches!(error, Error::Damaged(_)), "{name} cut at {cut}: {error:?}");
            }
        }
        let longer = [bytes.as_slice(), &[0; 64]].concat();
        assert!(open(&longer, &unverified()).is_err());
    }
}

/// B5: any byte that changes is found, in the header, in each section and between sections.
#[test]
fn flipped_bytes_are_found() {
    for (name, build) in builds() {
        let bytes = saved(&build);
        let mut places: Vec<usize> = (0..bytes.len().min(600)).collect();
        for Section { offset, length, .. } in sections(&bytes) {
            places.extend([offset, offset + length / 3, offset + length / 2, (offset + length).saturating_sub(1)]);
            places.extend((offset + length..(offset + length).next_multiple_of(64)).take(1));
        }
        for place in places.into_iter().filter(|&place| place < bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x20;
            let error = open(&damaged, &OpenOptions::default()).expect_err(&format!("{name}: byte {place}"));
            assert!(matches!(error, Error::Damaged(_) | Error::NotSupported(_)), "{name}: {error:?}");
        }
    }
}

/// B5: swapped sections are refused, whether their names or their bytes were swapped.
#[test]
fn swapped_sections_are_refused() {
    for (name, build) in builds() {
        let bytes = saved(&build);
        let sections = sections(&bytes);
        for a in 0..sections.len() {
            for b in 0..a {
                let mut renamed = bytes.clone();
                let (a, b) = (&sections[a], &sections[b]);
                for i in 0..16 {
                    renamed.swap(a.entry + i, b.entry + i);
                }
                seal_header(&mut renamed);
                assert!(open(&renamed, &OpenOptions::default()).is_err(), "{name}");
                if let Ok(build) = open(&renamed, &unverified()) {
                    let _ = use_all(&build);
                }
                let mut moved = bytes.clone();
                for i in 0..ENTRY {
                    moved.swap(a.entry + i, b.entry + i);
                }
                seal_header(&mut moved);
                for options in [OpenOptions::default(), unverified()] {
                    assert!(open(&moved, &options).is_err(), "{name}");
                }
            }
        }
    }
}

/// B5: verification finds row numbers, groups and offsets out of range even if the checksums are right.
#[test]
fn numbers_out_of_range_are_refused() {
    let mut refused = 0;
    for (name, build) in builds() {
        let bytes = saved(&build);
        for section in sections(&bytes) {
            let (kind, Section { offset, length, .. }) = (name_of(&bytes, &section), section);
            // Every number of each.
            let width = match kind.as_str() {
                "directory" | "bits" | "key_offsets" => 8,
                "tuples" | "group_offsets" | "group_rows" => 4,
                _ => continue,
            };
            for at in (offset..offset + length).step_by(width) {
                let mut hostile = bytes.clone();
                hostile[at..at + width].fill(0x7f);
                seal(&mut hostile);
                match open(&hostile, &OpenOptions::default()) {
                    // A lane of a key is any number.
                    Ok(build) if kind == "tuples" => _ = use_all(&build),
                    Ok(_) => panic!("{name}: a number of section {kind} at {at}"),
                    Err(error) => {
                        refused += 1;
                        assert!(matches!(error, Error::Damaged(_)), "{name}: {error:?}");
                    }
                }
            }
        }
    }
    assert!(refused > 1000);
}

/// How many hostile files are tried: `PREJOIN_MUTATIONS`.
fn mutations() -> u32 {
    std::env::var("PREJOIN_MUTATIONS").ok().and_then(|number| number.parse().ok()).unwrap_or(600)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: mutations(), ..ProptestConfig::default() })]

    /// B5: random damage with right checksums gives an error or valid arrays.
    #[test]
    fn hostile_files_do_no_harm(seed: u64) {
        thread_local!(static FILES: Vec<Vec<u8>> = builds().iter().map(|(_, build)| saved(build)).collect());
        let mut rng = Rng(seed);
        let mut file = FILES.with(|files| files[rng.below(files.len())].clone());
        let sections = sections(&file);
        for _ in 0..1 + rng.below(3) {
            // The header once in a while.
            let (offset, length) = match rng.below(12) {
                0 => (16, 48 + ENTRY * sections.len()),
                _ => {
                    let section = &sections[rng.below(sections.len())];
                    (section.offset, section.length)
                }
            };
            if length == 0 {
                continue;
            }
            let at = offset + rng.below(length);
            let width = [1, 2, 4, 8][rng.below(4)].min(offset + length - at);
            let number: u64 = match rng.below(6) {
                0 => 0,
                1 => u64::MAX,
                2 => i64::MAX as u64,
                3 => rng.below(400) as u64,
                4 => 1 << rng.below(64),
                _ => rng.below(usize::MAX) as u64,
            };
            file[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        }
        // A header that was hit may list too much.
        if sections_are_inside(&file) {
            seal(&mut file);
        }
        for options in [OpenOptions::default(), unverified()] {
            match open(&file, &options) {
                Ok(build) => {
                    let used = use_all(&build);
                    let known = |error: &Error| {
                        matches!(
                            error,
                            Error::Damaged(_) | Error::Plan(_) | Error::Arrow(_) | Error::Internal(_)
                                | Error::NotSupported(_) | Error::ResourcesExhausted(_)
                        )
                    };
                    prop_assert!(used.as_ref().err().is_none_or(known), "{:?}", used.err());
                }
                Err(error) => {
                    prop_assert!(matches!(error, Error::Damaged(_) | Error::NotSupported(_)), "{:?}", error);
                }
            }
        }
    }
}

fn sections_are_inside(file: &[u8]) -> bool {
    let count = u32::from_le_bytes(file[24..28].try_into().unwrap()) as usize;
    count < 64
        && sections(file)
            .iter()
            .all(|section| section.offset.checked_add(section.length).is_some_and(|end| end <= file.len()))
}

/// B5: the error for a file that is not a saved build says what it seems to be.
#[test]
fn other_files_are_refused() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let refusal = |path: &Path| {
        let error = PreparedBuild::open(path, &OpenOptions::default()).unwrap_err();
        assert!(SavedInfo::read(path).is_err());
        error
    };
    let io_kind = |error: Error| match error {
        Error::External(error) => error.downcast::<std::io::Error>().unwrap().kind(),
        other => panic!("{other:?}"),
    };
    assert_eq!(io_kind(refusal(&dir.join("saved-missing"))), std::io::ErrorKind::NotFound);
    assert_eq!(io_kind(refusal(dir)), std::io::ErrorKind::IsADirectory);
    for (bytes, text) in [
        (&b""[..], "it is empty"),
        (b"\x89PJ", "it is cut"),
        (b"ARROW1\0\0 something else altogether, and longer than a header of 64 bytes is ....", "another file"),
    ] {
        let error = refusal(&Temp::of(bytes).0);
        assert!(matches!(&error, Error::Damaged(found) if found.contains(text)), "{error:?}");
    }
    for (version, advice) in [(1, "prejoin prepare --build"), (9, "update prejoin")] {
        let mut other = saved(&builds()[1].1);
        other[8] = version;
        seal_header(&mut other);
        let error = open(&other, &OpenOptions::default()).unwrap_err().to_string();
        let says = error.contains(&format!("format version {version}")) && error.contains(advice);
        assert!(says && error.contains("reads versions 2 to 2"), "{error}");
    }
    let mut turned = saved(&builds()[1].1);
    turned[12..16].reverse();
    seal_header(&mut turned);
    let error = open(&turned, &OpenOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::NotSupported(text) if text.contains("byte order")), "{error:?}");
}

/// `file` with one more section at its end.
fn with_section(file: &[u8], name: &[u8], flags: u32, content: &[u8]) -> Vec<u8> {
    let old = sections(file);
    let first = old[0].offset;
    let size = |sections: usize| (64 + ENTRY * sections).next_multiple_of(64);
    let shift = size(old.len() + 1) - size(old.len());
    let mut out = file[..64 + ENTRY * old.len()].to_vec();
    for section in &old {
        out[section.entry + 24..][..8].copy_from_slice(&((section.offset + shift) as u64).to_le_bytes());
    }
    out.extend(name);
    out.resize(64 + ENTRY * old.len() + 16, 0);
    out.extend(flags.to_le_bytes());
    out.extend([0; 4]);
    out.extend(((file.len() + shift) as u64).to_le_bytes());
    out.extend((content.len() as u64).to_le_bytes());
    out.resize(first + shift, 0);
    out.extend(&file[first..]);
    out.extend(content);
    out.resize(out.len().next_multiple_of(64), 0);
    let (length, count) = (out.len() as u64, old.len() as u32 + 1);
    out[16..24].copy_from_slice(&length.to_le_bytes());
    out[24..28].copy_from_slice(&count.to_le_bytes());
    seal(&mut out);
    out
}

/// B5: a section that this version does not know is passed over, and kept by a copy, unless the file says that a reader has
/// to know it.
#[test]
fn unknown_sections_are_skipped_or_refused() {
    for (name, build) in builds() {
        let bytes = saved(&build);
        let optional = with_section(&bytes, b"from_the_future", 0, b"anything");
        let required = with_section(&bytes, b"from_the_future", 1, b"anything");
        for options in [OpenOptions::default(), unverified()] {
            let opened = open(&optional, &options).unwrap();
            assert_eq!(use_all(&opened).unwrap(), use_all(&build).unwrap(), "{name}");
            assert_eq!(saved(&opened), optional, "{name}");
            let error = open(&required, &options).unwrap_err();
            let known = matches!(&error, Error::NotSupported(text) if text.contains("\"from_the_future\""));
            assert!(known && error.to_string().contains("update prejoin"), "{error:?}");
        }
        // A name twice, and a flag that no version has.
        for other in [with_section(&bytes, b"rows", 0, b""), with_section(&bytes, b"from_the_future", 2, b"")] {
            assert!(matches!(open(&other, &unverified()), Err(Error::Damaged(_))), "{name}");
        }
    }
}

/// B6: a file says which snapshot it holds; nothing else in it depends on that, and a copy may say another one.
#[test]
fn files_carry_their_snapshot() {
    use std::time::{Duration, UNIX_EPOCH};
    let snapshots = [
        (Some("7"), UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456)),
        (None, UNIX_EPOCH - Duration::from_micros(1)),
    ];
    for (name, build) in builds() {
        let plain = saved(&build);
        assert_eq!(open(&plain, &unverified()).unwrap().snapshot(), None);
        for (version, loaded_at) in snapshots {
            let snapshot = Snapshot { name: "users".into(), version: version.map(str::to_owned), loaded_at };
            let path = Temp::new();
            build.save(&path.0, &SaveOptions { snapshot: Some(snapshot.clone()), ..SaveOptions::default() }).unwrap();
            let opened = PreparedBuild::open(&path.0, &OpenOptions::default()).unwrap();
            assert_eq!(opened.snapshot(), Some(&snapshot), "{name}");
            assert_eq!(SavedInfo::read(&path.0).unwrap().snapshot, Some(snapshot.clone()));
            assert_eq!(saved(&opened), fs::read(&path.0).unwrap());
            let other = Snapshot { name: "others".into(), ..snapshot };
            let copy = Temp::new();
            opened.save(&copy.0, &SaveOptions { snapshot: Some(other.clone()), ..SaveOptions::default() }).unwrap();
            let copied = PreparedBuild::open(&copy.0, &OpenOptions::default()).unwrap();
            assert_eq!(copied.snapshot(), Some(&other));
            assert_eq!(use_all(&copied).unwrap(), use_all(&build).unwrap());
            assert_eq!(copied.fingerprint().unwrap(), build.fingerprint().unwrap());
        }
    }
}

/// B5: saving replaces the file as a whole: those who have the old one open keep it, and opening it again gives the new
/// one.
#[test]
fn readers_keep_the_file_that_they_opened() {
    let builds = builds();
    let (old, new) = (&builds[1].1, &builds[6].1);
    let path = Temp::new();
    old.save(&path.0, &SaveOptions::default()).unwrap();
    let before = PreparedBuild::open(&path.0, &OpenOptions::default()).unwrap();
    let lazy = PreparedBuild::open(&path.0, &unverified()).unwrap();
    new.save(&path.0, &SaveOptions::default()).unwrap();
    let after = PreparedBuild::open(&path.0, &OpenOptions::default()).unwrap();
    for opened in [before, lazy] {
        assert_eq!(use_all(&opened).unwrap(), use_all(old).unwrap());
    }
    assert_eq!(use_all(&after).unwrap(), use_all(new).unwrap());
    fs::remove_file(&path.0).unwrap();
    assert_eq!(use_all(&after).unwrap(), use_all(new).unwrap());
}

/// B5: a save that fails leaves no new file and does not change the old one.
#[test]
fn a_failed_save_leaves_nothing() {
    let dir = Temp::new();
    fs::create_dir(&dir.0).unwrap();
    let inner: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0]), texts(1, |_| None)));
    let nested: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0]), inner));
    let unsaved =
        prepare(vec![int64([Some(1)]), nested], 1, NullEquality::NullEqualsNothing, PrepareOptions::default());
    let error = unsaved.save(dir.0.join("a"), &SaveOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::NotSupported(text) if text.contains("Arrow IPC does not carry")), "{error:?}");
    // A directory of that name is in the way.
    fs::create_dir_all(dir.0.join("b/full")).unwrap();
    let build = &builds()[1].1;
    assert!(matches!(build.save(dir.0.join("b"), &SaveOptions::default()), Err(Error::External(_))));
    assert!(matches!(build.save(dir.0.join("no/such"), &SaveOptions::default()), Err(Error::External(_))));
    let left: Vec<_> = fs::read_dir(&dir.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["b"]);
    fs::remove_dir_all(&dir.0).unwrap();
}

/// B5: a file is private unless a mode is given.
#[cfg(unix)]
#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (path, build) = (Temp::new(), &builds()[1].1);
    let mode = || fs::metadata(&path.0).unwrap().permissions().mode() & 0o777;
    build.save(&path.0, &SaveOptions::default()).unwrap();
    assert_eq!(mode(), 0o600);
    build.save(&path.0, &SaveOptions { mode: Some(0o644), ..SaveOptions::default() }).unwrap();
    assert_eq!(mode(), 0o644);
    build.save(&path.0, &SaveOptions::default()).unwrap();
    assert_eq!(mode(), 0o644, "who replaces a file keeps its mode");
}

/// An empty directory that is removed at the end of the test.
fn directory() -> Temp {
    let dir = Temp::new();
    fs::create_dir(&dir.0).unwrap();
    dir
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A cancel signal that stops the work at check number `at`, counted from 0.
fn stop_at(at: usize) -> (Cancel, Arc<AtomicUsize>) {
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let hook = move || match counted.fetch_add(1, Ordering::Relaxed) >= at {
        true => Err(Error::External("stop".into())),
        false => Ok(()),
    };
    (Cancel::with_hook(hook), polls)
}

/// Runs `work` repeatedly, stopped at each of its first checks of the signal and at some of the later ones, and tests
/// each time what is left. Returns the number of checks.
fn stopped_at_polls<T>(work: impl Fn(Cancel) -> Result<T>, check: impl Fn()) -> usize {
    let mut at = 0;
    loop {
        let (cancel, polls) = stop_at(at);
        match work(cancel) {
            Ok(_) => return polls.load(Ordering::Relaxed),
            Err(Error::External(error)) => assert_eq!(error.to_string(), "stop"),
            Err(other) => panic!("{other:?}"),
        }
        assert_eq!(polls.load(Ordering::Relaxed), at + 1, "what was told to stop asked again");
        check();
        at += 1 + at / 4;
    }
}

/// Saving, opening, sharing and fingerprints check their signal at least once per MiB and stop with its error; no file
/// and no charge is left.
#[test]
fn long_calls_stop_at_their_cancel_signal() {
    let rows = 300_000;
    let texts = || texts(rows, |i| (i % 5 != 0).then(|| format!("текст {i}")));
    let keys = || int64((0..rows).map(|i| Some(i * 7919)));
    let list = Arc::new(arrow_array::ListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..rows).map(|i| Some((0..i % 4).map(Some))),
    ));
    let fresh = |columns, keys| prepare(columns, keys, NullEquality::NullEqualsNothing, PrepareOptions::default());
    for build in [fresh(vec![keys(), texts(), list], 1), fresh(vec![texts(), keys()], 2)] {
        let mib = saved(&build).len() >> 20;
        let dir = directory();
        let path = dir.0.join("build");
        let saves = stopped_at_polls(
            |cancel| build.save(&path, &SaveOptions { cancel, ..SaveOptions::default() }),
            || assert!(entries(&dir.0).is_empty()),
        );
        // Written, and read back.
        assert!(saves > 2 * mib, "{saves} polls for {mib} MiB");
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        for memory in [false, true] {
            let opens = stopped_at_polls(
                |cancel| {
                    let options = OpenOptions { cancel, memory, pool: Some(Arc::clone(&pool)), verify: true };
                    PreparedBuild::open(&path, &options)
                },
                || assert_eq!(pool.reserved(), 0),
            );
            assert!(opens > mib * if memory { 2 } else { 1 }, "{opens} polls for {mib} MiB");
        }
        let shares = stopped_at_polls(|cancel| build.share_with(None, &cancel), || ());
        assert!(shares > 2 * mib, "{shares} polls for {mib} MiB");
        fs::remove_dir_all(&dir.0).unwrap();
    }
    let unknown = || fresh(vec![keys(), texts()], 1);
    let prints = stopped_at_polls(|cancel| unknown().fingerprint_with(&cancel), || ());
    assert!(prints > 100, "{prints} polls");
}

/// A build can be saved under any name that the file system accepts, and through a link to a file that does not exist
/// yet.
#[cfg(unix)]
#[test]
fn long_names_and_dangling_links() {
    use std::os::unix::fs::symlink;
    let (dir, build) = (directory(), &builds()[1].1);
    let long = "x".repeat(255);
    build.save(dir.0.join(&long), &SaveOptions::default()).unwrap();
    assert_eq!(entries(&dir.0), [long.as_str()]);
    fs::remove_file(dir.0.join(&long)).unwrap();
    fs::create_dir(dir.0.join("below")).unwrap();
    symlink("below/second", dir.0.join("first")).unwrap();
    symlink("real", dir.0.join("below/second")).unwrap();
    for _ in 0..2 {
        build.save(dir.0.join("first"), &SaveOptions::default()).unwrap();
        assert_eq!(entries(&dir.0), ["below", "first"]);
        assert_eq!(entries(&dir.0.join("below")), ["real", "second"]);
        assert!(fs::symlink_metadata(dir.0.join("first")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(dir.0.join("below/second")).unwrap().is_symlink());
    }
    symlink("circle", dir.0.join("circle")).unwrap();
    symlink("no/such/directory", dir.0.join("nowhere")).unwrap();
    for name in ["circle", "nowhere"] {
        let error = build.save(dir.0.join(name), &SaveOptions::default()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(entries(&dir.0), ["below", "circle", "first", "nowhere"]);
    fs::remove_dir_all(&dir.0).unwrap();
}

/// A copy in memory is charged, and later changes of the file do not affect it.
#[test]
fn a_copy_in_memory_outlives_any_change_of_its_file() {
    for (name, build) in builds() {
        let bytes = saved(&build);
        let path = Temp::of(&bytes);
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(bytes.len()));
        let in_memory = |pool: &Arc<dyn Pool>, verify| OpenOptions {
            verify,
            pool: Some(Arc::clone(pool)),
            memory: true,
            ..OpenOptions::default()
        };
        for verify in [true, false] {
            fs::write(&path.0, &bytes).unwrap();
            let opened = PreparedBuild::open(&path.0, &in_memory(&pool, verify)).unwrap();
            assert_eq!((opened.memory().private, opened.memory().mapped), (bytes.len(), 0), "{name}");
            assert_eq!((pool.reserved(), opened.reserved_bytes()), (bytes.len(), bytes.len()), "{name}");
            fs::write(&path.0, vec![0xff; bytes.len()]).unwrap();
            fs::write(&path.0, b"").unwrap();
            assert_eq!(use_all(&opened).unwrap(), use_all(&build).unwrap(), "{name}");
            assert_eq!(saved(&opened), bytes, "{name}");
            drop(opened);
            assert_eq!(pool.reserved(), 0, "{name}");
        }
        fs::write(&path.0, &bytes).unwrap();
        let small: Arc<dyn Pool> = Arc::new(MemoryPool::new(bytes.len() - 1));
        let refused = PreparedBuild::open(&path.0, &in_memory(&small, true));
        assert!(matches!(refused, Err(Error::ResourcesExhausted(_))), "{name}");
        assert_eq!(small.reserved(), 0, "{name}");
        // What is no build is not read whole first, nor charged.
        fs::write(&path.0, vec![b'a'; bytes.len()]).unwrap();
        let foreign = PreparedBuild::open(&path.0, &in_memory(&small, true)).unwrap_err();
        assert!(foreign.to_string().contains("another file"), "{foreign}");
    }
}

/// What a handle leads to is checked: pipes, devices, memory that is not sealed and other builds are refused.
#[cfg(target_os = "linux")]
#[test]
fn only_sealed_memory_of_the_right_build_is_attached() {
    let (_, build) = builds().remove(6);
    let shared = build.share().unwrap();
    let file = Temp::of(&saved(&build));
    let pipe = Temp::new();
    let made = std::process::Command::new("mkfifo").arg(&pipe.0).status().unwrap();
    assert!(made.success());
    for path in [&file.0, &pipe.0, Path::new("/dev/zero"), Path::new("/dev/tty"), Path::new("/proc/self/fd")] {
        let error = prejoin::SharedBuild::attach(path, shared.fingerprint()).unwrap_err();
        assert!(error.to_string().contains("something else is in the place"), "{}: {error}", path.display());
    }
    let other = prejoin::SharedBuild::attach(shared.path(), shared.fingerprint() ^ 1).unwrap_err();
    assert!(other.to_string().contains("something else is in the place"), "{other}");
}

/// B5, S19: mapped bytes are charged if a pool is given, once however often the file is opened, and given back with the
/// last build; if the pool refuses, opening fails.
#[test]
fn mapped_bytes_are_charged_once() {
    let (path, build) = (Temp::new(), &builds()[0].1);
    build.save(&path.0, &SaveOptions::default()).unwrap();
    let size = fs::metadata(&path.0).unwrap().len() as usize;
    let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(size));
    let paid = OpenOptions { pool: Some(Arc::clone(&pool)), ..OpenOptions::default() };
    let free = PreparedBuild::open(&path.0, &OpenOptions::default()).unwrap();
    assert_eq!((pool.reserved(), free.reserved_bytes()), (0, 0));
    let first = PreparedBuild::open(&path.0, &paid).unwrap();
    let second = PreparedBuild::open(&path.0, &paid).unwrap();
    assert_eq!((pool.reserved(), second.reserved_bytes()), (size, size));
    drop(first);
    assert_eq!(pool.reserved(), size);
    drop(second);
    assert_eq!(pool.reserved(), 0);
    let small: Arc<dyn Pool> = Arc::new(MemoryPool::new(size - 1));
    let refused =
        PreparedBuild::open(&path.0, &OpenOptions { pool: Some(Arc::clone(&small)), ..OpenOptions::default() });
    assert!(matches!(refused, Err(Error::ResourcesExhausted(_))));
    assert_eq!(small.reserved(), 0);
}

/// Fingerprints differ if rows, duplicates, nulls, schema, keys or null equality differ; order and encoding do not
/// matter.
#[test]
fn fingerprints_tell_contents() {
    let of = |columns: Vec<ArrayRef>, keys, nulls| {
        prepare(columns, keys, nulls, PrepareOptions::default()).fingerprint().unwrap()
    };
    let nothing = NullEquality::NullEqualsNothing;
    let ints = |values: &[i64]| int64(values.iter().copied().map(Some));
    let base = of(vec![ints(&[1, 2, 3]), ints(&[4, 5, 6])], 1, nothing);
    assert_eq!(base, of(vec![ints(&[3, 1, 2]), ints(&[6, 4, 5])], 1, nothing));
    let others = [
        of(vec![ints(&[1, 2, 3]), ints(&[4, 6, 5])], 1, nothing),
        of(vec![ints(&[4, 5, 6]), ints(&[1, 2, 3])], 1, nothing),
        of(vec![ints(&[1, 2, 3, 3]), ints(&[4, 5, 6, 6])], 1, nothing),
        of(vec![ints(&[1, 2]), ints(&[4, 5])], 1, nothing),
        of(vec![ints(&[1, 2, 3]), int64([Some(4), Some(5), None])], 1, nothing),
        of(vec![ints(&[1, 2, 3]), ints(&[4, 5, 6])], 2, nothing),
        of(vec![ints(&[1, 2, 3]), ints(&[4, 5, 6])], 1, NullEquality::NullEqualsNull),
        of(vec![ints(&[1, 2, 3]), Arc::new(UInt64Array::from(vec![4, 5, 6]))], 1, nothing),
        of(vec![ints(&[1, 2, 3])], 1, nothing),
    ];
    let mut distinct = others.to_vec();
    distinct.push(base);
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), others.len() + 1);
    let coded = |keys: &[i32], values: &[&str]| -> ArrayRef {
        let values: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(keys.to_vec()), values))
    };
    let (one, other) = (coded(&[0, 1, 0], &["a", "b"]), coded(&[2, 0, 2], &["b", "unused", "a"]));
    assert_eq!(of(vec![one], 1, nothing), of(vec![other], 1, nothing));
    let spread = texts(1000, |i| Some(format!("{i}")));
    let sliced = texts(3000, |i| Some(format!("{}", i - 700))).slice(700, 1000);
    assert_eq!(of(vec![spread], 1, nothing), of(vec![sliced], 1, nothing));
}

/// B5: another process can open a shared build by path and fingerprint for as long as a handle lives; its memory is
/// charged to the pool of the build and cannot be changed.
#[test]
fn a_shared_build_opens_through_its_handle() {
    let (_, build) = builds().remove(6);
    let shared = build.share().unwrap();
    let attached = prejoin::SharedBuild::attach(shared.path(), shared.fingerprint()).unwrap();
    for options in [OpenOptions::default(), unverified()] {
        let opened = attached.open(&options).unwrap();
        assert_eq!(use_all(&opened).unwrap(), use_all(&build).unwrap());
        assert_eq!((opened.path(), opened.memory().private), (None, 0));
    }
    let opened = shared.open(&OpenOptions::default()).unwrap();
    let path = shared.path();
    #[cfg(target_os = "linux")]
    assert!(
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write(&mut file, b"x"))
            .is_err()
    );
    let wrong = prejoin::SharedBuild::attach(&path, shared.fingerprint() ^ 1).unwrap_err();
    assert!(matches!(wrong, Error::Damaged(_)), "{wrong:?}");
    drop(shared);
    // The build outlives all handles.
    drop(attached);
    assert_eq!(use_all(&opened).unwrap(), use_all(&build).unwrap());
    let gone = prejoin::SharedBuild::attach("/proc/self/fd/999999", 0).unwrap_err();
    assert!(gone.to_string().contains("is gone"), "{gone}");
}

/// The rows are an Arrow IPC file at the place that the header names.
#[test]
fn rows_are_an_ipc_file() {
    let (_, build) = builds().remove(0);
    let path = Temp::of(&saved(&build));
    let range = SavedInfo::read(&path.0).unwrap().rows;
    let bytes = fs::read(&path.0).unwrap()[range.start as usize..range.end as usize].to_vec();
    let reader = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    let read = reader.collect::<std::result::Result<Vec<_>, _>>().unwrap();
    assert_eq!(read, std::slice::from_ref(build.rows().unwrap()));
    assert_eq!(read[0].column(0).as_primitive::<Int64Type>().value(3), 3);
}
