//! The pull side of a join: one partition as an iterator of output batches.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::dynamic_filter::FilterShare;
use super::hash_join::{HashJoin, RunOptions};
use super::source::BatchStream;
use crate::error::Result;
use crate::probe::Claim;
use crate::probe::Probe;

/// The output of one partition, in probe order. It pulls a probe batch only when an output batch is asked for, ends after
/// an error, and gives everything back when it is dropped.
#[derive(Debug)]
pub struct JoinStream {
    schema: SchemaRef,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing was pulled yet.
    New {
        join: Box<HashJoin>,
        partition: usize,
        options: RunOptions,
        claim: Claim,
        filter: Option<FilterShare>,
    },
    Running {
        probe: Box<Probe>,
        input: Option<BatchStream>,
    },
    Ended,
}

impl JoinStream {
    pub(crate) fn try_new(join: HashJoin, partition: usize, options: RunOptions) -> Result<Self> {
        let (output, _) = join.check()?;
        let (claim, filter) = join.claim(partition)?;
        Ok(Self {
            schema: output.schema,
            state: State::New { join: Box::new(join), partition, options, claim, filter },
        })
    }

    /// Schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// True once the build is known.
    #[cfg(feature = "python")]
    pub(crate) fn is_started(&self) -> bool {
        !matches!(self.state, State::New { .. })
    }

    /// Builds or finds the build and opens the probe side, unless that is done. An error ends the stream.
    pub(crate) fn start(&mut self) -> Result<()> {
        if !matches!(self.state, State::New { .. }) {
            return Ok(());
        }
        let State::New { join, partition, options, claim, filter } = std::mem::replace(&mut self.state, State::Ended)
        else {
            return Ok(());
        };
        let mut probe = join.start(partition, &options, claim, filter)?;
        let input = match probe.wants_input() {
            true => Some(join.probe_source().open(partition)?),
            false => {
                probe.finish()?;
                None
            }
        };
        self.state = State::Running { probe: Box::new(probe), input };
        Ok(())
    }

    /// About how many rows the next [`next_output`](Self::next_output) works on.
    #[cfg(feature = "python")]
    pub(crate) fn pending_rows(&self) -> usize {
        match &self.state {
            State::Running { probe, .. } => probe.pending_rows(),
            _ => 0,
        }
    }

    /// The next output of what was pulled so far.
    pub(crate) fn next_output(&mut self) -> Result<Option<RecordBatch>> {
        match &mut self.state {
            State::Running { probe, input } => {
                let batch = probe.next_output()?;
                // At the limit the source is given back with the batch that reaches it (S36).
                if !probe.wants_input() {
                    *input = None;
                }
                Ok(batch)
            }
            _ => Ok(None),
        }
    }

    /// Pulls one probe batch, or learns that there is none; false where nothing more can come out.
    pub(crate) fn pull(&mut self) -> Result<bool> {
        let State::Running { probe, input } = &mut self.state else { return Ok(false) };
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

    /// Gives everything back.
    pub(crate) fn end(&mut self) {
        self.state = State::Ended;
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
