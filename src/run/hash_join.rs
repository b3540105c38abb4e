//! The join descriptor: what is joined how, and which prepared build it is attached to.

use std::fmt::Display;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::dynamic_filter::{DynamicFilter, FilterShare};
use super::source::{BatchStream, Source};
use super::state::RunState;
use super::stream::JoinStream;
use crate::cancel::Cancel;
use crate::columns::comparable;
use crate::columns::{names, position};
use crate::error::{Result, internal_err, plan_err};
use crate::expr::{ColumnId, ColumnRef, Expr, Predicate, Side};
use crate::join::Output;
use crate::join::Validate;
use crate::join::{JoinType, PartitionMode};
use crate::memory::{MemoryPool, Pool};
use crate::prepare::Config;
use crate::prepare::{BuildSpec, Collector, LeasedColumns, NullEquality, PreparedBuild, check_equality};
use crate::probe::Claim;
use crate::probe::KeyReader;
use crate::probe::Metrics;
use crate::probe::{Probe, ProbePlan};

/// A key column of one side: its name, its position, or an expression that is a plain column.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinKey {
    /// By name, which must be unique on its side.
    Name(String),
    /// By position.
    Position(usize),
    /// An expression; joins take plain columns only and refuse any other.
    Expr(Box<Expr>),
}

impl From<&str> for JoinKey {
    fn from(name: &str) -> Self {
        JoinKey::Name(name.to_owned())
    }
}

impl From<String> for JoinKey {
    fn from(name: String) -> Self {
        JoinKey::Name(name)
    }
}

impl From<usize> for JoinKey {
    fn from(position: usize) -> Self {
        JoinKey::Position(position)
    }
}

impl From<ColumnId> for JoinKey {
    fn from(id: ColumnId) -> Self {
        match id {
            ColumnId::Name(name) => JoinKey::Name(name),
            ColumnId::Position(position) => JoinKey::Position(position),
        }
    }
}

impl From<Expr> for JoinKey {
    fn from(expr: Expr) -> Self {
        JoinKey::Expr(Box::new(expr))
    }
}

impl JoinKey {
    /// How the column was given, which is at `position`.
    fn id(&self, position: usize) -> ColumnId {
        match self {
            JoinKey::Name(name) => ColumnId::Name(name.clone()),
            JoinKey::Position(_) => ColumnId::Position(position),
            JoinKey::Expr(expr) => match expr.as_ref() {
                Expr::Column(ColumnRef { id, .. }) => id.clone(),
                _ => ColumnId::Position(position),
            },
        }
    }

    pub(crate) fn resolve(&self, schema: &SchemaRef, side: Side) -> Result<usize> {
        match self {
            JoinKey::Name(name) => position(schema, name, &side.to_string()),
            JoinKey::Position(position) if *position < schema.fields().len() => Ok(*position),
            JoinKey::Position(position) => plan_err!(
                "the {side} side has no column {position}; it has {} columns: {}",
                schema.fields().len(),
                names(schema)
            ),
            JoinKey::Expr(expr) => match expr.as_ref() {
                Expr::Column(column) if column.side.is_none_or(|of| of == side) => match &column.id {
                    ColumnId::Name(name) => JoinKey::Name(name.clone()).resolve(schema, side),
                    ColumnId::Position(position) => JoinKey::Position(*position).resolve(schema, side),
                },
                Expr::Column(column) => {
                    plan_err!("key pairs are (build key, probe key), the {side} side's key is {column}")
                }
                other => plan_err!(
                    "hash joins require direct column keys, the {side} side's key is {other}; compute it before"
                ),
            },
        }
    }
}

/// An output column of a projection: by position, or by name, which must be unique on its side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectedColumn {
    /// By position in (build columns, probe columns, mark).
    Position(usize),
    /// A column of the build side by name.
    Build(String),
    /// A column of the probe side by name.
    Probe(String),
    /// The column that a mark join adds.
    Mark,
}

impl From<usize> for ProjectedColumn {
    fn from(position: usize) -> Self {
        ProjectedColumn::Position(position)
    }
}

impl ProjectedColumn {
    fn resolve(&self, build: &SchemaRef, probe: &SchemaRef) -> Result<usize> {
        let builds = build.fields().len();
        Ok(match self {
            ProjectedColumn::Position(position) => *position,
            ProjectedColumn::Build(name) => position(build, name, "build")?,
            ProjectedColumn::Probe(name) => builds + position(probe, name, "probe")?,
            ProjectedColumn::Mark => builds + probe.fields().len(),
        })
    }
}

