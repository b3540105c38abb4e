//! The dynamic filter: tests that a join's build offers to whoever makes the probe rows, to leave out those that cannot match.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;

use super::state::RunState;
use crate::columns::bounds::Shown;
use crate::error::{Result, plan_err};
use crate::expr::Side;
use crate::join::JoinKey;
use crate::prepare::{Membership, PreparedBuild};
use crate::probe::{MapLookup, Mask, ProbePlan};

/// A filter on the probe rows of one join, empty until that join's build is known.
///
/// It is made over the probe key columns, given to the join by
/// [`HashJoinBuilder::dynamic_filter`](crate::HashJoinBuilder::dynamic_filter), and read by the probe source: complete
/// before the first probe batch is asked for, it tests bounds and membership and never drops a row that would match. In
/// Partitioned mode it tests the union of all partitions' builds and is complete once the last one is known; until then
/// it keeps every row. For joins that give unmatched probe rows, or look at them (null-aware), it keeps every row.
///
/// Give each independent run another filter: one that two runs share at a time tests the union of their builds. Every
/// `build()` of a builder, and every new run, empties it. It keeps the builds that it tests alive and may outlive its join.
///
/// ```
/// use arrow_array::record_batch;
/// use prejoin::{BatchStream, DynamicFilter, HashJoin, RunOptions, Source};
/// use std::sync::Arc;
///
/// let users = record_batch!(("id", Int64, [1, 2]))?;
/// let events = record_batch!(("id", Int64, [2, 3, 2]), ("at", Int32, [10, 20, 30]))?;
/// let filter = DynamicFilter::try_new(events.schema(), ["id"])?;
/// let (scan, schema) = (Arc::clone(&filter), events.schema());
/// let probe = Source::new(events.schema(), 1, move |_| {
///     let kept = arrow_select::filter::filter_record_batch(&events, &scan.evaluate(&events)?)?;
///     assert_eq!(kept.num_rows(), 2);
///     Ok(BatchStream::from_batches(schema.clone(), vec![kept]))
/// });
/// let build = Source::from_batches(users.schema(), vec![vec![users]]);
/// let join = HashJoin::builder(build, probe).on([("id", "id")]).dynamic_filter(Some(Arc::clone(&filter))).build()?;
/// assert_eq!(filter.to_string(), "DynamicFilter [ empty ]");
/// assert_eq!(join.execute(0, &RunOptions::default())?.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
/// assert_eq!(filter.to_string(), "DynamicFilter [ id@0 >= 1 AND id@0 <= 2 AND id@0 IN (list of 2) ]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DynamicFilter {
    schema: SchemaRef,
    keys: Vec<usize>,
    state: Mutex<FilterState>,
    completed: Condvar,
}

type Callback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct FilterState {
    /// The run that completes the filter: the one that began last.
    owner: Weak<RunState>,
    /// Streams that read through the filter, of whichever run.
    open: usize,
    /// Builds that the owner makes in all, and those of them that are not known yet.
    builds: usize,
    missing: usize,
    complete: bool,
    tests: Arc<Tests>,
    callbacks: Vec<Callback>,
}

/// What a row must pass: one of the lookups. It only ever grows while streams are open.
#[derive(Default, Clone)]
struct Tests {
    lookups: Vec<MapLookup>,
    /// The join needs every probe row.
    keeps_all: bool,
}

impl DynamicFilter {
    /// A filter over the columns `keys` of the probe side `schema`, in the order of the join's keys.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::DynamicFilter;
    ///
    /// let events = record_batch!(("at", Int32, [10]), ("user", Int64, [2]))?;
    /// assert_eq!(DynamicFilter::try_new(events.schema(), ["user"])?.keys(), [1]);
    /// assert!(DynamicFilter::try_new(events.schema(), ["id"]).is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a column that does not exist, or no column at all.
    pub fn try_new<K: Into<JoinKey>>(schema: SchemaRef, keys: impl IntoIterator<Item = K>) -> Result<Arc<Self>> {
        let keys = keys.into_iter().map(|key| key.into().resolve(&schema, Side::Probe));
        let keys = keys.collect::<Result<Vec<usize>>>()?;
        if keys.is_empty() {
            return plan_err!("a dynamic filter needs at least one key column, none was given");
        }
        Ok(Arc::new(Self { schema, keys, state: Mutex::default(), completed: Condvar::new() }))
    }

