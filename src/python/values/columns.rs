//! Python values as keys of one type, exactly: what the type cannot hold is a miss, never another value.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, GenericBinaryBuilder, GenericStringBuilder, StringViewBuilder};
use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, OffsetSizeTrait, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyOverflowError, PyUnicodeEncodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use super::decimals::decimals;
use super::keys::one_column;
use super::nested::{fixed_lists, lists, structs};
use super::temporal::temporal;
use crate::columns::Coerced;
use crate::error::Error;
use crate::python::errors::plan;
use crate::python::interchange::{PySchema, is_a, is_refusal, type_name};

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// One value on its way into an array.
pub(crate) enum Cell<T> {
    Value(T),
    Null,
    /// No value of the type equals it.
    Missing,
}

/// One key column as it was given.
pub(crate) enum Column {
    /// Values, in the type of the index.
    Typed(Coerced),
    /// An array of any type.
    Array(ArrayRef),
}

/// `values` of key `name`, which has type `data_type`.
pub(crate) fn column(values: &[Bound<'_, PyAny>], data_type: &DataType, name: &str) -> PyResult<Column> {
    let read = typed(values, data_type, name);
    if let Ok(Some(typed)) = read {
        return Ok(Column::Typed(typed));
    }
    // The nulls of other libraries are looked for only where the usual values were not all there is.
    let Some(values) = with_nulls(values, data_type)? else {
        read?;
        return Ok(Column::Array(by_pyarrow(values, data_type, name)?));
    };
    Ok(match typed(&values, data_type, name)? {
        Some(typed) => Column::Typed(typed),
        None => Column::Array(by_pyarrow(&values, data_type, name)?),
    })
}

/// `values` with None for the nulls of other libraries; None where there are no such nulls.
fn with_nulls<'py>(values: &[Bound<'py, PyAny>], data_type: &DataType) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let mut found = false;
    let one = |value: &Bound<'py, PyAny>| -> PyResult<Bound<'py, PyAny>> {
        let null = is_null(value, data_type.is_floating())?;
        found |= null;
        Ok(if null { value.py().None().into_bound(value.py()) } else { value.clone() })
    };
    let values = values.iter().map(one).collect::<PyResult<Vec<_>>>()?;
    Ok(found.then_some(values))
}

/// True for pandas' NA and NaT, numpy's NaT, a null scalar of pyarrow; and for NaN, which means null in columns of
/// objects, unless it may be a value of the column.
fn is_null(value: &Bound<'_, PyAny>, floats: bool) -> PyResult<bool> {
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(!floats && value.value().is_nan());
    }
    if is_a(value, "pandas._libs.missing", "NAType")? || is_a(value, "pandas._libs.tslibs.nattype", "NaTType")? {
        return Ok(true);
    }
    if is_a(value, "pyarrow", "Scalar")? {
        return Ok(!value.getattr(intern!(value.py(), "is_valid"))?.is_truthy()?);
    }
    let unequal = is_a(value, "numpy", "datetime64")?
        || is_a(value, "numpy", "timedelta64")?
        || (!floats && is_a(value, "numpy", "floating")?);
    Ok(unequal && value.ne(value)?)
}

