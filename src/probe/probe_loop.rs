//! The loop of one probed partition: probe batches in, output batches out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;

use super::check_input::check_input;
use super::entries::{Entries, Input, KeySource};
use super::metrics::{JoinMetrics, Timer, add};
use super::pieces::{drain, one_batch};
use super::plan::ProbePlan;
use super::residual::Residual;
use super::visited::{Claim, PartitionMarks, RowBits};
use crate::cancel::Cancel;
use crate::error::{Error, Result, internal_err, plan_err};
use crate::index::Hits;
use crate::join::JoinType;

/// One partition of a run of a join: probe batches in, output batches out. See [`Probe`](crate::Probe).
#[derive(Debug)]
pub(crate) struct ProbeLoop {
    plan: Arc<ProbePlan>,
    metrics: Arc<JoinMetrics>,
    cancel: Cancel,
    marks: PartitionMarks,
    input: Option<Input>,
    entries: Entries,
    hits: Hits,
    /// Rows that the limit still allows.
    left: usize,
    /// Largest number of rows of an output batch: as asked, or fewer where a column would outgrow its type.
    most: usize,
    /// The output is one batch, so that smaller ones do not help.
    whole: bool,
    residual: Residual,
    finished: bool,
    /// The closing rows that a build-driven join type has not given yet.
    rest: Option<RowBits>,
}

impl ProbeLoop {
    pub(crate) fn new(
        plan: Arc<ProbePlan>,
        limit: Option<usize>,
        marks: PartitionMarks,
        metrics: Arc<JoinMetrics>,
        cancel: Cancel,
    ) -> Self {
        let _ = metrics.index_kind.set(plan.build.index_kind());
        Self {
            most: plan.batch_size,
            whole: false,
            plan,
            metrics,
            cancel,
            marks,
            input: None,
            entries: Entries::default(),
            hits: Hits::default(),
            left: limit.unwrap_or(usize::MAX),
            residual: Residual::default(),
            finished: false,
            rest: None,
        }
    }

