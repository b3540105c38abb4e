//! Keys that Python code asks a build for: values, arrays, or tables that hold the key columns.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, Schema};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMapping, PySlice, PyString, PyTuple};

use super::columns::{Column, column};
use crate::columns::{concat, key_type};
use crate::error::{Error, plan_err};
use crate::prepare::PreparedBuild;
use crate::probe::Keys;
use crate::python::errors::{plan, type_error};
use crate::python::interchange::{PySchema, Source, batch_from_python, is_a, is_refusal, type_name};
use crate::python::signals::{detach_if_long, interruptible};

impl Column {
    fn len(&self) -> usize {
        match self {
            Column::Typed(column) => column.keys.len(),
            Column::Array(array) => array.len(),
        }
    }
}

/// Any number of keys: an iterable of values (of tuples where there are several key columns), an array, a mapping of names to
/// either, or a table with the key columns.
pub(crate) fn keys(build: &PreparedBuild, given: &Bound<'_, PyAny>) -> PyResult<Keys> {
    check_keyed(build)?;
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        return of_values(build, given);
    }
    if let Ok(mapping) = given.cast::<PyDict>() {
        return of_mapping(build, mapping);
    }
    if let Some(parts) = Parts::of(given)? {
        return of_parts(build, &parts);
    }
    match array_of(given)? {
        Some(Given::Values(values)) => of_values(build, &values),
        Some(Given::Array(array)) if build.keys().len() == 1 && !is_frame_like(build, 0, &array)? => {
            let array = one_column(&array)?;
            Ok(of_columns(build, vec![Column::Array(array)])?)
        }
        Some(Given::Array(array)) => of_struct(build, &array),
        None => of_table(build, given),
    }
}

/// Refuses builds without key columns, in which only as-of searches find rows.
fn check_keyed(build: &PreparedBuild) -> PyResult<()> {
    match build.keys().is_empty() {
        true => Err(plan("the build has no key columns; look up rows of it by asof=, with None as keys")),
        false => Ok(()),
    }
}

/// One key: a value, or a tuple of one for each key column.
pub(crate) fn one_key(build: &PreparedBuild, given: &Bound<'_, PyAny>) -> PyResult<Keys> {
    check_keyed(build)?;
    let value = |key, value: &Bound<'_, PyAny>| values(build, key, std::slice::from_ref(value));
    if build.keys().len() == 1 {
        return Ok(of_columns(build, vec![value(0, given)?])?);
    }
    let parts = parts(build, given)?;
    let columns = parts.iter().enumerate().map(|(key, part)| value(key, part)).collect::<PyResult<_>>()?;
    Ok(of_columns(build, columns)?)
}

fn name(build: &PreparedBuild, key: usize) -> &str {
    build.schema().field(build.keys()[key]).name()
}

/// Values of key `key`.
fn values<'py>(build: &PreparedBuild, key: usize, values: &[Bound<'py, PyAny>]) -> PyResult<Column> {
    column(values, &key_type(build.schema().field(build.keys()[key]).data_type()), name(build, key))
}

/// The parts of one key of several columns.
fn parts<'py>(build: &PreparedBuild, given: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let keys = build.keys().len();
    let parts: Vec<Bound<'_, PyAny>> = match (given.cast::<PyTuple>(), given.cast::<PyList>()) {
        (Ok(tuple), _) => tuple.iter().collect(),
        (_, Ok(list)) => list.iter().collect(),
        _ => vec![],
    };
    match parts.len() == keys {
        true => Ok(parts),
        false => Err(plan(format!(
            "a key of this build is a tuple of {keys} values, {} was given",
            given.repr().map_or_else(|_| type_name(given), |repr| repr.to_string())
        ))),
    }
}

