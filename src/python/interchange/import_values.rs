//! The buffers of C arrays as arrow-rs values: bits, offsets, values of a fixed width, text and views.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{
    ArrayRef, GenericByteArray, GenericByteViewArray, OffsetSizeTrait, PrimitiveArray, downcast_primitive,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer, bit_util,
};
use arrow_schema::{ArrowError, DataType};

use super::abi::ArrowArray;
use super::c_array::{Node, alignment, bad, checked};
use crate::error::{Error, Result};
use crate::memory::Reservation;

/// Imports the arrays of one batch.
pub(super) struct Importer<'a> {
    /// The root; it keeps all buffers of the batch.
    pub(super) owner: &'a Arc<ArrowArray>,
    /// Pays for copies until the caller has charged the batch itself.
    pub(super) copies: Option<&'a mut Reservation>,
}

impl Importer<'_> {
    /// `len` bytes from byte `start` of buffer `at`, at an address that is a multiple of `alignment`.
    pub(super) fn buffer(
        &mut self,
        node: &Node<'_>,
        at: usize,
        start: usize,
        len: usize,
        alignment: usize,
    ) -> Result<Buffer> {
        if len == 0 {
            return Ok(MutableBuffer::new(0).into());
        }
        let base = node.pointer(at);
        let end = start.checked_add(len).and_then(|size| base.addr().checked_add(size));
        if base.is_null() || end.is_none_or(|end| end > isize::MAX as usize) {
            return bad!("buffer {at} is at {base:?}, {len} bytes from byte {start} of it are due");
        }
        // SAFETY: the C data interface promises the bytes of these rows; the sum was checked.
        let first = unsafe { base.add(start) };
        if first.addr().is_multiple_of(alignment) {
            let owner = Arc::clone(self.owner);
            let first = NonNull::new(first.cast_mut()).expect("a non-null address plus a checked size");
            // SAFETY: as above; `owner` keeps the bytes.
            return Ok(unsafe { Buffer::from_custom_allocation(first, len, owner) });
        }
        if let Some(copies) = &mut self.copies {
            copies.try_grow(bit_util::round_upto_multiple_of_64(len))?;
        }
        // SAFETY: as above; bytes need no alignment.
        Ok(Buffer::from_slice_ref(unsafe { std::slice::from_raw_parts(first, len) }))
    }

    /// The rows' values of `width` bytes each in buffer `at`.
    pub(super) fn values(&mut self, node: &Node<'_>, at: usize, width: usize, alignment: usize) -> Result<Buffer> {
        self.buffer(node, at, checked(node.first, width)?, checked(node.len, width)?, alignment)
    }

    /// The rows' bits in buffer `at`.
    pub(super) fn bits(&mut self, node: &Node<'_>, at: usize) -> Result<BooleanBuffer> {
        if node.len == 0 {
            return Ok(BooleanBuffer::new_unset(0));
        }
        let bit = node.first % 8;
        let bytes = self.buffer(node, at, node.first / 8, (bit + node.len).div_ceil(8), 1)?;
        Ok(BooleanBuffer::new(bytes, bit, node.len))
    }

    /// The validity bitmap, buffer 0, counted by us. None where there is none or no row is null.
    pub(super) fn nulls(&mut self, node: &Node<'_>) -> Result<Option<NullBuffer>> {
        if node.pointer(0).is_null() {
            return match node.array.null_count {
                nulls @ 1.. => bad!("{nulls} nulls are claimed without a validity bitmap"),
                _ => Ok(None),
            };
        }
        Ok(Some(NullBuffer::new(self.bits(node, 0)?)).filter(|nulls| nulls.null_count() > 0))
    }

    pub(super) fn primitive(&mut self, node: &Node<'_>, data_type: &DataType) -> Result<ArrayRef> {
        let Some(width) = data_type.primitive_width() else {
            return Err(Error::NotSupported(format!("Arrow type {data_type} is not supported yet")));
        };
        let values = self.values(node, 1, width, alignment(data_type, width))?;
        let nulls = self.nulls(node)?;
        macro_rules! make {
            ($t:ty) => {
                Arc::new(
                    PrimitiveArray::<$t>::try_new(ScalarBuffer::from(values), nulls)?.with_data_type(data_type.clone()),
                )
            };
        }
        Ok(downcast_primitive! {
            data_type => (make),
            _ => return Err(Error::NotSupported(format!("Arrow type {data_type} is not supported yet")))
        })
    }

    /// The `len + 1` offsets of the rows, from buffer 1: not negative, not falling.
    pub(super) fn offsets<O: OffsetSizeTrait>(&mut self, node: &Node<'_>) -> Result<OffsetBuffer<O>> {
        if node.len == 0 {
            return Ok(OffsetBuffer::new_empty());
        }
        let width = size_of::<O>();
        let bytes = self.buffer(node, 1, checked(node.first, width)?, checked(node.len + 1, width)?, width)?;
        let offsets = ScalarBuffer::<O>::from(bytes);
        // No early exit, so that the compiler may use vectors.
        let falls = offsets.windows(2).fold(false, |falls, pair| falls | (pair[1] < pair[0]));
        if falls || offsets[0] < O::zero() {
            return bad!("its offsets are negative or fall");
        }
        // SAFETY: there is at least one offset; they start at 0 or more and do not fall.
        Ok(unsafe { OffsetBuffer::new_unchecked(offsets) })
    }

    pub(super) fn bytes<T: ByteArrayType>(
        &mut self,
        array: &ArrowArray,
        rows: Option<(usize, usize)>,
    ) -> Result<ArrayRef> {
        let node = Node::new(array, rows, 3, 0, false)?;
        let offsets = self.offsets::<T::Offset>(&node)?;
        let (first, last) = (offsets[0].as_usize(), offsets[node.len].as_usize());
        // Shown from the buffer's start, which offsets count from: all slices of one column show one range.
        let values = self.buffer(&node, 2, 0, last, 1)?;
        let nulls = self.nulls(&node)?;
        if matches!(T::DATA_TYPE, DataType::Utf8 | DataType::LargeUtf8)
            && let Err(error) = check_utf8(&values[first..last], first, &offsets)
        {
            return match nulls {
                Some(nulls) => self.without_values_of_nulls::<T>(&offsets, &values, nulls, error),
                None => Err(error),
            };
        }
        // SAFETY: the offsets stay within `values`; text was checked: whole, and at each offset. (`try_new` would read
        // all values before the first row again, in each slice of a column.)
        Ok(Arc::new(unsafe { GenericByteArray::<T>::new_unchecked(offsets, values, nulls) }))
    }

    /// A copy of text that is not valid as it lies, with empty values beneath its nulls; `error` if a value that is not
    /// null is not text.
    fn without_values_of_nulls<T: ByteArrayType>(
        &mut self,
        offsets: &OffsetBuffer<T::Offset>,
        values: &Buffer,
        nulls: NullBuffer,
        error: Error,
    ) -> Result<ArrayRef> {
        let value = |row: usize| offsets[row].as_usize()..offsets[row + 1].as_usize();
        let size: usize = nulls.valid_indices().map(|row| value(row).len()).sum();
        if let Some(copies) = &mut self.copies {
            let sizes = [size_of_val(&offsets[..]), size].map(bit_util::round_upto_multiple_of_64);
            copies.try_grow(sizes[0] + sizes[1])?;
        }
        let mut ends: Vec<T::Offset> = Vec::with_capacity(offsets.len());
        let mut out: Vec<u8> = Vec::with_capacity(size);
        ends.push(T::Offset::default());
        for row in 0..nulls.len() {
            if nulls.is_valid(row) {
                out.extend_from_slice(&values[value(row)]);
            }
            ends.push(T::Offset::usize_as(out.len()));
        }
        check_utf8(&out, 0, &ends).map_err(|_| error)?;
        // SAFETY: the offsets start at 0, do not fall and end at the length of the values, at most the old last offset.
        let ends = unsafe { OffsetBuffer::new_unchecked(ends.into()) };
        // SAFETY: as in `bytes`: text was checked whole, and at each offset.
        Ok(Arc::new(unsafe { GenericByteArray::<T>::new_unchecked(ends, Buffer::from_vec(out), Some(nulls)) }))
    }

    pub(super) fn views<T: ByteViewType + ?Sized>(
        &mut self,
        array: &ArrowArray,
        rows: Option<(usize, usize)>,
    ) -> Result<ArrayRef> {
        // Validity, views, any number of data buffers, their lengths.
        let count = usize::try_from(array.n_buffers).ok().filter(|&count| (3..=i32::MAX as usize).contains(&count));
        let Some(count) = count else {
            return bad!("{} buffers, a view array has at least 3", array.n_buffers);
        };
        let node = Node::new(array, rows, count, 0, false)?;
        let views = ScalarBuffer::<u128>::from(self.values(&node, 1, 16, align_of::<u128>())?);
        let lengths = node.pointer(count - 1).cast::<i64>();
        if lengths.is_null() && count > 3 {
            return bad!("the lengths of {} data buffers are missing", count - 3);
        }
        let data = (0..count - 3).map(|at| {
            // SAFETY: the last buffer has one length for each data buffer.
            let length = unsafe { lengths.add(at).read_unaligned() };
            match usize::try_from(length) {
                Ok(length) => self.buffer(&node, 2 + at, 0, length, 1),
                Err(_) => bad!("data buffer {at} has length {length}"),
            }
        });
        let data = data.collect::<Result<Vec<_>>>()?;
        let nulls = self.nulls(&node)?;
        Ok(Arc::new(match (GenericByteViewArray::<T>::try_new(views.clone(), data.clone(), nulls.clone()), nulls) {
            (Err(_), Some(nulls)) => {
                // Beneath a null any bytes are allowed.
                let views = self.zeroed(&views, &nulls)?;
                GenericByteViewArray::<T>::try_new(views, data, Some(nulls))?
            }
            (made, _) => made?,
        }))
    }

    /// A copy of `values` with zero beneath `nulls`.
    pub(super) fn zeroed<V: ArrowNativeType>(&mut self, values: &[V], nulls: &NullBuffer) -> Result<ScalarBuffer<V>> {
        if let Some(copies) = &mut self.copies {
            copies.try_grow(bit_util::round_upto_multiple_of_64(size_of_val(values)))?;
        }
        let value = |(row, &value): (usize, &V)| if nulls.is_valid(row) { value } else { V::default() };
        Ok(values.iter().enumerate().map(value).collect())
    }
}

/// Checks that `text`, which begins at offset `first`, is UTF-8, and that no offset splits a character.
fn check_utf8<O: OffsetSizeTrait>(text: &[u8], first: usize, offsets: &[O]) -> Result<()> {
    if text.is_ascii() {
        return Ok(());
    }
    let text = std::str::from_utf8(text).map_err(|error| ArrowError::InvalidArgumentError(error.to_string()))?;
    match offsets.iter().position(|offset| !text.is_char_boundary(offset.as_usize() - first)) {
        Some(row) => bad!("row {row} begins or ends inside a UTF-8 character"),
        None => Ok(()),
    }
}
