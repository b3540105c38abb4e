//! Nested and view columns out of many arrays, in copies that share nothing with them.

use std::sync::Arc;

use arrow_array::builder::NullBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericByteViewArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, StructArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ByteView;
use arrow_schema::{DataType, FieldRef, Fields};

use super::concat;
use crate::cancel::Cancel;
use crate::columns::child_range::shown_by_views;
use crate::error::{Error, Result};

/// Longest value that a view holds itself.
const INLINE: u32 = 12;

/// Bytes of one data buffer of views: their offsets are 32 bits wide, and signed in some readers.
const VIEW_BLOCK: usize = i32::MAX as usize;

pub(crate) fn rows(arrays: &[ArrayRef]) -> usize {
    arrays.iter().map(|array| array.len()).sum()
}

/// The validity of all arrays one after the other.
pub(crate) fn nulls(arrays: &[ArrayRef]) -> Option<NullBuffer> {
    if arrays.iter().all(|array| array.nulls().is_none()) {
        return None;
    }
    let mut nulls = NullBufferBuilder::new(rows(arrays));
    for array in arrays {
        match array.nulls() {
            Some(validity) => nulls.append_buffer(validity),
            None => nulls.append_n_non_nulls(array.len()),
        }
    }
    nulls.finish()
}

pub(crate) fn structs(arrays: &[ArrayRef], fields: &Fields, cancel: &Cancel) -> Result<ArrayRef> {
    let child =
        |i: usize| concat(&arrays.iter().map(|array| array.as_struct().column(i).clone()).collect::<Vec<_>>(), cancel);
    let columns = (0..fields.len()).map(child).collect::<Result<_>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls(arrays), rows(arrays))?))
}

pub(crate) fn fixed_size_lists(arrays: &[ArrayRef], field: &FieldRef, size: i32, cancel: &Cancel) -> Result<ArrayRef> {
    let values: Vec<ArrayRef> = arrays.iter().map(|array| array.as_fixed_size_list().values().clone()).collect();
    let values = concat(&values, cancel)?;
    Ok(Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), size, values, nulls(arrays), rows(arrays))?))
}

/// Offsets of the concatenated lists, and the part of each array's child that its lists show.
fn offsets<'a, O: OffsetSizeTrait>(
    parts: impl Iterator<Item = (&'a OffsetBuffer<O>, &'a dyn Array)> + Clone,
    data_type: &DataType,
) -> Result<(OffsetBuffer<O>, Vec<ArrayRef>)> {
    let rows: usize = parts.clone().map(|(offsets, _)| offsets.len() - 1).sum();
    let mut ends: Vec<O> = Vec::with_capacity(rows + 1);
    ends.push(O::default());
    let mut children = Vec::new();
    let mut base = 0usize;
    for (offsets, child) in parts {
        let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
        if O::from_usize(base + (last - first)).is_none() {
            return Err(Error::Overflow(format!(
                "{} list values do not fit the 32-bit offsets of type {data_type}; cast the column to a large list or \
                 split the build",
                base + (last - first)
            )));
        }
        ends.extend(offsets[1..].iter().map(|end| O::usize_as(base + end.as_usize() - first)));
        children.push(child.slice(first, last - first));
        base += last - first;
    }
    Ok((OffsetBuffer::new(ends.into()), children))
}

pub(crate) fn lists<O: OffsetSizeTrait>(arrays: &[ArrayRef], field: &FieldRef, cancel: &Cancel) -> Result<ArrayRef> {
    let parts = arrays.iter().map(|array| array.as_list::<O>()).map(|list| (list.offsets(), list.values().as_ref()));
    let (offsets, children) = offsets::<O>(parts, arrays[0].data_type())?;
    let values = concat(&children, cancel)?;
    Ok(Arc::new(GenericListArray::<O>::try_new(field.clone(), offsets, values, nulls(arrays))?))
}

