//! Planning a star join: which columns each leg may read, which it reads, and what comes out under which name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::JoinType;
use super::output::extended;
use super::validate::Validate;
use crate::columns::{comparable, names, position};
use crate::error::{Error, Result, plan_err};
use crate::expr::{ColumnId, ColumnRef, Expr, Predicate, Side};
use crate::prepare::PreparedBuild;

/// One join of a [`StarJoin`]: a prepared build, and how the rows that reach it are joined with it.
#[derive(Debug, Clone)]
pub struct Leg {
    /// The build.
    pub build: Arc<PreparedBuild>,
    /// The columns that each key of the build is looked up by: all that meet one key must equal it. `None` for columns that
    /// have the names of the keys.
    pub on: Option<Vec<LegKey>>,
    /// Inner, left outer, semi, anti or mark.
    pub join_type: JoinType,
    /// Residual predicate on pairs.
    pub filter: Option<Expr>,
    /// Appended to names that are taken.
    pub suffix: String,
    /// The build columns that come out, as (new name, name); `None` for all but the keys.
    pub select: Option<Vec<(Option<String>, String)>>,
    /// How many rows of each side may share a key.
    pub validate: Validate,
}

/// What a key of a leg's build is looked up by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegKey {
    /// A column of the probe side or of an earlier leg.
    pub column: String,
    /// The key column of the build; `None` for the one of the same name, or the only one.
    pub key: Option<String>,
}

impl Leg {
    /// An inner join on the key names of `build`.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{JoinType, Leg, LegKey, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let on = vec![LegKey { column: "user".to_owned(), key: Some("id".to_owned()) }];
    /// let leg = Leg { on: Some(on), join_type: JoinType::ProbeOuter, ..Leg::new(build) };
    /// assert_eq!(leg.suffix, "_right");
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(build: Arc<PreparedBuild>) -> Self {
        Self {
            build,
            on: None,
            join_type: JoinType::Inner,
            filter: None,
            suffix: "_right".to_owned(),
            select: None,
            validate: Validate::default(),
        }
    }

    /// What can be said without a probe side.
    pub(crate) fn check(&self) -> Result<()> {
        let kind = self.join_type.how();
        if self.join_type.is_build_driven() {
            return plan_err!(
                "a {kind} join gives build rows after the last probe row, a star join answers batch by batch: its legs are \
                 inner, left, semi, anti or mark; join with this build by itself"
            );
        }
        if !self.join_type.pairs() && self.select.as_ref().is_some_and(|columns| !columns.is_empty()) {
            return plan_err!("select names build columns, a {kind} join gives none");
        }
        self.key_columns()?;
        self.validate.check_build(&self.build)
    }

    fn key_names(&self) -> Vec<&str> {
        let schema = self.build.schema();
        self.build.keys().iter().map(|&key| schema.field(key).name().as_str()).collect()
    }

    /// The columns that each key is looked up by, in key order; each key has at least one.
    fn key_columns(&self) -> Result<Vec<Vec<&str>>> {
        let keys = self.key_names();
        let Some(on) = &self.on else { return Ok(keys.into_iter().map(|key| vec![key]).collect()) };
        let mut columns: Vec<Vec<&str>> = vec![Vec::new(); keys.len()];
        for LegKey { column, key } in on {
            let named = |name: &str| keys.iter().position(|key| *key == name);
            let at = match key {
                Some(key) => named(key),
                // "planes.model" may stand for the key "model".
                None => named(column)
                    .or_else(|| column.split_once('.').and_then(|(_, name)| named(name)))
                    .or_else(|| (on.len() == 1 && keys.len() == 1).then_some(0)),
            };
            match at {
                Some(at) if columns[at].contains(&column.as_str()) => {
                    return plan_err!("on names the key {:?} twice for the column {column:?}", keys[at]);
                }
                Some(at) => columns[at].push(column),
                None => {
                    return plan_err!(
                        "on names the key {:?}, the build was prepared on {keys:?}; name keys of the build, as in \
                         on={{column: key}}",
                        key.as_ref().unwrap_or(column)
                    );
                }
            }
        }
        let missing: Vec<&str> =
            keys.iter().zip(&columns).filter(|(_, columns)| columns.is_empty()).map(|(key, _)| *key).collect();
        if !missing.is_empty() {
            return plan_err!("on leaves out the keys {missing:?} of the build; all of its keys are joined on");
        }
        Ok(columns)
    }
}

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        let mut hand = Hand::new(self, probe);
        let mut legs = Vec::with_capacity(self.legs.len());
        let mut metadata = probe.metadata().clone();
        for (i, (name, leg)) in self.legs.iter().enumerate() {
            let layout = hand.leg(i).and_then(|layout| hand.add(i).map(|()| layout));
            legs.push(layout.map_err(|error| in_leg(name, error))?);
            // As in a chain of joins: of one key, the first table that has it wins.
            let mut all = leg.build.schema().metadata().clone();
            all.extend(metadata.iter().map(|(key, value)| (key.clone(), value.clone())));
            metadata = all;
        }
        let (columns, fields): (Vec<Cell>, Vec<FieldRef>) = hand.output()?.into_iter().unzip();
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

