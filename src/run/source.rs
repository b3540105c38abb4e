//! Where the rows of a join's side come from.

use std::fmt;
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
    pub fn new(
        schema: SchemaRef,
        batches: impl IntoIterator<Item = Result<RecordBatch>, IntoIter: Send + 'static>,
    ) -> Self {
        Self { schema, batches: Box::new(batches.into_iter().map(|batch| batch.map(|batch| (batch, Origin::Own)))) }
    }

    /// A stream of batches that may be foreign.
    #[cfg(feature = "python")]
    pub(crate) fn with_origin(
        schema: SchemaRef,
        batches: impl Iterator<Item = Result<(RecordBatch, Origin)>> + Send + 'static,
    ) -> Self {
        Self { schema, batches: Box::new(batches) }
    }

    /// The next batch and who owns its memory.
    pub(crate) fn next_with_origin(&mut self) -> Option<Result<(RecordBatch, Origin)>> {
        self.batches.next()
    }

    /// A stream of batches in memory.
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self::new(schema, batches.into_iter().map(Ok))
    }

    /// Schema of every batch; single batches may differ from it in nullability and metadata.
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
    pub fn schema_only(schema: SchemaRef) -> Self {
        Self::declared_only(schema, Declared::partitions(1))
    }

    /// A source without rows to open, of which something is known.
    pub(crate) fn declared_only(schema: SchemaRef, declared: Declared) -> Self {
        Self::from_parts(schema, declared, None)
    }

    /// A source of `partitions` partitions; `open` opens partition `i` anew at each call.
    pub fn new(
        schema: SchemaRef,
        partitions: usize,
        open: impl Fn(usize) -> Result<BatchStream> + Send + Sync + 'static,
    ) -> Self {
        Self::from_parts(schema, Declared::partitions(partitions), Some(Box::new(open)))
    }

    /// A source of batches in memory, one list per partition.
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
    #[must_use]
    pub fn with_num_rows(self, rows: usize) -> Self {
        self.declare(|declared| declared.rows = Some(rows))
    }

    /// The same rows, declared as ordered ascending by these columns in each partition, the first one first. It
    /// counts as another source.
    #[must_use]
    pub fn with_ordering(self, columns: Vec<usize>) -> Self {
        self.declare(|declared| declared.ordering = columns)
    }

    /// The same rows, declared to hold equal values in each pair of columns. It counts as another source.
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
    pub fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        self.0.declared.partitions
    }

    /// Number of rows of all partitions, where it is known.
    pub fn num_rows(&self) -> Option<usize> {
        self.0.declared.rows
    }

    /// Columns that the rows of each partition are declared to be ordered by.
    pub fn ordering(&self) -> &[usize] {
        &self.0.declared.ordering
    }

    /// Pairs of columns that are declared to hold equal values.
    pub fn equal_columns(&self) -> &[(usize, usize)] {
        &self.0.declared.equal_columns
    }

    /// What is known of the rows.
    pub(crate) fn declared(&self) -> &Declared {
        &self.0.declared
    }

    /// True where both are one source.
    pub fn same(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Opens one partition.
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
    fn from(schema: SchemaRef) -> Self {
        Self::schema_only(schema)
    }
}
