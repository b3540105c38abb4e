//! `prejoin.PreparedBuild` and `prejoin.prepare`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::config::PyConfig;
use super::pool::PyMemoryPool;
use super::{saved, source};
use crate::columns::{Bounds, Positions};
use crate::error::Error;
use crate::memory::{Pool, Reservation};
use crate::prepare::PrepareOptions;
use crate::prepare::{BuildSpec, Collector, Keep, Membership, PreparedBuild, Snapshot};
use crate::python::arguments::{count, join_type, keep_of, key_names, null_equalities, validate_of};
use crate::python::as_of::At;
use crate::python::attached::JoinCache;
use crate::python::errors::{guarded, type_error};
use crate::python::foreign_words::{Callee, refuse_unknown};
use crate::python::interchange::{Columns, PySchema, Source, schema_of};
use crate::python::lookup;
use crate::python::lookup::LookupCache;
use crate::python::matrix::MatrixOptions;
use crate::python::rows::PlanCache;
use crate::python::signals::{detach_if_long, interruptible};
use crate::python::values::keys::columns_of;

/// The build side of a hash join, prepared once: rows, index and memory charge.
///
/// It never changes, and any number of joins and threads probe it at once. `prepare`, `open` and
/// `HashJoin.prepare_build` make it. When the last join, reader or table that uses it is gone, its memory is freed
/// and its charge ends.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
///     >>> users.num_rows, users.keys, users.index_kind
///     (2, ['id'], 'dense')
#[pyclass(name = "PreparedBuild", module = "prejoin", frozen, mapping, weakref)]
pub(crate) struct PyPreparedBuild {
    pub(crate) build: Arc<PreparedBuild>,
    /// Joins attached to this build by `prejoin.join`.
    pub(crate) joins: JoinCache,
    /// Joins of rows that are dicts.
    pub(crate) row_joins: PlanCache,
    lookups: LookupCache,
    /// Which snapshot of a table this handle stands for, where somebody said so after the build was made.
    snapshot: OnceLock<Snapshot>,
}

impl PyPreparedBuild {
    pub(crate) fn new(build: Arc<PreparedBuild>) -> Self {
        let (joins, row_joins, lookups) = (JoinCache::default(), PlanCache::default(), LookupCache::default());
        Self { build, joins, row_joins, lookups, snapshot: OnceLock::new() }
    }

    fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.get().or(self.build.snapshot())
    }

    fn key_names(&self) -> Vec<&str> {
        self.build.keys().iter().map(|&key| self.build.schema().field(key).name().as_str()).collect()
    }
}

