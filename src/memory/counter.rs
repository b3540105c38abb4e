//! How many bytes a batch adds to memory that is held already.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;

/// The union of the address ranges that some arrays hold, so that memory shared between columns, batches or slices is
/// counted once, and a batch that shows a longer range of a known allocation counts the difference only.
///
/// A Rust allocation counts with its capacity. A foreign buffer (C Data Interface) counts the range that it shows.
#[derive(Debug, Default)]
pub struct RangeCounter {
    /// start -> end of each range; the ranges neither overlap nor touch.
    ranges: BTreeMap<usize, usize>,
    total: usize,
}

impl RangeCounter {
    /// Bytes counted so far.
    ///
    /// ```
    /// use prejoin::RangeCounter;
    ///
    /// let mut counter = RangeCounter::default();
    /// counter.add_range(100..200);
    /// counter.add_range(150..250);
    /// assert_eq!(counter.total(), 150);
    /// ```
    pub fn total(&self) -> usize {
        self.total
    }

    /// Adds every buffer of `batch` and returns the bytes that were new.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RangeCounter;
    ///
    /// let batch = record_batch!(("id", Int64, [1, 2, 3]))?;
    /// let mut counter = RangeCounter::default();
    /// assert!(counter.add_batch(&batch) >= 3 * 8);
    /// // A slice shares the memory that was counted.
    /// assert_eq!(counter.add_batch(&batch.slice(1, 2)), 0);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn add_batch(&mut self, batch: &RecordBatch) -> usize {
        batch.columns().iter().map(|column| self.add_array(column.as_ref())).sum()
    }

    /// Adds every buffer of `array`, children included, and returns the bytes that were new.
    ///
    /// ```
    /// use arrow_array::Int64Array;
    /// use prejoin::RangeCounter;
    ///
    /// let column = Int64Array::from(vec![1, 2, 3]);
    /// let mut counter = RangeCounter::default();
    /// assert!(counter.add_array(&column) >= 3 * 8);
    /// assert_eq!(counter.add_array(&column.slice(0, 1)), 0);
    /// ```
    pub fn add_array(&mut self, array: &dyn Array) -> usize {
        self.add_data(&array.to_data())
    }

    fn add_data(&mut self, data: &ArrayData) -> usize {
        let own: usize = data.buffers().iter().map(|buffer| self.add_buffer(buffer)).sum();
        let nulls = data.nulls().map_or(0, |nulls| self.add_buffer(nulls.buffer()));
        own + nulls + data.child_data().iter().map(|child| self.add_data(child)).sum::<usize>()
    }

    fn add_buffer(&mut self, buffer: &Buffer) -> usize {
        let start = buffer.data_ptr().as_ptr() as usize;
        self.add_range(start..start.saturating_add(buffer.capacity()))
    }

    /// Adds one address range and returns the bytes that were new.
    ///
    /// ```
    /// use prejoin::RangeCounter;
    ///
    /// let mut counter = RangeCounter::default();
    /// assert_eq!(counter.add_range(100..200), 100);
    /// assert_eq!(counter.add_range(150..250), 50);
    /// ```
    pub fn add_range(&mut self, range: Range<usize>) -> usize {
        let Range { mut start, mut end } = range;
        if start >= end {
            return 0;
        }
        let mut known = 0;
        // Ranges do not overlap, so those that meet [start, end] are the last ones that begin at or before its end.
        while let Some((&other_start, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.ranges.remove(&other_start);
            known += other_end - other_start;
            start = start.min(other_start);
            end = end.max(other_end);
        }
        self.ranges.insert(start, end);
        let new = (end - start) - known;
        self.total += new;
        new
    }
}
