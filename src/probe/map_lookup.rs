//! The test whether the key of a row is in a build, as an expression that can be compared and hashed.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, MutableBuffer, bit_util};

use super::entries::STAGE;
use super::key_reader::{KeyReader, Keys};
use crate::columns::take_at;
use crate::error::{Result, plan_err};
use crate::index::{Hits, NONE};
use crate::prepare::PreparedBuild;

/// True for the rows whose key columns hold a key of a build. It keeps the build alive.
///
/// Two are equal exactly where they are over the same build, by identity, and have the same columns, description and seed.
#[derive(Clone)]
pub struct MapLookup {
    build: Arc<PreparedBuild>,
    columns: Vec<usize>,
    description: String,
    seed: u64,
}

impl MapLookup {
    /// The lookup of `columns` (positions in the tested batches, one per key of `build`) in `build`.
    ///
    /// `seed` is the one that an engine hashes the columns with where it plans by hash; 0 where there is none.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{MapLookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let lookup = MapLookup::new(Arc::clone(&build), vec![0], "users", 0)?;
    /// assert_eq!(lookup, MapLookup::new(build, vec![0], "users", 0)?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a number of columns other than one per key.
    pub fn new(
        build: Arc<PreparedBuild>,
        columns: Vec<usize>,
        description: impl Into<String>,
        seed: u64,
    ) -> Result<Self> {
        if columns.len() != build.keys().len() {
            return plan_err!("a lookup of {} columns in a build of {} keys", columns.len(), build.keys().len());
        }
        Ok(Self { build, columns, description: description.into(), seed })
    }

    /// The build that is looked up in.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{MapLookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(MapLookup::new(build, vec![0], "users", 0)?.build().num_keys(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn build(&self) -> &Arc<PreparedBuild> {
        &self.build
    }

    /// Positions of the tested columns, in key order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{MapLookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(MapLookup::new(build, vec![3], "users", 0)?.columns(), [3]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// What it was made for.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{MapLookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(MapLookup::new(build, vec![0], "users", 0)?.description(), "users");
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The seed given when it was made.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{MapLookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(MapLookup::new(build, vec![0], "users", 42)?.seed(), 42);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// True for each row whose key the build holds; without nulls.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{MapLookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let events = record_batch!(("at", Int32, [10, 20]), ("user", Int64, [2, 3]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let passed = MapLookup::new(build, vec![1], "users", 0)?.evaluate(&events)?;
    /// assert_eq!(passed.iter().collect::<Vec<_>>(), [Some(true), Some(false)]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the batch has no such columns, or columns that do not compare with its keys.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let mut mask = Mask::new(batch)?;
        self.mark(batch, &mut mask)?;
        Ok(mask.finish())
    }

    /// Sets the rows that pass the bounds and are in the build.
    pub(crate) fn mark(&self, batch: &RecordBatch, mask: &mut Mask) -> Result<()> {
        let Keys { columns: keys, missing, .. } =
            KeyReader::try_new(&self.build, &self.columns, batch.schema_ref())?.read(batch)?;
        let rows = batch.num_rows();
        let candidates = match (self.within_bounds(&keys), missing) {
            (inside, None) => inside,
            (Some(inside), Some(missing)) => Some(&inside & &!&missing),
            (None, Some(missing)) => Some(!&missing),
        };
        let count = candidates.as_ref().map_or(rows, BooleanBuffer::count_set_bits);
        if count == 0 || self.build.num_keys() == 0 {
            return Ok(());
        }
        let mut hits = Hits::default();
        // The lookup is exact without the bounds: rows are filtered by them first only where that saves more than it costs.
        let Some(candidates) = candidates else {
            return self.look_up(&keys, rows, &mut hits, |row| mask.set(row as usize));
        };
        if count > rows / 2 {
            let set = |row: u32| {
                if candidates.value(row as usize) {
                    mask.set(row as usize)
                }
            };
            return self.look_up(&keys, rows, &mut hits, set);
        }
        let positions: Vec<usize> = candidates.set_indices().collect();
        let candidate_keys = keys.iter().map(|key| take_at(key, positions.iter().copied().map(Some)));
        let keys = candidate_keys.collect::<Result<Vec<_>>>()?;
        self.look_up(&keys, positions.len(), &mut hits, |row| mask.set(positions[row as usize]))
    }

    fn look_up(&self, keys: &[ArrayRef], rows: usize, hits: &mut Hits, mut set: impl FnMut(u32)) -> Result<()> {
        for start in (0..rows).step_by(STAGE) {
            hits.clear();
            self.build.guarded(|| self.build.index().probe(keys, start, STAGE.min(rows - start), hits))?;
            hits.rows.iter().for_each(|&row| set(row));
        }
        Ok(())
    }

    /// Rows within the bounds of every key; `None` where no key has bounds.
    fn within_bounds(&self, keys: &[ArrayRef]) -> Option<BooleanBuffer> {
        let nulls = self.build.null_equality().iter();
        let tests = self.build.bounds().iter().zip(keys).zip(nulls);
        let inside =
            tests.filter_map(|((bounds, key), nulls)| Some(bounds.as_ref()?.contain(key, nulls.nulls_equal())));
        inside.reduce(|all, one| &all & &one)
    }
}

impl PartialEq for MapLookup {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
            && self.columns == other.columns
            && self.description == other.description
            && self.seed == other.seed
    }
}

impl Eq for MapLookup {}

impl Hash for MapLookup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.build).hash(state);
        (&self.columns, &self.description, self.seed).hash(state);
    }
}

impl fmt::Debug for MapLookup {
    /// Never shows table contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapLookup")
            .field("keys", &self.build.num_keys())
            .field("columns", &self.columns)
            .field("description", &self.description)
            .field("seed", &self.seed)
            .finish()
    }
}

/// One bit per row of a batch, all unset at first.
pub(crate) struct Mask {
    bits: MutableBuffer,
    rows: usize,
}

impl Mask {
    pub(crate) fn new(batch: &RecordBatch) -> Result<Self> {
        let rows = batch.num_rows();
        if rows >= NONE as usize {
            return plan_err!(
                "a filter was given {rows} rows at once, at most {} are possible; cut the batch",
                NONE - 1
            );
        }
        Ok(Self { bits: MutableBuffer::from_len_zeroed(rows.div_ceil(8)), rows })
    }

    fn set(&mut self, row: usize) {
        bit_util::set_bit(&mut self.bits, row);
    }

    pub(crate) fn finish(self) -> BooleanArray {
        BooleanArray::new(BooleanBuffer::new(self.bits.into(), 0, self.rows), None)
    }
}
