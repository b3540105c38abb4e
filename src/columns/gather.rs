//! Output columns: the rows that a join chose, copied into columns that own their buffers.
//!
//! Rows come as a [`Selection`] of single rows or, within lists, as [`Stretches`]; each type is written once over both.
//! Nested types are in [`super::gather_nested`].

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_array::{Array, ArrayRef, BooleanArray, NullArray, OffsetSizeTrait, make_array, new_empty_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef};

use super::NONE;
use super::gather_nested as nested;
use super::selection::{Rows, Selection};
use super::stretches::Stretches;
use crate::error::{Error, Result, internal_err};

/// What a missing row becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Null,
    /// Any valid value: a null above hides it, or a union's type ids.
    Any,
}

impl Missing {
    /// For the children of `field` under a row that is null.
    pub(crate) fn of(field: &FieldRef) -> Self {
        if field.is_nullable() && can_hold_nulls(field.data_type()) { Missing::Null } else { Missing::Any }
    }
}

/// Whether a copy may share what its rows point to (view data, the values of list views and dictionaries).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Always. Only for copies that are dropped before the column.
    Always,
    /// Where the rows point to at least half of what they would keep, and dictionary values.
    MostlyUsed,
    Never,
}

/// How rows are copied.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) missing: Missing,
    pub(crate) share: Share,
}

/// The chosen rows of `column`.
///
/// # Errors
/// [`Error::Internal`] for a column that is shorter than `selection` was checked for, and what [`gather_rows`] fails with.
pub(crate) fn gather(column: &ArrayRef, selection: Selection<'_>) -> Result<ArrayRef> {
    gather_shared(column, selection, Share::MostlyUsed)
}

/// [`gather`] that also decides what the copy may share with `column`.
pub(crate) fn gather_shared(column: &ArrayRef, selection: Selection<'_>, share: Share) -> Result<ArrayRef> {
    gather_rows(column, selection, How { missing: Missing::Null, share })
}

/// [`gather`] for a result that is dropped before the column: rows that follow each other are not copied.
pub(crate) fn pick(column: &ArrayRef, selection: Selection<'_>) -> Result<ArrayRef> {
    match selection.range() {
        Some(range) => Ok(column.slice(range.start, range.len())),
        None => gather_shared(column, selection, Share::Always),
    }
}

/// `rows` nulls of a type that [`can_hold_nulls`].
pub(crate) fn nulls(data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    let how = How { missing: Missing::Null, share: Share::Never };
    gather_rows(&new_empty_array(data_type), &Stretches::missing(rows), how)
}

/// `rows` of `column`. [`Missing::Null`] is asked of types that [`can_hold_nulls`] only.
///
/// # Errors
/// [`Error::Overflow`] where the copy outgrows the offsets or run ends of its type.
pub(crate) fn gather_rows<R: Rows>(column: &ArrayRef, rows: R, how: How) -> Result<ArrayRef> {
    use DataType::*;
    let data_type = column.data_type();
    if let Some(width) = fixed_width(data_type) {
        let values = rows.fixed(&fixed_values(column, width), width)?;
        return build(column, vec![values], rows, how.missing);
    }
    match data_type {
        Null => Ok(Arc::new(NullArray::new(rows.len()))),
        Boolean => {
            let bits = rows.bits(column.as_boolean().values(), false);
            Ok(Arc::new(BooleanArray::new(bits, gather_nulls(column.nulls(), rows, how.missing))))
        }
        Utf8 => bytes(column, column.as_string::<i32>().offsets(), column.as_string::<i32>().values(), rows, how),
        LargeUtf8 => bytes(column, column.as_string::<i64>().offsets(), column.as_string::<i64>().values(), rows, how),
        Binary => bytes(column, column.as_binary::<i32>().offsets(), column.as_binary::<i32>().values(), rows, how),
        LargeBinary => {
            bytes(column, column.as_binary::<i64>().offsets(), column.as_binary::<i64>().values(), rows, how)
        }
        Utf8View => nested::views::<StringViewType, R>(column, rows, how),
        BinaryView => nested::views::<BinaryViewType, R>(column, rows, how),
        Struct(fields) => nested::structs(column, fields, rows, how),
        List(field) => nested::lists::<i32, R>(column, field, rows, how),
        LargeList(field) => nested::lists::<i64, R>(column, field, rows, how),
        Map(field, ordered) => nested::maps(column, field, *ordered, rows, how),
        ListView(field) => nested::list_views::<i32, R>(column, field, rows, how),
        LargeListView(field) => nested::list_views::<i64, R>(column, field, rows, how),
        FixedSizeList(field, size) => nested::fixed_size_lists(column, field, *size, rows, how),
        Dictionary(_, _) => nested::dictionaries(column, rows, how),
        RunEndEncoded(ends, _) => nested::run_ends(column, ends, rows, how),
        Union(fields, mode) => nested::unions(column, fields, *mode, rows, how),
        other => internal_err!("no copy of rows of type {other}"),
    }
}

