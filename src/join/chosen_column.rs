//! How key and output columns are chosen: by name, by position, or by an expression that is a plain column.

use arrow_schema::SchemaRef;

use crate::columns::{Positions, names, position};
use crate::error::{Result, plan_err};
use crate::expr::{ColumnId, ColumnRef, Expr, Side};

/// A key column of one side: its name, its position, or an expression that is a plain column.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinKey {
    /// By name, which must be unique on its side.
    Name(String),
    /// By position.
    Position(usize),
    /// An expression; joins take plain columns only and refuse any other.
    Expr(Box<Expr>),
}

impl From<&str> for JoinKey {
    fn from(name: &str) -> Self {
        JoinKey::Name(name.to_owned())
    }
}

impl From<String> for JoinKey {
    fn from(name: String) -> Self {
        JoinKey::Name(name)
    }
}

impl From<usize> for JoinKey {
    fn from(position: usize) -> Self {
        JoinKey::Position(position)
    }
}

impl From<ColumnId> for JoinKey {
    fn from(id: ColumnId) -> Self {
        match id {
            ColumnId::Name(name) => JoinKey::Name(name),
            ColumnId::Position(position) => JoinKey::Position(position),
        }
    }
}

impl From<Expr> for JoinKey {
    fn from(expr: Expr) -> Self {
        JoinKey::Expr(Box::new(expr))
    }
}

impl JoinKey {
    /// How the column at `position` was chosen.
    pub(super) fn id(&self, position: usize) -> ColumnId {
        match self {
            JoinKey::Name(name) => ColumnId::Name(name.clone()),
            JoinKey::Position(_) => ColumnId::Position(position),
            JoinKey::Expr(expr) => match expr.as_ref() {
                Expr::Column(ColumnRef { id, .. }) => id.clone(),
                _ => ColumnId::Position(position),
            },
        }
    }

    /// The position of the key in `schema`, which is that of `side`.
    pub(crate) fn resolve(&self, schema: &SchemaRef, side: Side) -> Result<usize> {
        match self {
            JoinKey::Name(name) => position(schema, name, &side.to_string()),
            JoinKey::Position(position) if *position < schema.fields().len() => Ok(*position),
            JoinKey::Position(position) => plan_err!(
                "the {side} side has no column {position}; it has {} columns: {}",
                schema.fields().len(),
                names(schema)
            ),
            JoinKey::Expr(expr) => match expr.as_ref() {
                Expr::Column(column) if column.side.is_none_or(|of| of == side) => match &column.id {
                    ColumnId::Name(name) => JoinKey::Name(name.clone()).resolve(schema, side),
                    ColumnId::Position(position) => JoinKey::Position(*position).resolve(schema, side),
                },
                Expr::Column(column) => {
                    plan_err!("key pairs are (build key, probe key), the {side} side's key is {column}")
                }
                other => plan_err!(
                    "hash joins require direct column keys, the {side} side's key is {other}; compute it before"
                ),
            },
        }
    }
}

/// An output column of a projection: by position, or by name, which must be unique on its side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectedColumn {
    /// By position in (build columns, probe columns, mark).
    Position(usize),
    /// A column of the build side by name.
    Build(String),
    /// A column of the probe side by name.
    Probe(String),
    /// The column that a mark join adds.
    Mark,
}

impl From<usize> for ProjectedColumn {
    fn from(position: usize) -> Self {
        ProjectedColumn::Position(position)
    }
}

impl ProjectedColumn {
    /// Position in (build columns, probe columns, mark).
    pub(super) fn resolve(&self, build: &Positions<'_>, probe: &Positions<'_>) -> Result<usize> {
        let builds = build.columns();
        Ok(match self {
            ProjectedColumn::Position(position) => *position,
            ProjectedColumn::Build(name) => build.get(name)?,
            ProjectedColumn::Probe(name) => builds + probe.get(name)?,
            ProjectedColumn::Mark => builds + probe.columns(),
        })
    }
}