    /// Positions of the tested columns in the probe schema, in key order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::DynamicFilter;
    ///
    /// let events = record_batch!(("at", Int32, [10]), ("user", Int64, [2]))?;
    /// assert_eq!(DynamicFilter::try_new(events.schema(), ["user"])?.keys(), [1]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn keys(&self) -> &[usize] {
        &self.keys
    }

    /// True once the build is known, or all of them in Partitioned mode.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{DynamicFilter, HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let filter = DynamicFilter::try_new(events.schema(), ["id"])?;
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).dynamic_filter(Some(filter.clone())).build()?;
    /// assert!(!filter.is_complete());
    /// let _probe = join.open(0, &RunOptions::default())?;
    /// assert!(filter.is_complete());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn is_complete(&self) -> bool {
        self.state().complete
    }

    /// Waits until the filter is complete, at most for `timeout`; `None` waits without end. True if it is.
    ///
    /// The build is made by the thread that first pulls from the join: another one may wait. A run that fails or is
    /// dropped before its build is known leaves the filter empty.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use std::time::Duration;
    ///
    /// use prejoin::{DynamicFilter, HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let filter = DynamicFilter::try_new(events.schema(), ["id"])?;
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).dynamic_filter(Some(filter.clone())).build()?;
    /// assert!(!filter.wait_complete(Some(Duration::ZERO)));
    /// let scan = std::thread::spawn(move || filter.wait_complete(None));
    /// let _probe = join.open(0, &RunOptions::default())?;
    /// assert!(scan.join().unwrap());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn wait_complete(&self, timeout: Option<Duration>) -> bool {
        let waits = |state: &mut FilterState| !state.complete;
        let state = self.state();
        match timeout {
            None => self.completed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner).complete,
            Some(timeout) => {
                let waited = self.completed.wait_timeout_while(state, timeout, waits);
                waited.unwrap_or_else(PoisonError::into_inner).0.complete
            }
        }
    }

    /// Calls `callback` once, when the filter is complete: now if it is, else on the thread that completes it. It must not
    /// block nor panic.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// use prejoin::{DynamicFilter, HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let filter = DynamicFilter::try_new(events.schema(), ["id"])?;
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).dynamic_filter(Some(filter.clone())).build()?;
    /// let called = Arc::new(AtomicBool::new(false));
    /// let flag = Arc::clone(&called);
    /// filter.on_complete(move || flag.store(true, Ordering::Relaxed));
    /// let _probe = join.open(0, &RunOptions::default())?;
    /// assert!(called.load(Ordering::Relaxed));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn on_complete(&self, callback: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if !state.complete {
            return state.callbacks.push(Box::new(callback));
        }
        drop(state);
        callback();
    }

    /// The rows of `batch` that can match, one bit per row and no nulls; every row before the filter is complete. Columns
    /// are found by their position in the probe schema.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{DynamicFilter, HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let filter = DynamicFilter::try_new(events.schema(), ["id"])?;
    /// let join = HashJoin::builder(users, events.schema()).on([("id", "id")]);
    /// let join = join.dynamic_filter(Some(Arc::clone(&filter))).build()?;
    /// let _probe = join.open(0, &RunOptions::default())?;
    /// assert_eq!(filter.evaluate(&events)?.iter().collect::<Vec<_>>(), [Some(true), Some(false)]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the batch has no such columns, or columns of other types.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let Some(tests) = self.tests().filter(|tests| !tests.keeps_all) else {
            return Ok(BooleanArray::new(BooleanBuffer::new_set(batch.num_rows()), None));
        };
        let mut mask = Mask::new(batch)?;
        tests.lookups.iter().try_for_each(|lookup| lookup.mark(batch, &mut mask))?;
        Ok(mask.finish())
    }

    /// The lookups of which a row must pass one; `None` where every row is kept: before the filter is complete, and for
    /// joins that need every probe row.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{DynamicFilter, HashJoin, RunOptions};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1, 2]))?, record_batch!(("id", Int64, [2, 3]))?);
    /// let filter = DynamicFilter::try_new(events.schema(), ["id"])?;
    /// let join = HashJoin::builder(users, events).on([("id", "id")]).dynamic_filter(Some(filter.clone())).build()?;
    /// assert!(filter.lookups().is_none());
    /// let _probe = join.open(0, &RunOptions::default())?;
    /// assert_eq!(filter.lookups().unwrap()[0].build().num_keys(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn lookups(&self) -> Option<Vec<MapLookup>> {
        Some(self.tests().filter(|tests| !tests.keeps_all)?.lookups.clone())
    }

    fn tests(&self) -> Option<Arc<Tests>> {
        let state = self.state();
        state.complete.then(|| Arc::clone(&state.tests))
    }

    fn state(&self) -> MutexGuard<'_, FilterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the filter is over the probe keys `on` of its join, which are columns of `schema`.
    pub(crate) fn check_keys(&self, schema: &SchemaRef, on: &[(usize, usize)]) -> Result<()> {
        let same = |(&own, &(_, probe)): (&usize, &(usize, usize))| {
            let (own_field, field) = (self.schema.field(own), schema.field(probe));
            own == probe && own_field.name() == field.name() && own_field.data_type() == field.data_type()
        };
        if self.keys.len() == on.len() && self.keys.iter().zip(on).all(same) {
            return Ok(());
        }
        let list = |schema: &SchemaRef, keys: &mut dyn Iterator<Item = usize>| {
            let key = |key| format!("column {key} {:?} {}", schema.field(key).name(), schema.field(key).data_type());
            keys.map(key).collect::<Vec<_>>().join(", ")
        };
        plan_err!(
            "dynamic filter keys do not match probe keys: the filter is over {}, the join's probe keys are {}; make a new \
             filter",
            list(&self.schema, &mut self.keys.iter().copied()),
            list(schema, &mut on.iter().map(|&(_, probe)| probe))
        )
    }

    /// Empties the filter, for a join that is built anew.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.owner = Weak::new();
        let old = state.forget(0);
        drop(state);
        drop(old);
    }

    /// A stream's share in the filter, which waits for `builds` builds of `run`; if `awaited`, this stream makes one of
    /// them.
    pub(crate) fn share(self: &Arc<Self>, run: &Arc<RunState>, builds: usize, awaited: bool) -> FilterShare {
        let run = Arc::downgrade(run);
        let mut state = self.state();
        state.open += 1;
        let old = if state.owner.ptr_eq(&run) {
            None
        } else {
            state.owner = run.clone();
            state.builds = builds;
            // This one is counted already.
            state.forget(1)
        };
        drop(state);
        drop(old);
        FilterShare { filter: Arc::clone(self), run, awaited }
    }

    /// Counts one build as known.
    fn settle(&self, mut state: MutexGuard<'_, FilterState>) {
        state.missing = state.missing.saturating_sub(1);
        if state.missing > 0 || state.complete {
            return;
        }
        state.complete = true;
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.completed.notify_all();
        callbacks.into_iter().for_each(|callback| callback());
    }

    fn column(&self, key: usize) -> String {
        format!("{}@{}", self.schema.field(key).name(), key)
    }

    /// The test of one build as text: bounds and how membership is tested.
    fn describe(&self, build: &PreparedBuild) -> String {
        if build.num_keys() == 0 {
            return "false".to_owned();
        }
        let columns: Vec<String> = self.keys.iter().map(|&key| self.column(key)).collect();
        let bounds = columns.iter().zip(build.bounds()).zip(build.null_equality());
        let mut terms: Vec<String> = bounds
            .filter_map(|((column, bounds), nulls)| {
                let bounds = bounds.as_ref()?;
                let text = format!("{column} >= {} AND {column} <= {}", Shown(bounds.min()), Shown(bounds.max()));
                Some(if nulls.nulls_equal() { format!("({text} OR {column} IS NULL)") } else { text })
            })
            .collect();
        let tuple =
            if let [column] = columns.as_slice() { column.clone() } else { format!("({})", columns.join(", ")) };
        terms.push(match build.membership() {
            Membership::InList(list) => format!("{tuple} IN (list of {})", list.len()),
            Membership::Map => format!("{tuple} IN (map of {})", build.num_keys()),
        });
        terms.join(" AND ")
    }
}

