//! Stretches of rows that follow each other, as within lists, and the loops that copy their values.

use arrow_array::OffsetSizeTrait;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer};

use super::selection::{Rows, fixed_buffer};
use crate::error::Result;

/// Rows of one array as stretches of rows that follow each other.
#[derive(Default)]
pub(crate) struct Stretches {
    /// First row, [`MISSING`] for missing ones, and number of rows.
    list: Vec<(usize, usize)>,
    len: usize,
    has_none: bool,
}

/// The first row of missing ones.
const MISSING: usize = usize::MAX;

impl Stretches {
    /// `len` missing rows.
    pub(crate) fn missing(len: usize) -> Self {
        let mut rows = Self::default();
        rows.push(None, len);
        rows
    }

    /// The same rows as stretches.
    pub(crate) fn of(rows: impl Rows) -> Self {
        let mut stretches = Self::default();
        rows.for_each(|start, len| stretches.push(start, len));
        stretches
    }

    /// Adds `len` rows from `start` on, or missing ones. The sum of all lengths is the caller's to check.
    pub(crate) fn push(&mut self, start: Option<usize>, len: usize) {
        if len == 0 {
            return;
        }
        self.len += len;
        self.has_none |= start.is_none();
        let start = start.unwrap_or(MISSING);
        match self.list.last_mut() {
            Some((first, known)) if start == if *first == MISSING { MISSING } else { *first + *known } => *known += len,
            _ => self.list.push((start, len)),
        }
    }
}

impl Rows for &Stretches {
    fn len(self) -> usize {
        self.len
    }

    fn has_none(self) -> bool {
        self.has_none
    }

    fn for_each(self, mut f: impl FnMut(Option<usize>, usize)) {
        self.list.iter().for_each(|&(start, len)| f((start != MISSING).then_some(start), len));
    }

    fn fixed(self, values: &Buffer, width: usize) -> Result<Buffer> {
        let mut out = fixed_buffer(self.len, width)?;
        self.for_each(|start, len| match start {
            Some(start) => out.extend_from_slice(&values[start * width..][..len * width]),
            None => out.extend_zeros(len * width),
        });
        Ok(out.into())
    }

    fn bits(self, bits: &BooleanBuffer, missing: bool) -> BooleanBuffer {
        let mut out = BooleanBufferBuilder::new(self.len);
        self.for_each(|start, len| match start {
            Some(start) => {
                let start = bits.offset() + start;
                out.append_packed_range(start..start + len, bits.values());
            }
            None => out.append_n(len, missing),
        });
        out.finish()
    }

    fn bytes<O: OffsetSizeTrait>(self, offsets: &[O], values: &[u8]) -> Result<(Buffer, Buffer), usize> {
        let bounds = |start: usize, len: usize| offsets[start].as_usize()..offsets[start + len].as_usize();
        let mut ends = Vec::with_capacity(self.len + 1);
        let mut end = 0usize;
        ends.push(O::default());
        self.for_each(|start, len| match start {
            Some(start) => {
                let from = end;
                let first = offsets[start].as_usize();
                // Wrapping is found below, on the total.
                ends.extend(offsets[start + 1..][..len].iter().map(|at| O::usize_as(from + (at.as_usize() - first))));
                end = end.saturating_add(bounds(start, len).len());
            }
            None => ends.extend(std::iter::repeat_n(O::usize_as(end), len)),
        });
        if O::from_usize(end).is_none() {
            return Err(end);
        }
        let mut out = Vec::with_capacity(end);
        self.for_each(|start, len| {
            if let Some(start) = start {
                out.extend_from_slice(&values[bounds(start, len)]);
            }
        });
        Ok((Buffer::from_vec(ends), Buffer::from_vec(out)))
    }
}
