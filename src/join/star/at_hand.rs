//! The columns that a leg may read: those of the probe side and of the legs before it, found by address or by name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, SchemaRef};

use super::{BUILD, Cell, PROBE, StarJoin};
use crate::columns::Positions;
use crate::error::{Error, Result, plan_err};
use crate::join::JoinType;
use crate::join::output::{MARK, extended};

/// A column at hand.
pub(super) struct Known<'a> {
    pub(super) cell: Cell,
    /// As it is in its table.
    pub(super) field: FieldRef,
    /// What it is called there.
    pub(super) own: &'a str,
    /// What it is called in the output; `None` where it does not come out.
    pub(super) name: Option<String>,
}

/// Columns of one name, by their positions among those at hand.
#[derive(Clone, Copy)]
enum Place {
    One(usize),
    Many,
}

/// The columns at hand, in output order.
pub(super) struct AtHand<'a> {
    pub(super) star: &'a StarJoin,
    pub(super) probe: &'a SchemaRef,
    pub(super) columns: Vec<Known<'a>>,
    by_name: HashMap<String, Place>,
    by_own: HashMap<&'a str, Place>,
    /// By their names in their tables, for each table.
    by_address: Vec<HashMap<&'a str, Place>>,
}

/// Columns of a name.
pub(super) enum Found<'h, 'a> {
    None,
    One(&'h Known<'a>),
    Many,
}

impl<'a> AtHand<'a> {
    /// The columns of the probe side.
    pub(super) fn new(star: &'a StarJoin, probe: &'a SchemaRef) -> Self {
        let mut at_hand = Self {
            star,
            probe,
            columns: Vec::with_capacity(probe.fields().len()),
            by_name: HashMap::new(),
            by_own: HashMap::new(),
            by_address: vec![HashMap::new()],
        };
        for (i, field) in probe.fields().iter().enumerate() {
            at_hand.put(Cell::Probe(i), Arc::clone(field), field.name(), Some(field.name().clone()));
        }
        at_hand
    }

    fn put(&mut self, cell: Cell, field: FieldRef, own: &'a str, name: Option<String>) {
        let at = self.columns.len();
        let known = &self.columns;
        // One column may be known under several names.
        let merge = |place: &mut Place| {
            if matches!(place, Place::One(other) if known[*other].cell != cell) {
                *place = Place::Many;
            }
        };
        self.by_own.entry(own).and_modify(merge).or_insert(Place::One(at));
        self.by_address[cell.side()].entry(own).and_modify(merge).or_insert(Place::One(at));
        if let Some(name) = &name {
            self.by_name.entry(name.clone()).and_modify(merge).or_insert(Place::One(at));
        }
        self.columns.push(Known { cell, field, own, name });
    }

    /// Adds the columns of leg `i`.
    pub(super) fn add(&mut self, i: usize) -> Result<()> {
        self.by_address.push(HashMap::new());
        let star = self.star;
        let (table, leg) = &star.legs[i];
        let taken: HashSet<String> = self.columns.iter().filter_map(|known| known.name.clone()).collect();
        let names = leg.names(table);
        if leg.join_type == JoinType::ProbeMark {
            let field = Arc::new(Field::new(MARK, DataType::Boolean, false));
            let name = names.choose(&[(None, MARK)], &taken)?.pop();
            self.put(Cell::Mark(i), field, MARK, name);
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
                let positions = Positions::new(schema, BUILD);
                let column = |(new, name): &'a (Option<String>, String)| {
                    let at = positions.get(name);
                    at.map(|at| (at, new.as_deref())).map_err(|error| match error {
                        Error::Plan(text) => Error::Plan(format!("select names {name:?}; {text}")),
                        other => other,
                    })
                };
                select.iter().map(column).collect::<Result<_>>()?
            }
        };
        let own = |at: usize| schema.field(at).name().as_str();
        let wanted: Vec<(Option<&str>, &str)> = given.iter().map(|&(at, new)| (new, own(at))).collect();
        let mut hidden = vec![true; schema.fields().len()];
        for (&(at, _), name) in given.iter().zip(names.choose(&wanted, &taken)?) {
            hidden[at] = false;
            self.put(Cell::Build { leg: i, column: at }, Arc::clone(&held.fields()[at]), own(at), Some(name));
        }
        for at in (0..hidden.len()).filter(|&at| hidden[at]) {
            self.put(Cell::Build { leg: i, column: at }, Arc::clone(&held.fields()[at]), own(at), None);
        }
        Ok(())
    }

    /// The name of the probe side, or of a leg.
    pub(super) fn table(&self, side: usize) -> &'a str {
        if side == 0 { PROBE } else { &self.star.legs[side - 1].0 }
    }

    /// The side of a table whose columns are at hand.
    pub(super) fn side(&self, table: &str) -> Option<usize> {
        (0..self.by_address.len()).find(|&side| self.table(side) == table)
    }

    fn at(&self, place: Option<&Place>) -> Found<'_, 'a> {
        match place {
            None => Found::None,
            Some(&Place::One(at)) => Found::One(&self.columns[at]),
            Some(Place::Many) => Found::Many,
        }
    }

    /// The column that is addressed as `table.name`.
    pub(super) fn qualified(&self, name: &str) -> Found<'_, 'a> {
        let tables = self.by_address.iter().enumerate();
        let mut found =
            tables.filter_map(|(side, columns)| columns.get(name.strip_prefix(self.table(side))?.strip_prefix('.')?));
        match (found.next(), found.next()) {
            (one, None) => self.at(one),
            // The names of tables have points.
            (_, Some(_)) => Found::Many,
        }
    }

    /// A column by its address, else by its name in the output, else by its name in its table.
    pub(super) fn find(&self, name: &str) -> Found<'_, 'a> {
        match (self.qualified(name), self.at(self.by_name.get(name))) {
            (Found::None, Found::None) => self.at(self.by_own.get(name)),
            (Found::None, found) => found,
            // A name with a point is no address where it is not one column's alone.
            (Found::Many, Found::One(found)) => Found::One(found),
            (found, _) => found,
        }
    }

    /// The one column of a name; `what` names it.
    pub(super) fn get(&self, name: &str, what: &str) -> Result<&Known<'a>> {
        match self.find(name) {
            Found::One(known) => Ok(known),
            Found::Many => {
                let own = |known: &&Known<'_>| known.name.as_deref() == Some(name) || known.own == name;
                let mut all: Vec<String> = self.columns.iter().filter(own).map(|known| self.address(known)).collect();
                all.dedup();
                plan_err!("{what} names {name:?}, which is the name of several columns: {}", all.join(", "))
            }
            Found::None => plan_err!("{what} names {name:?}, which no column at hand is; {}", self.list()),
        }
    }

    /// Says which columns are at hand.
    pub(super) fn list(&self) -> String {
        let all: Vec<String> = self.columns.iter().map(|known| self.address(known)).collect();
        if all.is_empty() { "there are none".to_owned() } else { format!("there are {}", all.join(", ")) }
    }

    /// `table.name`.
    pub(super) fn address(&self, known: &Known<'_>) -> String {
        format!("{}.{}", self.table(known.cell.side()), known.own)
    }

    /// The column's field as it is at hand: nullable where a left leg may not have a row.
    pub(super) fn field(&self, known: &Known<'_>) -> Result<FieldRef> {
        match known.cell {
            Cell::Build { leg, .. } => {
                let (name, leg) = &self.star.legs[leg];
                extended(&known.field, leg.join_type.extends_probe(), format_args!("left join with {name:?}"))
            }
            _ => Ok(Arc::clone(&known.field)),
        }
    }
}
