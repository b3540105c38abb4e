//! Single rows in output order, checked once, and the loops that copy their values.

use arrow_array::OffsetSizeTrait;
use arrow_buffer::{ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, Buffer, MutableBuffer};

use super::NONE;
use crate::error::{Error, Result, internal_err};

/// Rows of one array in output order; some may be missing.
pub(crate) trait Rows: Copy {
    /// Number of rows.
    fn len(self) -> usize;

    /// True where some are missing.
    fn has_none(self) -> bool;

    /// Calls `f` with the first row and the number of rows of each stretch of rows that follow each other, in order; with
    /// `None` for a stretch of missing rows.
    fn for_each(self, f: impl FnMut(Option<usize>, usize));

    /// The values of `width` bytes each; any value where a row is missing.
    fn fixed(self, values: &Buffer, width: usize) -> Result<Buffer>;

    /// The bits, `missing` where a row is.
    fn bits(self, bits: &BooleanBuffer, missing: bool) -> BooleanBuffer;

    /// Offsets and bytes of values of any length, empty where a row is missing; or their length where that is more than
    /// the offsets reach.
    fn bytes<O: OffsetSizeTrait>(self, offsets: &[O], values: &[u8]) -> Result<(Buffer, Buffer), usize>;

    /// A set bit for each row that is not missing.
    fn present(self) -> BooleanBuffer {
        let mut bits = BooleanBufferBuilder::new(self.len());
        self.for_each(|start, len| bits.append_n(len, start.is_some()));
        bits.finish()
    }
}

/// Rows in output order, each checked to exist in columns of a known length; [`NONE`] gives a null.
#[derive(Clone, Copy)]
pub(crate) struct Selection<'a> {
    rows: &'a [u32],
    /// Every row is below it or [`NONE`].
    len: usize,
    has_none: bool,
    /// The rows follow each other.
    contiguous: bool,
}

impl<'a> Selection<'a> {
    /// Checks that every row is below `len` or [`NONE`]. One pass, so that the copies need no check per value, whatever
    /// memory the rows came from.
    ///
    /// # Errors
    /// [`Error::Internal`] where one is not.
    pub(crate) fn try_new(rows: &'a [u32], len: usize) -> Result<Self> {
        let first = rows.first().copied().unwrap_or(0);
        let mut apart = 0;
        // One up: NONE wraps to 0 and every other row must be at most `len`.
        let (least, most) = rows.iter().enumerate().fold((1, 0), |(least, most): (u32, u32), (i, &row)| {
            let up = row.wrapping_add(1);
            apart |= row ^ first.wrapping_add(i as u32);
            (least.min(up), most.max(up))
        });
        if most as usize > len {
            return internal_err!("row {} was chosen of columns of {len} rows", most - 1);
        }
        Ok(Self { rows, len, has_none: least == 0, contiguous: apart == 0 && least != 0 })
    }

    /// The chosen rows as a range, where they follow each other.
    pub(super) fn range(&self) -> Option<std::ops::Range<usize>> {
        let start = *self.rows.first()? as usize;
        self.contiguous.then(|| start..start + self.rows.len())
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &'a [u32] {
        self.rows
    }
}

impl Rows for Selection<'_> {
    fn len(self) -> usize {
        self.rows.len()
    }

    fn has_none(self) -> bool {
        self.has_none
    }

    fn for_each(self, mut f: impl FnMut(Option<usize>, usize)) {
        match self.range() {
            Some(range) => f(Some(range.start), range.len()),
            None => self.rows.iter().for_each(|&row| f((row != NONE).then_some(row as usize), 1)),
        }
    }

    fn fixed(self, values: &Buffer, width: usize) -> Result<Buffer> {
        // By the address and not by the type: a FixedSizeBinary of 8 bytes may lie anywhere.
        let aligned = |to: usize| (values.as_ptr() as usize).is_multiple_of(to);
        match width {
            1 => gather_native::<u8>(values, self),
            2 if aligned(align_of::<u16>()) => gather_native::<u16>(values, self),
            4 if aligned(align_of::<u32>()) => gather_native::<u32>(values, self),
            8 if aligned(align_of::<u64>()) => gather_native::<u64>(values, self),
            16 if aligned(align_of::<u128>()) => gather_native::<u128>(values, self),
            _ => {
                let mut out = fixed_buffer(self.rows.len(), width)?;
                for &row in self.rows {
                    match row {
                        NONE => out.extend_zeros(width),
                        row => out.extend_from_slice(&values[row as usize * width..][..width]),
                    }
                }
                Ok(out.into())
            }
        }
    }

    fn bits(self, bits: &BooleanBuffer, missing: bool) -> BooleanBuffer {
        BooleanBuffer::collect_bool(self.rows.len(), |i| match self.rows[i] {
            NONE => missing,
            row => bits.value(row as usize),
        })
    }

    fn present(self) -> BooleanBuffer {
        BooleanBuffer::collect_bool(self.rows.len(), |i| self.rows[i] != NONE)
    }

    fn bytes<O: OffsetSizeTrait>(self, offsets: &[O], values: &[u8]) -> Result<(Buffer, Buffer), usize> {
        gather_bytes(offsets, values, self)
    }
}

