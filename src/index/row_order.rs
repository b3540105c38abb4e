//! The rows of each key in the order of a column, with the codes of their values side by side.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};

use super::KeyRows;
use super::allocate::{bytes, held, release, with_capacity};
use super::byte_column::Bytes;
use super::order_code::{
    OrderCode, OrderCodes, OrderKind, absent, code_bytes, codes, compare_bytes, order_kind, with_codes,
};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::memory::Reservation;

/// Rows between two looks at the cancel signal.
const PIECE: usize = 1 << 15;

/// The order of the rows of each key. Rows whose value is null or NaN are before the others of their key, and no search
/// finds them.
///
/// Positions count the rows of all keys, one key after the other, as [`KeyRows`] lists them.
#[derive(Debug, Clone)]
pub struct RowOrder {
    /// The code of the row at each position, ascending among the rows of a key that have a value.
    pub(super) codes: OrderCodes,
    /// The first position of each key that has a value; `None` where all rows of a key have one.
    pub(super) starts: Option<ScalarBuffer<u32>>,
}

/// Memory and the stop signal of [`RowOrder::build`].
pub(crate) struct OrderContext<'a> {
    /// Pays for the groups and their order; the groups that come in are paid for already.
    pub(crate) retained: &'a mut Reservation,
    /// Pays for what is needed only while rows are sorted.
    pub(crate) scratch: &'a mut Reservation,
    pub(crate) cancel: &'a Cancel,
}

impl RowOrder {
    /// Orders the rows of each of the `num_keys` groups by `column`, of a [`key_type`](crate::columns::key_type) that has an
    /// order; rows of one value stay in build order.
    pub(crate) fn build(
        groups: KeyRows,
        num_keys: usize,
        column: &ArrayRef,
        context: &mut OrderContext<'_>,
    ) -> Result<(KeyRows, Self)> {
        let temporary = context.scratch.size();
        context.scratch.try_grow(bytes::<u8>(column.len())?.saturating_mul(code_bytes(column.data_type())))?;
        let absent = absent(column);
        let row_codes = codes(column, context.cancel)?;
        let text = (order_kind(column.data_type()) == Some(OrderKind::Bytes)).then(|| Bytes::of(column.as_ref()));
        let rows = Rows { absent, text };
        macro_rules! ordered {
            ($variant:ident, $codes:expr) => {{
                let groups = rows.sort(groups, num_keys, $codes, context)?;
                let codes = by_position(&groups, num_keys, $codes, context)?;
                (groups, OrderCodes::$variant(codes.into()))
            }};
        }
        let (groups, codes) = match &row_codes {
            OrderCodes::I32(codes) => ordered!(I32, codes),
            OrderCodes::I64(codes) => ordered!(I64, codes),
            OrderCodes::I128(codes) => ordered!(I128, codes),
            OrderCodes::I256(codes) => ordered!(I256, codes),
        };
        let starts = rows.starts(&groups, num_keys, context)?;
        drop(row_codes);
        context.scratch.shrink(context.scratch.size() - temporary);
        Ok((groups, Self { codes, starts }))
    }

    /// Heap bytes held.
    pub(crate) fn memory_size(&self) -> usize {
        with_codes!(&self.codes, |codes| held(codes)) + self.starts.as_ref().map_or(0, held)
    }

    /// The positions of a group's rows that have a value.
    #[inline(always)]
    pub(super) fn range(&self, groups: &KeyRows, group: u32) -> (u32, u32) {
        let (start, end) = groups.positions(group);
        (self.starts.as_ref().map_or(start, |starts| starts[group as usize]), end)
    }
}

/// What the order of rows depends on beside their codes.
struct Rows<'a> {
    absent: Option<BooleanBuffer>,
    /// The values of texts, which codes do not hold whole.
    text: Option<Bytes<'a>>,
}