/// A column at hand.
struct Known {
    cell: Cell,
    /// As it is in its table.
    field: FieldRef,
    /// What it is called in the output; `None` where it does not come out.
    name: Option<String>,
}

/// The columns at hand, in output order.
struct Hand<'a> {
    star: &'a StarJoin,
    probe: &'a SchemaRef,
    columns: Vec<Known>,
}

/// Columns of a name.
enum Found<'a> {
    None,
    One(&'a Known),
    Many,
}

impl<'a> Found<'a> {
    /// One column may be known under several names.
    fn of(mut found: impl Iterator<Item = &'a Known>) -> Self {
        match found.next() {
            None => Found::None,
            Some(first) if found.all(|other| other.cell == first.cell) => Found::One(first),
            Some(_) => Found::Many,
        }
    }
}

impl<'a> Hand<'a> {
    fn new(star: &'a StarJoin, probe: &'a SchemaRef) -> Self {
        let known = |(i, field): (usize, &FieldRef)| Known {
            cell: Cell::Probe(i),
            field: Arc::clone(field),
            name: Some(field.name().clone()),
        };
        Self { star, probe, columns: probe.fields().iter().enumerate().map(known).collect() }
    }

    fn table(&self, side: usize) -> &str {
        if side == 0 { PROBE } else { &self.star.legs[side - 1].0 }
    }