#[pymethods]
impl PyPreparedBuild {
    /// The pyarrow.Schema of the build.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| Ok(PySchema::new(py, self.build.schema().clone())?.object(py).clone()))
    }

    /// Names of the key columns, in key order.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.key_names().into_iter().map(str::to_owned).collect()
    }

    /// Whether null matches null, for each key.
    #[getter]
    fn null_equal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.build.null_equality().iter().map(|equality| equality.nulls_equal()))
    }

    /// Number of build rows, duplicates and null keys included.
    #[getter]
    fn num_rows(&self) -> usize {
        self.build.num_rows()
    }

    /// Number of distinct keys that a probe can match.
    #[getter]
    fn num_keys(&self) -> usize {
        self.build.num_keys()
    }

    /// True if no key that a probe can match is in two rows.
    #[getter]
    fn is_unique(&self) -> bool {
        self.build.is_unique()
    }

    /// Name of the column that the rows of each key are ordered by; None for build order.
    #[getter]
    fn order_by(&self) -> Option<&str> {
        self.build.spec().order().map(|order| self.build.schema().field(order).name().as_str())
    }

    /// The kind of index: "dense", "hashed", "bytes" or "rows"; "single" for a build without key columns.
    #[getter]
    fn index_kind(&self) -> String {
        self.build.index_kind().to_string()
    }

    /// Bytes charged to the pool for as long as the build lives.
    #[getter]
    fn reserved_bytes(&self) -> usize {
        self.build.reserved_bytes()
    }

    /// Least and greatest value of each key as two pyarrow scalars.
    ///
    /// None for a key column without values, and for types without an order, such as text.
    #[getter]
    fn bounds<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Pair<'py>>>> {
        guarded(|| {
            let one = |bounds: &Bounds| Ok((scalar(py, bounds.min())?, scalar(py, bounds.max())?));
            self.build.bounds().iter().map(|bounds| bounds.as_ref().map(one).transpose()).collect()
        })
    }

    /// How a filter finds out which keys there are.
    ///
    /// "in_list" if the build is small and has a list of them, else "map": they are looked up in the index.
    #[getter]
    fn membership(&self) -> &'static str {
        match self.build.membership() {
            Membership::InList(_) => "in_list",
            Membership::Map => "map",
        }
    }

    /// Bytes of the build, by part and by who shares them.
    ///
    /// Returns:
    ///     A dict of byte counts: rows, index (from keys to groups of equal keys), groups (from groups to rows);
    ///     private (of this process alone), mapped (of a file, shared with all processes that map it); reserved
    ///     (charged to the pool).
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let memory = self.build.memory();
        let parts = PyDict::new(py);
        parts.set_item("rows", memory.rows)?;
        parts.set_item("index", memory.index)?;
        parts.set_item("groups", memory.groups)?;
        parts.set_item("private", memory.private)?;
        parts.set_item("mapped", memory.mapped)?;
        parts.set_item("reserved", self.build.reserved_bytes())?;
        Ok(parts)
    }

    /// Identity of the contents: 32 hexadecimal digits.
    ///
    /// A hash of the rows in any order, the schema, the keys and their null equality. It is computed once, in one pass
    /// over the rows. It finds accidents; somebody who wants to can construct two builds with the same fingerprint.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        guarded(|| {
            let cancel = interruptible();
            let fingerprint = detach_if_long(py, self.build.num_rows(), || self.build.fingerprint_with(&cancel))?;
            Ok(saved::hex(fingerprint))
        })
    }

    /// The name under which a cache holds the build, or the file that it was opened from; else None.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.snapshot().map(|snapshot| snapshot.name.as_str())
    }

    /// The version of the table that the build holds, as its loader or publisher named it; else None.
    #[getter]
    fn version<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guarded(|| {
            let version = self.snapshot().and_then(|snapshot| snapshot.version.as_deref());
            version.map(|version| saved::version(py, version)).transpose()
        })
    }

    /// When the build was loaded, as a datetime in UTC, where a cache loaded it; else None.
    #[getter]
    fn loaded_at(&self) -> Option<SystemTime> {
        self.snapshot().map(|snapshot| snapshot.loaded_at)
    }

    /// This handle as the one of that snapshot; another handle on the same build where it already stands for one.
    fn _label(
        slf: Bound<'_, Self>,
        name: String,
        version: Option<String>,
        loaded_at: SystemTime,
    ) -> PyResult<Bound<'_, Self>> {
        let snapshot = Snapshot { name, version, loaded_at };
        let this = slf.get();
        if this.build.snapshot().is_none() && *this.snapshot.get_or_init(|| snapshot.clone()) == snapshot
            || this.snapshot() == Some(&snapshot)
        {
            return Ok(slf);
        }
        let other = Self::new(Arc::clone(&this.build));
        let _ = other.snapshot.set(snapshot);
        Bound::new(slf.py(), other)
    }

    /// The file that the build was opened from, as an absolute path; None for a build in memory.
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.build.path().map(Path::as_os_str)
    }

    /// Saves the build as one file that `prejoin.open` maps; the same batches give the same file, byte for byte.
    ///
    /// The file also says name, version and loaded_at, where the handle has them.
    ///
    /// The file is written beside `path`, checked, brought to the disk, and renamed: a crash at any point leaves what
    /// was there before, or the new file. A process that has the old file open keeps it.
    ///
    /// Args:
    ///     path: The name of the file.
    ///     mode: Permission bits of the file. By default those of the file that is replaced, and for a new one 0o600,
    ///         which lets only the user read it.
    ///
    /// Raises:
    ///     NotSupported: For types that Arrow IPC does not carry.
    ///     OSError: Of the file system, in its subclasses. Nothing is left behind after an error.
    ///
    /// Example:
    ///     >>> import os, tempfile, prejoin, pyarrow as pa
    ///     >>> path = os.path.join(tempfile.mkdtemp(), "users.prejoin")
    ///     >>> prejoin.prepare(pa.table({"id": [1, 2]}), on="id").save(path)
    ///     >>> prejoin.open(path).num_rows
    ///     2
    #[pyo3(signature = (path, *, mode=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, mode: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guarded(|| saved::save(py, &self.build, self.snapshot(), &path, mode))
    }

    /// Copies the build into memory that other processes of this host map.
    ///
    /// The copy is charged to the build's pool for as long as the handle lives.
    ///
    /// Returns:
    ///     A handle that can be pickled.
    ///
    /// Raises:
    ///     NotSupported: For types that Arrow IPC does not carry.
    ///     ResourcesExhausted: If the pool refuses.
    ///     OSError: Of the system.
    fn share(&self, py: Python<'_>) -> PyResult<saved::PySharedBuild> {
        guarded(|| saved::PySharedBuild::new(py, &self.build, self.snapshot()))
    }

    /// An opened build travels as its path and fingerprint.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        guarded(|| saved::reduce(py, &self.build))
    }

    /// The build rows in build order.
    ///
    /// Returns:
    ///     A pyarrow.Table that shares the build's memory and keeps the build and its charge alive.
    fn to_table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let columns: Vec<usize> = (0..self.build.schema().fields().len()).collect();
            let rows = self.build.shared_rows(&columns)?;
            PySchema::new(py, rows.schema())?.table(py, &[rows])
        })
    }

    /// The build rows as a stream, by the Arrow PyCapsule interface: a build is a table for whoever reads tables.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.to_table(py)?.call_method1(intern!(py, "__arrow_c_stream__"), (requested_schema,))
    }

    /// The schema of the build rows, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.schema(py)?.call_method0(intern!(py, "__arrow_c_schema__"))
    }

    /// The row of one key as a dict of Python values.
    ///
    /// Args:
    ///     key: A value, or a tuple of one value for each key column. Values match as keys of a join do. As in any
    ///         mapping, what cannot be a key of this build is absent: an int that the type of the key cannot hold, text
    ///         if keys are ints.
    ///     default: What is returned if the key is absent.
    ///     keep: "first" or "last" row of a key, for builds in which keys repeat.
    ///     asof: For a build prepared with `order_by`: the value that is looked for among the rows of the key. It
    ///         chooses one row of each key by `strategy`, `tolerance` and `allow_exact_matches`. A build without key
    ///         columns takes None as key.
    ///     strategy: "backward", "forward" or "nearest", as for `join_asof`.
    ///     tolerance: The largest distance of the row that `asof` chooses.
    ///     allow_exact_matches: Whether `asof` takes rows at the value itself.
    ///
    /// Returns:
    ///     {column name: value}, or `default`.
    ///
    /// Raises:
    ///     PlanError: If keys repeat and `keep` is "all".
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
    ///     >>> users.get(2), users.get(3), users[1], 3 in users
    ///     ({'id': 2, 'name': 'bob'}, None, {'id': 1, 'name': 'ada'}, False)
    #[pyo3(signature = (key, default=None, *, keep="all", asof=None, strategy="backward",
                        tolerance=None, allow_exact_matches=true))]
    #[allow(clippy::too_many_arguments)] // the signature of the Python function
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        keep: &str,
        asof: Option<&Bound<'py, PyAny>>,
        strategy: &str,
        tolerance: Option<&Bound<'py, PyAny>>,
        allow_exact_matches: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        guarded(|| {
            let at = At::of(asof, strategy, tolerance, allow_exact_matches)?;
            let row = lookup::get(key, &self.build, &self.lookups, keep_of(keep)?, at.as_ref())?;
            Ok(row.map(Bound::into_any).or(default))
        })
    }

    /// The row of one key as a dict, as of `get`; KeyError where the key is absent.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let row = lookup::get(key, &self.build, &self.lookups, Keep::All, None)?;
            row.ok_or_else(|| lookup::key_error(&self.build, key))
        })
    }

    /// Whether one key is in the build.
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        guarded(|| lookup::contains_one(key, &self.build, &self.lookups))
    }

    /// One row for each key, in the order of the keys.
    ///
    /// Args:
    ///     keys: A list or another iterable of keys (of tuples if there are several key columns), an array or series, a
    ///         mapping of key names to lists or arrays, or a table with the key columns. Columns of a table are found
    ///         by name, or by position if it has none of the names.
    ///     columns: Names of build columns; all by default.
    ///     default: The values of a key that is absent: {column: value}, or one value for all columns. A null of a key
    ///         that is in the build stays null.
    ///     keep: "first" or "last" row of a key, for builds in which keys repeat.
    ///     asof: For a build prepared with `order_by`: what is looked for among the rows of each key, one value for
    ///         each as a list or an array, or one for all. It chooses one row of each key by `strategy`, `tolerance`
    ///         and `allow_exact_matches`. A build without key columns takes None as keys.
    ///     strategy: "backward", "forward" or "nearest", as for `join_asof`.
    ///     tolerance: The largest distance of the row that `asof` chooses.
    ///     allow_exact_matches: Whether `asof` takes rows at the value itself.
    ///
    /// Returns:
    ///     A pyarrow.RecordBatch of as many rows as keys, with null or the default for keys that are absent.
    ///
    /// Raises:
    ///     PlanError: For keys of another type, a default that the type of its column does not hold exactly, and if
    ///         keys repeat and `keep` is "all".
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
    ///     >>> users.lookup([2, 3], columns=["name"]).to_pylist()
    ///     [{'name': 'bob'}, {'name': None}]
    #[pyo3(signature = (keys, columns=None, *, default=None, keep="all", asof=None, strategy="backward",
                        tolerance=None, allow_exact_matches=true))]
    #[allow(clippy::too_many_arguments)] // the signature of the Python function
    fn lookup<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        columns: Option<&Bound<'py, PyAny>>,
        default: Option<&Bound<'py, PyAny>>,
        keep: &str,
        asof: Option<&Bound<'py, PyAny>>,
        strategy: &str,
        tolerance: Option<&Bound<'py, PyAny>>,
        allow_exact_matches: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let at = At::of(asof, strategy, tolerance, allow_exact_matches)?;
            lookup::lookup(keys, &self.build, &self.lookups, columns, default, keep_of(keep)?, at.as_ref())
        })
    }

    /// One row per key, in order, as a list of dicts of Python values.
    ///
    /// Values are those of `lookup(..).to_pylist()`, made straight from the columns.
    ///
    /// Args:
    ///     keys: As for `lookup`.
    ///     columns: Names of build columns, which the dicts have in this order; all by default.
    ///     default: What stands where the key is absent: {column: value}, or one value for all columns, by default
    ///         None.
    ///     keep: "first" or "last" row of a key, where some key has several.
    ///
    /// Returns:
    ///     A list of one dict per key; each is the caller's to change.
    ///
    /// Raises:
    ///     PlanError: As for `lookup`, and where the build has a name twice.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
    ///     >>> users.lookup_rows([2, 3], ["name"])
    ///     [{'name': 'bob'}, {'name': None}]
    #[pyo3(signature = (keys, columns=None, default=None, *, keep="all"))]
    fn lookup_rows<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        columns: Option<&Bound<'py, PyAny>>,
        default: Option<&Bound<'py, PyAny>>,
        keep: &str,
    ) -> PyResult<Bound<'py, PyList>> {
        guarded(|| lookup::lookup_rows(keys, &self.build, &self.lookups, columns, default, keep_of(keep)?))
    }

    /// The numbers of some columns for each key, in order, as one matrix of numpy with a row per key.
    ///
    /// The values are copied straight into the matrix, in C order. Booleans are 0 and 1. numpy is imported by the call.
    ///
    /// Args:
    ///     keys: As for `lookup`.
    ///     columns: Names of build columns that hold numbers or Booleans.
    ///     default: What stands where the key is absent or its value is null: {column: value}, or one value for all
    ///         columns. NaN by default; integers have none, so that they need a default where one is used.
    ///     dtype: "float32", "float64", "int32" or "int64", or what numpy.dtype takes for them. By default that of
    ///         `out`, else float32 where it holds every value of the columns' types, else float64. Only columns of
    ///         integers and Booleans become integers.
    ///     out: The matrix to fill: of as many rows and columns, writable, contiguous in C order.
    ///     keep: "first" or "last" row of a key, where some key has several.
    ///
    /// Returns:
    ///     A numpy.ndarray of shape (number of keys, number of columns), or `out`.
    ///
    /// Raises:
    ///     PlanError: As for `lookup`, for columns that hold no numbers, and for another dtype or shape.
    ///     ExecutionError: For an integer that the dtype does not hold, and where a default is needed and missing.
    ///     TypeError: If `out` is not a numpy array.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> shops = prejoin.prepare(pa.table({"id": [1, 2], "rank": [7, 8], "open": [True, False]}), on="id")
    ///     >>> shops.lookup_numpy([2, 9, 1], ["rank", "open"], default={"rank": -1}).tolist()
    ///     [[8.0, 0.0], [-1.0, nan], [7.0, 1.0]]
    #[pyo3(signature = (keys, columns, *, default=None, dtype=None, out=None, keep="all"))]
    #[allow(clippy::too_many_arguments)] // the signature of the Python function
    fn lookup_numpy<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        columns: &Bound<'py, PyAny>,
        default: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        keep: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = MatrixOptions { default, dtype, out };
        guarded(|| lookup::lookup_numpy(keys, &self.build, &self.lookups, columns, keep_of(keep)?, &options))
    }

    /// The value of one column for each key, in the order of the keys.
    ///
    /// Args:
    ///     keys: As for `lookup`.
    ///     column: The name of a build column.
    ///     default: The value of a key that is absent. A null of a key that is in the build stays null.
    ///     keep: "first" or "last" row of a key, for builds in which keys repeat.
    ///     asof: As for `lookup`.
    ///     strategy: As for `lookup`.
    ///     tolerance: As for `lookup`.
    ///     allow_exact_matches: As for `lookup`.
    ///
    /// Returns:
    ///     For a pandas or polars series, or a pandas index, one of the same library with its name and index: in
    ///     pandas' own types, where integers and Booleans with nulls are "Int64" and "boolean". For other keys a
    ///     pyarrow.Array. Keys that are absent have null or the default.
    ///
    /// Raises:
    ///     PlanError: For an unknown column, keys of another type, a default that the column's type does not hold
    ///         exactly, and if keys repeat and `keep` is "all".
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
    ///     >>> users.map([2, 3, 1], "name", "nobody").to_pylist()
    ///     ['bob', 'nobody', 'ada']
    #[pyo3(signature = (keys, column, default=None, *, keep="all", asof=None, strategy="backward",
                        tolerance=None, allow_exact_matches=true))]
    #[allow(clippy::too_many_arguments)] // the signature of the Python function
    fn map<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        column: &str,
        default: Option<&Bound<'py, PyAny>>,
        keep: &str,
        asof: Option<&Bound<'py, PyAny>>,
        strategy: &str,
        tolerance: Option<&Bound<'py, PyAny>>,
        allow_exact_matches: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let at = At::of(asof, strategy, tolerance, allow_exact_matches)?;
            lookup::map(keys, &self.build, &self.lookups, column, default, keep_of(keep)?, at.as_ref())
        })
    }

    /// Whether each key is in the build.
    ///
    /// Args:
    ///     keys: As for `lookup`.
    ///
    /// Returns:
    ///     Booleans without nulls, one for each key: a series or index as of `map`, else a pyarrow.BooleanArray.
    ///
    /// Raises:
    ///     PlanError: For keys of another type.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> prejoin.prepare(pa.table({"id": [1, 2]}), on="id").contains([2, 3]).to_pylist()
    ///     [True, False]
    fn contains<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| lookup::contains(keys, &self.build, &self.lookups))
    }

    /// The number of build rows of each key.
    ///
    /// Their sum is the exact number of rows of an inner join, before it is made.
    ///
    /// Args:
    ///     keys: As for `lookup`.
    ///
    /// Returns:
    ///     32-bit numbers without nulls, one for each key: a series or index as of `map`, else a pyarrow.UInt32Array.
    ///
    /// Raises:
    ///     PlanError: For keys of another type.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> prejoin.prepare(pa.table({"id": [1, 2, 2]}), on="id").count_matches([2, 3]).to_pylist()
    ///     [2, 0]
    fn count_matches<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| lookup::count_matches(keys, &self.build, &self.lookups))
    }

    /// The keys that are in several rows, and how many rows each has.
    ///
    /// Keys that nothing can match, those with a null without `null_equal`, are left out.
    ///
    /// Args:
    ///     limit: The largest number of keys; all by default.
    ///
    /// Returns:
    ///     A pyarrow.Table of the key columns and a column "count" ("count_" if a key column has that name). Keys with
    ///     most rows come first; of keys with equally many rows, the one of the earliest row.
    ///
    /// Raises:
    ///     PlanError: For a limit that is negative.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> prejoin.prepare(pa.table({"id": [1, 2, 2, 3, 3, 3]}), on="id").counts().to_pylist()
    ///     [{'id': 3, 'count': 3}, {'id': 2, 'count': 2}]
    #[pyo3(signature = (*, limit=None))]
    fn counts<'py>(&self, py: Python<'py>, limit: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (limit, pool, cancel) = (count("limit", limit)?, PyMemoryPool::resolve(None), interruptible());
            let keys = self.build.num_keys();
            let counted = detach_if_long(py, keys, || self.build.repeated_keys(limit, &pool, &cancel))?;
            PySchema::new(py, counted.schema())?.table(py, &[counted])
        })
    }

    /// Joins `probe` to this build: `prejoin.join(probe, build, ...)` with the same arguments, results and errors.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
    ///     >>> users.join(pa.record_batch({"user": [2, 3]}), on={"user": "id"}, how="left").to_pylist()
    ///     [{'user': 2, 'name': 'bob'}, {'user': 3, 'name': None}]
    #[pyo3(signature = (probe, *positional, **options),
           text_signature = "($self, probe, on=None, how='inner', *, where=None, select=None, prefix='', \
                             suffix='_right', default=None, coalesce=None, limit=None, batch_size=None, validate=None, \
                             dtype_backend=None, **unknown)")]
    fn join<'py>(
        slf: &Bound<'py, Self>,
        probe: &Bound<'py, PyAny>,
        positional: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        // By its name: the function is made of builds, as this class is not of joins.
        let join = py.import(intern!(py, "prejoin"))?.getattr(intern!(py, "join"))?;
        let first = PyTuple::new(py, [probe, slf.as_any()])?;
        join.call(first.as_sequence().concat(positional.as_sequence())?.to_tuple()?, options)
    }

    /// The pairs of a join as row numbers, in the order of `join`.
    ///
    /// Args:
    ///     keys: The keys of the probe side, as for `lookup`.
    ///     how: "inner", "left", "right" or "full".
    ///
    /// Returns:
    ///     (probe rows, build rows): two pyarrow.UInt32Arrays of one length, with null for a row without a partner.
    ///     Build rows are positions in `to_table()`.
    ///
    /// Raises:
    ///     PlanError: For keys of another type, and for another word for `how`.
    ///
    /// Example:
    ///     >>> import prejoin, pyarrow as pa
    ///     >>> users = prejoin.prepare(pa.table({"id": [1, 2, 2]}), on="id")
    ///     >>> [rows.to_pylist() for rows in users.probe_indices([2, 3], how="left")]
    ///     [[0, 0, 1], [1, 2, None]]
    #[pyo3(signature = (keys, how="inner"))]
    fn probe_indices<'py>(&self, keys: &Bound<'py, PyAny>, how: &str) -> PyResult<Pair<'py>> {
        guarded(|| lookup::probe_indices(keys, &self.build, join_type(how)?))
    }

    fn __len__(&self) -> usize {
        self.build.num_rows()
    }

    /// Never shows table contents.
    fn __repr__(&self) -> String {
        let columns: Vec<String> =
            self.build.schema().fields().iter().map(|f| format!("{}: {}", f.name(), f.data_type())).collect();
        format!(
            "PreparedBuild({}; keys={:?}{}, rows={}, distinct_keys={}, index={}, reserved={} bytes)",
            columns.join(", "),
            self.key_names(),
            self.order_by().map_or_else(String::new, |order| format!(", order_by={order:?}")),
            self.build.num_rows(),
            self.build.num_keys(),
            self.build.index_kind(),
            self.build.reserved_bytes()
        )
    }
}

