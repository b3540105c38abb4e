//! One column out of many arrays.
//!
//! Arrow's `concat` cannot be stopped, and copies a gigabyte in one call; here flat columns are appended piece by piece
//! to exactly sized builders, with a look at the stop signal before each piece.

pub(crate) mod encoded;
mod nested;

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, GenericByteBuilder, NullBufferBuilder, PrimitiveBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, LargeBinaryType, LargeUtf8Type, StringViewType, Utf8Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, NullArray, downcast_primitive, make_array};
use arrow_buffer::{ArrowNativeType, MutableBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::cancel::Cancel;
use crate::error::{Error, Result, internal_err};

/// Rows appended between two looks at the stop signal.
const PIECE: usize = 64 * 1024;

/// Concatenates arrays of one type, at least one; a single one is copied too. The copy shares no buffer with them.
///
/// # Errors
/// [`Error::Overflow`] where the bytes of a Utf8 or Binary column outgrow its 32-bit offsets, before any allocation.
pub(crate) fn concat(arrays: &[ArrayRef], cancel: &Cancel) -> Result<ArrayRef> {
    let pieces = Pieces { arrays, cancel };
    let data_type = arrays[0].data_type();
    macro_rules! primitive {
        ($t:ty) => {
            primitive::<$t>(pieces)
        };
    }
    downcast_primitive! {
        data_type => (primitive),
        DataType::Null => Ok(Arc::new(NullArray::new(pieces.rows()))),
        DataType::Boolean => boolean(pieces),
        DataType::FixedSizeBinary(width) => fixed_size_binary(pieces, *width as usize),
        DataType::Utf8 => bytes::<Utf8Type>(pieces),
        DataType::LargeUtf8 => bytes::<LargeUtf8Type>(pieces),
        DataType::Binary => bytes::<BinaryType>(pieces),
        DataType::LargeBinary => bytes::<LargeBinaryType>(pieces),
        DataType::Utf8View => nested::views::<StringViewType>(arrays, cancel),
        DataType::BinaryView => nested::views::<BinaryViewType>(arrays, cancel),
        DataType::Struct(fields) => nested::structs(arrays, fields, cancel),
        DataType::List(field) => nested::lists::<i32>(arrays, field, cancel),
        DataType::LargeList(field) => nested::lists::<i64>(arrays, field, cancel),
        DataType::ListView(field) => nested::list_views::<i32>(arrays, field, cancel),
        DataType::LargeListView(field) => nested::list_views::<i64>(arrays, field, cancel),
        DataType::FixedSizeList(field, size) => nested::fixed_size_lists(arrays, field, *size, cancel),
        DataType::Map(field, ordered) => nested::maps(arrays, field, *ordered, cancel),
        DataType::Dictionary(key, _) => encoded::dictionaries(arrays, key, cancel),
        DataType::RunEndEncoded(ends, _) => encoded::run_ends(arrays, ends, cancel),
        DataType::Union(fields, mode) => encoded::unions(arrays, fields, *mode, cancel),
        other => internal_err!("concatenation of type {other}"),
    }
}

/// The arrays of one column, cut to pieces of at most [`PIECE`] rows.
#[derive(Clone, Copy)]
struct Pieces<'a> {
    arrays: &'a [ArrayRef],
    cancel: &'a Cancel,
}

impl Pieces<'_> {
    fn rows(&self) -> usize {
        self.arrays.iter().map(|array| array.len()).sum()
    }

    fn try_for_each(&self, mut append: impl FnMut(&dyn Array) -> Result<()>) -> Result<()> {
        for array in self.arrays {
            for start in (0..array.len()).step_by(PIECE) {
                self.cancel.check()?;
                match array.len() {
                    0..=PIECE => append(array)?,
                    rows => append(&array.slice(start, PIECE.min(rows - start)))?,
                }
            }
        }
        Ok(())
    }
}

fn primitive<T: ArrowPrimitiveType>(pieces: Pieces<'_>) -> Result<ArrayRef> {
    let data_type = pieces.arrays[0].data_type().clone();
    let mut builder = PrimitiveBuilder::<T>::with_capacity(pieces.rows()).with_data_type(data_type);
    pieces.try_for_each(|piece| {
        builder.append_array(piece.as_primitive());
        Ok(())
    })?;
    Ok(Arc::new(builder.finish()))
}

fn boolean(pieces: Pieces<'_>) -> Result<ArrayRef> {
    let mut builder = BooleanBuilder::with_capacity(pieces.rows());
    pieces.try_for_each(|piece| {
        builder.append_array(piece.as_boolean());
        Ok(())
    })?;
    Ok(Arc::new(builder.finish()))
}

fn bytes<T: ByteArrayType>(pieces: Pieces<'_>) -> Result<ArrayRef> {
    let size: usize = pieces.arrays.iter().map(|array| value_bytes::<T>(array)).sum();
    if T::Offset::from_usize(size).is_none() {
        let data_type = pieces.arrays[0].data_type();
        return Err(Error::Overflow(format!(
            "{size} bytes of values do not fit the 32-bit offsets of type {data_type}; cast the column to \
             Large{data_type} or split the build"
        )));
    }
    let mut builder = GenericByteBuilder::<T>::with_capacity(pieces.rows(), size);
    pieces.try_for_each(|piece| Ok(builder.append_array(piece.as_bytes::<T>())?))?;
    Ok(Arc::new(builder.finish()))
}

fn value_bytes<T: ByteArrayType>(array: &ArrayRef) -> usize {
    let offsets = array.as_bytes::<T>().value_offsets();
    offsets[offsets.len() - 1].as_usize() - offsets[0].as_usize()
}

fn fixed_size_binary(pieces: Pieces<'_>, width: usize) -> Result<ArrayRef> {
    let rows = pieces.rows();
    let mut values = MutableBuffer::with_capacity(rows * width);
    let mut nulls = NullBufferBuilder::new(rows);
    pieces.try_for_each(|piece| {
        let piece = piece.as_fixed_size_binary();
        values.extend_from_slice(piece.value_data());
        match piece.nulls() {
            Some(validity) => nulls.append_buffer(validity),
            None => nulls.append_n_non_nulls(piece.len()),
        }
        Ok(())
    })?;
    let data_type = pieces.arrays[0].data_type().clone();
    let data = ArrayData::builder(data_type).len(rows).add_buffer(values.into()).nulls(nulls.finish());
    Ok(make_array(data.build()?))
}
