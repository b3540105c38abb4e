//! Keys of integers, times, texts and bytes, encoded as `arrow_row::RowConverter` encodes them, one column after the other:
//! that converter asks its columns value by value, with which 4,096 look-ups of a text and a time took 150 us instead of 122.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrayRef, GenericByteArray};
use arrow_buffer::ArrowNativeType;
use arrow_row::Rows;
use arrow_schema::DataType;

/// Texts are cut into blocks, each followed by a byte that says whether there is another one: four short ones, then long
/// ones.
const SHORT: usize = 8;
const LONG: usize = 32;

/// Follows a block that is not the last one.
const MORE: u8 = 0xFF;

/// The encoded keys of a range of rows.
pub(super) enum EncodedChunk {
    Plain(PlainRows),
    Converted(Rows),
}

impl EncodedChunk {
    /// The key of row `i`.
    #[inline(always)]
    pub(super) fn key(&self, i: usize) -> &[u8] {
        match self {
            Self::Plain(rows) => &rows.data[rows.ends[i]..rows.ends[i + 1]],
            Self::Converted(rows) => rows.row(i).data(),
        }
    }

    /// Heap bytes held.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Plain(rows) => rows.data.capacity() + 2 * size_of_val(rows.ends.as_slice()),
            Self::Converted(rows) => rows.size(),
        }
    }
}

/// One key after the other.
pub(super) struct PlainRows {
    data: Vec<u8>,
    /// The first is 0.
    ends: Vec<usize>,
}

/// Bytes of a value of a type with values of one width.
fn width(data_type: &DataType) -> Option<usize> {
    let plain = data_type.is_integer()
        || matches!(
            data_type,
            DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(_, _)
                | DataType::Duration(_)
        );
    data_type.primitive_width().filter(|_| plain)
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
}

/// Calls a function with the typed array of a column of bytes.
macro_rules! with_bytes {
    ($column:expr, $f:ident, $($argument:expr),*) => {
        match $column.data_type() {
            DataType::Utf8 => $f($column.as_string::<i32>(), $($argument),*),
            DataType::LargeUtf8 => $f($column.as_string::<i64>(), $($argument),*),
            DataType::Binary => $f($column.as_binary::<i32>(), $($argument),*),
            _ => $f($column.as_binary::<i64>(), $($argument),*),
        }
    };
}

impl PlainRows {
    /// The keys of `columns`, of equal length; `None` where one is of another type.
    pub(super) fn encode(columns: &[ArrayRef]) -> Option<Self> {
        let is_plain = |column: &ArrayRef| width(column.data_type()).is_some() || is_bytes(column.data_type());
        if !columns.iter().all(is_plain) {
            return None;
        }
        let rows = columns.first()?.len();
        let mut ends = vec![0; rows + 1];
        let mut fixed = 0;
        for column in columns {
            match width(column.data_type()) {
                Some(width) => fixed += 1 + width,
                None => with_bytes!(column, add_lengths, &mut ends[1..]),
            }
        }
        let mut end = 0;
        for length in &mut ends[1..] {
            end += fixed + *length;
            *length = end;
        }
        let mut data = vec![0; end];
        let mut at = ends[..rows].to_vec();
        for column in columns {
            match width(column.data_type()) {
                Some(1) => write_fixed(column, |value: u8, flip| [value ^ (flip >> 56) as u8], &mut at, &mut data),
                Some(2) => write_fixed(
                    column,
                    |value: u16, flip| (value ^ (flip >> 48) as u16).to_be_bytes(),
                    &mut at,
                    &mut data,
                ),
                Some(4) => write_fixed(
                    column,
                    |value: u32, flip| (value ^ (flip >> 32) as u32).to_be_bytes(),
                    &mut at,
                    &mut data,
                ),
                Some(_) => write_fixed(column, |value: u64, flip| (value ^ flip).to_be_bytes(), &mut at, &mut data),
                None => with_bytes!(column, write_bytes, &mut at, &mut data),
            }
        }
        Some(Self { data, ends })
    }
}

fn add_lengths<T: ByteArrayType>(column: &GenericByteArray<T>, lengths: &mut [usize]) {
    let offsets = column.value_offsets().windows(2);
    for (i, (total, offsets)) in lengths.iter_mut().zip(offsets).enumerate() {
        *total += match offsets[1].as_usize() - offsets[0].as_usize() {
            _ if column.is_null(i) => 1,
            len if len <= LONG => 1 + len.div_ceil(SHORT) * (SHORT + 1),
            len => LONG / SHORT + len.div_ceil(LONG) * (LONG + 1),
        };
    }
}