impl Rows<'_> {
    fn is_absent(&self, row: u32) -> bool {
        self.absent.as_ref().is_some_and(|absent| absent.value(row as usize))
    }

    /// The order of two rows with values, by code and row; of several rows with one value the first is least.
    #[inline(always)]
    fn compare<C: OrderCode>(&self, (a, row): (C, u32), (b, other): (C, u32)) -> Ordering {
        let by_text = || match &self.text {
            Some(text) => compare_bytes(text, row as usize, text, other as usize),
            None => Ordering::Equal,
        };
        a.cmp(&b).then_with(by_text).then(row.cmp(&other))
    }

    /// Whether rows in this order, of which each is in build order or sorted, need no sorting.
    fn is_sorted<C: OrderCode>(&self, codes: &[C], mut rows: impl Iterator<Item = u32>) -> bool {
        let Some(mut last) = rows.next() else { return true };
        rows.all(|row| {
            let in_order = match (self.is_absent(last), self.is_absent(row)) {
                (true, _) => true,
                (false, true) => false,
                _ => self.compare((codes[last as usize], last), (codes[row as usize], row)).is_lt(),
            };
            last = row;
            in_order
        })
    }

    /// The groups with their rows in order.
    fn sort<C: OrderCode>(
        &self,
        groups: KeyRows,
        num_keys: usize,
        codes: &[C],
        context: &mut OrderContext<'_>,
    ) -> Result<KeyRows> {
        if groups.is_unique() {
            return Ok(groups);
        }
        let rows_of = |group: u32| (0..groups.group_len(group)).map(move |n| (group, n));
        let mut longest = 0;
        let mut steps = 0;
        for group in 0..num_keys as u32 {
            let rows = groups.group_len(group);
            steps += rows;
            if steps > PIECE {
                steps = 0;
                context.cancel.check()?;
            }
            if !self.is_sorted(codes, rows_of(group).map(|(group, n)| groups.nth_row(group, n))) {
                longest = longest.max(rows);
            }
        }
        if longest == 0 {
            return Ok(groups);
        }
        let (offsets, mut rows) = as_csr(groups, num_keys, context)?;
        let mut pairs = with_capacity::<(C, u32)>(context.scratch, longest)?;
        let mut spare = with_capacity::<(C, u32)>(context.scratch, if longest > PIECE { longest } else { 0 })?;
        for group in offsets.windows(2) {
            let rows = &mut rows[group[0] as usize..group[1] as usize];
            if self.is_sorted(codes, rows.iter().copied()) {
                continue;
            }
            pairs.clear();
            let mut first = 0;
            for at in 0..rows.len() {
                let row = rows[at];
                if self.is_absent(row) {
                    rows[first] = row;
                    first += 1;
                } else {
                    pairs.push((codes[row as usize], row));
                }
            }
            sort(&mut pairs, &mut spare, |&a, &b| self.compare(a, b), context.cancel)?;
            rows[first..].iter_mut().zip(&pairs).for_each(|(row, pair)| *row = pair.1);
        }
        release(context.scratch, pairs);
        release(context.scratch, spare);
        Ok(KeyRows::Csr { offsets, rows: rows.into() })
    }

    /// The first position with a value of each group.
    fn starts(
        &self,
        groups: &KeyRows,
        num_keys: usize,
        context: &mut OrderContext<'_>,
    ) -> Result<Option<ScalarBuffer<u32>>> {
        if self.absent.is_none() {
            return Ok(None);
        }
        let mut starts = with_capacity::<u32>(context.retained, num_keys)?;
        for group in 0..num_keys as u32 {
            let (start, end) = groups.positions(group);
            let absent = (start..end).take_while(|&position| self.is_absent(groups.row_at(position))).count();
            starts.push(start + absent as u32);
            if (group as usize).is_multiple_of(PIECE) {
                context.cancel.check()?;
            }
        }
        Ok(Some(starts.into()))
    }
}

/// Offsets and rows of groups of several rows, to be sorted. What the groups held before is given back.
fn as_csr(groups: KeyRows, num_keys: usize, context: &mut OrderContext<'_>) -> Result<(ScalarBuffer<u32>, Vec<u32>)> {
    let mut rows = with_capacity::<u32>(context.retained, groups.num_positions(num_keys))?;
    match groups {
        KeyRows::Csr { offsets, rows: before } => {
            rows.extend_from_slice(&before);
            let size = held(&before);
            drop(before);
            context.retained.shrink(size);
            Ok((offsets, rows))
        }
        groups => {
            let mut offsets = with_capacity::<u32>(context.retained, num_keys + 1)?;
            offsets.push(0);
            for group in 0..num_keys as u32 {
                groups.for_each_row(group, |row| rows.push(row));
                offsets.push(rows.len() as u32);
            }
            let size = groups.memory_size();
            drop(groups);
            context.retained.shrink(size);
            Ok((offsets.into(), rows))
        }
    }
}

/// The code of the row at each position.
fn by_position<C: OrderCode>(
    groups: &KeyRows,
    num_keys: usize,
    codes: &[C],
    context: &mut OrderContext<'_>,
) -> Result<Vec<C>> {
    let positions = groups.num_positions(num_keys);
    let mut ordered = with_capacity::<C>(context.retained, positions)?;
    for start in (0..positions).step_by(PIECE) {
        context.cancel.check()?;
        let end = positions.min(start + PIECE);
        ordered.extend((start as u32..end as u32).map(|position| codes[groups.row_at(position) as usize]));
    }
    Ok(ordered)
}

/// Sorts by an order in which no two values are equal: pieces first, which are then merged, so that the stop signal is seen
/// in between. `spare` has room for as many values where these are more than a piece.
fn sort<T: Copy>(
    values: &mut Vec<T>,
    spare: &mut Vec<T>,
    compare: impl Fn(&T, &T) -> Ordering,
    cancel: &Cancel,
) -> Result<()> {
    for piece in values.chunks_mut(PIECE) {
        cancel.check()?;
        piece.sort_unstable_by(&compare);
    }
    let mut width = PIECE;
    while width < values.len() {
        spare.clear();
        for pair in values.chunks(2 * width) {
            let (mut a, mut b) = pair.split_at(width.min(pair.len()));
            while let ([first, ..], [second, ..]) = (a, b) {
                if spare.len().is_multiple_of(PIECE) {
                    cancel.check()?;
                }
                let side = if compare(first, second).is_lt() { &mut a } else { &mut b };
                spare.push(side[0]);
                *side = &side[1..];
            }
            spare.extend_from_slice(a);
            spare.extend_from_slice(b);
        }
        std::mem::swap(values, spare);
        width *= 2;
    }
    Ok(())
}
