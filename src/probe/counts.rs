//! Which keys of a build repeat, and how often.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use crate::cancel::{Cancel, POLL_ROWS};
use crate::columns::{Selection, Share, gather_shared, in_column};
use crate::error::Result;
use crate::memory::{Pool, Reservation};
use crate::prepare::PreparedBuild;

/// Number of rows and first row of a key; the greatest is the key that comes first.
type Repeated = (u32, Reverse<u32>);

impl PreparedBuild {
    /// The keys that several build rows have: the key columns, and the number of these rows in a column `count`. Keys with
    /// most rows come first, of equal ones that of the earliest row; at most `limit` of them. `pool` pays for working memory.
    ///
    /// Where a key column is named `count`, the numbers are in `count_`, with as many underscores as it takes.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [5, 7, 7, 5, 7, 9]))?;
    /// let options = RunOptions::default();
    /// let build = prejoin::prepare(users, &["id"], &options)?;
    /// let repeated = build.repeated_keys(None, &options.pool, &Cancel::default())?;
    /// assert_eq!(repeated.columns(), record_batch!(("id", Int64, [7, 5]), ("count", UInt32, [3, 2]))?.columns());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ResourcesExhausted`](crate::Error::ResourcesExhausted) if `pool` refuses.
    pub fn repeated_keys(&self, limit: Option<usize>, pool: &Arc<dyn Pool>, cancel: &Cancel) -> Result<RecordBatch> {
        let mut reservation = Reservation::new(pool, "repeated keys");
        let (rows, counts) = self.guarded(|| self.repeated(limit, &mut reservation, cancel))?;
        let mut fields = Vec::with_capacity(self.keys().len() + 1);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.keys().len() + 1);
        let selection = Selection::try_new(&rows, self.num_rows())?;
        for &key in self.keys() {
            let field = &self.rows_schema().fields()[key];
            let column = gather_shared(self.column(key)?, selection, Share::Never);
            columns.push(column.map_err(|error| in_column(error, field.name()))?);
            fields.push(Arc::clone(field));
        }
        let mut name = "count".to_owned();
        while fields.iter().any(|field| *field.name() == name) {
            name.push('_');
        }
        fields.push(Arc::new(Field::new(name, DataType::UInt32, false)));
        let options = RecordBatchOptions::new().with_row_count(Some(counts.len()));
        columns.push(Arc::new(UInt32Array::from(counts)));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }

    /// The first row of each of these keys, and its number of rows; `reservation` is charged for what is held.
    fn repeated(
        &self,
        limit: Option<usize>,
        reservation: &mut Reservation,
        cancel: &Cancel,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        let (groups, keys) = (self.groups(), self.num_keys());
        if groups.is_unique() {
            return Ok(Default::default());
        }
        let morsels = || (0..keys).step_by(POLL_ROWS).map(|start| start..keys.min(start + POLL_ROWS));
        let mut repeated = 0;
        for morsel in morsels() {
            cancel.check()?;
            repeated += morsel.filter(|&key| groups.group_len(key as u32) > 1).count();
        }
        let kept = repeated.min(limit.unwrap_or(usize::MAX));
        if kept == 0 {
            return Ok(Default::default());
        }
        // Beside the heap, the rows: the counts are part of the result.
        reservation.try_grow((kept + 1) * size_of::<Repeated>() + kept * size_of::<u32>())?;
        // The least of those that are kept is on top.
        let mut heap: BinaryHeap<Reverse<Repeated>> = BinaryHeap::with_capacity(kept + 1);
        for morsel in morsels() {
            cancel.check()?;
            for group in morsel.map(|key| key as u32).filter(|&group| groups.group_len(group) > 1) {
                // A build has fewer than 2^32 rows.
                heap.push(Reverse((groups.group_len(group) as u32, Reverse(groups.first_row(group)))));
                if heap.len() > kept {
                    heap.pop();
                }
            }
        }
        let (mut rows, mut counts) = (vec![0; kept], vec![0; kept]);
        for at in (0..kept).rev() {
            if at % POLL_ROWS == 0 {
                cancel.check()?;
            }
            if let Some(Reverse((count, Reverse(row)))) = heap.pop() {
                (rows[at], counts[at]) = (row, count);
            }
        }
        Ok((rows, counts))
    }
}
