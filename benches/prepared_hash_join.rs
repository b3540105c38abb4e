//! What a prepared build saves (S50). The same joins are timed with a new build for each (rebuild), with one build that
//! is prepared within the timed part (cold), and with one prepared before it (warm). Two more cases show what cannot be
//! saved: gathering the output columns by known rows (take), and the tasks without any join (empty: spawn, barrier,
//! join).
//!
//! `cargo bench --bench prepared_hash_join`; a table of ratios follows the last case.

use std::fmt;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use criterion::{BenchmarkId, Criterion};
use prejoin::{BatchStream, Config, HashJoin, MemoryPool, Pool, PreparedBuild, RunOptions, Source};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Barrier;

const PROBE_ROWS: usize = 4096;
const MATCHES: usize = PROBE_ROWS / 2;
const BUILD_BATCH: usize = 8192;
const WORKERS: usize = 4;
/// The number of different probe batches, so that the processor cannot learn a single batch.
const BATCHES: usize = 64;
const GROUP: &str = "prepared_hash_join";

#[derive(Clone, Copy, PartialEq)]
enum Keys {
    /// `i * 17`, with the index that the default configuration chooses.
    Int64,
    /// The same keys with the dense index turned off.
    Int64Hashed,
    /// `key-%08d`.
    Utf8,
}

impl Keys {
    fn column(self, indices: impl Iterator<Item = usize>) -> ArrayRef {
        match self {
            Keys::Int64 | Keys::Int64Hashed => Arc::new(Int64Array::from_iter_values(indices.map(|i| i as i64 * 17))),
            Keys::Utf8 => Arc::new(StringArray::from_iter_values(indices.map(|i| format!("key-{i:08}")))),
        }
    }

    fn schema(self) -> SchemaRef {
        let key = if self == Keys::Utf8 { DataType::Utf8 } else { DataType::Int64 };
        Arc::new(Schema::new(vec![Field::new("key", key, false), Field::new("payload", DataType::Int64, false)]))
    }

    fn config(self) -> Config {
        match self {
            Keys::Int64Hashed => {
                Config { perfect_hash_min_density: 2.0, perfect_hash_small_range: 0, ..Config::default() }
            }
            _ => Config::default(),
        }
    }

    fn batch(self, indices: impl Iterator<Item = usize> + Clone, payload: impl Iterator<Item = usize>) -> RecordBatch {
        let payload = Int64Array::from_iter_values(payload.map(|i| i as i64));
        RecordBatch::try_new(self.schema(), vec![self.column(indices), Arc::new(payload)]).unwrap()
    }
}

#[derive(Clone, Copy)]
struct Shape {
    keys: Keys,
    rows: usize,
    consumers: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = match self.keys {
            Keys::Int64 => "int64",
            Keys::Int64Hashed => "int64_hashed",
            Keys::Utf8 => "utf8",
        };
        write!(f, "{keys}_{}_rows_{}_consumers", self.rows, self.consumers)
    }
}

/// A probe batch and the rows of its matches.
struct Probe {
    batch: RecordBatch,
    probe_rows: UInt32Array,
    build_rows: UInt32Array,
}

impl Probe {
    /// A batch that probes the keys with these numbers; those below `rows` match.
    fn new(keys: Keys, rows: usize, indices: &[usize]) -> Self {
        let matches = || indices.iter().enumerate().filter(|&(_, &index)| index < rows);
        Self {
            batch: keys.batch(indices.iter().copied(), 0..indices.len()),
            probe_rows: UInt32Array::from_iter_values(matches().map(|(row, _)| row as u32)),
            build_rows: UInt32Array::from_iter_values(matches().map(|(_, &index)| index as u32)),
        }
    }

    /// The sums of both payloads over all matches; the build payload is the number of the build row.
    fn payload_sum(&self) -> i64 {
        [&self.build_rows, &self.probe_rows]
            .iter()
            .flat_map(|rows| rows.values().iter())
            .map(|&row| i64::from(row))
            .sum()
    }
}

