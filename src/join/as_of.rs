//! What an as-of join asks for: of the rows of a key, the one whose order value is nearest to a value of the probe row.

use std::fmt;

use arrow_buffer::i256;
use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};

use crate::columns::{comparable, key_type, position};
use crate::error::{Result, plan_err};
use crate::index::{Choice, OrderKind, Reach, Strategy, Units, order_kind};
use crate::prepare::PreparedBuild;

/// An as-of join: each probe row meets at most one build row of its key, which the order of the build decides. Needs a build
/// that was prepared in the order of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct AsOf {
    /// The probe column whose values are looked for; `None` for the one that has the name of the build's order column.
    pub probe: Option<String>,
    /// The order column of the build; `None` says nothing.
    pub build: Option<String>,
    /// Which row is taken.
    pub strategy: Strategy,
    /// How far that row may be from the probe's value; `None` for any distance.
    pub tolerance: Option<Tolerance>,
    /// Whether rows at the probe's value itself are taken.
    pub allow_exact_matches: bool,
}

impl Default for AsOf {
    fn default() -> Self {
        Self { probe: None, build: None, strategy: Strategy::Backward, tolerance: None, allow_exact_matches: true }
    }
}

/// A distance, not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// Of integers, floats and decimals.
    Integer(i128),
    /// Of integers, floats and decimals.
    Float(f64),
    /// Of decimals, integers and floats: `value / 10^scale`.
    Decimal {
        /// The digits.
        value: i256,
        /// Digits behind the point.
        scale: i8,
    },
    /// Of dates and times, in nanoseconds.
    Nanoseconds(i128),
}

impl AsOf {
    /// The position of the probe column in `probe`, whose type compares with the order column of `build`.
    pub(crate) fn column(&self, build: &PreparedBuild, probe: &SchemaRef) -> Result<usize> {
        let order = self.order_column(build)?;
        let column = position(probe, self.probe.as_ref().unwrap_or(order.name()), "probe")?;
        self.choice(order, probe.field(column))?;
        Ok(column)
    }

    /// The order column of `build`.
    pub(crate) fn order_column<'a>(&self, build: &'a PreparedBuild) -> Result<&'a Field> {
        let Some(order) = build.spec().order() else {
            return plan_err!(
                "an as-of join needs a build whose rows are in the order of a column, this one was prepared without \
                 order_by; prepare it with order_by={:?}",
                self.build.as_ref().or(self.probe.as_ref()).map_or("column", String::as_str)
            );
        };
        let order = build.schema().field(order);
        if let Some(named) = self.build.as_ref().filter(|named| *named != order.name()) {
            return plan_err!(
                "asof names the build column {named:?}, the build was prepared with order_by={:?}; say \
                 asof={{probe column: {:?}}}, or prepare it in the order of the other column",
                order.name(),
                order.name()
            );
        }
        Ok(order)
    }

    /// How rows are chosen for values of `probe` among those that are ordered by `order`.
    pub(crate) fn choice(&self, order: &Field, probe: &Field) -> Result<Choice> {
        if !comparable(order.data_type(), probe.data_type()) {
            return plan_err!(
                "asof types must match: build column {:?} is {}, probe column {:?} is {}; cast one of them",
                order.name(),
                order.data_type(),
                probe.name(),
                probe.data_type()
            );
        }
        let (of_build, of_probe) = (key_type(order.data_type()), key_type(probe.data_type()));
        let Some(kind) = order_kind(&of_build) else {
            return plan_err!("column {:?} of type {} has no order", order.name(), order.data_type());
        };
        if kind == OrderKind::Bytes && self.strategy == Strategy::Nearest {
            return plan_err!(
                "strategy=\"nearest\" needs values with distances, {:?} has type {}; take backward or forward",
                order.name(),
                order.data_type()
            );
        }
        let of_probe = if of_probe == DataType::Null { &of_build } else { &of_probe };
        let reach = match &self.tolerance {
            None => Reach::Any,
            Some(tolerance) => tolerance.reach(order, &of_build, of_probe)?,
        };
        let unit = Units::of(&of_build, of_probe).build;
        Ok(Choice { strategy: self.strategy, reach, exact: self.allow_exact_matches, kind, unit })
    }
}

