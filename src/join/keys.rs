//! The key columns of probe batches, in the terms of a build's index.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Schema};

use crate::build::PreparedBuild;
use crate::error::{Result, plan_err};
use crate::index::{Coerced, coerce, comparable, key_type};

/// Reads the keys of batches of one schema for one build.
#[derive(Debug)]
pub(crate) struct KeyReader(Vec<KeyColumn>);

#[derive(Debug)]
struct KeyColumn {
    /// Position in the batch.
    position: usize,
    /// The type that the index has the key in, where it does not read the batch's own.
    coerced: Option<DataType>,
}

/// The keys of one batch.
#[derive(Debug)]
pub(crate) struct Keys {
    /// In key order; unspecified in missing rows.
    pub(crate) columns: Vec<ArrayRef>,
    /// Rows that no key of the build equals; `None` where none are known.
    pub(crate) missing: Option<BooleanBuffer>,
}

impl KeyReader {
    /// A reader of the columns at `positions`, one per key of `build`, in batches of `schema`.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for columns that do not exist or do not compare with their key.
    pub(crate) fn try_new(build: &PreparedBuild, positions: &[usize], schema: &Schema) -> Result<Self> {
        let keys = positions.iter().zip(build.keys()).enumerate();
        let column = |(i, (&position, &key)): (usize, (&usize, &usize))| {
            let key = build.schema().field(key);
            let Some(field) = schema.fields().get(position) else {
                return plan_err!("key column {position} was asked of a batch of {} columns", schema.fields().len());
            };
            if !comparable(key.data_type(), field.data_type()) {
                return plan_err!(
                    "column {:?} has type {}, which does not compare with the build's key of type {}",
                    field.name(),
                    field.data_type(),
                    key.data_type()
                );
            }
            let indexed = key_type(key.data_type());
            let reads = build.index().reads(i, &indexed, field.data_type());
            Ok(KeyColumn { position, coerced: (!reads).then_some(indexed) })
        };
        Ok(Self(keys.map(column).collect::<Result<_>>()?))
    }

    /// The keys of `batch`, which has the reader's schema.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<Keys> {
        let mut columns = Vec::with_capacity(self.0.len());
        let mut missing: Option<BooleanBuffer> = None;
        for KeyColumn { position, coerced } in &self.0 {
            let column = batch.column(*position);
            let Some(data_type) = coerced else {
                columns.push(column.clone());
                continue;
            };
            let coerced: Coerced = coerce(column, data_type)?;
            columns.push(coerced.keys);
            missing = match (missing, coerced.missing) {
                (Some(all), Some(more)) => Some(&all | &more),
                (all, more) => all.or(more),
            };
        }
        Ok(Keys { columns, missing })
    }
}
