//! `PreparedBuild.lookup_numpy`: numbers of some columns as a matrix of numpy.

use std::mem::MaybeUninit;
use std::ptr;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_cast::{can_cast_types, cast};
use arrow_schema::DataType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use super::errors::{plan, type_error};
use super::interchange::{is_a, type_name};
use super::signals::{detach_if_long, interruptible};
use crate::cancel::Cancel;
use crate::columns::{Positions, Selection, gather, key_type};
use crate::error::{Error, Result};
use crate::prepare::PreparedBuild;

/// Bytes of the matrix that are filled before the next ones, column by column: they stay in the cache, and so many values of
/// one column follow each other that its pages stay in the TLB.
const BLOCK: usize = 1 << 20;

/// What was asked for beside keys and columns.
pub(crate) struct MatrixOptions<'a, 'py> {
    pub(crate) default: Option<&'a Bound<'py, PyAny>>,
    pub(crate) dtype: Option<&'a Bound<'py, PyAny>>,
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
}

/// A matrix that is going to be filled.
pub(crate) struct Matrix<'a, 'py> {
    sources: Sources<'a>,
    /// The array that is filled, where it was given.
    out: Option<&'a Bound<'py, PyAny>>,
    defaults: Vec<Option<Bound<'py, PyAny>>>,
}

/// What it is filled with.
struct Sources<'a> {
    names: &'a [String],
    columns: Vec<&'a ArrayRef>,
    element: Element,
}

/// The type of all values.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    Float32,
    Float64,
    Int32,
    Int64,
}

impl Element {
    const ALL: [Element; 4] = [Element::Float32, Element::Float64, Element::Int32, Element::Int64];

    fn name(self) -> &'static str {
        match self {
            Element::Float32 => "float32",
            Element::Float64 => "float64",
            Element::Int32 => "int32",
            Element::Int64 => "int64",
        }
    }

    /// Of a `numpy.dtype`, in the byte order of this machine.
    fn of(dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = dtype.py();
        let name: String = dtype.getattr(intern!(py, "name"))?.extract()?;
        let native = dtype.getattr(intern!(py, "isnative"))?.is_truthy()?;
        Element::ALL.into_iter().find(|element| native && element.name() == name).ok_or_else(|| {
            plan(format!("a matrix has the dtype float32, float64, int32 or int64, {dtype} was asked for"))
        })
    }

    fn is_float(self) -> bool {
        matches!(self, Element::Float32 | Element::Float64)
    }
}

impl<'a, 'py> Matrix<'a, 'py> {
    pub(crate) fn try_new(
        build: &'a PreparedBuild,
        columns: &'a [String],
        options: &MatrixOptions<'a, 'py>,
    ) -> PyResult<Self> {
        let positions = Positions::new(build.rows_schema(), "build");
        let names = columns;
        let columns = names.iter().map(|name| build.column(positions.get(name)?)).collect::<Result<Vec<_>>>()?;
        let asked = match (options.dtype, options.out) {
            (Some(dtype), _) => {
                let numpy = dtype.py().import(intern!(dtype.py(), "numpy"))?;
                Some(Element::of(&numpy.call_method1(intern!(dtype.py(), "dtype"), (dtype,))?)?)
            }
            (None, Some(out)) if is_a(out, "numpy", "ndarray")? => {
                Some(Element::of(&out.getattr(intern!(out.py(), "dtype"))?)?)
            }
            (None, _) => None,
        };
        let narrow = |column: &&ArrayRef| {
            use DataType::*;
            matches!(key_type(column.data_type()), Boolean | Int8 | Int16 | UInt8 | UInt16 | Float16 | Float32)
        };
        let found = if columns.iter().all(narrow) { Element::Float32 } else { Element::Float64 };
        let element = asked.unwrap_or(found);
        for (name, column) in names.iter().zip(&columns) {
            check_type(name, column.data_type(), element)?;
        }
        let defaults = defaults(options.default, names)?;
        Ok(Self { sources: Sources { names, columns, element }, out: options.out, defaults })
    }

