//! The join descriptor: what is joined how, where the rows come from, and the state of its run.

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::dynamic_filter::{DynamicFilter, FilterShare};
use super::options::RunOptions;
use super::source::{BatchStream, Source};
use super::state::RunState;
use crate::cancel::Cancel;
use crate::columns::names;
use crate::error::{Result, not_supported, plan_err};
use crate::expr::Predicate;
use crate::join::{
    ExplainFormat, JoinSpec, Output, PartitionMode, Properties, Sides, Statistics, decode, encode, explain, properties,
    statistics,
};
use crate::memory::Pool;
use crate::prepare::{Collector, PrepareOptions, PreparedBuild};
use crate::probe::{Claim, Metrics, PartitionMarks, ProbeLoop, ProbePlan, Timer, add};

/// A hash join of a build side and a probe side, ordinary or attached to a [`PreparedBuild`].
///
/// What is joined how is in [`spec`](Self::spec), which is open to change; every execution validates it again.
///
/// Keys, output columns and predicates that were chosen by name are looked up again where a builder replaces a source.
/// Those chosen by position, which is also what the fields of the spec hold, need a source with the same columns.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{record_batch, RecordBatch};
/// use prejoin::{BatchStream, PrepareOptions, HashJoin, MemoryPool, Pool, RunOptions, Source};
///
/// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
/// let events = record_batch!(("id", Int64, [2, 3, 2]), ("at", Int32, [10, 20, 30]))?;
///
/// // Prepare once ...
/// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
/// let join = HashJoin::builder(users.schema(), events.schema()).on([("id", "id")]).build()?;
/// let snapshot = BatchStream::from_batches(users.schema(), vec![users]);
/// let prepared = join.prepare_build(snapshot, &pool, PrepareOptions::default())?;
///
/// // ... attach to any number of joins, each with its own probe.
/// let source = Source::from_batches(events.schema(), vec![vec![events]]);
/// let task = join.to_builder().probe(source).build()?.with_prepared_build(prepared)?;
/// let batches = task.execute(0, &RunOptions::default())?.collect::<prejoin::Result<Vec<RecordBatch>>>()?;
/// assert_eq!(batches[0].num_rows(), 2);
/// assert_eq!(batches[0].schema().field(1).name(), "name");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct HashJoin {
    /// What is joined how. Its schemas are those of the sources.
    pub spec: JoinSpec,
    pub(super) build: Source,
    pub(super) probe: Source,
    pub(super) attached: Option<Arc<PreparedBuild>>,
    pub(super) dynamic_filter: Option<Arc<DynamicFilter>>,
    run: Arc<RunState>,
}

/// A partition of a run that nobody else executes, and its share in the dynamic filter. What is dropped counts as done.
#[derive(Debug)]
pub(super) struct ClaimedPartition {
    pub(super) partition: usize,
    pub(super) claim: Claim,
    pub(super) filter: Option<FilterShare>,
}

impl HashJoin {
    /// A join whose spec is still to be set.
    pub(super) fn without_keys(build: Source, probe: Source) -> Self {
        Self::from_spec(JoinSpec::new(build.schema().clone(), probe.schema().clone()), build, probe)
    }

    /// A join of `spec` that is validated by its first use. The sources have the spec's schemas.
    pub(super) fn from_spec(spec: JoinSpec, build: Source, probe: Source) -> Self {
        let run = Arc::new(RunState::new(probe.partitions()));
        Self { spec, build, probe, attached: None, dynamic_filter: None, run }
    }

