//! The joins of `prejoin.join` that a build remembers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::interchange::{Columns, PySchema};
use super::recent::Recent;
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
pub(crate) struct JoinCache(Mutex<Recent<Arc<Attached>, 8>>);

impl JoinCache {
    pub(crate) fn get(&self, options: &JoinOptions, schema: &SchemaRef) -> Option<Arc<Attached>> {
        let mut joins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same_schema = |other: &SchemaRef| Arc::ptr_eq(other, schema) || other == schema;
        let fits = |join: &Arc<Attached>| Ok(same_schema(&join.probe_schema) && join.options == *options);
        let Ok::<_, Infallible>(found) = joins.find(fits);
        found.map(Arc::clone)
    }

    pub(crate) fn add(&self, join: Arc<Attached>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(join);
    }
}