/// Everything that is made before the timed part.
struct Inputs {
    shape: Shape,
    build: Vec<RecordBatch>,
    build_rows: RecordBatch,
    probes: Vec<Probe>,
    pool: Arc<dyn Pool>,
    options: RunOptions,
    /// The number of the next probe batch.
    turn: AtomicUsize,
}

impl Inputs {
    fn new(shape: Shape, probes: Vec<Probe>) -> Arc<Self> {
        let Shape { keys, rows, .. } = shape;
        let cut = |from: usize| from..rows.min(from + BUILD_BATCH);
        let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
        let options = RunOptions { pool: Arc::clone(&pool), config: keys.config(), ..RunOptions::default() };
        Arc::new(Self {
            shape,
            build: (0..rows).step_by(BUILD_BATCH).map(|from| keys.batch(cut(from), cut(from))).collect(),
            build_rows: keys.batch(0..rows, 0..rows),
            probes,
            pool,
            options,
            turn: AtomicUsize::new(0),
        })
    }

    /// The batch of the specification: keys in order, and every second probe row without a match.
    fn one_batch(shape: Shape) -> Arc<Self> {
        let indices: Vec<usize> = (0..PROBE_ROWS).map(|i| (i / 2) % shape.rows + (i % 2) * shape.rows).collect();
        Self::new(shape, vec![Probe::new(shape.keys, shape.rows, &indices)])
    }

    /// Batches of random keys in random order, of which half match.
    fn many_batches(shape: Shape) -> Arc<Self> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as usize % below
        };
        let mut batch = || {
            let mut indices: Vec<usize> = (0..PROBE_ROWS).map(|i| random(shape.rows) + (i % 2) * shape.rows).collect();
            (1..PROBE_ROWS).rev().for_each(|i| indices.swap(i, random(i + 1)));
            Probe::new(shape.keys, shape.rows, &indices)
        };
        Self::new(shape, (0..BATCHES).map(|_| batch()).collect())
    }

    fn one_row(shape: Shape) -> Arc<Self> {
        Self::new(shape, vec![Probe::new(shape.keys, shape.rows, &[shape.rows / 2])])
    }

    fn prepare(&self) -> Arc<PreparedBuild> {
        let schema = self.shape.keys.schema();
        let join = HashJoin::builder(schema.clone(), schema.clone()).on([("key", "key")]).build().unwrap();
        let input = BatchStream::from_batches(schema, self.build.clone());
        join.prepare_build(input, &self.pool, self.options.config.clone()).unwrap()
    }

    /// Makes and drains the join of one consumer, attached to `prepared` if there is one.
    fn join(&self, probe: &Probe, prepared: Option<Arc<PreparedBuild>>) -> Vec<RecordBatch> {
        let schema = self.shape.keys.schema();
        let probe = Source::from_batches(schema.clone(), vec![vec![probe.batch.clone()]]);
        let join = match prepared {
            Some(prepared) => {
                let join = HashJoin::builder(schema, probe).on([("key", "key")]).build().unwrap();
                join.with_prepared_build(prepared).unwrap()
            }
            None => {
                let build = Source::from_batches(schema, vec![self.build.clone()]);
                HashJoin::builder(build, probe).on([("key", "key")]).build().unwrap()
            }
        };
        join.execute(0, &self.options).unwrap().map(Result::unwrap).collect()
    }

    /// Gathers the output columns of a join by known rows.
    fn take(&self, probe: &Probe) -> Vec<ArrayRef> {
        let take = |batch: &RecordBatch, rows: &UInt32Array| {
            batch.columns().iter().map(|column| take(column, rows, None).unwrap()).collect::<Vec<_>>()
        };
        [take(&self.build_rows, &probe.build_rows), take(&probe.batch, &probe.probe_rows)].concat()
    }
}

