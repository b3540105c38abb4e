//! The key columns of a build as they are indexed.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::columns::copy_size::{PADDING, output_buffers, sliced_size};
use crate::columns::{coerce, key_type, positions};
use crate::error::{Error, Result};
use crate::memory::{RangeCounter, Reservation};

/// Key columns with dictionaries and run-ends decoded. A column that is plain already is the build's own.
pub(crate) struct IndexKeys {
    pub(crate) columns: Vec<ArrayRef>,
    /// Bytes of the decoded copies.
    copied: usize,
}

impl IndexKeys {
    /// Decodes the columns `keys` of `rows`. Copies are admitted by `reservation` before they are made, which holds
    /// exactly their bytes afterwards.
    pub(crate) fn try_new(rows: &RecordBatch, keys: &[usize], reservation: &mut Reservation) -> Result<Self> {
        let mut this = Self { columns: Vec::with_capacity(keys.len()), copied: 0 };
        for &key in keys {
            let column = rows.column(key);
            let target = key_type(column.data_type());
            if *column.data_type() == target {
                this.columns.push(column.clone());
                continue;
            }
            let admitted = decoded_bound(column)?;
            reservation.try_grow(admitted)?;
            let decoded = coerce(column, &target)?.keys;
            let held = RangeCounter::default().add_array(decoded.as_ref());
            reservation.try_resize(reservation.size() - admitted + held)?;
            this.copied += held;
            this.columns.push(decoded);
        }
        Ok(this)
    }

    /// Drops the copies and gives their bytes back, but where the index goes on reading them.
    pub(crate) fn release(self, index_reads_them: bool, reservation: &mut Reservation) {
        let copied = if index_reads_them { 0 } else { self.copied };
        drop(self);
        reservation.shrink(copied);
    }
}

/// Bytes that decoding `array` may allocate, its working memory (8 bytes per decoded value and a bitmap) included.
fn decoded_bound(array: &ArrayRef) -> Result<usize> {
    if *array.data_type() == key_type(array.data_type()) {
        return sliced_size(array.as_ref());
    }
    let sum =
        |parts: &[usize]| parts.iter().try_fold(0usize, |total, &part| total.checked_add(part)).ok_or_else(overflow);
    if let Some((positions, values)) = positions(array)? {
        let rows = array.len();
        let mut chosen = positions.iter().flatten().map(|position| value_bytes(&values, position as usize));
        let bytes = chosen.try_fold(0usize, |total, bytes| total.checked_add(bytes?).ok_or_else(overflow))?;
        let decoded = if *values.data_type() == key_type(values.data_type()) { 0 } else { decoded_bound(&values)? };
        let offsets = rows.checked_add(1).and_then(|ends| ends.checked_mul(16)).ok_or_else(overflow)?;
        let working = rows.checked_mul(8).ok_or_else(overflow)?;
        let padding = output_buffers(&values.to_data()) * PADDING;
        return sum(&[bytes, decoded, offsets, working, 2 * rows.div_ceil(8), padding]);
    }
    // Nested: the parts that are plain are shared, the others decoded.
    let mut total = sliced_size(array.as_ref())?;
    for child in array.to_data().child_data() {
        total = sum(&[total, decoded_bound(&arrow_array::make_array(child.clone()))?])?;
    }
    Ok(total)
}

/// Bytes of one value, offsets and bitmaps aside.
fn value_bytes(values: &ArrayRef, at: usize) -> Result<usize> {
    Ok(match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value_length(at) as usize,
        DataType::LargeUtf8 => values.as_string::<i64>().value_length(at) as usize,
        DataType::Binary => values.as_binary::<i32>().value_length(at) as usize,
        DataType::LargeBinary => values.as_binary::<i64>().value_length(at) as usize,
        DataType::Utf8View | DataType::BinaryView => 16,
        DataType::Boolean | DataType::Null => 1,
        other => match other.primitive_width() {
            Some(width) => width,
            None => sliced_size(values.slice(at, 1).as_ref())?,
        },
    })
}

fn overflow() -> Error {
    Error::Overflow("copy size overflow: the decoded key columns are larger than the address space".to_owned())
}
