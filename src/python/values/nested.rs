//! Python's dicts and lists as keys of a struct or list type, each of their values exactly.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, OffsetSizeTrait, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, Fields};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use super::columns::{Column, column, refused};
use super::keys::{either, is_iterable};
use crate::columns::{Coerced, coerce, comparable};
use crate::error::Error;
use crate::python::errors::plan;
use crate::python::interchange::is_a;

/// `values` as an array of `data_type`, whatever it is.
fn exactly(values: &[Bound<'_, PyAny>], data_type: &DataType, name: &str) -> PyResult<Coerced> {
    let array = match column(values, data_type, name)? {
        Column::Typed(typed) => return Ok(typed),
        Column::Array(array) => array,
    };
    match comparable(data_type, arrow_array::Array::data_type(&array)) {
        true => Ok(coerce(&array, data_type)?),
        false => Err(plan(format!(
            "key {name:?} has type {data_type} within, which does not compare with a value of type {}",
            arrow_array::Array::data_type(&array)
        ))),
    }
}

/// Structs of mappings; None where one is something else.
pub(crate) fn structs(values: &[Bound<'_, PyAny>], fields: &Fields, name: &str) -> PyResult<Option<Coerced>> {
    let mut rows = Vec::with_capacity(values.len());
    for value in values {
        let value = unwrapped(value)?;
        match value.cast::<PyMapping>() {
            Ok(mapping) => rows.push(Some(mapping.clone())),
            Err(_) if value.is_none() => rows.push(None),
            Err(_) => return Ok(None),
        }
    }
    let mut columns = Vec::with_capacity(fields.len());
    let mut missing = None;
    for field in fields {
        let parts = rows.iter().zip(values).map(|(row, value)| match row {
            Some(row) if row.contains(field.name())? => row.get_item(field.name()),
            _ => Ok(value.py().None().into_bound(value.py())),
        });
        let column = exactly(&parts.collect::<PyResult<Vec<_>>>()?, field.data_type(), name)?;
        missing = either(missing, column.missing);
        columns.push(column.keys);
    }
    let nulls = nulls(rows.iter().map(Option::is_some));
    let keys = StructArray::try_new_with_length(fields.clone(), columns, nulls, rows.len()).map_err(Error::from)?;
    Ok(Some(Coerced { keys: Arc::new(keys), missing }))
}

/// Lists end to end.
struct Lists<'py> {
    items: Vec<Bound<'py, PyAny>>,
    /// Of each list, and the end of the last.
    starts: Vec<usize>,
    nulls: Option<NullBuffer>,
    /// Lists of another length than a fixed one.
    unfit: Option<BooleanBuffer>,
}

impl<'py> Lists<'py> {
    /// Of `width` items each where that is fixed.
    fn read(
        values: &[Bound<'py, PyAny>],
        data_type: &DataType,
        name: &str,
        width: Option<usize>,
    ) -> PyResult<Lists<'py>> {
        let (mut items, mut starts) = (Vec::new(), vec![0]);
        let (mut valid, mut unfit) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
        for value in values {
            let (start, list) = (items.len(), unwrapped(value)?);
            if !list.is_none() {
                if !is_iterable(&list)? {
                    return Err(refused(&list, data_type, name));
                }
                for item in list.try_iter()? {
                    items.push(item?);
                }
            }
            valid.push(!list.is_none());
            unfit.push(!list.is_none() && width.is_some_and(|width| items.len() - start != width));
            if let Some(width) = width {
                items.truncate(start + if unfit.last() == Some(&true) { 0 } else { width });
                items.resize(start + width, value.py().None().into_bound(value.py()));
            }
            starts.push(items.len());
        }
        let unfit = Some(BooleanBuffer::from(unfit)).filter(BooleanBuffer::has_true);
        Ok(Lists { items, starts, nulls: nulls(valid.into_iter()), unfit })
    }

    /// The lists that hold a missing item.
    fn missing(&self, items: Option<&BooleanBuffer>) -> Option<BooleanBuffer> {
        let items = items?;
        let holds = |i: usize| items.slice(self.starts[i], self.starts[i + 1] - self.starts[i]).has_true();
        Some(BooleanBuffer::collect_bool(self.starts.len() - 1, holds))
    }

    fn starts<O: OffsetSizeTrait>(&self, name: &str) -> PyResult<Vec<O>> {
        let starts: Option<Vec<O>> = self.starts.iter().map(|&start| O::from_usize(start)).collect();
        starts.ok_or_else(|| plan(format!("the keys {name:?} have {} items, too many at once", self.items.len())))
    }
}

/// Lists of any iterables.
pub(crate) fn lists<O: OffsetSizeTrait>(
    values: &[Bound<'_, PyAny>],
    data_type: &DataType,
    field: &FieldRef,
    name: &str,
) -> PyResult<Coerced> {
    let lists = Lists::read(values, data_type, name, None)?;
    let starts = lists.starts::<O>(name)?;
    let items = exactly(&lists.items, field.data_type(), name)?;
    let missing = lists.missing(items.missing.as_ref());
    let keys: ArrayRef = if matches!(data_type, DataType::ListView(_) | DataType::LargeListView(_)) {
        let sizes: ScalarBuffer<O> = starts.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let starts = ScalarBuffer::from(starts[..starts.len() - 1].to_vec());
        let keys = GenericListViewArray::try_new(field.clone(), starts, sizes, items.keys, lists.nulls);
        Arc::new(keys.map_err(Error::from)?)
    } else {
        let starts = OffsetBuffer::new(starts.into());
        Arc::new(GenericListArray::try_new(field.clone(), starts, items.keys, lists.nulls).map_err(Error::from)?)
    };
    Ok(Coerced { keys, missing })
}

/// Lists of `width` items; others are missing.
pub(crate) fn fixed_lists(
    values: &[Bound<'_, PyAny>],
    data_type: &DataType,
    field: &FieldRef,
    width: i32,
    name: &str,
) -> PyResult<Coerced> {
    let lists = Lists::read(values, data_type, name, Some(usize::try_from(width).unwrap_or(0)))?;
    let items = exactly(&lists.items, field.data_type(), name)?;
    let missing = either(lists.missing(items.missing.as_ref()), lists.unfit);
    let keys = FixedSizeListArray::try_new_with_length(field.clone(), width, items.keys, lists.nulls, values.len());
    Ok(Coerced { keys: Arc::new(keys.map_err(Error::from)?), missing })
}

/// The Python value of a pyarrow scalar.
fn unwrapped<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match is_a(value, "pyarrow", "Scalar")? {
        true => value.call_method0(intern!(value.py(), "as_py")),
        false => Ok(value.clone()),
    }
}

fn nulls(valid: impl Iterator<Item = bool>) -> Option<NullBuffer> {
    Some(NullBuffer::from(valid.collect::<Vec<_>>())).filter(|nulls| nulls.null_count() > 0)
}
