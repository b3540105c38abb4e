//! Setting up a join, and changing one.

use std::sync::Arc;

use super::dynamic_filter::DynamicFilter;
use super::hash_join::HashJoin;
use super::source::Source;
use crate::error::{Result, plan_err};
use crate::expr::Expr;
use crate::join::{JoinKey, JoinType, PartitionMode, ProjectedColumn, SetAnew, Validate};
use crate::prepare::NullEquality;

/// Sets up or changes a [`HashJoin`]; [`build`](Self::build) checks it.
#[derive(Debug, Clone)]
#[must_use]
pub struct HashJoinBuilder {
    join: HashJoin,
    /// The build source of the join that is changed; `None` for a new one.
    before: Option<Source>,
    on: Option<Vec<(JoinKey, JoinKey)>>,
    projection: Option<Option<Vec<ProjectedColumn>>>,
    filter: Option<Option<Expr>>,
    null_equality: Option<NullEquality>,
}

impl HashJoin {
    /// A join of `build` and `probe`: each a [`Source`], or a schema alone where the rows come later.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("user", Int64, [2, 3]))?;
    /// let join = HashJoin::builder(users, events).on([("id", "user")]).build()?;
    /// assert_eq!(join.schema()?.fields().len(), 3);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn builder(build: impl Into<Source>, probe: impl Into<Source>) -> HashJoinBuilder {
        let join = HashJoin::without_keys(build.into(), probe.into());
        HashJoinBuilder { join, before: None, on: None, projection: None, filter: None, null_equality: None }
    }

    /// A builder that starts from this join; its [`build`](HashJoinBuilder::build) gives a join with a fresh run state.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, JoinType};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("user", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "user")]).build()?;
    /// let semi = join.to_builder().join_type(JoinType::ProbeSemi).build()?;
    /// assert_eq!((semi.spec.on, semi.spec.join_type), (join.spec.on, JoinType::ProbeSemi));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn to_builder(&self) -> HashJoinBuilder {
        let before = Some(self.build.clone());
        let (on, projection, filter, null_equality) = (None, None, None, None);
        HashJoinBuilder { join: self.clone(), before, on, projection, filter, null_equality }
    }
}

