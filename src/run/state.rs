//! What the partitions of one run of a join share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use super::hash_join::{HashJoin, RunOptions};
use crate::error::{Result, plan_err};
use crate::join::PartitionMode;
use crate::prepare::PreparedBuild;
use crate::probe::ProbePlan;
use crate::probe::{JoinMetrics, Timer, add};
use crate::probe::{Shares, Visited, VisitedHome, VisitedShare};

/// The run state of a join: made anew by every `build()` and `reset()`.
#[derive(Debug)]
pub(crate) struct RunState {
    metrics: Arc<JoinMetrics>,
    partitions: usize,
    /// Partitions that were executed.
    taken: Mutex<HashSet<usize>>,
    /// The build of an ordinary collect-left join, once it is collected.
    build: Mutex<Option<Arc<PreparedBuild>>>,
    /// The thread that collects it.
    builder: Mutex<Option<ThreadId>>,
    /// The visited bits of a collect-left join.
    visited: VisitedHome,
    /// The groups that a probe row of a validated collect-left join had.
    seen: VisitedHome,
}

/// Between two looks of a partition at a build that another one collects.
const WAIT: Duration = Duration::from_millis(1);

impl RunState {
    pub(crate) fn new(partitions: usize) -> Self {
        Self {
            metrics: Arc::default(),
            partitions,
            taken: Mutex::default(),
            build: Mutex::default(),
            builder: Mutex::default(),
            visited: VisitedHome::default(),
            seen: VisitedHome::default(),
        }
    }

    pub(crate) fn metrics(&self) -> &Arc<JoinMetrics> {
        &self.metrics
    }

    /// Claims a partition; build-driven kinds run each once, since the last one gives the unmatched build rows.
    pub(crate) fn claim(&self, partition: usize, once: bool) -> Result<()> {
        if partition >= self.partitions {
            return plan_err!("partition {partition} was asked of a join with {}", self.partitions);
        }
        let first = self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(partition);
        match first || !once {
            true => Ok(()),
            false => plan_err!("partition {partition} of this run was executed before; reset the join to run it again"),
        }
    }

    /// The build that `partition` probes: the attached one, or one collected now. The first partition of a collect-left
    /// join collects, the others wait for it; an error is told to the one that collected, and the next one tries anew.
    pub(crate) fn build(&self, join: &HashJoin, partition: usize, options: &RunOptions) -> Result<Arc<PreparedBuild>> {
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
        let mut collected = self.wait_for_build(options)?;
        // The join's fields may have changed since, and with them what its build must be.
        let spec = join.build_spec()?;
        if let Some(build) = collected.as_ref().filter(|build| *build.spec() == spec) {
            return Ok(Arc::clone(build));
        }
        *self.builder.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current().id());
        let build = collect(None);
        *self.builder.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(Arc::clone(collected.insert(build?)))
    }

    /// The place of the build, once no other partition collects it; looks for a stop signal while it waits.
    fn wait_for_build(&self, options: &RunOptions) -> Result<MutexGuard<'_, Option<Arc<PreparedBuild>>>> {
        loop {
            match self.build.try_lock() {
                Ok(collected) => return Ok(collected),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if *self.builder.lock().unwrap_or_else(PoisonError::into_inner) == Some(thread::current().id()) {
                return plan_err!(
                    "the build source of a join asked for another partition of the same run, which waits for it"
                );
            }
            options.cancel.check()?;
            thread::sleep(WAIT);
        }
    }

    /// What one partition marks in bits that the partitions of a collect-left join share.
    pub(crate) fn shares(&self, plan: &ProbePlan, mode: PartitionMode, partitions: usize) -> Result<Shares> {
        match mode {
            PartitionMode::Partitioned => plan.shares(),
            PartitionMode::CollectLeft => Ok(Shares {
                visited: share(&self.visited, VISITED, plan.visited_bits(), plan, partitions)?,
                seen: share(&self.seen, SEEN, plan.seen_bits(), plan, partitions)?,
            }),
        }
    }
}

impl ProbePlan {
    /// What the one partition of a run marks.
    pub(crate) fn shares(&self) -> Result<Shares> {
        let share = |name, bits| share(&VisitedHome::default(), name, bits, self, 1);
        Ok(Shares { visited: share(VISITED, self.visited_bits())?, seen: share(SEEN, self.seen_bits())? })
    }
}

const VISITED: &str = "visited build rows";
const SEEN: &str = "keys seen by validate";

/// The share of one partition in the bits at `home`, which the first one makes; `None` where none are needed.
fn share(
    home: &VisitedHome,
    name: &'static str,
    bits: Option<usize>,
    plan: &ProbePlan,
    partitions: usize,
) -> Result<Option<VisitedShare>> {
    let Some(bits) = bits else { return Ok(None) };
    let mut shared = home.lock().unwrap_or_else(PoisonError::into_inner);
    let visited = match &*shared {
        Some(visited) if visited.len() == bits => Arc::clone(visited),
        Some(_) => return plan_err!("the join was changed between two partitions of one run; reset it first"),
        None => Arc::clone(shared.insert(Arc::new(Visited::try_new(name, bits, partitions, &plan.pool)?))),
    };
    Ok(Some(VisitedShare::new(visited, Arc::clone(home))))
}
