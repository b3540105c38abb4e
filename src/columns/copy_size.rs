//! How many bytes a copy of rows may take, for asking a pool before the copy is made.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::{ArrayData, ByteView};
use arrow_schema::{DataType, UnionMode};

use super::child_range::{shown_by_type, shown_by_views};
use super::concat::encoded::same_values;
use crate::error::{Error, Result, internal_err};

/// Padding that an Arrow buffer may add to what is asked for.
pub(crate) const PADDING: usize = 64;

/// Allocations up to this are kept whole, however small the part of them that a batch shows.
pub(crate) const SMALL_ALLOCATION: usize = 64 * 1024;

/// Bytes that the rows of `array` need, whatever the size of the buffers that it is a slice of.
///
/// ```
/// use arrow_array::{Array, Int64Array};
/// use prejoin::admission::sliced_size;
///
/// let column = Int64Array::from_iter_values(0..1000);
/// assert_eq!(sliced_size(&column.slice(0, 10))?, 80);
/// # Ok::<(), prejoin::Error>(())
/// ```
///
/// # Errors
/// [`Error::Overflow`] "copy size overflow".
pub fn sliced_size(array: &dyn Array) -> Result<usize> {
    let mut total = 0;
    visit(&array.to_data(), &mut |part| match part {
        CopyPart::Buffer(_, bytes) => grow(&mut total, Some(bytes)),
        CopyPart::NoValidity(_) | CopyPart::Working(_) | CopyPart::Chosen(_) => Ok(()),
    })?;
    Ok(total)
}

/// Bytes that concatenating `batches` may allocate: the sum of `copy_bound_of_column` over the columns. A column that
/// appears twice counts twice: concatenation copies both.
///
/// ```
/// # use arrow_array::record_batch;
/// use prejoin::admission::copy_bound;
///
/// let batch = record_batch!(("id", Int64, [1, 2, 3]))?;
/// assert!(copy_bound(&[batch.clone(), batch])? >= 2 * 3 * 8);
/// # Ok::<(), prejoin::Error>(())
/// ```
///
/// # Errors
/// [`Error::Overflow`] "copy size overflow".
pub fn copy_bound(batches: &[RecordBatch]) -> Result<usize> {
    let mut total = 0;
    for column in 0..batches.first().map_or(0, RecordBatch::num_columns) {
        let arrays: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(column).clone()).collect();
        grow(&mut total, Some(copy_bound_of_column(&arrays)?))?;
    }
    Ok(total)
}

/// Bytes that a copy of some rows of `column` may allocate, each row at most once and nothing shared: those of a copy of all,
/// and the list of what is chosen where that has no fixed width.
pub(crate) fn gather_bound(column: &ArrayRef) -> Result<usize> {
    let mut total = copy_bound_of_column(std::slice::from_ref(column))?;
    visit(&column.to_data(), &mut |part| match part {
        CopyPart::Chosen(rows) => grow(&mut total, rows.checked_mul(CHOSEN)),
        _ => Ok(()),
    })?;
    Ok(total)
}

/// Working memory of [`gather_bound`] for a row: its first row and length, also while that list or one of run ends grows.
const CHOSEN: usize = 72;

/// Bytes that concatenating `arrays` may allocate: the sliced size of each, a validity bitmap for each that has none
/// (another may force one), and once the padding of each output buffer. Children are counted the same way; the values of a dictionary
/// that neighbours share count once.
pub(crate) fn copy_bound_of_column(arrays: &[ArrayRef]) -> Result<usize> {
    let mut total = 0;
    for (i, array) in arrays.iter().enumerate() {
        let data = match array.as_any_dictionary_opt() {
            Some(dictionary) if i > 0 && same_values(array, &arrays[i - 1]) => dictionary.keys().to_data(),
            _ => array.to_data(),
        };
        visit(&data, &mut |part| match part {
            CopyPart::Buffer(_, bytes) | CopyPart::Working(bytes) => grow(&mut total, Some(bytes)),
            CopyPart::NoValidity(rows) => grow(&mut total, Some(rows.div_ceil(8))),
            CopyPart::Chosen(_) => Ok(()),
        })?;
    }
    if let Some(first) = arrays.first() {
        grow(&mut total, output_buffers(&first.to_data()).checked_mul(PADDING))?;
    }
    Ok(total)
}

/// What [`visit`] finds.
pub(crate) enum CopyPart<'a> {
    /// A buffer and the bytes of it that the visited rows need.
    Buffer(&'a Buffer, usize),
    /// An array without validity bitmap, of this number of rows.
    NoValidity(usize),
    /// Bytes that concatenation may need besides its result.
    Working(usize),
    /// An array of this number of rows, some of which are chosen one by one.
    Chosen(usize),
}

