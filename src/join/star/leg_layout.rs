//! What one leg reads of the rows that reach it: its keys, and what its condition tests.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Schema};

use super::at_hand::{AtHand, Found, Known};
use super::{BUILD, LegLayout, PROBE};
use crate::columns::{Positions, comparable, names};
use crate::error::{Result, plan_err};
use crate::expr::{ColumnId, ColumnRef, Side};

/// What leg `i` reads.
pub(super) fn leg_layout(at_hand: &AtHand<'_>, i: usize) -> Result<LegLayout> {
    let (name, leg) = &at_hand.star.legs[i];
    let build = leg.build.schema();
    let (mut reads, mut fields, mut places) = (Vec::new(), Vec::new(), HashMap::new());
    let mut read = |known: &Known<'_>| -> Result<usize> {
        if let Some(&at) = places.get(&known.cell) {
            return Ok(at);
        }
        fields.push(at_hand.field(known)?);
        reads.push(known.cell);
        places.insert(known.cell, reads.len() - 1);
        Ok(reads.len() - 1)
    };
    let (mut keys, mut further) = (Vec::with_capacity(leg.build.keys().len()), Vec::new());
    let all = leg.key_columns()?;
    for (place, column) in all.iter().enumerate().flat_map(|(i, all)| all.iter().map(move |&column| (i, column))) {
        let key = build.field(leg.build.keys()[place]);
        if leg.on.is_none() && matches!(at_hand.find(column), Found::None) {
            return plan_err!(
                "no column at hand has the name of the build's key {column:?}; say what it is looked up by, \
                 on={{column: {column:?}}}; {}",
                at_hand.list()
            );
        }
        let known = at_hand.get(column, "on")?;
        if !comparable(key.data_type(), known.field.data_type()) {
            return plan_err!(
                "key types must match: build column {:?} is {}, {} is {}; cast one of them",
                key.name(),
                key.data_type(),
                at_hand.address(known),
                known.field.data_type()
            );
        }
        let position = read(known)?;
        match keys.len() == place {
            true => keys.push(position),
            false => further.push((place, position)),
        }
    }
    let as_of = match &leg.as_of {
        None => None,
        Some(as_of) => {
            let order = as_of.order_column(&leg.build)?;
            let known = at_hand.get(as_of.probe.as_ref().unwrap_or(order.name()), "asof")?;
            as_of.choice(order, &known.field)?;
            Some(read(known)?)
        }
    };
    let (build_columns, probe_columns) = (Positions::new(build, BUILD), Positions::new(at_hand.probe, PROBE));
    let find = &mut |column: &ColumnRef| -> Result<(Side, usize, DataType)> {
        let of_build = |at: usize| Ok((Side::Build, at, build.field(at).data_type().clone()));
        let known = match (column.side, &column.id) {
            (Some(Side::Build), ColumnId::Name(column)) => return of_build(build_columns.get(column)?),
            (Some(side), &ColumnId::Position(at)) => {
                let schema = if side == Side::Build { build } else { at_hand.probe };
                if at >= schema.fields().len() {
                    return plan_err!(
                        "the {side} side has no column at position {at}; its {} columns are {}",
                        schema.fields().len(),
                        names(schema)
                    );
                }
                match side {
                    Side::Build => return of_build(at),
                    Side::Probe => &at_hand.columns[at],
                }
            }
            (Some(Side::Probe), ColumnId::Name(column)) => &at_hand.columns[probe_columns.get(column)?],
            (None, ColumnId::Position(_)) => {
                return plan_err!("a column by position needs its side, build or probe");
            }
            (None, ColumnId::Name(column)) => {
                let own = column.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.'));
                if let Some(at) = own.and_then(|own| build_columns.get(own).ok()) {
                    return of_build(at);
                }
                match (build_columns.get(column), at_hand.find(column)) {
                    // An address is first of all one.
                    (_, Found::One(known)) if matches!(at_hand.qualified(column), Found::One(_)) => known,
                    (Ok(at), Found::None) => return of_build(at),
                    (Ok(_), _) => {
                        return plan_err!(
                            "the condition names {column:?}, which the build and the rows at hand have; write \
                             build.{column}, or the other one with its table; {}",
                            at_hand.list()
                        );
                    }
                    (Err(_), Found::None) => {
                        return plan_err!(
                            "the condition names {column:?}, which neither the build nor the rows at hand have; the \
                             columns of build are {}; at hand {}",
                            names(build),
                            at_hand.list()
                        );
                    }
                    (Err(_), _) => at_hand.get(column, "the condition")?,
                }
            }
        };
        Ok((Side::Probe, read(known)?, known.field.data_type().clone()))
    };
    let predicate = leg.filter.as_ref().map(|filter| filter.bind_with(find)).transpose()?;
    Ok(LegLayout { reads, schema: Arc::new(Schema::new(fields)), keys, further, as_of, predicate })
}
