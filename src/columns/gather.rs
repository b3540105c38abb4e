//! Output columns: the rows that the join chose, copied into columns that own their buffers (S23).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, NullArray, OffsetSizeTrait, UInt32Array, make_array, new_empty_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, FieldRef};
use arrow_select::take::take;

use crate::error::{Error, Result, internal_err};
use crate::index::NONE;

/// Rows of one side, in output order, each proven to exist; [`NONE`] gives a null.
#[derive(Clone, Copy)]
pub(crate) struct Selection<'a> {
    rows: &'a [u32],
    has_none: bool,
    /// The rows follow each other.
    contiguous: bool,
}

impl<'a> Selection<'a> {
    /// Proves that every row is below `len` or [`NONE`]. One pass, so that the copies need no check per value, whatever
    /// memory the rows came from.
    pub(crate) fn try_new(rows: &'a [u32], len: usize) -> Result<Self> {
        let first = rows.first().copied().unwrap_or(0);
        let mut apart = 0;
        // One up: NONE wraps to 0 and every other row must be at most `len`.
        let (least, most) = rows.iter().enumerate().fold((1, 0), |(least, most): (u32, u32), (i, &row)| {
            let up = row.wrapping_add(1);
            apart |= row ^ first.wrapping_add(i as u32);
            (least.min(up), most.max(up))
        });
        if most as usize > len {
            return internal_err!("row {} of a side of {len} rows was chosen", most - 1);
        }
        Ok(Self { rows, has_none: least == 0, contiguous: apart == 0 && least != 0 })
    }

    /// The chosen rows as a range, where they follow each other.
    fn range(&self) -> Option<std::ops::Range<usize>> {
        let start = *self.rows.first()? as usize;
        self.contiguous.then(|| start..start + self.rows.len())
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &'a [u32] {
        self.rows
    }

    /// Number of output rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}

/// The chosen rows of `column`, which has at least the length that `selection` was proven for.
pub(crate) fn gather(column: &ArrayRef, selection: Selection<'_>) -> Result<ArrayRef> {
    let data_type = column.data_type();
    if let Some(width) = fixed_width(data_type) {
        let data = column.to_data();
        let values = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
        let values = gather_fixed(&values, width, selection);
        return build(data_type, selection, vec![values], gather_nulls(column.nulls(), selection));
    }
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(selection.len())),
        DataType::Boolean => {
            let column = column.as_boolean();
            let bit = |row: u32| row != NONE && column.values().value(row as usize);
            let values = BooleanBuffer::collect_bool(selection.len(), |i| bit(selection.rows[i]));
            Arc::new(BooleanArray::new(values, gather_nulls(column.nulls(), selection)))
        }
        DataType::Utf8 => {
            gather_bytes(column, column.as_string::<i32>().offsets(), column.as_string::<i32>().values(), selection)?
        }
        DataType::LargeUtf8 => {
            gather_bytes(column, column.as_string::<i64>().offsets(), column.as_string::<i64>().values(), selection)?
        }
        DataType::Binary => {
            gather_bytes(column, column.as_binary::<i32>().offsets(), column.as_binary::<i32>().values(), selection)?
        }
        DataType::LargeBinary => {
            gather_bytes(column, column.as_binary::<i64>().offsets(), column.as_binary::<i64>().values(), selection)?
        }
        _ => {
            check_run_ends(data_type, selection.len())?;
            take(column, &take_indices(selection), None).map_err(|error| match error {
                ArrowError::OffsetOverflowError(_) => outgrown("more values", data_type),
                other => other.into(),
            })?
        }
    })
}

/// [`gather`] for a look at the rows that ends before the column does: rows that follow each other are not copied.
pub(crate) fn pick(column: &ArrayRef, selection: Selection<'_>) -> Result<ArrayRef> {
    match selection.range() {
        Some(range) => Ok(column.slice(range.start, range.len())),
        None => gather(column, selection),
    }
}

/// `rows` nulls of a type that [`can_hold_nulls`].
pub(crate) fn nulls(data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    gather(&new_empty_array(data_type), Selection::try_new(&vec![NONE; rows], 0)?)
}

/// False for unions and run-ends, which have no validity of their own, without a nullable child that a null can lie in.
pub(crate) fn can_hold_nulls(data_type: &DataType) -> bool {
    let child = |field: &FieldRef| field.is_nullable() && can_hold_nulls(field.data_type());
    match data_type {
        DataType::RunEndEncoded(_, values) => child(values),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| child(field)),
        _ => true,
    }
}

