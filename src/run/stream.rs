//! The pull side of a join: one partition as an iterator of output batches.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::hash_join::{ClaimedPartition, HashJoin};
use super::options::RunOptions;
use super::probe::Probe;
use super::source::BatchStream;
use crate::error::Result;

/// The output of one partition, in probe order. It pulls a probe batch only when an output batch is asked for, ends after an
/// error, and frees everything when it is dropped.
#[derive(Debug)]
pub struct JoinStream {
    schema: SchemaRef,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Nothing was pulled yet.
    New {
        join: Box<HashJoin>,
        options: RunOptions,
        claimed: ClaimedPartition,
    },
    Running {
        probe: Box<Probe>,
        input: Option<BatchStream>,
    },
    Ended,
}

impl HashJoin {
    /// Runs one probe partition; nothing is pulled before the stream is.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).build()?;
    /// for batch in join.execute(0, &RunOptions::default())? {
    ///     assert_eq!(batch?.num_rows(), 1);
    /// }
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join, changed since it was built or attached, is not valid any more.
    pub fn execute(&self, partition: usize, options: &RunOptions) -> Result<JoinStream> {
        JoinStream::try_new(self.clone(), partition, options.clone())
    }
}

impl JoinStream {
    fn try_new(join: HashJoin, partition: usize, options: RunOptions) -> Result<Self> {
        let (output, _) = join.check()?;
        let claimed = join.claim(partition)?;
        Ok(Self { schema: output.schema, stage: Stage::New { join: Box::new(join), options, claimed } })
    }

    /// Schema of every batch.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).build()?;
    /// assert_eq!(*join.execute(0, &RunOptions::default())?.schema(), join.schema()?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Collects or finds the build and opens the probe side, unless that is done. An error ends the stream.
    pub(crate) fn start(&mut self) -> Result<()> {
        if !matches!(self.stage, Stage::New { .. }) {
            return Ok(());
        }
        let Stage::New { join, options, claimed } = std::mem::replace(&mut self.stage, Stage::Ended) else {
            return Ok(());
        };
        let partition = claimed.partition;
        let mut probe = join.start(claimed, &options)?;
        let input = match probe.wants_input() {
            true => Some(join.probe_source().open(partition)?),
            false => {
                probe.finish()?;
                None
            }
        };
        self.stage = Stage::Running { probe: Box::new(probe), input };
        Ok(())
    }

    /// About how many rows the next batch is made of, apart from those that are still to be pulled: 0 before the first batch,
    /// and where a probe batch has to be pulled first. See [`Probe::pending_rows`].
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 1, 2]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).build()?;
    /// let mut stream = join.execute(0, &RunOptions { batch_size: 2, ..RunOptions::default() })?;
    /// assert_eq!(stream.pending_rows(), 0);
    /// stream.next().transpose()?;
    /// // The third row of the probe batch is still to be joined.
    /// assert_eq!(stream.pending_rows(), 3);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn pending_rows(&self) -> usize {
        match &self.stage {
            Stage::Running { probe, .. } => probe.pending_rows(),
            _ => 0,
        }
    }

    /// The next output of what was pulled so far.
    pub(crate) fn next_output(&mut self) -> Result<Option<RecordBatch>> {
        match &mut self.stage {
            Stage::Running { probe, input } => {
                let batch = probe.next_output()?;
                // The source is dropped with the batch that reaches the limit, not when another one is asked for.
                if !probe.wants_input() {
                    *input = None;
                }
                Ok(batch)
            }
            _ => Ok(None),
        }
    }

    /// Pulls one probe batch, or finds that there is none left; false where no further output can come.
    pub(crate) fn pull(&mut self) -> Result<bool> {
        let Stage::Running { probe, input } = &mut self.stage else { return Ok(false) };
        let Some(stream) = input else { return Ok(false) };
        match stream.next().transpose()? {
            Some(batch) => probe.push(batch)?,
            None => {
                *input = None;
                probe.finish()?;
            }
        }
        Ok(true)
    }

    /// Frees everything.
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Ended;
    }

    fn try_next(&mut self) -> Result<Option<RecordBatch>> {
        self.start()?;
        loop {
            if let Some(batch) = self.next_output()? {
                return Ok(Some(batch));
            }
            if !self.pull()? {
                return Ok(None);
            }
        }
    }
}

impl Iterator for JoinStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.try_next().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.end();
        }
        next
    }
}