    /// The build source; a placeholder of the same schema where a prepared build is attached.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).build()?;
    /// assert_eq!(join.build_source().num_rows(), Some(2));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn build_source(&self) -> &Source {
        &self.build
    }

    /// The probe source.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).build()?;
    /// assert_eq!(*join.probe_source().schema(), events.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn probe_source(&self) -> &Source {
        &self.probe
    }

    /// The prepared build that is attached.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users.schema(), events.schema()).on([("id", "id")]).build()?;
    /// assert!(join.prepared_build().is_none());
    /// let join = join.with_prepared_build(prejoin::prepare(users, &["id"], &RunOptions::default())?)?;
    /// assert_eq!(join.prepared_build().unwrap().num_rows(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn prepared_build(&self) -> Option<&Arc<PreparedBuild>> {
        self.attached.as_ref()
    }

    /// The filter that learns of this join's build.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{DynamicFilter, HashJoin};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let filter = DynamicFilter::try_new(events.schema(), ["id"])?;
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).dynamic_filter(Some(filter)).build()?;
    /// assert_eq!(join.dynamic_filter().unwrap().keys(), [0]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn dynamic_filter(&self) -> Option<&Arc<DynamicFilter>> {
        self.dynamic_filter.as_ref()
    }

    /// Schema of the output.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("user", Int64, [2, 3]))?;
    /// let join = HashJoin::builder(users, events).on([("id", "user")]).build()?;
    /// let schema = join.schema()?;
    /// assert_eq!(schema.fields().iter().map(|field| field.name()).collect::<Vec<_>>(), ["id", "name", "user"]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join is not valid.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(self.validate()?.0.schema)
    }

    /// Number of partitions that [`execute`](Self::execute) takes.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, Source};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let probe = Source::from_batches(events.schema(), vec![vec![events.clone()], vec![events]]);
    /// assert_eq!(HashJoin::builder(users, probe).on([("id", "id")]).build()?.partitions(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn partitions(&self) -> usize {
        self.probe.partitions()
    }

    /// What this join's run did so far.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3, 2]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).build()?;
    /// join.run_once(events, &RunOptions::default())?;
    /// let metrics = join.metrics();
    /// assert_eq!((metrics.build_input_rows, metrics.input_rows, metrics.output_rows), (2, 3, 2));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.run.metrics().snapshot()
    }

    fn sides(&self) -> Sides<'_> {
        Sides { build: self.build.declared(), probe: self.probe.declared(), attached: self.attached.as_deref() }
    }

    /// The join as text: everything that is set, whether or not it is still valid.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_schema::{DataType, Field, Schema};
    /// use prejoin::{ExplainFormat, HashJoin};
    ///
    /// let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    /// let join = HashJoin::builder(schema.clone(), schema).on([("id", "id")]).limit(Some(10)).build()?;
    /// assert_eq!(
    ///     join.explain(ExplainFormat::Indent),
    ///     "HashJoin: mode=CollectLeft, join_type=Inner, on=[(build.id, probe.id)], limit=10, \
    ///      null_equality=NullEqualsNothing"
    /// );
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn explain(&self, format: ExplainFormat) -> String {
        let filter = self.dynamic_filter.as_ref().map(|filter| filter as &dyn Display);
        explain(&self.spec, self.sides(), filter, format)
    }

    /// Row counts before the join runs.
    ///
    /// The output is estimated as if every probe row met as many build rows as a build key has on average, and a predicate
    /// kept every pair, so it is a figure of the upper end. Without a known probe side it is that of as many probe rows as
    /// there are build rows. An inexact estimate is never 0.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Estimate, HashJoin};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3, 2]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).build()?;
    /// let statistics = join.statistics();
    /// assert_eq!((statistics.build_rows, statistics.probe_rows), (Estimate::Exact(2), Estimate::Exact(3)));
    /// assert_eq!(statistics.output_rows, Estimate::Inexact(3));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn statistics(&self) -> Statistics {
        statistics(&self.spec, self.sides())
    }

    /// What is known of the output: order, equal columns, partitions.
    ///
    /// Rows come in probe order, so the probe source's order holds unless unmatched build rows follow at the end; join types
    /// that give build rows alone give them in build order. Build rows beside a probe row come in build order too, but start
    /// anew with each probe row, so the build source's order adds nothing: (probe key, build column) is an order where the
    /// build column equals the key. What a source declared goes with it when a prepared build replaces it.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, Source};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("at", Int32, [3]), ("user", Int64, [1]))?);
    /// let join = HashJoin::builder(users, Source::from(events).with_ordering(vec![0])).on([("id", "user")]).build()?;
    /// let properties = join.properties()?;
    /// assert_eq!(properties.ordering, [1]);
    /// assert_eq!(properties.equal_columns, [[0, 2]]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join is not valid, or a source declares columns that it does not have.
    pub fn properties(&self) -> Result<Properties> {
        let (output, _) = self.check()?;
        properties(&self.spec, &output, self.sides())
    }

    /// The join as bytes: everything that describes it, and of its sources the schemas and what they declare. A dynamic
    /// filter belongs to a run and is left out.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).limit(Some(7)).build()?;
    /// assert_eq!(HashJoin::from_bytes(&join.to_bytes()?)?.spec.limit, Some(7));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotSupported`](crate::Error::NotSupported) if a prepared build is attached, or a schema is one that Arrow IPC
    /// does not carry; [`Error::Plan`](crate::Error::Plan) if the join is not valid.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.attached.is_some() {
            return not_supported!(
                "a join with an attached prepared build is not serialized: the rows and their index stay where they \
                 are; serialize the join before attaching, and attach a prepared build of the receiver"
            );
        }
        self.check()?;
        encode(&self.spec, self.sides())
    }

    /// The join that [`to_bytes`](Self::to_bytes) wrote. Its sources have schemas only: replace them by others that open
    /// rows.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let bytes = HashJoin::builder(users.clone(), events.clone()).on([("id", "id")]).build()?.to_bytes()?;
    /// let join = HashJoin::from_bytes(&bytes)?.to_builder().build_source(users).build()?;
    /// assert_eq!(join.run_once(events, &RunOptions::default())?.num_rows(), 1);
    /// assert!(HashJoin::from_bytes(b"something else").is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for bytes that were not written by this version, or describe a join that is not
    /// valid.
    pub fn from_bytes(bytes: &[u8]) -> Result<HashJoin> {
        let (spec, build, probe) = decode(bytes)?;
        let build = Source::declared_only(spec.build_schema().clone(), build);
        let probe = Source::declared_only(spec.probe_schema().clone(), probe);
        let join = Self::from_spec(spec, build, probe);
        join.check()?;
        Ok(join)
    }

    /// Checks the join by itself.
    fn validate(&self) -> Result<(Output, Option<Predicate>)> {
        let sides = [(self.spec.build_schema(), &self.build), (self.spec.probe_schema(), &self.probe)];
        if let Some((schema, source)) = sides.into_iter().find(|(schema, source)| *schema != source.schema()) {
            return plan_err!(
                "the spec of the join is one of columns ({}), its source has ({}); make a new join",
                names(schema),
                names(source.schema())
            );
        }
        let valid = self.spec.validate(self.attached.as_deref())?;
        if let Some(filter) = &self.dynamic_filter {
            filter.check_keys(self.probe.schema(), &self.spec.on)?;
        }
        Ok(valid)
    }

    /// Everything that an execution validates.
    pub(super) fn check(&self) -> Result<(Output, Option<Predicate>)> {
        let valid = self.validate()?;
        match &self.attached {
            Some(prepared) => self.spec.check_build(prepared)?,
            None if self.spec.mode == PartitionMode::Partitioned
                && self.build.partitions() != self.probe.partitions() =>
            {
                return plan_err!(
                    "a Partitioned join needs as many build as probe partitions, there are {} and {}",
                    self.build.partitions(),
                    self.probe.partitions()
                );
            }
            None => (),
        }
        Ok(valid)
    }

    /// Prepares `input` as a build for joins like this one. The join's own build source is not touched: the caller
    /// chooses the snapshot and nothing verifies its contents.
    ///
    /// Caller contract: buffers of `input` stay valid independently of their producer; `pool` outlives every consumer;
    /// filter objects and schema metadata are not charged; a producer keeps its own allocations charged until the
    /// stream releases them; the caller coordinates concurrent preparation, publication and eviction.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, MemoryPool, Pool, PrepareOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let join = HashJoin::builder(users.schema(), events.schema()).on([("id", "id")]).build()?;
    /// let build = join.prepare_build(users.into(), &pool, PrepareOptions::default())?;
    /// assert_eq!((build.num_rows(), pool.reserved()), (2, build.reserved_bytes()));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) before the first batch is asked for, if the join or the input is not
    /// eligible; [`Error::ResourcesExhausted`](crate::Error::ResourcesExhausted) if `pool` refuses; whatever the input
    /// raises, unchanged. After an error the pool is as it was before.
    pub fn prepare_build(
        &self,
        input: BatchStream,
        pool: &Arc<dyn Pool>,
        config: PrepareOptions,
    ) -> Result<Arc<PreparedBuild>> {
        let mut collector = self.collector(input.schema(), pool, config, Cancel::default())?;
        feed(&mut collector, input, |_| ())?;
        collector.finish()
    }

    /// The push side of [`prepare_build`](Self::prepare_build), for callers that drive the input themselves.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, HashJoin, MemoryPool, Pool, PrepareOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let join = HashJoin::builder(users.schema(), events.schema()).on([("id", "id")]).build()?;
    /// let mut collector = join.collector(&users.schema(), &pool, PrepareOptions::default(), Cancel::default())?;
    /// collector.push(users)?;
    /// assert_eq!(collector.finish()?.num_rows(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join or a build of schema `input` is not eligible.
    pub fn collector(
        &self,
        input: &SchemaRef,
        pool: &Arc<dyn Pool>,
        config: PrepareOptions,
        cancel: Cancel,
    ) -> Result<Collector> {
        self.validate()?;
        self.spec.check_eligible()?;
        if input != self.build.schema() {
            return plan_err!("input schema does not match build schema: {}", difference(input, self.build.schema()));
        }
        Ok(Collector::new(self.spec.build_spec()?, pool, config, cancel))
    }

    /// This join, attached to `prepared`. The build source is replaced by an empty placeholder, and a build attached
    /// before is replaced.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users.schema(), events.schema()).on([("id", "id")]).build()?;
    /// let join = join.with_prepared_build(prejoin::prepare(users, &["id"], &RunOptions::default())?)?;
    /// assert_eq!(join.run_once(events, &RunOptions::default())?.num_rows(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if `prepared` does not fit the join.
    pub fn with_prepared_build(mut self, prepared: Arc<PreparedBuild>) -> Result<Self> {
        self.validate()?;
        self.spec.check_build(&prepared)?;
        self.build = Source::schema_only(self.build.schema().clone());
        self.attached = Some(prepared);
        self.reset_run();
        Ok(self)
    }

    /// Makes a fresh run state and detaches the dynamic filter, so that the same join runs again; an attached build stays.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let mut join = HashJoin::builder(users, events).on([("id", "id")]).build()?;
    /// for _run in 0..2 {
    ///     let rows = join.execute(0, &RunOptions::default())?.map(|batch| Ok(batch?.num_rows()));
    ///     assert_eq!(rows.sum::<prejoin::Result<usize>>()?, 1);
    ///     join.reset();
    ///     assert_eq!(join.metrics().output_rows, 0);
    /// }
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn reset(&mut self) {
        self.dynamic_filter = None;
        self.reset_run();
    }

    /// A fresh run state for the next run; the dynamic filter stays and is empty again.
    pub(crate) fn reset_run(&mut self) {
        self.run = Arc::new(RunState::new(self.probe.partitions()));
        if let Some(filter) = &self.dynamic_filter {
            filter.clear();
        }
    }

    /// Joins `batch` as if it were the whole probe side, into one batch of whatever size.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("user", Int64, [2, 3]))?;
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "user")]).build()?;
    /// let joined = join.run_once(events, &RunOptions::default())?;
    /// assert_eq!(joined, record_batch!(("id", Int64, [2]), ("name", Utf8, ["bob"]), ("user", Int64, [2]))?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Error::Overflow`](crate::Error::Overflow) if the output does not fit one batch.
    pub fn run_once(&self, batch: RecordBatch, options: &RunOptions) -> Result<RecordBatch> {
        self.check()?;
        if self.spec.mode == PartitionMode::Partitioned && self.build.partitions() > 1 {
            return plan_err!(
                "one batch as the whole probe side of a Partitioned join would probe one of its {} builds only; execute its \
                 partitions, or use CollectLeft",
                self.build.partitions()
            );
        }
        let plan = self.probe_plan(self.find_build(0, options)?, options)?;
        self.run_planned(&Arc::new(plan), batch, options.cancel.clone())
    }

    /// [`run_once`](Self::run_once) with a plan that was made before.
    pub(crate) fn run_planned(&self, plan: &Arc<ProbePlan>, batch: RecordBatch, cancel: Cancel) -> Result<RecordBatch> {
        let mut filter = self.filter_share(false);
        if let Some(filter) = &mut filter {
            filter.report(plan)?;
        }
        plan.run_once(batch, self.spec.limit, Arc::clone(self.run.metrics()), cancel)
    }

    /// This join with its output narrowed to the columns at these positions of it; nothing is pushed into the build side.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("user", Int64, [2, 3]))?;
    /// let join = HashJoin::builder(users, events).on([("id", "user")]).build()?.with_embedded_projection(&[2, 1])?;
    /// let schema = join.schema()?;
    /// assert_eq!(schema.fields().iter().map(|field| field.name()).collect::<Vec<_>>(), ["user", "name"]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a position out of range.
    pub fn with_embedded_projection(mut self, projection: &[usize]) -> Result<Self> {
        self.validate()?;
        self.spec.project_output(projection)?;
        self.reset_run();
        Ok(self)
    }

    /// The plan of a probe of `build`, validated now.
    pub(crate) fn probe_plan(&self, build: Arc<PreparedBuild>, options: &RunOptions) -> Result<ProbePlan> {
        ProbePlan::try_new(&self.spec, self.check()?, build, options.batch_size, &options.pool)
    }

    /// Claims a partition of this run.
    pub(super) fn claim(&self, partition: usize) -> Result<ClaimedPartition> {
        // The filter waits for each build of a Partitioned join once.
        let awaited = self.dynamic_filter.is_some() && self.spec.mode == PartitionMode::Partitioned;
        let shared = self.spec.join_type.is_build_driven() || self.spec.validate.probe_unique();
        let claim = self.run.claim(partition, awaited || shared)?;
        Ok(ClaimedPartition { partition, claim, filter: self.filter_share(awaited) })
    }

    /// Ends the run: partitions that nobody executed yet count as done and cannot be executed any more. An engine that does not
    /// want them calls it, so that the partitions which are still open give the closing rows and memory is given back.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, JoinType, RunOptions, Source};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let probe = Source::from_batches(events.schema(), vec![vec![events.clone()], vec![events]]);
    /// let join = HashJoin::builder(users, probe).on([("id", "id")]).join_type(JoinType::BuildAnti).build()?;
    /// let first = join.execute(0, &RunOptions::default())?;
    /// join.end_run();
    /// // The first partition is the last one now, so it gives the build rows without a match.
    /// assert_eq!(first.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
    /// assert!(join.execute(1, &RunOptions::default()).is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn end_run(&self) {
        self.run.end_unclaimed();
    }

    fn filter_share(&self, awaited: bool) -> Option<FilterShare> {
        let builds = if self.spec.mode == PartitionMode::Partitioned { self.partitions() } else { 1 };
        self.dynamic_filter.as_ref().map(|filter| filter.share(&self.run, builds, awaited))
    }

    /// The loop of a partition of this run.
    pub(super) fn new_probe_loop(&self, plan: ProbePlan, marks: PartitionMarks, cancel: Cancel) -> ProbeLoop {
        ProbeLoop::new(Arc::new(plan), self.spec.limit, marks, Arc::clone(self.run.metrics()), cancel)
    }

    /// The build that `partition` probes: the attached one, the one that all partitions share, or one for it alone.
    pub(super) fn find_build(&self, partition: usize, options: &RunOptions) -> Result<Arc<PreparedBuild>> {
        if let Some(prepared) = &self.attached {
            return Ok(Arc::clone(prepared));
        }
        match self.spec.mode {
            PartitionMode::Partitioned => self.collect_build(partition..partition + 1, options),
            PartitionMode::CollectLeft => self.run.shared_build(&self.spec.build_spec()?, &options.cancel, || {
                self.collect_build(0..self.build.partitions(), options)
            }),
        }
    }

    /// Collects these partitions of the build source into one build.
    fn collect_build(&self, partitions: Range<usize>, options: &RunOptions) -> Result<Arc<PreparedBuild>> {
        let metrics = self.run.metrics();
        let _timer = Timer::start(&metrics.build_nanos);
        let (spec, config, cancel) = (self.spec.build_spec()?, options.config.clone(), options.cancel.clone());
        let mut collector = Collector::new(spec, &options.pool, config, cancel);
        for partition in partitions {
            feed(&mut collector, self.build.open(partition)?, |batch| metrics.count_build(batch))?;
        }
        let build = collector.finish()?;
        add(&metrics.build_mem_used, build.reserved_bytes());
        Ok(build)
    }
}

/// Feeds a collector; the input is dropped before the rows are concatenated.
pub(super) fn feed(collector: &mut Collector, mut input: BatchStream, seen: impl Fn(&RecordBatch)) -> Result<()> {
    while let Some((batch, origin)) = input.next_with_origin().transpose()? {
        seen(&batch);
        collector.push_from(batch, origin)?;
    }
    Ok(())
}

/// The first difference of two schemas, for error texts.
fn difference(found: &SchemaRef, asked: &SchemaRef) -> String {
    if found.fields().len() != asked.fields().len() {
        return format!("it has columns ({}), the join's build side has ({})", names(found), names(asked));
    }
    match found.fields().iter().zip(asked.fields()).find(|(found, asked)| found != asked) {
        Some((found, asked)) => format!("column {found:?} where the join's build side has {asked:?}"),
        None => "the metadata differ".to_owned(),
    }
}
