//! Output columns with a value in place of missing rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteArrayType, StringViewType};
use arrow_array::{Array, ArrayRef, BooleanArray, GenericByteArray};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_schema::DataType;

use super::NONE;
use super::concat;
use super::gather::{Missing, build, fixed_values, fixed_width, gather, gather_nulls, outgrown};
use super::gather_nested::views_or;
use super::selection::{Rows, Selection, gather_bytes};
use crate::cancel::Cancel;
use crate::error::Result;

/// The chosen rows of `column`; where a row is missing, the one value of `default`, which has the type of `column`, or null
/// without one.
///
/// # Errors
/// As of [`gather`](super::gather()).
pub(crate) fn gather_or(
    column: &ArrayRef,
    selection: Selection<'_>,
    default: Option<&ArrayRef>,
    cancel: &Cancel,
) -> Result<ArrayRef> {
    let Some(default) = default.filter(|default| selection.has_none() && !default.is_null(0)) else {
        return gather(column, selection);
    };
    if let Some(width) = fixed_width(column.data_type())
        && let Some(values) = fixed_or(&fixed_values(column, width), selection, &fixed_values(default, width), width)
    {
        return build(column, vec![values], selection, Missing::Any);
    }
    match column.data_type() {
        DataType::Boolean => {
            let bits = selection.bits(column.as_boolean().values(), default.as_boolean().value(0));
            Ok(Arc::new(BooleanArray::new(bits, gather_nulls(column.nulls(), selection, Missing::Any))))
        }
        DataType::Utf8 => bytes_or(column, selection, column.as_string::<i32>(), default.as_string::<i32>()),
        DataType::LargeUtf8 => bytes_or(column, selection, column.as_string::<i64>(), default.as_string::<i64>()),
        DataType::Binary => bytes_or(column, selection, column.as_binary::<i32>(), default.as_binary::<i32>()),
        DataType::LargeBinary => bytes_or(column, selection, column.as_binary::<i64>(), default.as_binary::<i64>()),
        DataType::Utf8View => views_or::<StringViewType>(column, selection, default),
        DataType::BinaryView => views_or::<BinaryViewType>(column, selection, default),
        _ => by_two_copies(column, selection, default, cancel),
    }
}

/// Values of `width` bytes; `None` for other widths and addresses than those of native types.
fn fixed_or(values: &Buffer, selection: Selection<'_>, default: &Buffer, width: usize) -> Option<Buffer> {
    let aligned = |to: usize| [values, default].iter().all(|buffer| (buffer.as_ptr() as usize).is_multiple_of(to));
    Some(match width {
        1 => native_or::<u8>(values, selection, default),
        2 if aligned(align_of::<u16>()) => native_or::<u16>(values, selection, default),
        4 if aligned(align_of::<u32>()) => native_or::<u32>(values, selection, default),
        8 if aligned(align_of::<u64>()) => native_or::<u64>(values, selection, default),
        16 if aligned(align_of::<u128>()) => native_or::<u128>(values, selection, default),
        _ => return None,
    })
}

fn native_or<T: ArrowNativeType>(values: &Buffer, selection: Selection<'_>, default: &Buffer) -> Buffer {
    let (values, default) = (values.typed_data::<T>(), default.typed_data::<T>()[0]);
    // Row NONE is beyond every column.
    let value = |&row: &u32| values.get(row as usize).copied().unwrap_or(default);
    Buffer::from_vec(selection.rows().iter().map(value).collect::<Vec<T>>())
}

fn bytes_or<T: ByteArrayType>(
    column: &ArrayRef,
    selection: Selection<'_>,
    array: &GenericByteArray<T>,
    default: &GenericByteArray<T>,
) -> Result<ArrayRef> {
    let missing: &[u8] = default.value(0).as_ref();
    let buffers = gather_bytes(array.offsets(), array.values(), selection, missing);
    let (ends, values) = buffers.map_err(|end| outgrown(&format!("{end} bytes"), column.data_type()))?;
    build(column, vec![ends, values], selection, Missing::Any)
}

/// The default after the rows found, and a second copy that chooses among both.
pub(super) fn by_two_copies(
    column: &ArrayRef,
    selection: Selection<'_>,
    default: &ArrayRef,
    cancel: &Cancel,
) -> Result<ArrayRef> {
    let found = gather(column, selection)?;
    let last = found.len() as u32;
    let both = concat(&[found, Arc::clone(default)], cancel)?;
    let place = |(i, &row): (usize, &u32)| if row == NONE { last } else { i as u32 };
    let places: Vec<u32> = selection.rows().iter().enumerate().map(place).collect();
    gather(&both, Selection::try_new(&places, both.len())?)
}
