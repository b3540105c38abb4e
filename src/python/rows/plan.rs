//! Joins of rows, planned: which names are read from the rows in which type, and what the dicts of the output hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::made::{BuildColumn, Entry, From, Output};
use crate::columns::key_type;
use crate::error::Result;
use crate::expr::{ColumnId, Expr, Side};
use crate::join::by_name::key_pairs;
use crate::join::{AsOf, Cell, JoinOptions, Leg, OutputColumn, StarJoin, plan_by_name};
use crate::prepare::PreparedBuild;
use crate::probe::{ProbePlan, StarPlan, StarRows};
use crate::python::classes::pool::PyMemoryPool;
use crate::python::recent::SharedRecent;

/// What rows are joined with.
#[derive(Clone, Copy)]
pub(super) enum Joined<'a> {
    One(&'a Arc<PreparedBuild>, &'a JoinOptions),
    /// The star, whether its output columns were chosen, and where its rows are counted.
    Star(&'a StarJoin, bool, &'a Arc<StarRows>),
}

/// How a column of the rows is read.
pub(super) enum Read {
    /// It is passed on at most.
    Nothing,
    /// In the type of a key.
    Key(DataType),
    /// In the type that its values have.
    Inferred,
}

pub(super) enum Engine {
    One(Arc<ProbePlan>),
    Star(Arc<StarPlan>),
}

/// A join of rows of some names.
pub(super) struct RowsPlan {
    pub(super) engine: Engine,
    /// The columns that the join reads, as places among the names.
    pub(super) reads: Vec<(usize, Read)>,
    /// Schema of these columns.
    pub(super) schema: SchemaRef,
    /// For each join the names that its keys are read from.
    pub(super) keys: Vec<Vec<usize>>,
    /// The names that conditions test which are not those of the join's own keys.
    pub(super) tested: Vec<usize>,
    pub(super) output: Output,
}

/// The names of some rows.
#[derive(PartialEq, Clone)]
pub(super) struct Names {
    /// Of the type of the values where that was found, else of type Null.
    pub(super) schema: SchemaRef,
    /// Where it was found.
    pub(super) found: BTreeSet<usize>,
}

/// What planning over some names gave.
pub(super) enum Planned {
    Plan(RowsPlan),
    /// The types of these columns must be known first, from their values. Where there are nulls alone, any type will do, or
    /// the one that stands beside the column.
    Needs(Vec<(usize, DataType)>),
}

/// The plans that were made lately.
#[derive(Default)]
pub(crate) struct PlanCache(SharedRecent<Remembered>);

struct Remembered {
    names: Names,
    /// Of a join with one build.
    options: Option<JoinOptions>,
    planned: Arc<Planned>,
}

impl PlanCache {
    /// The plan of `joined` over rows of these names.
    pub(super) fn get(&self, py: Python<'_>, joined: Joined<'_>, names: Names) -> PyResult<Arc<Planned>> {
        let options = match joined {
            Joined::One(_, options) => Some(options),
            Joined::Star(..) => None,
        };
        let make = || -> PyResult<Remembered> {
            let planned = match joined {
                Joined::One(build, options) => one(py, build, options, &names)?,
                Joined::Star(star, chosen, rows) => self::star(py, star, chosen, rows, &names)?,
            };
            Ok(Remembered { names: names.clone(), options: options.cloned(), planned: Arc::new(planned) })
        };
        let fits = |known: &Remembered| known.names == names && known.options.as_ref() == options;
        Ok(Arc::clone(&self.0.get_or_make(fits, make)?.planned))
    }
}

/// The types of the keys that each name is compared with.
#[derive(Default)]
struct KeyTypes(BTreeMap<usize, DataType>);

impl KeyTypes {
    /// Adds a key; false where the name has another type already, so that the type of its values has to be taken.
    fn add(&mut self, name: usize, data_type: &DataType) -> bool {
        self.0.entry(name).or_insert_with(|| data_type.clone()) == data_type
    }

    /// `names` with the types of keys, each as `of` says.
    fn typed(&self, names: &SchemaRef, of: impl Fn(&DataType) -> DataType) -> SchemaRef {
        let field = |(at, field): (usize, &Arc<Field>)| match self.0.get(&at) {
            Some(data_type) if *field.data_type() == DataType::Null => {
                Arc::new(field.as_ref().clone().with_data_type(of(data_type)))
            }
            _ => Arc::clone(field),
        };
        Arc::new(Schema::new(names.fields().iter().enumerate().map(field).collect::<Vec<_>>()))
    }

