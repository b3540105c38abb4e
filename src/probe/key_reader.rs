//! The key columns of probe batches, brought to the types of a build's index.

use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Schema};

use crate::columns::{Coerced, coerce, comparable, key_type, positions};
use crate::error::{Result, plan_err};
use crate::index::{Hits, NONE};
use crate::prepare::PreparedBuild;

/// Reads the keys of batches of one schema for one build.
#[derive(Debug)]
pub(crate) struct KeyReader(Vec<KeyColumn>);

#[derive(Debug)]
struct KeyColumn {
    /// Position in the batch.
    position: usize,
    /// The type that the index has the key in, where it cannot read the type of the batch.
    coerced: Option<DataType>,
}

/// The keys of a batch, brought to the types of one build's index.
#[derive(Debug)]
pub struct Keys {
    /// Number of keys.
    pub(crate) rows: usize,
    /// In key order; unspecified in missing rows.
    pub(crate) columns: Vec<ArrayRef>,
    /// Rows that no key of the build equals; `None` where none are known.
    pub(crate) missing: Option<BooleanBuffer>,
}

/// The only key of some rows, encoded by few values, each of which is looked up once however many rows have it.
#[derive(Debug)]
pub(crate) struct Codes {
    positions: UInt64Array,
    /// Group of each value, [`NONE`] for those that no key of the build equals.
    groups: Vec<u32>,
    /// Group of the rows that are null.
    null_group: u32,
}

impl Codes {
    /// Appends to `hits` what [`KeyIndex::probe`](crate::KeyIndex::probe) would.
    pub(crate) fn look_up(&self, start: usize, len: usize, hits: &mut Hits) {
        let nulls = self.positions.nulls().filter(|nulls| nulls.null_count() > 0);
        let from = hits.rows.len();
        hits.rows.resize(from + len, 0);
        hits.groups.resize(from + len, 0);
        let (rows, groups) = (&mut hits.rows[from..], &mut hits.groups[from..]);
        let mut found = 0;
        for (row, &code) in (start..).zip(&self.positions.values()[start..start + len]) {
            let group = match nulls {
                Some(nulls) if nulls.is_null(row) => self.null_group,
                _ => self.groups[code as usize],
            };
            // No branch, since hits cannot be predicted.
            rows[found] = row as u32;
            groups[found] = group;
            found += usize::from(group != NONE);
        }
        hits.rows.truncate(from + found);
        hits.groups.truncate(from + found);
    }
}

impl KeyReader {
    /// Readers of further columns that keys must equal, as (place of the key, position): each reads the columns at
    /// `positions`, but for one key.
    ///
    /// # Errors
    /// As of [`try_new`](Self::try_new).
    pub(crate) fn further(
        build: &PreparedBuild,
        positions: &[usize],
        further: &[(usize, usize)],
        schema: &Schema,
    ) -> Result<Vec<Self>> {
        let reader = |&(key, position): &(usize, usize)| {
            let mut positions = positions.to_vec();
            positions[key] = position;
            Self::try_new(build, &positions, schema)
        };
        further.iter().map(reader).collect()
    }

    /// A reader of the columns at `positions`, one per key of `build`, in batches of `schema`.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for columns that do not exist or do not compare with their key.
    pub(crate) fn try_new(build: &PreparedBuild, positions: &[usize], schema: &Schema) -> Result<Self> {
        let keys = positions.iter().zip(build.keys()).enumerate();
        let column = |(i, (&position, &key)): (usize, (&usize, &usize))| {
            let key = build.schema().field(key);
            let Some(field) = schema.fields().get(position) else {
                return plan_err!("key column {position} was asked of a batch of {} columns", schema.fields().len());
            };
            if !comparable(key.data_type(), field.data_type()) {
                return plan_err!(
                    "column {:?} has type {}, which does not compare with the build's key of type {}",
                    field.name(),
                    field.data_type(),
                    key.data_type()
                );
            }
            let indexed = key_type(key.data_type());
            let reads = build.index().reads(i, &indexed, field.data_type());
            Ok(KeyColumn { position, coerced: (!reads).then_some(indexed) })
        };
        Ok(Self(keys.map(column).collect::<Result<_>>()?))
    }

    /// The codes of `batch`, which has the reader's schema, if it has one key, encoded by at most as many values as it has
    /// rows.
    pub(crate) fn codes(&self, batch: &RecordBatch, build: &PreparedBuild, hits: &mut Hits) -> Result<Option<Codes>> {
        let [KeyColumn { position, coerced: Some(data_type) }] = self.0.as_slice() else { return Ok(None) };
        let column = batch.column(*position);
        let Some((positions, values)) = positions(column)?.filter(|(_, values)| values.len() <= column.len()) else {
            return Ok(None);
        };
        let mut groups_of = |values: &ArrayRef| -> Result<Vec<u32>> {
            let Coerced { keys, missing } = coerce(values, data_type)?;
            let mut groups = vec![NONE; keys.len()];
            hits.clear();
            build.guarded(|| build.index().probe(std::slice::from_ref(&keys), 0, keys.len(), hits))?;
            for (&row, &group) in hits.rows.iter().zip(&hits.groups) {
                if missing.as_ref().is_none_or(|missing| !missing.value(row as usize)) {
                    groups[row as usize] = group;
                }
            }
            Ok(groups)
        };
        let groups = groups_of(&values)?;
        let null_group = match positions.null_count() {
            0 => NONE,
            _ => groups_of(&new_null_array(values.data_type(), 1))?[0],
        };
        Ok(Some(Codes { positions, groups, null_group }))
    }

    /// The keys of `batch`, which has the reader's schema.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<Keys> {
        let mut columns = Vec::with_capacity(self.0.len());
        let mut missing: Option<BooleanBuffer> = None;
        for KeyColumn { position, coerced } in &self.0 {
            let column = batch.column(*position);
            let Some(data_type) = coerced else {
                columns.push(column.clone());
                continue;
            };
            let coerced: Coerced = coerce(column, data_type)?;
            columns.push(coerced.keys);
            missing = match (missing, coerced.missing) {
                (Some(all), Some(more)) => Some(&all | &more),
                (all, more) => all.or(more),
            };
        }
        Ok(Keys { rows: batch.num_rows(), columns, missing })
    }
}

impl Keys {
    /// The keys of `batch`, whose columns are the keys of `build` in key order, whatever they are named.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Keys, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// // Another width of integers than the build's, and another name.
    /// assert_eq!(Keys::read(&build, &record_batch!(("user", Int32, [2, 3, 1]))?)?.len(), 3);
    /// assert!(Keys::read(&build, &record_batch!(("user", Utf8, ["2"]))?).is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for another number of columns, types that do not compare with their key, and more
    /// than 2^32-2 rows.
    pub fn read(build: &PreparedBuild, batch: &RecordBatch) -> Result<Self> {
        let keys = build.keys().len();
        if batch.num_columns() != keys {
            return plan_err!("the build has {keys} key columns, {} were given", batch.num_columns());
        }
        if batch.num_rows() >= NONE as usize {
            return plan_err!(
                "{} keys were given at once, at most {} are possible; cut them",
                batch.num_rows(),
                NONE - 1
            );
        }
        KeyReader::try_new(build, &(0..keys).collect::<Vec<_>>(), batch.schema_ref())?.read(batch)
    }

    /// Number of keys.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Keys, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// assert_eq!(Keys::read(&build, &users)?.len(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.rows
    }

    /// True where there are none.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Keys, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// assert!(Keys::read(&build, &users.slice(0, 0))?.is_empty());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}
