//! The frozen build side.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use super::{Backing, BackingFile, BuildSpec, Fingerprint, Membership, NullEquality, PrepareOptions, Snapshot};
use crate::cancel::Cancel;
use crate::columns::{Bounds, LazyColumn};
use crate::error::{Error, Result};
use crate::index::{IndexKind, KeyIndex, KeyRows, NONE, RowOrder};
use crate::memory::{Pool, Reservation, ReturnsToSystem};
use crate::panics::caught;

/// The build side of a hash join, prepared once: its rows, its index and its memory charge. Nothing in it changes; any
/// number of joins and threads can probe it at once behind one `Arc`.
pub struct PreparedBuild {
    spec: BuildSpec,
    /// Schema of the rows.
    schema: SchemaRef,
    num_rows: usize,
    columns: Vec<LazyColumn>,
    /// The columns as one batch.
    rows: OnceLock<RecordBatch>,
    has_null_key: OnceLock<bool>,
    index: KeyIndex,
    groups: KeyRows,
    order: Option<RowOrder>,
    bounds: Vec<Option<Bounds>>,
    membership: Membership,
    fingerprint: OnceLock<Fingerprint>,
    snapshot: Option<Snapshot>,
    /// False where bounds checks alone keep a damaged file from wrong results.
    is_verified: bool,
    /// Behind everything that it pays for: fields drop in order, so the memory goes before its charge.
    backing: Box<dyn Backing>,
    /// Last, once all memory is free.
    _returns: ReturnsToSystem,
}

/// What a build is made of.
pub(crate) struct BuildParts {
    pub(crate) spec: BuildSpec,
    /// Schema of the rows.
    pub(crate) schema: SchemaRef,
    pub(crate) columns: Vec<LazyColumn>,
    pub(crate) num_rows: usize,
    /// `None` where it is not known yet.
    pub(crate) has_null_key: Option<bool>,
    pub(crate) index: KeyIndex,
    pub(crate) groups: KeyRows,
    /// The order of the rows of each group, where they have one.
    pub(crate) order: Option<RowOrder>,
    pub(crate) bounds: Vec<Option<Bounds>>,
    pub(crate) membership: Membership,
    /// `None` where it is not known yet.
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) backing: Box<dyn Backing>,
}

/// Bytes of a build by part, and by who shares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildMemory {
    /// The rows.
    pub rows: usize,
    /// The index: keys to groups.
    pub index: usize,
    /// The groups: groups to rows, and the order of these.
    pub groups: usize,
    /// Bytes of a mapped file, shared with all processes that map it.
    pub mapped: usize,
    /// Bytes in memory of this process alone.
    pub private: usize,
}

impl PreparedBuild {
    /// Freezes an indexed build on the heap.
    pub(crate) fn try_new(
        spec: BuildSpec,
        rows: RecordBatch,
        (index, groups, order): (KeyIndex, KeyRows, Option<RowOrder>),
        bounds: Vec<Option<Bounds>>,
        options: &PrepareOptions,
        reservation: Reservation,
    ) -> Result<Self> {
        let membership = Membership::new(&rows, spec.keys(), index.num_keys(), options)?;
        let this = Self::from_parts(BuildParts {
            spec,
            schema: rows.schema(),
            num_rows: rows.num_rows(),
            columns: rows.columns().iter().map(|column| LazyColumn::from(Arc::clone(column))).collect(),
            has_null_key: None,
            index,
            groups,
            order,
            bounds,
            membership,
            fingerprint: None,
            snapshot: None,
            backing: Box::new(reservation),
        });
        Ok(Self { rows: rows.into(), ..this })
    }