/// An empty buffer with room for the values; aligned also where it stays empty, which a vector of bytes is not.
pub(super) fn fixed_buffer(rows: usize, width: usize) -> Result<MutableBuffer> {
    match rows.checked_mul(width).filter(|&bytes| bytes <= isize::MAX as usize - 128) {
        Some(bytes) => Ok(MutableBuffer::with_capacity(bytes)),
        None => Err(Error::Overflow(format!("{rows} values of {width} bytes are more than memory can address"))),
    }
}

fn gather_native<T: ArrowNativeType>(values: &Buffer, selection: Selection<'_>) -> Result<Buffer> {
    let values: &[T] = values.typed_data();
    if values.len() < selection.len {
        return internal_err!("rows of columns of {} rows were chosen of one of {}", selection.len, values.len());
    }
    if let Some(range) = selection.range() {
        return Ok(Buffer::from_vec(values[range].to_vec()));
    }
    if selection.has_none {
        // The value under a null is that of row 0: a choice without a branch, since misses cannot be predicted.
        if values.is_empty() {
            return Ok(Buffer::from_vec(vec![T::default(); selection.rows.len()]));
        }
        // SAFETY: row 0 exists. `Selection` checked that every other row is below its length, which is at most that of `values`.
        let value = |&row: &u32| unsafe { *values.get_unchecked(if row == NONE { 0 } else { row as usize }) };
        return Ok(Buffer::from_vec(selection.rows.iter().map(value).collect::<Vec<T>>()));
    }
    // SAFETY: `Selection` checked that every row is below its length, which is at most that of `values`. In a bench of this loop
    // alone, a checked copy of 2,048 of 65,536 values took 1.1 to 1.2 times as long.
    let value = |&row: &u32| unsafe { *values.get_unchecked(row as usize) };
    Ok(Buffer::from_vec(selection.rows.iter().map(value).collect::<Vec<T>>()))
}

/// Bytes that a short value is copied with at once, whatever its length.
const CHUNK: usize = 16;

fn gather_bytes<O: OffsetSizeTrait>(
    offsets: &[O],
    values: &[u8],
    selection: Selection<'_>,
) -> Result<(Buffer, Buffer), usize> {
    let mut ends = Vec::with_capacity(selection.len() + 1);
    let mut end = 0usize;
    ends.push(O::default());
    for &row in selection.rows {
        if row != NONE {
            let row = row as usize;
            end += (offsets[row + 1] - offsets[row]).as_usize();
        }
        // Wrapping is found below, on the total.
        ends.push(O::usize_as(end));
    }
    if O::from_usize(end).is_none() {
        return Err(end);
    }
    let mut out: Vec<u8> = Vec::with_capacity(end + CHUNK);
    let mut at = 0;
    for &row in selection.rows.iter().filter(|&&row| row != NONE) {
        let (start, stop) = (offsets[row as usize].as_usize(), offsets[row as usize + 1].as_usize());
        let len = stop - start;
        let padded = len.next_multiple_of(CHUNK);
        debug_assert!(at + len <= end);
        // SAFETY: offsets of a valid array ascend and end within `values`; `at + len <= end` since `end` is the sum of the
        // same lengths, and `out` has room for CHUNK bytes more. In a bench of this loop alone,
        // `extend_from_slice` took 1.4 to 1.7 times as long on values of up to 16 bytes.
        unsafe {
            let source = values.as_ptr().add(start);
            let target = out.as_mut_ptr().add(at);
            if start + padded <= values.len() {
                let mut done = 0;
                while done < len {
                    std::ptr::copy_nonoverlapping(source.add(done), target.add(done), CHUNK);
                    done += CHUNK;
                }
            } else {
                std::ptr::copy_nonoverlapping(source, target, len);
            }
        }
        at += len;
    }
    debug_assert_eq!(at, end);
    // SAFETY: the loop above wrote every byte up to `end`.
    unsafe { out.set_len(end) };
    Ok((Buffer::from_vec(ends), Buffer::from_vec(out)))
}
