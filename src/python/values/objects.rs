//! Values of Arrow columns as Python objects: those that pyarrow's `to_pylist` gives.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch, RunArray, downcast_dictionary_array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, intern};
use std::sync::Arc;

use super::objects_by_call::{date, decimal, duration, time, timestamp, uuid};
use crate::columns::{Selection, gather, key_type};
use crate::error::Error;
use crate::index::NONE;
use crate::python::interchange::PySchema;

/// How the values of one column become Python objects.
pub(crate) struct Objects {
    how: How,
    /// Whether one object may stand in several places: nobody can change it.
    shared: bool,
}

enum How {
    /// By the type of the column alone.
    Plain,
    /// Timestamps with a zone, as a `tzinfo`.
    Zoned(Py<PyAny>),
    Uuid,
    List(Box<Objects>),
    /// Keys and values.
    Map(Box<[Objects; 2]>),
    Struct(Vec<(Py<PyString>, Objects)>),
    /// The values that codes or runs stand for.
    Encoded(Box<Objects>),
    /// pyarrow makes them: extension types, nanoseconds (which pandas has a type for), unions, intervals.
    ByPyarrow(PySchema),
}

/// The rows of a column whose values are asked for.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// In any order; [`NONE`] gives None.
    Chosen(&'a [u32]),
    /// `start..end`.
    Range(usize, usize),
}

impl Rows<'_> {
    pub(crate) fn len(self) -> usize {
        match self {
            Rows::Chosen(rows) => rows.len(),
            Rows::Range(start, end) => end - start,
        }
    }

    fn for_each(self, mut f: impl FnMut(Option<usize>) -> PyResult<()>) -> PyResult<()> {
        match self {
            Rows::Chosen(rows) => rows.iter().try_for_each(|&row| f((row != NONE).then_some(row as usize))),
            Rows::Range(start, end) => (start..end).try_for_each(|row| f(Some(row))),
        }
    }
}

/// Takes the values one by one.
type Put<'a, 'py> = &'a mut dyn FnMut(Bound<'py, PyAny>) -> PyResult<()>;

