//! The push side of probing: probe batches in, output batches out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use arrow_select::concat::concat;

use super::entries::{Entries, Input, KeySource, Shape};
use super::key_reader::KeyReader;
use super::metrics::{JoinMetrics, Timer, add};
use super::residual::Residual;
use super::visited::{Claim, RowBits, Shares};
use crate::cancel::Cancel;
use crate::columns::concat as concat_column;
use crate::columns::{Selection, fixed_width, gather, in_column, nulls};
use crate::error::{Error, Result, internal_err, plan_err};
use crate::expr::Predicate;
use crate::index::{Hits, NONE};
use crate::join::JoinType;
use crate::join::Validate;
use crate::join::output::Source;
use crate::join::{Output, OutputColumn};
use crate::memory::Pool;
use crate::prepare::{LeasedColumns, PreparedBuild};
use crate::run::FilterShare;

/// Rows from which on making a column takes long enough to look at the stop signal.
pub(super) const LONG_ROWS: usize = 1 << 16;

/// A validated join over one build: everything that its probes share and none of them changes.
#[derive(Debug)]
pub(crate) struct ProbePlan {
    pub(crate) build: Arc<PreparedBuild>,
    /// The build's columns that are read, under a lease where copies share their buffers.
    pub(crate) build_columns: LeasedColumns,
    pub(crate) probe_schema: SchemaRef,
    /// Positions of the key columns in the probe schema, in key order.
    pub(crate) probe_keys: Vec<usize>,
    pub(crate) key_reader: KeyReader,
    /// Readers of further keys of each row, which must be the same as the first.
    pub(crate) further_keys: Vec<KeyReader>,
    pub(crate) join_type: JoinType,
    pub(crate) null_aware: bool,
    pub(crate) validate: Validate,
    pub(crate) predicate: Option<Predicate>,
    pub(crate) output: Output,
    /// Largest number of rows of an output batch.
    pub(crate) batch_size: usize,
    /// Pays for visited bits.
    pub(crate) pool: Arc<dyn Pool>,
}

impl ProbePlan {
    /// Whether visited bits stand for build rows (a predicate decides) or for groups (the key decides).
    pub(crate) fn visits_rows(&self) -> bool {
        self.predicate.is_some()
    }

    /// Number of visited bits that this join needs; `None` where it needs none.
    pub(crate) fn visited_bits(&self) -> Option<usize> {
        let bits = if self.visits_rows() { self.build.num_rows() } else { self.build.num_keys() };
        self.join_type.is_build_driven().then_some(bits)
    }

    /// Number of groups of which no two probe rows may have the same; `None` where they may.
    pub(crate) fn seen_bits(&self) -> Option<usize> {
        self.validate.probe_unique().then(|| self.build.num_keys())
    }

    /// False where the probe side cannot change what comes out.
    pub(crate) fn wants_probe(&self) -> bool {
        match self.join_type {
            JoinType::Inner | JoinType::ProbeSemi | JoinType::BuildSemi | JoinType::BuildOuter => {
                self.build.num_keys() > 0
            }
            JoinType::BuildAnti => self.build.num_keys() > 0 || (self.null_aware && self.build.num_rows() > 0),
            JoinType::ProbeAnti => !(self.null_aware && self.build.has_null_key()),
            JoinType::ProbeOuter | JoinType::FullOuter | JoinType::ProbeMark => true,
        }
    }

    /// True where a probe row without a match changes what comes out: a dynamic filter must keep it.
    pub(crate) fn needs_every_probe_row(&self) -> bool {
        self.join_type.keeps_unmatched_probe() || self.null_aware
    }

    pub(crate) fn shape(&self) -> Shape {
        let expand = self.join_type.pairs() || self.predicate.is_some();
        let hits = expand || self.join_type != JoinType::ProbeAnti;
        Shape { expand, misses: self.join_type.keeps_unmatched_probe(), hits }
    }

    /// Where the groups of the rows of `batch` come from.
    fn key_source(&self, batch: &RecordBatch, hits: &mut Hits) -> Result<KeySource> {
        let mut source = |reader: &KeyReader| {
            Ok(match reader.codes(batch, &self.build, hits)? {
                Some(codes) => KeySource::Codes(codes),
                None => KeySource::Keys(reader.read(batch)?),
            })
        };
        let first = source(&self.key_reader)?;
        Ok(KeySource::same(first, self.further_keys.iter().map(source).collect::<Result<_>>()?))
    }

