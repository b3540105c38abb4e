//! The description of a join: what is joined how, apart from where its rows come from.

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;

use super::as_of::AsOf;
use super::chosen_column::{JoinKey, ProjectedColumn};
use super::join_type::{JoinType, PartitionMode};
use super::output::Output;
use super::validate::Validate;
use crate::columns::{Positions, comparable, names};
use crate::error::{Result, plan_err};
use crate::expr::{ColumnId, Expr, Predicate, Side};
use crate::prepare::{BuildSpec, NullEquality, PreparedBuild, check_equality};

/// What a join is: the schemas of both sides, key pairs, join type, predicate, output columns and limits. It holds no rows
/// and no state of a run; a [`HashJoin`](crate::HashJoin) adds these.
///
/// The public fields are open to change; every execution validates them again. Positions are those in the two schemas.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    /// Key pairs as positions (build column, probe column).
    pub on: Vec<(usize, usize)>,
    /// Which rows come out.
    pub join_type: JoinType,
    /// Null equality of each key pair.
    pub null_equality: Vec<NullEquality>,
    /// Residual predicate on candidate pairs.
    pub filter: Option<Expr>,
    /// Output columns as positions in (build columns, probe columns, mark); `None` is all that the join type gives.
    pub projection: Option<Vec<usize>>,
    /// Largest number of rows that each execution gives.
    pub limit: Option<usize>,
    /// Which build each probe partition probes.
    pub mode: PartitionMode,
    /// SQL `NOT IN` for anti joins.
    pub null_aware: bool,
    /// How many rows of each side may share a key.
    pub validate: Validate,
    /// Key columns of the probe side are filled from the build side on unmatched build rows.
    pub(crate) coalesce: bool,
    /// Names of the output columns, where they are not those of the inputs.
    pub(crate) names: Option<Vec<String>>,
    /// Further pairs of a build column in `on` and a probe column that must equal it as keys do.
    pub(crate) also: Vec<(usize, usize)>,
    /// For each build column the value that it has in probe rows without a match; `None` is null. Empty if all are null.
    pub(crate) defaults: Vec<Option<ArrayRef>>,
    /// Of the rows of a key, the one that the value of this probe column chooses.
    pub(crate) as_of: Option<(usize, AsOf)>,
    pub(super) build: SchemaRef,
    pub(super) probe: SchemaRef,
    /// How `on` and `projection` were chosen, by name or position; unused where the fields were changed since.
    pub(super) chosen_on: Vec<(JoinKey, JoinKey)>,
    pub(super) chosen_projection: Vec<ProjectedColumn>,
}

