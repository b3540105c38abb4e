//! The push side of preparing: batches in, one prepared build out.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};

use super::admission::{settle_copy, wastes_memory};
use super::index_keys::IndexKeys;
use super::{BuildSpec, Keep, PrepareOptions, PreparedBuild};
use crate::cancel::Cancel;
use crate::columns::copy_size::copy_bound_of_column;
use crate::columns::{Bounds, ColumnDifference, column_difference, concat};
use crate::error::{Error, Result, plan_err};
use crate::index::{IndexContext, IndexKind, KeyIndex, KeyRows};
use crate::memory::{Pool, RangeCounter, Reservation, ReturnsToSystem};

/// Rows that a build holds at most: row numbers are 32 bits wide, and one of them stands for "no row".
const MAX_ROWS: usize = u32::MAX as usize - 1;

/// Takes the batches of a build side one by one and makes a [`PreparedBuild`] of them.
///
/// Dropping it cancels the preparation and gives everything back. So does an error: the batches are released at once,
/// and whatever is asked of the collector afterwards is an error too.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{Int64Array, RecordBatch, StringArray};
/// use prejoin::{BuildSpec, Cancel, Collector, PrepareOptions, MemoryPool, NullEquality, Pool};
///
/// let batch = RecordBatch::try_from_iter([
///     ("id", Arc::new(Int64Array::from(vec![7, 8, 8])) as _),
///     ("name", Arc::new(StringArray::from(vec!["a", "b", "c"])) as _),
/// ])?;
/// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
/// let spec = BuildSpec::by_name(batch.schema(), &["id"], NullEquality::NullEqualsNothing)?;
/// let mut collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
/// collector.push(batch.clone())?;
/// collector.push(batch)?;
/// let build = collector.finish()?;
/// assert_eq!((build.num_rows(), build.num_keys()), (6, 2));
/// assert_eq!(pool.reserved(), build.reserved_bytes());
/// drop(build);
/// assert_eq!(pool.reserved(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Collector {
    spec: BuildSpec,
    options: PrepareOptions,
    keep: Keep,
    cancel: Cancel,
    /// `None` after an error.
    held: Option<Held>,
    /// Last, after what was held and what preparing took besides.
    returns: ReturnsToSystem,
}

/// Who allocated the memory of a batch.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Rust allocations.
    Own,
    /// It was imported. Holds the address ranges of the allocations that it keeps alive, where they are known.
    Foreign(Option<Vec<Range<usize>>>),
}

/// An index with its groups, and the bounds of each key.
type Indexed = ((KeyIndex, KeyRows), Vec<Option<Bounds>>);

/// What was pushed, and its charge.
#[derive(Debug)]
struct Held {
    batches: Vec<RecordBatch>,
    rows: usize,
    /// Allocations of the first batch beyond those that its buffers show; `None` where they are unknown.
    extents: Option<Vec<Range<usize>>>,
    /// Foreign memory: each batch of it is freed with its last column.
    foreign: RangeCounter,
    all: RangeCounter,
    /// Last, so that the batches are dropped before their charge.
    reservation: Reservation,
}