/// Refuses more rows than run ends reach; `take` panics on them.
fn check_run_ends(data_type: &DataType, rows: usize) -> Result<()> {
    match data_type {
        DataType::RunEndEncoded(ends, _) => {
            let reach = match ends.data_type() {
                DataType::Int16 => i16::MAX as usize,
                DataType::Int32 => i32::MAX as usize,
                _ => usize::MAX,
            };
            if rows > reach {
                return Err(Error::Execution(format!(
                    "{rows} rows do not fit the run ends of type {data_type}; use a smaller batch_size or pass the probe \
                     side as a stream"
                )));
            }
            Ok(())
        }
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check_run_ends(field.data_type(), rows)),
        DataType::FixedSizeList(field, size) => {
            check_run_ends(field.data_type(), rows.saturating_mul(usize::try_from(*size).unwrap_or(0)))
        }
        DataType::Union(fields, _) => fields.iter().try_for_each(|(_, field)| check_run_ends(field.data_type(), rows)),
        _ => Ok(()),
    }
}

/// Bytes per value of the types whose values lie side by side in one buffer.
pub(crate) fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        other => other.primitive_width(),
    }
}

fn take_indices(selection: Selection<'_>) -> UInt32Array {
    let rows = ScalarBuffer::from(selection.rows.to_vec());
    let valid = || NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |i| rows[i] != NONE));
    let nulls = selection.has_none.then(valid);
    UInt32Array::new(rows, nulls)
}

fn build(
    data_type: &DataType,
    selection: Selection<'_>,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(selection.len()).buffers(buffers).nulls(nulls);
    // SAFETY: the buffers hold exactly `selection.len()` values of the type, copied from a valid array of that type, and
    // `nulls` has that length.
    Ok(make_array(unsafe { data.build_unchecked() }))
}

fn gather_nulls(nulls: Option<&NullBuffer>, selection: Selection<'_>) -> Option<NullBuffer> {
    let bits = match (nulls.filter(|nulls| nulls.null_count() > 0), selection.has_none) {
        (None, false) => return None,
        (None, true) => BooleanBuffer::collect_bool(selection.len(), |i| selection.rows[i] != NONE),
        (Some(nulls), _) => BooleanBuffer::collect_bool(selection.len(), |i| {
            let row = selection.rows[i];
            row != NONE && nulls.is_valid(row as usize)
        }),
    };
    Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
}

fn gather_fixed(values: &Buffer, width: usize, selection: Selection<'_>) -> Buffer {
    match width {
        0 => Buffer::from_vec(Vec::<u8>::new()),
        1 => gather_native::<u8>(values, selection),
        2 => gather_native::<u16>(values, selection),
        4 => gather_native::<u32>(values, selection),
        8 => gather_native::<u64>(values, selection),
        16 if (values.as_ptr() as usize).is_multiple_of(align_of::<u128>()) => gather_native::<u128>(values, selection),
        _ => {
            // Aligned also where it is empty, which a vector of bytes is not.
            let mut out = MutableBuffer::with_capacity(selection.len() * width);
            for &row in selection.rows {
                let row = row as usize * width;
                match row < values.len() {
                    true => out.extend_from_slice(&values[row..row + width]),
                    false => out.resize(out.len() + width, 0),
                }
            }
            out.into()
        }
    }
}

fn gather_native<T: ArrowNativeType>(values: &Buffer, selection: Selection<'_>) -> Buffer {
    let values: &[T] = values.typed_data();
    if let Some(range) = selection.range() {
        return Buffer::from_vec(values[range].to_vec());
    }
    if selection.has_none {
        // The value under a null is that of row 0: a choice without a branch, since misses cannot be predicted.
        if values.is_empty() {
            return Buffer::from_vec(vec![T::default(); selection.len()]);
        }
        // SAFETY: row 0 exists, and `Selection` proved that every other row does.
        let value = |&row: &u32| unsafe { *values.get_unchecked(if row == NONE { 0 } else { row as usize }) };
        return Buffer::from_vec(selection.rows.iter().map(value).collect::<Vec<T>>());
    }
    // SAFETY: `Selection` proved that every row is below the column's length. A checked copy of 2,048 of
    // 65,536 values took 1.1 to 1.2 times as long in a loop of its own.
    let value = |&row: &u32| unsafe { *values.get_unchecked(row as usize) };
    Buffer::from_vec(selection.rows.iter().map(value).collect::<Vec<T>>())
}

fn outgrown(what: &str, data_type: &DataType) -> Error {
    Error::Execution(format!(
        "one output batch would hold {what} of type {data_type}, more than its offsets reach; use a smaller batch_size \
         or pass the probe side as a stream"
    ))
}

/// Bytes that a short value is copied with at once, whatever its length.
const CHUNK: usize = 16;

