//! Planning a join: what it is, what it gives, how it is shown and stored.

mod codec;
mod explain;
mod join_type;
pub(crate) mod output;
mod properties;
mod star;
mod statistics;
mod validate;

pub use explain::ExplainFormat;
pub use join_type::{JoinType, PartitionMode};
pub(crate) use output::{Output, OutputColumn, extended};
pub use properties::Properties;
pub(crate) use star::{Cell, LegLayout};
pub use star::{Leg, LegKey, StarJoin};
pub use statistics::{Estimate, Statistics};
pub use validate::Validate;
pub(crate) use validate::repeated_key;
