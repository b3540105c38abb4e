//! Output columns of nested, view and encoded types.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteViewType, Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericByteViewArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, PrimitiveArray, RunArray, StructArray, UnionArray, make_array, new_empty_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::{ArrayData, ByteView};
use arrow_schema::{DataType, FieldRef, Fields, UnionFields, UnionMode};

use super::NONE;
use super::child_range::shown_by_views;
use super::concat;
use super::gather::{
    How, Missing, Share, can_hold_nulls, fixed_values, fixed_width, gather_nulls, gather_rows, outgrown,
};
use super::selection::{Rows, Selection};
use super::stretches::Stretches;
use crate::cancel::Cancel;
use crate::error::{Error, Result, internal_err};

/// Longest value that a view holds itself.
const INLINE: u32 = 12;

impl How {
    /// For a child of which rows are missing where their parents are.
    fn for_child(self, field: &FieldRef) -> Self {
        Self { missing: Missing::of(field), ..self }
    }

    fn with(self, missing: Missing) -> Self {
        Self { missing, ..self }
    }
}

impl Share {
    /// Whether a copy that uses so many of `kept` bytes or values shares them all.
    fn shares(self, used: usize, kept: usize) -> bool {
        match self {
            Share::Always => true,
            Share::MostlyUsed => used >= kept.div_ceil(2),
            Share::Never => false,
        }
    }
}

pub(crate) fn views<T: ByteViewType, R: Rows>(column: &ArrayRef, rows: R, how: How) -> Result<ArrayRef> {
    let array = column.as_byte_view::<T>();
    let views = rows.fixed(array.views().inner(), size_of::<u128>())?;
    let nulls = gather_nulls(array.nulls(), rows, how.missing);
    // SAFETY: each view is one of a valid array over the same buffers, or zero, the empty value.
    unsafe { shown::<T>(views, Arc::clone(array.data_buffers()), nulls, how.share) }
}

/// The chosen rows of views; where a row is missing, the one value of `default`.
pub(super) fn views_or<T: ByteViewType>(
    column: &ArrayRef,
    selection: Selection<'_>,
    default: &ArrayRef,
) -> Result<ArrayRef> {
    let (array, default) = (column.as_byte_view::<T>(), default.as_byte_view::<T>());
    let (mut buffers, mut value) = (Arc::clone(array.data_buffers()), default.views()[0]);
    if value as u32 > INLINE {
        let known = ByteView::from(value);
        let moved = ByteView { buffer_index: buffers.len() as u32, offset: 0, ..known };
        let text = &default.data_buffers()[known.buffer_index as usize];
        let text = text.slice_with_length(known.offset as usize, known.length as usize);
        buffers = buffers.iter().cloned().chain([text]).collect();
        value = moved.as_u128();
    }
    let views = array.views();
    // Row NONE is beyond every column.
    let view = |&row: &u32| views.get(row as usize).copied().unwrap_or(value);
    let views = Buffer::from_vec(selection.rows().iter().map(view).collect::<Vec<u128>>());
    let nulls = gather_nulls(array.nulls(), selection, Missing::Any);
    // SAFETY: each view is one of a valid array, over its buffers, or `value`, which shows the bytes of `default`: in itself, or
    // all of the buffer that follows these.
    unsafe { shown::<T>(views, buffers, nulls, Share::MostlyUsed) }
}

/// An array of `views` over `buffers`, or over a copy of what they point to where `share` asks for one.
///
/// # Safety
/// Each view shows bytes that a valid array of this type shows, in itself or in these buffers; those of nulls may be zero.
unsafe fn shown<T: ByteViewType>(
    views: Buffer,
    buffers: Arc<[Buffer]>,
    nulls: Option<NullBuffer>,
    share: Share,
) -> Result<ArrayRef> {
    let kept: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut own = Vec::new();
    let shares = kept == 0 || share == Share::Always || {
        own.extend_from_slice(views.typed_data::<u128>());
        if let Some(nulls) = &nulls {
            (!nulls.inner()).set_indices().for_each(|row| own[row] = 0);
        }
        let used = own.iter().map(|&view| if view as u32 > INLINE { view as u32 as usize } else { 0 }).sum();
        share.shares(used, kept) || {
            // More than a view's offset reaches is cut into blocks below.
            if used <= i32::MAX as usize {
                let data = own_text(&mut own, &buffers, used);
                // SAFETY: each view shows the bytes that it showed before.
                let array = unsafe { GenericByteViewArray::<T>::new_unchecked(own.into(), data, nulls) };
                return Ok(Arc::new(array));
            }
            false
        }
    };
    // SAFETY: the caller's promise.
    let taken = unsafe { GenericByteViewArray::<T>::new_unchecked(views.into(), buffers, nulls) };
    if shares { Ok(Arc::new(taken)) } else { concat(&[Arc::new(taken)], &Cancel::default()) }
}

