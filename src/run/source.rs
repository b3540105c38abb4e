//! Where the rows of a join's side come from.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Result, plan_err};
use crate::prepare::Origin;

/// A stream of batches with its schema. Dropping it tells its producer to stop.
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

    /// The next batch and whose memory it is.
    pub(crate) fn next_with_origin(&mut self) -> Option<Result<(RecordBatch, Origin)>> {
        self.batches.next()
    }

    /// A stream of batches that are there already.
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

type Open = Box<dyn Fn(usize) -> Result<BatchStream> + Send + Sync>;

/// One side of a join: a schema, and usually something that opens a stream per partition any number of times.
///
/// A source is known by identity: a clone is the same source, another of equal contents is not.
#[derive(Clone)]
pub struct Source(Arc<Inner>);

struct Inner {
    schema: SchemaRef,
    partitions: usize,
    open: Option<Open>,
    rows: Option<usize>,
    ordering: Vec<usize>,
    equal: Vec<(usize, usize)>,
    placeholder: bool,
}

impl Source {
    fn from_inner(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    fn without_rows(schema: SchemaRef, placeholder: bool) -> Self {
        Self::from_inner(Inner {
            schema,
            partitions: 1,
            open: None,
            rows: None,
            ordering: vec![],
            equal: vec![],
            placeholder,
        })
    }

    /// A source that has a schema and no rows to open, for joins whose build or probe comes later.
    pub fn schema_only(schema: SchemaRef) -> Self {
        Self::without_rows(schema, false)
    }

    /// A source of `partitions` partitions; `open` opens partition `i` anew at each call.
    pub fn new(
        schema: SchemaRef,
        partitions: usize,
        open: impl Fn(usize) -> Result<BatchStream> + Send + Sync + 'static,
    ) -> Self {
        Self::from_inner(Inner {
            schema,
            partitions,
            open: Some(Box::new(open)),
            rows: None,
            ordering: vec![],
            equal: vec![],
            placeholder: false,
        })
    }

    /// A source of batches in memory, one list per partition.
    pub fn from_batches(schema: SchemaRef, partitions: Vec<Vec<RecordBatch>>) -> Self {
        let stream_schema = schema.clone();
        let mut batches = partitions.iter().flatten();
        let rows = batches.try_fold(0_usize, |rows, batch| rows.checked_add(batch.num_rows()));
        let source = Self::new(schema, partitions.len(), move |i| {
            Ok(BatchStream::from_batches(stream_schema.clone(), partitions[i].clone()))
        });
        source.change(|inner| inner.rows = rows)
    }

    /// The empty stand-in for a build source that a prepared build replaced; never executed (S27).
    pub(crate) fn placeholder(schema: SchemaRef) -> Self {
        Self::without_rows(schema, true)
    }

    /// The same rows, declared to be so many in all partitions together. A source of its own identity.
    #[must_use]
    pub fn with_num_rows(self, rows: usize) -> Self {
        self.change(|inner| inner.rows = Some(rows))
    }

    /// The same rows, declared as ordered ascending by these columns in each partition, the first one first. A source
    /// of its own identity.
    #[must_use]
    pub fn with_ordering(self, columns: Vec<usize>) -> Self {
        self.change(|inner| inner.ordering = columns)
    }

    /// The same rows, declared to hold equal values in each pair of columns. A source of its own identity.
    #[must_use]
    pub fn with_equal_columns(self, pairs: Vec<(usize, usize)>) -> Self {
        self.change(|inner| inner.equal = pairs)
    }

    fn change(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::try_unwrap(self.0).unwrap_or_else(|shared| {
            let opener = Self(shared.clone());
            let open: Option<Open> = shared.open.is_some().then(|| Box::new(move |i| opener.open(i)) as Open);
            Inner {
                open,
                schema: shared.schema.clone(),
                ordering: shared.ordering.clone(),
                equal: shared.equal.clone(),
                ..*shared
            }
        });
        change(&mut inner);
        Self::from_inner(inner)
    }

    /// Schema of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        self.0.partitions
    }

    /// Number of rows of all partitions, where it is known.
    pub fn num_rows(&self) -> Option<usize> {
        self.0.rows
    }

    /// Columns that the rows of each partition are declared to be ordered by.
    pub fn ordering(&self) -> &[usize] {
        &self.0.ordering
    }

    /// Pairs of columns that are declared to hold equal values.
    pub fn equal_columns(&self) -> &[(usize, usize)] {
        &self.0.equal
    }

    /// True for the stand-in of a prepared build.
    pub(crate) fn is_placeholder(&self) -> bool {
        self.0.placeholder
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
        if partition >= self.0.partitions {
            return plan_err!("partition {partition} was asked of a source with {}", self.0.partitions);
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
            .field("placeholder", &self.is_placeholder())
            .finish_non_exhaustive()
    }
}

impl From<SchemaRef> for Source {
    fn from(schema: SchemaRef) -> Self {
        Self::schema_only(schema)
    }
}