    /// Joins `batch` as if it were the whole probe side, into one batch of whatever size the plan allows.
    pub(crate) fn run_once(
        self: &Arc<Self>,
        batch: RecordBatch,
        limit: Option<usize>,
        metrics: Arc<JoinMetrics>,
        cancel: Cancel,
    ) -> Result<RecordBatch> {
        let shares = Claim::alone()?.shares(self, &cancel)?;
        let mut probe = Probe::new(Arc::clone(self), limit, shares, None, metrics, cancel);
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

/// One partition of one join: push probe batches, take output batches, finish.
///
/// Output keeps probe order, and build order within a probe row. Build-driven kinds give their closing rows (the unmatched
/// build rows; for semi the matched ones) last, once per run, from the last partition to finish or be dropped. A partition
/// that fails or is dropped counts as done with the probe rows that it has read so far; where it is the last one after all
/// others have finished, the closing rows do not come, since no one is left to give them.
#[derive(Debug)]
pub struct Probe {
    plan: Arc<ProbePlan>,
    metrics: Arc<JoinMetrics>,
    cancel: Cancel,
    shares: Shares,
    /// Held for as long as probe rows are read.
    filter: Option<FilterShare>,
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
    /// What a build-driven kind still has to give.
    rest: Option<RowBits>,
}

impl Probe {
    pub(crate) fn new(
        plan: Arc<ProbePlan>,
        limit: Option<usize>,
        shares: Shares,
        filter: Option<FilterShare>,
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
            shares,
            filter,
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
    pub fn schema(&self) -> &SchemaRef {
        &self.plan.output.schema
    }

    /// False once no further probe batch can change what comes out: the limit is reached, or nothing can match.
    pub fn wants_input(&self) -> bool {
        !self.finished && self.left > 0 && self.plan.wants_probe()
    }

    /// About how many rows the next [`next_output`](Self::next_output) works on.
    #[cfg(feature = "python")]
    pub(crate) fn pending_rows(&self) -> usize {
        self.input.as_ref().map_or(0, |input| input.batch.num_rows()).max(self.rest.as_ref().map_or(0, RowBits::len))
    }

    /// Takes one probe batch; [`next_output`](Self::next_output) must have answered `None` before.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the batch's columns do not fit the probe schema.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if self.finished || self.input.is_some() {
            return plan_err!("a probe takes a batch when the last one is read and before it is finished");
        }
        check_input(&batch, &self.plan.probe_schema)?;
        add(&self.metrics.input_batches, 1);
        add(&self.metrics.input_rows, batch.num_rows());
        if let Some(visited) = self.shares.visited.as_ref().filter(|_| self.plan.null_aware && batch.num_rows() > 0) {
            visited.probe_rows.store(true, Ordering::Relaxed);
            if batch.column(self.plan.probe_keys[0]).logical_null_count() > 0 {
                visited.probe_nulls.store(true, Ordering::Relaxed);
            }
        }
        self.feed(batch)
    }

    /// Takes a batch that is known to fit.
    pub(super) fn feed(&mut self, batch: RecordBatch) -> Result<()> {
        if self.wants_input() {
            let lookup = self.plan.key_source(&batch, &mut self.hits)?;
            self.input = Some(Input::new(batch, lookup, std::mem::take(&mut self.hits), self.cancel.clone()));
        }
        Ok(())
    }

    /// Says that no batch follows; what is left comes out of [`next_output`](Self::next_output).
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) where it was finished before.
    pub fn finish(&mut self) -> Result<()> {
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
        let last = self.shares.claim.end();
        self.filter = None;
        self.shares.seen = None;
        let Some(visited) = self.shares.visited.take() else { return Ok(()) };
        // A null-aware anti join from the build side gives nothing once a probe key was null.
        let nothing_left = self.plan.null_aware && visited.probe_nulls.load(Ordering::Relaxed);
        if last && self.left > 0 && !nothing_left {
            let ProbePlan { build, pool, .. } = self.plan.as_ref();
            let by_row = self.plan.visits_rows();
            self.rest = Some(build.guarded(|| visited.to_rows(build, by_row, pool, &self.cancel))?);
        }
        Ok(())
    }

    /// Gives back what is of no use once the limit is reached.
    fn let_go(&mut self) {
        self.shares.claim.end();
        self.filter = None;
        self.shares.seen = None;
        self.shares.visited = None;
        self.input = None;
        self.rest = None;
        self.entries = Entries::default();
        self.hits = Hits::default();
        self.residual = Residual::default();
    }

    /// The next output batch, of at most `batch_size` rows and never empty; `None` when another batch must be pushed, or
    /// after [`finish`](Self::finish) when all is given.
    pub fn next_output(&mut self) -> Result<Option<RecordBatch>> {
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
        let (schema, cancel) = (Arc::clone(&self.plan.output.schema), self.cancel.clone());
        drain(&schema, &cancel, || self.next_output())
    }

