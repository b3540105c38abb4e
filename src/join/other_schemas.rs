//! A join whose sides get other schemas: what was chosen by name is looked up again, what was chosen by position is refused.

use std::fmt::Display;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::chosen_column::{JoinKey, ProjectedColumn};
use super::spec::JoinSpec;
use crate::error::{Result, plan_err};
use crate::expr::{ColumnId, Side};

/// What is set anew together with the schemas, and so is not looked up in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetAnew {
    pub(crate) on: bool,
    pub(crate) projection: bool,
    pub(crate) filter: bool,
}

impl JoinSpec {
    /// The same join of sides with these schemas. Keys and output columns that were chosen by name are looked up again where
    /// the columns differ; positions need the same columns.
    pub(crate) fn with_schemas(mut self, build: SchemaRef, probe: SchemaRef, set_anew: SetAnew) -> Result<Self> {
        let moved = (!same_columns(&self.build, &build), !same_columns(&self.probe, &probe));
        if moved == (false, false) {
            (self.build, self.probe) = (build, probe);
            return Ok(self);
        }
        let refuse = |what: &dyn Display, side: Side| {
            let (before, now) = match side {
                Side::Build => (&self.build, &build),
                Side::Probe => (&self.probe, &probe),
            };
            plan_err!(
                "{what} is given by position, which needs an equal schema where the {side} source is replaced: its columns \
                 were {}, they are {}; give the column by its name, or set it anew with the source",
                columns(before),
                columns(now)
            )
        };
        let on = self.chosen_on();
        if !set_anew.on {
            for (b, p) in &on {
                for (key, side, moved) in [(b, Side::Build, moved.0), (p, Side::Probe, moved.1)] {
                    if let (ColumnId::Position(position), true) = (key, moved) {
                        return refuse(&format_args!("key column {side}[{position}]"), side);
                    }
                }
            }
        }
        let projection = self.chosen_projection();
        if !set_anew.projection {
            for column in projection.iter().flatten() {
                if let &ProjectedColumn::Position(position) = column {
                    let what = format_args!("column {position} of the projection");
                    // Positions of the probe side count from the end of the build side.
                    if moved.0 {
                        return refuse(&what, Side::Build);
                    } else if position >= self.build.fields().len() {
                        return refuse(&what, Side::Probe);
                    }
                }
            }
        }
        if let Some(filter) = self.filter.as_ref().filter(|_| !set_anew.filter) {
            for (side, moved) in [(Side::Build, moved.0), (Side::Probe, moved.1)] {
                if let (Some(column), true) = (filter.position_on(side), moved) {
                    return refuse(&format_args!("column {column} of the predicate"), side);
                }
            }
        }
        (self.build, self.probe) = (build, probe);
        if !set_anew.on {
            let on: Vec<(JoinKey, JoinKey)> = on.into_iter().map(|(b, p)| (b.into(), p.into())).collect();
            self.set_on(&on)?;
        }
        if !set_anew.projection {
            self.set_projection(projection)?;
        }
        Ok(self)
    }
}

/// True where columns have the same names and types in the same order.
fn same_columns(a: &SchemaRef, b: &SchemaRef) -> bool {
    let columns = |schema: &SchemaRef| schema.fields().len();
    Arc::ptr_eq(a, b)
        || columns(a) == columns(b)
            && a.fields().iter().zip(b.fields()).all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type())
}

/// Names and types of columns, for error texts.
fn columns(schema: &SchemaRef) -> String {
    let columns = schema.fields().iter().map(|field| format!("{:?} {}", field.name(), field.data_type()));
    format!("({})", columns.collect::<Vec<_>>().join(", "))
}
