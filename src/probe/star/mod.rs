//! Star joins: a probe batch goes from leg to leg as row numbers, and each output column is gathered once, at the end.
//!
//! What reaches a leg is one row number per row for the probe side and for each leg before. The leg's keys (and what its
//! condition tests) are gathered for these rows alone and looked up as any probe batch is; the entries that come back are
//! positions among these rows, and so make the row numbers that reach the next leg.

mod output;
mod plan;
mod row_counts;
mod run;

pub use plan::StarPlan;
pub use row_counts::StarRows;
pub use run::StarProbe;
