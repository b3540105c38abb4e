//! One C array of the tree that a producer gave: its counts, lengths and pointers are checked before anything is read.

use arrow_schema::{DataType, Field, IntervalUnit};

use super::abi::ArrowArray;
use crate::error::{Error, Result};

/// `Err(Error::Execution(format!(..)))`: the producer broke the rules of the C data interface.
macro_rules! bad {
    ($($arg:tt)*) => { Err(Error::Execution(format!($($arg)*))) };
}
pub(super) use bad;

/// Says in which column the producer broke the rules.
pub(super) fn in_column(error: Error, field: &Field) -> Error {
    let text = match error {
        Error::Execution(text) => text,
        Error::Arrow(error) => error.to_string(),
        other => return other,
    };
    Error::Execution(format!("column {:?} of type {}: {text}", field.name(), field.data_type()))
}

/// One array of the tree, its counts checked, cut to `len` rows from `first`.
pub(super) struct Node<'a> {
    pub(super) array: &'a ArrowArray,
    pub(super) first: usize,
    pub(super) len: usize,
}

impl<'a> Node<'a> {
    /// `rows` is (start, length) within the array, all of it where absent.
    pub(super) fn new(
        array: &'a ArrowArray,
        rows: Option<(usize, usize)>,
        buffers: usize,
        children: usize,
        dictionary: bool,
    ) -> Result<Self> {
        let (Ok(offset), Ok(length)) = (usize::try_from(array.offset), usize::try_from(array.length)) else {
            return bad!("an Arrow C array has length {} and offset {}", array.length, array.offset);
        };
        if !(-1..=array.length).contains(&array.null_count) {
            return bad!("an Arrow C array of {length} rows has null count {}", array.null_count);
        }
        // Some producers count the validity bitmap that the Null type does not have.
        let counted = array.n_buffers == buffers as i64 || (buffers == 0 && array.n_buffers == 1);
        if !counted || (buffers > 0 && array.buffers.is_null()) {
            return bad!("{} buffers at {:?}, {buffers} are due", array.n_buffers, array.buffers);
        }
        if array.n_children != children as i64 || (children > 0 && array.children.is_null()) {
            return bad!("{} children at {:?}, {children} are due", array.n_children, array.children);
        }
        if array.dictionary.is_null() == dictionary {
            return bad!("a dictionary is {}", if dictionary { "missing" } else { "not due" });
        }
        let (start, len) = rows.unwrap_or((0, length));
        if start.checked_add(len).is_none_or(|end| end > length) {
            return bad!("rows {start} to {} are due, the array has {length}", start.saturating_add(len));
        }
        // Twice the largest number of rows still fits, so that sums below need no check of their own.
        let Some(first) = offset.checked_add(start).filter(|&first| first <= isize::MAX as usize - len) else {
            return bad!("offset {offset} of an array of {length} rows overflows");
        };
        Ok(Self { array, first, len })
    }

    pub(super) fn child(&self, at: usize) -> Result<&'a ArrowArray> {
        // SAFETY: `new` checked that there are `n_children` entries; callers stay below the number they asked for.
        match unsafe { (*self.array.children.add(at)).as_ref() } {
            Some(child) => Ok(child),
            None => bad!("child {at} is null"),
        }
    }

    pub(super) fn pointer(&self, at: usize) -> *const u8 {
        // SAFETY: `new` checked that there are `n_buffers` entries; callers stay below the number they asked for.
        unsafe { *self.array.buffers.add(at) }.cast()
    }
}

/// `rows * width` without overflow.
pub(super) fn checked(rows: usize, width: usize) -> Result<usize> {
    let Some(bytes) = rows.checked_mul(width).filter(|&bytes| bytes <= isize::MAX as usize) else {
        return bad!("{rows} rows of {width} bytes do not fit into memory");
    };
    Ok(bytes)
}

pub(super) fn size_of_value(size: i32) -> Result<usize> {
    usize::try_from(size).map_err(|_| Error::Execution(format!("a fixed size of {size}")))
}

/// Alignment that arrow-rs needs for a fixed-width type.
pub(super) fn alignment(data_type: &DataType, width: usize) -> usize {
    match data_type {
        DataType::Decimal256(_, _) => align_of::<arrow_buffer::i256>(),
        DataType::Interval(IntervalUnit::DayTime) => align_of::<arrow_buffer::IntervalDayTime>(),
        DataType::Interval(IntervalUnit::MonthDayNano) => align_of::<arrow_buffer::IntervalMonthDayNano>(),
        _ => width,
    }
}
