//! What the partitions of one run of a join share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::cancel::Cancel;
use crate::error::{Result, plan_err};
use crate::prepare::{BuildSpec, PreparedBuild};
use crate::probe::{Claim, JoinMetrics, Marks};

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

/// How long a partition sleeps between two looks at a build that another one collects.
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

    /// Claims a partition. Build-driven join types run each `once`, since the last one gives the closing rows.
    pub(crate) fn claim(&self, partition: usize, once: bool) -> Result<Claim> {
        self.marks.claim(partition, once)
    }

    /// Counts the partitions that nobody has executed as done.
    pub(crate) fn end_unclaimed(&self) {
        self.marks.end_unclaimed();
    }

    /// The build that all partitions share, which must be one of `spec`: the first partition collects it by `collect`, the
    /// others wait. An error goes to the partition that collected, and the next one tries anew.
    pub(crate) fn shared_build(
        &self,
        spec: &BuildSpec,
        cancel: &Cancel,
        collect: impl FnOnce() -> Result<Arc<PreparedBuild>>,
    ) -> Result<Arc<PreparedBuild>> {
        let mut collected = self.wait_for_build(cancel)?;
        // The join may have been changed since another partition collected.
        if let Some(build) = collected.as_ref().filter(|build| build.spec() == spec) {
            return Ok(Arc::clone(build));
        }
        *self.builder.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current().id());
        let build = collect();
        *self.builder.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(Arc::clone(collected.insert(build?)))
    }

    /// The place of the build, once no other partition collects it; polls the stop signal while it waits.
    fn wait_for_build(&self, cancel: &Cancel) -> Result<MutexGuard<'_, Option<Arc<PreparedBuild>>>> {
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
            cancel.check()?;
            thread::sleep(WAIT);
        }
    }
}
