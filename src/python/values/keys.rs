//! Keys that Python code asks a build for: values, arrays, or tables that hold the key columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, Schema};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMapping, PyString, PyTuple};

use super::columns::{by_pyarrow, typed};
use crate::columns::names;
use crate::columns::{Coerced, key_type};
use crate::error::Error;
use crate::prepare::PreparedBuild;
use crate::probe::Keys;
use crate::python::errors::{plan, type_error};
use crate::python::interchange::{batch_from_python, is_a, type_name};

/// One key column as it was given.
enum Column {
    /// Values, in the type of the index.
    Typed(Coerced),
    /// An array of any type.
    Array(ArrayRef),
}

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
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        return of_values(build, given);
    }
    if let Ok(mapping) = given.cast::<PyDict>() {
        return of_mapping(build, mapping);
    }
    match array_of(given)? {
        Some(array) if build.keys().len() == 1 && !is_frame_like(build, &array)? => {
            let array = one_column(&array)?;
            Ok(of_columns(build, vec![Column::Array(array)])?)
        }
        Some(array) => of_struct(build, &array),
        None => of_table(build, given),
    }
}

/// One key: a value, or a tuple of one for each key column.
pub(crate) fn one_key(build: &PreparedBuild, given: &Bound<'_, PyAny>) -> PyResult<Keys> {
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
    let indexed = key_type(build.schema().field(build.keys()[key]).data_type());
    let name = name(build, key);
    if let Some(typed) = typed(values, &indexed, name)? {
        return Ok(Column::Typed(typed));
    }
    // pandas' own null is one too; looked for only where the usual values were not all there is.
    let present = |value: &Bound<'py, PyAny>| -> PyResult<Bound<'py, PyAny>> {
        let null = is_a(value, "pandas._libs.missing", "NAType")?;
        Ok(if null { value.py().None().into_bound(value.py()) } else { value.clone() })
    };
    let values = values.iter().map(present).collect::<PyResult<Vec<_>>>()?;
    Ok(match typed(&values, &indexed, name)? {
        Some(typed) => Column::Typed(typed),
        None => Column::Array(by_pyarrow(&values, &indexed, name)?),
    })
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
        let Some(column) = given.get_item(name(build, key))? else {
            return Err(plan(format!("the keys have no column {:?}", name(build, key))));
        };
        match array_of(&column)? {
            Some(array) => Ok(Column::Array(one_column(&array)?)),
            None if is_iterable(&column)? => {
                let rows: Vec<Bound<'_, PyAny>> = column.try_iter()?.collect::<PyResult<_>>()?;
                values(build, key, &rows)
            }
            None => Err(type_error(format!(
                "key column {:?} is a list or an array, {} was given",
                name(build, key),
                type_name(&column)
            ))),
        }
    };
    Ok(of_columns(build, (0..build.keys().len()).map(column).collect::<PyResult<_>>()?)?)
}

/// `given` as a `pyarrow.Array`, where it is an array or series and no table.
fn array_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = given.py();
    let pyarrow = || py.import(intern!(py, "pyarrow"));
    if is_a(given, "pyarrow", "Array")? {
        return Ok(Some(given.clone()));
    }
    if is_a(given, "pyarrow", "ChunkedArray")? {
        return given.call_method0(intern!(py, "combine_chunks")).map(Some);
    }
    if is_a(given, "polars", "Series")? {
        return given.call_method0(intern!(py, "to_arrow")).map(Some);
    }
    if is_a(given, "numpy", "ndarray")? {
        let numpy = py.import(intern!(py, "numpy"))?;
        let fields = given.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "names"))?;
        if let Ok(fields) = fields.cast::<PyTuple>() {
            let parts = fields.iter().map(|field| given.get_item(field)).collect::<PyResult<Vec<_>>>()?;
            let arrays = parts.iter().map(array_of).collect::<PyResult<Vec<_>>>()?;
            let class = pyarrow()?.getattr(intern!(py, "StructArray"))?;
            return class.call_method1(intern!(py, "from_arrays"), (arrays, fields)).map(Some);
        }
        if numpy.getattr(intern!(py, "ma"))?.call_method1(intern!(py, "isMaskedArray"), (given,))?.is_truthy()? {
            let (data, mask) =
                (given.getattr(intern!(py, "data"))?, numpy.getattr("ma")?.call_method1("getmaskarray", (given,))?);
            return pyarrow()?.call_method1(intern!(py, "array"), (data, py.None(), mask)).map(Some);
        }
    }
    if is_a(given, "pandas", "MultiIndex")? {
        let options = PyDict::new(py);
        options.set_item("index", false)?;
        let frame = given.call_method("to_frame", (), Some(&options))?;
        let table = pyarrow()?.getattr(intern!(py, "Table"))?.call_method1("from_pandas", (frame,))?;
        return table.call_method0("to_struct_array")?.call_method0(intern!(py, "combine_chunks")).map(Some);
    }
    for (module, class) in
        [("pandas", "Series"), ("pandas", "Index"), ("pandas.api.extensions", "ExtensionArray"), ("numpy", "ndarray")]
    {
        if is_a(given, module, class)? {
            let array = pyarrow()?.call_method1(intern!(py, "array"), (given,))?;
            return if is_a(&array, "pyarrow", "ChunkedArray")? {
                array.call_method0(intern!(py, "combine_chunks")).map(Some)
            } else {
                Ok(Some(array))
            };
        }
    }
    Ok(None)
}