fn of_values(build: &PreparedBuild, given: &Bound<'_, PyAny>) -> PyResult<Keys> {
    let rows: Vec<Bound<'_, PyAny>> = given.try_iter()?.collect::<PyResult<_>>()?;
    if build.keys().len() == 1 {
        return Ok(of_columns(build, vec![values(build, 0, &rows)?])?);
    }
    let mut columns = vec![Vec::with_capacity(rows.len()); build.keys().len()];
    for row in &rows {
        for (column, part) in columns.iter_mut().zip(parts(build, row)?) {
            column.push(part);
        }
    }
    let columns =
        columns.iter().enumerate().map(|(key, column)| values(build, key, column)).collect::<PyResult<_>>()?;
    Ok(of_columns(build, columns)?)
}

/// True for a set, a range, a generator and the like; a text is one key, and so is a mapping.
pub(crate) fn is_iterable(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let one = given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyByteArray>()
        || given.cast::<PyMapping>().is_ok()
        || is_a(given, "pyarrow", "Scalar")?
        || is_a(given, "numpy", "generic")?;
    Ok(!one && given.hasattr(intern!(given.py(), "__iter__"))?)
}

fn of_mapping(build: &PreparedBuild, given: &Bound<'_, PyDict>) -> PyResult<Keys> {
    let column = |key| -> PyResult<Column> {
        if (0..build.keys().len()).any(|other| other != key && name(build, other) == name(build, key)) {
            return Err(plan(format!(
                "the build has two key columns {:?}, which a mapping cannot tell apart; give a list of tuples, or a table \
                 with other names, whose columns are taken in key order",
                name(build, key)
            )));
        }
        match given.get_item(name(build, key))? {
            Some(column) => part(build, key, &column),
            None => Err(plan(format!("the keys have no column {:?}", name(build, key)))),
        }
    };
    Ok(of_columns(build, (0..build.keys().len()).map(column).collect::<PyResult<_>>()?)?)
}

/// Key column `key` from an array, or an iterable of values.
fn part(build: &PreparedBuild, key: usize, given: &Bound<'_, PyAny>) -> PyResult<Column> {
    let py = given.py();
    let refused = || {
        type_error(format!("key column {:?} is a list or an array, {} was given", name(build, key), type_name(given)))
    };
    let array = match array_of(given)? {
        Some(Given::Array(array)) => array,
        Some(Given::Values(list)) => return values(build, key, &list.iter().collect::<Vec<_>>()),
        None => match exported(given)? {
            Some(array) => array,
            None if is_iterable(given)? => {
                let rows: Vec<Bound<'_, PyAny>> = given.try_iter()?.collect::<PyResult<_>>()?;
                return values(build, key, &rows);
            }
            None => return Err(refused()),
        },
    };
    if !is_frame_like(build, key, &array)? {
        return Ok(Column::Array(one_column(&array)?));
    }
    // The rows of a table; one column of it is meant where it has one.
    let columns = array.call_method0(intern!(py, "flatten"))?.cast_into::<PyList>()?;
    match columns.len() {
        1 => Ok(Column::Array(one_column(&columns.get_item(0)?)?)),
        _ => Err(refused()),
    }
}