type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The one row of `array`.
fn scalar<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let schema = Arc::new(Schema::new(vec![Field::new("value", array.data_type().clone(), true)]));
    let row = RecordBatch::try_new(schema.clone(), vec![array.clone()]).map_err(Error::from)?;
    PySchema::new(py, schema)?.batch(py, &row)?.call_method1("column", (0,))?.get_item(0)
}

/// Prepares `source` as a build: reads it once and indexes it by the key columns `on`.
///
/// Args:
///     source: Any rows: a table, frame, batch, list or iterator of batches, reader, dataset, file scan, and
///         whatever else has the Arrow PyCapsule interface; a list or another iterable of dicts, one for each row,
///         whose types pyarrow finds in all of their values; or the path of a Parquet, Arrow IPC or CSV file (str or
///         os.PathLike, also a pattern such as "planes-*.parquet"), read as the command line reads it.
///     on: The names of the key columns, one or several.
///     schema: Names and types of the columns. An iterator that may be empty needs it; others are checked against
///         it, and dicts are read in its types.
///     columns: The columns that are kept beside the keys and `order_by`, in the order of the source; all by
///         default. Others are not read.
///     null_equal: Whether null matches null; one bool, or one for each key. By default null matches nothing.
///     order_by: A column by which the rows of each key are ordered, for `join_asof`: integers, floats, decimals,
///         dates, times, timestamps, durations, text or bytes. Equal values stay in build order; rows whose value
///         is null or NaN come first, and no search finds them. `on` may be [] then. `keep`, also that of lookups,
///         is by this order.
///     keep: "all" rows of a key, or only its "first" or "last"; the others are dropped before rows are counted.
///     validate: "m:1" or "1:1" refuses rows that repeat a key, after `keep`; "m:m" and "1:m" refuse nothing.
///     pool: Pays for the build for as long as it lives. By default one unlimited pool per process.
///     config: Choices about index and filters.
///
/// Returns:
///     The finished build.
///
/// Raises:
///     PlanError: For unknown columns and unsupported types, before the source is asked for rows; for dicts whose
///         values of one name have no one type; and for keys that `validate` refuses.
///     ExecutionError: For a file that cannot be read as what it is.
///     OSError: For a file that is not there.
///     ResourcesExhausted: If the pool refuses. After an error the pool is as it was before.
///     TypeError: For an object that gives no rows.
///     Exception: What the source raises, unchanged.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> users = prejoin.prepare(pa.table({"id": [1, 2, 2], "name": ["ada", "bob", "bea"]}), on="id")
///     >>> users.num_rows, users.num_keys, users.is_unique
///     (3, 2, False)
///     >>> prejoin.prepare([{"id": 1, "name": "ada"}, {"id": 2}], on="id", validate="m:1").get(2)
///     {'id': 2, 'name': None}
#[pyfunction]
#[pyo3(signature = (source, on=None, *, schema=None, columns=None, null_equal=None, keep="all", order_by=None,
                    validate=None, pool=None, config=None, **unknown),
       text_signature = "(source, on, *, schema=None, columns=None, null_equal=None, keep='all', order_by=None, \
                         validate=None, pool=None, config=None)")]
