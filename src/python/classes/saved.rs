//! Builds in files and in shared memory: `prejoin.open`, `prejoin.inspect`, `prejoin.SharedBuild`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::pool::PyMemoryPool;
use super::prepared::PyPreparedBuild;
use crate::error::Error;
use crate::file::{OpenOptions, SaveOptions, SavedInfo, SharedBuild};
use crate::prepare::{PreparedBuild, Snapshot};
use crate::python::arguments::count;
use crate::python::errors::{guarded, plan};
use crate::python::interchange::PySchema;
use crate::python::signals::interruptible;

/// Maps a saved build: nothing is parsed, copied or rebuilt, and all processes of a host share one copy of it.
///
/// A mapped file must stay as it is while the build is used. `cp` over it, or whatever else writes to it or cuts it
/// in place, changes memory in use: joins give wrong rows, or SIGBUS ends the process. Replace the file instead:
/// `prejoin.open(new).save(path)`, or `mv` within one file system. If others may write to it, open it with
/// `memory=True`.
///
/// An opened build is pickled as its path and fingerprint, and is opened again where it is unpickled.
///
/// Args:
///     path: The name of the file.
///     verify: Check all sums and every offset, group, row number and string at once, at most 0.5 ms per MiB.
///         Without it opening takes microseconds: the index is read with bounds checks only, each column is checked
///         when it is first used.
///     pool: Pays for the mapped bytes, once per process however often the file is opened with it. By default no
///         pool does.
///     memory: Copy the file into memory of this process, charged to the pool like a build that was prepared.
///         Nothing that happens to the file later can harm it, and nothing is shared.
///
/// Returns:
///     The build.
///
/// Raises:
///     ExecutionError: For a damaged file, and for one of another kind.
///     NotSupported: For a file of another version.
///     ResourcesExhausted: If the pool refuses.
///     OSError: Of the file system, in its subclasses such as FileNotFoundError.
///
/// Example:
///     >>> import os, tempfile, prejoin, pyarrow as pa
///     >>> path = os.path.join(tempfile.mkdtemp(), "users.prejoin")
///     >>> prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id").save(path)
///     >>> users = prejoin.open(path)
///     >>> prejoin.join(pa.table({"id": [2]}), users)["name"].to_pylist()
///     ['bob']
#[pyfunction]
#[pyo3(signature = (path, *, verify=true, pool=None, memory=false))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    verify: bool,
    pool: Option<&Bound<'_, PyMemoryPool>>,
    memory: bool,
) -> PyResult<PyPreparedBuild> {
    guarded(|| {
        let options = options(verify, pool, memory);
        Ok(PyPreparedBuild::new(py.detach(|| PreparedBuild::open(path, &options))?))
    })
}