impl Objects {
    /// For a column that `field` describes.
    pub(crate) fn try_new(py: Python<'_>, field: &Field) -> PyResult<Self> {
        if !is_native(field) {
            let schema = PySchema::new(py, Arc::new(Schema::new(vec![field.clone()])))?;
            // Values of an extension type may be anything.
            let shared = extension(field).is_none() && !field.data_type().is_nested();
            return Ok(Self { how: How::ByPyarrow(schema), shared });
        }
        let of = |field: &Field| Self::try_new(py, field);
        let how = match field.data_type() {
            DataType::FixedSizeBinary(_) if extension(field).is_some() => How::Uuid,
            DataType::Timestamp(_, Some(zone)) => {
                let lib = py.import(intern!(py, "pyarrow"))?.getattr(intern!(py, "lib"))?;
                How::Zoned(lib.call_method1(intern!(py, "string_to_tzinfo"), (zone.as_ref(),))?.unbind())
            }
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => How::List(Box::new(of(item)?)),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => How::Map(Box::new([of(&fields[0])?, of(&fields[1])?])),
                other => return Err(Error::Internal(format!("the entries of a map are {other}")).into()),
            },
            DataType::Struct(fields) => {
                let part = |field: &Arc<Field>| Ok((PyString::intern(py, field.name()).unbind(), of(field)?));
                How::Struct(fields.iter().map(part).collect::<PyResult<_>>()?)
            }
            DataType::Dictionary(_, values) => How::Encoded(Box::new(of(&Field::new("", (**values).clone(), true))?)),
            DataType::RunEndEncoded(_, values) => How::Encoded(Box::new(of(values)?)),
            _ => How::Plain,
        };
        Ok(Self { how, shared: !key_type(field.data_type()).is_nested() })
    }

    /// Whether one object may be given to several owners: it cannot be changed.
    pub(crate) fn shared(&self) -> bool {
        self.shared
    }

    /// The value of one row.
    pub(crate) fn one<'py>(&self, py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut value = None;
        self.for_each(py, array, Rows::Range(row, row + 1), &mut |made| {
            value = Some(made);
            Ok(())
        })?;
        value.ok_or_else(|| Error::Internal("a column gave no value".to_owned()).into())
    }

    /// The values of `rows`, in order.
    pub(crate) fn all<'py>(
        &self,
        py: Python<'py>,
        array: &ArrayRef,
        rows: Rows<'_>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut values = Vec::with_capacity(rows.len());
        self.for_each(py, array, rows, &mut |value| {
            values.push(value);
            Ok(())
        })?;
        Ok(values)
    }

    /// Gives the values of `rows` to `put`, in order.
    pub(crate) fn for_each<'py>(
        &self,
        py: Python<'py>,
        array: &ArrayRef,
        rows: Rows<'_>,
        put: Put<'_, 'py>,
    ) -> PyResult<()> {
        match &self.how {
            How::Plain => plain(py, array, rows, put),
            How::Zoned(zone) => {
                let (counts, unit) = counts(array)?;
                each(py, array.nulls(), rows, put, |row| timestamp(py, counts[row], unit, Some(zone.bind(py))))
            }
            How::Uuid => {
                let bytes = array.as_fixed_size_binary();
                each(py, array.nulls(), rows, put, |row| uuid(py, bytes.value(row)))
            }
            How::List(items) => lists(py, items, array, rows, put),
            How::Map(parts) => maps(py, parts, array, rows, put),
            How::Struct(parts) => structs(py, parts, array, rows, put),
            How::Encoded(values) => encoded(py, values, array, rows, put),
            How::ByPyarrow(schema) => by_pyarrow(py, schema, array, rows, put),
        }
    }
}

/// True for columns whose values are made here.
fn is_native(field: &Field) -> bool {
    use DataType::*;
    if let Some(name) = extension(field) {
        // Before pyarrow 18 these are bytes; where it knows the type it makes it known itself.
        return name == "arrow.uuid" && *field.data_type() == FixedSizeBinary(16) && knows_uuid();
    }
    match field.data_type() {
        Time64(TimeUnit::Nanosecond) | Timestamp(TimeUnit::Nanosecond, _) | Duration(TimeUnit::Nanosecond) => false,
        Float16 | Interval(_) | Union(_, _) => false,
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) | FixedSizeList(item, _) => is_native(item),
        Map(entries, _) => is_native(entries),
        Struct(fields) => {
            // Where a name stands twice, pyarrow says what is wrong.
            let twice =
                |(at, field): (usize, &Arc<Field>)| fields[..at].iter().any(|other| other.name() == field.name());
            fields.iter().all(|field| is_native(field)) && !fields.iter().enumerate().any(twice)
        }
        Dictionary(_, values) => is_native(&Field::new("", (**values).clone(), true)),
        RunEndEncoded(_, values) => is_native(values),
        _ => true,
    }
}

fn extension(field: &Field) -> Option<&str> {
    field.metadata().get(EXTENSION_TYPE_NAME_KEY).map(String::as_str)
}

fn knows_uuid() -> bool {
    Python::attach(|py| py.import(intern!(py, "pyarrow")).is_ok_and(|pyarrow| pyarrow.hasattr("uuid").unwrap_or(false)))
}

fn unexpected(array: &ArrayRef) -> PyErr {
    Error::Internal(format!("values of type {} are made otherwise", array.data_type())).into()
}

/// Gives what `make` makes of each valid row to `put`, and None of the others.
fn each<'py>(
    py: Python<'py>,
    nulls: Option<&NullBuffer>,
    rows: Rows<'_>,
    put: Put<'_, 'py>,
    mut make: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    rows.for_each(|row| match row {
        Some(row) if nulls.is_none_or(|nulls| nulls.is_valid(row)) => put(make(row)?),
        _ => put(py.None().into_bound(py)),
    })
}

