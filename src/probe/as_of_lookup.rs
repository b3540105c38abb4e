//! As-of lookups: the build row of each key that a value beside it chooses.

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::{Field, Schema};

use super::as_of::AsOfReader;
use super::entries::STAGE;
use super::key_reader::Keys;
use super::lookup::found;
use crate::cancel::Cancel;
use crate::error::{Result, plan_err};
use crate::index::{Hits, NONE};
use crate::join::AsOf;
use crate::prepare::PreparedBuild;

/// As-of lookups without a join.
impl PreparedBuild {
    /// Looks up pairs of a key and an order value: `values[i]` belongs to key `i`. Returns, for each pair, the build row of that key
    /// which `as_of` chooses for that value, or null if it chooses no row. The names in `as_of` are not used.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{AsOf, BuildSpec, Cancel, Collector, Hits, Keys, NullEquality, RunOptions};
    ///
    /// let quotes = record_batch!(("symbol", Utf8, ["A", "A", "B"]), ("ts", Int64, [1, 5, 2]))?;
    /// let options = RunOptions::default();
    /// let spec = BuildSpec::ordered(quotes.schema(), vec![0], vec![NullEquality::default()], 1)?;
    /// let mut collector = Collector::new(spec, &options.pool, options.config, Cancel::default());
    /// collector.push(quotes)?;
    /// let build = collector.finish()?;
    ///
    /// let keys = Keys::read(&build, &record_batch!(("symbol", Utf8, ["A", "A", "B"]))?)?;
    /// let times = Arc::clone(record_batch!(("ts", Int64, [4, 5, 1]))?.column(0));
    /// // The last quote at or before each time.
    /// let rows = build.rows_as_of((&keys, &times), &AsOf::default(), &mut Hits::default(), &Cancel::default())?;
    /// assert_eq!(rows.iter().collect::<Vec<_>>(), [Some(0), Some(1), None]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a build without an order, values that do not compare with it, and a number of
    /// values other than one for each key; others as of [`contains`](Self::contains).
    pub fn rows_as_of(
        &self,
        (keys, values): (&Keys, &ArrayRef),
        as_of: &AsOf,
        hits: &mut Hits,
        cancel: &Cancel,
    ) -> Result<UInt32Array> {
        let rows = self.raw_rows_as_of((keys, values), as_of, hits, cancel)?;
        let nulls = found(&rows);
        Ok(UInt32Array::new(rows.into(), nulls))
    }

    /// [`rows_as_of`](Self::rows_as_of) with [`NONE`] for null.
    pub(crate) fn raw_rows_as_of(
        &self,
        (keys, values): (&Keys, &ArrayRef),
        as_of: &AsOf,
        hits: &mut Hits,
        cancel: &Cancel,
    ) -> Result<Vec<u32>> {
        if values.len() != keys.len() {
            return plan_err!("{} values were given for {} keys", values.len(), keys.len());
        }
        let schema = Schema::new(vec![Field::new("asof", values.data_type().clone(), true)]);
        let search = AsOfReader::try_new(self, as_of, 0, &schema)?.of(values)?;
        let mut rows = vec![NONE; keys.len()];
        self.guarded(|| {
            for start in (0..keys.len()).step_by(STAGE) {
                cancel.check()?;
                hits.clear();
                self.index().probe(&keys.columns, start, STAGE.min(keys.len() - start), hits)?;
                if let Some(missing) = &keys.missing {
                    hits.retain_from(0, |row, _| !missing.value(row as usize));
                }
                search.choose(self, hits, 0)?;
                hits.rows.iter().zip(&hits.groups).for_each(|(&row, &found)| rows[row as usize] = found);
            }
            Ok(())
        })?;
        self.check_rows(&rows)?;
        Ok(rows)
    }
}
