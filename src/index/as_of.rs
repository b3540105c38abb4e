//! As-of search: of the rows of a key, the one whose value in the build's order is nearest to a probe value.
//!
//! A search halves the rows of a key without a branch. Sixteen searches go step by step together, so that the memory that
//! they wait for is read at the same time.

use std::fmt;

use arrow_array::ArrayRef;
use arrow_buffer::i256;

use super::byte_column::Bytes;
use super::order_code::{OrderCode, OrderCodes, OrderKind, ProbeValues, compare_bytes, order_kind};
use super::row_order::RowOrder;
use super::{Hits, KeyRows, NONE};
use crate::error::{Result, internal_err};

/// Searches that go together.
const WINDOW: usize = 16;

/// Which row of a key an as-of join takes. The words are those of polars and pandas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// The last row at or before the probe value; of equal ones the last in build order.
    #[default]
    Backward,
    /// The first row at or after the probe value; of equal ones the first in build order.
    Forward,
    /// The nearer one of both; of two at the same distance the one that backward takes.
    Nearest,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::Backward => "backward",
            Strategy::Forward => "forward",
            Strategy::Nearest => "nearest",
        })
    }
}

/// How far rows may be from the probe value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reach {
    /// Any distance.
    Any,
    /// So many of the smaller unit of both types.
    Number(i256),
    Float(f64),
}

/// Which row is chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) strategy: Strategy,
    pub(crate) reach: Reach,
    /// Rows at the probe value itself count.
    pub(crate) exact: bool,
    pub(crate) kind: OrderKind,
    /// The size of the build type's unit, in the smaller unit of both types.
    pub(crate) unit: i256,
}

/// Distances of rows from probe values.
trait Distance<C> {
    type Number: PartialOrd;

    /// The distance of a row of code `row` from the value `rest` above `value`.
    fn between(&self, value: C, rest: i256, row: C) -> Self::Number;
    fn is_within(&self, distance: &Self::Number) -> bool;
}

/// Nobody asks for distances.
struct Unmeasured;

impl<C> Distance<C> for Unmeasured {
    type Number = ();

    #[inline(always)]
    fn between(&self, _: C, _: i256, _: C) {}

    #[inline(always)]
    fn is_within(&self, (): &()) -> bool {
        true
    }
}

struct Numbers {
    unit: i256,
    most: Option<i256>,
}

impl<C: OrderCode> Distance<C> for Numbers {
    type Number = i256;

    #[inline(always)]
    fn between(&self, value: C, rest: i256, row: C) -> i256 {
        let codes = value.minus(row);
        if self.unit == i256::ONE && rest == i256::ZERO {
            return codes.checked_abs().unwrap_or(i256::MAX);
        }
        let fine = codes.checked_mul(self.unit).and_then(|fine| fine.checked_add(rest));
        fine.and_then(i256::checked_abs).unwrap_or(i256::MAX)
    }

    #[inline(always)]
    fn is_within(&self, distance: &i256) -> bool {
        self.most.is_none_or(|most| *distance <= most)
    }
}

struct Floats {
    most: Option<f64>,
}

impl<C: OrderCode> Distance<C> for Floats {
    type Number = f64;

    #[inline(always)]
    fn between(&self, value: C, _: i256, row: C) -> f64 {
        // Infinity less infinity would be no number.
        if value == row { 0.0 } else { (value.float() - row.float()).abs() }
    }

    #[inline(always)]
    fn is_within(&self, distance: &f64) -> bool {
        self.most.is_none_or(|most| *distance <= most)
    }
}

/// What searches read.
struct Search<'a, C> {
    order: &'a RowOrder,
    groups: &'a KeyRows,
    /// By position.
    codes: &'a [C],
    values: &'a ProbeValues,
    /// By probe row.
    wanted: &'a [C],
    /// Texts of the build's rows and of the probe's.
    texts: Option<(Bytes<'a>, Bytes<'a>)>,
}

/// The positions that each search is among.
type Ranges = [(u32, u32); WINDOW];

impl RowOrder {
    /// Replaces the group of each hit from `from` on by the build row of it that `choice` takes for the probe row's value;
    /// hits without one are removed. `column` is the build's, by which its rows are ordered.
    pub(crate) fn choose(
        &self,
        groups: &KeyRows,
        column: &ArrayRef,
        values: &ProbeValues,
        choice: &Choice,
        hits: &mut Hits,
        from: usize,
    ) -> Result<()> {
        let texts = (order_kind(column.data_type()) == Some(OrderKind::Bytes))
            .then(|| (Bytes::of(column.as_ref()), Bytes::of(values.column.as_ref())));
        macro_rules! choose {
            ($codes:expr, $wanted:expr) => {
                Search { order: self, groups, codes: $codes, values, wanted: $wanted, texts }.choose(choice, hits, from)
            };
        }
        match (&self.codes, &values.codes) {
            (OrderCodes::I32(codes), OrderCodes::I32(wanted)) => choose!(codes, wanted),
            (OrderCodes::I64(codes), OrderCodes::I64(wanted)) => choose!(codes, wanted),
            (OrderCodes::I128(codes), OrderCodes::I128(wanted)) => choose!(codes, wanted),
            (OrderCodes::I256(codes), OrderCodes::I256(wanted)) => choose!(codes, wanted),
            _ => return internal_err!("codes of two widths in one search"),
        }
        hits.retain_from(from, |_, row| row != NONE);
        Ok(())
    }
}