#[allow(clippy::too_many_arguments)] // the signature of the Python function
pub(crate) fn prepare(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    on: Option<&Bound<'_, PyAny>>,
    schema: Option<&Bound<'_, PyAny>>,
    columns: Option<&Bound<'_, PyAny>>,
    null_equal: Option<&Bound<'_, PyAny>>,
    keep: &str,
    order_by: Option<&str>,
    validate: Option<&str>,
    pool: Option<&Bound<'_, PyMemoryPool>>,
    config: Option<&Bound<'_, PyConfig>>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyPreparedBuild> {
    guarded(|| {
        refuse_unknown(Callee::Prepare, unknown)?;
        let Some(on) = on else {
            return Err(type_error("prepare() missing 1 required positional argument: 'on', the key columns"));
        };
        let names = key_names(on)?;
        let null_equality = null_equalities(null_equal, names.len())?;
        let (keep, validate, columns) = (keep_of(keep)?, validate_of(validate)?, columns_of(columns)?);
        let schema = schema.map(schema_of).transpose()?;
        // The columns that are kept whatever was chosen.
        let needed: Vec<String> = names.iter().cloned().chain(order_by.map(str::to_owned)).collect();
        let mut source = match is_path(source)? {
            true => source::open(&rows_of_file(source, &needed, columns.as_deref())?, schema)?,
            false => source::open(source, schema)?,
        };
        let mut kept = source.schema().clone();
        if let Some(columns) = &columns {
            let positions = Positions::new(source.schema(), "build");
            let wanted = needed.iter().chain(columns).map(|name| positions.get(name));
            let wanted: BTreeSet<usize> = wanted.collect::<Result<_, _>>()?;
            let chosen = Columns::try_new(source.schema(), wanted.into_iter().collect())?;
            kept = chosen.schema().clone();
            source.select(Arc::new(chosen));
        }
        let spec = match order_by {
            Some(order) => BuildSpec::ordered_by_name(kept, &names, null_equality, order)?,
            None => BuildSpec::by_name_each(kept, &names, null_equality)?,
        };
        let pool = PyMemoryPool::resolve(pool);
        let collector = Collector::new(spec, &pool, config_of(config), interruptible()).with_keep(keep);
        let build = collect(py, collector, source, &pool)?;
        validate.check_build(&build)?;
        Ok(PyPreparedBuild::new(build))
    })
}

