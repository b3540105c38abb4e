//! What the partitions of one run of a join share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use super::hash_join::{HashJoin, RunOptions};
use crate::error::{Result, plan_err};
use crate::join::PartitionMode;
use crate::prepare::PreparedBuild;
use crate::probe::{Claim, Marks};
use crate::probe::{JoinMetrics, Timer, add};

/// The run state of a join: made anew by every `build()` and `reset()`.
#[derive(Debug)]
pub(crate) struct RunState {
    metrics: Arc<JoinMetrics>,
    /// Which partitions were executed and ended, and what they marked.
    marks: Arc<Marks>,
    /// The build of an ordinary collect-left join, once it is collected.
    build: Mutex<Option<Arc<PreparedBuild>>>,
    /// The thread that collects it.
    builder: Mutex<Option<ThreadId>>,
}

/// Between two looks of a partition at a build that another one collects.
const WAIT: Duration = Duration::from_millis(1);

impl RunState {
    pub(crate) fn new(partitions: usize) -> Self {
        Self {
            metrics: Arc::default(),
            marks: Marks::new(partitions),
            build: Mutex::default(),
            builder: Mutex::default(),
        }
    }

    pub(crate) fn metrics(&self) -> &Arc<JoinMetrics> {
        &self.metrics
    }

    /// Claims a partition; build-driven kinds run each once, since the last one gives the unmatched build rows.
    pub(crate) fn claim(&self, partition: usize, once: bool) -> Result<Claim> {
        self.marks.claim(partition, once)
    }

    /// Counts the partitions that nobody has executed as done.
    #[cfg(feature = "python")]
    pub(crate) fn end_unclaimed(&self) {
        self.marks.end_unclaimed();
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
}