impl Collector {
    /// A collector for builds of `spec`. Nothing is charged yet.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, Cancel, Collector, MemoryPool, NullEquality, Pool, PrepareOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::NullEqualsNull)?;
    /// let collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
    /// assert_eq!((pool.reserved(), collector.finish()?.num_rows()), (0, 0));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(spec: BuildSpec, pool: &Arc<dyn Pool>, options: PrepareOptions, cancel: Cancel) -> Self {
        let held = Held {
            batches: Vec::new(),
            rows: 0,
            extents: Some(Vec::new()),
            foreign: RangeCounter::default(),
            all: RangeCounter::default(),
            reservation: Reservation::new(pool, "prepared build"),
        };
        Self { spec, options, keep: Keep::All, cancel, held: Some(held), returns: ReturnsToSystem::default() }
    }

    /// Drops all rows of a key but one, before they are counted. Where a key repeats, rows and copy are held together for
    /// a moment, and the index is made twice.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, Cancel, Collector, Keep, NullEquality, PrepareOptions, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 2]), ("age", Int32, [30, 40, 41]))?;
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
    /// let pool = RunOptions::default().pool;
    /// let collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
    /// let mut collector = collector.with_keep(Keep::Last);
    /// collector.push(users)?;
    /// let kept = record_batch!(("id", Int64, [1, 2]), ("age", Int32, [30, 41]))?;
    /// assert_eq!(*collector.finish()?.rows()?, kept);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    #[must_use]
    pub fn with_keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Takes one batch whose buffers are Rust allocations, each charged with its capacity.
    ///
    /// Names and types must be those of the build's schema; nullability and metadata may differ.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, Cancel, Collector, MemoryPool, NullEquality, Pool, PrepareOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
    /// let mut collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
    /// collector.push(users)?;
    /// assert!(pool.reserved() >= 2 * 8);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`] for other columns, [`Error::Overflow`] for more than 2^32-2 rows in all,
    /// [`Error::ResourcesExhausted`] from the pool, [`Error::Cancelled`].
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.push_from(batch, Origin::Own)
    }

    /// Takes one batch that was imported, e.g. over the C Data Interface. The buffers of such a batch do not
    /// show their true allocations, so the caller names them: `extents` are the address ranges of the allocations that the batch keeps alive.
    ///
    /// Known extents are charged whole. `None` says that they are unknown: the ranges that the buffers show are
    /// charged, and a build of this batch alone is a copy of it. Pass it for a small slice of a large allocation
    /// too, and for every batch but the first: a build of several batches is a copy in any case.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, Cancel, Collector, MemoryPool, NullEquality, Pool, PrepareOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
    /// let mut collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
    /// // The buffer of the column lies in an allocation of 4,096 bytes.
    /// let start = users.column(0).to_data().buffers()[0].as_ptr() as usize;
    /// collector.push_foreign(users, Some(vec![start..start + 4096]))?;
    /// assert!(pool.reserved() >= 4096);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_foreign(&mut self, batch: RecordBatch, extents: Option<Vec<Range<usize>>>) -> Result<()> {
        self.push_from(batch, Origin::Foreign(extents))
    }

    /// [`push`](Self::push) or [`push_foreign`](Self::push_foreign).
    pub(crate) fn push_from(&mut self, batch: RecordBatch, origin: Origin) -> Result<()> {
        self.take(|held, spec| match origin {
            Origin::Own => held.push(spec, batch, Some(Vec::new()), false),
            Origin::Foreign(extents) => held.push(spec, batch, extents, true),
        })
    }

    /// Concatenates, indexes and freezes what was pushed.
    ///
    /// A single batch is kept as it came, with the same buffers, unless it is foreign with unknown extents or shows
    /// under half of an allocation of more than 64 KiB: then it is copied. Several batches are concatenated column by
    /// column.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, Cancel, Collector, MemoryPool, NullEquality, Pool, PrepareOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
    /// let mut collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
    /// collector.push(users.clone())?;
    /// collector.push(users)?;
    /// let build = collector.finish()?;
    /// assert_eq!((build.num_rows(), pool.reserved()), (4, build.reserved_bytes()));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ResourcesExhausted`] from the pool, [`Error::Cancelled`], [`Error::Overflow`] for byte columns that
    /// outgrow their offsets.
    pub fn finish(mut self) -> Result<Arc<PreparedBuild>> {
        let held = self.held.take().ok_or_else(failed)?;
        self.cancel.check()?;
        let (columns, mut reservation) = held.into_columns(self.spec.schema(), &self.cancel)?;
        self.returns.saw(reservation.size());
        let mut rows = RecordBatch::try_new(held_schema(self.spec.schema(), &columns), columns)?;
        let held = reservation.size();
        let mut indexed = self.index(&rows, &mut reservation)?;
        if self.keep != Keep::All && !indexed.0.1.is_unique() {
            let ((index, groups), _) = indexed;
            let num_keys = index.num_keys();
            drop(index);
            reservation.shrink(reservation.size() - held - groups.memory_size());
            rows = self.keep.copy((rows, held), (&groups, num_keys), &mut reservation, &self.cancel)?;
            reservation.shrink(groups.memory_size());
            drop(groups);
            indexed = self.index(&rows, &mut reservation)?;
        }
        let (index, bounds) = indexed;
        let build = PreparedBuild::try_new(self.spec, rows, index, bounds, &self.options, reservation)?;
        Ok(Arc::new(build))
    }

    /// The index of `rows` and the bounds of its keys; `reservation` holds the bytes of both besides what it held.
    fn index(&self, rows: &RecordBatch, reservation: &mut Reservation) -> Result<Indexed> {
        let keys = IndexKeys::try_new(rows, self.spec.keys(), reservation)?;
        let nulls_equal: Vec<_> = self.spec.null_equality().iter().map(|n| n.nulls_equal()).collect();
        let bounds: Vec<_> = keys.columns.iter().map(|key| Bounds::of(key, &self.cancel)).collect::<Result<_>>()?;
        let mut scratch = Reservation::new(reservation.pool(), "prepared build scratch");
        let context = IndexContext {
            options: &self.options.index(),
            retained: reservation,
            scratch: &mut scratch,
            bounds: &bounds,
            cancel: &self.cancel,
        };
        let index = KeyIndex::build(&keys.columns, &nulls_equal, context)?;
        drop(scratch);
        keys.release(index.0.kind() == IndexKind::Bytes, reservation);
        Ok((index, bounds))
    }

    /// Runs one step. Where it fails, the batches are released.
    fn take(&mut self, step: impl FnOnce(&mut Held, &BuildSpec) -> Result<()>) -> Result<()> {
        let mut held = self.held.take().ok_or_else(failed)?;
        self.cancel.check()?;
        step(&mut held, &self.spec)?;
        self.returns.saw(held.reservation.size());
        self.held = Some(held);
        Ok(())
    }
}

