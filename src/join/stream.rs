//! The pull side of a join: one partition as an iterator of output batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::filter::FilterShare;
use super::kind::PartitionMode;
use super::plan::{HashJoin, RunOptions};
use super::probe::Probe;
use super::source::BatchStream;
use crate::error::Result;

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
        filter: Option<FilterShare>,
    },
    Running {
        probe: Box<Probe>,
        input: Option<BatchStream>,
        /// Held as long as the stream runs.
        _filter: Option<FilterShare>,
    },
    Ended,
}

impl JoinStream {
    pub(super) fn try_new(join: HashJoin, partition: usize, options: RunOptions) -> Result<Self> {
        let (output, _) = join.check()?;
        let filter = join.dynamic_filter();
        let mut filter = filter.map(|filter| filter.share(join.run(), join.mode, join.partitions())).transpose()?;
        // Each partition has a build of its own then, and the filter counts it once.
        let counted = filter.as_mut().filter(|_| join.mode == PartitionMode::Partitioned);
        join.run().claim(partition, join.join_type.is_build_driven() || counted.is_some())?;
        counted.into_iter().for_each(FilterShare::owe);
        Ok(Self { schema: output.schema, state: State::New { join: Box::new(join), partition, options, filter } })
    }

    /// Schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Builds or finds the build, tells it to the dynamic filter, then opens the probe side.
    fn start(
        join: &HashJoin,
        partition: usize,
        options: &RunOptions,
        mut filter: Option<FilterShare>,
    ) -> Result<State> {
        let build = join.run().build(join, partition, options)?;
        let plan = join.probe_plan(build, options)?;
        if let Some(filter) = &mut filter {
            filter.report(&plan)?;
        }
        let share = join.run().visited(&plan, join.mode, join.partitions())?;
        let mut probe = Probe::new(Arc::new(plan), join.limit, share, Arc::clone(join.run().metrics()));
        let input = match probe.wants_input() {
            true => Some(join.probe_source().open(partition)?),
            false => {
                probe.finish()?;
                None
            }
        };
        Ok(State::Running { probe: Box::new(probe), input, _filter: filter })
    }

    fn try_next(&mut self) -> Result<Option<RecordBatch>> {
        if let State::New { join, partition, options, filter } = &mut self.state {
            let filter = filter.take();
            self.state = Self::start(join, *partition, options, filter)?;
        }
        let State::Running { probe, input, .. } = &mut self.state else { return Ok(None) };
        loop {
            if let Some(batch) = probe.next_output()? {
                return Ok(Some(batch));
            }
            let Some(stream) = input else { return Ok(None) };
            let next = if probe.wants_input() { stream.next().transpose()? } else { None };
            match next {
                Some(batch) => probe.push(batch)?,
                None => {
                    *input = None;
                    probe.finish()?;
                }
            }
        }
    }
}

impl Iterator for JoinStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.try_next().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.state = State::Ended;
        }
        next
    }
}
