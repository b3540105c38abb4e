//! Dictionary, run-end encoded and union columns out of many arrays, in copies that share nothing with them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, PrimitiveArray, RunArray, UInt32Array, UnionArray, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, ScalarBuffer};
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::{DataType, FieldRef, UnionFields, UnionMode};
use arrow_select::take::take;

use super::concat;
use super::nested::{nulls, rows};
use crate::cancel::Cancel;
use crate::columns::child_range::shown_by_type;
use crate::error::{Error, Result, internal_err};

/// Values encoded at once while equal ones are looked for.
const PIECE: usize = 1024;

/// True where `array` shows the same values in the same memory as `other`; both are dictionaries.
pub(crate) fn same_values(array: &ArrayRef, other: &ArrayRef) -> bool {
    match (array.as_any_dictionary_opt(), other.as_any_dictionary_opt()) {
        (Some(array), Some(other)) => array.values().to_data().ptr_eq(&other.values().to_data()),
        _ => false,
    }
}

/// Concatenates dictionaries. Neighbours that show the same values keep them once. All values are kept as they are if
/// the keys can number them, else each distinct value that some row shows, once.
pub(crate) fn dictionaries(arrays: &[ArrayRef], key: &DataType, cancel: &Cancel) -> Result<ArrayRef> {
    macro_rules! keyed {
        ($($key:ident => $t:ty),*) => {
            match key {
                $(DataType::$key => keyed::<$t>(arrays, cancel),)*
                other => internal_err!("dictionary keys of type {other}"),
            }
        };
    }
    keyed!(Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type)
}

fn keyed<K: ArrowDictionaryKeyType>(arrays: &[ArrayRef], cancel: &Cancel) -> Result<ArrayRef> {
    // Where the values of each array begin among all.
    let mut bases = Vec::with_capacity(arrays.len());
    let mut values: Vec<ArrayRef> = Vec::new();
    let mut total = 0;
    for (i, array) in arrays.iter().enumerate() {
        let own = array.as_dictionary::<K>().values();
        if i == 0 || !same_values(array, &arrays[i - 1]) {
            values.push(own.clone());
            total += own.len();
        }
        bases.push(total - own.len());
    }
    let mut values = concat(&values, cancel)?;
    let mut numbers = None;
    if total > 0 && K::Native::from_usize(total - 1).is_none() {
        let (distinct, number_of) = distinct_used::<K>(arrays, &bases, &values, cancel)?;
        // A copy once more: `take` shares the data of views.
        values = concat(&[take(&values, &distinct, None)?], cancel)?;
        numbers = Some(number_of);
    }
    let mut keys: Vec<K::Native> = Vec::with_capacity(rows(arrays));
    for (array, base) in arrays.iter().zip(bases) {
        cancel.check()?;
        let array = array.as_dictionary::<K>();
        for (row, key) in array.keys().values().iter().enumerate() {
            // Beneath a null anything may stand.
            let position = if array.is_valid(row) { base + key.as_usize() } else { 0 };
            let number = numbers.as_ref().map_or(position, |numbers| numbers[position] as usize);
            keys.push(K::Native::usize_as(number));
        }
    }
    let keys = PrimitiveArray::<K>::try_new(keys.into(), nulls(arrays))?.into_data();
    let dictionary = keys.into_builder().data_type(arrays[0].data_type().clone()).child_data(vec![values.to_data()]);
    // SAFETY: each key that is not null is the number of its value among `values`.
    Ok(make_array(unsafe { dictionary.build_unchecked() }))
}

/// The position of each distinct value that some row shows, and the number of each position's value among them.
fn distinct_used<K: ArrowDictionaryKeyType>(
    arrays: &[ArrayRef],
    bases: &[usize],
    values: &ArrayRef,
    cancel: &Cancel,
) -> Result<(UInt32Array, Vec<u32>)> {
    let mut used = BooleanBufferBuilder::new(values.len());
    used.append_n(values.len(), false);
    for (array, base) in arrays.iter().zip(bases) {
        cancel.check()?;
        let keys = array.as_dictionary::<K>().keys();
        keys.iter().flatten().for_each(|key| used.set_bit(base + key.as_usize(), true));
    }
    let used = used.finish();
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
    let mut known: HashMap<OwnedRow, u32> = HashMap::new();
    let mut distinct = Vec::new();
    let mut numbers = vec![0; values.len()];
    for start in (0..values.len()).step_by(PIECE) {
        cancel.check()?;
        let len = PIECE.min(values.len() - start);
        let encoded = converter.convert_columns(&[values.slice(start, len)])?;
        for position in used.slice(start, len).set_indices() {
            let next = distinct.len() as u32;
            let number = *known.entry(encoded.row(position).owned()).or_insert(next);
            numbers[start + position] = number;
            if number == next {
                if K::Native::from_usize(next as usize).is_none() {
                    return Err(Error::Overflow(format!(
                        "the rows show more distinct values than the keys of type {} can number; cast the column to \
                         wider dictionary keys or to its values",
                        arrays[0].data_type()
                    )));
                }
                distinct.push((start + position) as u32);
            }
        }
    }
    Ok((distinct.into(), numbers))
}

