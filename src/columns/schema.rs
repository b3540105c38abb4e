//! Columns of a schema by name, and the comparison of two schemas.

use std::collections::HashMap;

use arrow_schema::{Field, Schema};

use crate::error::{Result, plan_err};

/// Position of the column `name`.
///
/// # Errors
/// [`Error::Plan`](crate::Error::Plan) where there is no such column, which lists those that there are, or more than one.
pub(crate) fn position(schema: &Schema, name: &str, side: &str) -> Result<usize> {
    let mut found = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name).map(|(i, _)| i);
    match (found.next(), found.next()) {
        (Some(position), None) => Ok(position),
        (Some(_), Some(_)) => {
            plan_err!(
                "the {side} side has more than one column {name:?}; rename all but one, or use HashJoin, whose keys and \
                 projection may be positions"
            )
        }
        _ => plan_err!("the {side} side has no column {name:?}; its columns are {}", names(schema)),
    }
}

/// [`position`] for many names of one schema.
pub(crate) struct Positions<'a> {
    schema: &'a Schema,
    side: &'a str,
    /// None for a name that several columns have.
    by_name: HashMap<&'a str, Option<usize>>,
}

impl<'a> Positions<'a> {
    pub(crate) fn new(schema: &'a Schema, side: &'a str) -> Self {
        let mut by_name = HashMap::with_capacity(schema.fields().len());
        for (position, field) in schema.fields().iter().enumerate() {
            by_name.entry(field.name().as_str()).and_modify(|known| *known = None).or_insert(Some(position));
        }
        Self { schema, side, by_name }
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.schema.fields().len()
    }

    /// The name of a column, where there is one of this position and no other of this name.
    pub(crate) fn unique_name(&self, position: usize) -> Option<&'a str> {
        let name = self.schema.fields().get(position)?.name();
        self.by_name.get(name.as_str()).and_then(|unique| unique.map(|_| name.as_str()))
    }

    /// True where one column or several have this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Result<usize> {
        match self.by_name.get(name) {
            Some(&Some(position)) => Ok(position),
            // It says what is wrong.
            _ => position(self.schema, name, self.side),
        }
    }
}

/// The column names of a schema, for error texts.
pub(crate) fn names(schema: &Schema) -> String {
    let names: Vec<String> = schema.fields().iter().map(|field| format!("{:?}", field.name())).collect();
    if names.is_empty() { "no columns".to_owned() } else { names.join(", ") }
}

/// The first difference between the columns of two schemas.
#[derive(Debug)]
pub(crate) enum ColumnDifference<'a> {
    /// They have another number of columns.
    Count,
    /// The column at a position has another name or type: that of the first schema, that of the second.
    Column(usize, &'a Field, &'a Field),
}

/// Compares names and types of the columns, in order. Nullability and metadata may differ.
pub(crate) fn column_difference<'a>(one: &'a Schema, other: &'a Schema) -> Option<ColumnDifference<'a>> {
    if one.fields().len() != other.fields().len() {
        return Some(ColumnDifference::Count);
    }
    let mut pairs = one.fields().iter().zip(other.fields()).enumerate();
    let different = |(_, (a, b)): &(usize, (&arrow_schema::FieldRef, &arrow_schema::FieldRef))| {
        a.name() != b.name() || a.data_type() != b.data_type()
    };
    pairs.find(different).map(|(at, (a, b))| ColumnDifference::Column(at, a, b))
}

/// Whether two schemas have the same columns: names and types, in order. Nullability and metadata may differ.
pub(crate) fn same_columns(one: &Schema, other: &Schema) -> bool {
    column_difference(one, other).is_none()
}
