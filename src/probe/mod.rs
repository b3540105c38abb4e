//! Probing: keys of a probe batch in, pairs of rows, output batches out.

mod counts;
mod entries;
mod key_reader;
mod lookup;
mod map_lookup;
mod metrics;
#[allow(clippy::module_inception)]
mod probe;
mod residual;
mod star;
mod visited;

pub(crate) use key_reader::KeyReader;
pub use key_reader::Keys;
pub use lookup::Lookup;
pub use map_lookup::MapLookup;
pub(crate) use map_lookup::Mask;
pub use metrics::Metrics;
pub(crate) use metrics::{JoinMetrics, Timer, add};
pub use probe::Probe;
pub(crate) use probe::ProbePlan;
#[cfg(feature = "python")]
pub(crate) use probe::few_batches;
pub use star::{StarPlan, StarProbe, StarRows};
pub(crate) use visited::{Claim, Marks};