/// False for unions and run-end encoded types without a nullable child: they have no validity bitmap, so a null needs a child
/// to lie in. Every type around them has a bitmap.
pub(crate) fn can_hold_nulls(data_type: &DataType) -> bool {
    let child = |field: &FieldRef| field.is_nullable() && can_hold_nulls(field.data_type());
    match data_type {
        DataType::RunEndEncoded(_, values) => child(values),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| child(field)),
        _ => true,
    }
}

/// Bytes per value of the types whose values lie side by side in one buffer.
pub(crate) fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        other => other.primitive_width(),
    }
}

/// The values of a type of [`fixed_width`].
pub(crate) fn fixed_values(column: &ArrayRef, width: usize) -> Buffer {
    let data = column.to_data();
    data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width)
}

/// Names the column that an error is about.
pub(crate) fn in_column(error: Error, name: &str) -> Error {
    match error {
        Error::Overflow(text) => Error::Overflow(format!("column {name:?}: {text}")),
        Error::Execution(text) => Error::Execution(format!("column {name:?}: {text}")),
        other => other,
    }
}

/// The rows of `column` whose values are in `buffers`.
pub(super) fn build<R: Rows>(column: &ArrayRef, buffers: Vec<Buffer>, rows: R, missing: Missing) -> Result<ArrayRef> {
    let nulls = gather_nulls(column.nulls(), rows, missing);
    let data = ArrayData::builder(column.data_type().clone()).len(rows.len()).buffers(buffers).nulls(nulls);
    // SAFETY: the buffers hold exactly `rows.len()` values of the type, copied from a valid array of that type, and
    // `nulls` has that length.
    Ok(make_array(unsafe { data.build_unchecked() }))
}

/// The values at `positions`, null where a position is missing. Unlike Arrow's `take`, it reads values at any address that their
/// type may have.
///
/// # Errors
/// [`Error::Internal`] for a position that does not exist, and those of a copy.
pub(crate) fn take_at(values: &ArrayRef, positions: impl IntoIterator<Item = Option<usize>>) -> Result<ArrayRef> {
    let row = |position: Option<usize>| position.map_or(NONE, |position| u32::try_from(position).unwrap_or(NONE - 1));
    let rows: Vec<u32> = positions.into_iter().map(row).collect();
    gather_shared(values, Selection::try_new(&rows, values.len())?, Share::Always)
}

/// The validity of `rows`; `None` where all are valid.
pub(crate) fn gather_nulls<R: Rows>(nulls: Option<&NullBuffer>, rows: R, missing: Missing) -> Option<NullBuffer> {
    let bits = match nulls.filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => rows.bits(nulls.inner(), missing == Missing::Any),
        None if missing == Missing::Any || !rows.has_none() => return None,
        None => rows.present(),
    };
    Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
}

pub(crate) fn outgrown(what: &str, data_type: &DataType) -> Error {
    Error::Overflow(format!(
        "one output batch would hold {what} of type {data_type}, more than its offsets reach; pass the probe side as \
         a stream"
    ))
}

