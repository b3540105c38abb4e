//! Rows as dicts: a list of dicts is joined without a table in between.
//!
//! Only the columns that are keys or that a condition tests are read from the dicts ([`given`]). A join gives row numbers
//! ([`plan`]), and the dicts of the output are copies of the caller's with values straight from the columns of the builds
//! ([`made`]).

mod given;
mod join;
mod lookup;
mod made;
mod plan;

pub(crate) use given::GivenRows;
pub(crate) use join::{join_one, join_star};
pub(crate) use lookup::{RowDicts, lookup_rows};
pub(crate) use plan::PlanCache;