/// What the header of a saved build says. The rest of the file is neither read nor checked.
///
/// Args:
///     path: The name of the file.
///
/// Returns:
///     A dict: schema, keys, null_equal, num_rows, num_keys, duplicates (rows whose key a row before them has),
///     index_kind, membership, bytes (by part, and of the file), rows_at (offset and length in bytes of the Arrow
///     IPC file in it), fingerprint, name, version and loaded_at (of the snapshot that it holds, None where nobody
///     said), created (when the file was written), prejoin_version, format_version.
///
/// Raises:
///     ExecutionError: For a damaged header, and for a file of another kind.
///     NotSupported: For a file of another version.
///     OSError: Of the file system, in its subclasses such as FileNotFoundError.
///
/// Example:
///     >>> import os, tempfile, prejoin, pyarrow as pa
///     >>> path = os.path.join(tempfile.mkdtemp(), "users.prejoin")
///     >>> prejoin.prepare(pa.table({"id": [1, 2, 2]}), on="id").save(path)
///     >>> header = prejoin.inspect(path)
///     >>> header["keys"], header["num_rows"], header["duplicates"]
///     (['id'], 3, 1)
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    guarded(|| {
        let info = SavedInfo::read(path)?;
        let schema = info.spec.schema();
        let names: Vec<&str> = info.spec.keys().iter().map(|&key| schema.field(key).name().as_str()).collect();
        let null_equal = info.spec.null_equality().iter().map(|equality| equality.nulls_equal());
        let bytes = PyDict::new(py);
        bytes.set_item("rows", info.rows.end - info.rows.start)?;
        bytes.set_item("index", info.index_bytes)?;
        bytes.set_item("groups", info.groups_bytes)?;
        bytes.set_item("file", info.file_bytes)?;
        let dict = PyDict::new(py);
        dict.set_item("schema", PySchema::new(py, Arc::clone(schema))?.object(py))?;
        dict.set_item("keys", names)?;
        dict.set_item("null_equal", PyTuple::new(py, null_equal.collect::<Vec<_>>())?)?;
        dict.set_item("num_rows", info.num_rows)?;
        dict.set_item("num_keys", info.num_keys)?;
        dict.set_item("duplicates", info.duplicates)?;
        dict.set_item("index_kind", info.index_kind.to_string())?;
        dict.set_item("membership", if info.in_list { "in_list" } else { "map" })?;
        dict.set_item("bytes", bytes)?;
        dict.set_item("rows_at", (info.rows.start, info.rows.end - info.rows.start))?;
        dict.set_item("fingerprint", hex(info.fingerprint))?;
        let snapshot = info.snapshot.as_ref();
        let version = snapshot.and_then(|snapshot| snapshot.version.as_deref());
        dict.set_item("name", snapshot.map(|snapshot| snapshot.name.as_str()))?;
        dict.set_item("version", version.map(|text| self::version(py, text)).transpose()?)?;
        dict.set_item("loaded_at", snapshot.map(|snapshot| snapshot.loaded_at))?;
        dict.set_item("created", info.created)?;
        dict.set_item("prejoin_version", info.crate_version)?;
        dict.set_item("format_version", info.format_version)?;
        Ok(dict)
    })
}

/// A build in memory that other processes of this host map. `PreparedBuild.share` makes it; it can be pickled.
///
/// On Linux it is sealed memory without a name. The kernel frees it with the last handle and the last build that
/// was opened, also when processes are killed; it can be received as long as the sender lives. Elsewhere it is a
/// temporary file, removed with the first handle.
///
/// Example:
///     >>> import pickle, prejoin, pyarrow as pa
///     >>> shared = prejoin.prepare(pa.table({"id": [1, 2]}), on="id").share()
///     >>> pickle.loads(pickle.dumps(shared)).open().num_rows
///     2
#[pyclass(name = "SharedBuild", module = "prejoin", frozen)]
pub(crate) struct PySharedBuild(SharedBuild);

impl PySharedBuild {
    pub(crate) fn new(py: Python<'_>, build: &PreparedBuild, snapshot: Option<&Snapshot>) -> PyResult<Self> {
        let cancel = interruptible();
        Ok(Self(py.detach(|| build.share_with(snapshot, &cancel))?))
    }
}

#[pymethods]
impl PySharedBuild {
    /// Maps the build.
    ///
    /// Args:
    ///     verify: As for `prejoin.open`.
    ///     pool: As for `prejoin.open`.
    ///
    /// Returns:
    ///     The build.
    ///
    /// Raises:
    ///     ExecutionError: If something else is in the place of the build, because the process that shared it is gone.
    ///     ResourcesExhausted: If the pool refuses.
    ///     OSError: Of the system, in its subclasses.
    #[pyo3(signature = (*, verify=true, pool=None))]
    fn open(&self, py: Python<'_>, verify: bool, pool: Option<&Bound<'_, PyMemoryPool>>) -> PyResult<PyPreparedBuild> {
        guarded(|| {
            let options = options(verify, pool, false);
            Ok(PyPreparedBuild::new(py.detach(|| self.0.open(&options))?))
        })
    }

    /// Identity of the contents: 32 hexadecimal digits.
    #[getter]
    fn fingerprint(&self) -> String {
        hex(self.0.fingerprint())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (OsString, String))> {
        guarded(|| {
            let attach = py.import("prejoin._core")?.getattr("_attach")?;
            Ok((attach, (self.0.path().into_os_string(), hex(self.0.fingerprint()))))
        })
    }

