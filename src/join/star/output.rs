//! The output columns of a star join.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_schema::FieldRef;

use super::at_hand::{AtHand, Found, Known};
use super::{Cell, PROBE};
use crate::error::{Result, plan_err};
use crate::join::names::{Chosen, Names, settle};

/// The output columns and their fields.
pub(super) fn output_columns(at_hand: &AtHand<'_>) -> Result<Vec<(Cell, FieldRef)>> {
    let field = |known: &Known<'_>, name: &str| -> Result<(Cell, FieldRef)> {
        let field = at_hand.field(known)?;
        let named = field.name() == name;
        Ok((known.cell, if named { field } else { Arc::new(field.as_ref().clone().with_name(name)) }))
    };
    let Some(select) = &at_hand.star.select else {
        let given = at_hand.columns.iter().filter_map(|known| Some((known, known.name.as_deref()?)));
        return given.map(|(known, name)| field(known, name)).collect();
    };
    let (mut columns, mut chosen) = (Vec::with_capacity(select.len()), Vec::with_capacity(select.len()));
    for (new, asked) in select {
        let names = |known: &Known<'_>| match known.cell.side() {
            0 => Names { table: PROBE, prefix: "", suffix: "" },
            side => at_hand.star.legs[side - 1].1.names(at_hand.table(side)),
        };
        if let (Found::None, Some(table)) = (at_hand.find(asked), asked.strip_suffix(".*")) {
            if new.is_some() {
                return plan_err!("select gives all columns of {table:?} one name; list {asked:?} without a new name");
            }
            let Some(side) = at_hand.side(table) else {
                return plan_err!("select names {asked:?}, {table:?} is none of the tables; {}", at_hand.list());
            };
            let all = at_hand.columns.iter().filter(|known| known.cell.side() == side);
            let before = columns.len();
            for (known, name) in all.filter_map(|known| Some((known, known.name.as_deref()?))) {
                columns.push(known);
                let name = Some(Cow::Borrowed(name));
                chosen.push(Chosen { name, repeats: side == 0, own: known.own, names: names(known) });
            }
            if columns.len() == before && side > 0 && !at_hand.star.legs[side - 1].1.join_type.gives_columns() {
                let kind = at_hand.star.legs[side - 1].1.join_type.how();
                return plan_err!("select names {asked:?}, a {kind} join gives no build columns");
            }
            continue;
        }
        let known = at_hand.get(asked, "select")?;
        let name = match (new, known.cell) {
            (Some(new), _) => Some(new.as_str()),
            // Who asks by address gets the column's own name.
            _ if known.name.as_deref() == Some(asked) && at_hand.address(known) != *asked => Some(asked.as_str()),
            (None, Cell::Probe(_)) => Some(known.own),
            (None, _) => None,
        };
        columns.push(known);
        chosen.push(Chosen { name: name.map(Cow::Borrowed), repeats: false, own: known.own, names: names(known) });
    }
    columns.into_iter().zip(settle(&chosen)?).map(|(known, name)| field(known, &name)).collect()
}
