//! Preparing a build by the names of its keys, in one call.

use std::sync::Arc;

use super::hash_join::feed;
use super::options::RunOptions;
use super::source::BatchStream;
use crate::error::Result;
use crate::prepare::{BuildSpec, Collector, NullEquality, PreparedBuild};

/// Prepares `input`, a batch or a stream of batches, as a build with the key columns `keys`, in which null matches nothing.
///
/// `options` say which pool pays, which index is made, and what stops the work; their batch size does not matter here. A
/// [`Collector`] gives more choices: nulls that match, one row for each key, batches that another library allocated.
///
/// ```
/// use arrow_array::record_batch;
/// use prejoin::{JoinOptions, RunOptions};
///
/// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
/// let events = record_batch!(("id", Int64, [2, 3]))?;
/// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
/// let joined = prejoin::join(&events, &build, &JoinOptions::default())?;
/// assert_eq!(joined, record_batch!(("id", Int64, [2]), ("name", Utf8, ["bob"]))?);
/// # Ok::<(), prejoin::Error>(())
/// ```
///
/// # Errors
/// [`Error::Plan`](crate::Error::Plan) for names that no column or more than one has, no names at all, and types without an
/// equality; [`Error::ResourcesExhausted`](crate::Error::ResourcesExhausted) from the pool;
/// [`Error::Cancelled`](crate::Error::Cancelled); whatever the stream raises, unchanged. After an error the pool is as it was
/// before.
pub fn prepare<S: AsRef<str>>(
    input: impl Into<BatchStream>,
    keys: &[S],
    options: &RunOptions,
) -> Result<Arc<PreparedBuild>> {
    let input = input.into();
    let spec = BuildSpec::by_name(input.schema().clone(), keys, NullEquality::default())?;
    let mut collector = Collector::new(spec, &options.pool, options.config.clone(), options.cancel.clone());
    feed(&mut collector, input, |_| ())?;
    collector.finish()
}
