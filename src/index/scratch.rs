//! Memory that is admitted before it is allocated, at exactly the admitted capacity.

use arrow_buffer::ScalarBuffer;

use crate::error::{Error, Result};
use crate::memory::{Reservation, ask_for_huge_pages};

/// Bytes of hashes and null masks for `rows` rows of `keys` key columns.
///
/// 8 bytes per row of hashes; where a null may make a row match nothing also one bitmap per key and one for all. An
/// overflow is an error.
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

/// `len` zeros in exactly the capacity that `reservation` grew by. `T::default()` is all zero bits.
pub(super) fn admitted<T: Clone + Default>(reservation: &mut Reservation, len: usize) -> Result<Vec<T>> {
    // The standard library has zeroed pages (`vec!`) and fallible allocation, not both: ask first, then take.
    drop(with_capacity::<T>(reservation, len)?);
    let values = vec![T::default(); len];
    ask_for_huge_pages(&values);
    Ok(values)
}

/// An empty vector of exactly the capacity that `reservation` grew by.
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

/// Heap bytes of a buffer.
pub(super) fn held<T: arrow_buffer::ArrowNativeType>(buffer: &ScalarBuffer<T>) -> usize {
    buffer.inner().capacity()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13
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
    }
}
