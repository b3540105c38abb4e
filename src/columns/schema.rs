//! Columns of a schema by name.

use arrow_schema::SchemaRef;

use crate::error::{Result, plan_err};

/// Position of the column `name`; an error that lists the columns there are, or says that the name is not unique.
pub(crate) fn position(schema: &SchemaRef, name: &str, side: &str) -> Result<usize> {
    let mut found = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name).map(|(i, _)| i);
    match (found.next(), found.next()) {
        (Some(position), None) => Ok(position),
        (Some(_), Some(_)) => {
            plan_err!("the {side} side has more than one column {name:?}; name it by its position")
        }
        _ => plan_err!("the {side} side has no column {name:?}; its columns are {}", names(schema)),
    }
}

/// The column names of a schema, for error texts.
pub(crate) fn names(schema: &SchemaRef) -> String {
    let names: Vec<String> = schema.fields().iter().map(|field| format!("{:?}", field.name())).collect();
    if names.is_empty() { "no columns".to_owned() } else { names.join(", ") }
}
