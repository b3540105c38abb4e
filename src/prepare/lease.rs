//! Arrays that share a build's memory and keep the build alive.

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::PreparedBuild;
use crate::cancel::Cancel;
use crate::columns::copy_size::{SMALL_ALLOCATION, sliced_size};
use crate::columns::{any_part, concat};
use crate::error::{Result, internal_err};

impl PreparedBuild {
    /// The columns at `columns` of the build rows, in build order, for a caller that may outlive its handle on the build: they
    /// share the build's memory, and keep the build and its charge alive. Dictionary values that are small are copied.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{MemoryPool, Pool, RunOptions};
    ///
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let options = RunOptions { pool: Arc::clone(&pool), ..RunOptions::default() };
    /// let build = prejoin::prepare(users, &["id"], &options)?;
    /// let names = build.shared_rows(&[1])?;
    /// drop(build);
    /// assert!(pool.reserved() > 0);
    /// drop(names);
    /// assert_eq!(pool.reserved(), 0);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Arrow`](crate::Error::Arrow) for a column that does not exist, [`Error::Damaged`](crate::Error::Damaged) for
    /// columns of an unverified file that are not valid.
    pub fn shared_rows(self: &Arc<Self>, columns: &[usize]) -> Result<RecordBatch> {
        let schema = Arc::new(self.rows_schema().project(columns)?);
        let column = |&column: &usize| lease_array(self, self.column(column)?.as_ref());
        let columns = columns.iter().map(column).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

/// Column `column` of the build for copying rows from: under a lease where copies share buffers with it.
pub(crate) fn lease_column(build: &Arc<PreparedBuild>, column: usize) -> Result<ArrayRef> {
    let array = build.column(column)?;
    if shares_when_copied(array.data_type()) { lease_array(build, array.as_ref()) } else { Ok(array.clone()) }
}

/// The columns of a build that a join reads, for copying rows from. Others are neither read nor checked.
#[derive(Debug)]
pub(crate) struct LeasedColumns(Vec<Option<ArrayRef>>);

impl LeasedColumns {
    /// The columns at `used`, positions in `build`.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) for columns of an unverified file that are not valid.
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
        // SAFETY: the same bits, so the same number of them is unset. benches/unchecked.rs shows what counting them takes.
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
    // SAFETY: valid data of the same type over the same bytes, or a copy of them. Checking it once more reads all values
    // (benches/unchecked.rs).
    Ok(unsafe { leased.build_unchecked() })
}

fn lease_buffer(build: &Arc<PreparedBuild>, buffer: &Buffer) -> Buffer {
    // Holders of a lease change neither of the two, so they are whole after a panic.
    let owner = Arc::new(AssertUnwindSafe((buffer.clone(), Arc::clone(build))));
    // A slice of no bytes has an address that is not null.
    let start = NonNull::new(buffer.as_ptr().cast_mut()).unwrap_or(NonNull::dangling());
    // SAFETY: the owner holds the buffer, which keeps these bytes where they are and unchanged.
    unsafe { Buffer::from_custom_allocation(start, buffer.len(), owner) }
}
