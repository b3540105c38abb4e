//! Probing: keys of a probe batch in, pairs of rows, output batches out.

mod as_of;
mod as_of_lookup;
mod check_input;
mod counts;
mod entries;
mod key_reader;
mod lookup;
mod map_lookup;
mod metrics;
mod output_batch;
pub(crate) mod pieces;
mod plan;
mod probe_loop;
mod residual;
#[cfg(feature = "python")]
mod row_numbers;
mod star;
mod visited;

pub use key_reader::Keys;
pub use lookup::Lookup;
pub use map_lookup::MapLookup;
pub(crate) use map_lookup::Mask;
pub use metrics::Metrics;
pub(crate) use metrics::{JoinMetrics, Timer, add};
pub(crate) use plan::ProbePlan;
pub(crate) use probe_loop::ProbeLoop;
pub use star::{StarPlan, StarProbe, StarRows};
pub(crate) use visited::{Claim, Marks, PartitionMarks};