/// Concatenates run-end encoded arrays; the runs that a slice shows are cut to it.
pub(crate) fn run_ends(arrays: &[ArrayRef], ends: &FieldRef, cancel: &Cancel) -> Result<ArrayRef> {
    match ends.data_type() {
        DataType::Int16 => runs::<Int16Type>(arrays, cancel),
        DataType::Int32 => runs::<Int32Type>(arrays, cancel),
        _ => runs::<Int64Type>(arrays, cancel),
    }
}

fn runs<R: RunEndIndexType>(arrays: &[ArrayRef], cancel: &Cancel) -> Result<ArrayRef> {
    let rows = rows(arrays);
    if R::Native::from_usize(rows).is_none() {
        return Err(Error::Overflow(format!(
            "{rows} rows do not fit the run ends of type {}; cast the column to wider run ends or to its values",
            arrays[0].data_type()
        )));
    }
    let mut ends: Vec<R::Native> = Vec::new();
    let mut parts = Vec::with_capacity(arrays.len());
    let mut base = 0;
    for array in arrays.iter().filter(|array| !array.is_empty()) {
        cancel.check()?;
        let Some(array) = array.as_any().downcast_ref::<RunArray<R>>() else {
            return internal_err!("run-end encoded array of type {}", array.data_type());
        };
        let runs = array.run_ends();
        let (first, last) = (runs.get_start_physical_index(), runs.get_end_physical_index());
        ends.reserve_exact(last + 1 - first);
        for end in &runs.values()[first..=last] {
            let end = (end.as_usize() - array.offset()).min(array.len());
            ends.push(R::Native::usize_as(base + end));
        }
        parts.push(array.values().slice(first, last + 1 - first));
        base += array.len();
    }
    if parts.is_empty() {
        return Ok(arrow_array::new_empty_array(arrays[0].data_type()));
    }
    let ends = PrimitiveArray::<R>::new(ends.into(), None).into_data();
    let values = concat(&parts, cancel)?.to_data();
    let data = arrow_data::ArrayData::builder(arrays[0].data_type().clone()).len(rows).child_data(vec![ends, values]);
    Ok(make_array(data.build()?))
}

/// Concatenates unions. Of a dense one's child the range is copied that its rows lie in.
pub(crate) fn unions(arrays: &[ArrayRef], fields: &UnionFields, mode: UnionMode, cancel: &Cancel) -> Result<ArrayRef> {
    let mut type_ids: Vec<i8> = Vec::with_capacity(rows(arrays));
    let mut offsets: Vec<i32> = Vec::with_capacity(if mode == UnionMode::Dense { rows(arrays) } else { 0 });
    let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(arrays.len()); fields.len()];
    // Rows of each child so far, by type id.
    let mut bases = [0usize; 128];
    for array in arrays {
        cancel.check()?;
        let array = array.as_union();
        let ids = array.type_ids();
        type_ids.extend_from_slice(ids);
        let mut starts = bases;
        for ((id, _), parts) in fields.iter().zip(&mut parts) {
            let child = array.child(id);
            let shown = array.offsets().map_or(0..child.len(), |offsets| shown_by_type(id, ids, offsets));
            parts.push(child.slice(shown.start, shown.len()));
            // May wrap below zero until the row's offset is added.
            starts[id as usize] = starts[id as usize].wrapping_sub(shown.start);
            bases[id as usize] += shown.len();
        }
        for (&id, &at) in ids.iter().zip(array.offsets().into_iter().flatten()) {
            let Ok(at) = i32::try_from(starts[id as usize].wrapping_add(at as usize)) else {
                return Err(Error::Overflow(format!(
                    "the values do not fit the 32-bit offsets of type {}; split the build",
                    arrays[0].data_type()
                )));
            };
            offsets.push(at);
        }
    }
    let children = parts.iter().map(|parts| concat(parts, cancel)).collect::<Result<_>>()?;
    let offsets = (mode == UnionMode::Dense).then(|| ScalarBuffer::from(offsets));
    Ok(Arc::new(UnionArray::try_new(fields.clone(), type_ids.into(), offsets, children)?))
}