/// Copies the `used` bytes that `views` point to into one new buffer, which they point to afterwards.
fn own_text(views: &mut [u128], buffers: &[Buffer], used: usize) -> Arc<[Buffer]> {
    let mut text: Vec<u8> = Vec::with_capacity(used);
    for view in views.iter_mut().filter(|view| **view as u32 > INLINE) {
        let known = ByteView::from(*view);
        let moved = ByteView { buffer_index: 0, offset: text.len() as u32, ..known };
        text.extend_from_slice(&buffers[known.buffer_index as usize][known.offset as usize..][..known.length as usize]);
        *view = moved.as_u128();
    }
    if used == 0 { Arc::new([]) } else { Arc::new([Buffer::from_vec(text)]) }
}

pub(crate) fn structs<R: Rows>(column: &ArrayRef, fields: &Fields, rows: R, how: How) -> Result<ArrayRef> {
    let array = column.as_struct();
    let columns = array.columns().iter().zip(fields);
    let columns =
        columns.map(|(child, field)| gather_rows(child, rows, how.for_child(field))).collect::<Result<_>>()?;
    let nulls = gather_nulls(array.nulls(), rows, how.missing);
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows.len())?))
}

/// Offsets of the chosen lists, and the stretches of their values. A null has no values.
fn chosen<O: OffsetSizeTrait, R: Rows>(
    column: &ArrayRef,
    offsets: &[O],
    rows: R,
) -> Result<(OffsetBuffer<O>, Stretches)> {
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    let mut ends: Vec<O> = Vec::with_capacity(rows.len() + 1);
    ends.push(O::default());
    let mut end = 0usize;
    let mut stretches = Stretches::default();
    rows.for_each(|start, len| {
        let Some(start) = start else {
            ends.extend(std::iter::repeat_n(O::usize_as(end), len));
            return;
        };
        for row in start..start + len {
            if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                let (first, last) = (offsets[row].as_usize(), offsets[row + 1].as_usize());
                end = end.saturating_add(last - first);
                // What does not fit is an error below.
                if O::from_usize(end).is_some() {
                    stretches.push(Some(first), last - first);
                }
            }
            ends.push(O::usize_as(end));
        }
    });
    if O::from_usize(end).is_none() {
        return Err(outgrown(&format!("{end} values"), column.data_type()));
    }
    // SAFETY: the offsets start at 0 and do not fall; the last of them fits its type, so none before it wrapped.
    Ok((unsafe { OffsetBuffer::new_unchecked(ends.into()) }, stretches))
}

pub(crate) fn lists<O: OffsetSizeTrait, R: Rows>(
    column: &ArrayRef,
    field: &FieldRef,
    rows: R,
    how: How,
) -> Result<ArrayRef> {
    let array = column.as_list::<O>();
    let (offsets, stretches) = chosen(column, array.offsets(), rows)?;
    let values = gather_rows(array.values(), &stretches, how.for_child(field))?;
    let nulls = gather_nulls(array.nulls(), rows, how.missing);
    Ok(Arc::new(GenericListArray::<O>::try_new(field.clone(), offsets, values, nulls)?))
}

pub(crate) fn maps<R: Rows>(column: &ArrayRef, field: &FieldRef, ordered: bool, rows: R, how: How) -> Result<ArrayRef> {
    let array = column.as_map();
    let (offsets, stretches) = chosen(column, array.offsets(), rows)?;
    let entries: ArrayRef = Arc::new(array.entries().clone());
    let entries = gather_rows(&entries, &stretches, how.for_child(field))?.as_struct().clone();
    let nulls = gather_nulls(array.nulls(), rows, how.missing);
    Ok(Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, ordered)?))
}

pub(crate) fn fixed_size_lists<R: Rows>(
    column: &ArrayRef,
    field: &FieldRef,
    size: i32,
    rows: R,
    how: How,
) -> Result<ArrayRef> {
    let array = column.as_fixed_size_list();
    let width = size as usize;
    let make = |values| {
        let nulls = gather_nulls(array.nulls(), rows, how.missing);
        FixedSizeListArray::try_new_with_length(field.clone(), size, values, nulls, rows.len())
    };
    if rows.len().checked_mul(width).is_none() {
        return Err(outgrown(&format!("{} times {width} values", rows.len()), column.data_type()));
    }
    let values = array.values();
    if let Some(bytes) = fixed_width(field.data_type()).filter(|_| values.null_count() == 0) {
        // Numbers side by side are copied as one wide value.
        let buffer = rows.fixed(&fixed_values(values, bytes), bytes.saturating_mul(width))?;
        let data = ArrayData::builder(field.data_type().clone()).len(rows.len() * width).add_buffer(buffer);
        // SAFETY: the buffer holds that many values, copied from a valid array of the type.
        return Ok(Arc::new(make(make_array(unsafe { data.build_unchecked() }))?));
    }
    let mut stretches = Stretches::default();
    rows.for_each(|start, len| stretches.push(start.map(|start| start * width), len * width));
    Ok(Arc::new(make(gather_rows(values, &stretches, how.for_child(field))?)?))
}

