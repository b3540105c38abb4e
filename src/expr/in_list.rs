//! `IN` over a list of constants: one look-up a row, however long the list is.

use std::collections::HashSet;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;

use super::compare::{Value, canonical};
use super::kind::Kind;
use crate::error::Result;

/// The values of a list, as the bytes that arrow-row gives them: equal values of one type have equal bytes.
#[derive(Debug)]
pub(super) struct InList {
    /// The plain type of the values, without a dictionary or runs; Float64 for Float16.
    data_type: DataType,
    rows: RowConverter,
    values: HashSet<Box<[u8]>>,
    /// The list holds a null, so that no row is false.
    has_null: bool,
}

impl InList {
    /// `list` has one array of one row for each value; those of other types hold values that `data_type` does not have.
    pub(super) fn new(data_type: &DataType, list: &[ArrayRef]) -> Result<Self> {
        let rows = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        let mut found = Self { data_type: data_type.clone(), rows, values: HashSet::new(), has_null: false };
        for array in list {
            if array.logical_null_count() > 0 {
                found.has_null = true;
            } else if array.data_type() == data_type {
                let value = Value { array: array.clone(), scalar: true };
                let row = found.rows.convert_columns(&[found.comparable(&value)?])?;
                found.values.insert(row.row(0).data().into());
            }
        }
        Ok(found)
    }

    /// One row if the value is one for all, else one for each.
    pub(super) fn evaluate(&self, value: &Value) -> Result<BooleanArray> {
        let value = self.comparable(value)?;
        let nulls = value.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let rows = self.rows.convert_columns(&[value])?;
        let found = BooleanBuffer::collect_bool(rows.num_rows(), |i| self.values.contains(rows.row(i).data()));
        // Beside a null in the list only what was found is known.
        let known = self.has_null.then(|| NullBuffer::new(found.clone()));
        Ok(BooleanArray::new(found, NullBuffer::union(nulls.as_ref(), known.as_ref())))
    }

    /// The value in the plain type, with one NaN and one zero.
    fn comparable(&self, value: &Value) -> Result<ArrayRef> {
        match Kind::of(&self.data_type) {
            Kind::Float => Ok(canonical(value, &self.data_type)?.array),
            _ => Ok(value.cast(&self.data_type)?.array),
        }
    }
}
