//! The joins of `prejoin.join` that a build remembers.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;

use super::interchange::{Columns, PySchema};
use super::recent::SharedRecent;
use super::signals::interruptible;
use crate::error::Result;
use crate::join::{JoinOptions, OutputColumn};
use crate::probe::ProbePlan;
use crate::run::HashJoin;

/// A join that `prejoin.join` attached before.
pub(crate) struct Attached {
    pub(crate) options: JoinOptions,
    pub(crate) probe_schema: SchemaRef,
    /// The probe columns that the join reads; `None` is all.
    pub(crate) columns: Option<Arc<Columns>>,
    pub(crate) join: HashJoin,
    /// For whole batches: output is not cut.
    pub(crate) plan: Arc<ProbePlan>,
    pub(crate) schema: PySchema,
}

impl Attached {
    /// For each output column the column of the probe side that it is, if any.
    pub(crate) fn probe_columns(&self) -> Vec<Option<usize>> {
        let place = |read: usize| self.columns.as_ref().map_or(read, |columns| columns.positions()[read]);
        let of_probe = |column: &OutputColumn| match *column {
            OutputColumn::Probe(read) | OutputColumn::Key { probe: read, .. } => Some(place(read)),
            OutputColumn::Build(_) | OutputColumn::Mark => None,
        };
        self.plan.output.columns.iter().map(of_probe).collect()
    }

    /// Joins `batch` as if it were the whole probe side.
    pub(crate) fn run(&self, batch: RecordBatch) -> Result<RecordBatch> {
        self.plan.run_once(batch, self.options.limit, Arc::default(), interruptible())
    }
}

/// The joins that were attached to one build lately.
#[derive(Default)]
pub(crate) struct JoinCache(SharedRecent<Attached>);

impl JoinCache {
    /// The join of these options over this probe schema: remembered, or attached now.
    pub(crate) fn get_or_attach(
        &self,
        options: &JoinOptions,
        schema: &SchemaRef,
        attach: impl FnOnce() -> PyResult<Attached>,
    ) -> PyResult<Arc<Attached>> {
        let same_schema = |other: &SchemaRef| Arc::ptr_eq(other, schema) || other == schema;
        self.0.get_or_make(|join| same_schema(&join.probe_schema) && join.options == *options, attach)
    }
}
