//! The push side of a run: one partition whose probe batches the caller brings.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::dynamic_filter::FilterShare;
use super::hash_join::{ClaimedPartition, HashJoin};
use super::options::RunOptions;
use crate::error::Result;
use crate::join::PartitionMode;
use crate::probe::{Claim, ProbeLoop};

/// One partition of one join: push probe batches, take output batches, finish.
///
/// Output keeps probe order, and build order within a probe row. Build-driven join types give their closing rows (the
/// unmatched build rows; for [`BuildSemi`](crate::JoinType::BuildSemi) the matched ones) last, once per run, from the last
/// partition to finish or be dropped. A partition that fails or is dropped counts as done with the probe rows that it has
/// read so far; where it is the last one after all others have finished, the closing rows do not come, since no partition is
/// left to give them.
///
/// ```
/// use arrow_array::record_batch;
/// use prejoin::{HashJoin, RunOptions, Source};
///
/// let users = record_batch!(("id", Int64, [1, 2]))?;
/// let events = record_batch!(("id", Int64, [2, 3, 2]))?;
/// let build = Source::from_batches(users.schema(), vec![vec![users]]);
/// let join = HashJoin::builder(build, events.schema()).on([("id", "id")]).build()?;
/// let mut probe = join.open(0, &RunOptions::default())?;
/// probe.push(events)?;
/// assert_eq!(probe.next_output()?.unwrap().num_rows(), 2);
/// assert!(probe.next_output()?.is_none());
/// probe.finish()?;
/// assert!(probe.next_output()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Probe {
    partition: ProbeLoop,
    /// Held for as long as probe rows are read; dropped after what the partition marks.
    filter: Option<FilterShare>,
}

impl Probe {
    /// Schema of the output.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("user", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "user")]).build()?;
    /// assert_eq!(*join.open(0, &RunOptions::default())?.schema(), join.schema()?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        self.partition.schema()
    }

    /// False once no further probe batch can change the output: the limit is reached, or nothing can match.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// // An inner join with an empty build gives no rows, whatever the probe side holds.
    /// let join = HashJoin::builder(users.slice(0, 0), events).on([("id", "id")]).build()?;
    /// assert!(!join.open(0, &RunOptions::default())?.wants_input());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn wants_input(&self) -> bool {
        self.partition.wants_input()
    }

    /// About how many rows the next [`next_output`](Self::next_output) works on: those of the batch that is being read, and
    /// build rows that follow at the end. A caller that moves long work to another thread decides by it.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3, 2]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).build()?;
    /// let mut probe = join.open(0, &RunOptions::default())?;
    /// assert_eq!(probe.pending_rows(), 0);
    /// probe.push(events)?;
    /// assert_eq!(probe.pending_rows(), 3);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn pending_rows(&self) -> usize {
        self.partition.pending_rows()
    }

    /// Takes one probe batch; [`next_output`](Self::next_output) must have returned `None` before.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).build()?;
    /// let mut probe = join.open(0, &RunOptions::default())?;
    /// for _batch in 0..2 {
    ///     probe.push(events.clone())?;
    ///     while let Some(output) = probe.next_output()? {
    ///         assert_eq!(output.num_rows(), 1);
    ///     }
    /// }
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the batch's columns do not fit the probe schema.
    /// [`Error::Execution`](crate::Error::Execution) for nulls where the schema declares none.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.partition.push(batch)
    }

    /// Says that no batch follows; what is left comes out of [`next_output`](Self::next_output).
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, JoinType, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).join_type(JoinType::BuildAnti).build()?;
    /// let mut probe = join.open(0, &RunOptions::default())?;
    /// probe.push(events)?;
    /// assert!(probe.next_output()?.is_none());
    /// probe.finish()?;
    /// assert_eq!(probe.next_output()?.unwrap().columns(), record_batch!(("id", Int64, [1]))?.columns());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) where it was finished before.
    pub fn finish(&mut self) -> Result<()> {
        let finished = self.partition.finish();
        self.drop_filter();
        finished
    }

    /// The next output batch, of at most `batch_size` rows and never empty; `None` when another batch must be pushed, or
    /// after [`finish`](Self::finish) when all is given.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 1, 2]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).build()?;
    /// let mut probe = join.open(0, &RunOptions { batch_size: 2, ..RunOptions::default() })?;
    /// probe.push(events)?;
    /// assert_eq!(probe.next_output()?.unwrap().num_rows(), 2);
    /// assert_eq!(probe.next_output()?.unwrap().num_rows(), 1);
    /// assert!(probe.next_output()?.is_none());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Execution`](crate::Error::Execution) where the predicate fails or `validate` refuses a probe row;
    /// [`Error::Overflow`](crate::Error::Overflow) where a single row does not fit a batch;
    /// [`Error::Cancelled`](crate::Error::Cancelled) once the run is asked to stop.
    pub fn next_output(&mut self) -> Result<Option<RecordBatch>> {
        let batch = self.partition.next_output();
        self.drop_filter();
        batch
    }

    /// All outputs up to the next push as one batch, of any number of rows.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3, 2]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).build()?;
    /// let mut probe = join.open(0, &RunOptions { batch_size: 1, ..RunOptions::default() })?;
    /// probe.push(events)?;
    /// assert_eq!(probe.drain()?.num_rows(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`next_output`](Self::next_output), and [`Error::Overflow`](crate::Error::Overflow) if the outputs do not fit one
    /// batch.
    pub fn drain(&mut self) -> Result<RecordBatch> {
        let joined = self.partition.drain();
        self.drop_filter();
        joined
    }

    /// Gives up the share in the dynamic filter once no further probe row is read.
    fn drop_filter(&mut self) {
        if !self.partition.reads_probe() {
            self.filter = None;
        }
    }
}

impl HashJoin {
    /// Opens one partition for pushing: validates, then collects or finds the build.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]).build()?;
    /// let mut probe = join.open(0, &RunOptions::default())?;
    /// probe.push(events)?;
    /// assert_eq!(probe.next_output()?.unwrap().num_rows(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join, changed since it was built or attached, is not valid any more, and
    /// whatever collecting an ordinary build raises.
    pub fn open(&self, partition: usize, options: &RunOptions) -> Result<Probe> {
        self.check()?;
        self.start(self.claim(partition)?, options)
    }

    /// Opens a partition that was claimed. The dynamic filter learns of the build before any probe row is asked for.
    pub(super) fn start(&self, claimed: ClaimedPartition, options: &RunOptions) -> Result<Probe> {
        let ClaimedPartition { partition, claim, mut filter } = claimed;
        let build = self.find_build(partition, options)?;
        let plan = self.probe_plan(build, options)?;
        if let Some(filter) = &mut filter {
            filter.report(&plan)?;
        }
        let claim = match self.spec.mode {
            PartitionMode::CollectLeft => claim,
            // The only partition that probes its build.
            PartitionMode::Partitioned => Claim::alone()?,
        };
        let marks = claim.marks(&plan, &options.cancel)?;
        let partition = self.new_probe_loop(plan, marks, options.cancel.clone());
        Ok(Probe { partition, filter })
    }
}
