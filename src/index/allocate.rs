//! Allocation for builds: memory is admitted by a reservation first and then allocated with exactly that capacity.

use arrow_buffer::ScalarBuffer;
use hashbrown::HashTable;

use crate::error::{Error, Result};
use crate::memory::{Reservation, ask_for_huge_pages};

/// Bytes of hashes and null masks for `rows` rows of `keys` key columns.
///
/// Hashes take 8 bytes per row. Where a null keeps a row from matching, there is also one bitmap per key and one for all keys.
///
/// # Errors
/// [`Error::ResourcesExhausted`] where the size overflows.
pub fn scratch_size(rows: usize, keys: usize, nulls_equal: bool) -> Result<usize> {
    let size = || {
        let hashes = rows.checked_mul(8)?;
        let masks = match nulls_equal {
            true => 0,
            false => keys.checked_add(1)?.checked_mul(rows.div_ceil(8).checked_add(64)?)?,
        };
        hashes.checked_add(masks)
    };
    size().ok_or_else(|| {
        Error::ResourcesExhausted(format!("scratch size overflow: {rows} rows of {keys} keys; prepare a smaller build"))
    })
}

/// `len` zeros, for which `reservation` grows. The bits of `T::default()` are all zero.
pub(super) fn admitted<T: Clone + Default>(reservation: &mut Reservation, len: usize) -> Result<Vec<T>> {
    // The standard library can allocate zeroed pages (`vec!`) and can fail to allocate, but not both at once.
    drop(with_capacity::<T>(reservation, len)?);
    let values = vec![T::default(); len];
    ask_for_huge_pages(&values);
    Ok(values)
}

/// An empty vector of exactly this capacity, for which `reservation` grows.
pub(super) fn with_capacity<T>(reservation: &mut Reservation, capacity: usize) -> Result<Vec<T>> {
    let size = bytes::<T>(capacity)?;
    reservation.try_grow(size)?;
    let mut values = Vec::new();
    match values.try_reserve_exact(capacity) {
        Ok(()) => {
            ask_for_huge_pages(&values);
            Ok(values)
        }
        Err(error) => {
            reservation.shrink(size);
            Err(Error::ResourcesExhausted(format!("the allocator refused {size} bytes for an index: {error}")))
        }
    }
}

/// Drops `values` and gives back what [`admitted`] charged for them.
pub(super) fn release<T>(reservation: &mut Reservation, values: Vec<T>) {
    let size = values.capacity() * size_of::<T>();
    drop(values);
    reservation.shrink(size);
}

/// Bytes of `len` values, checked.
pub(super) fn bytes<T>(len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>()).ok_or_else(|| {
        Error::ResourcesExhausted(format!("index size overflow: {len} entries; prepare a smaller build"))
    })
}

/// Bytes that hashbrown allocates at most for a table of `capacity` values.
///
/// Its number of buckets is a power of two, at most 7 in 8 of them are used, and each has a tag of one byte; 16 more tags
/// follow at the end.
///
/// # Errors
/// [`Error::ResourcesExhausted`] where the size overflows.
pub fn hash_table_size<T>(capacity: usize) -> Result<usize> {
    // Else there may be padding before the tags, or a larger smallest table.
    const { assert!(size_of::<T>() >= 4 && align_of::<T>() <= 16) };
    let size = || {
        let smallest = if capacity < 4 { 4 } else { 8 };
        let buckets = (capacity.checked_mul(8)? / 7).checked_next_power_of_two()?.max(smallest);
        let values = buckets.checked_mul(size_of::<T>())?;
        values.checked_add(buckets)?.checked_add(16)
    };
    size().ok_or_else(|| {
        Error::ResourcesExhausted(format!("hash table size overflow: {capacity} keys; prepare a smaller build"))
    })
}

/// Makes room for `more` values. Where the table has to grow, `reservation` pays for the old and the new table until the values
/// have moved, then for the new one alone.
pub(super) fn reserve<T>(
    table: &mut HashTable<T>,
    more: usize,
    reservation: &mut Reservation,
    hash: impl Fn(&T) -> u64,
) -> Result<()> {
    if table.capacity() - table.len() >= more {
        return Ok(());
    }
    let before = table.allocation_size();
    // hashbrown at least doubles its buckets.
    let size = hash_table_size::<T>((table.len() + more).max(table.capacity() + 1))?;
    reservation.try_grow(size)?;
    match table.try_reserve(more, hash) {
        Ok(()) => {
            debug_assert!(table.allocation_size() <= size, "a hash table exceeded what was admitted for it");
            reservation.shrink(before + size - table.allocation_size());
            Ok(())
        }
        Err(error) => {
            reservation.shrink(size);
            Err(Error::ResourcesExhausted(format!("the allocator refused {size} bytes for an index: {error:?}")))
        }
    }
}

/// Drops a table and gives back what [`reserve`] charged for it.
pub(super) fn release_table<T>(reservation: &mut Reservation, table: HashTable<T>) {
    let size = table.allocation_size();
    drop(table);
    reservation.shrink(size);
}

/// Heap bytes of a buffer.
pub(super) fn held<T: arrow_buffer::ArrowNativeType>(buffer: &ScalarBuffer<T>) -> usize {
    buffer.inner().capacity()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13: sizes, and errors where they overflow.
    #[test]
    fn sizes_and_overflows() {
        const MAX: usize = usize::MAX;
        for (rows, keys, nulls_equal) in
            [(MAX / 8 + 1, 1, true), (0, MAX, false), (0, MAX / 64, false), (MAX / 8, 0, false)]
        {
            let error = scratch_size(rows, keys, nulls_equal).unwrap_err().to_string();
            assert!(error.contains("scratch size overflow"), "{error}");
        }
        assert_eq!(scratch_size(MAX / 8, 1, true).unwrap(), MAX / 8 * 8);
        assert_eq!(scratch_size(1000, 2, true).unwrap(), 8000);
        assert_eq!(scratch_size(1000, 2, false).unwrap(), 8000 + 3 * (125 + 64));
        assert_eq!(scratch_size(0, 1, false).unwrap(), 128);
        for capacity in [MAX, MAX / 8 + 1, MAX / 8] {
            let error = hash_table_size::<u32>(capacity).unwrap_err().to_string();
            assert!(error.contains("hash table size overflow"), "{error}");
        }
    }
}