impl fmt::Display for AsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(probe) = &self.probe {
            write!(f, "{probe} ")?;
        }
        write!(f, "{}", self.strategy)?;
        if let Some(tolerance) = &self.tolerance {
            write!(f, " within {tolerance}")?;
        }
        if !self.allow_exact_matches {
            f.write_str(" without exact matches")?;
        }
        Ok(())
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Integer(value) => write!(f, "{value}"),
            Tolerance::Float(value) => write!(f, "{value}"),
            Tolerance::Decimal { value, scale } => write!(f, "{value}e{}", -i32::from(*scale)),
            Tolerance::Nanoseconds(value) => write!(f, "{value} ns"),
        }
    }
}

impl Tolerance {
    /// In the smaller unit of two types.
    fn reach(self, order: &Field, build: &DataType, probe: &DataType) -> Result<Reach> {
        let refused = |needed: &str| {
            plan_err!("the tolerance of column {:?} of type {} is {needed}", order.name(), order.data_type())
        };
        let negative = match self {
            Tolerance::Integer(value) | Tolerance::Nanoseconds(value) => value < 0,
            // NaN is refused too.
            Tolerance::Float(value) => value.is_nan() || value < 0.0,
            Tolerance::Decimal { value, .. } => value.is_negative(),
        };
        if negative {
            return refused("a distance, which is not negative");
        }
        if order_kind(build) == Some(OrderKind::Bytes) {
            return refused("not possible, since texts have no distances");
        }
        if let Some(nanos) =
            nanos_per_unit(build).map(|of_build| of_build.min(nanos_per_unit(probe).unwrap_or(of_build)))
        {
            return match self {
                Tolerance::Nanoseconds(value) => Ok(Reach::Number(i256::from_i128(value / nanos))),
                _ => refused("a timedelta"),
            };
        }
        let (number, scale) = match self {
            Tolerance::Nanoseconds(_) => return refused("a number"),
            Tolerance::Float(value) if value.is_infinite() => return Ok(Reach::Any),
            Tolerance::Float(value) if build.is_floating() => return Ok(Reach::Float(value)),
            Tolerance::Float(value) => decimal(value),
            Tolerance::Integer(value) => (i256::from_i128(value), 0),
            Tolerance::Decimal { value, scale } => (value, i32::from(scale)),
        };
        if build.is_floating() {
            let digits = number.to_string().parse::<f64>().unwrap_or(f64::INFINITY);
            return Ok(Reach::Float(digits / 10f64.powi(scale)));
        }
        let scale_of = |data_type: &DataType| match *data_type {
            DataType::Decimal32(_, s)
            | DataType::Decimal64(_, s)
            | DataType::Decimal128(_, s)
            | DataType::Decimal256(_, s) => i32::from(s),
            _ => 0,
        };
        let up = scale_of(build).max(scale_of(probe)) - scale;
        let factor = i256::from_i128(10).checked_pow(up.unsigned_abs());
        // What 256 bits do not hold is beyond all distances.
        Ok(match factor {
            Some(factor) if up >= 0 => number.checked_mul(factor).map_or(Reach::Any, Reach::Number),
            Some(factor) => Reach::Number(number.wrapping_div(factor)),
            None if up >= 0 && number != i256::ZERO => Reach::Any,
            None => Reach::Number(i256::ZERO),
        })
    }
}

/// A finite float of at least 0 by its shortest digits, at most 38 of them behind the point.
fn decimal(value: f64) -> (i256, i32) {
    let text = value.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = &part[..part.len().min(38)];
    let number = i256::from_string(&format!("{whole}{part}"));
    (number.unwrap_or(i256::MAX), part.len() as i32)
}

/// Nanoseconds of a unit of a date or time type; `None` for numbers.
fn nanos_per_unit(data_type: &DataType) -> Option<i128> {
    use DataType::*;
    let nanos = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    match data_type {
        Timestamp(unit, _) | Time32(unit) | Time64(unit) | Duration(unit) => Some(nanos(unit)),
        Date32 => Some(86_400 * 1_000_000_000),
        Date64 => Some(1_000_000),
        _ => None,
    }
}