    /// How the column of a name is read.
    fn read(&self, names: &SchemaRef, name: usize) -> Read {
        match (names.field(name).data_type(), self.0.get(&name)) {
            (DataType::Null, Some(data_type)) => Read::Key(key_type(data_type)),
            (DataType::Null, None) => Read::Nothing,
            _ => Read::Inferred,
        }
    }
}

/// The names that a condition may test: those that it names, whichever side it means.
fn tested(filter: &Expr, names: &SchemaRef) -> Vec<usize> {
    let column = |at: usize| {
        let own = names.field(at).name();
        filter.columns().any(|column| match &column.id {
            _ if column.side == Some(Side::Build) => false,
            ColumnId::Position(position) => *position == at,
            ColumnId::Name(name) => name == own || name.strip_prefix("probe.") == Some(own),
        })
    };
    (0..names.fields().len()).filter(|&at| column(at)).collect()
}

/// The columns of `of` that are read in another type than that of a key, which is not known.
fn unknown(of: impl IntoIterator<Item = usize>, names: &Names, keys: &KeyTypes) -> Vec<usize> {
    of.into_iter().filter(|at| !names.found.contains(at) && !keys.0.contains_key(at)).collect()
}

/// The columns whose values as-of joins search for and that have no type yet; beside them that of the order. A search needs
/// values as they are: one that the order's type does not hold still lies before or after others.
fn searched<'a>(
    joins: impl Iterator<Item = (&'a Arc<PreparedBuild>, &'a Option<AsOf>)>,
    names: &Names,
) -> Result<Vec<(usize, DataType)>> {
    let mut found = Vec::new();
    for (build, as_of) in joins {
        let Some(as_of) = as_of else { continue };
        let order = as_of.order_column(build)?;
        let name = as_of.probe.as_ref().unwrap_or(order.name());
        let own = |at: &usize| {
            [Some(name.as_str()), name.strip_prefix("probe.")].contains(&Some(names.schema.field(*at).name()))
        };
        let columns = (0..names.schema.fields().len()).filter(own).filter(|at| !names.found.contains(at));
        found.extend(columns.map(|at| (at, key_type(order.data_type()))));
    }
    Ok(found)
}

/// Columns of which nothing is known, where nulls alone may have any type.
fn needs(columns: impl IntoIterator<Item = usize>) -> Planned {
    Planned::Needs(columns.into_iter().map(|at| (at, DataType::Null)).collect())
}

fn one(py: Python<'_>, build: &Arc<PreparedBuild>, options: &JoinOptions, all: &Names) -> PyResult<Planned> {
    let names = &all.schema;
    let searched = searched(std::iter::once((build, &options.as_of)), all)?;
    if !searched.is_empty() {
        return Ok(Planned::Needs(searched));
    }
    let mut keys = KeyTypes::default();
    let mut several = Vec::new();
    for (key, name) in key_pairs(build, options.on.as_deref(), names)? {
        let known = *names.field(name).data_type() != DataType::Null;
        if !known && !keys.add(name, build.schema().field(key).data_type()) && !all.found.contains(&name) {
            several.push(name);
        }
    }
    let filter = options.filter.iter().flat_map(|filter| tested(filter, names));
    let unknown = unknown(filter, all, &keys);
    if !unknown.is_empty() || !several.is_empty() {
        return Ok(needs(unknown.into_iter().chain(several)));
    }
    // Values of Python have the type that they are compared in, so that the key columns of a full join can be one.
    let (spec, read) = plan_by_name(build, options, &keys.typed(names, DataType::clone))?;
    let read = read.unwrap_or_else(|| (0..names.fields().len()).collect());
    let schema = Arc::new(keys.typed(names, key_type).project(&read).map_err(crate::Error::from)?);
    let output = spec.validate(Some(build))?.0;
    let bare = spec.without_output(Arc::clone(&schema));
    let checked = bare.validate(Some(build))?;
    let plan = ProbePlan::try_new(&bare, checked, Arc::clone(build), BATCH, &PyMemoryPool::resolve(None))?;

    let name = |at: usize| PyString::intern(py, names.field(read[at]).name()).unbind();
    let column = |column| Ok::<_, PyErr>(BuildColumn::try_new(py, 1, build, column)?.with_default(&options.defaults));
    let entry = |(of, field): (&OutputColumn, &Arc<Field>)| -> PyResult<Entry> {
        let from = match *of {
            OutputColumn::Probe(at) => From::Given(name(at)),
            OutputColumn::Build(at) => From::Build(column(at)?),
            OutputColumn::Key { build, probe } => From::Key(name(probe), column(build)?),
            OutputColumn::Mark => From::Mark(1),
        };
        Ok(Entry { name: PyString::intern(py, field.name()).unbind(), from })
    };
    let entries = output.columns.iter().zip(output.schema.fields()).map(entry).collect::<PyResult<_>>()?;
    let keeps_row = options.select.is_none() && options.join_type.has_probe_columns();
    let keys_of = keys.0.keys().copied().collect();
    Ok(Planned::Plan(RowsPlan {
        engine: Engine::One(Arc::new(plan)),
        reads: read.iter().map(|&at| (at, keys.read(names, at))).collect(),
        schema,
        keys: vec![keys_of],
        tested: vec![],
        output: Output { keeps_row, entries },
    }))
}