/// How a join runs: not part of what it means.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Largest number of rows of an output batch. Default 8192.
    pub batch_size: usize,
    /// Pays for builds and visited bits of this run. Default an unlimited pool.
    pub pool: Arc<dyn Pool>,
    /// Choices for builds of this run.
    pub config: Config,
    /// Asks the run to stop.
    pub cancel: Cancel,
}

impl Default for RunOptions {
    fn default() -> Self {
        let (config, cancel) = (Config::default(), Cancel::default());
        Self { batch_size: 8192, pool: Arc::new(MemoryPool::unlimited()), config, cancel }
    }
}

/// A hash join of a build side and a probe side, ordinary or attached to a [`PreparedBuild`].
///
/// The public fields are open to change; every execution validates them again (S26).
///
/// Keys, output columns and predicates that were given by name are looked up again where a builder replaces a source.
/// Those given by position, which is also what the public fields hold, need a source with the same columns.
///
/// ```
/// # // S49: this example runs as a doctest.
/// use std::sync::Arc;
/// use arrow_array::{record_batch, RecordBatch};
/// use prejoin::{BatchStream, Config, HashJoin, MemoryPool, Pool, RunOptions, Source};
///
/// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
/// let events = record_batch!(("id", Int64, [2, 3, 2]), ("at", Int32, [10, 20, 30]))?;
///
/// // Prepare once ...
/// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
/// let join = HashJoin::builder(users.schema(), events.schema()).on([("id", "id")]).build()?;
/// let snapshot = BatchStream::from_batches(users.schema(), vec![users]);
/// let prepared = join.prepare_build(snapshot, &pool, Config::default())?;
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
    /// Key pairs as positions (build column, probe column).
    pub on: Vec<(usize, usize)>,
    /// Which rows come out.
    pub join_type: JoinType,
    /// Null equality of each key pair.
    pub null_equality: Vec<NullEquality>,
    /// Residual predicate on candidate pairs.
    pub filter: Option<Expr>,
    /// Output columns as positions in (build columns, probe columns); `None` is all that the kind gives.
    pub projection: Option<Vec<usize>>,
    /// Largest number of rows that each execution gives.
    pub limit: Option<usize>,
    /// How partitions meet.
    pub mode: PartitionMode,
    /// SQL `NOT IN` for anti joins.
    pub null_aware: bool,
    /// How many rows of each side may share a key.
    pub validate: Validate,
    /// Key columns of the probe side are filled from the build side on unmatched build rows.
    pub(crate) coalesce: bool,
    /// Names of the output columns, where they are not those of the inputs.
    pub(crate) names: Option<Vec<String>>,
    /// Further pairs of a build column in `on` and a probe column that must be equal to it, as keys are.
    pub(crate) also: Vec<(usize, usize)>,
    /// What `on` and `projection` were given as, by name or position; of no use where it does not give these any more.
    given_on: Vec<(JoinKey, JoinKey)>,
    given_projection: Vec<ProjectedColumn>,
    build: Source,
    probe: Source,
    attached: Option<Arc<PreparedBuild>>,
    dynamic_filter: Option<Arc<DynamicFilter>>,
    run: Arc<RunState>,
}

/// Sets up or changes a [`HashJoin`]. What is wrong with it is told by [`build`](Self::build).
#[derive(Debug, Clone)]
#[must_use]
pub struct HashJoinBuilder {
    join: HashJoin,
    /// The sources (build, probe) of the join that is changed; `None` for a new one.
    before: Option<(Source, Source)>,
    on: Option<Vec<(JoinKey, JoinKey)>>,
    projection: Option<Option<Vec<ProjectedColumn>>>,
    filter: Option<Option<Expr>>,
    null_equality: Option<NullEquality>,
}

/// What a builder sets anew.
#[derive(Debug, Clone, Copy)]
struct Changes {
    on: bool,
    projection: bool,
    filter: bool,
}

impl HashJoin {
    /// A join of `build` and `probe`: each a [`Source`], or a schema alone where the rows come later.
    pub fn builder(build: impl Into<Source>, probe: impl Into<Source>) -> HashJoinBuilder {
        let (build, probe) = (build.into(), probe.into());
        let join = HashJoin {
            on: Vec::new(),
            join_type: JoinType::default(),
            null_equality: Vec::new(),
            filter: None,
            projection: None,
            limit: None,
            mode: PartitionMode::default(),
            null_aware: false,
            validate: Validate::default(),
            coalesce: false,
            names: None,
            also: Vec::new(),
            given_on: Vec::new(),
            given_projection: Vec::new(),
            run: Arc::new(RunState::new(probe.partitions())),
            build,
            probe,
            attached: None,
            dynamic_filter: None,
        };
        HashJoinBuilder { join, before: None, on: None, projection: None, filter: None, null_equality: None }
    }

