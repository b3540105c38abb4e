//! `PreparedBuild.get`, `lookup`, `lookup_rows`, `lookup_numpy`, `map`, `contains`, `count_matches` and `probe_indices`.

use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use super::as_of::At;
use super::classes::pool::PyMemoryPool;
use super::errors::{is_plan_error, plan};
use super::interchange::PySchema;
use super::kind::values_like;
use super::map::defaults;
use super::matrix::{Matrix, MatrixOptions};
use super::recent::SharedRecent;
use super::rows::{self, RowDicts};
use super::signals::{detach_if_long, interruptible};
use super::values::keys::{columns_of, keys, one_key};
use crate::cancel::Cancel;
use crate::columns::Positions;
use crate::error::Error;
use crate::index::{Hits, NONE};
use crate::join::JoinType;
use crate::prepare::{Keep, PreparedBuild};
use crate::probe::{Keys, Lookup};

/// What one build keeps between calls, so that a call for one key makes little more than its result.
pub(crate) struct LookupCache {
    /// Working memory of the caller that comes first.
    hits: Mutex<Hits>,
    getter: PyOnceLock<RowDicts>,
    dicts: SharedRecent<RowDicts>,
    /// The choices of columns that were used lately.
    lookups: SharedRecent<Remembered>,
}

/// Rows of some columns; None is all.
struct Remembered {
    columns: Option<Vec<String>>,
    lookup: Lookup,
    schema: PySchema,
}

impl Default for LookupCache {
    fn default() -> Self {
        let (hits, getter) = (Mutex::default(), PyOnceLock::new());
        Self { hits, getter, dicts: SharedRecent::default(), lookups: SharedRecent::default() }
    }
}

impl LookupCache {
    fn with_hits<T>(&self, f: impl FnOnce(&mut Hits) -> T) -> T {
        match self.hits.try_lock() {
            Ok(mut hits) => f(&mut hits),
            Err(_) => f(&mut Hits::default()),
        }
    }

    /// The row of each of the keys that are given.
    fn rows_of(&self, given: &Bound<'_, PyAny>, build: &PreparedBuild, keep: Keep) -> PyResult<Vec<u32>> {
        let (keys, cancel) = (keys(build, given)?, interruptible());
        let rows = || self.with_hits(|hits| build.raw_rows_of(&keys, keep, hits, &cancel));
        Ok(detach_if_long(given.py(), keys.rows, rows)?)
    }

    fn dicts(
        &self,
        py: Python<'_>,
        build: &Arc<PreparedBuild>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Arc<RowDicts>> {
        self.dicts.get_or_make(|dicts| dicts.columns == columns, || RowDicts::try_new(py, build, columns.clone()))
    }

    fn lookup(
        &self,
        py: Python<'_>,
        build: &Arc<PreparedBuild>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Arc<Remembered>> {
        let make = || {
            let positions = match &columns {
                None => (0..build.schema().fields().len()).collect(),
                Some(names) => {
                    let positions = Positions::new(build.schema(), "build");
                    names.iter().map(|name| positions.get(name)).collect::<Result<Vec<_>, _>>()?
                }
            };
            let lookup = Lookup::try_new(Arc::clone(build), &positions)?;
            let schema = PySchema::new(py, lookup.schema().clone())?;
            Ok(Remembered { columns: columns.clone(), lookup, schema })
        };
        self.lookups.get_or_make(|lookup| lookup.columns == columns, make)
    }
}

/// The row of one key as a dict, None where the key is absent, which one of another kind than the build's always is.
pub(super) fn get<'py>(
    key: &Bound<'py, PyAny>,
    build: &Arc<PreparedBuild>,
    cache: &LookupCache,
    keep: Keep,
    at: Option<&At<'_, 'py>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = key.py();
    check_choice(build, keep, at)?;
    let dicts = cache.getter.get_or_try_init(py, || RowDicts::try_new(py, build, None))?;
    let asked = asked(build, key, at, || possible_key(build, key))?;
    let Some((keys, values)) = asked else { return Ok(None) };
    let rows = cache.with_hits(|hits| match at.zip(values.as_ref()) {
        Some((at, values)) => build.raw_rows_as_of((&keys, values), &at.as_of, hits, &Cancel::default()),
        None => build.raw_rows_of(&keys, keep, hits, &Cancel::default()),
    })?;
    rows.first().filter(|&&row| row != NONE).map(|&row| dicts.one(py, row)).transpose()
}

/// One dict per key.
pub(super) fn lookup_rows<'py>(
    given: &Bound<'py, PyAny>,
    build: &Arc<PreparedBuild>,
    cache: &LookupCache,
    columns: Option<&Bound<'py, PyAny>>,
    default: Option<&Bound<'py, PyAny>>,
    keep: Keep,
) -> PyResult<Bound<'py, PyList>> {
    let py = given.py();
    build.check_keep(keep)?;
    let dicts = cache.dicts(py, build, columns_of(columns)?)?;
    let defaults = defaults(default, dicts.schema())?;
    let rows = cache.rows_of(given, build, keep)?;
    rows::lookup_rows(py, build, &dicts, &rows, &defaults)
}