fn plain<'py>(py: Python<'py>, array: &ArrayRef, rows: Rows<'_>, put: Put<'_, 'py>) -> PyResult<()> {
    use DataType::*;
    let nulls = array.nulls();
    macro_rules! values {
        ($values:expr, $make:expr) => {{
            let values = $values;
            each(py, nulls, rows, put, |row| $make(values.value(row)))
        }};
    }
    macro_rules! primitive {
        ($t:ty) => {
            values!(array.as_primitive::<$t>(), |value| IntoPyObjectExt::into_bound_py_any(value, py))
        };
    }
    macro_rules! decimals {
        ($t:ty, $scale:expr) => {
            values!(array.as_primitive::<$t>(), |value| decimal(py, &value, *$scale))
        };
    }
    let text = |text: &str| Ok(PyString::new(py, text).into_any());
    let bytes = |bytes: &[u8]| Ok(PyBytes::new(py, bytes).into_any());
    match array.data_type() {
        Null => rows.for_each(|_| put(py.None().into_bound(py))),
        Boolean => values!(array.as_boolean(), |value: bool| value.into_bound_py_any(py)),
        Int8 => primitive!(Int8Type),
        Int16 => primitive!(Int16Type),
        Int32 => primitive!(Int32Type),
        Int64 => primitive!(Int64Type),
        UInt8 => primitive!(UInt8Type),
        UInt16 => primitive!(UInt16Type),
        UInt32 => primitive!(UInt32Type),
        UInt64 => primitive!(UInt64Type),
        Float32 => primitive!(Float32Type),
        Float64 => primitive!(Float64Type),
        Utf8 => values!(array.as_string::<i32>(), text),
        LargeUtf8 => values!(array.as_string::<i64>(), text),
        Utf8View => values!(array.as_string_view(), text),
        Binary => values!(array.as_binary::<i32>(), bytes),
        LargeBinary => values!(array.as_binary::<i64>(), bytes),
        BinaryView => values!(array.as_binary_view(), bytes),
        FixedSizeBinary(_) => values!(array.as_fixed_size_binary(), bytes),
        Decimal32(_, scale) => decimals!(Decimal32Type, scale),
        Decimal64(_, scale) => decimals!(Decimal64Type, scale),
        Decimal128(_, scale) => decimals!(Decimal128Type, scale),
        Decimal256(_, scale) => decimals!(Decimal256Type, scale),
        Date32 => values!(array.as_primitive::<Date32Type>(), |days: i32| date(py, days.into())),
        Date64 => values!(array.as_primitive::<Date64Type>(), |millis: i64| date(py, millis.div_euclid(86_400_000))),
        Time32(TimeUnit::Second) => {
            values!(array.as_primitive::<Time32SecondType>(), |value: i32| time(py, value.into(), TimeUnit::Second))
        }
        Time32(_) => values!(array.as_primitive::<Time32MillisecondType>(), |value: i32| {
            time(py, value.into(), TimeUnit::Millisecond)
        }),
        data_type => {
            let (counts, unit) = counts(array)?;
            match data_type {
                Time64(_) => each(py, nulls, rows, put, |row| time(py, counts[row], unit)),
                Duration(_) => each(py, nulls, rows, put, |row| duration(py, counts[row], unit)),
                _ => each(py, nulls, rows, put, |row| timestamp(py, counts[row], unit, None)),
            }
        }
    }
}