/// True for the name of a file.
fn is_path(source: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(source.is_instance_of::<PyString>() || source.hasattr(intern!(source.py(), "__fspath__"))?)
}

/// The rows of a file, in an object that gives them.
fn rows_of_file<'py>(
    path: &Bound<'py, PyAny>,
    keys: &[String],
    columns: Option<&[String]>,
) -> PyResult<Bound<'py, PyAny>> {
    let reader = path.py().import(intern!(path.py(), "prejoin.files.source"))?;
    reader.call_method1(intern!(path.py(), "open_rows"), (path, keys, columns))
}

/// Feeds `collector`. Pulling stays attached to Python, which is where most sources live; the work is done detached.
pub(crate) fn collect(
    py: Python<'_>,
    mut collector: Collector,
    mut source: Source,
    pool: &Arc<dyn Pool>,
) -> PyResult<Arc<PreparedBuild>> {
    let mut rows = 0_usize;
    loop {
        let mut copies = Reservation::new(pool, "alignment copy");
        match source.next_attached(py, Some(&mut copies))? {
            Some(imported) => {
                rows = rows.saturating_add(imported.batch.num_rows());
                collector.push_foreign(imported.batch, imported.extents)?;
            }
            None => break,
        }
    }
    drop(source);
    Ok(detach_if_long(py, rows, || collector.finish())?)
}

pub(crate) fn config_of(config: Option<&Bound<'_, PyConfig>>) -> PrepareOptions {
    config.map(|config| config.get().config.clone()).unwrap_or_default()
}