/// The numbers of some columns as a matrix of numpy.
pub(super) fn lookup_numpy<'py>(
    given: &Bound<'py, PyAny>,
    build: &PreparedBuild,
    cache: &LookupCache,
    columns: &Bound<'py, PyAny>,
    keep: Keep,
    options: &MatrixOptions<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    build.check_keep(keep)?;
    let columns = columns_of(Some(columns))?.unwrap_or_default();
    let matrix = Matrix::try_new(build, &columns, options)?;
    matrix.fill(given.py(), &cache.rows_of(given, build, keep)?)
}

/// One row per key.
pub(super) fn lookup<'py>(
    given: &Bound<'py, PyAny>,
    build: &Arc<PreparedBuild>,
    cache: &LookupCache,
    columns: Option<&Bound<'py, PyAny>>,
    default: Option<&Bound<'py, PyAny>>,
    keep: Keep,
    at: Option<&At<'_, 'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    rows(given, build, cache, columns_of(columns)?, default, (keep, at))
}

/// One value per key, in the kind of the keys.
pub(super) fn map<'py>(
    given: &Bound<'py, PyAny>,
    build: &Arc<PreparedBuild>,
    cache: &LookupCache,
    column: &str,
    default: Option<&Bound<'py, PyAny>>,
    keep: Keep,
    at: Option<&At<'_, 'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = rows(given, build, cache, Some(vec![column.to_owned()]), default, (keep, at))?;
    values_like(given, rows)
}

fn rows<'py>(
    given: &Bound<'py, PyAny>,
    build: &Arc<PreparedBuild>,
    cache: &LookupCache,
    columns: Option<Vec<String>>,
    default: Option<&Bound<'py, PyAny>>,
    (keep, at): (Keep, Option<&At<'_, 'py>>),
) -> PyResult<Bound<'py, PyAny>> {
    let py = given.py();
    check_choice(build, keep, at)?;
    let remembered = cache.lookup(py, build, columns)?;
    let lookup = &remembered.lookup;
    let defaults = defaults(default, lookup.schema())?;
    let Some((keys, values)) = asked(build, given, at, || keys(build, given).map(Some))? else {
        return Err(Error::Internal("keys were asked for and none were read".to_owned()).into());
    };
    let (as_of, cancel) = (at.map(|at| &at.as_of), interruptible());
    let rows = detach_if_long(py, keys.rows, || {
        cache.with_hits(|hits| match as_of.zip(values.as_ref()) {
            Some((as_of, values)) => lookup.rows_as_of((&keys, values), as_of, &defaults, hits, &cancel),
            None => lookup.rows_or(&keys, keep, &defaults, hits, &cancel),
        })
    })?;
    remembered.schema.batch(py, &rows)
}

/// The keys as `read` reads them, and the value that is searched for beside each. Without key columns there is one for each
/// value. `None` where `read` gives none.
fn asked<'py>(
    build: &Arc<PreparedBuild>,
    given: &Bound<'py, PyAny>,
    at: Option<&At<'_, 'py>>,
    read: impl FnOnce() -> PyResult<Option<Keys>>,
) -> PyResult<Option<(Keys, Option<ArrayRef>)>> {
    if let Some(at) = at.filter(|_| build.keys().is_empty() && given.is_none()) {
        let values = at.values(build, None)?;
        return Ok(Some((Keys { rows: values.len(), columns: vec![], missing: None }, Some(values))));
    }
    let Some(keys) = read()? else { return Ok(None) };
    let values = at.map(|at| at.values(build, Some(keys.len()))).transpose()?;
    Ok(Some((keys, values)))
}

