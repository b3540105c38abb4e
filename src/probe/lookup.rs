//! The index used without a join: which keys a build has, how often, and in which rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_buffer::{BooleanBuffer, MutableBuffer, NullBuffer, bit_util};
use arrow_schema::{FieldRef, Schema, SchemaRef};

use super::entries::{Entries, EntryShape, Input, KeySource, STAGE};
use super::key_reader::Keys;
use super::pieces::check_batch_size;
use super::visited::Visited;
use crate::cancel::{Cancel, POLL_ROWS};
use crate::columns::{Selection, check_defaults, gather_or, in_column};
use crate::error::{Error, Result, plan_err};
use crate::index::{Hits, NONE};
use crate::join::{AsOf, JoinType, extended, repeated_key};
use crate::memory::Pool;
use crate::prepare::{Keep, PreparedBuild, lease_column};

/// Questions about keys. Nothing is made but the result, which belongs to the caller and is not charged. `hits` is working
/// memory, to be kept between calls.
impl PreparedBuild {
    /// Whether each key is in the build; without nulls.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Hits, Keys, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let keys = Keys::read(&build, &record_batch!(("id", Int64, [2, 3]))?)?;
    /// let found = build.contains(&keys, &mut Hits::default(), &Cancel::default())?;
    /// assert_eq!(found.iter().collect::<Vec<_>>(), [Some(true), Some(false)]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Cancelled`] or the error of its hook once `cancel` fires; [`Error::Damaged`] where a build that was opened
    /// unverified is damaged.
    pub fn contains(&self, keys: &Keys, hits: &mut Hits, cancel: &Cancel) -> Result<BooleanArray> {
        let mut bits = MutableBuffer::from_len_zeroed(keys.rows.div_ceil(8));
        self.for_each_hit(keys, hits, cancel, |row, _| bit_util::set_bit(&mut bits, row))?;
        Ok(BooleanArray::new(BooleanBuffer::new(bits.into(), 0, keys.rows), None))
    }

    /// The number of build rows of each key, without nulls. Their sum is the exact size of an inner join.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Hits, Keys, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let keys = Keys::read(&build, &record_batch!(("id", Int64, [2, 3]))?)?;
    /// let counts = build.count_matches(&keys, &mut Hits::default(), &Cancel::default())?;
    /// assert_eq!(*counts.values(), [2, 0]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`contains`](Self::contains).
    pub fn count_matches(&self, keys: &Keys, hits: &mut Hits, cancel: &Cancel) -> Result<UInt32Array> {
        let mut counts = vec![0; keys.rows];
        // A build has fewer than 2^32 rows.
        let count = |group| self.groups().group_len(group) as u32;
        self.for_each_hit(keys, hits, cancel, |row, group| counts[row] = count(group))?;
        Ok(UInt32Array::new(counts.into(), None))
    }

    /// The build row of each key, null where it is absent. `keep` chooses among several.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Hits, Keep, Keys, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let keys = Keys::read(&build, &record_batch!(("id", Int64, [2, 3]))?)?;
    /// let rows = build.rows_of(&keys, Keep::Last, &mut Hits::default(), &Cancel::default())?;
    /// assert_eq!(rows.iter().collect::<Vec<_>>(), [Some(2), None]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`] if keys repeat and `keep` is [`Keep::All`]; others as of [`contains`](Self::contains).
    pub fn rows_of(&self, keys: &Keys, keep: Keep, hits: &mut Hits, cancel: &Cancel) -> Result<UInt32Array> {
        let rows = self.raw_rows_of(keys, keep, hits, cancel)?;
        let nulls = found(&rows);
        Ok(UInt32Array::new(rows.into(), nulls))
    }

