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
    /// The plain type of the values, without a dictionary or runs; Float64 for every float, which holds the others exactly.
    data_type: DataType,
    /// None for a list that no value is in.
    found: Option<(RowConverter, HashSet<Box<[u8]>>)>,
    /// The list holds a null, so that no row is false.
    has_null: bool,
}

impl InList {
    /// `list` has one array of one row for each constant, as it is beside a value of the plain type `data_type`.
    pub(super) fn new(data_type: &DataType, list: &[ArrayRef]) -> Result<Self> {
        let float = Kind::of(data_type) == Kind::Float;
        let data_type = if float { DataType::Float64 } else { data_type.clone() };
        let has_null = list.iter().any(|array| array.logical_null_count() > 0);
        let mut constants = Self { data_type, found: None, has_null };
        // A constant of another type is one that no value of the type is equal to.
        let may_equal = |array: &&ArrayRef| {
            let of = array.data_type();
            array.logical_null_count() == 0 && (*of == constants.data_type || float && Kind::of(of) == Kind::Float)
        };
        let values: Vec<&ArrayRef> = list.iter().filter(may_equal).collect();
        if !values.is_empty() {
            let rows = RowConverter::new(vec![SortField::new(constants.data_type.clone())])?;
            let mut found = HashSet::with_capacity(values.len());
            for array in values {
                let value = Value { array: array.clone(), scalar: true };
                let row = rows.convert_columns(&[constants.comparable(&value)?])?;
                found.insert(row.row(0).data().into());
            }
            constants.found = Some((rows, found));
        }
        Ok(constants)
    }

    /// One row if the value is one for all, else one for each.
    pub(super) fn evaluate(&self, value: &Value) -> Result<BooleanArray> {
        let nulls = value.array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let found = match &self.found {
            Some((rows, values)) => {
                let rows = rows.convert_columns(&[self.comparable(value)?])?;
                BooleanBuffer::collect_bool(rows.num_rows(), |i| values.contains(rows.row(i).data()))
            }
            None => BooleanBuffer::new_unset(value.array.len()),
        };
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
