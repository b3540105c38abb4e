//! What is given back once rows are copied, and when a copy is the smaller thing to keep.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow_array::RecordBatch;

use crate::columns::copy_size::{Part, SMALL_ALLOCATION, grow, overflow, visit};
pub use crate::columns::copy_size::{copy_bound, sliced_size};
use crate::error::{Result, internal_err};
use crate::memory::Reservation;

/// Compares what a copy retains with what was admitted for it, and gives the difference back.
///
/// `input` is the charge of the rows that were copied and are gone now, `copy` what was admitted for the copy,
/// `retained` what the copy holds; all are bytes.
///
/// # Errors
/// [`Error::Internal`] where more is retained than `input + copy`; the reservation is as it was then.
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

/// True where `batch` shows under half of an allocation of more than 64 KiB, so that a copy is the smaller thing to
/// keep (S15).
///
/// `extents` are the known allocations of a foreign batch; a buffer outside of them counts with its own capacity.
pub(crate) fn wastes_memory(batch: &RecordBatch, extents: &[Range<usize>]) -> Result<bool> {
    // Start of the allocation -> (its bytes, those shown); columns may share one.
    let mut allocations: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for column in batch.columns() {
        visit(&column.to_data(), &mut |part| {
            let Part::Buffer(buffer, bytes) = part else { return Ok(()) };
            let address = buffer.as_ptr() as usize;
            let (start, size) = match extents.iter().find(|extent| extent.contains(&address)) {
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
