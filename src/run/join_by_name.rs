//! Joining by the names of columns, in one call.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::hash_join::HashJoin;
use super::options::RunOptions;
use super::source::Source;
use crate::error::Result;
use crate::join::{JoinOptions, plan_by_name};
use crate::prepare::PreparedBuild;

/// Joins `batch`, as the whole probe side, with `build`; columns are found by their names.
///
/// The output has the probe's columns, then the build's without its keys; semi, anti and mark joins have the probe's columns
/// (mark adds a Boolean column `mark`), build-side semi and anti joins the build's. Rows come in probe order, those that
/// match one probe row in build order.
///
/// Each call plans anew. To probe one build with many batches, attach it to a [`HashJoin`] once.
///
/// ```
/// use arrow_array::record_batch;
/// use prejoin::{BuildSpec, Cancel, Collector, PrepareOptions, JoinOptions, JoinType, MemoryPool, NullEquality, Pool};
/// use std::sync::Arc;
///
/// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
/// let events = record_batch!(("id", Int64, [2, 3]), ("at", Int32, [10, 20]))?;
///
/// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
/// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
/// let mut collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
/// collector.push(users)?;
/// let prepared = collector.finish()?;
///
/// let options = JoinOptions { join_type: JoinType::ProbeOuter, ..JoinOptions::default() };
/// let joined = prejoin::join(&events, &prepared, &options)?;
/// let expected = record_batch!(
///     ("id", Int64, [2, 3]),
///     ("at", Int32, [10, 20]),
///     ("name", Utf8, [Some("bob"), None])
/// )?;
/// assert_eq!(joined.columns(), expected.columns());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Plan`](crate::Error::Plan) for unknown columns, key types that differ, names that clash after the suffix, and a
/// build that `validate` refuses; [`Error::Execution`](crate::Error::Execution) for probe rows that it refuses and for
/// predicates that fail; [`Error::Overflow`](crate::Error::Overflow) if the output does not fit one batch.
pub fn join(batch: &RecordBatch, build: &Arc<PreparedBuild>, options: &JoinOptions) -> Result<RecordBatch> {
    let (join, columns) = attach_by_name(build, options, batch.schema_ref())?;
    let batch = match columns {
        Some(columns) => batch.project(&columns)?,
        None => batch.clone(),
    };
    join.run_once(batch, &RunOptions::default())
}

/// The join of `build` with probe rows of the schema `probe`, attached, and the positions of the probe columns that it
/// reads where these are not all.
pub(crate) fn attach_by_name(
    build: &Arc<PreparedBuild>,
    options: &JoinOptions,
    probe: &SchemaRef,
) -> Result<(HashJoin, Option<Vec<usize>>)> {
    let (spec, columns) = plan_by_name(build, options, probe)?;
    let (build_side, probe_side) = (spec.build_schema().clone(), spec.probe_schema().clone());
    let join = HashJoin::from_spec(spec, Source::schema_only(build_side), Source::schema_only(probe_side));
    Ok((join.with_prepared_build(Arc::clone(build))?, columns))
}
