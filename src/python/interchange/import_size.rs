//! How much an import is going to read, estimated before it begins.

use arrow_array::OffsetSizeTrait;
use arrow_schema::{DataType, Field, SchemaRef};

use super::abi::ArrowArray;
use super::c_array::{alignment, checked};
use super::import::Columns;

/// About how many bytes an import of `schema`, or of some of its `columns`, reads or copies: text, views, offsets, indices,
/// validity, and values that are not aligned. Other values are not looked at.
pub(super) fn bytes_read(array: &ArrowArray, schema: &SchemaRef, columns: Option<&Columns>) -> usize {
    let column = |at: usize| child(array, at).map_or(0, |column| bytes_of(column, schema.field(at).data_type()));
    match columns {
        None => (0..schema.fields().len()).map(column).sum(),
        Some(some) => some.positions.iter().map(|&at| column(at)).sum(),
    }
}

/// [`bytes_read`] of one array. Nothing was checked yet: what is not as it should be counts as nothing, and the import
/// itself says so.
fn bytes_of(array: &ArrowArray, data_type: &DataType) -> usize {
    use DataType::*;
    let rows = usize::try_from(array.length).unwrap_or(0);
    let buffer = |at: i64| -> *const u8 {
        match array.n_buffers > at && !array.buffers.is_null() {
            // SAFETY: there are `n_buffers` entries.
            true => unsafe { *array.buffers.add(at as usize) }.cast(),
            false => std::ptr::null(),
        }
    };
    let child = |at: usize, field: &Field| child(array, at).map_or(0, |child| bytes_of(child, field.data_type()));
    let own = match data_type {
        Utf8 => rows.saturating_mul(4).saturating_add(text_bytes::<i32>(array, buffer(1))),
        LargeUtf8 => rows.saturating_mul(8).saturating_add(text_bytes::<i64>(array, buffer(1))),
        Utf8View | BinaryView => {
            let (lengths, count) = (buffer(array.n_buffers - 1).cast::<i64>(), (array.n_buffers - 3).max(0) as usize);
            // SAFETY: the last buffer has one length for each data buffer.
            let length = |at: usize| usize::try_from(unsafe { lengths.add(at).read_unaligned() }).unwrap_or(0);
            let data = if lengths.is_null() { 0 } else { (0..count).map(length).fold(0, usize::saturating_add) };
            rows.saturating_mul(16).saturating_add(data)
        }
        Dictionary(_, values) => {
            // SAFETY: a dictionary is null or valid, and lives as long as its parent.
            let dictionary = unsafe { array.dictionary.as_ref() };
            rows.saturating_mul(4).saturating_add(dictionary.map_or(0, |dictionary| bytes_of(dictionary, values)))
        }
        List(_) | LargeList(_) | ListView(_) | LargeListView(_) | Map(_, _) | Union(_, _) => rows.saturating_mul(8),
        other => match other.primitive_width() {
            Some(width) if !buffer(1).addr().is_multiple_of(alignment(other, width)) => rows.saturating_mul(width),
            _ => rows / 8,
        },
    };
    let children = match data_type {
        List(field)
        | LargeList(field)
        | ListView(field)
        | LargeListView(field)
        | FixedSizeList(field, _)
        | Map(field, _) => child(0, field),
        Struct(fields) => fields.iter().enumerate().map(|(at, field)| child(at, field)).sum(),
        Union(fields, _) => fields.iter().enumerate().map(|(at, (_, field))| child(at, field)).sum(),
        RunEndEncoded(ends, values) => child(0, ends).saturating_add(child(1, values)),
        _ => 0,
    };
    own.saturating_add(children)
}

/// Bytes of text between the first and the last of the offsets.
fn text_bytes<O: OffsetSizeTrait>(array: &ArrowArray, offsets: *const u8) -> usize {
    let (Ok(first), Ok(rows)) = (usize::try_from(array.offset), usize::try_from(array.length)) else { return 0 };
    if offsets.is_null() || rows == 0 || checked(first.saturating_add(rows).saturating_add(1), size_of::<O>()).is_err()
    {
        return 0;
    }
    // SAFETY: the C data interface promises one offset more than rows; their addresses do not overflow.
    let offset = |at: usize| unsafe { offsets.cast::<O>().add(at).read_unaligned() }.to_usize().unwrap_or(0);
    offset(first + rows).saturating_sub(offset(first))
}

fn child(array: &ArrowArray, at: usize) -> Option<&ArrowArray> {
    let there = i64::try_from(at).is_ok_and(|at| at < array.n_children) && !array.children.is_null();
    // SAFETY: there are `n_children` entries; each is null or valid, and lives as long as its parent.
    there.then(|| unsafe { (*array.children.add(at)).as_ref() }).flatten()
}