/// The values of a temporal type of 64 bits, and their unit.
fn counts(array: &ArrayRef) -> PyResult<(ScalarBuffer<i64>, TimeUnit)> {
    use TimeUnit::{Microsecond, Millisecond, Second};
    macro_rules! counts {
        ($t:ty, $unit:ident) => {
            (array.as_primitive::<$t>().values().clone(), $unit)
        };
    }
    Ok(match array.data_type() {
        DataType::Time64(Microsecond) => counts!(Time64MicrosecondType, Microsecond),
        DataType::Timestamp(Second, _) => counts!(TimestampSecondType, Second),
        DataType::Timestamp(Millisecond, _) => counts!(TimestampMillisecondType, Millisecond),
        DataType::Timestamp(Microsecond, _) => counts!(TimestampMicrosecondType, Microsecond),
        DataType::Duration(Second) => counts!(DurationSecondType, Second),
        DataType::Duration(Millisecond) => counts!(DurationMillisecondType, Millisecond),
        DataType::Duration(Microsecond) => counts!(DurationMicrosecondType, Microsecond),
        _ => return Err(unexpected(array)),
    })
}

fn lists<'py>(py: Python<'py>, items: &Objects, array: &ArrayRef, rows: Rows<'_>, put: Put<'_, 'py>) -> PyResult<()> {
    macro_rules! of {
        ($list:expr, $range:expr) => {{
            let list = $list;
            each(py, array.nulls(), rows, put, |row| {
                let (start, len): (usize, usize) = $range(list, row);
                let made = items.all(py, list.values(), Rows::Range(start, start + len))?;
                Ok(PyList::new(py, made)?.into_any())
            })
        }};
    }
    macro_rules! by_offsets {
        ($list:expr) => {
            of!($list, |list: &arrow_array::GenericListArray<_>, row: usize| {
                let ends = &list.value_offsets()[row..row + 2];
                (ends[0] as usize, (ends[1] - ends[0]) as usize)
            })
        };
    }
    macro_rules! views {
        ($list:expr) => {
            of!($list, |list: &arrow_array::GenericListViewArray<_>, row: usize| {
                (list.value_offset(row) as usize, list.value_size(row) as usize)
            })
        };
    }
    match array.data_type() {
        DataType::List(_) => by_offsets!(array.as_list::<i32>()),
        DataType::LargeList(_) => by_offsets!(array.as_list::<i64>()),
        DataType::ListView(_) => views!(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => views!(array.as_list_view::<i64>()),
        DataType::FixedSizeList(_, _) => {
            of!(array.as_fixed_size_list(), |list: &arrow_array::FixedSizeListArray, row: usize| {
                (list.value_offset_at(row), list.value_length() as usize)
            })
        }
        _ => Err(unexpected(array)),
    }
}

/// Lists of pairs.
fn maps<'py>(
    py: Python<'py>,
    [keys, values]: &[Objects; 2],
    array: &ArrayRef,
    rows: Rows<'_>,
    put: Put<'_, 'py>,
) -> PyResult<()> {
    let map = array.as_map();
    each(py, array.nulls(), rows, put, |row| {
        let ends = &map.value_offsets()[row..row + 2];
        let range = Rows::Range(ends[0] as usize, ends[1] as usize);
        let (keys, values) = (keys.all(py, map.keys(), range)?, values.all(py, map.values(), range)?);
        let pairs = keys.into_iter().zip(values).map(|(key, value)| PyTuple::new(py, [key, value]));
        Ok(PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)?.into_any())
    })
}

fn structs<'py>(
    py: Python<'py>,
    parts: &[(Py<PyString>, Objects)],
    array: &ArrayRef,
    rows: Rows<'_>,
    put: Put<'_, 'py>,
) -> PyResult<()> {
    let array = array.as_struct();
    each(py, array.nulls(), rows, put, |row| {
        let dict = PyDict::new(py);
        for ((name, part), column) in parts.iter().zip(array.columns()) {
            dict.set_item(name, part.one(py, column, row)?)?;
        }
        Ok(dict.into_any())
    })
}

