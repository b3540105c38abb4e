//! The joins of `prejoin.join` that a build remembers.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;

use super::interchange::{Columns, PySchema};
use crate::expr::Expr;
use crate::join::{JoinType, Validate};
use crate::probe::ProbePlan;
use crate::run::HashJoin;

/// What a call of `prejoin.join` asks for, apart from its two inputs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// (probe name, build name); `None` is the build's key names on both sides.
    pub(crate) on: Option<Vec<(String, String)>>,
    pub(crate) how: JoinType,
    pub(crate) predicate: Option<Expr>,
    /// (its name, the column) of each output column; `None` is all, a column without name keeps its own.
    pub(crate) select: Option<Vec<(Option<String>, String)>>,
    pub(crate) suffix: String,
    pub(crate) coalesce: Option<bool>,
    pub(crate) limit: Option<usize>,
    pub(crate) validate: Validate,
}

/// A join that `prejoin.join` attached before.
pub(crate) struct Attached {
    pub(crate) options: Options,
    pub(crate) probe_schema: SchemaRef,
    /// The probe columns that the join reads; `None` is all.
    pub(crate) columns: Option<Arc<Columns>>,
    pub(crate) join: HashJoin,
    /// For whole batches: output is not cut.
    pub(crate) plan: Arc<ProbePlan>,
    pub(crate) schema: PySchema,
}

/// The joins that were attached to one build, most recently used first.
#[derive(Default)]
pub(crate) struct JoinCache(Mutex<Vec<Arc<Attached>>>);

/// How many joins a build remembers.
const REMEMBERED: usize = 8;

impl JoinCache {
    pub(crate) fn get(&self, options: &Options, schema: &SchemaRef) -> Option<Arc<Attached>> {
        let mut joins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |join: &Arc<Attached>| {
            (Arc::ptr_eq(&join.probe_schema, schema) || join.probe_schema == *schema) && join.options == *options
        };
        let at = joins.iter().position(fits)?;
        joins[..=at].rotate_right(1);
        Some(Arc::clone(&joins[0]))
    }

    pub(crate) fn add(&self, join: Arc<Attached>) {
        let mut joins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        joins.truncate(REMEMBERED - 1);
        joins.insert(0, join);
    }
}
