//! The frozen build side.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use super::Config;
use super::fingerprint::fingerprint;
use super::{BuildSpec, Membership, NullEquality};
use crate::cancel::Cancel;
use crate::columns::Bounds;
use crate::columns::Column;
use crate::error::{Error, Result};
use crate::file::Mapped;
use crate::index::{IndexKind, KeyIndex, KeyRows, NONE};
use crate::memory::{Reservation, ReturnsToSystem};

/// The build side of a hash join, prepared once: its rows, its index and its memory charge. Nothing in it changes; any
/// number of joins and threads probe it at once behind one `Arc`.
pub struct PreparedBuild {
    spec: BuildSpec,
    /// That of the rows.
    schema: SchemaRef,
    num_rows: usize,
    columns: Vec<Column>,
    /// The columns as one batch.
    rows: OnceLock<RecordBatch>,
    has_null_key: OnceLock<bool>,
    index: KeyIndex,
    groups: KeyRows,
    bounds: Vec<Option<Bounds>>,
    membership: Membership,
    fingerprint: OnceLock<u128>,
    /// So late that the memory goes before its charge (S19).
    memory: Memory,
    /// Last, once all memory is free.
    _returns: ReturnsToSystem,
}

/// Whose memory a build is in.
enum Memory {
    Own(Reservation),
    Mapped {
        mapped: Arc<Mapped>,
        rows_bytes: usize,
        /// `None` for a file without a name.
        path: Option<PathBuf>,
        /// False where bounds checks alone stand between a damaged file and an answer.
        verified: bool,
        charge: Option<Arc<Reservation>>,
    },
}

/// A build in a mapped file.
pub(crate) struct MappedBuild {
    pub(crate) spec: BuildSpec,
    pub(crate) schema: SchemaRef,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: usize,
    pub(crate) rows_bytes: usize,
    pub(crate) has_null_key: bool,
    pub(crate) index: KeyIndex,
    pub(crate) groups: KeyRows,
    pub(crate) bounds: Vec<Option<Bounds>>,
    pub(crate) membership: Membership,
    pub(crate) fingerprint: u128,
    pub(crate) mapped: Arc<Mapped>,
    pub(crate) path: Option<PathBuf>,
    pub(crate) verified: bool,
    pub(crate) charge: Option<Arc<Reservation>>,
}

/// Bytes of a build by part, and by whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildMemory {
    /// The rows.
    pub rows: usize,
    /// The index: keys to groups.
    pub index: usize,
    /// The groups: groups to rows.
    pub groups: usize,
    /// Of a mapped file, shared with all processes that map it.
    pub mapped: usize,
    /// Of this process alone.
    pub private: usize,
}

impl PreparedBuild {
    /// Freezes an indexed build.
    pub(crate) fn try_new(
        spec: BuildSpec,
        rows: RecordBatch,
        (index, groups): (KeyIndex, KeyRows),
        bounds: Vec<Option<Bounds>>,
        config: &Config,
        reservation: Reservation,
    ) -> Result<Self> {
        let membership = Membership::new(&rows, spec.keys(), index.num_keys(), config)?;
        Ok(Self {
            spec,
            schema: rows.schema(),
            num_rows: rows.num_rows(),
            columns: rows.columns().iter().map(|column| Column::from(Arc::clone(column))).collect(),
            rows: rows.into(),
            has_null_key: OnceLock::new(),
            index,
            groups,
            bounds,
            membership,
            fingerprint: OnceLock::new(),
            _returns: ReturnsToSystem::of(reservation.size()),
            memory: Memory::Own(reservation),
        })
    }

    /// A build whose parts lie in a file.
    pub(crate) fn from_file(build: MappedBuild) -> Self {
        let MappedBuild { mapped, rows_bytes, path, verified, charge, .. } = build;
        Self {
            spec: build.spec,
            schema: build.schema,
            num_rows: build.rows,
            columns: build.columns,
            rows: OnceLock::new(),
            has_null_key: build.has_null_key.into(),
            index: build.index,
            groups: build.groups,
            bounds: build.bounds,
            membership: build.membership,
            fingerprint: build.fingerprint.into(),
            memory: Memory::Mapped { mapped, rows_bytes, path, verified, charge },
            // A mapping goes back by itself.
            _returns: ReturnsToSystem::default(),
        }
    }

