//! Planning a star join: which columns each leg may read, which it reads, and what comes out under which name.

mod at_hand;
mod leg;
mod leg_layout;
mod output;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{FieldRef, Schema, SchemaRef};

use at_hand::AtHand;
pub use leg::{Leg, LegKey};
use leg_layout::leg_layout;
use output::output_columns;

use crate::error::{Error, Result, plan_err};
use crate::expr::Predicate;

/// Joins of one probe side with several prepared builds, one after the other.
///
/// Rows, order, types and metadata are those of as many joins in a row; a name that is taken gets the leg's suffix, or
/// the leg's name before it.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::record_batch;
/// use prejoin::{Cancel, Collector, BuildSpec, Leg, MemoryPool, NullEquality, Pool, PrepareOptions, StarJoin, StarPlan};
///
/// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
/// let prepare = |rows: arrow_array::RecordBatch, key| {
///     let spec = BuildSpec::by_name(rows.schema(), &[key], NullEquality::NullEqualsNothing)?;
///     let mut collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
///     collector.push(rows)?;
///     collector.finish()
/// };
/// let users = prepare(record_batch!(("user", Int64, [1, 2]), ("city", Int64, [7, 8]))?, "user")?;
/// let cities = prepare(record_batch!(("city", Int64, [7, 8]), ("name", Utf8, ["Rome", "Oslo"]))?, "city")?;
///
/// // The key of the second leg is a column that the first one brings.
/// let legs = vec![("users".to_owned(), Leg::new(users)), ("cities".to_owned(), Leg::new(cities))];
/// let star = StarJoin::try_new(legs, None, None)?;
/// let events = record_batch!(("user", Int64, [2, 3, 1]))?;
/// let plan = Arc::new(StarPlan::try_new(&star, events.schema_ref(), &pool)?);
/// let joined = plan.run_once(events, Cancel::default())?;
/// assert_eq!(joined, record_batch!(("user", Int64, [2, 1]), ("city", Int64, [8, 7]), ("name", Utf8, ["Oslo", "Rome"]))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct StarJoin {
    legs: Vec<(String, Leg)>,
    select: Option<Vec<(Option<String>, String)>>,
    limit: Option<usize>,
}

/// A column that some row at hand has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cell {
    /// Of the probe side.
    Probe(usize),
    /// Of a leg's build.
    Build {
        /// The leg.
        leg: usize,
        /// The column.
        column: usize,
    },
    /// Whether the row has a match in the build of a mark leg.
    Mark(usize),
}

impl Cell {
    /// 0 for the probe side, `leg + 1` for a leg.
    pub(crate) fn side(self) -> usize {
        match self {
            Cell::Probe(_) => 0,
            Cell::Build { leg, .. } | Cell::Mark(leg) => leg + 1,
        }
    }
}

/// What one leg reads of the rows that reach it.
#[derive(Debug)]
pub(crate) struct LegLayout {
    pub(crate) reads: Vec<Cell>,
    /// Schema of the columns read.
    pub(crate) schema: SchemaRef,
    /// Positions among the columns read, in key order.
    pub(crate) keys: Vec<usize>,
    /// Further columns that a key must equal, as (place of the key, position among the columns read).
    pub(crate) further: Vec<(usize, usize)>,
    /// Position among the columns read of the one that an as-of join searches for.
    pub(crate) as_of: Option<usize>,
    /// Its probe columns are positions among the columns read.
    pub(crate) predicate: Option<Predicate>,
}

/// A star join over one probe schema.
#[derive(Debug)]
pub(crate) struct StarLayout {
    pub(crate) legs: Vec<LegLayout>,
    /// The output columns.
    pub(crate) columns: Vec<Cell>,
    pub(crate) schema: SchemaRef,
}

/// The name of the probe side.
const PROBE: &str = "probe";
/// The name of a leg's own build in its condition.
const BUILD: &str = "build";

impl StarJoin {
    /// `legs` with their names, by which the columns that they bring are addressed: `planes.seats`. `select` chooses and
    /// names the output columns, as (new name, column); `limit` is the largest number of output rows.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &RunOptions::default())?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg.clone())], None, Some(10))?;
    /// assert_eq!(star.legs().len(), 1);
    /// assert!(StarJoin::try_new(vec![("probe".to_owned(), leg)], None, None).is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`] for no legs, names that are taken, kinds that give rows after the last probe row, and builds that a
    /// leg's `validate` or `on` refuses.
    pub fn try_new(
        legs: Vec<(String, Leg)>,
        select: Option<Vec<(Option<String>, String)>>,
        limit: Option<usize>,
    ) -> Result<Self> {
        if legs.is_empty() {
            return plan_err!("a star join has at least one leg, none was given");
        }
        let mut taken = HashSet::from([PROBE, BUILD]);
        for (name, leg) in &legs {
            if !taken.insert(name) {
                let whose = match name.as_str() {
                    PROBE => "the probe side",
                    BUILD => "each leg's own build",
                    _ => "another leg",
                };
                return plan_err!("a leg is named {name:?}, which is the name of {whose}; choose another one");
            }
            leg.check().map_err(|error| in_leg(name, error))?;
        }
        Ok(Self { legs, select, limit })
    }

    /// The legs with their names, in order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &RunOptions::default())?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// assert_eq!(star.legs()[0].0, "users");
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn legs(&self) -> &[(String, Leg)] {
        &self.legs
    }

    /// Largest number of output rows.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &RunOptions::default())?);
    /// assert_eq!(StarJoin::try_new(vec![("users".to_owned(), leg)], None, Some(10))?.limit(), Some(10));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Schema of the output over a probe side of this schema.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Leg, RunOptions, StarJoin};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let events = record_batch!(("id", Int64, [2]), ("at", Int32, [3]))?;
    /// let leg = Leg::new(prejoin::prepare(users, &["id"], &RunOptions::default())?);
    /// let star = StarJoin::try_new(vec![("users".to_owned(), leg)], None, None)?;
    /// let schema = star.schema(&events.schema())?;
    /// assert_eq!(schema.fields().iter().map(|field| field.name()).collect::<Vec<_>>(), ["id", "at", "name"]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`] for columns that are not there or not unique, and types that do not compare.
    pub fn schema(&self, probe: &SchemaRef) -> Result<SchemaRef> {
        Ok(self.layout(probe)?.schema)
    }

    /// The star over a probe side of this schema.
    pub(crate) fn layout(&self, probe: &SchemaRef) -> Result<StarLayout> {
        let mut at_hand = AtHand::new(self, probe);
        let mut legs = Vec::with_capacity(self.legs.len());
        let mut metadata = probe.metadata().clone();
        for (i, (name, leg)) in self.legs.iter().enumerate() {
            let layout = leg_layout(&at_hand, i).and_then(|layout| at_hand.add(i).map(|()| layout));
            legs.push(layout.map_err(|error| in_leg(name, error))?);
            // As in a chain of joins: of one key, the first table that has it wins.
            let mut all = leg.build.schema().metadata().clone();
            all.extend(metadata.iter().map(|(key, value)| (key.clone(), value.clone())));
            metadata = all;
        }
        let (columns, fields): (Vec<Cell>, Vec<FieldRef>) = output_columns(&at_hand)?.into_iter().unzip();
        Ok(StarLayout { legs, columns, schema: Arc::new(Schema::new_with_metadata(fields, metadata)) })
    }
}

/// Says which leg an error is about.
fn in_leg(name: &str, error: Error) -> Error {
    match error {
        Error::Plan(text) => Error::Plan(format!("leg {name:?}: {text}")),
        other => other,
    }
}
