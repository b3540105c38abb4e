//! What the partitions of one run of a join share.

use std::sync::{Arc, Mutex, PoisonError};

use super::kind::PartitionMode;
use super::metrics::{JoinMetrics, Timer, add};
use super::plan::{HashJoin, RunOptions};
use super::probe::ProbePlan;
use super::visited::{Visited, VisitedHome, VisitedShare};
use crate::build::PreparedBuild;
use crate::error::{Result, plan_err};

/// The run state of a join: made anew by every `build()` and `reset()`.
#[derive(Debug)]
pub(super) struct RunState {
    metrics: Arc<JoinMetrics>,
    partitions: Mutex<Vec<Partition>>,
    /// The build of an ordinary collect-left join, once it is collected.
    build: Mutex<Option<Arc<PreparedBuild>>>,
    /// The visited bits of a collect-left join.
    visited: VisitedHome,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Partition {
    New,
    Taken,
}

impl RunState {
    pub(super) fn new(partitions: usize) -> Self {
        let partitions = Mutex::new(vec![Partition::New; partitions]);
        Self { metrics: Arc::default(), partitions, build: Mutex::default(), visited: VisitedHome::default() }
    }

    pub(super) fn metrics(&self) -> &Arc<JoinMetrics> {
        &self.metrics
    }

    /// Claims a partition; build-driven kinds run each once, since the last one gives the unmatched build rows.
    pub(super) fn claim(&self, partition: usize, once: bool) -> Result<()> {
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let count = partitions.len();
        match partitions.get_mut(partition) {
            None => plan_err!("partition {partition} was asked of a join with {count}"),
            Some(Partition::Taken) if once => {
                plan_err!("partition {partition} of this run was executed before; reset the join to run it again")
            }
            Some(state) => {
                *state = Partition::Taken;
                Ok(())
            }
        }
    }

    /// The build that `partition` probes: the attached one, or one collected now. The first partition of a collect-left
    /// join collects, the others wait for it; an error is told to the one that collected, and the next one tries anew.
    pub(super) fn build(&self, join: &HashJoin, partition: usize, options: &RunOptions) -> Result<Arc<PreparedBuild>> {
        if let Some(prepared) = join.prepared_build() {
            return Ok(Arc::clone(prepared));
        }
        let collect = |partition| {
            let _timer = Timer::start(&self.metrics.build_nanos);
            let build = join.collect_build(partition, options)?;
            add(&self.metrics.build_mem_used, build.reserved_bytes());
            Ok(build)
        };
        if join.mode == PartitionMode::Partitioned {
            return collect(Some(partition));
        }
        let mut collected = self.build.lock().unwrap_or_else(PoisonError::into_inner);
        // The join's fields may have changed since, and with them what its build must be.
        let spec = join.build_spec()?;
        if let Some(build) = collected.as_ref().filter(|build| *build.spec() == spec) {
            return Ok(Arc::clone(build));
        }
        Ok(Arc::clone(collected.insert(collect(None)?)))
    }

    /// The share of one partition in the visited bits of `plan`'s build, `None` where its kind needs none.
    pub(super) fn visited(
        &self,
        plan: &ProbePlan,
        mode: PartitionMode,
        partitions: usize,
    ) -> Result<Option<VisitedShare>> {
        let Some(bits) = plan.visited_bits() else { return Ok(None) };
        if mode == PartitionMode::Partitioned {
            let visited = Arc::new(Visited::try_new(bits, 1, &plan.pool)?);
            return Ok(Some(VisitedShare::new(visited, VisitedHome::default())));
        }
        let mut shared = self.visited.lock().unwrap_or_else(PoisonError::into_inner);
        let visited = match &*shared {
            Some(visited) if visited.len() == bits => Arc::clone(visited),
            Some(_) => return plan_err!("the join was changed between two partitions of one run; reset it first"),
            None => Arc::clone(shared.insert(Arc::new(Visited::try_new(bits, partitions, &plan.pool)?))),
        };
        Ok(Some(VisitedShare::new(visited, Arc::clone(&self.visited))))
    }
}
