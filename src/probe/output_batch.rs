//! Output batches: columns gathered from both sides.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;

use super::pieces::check_batch_size;
use super::plan::ProbePlan;
use super::visited::RowBits;
use crate::cancel::{Cancel, POLL_ROWS};
use crate::columns::{Selection, gather, gather_or, in_column, nulls};
use crate::error::{Result, internal_err};
use crate::index::NONE;
use crate::join::{ColumnOrigin, JoinType, OutputColumn};

impl ProbePlan {
    /// The output of entries: rows of `input`, and the build row beside each of them.
    pub(super) fn matched_batch(
        &self,
        input: &RecordBatch,
        (build, probe): (&[u32], &[u32]),
        cancel: &Cancel,
    ) -> Result<RecordBatch> {
        let rows = probe.len();
        check_batch_size(&self.output.schema, rows)?;
        // Entries that are not expanded hold no build rows.
        let expanded = self.shape().expand;
        let build_rows = expanded.then(|| Selection::try_new(build, self.build.num_rows())).transpose()?;
        let probe_rows = Selection::try_new(probe, input.num_rows())?;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.output.columns.len());
        for (origin, field) in self.output.origins.iter().zip(self.output.schema.fields()) {
            let named = |error| in_column(error, field.name());
            poll(rows, cancel)?;
            columns.push(match (*origin, build_rows) {
                (ColumnOrigin::Build(i), Some(rows)) => {
                    gather_or(self.build_columns.get(i)?, rows, self.default(i), cancel).map_err(named)?
                }
                (ColumnOrigin::Build(i), None) => {
                    return internal_err!("build column {i} of entries that hold no build rows");
                }
                (ColumnOrigin::Probe(i), _) => gather(input.column(i), probe_rows).map_err(named)?,
                (ColumnOrigin::Output(i), _) => columns[i].clone(),
                (ColumnOrigin::Mark, _) => {
                    let marks = BooleanBuffer::collect_bool(rows, |i| build[i] != NONE);
                    Arc::new(BooleanArray::new(marks, None))
                }
            });
        }
        self.batch(columns, rows)
    }

    /// The next build rows that a build-driven join type gives at its end, beside null probe columns; at most `most` rows,
    /// `None` where there are no more.
    pub(super) fn closing_batch(
        &self,
        rest: &mut RowBits,
        most: usize,
        cancel: &Cancel,
    ) -> Result<Option<RecordBatch>> {
        let mut rows = Vec::new();
        let marked = self.join_type == JoinType::BuildSemi;
        // SQL NOT IN: a null build key is unknown against any probe row. Null probe keys leave nothing to give at all.
        let drops_nulls = self.null_aware && rest.probe_had_rows;
        let key_nulls = match drops_nulls {
            true => self.build.column(self.build.keys()[0])?.logical_nulls(),
            false => None,
        };
        let keep = |row: usize| key_nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        rest.next_rows(marked, most, keep, &mut rows, cancel)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let selection = Selection::try_new(&rows, self.build.num_rows())?;
        let columns = self.output.columns.iter().map(|column| match *column {
            OutputColumn::Build(i) | OutputColumn::Key { build: i, .. } => {
                poll(rows.len(), cancel)?;
                gather(self.build_columns.get(i)?, selection)
            }
            OutputColumn::Probe(i) => nulls(self.probe_schema.field(i).data_type(), rows.len()),
            OutputColumn::Mark => internal_err!("a mark join has no unmatched build rows"),
        });
        let columns = columns.zip(self.output.schema.fields());
        let columns = columns.map(|(column, field)| column.map_err(|error| in_column(error, field.name())));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.batch(columns, rows.len()).map(Some)
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.output.schema.clone(), columns, &options)?)
    }
}

/// Polls the stop signal before a column of so many rows is made, where that takes long.
fn poll(rows: usize, cancel: &Cancel) -> Result<()> {
    if rows > POLL_ROWS { cancel.check() } else { Ok(()) }
}