    /// Fills the matrix with these rows of the build.
    pub(crate) fn fill(&self, py: Python<'py>, rows: &[u32]) -> PyResult<Bound<'py, PyAny>> {
        match self.sources.element {
            Element::Float32 => self.fill_with::<f32>(py, rows),
            Element::Float64 => self.fill_with::<f64>(py, rows),
            Element::Int32 => self.fill_with::<i32>(py, rows),
            Element::Int64 => self.fill_with::<i64>(py, rows),
        }
    }

    fn fill_with<T: Number>(&self, py: Python<'py>, rows: &[u32]) -> PyResult<Bound<'py, PyAny>> {
        let Sources { names, columns, element } = &self.sources;
        let (height, width) = (rows.len(), columns.len());
        let defaults = names.iter().zip(&self.defaults).map(|(name, default)| {
            let refused =
                |value: &Bound<'_, PyAny>| plan(format!("default={value} of column {name:?} is no {}", element.name()));
            match default {
                None => Ok(T::NAN),
                Some(value) => T::of_python(value).ok_or_else(|| refused(value)).map(Some),
            }
        });
        let defaults: Vec<Option<T>> = defaults.collect::<PyResult<_>>()?;
        let out = match self.out {
            Some(out) => out.clone(),
            None => {
                let numpy = py.import(intern!(py, "numpy"))?;
                numpy.call_method1(intern!(py, "empty"), ((height, width), element.name()))?
            }
        };
        let size = height.checked_mul(width).ok_or_else(|| plan("the matrix has more values than memory"))?;
        let start = start_of(&out, (height, width), *element)?;
        if size == 0 {
            return Ok(out);
        }
        // SAFETY: `out` is held, and numpy said that it has `size` values of this type here, end to end, aligned and
        // writable. Values that were never written are not read.
        let cells =
            unsafe { std::slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut::<MaybeUninit<T>>(start), size) };
        let cancel = interruptible();
        let sources = &self.sources;
        detach_if_long(py, size / 8, || sources.fill(rows, &defaults, cells, &cancel))?;
        Ok(out)
    }
}

impl Sources<'_> {
    fn fill<T: Number>(
        &self,
        rows: &[u32],
        defaults: &[Option<T>],
        cells: &mut [MaybeUninit<T>],
        cancel: &Cancel,
    ) -> Result<()> {
        let width = self.columns.len();
        let columns =
            self.columns.iter().zip(defaults).map(|(column, default)| Column::try_new(column, rows, *default));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let height = (BLOCK / (width * size_of::<T>())).max(128);
        for (block, (rows, cells)) in rows.chunks(height).zip(cells.chunks_mut(height * width)).enumerate() {
            cancel.check()?;
            for (at, column) in columns.iter().enumerate() {
                column.fill(block * height, rows, &mut cells[at..], width).map_err(|row| {
                    let name = &self.names[at];
                    let key = block * height + row;
                    Error::Execution(match column.values.is_null_or_absent(key, rows[row]) {
                        true => format!(
                            "key {key} is absent or has no value in column {name:?}, and {} has no NaN; give default=",
                            self.element.name()
                        ),
                        false => {
                            format!("the value of key {key} in column {name:?} does not fit {}", self.element.name())
                        }
                    })
                })?;
            }
        }
        Ok(())
    }
}

/// A type of the values of a matrix.
trait Number: Copy + Send + Sync + 'static {
    /// What stands for no value.
    const NAN: Option<Self>;
    fn of_i64(value: i64) -> Option<Self>;
    fn of_u64(value: u64) -> Option<Self>;
    fn of_f64(value: f64) -> Option<Self>;
    fn of_python(value: &Bound<'_, PyAny>) -> Option<Self>;
}