fn bytes<O: OffsetSizeTrait, R: Rows>(
    column: &ArrayRef,
    offsets: &[O],
    values: &[u8],
    rows: R,
    how: How,
) -> Result<ArrayRef> {
    let buffers = rows.bytes(offsets, values);
    let (ends, values) = buffers.map_err(|end| outgrown(&format!("{end} bytes"), column.data_type()))?;
    build(column, vec![ends, values], rows, how.missing)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Decimal128Type, Float32Type, Int8Type, Int16Type, Int64Type};
    use arrow_array::{
        BinaryArray, FixedSizeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, StringViewArray, UInt32Array,
    };
    use arrow_buffer::ScalarBuffer;
    use arrow_select::take::take;
    use proptest::prelude::*;

    use super::super::gather_or::{by_two_copies, gather_or};
    use super::*;
    use crate::cancel::Cancel;

    /// `shift` moves the values of the last kinds to any address.
    fn column(kind: usize, values: &[Option<u8>], shift: usize) -> ArrayRef {
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
            9 => Arc::new(values.iter().map(|v| v.map(text)).collect::<StringViewArray>()),
            _ => {
                let width = [1, 2, 3, 4, 8, 16][kind - 10];
                let bytes: Vec<u8> = std::iter::repeat_n(0, shift)
                    .chain(values.iter().flat_map(|v| (0..width).map(move |i| v.unwrap_or(9) ^ i as u8)))
                    .collect();
                let nulls = values.iter().map(Option::is_some).collect();
                let bytes = Buffer::from_vec(bytes).slice(shift);
                Arc::new(FixedSizeBinaryArray::new(width, bytes, Some(nulls)))
            }
        }
    }

    proptest! {
        /// The unchecked copies against Arrow's own, which check, and against those of the same rows as stretches: sliced
        /// columns at any address, nulls, missing rows, ranges.
        #[test]
        fn copies_are_those_of_take(
            (kind, shift) in (0..16usize, 0..9usize),
            values in prop::collection::vec(prop::option::weighted(0.8, 0..60u8), 1..80),
            picks in prop::collection::vec(prop::option::weighted(0.8, any::<prop::sample::Index>()), 0..100),
            (skip, all_there, in_order) in (0..5usize, any::<bool>(), any::<bool>()),
        ) {
            let whole = column(kind, &values, shift);
            let skip = skip.min(values.len() - 1);
            let column = whole.slice(skip, values.len() - skip);
            let pick = |p: &Option<prop::sample::Index>| p.map_or(NONE, |index| index.index(column.len()) as u32);
            let mut rows: Vec<u32> = picks.iter().map(pick).filter(|&row| !all_there || row != NONE).collect();
            if in_order {
                rows = (0..column.len() as u32).skip(rows.len() % column.len()).collect();
            }
            let selection = Selection::try_new(&rows, column.len()).unwrap();
            let present = rows.contains(&NONE).then(|| rows.iter().map(|&row| row != NONE).collect());
            let plain = take(&column, &UInt32Array::new(ScalarBuffer::from(rows.clone()), present), None).unwrap();
            for share in [Share::Always, Share::MostlyUsed, Share::Never] {
                let how = How { missing: Missing::Null, share };
                prop_assert_eq!(&gather_rows(&column, selection, how).unwrap(), &plain);
                prop_assert_eq!(&gather_rows(&column, &Stretches::of(selection), how).unwrap(), &plain);
                let filled = gather_rows(&column, selection, How { missing: Missing::Any, share }).unwrap();
                for (i, &row) in rows.iter().enumerate() {
                    prop_assert_eq!(filled.is_null(i), row != NONE && column.is_null(row as usize));
                }
            }
            let default = self::column(kind, &[Some(if skip == 0 { 2 } else { 11 })], shift);
            let cancel = Cancel::default();
            let simply = by_two_copies(&column, selection, &default, &cancel).unwrap();
            prop_assert_eq!(&gather_or(&column, selection, Some(&default), &cancel).unwrap(), &simply);
        }
    }

    /// A row that does not exist is refused before anything is copied, and so is a column that is too short.
    #[test]
    fn rows_are_checked() {
        let short: ArrayRef = Arc::new(PrimitiveArray::<Int64Type>::from(vec![1, 2]));
        for rows in [&[1, 0][..], &[NONE, 1], &[0, 1]] {
            let selection = Selection::try_new(rows, 3).unwrap();
            assert!(matches!(gather(&short, selection), Err(Error::Internal(_))));
        }
        assert!(Selection::try_new(&[0, 3], 3).is_err());
        assert!(Selection::try_new(&[0, 2, NONE], 3).is_ok());
        assert!(nulls(&DataType::Utf8, 2).unwrap().is_null(1));
    }
}