    /// What the build was prepared for: schema, key columns, null equality.
    pub fn spec(&self) -> &BuildSpec {
        &self.spec
    }

    /// Schema of the build.
    pub fn schema(&self) -> &SchemaRef {
        self.spec.schema()
    }

    /// Positions of the key columns, in key order.
    pub fn keys(&self) -> &[usize] {
        self.spec.keys()
    }

    /// Null equality of each key.
    pub fn null_equality(&self) -> &[NullEquality] {
        self.spec.null_equality()
    }

    /// Number of build rows, duplicates and null keys included.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of distinct keys that a probe can match.
    pub fn num_keys(&self) -> usize {
        self.index.num_keys()
    }

    /// True where no key that a probe can match stands in two rows.
    pub fn is_unique(&self) -> bool {
        self.groups.is_unique()
    }

    /// Which index structure was made.
    pub fn index_kind(&self) -> IndexKind {
        self.index.kind()
    }

    /// Bytes charged to the pool for as long as the build lives. A mapped file is charged once per pool and process, so
    /// builds of one file share a charge.
    pub fn reserved_bytes(&self) -> usize {
        match &self.memory {
            Memory::Own(reservation) => reservation.size(),
            Memory::Mapped { charge, .. } => charge.as_ref().map_or(0, |charge| charge.size()),
        }
    }

    /// Bytes by part.
    pub fn memory(&self) -> BuildMemory {
        let (index, groups) = (self.index.memory_size(), self.groups.memory_size());
        match &self.memory {
            Memory::Own(reservation) => {
                let private = reservation.size();
                BuildMemory { rows: private.saturating_sub(index + groups), index, groups, mapped: 0, private }
            }
            Memory::Mapped { mapped, rows_bytes, .. } => {
                let (all, private) = (mapped.bytes().len(), mapped.is_private());
                let (mapped, private) = if private { (0, all) } else { (all, 0) };
                BuildMemory { rows: *rows_bytes, index, groups, mapped, private }
            }
        }
    }

    /// The file that the build lies in, as an absolute path; `None` for a build in memory or a shared one.
    pub fn path(&self) -> Option<&Path> {
        match &self.memory {
            Memory::Mapped { path, .. } => path.as_deref(),
            Memory::Own(_) => None,
        }
    }

    /// Whether the build is a copy of its file in memory of this process.
    #[cfg(feature = "python")]
    pub(crate) fn is_private_copy(&self) -> bool {
        matches!(&self.memory, Memory::Mapped { mapped, .. } if mapped.is_private())
    }

    /// The bytes of the file that the build lies in.
    pub(crate) fn mapped_file(&self) -> Option<&[u8]> {
        match &self.memory {
            Memory::Mapped { mapped, .. } => Some(mapped.bytes()),
            Memory::Own(_) => None,
        }
    }

    /// Whether everything in the build is known to be in range. False for a file that was opened unverified only.
    pub(crate) fn is_verified(&self) -> bool {
        !matches!(self.memory, Memory::Mapped { verified: false, .. })
    }