#[derive(Clone)]
enum Work {
    Empty,
    Take,
    Rebuild,
    Cold,
    Warm(Arc<PreparedBuild>),
}

/// One round: every consumer is a task, and all of them start at once.
fn round(runtime: &Runtime, inputs: &Arc<Inputs>, work: &Work) -> Vec<Vec<RecordBatch>> {
    let work = match work {
        Work::Cold => Work::Warm(inputs.prepare()),
        other => other.clone(),
    };
    let consumers = inputs.shape.consumers;
    runtime.block_on(async {
        let barrier = Arc::new(Barrier::new(consumers));
        let tasks: Vec<_> = (0..consumers)
            .map(|_| {
                let (inputs, work, barrier) = (Arc::clone(inputs), work.clone(), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    let turn = inputs.turn.fetch_add(1, Ordering::Relaxed);
                    let probe = &inputs.probes[turn % inputs.probes.len()];
                    match work {
                        Work::Empty => vec![],
                        Work::Take => {
                            black_box(inputs.take(probe));
                            vec![]
                        }
                        Work::Warm(prepared) => inputs.join(probe, Some(prepared)),
                        Work::Rebuild | Work::Cold => inputs.join(probe, None),
                    }
                })
            })
            .collect();
        let mut outputs = Vec::with_capacity(consumers);
        for task in tasks {
            outputs.push(task.await.unwrap());
        }
        outputs
    })
}

/// Checks the rows and payload sums of a round before anything is timed, and for a single batch all columns, against
/// `take`.
fn check(runtime: &Runtime, inputs: &Arc<Inputs>, work: &Work) {
    inputs.turn.store(0, Ordering::Relaxed);
    let outputs = round(runtime, inputs, work);
    let expected = (0..inputs.shape.consumers).map(|turn| &inputs.probes[turn % inputs.probes.len()]);
    let rows: usize = outputs.iter().flatten().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, expected.clone().map(|probe| probe.build_rows.values().len()).sum::<usize>());
    let sum = |column: &ArrayRef| column.as_primitive::<Int64Type>().values().iter().sum::<i64>();
    let sums: i64 = outputs.iter().flatten().map(|batch| sum(batch.column(1)) + sum(batch.column(3))).sum();
    assert_eq!(sums, expected.map(Probe::payload_sum).sum::<i64>());
    if let [probe] = inputs.probes.as_slice() {
        assert!(outputs.iter().flatten().all(|batch| batch.columns() == inputs.take(probe)));
    }
}

fn main() {
    let started = SystemTime::now();
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("criterion");
    let mut criterion = Criterion::default()
        .output_directory(&home)
        .without_plots()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).build().unwrap();

    let mut report = Report { home, started, lines: vec![], bars: vec![] };
    for keys in [Keys::Int64, Keys::Int64Hashed, Keys::Utf8] {
        for rows in [64, 65536] {
            for consumers in [1, 4] {
                let shape = Shape { keys, rows, consumers };
                let mut bench = |name: &str, inputs: &Arc<Inputs>, work: Work| {
                    if !matches!(work, Work::Empty | Work::Take) {
                        check(&runtime, inputs, &work);
                    }
                    let mut group = criterion.benchmark_group(GROUP);
                    group.bench_function(BenchmarkId::new(shape.to_string(), name), |b| {
                        b.iter(|| round(&runtime, inputs, &work));
                    });
                    group.finish();
                };
                let inputs = Inputs::one_batch(shape);
                assert_eq!(inputs.probes[0].build_rows.values().len(), MATCHES);
                bench("empty", &inputs, Work::Empty);
                bench("take", &inputs, Work::Take);
                bench("rebuild", &inputs, Work::Rebuild);
                bench("cold", &inputs, Work::Cold);
                let prepared = inputs.prepare();
                bench("warm", &inputs, Work::Warm(Arc::clone(&prepared)));
                bench("warm_1_row", &Inputs::one_row(shape), Work::Warm(Arc::clone(&prepared)));
                let many = Inputs::many_batches(shape);
                bench("take_64_batches", &many, Work::Take);
                bench("warm_64_batches", &many, Work::Warm(Arc::clone(&prepared)));
                report.line(shape, &prepared);
            }
        }
    }
    criterion.final_summary();
    report.print();
}