impl FilterState {
    /// Back to empty. Where more than `open` streams are open, what they test is kept, so that the filter, once it is
    /// complete again, never drops a row of theirs. What is returned is to be dropped without the lock: it may be the last
    /// holder of a build.
    fn forget(&mut self, open: usize) -> Option<Arc<Tests>> {
        self.complete = false;
        self.missing = self.builds;
        (self.open <= open).then(|| std::mem::take(&mut self.tests))
    }
}

impl fmt::Display for DynamicFilter {
    /// Bounds and how membership is tested; no other contents of the build.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.tests() {
            None => "empty".to_owned(),
            Some(tests) if tests.keeps_all => "true".to_owned(),
            Some(tests) => match tests.lookups.as_slice() {
                [] => "false".to_owned(),
                [one] => self.describe(one.build()),
                many => {
                    many.iter().map(|one| format!("({})", self.describe(one.build()))).collect::<Vec<_>>().join(" OR ")
                }
            },
        };
        write!(f, "DynamicFilter [ {text} ]")
    }
}

impl fmt::Debug for DynamicFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One stream's share in its join's filter, held as long as the stream reads its probe side.
#[derive(Debug)]
pub(crate) struct FilterShare {
    filter: Arc<DynamicFilter>,
    run: Weak<RunState>,
    /// The filter waits for the build of this stream.
    awaited: bool,
}

impl FilterShare {
    /// Adds the build that `plan` probes.
    pub(crate) fn report(&mut self, plan: &ProbePlan) -> Result<()> {
        let keys = self.filter.keys.clone();
        let lookup = MapLookup::new(Arc::clone(&plan.build), keys, "dynamic filter", 0)?;
        let mut state = self.filter.state();
        let known = state.tests.lookups.contains(&lookup);
        let keeps_all = state.tests.keeps_all || plan.needs_every_probe_row();
        if !known || keeps_all != state.tests.keeps_all {
            let mut tests = Tests::clone(&state.tests);
            tests.lookups.extend((!known).then_some(lookup));
            tests.keeps_all = keeps_all;
            state.tests = Arc::new(tests);
        }
        if state.owner.ptr_eq(&self.run) && (self.awaited || state.builds == 1) {
            self.filter.settle(state);
        }
        self.awaited = false;
        Ok(())
    }
}

impl Drop for FilterShare {
    fn drop(&mut self) {
        let mut state = self.filter.state();
        state.open -= 1;
        // A partition that ends before its build is known has no probe rows that could match.
        if self.awaited && state.owner.ptr_eq(&self.run) {
            self.filter.settle(state);
        }
    }
}
