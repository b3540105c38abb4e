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
    pub fn builder(build: impl Into<Source>, probe: impl Into<Source>) -> HashJoinBuilder {
        let join = HashJoin::without_keys(build.into(), probe.into());
        HashJoinBuilder { join, before: None, on: None, projection: None, filter: None, null_equality: None }
    }

    /// A builder that starts from this join; its [`build`](HashJoinBuilder::build) gives a join with a fresh run state.
    pub fn to_builder(&self) -> HashJoinBuilder {
        let before = Some(self.build.clone());
        let (on, projection, filter, null_equality) = (None, None, None, None);
        HashJoinBuilder { join: self.clone(), before, on, projection, filter, null_equality }
    }
}

impl HashJoinBuilder {
    /// Key pairs (build key, probe key), each a name, a position or a plain column expression.
    pub fn on<B: Into<JoinKey>, P: Into<JoinKey>>(mut self, pairs: impl IntoIterator<Item = (B, P)>) -> Self {
        self.on = Some(pairs.into_iter().map(|(build, probe)| (build.into(), probe.into())).collect());
        self
    }

    /// Which rows come out.
    pub fn join_type(mut self, join_type: JoinType) -> Self {
        self.join.spec.join_type = join_type;
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
        self.join.spec.null_equality = null_equality;
        self
    }

    /// A residual predicate over candidate pairs.
    pub fn filter(mut self, filter: Option<Expr>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Output columns by position in (build columns, probe columns, mark).
    pub fn projection(self, projection: Option<Vec<usize>>) -> Self {
        self.projected(projection.map(|columns| columns.into_iter().map(ProjectedColumn::Position).collect()))
    }

    /// Output columns, each by name or position; `None` is all that the join type gives.
    pub fn projected(mut self, projection: Option<Vec<ProjectedColumn>>) -> Self {
        self.projection = Some(projection);
        self
    }

    /// Largest number of output rows per execution.
    pub fn limit(mut self, limit: Option<usize>) -> Self {
        self.join.spec.limit = limit;
        self
    }

    /// Which build each probe partition probes.
    pub fn mode(mut self, mode: PartitionMode) -> Self {
        self.join.spec.mode = mode;
        self
    }

    /// SQL `NOT IN` for anti joins.
    pub fn null_aware(mut self, null_aware: bool) -> Self {
        self.join.spec.null_aware = null_aware;
        self
    }

    /// How many rows of each side may share a key.
    pub fn validate(mut self, validate: Validate) -> Self {
        self.join.spec.validate = validate;
        self
    }

    /// The filter that learns of the join's build. It is over the join's probe keys; give each independent run another one.
    pub fn dynamic_filter(mut self, filter: Option<Arc<DynamicFilter>>) -> Self {
        self.join.dynamic_filter = filter;
        self
    }

    /// Another build source. Refused by [`build`](Self::build) where a prepared build is attached, unless it is the same.
    /// Columns that were chosen by name are looked up in it.
    pub fn build_source(mut self, build: impl Into<Source>) -> Self {
        self.join.build = build.into();
        self
    }

    /// Another probe source. Columns that were chosen by name are looked up in it; [`build`](Self::build) refuses positions
    /// where its columns differ.
    pub fn probe(mut self, probe: impl Into<Source>) -> Self {
        self.join.probe = probe.into();
        self
    }

    /// The validated join, with a fresh run state.
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