    /// Schema of the output.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.plan.output.schema
    }

    /// False once no further probe batch can change what comes out: the limit is reached, or nothing can match.
    pub(crate) fn wants_input(&self) -> bool {
        !self.finished && self.left > 0 && self.plan.wants_probe()
    }

    /// False once no further probe row is read: the partition is finished and read, or the limit is reached.
    pub(crate) fn reads_probe(&self) -> bool {
        self.left > 0 && (!self.finished || self.input.is_some())
    }

    /// About how many rows the next [`next_output`](Self::next_output) works on.
    pub(crate) fn pending_rows(&self) -> usize {
        self.input.as_ref().map_or(0, |input| input.batch.num_rows()).max(self.rest.as_ref().map_or(0, RowBits::len))
    }

    /// Takes one probe batch; [`next_output`](Self::next_output) must have returned `None` before.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the batch's columns do not fit the probe schema.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if self.finished || self.input.is_some() {
            return plan_err!("a probe takes a batch when the last one is read and before it is finished");
        }
        check_input(&batch, &self.plan.probe_schema)?;
        add(&self.metrics.input_batches, 1);
        add(&self.metrics.input_rows, batch.num_rows());
        if let Some(visited) = self.marks.visited.as_ref().filter(|_| self.plan.null_aware && batch.num_rows() > 0) {
            visited.probe_rows.store(true, Ordering::Relaxed);
            if batch.column(self.plan.probe_keys[0]).logical_null_count() > 0 {
                visited.probe_nulls.store(true, Ordering::Relaxed);
            }
        }
        self.feed(batch, None)
    }

    /// Takes a batch that is known to fit, of which the rows set in `never` match nothing; no metrics count it.
    pub(super) fn feed(&mut self, batch: RecordBatch, never: Option<BooleanBuffer>) -> Result<()> {
        if self.wants_input() {
            let mut lookup = self.plan.key_source(&batch, &mut self.hits)?;
            if let Some(never) = never {
                lookup = KeySource::Except(Box::new(lookup), never);
            }
            self.input = Some(Input::new(batch, lookup, std::mem::take(&mut self.hits), self.cancel.clone()));
        }
        Ok(())
    }

    /// Says that no batch follows; what is left comes out of [`next_output`](Self::next_output).
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) where it was finished before.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.finished, true) {
            return plan_err!("a probe is finished once");
        }
        match self.input {
            // Its rows come first.
            Some(_) => Ok(()),
            None => self.close(),
        }
    }

    /// Ends this partition once its probe rows are read.
    fn close(&mut self) -> Result<()> {
        let last = self.marks.claim.end();
        self.marks.seen = None;
        let Some(visited) = self.marks.visited.take() else { return Ok(()) };
        // A null-aware anti join from the build side gives nothing once a probe key was null.
        let nothing_left = self.plan.null_aware && visited.probe_nulls.load(Ordering::Relaxed);
        if last && self.left > 0 && !nothing_left {
            let ProbePlan { build, pool, .. } = self.plan.as_ref();
            let by_row = self.plan.visits_rows();
            self.rest = Some(build.guarded(|| visited.to_rows(build, by_row, pool, &self.cancel))?);
        }
        Ok(())
    }

    /// Frees what is not needed once the limit is reached.
    fn let_go(&mut self) {
        self.marks.claim.end();
        self.marks.seen = None;
        self.marks.visited = None;
        self.input = None;
        self.rest = None;
        self.entries = Entries::default();
        self.hits = Hits::default();
        self.residual = Residual::default();
    }

    /// The next output batch, of at most `batch_size` rows and never empty; `None` when another batch must be pushed, or
    /// after [`finish`](Self::finish) when all is given.
    pub(crate) fn next_output(&mut self) -> Result<Option<RecordBatch>> {
        let metrics = Arc::clone(&self.metrics);
        let _timer = Timer::start(&metrics.join_nanos);
        let plan = Arc::clone(&self.plan);
        let batch = plan.build.guarded(|| self.next_batch())?;
        if self.left == 0 {
            self.let_go();
        }
        if let Some(batch) = &batch {
            add(&metrics.output_batches, 1);
            add(&metrics.output_rows, batch.num_rows());
        }
        Ok(batch)
    }

    /// All outputs up to the next push as one batch.
    pub(crate) fn drain(&mut self) -> Result<RecordBatch> {
        let (plan, cancel) = (Arc::clone(&self.plan), self.cancel.clone());
        drain(&plan.output.schema, &cancel, || self.next_output())
    }

    /// Replaces the contents of `entries` by the next entries of the batch that was fed; false where it has no more. For
    /// joins that make their output elsewhere.
    pub(super) fn next_entries(&mut self, entries: &mut Entries) -> Result<bool> {
        self.cancel.check()?;
        std::mem::swap(&mut self.entries, entries);
        self.entries.clear();
        let plan = Arc::clone(&self.plan);
        let filled = plan.build.guarded(|| self.fill())?;
        if !filled {
            self.hits = self.input.take().map(Input::into_hits).unwrap_or_default();
        }
        std::mem::swap(&mut self.entries, entries);
        Ok(filled)
    }

    /// Appends the rows that a build-driven join type gives after [`finish`](Self::finish), until `rows` has `most`. For
    /// joins that make their output elsewhere.
    #[cfg(feature = "python")]
    pub(super) fn closing_rows(&mut self, most: usize, rows: &mut Vec<u32>) -> Result<()> {
        let Self { plan, rest, cancel, .. } = self;
        let marked = plan.join_type == JoinType::BuildSemi;
        rest.as_mut().map_or(Ok(()), |rest| rest.next_rows(marked, most, |_| true, rows, cancel))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.left == 0 {
                return Ok(None);
            }
            self.cancel.check()?;
            if self.input.is_none() {
                return self.next_rest();
            }
            // Entries are left where the last batch took fewer than it was meant to.
            if (self.plan.predicate.is_some() || self.entries.len() == 0) && !self.fill()? {
                self.hits = self.input.take().map(Input::into_hits).unwrap_or_default();
                if self.finished {
                    self.close()?;
                }
                continue;
            }
            let mut rows = self.entries.len().min(self.most).min(self.left);
            if rows > 0 {
                let batch = loop {
                    match self.output(rows) {
                        // Found before anything is copied, so the batches that follow begin with fewer rows.
                        Err(Error::Overflow(_)) if rows > 1 && !self.whole => rows = rows.div_ceil(2),
                        output => break output?,
                    }
                    self.most = rows;
                };
                self.left -= rows;
                // A predicate may have let more pass than one batch takes.
                self.entries.drop_front(rows);
                return Ok(Some(batch));
            }
        }
    }

    /// Reads entries from the input, at least one batch of them if there are so many; false where it has no more.
    fn fill(&mut self) -> Result<bool> {
        let Self { plan, marks, input, entries, residual, cancel, .. } = self;
        let Some(input) = input else { return Ok(false) };
        let visited = marks.visited.as_deref();
        let mut repeated = None;
        let mut see = |group| {
            if let Some(seen) = &marks.seen
                && !seen.mark_first(group)
            {
                repeated = Some(group);
            }
        };
        if let Some(predicate) = &plan.predicate {
            while entries.len() < plan.batch_size.min(self.left)
                && residual.step(plan, predicate, input, visited, entries, &mut see)?
            {
                cancel.check()?;
            }
        } else {
            entries.clear();
            let (build, shape, max) = (&plan.build, plan.shape(), plan.batch_size);
            match (visited, &marks.seen) {
                (None, None) => input.fill(build, shape, max, None, entries, |_| ())?,
                (Some(visited), None) => {
                    input.fill(build, shape, max, None, entries, |group| visited.mark(group))?;
                }
                (visited, Some(_)) => input.fill(build, shape, max, None, entries, |group| {
                    visited.iter().for_each(|visited| visited.mark(group));
                    see(group);
                })?,
            }
        }
        if let Some(group) = repeated {
            return Err(plan.validate.repeated_in_probe(&plan.build, group));
        }
        let filled = entries.len() > 0;
        if plan.predicate.is_none() {
            self.select();
        }
        Ok(filled)
    }

    /// Keeps the entries that the join type gives; where there is a predicate, that was done with it.
    fn select(&mut self) {
        let Self { plan, input, entries, .. } = self;
        match plan.join_type {
            JoinType::BuildSemi | JoinType::BuildAnti => entries.clear(),
            JoinType::ProbeAnti => {
                let drops_nulls = plan.null_aware && plan.build.num_rows() > 0;
                let key = |input: &Input| input.batch.column(plan.probe_keys[0]).logical_nulls();
                if let Some(nulls) = input.as_ref().filter(|_| drops_nulls).and_then(key) {
                    entries.retain(|_, probe, _| nulls.is_valid(probe as usize));
                }
            }
            _ => (),
        }
    }

    /// The first `rows` entries.
    fn output(&self, rows: usize) -> Result<RecordBatch> {
        let Some(input) = &self.input else { return internal_err!("output without an input batch") };
        let entries = (&self.entries.build[..rows], &self.entries.probe[..rows]);
        self.plan.matched_batch(&input.batch, entries, &self.cancel)
    }

    /// The next closing rows of a build-driven join type.
    fn next_rest(&mut self) -> Result<Option<RecordBatch>> {
        let Self { plan, rest, left, cancel, .. } = self;
        let Some(bits) = rest else { return Ok(None) };
        let batch = plan.closing_batch(bits, plan.batch_size.min(*left), cancel)?;
        match &batch {
            Some(batch) => *left -= batch.num_rows(),
            None => *rest = None,
        }
        Ok(batch)
    }
}

impl ProbePlan {
    /// Joins `batch` as if it were the whole probe side, into one batch of whatever size the plan allows.
    pub(crate) fn run_once(
        self: &Arc<Self>,
        batch: RecordBatch,
        limit: Option<usize>,
        metrics: Arc<JoinMetrics>,
        cancel: Cancel,
    ) -> Result<RecordBatch> {
        let marks = Claim::alone()?.marks(self, &cancel)?;
        let mut probe = ProbeLoop::new(Arc::clone(self), limit, marks, metrics, cancel);
        probe.whole = true;
        probe.push(batch)?;
        let joined = probe.drain()?;
        if !self.join_type.is_build_driven() {
            return Ok(joined);
        }
        probe.finish()?;
        one_batch(&self.output.schema, &[joined, probe.drain()?], &probe.cancel)
    }
}
