//! Reading keys as bytes: strings, binary, and fixed-width values of more than 8 bytes, in each of Arrow's layouts.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, OffsetSizeTrait};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, IntervalUnit};

/// A column whose values are byte strings.
pub(super) trait ByteColumn {
    /// The value of `row` as the buffer that holds it, its start there and its length.
    fn slot(&self, row: usize) -> (&[u8], usize, usize);

    /// The [`slot`](Self::slot)s of rows `start..start + len`, read quicker than one at a time.
    fn slots(&self, start: usize, len: usize) -> impl Iterator<Item = (&[u8], usize, usize)>;

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

    #[inline(always)]
    fn slots(&self, start: usize, len: usize) -> impl Iterator<Item = (&[u8], usize, usize)> {
        let slot = |pair: &[O]| (self.data, pair[0].as_usize(), pair[1].as_usize().wrapping_sub(pair[0].as_usize()));
        self.offsets[start..=start + len].windows(2).map(slot)
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

    #[inline(always)]
    fn slots(&self, start: usize, len: usize) -> impl Iterator<Item = (&[u8], usize, usize)> {
        (start..start + len).map(|row| self.slot(row))
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

    #[inline(always)]
    fn slots(&self, start: usize, len: usize) -> impl Iterator<Item = (&[u8], usize, usize)> {
        (start..start + len).map(|row| self.slot(row))
    }
}

/// True for the types that [`Bytes`] reads.
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
fn fixed(array: &dyn Array) -> Fixed<'_> {
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

/// Evaluates `$body`, compiled for each layout, with the column in a [`Bytes`] as `$column`.
macro_rules! with_column {
    ($bytes:expr, |$column:ident| $body:expr) => {
        match $bytes {
            Bytes::Offsets($column) => $body,
            Bytes::LargeOffsets($column) => $body,
            Bytes::Fixed($column) => $body,
            Bytes::Views($column) => $body,
        }
    };
}
pub(super) use with_column;

/// A byte column in any layout. Loops over many rows use [`with_column`], so that they match on the layout once.
pub(super) enum Bytes<'a> {
    Offsets(Offsets<'a, i32>),
    LargeOffsets(Offsets<'a, i64>),
    Fixed(Fixed<'a>),
    Views(Views<'a>),
}

impl<'a> Bytes<'a> {
    /// Reads an array for which [`is_bytes`] holds.
    pub(super) fn of(array: &'a dyn Array) -> Self {
        fn offsets<T: ByteArrayType>(array: &dyn Array) -> Offsets<'_, T::Offset> {
            let array = array.as_bytes::<T>();
            Offsets { offsets: array.value_offsets(), data: array.value_data() }
        }
        fn views<T: ByteViewType>(array: &dyn Array) -> Views<'_> {
            let array = array.as_byte_view::<T>();
            Views { views: array.views().inner(), buffers: array.data_buffers() }
        }
        match array.data_type() {
            DataType::Utf8 => Self::Offsets(offsets::<Utf8Type>(array)),
            DataType::LargeUtf8 => Self::LargeOffsets(offsets::<LargeUtf8Type>(array)),
            DataType::Binary => Self::Offsets(offsets::<BinaryType>(array)),
            DataType::LargeBinary => Self::LargeOffsets(offsets::<LargeBinaryType>(array)),
            DataType::Utf8View => Self::Views(views::<StringViewType>(array)),
            DataType::BinaryView => Self::Views(views::<BinaryViewType>(array)),
            _ => Self::Fixed(fixed(array)),
        }
    }
}

impl Bytes<'_> {
    /// The value of `row`.
    #[inline(always)]
    pub(super) fn value(&self, row: usize) -> &[u8] {
        with_column!(self, |column| column.value(row))
    }
}