/// Pairs that are looked up at once.
const BATCH: usize = 8192;

fn star(py: Python<'_>, star: &StarJoin, chosen: bool, rows: &Arc<StarRows>, all: &Names) -> PyResult<Planned> {
    let names = &all.schema;
    let searched = searched(star.legs().iter().map(|(_, leg)| (&leg.build, &leg.as_of)), all)?;
    if !searched.is_empty() {
        return Ok(Planned::Needs(searched));
    }
    // What the keys are read from can be said before the columns of conditions have types.
    let bare = |(name, leg): &(String, Leg)| (name.clone(), Leg { filter: None, ..leg.clone() });
    let layout = StarJoin::try_new(star.legs().iter().map(bare).collect(), None, None)?.layout(names)?;
    let mut keys = KeyTypes::default();
    let (mut several, mut keys_of) = (Vec::new(), Vec::with_capacity(star.legs().len()));
    for ((_, leg), layout) in star.legs().iter().zip(&layout.legs) {
        let mut read_from = Vec::new();
        let places = layout.keys.iter().enumerate().map(|(place, &read)| (place, read)).chain(layout.further.clone());
        for (place, read) in places {
            let Cell::Probe(name) = layout.reads[read] else { continue };
            if *names.field(name).data_type() != DataType::Null {
                continue;
            }
            read_from.push(name);
            let key = leg.build.schema().field(leg.build.keys()[place]);
            if !keys.add(name, &key_type(key.data_type())) && !all.found.contains(&name) {
                several.push(name);
            }
        }
        keys_of.push(read_from);
    }
    let filters = star.legs().iter().flat_map(|(_, leg)| &leg.filter);
    let unknown = unknown(filters.flat_map(|filter| tested(filter, names)), all, &keys);
    if !unknown.is_empty() || !several.is_empty() {
        return Ok(needs(unknown.into_iter().chain(several)));
    }
    let typed = keys.typed(names, DataType::clone);
    let layout = star.layout(&typed)?;
    let mut tested = Vec::new();
    for (leg, own) in layout.legs.iter().zip(&keys_of) {
        for &(side, column) in leg.predicate.iter().flat_map(|predicate| predicate.columns()) {
            if let (Side::Probe, Cell::Probe(name)) = (side, leg.reads.get(column).copied().unwrap_or(Cell::Mark(0)))
                && !own.contains(&name)
            {
                tested.push(name);
            }
        }
    }
    let plan = StarPlan::try_new(star, &typed, &PyMemoryPool::resolve(None))?.counted_in(rows);
    let read = plan.columns().to_vec();
    let schema = Arc::new(typed.project(&read).map_err(crate::Error::from)?);
    let entry = |(cell, field): (&Cell, &Arc<Field>)| -> PyResult<Entry> {
        let from = match *cell {
            Cell::Probe(at) => From::Given(PyString::intern(py, names.field(at).name()).unbind()),
            Cell::Build { leg, column } => {
                let of = &star.legs()[leg].1;
                From::Build(BuildColumn::try_new(py, leg + 1, &of.build, column)?.with_default(&of.defaults))
            }
            Cell::Mark(leg) => From::Mark(leg + 1),
        };
        Ok(Entry { name: PyString::intern(py, field.name()).unbind(), from })
    };
    let entries = layout.columns.iter().zip(layout.schema.fields()).map(entry).collect::<PyResult<_>>()?;
    Ok(Planned::Plan(RowsPlan {
        engine: Engine::Star(Arc::new(plan)),
        reads: read.iter().map(|&at| (at, keys.read(names, at))).collect(),
        schema,
        keys: keys_of,
        tested,
        output: Output { keeps_row: !chosen, entries },
    }))
}
