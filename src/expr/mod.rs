//! The predicate language: conditions over the columns of both sides of a join.
//!
//! An [`Expr`] is a plain tree of public enums, made by [`build`], [`probe`] and [`lit`] and the methods of [`Expr`], or
//! read from SQL text by [`Expr::parse_sql`], which its `Display` writes.
//! [`Expr::bind`] checks it against both schemas and gives a [`Predicate`], which evaluates pairs of rows.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, Int64Array};
//! use arrow_schema::{DataType, Field, Schema};
//! use prejoin::expr::{Side, build, lit, probe};
//!
//! let users = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]));
//! let events = Arc::new(Schema::new(vec![Field::new("w", DataType::Int32, true)]));
//! let predicate = build("v").lt(probe("w")).and(build("v").gt(lit(1))).bind(&users, &events)?;
//! assert_eq!(predicate.to_string(), "build.v < probe.w AND build.v > 1");
//! assert_eq!(predicate.columns(), [(Side::Build, 0), (Side::Probe, 0)]);
//!
//! let v: ArrayRef = Arc::new(Int64Array::from(vec![Some(2), Some(9), None]));
//! let w: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![3, 3, 3]));
//! let passed = predicate.evaluate(&[v, w], 3)?;
//! assert_eq!(passed.iter().collect::<Vec<_>>(), [Some(true), Some(false), None]);
//! # Ok::<(), prejoin::Error>(())
//! ```
//!
//! # Meaning
//! - **Three values.** A comparison with null is null; `AND`, `OR`, `NOT` are Kleene's; a null result means "no".
//! - **Every part is evaluated on every pair**: the right side of an `AND` also where the left side is false, and its
//!   errors show there too.
//! - **Numbers compare by value** over width, sign and scale, integers of at most 64 bits with floats exactly. Every
//!   NaN equals every NaN and is above all numbers, and -0.0 equals 0.0. A decimal column and a float column do not
//!   compare.
//! - **Literals** take on the type of what they stand beside where it holds their value, and compare by value where it
//!   does not. A decimal literal beside a float is the nearest float of that type; a float literal beside a decimal is
//!   the shortest decimal that reads as that float. In arithmetic a decimal or float literal never becomes an integer.
//!   `IN` and `BETWEEN` are their comparisons.
//! - **Timestamps** compare by instant over units and zones, but one with a zone and one without do not compare. Times
//!   and durations compare over units. A date is its midnight, beside timestamps without a zone too.
//! - **Text** is one kind over Utf8, LargeUtf8, Utf8View; so is binary, with FixedSizeBinary. Both compare by bytes.
//!   Dictionary and run-end-encoded columns compare by their values.
//! - **Arithmetic** on integers gives Int64, or UInt64 where both are unsigned and one is UInt64; with a float it gives
//!   Float64; decimals follow Arrow's rules. Integer `/` truncates. Overflow of an integer or a decimal and division by
//!   zero, also by a float zero, are [`Error::Execution`](crate::Error::Execution). Null with anything is null.
//! - **Spans.** Timestamps and dates plus and minus intervals go by calendar months, then days of 24 hours, then time; in
//!   a zone other than UTC or an offset only hours and less are added. Differences are durations, which compare with
//!   interval literals without months. Times go around at midnight.
//! - **Casts** are Arrow's, but timestamps go down to a coarser unit also before 1970, and text is read as literals are:
//!   [`Error::Execution`](crate::Error::Execution) where a value does not fit, or null if so asked.

mod arithmetic;
mod bind;
mod cast;
mod compare;
mod constant;
mod display;
mod in_list;
mod kind;
mod like;
mod literal;
mod position;
mod predicate;
mod sql;
#[cfg(test)]
mod sql_tests;
mod temporal;
#[cfg(test)]
mod tests;
mod text;
mod time;
mod tree;
mod type_name;

pub(crate) use compare::Value;
pub use literal::Literal;
pub use position::TextPosition;
pub use predicate::Predicate;
pub(crate) use sql::type_named;
pub use tree::{ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, MAX_DEPTH, Side};
#[cfg(feature = "python")]
pub(crate) use type_name::is_cast_target;
pub(crate) use type_name::name_of as type_name;

/// A column of the build side, by name or by position.
pub fn build(column: impl Into<ColumnId>) -> Expr {
    Expr::Column(ColumnRef { side: Some(Side::Build), id: column.into(), at: None })
}

/// A column of the probe side, by name or by position.
pub fn probe(column: impl Into<ColumnId>) -> Expr {
    Expr::Column(ColumnRef { side: Some(Side::Probe), id: column.into(), at: None })
}

/// A constant. `None` is null.
pub fn lit(value: impl Into<Literal>) -> Expr {
    Expr::Literal(value.into())
}
