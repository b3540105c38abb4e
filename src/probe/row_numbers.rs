//! Joins whose output is made elsewhere: the pairs of one call as row numbers.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;

use super::entries::Entries;
use super::plan::ProbePlan;
use super::probe_loop::ProbeLoop;
use super::visited::Claim;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::index::NONE;

impl ProbePlan {
    /// The row numbers of the output of `batch` as the whole probe side: its rows, and the build rows beside them, [`NONE`]
    /// where there is none. Join types that do not give pairs have [`NONE`] or any number instead of build rows.
    ///
    /// The rows of `batch` that are set in `never` match nothing.
    pub(crate) fn row_numbers(
        self: &Arc<Self>,
        batch: RecordBatch,
        never: Option<BooleanBuffer>,
        limit: Option<usize>,
        cancel: &Cancel,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        let most = limit.unwrap_or(usize::MAX);
        let marks = Claim::alone()?.marks(self, cancel)?;
        let mut probe = ProbeLoop::new(Arc::clone(self), limit, marks, Arc::default(), cancel.clone());
        probe.feed(batch, never)?;
        let (mut all, mut next) = (Entries::default(), Entries::default());
        while all.len() < most && probe.next_entries(&mut next)? {
            all.try_reserve(next.len())?;
            all.probe.extend_from_slice(&next.probe);
            all.build.extend_from_slice(&next.build);
        }
        all.truncate(most);
        if self.join_type.is_build_driven() && all.len() < most {
            probe.finish()?;
            probe.closing_rows(most, &mut all.build)?;
            all.probe.resize(all.build.len(), NONE);
        }
        if self.join_type.has_build_columns() {
            self.build.check_rows(&all.build)?;
        }
        Ok((all.probe, all.build))
    }
}