macro_rules! float {
    ($t:ty) => {
        impl Number for $t {
            const NAN: Option<Self> = Some(<$t>::NAN);
            fn of_i64(value: i64) -> Option<Self> {
                Some(value as $t)
            }
            fn of_u64(value: u64) -> Option<Self> {
                Some(value as $t)
            }
            fn of_f64(value: f64) -> Option<Self> {
                Some(value as $t)
            }
            fn of_python(value: &Bound<'_, PyAny>) -> Option<Self> {
                value.extract::<f64>().ok().map(|value| value as $t)
            }
        }
    };
}

macro_rules! integer {
    ($t:ty) => {
        impl Number for $t {
            const NAN: Option<Self> = None;
            fn of_i64(value: i64) -> Option<Self> {
                value.try_into().ok()
            }
            fn of_u64(value: u64) -> Option<Self> {
                value.try_into().ok()
            }
            fn of_f64(_: f64) -> Option<Self> {
                None
            }
            fn of_python(value: &Bound<'_, PyAny>) -> Option<Self> {
                value.extract().ok()
            }
        }
    };
}

float!(f32);
float!(f64);
integer!(i32);
integer!(i64);

/// One column of the matrix.
struct Column<'a, T> {
    values: Values<'a>,
    default: Option<T>,
}

/// Numbers, and which of them are there.
enum Values<'a> {
    /// A column of the build.
    OfBuild(&'a ArrayRef),
    /// One number for each key.
    OfKeys(ArrayRef),
}

impl Values<'_> {
    fn is_null_or_absent(&self, key: usize, row: u32) -> bool {
        match self {
            Values::OfBuild(array) => array.len() <= row as usize || array.is_null(row as usize),
            Values::OfKeys(array) => array.is_null(key),
        }
    }
}

impl<'a, T: Number> Column<'a, T> {
    fn try_new(array: &'a ArrayRef, rows: &[u32], default: Option<T>) -> Result<Self> {
        use DataType::*;
        let values = match array.data_type() {
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float32 | Float64 => {
                Values::OfBuild(array)
            }
            other => {
                let plain = key_type(other);
                let to = if T::NAN.is_some() || !(plain.is_integer() || plain == Boolean) { Float64 } else { Int64 };
                Values::OfKeys(cast(&gather(array, Selection::try_new(rows, array.len())?)?, &to)?)
            }
        };
        Ok(Self { values, default })
    }

    /// Writes the values of `rows`, the first of which is that of key `first`, into each `width`th cell. The row of `rows` at
    /// which that fails is the error.
    fn fill(
        &self,
        first: usize,
        rows: &[u32],
        cells: &mut [MaybeUninit<T>],
        width: usize,
    ) -> std::result::Result<(), usize> {
        match &self.values {
            Values::OfBuild(array) => self.fill_from(array, |i| rows[i] as usize, rows.len(), cells, width),
            Values::OfKeys(array) => self.fill_from(array, |i| first + i, rows.len(), cells, width),
        }
    }

    fn fill_from(
        &self,
        array: &ArrayRef,
        row: impl Fn(usize) -> usize,
        rows: usize,
        cells: &mut [MaybeUninit<T>],
        width: usize,
    ) -> std::result::Result<(), usize> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        macro_rules! fill {
            ($t:ty, $of:ident, $wide:ty) => {{
                let values = array.as_primitive::<$t>().values();
                let number = |value| T::$of(<$wide>::from(value));
                fill(values, nulls, row, rows, self.default, number, cells, width)
            }};
        }
        match array.data_type() {
            DataType::Int8 => fill!(Int8Type, of_i64, i64),
            DataType::Int16 => fill!(Int16Type, of_i64, i64),
            DataType::Int32 => fill!(Int32Type, of_i64, i64),
            DataType::Int64 => fill!(Int64Type, of_i64, i64),
            DataType::UInt8 => fill!(UInt8Type, of_u64, u64),
            DataType::UInt16 => fill!(UInt16Type, of_u64, u64),
            DataType::UInt32 => fill!(UInt32Type, of_u64, u64),
            DataType::UInt64 => fill!(UInt64Type, of_u64, u64),
            DataType::Float32 => fill!(Float32Type, of_f64, f64),
            _ => fill!(Float64Type, of_f64, f64),
        }
    }
}

