//! Columns of a star join gathered by row numbers: the output, and what a leg reads of earlier legs.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;

use super::plan::{Source, StarPlan};
use crate::cancel::{Cancel, POLL_ROWS};
use crate::columns::{Selection, gather, gather_or, in_column, pick};
use crate::error::{Result, internal_err};
use crate::index::NONE;
use crate::join::Cell;
use crate::probe::pieces::check_batch_size;

/// Row numbers of one side, one per row at hand.
pub(super) type Rows = Arc<Vec<u32>>;

impl StarPlan {
    /// The output columns of some rows that went through all legs; `sides` holds the row numbers of all of them.
    pub(super) fn output(
        &self,
        batch: &RecordBatch,
        sides: &[Option<Rows>],
        pending: Range<usize>,
        cancel: &Cancel,
    ) -> Result<RecordBatch> {
        let (StarPlan { sources, schema, given, legs, .. }, rows) = (self, pending.len());
        check_batch_size(schema, rows)?;
        // Rows are proven to exist once for all columns of their side.
        let mut selections = vec![None; given.len()];
        for (side, selection) in selections.iter_mut().enumerate().filter(|(side, _)| given[*side]) {
            let Some(chosen) = &sides[side] else {
                return internal_err!("row numbers of side {side} are missing");
            };
            let chosen = &chosen[pending.clone()];
            *selection = Some(match side.checked_sub(1).map(|leg| &legs[leg].plan) {
                None => Selection::try_new(chosen, batch.num_rows())?,
                // Of a leg that gives its mark these are no build rows.
                Some(plan) if !plan.join_type.pairs() => Selection::try_new(chosen, NONE as usize)?,
                Some(plan) => plan.build.guarded(|| Selection::try_new(chosen, plan.build.num_rows()))?,
            });
        }
        let chosen = |side: usize| match selections[side] {
            Some(selection) => Ok(selection),
            None => internal_err!("row numbers of side {side} are missing"),
        };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(sources.len());
        for (source, field) in sources.iter().zip(schema.fields()) {
            if rows > POLL_ROWS {
                cancel.check()?;
            }
            let column = match *source {
                Source::Output(earlier) => Ok(Arc::clone(&columns[earlier])),
                Source::Cell(Cell::Probe(column)) => gather(batch.column(column), chosen(0)?),
                Source::Cell(cell @ Cell::Build { leg, column }) => {
                    let plan = &legs[leg].plan;
                    gather_or(plan.build_columns.get(column)?, chosen(cell.side())?, plan.default(column), cancel)
                }
                Source::Cell(cell @ Cell::Mark(_)) => Ok(mark(chosen(cell.side())?.rows())),
            };
            columns.push(column.map_err(|error| in_column(error, field.name()))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }

    /// The values of one column for all rows of `sides`, for a look that ends before the column does.
    pub(super) fn look(
        &self,
        batch: &RecordBatch,
        sides: &[Option<Rows>],
        cell: Cell,
        cancel: &Cancel,
    ) -> Result<ArrayRef> {
        let Some(rows) = &sides[cell.side()] else {
            return internal_err!("row numbers of side {} are missing", cell.side());
        };
        match cell {
            Cell::Probe(column) => pick(batch.column(column), Selection::try_new(rows, batch.num_rows())?),
            Cell::Build { leg, column } => {
                let plan = &self.legs[leg].plan;
                plan.build.guarded(|| {
                    let (column_read, rows) =
                        (plan.build_columns.get(column)?, Selection::try_new(rows, plan.build.num_rows())?);
                    match plan.default(column) {
                        None => pick(column_read, rows),
                        default => gather_or(column_read, rows, default, cancel),
                    }
                })
            }
            Cell::Mark(_) => Ok(mark(rows)),
        }
    }
}

/// Whether each row has a match.
fn mark(rows: &[u32]) -> ArrayRef {
    Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(rows.len(), |i| rows[i] != NONE), None))
}
