//! The output of a join with a table: as few batches as it fits.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::probe::pieces::one_batch;

/// The pieces of an output in as few batches as they fit: one, unless a column outgrows it.
pub(crate) fn few_batches(
    schema: &SchemaRef,
    mut pieces: Vec<RecordBatch>,
    cancel: &Cancel,
) -> Result<Vec<RecordBatch>> {
    pieces.retain(|piece| piece.num_rows() > 0);
    let mut batches = Vec::new();
    let mut rest = pieces.as_slice();
    while let Some(first) = rest.first() {
        // All of them as a rule; where they do not fit, bisection finds how many do.
        let (mut fit, mut over, mut batch) = (1, rest.len() + 1, first.clone());
        let mut tried = rest.len();
        while over - fit > 1 {
            match one_batch(schema, &rest[..tried], cancel) {
                Ok(larger) => (fit, batch) = (tried, larger),
                Err(Error::Overflow(_)) => over = tried,
                Err(other) => return Err(other),
            }
            tried = fit.midpoint(over);
        }
        batches.push(batch);
        rest = &rest[fit..];
    }
    Ok(batches)
}