    /// A build of parts that were made before.
    pub(crate) fn from_parts(parts: BuildParts) -> Self {
        let backing = parts.backing;
        // A mapping goes back to the system by itself.
        let on_heap = if backing.file().is_some() { 0 } else { backing.reserved_bytes() };
        Self {
            spec: parts.spec,
            schema: parts.schema,
            num_rows: parts.num_rows,
            columns: parts.columns,
            rows: OnceLock::new(),
            has_null_key: parts.has_null_key.map_or_else(OnceLock::new, OnceLock::from),
            index: parts.index,
            groups: parts.groups,
            order: parts.order,
            bounds: parts.bounds,
            membership: parts.membership,
            fingerprint: parts.fingerprint.map_or_else(OnceLock::new, OnceLock::from),
            snapshot: parts.snapshot,
            is_verified: backing.file().is_none_or(|file| file.is_verified),
            backing,
            _returns: ReturnsToSystem::of(on_heap),
        }
    }

    /// What the build was prepared for: schema, key columns, null equality.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
    /// assert_eq!(*prejoin::prepare(users, &["id"], &RunOptions::default())?.spec(), spec);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn spec(&self) -> &BuildSpec {
        &self.spec
    }

    /// Schema of the build.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// assert_eq!(*build.schema(), users.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        self.spec.schema()
    }

    /// Positions of the key columns, in key order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("name", Utf8, ["ada", "bob"]), ("id", Int64, [1, 2]))?;
    /// assert_eq!(prejoin::prepare(users, &["id"], &RunOptions::default())?.keys(), [1]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn keys(&self) -> &[usize] {
        self.spec.keys()
    }

    /// Null equality of each key.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{NullEquality, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(build.null_equality(), [NullEquality::NullEqualsNothing]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn null_equality(&self) -> &[NullEquality] {
        self.spec.null_equality()
    }

    /// Number of build rows, duplicates and null keys included.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [Some(1), Some(2), Some(2), None]))?;
    /// assert_eq!(prejoin::prepare(users, &["id"], &RunOptions::default())?.num_rows(), 4);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of distinct keys that a probe can match.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [Some(1), Some(2), Some(2), None]))?;
    /// assert_eq!(prejoin::prepare(users, &["id"], &RunOptions::default())?.num_keys(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn num_keys(&self) -> usize {
        self.index.num_keys()
    }

    /// True where no key that a probe can match is in two rows.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [Some(1), Some(2), None, None]))?;
    /// assert!(prejoin::prepare(users, &["id"], &RunOptions::default())?.is_unique());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn is_unique(&self) -> bool {
        self.groups.is_unique()
    }

    /// Which index structure was made.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{IndexKind, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(build.index_kind(), IndexKind::Dense);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn index_kind(&self) -> IndexKind {
        self.index.kind()
    }

    /// Bytes charged to the pool for as long as the build lives. A mapped file is charged once per pool and process, so
    /// builds of one file share a charge.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{MemoryPool, Pool, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let options = RunOptions { pool: Arc::clone(&pool), ..RunOptions::default() };
    /// let build = prejoin::prepare(users, &["id"], &options)?;
    /// assert_eq!(pool.reserved(), build.reserved_bytes());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn reserved_bytes(&self) -> usize {
        self.backing.reserved_bytes()
    }

    /// Bytes by part.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let memory = build.memory();
    /// assert_eq!(memory.rows + memory.index + memory.groups, build.reserved_bytes());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn memory(&self) -> BuildMemory {
        let order = self.order.as_ref().map_or(0, RowOrder::memory_size);
        let (index, groups) = (self.index.memory_size(), self.groups.memory_size() + order);
        match self.backing.file() {
            None => {
                let private = self.backing.reserved_bytes();
                BuildMemory { rows: private.saturating_sub(index + groups), index, groups, mapped: 0, private }
            }
            Some(file) => {
                let (mapped, private) = if file.is_private { (0, file.bytes.len()) } else { (file.bytes.len(), 0) };
                BuildMemory { rows: file.rows_bytes, index, groups, mapped, private }
            }
        }
    }

    /// The file that the build lies in, as an absolute path; `None` for a build in memory or a shared one.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{OpenOptions, PreparedBuild, RunOptions, SaveOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(build.path(), None);
    /// let path = std::env::temp_dir().join(format!("prejoin-path-{}", std::process::id()));
    /// build.save(&path, &SaveOptions::default())?;
    /// assert_eq!(PreparedBuild::open(&path, &OpenOptions::default())?.path(), Some(path.as_path()));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn path(&self) -> Option<&Path> {
        self.backing.file()?.path
    }

    /// The file that the build lies in; `None` for a build on the heap.
    pub(crate) fn file(&self) -> Option<BackingFile<'_>> {
        self.backing.file()
    }

    /// Whether everything in the build is known to be in range. False for a file that was opened unverified only.
    pub(crate) fn is_verified(&self) -> bool {
        self.is_verified
    }

    /// Runs a step of a probe. Where a bounds check stops it in the parts of an unverified file, that is an error.
    ///
    /// # Errors
    /// Those of the step; [`Error::Damaged`] where it panics.
    pub(crate) fn guarded<T>(&self, step: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_verified() {
            return step();
        }
        // Where the parts were not checked, an internal error or a panic is a sign of damage.
        match caught(step) {
            Some(Err(Error::Internal(_))) | None => Err(self.unverified_damage()),
            Some(result) => result,
        }
    }

    /// The error for a number in an unverified file that no valid build holds.
    fn unverified_damage(&self) -> Error {
        let path = self.path().map_or_else(|| "a shared build".into(), |path| path.to_string_lossy());
        Error::Damaged(format!("{path} was opened unverified and is damaged; prepare and save it again"))
    }

    /// Checks that `rows` are rows of the build or [`NONE`]. Only the parts of an unverified file can hold others.
    ///
    /// # Errors
    /// [`Error::Damaged`] where one is not.
    pub(crate) fn check_rows(&self, rows: &[u32]) -> Result<()> {
        let is_row = |&row: &u32| row == NONE || (row as usize) < self.num_rows;
        if self.is_verified() || rows.iter().all(is_row) { Ok(()) } else { Err(self.unverified_damage()) }
    }

    /// The pool that pays for what is made of the build.
    pub(crate) fn pool(&self) -> Option<&Arc<dyn Pool>> {
        self.backing.pool()
    }

    /// True where some row holds a null in a key column.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [Some(1), None]))?;
    /// assert!(prejoin::prepare(users, &["id"], &RunOptions::default())?.has_null_key());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn has_null_key(&self) -> bool {
        *self.has_null_key.get_or_init(|| {
            let keys = self.keys().iter().filter_map(|&key| self.columns[key].get().ok());
            keys.into_iter().any(|column| column.logical_null_count() > 0)
        })
    }

    /// Identity of the contents: a hash of the rows in any order, the schema, the keys and their null equality. Two builds
    /// of equal rows have the same, whatever their batches, slices and dictionaries. It does not protect against someone who
    /// constructs two builds with the same fingerprint.
    ///
    /// It is computed once, in one pass over all values. The header of a file holds it.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BatchStream, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 3]))?;
    /// let whole = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// let pieces = BatchStream::from_batches(users.schema(), vec![users.slice(1, 2), users.slice(0, 1)]);
    /// let pieces = prejoin::prepare(pieces, &["id"], &RunOptions::default())?;
    /// assert_eq!(whole.fingerprint()?, pieces.fingerprint()?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`] for rows of an unverified file that are not valid.
    pub fn fingerprint(&self) -> Result<u128> {
        self.fingerprint_with(&Cancel::default())
    }

    /// [`fingerprint`](Self::fingerprint) that looks at `cancel` while it is computed.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 3]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(build.fingerprint_with(&Cancel::new())?, build.fingerprint()?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fingerprint`](Self::fingerprint), and [`Error::Cancelled`].
    pub fn fingerprint_with(&self, cancel: &Cancel) -> Result<u128> {
        Ok(self.whole_fingerprint(cancel)?.value)
    }

    /// The fingerprint with the sum that it is made of.
    pub(crate) fn whole_fingerprint(&self, cancel: &Cancel) -> Result<Fingerprint> {
        match self.fingerprint.get() {
            Some(&known) => Ok(known),
            None => {
                let computed = Fingerprint::of_rows(&self.spec, self.rows()?, cancel)?;
                Ok(*self.fingerprint.get_or_init(|| computed))
            }
        }
    }

    /// Which snapshot of a table the build is, as the file says that it was opened from; `None` for a build that was prepared.
    ///
    /// ```no_run
    /// use prejoin::{OpenOptions, PreparedBuild};
    ///
    /// let users = PreparedBuild::open("users.prejoin", &OpenOptions::default())?;
    /// let version = users.snapshot().and_then(|snapshot| snapshot.version.as_deref());
    /// println!("version {version:?}");
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Schema of the rows: a column that holds nulls is nullable here, even where the build's schema says that it is not.
    /// Batches may differ from the schema in nullability.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use arrow_array::{Int64Array, RecordBatch};
    /// use arrow_schema::{DataType, Field, Schema};
    /// use prejoin::{BatchStream, RunOptions};
    ///
    /// // The stream declares that there are no nulls, and a batch holds one.
    /// let declared = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    /// let nulls = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    /// let batch = RecordBatch::try_new(nulls, vec![Arc::new(Int64Array::from(vec![Some(1), None]))])?;
    /// let users = BatchStream::from_batches(declared, vec![batch]);
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert!(!build.schema().field(0).is_nullable());
    /// assert!(build.rows_schema().field(0).is_nullable());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn rows_schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The build rows in build order, with [`rows_schema`](Self::rows_schema).
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// assert_eq!(*build.rows()?, users);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`] for rows of an unverified file that are not valid.
    pub fn rows(&self) -> Result<&RecordBatch> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let columns = self.columns.iter().map(|column| column.get().cloned()).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.num_rows));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        Ok(self.rows.get_or_init(|| rows))
    }

    /// LazyColumn `column` of the rows. Of an unverified file it is the only one that is checked.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// assert_eq!(build.column(1)?, users.column(1));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn column(&self, column: usize) -> Result<&ArrayRef> {
        self.columns[column].get()
    }

    /// The key columns, in key order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("name", Utf8, ["ada", "bob"]), ("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users.clone(), &["id", "name"], &RunOptions::default())?;
    /// assert_eq!(build.key_columns()?, [users.column(1).clone(), users.column(0).clone()]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn key_columns(&self) -> Result<Vec<ArrayRef>> {
        self.keys().iter().map(|&key| self.column(key).cloned()).collect()
    }

    /// The index of the distinct keys.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Hits, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [5, 7]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// let mut hits = Hits::default();
    /// build.index().probe(users.columns(), 0, 2, &mut hits)?;
    /// assert_eq!(hits.rows, [0, 1]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn index(&self) -> &KeyIndex {
        &self.index
    }

    /// The build rows of each group of the index.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Hits, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [5, 7, 5]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// let mut hits = Hits::default();
    /// build.index().probe(users.columns(), 0, 1, &mut hits)?;
    /// assert_eq!(build.groups().group_len(hits.groups[0]), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn groups(&self) -> &KeyRows {
        &self.groups
    }

    /// The order of the rows of each group; `None` where it is build order.
    pub(crate) fn order(&self) -> Option<&RowOrder> {
        self.order.as_ref()
    }

    /// Least and greatest value of each key, in key order; `None` where a key has no value or its type no order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [5, 7]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users.clone(), &["id", "name"], &RunOptions::default())?;
    /// assert_eq!(build.bounds()[0].as_ref().unwrap().max(), &users.column(0).slice(1, 1));
    /// assert!(build.bounds()[1].is_none());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn bounds(&self) -> &[Option<Bounds>] {
        &self.bounds
    }

    /// How a filter finds out which keys there are.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Membership, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert!(matches!(build.membership(), Membership::InList(list) if list.len() == 2));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn membership(&self) -> &Membership {
        &self.membership
    }
}

impl fmt::Debug for PreparedBuild {
    /// Never shows table contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedBuild")
            .field("schema", self.schema())
            .field("keys", &self.keys())
            .field("null_equality", &self.null_equality())
            .field("order", &self.spec.order())
            .field("index_kind", &self.index_kind())
            .field("num_rows", &self.num_rows())
            .field("num_keys", &self.num_keys())
            .field("reserved_bytes", &self.reserved_bytes())
            .finish()
    }
}
