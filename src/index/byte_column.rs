//! Reading byte keys: strings, binary, and fixed-width values wider than a word.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, OffsetSizeTrait};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, IntervalUnit};

/// A column whose values are byte strings.
pub(super) trait ByteColumn {
    /// The value of `row` as (data, start, length).
    fn slot(&self, row: usize) -> (&[u8], usize, usize);

    /// The value of `row`.
    #[inline(always)]
    fn value(&self, row: usize) -> &[u8] {
        let (data, at, len) = self.slot(row);
        &data[at..at + len]
    }
}

/// Values one after the other, with offsets.
pub(super) struct Offsets<'a, O> {
    pub(super) offsets: &'a [O],
    pub(super) data: &'a [u8],
}

impl<O: OffsetSizeTrait> ByteColumn for Offsets<'_, O> {
    #[inline(always)]
    fn slot(&self, row: usize) -> (&[u8], usize, usize) {
        let (start, end) = (self.offsets[row].as_usize(), self.offsets[row + 1].as_usize());
        (self.data, start, end - start)
    }
}

/// Values of one width.
pub(super) struct Fixed<'a> {
    pub(super) width: usize,
    pub(super) data: &'a [u8],
}

impl ByteColumn for Fixed<'_> {
    #[inline(always)]
    fn slot(&self, row: usize) -> (&[u8], usize, usize) {
        (self.data, row * self.width, self.width)
    }
}

/// Views: 16 bytes each, with the value inside or in a data buffer.
pub(super) struct Views<'a> {
    pub(super) views: &'a [u8],
    pub(super) buffers: &'a [Buffer],
}

impl ByteColumn for Views<'_> {
    #[inline(always)]
    fn slot(&self, row: usize) -> (&[u8], usize, usize) {
        let view = &self.views[row * 16..row * 16 + 16];
        let part = |at: usize| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]) as usize;
        let len = part(0);
        if len <= 12 { (self.views, row * 16 + 4, len) } else { (&self.buffers[part(8)], part(12), len) }
    }
}

/// True for the types that [`with_bytes`] reads.
pub(super) fn is_bytes(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Utf8 | LargeUtf8 | Binary | LargeBinary | Utf8View | BinaryView | FixedSizeBinary(_))
        || fixed_width(data_type).is_some()
}

/// Width of the primitive types that are compared as bytes.
fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Decimal128(..) | DataType::Interval(IntervalUnit::MonthDayNano) => Some(16),
        DataType::Decimal256(..) => Some(32),
        _ => None,
    }
}

/// The bytes of a fixed-width array's values.
pub(super) fn fixed(array: &dyn Array) -> Fixed<'_> {
    let (width, data): (usize, &[u8]) = match array.data_type() {
        DataType::Decimal128(..) => (16, array.as_primitive::<Decimal128Type>().values().inner()),
        DataType::Decimal256(..) => (32, array.as_primitive::<Decimal256Type>().values().inner()),
        DataType::Interval(_) => (16, array.as_primitive::<IntervalMonthDayNanoType>().values().inner()),
        _ => {
            let array = array.as_fixed_size_binary();
            (array.value_length() as usize, array.value_data())
        }
    };
    Fixed { width, data }
}

/// Evaluates `$body` with `$bytes` as the [`ByteColumn`] of an array of a byte type.
macro_rules! with_bytes {
    ($array:expr, |$bytes:ident| $body:expr) => {{
        use arrow_array::cast::AsArray;
        use arrow_schema::DataType;
        use $crate::index::byte_column::{Offsets, Views, fixed};
        let array: &dyn arrow_array::Array = $array;
        macro_rules! offsets {
            ($values:expr) => {{
                let values = $values;
                let $bytes = Offsets { offsets: values.value_offsets(), data: values.value_data() };
                $body
            }};
        }
        macro_rules! views {
            ($values:expr) => {{
                let values = $values;
                let $bytes = Views { views: values.views().inner(), buffers: values.data_buffers() };
                $body
            }};
        }
        match array.data_type() {
            DataType::Utf8 => offsets!(array.as_string::<i32>()),
            DataType::LargeUtf8 => offsets!(array.as_string::<i64>()),
            DataType::Binary => offsets!(array.as_binary::<i32>()),
            DataType::LargeBinary => offsets!(array.as_binary::<i64>()),
            DataType::Utf8View => views!(array.as_string_view()),
            DataType::BinaryView => views!(array.as_binary_view()),
            _ => {
                let $bytes = fixed(array);
                $body
            }
        }
    }};
}
pub(super) use with_bytes;