    /// The column that is addressed as `table.name`.
    fn qualified(&self, name: &str) -> Found<'_> {
        Found::of(self.columns.iter().filter(|known| {
            let rest = name.strip_prefix(self.table(known.cell.side())).and_then(|rest| rest.strip_prefix('.'));
            rest == Some(known.field.name())
        }))
    }

    /// A column by its address, else by its name in the output, else by its name in its table.
    fn find(&self, name: &str) -> Found<'_> {
        let by_name = || Found::of(self.columns.iter().filter(|known| known.name.as_deref() == Some(name)));
        let by_own = || Found::of(self.columns.iter().filter(|known| known.field.name() == name));
        match (self.qualified(name), by_name()) {
            (Found::None, Found::None) => by_own(),
            (Found::None, found) => found,
            // A name with a point is no address where it is not one column's alone.
            (Found::Many, Found::One(found)) => Found::One(found),
            (found, _) => found,
        }
    }

    fn get(&self, name: &str, what: &str) -> Result<&Known> {
        match self.find(name) {
            Found::One(known) => Ok(known),
            Found::Many => {
                let own = |known: &&Known| known.name.as_deref() == Some(name) || known.field.name() == name;
                let mut all: Vec<String> = self.columns.iter().filter(own).map(|known| self.address(known)).collect();
                all.dedup();
                plan_err!("{what} names {name:?}, which is the name of several columns: {}", all.join(", "))
            }
            Found::None => plan_err!("{what} names {name:?}, which no column at hand is; {}", self.at_hand()),
        }
    }

    fn at_hand(&self) -> String {
        let all: Vec<String> = self.columns.iter().map(|known| self.address(known)).collect();
        if all.is_empty() { "there are none".to_owned() } else { format!("there are {}", all.join(", ")) }
    }

    fn address(&self, known: &Known) -> String {
        format!("{}.{}", self.table(known.cell.side()), known.field.name())
    }

    /// The column's field as it is at hand: nullable where a left leg may not have a row.
    fn field(&self, known: &Known) -> Result<FieldRef> {
        match known.cell {
            Cell::Build { leg, .. } => {
                let (name, leg) = &self.star.legs[leg];
                extended(&known.field, leg.join_type.extends_probe(), format_args!("left join with {name:?}"))
            }
            _ => Ok(Arc::clone(&known.field)),
        }
    }

    /// What leg `i` reads.
    fn leg(&self, i: usize) -> Result<LegLayout> {
        let (name, leg) = &self.star.legs[i];
        let build = leg.build.schema();
        let (mut reads, mut fields) = (Vec::new(), Vec::new());
        let mut read = |known: &Known| -> Result<usize> {
            match reads.iter().position(|read| *read == known.cell) {
                Some(at) => Ok(at),
                None => {
                    fields.push(self.field(known)?);
                    reads.push(known.cell);
                    Ok(reads.len() - 1)
                }
            }
        };
        let (mut keys, mut further) = (Vec::with_capacity(leg.build.keys().len()), Vec::new());
        let all = leg.key_columns()?;
        for (place, column) in all.iter().enumerate().flat_map(|(i, all)| all.iter().map(move |&column| (i, column))) {
            let key = build.field(leg.build.keys()[place]);
            if leg.on.is_none() && matches!(self.find(column), Found::None) {
                return plan_err!(
                    "no column at hand has the name of the build's key {column:?}; say what it is looked up by, \
                     on={{column: {column:?}}}; {}",
                    self.at_hand()
                );
            }
            let known = self.get(column, "on")?;
            if !comparable(key.data_type(), known.field.data_type()) {
                return plan_err!(
                    "key types must match: build column {:?} is {}, {} is {}; cast one of them",
                    key.name(),
                    key.data_type(),
                    self.address(known),
                    known.field.data_type()
                );
            }
            let position = read(known)?;
            match keys.len() == place {
                true => keys.push(position),
                false => further.push((place, position)),
            }
        }
        let find = &mut |column: &ColumnRef| -> Result<(Side, usize, DataType)> {
            let of_build = |at: usize| Ok((Side::Build, at, build.field(at).data_type().clone()));
            let known = match (column.side, &column.id) {
                (Some(Side::Build), ColumnId::Name(column)) => return of_build(position(build, column, BUILD)?),
                (Some(side), &ColumnId::Position(at)) => {
                    let schema = if side == Side::Build { build } else { self.probe };
                    if at >= schema.fields().len() {
                        return plan_err!(
                            "the {side} side has no column at position {at}; its {} columns are {}",
                            schema.fields().len(),
                            names(schema)
                        );
                    }
                    match side {
                        Side::Build => return of_build(at),
                        Side::Probe => &self.columns[at],
                    }
                }
                (Some(Side::Probe), ColumnId::Name(column)) => &self.columns[position(self.probe, column, PROBE)?],
                (None, ColumnId::Position(_)) => {
                    return plan_err!("a column by position needs its side, build or probe");
                }
                (None, ColumnId::Name(column)) => {
                    let own = column.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.'));
                    if let Some(at) = own.and_then(|own| position(build, own, BUILD).ok()) {
                        return of_build(at);
                    }
                    match (position(build, column, BUILD), self.find(column)) {
                        // An address is first of all one.
                        (_, Found::One(known)) if matches!(self.qualified(column), Found::One(_)) => known,
                        (Ok(at), Found::None) => return of_build(at),
                        (Ok(_), _) => {
                            return plan_err!(
                                "the condition names {column:?}, which the build and the rows at hand have; write \
                                 build.{column}, or the other one with its table; {}",
                                self.at_hand()
                            );
                        }
                        (Err(_), Found::None) => {
                            return plan_err!(
                                "the condition names {column:?}, which neither the build nor the rows at hand have; the \
                                 columns of build are {}; at hand {}",
                                names(build),
                                self.at_hand()
                            );
                        }
                        (Err(_), _) => self.get(column, "the condition")?,
                    }
                }
            };
            Ok((Side::Probe, read(known)?, known.field.data_type().clone()))
        };
        let predicate = leg.filter.as_ref().map(|filter| filter.bind_with(find)).transpose()?;
        Ok(LegLayout { reads, schema: Arc::new(Schema::new(fields)), keys, further, predicate })
    }

    /// Puts the columns that leg `i` brings at hand.
    fn add(&mut self, i: usize) -> Result<()> {
        let (table, leg) = &self.star.legs[i];
        let taken: HashSet<String> = self.columns.iter().filter_map(|known| known.name.clone()).collect();
        let names = Names { table, suffix: &leg.suffix };
        if leg.join_type == JoinType::ProbeMark {
            let field = Arc::new(Field::new("mark", DataType::Boolean, false));
            let name = names.choose(&[(None, "mark")], &taken)?.pop();
            self.columns.push(Known { cell: Cell::Mark(i), field, name });
        }
        if !leg.join_type.pairs() {
            return Ok(());
        }
        let (schema, held) = (leg.build.schema(), leg.build.rows_schema());
        let given: Vec<(usize, Option<&str>)> = match &leg.select {
            None => {
                (0..schema.fields().len()).filter(|at| !leg.build.keys().contains(at)).map(|at| (at, None)).collect()
            }
            Some(select) => {
                let column = |(new, name): &'a (Option<String>, String)| {
                    let at = position(schema, name, BUILD);
                    at.map(|at| (at, new.as_deref())).map_err(|error| match error {
                        Error::Plan(text) => Error::Plan(format!("select names {name:?}; {text}")),
                        other => other,
                    })
                };
                select.iter().map(column).collect::<Result<_>>()?
            }
        };
        let wanted: Vec<(Option<&str>, &str)> =
            given.iter().map(|&(at, new)| (new, schema.field(at).name().as_str())).collect();
        let known = |at: usize, name| Known {
            cell: Cell::Build { leg: i, column: at },
            field: Arc::clone(&held.fields()[at]),
            name,
        };
        let names = names.choose(&wanted, &taken)?;
        self.columns.extend(given.iter().zip(names).map(|(&(at, _), name)| known(at, Some(name))));
        let hidden = (0..schema.fields().len()).filter(|at| !given.iter().any(|(given, _)| given == at));
        self.columns.extend(hidden.map(|at| known(at, None)));
        Ok(())
    }

    /// The output columns and their fields.
    fn output(&self) -> Result<Vec<(Cell, FieldRef)>> {
        let field = |known: &Known, name: &str| -> Result<(Cell, FieldRef)> {
            let field = self.field(known)?;
            let named = field.name() == name;
            Ok((known.cell, if named { field } else { Arc::new(field.as_ref().clone().with_name(name)) }))
        };
        let Some(select) = &self.star.select else {
            let given = self.columns.iter().filter_map(|known| Some((known, known.name.as_deref()?)));
            return given.map(|(known, name)| field(known, name)).collect();
        };
        let chosen = select.iter().map(|(_, column)| self.get(column, "select")).collect::<Result<Vec<_>>>()?;
        // Names that were asked for come first, and those of the probe side; the others give way.
        let mut taken = HashSet::new();
        let mut chosen_names: Vec<Option<String>> = Vec::with_capacity(select.len());
        for ((new, column), known) in select.iter().zip(&chosen) {
            let name = match (new, known.cell) {
                (Some(new), _) => Some(new.clone()),
                // Who asks by address gets the column's own name.
                _ if known.name.as_deref() == Some(column) && self.address(known) != *column => Some(column.clone()),
                (None, Cell::Probe(_)) => Some(known.field.name().clone()),
                (None, _) => None,
            };
            if let Some(name) = &name
                && !taken.insert(name.clone())
            {
                return plan_err!(
                    "select gives two columns the name {name:?}; rename one by select={{new name: column}}"
                );
            }
            chosen_names.push(name);
        }
        for (name, known) in chosen_names.iter_mut().zip(&chosen).filter(|(name, _)| name.is_none()) {
            let (table, suffix) = match known.cell.side() {
                0 => (PROBE, ""),
                side => (self.table(side), self.star.legs[side - 1].1.suffix.as_str()),
            };
            let chosen = Names { table, suffix }.choose(&[(None, known.field.name())], &taken)?;
            taken.extend(chosen.iter().cloned());
            *name = chosen.into_iter().next();
        }
        chosen
            .iter()
            .zip(&chosen_names)
            .map(|(known, name)| field(known, name.as_deref().unwrap_or_default()))
            .collect()
    }
}