impl<C: OrderCode> Search<'_, C> {
    fn choose(&self, choice: &Choice, hits: &mut Hits, from: usize) {
        // Without codes there is no row with a value.
        if self.codes.is_empty() {
            return hits.groups[from..].fill(NONE);
        }
        match (choice.reach, choice.strategy, choice.kind) {
            (Reach::Any, Strategy::Backward | Strategy::Forward, _) => self.choose_by(choice, &Unmeasured, hits, from),
            (reach, _, OrderKind::Float) => {
                let most = if let Reach::Float(most) = reach { Some(most) } else { None };
                self.choose_by(choice, &Floats { most }, hits, from);
            }
            (reach, ..) => {
                let most = if let Reach::Number(most) = reach { Some(most) } else { None };
                self.choose_by(choice, &Numbers { unit: choice.unit, most }, hits, from);
            }
        }
    }

    fn choose_by<D: Distance<C>>(&self, choice: &Choice, distance: &D, hits: &mut Hits, from: usize) {
        let Choice { strategy, exact, .. } = *choice;
        let windows = hits.rows[from..].chunks(WINDOW).zip(hits.groups[from..].chunks_mut(WINDOW));
        for (rows, found) in windows {
            let mut ranges: Ranges = [(0, 0); WINDOW];
            for ((range, &row), &group) in ranges.iter_mut().zip(rows).zip(found.iter()) {
                if self.values.is_present(row as usize) {
                    *range = self.order.range(self.groups, group);
                }
            }
            // The rows before the value and those at it, where these count, are in front of a point.
            let (before, after) = match strategy {
                Strategy::Backward => (Some(self.points(&ranges, rows, exact)), None),
                Strategy::Forward => (None, Some(self.points(&ranges, rows, !exact))),
                // Rows at the value are behind this point for neither, or taken by the first.
                Strategy::Nearest if exact => {
                    let points = self.points(&ranges, rows, true);
                    (Some(points), Some(points))
                }
                Strategy::Nearest => (Some(self.points(&ranges, rows, false)), Some(self.points(&ranges, rows, true))),
            };
            for (i, (&row, found)) in rows.iter().zip(found).enumerate() {
                let (start, end) = ranges[i];
                let row = row as usize;
                let measured = |position: u32| {
                    let measured =
                        distance.between(self.wanted[row], self.values.rest(row), self.codes[position as usize]);
                    distance.is_within(&measured).then_some((position, measured))
                };
                let before = before.map(|points| points[i]).filter(|&point| point > start);
                let after = after.map(|points| points[i]).filter(|&point| point < end);
                let before = before.and_then(|point| measured(point - 1));
                let after = after.and_then(measured);
                let nearest = match (before, after) {
                    (Some((before, near)), Some((after, far))) => Some(if far < near { after } else { before }),
                    (before, after) => before.or(after).map(|(position, _)| position),
                };
                *found = nearest.map_or(NONE, |position| self.groups.row_at(position));
            }
        }
    }

    /// Behind how many rows each of `rows` has its place; rows at the value itself are before it where `or_equal`.
    #[inline(always)]
    fn points(&self, ranges: &Ranges, rows: &[u32], or_equal: bool) -> [u32; WINDOW] {
        let mut wanted = [C::LEAST; WINDOW];
        let mut equal = [false; WINDOW];
        for ((wanted, equal), &row) in wanted.iter_mut().zip(&mut equal).zip(rows) {
            *wanted = self.wanted[row as usize];
            let rest = self.values.rest(row as usize);
            *equal = if rest == i256::ZERO { or_equal } else { !rest.is_negative() };
        }
        let Some((build, probe)) = &self.texts else { return self.halve(ranges, &wanted, &equal) };
        // Texts of one code lie between the two points; they are compared whole.
        let lower = self.halve(ranges, &wanted, &[false; WINDOW]);
        let mut points = self.halve(ranges, &wanted, &[true; WINDOW]);
        for ((point, &lower), &row) in points.iter_mut().zip(&lower).zip(rows) {
            let (mut start, mut end) = (lower, *point);
            while start < end {
                let middle = start.midpoint(end);
                let other = compare_bytes(build, self.groups.row_at(middle) as usize, probe, row as usize);
                if other.is_lt() || or_equal && other.is_eq() { start = middle + 1 } else { end = middle }
            }
            *point = start;
        }
        points
    }

    /// The first position of each range whose code is above the wanted one, or at it where not `equal`.
    #[inline(always)]
    fn halve(&self, ranges: &Ranges, wanted: &[C; WINDOW], equal: &[bool; WINDOW]) -> [u32; WINDOW] {
        // An empty range looks at some code and stays where it is.
        let last = self.codes.len() as u32 - 1;
        let mut at = ranges.map(|(start, _)| start.min(last));
        let mut len = ranges.map(|(start, end)| end - start);
        let is_before = |code: C, i: usize| (code < wanted[i]) | ((code == wanted[i]) & equal[i]);
        let mut longest = len.iter().copied().max().unwrap_or(0);
        while longest > 1 {
            for i in 0..WINDOW {
                let half = len[i] / 2;
                let is_before = is_before(self.codes[(at[i] + half) as usize], i);
                at[i] += if is_before { half } else { 0 };
                len[i] -= half;
            }
            longest -= longest / 2;
        }
        for i in 0..WINDOW {
            at[i] += u32::from((len[i] > 0) & is_before(self.codes[at[i] as usize], i));
            at[i] = at[i].max(ranges[i].0);
        }
        at
    }
}
