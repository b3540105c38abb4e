//! The plan of a star join over one probe schema: what each leg reads, and what the output is gathered from.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::row_counts::StarRows;
use crate::error::Result;
use crate::expr::Side;
use crate::join::{Cell, Leg, LegLayout, Output, StarJoin};
use crate::memory::Pool;
use crate::prepare::LeasedColumns;
use crate::probe::as_of::AsOfReader;
use crate::probe::key_reader::KeyReader;
use crate::probe::metrics::JoinMetrics;
use crate::probe::plan::ProbePlan;

/// Rows that go from leg to leg at once.
const CHUNK: usize = 8192;

/// A star join over probe batches of one schema: everything that its runs share and none of them changes.
#[derive(Debug)]
pub struct StarPlan {
    pub(super) legs: Vec<StarLeg>,
    pub(super) probe_schema: SchemaRef,
    /// The probe columns that are read, ascending.
    pub(super) columns: Vec<usize>,
    /// Schema of these alone.
    pub(super) read_schema: SchemaRef,
    /// What each output column is gathered from; its probe columns are positions among those that are read.
    pub(super) sources: Vec<Source>,
    /// The sides that the output is gathered from.
    pub(super) given: Vec<bool>,
    pub(super) schema: SchemaRef,
    pub(super) limit: Option<usize>,
    pub(super) rows: Arc<StarRows>,
    /// What the legs would count as joins by themselves; nobody reads it.
    pub(super) metrics: Arc<JoinMetrics>,
}

#[derive(Debug)]
pub(super) struct StarLeg {
    /// The leg as a join of the columns that it reads.
    pub(super) plan: Arc<ProbePlan>,
    pub(super) reads: Vec<Cell>,
    /// The sides whose row numbers are needed after it: 0 for the probe, `leg + 1` for a leg.
    pub(super) keeps: Vec<bool>,
}

/// What an output column is made from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
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
        let mut first = HashMap::with_capacity(layout.columns.len());
        let source = |(at, &cell): (usize, &Cell)| match *first.entry(cell).or_insert(at) {
            earlier if earlier < at => Source::Output(earlier),
            _ => Source::Cell(cell),
        };
        Ok(Self {
            legs,
            probe_schema: Arc::clone(probe),
            read_schema: Arc::new(probe.project(&columns)?),
            columns,
            sources: layout.columns.iter().enumerate().map(source).collect(),
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

    /// For each output column the column of the probe side that it is, if any.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin, StarPlan};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("at", Int32, [10]), ("id", Int64, [2]))?;
    /// let options = RunOptions::default();
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &options)?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let plan = StarPlan::try_new(&star, &events.schema(), &options.pool)?;
    /// assert_eq!(plan.probe_columns(), [Some(0), Some(1), None]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn probe_columns(&self) -> Vec<Option<usize>> {
        let mut columns: Vec<Option<usize>> = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            columns.push(match *source {
                Source::Cell(Cell::Probe(read)) => Some(self.columns[read]),
                Source::Cell(_) => None,
                Source::Output(earlier) => columns[earlier],
            });
        }
        columns
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
    pub(super) fn wants_probe(&self) -> bool {
        self.legs.iter().all(|leg| leg.plan.wants_probe())
    }
}

/// A leg as a join by itself, whose probe side is the columns that the leg reads. `columns` of its build are read by others.
fn leg_plan(leg: &Leg, layout: LegLayout, columns: Vec<usize>, pool: &Arc<dyn Pool>) -> Result<ProbePlan> {
    let LegLayout { schema: probe_schema, keys: probe_keys, further, as_of, predicate, .. } = layout;
    let as_of = as_of.zip(leg.as_of.as_ref());
    let build = Arc::clone(&leg.build);
    let tested = predicate.iter().flat_map(|predicate| predicate.columns());
    let tested = tested.filter(|(side, _)| *side == Side::Build).map(|&(_, column)| column);
    Ok(ProbePlan {
        build_columns: LeasedColumns::try_new(&build, columns.into_iter().chain(tested))?,
        key_reader: KeyReader::try_new(&build, &probe_keys, &probe_schema)?,
        further_keys: KeyReader::further(&build, &probe_keys, &further, &probe_schema)?,
        as_of: as_of.map(|(column, as_of)| AsOfReader::try_new(&build, as_of, column, &probe_schema)).transpose()?,
        build,
        probe_schema,
        probe_keys,
        join_type: leg.join_type,
        null_aware: false,
        validate: leg.validate,
        defaults: leg.defaults.clone(),
        predicate,
        output: Output { schema: Arc::new(Schema::empty()), columns: Vec::new(), origins: Vec::new() },
        batch_size: CHUNK,
        pool: Arc::clone(pool),
    })
}