/// Keys as somebody else's object holds them.
pub(super) enum Given<'py> {
    /// A `pyarrow.Array`.
    Array(Bound<'py, PyAny>),
    /// Python objects, each of which is read by itself.
    Values(Bound<'py, PyList>),
}

/// `given` where it is an array or series and no table.
pub(super) fn array_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Given<'py>>> {
    let py = given.py();
    if is_a(given, "pyarrow", "Array")? {
        return Ok(Some(Given::Array(given.clone())));
    }
    if is_a(given, "pyarrow", "ChunkedArray")? {
        return Ok(Some(Given::Array(one_array(given)?)));
    }
    if is_a(given, "polars", "Series")? {
        return Ok(Some(Given::Array(given.call_method0(intern!(py, "to_arrow"))?)));
    }
    let known =
        [("pandas", "Series"), ("pandas", "Index"), ("pandas.api.extensions", "ExtensionArray"), ("numpy", "ndarray")];
    for (module, class) in known {
        if !is_a(given, module, class)? {
            continue;
        }
        let dtype = given.getattr(intern!(py, "dtype"))?;
        if is_a(&dtype, "numpy", "dtype")? && dtype.getattr(intern!(py, "kind"))?.eq("O")? {
            return one_by_one(given).map(Some);
        }
        let pyarrow = py.import(intern!(py, "pyarrow"))?;
        let masked = class == "ndarray" && {
            let masked = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "ma"))?;
            masked.call_method1(intern!(py, "isMaskedArray"), (given,))?.is_truthy()?
        };
        let made = match masked {
            true => {
                let masks = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "ma"))?;
                let mask = masks.call_method1(intern!(py, "getmaskarray"), (given,))?;
                pyarrow.call_method1(intern!(py, "array"), (given.getattr(intern!(py, "data"))?, py.None(), mask))
            }
            false => pyarrow.call_method1(intern!(py, "array"), (given,)),
        };
        return match made {
            Ok(array) if is_a(&array, "pyarrow", "ChunkedArray")? => Ok(Some(Given::Array(one_array(&array)?))),
            Ok(array) => Ok(Some(Given::Array(array))),
            // Other byte orders, units that Arrow does not have, and so on.
            Err(error) if is_refusal(py, &error) => one_by_one(given).map(Some),
            Err(error) => Err(error),
        };
    }
    Ok(None)
}

/// A `pyarrow.ChunkedArray` as one array. pyarrow's `combine_chunks` refuses some columns that keys may have, such as
/// dictionaries with a null among their values and chunks without rows that begin within their buffers.
fn one_array<'py>(chunked: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = chunked.py();
    if chunked.getattr(intern!(py, "num_chunks"))?.extract::<usize>()? == 1 {
        return chunked.call_method1(intern!(py, "chunk"), (0,));
    }
    let table = py.import(intern!(py, "pyarrow"))?.call_method1(intern!(py, "table"), (vec![chunked], vec!["key"]))?;
    let mut source = Source::open(&table, None)?;
    let mut parts: Vec<ArrayRef> = Vec::new();
    while let Some(imported) = source.next_attached(py, None)? {
        parts.push(Arc::clone(imported.batch.column(0)));
    }
    let rows = parts.iter().map(|part| part.len()).sum();
    let column = match parts.len() {
        0 => new_empty_array(source.schema().field(0).data_type()),
        _ => detach_if_long(py, rows, || concat(&parts, &interruptible()))?,
    };
    let batch = RecordBatch::try_new(Arc::clone(source.schema()), vec![column]).map_err(Error::from)?;
    PySchema::new(py, batch.schema())?.batch(py, &batch)?.call_method1(intern!(py, "column"), (0,))
}

/// The elements of an array of numpy or pandas as Python objects.
fn one_by_one<'py>(given: &Bound<'py, PyAny>) -> PyResult<Given<'py>> {
    let list = match given.getattr_opt(intern!(given.py(), "tolist"))? {
        Some(method) => method.call0()?,
        None => PyList::new(given.py(), given.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any(),
    };
    list.cast_into::<PyList>().map(Given::Values).map_err(|_| {
        type_error(format!("keys are an array of one dimension, {} without dimensions was given", type_name(given)))
    })
}

/// What gives its rows by the PyCapsule interface, as one `pyarrow.Array`; the rows of a table are structs.
pub(super) fn exported<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = given.py();
    let pyarrow = py.import(intern!(py, "pyarrow"))?;
    let made = if given.hasattr(intern!(py, "__arrow_c_stream__"))? {
        // A stream of arrays of any type; those of a table are structs.
        let chunked = pyarrow.call_method1(intern!(py, "chunked_array"), (given,));
        chunked.and_then(|chunked| one_array(&chunked))
    } else if given.hasattr(intern!(py, "__arrow_c_array__"))? {
        pyarrow.call_method1(intern!(py, "array"), (given,))
    } else {
        return Ok(None);
    };
    made.map(Some).map_err(|error| match is_a(error.value(py), "pyarrow", "ArrowException") {
        Ok(true) => plan(format!("the keys that {} gives cannot be read: {error}", type_name(given))),
        _ => error,
    })
}