/// Each value that several rows have is made once, unless it could be changed.
fn encoded<'py>(
    py: Python<'py>,
    values: &Objects,
    array: &ArrayRef,
    rows: Rows<'_>,
    put: Put<'_, 'py>,
) -> PyResult<()> {
    let (codes, of) = codes(array, rows)?;
    if !values.shared() {
        return values.for_each(py, &of, Rows::Chosen(&codes), put);
    }
    let Distinct { rows, places } = Distinct::of(&codes, of.len());
    let made = values.all(py, &of, Rows::Chosen(&rows))?;
    places.iter().try_for_each(|&place| put(made[place as usize].clone()))
}

/// For each row the position of its value among the values of a dictionary or of runs, [`NONE`] for nulls; and these values.
fn codes(array: &ArrayRef, rows: Rows<'_>) -> PyResult<(Vec<u32>, ArrayRef)> {
    fn runs<R: RunEndIndexType>(array: &ArrayRef, rows: Rows<'_>, codes: &mut Vec<u32>) -> PyResult<ArrayRef> {
        let Some(array) = array.as_any().downcast_ref::<RunArray<R>>() else { return Err(unexpected(array)) };
        rows.for_each(|row| {
            codes.push(row.map_or(NONE, |row| array.get_physical_index(row) as u32));
            Ok(())
        })?;
        Ok(Arc::clone(array.values()))
    }
    let mut codes = Vec::with_capacity(rows.len());
    let values = match array.data_type() {
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(array, rows, &mut codes)?,
            DataType::Int32 => runs::<Int32Type>(array, rows, &mut codes)?,
            _ => runs::<Int64Type>(array, rows, &mut codes)?,
        },
        _ => downcast_dictionary_array!(
            array => {
                rows.for_each(|row| {
                    codes.push(row.and_then(|row| array.key(row)).map_or(NONE, |code| code as u32));
                    Ok(())
                })?;
                Arc::clone(array.values())
            },
            _ => return Err(unexpected(array)),
        ),
    };
    Ok((codes, values))
}

fn by_pyarrow<'py>(
    py: Python<'py>,
    schema: &PySchema,
    array: &ArrayRef,
    rows: Rows<'_>,
    put: Put<'_, 'py>,
) -> PyResult<()> {
    // Copies, since pyarrow's objects may keep what they are made of.
    let present: Vec<u32> = match rows {
        Rows::Chosen(rows) => rows.iter().copied().filter(|&row| row != NONE).collect(),
        Rows::Range(start, end) => (start as u32..end as u32).collect(),
    };
    let chosen = gather(array, Selection::try_new(&present, array.len())?)?;
    let field = schema.arrow().field(0).clone().with_nullable(true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![chosen]).map_err(Error::from)?;
    let column = schema.batch(py, &batch)?.call_method1(intern!(py, "column"), (0,))?;
    let mut values = column.call_method0(intern!(py, "to_pylist"))?.try_iter()?;
    rows.for_each(|row| match row {
        Some(_) => put(values.next().ok_or_else(|| unexpected(array))??),
        None => put(py.None().into_bound(py)),
    })
}

/// Rows of which several may be the same.
pub(crate) struct Distinct {
    /// Each of the rows, most of them once.
    pub(crate) rows: Vec<u32>,
    /// For each row that was given its place in `rows`.
    pub(crate) places: Vec<u32>,
}

impl Distinct {
    /// `rows` of a table of `of` rows. A row stands twice in the answer only where another row took its place in a table of
    /// fixed size in between.
    pub(crate) fn of(rows: &[u32], of: usize) -> Self {
        let size = (2 * rows.len()).min(of.saturating_add(1)).next_power_of_two();
        let mask = size - 1;
        let mut last = vec![NONE; size];
        let mut distinct: Vec<u32> = Vec::with_capacity(rows.len());
        let place = |&row: &u32| {
            let last = &mut last[row as usize & mask];
            if distinct.get(*last as usize) != Some(&row) {
                *last = distinct.len() as u32;
                distinct.push(row);
            }
            *last
        };
        let places = rows.iter().map(place).collect();
        Self { rows: distinct, places }
    }
}