    /// [`rows_of`](Self::rows_of) with [`NONE`] for null.
    pub(crate) fn raw_rows_of(&self, keys: &Keys, keep: Keep, hits: &mut Hits, cancel: &Cancel) -> Result<Vec<u32>> {
        self.check_keep(keep)?;
        let mut rows = vec![NONE; keys.rows];
        self.for_each_stage(keys, hits, cancel, |hits| {
            keep.to_rows(self.groups(), &mut hits.groups);
            hits.rows.iter().zip(&hits.groups).for_each(|(&at, &row)| rows[at as usize] = row);
        })?;
        self.check_rows(&rows)?;
        Ok(rows)
    }

    /// Refuses to choose one row of a key where nothing says which.
    pub(crate) fn check_keep(&self, keep: Keep) -> Result<()> {
        match keep == Keep::All && !self.is_unique() {
            true => plan_err!(
                "one row per key was asked of a build with several, {}; say which by keep=\"first\" or keep=\"last\"",
                repeated_key(self)
            ),
            false => Ok(()),
        }
    }

    /// Row numbers of the pairs that a join of `keys`, as its probe side, with this build gives in the same order: (probe
    /// rows, build rows), null where a row has no partner. `pool` pays for working memory of [`JoinType::BuildOuter`] and
    /// [`JoinType::FullOuter`].
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, JoinType, Keys, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 2]))?;
    /// let options = RunOptions::default();
    /// let build = prejoin::prepare(users, &["id"], &options)?;
    /// let keys = Keys::read(&build, &record_batch!(("id", Int64, [2, 3]))?)?;
    /// let (probe, rows) = build.probe_indices(keys, JoinType::ProbeOuter, &options.pool, &Cancel::default())?;
    /// assert_eq!(probe.iter().collect::<Vec<_>>(), [Some(0), Some(0), Some(1)]);
    /// assert_eq!(rows.iter().collect::<Vec<_>>(), [Some(1), Some(2), None]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`] for a join type that does not give pairs, [`Error::ResourcesExhausted`] if `pool` refuses or the allocator
    /// does.
    pub fn probe_indices(
        &self,
        keys: Keys,
        join_type: JoinType,
        pool: &Arc<dyn Pool>,
        cancel: &Cancel,
    ) -> Result<(UInt32Array, UInt32Array)> {
        if !join_type.pairs() {
            return plan_err!("indices are those of pairs, a {join_type} join gives none; ask contains for membership");
        }
        let visited =
            join_type.extends_build().then(|| Visited::try_new("visited build rows", self.num_keys(), pool, cancel));
        let visited = visited.transpose()?;
        let no_columns = RecordBatchOptions::new().with_row_count(Some(keys.rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &no_columns)?;
        let mut input = Input::new(batch, KeySource::Keys(keys), Hits::default(), cancel.clone());
        let shape = EntryShape { expand: true, misses: join_type.extends_probe(), hits: true };
        let mut entries = Entries::default();
        loop {
            cancel.check()?;
            entries.try_reserve(POLL_ROWS)?;
            let before = entries.len();
            let on_group = |group| visited.iter().for_each(|visited| visited.mark(group));
            self.guarded(|| input.fill(self, shape, before + POLL_ROWS, None, &mut entries, on_group))?;
            if entries.len() == before {
                break;
            }
        }
        if let Some(visited) = visited {
            let mut unmatched = self.guarded(|| visited.to_rows(self, false, pool, cancel))?;
            loop {
                cancel.check()?;
                entries.try_reserve(POLL_ROWS)?;
                let before = entries.build.len();
                unmatched.next_rows(false, before + POLL_ROWS, |_| true, &mut entries.build, cancel)?;
                entries.probe.resize(entries.build.len(), NONE);
                if entries.len() == before {
                    break;
                }
            }
        }
        self.check_rows(&entries.build)?;
        let Entries { mut probe, mut build } = entries;
        probe.shrink_to_fit();
        build.shrink_to_fit();
        let (probe_found, build_found) = (found(&probe), found(&build));
        Ok((UInt32Array::new(probe.into(), probe_found), UInt32Array::new(build.into(), build_found)))
    }

    /// Calls `f` with each key that is found, ascending, and its group.
    fn for_each_hit(&self, keys: &Keys, hits: &mut Hits, cancel: &Cancel, mut f: impl FnMut(usize, u32)) -> Result<()> {
        self.for_each_stage(keys, hits, cancel, |hits| {
            hits.rows.iter().zip(&hits.groups).for_each(|(&row, &group)| f(row as usize, group));
        })
    }

    /// Calls `f` with the keys that are found among every [`STAGE`] keys, ascending, and their groups.
    fn for_each_stage(
        &self,
        keys: &Keys,
        hits: &mut Hits,
        cancel: &Cancel,
        mut f: impl FnMut(&mut Hits),
    ) -> Result<()> {
        self.guarded(|| {
            for start in (0..keys.rows).step_by(STAGE) {
                cancel.check()?;
                hits.clear();
                self.index().probe(&keys.columns, start, STAGE.min(keys.rows - start), hits)?;
                if let Some(missing) = &keys.missing {
                    hits.retain(|row| !missing.value(row as usize));
                }
                f(hits);
            }
            Ok(())
        })
    }
}

