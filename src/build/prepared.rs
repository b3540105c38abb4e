//! The frozen build side.

use std::fmt;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use super::{Bounds, BuildSpec, Membership, NullEquality};
use crate::config::Config;
use crate::error::Result;
use crate::index::{IndexKind, KeyIndex, RowGroups};
use crate::memory::Reservation;

/// The build side of a hash join, prepared once: its rows, its index and its memory charge. Nothing in it changes; any
/// number of joins and threads probe it at once behind one `Arc`.
pub struct PreparedBuild {
    spec: BuildSpec,
    rows: RecordBatch,
    key_columns: Vec<ArrayRef>,
    index: KeyIndex,
    groups: RowGroups,
    bounds: Vec<Option<Bounds>>,
    membership: Membership,
    /// Last, so that the memory goes before its charge (S19).
    reservation: Reservation,
}

impl PreparedBuild {
    /// Freezes an indexed build.
    pub(super) fn try_new(
        spec: BuildSpec,
        rows: RecordBatch,
        (index, groups): (KeyIndex, RowGroups),
        bounds: Vec<Option<Bounds>>,
        config: &Config,
        reservation: Reservation,
    ) -> Result<Self> {
        let key_columns = spec.keys().iter().map(|&key| rows.column(key).clone()).collect();
        let membership = Membership::new(&rows, spec.keys(), index.num_keys(), config)?;
        Ok(Self { spec, rows, key_columns, index, groups, bounds, membership, reservation })
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
        self.rows.num_rows()
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

    /// Bytes charged to the pool for as long as the build lives.
    pub fn reserved_bytes(&self) -> usize {
        self.reservation.size()
    }

    /// True where some row holds a null in a key column.
    pub fn has_null_key(&self) -> bool {
        self.key_columns.iter().any(|column| column.logical_null_count() > 0)
    }

    /// The build rows in build order. A column that holds nulls is nullable here, even where the build's schema says
    /// that it is not: batches may differ from the schema in nullability.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// The key columns, in key order.
    pub fn key_columns(&self) -> &[ArrayRef] {
        &self.key_columns
    }

    /// The index of the distinct keys.
    pub fn index(&self) -> &KeyIndex {
        &self.index
    }

    /// The build rows of each group of the index.
    pub fn groups(&self) -> &RowGroups {
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