pub(crate) fn maps(arrays: &[ArrayRef], field: &FieldRef, ordered: bool, cancel: &Cancel) -> Result<ArrayRef> {
    let parts = arrays.iter().map(|array| array.as_map()).map(|map| (map.offsets(), map.entries() as &dyn Array));
    let (offsets, children) = offsets::<i32>(parts, arrays[0].data_type())?;
    let entries = concat(&children, cancel)?.as_struct().clone();
    Ok(Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls(arrays), ordered)?))
}

/// Of each child the range is copied that its views lie in.
pub(crate) fn list_views<O: OffsetSizeTrait>(
    arrays: &[ArrayRef],
    field: &FieldRef,
    cancel: &Cancel,
) -> Result<ArrayRef> {
    let (mut offsets, mut sizes): (Vec<O>, Vec<O>) =
        (Vec::with_capacity(rows(arrays)), Vec::with_capacity(rows(arrays)));
    let mut children = Vec::with_capacity(arrays.len());
    let mut base = 0usize;
    for array in arrays {
        let views = array.as_list_view::<O>();
        let shown = shown_by_views(views.offsets(), views.sizes());
        if O::from_usize(base + shown.len()).is_none() {
            return Err(Error::Overflow(format!(
                "the values of type {} do not fit its 32-bit offsets; cast the column to a large list view or split the build",
                array.data_type()
            )));
        }
        let moved = |(at, size): (&O, &O)| {
            O::usize_as(if size.as_usize() == 0 { 0 } else { base + at.as_usize() - shown.start })
        };
        offsets.extend(views.offsets().iter().zip(views.sizes()).map(moved));
        sizes.extend_from_slice(views.sizes());
        base += shown.len();
        children.push(views.values().slice(shown.start, shown.len()));
    }
    let values = concat(&children, cancel)?;
    let (offsets, sizes) = (ScalarBuffer::from(offsets), ScalarBuffer::from(sizes));
    Ok(Arc::new(GenericListViewArray::<O>::try_new(field.clone(), offsets, sizes, values, nulls(arrays))?))
}

/// Copies the values that views point to, so that nothing of the arrays' data buffers is held.
pub(crate) fn views<T: ByteViewType>(arrays: &[ArrayRef], cancel: &Cancel) -> Result<ArrayRef> {
    let long = |view: &u128| *view as u32 > INLINE;
    let mut blocks: Vec<usize> = Vec::new();
    for array in arrays {
        let array = array.as_byte_view::<T>();
        let lengths = array.views().iter().enumerate().filter(|&(row, view)| long(view) && array.is_valid(row));
        for len in lengths.map(|(_, &view)| view as u32 as usize) {
            match blocks.last_mut().filter(|block| **block + len <= VIEW_BLOCK) {
                Some(block) => *block += len,
                None => blocks.push(len),
            }
        }
    }
    let mut views: Vec<u128> = Vec::with_capacity(rows(arrays));
    let mut data: Vec<Vec<u8>> = Vec::new();
    let mut sizes = blocks.into_iter();
    for array in arrays {
        cancel.check()?;
        let array = array.as_byte_view::<T>();
        for (row, &view) in array.views().iter().enumerate() {
            if array.is_null(row) {
                views.push(0);
                continue;
            }
            if !long(&view) {
                views.push(view);
                continue;
            }
            let view = ByteView::from(view);
            let value =
                &array.data_buffers()[view.buffer_index as usize][view.offset as usize..][..view.length as usize];
            if data.last().is_none_or(|block| block.len() + value.len() > VIEW_BLOCK) {
                data.push(Vec::with_capacity(sizes.next().unwrap_or(value.len())));
            }
            let at = data.len() - 1;
            let moved = ByteView { buffer_index: at as u32, offset: data[at].len() as u32, ..view };
            data[at].extend_from_slice(value);
            views.push(moved.as_u128());
        }
    }
    let data: Vec<Buffer> = data.into_iter().map(Buffer::from_vec).collect();
    // SAFETY: each view shows the bytes of a view of a valid array; `try_new` would check all text once more.
    Ok(Arc::new(unsafe { GenericByteViewArray::<T>::new_unchecked(views.into(), data.into(), nulls(arrays)) }))
}