pub(crate) fn list_views<O: OffsetSizeTrait, R: Rows>(
    column: &ArrayRef,
    field: &FieldRef,
    rows: R,
    how: How,
) -> Result<ArrayRef> {
    let array = column.as_list_view::<O>();
    let nulls = gather_nulls(array.nulls(), rows, how.missing);
    let mut offsets: Vec<O> = Vec::with_capacity(rows.len());
    let mut sizes: Vec<O> = Vec::with_capacity(rows.len());
    let mut used = 0usize;
    let (known_offsets, known_sizes) = (array.value_offsets(), array.value_sizes());
    rows.for_each(|start, len| {
        let Some(start) = start else {
            offsets.resize(offsets.len() + len, O::default());
            sizes.resize(sizes.len() + len, O::default());
            return;
        };
        for row in start..start + len {
            let size = if array.is_valid(row) { known_sizes[row] } else { O::default() };
            used = used.saturating_add(size.as_usize());
            // Empty views point anywhere at times.
            offsets.push(if size == O::default() { size } else { known_offsets[row] });
            sizes.push(size);
        }
    });
    let values = array.values();
    if how.share.shares(used, values.len()) {
        let (offsets, sizes) = (ScalarBuffer::from(offsets), ScalarBuffer::from(sizes));
        return Ok(Arc::new(GenericListViewArray::<O>::try_new(field.clone(), offsets, sizes, values.clone(), nulls)?));
    }
    // Each view's own values; where views overlap so much that this is more, the part of the values that they show.
    let shown = shown_by_views(&offsets, &sizes);
    let mut stretches = Stretches::default();
    let mut end = 0;
    for (at, size) in offsets.iter_mut().zip(&sizes).filter(|(_, size)| **size != O::default()) {
        // Either is at most the end of what is shown, which fits.
        if used > shown.len() {
            *at = O::usize_as(at.as_usize() - shown.start);
            continue;
        }
        stretches.push(Some(at.as_usize()), size.as_usize());
        *at = O::usize_as(end);
        end += size.as_usize();
    }
    if used > shown.len() {
        stretches.push(Some(shown.start), shown.len());
    }
    let values = gather_rows(values, &stretches, how.for_child(field))?;
    let (offsets, sizes) = (ScalarBuffer::from(offsets), ScalarBuffer::from(sizes));
    Ok(Arc::new(GenericListViewArray::<O>::try_new(field.clone(), offsets, sizes, values, nulls)?))
}

/// Keys are copied. The values stay one whole, since their set and order may mean something to readers, and an Arrow IPC
/// file has room for one dictionary per column.
pub(crate) fn dictionaries<R: Rows>(column: &ArrayRef, rows: R, how: How) -> Result<ArrayRef> {
    let array = column.as_any_dictionary();
    let keys = make_array(array.keys().to_data());
    let mut values = array.values().clone();
    // Key 0 for missing rows that must be valid, not that of row 0, which may be null.
    let filled = rows.has_none() && how.missing == Missing::Any;
    let keys = if filled { gather_rows(&keys, &Stretches::of(rows), how)? } else { gather_rows(&keys, rows, how)? };
    if filled && values.is_empty() {
        values = gather_rows(&values, &Stretches::missing(1), how)?;
    } else if how.share == Share::Never {
        values = concat(&[values], &Cancel::default())?;
    }
    let data = keys.into_data().into_builder().data_type(column.data_type().clone()).child_data(vec![values.to_data()]);
    // SAFETY: each key that is not null is one of a valid array over the same values, or 0 where there is a value.
    Ok(make_array(unsafe { data.build_unchecked() }))
}

pub(crate) fn run_ends<R: Rows>(column: &ArrayRef, ends: &FieldRef, rows: R, how: How) -> Result<ArrayRef> {
    match ends.data_type() {
        DataType::Int16 => runs::<Int16Type, R>(column, rows, how),
        DataType::Int32 => runs::<Int32Type, R>(column, rows, how),
        _ => runs::<Int64Type, R>(column, rows, how),
    }
}