impl Held {
    fn push(
        &mut self,
        spec: &BuildSpec,
        batch: RecordBatch,
        extents: Option<Vec<Range<usize>>>,
        foreign: bool,
    ) -> Result<()> {
        check_schema(spec.schema(), &batch.schema())?;
        let rows = batch.num_rows();
        self.rows = self.rows.checked_add(rows).filter(|&total| total <= MAX_ROWS).ok_or_else(|| {
            Error::Overflow(format!(
                "a prepared build holds at most {MAX_ROWS} (2^32-2) rows: {} arrived, the next batch has {rows}; \
                 filter the build side or split it",
                self.rows
            ))
        })?;
        if rows == 0 {
            return Ok(());
        }
        let mut new = self.all.add_batch(&batch);
        let known = extents.as_deref().unwrap_or_default();
        new += known.iter().map(|range| self.all.add_range(range.clone())).sum::<usize>();
        self.reservation.try_grow(new)?;
        if foreign {
            self.foreign.add_batch(&batch);
            known.iter().for_each(|range| _ = self.foreign.add_range(range.clone()));
        }
        if self.batches.is_empty() {
            self.extents = extents;
        }
        self.batches.push(batch);
        Ok(())
    }

    /// The columns of the build, and the reservation that holds exactly their bytes.
    fn into_columns(mut self, schema: &SchemaRef, cancel: &Cancel) -> Result<(Vec<ArrayRef>, Reservation)> {
        if self.batches.is_empty() {
            let empty = RecordBatch::new_empty(schema.clone());
            // A few bytes per column, known once they are allocated.
            self.reservation.try_grow(RangeCounter::default().add_batch(&empty))?;
            return Ok((empty.columns().to_vec(), self.reservation));
        }
        if let ([batch], Some(extents)) = (self.batches.as_slice(), &self.extents)
            && !wastes_memory(batch, extents)?
        {
            return Ok((batch.columns().to_vec(), self.reservation));
        }
        self.concat(schema, cancel)
    }

