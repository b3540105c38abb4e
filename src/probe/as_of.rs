//! As-of joins: the group that a probe row's key finds becomes the one row of it that the probe row's value chooses.

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use super::entries::STAGE;
use super::key_reader::Keys;
use super::lookup::found;
use crate::cancel::Cancel;
use crate::error::{Result, internal_err, plan_err};
use crate::index::{Choice, Hits, NONE, ProbeValues};
use crate::join::AsOf;
use crate::prepare::PreparedBuild;

/// The as-of search of one build by values of one probe column.
#[derive(Debug, Clone)]
pub(crate) struct AsOfReader {
    /// Position of the column in the probe batches.
    position: usize,
    /// The type of the build's order column.
    of: DataType,
    choice: Choice,
}

impl AsOfReader {
    /// A reader of the column at `position` of batches of `schema`.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a build without an order, types that do not compare, and a tolerance that does
    /// not fit them.
    pub(crate) fn try_new(build: &PreparedBuild, as_of: &AsOf, position: usize, schema: &Schema) -> Result<Self> {
        let order = as_of.order_column(build)?;
        let Some(probe) = schema.fields().get(position) else {
            return internal_err!("column {position} was asked of a batch of {} columns", schema.fields().len());
        };
        let choice = as_of.choice(order, probe)?;
        Ok(Self { position, of: order.data_type().clone(), choice })
    }

    /// The search for the values of a batch.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<AsOfSearch> {
        self.of(batch.column(self.position))
    }

    /// The search for the values of a column.
    pub(crate) fn of(&self, column: &ArrayRef) -> Result<AsOfSearch> {
        Ok(AsOfSearch { values: ProbeValues::read(column, &self.of)?, choice: self.choice.clone() })
    }
}

/// The as-of search for the rows of one batch.
#[derive(Debug)]
pub(crate) struct AsOfSearch {
    values: ProbeValues,
    choice: Choice,
}

impl AsOfSearch {
    /// Replaces the groups of the hits from `from` on by build rows; hits without one are removed.
    pub(crate) fn choose(&self, build: &PreparedBuild, hits: &mut Hits, from: usize) -> Result<()> {
        let (Some(order), Some(column)) = (build.order(), build.spec().order()) else {
            return internal_err!("an as-of search in a build without an order");
        };
        order.choose(build.groups(), build.column(column)?, &self.values, &self.choice, hits, from)
    }
}

/// As-of lookups without a join.
impl PreparedBuild {
    /// The build row of each key that `as_of` chooses for the value of `values` beside it, null where there is none. The names in
    /// `as_of` do not matter here.
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
