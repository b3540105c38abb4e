//! `prejoin.join_schema`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::classes::prepared::PyPreparedBuild;
use super::classes::source::Side;
use super::classes::star_join::is_star;
use super::errors::guarded;
use super::interchange::PySchema;

/// The schema of what `join` returns for these arguments, without any rows.
///
/// Args:
///     probe_schema: The probe side's pyarrow.Schema, anything with __arrow_c_schema__, or rows, which are not read.
///     build: A PreparedBuild, the schema of a build (needs `on`), rows of it, which are not read, or the legs of a
///         StarJoin.
///     on: As for `join`, like all that follow.
///     how: Which rows come out.
///     where: A condition on matched pairs.
///     select: The output columns.
///     prefix: Put before the names of build columns.
///     suffix: Appended to names that are taken.
///     default: What unmatched rows have instead of null.
///     coalesce: Whether keys of right and full joins are one column.
///     limit: Largest number of rows.
///     batch_size: Largest number of rows of a batch.
///     validate: How many rows of each side may share a key.
///
/// Returns:
///     The pyarrow.Schema of the result.
///
/// Raises:
///     PlanError: As of `join`.
///     TypeError: For what has no schema, and for arguments that do not exist.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> users = pa.schema({"id": pa.int64(), "name": pa.string()})
///     >>> events = pa.schema({"user": pa.int64()})
///     >>> prejoin.join_schema(events, users, on={"user": "id"}, how="left", prefix="user_").names
///     ['user', 'user_name']
#[pyfunction]
#[pyo3(signature = (probe_schema, build, *positional, **options),
       text_signature = "(probe_schema, build, on=None, how='inner', *, where=None, select=None, prefix='', \
                         suffix='_right', default=None, coalesce=None, limit=None, batch_size=None, validate=None)")]
pub(super) fn join_schema<'py>(
    probe_schema: &Bound<'py, PyAny>,
    build: &Bound<'py, PyAny>,
    positional: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        let py = build.py();
        let without_rows = |given: &Bound<'py, PyAny>| {
            let schema = Side::new(given)?.source.schema().clone();
            PySchema::new(py, schema)?.table(py, &[])
        };
        let probe = without_rows(probe_schema)?;
        let build = match build.is_instance_of::<PyPreparedBuild>() || is_star(build)? {
            true => build.clone(),
            false => without_rows(build)?,
        };
        let join = py.import(intern!(py, "prejoin"))?.getattr(intern!(py, "join"))?;
        let first = PyTuple::new(py, [probe, build])?;
        let joined = join.call(first.as_sequence().concat(positional.as_sequence())?.to_tuple()?, options)?;
        joined.getattr(intern!(py, "schema"))
    })
}