impl HashJoinBuilder {
    /// Key pairs (build key, probe key), each a name, a position or a plain column expression.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    /// use prejoin::expr::{build, probe};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("user", Int64, [2, 3]))?);
    /// let by_name = HashJoin::builder(users.clone(), events.clone()).on([("id", "user")]).build()?;
    /// let by_position = HashJoin::builder(users.clone(), events.clone()).on([(0, 0)]).build()?;
    /// let by_column = HashJoin::builder(users, events).on([(build("id"), probe("user"))]).build()?;
    /// assert_eq!(by_name.spec.on, by_position.spec.on);
    /// assert_eq!(by_name.spec.on, by_column.spec.on);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn on<B: Into<JoinKey>, P: Into<JoinKey>>(mut self, pairs: impl IntoIterator<Item = (B, P)>) -> Self {
        self.on = Some(pairs.into_iter().map(|(build, probe)| (build.into(), probe.into())).collect());
        self
    }

    /// Which rows come out.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, JoinType, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).join_type(JoinType::ProbeAnti).build()?;
    /// let absent = join.run_once(events, &RunOptions::default())?;
    /// assert_eq!(absent.columns(), record_batch!(("id", Int64, [3]))?.columns());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn join_type(mut self, join_type: JoinType) -> Self {
        self.join.spec.join_type = join_type;
        self
    }

    /// One null equality for all keys. Default: nulls match nothing.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, NullEquality, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [Some(1), None]))?, record_batch!(("id", Int64, [None, Some(3)]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]);
    /// let join = join.null_equality(NullEquality::NullEqualsNull).build()?;
    /// assert_eq!(join.run_once(events, &RunOptions::default())?.num_rows(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn null_equality(mut self, null_equality: NullEquality) -> Self {
        self.null_equality = Some(null_equality);
        self
    }

    /// A null equality for each key, in key order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, NullEquality};
    ///
    /// let users = record_batch!(("country", Utf8, ["nl"]), ("id", Int64, [1]))?;
    /// let events = record_batch!(("country", Utf8, ["nl"]), ("user", Int64, [1]))?;
    /// let join = HashJoin::builder(users, events)
    ///     .on([("country", "country"), ("id", "user")])
    ///     .null_equalities(vec![NullEquality::NullEqualsNull, NullEquality::NullEqualsNothing])
    ///     .build()?;
    /// assert_eq!(join.spec.null_equality[0], NullEquality::NullEqualsNull);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn null_equalities(mut self, null_equality: Vec<NullEquality>) -> Self {
        self.null_equality = None;
        self.join.spec.null_equality = null_equality;
        self
    }

    /// A residual predicate over candidate pairs.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::expr::{build, probe};
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 1]), ("since", Int32, [2, 9]))?;
    /// let events = record_batch!(("id", Int64, [1]), ("at", Int32, [5]))?;
    /// let condition = build("since").le(probe("at"));
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).filter(Some(condition)).build()?;
    /// assert_eq!(join.run_once(events, &RunOptions::default())?.num_rows(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn filter(mut self, filter: Option<Expr>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Output columns by position in (build columns, probe columns, mark).
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("id", Int64, [2]), ("at", Int32, [3]))?;
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).projection(Some(vec![3, 1])).build()?;
    /// let schema = join.schema()?;
    /// assert_eq!(schema.fields().iter().map(|field| field.name()).collect::<Vec<_>>(), ["at", "name"]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn projection(self, projection: Option<Vec<usize>>) -> Self {
        self.projected(projection.map(|columns| columns.into_iter().map(ProjectedColumn::Position).collect()))
    }

    /// Output columns, each by name or position; `None` is all that the join type gives.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, ProjectedColumn};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("id", Int64, [2]), ("at", Int32, [3]))?;
    /// let columns = vec![ProjectedColumn::Probe("at".to_owned()), ProjectedColumn::Build("name".to_owned())];
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).projected(Some(columns)).build()?;
    /// assert_eq!(join.spec.projection, Some(vec![3, 1]));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn projected(mut self, projection: Option<Vec<ProjectedColumn>>) -> Self {
        self.projection = Some(projection);
        self
    }

    /// Largest number of output rows per execution.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 1, 2]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).limit(Some(2)).build()?;
    /// assert_eq!(join.run_once(events, &RunOptions::default())?.num_rows(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn limit(mut self, limit: Option<usize>) -> Self {
        self.join.spec.limit = limit;
        self
    }

    /// Which build each probe partition probes.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, PartitionMode, Source};
    ///
    /// // Both sides are partitioned by the parity of their keys.
    /// let users = [record_batch!(("id", Int64, [2, 4]))?, record_batch!(("id", Int64, [1, 3]))?];
    /// let events = [record_batch!(("id", Int64, [4, 4]))?, record_batch!(("id", Int64, [3, 5]))?];
    /// let source = |parts: [arrow_array::RecordBatch; 2]| {
    ///     Source::from_batches(parts[0].schema(), parts.into_iter().map(|part| vec![part]).collect())
    /// };
    /// let join = HashJoin::builder(source(users), source(events)).on([("id", "id")]);
    /// assert_eq!(join.mode(PartitionMode::Partitioned).build()?.partitions(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn mode(mut self, mode: PartitionMode) -> Self {
        self.join.spec.mode = mode;
        self
    }

    /// SQL `NOT IN` for anti joins.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, JoinType, RunOptions};
    ///
    /// // `id NOT IN (1, NULL)` is true for no row.
    /// let (users, events) = (record_batch!(("id", Int64, [Some(1), None]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).join_type(JoinType::ProbeAnti);
    /// assert_eq!(join.null_aware(true).build()?.run_once(events, &RunOptions::default())?.num_rows(), 0);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn null_aware(mut self, null_aware: bool) -> Self {
        self.join.spec.null_aware = null_aware;
        self
    }

    /// How many rows of each side may share a key.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions, Validate};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 2]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).validate(Validate::OneToOne).build()?;
    /// assert!(join.run_once(events, &RunOptions::default()).is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn validate(mut self, validate: Validate) -> Self {
        self.join.spec.validate = validate;
        self
    }

    /// The filter that learns of the join's build. It is over the join's probe keys; give each independent run another one.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{DynamicFilter, HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let filter = DynamicFilter::try_new(events.schema(), ["id"])?;
    /// let join = HashJoin::builder(users, events.clone()).on([("id", "id")]).dynamic_filter(Some(filter.clone())).build()?;
    /// assert_eq!(filter.evaluate(&events)?.true_count(), 2);
    /// join.open(0, &RunOptions::default())?;
    /// assert_eq!(filter.evaluate(&events)?.true_count(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn dynamic_filter(mut self, filter: Option<Arc<DynamicFilter>>) -> Self {
        self.join.dynamic_filter = filter;
        self
    }

    /// Another build source. Refused by [`build`](Self::build) where a prepared build is attached, unless it is the same.
    /// Columns that were chosen by name are looked up in it.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users.schema(), events.schema()).on([("id", "id")]).build()?;
    /// let join = join.to_builder().build_source(users).build()?;
    /// assert_eq!(join.run_once(events, &RunOptions::default())?.num_rows(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn build_source(mut self, build: impl Into<Source>) -> Self {
        self.join.build = build.into();
        self
    }

    /// Another probe source. Columns that were chosen by name are looked up in it; [`build`](Self::build) refuses positions
    /// where its columns differ.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).build()?;
    /// let join = join.to_builder().probe(events).build()?;
    /// let rows = join.execute(0, &RunOptions::default())?.map(|batch| Ok(batch?.num_rows()));
    /// assert_eq!(rows.sum::<prejoin::Result<usize>>()?, 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn probe(mut self, probe: impl Into<Source>) -> Self {
        self.join.probe = probe.into();
        self
    }

    /// The validated join, with a fresh run state.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Utf8, ["2"]))?);
    /// assert!(HashJoin::builder(users.clone(), users.clone()).on([("id", "id")]).build().is_ok());
    /// let refused = HashJoin::builder(users, events).on([("id", "id")]).build().unwrap_err();
    /// assert!(refused.to_string().contains("key types must match"));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan): unknown columns, key types that differ, a join type, mode, predicate or projection
    /// that does not fit, or a change that an attached build does not allow.
    pub fn build(self) -> Result<HashJoin> {
        let Self { mut join, before, on, projection, filter, null_equality } = self;
        let set_anew = SetAnew { on: on.is_some(), projection: projection.is_some(), filter: filter.is_some() };
        let (build, probe) = (join.build.schema().clone(), join.probe.schema().clone());
        let mut spec = join.spec.with_schemas(build, probe, set_anew)?;
        if let Some(on) = &on {
            spec.set_on(on)?;
        }
        if let Some(projection) = projection {
            spec.set_projection(projection)?;
        }
        if let Some(filter) = filter {
            spec.filter = filter;
        }
        if let Some(null_equality) = null_equality {
            spec.null_equality = vec![null_equality; spec.on.len()];
        } else if spec.null_equality.is_empty() {
            spec.null_equality = vec![NullEquality::default(); spec.on.len()];
        }
        join.spec = spec;
        if join.attached.is_some() && before.is_some_and(|build| !join.build.same(&build)) {
            return plan_err!(
                "Cannot replace the build child of a join that a prepared build is attached to; make a new join"
            );
        }
        join.check()?;
        join.reset_run();
        Ok(join)
    }
}