/// Refuses to choose among the rows of a key by nothing, or by two things.
fn check_choice(build: &PreparedBuild, keep: Keep, at: Option<&At<'_, '_>>) -> PyResult<()> {
    match at {
        None => Ok(build.check_keep(keep)?),
        Some(_) if keep != Keep::All => {
            Err(plan("keep= and asof= both choose among the rows of a key; give one of them"))
        }
        Some(_) => Ok(()),
    }
}

/// One key; `None` for one of another kind than the build's, which a mapping says to be absent.
fn possible_key(build: &PreparedBuild, key: &Bound<'_, PyAny>) -> PyResult<Option<Keys>> {
    match one_key(build, key) {
        Err(error) if is_plan_error(key.py(), &error) && !build.keys().is_empty() => Ok(None),
        keys => keys.map(Some),
    }
}

/// The KeyError of an absent key; its cause says so where the key is of another kind than the build's.
pub(super) fn key_error(build: &PreparedBuild, key: &Bound<'_, PyAny>) -> PyErr {
    let error = PyKeyError::new_err((key.clone().unbind(),));
    error.set_cause(key.py(), one_key(build, key).err());
    error
}

/// Whether one key is in the build.
pub(super) fn contains_one(key: &Bound<'_, PyAny>, build: &PreparedBuild, cache: &LookupCache) -> PyResult<bool> {
    let Some(keys) = possible_key(build, key)? else { return Ok(false) };
    Ok(cache.with_hits(|hits| build.contains(&keys, hits, &Cancel::default()))?.value(0))
}

/// Whether each key is in the build.
pub(super) fn contains<'py>(
    given: &Bound<'py, PyAny>,
    build: &PreparedBuild,
    cache: &LookupCache,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, keys, cancel) = (given.py(), keys(build, given)?, interruptible());
    let found = detach_if_long(py, keys.rows, || cache.with_hits(|hits| build.contains(&keys, hits, &cancel)))?;
    values_like(given, one_column(py, Arc::new(found))?)
}

/// The number of build rows of each key.
pub(super) fn count_matches<'py>(
    given: &Bound<'py, PyAny>,
    build: &PreparedBuild,
    cache: &LookupCache,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, keys, cancel) = (given.py(), keys(build, given)?, interruptible());
    let counts = detach_if_long(py, keys.rows, || cache.with_hits(|hits| build.count_matches(&keys, hits, &cancel)))?;
    values_like(given, one_column(py, Arc::new(counts))?)
}

type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Row numbers of the pairs of a join.
pub(super) fn probe_indices<'py>(
    given: &Bound<'py, PyAny>,
    build: &PreparedBuild,
    join_type: JoinType,
) -> PyResult<Pair<'py>> {
    let (py, keys, cancel, pool) = (given.py(), keys(build, given)?, interruptible(), PyMemoryPool::resolve(None));
    // Duplicates make many pairs of few keys.
    let rows = if build.is_unique() { keys.rows.max(build_driven_rows(build, join_type)) } else { usize::MAX };
    let (probe, found) = detach_if_long(py, rows, || build.probe_indices(keys, join_type, &pool, &cancel))?;
    Ok((array(py, Arc::new(probe))?, array(py, Arc::new(found))?))
}

fn build_driven_rows(build: &PreparedBuild, join_type: JoinType) -> usize {
    if join_type.is_build_driven() { build.num_rows() } else { 0 }
}

/// An array as a `pyarrow.Array`.
pub(super) fn array(py: Python<'_>, array: ArrayRef) -> PyResult<Bound<'_, PyAny>> {
    one_column(py, array)?.call_method1(intern!(py, "column"), (0,))
}

/// An array as the one column of a `pyarrow.RecordBatch`.
fn one_column(py: Python<'_>, array: ArrayRef) -> PyResult<Bound<'_, PyAny>> {
    static BOOLEAN: PyOnceLock<PySchema> = PyOnceLock::new();
    static UINT32: PyOnceLock<PySchema> = PyOnceLock::new();
    let new = || {
        let field = Field::new("", array.data_type().clone(), true);
        PySchema::new(py, Arc::new(Schema::new(vec![field])))
    };
    let made;
    let schema = match array.data_type() {
        DataType::Boolean => BOOLEAN.get_or_try_init(py, new)?,
        DataType::UInt32 => UINT32.get_or_try_init(py, new)?,
        _ => {
            made = new()?;
            &made
        }
    };
    let batch = RecordBatch::try_new(schema.arrow().clone(), vec![array]).map_err(Error::from)?;
    schema.batch(py, &batch)
}