    /// The next entries of the batch that was fed, in place of those that `entries` holds; false where it has no more. For
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
        let Self { plan, shares, input, entries, residual, cancel, .. } = self;
        let Some(input) = input else { return Ok(false) };
        let visited = shares.visited.as_deref();
        let mut repeated = None;
        let mut see = |group| {
            if let Some(seen) = &shares.seen
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
            match (visited, &shares.seen) {
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

    /// Keeps the entries that the kind gives; a predicate has done so before.
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
        check_batch_size(&self.plan.output.schema, rows)?;
        let (build, probe) = (&self.entries.build[..rows], &self.entries.probe[..rows]);
        let sides = Sides::new(&self.plan, &input.batch, build, probe)?;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.plan.output.columns.len());
        for (source, field) in self.plan.output.sources.iter().zip(self.plan.output.schema.fields()) {
            let named = |error| in_column(error, field.name());
            self.poll(rows)?;
            columns.push(match *source {
                Source::Build(i) => sides.build(i).map_err(named)?,
                Source::Probe(i) => sides.probe(i).map_err(named)?,
                Source::Output(i) => columns[i].clone(),
                Source::Mark => {
                    let marks = BooleanBuffer::collect_bool(rows, |i| build[i] != NONE);
                    Arc::new(BooleanArray::new(marks, None))
                }
            });
        }
        self.batch(columns, rows)
    }

    /// Looks at the stop signal before a column of so many rows is made, where that takes long.
    fn poll(&self, rows: usize) -> Result<()> {
        if rows > LONG_ROWS { self.cancel.check() } else { Ok(()) }
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.plan.output.schema.clone(), columns, &options)?)
    }

    /// The next build rows that a build-driven kind gives at its end, beside null probe columns.
    fn next_rest(&mut self) -> Result<Option<RecordBatch>> {
        let Self { plan, rest, left, cancel, .. } = self;
        let Some(rest) = rest else { return Ok(None) };
        let mut rows = Vec::new();
        let marked = plan.join_type == JoinType::BuildSemi;
        // SQL NOT IN: a null build key is unknown against any probe row. `finish` left no rest for null probe keys.
        let drops_nulls = plan.null_aware && rest.probe_had_rows;
        let key_nulls = match drops_nulls {
            true => plan.build.column(plan.build.keys()[0])?.logical_nulls(),
            false => None,
        };
        let keep = |row: usize| key_nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        rest.next_rows(marked, plan.batch_size.min(*left), keep, &mut rows, cancel)?;
        if rows.is_empty() {
            self.rest = None;
            return Ok(None);
        }
        *left -= rows.len();
        let selection = Selection::try_new(&rows, plan.build.num_rows())?;
        let plan = Arc::clone(plan);
        let columns = plan.output.columns.iter().map(|column| match *column {
            OutputColumn::Build(i) | OutputColumn::Key { build: i, .. } => {
                self.poll(rows.len())?;
                gather(plan.build_columns.get(i)?, selection)
            }
            OutputColumn::Probe(i) => nulls(plan.probe_schema.field(i).data_type(), rows.len()),
            OutputColumn::Mark => internal_err!("a mark join has no unmatched build rows"),
        });
        let columns = columns.zip(plan.output.schema.fields());
        let columns = columns.map(|(column, field)| column.map_err(|error| in_column(error, field.name())));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.batch(columns, rows.len()).map(Some)
    }
}

/// Both sides of some entries.
struct Sides<'a> {
    build_columns: &'a LeasedColumns,
    probe_rows: &'a RecordBatch,
    build: Option<Selection<'a>>,
    probe: Selection<'a>,
}

impl<'a> Sides<'a> {
    fn new(plan: &'a ProbePlan, batch: &'a RecordBatch, build: &'a [u32], probe: &'a [u32]) -> Result<Self> {
        let expanded = plan.shape().expand;
        let build = expanded.then(|| Selection::try_new(build, plan.build.num_rows())).transpose()?;
        let probe = Selection::try_new(probe, batch.num_rows())?;
        Ok(Self { build_columns: &plan.build_columns, probe_rows: batch, build, probe })
    }

    fn build(&self, column: usize) -> Result<ArrayRef> {
        match self.build {
            Some(selection) => gather(self.build_columns.get(column)?, selection),
            None => internal_err!("build column {column} of entries that hold no build rows"),
        }
    }

    fn probe(&self, column: usize) -> Result<ArrayRef> {
        gather(self.probe_rows.column(column), self.probe)
    }
}

fn too_large(what: &str) -> Error {
    Error::Overflow(format!("the output does not fit one batch: {what}; give the probe side as a stream"))
}

/// Refuses a single batch of more than 2^31-1 rows, or of more than 2 GiB in a column of fixed width.
pub(crate) fn check_batch_size(schema: &SchemaRef, rows: usize) -> Result<()> {
    if rows > i32::MAX as usize {
        return Err(too_large("it has more than 2^31-1 rows"));
    }
    let outgrown = |field: &&FieldRef| {
        let bytes = fixed_width(field.data_type()).map_or(Some(0), |width| width.checked_mul(rows));
        bytes.is_none_or(|bytes| bytes > i32::MAX as usize)
    };
    match schema.fields().iter().find(outgrown) {
        Some(field) => {
            Err(too_large(&format!("column {:?} of type {} outgrows 2 GiB", field.name(), field.data_type())))
        }
        None => Ok(()),
    }
}

