//! Tests of the language of conditions.

mod examples;
mod plain;
mod properties;
mod sql;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::*;
use crate::error::Result;

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect::<Vec<_>>()))
}

/// Binds over one build column `a` and one probe column `b`, and evaluates.
fn run(expr: Expr, a: ArrayRef, b: ArrayRef) -> Result<Vec<Option<bool>>> {
    let predicate = expr.bind(&schema(&[("a", a.data_type().clone())]), &schema(&[("b", b.data_type().clone())]))?;
    let columns: Vec<ArrayRef> =
        predicate.columns().iter().map(|(side, _)| if *side == Side::Build { a.clone() } else { b.clone() }).collect();
    Ok(predicate.evaluate(&columns, a.len())?.iter().collect())
}

fn longs(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}
