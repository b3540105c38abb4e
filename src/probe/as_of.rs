//! As-of joins: the group that a probe row's key finds becomes the one row of it that the probe row's value chooses.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};

use crate::error::{Result, internal_err};
use crate::index::{Choice, Hits, ProbeValues};
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