/// Visits the buffers of `data` and of its children, cut to the rows that concatenation copies.
pub(crate) fn visit(data: &ArrayData, f: &mut dyn FnMut(CopyPart<'_>) -> Result<()>) -> Result<()> {
    let (rows, buffers, children) = (data.len(), data.buffers(), data.child_data());
    match data.nulls() {
        Some(nulls) => f(CopyPart::Buffer(nulls.buffer(), rows.div_ceil(8)))?,
        None => f(CopyPart::NoValidity(rows))?,
    }
    if chosen_one_by_one(data.data_type()) {
        f(CopyPart::Chosen(rows))?;
    }
    let mut fixed = |index: usize, count: usize, width: usize| {
        f(CopyPart::Buffer(&buffers[index], count.checked_mul(width).ok_or_else(overflow)?))
    };
    match data.data_type() {
        DataType::Null => Ok(()),
        DataType::Boolean => fixed(0, rows.div_ceil(8), 1),
        DataType::FixedSizeBinary(width) => fixed(0, rows, *width as usize),
        DataType::Utf8 | DataType::Binary => {
            let (first, last) = ends::<i32>(data);
            fixed(0, with_end(rows)?, 4)?;
            fixed(1, last - first, 1)
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let (first, last) = ends::<i64>(data);
            fixed(0, with_end(rows)?, 8)?;
            fixed(1, last - first, 1)
        }
        DataType::Utf8View | DataType::BinaryView => {
            fixed(0, rows, size_of::<ByteView>())?;
            // Of the data buffers what the views show, whichever of them it lies in.
            let views = &data.buffer::<u128>(0)[..rows];
            let shown = views.iter().map(|&view| view as u32).filter(|&length| length > 12);
            let shown: usize = shown.map(|length| length as usize).sum();
            if buffers.len() > 1 { fixed(1, shown, 1) } else { Ok(()) }
        }
        DataType::List(_) | DataType::Map(_, _) => {
            let (first, last) = ends::<i32>(data);
            fixed(0, with_end(rows)?, 4)?;
            visit(&children[0].slice(first, last - first), f)
        }
        DataType::LargeList(_) => {
            let (first, last) = ends::<i64>(data);
            fixed(0, with_end(rows)?, 8)?;
            visit(&children[0].slice(first, last - first), f)
        }
        DataType::ListView(_) => {
            fixed(0, rows, 4)?;
            fixed(1, rows, 4)?;
            let shown = shown_by_views(&data.buffer::<i32>(0)[..rows], &data.buffer::<i32>(1)[..rows]);
            visit(&children[0].slice(shown.start, shown.len()), f)
        }
        DataType::LargeListView(_) => {
            fixed(0, rows, 8)?;
            fixed(1, rows, 8)?;
            let shown = shown_by_views(&data.buffer::<i64>(0)[..rows], &data.buffer::<i64>(1)[..rows]);
            visit(&children[0].slice(shown.start, shown.len()), f)
        }
        DataType::FixedSizeList(_, size) => {
            let size = *size as usize;
            let (start, len) = (data.offset().checked_mul(size), rows.checked_mul(size));
            let (Some(start), Some(len)) = (start, len) else { return Err(overflow()) };
            visit(&children[0].slice(start, len), f)
        }
        // Children of a struct are cut with it.
        DataType::Struct(_) => children.iter().try_for_each(|child| visit(child, f)),
        DataType::Dictionary(key, _) => {
            let width = key.primitive_width().unwrap_or(8);
            fixed(0, rows, width)?;
            if width <= 2 {
                // Keys that cannot number all values: distinct ones are collected, encoded, and copied twice more.
                let working = sliced_size(&make_array(children[0].clone()))?.checked_mul(6);
                let tables = children[0].len().checked_mul(256);
                let sum = working.zip(tables).and_then(|(working, tables)| working.checked_add(tables));
                f(CopyPart::Working(sum.ok_or_else(overflow)?))?;
            }
            visit(&children[0], f)
        }
        // At most the whole child: finding the runs of a slice is not worth it for a bound.
        DataType::RunEndEncoded(_, _) => children.iter().try_for_each(|child| visit(child, f)),
        DataType::Union(fields, mode) => {
            fixed(0, rows, 1)?;
            if *mode == UnionMode::Sparse {
                return children.iter().try_for_each(|child| visit(child, f));
            }
            fixed(1, rows, 4)?;
            let (ids, offsets) = (&data.buffer::<i8>(0)[..rows], &data.buffer::<i32>(1)[..rows]);
            fields.iter().zip(children).try_for_each(|((id, _), child)| {
                let shown = shown_by_type(id, ids, offsets);
                visit(&child.slice(shown.start, shown.len()), f)
            })
        }
        other => match other.primitive_width() {
            Some(width) => fixed(0, rows, width),
            None => internal_err!("no copy bound is known for type {other}"),
        },
    }
}

/// True for types of which a copy of some rows first lists what it takes of the array's parts.
fn chosen_one_by_one(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Utf8View | BinaryView | RunEndEncoded(_, _) | Union(_, _))
        || matches!(
            data_type,
            List(_) | LargeList(_) | ListView(_) | LargeListView(_) | FixedSizeList(_, _) | Map(_, _)
        )
}

/// First and last offset of an array with offsets; an empty array may have none.
fn ends<O: arrow_buffer::ArrowNativeType>(data: &ArrayData) -> (usize, usize) {
    match data.len() {
        0 => (0, 0),
        rows => {
            let offsets = data.buffer::<O>(0);
            (offsets[0].as_usize(), offsets[rows].as_usize())
        }
    }
}

/// Number of offsets of `rows` rows.
fn with_end(rows: usize) -> Result<usize> {
    rows.checked_add(1).ok_or_else(overflow)
}

/// Buffers that a copy of `data` has: its data buffers and a validity bitmap, children included.
pub(crate) fn output_buffers(data: &ArrayData) -> usize {
    data.buffers().len() + 1 + data.child_data().iter().map(output_buffers).sum::<usize>()
}

pub(crate) fn grow(total: &mut usize, bytes: Option<usize>) -> Result<()> {
    *total = bytes.and_then(|bytes| total.checked_add(bytes)).ok_or_else(overflow)?;
    Ok(())
}

pub(crate) fn overflow() -> Error {
    Error::Overflow("copy size overflow: the batches claim more rows than memory can address".to_owned())
}
