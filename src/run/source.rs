//! Where the rows of a join's side come from.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Result, plan_err};
use crate::join::Declared;
use crate::prepare::Origin;

/// A stream of batches with its schema. Dropping it drops its producer.
pub struct BatchStream {
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<(RecordBatch, Origin)>> + Send>,
}

impl BatchStream {
    /// A stream of `batches`, all of `schema`.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::BatchStream;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let schema = users.schema();
    /// let stream = BatchStream::new(schema, (0..3).map(move |_| Ok(users.clone())));
    /// assert_eq!(stream.count(), 3);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(
        schema: SchemaRef,
        batches: impl IntoIterator<Item = Result<RecordBatch>, IntoIter: Send + 'static>,
    ) -> Self {
        Self { schema, batches: Box::new(batches.into_iter().map(|batch| batch.map(|batch| (batch, Origin::Own)))) }
    }

    /// A stream of batches that were imported, each with the address ranges of the allocations that it keeps alive, or `None`
    /// where these are not known; see [`Collector::push_foreign`](crate::Collector::push_foreign).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{BatchStream, MemoryPool, Pool, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let schema = users.schema();
    /// let start = users.column(0).to_data().buffers()[0].as_ptr() as usize;
    /// let stream = BatchStream::foreign(schema, [Ok((users, Some(vec![start..start + 4096])))]);
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let options = RunOptions { pool: Arc::clone(&pool), ..RunOptions::default() };
    /// let build = prejoin::prepare(stream, &["id"], &options)?;
    /// assert!(build.reserved_bytes() >= 4096);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn foreign(
        schema: SchemaRef,
        batches: impl IntoIterator<Item = Result<(RecordBatch, Option<Vec<Range<usize>>>)>, IntoIter: Send + 'static>,
    ) -> Self {
        let batches = batches.into_iter().map(|next| next.map(|(batch, extents)| (batch, Origin::Foreign(extents))));
        Self { schema, batches: Box::new(batches) }
    }

    /// The next batch and who owns its memory.
    pub(crate) fn next_with_origin(&mut self) -> Option<Result<(RecordBatch, Origin)>> {
        self.batches.next()
    }

    /// A stream of batches in memory.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::BatchStream;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let mut stream = BatchStream::from_batches(users.schema(), vec![users.slice(0, 1), users.slice(1, 1)]);
    /// assert_eq!(stream.next().unwrap()?, users.slice(0, 1));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self::new(schema, batches.into_iter().map(Ok))
    }

    /// Schema of every batch; single batches may differ from it in nullability and metadata.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::BatchStream;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// assert_eq!(*BatchStream::from_batches(users.schema(), vec![]).schema(), users.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next().map(|batch| batch.map(|(batch, _)| batch))
    }
}

impl From<RecordBatch> for BatchStream {
    /// A stream of one batch.
    fn from(batch: RecordBatch) -> Self {
        Self::from_batches(batch.schema(), vec![batch])
    }
}

impl fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

type Opener = Box<dyn Fn(usize) -> Result<BatchStream> + Send + Sync>;

/// One side of a join: a schema, and usually something that opens a stream per partition any number of times.
///
/// Sources are compared by identity: a clone is the same source, another one with equal contents is not.
#[derive(Clone)]
pub struct Source(Arc<SourceData>);

struct SourceData {
    schema: SchemaRef,
    declared: Declared,
    open: Option<Opener>,
}

impl Source {
    fn from_parts(schema: SchemaRef, declared: Declared, open: Option<Opener>) -> Self {
        Self(Arc::new(SourceData { schema, declared, open }))
    }

