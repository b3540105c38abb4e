//! The push side of preparing: batches in, one prepared build out.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

use super::{BuildSpec, PreparedBuild};
use crate::cancel::Cancel;
use crate::config::Config;
use crate::error::Result;
use crate::index::{IndexContext, KeyIndex};
use crate::memory::{Pool, RangeCounter, Reservation};

/// Takes the batches of a build side one by one and makes a [`PreparedBuild`] of them. Dropping it cancels the
/// preparation and gives everything back.
#[derive(Debug)]
pub struct Collector {
    spec: BuildSpec,
    config: Config,
    cancel: Cancel,
    batches: Vec<RecordBatch>,
    counter: RangeCounter,
    /// Last, so that the batches go before their charge.
    reservation: Reservation,
}

impl Collector {
    /// A collector for builds of `spec`. Nothing is charged yet.
    pub fn new(spec: BuildSpec, pool: &Arc<dyn Pool>, config: Config, cancel: Cancel) -> Self {
        let reservation = Reservation::new(pool, "prepared build");
        Self { spec, config, cancel, batches: Vec::new(), counter: RangeCounter::default(), reservation }
    }

    /// Takes one batch of the build's schema (nullability and metadata may differ).
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let new = self.counter.add_batch(&batch);
        self.reservation.try_grow(new)?;
        self.batches.push(batch);
        Ok(())
    }

    /// Concatenates, indexes and freezes what was pushed.
    pub fn finish(mut self) -> Result<Arc<PreparedBuild>> {
        let rows = concat_batches(self.spec.schema(), &self.batches)?;
        let keys: Vec<_> = self.spec.keys().iter().map(|&k| rows.column(k).clone()).collect();
        let nulls_equal: Vec<_> = self.spec.null_equality().iter().map(|n| n.nulls_equal()).collect();
        let mut scratch = Reservation::new(self.reservation.pool(), "prepared build scratch");
        let context = IndexContext {
            config: &self.config,
            retained: &mut self.reservation,
            scratch: &mut scratch,
            cancel: &self.cancel,
        };
        let (index, groups) = KeyIndex::build(&keys, &nulls_equal, context)?;
        Ok(Arc::new(PreparedBuild::new(self.spec, rows, index, groups, self.reservation)))
    }
}