/// Columns with names that are read one by one: those that are not keys are not looked at.
struct Parts<'py> {
    names: Vec<String>,
    columns: Vec<Bound<'py, PyAny>>,
}

impl<'py> Parts<'py> {
    /// Of a table of pyarrow, a frame or index of pandas, or a structured array of numpy.
    fn of(given: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = given.py();
        if is_a(given, "pyarrow", "Table")? {
            let names = given.getattr(intern!(py, "column_names"))?.extract()?;
            let columns = given.getattr(intern!(py, "columns"))?.try_iter()?.collect::<PyResult<_>>()?;
            return Ok(Some(Self { names, columns }));
        }
        if is_a(given, "pandas", "MultiIndex")? {
            let options = PyDict::new(py);
            options.set_item("index", false)?;
            return Self::of(&given.call_method("to_frame", (), Some(&options))?);
        }
        if is_a(given, "pandas", "DataFrame")? {
            let names = given.getattr(intern!(py, "columns"))?.try_iter()?.map(|name| Ok(name?.str()?.to_string()));
            let names = names.collect::<PyResult<Vec<_>>>()?;
            let iloc = given.getattr(intern!(py, "iloc"))?;
            let column = |at| iloc.get_item((PySlice::full(py), at));
            let columns = (0..names.len()).map(column).collect::<PyResult<_>>()?;
            return Ok(Some(Self { names, columns }));
        }
        if is_a(given, "numpy", "ndarray")?
            && let Ok(names) =
                given.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "names"))?.extract::<Vec<String>>()
        {
            let columns = names.iter().map(|name| given.get_item(name)).collect::<PyResult<_>>()?;
            return Ok(Some(Self { names, columns }));
        }
        Ok(None)
    }
}

fn of_parts(build: &PreparedBuild, parts: &Parts<'_>) -> PyResult<Keys> {
    let keys: Vec<&str> = parts.names.iter().map(String::as_str).collect();
    let positions = positions(build, &keys)?;
    let column = |(key, at): (usize, usize)| part(build, key, &parts.columns[at]);
    Ok(of_columns(build, positions.into_iter().enumerate().map(column).collect::<PyResult<_>>()?)?)
}

/// A `pyarrow.Array`, imported.
pub(crate) fn one_column(array: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = array.py();
    let class = py.import(intern!(py, "pyarrow"))?.getattr(intern!(py, "RecordBatch"))?;
    let batch = class.call_method1(intern!(py, "from_arrays"), (vec![array], vec!["key"]))?;
    Ok(Arc::clone(batch_from_python(&batch)?.column(0)))
}

/// True for structs given for a key that is not a struct: the rows of a table in which the only key is a field.
fn is_frame_like(build: &PreparedBuild, key: usize, array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let key = key_type(build.schema().field(build.keys()[key]).data_type());
    Ok(!matches!(key, DataType::Struct(_)) && is_a(array, "pyarrow", "StructArray")?)
}

fn of_struct(build: &PreparedBuild, array: &Bound<'_, PyAny>) -> PyResult<Keys> {
    let py = array.py();
    if !is_a(array, "pyarrow", "StructArray")? {
        return Err(plan(format!(
            "the build has {} key columns; give a struct array, a table or a list of tuples, not a {} array",
            build.keys().len(),
            array.getattr(intern!(py, "type"))?
        )));
    }
    // The fields of a null struct are null.
    let (columns, data_type) = (array.call_method0("flatten")?, array.getattr(intern!(py, "type"))?);
    let names = data_type.try_iter()?.map(|field| field?.getattr("name")).collect::<PyResult<Vec<_>>>()?;
    let class = py.import(intern!(py, "pyarrow"))?.getattr(intern!(py, "RecordBatch"))?;
    let batch = class.call_method1(intern!(py, "from_arrays"), (columns, names))?;
    Ok(of_batch(build, &batch_from_python(&batch)?)?)
}

