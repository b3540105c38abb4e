//! Planning a join: what it is, what it gives, how it is shown and serialized. Nothing here holds rows or the state of a run.

mod as_of;
pub(crate) mod by_name;
mod chosen_column;
mod codec;
mod declared;
mod defaults;
mod explain;
mod join_type;
mod names;
mod other_schemas;
mod output;
mod properties;
mod spec;
mod star;
mod statistics;
mod validate;

pub use as_of::{AsOf, Tolerance};
pub use by_name::JoinOptions;
pub(crate) use by_name::plan_by_name;
pub use chosen_column::{JoinKey, ProjectedColumn};
pub(crate) use codec::{decode, encode};
pub(crate) use declared::{Declared, Sides};
pub use explain::ExplainFormat;
pub(crate) use explain::explain;
pub use join_type::{JoinType, PartitionMode};
pub(crate) use other_schemas::SetAnew;
pub(crate) use output::{ColumnOrigin, Output, OutputColumn, extended};
pub use properties::Properties;
pub(crate) use properties::properties;
pub use spec::JoinSpec;
pub(crate) use star::{Cell, LegLayout};
pub use star::{Leg, LegKey, StarJoin};
pub(crate) use statistics::statistics;
pub use statistics::{Estimate, Statistics};
pub use validate::Validate;
pub(crate) use validate::repeated_key;