    /// A builder that starts from this join; its [`build`](HashJoinBuilder::build) gives a join with a fresh run state.
    pub fn to_builder(&self) -> HashJoinBuilder {
        let before = Some((self.build.clone(), self.probe.clone()));
        let (on, projection, filter, null_equality) = (None, None, None, None);
        HashJoinBuilder { join: self.clone(), before, on, projection, filter, null_equality }
    }

    /// The build source; a placeholder of the same schema where a prepared build is attached.
    pub fn build_source(&self) -> &Source {
        &self.build
    }

    /// The probe source.
    pub fn probe_source(&self) -> &Source {
        &self.probe
    }

    /// The prepared build that is attached.
    pub fn prepared_build(&self) -> Option<&Arc<PreparedBuild>> {
        self.attached.as_ref()
    }

    /// The filter that this join tells its build to.
    pub fn dynamic_filter(&self) -> Option<&Arc<DynamicFilter>> {
        self.dynamic_filter.as_ref()
    }

    /// Schema of the output.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join is not valid.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(self.validate()?.0.schema)
    }

    fn output(&self) -> Result<Output> {
        // Batches of a build may hold nulls where its schema declares none; the held rows tell.
        let held = self.attached.as_ref().map(|prepared| Arc::clone(prepared.rows_schema()));
        let (build, probe) = (held.as_ref().unwrap_or(self.build.schema()), self.probe.schema());
        let projection = self.projection.as_deref();
        let on: Vec<(usize, usize)> = self.pairs().collect();
        let output = Output::try_new(self.join_type, build, probe, &on, projection, self.coalesce)?;
        match &self.names {
            Some(names) => output.with_names(names),
            None => Ok(output),
        }
    }

    /// All pairs (build column, probe column) that are equal in a match.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.on.iter().chain(&self.also).copied()
    }

    /// Checks the join by itself: keys, types, kind, predicate, projection.
    fn validate(&self) -> Result<(Output, Option<Predicate>)> {
        let (build, probe) = (self.build.schema(), self.probe.schema());
        if self.on.is_empty() {
            return plan_err!("a hash join needs at least one key pair, none was given");
        }
        if self.null_equality.len() != self.on.len() {
            return plan_err!(
                "{} key pairs need as many null equalities, there are {}",
                self.on.len(),
                self.null_equality.len()
            );
        }
        for (b, p) in self.pairs() {
            let (Some(b), Some(p)) = (build.fields().get(b), probe.fields().get(p)) else {
                return plan_err!(
                    "key pair ({b}, {p}) is outside of {} build and {} probe columns",
                    build.fields().len(),
                    probe.fields().len()
                );
            };
            check_equality(b)?;
            if !comparable(b.data_type(), p.data_type()) {
                return plan_err!(
                    "key types must match: build column {:?} is {}, probe column {:?} is {}; cast one of them",
                    b.name(),
                    b.data_type(),
                    p.name(),
                    p.data_type()
                );
            }
        }
        if self.null_aware {
            if !matches!(self.join_type, JoinType::ProbeAnti | JoinType::BuildAnti) {
                return plan_err!("null_aware is SQL NOT IN and needs an anti join, this one is {}", self.join_type);
            }
            if self.pairs().count() != 1 || self.filter.is_some() || self.null_equality[0].nulls_equal() {
                return plan_err!("a null-aware anti join takes one key, nulls that match nothing, and no predicate");
            }
        }
        if let Some(filter) = &self.dynamic_filter {
            filter.check_keys(probe, &self.on)?;
        }
        let predicate = self.filter.as_ref().map(|filter| filter.bind(build, probe)).transpose()?;
        Ok((self.output()?, predicate))
    }

    /// What a build for this join must be.
    pub(crate) fn build_spec(&self) -> Result<BuildSpec> {
        let keys = self.on.iter().map(|&(build, _)| build).collect();
        BuildSpec::try_new(self.build.schema().clone(), keys, self.null_equality.clone())
    }

    /// Prepared builds serve collect-left joins.
    fn check_eligible(&self) -> Result<()> {
        if self.mode != PartitionMode::CollectLeft {
            return plan_err!("prepared builds require a CollectLeft join, this one's mode is {}", self.mode);
        }
        Ok(())
    }

    /// S25 and S26: the attached build must be one that this join could have prepared.
    fn check_attached(&self, prepared: &PreparedBuild) -> Result<()> {
        self.check_eligible()?;
        let spec = prepared.spec();
        let keys: Vec<usize> = self.on.iter().map(|&(build, _)| build).collect();
        if spec.schema() != self.build.schema() || spec.keys() != keys || spec.null_equality() != self.null_equality {
            return plan_err!(
                "the prepared build does not match schema, keys or null equality of the join: prepared are columns ({}) with \
                 keys {:?} and {:?}, the join has columns ({}) with keys {:?} and {:?}",
                names(spec.schema()),
                spec.keys(),
                spec.null_equality(),
                names(self.build.schema()),
                keys,
                self.null_equality
            );
        }
        self.validate.check_build(prepared)
    }

    /// Prepares `input` as a build for joins like this one. The join's own build source is not touched: the caller
    /// chooses the snapshot and nothing verifies its contents (S1).
    ///
    /// Caller contract: buffers of `input` stay valid independently of their producer; `pool` outlives every consumer;
    /// filter objects and schema metadata are outside the charge; a producer keeps its own allocations charged until the
    /// stream releases them; the caller coordinates concurrent preparation, publication and eviction.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) before the first batch is asked for, if the join or the input is not
    /// eligible; [`Error::ResourcesExhausted`](crate::Error::ResourcesExhausted) if `pool` refuses; whatever the input
    /// raises, unchanged. After an error the pool is as it was before.
    pub fn prepare_build(
        &self,
        input: BatchStream,
        pool: &Arc<dyn Pool>,
        config: Config,
    ) -> Result<Arc<PreparedBuild>> {
        let mut collector = self.collector(input.schema(), pool, config, Cancel::default())?;
        feed(&mut collector, input, |_| ())?;
        collector.finish()
    }

    /// The push side of [`prepare_build`](Self::prepare_build), for callers that drive the input themselves.
    pub fn collector(
        &self,
        input: &SchemaRef,
        pool: &Arc<dyn Pool>,
        config: Config,
        cancel: Cancel,
    ) -> Result<Collector> {
        self.validate()?;
        self.check_eligible()?;
        if input != self.build.schema() {
            return plan_err!("input schema does not match build schema: {}", difference(input, self.build.schema()));
        }
        Ok(Collector::new(self.build_spec()?, pool, config, cancel))
    }

    /// This join, attached to `prepared`. The build source is replaced by an empty placeholder, and a build attached
    /// before is replaced.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if `prepared` does not fit the join.
    pub fn with_prepared_build(mut self, prepared: Arc<PreparedBuild>) -> Result<Self> {
        self.validate()?;
        self.check_attached(&prepared)?;
        self.build = Source::placeholder(self.build.schema().clone());
        self.attached = Some(prepared);
        self.reset_run();
        Ok(self)
    }

    /// Forgets the run state, detaches the dynamic filter and keeps an attached build, so that the same join runs again.
    pub fn reset(&mut self) {
        self.dynamic_filter = None;
        self.reset_run();
    }

    /// A run state of its own for the next run; the dynamic filter stays and is empty again (S28).
    pub(crate) fn reset_run(&mut self) {
        self.run = Arc::new(RunState::new(self.probe.partitions()));
        if let Some(filter) = &self.dynamic_filter {
            filter.clear();
        }
    }

    /// Sets the key pairs, each key a name, a position or a plain column.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for keys that are no columns; whether they suit is checked by execution.
    pub fn set_on(&mut self, on: &[(JoinKey, JoinKey)]) -> Result<()> {
        let resolve = |(build, probe): &(JoinKey, JoinKey)| -> Result<(usize, usize)> {
            Ok((build.resolve(self.build.schema(), Side::Build)?, probe.resolve(self.probe.schema(), Side::Probe)?))
        };
        self.on = on.iter().map(resolve).collect::<Result<_>>()?;
        self.given_on = on.to_vec();
        Ok(())
    }

    /// Sets the output columns, each a name or a position; `None` is all that the kind gives.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for names that are not there; whether the kind gives them is checked by
    /// execution.
    pub fn set_projection(&mut self, projection: Option<Vec<ProjectedColumn>>) -> Result<()> {
        let (build, probe) = (self.build.schema(), self.probe.schema());
        let resolve = |columns: &Vec<ProjectedColumn>| {
            columns.iter().map(|column| column.resolve(build, probe)).collect::<Result<Vec<usize>>>()
        };
        self.projection = projection.as_ref().map(resolve).transpose()?;
        self.given_projection = projection.unwrap_or_default();
        Ok(())
    }

    /// The key pairs as they were given, in the terms of these schemas; by position where `on` was changed since.
    pub(crate) fn given_on(&self, build: &SchemaRef, probe: &SchemaRef) -> Vec<(ColumnId, ColumnId)> {
        let given = |(i, &(b, p)): (usize, &(usize, usize))| match self.given_on.get(i) {
            Some((build_key, probe_key))
                if self.given_on.len() == self.on.len()
                    && build_key.resolve(build, Side::Build).is_ok_and(|now| now == b)
                    && probe_key.resolve(probe, Side::Probe).is_ok_and(|now| now == p) =>
            {
                (build_key.id(b), probe_key.id(p))
            }
            _ => (ColumnId::Position(b), ColumnId::Position(p)),
        };
        self.on.iter().enumerate().map(given).collect()
    }

    /// The output columns as they were given; see [`given_on`](Self::given_on).
    pub(crate) fn given_projection(&self, build: &SchemaRef, probe: &SchemaRef) -> Option<Vec<ProjectedColumn>> {
        let positions = self.projection.as_ref()?;
        let given = |(i, &position): (usize, &usize)| match self.given_projection.get(i) {
            Some(column)
                if self.given_projection.len() == positions.len()
                    && column.resolve(build, probe).is_ok_and(|now| now == position) =>
            {
                column.clone()
            }
            _ => ProjectedColumn::Position(position),
        };
        Some(positions.iter().enumerate().map(given).collect())
    }

    /// Looks keys and output columns up again where the sources `before` were replaced by ones with other columns, and
    /// refuses positions in those. What a builder sets anew is not looked at.
    fn follow(&mut self, before: &(Source, Source), builder: Changes) -> Result<()> {
        let replaced = |side| match side {
            Side::Build => !same_columns(before.0.schema(), self.build.schema()),
            Side::Probe => !same_columns(before.1.schema(), self.probe.schema()),
        };
        let (build, probe) = (replaced(Side::Build), replaced(Side::Probe));
        if !build && !probe {
            return Ok(());
        }
        let refuse = |what: &dyn Display, side: Side| {
            let (before, now) = match side {
                Side::Build => (before.0.schema(), self.build.schema()),
                Side::Probe => (before.1.schema(), self.probe.schema()),
            };
            plan_err!(
                "{what} is given by position, which needs an equal schema where the {side} source is replaced: its columns                  were {}, they are {}; give the column by its name, or set it anew with the source",
                columns(before),
                columns(now)
            )
        };
        let on = self.given_on(before.0.schema(), before.1.schema());
        if !builder.on {
            for (b, p) in &on {
                for (key, side, replaced) in [(b, Side::Build, build), (p, Side::Probe, probe)] {
                    if let (ColumnId::Position(position), true) = (key, replaced) {
                        return refuse(&format_args!("key column {side}[{position}]"), side);
                    }
                }
            }
        }
        let projection = self.given_projection(before.0.schema(), before.1.schema());
        if !builder.projection {
            let builds = before.0.schema().fields().len();
            for column in projection.iter().flatten() {
                if let &ProjectedColumn::Position(position) = column {
                    let what = format_args!("column {position} of the projection");
                    // Positions of the probe side count from the end of the build side.
                    if build {
                        return refuse(&what, Side::Build);
                    } else if position >= builds {
                        return refuse(&what, Side::Probe);
                    }
                }
            }
        }
        if let Some(filter) = self.filter.as_ref().filter(|_| !builder.filter) {
            for (side, replaced) in [(Side::Build, build), (Side::Probe, probe)] {
                if let (Some(column), true) = (filter.position_on(side), replaced) {
                    return refuse(&format_args!("column {column} of the predicate"), side);
                }
            }
        }
        if !builder.on {
            let on: Vec<(JoinKey, JoinKey)> = on.into_iter().map(|(b, p)| (b.into(), p.into())).collect();
            self.set_on(&on)?;
        }
        if !builder.projection {
            self.set_projection(projection)?;
        }
        Ok(())
    }

    /// Joins `batch` as if it were the whole probe side, into one batch of whatever size.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Error::Execution`](crate::Error::Execution) if a column outgrows its offsets.
    pub fn run_once(&self, batch: RecordBatch, options: &RunOptions) -> Result<RecordBatch> {
        self.check()?;
        if self.mode == PartitionMode::Partitioned && self.build.partitions() > 1 {
            return plan_err!(
                "one batch as the whole probe side of a Partitioned join would meet one of its {} builds; execute its \
                 partitions, or use CollectLeft",
                self.build.partitions()
            );
        }
        let plan = self.probe_plan(self.run.build(self, 0, options)?, options)?;
        self.run_planned(&Arc::new(plan), batch, options.cancel.clone())
    }

    /// The same with the plan at hand.
    pub(crate) fn run_planned(&self, plan: &Arc<ProbePlan>, batch: RecordBatch, cancel: Cancel) -> Result<RecordBatch> {
        let mut filter = self.filter_share(false);
        if let Some(filter) = &mut filter {
            filter.report(plan)?;
        }
        plan.run_once(batch, self.limit, Arc::clone(self.run.metrics()), cancel)
    }

    /// This join with `projection` (positions in its output) embedded; nothing is pushed into the build side (S32).
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a position out of range.
    pub fn with_embedded_projection(mut self, projection: &[usize]) -> Result<Self> {
        let (builds, probes) = (self.build.schema().fields().len(), self.probe.schema().fields().len());
        let columns = self.validate()?.0.columns;
        let given = self.given_projection(self.build.schema(), self.probe.schema());
        let embed = |&position: &usize| match columns.get(position) {
            Some(column) => Ok(match &given {
                Some(given) => given[position].clone(),
                None => ProjectedColumn::Position(column.position(builds, probes)),
            }),
            None => plan_err!("projection names column {position} of an output of {}", columns.len()),
        };
        let projection = projection.iter().map(embed).collect::<Result<_>>()?;
        self.set_projection(Some(projection))?;
        self.reset_run();
        Ok(self)
    }

    /// Number of partitions that [`execute`](Self::execute) takes.
    pub fn partitions(&self) -> usize {
        self.probe.partitions()
    }

    /// What this join's run did so far.
    pub fn metrics(&self) -> Metrics {
        self.run.metrics().snapshot()
    }

    /// Runs one probe partition; nothing is pulled before the stream is.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join, changed since it was built or attached, is not valid any more.
    pub fn execute(&self, partition: usize, options: &RunOptions) -> Result<JoinStream> {
        JoinStream::try_new(self.clone(), partition, options.clone())
    }

    /// The plan of a probe of `build`, validated now.
    pub(crate) fn probe_plan(&self, build: Arc<PreparedBuild>, options: &RunOptions) -> Result<ProbePlan> {
        let (output, predicate) = self.check()?;
        self.validate.check_build(&build)?;
        let probe_schema = self.probe.schema();
        let probe_keys: Vec<usize> = self.on.iter().map(|&(_, probe)| probe).collect();
        let key_reader = KeyReader::try_new(&build, &probe_keys, probe_schema)?;
        // A row matches where its keys are one key of the build whichever of several columns each is read from.
        let mut further = Vec::with_capacity(self.also.len());
        for &(of, probe) in &self.also {
            let Some(key) = self.on.iter().position(|&(key, _)| key == of) else {
                return internal_err!("build column {of} is tested as a key and is none");
            };
            further.push((key, probe));
        }
        let further_keys = KeyReader::further(&build, &probe_keys, &further, probe_schema)?;
        // A file that was opened unverified is checked in the columns that are read alone.
        let tested = predicate.iter().flat_map(|predicate| predicate.columns());
        let tested = tested.filter(|(side, _)| *side == Side::Build).map(|&(_, column)| column);
        let build_columns = LeasedColumns::try_new(&build, output.build_columns(self.join_type).chain(tested))?;
        Ok(ProbePlan {
            build,
            build_columns,
            probe_schema: probe_schema.clone(),
            probe_keys,
            key_reader,
            further_keys,
            join_type: self.join_type,
            null_aware: self.null_aware,
            validate: self.validate,
            predicate,
            output,
            batch_size: options.batch_size.max(1),
            pool: Arc::clone(&options.pool),
        })
    }

    /// Opens one partition for pushing: collects or finds the build, and validates.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and whatever collecting an ordinary build raises.
    pub fn open(&self, partition: usize, options: &RunOptions) -> Result<Probe> {
        self.check()?;
        let (claim, filter) = self.claim(partition)?;
        self.start(partition, options, claim, filter)
    }

    /// Claims a partition of this run, and its share in the dynamic filter. What is dropped counts as done.
    pub(crate) fn claim(&self, partition: usize) -> Result<(Claim, Option<FilterShare>)> {
        // The filter waits for each build of a Partitioned join once.
        let awaited = self.dynamic_filter.is_some() && self.mode == PartitionMode::Partitioned;
        let shared = self.join_type.is_build_driven() || self.validate.probe_unique();
        let claim = self.run.claim(partition, awaited || shared)?;
        Ok((claim, self.filter_share(awaited)))
    }

    /// Counts the partitions of this run that nobody has executed as done.
    #[cfg(feature = "python")]
    pub(crate) fn end_run(&self) {
        self.run.end_unclaimed();
    }

    fn filter_share(&self, awaited: bool) -> Option<FilterShare> {
        let builds = if self.mode == PartitionMode::Partitioned { self.partitions() } else { 1 };
        self.dynamic_filter.as_ref().map(|filter| filter.share(&self.run, builds, awaited))
    }

    /// Opens a partition that was claimed. The dynamic filter is told of the build before any probe row is asked for.
    pub(crate) fn start(
        &self,
        partition: usize,
        options: &RunOptions,
        claim: Claim,
        mut filter: Option<FilterShare>,
    ) -> Result<Probe> {
        let build = self.run.build(self, partition, options)?;
        let plan = self.probe_plan(build, options)?;
        if let Some(filter) = &mut filter {
            filter.report(&plan)?;
        }
        let claim = match self.mode {
            PartitionMode::CollectLeft => claim,
            // The only partition that probes its build.
            PartitionMode::Partitioned => Claim::alone()?,
        };
        let shares = claim.shares(&plan, &options.cancel)?;
        let metrics = Arc::clone(self.run.metrics());
        Ok(Probe::new(Arc::new(plan), self.limit, shares, filter, metrics, options.cancel.clone()))
    }

    /// Everything that an execution validates.
    pub(crate) fn check(&self) -> Result<(Output, Option<Predicate>)> {
        let valid = self.validate()?;
        match &self.attached {
            Some(prepared) => self.check_attached(prepared)?,
            None if self.mode == PartitionMode::Partitioned && self.build.partitions() != self.probe.partitions() => {
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

    /// Collects the build of an ordinary join: all partitions of the build source, or the one of `partition`.
    pub(crate) fn collect_build(&self, partition: Option<usize>, options: &RunOptions) -> Result<Arc<PreparedBuild>> {
        let mut collector =
            Collector::new(self.build_spec()?, &options.pool, options.config.clone(), options.cancel.clone());
        for partition in partition.map_or(0..self.build.partitions(), |partition| partition..partition + 1) {
            feed(&mut collector, self.build.open(partition)?, |batch| self.run.metrics().count_build(batch))?;
        }
        collector.finish()
    }
}

/// Feeds a collector; the input is dropped before the rows are concatenated (S4).
fn feed(collector: &mut Collector, mut input: BatchStream, seen: impl Fn(&RecordBatch)) -> Result<()> {
    while let Some((batch, origin)) = input.next_with_origin().transpose()? {
        seen(&batch);
        collector.push_from(batch, origin)?;
    }
    Ok(())
}

/// True where columns have the same names and types in the same order.
fn same_columns(a: &SchemaRef, b: &SchemaRef) -> bool {
    let columns = |schema: &SchemaRef| schema.fields().len();
    Arc::ptr_eq(a, b)
        || columns(a) == columns(b)
            && a.fields().iter().zip(b.fields()).all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type())
}

/// Names and types of columns, for error texts.
fn columns(schema: &SchemaRef) -> String {
    let columns = schema.fields().iter().map(|field| format!("{:?} {}", field.name(), field.data_type()));
    format!("({})", columns.collect::<Vec<_>>().join(", "))
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

impl HashJoinBuilder {
    /// Key pairs (build key, probe key), each a name, a position or a plain column expression.
    pub fn on<B: Into<JoinKey>, P: Into<JoinKey>>(mut self, pairs: impl IntoIterator<Item = (B, P)>) -> Self {
        self.on = Some(pairs.into_iter().map(|(build, probe)| (build.into(), probe.into())).collect());
        self
    }

    /// The kind of the join.
    pub fn join_type(mut self, join_type: JoinType) -> Self {
        self.join.join_type = join_type;
        self
    }

    /// One null equality for all keys. Default: nulls match nothing.
    pub fn null_equality(mut self, null_equality: NullEquality) -> Self {
        self.null_equality = Some(null_equality);
        self
    }

    /// A null equality for each key, in key order.
    pub fn null_equalities(mut self, null_equality: Vec<NullEquality>) -> Self {
        self.null_equality = None;
        self.join.null_equality = null_equality;
        self
    }

    /// A residual predicate over candidate pairs.
    pub fn filter(mut self, filter: Option<Expr>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Output columns by position in (build columns, probe columns).
    pub fn projection(self, projection: Option<Vec<usize>>) -> Self {
        self.projected(projection.map(|columns| columns.into_iter().map(ProjectedColumn::Position).collect()))
    }

    /// Output columns, each by name or position; `None` is all that the kind gives.
    pub fn projected(mut self, projection: Option<Vec<ProjectedColumn>>) -> Self {
        self.projection = Some(projection);
        self
    }

    /// Largest number of output rows per execution.
    pub fn limit(mut self, limit: Option<usize>) -> Self {
        self.join.limit = limit;
        self
    }

    /// How partitions meet.
    pub fn mode(mut self, mode: PartitionMode) -> Self {
        self.join.mode = mode;
        self
    }

    /// SQL `NOT IN` for anti joins.
    pub fn null_aware(mut self, null_aware: bool) -> Self {
        self.join.null_aware = null_aware;
        self
    }

    /// How many rows of each side may share a key.
    pub fn validate(mut self, validate: Validate) -> Self {
        self.join.validate = validate;
        self
    }

    /// The filter that the join tells its build to; one over the join's probe keys, of its own for each independent run.
    pub fn dynamic_filter(mut self, filter: Option<Arc<DynamicFilter>>) -> Self {
        self.join.dynamic_filter = filter;
        self
    }

    /// Whether unmatched build rows fill the probe's key columns with their own keys.
    #[cfg(feature = "python")]
    pub(crate) fn coalesce(mut self, coalesce: bool) -> Self {
        self.join.coalesce = coalesce;
        self
    }

    /// Names of the output columns instead of those of the inputs.
    #[cfg(feature = "python")]
    pub(crate) fn output_names(mut self, names: Option<Vec<String>>) -> Self {
        self.join.names = names;
        self
    }

    /// Further pairs (build column, probe column): the build column is one of `on`, and is equal to this one too.
    #[cfg(feature = "python")]
    pub(crate) fn also(mut self, also: Vec<(usize, usize)>) -> Self {
        self.join.also = also;
        self
    }

    /// Another build source. Refused by [`build`](Self::build) where a prepared build is attached, unless it is the same.
    /// Columns that were given by name are looked up in it.
    pub fn build_source(mut self, build: impl Into<Source>) -> Self {
        self.join.build = build.into();
        self
    }

    /// Another probe source. Columns that were given by name are looked up in it, which [`build`](Self::build) refuses for
    /// positions where its columns are others.
    pub fn probe(mut self, probe: impl Into<Source>) -> Self {
        self.join.probe = probe.into();
        self
    }

    /// The validated join, with a run state of its own.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan): unknown columns, key types that differ, a kind, mode, predicate or projection
    /// that does not fit, or a change that an attached build does not allow.
    pub fn build(mut self) -> Result<HashJoin> {
        let join = &mut self.join;
        if let Some(before) = &self.before {
            let (on, projection) = (self.on.is_some(), self.projection.is_some());
            join.follow(before, Changes { on, projection, filter: self.filter.is_some() })?;
        }
        if let Some(on) = &self.on {
            join.set_on(on)?;
        }
        if let Some(projection) = self.projection {
            join.set_projection(projection)?;
        }
        if let Some(filter) = self.filter {
            join.filter = filter;
        }
        if let Some(null_equality) = self.null_equality {
            join.null_equality = vec![null_equality; join.on.len()];
        } else if join.null_equality.is_empty() {
            join.null_equality = vec![NullEquality::default(); join.on.len()];
        }
        if join.attached.is_some() && self.before.is_some_and(|(build, _)| !join.build.same(&build)) {
            return plan_err!(
                "Cannot replace the build child of a join that a prepared build is attached to; make a new join"
            );
        }
        join.check()?;
        join.reset_run();
        Ok(self.join)
    }
}