fn of_table(build: &PreparedBuild, given: &Bound<'_, PyAny>) -> PyResult<Keys> {
    if is_a(given, "pyarrow", "RecordBatch")? {
        return Ok(of_batch(build, &batch_from_python(given)?)?);
    }
    if let Some(array) = exported(given)? {
        return keys(build, &array);
    }
    if is_iterable(given)? {
        return of_values(build, given);
    }
    Err(type_error(format!(
        "keys are a list of keys or another iterable, an array, or a table with the key columns; {} was given (for one key, \
         give a list of one)",
        given.repr().map_or_else(|_| type_name(given), |repr| repr.to_string())
    )))
}

/// The key columns of a batch.
fn of_batch(build: &PreparedBuild, batch: &RecordBatch) -> Result<Keys, Error> {
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    Keys::read(build, &batch.project(&positions(build, &names)?)?)
}

/// The key columns among columns of these names: by name, or all of them in key order where none has a key's name or all
/// have, in this order.
fn positions(build: &PreparedBuild, given: &[&str]) -> Result<Vec<usize>, Error> {
    let keys: Vec<&str> = (0..build.keys().len()).map(|key| name(build, key)).collect();
    if keys == given || (keys.len() == given.len() && !keys.iter().any(|key| given.contains(key))) {
        return Ok((0..keys.len()).collect());
    }
    let list = |names: &[&str]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if let Some(twice) = (1..keys.len()).find(|&key| keys[..key].contains(&keys[key])) {
        return plan_err!(
            "the build has two key columns {:?}, so that columns are taken in key order, {} of them; the keys have columns \
             {}; give a table of just the key columns, under other names",
            keys[twice],
            keys.len(),
            list(given)
        );
    }
    let position = |key: &&str| {
        let mut found = (0..given.len()).filter(|&at| given[at] == *key);
        found.next().filter(|_| found.next().is_none())
    };
    keys.iter().map(position).collect::<Option<_>>().ok_or_else(|| {
        Error::Plan(format!(
            "the keys have columns {}, the build's key columns are {}; give each of these once",
            if given.is_empty() { "no columns".to_owned() } else { list(given) },
            list(&keys)
        ))
    })
}

/// One column per key.
fn of_columns(build: &PreparedBuild, columns: Vec<Column>) -> Result<Keys, Error> {
    let rows = columns.first().map_or(0, Column::len);
    if let Some(other) = columns.iter().find(|column| column.len() != rows) {
        return Err(Error::Plan(format!("the key columns have {rows} and {} rows", other.len())));
    }
    let mut missing: Option<BooleanBuffer> = None;
    let mut all_typed = true;
    let mut arrays = Vec::with_capacity(columns.len());
    for column in columns {
        arrays.push(match column {
            Column::Array(array) => {
                all_typed = false;
                array
            }
            Column::Typed(column) => {
                missing = either(missing, column.missing);
                column.keys
            }
        });
    }
    if all_typed {
        return Ok(Keys { rows, columns: arrays, missing });
    }
    let field = |(key, array): (usize, &ArrayRef)| Field::new(name(build, key), array.data_type().clone(), true);
    let schema = Schema::new(arrays.iter().enumerate().map(field).collect::<Vec<_>>());
    let mut keys = Keys::read(build, &RecordBatch::try_new(Arc::new(schema), arrays)?)?;
    keys.missing = either(keys.missing, missing);
    Ok(keys)
}

pub(crate) fn either(a: Option<BooleanBuffer>, b: Option<BooleanBuffer>) -> Option<BooleanBuffer> {
    match (a, b) {
        (Some(a), Some(b)) => Some(&a | &b),
        (a, b) => a.or(b),
    }
}

/// `columns=`: names of build columns; None is all.
pub(crate) fn columns_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<String>>> {
    let Some(given) = given else { return Ok(None) };
    let refused = || type_error(format!("columns is a list of column names, {} was given", type_name(given)));
    if given.is_instance_of::<PyString>() {
        return Err(refused());
    }
    let names: Vec<String> = given.extract().map_err(|_| refused())?;
    Ok(Some(names))
}
