//! Running a join from Python: its options, and its output pulled batch by batch.

use arrow_array::RecordBatch;
use pyo3::prelude::*;

use super::classes::config::PyConfig;
use super::classes::pool::PyMemoryPool;
use super::classes::prepared::config_of;
use super::errors::plan;
use super::interchange::BatchStream as LazyBatches;
use super::signals::{detach_if_long, interruptible};
use crate::error::Result;
use crate::run::{HashJoin, JoinStream, RunOptions};

/// A result that is one batch is made of pieces of this many rows: their row numbers are held one piece at a time, and
/// a signal is seen between them.
pub(super) const PIECE_ROWS: usize = 1 << 20;

/// Options of a run; without `batch_size` they are those of a result that is one batch.
pub(crate) fn run_options(
    batch_size: Option<usize>,
    pool: Option<&Bound<'_, PyMemoryPool>>,
    config: Option<&Bound<'_, PyConfig>>,
) -> PyResult<RunOptions> {
    if batch_size == Some(0) {
        return Err(plan("batch_size is a number of rows of at least 1, 0 was given"));
    }
    Ok(RunOptions {
        batch_size: batch_size.unwrap_or(PIECE_ROWS),
        pool: PyMemoryPool::resolve(pool),
        config: config_of(config),
        cancel: interruptible(),
    })
}

/// One run of a join: one partition, or all of them one after the other.
pub(crate) struct Execution {
    join: HashJoin,
    options: RunOptions,
    /// Those that are left.
    partitions: std::ops::Range<usize>,
    /// All partitions of a run that is its own.
    whole: bool,
    stream: Option<JoinStream>,
    /// Whether the build of the stream's partition is known.
    started: bool,
    /// Rows that the limit still allows over all partitions.
    left: Option<usize>,
}

impl Execution {
    /// Validates; nothing is pulled yet.
    pub(crate) fn new(join: HashJoin, partition: Option<usize>, options: RunOptions) -> Result<Self> {
        let mut partitions = match partition {
            None => 0..join.partitions(),
            Some(partition) => partition..partition.saturating_add(1),
        };
        let stream = partitions.next().map(|partition| join.execute(partition, &options)).transpose()?;
        Ok(Self {
            left: join.spec.limit,
            join,
            options,
            partitions,
            whole: partition.is_none(),
            stream,
            started: false,
        })
    }

    /// Collecting a build takes time, and waits for the partition that collects; finding a prepared one does neither.
    fn start(&mut self, py: Python<'_>) -> Result<()> {
        let Some(stream) = self.stream.as_mut().filter(|_| !self.started) else { return Ok(()) };
        self.started = true;
        match self.join.prepared_build() {
            Some(_) => stream.start(),
            None => py.detach(|| stream.start()),
        }
    }
}

impl Execution {
    /// Gives everything back. Partitions that were not reached count as done, or the run would wait for them.
    fn end(&mut self) {
        self.stream = None;
        self.partitions = 0..0;
        if self.whole {
            self.join.end_run();
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.end();
    }
}

impl LazyBatches for Execution {
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            self.start(py)?;
            let Some(stream) = &mut self.stream else { return Ok(None) };
            let rows = stream.pending_rows();
            if let Some(batch) = detach_if_long(py, rows, || stream.next_output())? {
                self.left = self.left.map(|left| left - batch.num_rows());
                if self.left == Some(0) {
                    self.end();
                }
                return Ok(Some(batch));
            }
            if !stream.pull()? {
                self.join.spec.limit = self.left;
                let next = self.partitions.next();
                self.started = false;
                self.stream = next.map(|partition| self.join.execute(partition, &self.options)).transpose()?;
            }
        }
    }
}