/// Looks up one row per key: some columns of one build.
#[derive(Debug)]
pub struct Lookup {
    build: Arc<PreparedBuild>,
    schema: SchemaRef,
    /// Under a lease where copies share their buffers.
    columns: Vec<ArrayRef>,
}

impl Lookup {
    /// Rows of `columns`, positions in `build`; all of them nullable, since a key may be absent.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Lookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(Lookup::try_new(build, &[1])?.schema().field(0).name(), "name");
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`] for positions out of range, and columns of a type that cannot hold nulls.
    pub fn try_new(build: Arc<PreparedBuild>, columns: &[usize]) -> Result<Self> {
        let all = build.rows_schema().clone();
        let field = |&column: &usize| match all.fields().get(column) {
            Some(field) => extended(field, true, "lookup"),
            None => plan_err!("column {column} was asked of a build with {}", all.fields().len()),
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(Schema::new_with_metadata(fields, all.metadata().clone()));
        let columns = columns.iter().map(|&column| lease_column(&build, column)).collect::<Result<_>>()?;
        Ok(Self { build, schema, columns })
    }

    /// The build that is looked up in.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{Lookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert!(Arc::ptr_eq(Lookup::try_new(Arc::clone(&build), &[1])?.build(), &build));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn build(&self) -> &Arc<PreparedBuild> {
        &self.build
    }

    /// Schema of what [`rows`](Self::rows) gives.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Lookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert!(Lookup::try_new(build, &[1])?.schema().field(0).is_nullable());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// One row per key, in order: the build row, or nulls where the key is absent. `keep` chooses among several rows.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Hits, Keep, Keys, Lookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let keys = Keys::read(&build, &record_batch!(("id", Int64, [2, 3]))?)?;
    /// let rows = Lookup::try_new(build, &[1])?.rows(&keys, Keep::All, &mut Hits::default(), &Cancel::default())?;
    /// assert_eq!(rows, record_batch!(("name", Utf8, [Some("bob"), None]))?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`] if keys repeat and `keep` is [`Keep::All`], [`Error::Execution`] if a column outgrows its offsets.
    pub fn rows(&self, keys: &Keys, keep: Keep, hits: &mut Hits, cancel: &Cancel) -> Result<RecordBatch> {
        self.rows_or(keys, keep, &[], hits, cancel)
    }

    /// [`rows`](Self::rows) with a default where the key is absent: for each column an array of one value of its type, or
    /// `None` for null. No `defaults` are nulls for all.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use arrow_array::{ArrayRef, StringArray};
    /// use prejoin::{Cancel, Hits, Keep, Keys, Lookup, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let keys = Keys::read(&build, &record_batch!(("id", Int64, [2, 3]))?)?;
    /// let default: ArrayRef = Arc::new(StringArray::from(vec!["nobody"]));
    /// let (lookup, mut hits) = (Lookup::try_new(build, &[1])?, Hits::default());
    /// let rows = lookup.rows_or(&keys, Keep::All, &[Some(default)], &mut hits, &Cancel::default())?;
    /// assert_eq!(rows, record_batch!(("name", Utf8, ["bob", "nobody"]))?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`rows`](Self::rows), and [`Error::Plan`] for defaults that are not one value of the type for each column.
    pub fn rows_or(
        &self,
        keys: &Keys,
        keep: Keep,
        defaults: &[Option<ArrayRef>],
        hits: &mut Hits,
        cancel: &Cancel,
    ) -> Result<RecordBatch> {
        check_defaults(&self.schema, defaults)?;
        self.at(&self.build.raw_rows_of(keys, keep, hits, cancel)?, defaults, cancel)
    }

    /// One row per key, in order: the build row that `as_of` chooses among those of the key for the value of `values` beside
    /// it, or nulls where there is none; `defaults` as of [`rows_or`](Self::rows_or).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{AsOf, BuildSpec, Cancel, Collector, Hits, Keys, Lookup, NullEquality, RunOptions};
    ///
    /// let quotes = record_batch!(("symbol", Utf8, ["A", "A"]), ("ts", Int64, [1, 5]), ("bid", Int32, [100, 105]))?;
    /// let options = RunOptions::default();
    /// let spec = BuildSpec::ordered(quotes.schema(), vec![0], vec![NullEquality::default()], 1)?;
    /// let mut collector = Collector::new(spec, &options.pool, options.config, Cancel::default());
    /// collector.push(quotes)?;
    /// let build = collector.finish()?;
    ///
    /// let keys = Keys::read(&build, &record_batch!(("symbol", Utf8, ["A", "A"]))?)?;
    /// let times = Arc::clone(record_batch!(("ts", Int64, [4, 0]))?.column(0));
    /// let (lookup, mut hits) = (Lookup::try_new(build, &[2])?, Hits::default());
    /// let rows = lookup.rows_as_of((&keys, &times), &AsOf::default(), &[], &mut hits, &Cancel::default())?;
    /// assert_eq!(rows, record_batch!(("bid", Int32, [Some(100), None]))?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`rows_or`](Self::rows_or) and [`PreparedBuild::rows_as_of`].
    pub fn rows_as_of(
        &self,
        (keys, values): (&Keys, &ArrayRef),
        as_of: &AsOf,
        defaults: &[Option<ArrayRef>],
        hits: &mut Hits,
        cancel: &Cancel,
    ) -> Result<RecordBatch> {
        check_defaults(&self.schema, defaults)?;
        self.at(&self.build.raw_rows_as_of((keys, values), as_of, hits, cancel)?, defaults, cancel)
    }

    /// The columns at `rows` of the build, which may be [`NONE`].
    fn at(&self, rows: &[u32], defaults: &[Option<ArrayRef>], cancel: &Cancel) -> Result<RecordBatch> {
        check_batch_size(&self.schema, rows.len())?;
        let selection = Selection::try_new(rows, self.build.num_rows())?;
        let column = |(i, field): (usize, &FieldRef)| {
            let default = defaults.get(i).and_then(Option::as_ref);
            let gathered = gather_or(&self.columns[i], selection, default, cancel);
            gathered.map_err(|error| in_column(error, field.name()))
        };
        let columns = self.schema.fields().iter().enumerate().map(column).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

impl Entries {
    /// Makes room for `more` entries, or says that the allocator has none.
    pub(super) fn try_reserve(&mut self, more: usize) -> Result<()> {
        let reserved = self.probe.try_reserve(more).and_then(|()| self.build.try_reserve(more));
        reserved.map_err(|error| {
            Error::ResourcesExhausted(format!(
                "{} pairs were made, the allocator has no room for more: {error}; ask for fewer keys at once",
                self.len()
            ))
        })
    }
}

/// Which of `rows` exist, as validity; `None` where all do.
pub(super) fn found(rows: &[u32]) -> Option<NullBuffer> {
    let any_none = rows.contains(&NONE);
    any_none.then(|| NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |i| rows[i] != NONE)))
}
