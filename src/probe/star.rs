//! Star joins: a probe batch goes from leg to leg as row numbers, and each output column is gathered once, at the end.
//!
//! What reaches a leg is one row number per row for the probe side and for each leg before. The leg's keys (and what its
//! condition tests) are gathered for these rows alone and looked up as any probe batch is; the entries that come back are
//! positions among these rows, and so make the row numbers that reach the next leg.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Schema, SchemaRef};

use super::check_input::check_input;
use super::entries::Entries;
use super::key_reader::KeyReader;
use super::metrics::{JoinMetrics, add};
use super::pieces::{check_batch_size, drain};
use super::plan::ProbePlan;
use super::probe_loop::ProbeLoop;
use super::visited::Claim;
use crate::cancel::{Cancel, POLL_ROWS};
use crate::columns::{Selection, gather, in_column, pick};
use crate::error::{Error, Result, internal_err, plan_err};
use crate::expr::Side;
use crate::index::NONE;
use crate::join::{Cell, Leg, LegLayout, Output, StarJoin};
use crate::memory::Pool;
use crate::prepare::LeasedColumns;

/// Rows that go from leg to leg at once.
const CHUNK: usize = 8192;

/// Rows of a piece of a result that is one batch.
const PIECE: usize = 1 << 20;

/// A star join over probe batches of one schema: everything that its runs share and none of them changes.
#[derive(Debug)]
pub struct StarPlan {
    legs: Vec<StarLeg>,
    probe_schema: SchemaRef,
    /// The probe columns that are read, ascending.
    columns: Vec<usize>,
    /// Schema of these alone.
    read_schema: SchemaRef,
    /// What each output column is gathered from; its probe columns are positions among those that are read.
    sources: Vec<Source>,
    /// The sides that the output is gathered from.
    given: Vec<bool>,
    schema: SchemaRef,
    limit: Option<usize>,
    rows: Arc<StarRows>,
    /// What the legs would count as joins by themselves; nobody reads it.
    metrics: Arc<JoinMetrics>,
}

#[derive(Debug)]
struct StarLeg {
    /// The leg as a join of the columns that it reads.
    plan: Arc<ProbePlan>,
    reads: Vec<Cell>,
    /// The sides whose row numbers are needed after it: 0 for the probe, `leg + 1` for a leg.
    keeps: Vec<bool>,
}

/// For each leg of a star, how many rows reached it and how many it gave. Plans of one star may share it.
#[derive(Debug)]
pub struct StarRows(Vec<[AtomicU64; 2]>);

impl StarRows {
    /// Nothing counted yet for the legs of `star`.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin, StarRows};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &RunOptions::default())?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// assert_eq!(StarRows::new(&star).get(), [[0, 0]]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(star: &StarJoin) -> Arc<Self> {
        Arc::new(Self(star.legs().iter().map(|_| Default::default()).collect()))
    }

    /// Rows in and rows out of each leg, in all runs so far.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3, 2]))?);
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &events.schema(), &options.pool)?);
    /// plan.run_once(events, Cancel::default())?;
    /// // Three rows reached the leg, two came out.
    /// assert_eq!(plan.rows().get(), [[3, 2]]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn get(&self) -> Vec<[u64; 2]> {
        self.0.iter().map(|leg| leg.each_ref().map(|counter| counter.load(Ordering::Relaxed))).collect()
    }

    fn add_in(&self, leg: usize, rows: usize) {
        add(&self.0[leg][0], rows);
    }

    fn add_out(&self, leg: usize, rows: usize) {
        add(&self.0[leg][1], rows);
    }
}

/// What an output column is made from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Cell(Cell),
    /// The same array as an earlier output column.
    Output(usize),
}

