//! What is given back once rows are copied, and when a copy is the smaller thing to keep.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow_array::RecordBatch;

use crate::columns::copy_size::{CopyPart, SMALL_ALLOCATION, grow, overflow, visit};
pub use crate::columns::copy_size::{copy_bound, sliced_size};
use crate::error::{Result, internal_err};
use crate::memory::Reservation;

/// Compares what a copy retains with what was admitted for it, and gives the difference back.
///
/// `input` is the charge of the rows that were copied and are gone now, `copy` what was admitted for the copy,
/// `retained` what the copy holds; all are bytes.
///
/// ```
/// # use std::sync::Arc;
/// use prejoin::admission::settle_copy;
/// use prejoin::{MemoryPool, Pool, Reservation};
///
/// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1024));
/// let mut reservation = Reservation::new(&pool, "rows");
/// // 300 bytes of input, and a copy that was admitted with 400 and took 350.
/// reservation.try_grow(300 + 400)?;
/// settle_copy(&mut reservation, 300, 400, 350)?;
/// assert_eq!(reservation.size(), 350);
/// # Ok::<(), prejoin::Error>(())
/// ```
///
/// # Errors
/// [`Error::Internal`](crate::Error::Internal) where more is retained than `input + copy`,
/// [`Error::Overflow`](crate::Error::Overflow) where that sum overflows; the reservation
/// is unchanged then.
pub fn settle_copy(reservation: &mut Reservation, input: usize, copy: usize, retained: usize) -> Result<()> {
    let Some(admitted) = input.checked_add(copy) else { return Err(overflow()) };
    match admitted.checked_sub(retained) {
        Some(rest) => {
            reservation.shrink(rest);
            Ok(())
        }
        None => internal_err!(
            "concatenation exceeded its admitted copy bound: {retained} bytes held, {input} + {copy} admitted"
        ),
    }
}

/// The ranges in order, those that overlap as one: parts of one allocation.
fn whole(extents: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut sorted = extents.to_vec();
    sorted.sort_unstable_by_key(|extent| extent.start);
    let mut whole: Vec<Range<usize>> = Vec::with_capacity(sorted.len());
    for extent in sorted {
        match whole.last_mut().filter(|last| extent.start < last.end) {
            Some(last) => last.end = last.end.max(extent.end),
            None => whole.push(extent),
        }
    }
    whole
}

/// True where `batch` shows under half of an allocation of more than 64 KiB, so that a copy is the smaller thing to
/// keep.
///
/// `extents` are the known allocations of a foreign batch; a buffer outside of them counts with its own capacity.
pub(crate) fn wastes_memory(batch: &RecordBatch, extents: &[Range<usize>]) -> Result<bool> {
    // Start of the allocation -> (its bytes, those shown); columns may share one.
    let mut allocations: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let extents = whole(extents);
    for column in batch.columns() {
        visit(&column.to_data(), &mut |part| {
            let CopyPart::Buffer(buffer, bytes) = part else { return Ok(()) };
            let address = buffer.as_ptr() as usize;
            let before = extents.partition_point(|extent| extent.start <= address);
            let (start, size) = match extents[..before].last().filter(|extent| extent.contains(&address)) {
                Some(extent) => (extent.start, extent.len()),
                None => (buffer.data_ptr().as_ptr() as usize, buffer.capacity()),
            };
            let (largest, shown) = allocations.entry(start).or_default();
            *largest = size.max(*largest);
            grow(shown, Some(bytes))
        })?;
    }
    Ok(allocations.values().any(|&(size, shown)| size > SMALL_ALLOCATION && shown < size / 2))
}