#[allow(clippy::too_many_arguments)] // one loop, made for each pair of types
fn fill<S: Copy, T: Number>(
    values: &[S],
    nulls: Option<&NullBuffer>,
    row: impl Fn(usize) -> usize,
    rows: usize,
    default: Option<T>,
    number: impl Fn(S) -> Option<T>,
    cells: &mut [MaybeUninit<T>],
    width: usize,
) -> std::result::Result<(), usize> {
    for (i, cell) in (0..rows).zip(cells.iter_mut().step_by(width)) {
        // An absent key has a row beyond all others.
        let row = row(i);
        let found = match values.get(row) {
            Some(&value) if nulls.is_none_or(|nulls| nulls.is_valid(row)) => number(value),
            _ => default,
        };
        match found {
            Some(found) => cell.write(found),
            None => return Err(i),
        };
    }
    Ok(())
}

fn check_type(name: &str, data_type: &DataType, element: Element) -> PyResult<()> {
    let plain = key_type(data_type);
    let (whole, number) = (plain.is_integer() || plain == DataType::Boolean, plain.is_numeric());
    if !(whole || number) || !can_cast_types(data_type, &DataType::Float64) {
        return Err(plan(format!(
            "column {name:?} has type {data_type}, a matrix takes numbers and Booleans; leave it out"
        )));
    }
    if !whole && !element.is_float() {
        return Err(plan(format!(
            "column {name:?} has type {data_type}, which dtype={} does not hold; ask for float32 or float64",
            element.name()
        )));
    }
    Ok(())
}

/// `default=`: for each column its value, from a mapping of names or one value for all.
fn defaults<'py>(default: Option<&Bound<'py, PyAny>>, columns: &[String]) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let Some(default) = default.filter(|default| !default.is_none()) else { return Ok(vec![None; columns.len()]) };
    let Ok(mapping) = default.cast::<PyMapping>() else { return Ok(vec![Some(default.clone()); columns.len()]) };
    let mut values = vec![None; columns.len()];
    for item in mapping.items()?.iter() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let mut named = columns.iter().zip(&mut values).filter(|(column, _)| **column == name).peekable();
        if named.peek().is_none() {
            return Err(plan(format!("default names the column {name:?}, the columns are {columns:?}")));
        }
        named.for_each(|(_, of)| *of = Some(value.clone()));
    }
    Ok(values)
}

/// The address of the first value of `out`, which is checked to be what is filled.
fn start_of(out: &Bound<'_, PyAny>, shape: (usize, usize), element: Element) -> PyResult<usize> {
    let py = out.py();
    if !is_a(out, "numpy", "ndarray")? {
        return Err(type_error(format!("out is an array of numpy, {} was given", type_name(out))));
    }
    // A view by numpy's own class, whatever a subclass says of itself.
    let numpy = py.import(intern!(py, "numpy"))?;
    let view = numpy
        .getattr(intern!(py, "ndarray"))?
        .call_method1(intern!(py, "view"), (out, numpy.getattr(intern!(py, "ndarray"))?))?;
    let interface = view.getattr(intern!(py, "__array_interface__"))?.cast_into::<PyDict>()?;
    let given: Vec<usize> = view.getattr(intern!(py, "shape"))?.extract()?;
    let of = Element::of(&view.getattr(intern!(py, "dtype"))?)?;
    if given != [shape.0, shape.1] || of != element {
        return Err(plan(format!(
            "out has the shape {given:?} and the dtype {}, asked for are [{}, {}] and {}",
            of.name(),
            shape.0,
            shape.1,
            element.name()
        )));
    }
    let flags = view.getattr(intern!(py, "flags"))?;
    for flag in ["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"] {
        if !flags.get_item(flag)?.is_truthy()? {
            return Err(plan(format!("out is to be contiguous in C order, aligned and writable; it is not {flag}")));
        }
    }
    let data = interface.get_item(intern!(py, "data"))?.ok_or_else(|| plan("out has no data"))?;
    data.extract::<(usize, bool)>().map(|(start, _)| start)
}