impl StarPlan {
    /// Plans `star` over a probe side of schema `probe`. `pool` pays for the keys that `validate` remembers.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("user", Int64, [2]))?);
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users.clone(), &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// assert!(StarPlan::try_new(&star, &users.schema(), &options.pool).is_ok());
    /// // The probe side has no column with the name of the key.
    /// assert!(StarPlan::try_new(&star, &events.schema(), &options.pool).is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) as of [`StarJoin::schema`].
    pub fn try_new(star: &StarJoin, probe: &SchemaRef, pool: &Arc<dyn Pool>) -> Result<Self> {
        let mut layout = star.layout(probe)?;
        let cells = layout.legs.iter().flat_map(|leg| &leg.reads).chain(&layout.columns);
        let used = |cell: &Cell| match cell {
            Cell::Probe(column) => Some(*column),
            _ => None,
        };
        let columns: Vec<usize> = cells.filter_map(used).collect::<BTreeSet<_>>().into_iter().collect();
        let cells = layout.legs.iter_mut().flat_map(|leg| &mut leg.reads).chain(&mut layout.columns);
        for cell in cells {
            if let Cell::Probe(column) = cell {
                *column = columns.partition_point(|other| other < column);
            }
        }
        let sides = star.legs().len() + 1;
        let mut needed = vec![false; sides];
        layout.columns.iter().for_each(|cell| needed[cell.side()] = true);
        let given = needed.clone();
        // The build columns that are read, of each leg.
        let cells = layout.legs.iter().flat_map(|leg| &leg.reads).chain(&layout.columns);
        let mut of_builds = vec![Vec::new(); star.legs().len()];
        for cell in cells {
            if let Cell::Build { leg, column } = *cell {
                of_builds[leg].push(column);
            }
        }
        let mut legs = Vec::with_capacity(star.legs().len());
        // From the last leg on, so that each knows what those after it need.
        for (((_, leg), mut layout), of_build) in star.legs().iter().zip(layout.legs).zip(of_builds).rev() {
            let keeps = needed.clone();
            layout.reads.iter().for_each(|cell| needed[cell.side()] = true);
            let reads = std::mem::take(&mut layout.reads);
            let plan = Arc::new(leg_plan(leg, layout, of_build, pool)?);
            legs.push(StarLeg { plan, reads, keeps });
        }
        legs.reverse();
        let source = |at: usize| match layout.columns[..at].iter().position(|other| *other == layout.columns[at]) {
            Some(earlier) => Source::Output(earlier),
            None => Source::Cell(layout.columns[at]),
        };
        Ok(Self {
            legs,
            probe_schema: Arc::clone(probe),
            read_schema: Arc::new(probe.project(&columns)?),
            columns,
            sources: (0..layout.columns.len()).map(source).collect(),
            given,
            schema: layout.schema,
            limit: star.limit(),
            rows: StarRows::new(star),
            metrics: Arc::default(),
        })
    }