    fn __repr__(&self) -> String {
        format!("SharedBuild({}, fingerprint={})", self.0.path().display(), hex(self.0.fingerprint()))
    }
}

/// A handle that `SharedBuild.__reduce__` took apart.
#[pyfunction]
#[pyo3(name = "_attach")]
pub(crate) fn attach(py: Python<'_>, path: PathBuf, fingerprint: &str) -> PyResult<PySharedBuild> {
    guarded(|| {
        let fingerprint = from_hex(fingerprint)?;
        Ok(PySharedBuild(py.detach(|| SharedBuild::attach(path, fingerprint))?))
    })
}

/// A build that `PreparedBuild.__reduce__` took apart.
#[pyfunction]
#[pyo3(name = "_reopen", signature = (path, fingerprint, verify, memory=false))]
pub(crate) fn reopen(
    py: Python<'_>,
    path: PathBuf,
    fingerprint: &str,
    verify: bool,
    memory: bool,
) -> PyResult<PyPreparedBuild> {
    guarded(|| {
        let wanted = from_hex(fingerprint)?;
        let options = options(verify, None, memory);
        let build = py.detach(|| PreparedBuild::open(&path, &options))?;
        let found = build.fingerprint()?;
        if found != wanted {
            let text = format!(
                "{} holds another build now (fingerprint {}) than the one that was pickled ({fingerprint}): it was saved \
                 anew since; open it and send that one",
                path.display(),
                hex(found)
            );
            return Err(Error::Execution(text).into());
        }
        Ok(PyPreparedBuild::new(build))
    })
}

/// What an opened build pickles as; one in memory says how to share it.
pub(crate) fn reduce<'py>(
    py: Python<'py>,
    build: &PreparedBuild,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let Some(path) = build.path() else {
        let text = match build.memory().mapped {
            0 => {
                "a prepared build in memory does not pickle: save(path) it and send what prejoin.open(path) gives, or send \
                  the handle that share() gives"
            }
            _ => "a build that was opened from a SharedBuild does not pickle; send the SharedBuild",
        };
        return Err(Error::NotSupported(text.to_owned()).into());
    };
    let reopen = py.import("prejoin._core")?.getattr("_reopen")?;
    let arguments = (
        path.as_os_str(),
        hex(build.fingerprint()?),
        build.is_verified(),
        build.file().is_some_and(|file| file.is_private),
    );
    Ok((reopen, arguments.into_pyobject(py)?))
}

pub(crate) fn save(
    py: Python<'_>,
    build: &PreparedBuild,
    snapshot: Option<&Snapshot>,
    path: &Path,
    mode: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let bits = |mode: usize| {
        let bits = u32::try_from(mode).ok().filter(|mode| *mode <= 0o777);
        bits.ok_or_else(|| plan(format!("mode is made of permission bits, at most 0o777, {mode:#o} was given")))
    };
    let mode = count("mode", mode)?.map(bits).transpose()?;
    let options = SaveOptions { mode, snapshot: snapshot.cloned(), cancel: interruptible() };
    Ok(py.detach(|| build.save(path, &options))?)
}

/// The version of a snapshot as the value that it was made of.
pub(crate) fn version<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("prejoin.cache.versions")?.call_method1("decode", (text,))
}

pub(crate) fn hex(fingerprint: u128) -> String {
    format!("{fingerprint:032x}")
}

fn from_hex(text: &str) -> PyResult<u128> {
    u128::from_str_radix(text, 16).map_err(|_| PyValueError::new_err("a fingerprint is 32 hexadecimal digits"))
}

/// A copy in memory is paid for as a build is, by the pool of the process where no other is given.
fn options(verify: bool, pool: Option<&Bound<'_, PyMemoryPool>>, memory: bool) -> OpenOptions {
    let pool = (pool.is_some() || memory).then(|| PyMemoryPool::resolve(pool));
    OpenOptions { verify, pool, memory, cancel: interruptible() }
}
