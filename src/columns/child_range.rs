//! The range of child rows that the rows of a union or of list views refer to, since they may refer to any part of the child.

use std::ops::Range;

use arrow_buffer::ArrowNativeType;

/// The range that the rows of type `id` of a dense union refer to.
pub(crate) fn shown_by_type(id: i8, type_ids: &[i8], offsets: &[i32]) -> Range<usize> {
    let rows = type_ids.iter().zip(offsets).filter(|&(&other, _)| other == id);
    union(rows.map(|(_, &at)| at as usize..at as usize + 1))
}

/// The range that list views refer to. Empty views are left aside: they may point beyond the values.
pub(crate) fn shown_by_views<O: ArrowNativeType>(offsets: &[O], sizes: &[O]) -> Range<usize> {
    let views = offsets.iter().zip(sizes).filter(|(_, size)| size.as_usize() > 0);
    union(views.map(|(at, size)| at.as_usize()..at.as_usize() + size.as_usize()))
}

fn union(ranges: impl Iterator<Item = Range<usize>>) -> Range<usize> {
    ranges.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end)).unwrap_or_default()
}