/// Prints the table of ratios from the medians that criterion wrote in this run.
struct Report {
    home: PathBuf,
    started: SystemTime,
    lines: Vec<String>,
    bars: Vec<String>,
}

impl Report {
    fn line(&mut self, shape: Shape, prepared: &PreparedBuild) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = shape.consumers.min(cores) as f64 / shape.consumers as f64;
        let empty = self.median(shape, "empty");
        // Microseconds per consumer, without the time of the empty tasks.
        let per_consumer = |name| Some((self.median(shape, name)? - empty?) * share / 1000.0);
        let [take, warm, cold, rebuild] = ["take", "warm", "cold", "rebuild"].map(per_consumer);
        let [one, take_many, warm_many] = ["warm_1_row", "take_64_batches", "warm_64_batches"].map(per_consumer);
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        let ratio = |a: Option<f64>, b: Option<f64>| number(a.zip(b).map(|(a, b)| a / b));
        let bytes = prepared.reserved_bytes() as f64 / shape.rows as f64;
        let cells = [
            shape.to_string(),
            prepared.index_kind().to_string(),
            format!("{bytes:.1}"),
            number(empty.map(|empty| empty / 1000.0)),
            number(take),
            number(warm),
            number(cold),
            number(rebuild),
            ratio(warm, take),
            ratio(rebuild, warm),
            ratio(cold, rebuild),
            number(one),
            number(take_many),
            number(warm_many),
            ratio(warm_many, take_many),
        ];
        self.lines.push(format!("| {} |", cells.join(" | ")));
        let mut bar = |what: &str, value: Option<f64>, most: f64, unit: &str| {
            if let Some(value) = value {
                let verdict = if value <= most { "reached" } else { "NOT reached" };
                self.bars
                    .push(format!("{:36} {what:26} {value:6.2}  bar {most:4.1} {unit}  {verdict}", shape.to_string()));
            }
        };
        let quotient = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
        match shape.keys {
            Keys::Int64 => bar("warm / take", quotient(warm, take), 4.5, "x"),
            Keys::Int64Hashed => {}
            Keys::Utf8 => {
                bar("warm / take, one hot batch", quotient(warm, take), 3.0, "x");
                bar("warm / take, 64 batches", quotient(warm_many, take_many), 4.5, "x");
            }
        }
        if shape.rows == 64 {
            bar("rebuild / warm", quotient(rebuild, warm), 2.0, "x");
        }
        bar("warm, 1 row", one, 3.0, "us");
    }

    /// Nanoseconds; `None` if this run did not measure the case.
    fn median(&self, shape: Shape, name: &str) -> Option<f64> {
        let path = self.home.join(GROUP).join(shape.to_string()).join(name).join("new").join("estimates.json");
        if std::fs::metadata(&path).ok()?.modified().ok()? < self.started {
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        let (_, median) = text.split_once("\"median\":")?;
        let (_, value) = median.split_once("\"point_estimate\":")?;
        value[..value.find([',', '}'])?].trim().parse().ok()
    }

    fn print(&self) {
        println!("\nMicroseconds per consumer, medians: (wall - empty wall) * min(consumers, cores) / consumers.\n");
        println!(
            "| case | index | bytes/row | empty (wall) | take | warm | cold | rebuild | warm/take | rebuild/warm | \
             cold/rebuild | warm 1 row | take 64 batches | warm 64 batches | warm/take, 64 |"
        );
        println!("|{}", "---|".repeat(15));
        self.lines.iter().for_each(|line| println!("{line}"));
        println!("\nBars:");
        self.bars.iter().for_each(|line| println!("{line}"));
    }
}