/// `values` of key `name` as an array of `data_type` with the ones that it cannot hold; None where pyarrow has to read them.
pub(crate) fn typed(values: &[Bound<'_, PyAny>], data_type: &DataType, name: &str) -> PyResult<Option<Coerced>> {
    Ok(match data_type {
        DataType::Int8 => integers::<Int8Type>(values)?,
        DataType::Int16 => integers::<Int16Type>(values)?,
        DataType::Int32 => integers::<Int32Type>(values)?,
        DataType::Int64 => integers::<Int64Type>(values)?,
        DataType::UInt8 => integers::<UInt8Type>(values)?,
        DataType::UInt16 => integers::<UInt16Type>(values)?,
        DataType::UInt32 => integers::<UInt32Type>(values)?,
        DataType::UInt64 => integers::<UInt64Type>(values)?,
        DataType::Float16 => floats::<Float16Type>(values, |v| {
            let narrow = Half::from_f64(v);
            (narrow.to_f64(), narrow)
        })?,
        DataType::Float32 => floats::<Float32Type>(values, |v| (f64::from(v as f32), v as f32))?,
        DataType::Float64 => floats::<Float64Type>(values, |v| (v, v))?,
        DataType::Decimal32(..) => decimals::<Decimal32Type>(values, data_type, name)?,
        DataType::Decimal64(..) => decimals::<Decimal64Type>(values, data_type, name)?,
        DataType::Decimal128(..) => decimals::<Decimal128Type>(values, data_type, name)?,
        DataType::Decimal256(..) => decimals::<Decimal256Type>(values, data_type, name)?,
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => temporal(values, data_type, name)?,
        DataType::Boolean => booleans(values),
        DataType::Utf8 => strings::<i32>(values)?,
        DataType::LargeUtf8 => strings::<i64>(values)?,
        DataType::Utf8View => {
            let mut array = StringViewBuilder::with_capacity(values.len());
            texts(values, |text| array.append_option(text))?.map(|missing| coerced(Arc::new(array.finish()), &missing))
        }
        DataType::Binary => binaries::<i32>(values),
        DataType::LargeBinary => binaries::<i64>(values),
        DataType::BinaryView => {
            let mut array = BinaryViewBuilder::with_capacity(values.len());
            bytes(values, |value| array.append_option(value)).then(|| Coerced::exact(Arc::new(array.finish())))
        }
        DataType::FixedSizeBinary(width) => fixed(values, *width)?,
        DataType::Struct(fields) => structs(values, fields, name)?,
        DataType::List(field) | DataType::ListView(field) => Some(lists::<i32>(values, data_type, field, name)?),
        DataType::LargeList(field) | DataType::LargeListView(field) => {
            Some(lists::<i64>(values, data_type, field, name)?)
        }
        DataType::FixedSizeList(field, width) => Some(fixed_lists(values, data_type, field, *width, name)?),
        _ => None,
    })
}

/// `values` as pyarrow reads them, for key `name` of type `data_type`.
pub(crate) fn by_pyarrow(values: &[Bound<'_, PyAny>], data_type: &DataType, name: &str) -> PyResult<ArrayRef> {
    let Some(py) = values.first().map(Bound::py) else { return Ok(arrow_array::new_empty_array(data_type)) };
    let pyarrow = py.import(intern!(py, "pyarrow"))?;
    let list = PyList::new(py, values)?;
    if data_type.is_nested() || matches!(data_type, DataType::Interval(_)) {
        let schema = Arc::new(Schema::new(vec![Field::new(name, data_type.clone(), true)]));
        let field = PySchema::new(py, schema)?.object(py).call_method1(intern!(py, "field"), (0,))?;
        let options = PyDict::new(py);
        options.set_item(intern!(py, "type"), field.getattr(intern!(py, "type"))?)?;
        match pyarrow.call_method(intern!(py, "array"), (&list,), Some(&options)) {
            Ok(array) => return one_column(&array),
            Err(error) if !is_refusal(py, &error) => return Err(error),
            // The type that pyarrow chooses may still compare.
            Err(_) => (),
        }
    }
    let array = pyarrow.call_method1(intern!(py, "array"), (&list,)).map_err(|error| match is_refusal(py, &error) {
        true => plan(format!("key {name:?} has type {data_type}; the given values are not keys of this type: {error}")),
        false => error,
    })?;
    one_column(&array)
}

/// Says that `value` is of another kind than key `name`.
pub(crate) fn refused(value: &Bound<'_, PyAny>, data_type: &DataType, name: &str) -> PyErr {
    let given = value.repr().map_or_else(|_| type_name(value), |repr| repr.to_string());
    plan(format!("key {name:?} has type {data_type}; {given} is not a key of this type"))
}

impl<T> Cell<T> {
    pub(crate) fn and_then<U>(self, f: impl FnOnce(T) -> Option<U>) -> Cell<U> {
        match self {
            Cell::Value(value) => f(value).map_or(Cell::Missing, Cell::Value),
            Cell::Null => Cell::Null,
            Cell::Missing => Cell::Missing,
        }
    }
}

/// The values that `read` accepts as an array of `data_type`, which `T` stands for; None where it refuses one.
pub(crate) fn primitives<T: ArrowPrimitiveType>(
    values: &[Bound<'_, PyAny>],
    data_type: &DataType,
    read: impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<Cell<T::Native>>>,
) -> PyResult<Option<Coerced>> {
    let mut natives = Vec::with_capacity(values.len());
    let (mut nulls, mut missing): (Vec<u32>, Vec<u32>) = (vec![], vec![]);
    for (row, value) in values.iter().enumerate() {
        let Some(cell) = read(value)? else { return Ok(None) };
        natives.push(match cell {
            Cell::Value(native) => native,
            Cell::Null => {
                nulls.push(row as u32);
                T::Native::default()
            }
            Cell::Missing => {
                missing.push(row as u32);
                T::Native::default()
            }
        });
    }
    let valid = (!nulls.is_empty()).then(|| NullBuffer::new(!&set(&nulls, values.len())));
    let keys = PrimitiveArray::<T>::new(natives.into(), valid).with_data_type(data_type.clone());
    Ok(Some(coerced(Arc::new(keys), &missing)))
}

/// `keys` but for the `missing` rows.
fn coerced(keys: ArrayRef, missing: &[u32]) -> Coerced {
    let rows = keys.len();
    Coerced { keys, missing: (!missing.is_empty()).then(|| set(missing, rows)) }
}

fn set(rows: &[u32], len: usize) -> BooleanBuffer {
    let mut bits = arrow_buffer::MutableBuffer::from_len_zeroed(len.div_ceil(8));
    rows.iter().for_each(|&row| arrow_buffer::bit_util::set_bit(&mut bits, row as usize));
    BooleanBuffer::new(bits.into(), 0, len)
}

fn integers<T: ArrowPrimitiveType>(values: &[Bound<'_, PyAny>]) -> PyResult<Option<Coerced>>
where
    T::Native: TryFrom<i128>,
{
    primitives::<T>(values, &T::DATA_TYPE, |value| {
        Ok(integer(value)?.map(|cell| cell.and_then(|v| T::Native::try_from(v).ok())))
    })
}

/// `narrow` gives the nearest float of the type, and its value.
fn floats<T: ArrowPrimitiveType>(
    values: &[Bound<'_, PyAny>],
    narrow: impl Fn(f64) -> (f64, T::Native),
) -> PyResult<Option<Coerced>> {
    let exact = |v: f64| Some(narrow(v)).filter(|&(value, _)| value == v || v.is_nan()).map(|(_, native)| native);
    primitives::<T>(values, &T::DATA_TYPE, |value| Ok(float(value)?.map(|cell| cell.and_then(exact))))
}

/// An int, or an integer of another library.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<Option<Cell<i128>>> {
    if value.is_none() {
        return Ok(Some(Cell::Null));
    }
    // The truth values of numpy 1 can be read as ints too.
    if value.is_instance_of::<PyBool>() || !value.is_instance_of::<PyInt>() && is_a(value, "numpy", "bool_")? {
        return Ok(None);
    }
    Ok(match value.extract::<i64>() {
        Ok(value) => Some(Cell::Value(value.into())),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Some(value.extract::<u64>().map_or(Cell::Missing, |value| Cell::Value(value.into())))
        }
        Err(_) => None,
    })
}

/// A float, or an int that one equals.
fn float(value: &Bound<'_, PyAny>) -> PyResult<Option<Cell<f64>>> {
    if value.is_none() {
        return Ok(Some(Cell::Null));
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(Some(Cell::Value(value.value())));
    }
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        // Python rounds the int to a float, and compares the two exactly.
        return Ok(Some(match value.extract::<f64>() {
            Ok(float) if value.eq(float)? => Cell::Value(float),
            _ => Cell::Missing,
        }));
    }
    // Each of these is a float of 64 bits as well.
    match is_a(value, "numpy", "float16")? || is_a(value, "numpy", "float32")? {
        true => Ok(Some(Cell::Value(value.extract()?))),
        false => Ok(None),
    }
}

fn booleans(values: &[Bound<'_, PyAny>]) -> Option<Coerced> {
    let one = |value: &Bound<'_, PyAny>| match value.cast::<PyBool>() {
        Ok(value) => Some(Some(value.is_true())),
        Err(_) => value.is_none().then_some(None),
    };
    let values = values.iter().map(one).collect::<Option<Vec<_>>>()?;
    Some(Coerced::exact(Arc::new(BooleanArray::from(values))))
}

/// Gives each text to `append`, and returns the rows of those that are not UTF-8, such as lone surrogates; None if a value is
/// something else.
fn texts(values: &[Bound<'_, PyAny>], mut append: impl FnMut(Option<&str>)) -> PyResult<Option<Vec<u32>>> {
    let mut missing = vec![];
    for (row, value) in values.iter().enumerate() {
        match value.cast::<PyString>().map(|text| text.to_str()) {
            Ok(Ok(text)) => append(Some(text)),
            Ok(Err(error)) if error.is_instance_of::<PyUnicodeEncodeError>(value.py()) => {
                missing.push(row as u32);
                append(Some(""));
            }
            Ok(Err(error)) => return Err(error),
            Err(_) if value.is_none() => append(None),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(missing))
}

/// Gives each byte string to `append`; false where one is something else.
fn bytes(values: &[Bound<'_, PyAny>], mut append: impl FnMut(Option<&[u8]>)) -> bool {
    values.iter().all(|value| match value.cast::<PyBytes>() {
        Ok(bytes) => {
            append(Some(bytes.as_bytes()));
            true
        }
        Err(_) => {
            append(None);
            value.is_none()
        }
    })
}

fn strings<O: OffsetSizeTrait>(values: &[Bound<'_, PyAny>]) -> PyResult<Option<Coerced>> {
    let mut size = 0usize;
    let missing = texts(values, |text| size = size.saturating_add(text.map_or(0, str::len)))?;
    // pyarrow says what is wrong with more than offsets reach.
    let Some(missing) = missing.filter(|_| O::from_usize(size).is_some()) else { return Ok(None) };
    let mut array = GenericStringBuilder::<O>::with_capacity(values.len(), size);
    texts(values, |text| array.append_option(text))?;
    Ok(Some(coerced(Arc::new(array.finish()), &missing)))
}

fn binaries<O: OffsetSizeTrait>(values: &[Bound<'_, PyAny>]) -> Option<Coerced> {
    let mut size = 0usize;
    let all = bytes(values, |value| size = size.saturating_add(value.map_or(0, <[u8]>::len)));
    if !all || O::from_usize(size).is_none() {
        return None;
    }
    let mut array = GenericBinaryBuilder::<O>::with_capacity(values.len(), size);
    bytes(values, |value| array.append_option(value));
    Some(Coerced::exact(Arc::new(array.finish())))
}

/// Byte strings of one width; others are missing.
fn fixed(values: &[Bound<'_, PyAny>], width: i32) -> PyResult<Option<Coerced>> {
    let fits = |value: &[u8]| i32::try_from(value.len()).is_ok_and(|len| len == width);
    let mut cells: Vec<Option<Vec<u8>>> = Vec::with_capacity(values.len());
    let mut missing = Vec::new();
    let all = bytes(values, |value| {
        if value.is_some_and(|value| !fits(value)) {
            missing.push(cells.len() as u32);
        }
        cells.push(value.filter(|value| fits(value)).map(<[u8]>::to_vec));
    });
    if !all {
        return Ok(None);
    }
    let keys = FixedSizeBinaryArray::try_from_sparse_iter_with_size(cells.into_iter(), width).map_err(Error::from)?;
    Ok(Some(coerced(Arc::new(keys), &missing)))
}