fn gather_bytes<O: OffsetSizeTrait>(
    column: &ArrayRef,
    offsets: &[O],
    values: &[u8],
    selection: Selection<'_>,
) -> Result<ArrayRef> {
    let nulls = gather_nulls(column.nulls(), selection);
    let mut ends = Vec::with_capacity(selection.len() + 1);
    let mut end = 0usize;
    ends.push(O::default());
    for &row in selection.rows {
        if row != NONE {
            let row = row as usize;
            end += (offsets[row + 1] - offsets[row]).as_usize();
        }
        // Wrapping is found below, on the total.
        ends.push(O::usize_as(end));
    }
    if O::from_usize(end).is_none() {
        return Err(outgrown(&format!("{end} bytes"), column.data_type()));
    }
    let mut out: Vec<u8> = Vec::with_capacity(end + CHUNK);
    let mut at = 0;
    for &row in selection.rows.iter().filter(|&&row| row != NONE) {
        let (start, stop) = (offsets[row as usize].as_usize(), offsets[row as usize + 1].as_usize());
        let len = stop - start;
        let padded = len.next_multiple_of(CHUNK);
        debug_assert!(at + len <= end);
        // SAFETY: offsets of a valid array ascend and end within `values`; `at + len <= end` since `end` is the sum of the
        // same lengths, and `out` has room for CHUNK bytes more. `extend_from_slice` took 1.4 to 1.7 times as
        // long on values of up to 16 bytes in a loop of its own.
        unsafe {
            let source = values.as_ptr().add(start);
            let target = out.as_mut_ptr().add(at);
            if start + padded <= values.len() {
                let mut done = 0;
                while done < len {
                    std::ptr::copy_nonoverlapping(source.add(done), target.add(done), CHUNK);
                    done += CHUNK;
                }
            } else {
                std::ptr::copy_nonoverlapping(source, target, len);
            }
        }
        at += len;
    }
    debug_assert_eq!(at, end);
    // SAFETY: the loop above wrote every byte up to `end`.
    unsafe { out.set_len(end) };
    build(column.data_type(), selection, vec![Buffer::from_vec(ends), Buffer::from_vec(out)], nulls)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Decimal128Type, Float32Type, Int8Type, Int16Type, Int64Type};
    use arrow_array::{BinaryArray, FixedSizeBinaryArray, LargeStringArray, PrimitiveArray, StringArray};
    use proptest::prelude::*;

    use super::*;

    fn column(kind: usize, values: &[Option<u8>]) -> ArrayRef {
        let text = |v: u8| "ab\u{e9}".repeat(usize::from(v) % 13);
        macro_rules! primitive {
            ($t:ty) => {
                Arc::new(values.iter().map(|v| v.map(|v| v as _)).collect::<PrimitiveArray<$t>>())
            };
        }
        match kind {
            0 => primitive!(Int8Type),
            1 => primitive!(Int16Type),
            2 => primitive!(Float32Type),
            3 => primitive!(Int64Type),
            4 => primitive!(Decimal128Type),
            5 => Arc::new(values.iter().map(|v| v.map(text)).collect::<StringArray>()),
            6 => Arc::new(values.iter().map(|v| v.map(text)).collect::<LargeStringArray>()),
            7 => Arc::new(values.iter().map(|v| v.map(|v| vec![v; usize::from(v % 40)])).collect::<BinaryArray>()),
            8 => Arc::new(values.iter().map(|v| v.map(|v| v > 7)).collect::<BooleanArray>()),
            _ => {
                let values = values.iter().map(|v| v.map(|v| [v, 1, 2]));
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 3).unwrap())
            }
        }
    }

    proptest! {
        /// The unchecked copies against Arrow's own, which check: sliced columns, nulls, missing rows, ranges.
        #[test]
        fn copies_are_those_of_take(
            kind in 0..10usize,
            values in prop::collection::vec(prop::option::weighted(0.8, 0..60u8), 1..80),
            picks in prop::collection::vec(prop::option::weighted(0.8, any::<prop::sample::Index>()), 0..100),
            (skip, all_there, in_order) in (0..5usize, any::<bool>(), any::<bool>()),
        ) {
            let whole = column(kind, &values);
            let skip = skip.min(values.len() - 1);
            let column = whole.slice(skip, values.len() - skip);
            let pick = |p: &Option<prop::sample::Index>| p.map_or(NONE, |index| index.index(column.len()) as u32);
            let mut rows: Vec<u32> = picks.iter().map(pick).filter(|&row| !all_there || row != NONE).collect();
            if in_order {
                rows = (0..column.len() as u32).skip(rows.len() % column.len()).collect();
            }
            let selection = Selection::try_new(&rows, column.len()).unwrap();
            let plain = take(&column, &take_indices(selection), None).unwrap();
            prop_assert_eq!(&gather(&column, selection).unwrap(), &plain);
        }
    }

    /// A row that does not exist is refused before anything is copied.
    #[test]
    fn rows_are_proven() {
        assert!(Selection::try_new(&[0, 3], 3).is_err());
        assert!(Selection::try_new(&[0, 2, NONE], 3).is_ok());
        assert!(nulls(&DataType::Utf8, 2).unwrap().is_null(1));
    }
}
