//! One run of a star join: rows go from leg to leg, depth first, in pieces.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;

use super::output::Rows;
use super::plan::{StarLeg, StarPlan};
use crate::cancel::Cancel;
use crate::error::{Error, Result, internal_err, plan_err};
use crate::join::Cell;
use crate::probe::check_input::check_input;
use crate::probe::entries::Entries;
use crate::probe::pieces::drain;
use crate::probe::probe_loop::ProbeLoop;
use crate::probe::visited::Claim;

/// Rows of a piece of a result that is one batch.
const PIECE: usize = 1 << 20;

impl StarPlan {
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
            never: Vec::new(),
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

    /// [`run_once`](Self::run_once) of a batch that has the columns that are read alone, [`columns`](Self::columns) of the probe
    /// side.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("at", Int32, [10]), ("id", Int64, [2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let select = vec![(None, "name".to_owned())];
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], Some(select), None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &events.schema(), &options.pool)?);
    /// let joined = plan.run_once_read(events.project(plan.columns())?, Cancel::default())?;
    /// assert_eq!(joined, record_batch!(("name", Utf8, ["bob"]))?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`run_once`](Self::run_once).
    pub fn run_once_read(self: &Arc<Self>, batch: RecordBatch, cancel: Cancel) -> Result<RecordBatch> {
        let mut probe = self.open_whole(cancel)?;
        probe.push_read(batch)?;
        probe.drain()
    }

    /// The row numbers of the output of `batch`, of the columns that are read alone, as the whole probe side: how many rows
    /// there are, and for each side that the output is gathered from its row numbers, [`NONE`] where it has no row. `never`
    /// has for each leg the rows whose keys equal none of its build.
    #[cfg(feature = "python")]
    pub(crate) fn row_numbers(
        self: &Arc<Self>,
        batch: RecordBatch,
        never: Vec<Option<BooleanBuffer>>,
        cancel: Cancel,
    ) -> Result<(usize, Vec<Option<Vec<u32>>>)> {
        let mut probe = StarProbe { never, ..self.open(usize::MAX, cancel)? };
        probe.push_read(batch)?;
        if probe.batch.is_some() {
            probe.fill()?;
        }
        let Pending { sides, end, .. } = probe.pending;
        let rows = end.min(probe.left);
        let mut chosen = Vec::with_capacity(sides.len());
        for (side, numbers) in sides.into_iter().enumerate() {
            let Some(numbers) = numbers.filter(|_| self.given[side]) else {
                chosen.push(None);
                continue;
            };
            let mut numbers = Arc::unwrap_or_clone(numbers);
            numbers.truncate(rows);
            if let Some(leg) = side.checked_sub(1).map(|leg| &self.legs[leg].plan).filter(|leg| leg.join_type.pairs()) {
                leg.build.check_rows(&numbers)?;
            }
            chosen.push(Some(numbers));
        }
        Ok((rows, chosen))
    }

    fn open_whole(self: &Arc<Self>, cancel: Cancel) -> Result<StarProbe> {
        Ok(StarProbe { whole: true, ..self.open(PIECE, cancel)? })
    }
}

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
    /// For each leg the probe rows whose keys equal none of its build; `None`, or nothing at all, where none are known.
    never: Vec<Option<BooleanBuffer>>,
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

    /// About how many rows the next [`next_output`](Self::next_output) works on, each leg counted: a caller that moves
    /// long work to another thread decides by it.
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
    /// probe.push(users)?;
    /// assert_eq!(probe.pending_rows(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn pending_rows(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.num_rows().saturating_mul(self.levels.len()))
    }

    /// Takes one probe batch; [`next_output`](Self::next_output) must have returned `None` before.
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

    /// [`push`](Self::push) of a batch that has the columns that are read alone, [`StarPlan::columns`] of the probe side.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("at", Int32, [10]), ("id", Int64, [2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let select = vec![(None, "name".to_owned())];
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], Some(select), None)?;
    /// let plan = Arc::new(StarPlan::try_new(&star, &events.schema(), &options.pool)?);
    /// let mut probe = plan.open(8192, Cancel::default())?;
    /// probe.push_read(events.project(plan.columns())?)?;
    /// assert_eq!(probe.next_output()?.unwrap().num_rows(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`push`](Self::push).
    pub fn push_read(&mut self, batch: RecordBatch) -> Result<()> {
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
            match self.output(start..start + rows) {
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
            (Some(sides), cell) => self.plan.look(batch, sides, cell, &self.cancel),
            (None, _) => internal_err!("the first leg reads a column of a leg"),
        };
        let columns = leg.reads.iter().map(read).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let input = RecordBatch::try_new_with_options(Arc::clone(&leg.plan.probe_schema), columns, &options)?;
        self.plan.rows.add_in(at, rows);
        let never = match (self.never.get(at), sides) {
            (Some(Some(never)), None) => Some(never.clone()),
            (Some(Some(never)), Some(sides)) => {
                let Some(rows) = &sides[0] else { return internal_err!("the probe rows of a leg's keys are missing") };
                Some(BooleanBuffer::collect_bool(rows.len(), |i| never.value(rows[i] as usize)))
            }
            _ => None,
        };
        self.levels[at].probe.feed(input, never)
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

    /// The output of some pending rows.
    fn output(&self, pending: Range<usize>) -> Result<RecordBatch> {
        let Some(batch) = &self.batch else { return internal_err!("output without an input batch") };
        self.plan.output(batch, &self.pending.sides, pending, &self.cancel)
    }
}

/// Whether `rows` counts up from 0.
fn is_identity(rows: &[u32]) -> bool {
    rows.iter().enumerate().fold(0, |apart, (i, &row)| apart | (row ^ i as u32)) == 0
}