/// How the columns of one table are named where others have their names.
struct Names<'a> {
    table: &'a str,
    suffix: &'a str,
}

impl Names<'_> {
    /// A name for each of `wanted` (new name, name) that is not `taken`: its own, with the suffix, or behind the name of the
    /// table.
    fn choose(&self, wanted: &[(Option<&str>, &str)], taken: &HashSet<String>) -> Result<Vec<String>> {
        // Who asks first for a free name gets it.
        let mut owners: HashMap<&str, usize> = HashMap::new();
        for (i, &(new, name)) in wanted.iter().enumerate() {
            let asked = new.unwrap_or(name);
            let is_free = !taken.contains(asked) && *owners.entry(asked).or_insert(i) == i;
            if new.is_some() && !is_free {
                return plan_err!("select gives a second column the name {asked:?}; choose another new name");
            }
        }
        let mut given: HashSet<String> = HashSet::new();
        let name = |(i, &(new, name)): (usize, &(Option<&str>, &str))| {
            let asked = new.unwrap_or(name);
            if owners.get(asked) == Some(&i) {
                return asked.to_owned();
            }
            let is_free =
                |name: &String| !taken.contains(name) && !owners.contains_key(name.as_str()) && !given.contains(name);
            let plain = [format!("{name}{}", self.suffix), format!("{}.{name}", self.table)];
            let numbered = (2..).map(|n: u64| format!("{}.{name}_{n}", self.table));
            let found = plain.into_iter().chain(numbered).find(is_free).unwrap_or_default();
            given.insert(found.clone());
            found
        };
        Ok(wanted.iter().enumerate().map(name).collect())
    }
}