    /// Schema of the output.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("id", Int64, [2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users.clone(), &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// assert_eq!(*StarPlan::try_new(&star, &events.schema(), &options.pool)?.schema(), users.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Positions of the probe columns that are read, ascending.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("at", Int32, [10]), ("id", Int64, [2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let select = vec![(None, "name".to_owned())];
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], Some(select), None)?;
    /// assert_eq!(StarPlan::try_new(&star, &events.schema(), &options.pool)?.columns(), [1]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The same plan, which counts rows in `rows` of the same star.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan, StarRows};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let rows = StarRows::new(&star);
    /// for _plan in 0..2 {
    ///     let plan = StarPlan::try_new(&star, &events.schema(), &options.pool)?.counted_in(&rows);
    ///     Arc::new(plan).run_once(events.clone(), Cancel::default())?;
    /// }
    /// assert_eq!(rows.get(), [[4, 2]]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    #[must_use]
    pub fn counted_in(mut self, rows: &Arc<StarRows>) -> Self {
        self.rows = Arc::clone(rows);
        self
    }

    /// Rows in and out of each leg.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users.clone(), &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// assert_eq!(StarPlan::try_new(&star, &users.schema(), &options.pool)?.rows().get(), [[0, 0]]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn rows(&self) -> &Arc<StarRows> {
        &self.rows
    }

    /// False where nothing can come out, whatever the probe side holds.
    fn wants_probe(&self) -> bool {
        self.legs.iter().all(|leg| leg.plan.wants_probe())
    }

    /// Opens a run: one probe side of any number of batches. Output batches have at most `batch_size` rows.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 1, 2]))?);
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &events.schema(), &options.pool)?);
    /// let mut probe = plan.open(2, Cancel::default())?;
    /// probe.push(events)?;
    /// assert_eq!(probe.next_output()?.unwrap().num_rows(), 2);
    /// assert_eq!(probe.next_output()?.unwrap().num_rows(), 1);
    /// assert!(probe.next_output()?.is_none());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ResourcesExhausted`](crate::Error::ResourcesExhausted) if the pool refuses what `validate` remembers.
    pub fn open(self: &Arc<Self>, batch_size: usize, cancel: Cancel) -> Result<StarProbe> {
        let level = |leg: &StarLeg| -> Result<Level> {
            let (plan, metrics) = (Arc::clone(&leg.plan), Arc::clone(&self.metrics));
            let marks = Claim::alone()?.marks(&plan, &cancel)?;
            let probe = ProbeLoop::new(plan, None, marks, metrics, cancel.clone());
            Ok(Level { probe, entries: Entries::default(), rows: 0, sides: Vec::new() })
        };
        Ok(StarProbe {
            levels: self.legs.iter().map(level).collect::<Result<_>>()?,
            batch: None,
            pending: Pending::default(),
            most: batch_size.max(1),
            whole: false,
            cancel,
            left: if self.wants_probe() { self.limit.unwrap_or(usize::MAX) } else { 0 },
            plan: Arc::clone(self),
        })
    }

    /// Joins `batch` as if it were the whole probe side, into one batch of whatever size.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &events.schema(), &options.pool)?);
    /// assert_eq!(plan.run_once(events, Cancel::default())?, record_batch!(("id", Int64, [2]))?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`open`](Self::open) and [`StarProbe::next_output`].
    pub fn run_once(self: &Arc<Self>, batch: RecordBatch, cancel: Cancel) -> Result<RecordBatch> {
        let mut probe = self.open_whole(cancel)?;
        probe.push(batch)?;
        probe.drain()
    }

    /// [`run_once`](Self::run_once) of a batch of the columns that are read alone.
    #[cfg(feature = "python")]
    pub(crate) fn run_once_read(self: &Arc<Self>, batch: RecordBatch, cancel: Cancel) -> Result<RecordBatch> {
        let mut probe = self.open_whole(cancel)?;
        probe.push_read(batch)?;
        probe.drain()
    }

    fn open_whole(self: &Arc<Self>, cancel: Cancel) -> Result<StarProbe> {
        Ok(StarProbe { whole: true, ..self.open(PIECE, cancel)? })
    }
}

/// A leg as a join by itself, whose probe side is the columns that the leg reads. `columns` of its build are read by others.
fn leg_plan(leg: &Leg, layout: LegLayout, columns: Vec<usize>, pool: &Arc<dyn Pool>) -> Result<ProbePlan> {
    let LegLayout { schema: probe_schema, keys: probe_keys, further, predicate, .. } = layout;
    let build = Arc::clone(&leg.build);
    let tested = predicate.iter().flat_map(|predicate| predicate.columns());
    let tested = tested.filter(|(side, _)| *side == Side::Build).map(|&(_, column)| column);
    Ok(ProbePlan {
        build_columns: LeasedColumns::try_new(&build, columns.into_iter().chain(tested))?,
        key_reader: KeyReader::try_new(&build, &probe_keys, &probe_schema)?,
        further_keys: KeyReader::further(&build, &probe_keys, &further, &probe_schema)?,
        build,
        probe_schema,
        probe_keys,
        join_type: leg.join_type,
        null_aware: false,
        validate: leg.validate,
        predicate,
        output: Output { schema: Arc::new(Schema::empty()), columns: Vec::new(), origins: Vec::new() },
        batch_size: CHUNK,
        pool: Arc::clone(pool),
    })
}