/// Values big-endian behind a 1, with the sign of signed ones turned around; zeros for null.
fn write_fixed<T: ArrowNativeType, const W: usize>(
    column: &ArrayRef,
    encode: impl Fn(T, u64) -> [u8; W],
    at: &mut [usize],
    data: &mut [u8],
) {
    let flip = if column.data_type().is_unsigned_integer() { 0 } else { 1 << 63 };
    let values = column.to_data();
    for (i, (&value, at)) in values.buffer::<T>(0).iter().zip(at).enumerate() {
        if column.is_valid(i) {
            let out = &mut data[*at..*at + 1 + W];
            out[0] = 1;
            out[1..].copy_from_slice(&encode(value, flip));
        }
        *at += 1 + W;
    }
}

/// 2 and blocks; 1 for what is empty, 0 for null.
fn write_bytes<T: ByteArrayType>(column: &GenericByteArray<T>, at: &mut [usize], data: &mut [u8]) {
    let values = column.value_data();
    let offsets = column.value_offsets().windows(2);
    for (i, (offsets, at)) in offsets.zip(at).enumerate() {
        if column.is_null(i) {
            *at += 1;
            continue;
        }
        let value = &values[offsets[0].as_usize()..offsets[1].as_usize()];
        if value.is_empty() {
            data[*at] = 1;
            *at += 1;
            continue;
        }
        data[*at] = 2;
        *at += 1;
        let (short, long) = value.split_at(value.len().min(LONG));
        *at = write_blocks::<SHORT>(short, *at, data);
        if !long.is_empty() {
            data[*at - 1] = MORE;
            *at = write_blocks::<LONG>(long, *at, data);
        }
    }
}

/// Writes `value`, which is not empty, from `at` on and returns where it ends.
fn write_blocks<const SIZE: usize>(value: &[u8], mut at: usize, data: &mut [u8]) -> usize {
    let mut last = 0;
    for block in value.chunks(SIZE) {
        data[at..at + block.len()].copy_from_slice(block);
        data[at + SIZE] = MORE;
        at += SIZE + 1;
        last = block.len();
    }
    data[at - 1] = last as u8;
    at
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::*;
    use arrow_array::{BinaryArray, LargeStringArray, PrimitiveArray, StringArray};
    use arrow_row::{RowConverter, SortField};
    use proptest::prelude::*;

    use super::*;

    fn column(kind: usize, values: &[Option<i64>]) -> ArrayRef {
        macro_rules! primitive {
            ($t:ty) => {
                Arc::new(values.iter().map(|v| v.map(|v| v as _)).collect::<PrimitiveArray<$t>>())
            };
        }
        let text = |v: i64| "abc\u{e9}xyz"[..3].repeat((v & 0x1f) as usize);
        match kind {
            0 => primitive!(Int8Type),
            1 => primitive!(UInt16Type),
            2 => primitive!(Int32Type),
            3 => primitive!(UInt64Type),
            4 => primitive!(TimestampMicrosecondType),
            5 => primitive!(Date32Type),
            6 => Arc::new(values.iter().map(|v| v.map(text)).collect::<StringArray>()),
            7 => Arc::new(values.iter().map(|v| v.map(text)).collect::<LargeStringArray>()),
            _ => {
                let bytes = |v: i64| vec![v as u8; (v & 0x7f) as usize];
                Arc::new(values.iter().map(|v| v.map(bytes)).collect::<BinaryArray>())
            }
        }
    }

    proptest! {
        /// Byte by byte what arrow-row makes, of slices too: saved builds hold either.
        #[test]
        fn the_bytes_are_those_of_the_converter(
            kinds in prop::collection::vec(0..9usize, 1..4),
            values in prop::collection::vec(prop::option::weighted(0.8, any::<i64>()), 1..40),
            skip in 0..5usize,
        ) {
            let skip = skip.min(values.len() - 1);
            let columns: Vec<ArrayRef> = kinds.iter().map(|&kind| column(kind, &values)).collect();
            let columns: Vec<ArrayRef> = columns.iter().map(|c| c.slice(skip, c.len() - skip)).collect();
            let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
            let expected = RowConverter::new(fields).unwrap().convert_columns(&columns).unwrap();
            let found = EncodedChunk::Plain(PlainRows::encode(&columns).unwrap());
            for i in 0..values.len() - skip {
                prop_assert_eq!(found.key(i), expected.row(i).data());
            }
        }
    }
}