/// Neighbours of one run stay one run.
fn runs<E: RunEndIndexType, R: Rows>(column: &ArrayRef, rows: R, how: How) -> Result<ArrayRef> {
    let data_type = column.data_type();
    if E::Native::from_usize(rows.len()).is_none() {
        return Err(Error::Overflow(format!(
            "{} rows do not fit the run ends of type {data_type}; pass the probe side as a stream",
            rows.len()
        )));
    }
    if rows.len() == 0 {
        return Ok(new_empty_array(data_type));
    }
    let Some(array) = column.as_any().downcast_ref::<RunArray<E>>() else {
        return internal_err!("run-end encoded array of type {data_type}");
    };
    let (known, offset) = (array.run_ends().values(), array.run_ends().offset());
    let mut ends: Vec<E::Native> = Vec::new();
    let mut values = Stretches::default();
    // The run of the last row; None for missing rows.
    let mut last: Option<Option<usize>> = None;
    let mut done = 0;
    let mut add = |run: Option<usize>, len: usize| {
        done += len;
        let end = E::Native::usize_as(done);
        match ends.last_mut().filter(|_| last == Some(run)) {
            Some(known) => *known = end,
            None => {
                ends.push(end);
                values.push(run, 1);
                last = Some(run);
            }
        }
    };
    let mut run = 0;
    rows.for_each(|start, len| {
        let Some(start) = start else { return add(None, len) };
        let (mut row, stop) = (offset + start, offset + start + len);
        while row < stop {
            let begins = if run == 0 { 0 } else { known[run - 1].as_usize() };
            if row < begins || known[run].as_usize() <= row {
                run = known.partition_point(|end| end.as_usize() <= row);
            }
            let end = known[run].as_usize().min(stop);
            add(Some(run), end - row);
            row = end;
        }
    });
    let values = gather_rows(array.values(), &values, how)?;
    let ends = PrimitiveArray::<E>::new(ends.into(), None).into_data();
    let data = ArrayData::builder(data_type.clone()).len(rows.len()).child_data(vec![ends, values.into_data()]);
    Ok(make_array(data.build()?))
}

/// A missing row is a null of the first child that can hold one, or any value of the first child.
pub(crate) fn unions<R: Rows>(
    column: &ArrayRef,
    fields: &UnionFields,
    mode: UnionMode,
    rows: R,
    how: How,
) -> Result<ArrayRef> {
    let array = column.as_union();
    let nullable = |field: &FieldRef| field.is_nullable() && can_hold_nulls(field.data_type());
    let holder = match how.missing {
        Missing::Null => fields.iter().find(|(_, field)| nullable(field)),
        Missing::Any => fields.iter().next(),
    };
    let holder = match holder {
        Some((id, _)) => id,
        None if !rows.has_none() => -1,
        None => return internal_err!("a value of type {} for no row", column.data_type()),
    };
    // Other children of a sparse union have any value there.
    let child_how = |id: i8| how.with(if id == holder { how.missing } else { Missing::Any });
    let mut type_ids: Vec<i8> = Vec::with_capacity(rows.len());
    rows.for_each(|start, len| match start {
        Some(start) => type_ids.extend_from_slice(&array.type_ids()[start..start + len]),
        None => type_ids.extend(std::iter::repeat_n(holder, len)),
    });
    let (offsets, children) = match mode {
        UnionMode::Sparse => {
            let child = |(id, _)| gather_rows(array.child(id), rows, child_how(id));
            (None, fields.iter().map(child).collect::<Result<Vec<_>>>()?)
        }
        UnionMode::Dense => {
            let Some(known) = array.offsets() else { return internal_err!("a dense union without offsets") };
            let mut parts: Vec<Vec<u32>> = vec![Vec::new(); 128];
            let mut offsets: Vec<i32> = Vec::with_capacity(rows.len());
            let mut ids = type_ids.iter();
            rows.for_each(|start, len| {
                for (i, &id) in ids.by_ref().take(len).enumerate() {
                    let part = &mut parts[id as usize];
                    offsets.push(part.len() as i32);
                    part.push(start.map_or(NONE, |start| known[start + i] as u32));
                }
            });
            if let Some(most) = parts.iter().map(Vec::len).find(|&len| len > i32::MAX as usize) {
                return Err(outgrown(&format!("{most} values"), column.data_type()));
            }
            let child = |(id, _): (i8, _)| {
                let child = array.child(id);
                gather_rows(child, Selection::try_new(&parts[id as usize], child.len())?, child_how(id))
            };
            (Some(offsets.into()), fields.iter().map(child).collect::<Result<Vec<_>>>()?)
        }
    };
    Ok(Arc::new(UnionArray::try_new(fields.clone(), type_ids.into(), offsets, children)?))
}