/// Row numbers of one side, one per row at hand.
type Rows = Arc<Vec<u32>>;

/// One leg in a run, and the rows that it gave last.
#[derive(Debug)]
struct Level {
    probe: ProbeLoop,
    entries: Entries,
    /// Number of rows.
    rows: usize,
    /// Row numbers of the probe side and of each leg up to this one; `None` where nobody needs them.
    sides: Vec<Option<Rows>>,
}

/// Rows that went through all legs.
#[derive(Debug, Default)]
struct Pending {
    sides: Vec<Option<Rows>>,
    start: usize,
    end: usize,
}

/// One run of a star join: push probe batches, take output batches.
#[derive(Debug)]
pub struct StarProbe {
    plan: Arc<StarPlan>,
    levels: Vec<Level>,
    /// The batch that is being read.
    batch: Option<RecordBatch>,
    pending: Pending,
    /// Largest number of rows of an output batch: as asked, or fewer where a column would outgrow its type.
    most: usize,
    /// The output is one batch, so that smaller ones do not help.
    whole: bool,
    cancel: Cancel,
    /// Rows that the limit still allows.
    left: usize,
}

impl StarProbe {
    /// Schema of the output.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users.clone(), &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &users.schema(), &options.pool)?);
    /// assert_eq!(*plan.open(8192, Cancel::default())?.schema(), users.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        &self.plan.schema
    }

    /// False once no further probe batch can change what comes out.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users.clone(), &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, Some(2))?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &users.schema(), &options.pool)?);
    /// let mut probe = plan.open(8192, Cancel::default())?;
    /// assert!(probe.wants_input());
    /// probe.push(users)?;
    /// probe.next_output()?;
    /// // The limit of two rows is reached.
    /// assert!(!probe.wants_input());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn wants_input(&self) -> bool {
        self.left > 0
    }

    /// About how many rows the next [`next_output`](Self::next_output) works on, each leg counted.
    #[cfg(feature = "python")]
    pub(crate) fn pending_rows(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.num_rows().saturating_mul(self.levels.len()))
    }

    /// Takes one probe batch; [`next_output`](Self::next_output) must have answered `None` before.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users.clone(), &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &users.schema(), &options.pool)?);
    /// let mut probe = plan.open(8192, Cancel::default())?;
    /// for _batch in 0..2 {
    ///     probe.push(users.clone())?;
    ///     while let Some(output) = probe.next_output()? {
    ///         assert_eq!(output, users);
    ///     }
    /// }
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the batch's columns do not fit the probe schema.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        check_input(&batch, &self.plan.probe_schema)?;
        let columns = self.plan.columns.iter().map(|&column| Arc::clone(batch.column(column))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let read = RecordBatch::try_new_with_options(Arc::clone(&self.plan.read_schema), columns, &options)?;
        self.push_checked(read)
    }

    /// [`push`](Self::push) of a batch of the columns that are read alone.
    #[cfg(feature = "python")]
    pub(crate) fn push_read(&mut self, batch: RecordBatch) -> Result<()> {
        check_input(&batch, &self.plan.read_schema)?;
        self.push_checked(batch)
    }

    fn push_checked(&mut self, batch: RecordBatch) -> Result<()> {
        if self.batch.is_some() {
            return plan_err!("a star join takes a batch when the last one is read");
        }
        if self.left > 0 {
            self.batch = Some(batch);
            self.feed(0)?;
        }
        Ok(())
    }

    /// The next output batch, of at most `batch_size` rows and never empty; `None` when another batch must be pushed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users.clone(), &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &users.schema(), &options.pool)?);
    /// let mut probe = plan.open(8192, Cancel::default())?;
    /// assert!(probe.next_output()?.is_none());
    /// probe.push(users)?;
    /// assert_eq!(probe.next_output()?.unwrap().num_rows(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Execution`](crate::Error::Execution) where a condition fails, `validate` refuses a row, or a column outgrows
    /// its offsets.
    pub fn next_output(&mut self) -> Result<Option<RecordBatch>> {
        let Pending { start, end, .. } = self.pending;
        if self.left > 0 && start == end && self.batch.is_some() {
            self.fill()?;
        }
        let Pending { start, end, .. } = self.pending;
        let mut rows = (end - start).min(self.most).min(self.left);
        if rows == 0 {
            self.batch = None;
            self.pending = Pending::default();
            return Ok(None);
        }
        let batch = loop {
            match self.output(start, rows) {
                // Found before anything is copied, so the batches that follow begin with fewer rows.
                Err(Error::Overflow(_)) if rows > 1 && !self.whole => rows = rows.div_ceil(2),
                output => break output?,
            }
            self.most = rows;
        };
        self.left -= rows;
        self.pending.start += rows;
        Ok(Some(batch))
    }

    /// All outputs up to the next push as one batch.
    fn drain(&mut self) -> Result<RecordBatch> {
        let (schema, cancel) = (Arc::clone(&self.plan.schema), self.cancel.clone());
        drain(&schema, &cancel, || self.next_output())
    }

    /// Fills what is pending with rows of the batch, at least one output batch of them if there are so many.
    fn fill(&mut self) -> Result<()> {
        self.pending = Pending::default();
        while self.pending.end < self.most.min(self.left) && self.advance()? {
            let Some(level) = self.levels.last_mut() else { return internal_err!("a star join without legs") };
            let Pending { sides, end, .. } = &mut self.pending;
            if *end == 0 {
                *sides = std::mem::take(&mut level.sides);
            } else {
                for (all, more) in sides.iter_mut().zip(&level.sides) {
                    if let (Some(all), Some(more)) = (all, more) {
                        Arc::make_mut(all).extend_from_slice(more);
                    }
                }
            }
            *end += level.rows;
        }
        Ok(())
    }

    /// Makes the next rows that went through all legs; false where the batch has no more.
    fn advance(&mut self) -> Result<bool> {
        let last = self.levels.len() - 1;
        let mut at = last;
        loop {
            let Level { probe, entries, .. } = &mut self.levels[at];
            if probe.next_entries(entries)? {
                self.plan.rows.add_out(at, entries.len());
                self.compose(at);
                if at == last {
                    return Ok(true);
                }
                at += 1;
                self.feed(at)?;
            } else if at == 0 {
                return Ok(false);
            } else {
                at -= 1;
            }
        }
    }

    /// Gives leg `at` the rows that reached it.
    fn feed(&mut self, at: usize) -> Result<()> {
        let Some(batch) = &self.batch else { return internal_err!("a leg was fed without a batch") };
        let leg = &self.plan.legs[at];
        let (rows, sides) = match at.checked_sub(1) {
            None => (batch.num_rows(), None),
            Some(before) => (self.levels[before].rows, Some(&self.levels[before].sides)),
        };
        let read = |cell: &Cell| match (sides, *cell) {
            (None, Cell::Probe(column)) => Ok(Arc::clone(batch.column(column))),
            (Some(sides), cell) => self.look(batch, cell, rows_of(sides, cell)?),
            (None, _) => internal_err!("the first leg reads a column of a leg"),
        };
        let columns = leg.reads.iter().map(read).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let input = RecordBatch::try_new_with_options(Arc::clone(&leg.plan.probe_schema), columns, &options)?;
        self.plan.rows.add_in(at, rows);
        self.levels[at].probe.feed(input)
    }

    /// The row numbers behind the entries of leg `at`.
    fn compose(&mut self, at: usize) {
        let keeps = &self.plan.legs[at].keeps;
        let (before, level) = self.levels.split_at_mut(at);
        let level = &mut level[0];
        let Entries { probe, build } = &mut level.entries;
        level.rows = probe.len();
        level.sides.clear();
        match before.last() {
            None => level.sides.push(keeps[0].then(|| Arc::new(std::mem::take(probe)))),
            Some(before) => {
                let all = probe.len() == before.rows && is_identity(probe);
                let compose = |rows: &Rows| match all {
                    true => Arc::clone(rows),
                    false => Arc::new(probe.iter().map(|&row| rows[row as usize]).collect()),
                };
                let sides = before.sides.iter().zip(keeps);
                level.sides.extend(sides.map(|(rows, &keep)| rows.as_ref().filter(|_| keep).map(compose)));
            }
        }
        level.sides.push(keeps[at + 1].then(|| Arc::new(std::mem::take(build))));
    }

    /// `rows` pending rows from `start` on.
    fn output(&self, start: usize, rows: usize) -> Result<RecordBatch> {
        let StarPlan { sources, schema, given, legs, .. } = self.plan.as_ref();
        let Some(batch) = &self.batch else { return internal_err!("output without an input batch") };
        check_batch_size(schema, rows)?;
        // Rows are proven to exist once for all columns of their side.
        let mut selections = vec![None; given.len()];
        for (side, selection) in selections.iter_mut().enumerate().filter(|(side, _)| given[*side]) {
            let Some(chosen) = &self.pending.sides[side] else {
                return internal_err!("row numbers of side {side} are missing");
            };
            let chosen = &chosen[start..start + rows];
            *selection = Some(match side.checked_sub(1).map(|leg| &legs[leg].plan) {
                None => Selection::try_new(chosen, batch.num_rows())?,
                // Of a leg that gives its mark these are no build rows.
                Some(plan) if !plan.join_type.pairs() => Selection::try_new(chosen, NONE as usize)?,
                Some(plan) => plan.build.guarded(|| Selection::try_new(chosen, plan.build.num_rows()))?,
            });
        }
        let chosen = |side: usize| match selections[side] {
            Some(selection) => Ok(selection),
            None => internal_err!("row numbers of side {side} are missing"),
        };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(sources.len());
        for (source, field) in sources.iter().zip(schema.fields()) {
            if rows > POLL_ROWS {
                self.cancel.check()?;
            }
            let column = match *source {
                Source::Output(earlier) => Ok(Arc::clone(&columns[earlier])),
                Source::Cell(Cell::Probe(column)) => gather(batch.column(column), chosen(0)?),
                Source::Cell(cell @ Cell::Build { leg, column }) => {
                    gather(legs[leg].plan.build_columns.get(column)?, chosen(cell.side())?)
                }
                Source::Cell(cell @ Cell::Mark(_)) => Ok(mark(chosen(cell.side())?.rows())),
            };
            columns.push(column.map_err(|error| in_column(error, field.name()))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }

    /// The values of one column for `rows`, for a look that ends before the column does.
    fn look(&self, batch: &RecordBatch, cell: Cell, rows: &[u32]) -> Result<ArrayRef> {
        match cell {
            Cell::Probe(column) => pick(batch.column(column), Selection::try_new(rows, batch.num_rows())?),
            Cell::Build { leg, column } => {
                let ProbePlan { build, build_columns, .. } = self.plan.legs[leg].plan.as_ref();
                build.guarded(|| pick(build_columns.get(column)?, Selection::try_new(rows, build.num_rows())?))
            }
            Cell::Mark(_) => Ok(mark(rows)),
        }
    }
}

/// Whether each row has a match.
fn mark(rows: &[u32]) -> ArrayRef {
    Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(rows.len(), |i| rows[i] != NONE), None))
}

fn rows_of(sides: &[Option<Rows>], cell: Cell) -> Result<&[u32]> {
    match &sides[cell.side()] {
        Some(rows) => Ok(rows),
        None => internal_err!("row numbers of side {} are missing", cell.side()),
    }
}

/// Whether `rows` counts up from 0.
fn is_identity(rows: &[u32]) -> bool {
    rows.iter().enumerate().fold(0, |apart, (i, &row)| apart | (row ^ i as u32)) == 0
}
