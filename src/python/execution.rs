//! Running a join from Python: sources opened from Python objects, output pulled batch by batch.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use pyo3::prelude::*;

use super::interchange::{BatchStream as LazyBatches, Source as PySource};
use super::pool::PyMemoryPool;
use super::signals::detach_if_long;
use crate::error::Result;
use crate::join::{BatchStream, HashJoin, JoinStream, RunOptions, Source};
use crate::memory::Reservation;

/// A join source over a Python object. It was opened to learn its schema; the first run reads that stream, later ones
/// open the object anew, which a one-shot object refuses.
pub(crate) fn source_of(object: &Bound<'_, PyAny>) -> PyResult<Source> {
    let opened = PySource::open(object, None)?;
    let schema = opened.schema().clone();
    let first = Mutex::new(Some(opened));
    let (object, stream_schema) = (object.clone().unbind(), schema.clone());
    Ok(Source::new(schema, 1, move |_| {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let source = match first {
            Some(source) => source,
            None => Python::attach(|py| PySource::open(object.bind(py), Some(stream_schema.clone())))?,
        };
        Ok(BatchStream::new(stream_schema.clone(), Batches::new(source)))
    }))
}

/// The batches of a Python source; copies that alignment needs are charged while their batch is read.
struct Batches {
    source: PySource,
    copies: Reservation,
}

impl Batches {
    fn new(source: PySource) -> Self {
        Self { source, copies: Reservation::new(&PyMemoryPool::resolve(None), "alignment copy") }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.copies.shrink(self.copies.size());
        let next = Python::attach(|py| self.source.next_attached(py, Some(&mut self.copies)));
        next.map(|next| next.map(|imported| imported.batch)).transpose()
    }
}

/// One run of a join: one partition, or all of them one after the other.
pub(crate) struct Execution {
    join: HashJoin,
    options: RunOptions,
    partitions: std::ops::Range<usize>,
    stream: Option<JoinStream>,
    /// Rows that the limit still allows over all partitions.
    left: Option<usize>,
}

impl Execution {
    /// Validates; nothing is pulled yet.
    pub(crate) fn new(join: HashJoin, partition: Option<usize>, options: RunOptions) -> Result<Self> {
        let mut partitions = partition.map_or(0..join.partitions(), |partition| partition..partition + 1);
        let stream = partitions.next().map(|partition| join.execute(partition, &options)).transpose()?;
        Ok(Self { left: join.limit, join, options, partitions, stream })
    }
}

impl LazyBatches for Execution {
    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            let Some(stream) = &mut self.stream else { return Ok(None) };
            if !stream.is_started() {
                py.detach(|| stream.start())?;
            }
            let rows = stream.pending_rows();
            if let Some(batch) = detach_if_long(py, rows, || stream.next_output())? {
                self.left = self.left.map(|left| left - batch.num_rows());
                return Ok(Some(batch));
            }
            if !stream.pull()? {
                self.join.limit = self.left;
                let next = self.partitions.next();
                self.stream = next.map(|partition| self.join.execute(partition, &self.options)).transpose()?;
            }
        }
    }
}