    /// Copies column by column, and drops each column's inputs and their charge before the next is admitted.
    fn concat(self, schema: &SchemaRef, cancel: &Cancel) -> Result<(Vec<ArrayRef>, Reservation)> {
        let Self { batches, foreign, all, mut reservation, .. } = self;
        drop(all);
        let freed = freed_by(&batches, foreign);
        let mut inputs: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(batches.len()); schema.fields().len()];
        for batch in batches {
            for (input, column) in inputs.iter_mut().zip(batch.columns()) {
                input.push(column.clone());
            }
        }
        let mut columns = Vec::with_capacity(inputs.len());
        for (column, (input, freed)) in inputs.into_iter().zip(freed).enumerate() {
            let admitted = copy_bound_of_column(&input)?;
            reservation.try_grow(admitted)?;
            let copy = concat(&input, cancel).map_err(|error| name_column(error, schema, column))?;
            drop(input);
            settle_copy(&mut reservation, freed, admitted, RangeCounter::default().add_array(copy.as_ref()))?;
            columns.push(copy);
        }
        Ok((columns, reservation))
    }
}

/// Bytes of the inputs that each column frees once those before it are done. Foreign memory goes with the last.
fn freed_by(batches: &[RecordBatch], foreign: RangeCounter) -> Vec<usize> {
    // From the last column back, so that each adds exactly what none after it holds.
    let mut held = foreign;
    let columns = batches.first().map_or(0, RecordBatch::num_columns);
    let mut freed: Vec<usize> = Vec::with_capacity(columns);
    for column in (0..columns).rev() {
        let before = if freed.is_empty() { 0 } else { held.total() };
        for batch in batches {
            held.add_array(batch.column(column));
        }
        freed.push(held.total() - before);
    }
    freed.reverse();
    freed
}

/// Refuses a batch whose columns are not those of the build; nullability and metadata may differ.
fn check_schema(build: &Schema, batch: &Schema) -> Result<()> {
    match column_difference(build, batch) {
        None => Ok(()),
        Some(ColumnDifference::Count) => plan_err!(
            "a batch does not match the build schema: it has {} columns, the schema has {}",
            batch.fields().len(),
            build.fields().len()
        ),
        Some(ColumnDifference::Column(position, wanted, found)) => plan_err!(
            "a batch does not match the build schema: column {position} is {:?} of type {}, not {:?} of type {}",
            found.name(),
            found.data_type(),
            wanted.name(),
            wanted.data_type()
        ),
    }
}

/// The build's schema, where a column that holds nulls is nullable whatever was declared: a batch may differ from the
/// schema in nullability, and readers skip the validity bitmap of columns that are declared without nulls.
fn held_schema(declared: &SchemaRef, columns: &[ArrayRef]) -> SchemaRef {
    let has_undeclared_nulls =
        |column: usize| !declared.field(column).is_nullable() && columns[column].null_count() > 0;
    if !(0..columns.len()).any(has_undeclared_nulls) {
        return declared.clone();
    }
    let fields = declared.fields().iter().enumerate();
    let fields: Vec<_> = fields
        .map(|(column, field)| match has_undeclared_nulls(column) {
            true => Arc::new(field.as_ref().clone().with_nullable(true)),
            false => field.clone(),
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, declared.metadata().clone()))
}

fn name_column(error: Error, schema: &Schema, column: usize) -> Error {
    match error {
        Error::Overflow(text) => Error::Overflow(format!("build column {:?}: {text}", schema.field(column).name())),
        Error::Execution(text) => Error::Execution(format!("build column {:?}: {text}", schema.field(column).name())),
        other => other,
    }
}

fn failed() -> Error {
    Error::Execution("this collector failed before and released its batches; prepare again with a new one".to_owned())
}
