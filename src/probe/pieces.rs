//! Pieces of an output put together into one batch.

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use arrow_select::concat::concat;

use crate::cancel::Cancel;
use crate::columns::{concat as concat_column, fixed_width};
use crate::error::{Error, Result};

fn too_large(what: &str) -> Error {
    Error::Overflow(format!("the output does not fit one batch: {what}; give the probe side as a stream"))
}

/// Refuses a single batch of more than 2^31-1 rows, or of more than 2 GiB in a column of fixed width.
pub(crate) fn check_batch_size(schema: &SchemaRef, rows: usize) -> Result<()> {
    if rows > i32::MAX as usize {
        return Err(too_large("it has more than 2^31-1 rows"));
    }
    let outgrown = |field: &&FieldRef| {
        let bytes = fixed_width(field.data_type()).map_or(Some(0), |width| width.checked_mul(rows));
        bytes.is_none_or(|bytes| bytes > i32::MAX as usize)
    };
    match schema.fields().iter().find(outgrown) {
        Some(field) => {
            Err(too_large(&format!("column {:?} of type {} outgrows 2 GiB", field.name(), field.data_type())))
        }
        None => Ok(()),
    }
}

/// All batches that `next` gives, as one.
pub(super) fn drain(
    schema: &SchemaRef,
    cancel: &Cancel,
    mut next: impl FnMut() -> Result<Option<RecordBatch>>,
) -> Result<RecordBatch> {
    let Some(first) = next()? else { return Ok(RecordBatch::new_empty(schema.clone())) };
    let mut rows = first.num_rows();
    check_batch_size(schema, rows)?;
    let mut batches = vec![first];
    while let Some(batch) = next()? {
        // While it grows, before memory for the whole is asked for.
        rows += batch.num_rows();
        check_batch_size(schema, rows)?;
        batches.push(batch);
    }
    match batches.len() {
        1 => Ok(batches.remove(0)),
        _ => one_batch(schema, &batches, cancel),
    }
}

/// The pieces of an output as one batch.
pub(crate) fn one_batch(schema: &SchemaRef, pieces: &[RecordBatch], cancel: &Cancel) -> Result<RecordBatch> {
    let rows = pieces.iter().map(RecordBatch::num_rows).sum();
    check_batch_size(schema, rows)?;
    let column = |i: usize| -> Result<ArrayRef> {
        let parts: Vec<ArrayRef> = pieces.iter().map(|piece| piece.column(i).clone()).collect();
        let data_type = parts[0].data_type();
        let outgrown = || too_large(&format!("column {:?} of type {data_type} outgrows it", schema.field(i).name()));
        cancel.check()?;
        // Arrow's concat polls no stop signal, panics on lists that outgrow their offsets, and refuses dictionaries that
        // just fill their key type; for views it is used because it shares their text.
        if !matches!(data_type, DataType::Utf8View | DataType::BinaryView) {
            return concat_column(&parts, cancel).map_err(|error| match error {
                Error::Overflow(_) => outgrown(),
                other => other,
            });
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        concat(&parts).map_err(|error| match error {
            ArrowError::OffsetOverflowError(_) => outgrown(),
            other => other.into(),
        })
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