    /// A source that has a schema and no rows to open, for joins whose build or probe comes later.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let source = Source::schema_only(users.schema());
    /// assert!(source.open(0).is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema_only(schema: SchemaRef) -> Self {
        Self::declared_only(schema, Declared::partitions(1))
    }

    /// A source without rows to open, of which something is known.
    pub(crate) fn declared_only(schema: SchemaRef, declared: Declared) -> Self {
        Self::from_parts(schema, declared, None)
    }

    /// A source of `partitions` partitions; `open` opens partition `i` anew at each call.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BatchStream, Source};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let source = Source::new(users.schema(), 2, move |partition| {
    ///     Ok(BatchStream::from_batches(users.schema(), vec![users.slice(partition, 1)]))
    /// });
    /// assert_eq!(source.open(1)?.next().unwrap()?.num_rows(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(
        schema: SchemaRef,
        partitions: usize,
        open: impl Fn(usize) -> Result<BatchStream> + Send + Sync + 'static,
    ) -> Self {
        Self::from_parts(schema, Declared::partitions(partitions), Some(Box::new(open)))
    }

    /// A source of batches in memory, one list per partition.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let source = Source::from_batches(users.schema(), vec![vec![users.clone()], vec![users]]);
    /// assert_eq!((source.partitions(), source.num_rows()), (2, Some(4)));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn from_batches(schema: SchemaRef, partitions: Vec<Vec<RecordBatch>>) -> Self {
        let stream_schema = schema.clone();
        let mut batches = partitions.iter().flatten();
        let rows = batches.try_fold(0_usize, |rows, batch| rows.checked_add(batch.num_rows()));
        let source = Self::new(schema, partitions.len(), move |i| {
            Ok(BatchStream::from_batches(stream_schema.clone(), partitions[i].clone()))
        });
        source.declare(|declared| declared.rows = rows)
    }

    /// The same rows, declared to be so many in all partitions together. It counts as another source.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let source = Source::schema_only(users.schema()).with_num_rows(2);
    /// assert_eq!(source.num_rows(), Some(2));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    #[must_use]
    pub fn with_num_rows(self, rows: usize) -> Self {
        self.declare(|declared| declared.rows = Some(rows))
    }

    /// The same rows, declared as ordered ascending by these columns in each partition, the first one first. It
    /// counts as another source.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("age", Int32, [30, 40]))?;
    /// assert_eq!(Source::from(users).with_ordering(vec![1, 0]).ordering(), [1, 0]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    #[must_use]
    pub fn with_ordering(self, columns: Vec<usize>) -> Self {
        self.declare(|declared| declared.ordering = columns)
    }

    /// The same rows, declared to hold equal values in each pair of columns. It counts as another source.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("user", Int64, [1, 2]))?;
    /// assert_eq!(Source::from(users).with_equal_columns(vec![(0, 1)]).equal_columns(), [(0, 1)]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    #[must_use]
    pub fn with_equal_columns(self, pairs: Vec<(usize, usize)>) -> Self {
        self.declare(|declared| declared.equal_columns = pairs)
    }

    fn declare(self, change: impl FnOnce(&mut Declared)) -> Self {
        let mut data = Arc::try_unwrap(self.0).unwrap_or_else(|shared| {
            let opener = Self(shared.clone());
            let open: Option<Opener> = shared.open.is_some().then(|| Box::new(move |i| opener.open(i)) as Opener);
            SourceData { schema: shared.schema.clone(), declared: shared.declared.clone(), open }
        });
        change(&mut data.declared);
        Self(Arc::new(data))
    }

    /// Schema of the rows.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// assert_eq!(*Source::from(users.clone()).schema(), users.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    /// Number of partitions.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// assert_eq!(Source::from(users).partitions(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn partitions(&self) -> usize {
        self.0.declared.partitions
    }

    /// Number of rows of all partitions, where it is known.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// assert_eq!(Source::schema_only(users.schema()).num_rows(), None);
    /// assert_eq!(Source::from(users).num_rows(), Some(2));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn num_rows(&self) -> Option<usize> {
        self.0.declared.rows
    }

    /// Columns that the rows of each partition are declared to be ordered by.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// assert!(Source::from(users).ordering().is_empty());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn ordering(&self) -> &[usize] {
        &self.0.declared.ordering
    }

    /// Pairs of columns that are declared to hold equal values.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// assert!(Source::from(users).equal_columns().is_empty());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn equal_columns(&self) -> &[(usize, usize)] {
        &self.0.declared.equal_columns
    }

    /// What is known of the rows.
    pub(crate) fn declared(&self) -> &Declared {
        &self.0.declared
    }

    /// True where both are one source.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let source = Source::from(users.clone());
    /// assert!(source.same(&source.clone()));
    /// assert!(!source.same(&Source::from(users)));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn same(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Opens one partition.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::Source;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let source = Source::from(users.clone());
    /// // Each call begins anew.
    /// for _run in 0..2 {
    ///     assert_eq!(source.open(0)?.next().unwrap()?, users);
    /// }
    /// assert!(source.open(1).is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a partition out of range or a source that has a schema only.
    pub fn open(&self, partition: usize) -> Result<BatchStream> {
        if partition >= self.0.declared.partitions {
            return plan_err!("partition {partition} was asked of a source with {}", self.0.declared.partitions);
        }
        match &self.0.open {
            Some(open) => open(partition),
            None => plan_err!("this source has a schema and no rows; replace it by one that can be opened"),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("schema", self.schema())
            .field("partitions", &self.partitions())
            .finish_non_exhaustive()
    }
}

impl From<SchemaRef> for Source {
    /// A source without rows.
    fn from(schema: SchemaRef) -> Self {
        Self::schema_only(schema)
    }
}

impl From<RecordBatch> for Source {
    /// A source of one partition of one batch.
    fn from(batch: RecordBatch) -> Self {
        Self::from_batches(batch.schema(), vec![vec![batch]])
    }
}
