//! Whether a probe batch fits the probe side of its join.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;

use crate::error::{Error, Result, plan_err};
use crate::index::NONE;

/// Checks columns, size, and that there are no nulls where `schema` declares none.
pub(super) fn check_input(batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    check_columns(batch, schema)?;
    if batch.num_rows() >= NONE as usize {
        return plan_err!("a probe batch holds {} rows, at most {} are possible; cut it", batch.num_rows(), NONE - 1);
    }
    let fields = schema.fields().iter();
    if let Some((field, _)) = fields.zip(batch.columns()).find(|(f, c)| !f.is_nullable() && c.null_count() > 0) {
        return Err(Error::Execution(format!(
            "a probe batch holds nulls in column {:?}, which the probe side's schema declares without nulls; declare it \
             nullable",
            field.name()
        )));
    }
    Ok(())
}

/// Nullability and metadata may differ from the schema, names and types may not.
fn check_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    if Arc::ptr_eq(batch.schema_ref(), schema) {
        return Ok(());
    }
    let found = batch.schema_ref();
    if found.fields().len() != schema.fields().len() {
        return plan_err!(
            "a probe batch has {} columns, the probe schema has {}",
            found.fields().len(),
            schema.fields().len()
        );
    }
    for (found, field) in found.fields().iter().zip(schema.fields()) {
        if found.name() != field.name() || found.data_type() != field.data_type() {
            return plan_err!(
                "a probe batch has column {:?} of type {} where the probe schema has {:?} of type {}",
                found.name(),
                found.data_type(),
                field.name(),
                field.data_type()
            );
        }
    }
    Ok(())
}