    /// Runs a step of a probe. Where a bounds check stops it in the parts of an unverified file, that is an error.
    pub(crate) fn guarded<T>(&self, step: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_verified() {
            return step();
        }
        // What would be a fault of ours is damage here, whoever noticed it.
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(Err(Error::Internal(_))) | Err(_) => Err(self.damaged()),
            Ok(result) => result,
        }
    }

    /// Says that an unverified file holds what cannot be.
    pub(crate) fn damaged(&self) -> Error {
        let path = self.path().map_or_else(|| "a shared build".into(), |path| path.to_string_lossy());
        Error::Damaged(format!("{path} was opened unverified and is damaged; prepare and save it again"))
    }

    /// Proves that `rows` are rows of the build or [`NONE`], which an unverified file alone can fail.
    pub(crate) fn check_rows(&self, rows: &[u32]) -> Result<()> {
        let is_row = |&row: &u32| row == NONE || (row as usize) < self.num_rows;
        if self.is_verified() || rows.iter().all(is_row) { Ok(()) } else { Err(self.damaged()) }
    }

    /// Pays for what is made of the build.
    pub(crate) fn pool(&self) -> Option<&Arc<dyn crate::memory::Pool>> {
        match &self.memory {
            Memory::Own(reservation) => Some(reservation.pool()),
            Memory::Mapped { charge, .. } => charge.as_ref().map(|charge| charge.pool()),
        }
    }

    /// True where some row holds a null in a key column.
    pub fn has_null_key(&self) -> bool {
        *self.has_null_key.get_or_init(|| {
            let keys = self.keys().iter().filter_map(|&key| self.columns[key].get().ok());
            keys.into_iter().any(|column| column.logical_null_count() > 0)
        })
    }

    /// Identity of the contents: a hash of the rows in any order, the schema, the keys and their null equality. Two builds
    /// of equal rows have the same, whatever their batches, slices and dictionaries; it does not withstand malice.
    ///
    /// It is computed once, in one pass over all values, and stands in the header of a file.
    ///
    /// # Errors
    /// [`Error::Execution`] for rows of an unverified file that are not valid.
    pub fn fingerprint(&self) -> Result<u128> {
        self.fingerprint_with(&Cancel::default())
    }

    /// [`fingerprint`](Self::fingerprint) that looks at `cancel` while it is computed.
    ///
    /// # Errors
    /// Those, and [`Error::Cancelled`].
    pub fn fingerprint_with(&self, cancel: &Cancel) -> Result<u128> {
        match self.fingerprint.get() {
            Some(&known) => Ok(known),
            None => {
                let computed = fingerprint(&self.spec, self.rows()?, cancel)?;
                Ok(*self.fingerprint.get_or_init(|| computed))
            }
        }
    }

    /// Schema of the rows: a column that holds nulls is nullable here, even where the build's schema says that it is not.
    /// Batches may differ from the schema in nullability.
    pub fn rows_schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The build rows in build order, with [`rows_schema`](Self::rows_schema).
    ///
    /// # Errors
    /// [`Error::Execution`] for rows of an unverified file that are not valid.
    pub fn rows(&self) -> Result<&RecordBatch> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let columns = self.columns.iter().map(|column| column.get().cloned()).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.num_rows));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        Ok(self.rows.get_or_init(|| rows))
    }

    /// Column `column` of the rows. Of an unverified file it is the only one that is checked.
    ///
    /// # Errors
    /// As of [`rows`](Self::rows).
    pub fn column(&self, column: usize) -> Result<&ArrayRef> {
        self.columns[column].get()
    }

    /// The key columns, in key order.
    ///
    /// # Errors
    /// As of [`rows`](Self::rows).
    pub fn key_columns(&self) -> Result<Vec<ArrayRef>> {
        self.keys().iter().map(|&key| self.column(key).cloned()).collect()
    }

    /// The index of the distinct keys.
    pub fn index(&self) -> &KeyIndex {
        &self.index
    }

    /// The build rows of each group of the index.
    pub fn groups(&self) -> &KeyRows {
        &self.groups
    }

    /// Least and greatest value of each key, in key order; `None` where a key has no value or its type no order.
    pub fn bounds(&self) -> &[Option<Bounds>] {
        &self.bounds
    }

    /// How a filter learns which keys there are.
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
            .field("index_kind", &self.index_kind())
            .field("num_rows", &self.num_rows())
            .field("num_keys", &self.num_keys())
            .field("reserved_bytes", &self.reserved_bytes())
            .finish()
    }
}