/// All batches that `next` gives as one.
pub(super) fn drain(
    schema: &SchemaRef,
    cancel: &Cancel,
    mut next: impl FnMut() -> Result<Option<RecordBatch>>,
) -> Result<RecordBatch> {
    let Some(first) = next()? else { return Ok(RecordBatch::new_empty(schema.clone())) };
    let mut rows = first.num_rows();
    check_batch_size(schema, rows)?;
    let mut batches = vec![first];
    while let Some(batch) = next()? {
        // While it grows, before memory for the whole is asked for.
        rows += batch.num_rows();
        check_batch_size(schema, rows)?;
        batches.push(batch);
    }
    match batches.len() {
        1 => Ok(batches.remove(0)),
        _ => one_batch(schema, &batches, cancel),
    }
}

/// The pieces of an output in as few batches as they fit: one, unless a column outgrows it.
#[cfg(feature = "python")]
pub(crate) fn few_batches(
    schema: &SchemaRef,
    mut pieces: Vec<RecordBatch>,
    cancel: &Cancel,
) -> Result<Vec<RecordBatch>> {
    pieces.retain(|piece| piece.num_rows() > 0);
    let mut batches = Vec::new();
    let mut rest = pieces.as_slice();
    while let Some(first) = rest.first() {
        // All of them as a rule; where they do not fit, bisection finds how many do.
        let (mut fit, mut over, mut batch) = (1, rest.len() + 1, first.clone());
        let mut tried = rest.len();
        while over - fit > 1 {
            match one_batch(schema, &rest[..tried], cancel) {
                Ok(larger) => (fit, batch) = (tried, larger),
                Err(Error::Overflow(_)) => over = tried,
                Err(other) => return Err(other),
            }
            tried = fit.midpoint(over);
        }
        batches.push(batch);
        rest = &rest[fit..];
    }
    Ok(batches)
}

/// The pieces of an output as one batch.
fn one_batch(schema: &SchemaRef, pieces: &[RecordBatch], cancel: &Cancel) -> Result<RecordBatch> {
    let rows = pieces.iter().map(RecordBatch::num_rows).sum();
    check_batch_size(schema, rows)?;
    let column = |i: usize| -> Result<ArrayRef> {
        let parts: Vec<ArrayRef> = pieces.iter().map(|piece| piece.column(i).clone()).collect();
        let data_type = parts[0].data_type();
        let outgrown = || too_large(&format!("column {:?} of type {data_type} outgrows it", schema.field(i).name()));
        cancel.check()?;
        // Arrow's looks at no stop signal, panics on lists that outgrow their offsets, and refuses dictionaries that just
        // fill their key type; it shares the text of views.
        if !matches!(data_type, DataType::Utf8View | DataType::BinaryView) {
            return concat_column(&parts, cancel).map_err(|error| match error {
                Error::Overflow(_) => outgrown(),
                other => other,
            });
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        concat(&parts).map_err(|error| match error {
            ArrowError::OffsetOverflowError(_) => outgrown(),
            other => other.into(),
        })
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// Whether a probe batch may be taken: its columns, its size, and no nulls where the schema declares none.
pub(super) fn check_input(batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    check_batch(batch, schema)?;
    if batch.num_rows() >= NONE as usize {
        return plan_err!("a probe batch holds {} rows, at most {} are possible; cut it", batch.num_rows(), NONE - 1);
    }
    let fields = schema.fields().iter();
    if let Some((field, _)) = fields.zip(batch.columns()).find(|(f, c)| !f.is_nullable() && c.null_count() > 0) {
        return Err(Error::Execution(format!(
            "a probe batch holds nulls in column {:?}, which the probe side's schema declares without nulls; declare it \
             nullable",
            field.name()
        )));
    }
    Ok(())
}

/// Nullability and metadata may differ from the schema, names and types may not.
fn check_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    if Arc::ptr_eq(batch.schema_ref(), schema) {
        return Ok(());
    }
    let found = batch.schema_ref();
    if found.fields().len() != schema.fields().len() {
        return plan_err!(
            "a probe batch has {} columns, the probe schema has {}",
            found.fields().len(),
            schema.fields().len()
        );
    }
    for (found, field) in found.fields().iter().zip(schema.fields()) {
        if found.name() != field.name() || found.data_type() != field.data_type() {
            return plan_err!(
                "a probe batch has column {:?} of type {} where the probe schema has {:?} of type {}",
                found.name(),
                found.data_type(),
                field.name(),
                field.data_type()
            );
        }
    }
    Ok(())
}
