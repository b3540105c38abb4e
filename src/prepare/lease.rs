//! Sharing a build's memory with somebody who does not know the build.

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

#[cfg(feature = "python")]
use arrow_array::RecordBatch;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::PreparedBuild;
use crate::cancel::Cancel;
use crate::columns::any_part;
use crate::columns::concat;
use crate::columns::copy_size::{SMALL_ALLOCATION, sliced_size};
use crate::error::{Result, internal_err};

/// `batch`, whose buffers belong to `build`, with each buffer holding a lease: as long as one of them lives, so do the
/// build and its charge (S24). Dictionary values that are small are copied instead, so that they keep no build.
#[cfg(feature = "python")]
pub(crate) fn lease_batch(build: &Arc<PreparedBuild>, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| lease_array(build, column.as_ref())).collect::<Result<_>>()?;
    // SAFETY: the same columns in the same schema, only the owners of their buffers differ.
    Ok(unsafe { RecordBatch::new_unchecked(batch.schema(), columns, batch.num_rows()) })
}

/// Column `column` of the build for copying rows from: under a lease where copies share buffers with it (S23).
pub(crate) fn lease_column(build: &Arc<PreparedBuild>, column: usize) -> Result<ArrayRef> {
    let array = build.column(column)?;
    if shares_when_copied(array.data_type()) { lease_array(build, array.as_ref()) } else { Ok(array.clone()) }
}

/// The columns of a build that somebody reads, for copying rows from; no other is looked at.
#[derive(Debug)]
pub(crate) struct LeasedColumns(Vec<Option<ArrayRef>>);

impl LeasedColumns {
    /// The columns at `used`, positions in `build`.
    ///
    /// # Errors
    /// [`Error::Execution`](crate::Error::Execution) for columns of an unverified file that are not valid.
    pub(crate) fn try_new(build: &Arc<PreparedBuild>, used: impl IntoIterator<Item = usize>) -> Result<Self> {
        let mut columns = vec![None; build.schema().fields().len()];
        for column in used {
            if columns[column].is_none() {
                columns[column] = Some(lease_column(build, column)?);
            }
        }
        Ok(Self(columns))
    }

    pub(crate) fn get(&self, column: usize) -> Result<&ArrayRef> {
        match &self.0[column] {
            Some(array) => Ok(array),
            None => internal_err!("build column {column} of a plan that does not use it"),
        }
    }
}

/// True for types of which a copy of some rows may share view data, dictionary values or the values of list views with the
/// whole.
fn shares_when_copied(data_type: &DataType) -> bool {
    use DataType::*;
    any_part(data_type, &|part| {
        matches!(part, Utf8View | BinaryView | Dictionary(_, _) | ListView(_) | LargeListView(_))
    })
}

fn lease_array(build: &Arc<PreparedBuild>, array: &dyn Array) -> Result<ArrayRef> {
    Ok(make_array(lease_data(build, &array.to_data())?))
}

fn lease_data(build: &Arc<PreparedBuild>, data: &ArrayData) -> Result<ArrayData> {
    let nulls = data.nulls().map(|nulls| {
        let bits = BooleanBuffer::new(lease_buffer(build, nulls.buffer()), nulls.offset(), nulls.len());
        // SAFETY: the same bits, so the same number of them is unset.
        unsafe { NullBuffer::new_unchecked(bits, nulls.null_count()) }
    });
    let child = |child: &ArrayData| -> Result<ArrayData> {
        if matches!(data.data_type(), DataType::Dictionary(_, _)) {
            let values = make_array(child.clone());
            if sliced_size(&values)? <= SMALL_ALLOCATION {
                return Ok(concat(&[values], &Cancel::default())?.into_data());
            }
        }
        lease_data(build, child)
    };
    let leased = ArrayData::builder(data.data_type().clone())
        .len(data.len())
        .offset(data.offset())
        .buffers(data.buffers().iter().map(|buffer| lease_buffer(build, buffer)).collect())
        .child_data(data.child_data().iter().map(child).collect::<Result<_>>()?)
        .nulls(nulls);
    // SAFETY: valid data of the same type over the same bytes, or a copy of them.
    Ok(unsafe { leased.build_unchecked() })
}

fn lease_buffer(build: &Arc<PreparedBuild>, buffer: &Buffer) -> Buffer {
    // Neither is changed by whoever holds the lease, so a panic there leaves them whole.
    let owner = Arc::new(AssertUnwindSafe((buffer.clone(), Arc::clone(build))));
    // A slice of no bytes points somewhere, but never to null.
    let start = NonNull::new(buffer.as_ptr().cast_mut()).unwrap_or(NonNull::dangling());
    // SAFETY: the owner holds the buffer, which keeps these bytes where they are and unchanged.
    unsafe { Buffer::from_custom_allocation(start, buffer.len(), owner) }
}