impl JoinSpec {
    /// An inner join of two sides with these schemas, still without key pairs.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{JoinSpec, JoinType};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("user", Int64, [1]))?);
    /// let spec = JoinSpec::new(users.schema(), events.schema());
    /// assert_eq!((spec.join_type, spec.on.len()), (JoinType::Inner, 0));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(build: SchemaRef, probe: SchemaRef) -> Self {
        Self {
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
            defaults: Vec::new(),
            as_of: None,
            build,
            probe,
            chosen_on: Vec::new(),
            chosen_projection: Vec::new(),
        }
    }

    /// Schema of the build side.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::JoinSpec;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("user", Int64, [1]))?);
    /// assert_eq!(*JoinSpec::new(users.schema(), events.schema()).build_schema(), users.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn build_schema(&self) -> &SchemaRef {
        &self.build
    }

    /// Schema of the probe side.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::JoinSpec;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("user", Int64, [1]))?);
    /// assert_eq!(*JoinSpec::new(users.schema(), events.schema()).probe_schema(), events.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn probe_schema(&self) -> &SchemaRef {
        &self.probe
    }

    /// Schema of the output.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("user", Int64, [1]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "user")]).build()?;
    /// assert_eq!(join.spec.schema()?.fields().len(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join is not valid.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(self.validate(None)?.0.schema)
    }

    /// What a build for this join must be.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("user", Int64, [1]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "user")]).build()?;
    /// assert_eq!(join.spec.build_spec()?.keys(), [0]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for keys that cannot be those of a build.
    pub fn build_spec(&self) -> Result<BuildSpec> {
        BuildSpec::try_new(self.build.clone(), self.build_keys(), self.null_equality.clone())
    }

    /// The join of the same columns without an output, over a probe side whose columns have other types.
    #[cfg(feature = "python")]
    pub(crate) fn without_output(&self, probe: SchemaRef) -> Self {
        Self { projection: Some(Vec::new()), names: None, coalesce: false, probe, ..self.clone() }
    }

    fn build_keys(&self) -> Vec<usize> {
        self.on.iter().map(|&(build, _)| build).collect()
    }

    /// All pairs (build column, probe column) that are equal in a match.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.on.iter().chain(&self.also).copied()
    }

    /// Checks the join by itself (keys, types, join type, predicate, projection); gives its output and bound predicate.
    /// `attached` is the build that it is going to probe, where that is known.
    pub(crate) fn validate(&self, attached: Option<&PreparedBuild>) -> Result<(Output, Option<Predicate>)> {
        let (build, probe) = (&self.build, &self.probe);
        if self.on.is_empty() && self.as_of.is_none() {
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
        let predicate = self.filter.as_ref().map(|filter| filter.bind(build, probe)).transpose()?;
        Ok((self.output(attached)?, predicate))
    }

    fn output(&self, attached: Option<&PreparedBuild>) -> Result<Output> {
        // Batches of a build may hold nulls where its schema declares none; the schema of the held rows says so.
        let build = attached.map_or(&self.build, |prepared| prepared.rows_schema());
        let on: Vec<(usize, usize)> = self.pairs().collect();
        let projection = self.projection.as_deref();
        let output = Output::try_new(self.join_type, build, &self.probe, &on, projection, self.coalesce)?;
        match &self.names {
            Some(names) => output.with_names(names),
            None => Ok(output),
        }
    }

    /// Refuses joins that no prepared build can serve: it has one build for all probe partitions.
    pub(crate) fn check_eligible(&self) -> Result<()> {
        if self.mode != PartitionMode::CollectLeft {
            return plan_err!("prepared builds require a CollectLeft join, this one's mode is {}", self.mode);
        }
        Ok(())
    }

    /// Checks that `prepared` is a build that this join could have prepared.
    pub(crate) fn check_build(&self, prepared: &PreparedBuild) -> Result<()> {
        self.check_eligible()?;
        let (spec, keys) = (prepared.spec(), self.build_keys());
        if spec.schema() != &self.build || spec.keys() != keys || spec.null_equality() != self.null_equality {
            return plan_err!(
                "the prepared build does not match schema, keys or null equality of the join: prepared are columns ({}) with \
                 keys {:?} and {:?}, the join has columns ({}) with keys {:?} and {:?}",
                names(spec.schema()),
                spec.keys(),
                spec.null_equality(),
                names(&self.build),
                keys,
                self.null_equality
            );
        }
        if self.as_of.is_some() { Ok(()) } else { self.validate.check_build(prepared) }
    }

    /// Sets the key pairs (build key, probe key), each key a name, a position or a plain column.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::JoinSpec;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("at", Int32, [3]), ("user", Int64, [1]))?);
    /// let mut spec = JoinSpec::new(users.schema(), events.schema());
    /// spec.set_on(&[("id".into(), "user".into())])?;
    /// assert_eq!(spec.on, [(0, 1)]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for keys that name no column; whether the columns can be keys is checked by
    /// execution.
    pub fn set_on(&mut self, on: &[(JoinKey, JoinKey)]) -> Result<()> {
        let resolve = |(build, probe): &(JoinKey, JoinKey)| -> Result<(usize, usize)> {
            Ok((build.resolve(&self.build, Side::Build)?, probe.resolve(&self.probe, Side::Probe)?))
        };
        self.on = on.iter().map(resolve).collect::<Result<_>>()?;
        self.chosen_on = on.to_vec();
        Ok(())
    }

    /// Sets the output columns, each a name or a position; `None` is all that the join type gives.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{JoinSpec, ProjectedColumn};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("at", Int32, [3]), ("user", Int64, [1]))?);
    /// let mut spec = JoinSpec::new(users.schema(), events.schema());
    /// spec.set_projection(Some(vec![ProjectedColumn::Probe("at".to_owned()), ProjectedColumn::Position(0)]))?;
    /// assert_eq!(spec.projection, Some(vec![1, 0]));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for names that do not exist; whether the join type gives the columns is checked
    /// by execution.
    pub fn set_projection(&mut self, projection: Option<Vec<ProjectedColumn>>) -> Result<()> {
        let (build, probe) = self.positions();
        let resolve = |columns: &Vec<ProjectedColumn>| {
            columns.iter().map(|column| column.resolve(&build, &probe)).collect::<Result<Vec<usize>>>()
        };
        let positions = projection.as_ref().map(resolve).transpose()?;
        self.projection = positions;
        self.chosen_projection = projection.unwrap_or_default();
        Ok(())
    }

    /// The columns of both sides by name.
    fn positions(&self) -> (Positions<'_>, Positions<'_>) {
        (Positions::new(&self.build, "build"), Positions::new(&self.probe, "probe"))
    }

    /// The key pairs as they were chosen; by position where `on` was changed since.
    pub(super) fn chosen_on(&self) -> Vec<(ColumnId, ColumnId)> {
        let chosen = |(i, &(b, p)): (usize, &(usize, usize))| match self.chosen_on.get(i) {
            Some((build_key, probe_key))
                if self.chosen_on.len() == self.on.len()
                    && build_key.resolve(&self.build, Side::Build).is_ok_and(|now| now == b)
                    && probe_key.resolve(&self.probe, Side::Probe).is_ok_and(|now| now == p) =>
            {
                (build_key.id(b), probe_key.id(p))
            }
            _ => (ColumnId::Position(b), ColumnId::Position(p)),
        };
        self.on.iter().enumerate().map(chosen).collect()
    }

    /// The output columns as they were chosen; by position where `projection` was changed since.
    pub(super) fn chosen_projection(&self) -> Option<Vec<ProjectedColumn>> {
        let positions = self.projection.as_ref()?;
        let (build, probe) = self.positions();
        let chosen = |(i, &position): (usize, &usize)| match self.chosen_projection.get(i) {
            Some(column)
                if self.chosen_projection.len() == positions.len()
                    && column.resolve(&build, &probe).is_ok_and(|now| now == position) =>
            {
                column.clone()
            }
            _ => ProjectedColumn::Position(position),
        };
        Some(positions.iter().enumerate().map(chosen).collect())
    }

    /// Narrows the output to the columns at these positions of it. Nothing is pushed into the build side.
    pub(crate) fn project_output(&mut self, positions: &[usize]) -> Result<()> {
        let (builds, probes) = (self.build.fields().len(), self.probe.fields().len());
        let columns = self.validate(None)?.0.columns;
        let chosen = self.chosen_projection();
        let choose = |&position: &usize| match columns.get(position) {
            Some(column) => Ok(match &chosen {
                Some(chosen) => chosen[position].clone(),
                None => ProjectedColumn::Position(column.position(builds, probes)),
            }),
            None => plan_err!("projection names column {position} of an output of {}", columns.len()),
        };
        let projection = positions.iter().map(choose).collect::<Result<_>>()?;
        self.set_projection(Some(projection))
    }
}