/// A `pyarrow.Array`, imported.
pub(crate) fn one_column(array: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = array.py();
    let class = py.import(intern!(py, "pyarrow"))?.getattr(intern!(py, "RecordBatch"))?;
    let batch = class.call_method1(intern!(py, "from_arrays"), (vec![array], vec!["key"]))?;
    Ok(Arc::clone(batch_from_python(&batch)?.column(0)))
}

/// True for structs asked of a key that is no struct: the rows of a table, where the only key is a field.
fn is_frame_like(build: &PreparedBuild, array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let key = key_type(build.schema().field(build.keys()[0]).data_type());
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
    let py = given.py();
    if is_a(given, "pyarrow", "RecordBatch")? {
        return Ok(of_batch(build, &batch_from_python(given)?)?);
    }
    let tabular = given.hasattr(intern!(py, "__arrow_c_stream__"))? || is_a(given, "pandas", "DataFrame")?;
    if !tabular && !given.hasattr(intern!(py, "__arrow_c_array__"))? {
        if is_iterable(given)? {
            return of_values(build, given);
        }
        return Err(type_error(format!(
            "keys are a list of keys or another iterable, an array, or a table with the key columns; {} was given (for \
             one key, give a list of one)",
            given.repr().map_or_else(|_| type_name(given), |repr| repr.to_string())
        )));
    }
    let pyarrow = py.import(intern!(py, "pyarrow"))?;
    if !tabular {
        let array = pyarrow.call_method1(intern!(py, "array"), (given,))?;
        return keys(build, &array);
    }
    let frame = ["pandas", "polars"].iter().any(|module| is_a(given, module, "DataFrame").unwrap_or(false));
    if !frame && !is_a(given, "pyarrow", "Table")? && !is_a(given, "pyarrow", "RecordBatchReader")? {
        // A stream of arrays of any type; those of a table are structs.
        let chunked = pyarrow.call_method1(intern!(py, "chunked_array"), (given,))?;
        return keys(build, &chunked);
    }
    let table = pyarrow.call_method1(intern!(py, "table"), (given,))?;
    let batches = table.call_method0("combine_chunks")?.call_method0("to_batches")?.cast_into::<PyList>()?;
    match batches.iter().next() {
        Some(batch) => Ok(of_batch(build, &batch_from_python(&batch)?)?),
        None => {
            let schema = crate::python::interchange::schema_of(&table.getattr(intern!(py, "schema"))?)?;
            Ok(of_batch(build, &RecordBatch::new_empty(schema))?)
        }
    }
}

/// The key columns of a batch by their names, or all its columns in key order where it has none of the names.
fn of_batch(build: &PreparedBuild, batch: &RecordBatch) -> Result<Keys, Error> {
    let schema = batch.schema();
    let keys = build.keys().len();
    let any_named = (0..keys).any(|key| schema.fields().iter().any(|field| field.name() == name(build, key)));
    if !any_named && batch.num_columns() == keys {
        return Keys::read(build, batch);
    }
    let position = |key| crate::columns::position(&schema, name(build, key), "keys'");
    let positions = (0..keys).map(position).collect::<Result<Vec<_>, _>>();
    let positions = positions.map_err(|_| {
        Error::Plan(format!(
            "the keys have columns {}, the build's key columns are {}; give each of these once",
            names(&schema),
            (0..keys).map(|key| format!("{:?}", name(build, key))).collect::<Vec<_>>().join(", ")
        ))
    })?;
    Keys::read(build, &batch.project(&positions)?)
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

/// `columns=`: names of build columns as positions; None is all.
pub(crate) fn columns_of(build: &PreparedBuild, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<String>>> {
    let Some(given) = given else { return Ok(None) };
    let refused = || type_error(format!("columns is a list of column names, {} was given", type_name(given)));
    if given.is_instance_of::<PyString>() {
        return Err(refused());
    }
    let names: Vec<String> = given.extract().map_err(|_| refused())?;
    names.iter().try_for_each(|name| crate::columns::position(build.schema(), name, "build").map(drop))?;
    Ok(Some(names))
}
