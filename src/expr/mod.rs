//! The language of conditions: expressions over the columns of both sides of a join.
//!
//! An [`Expr`] is a tree of public enums. It is built with [`build`], [`probe`], [`lit`] and the methods of [`Expr`],
//! or read from SQL text by [`Expr::parse_sql`]; its `Display` writes such text again. [`Expr::bind`] checks the tree
//! against both schemas and returns a [`Predicate`], which evaluates pairs of rows.
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
//! # Semantics
//! - **Three-valued logic.** A comparison with null is null. `AND`, `OR` and `NOT` follow Kleene's logic. A pair passes
//!   only where the result is true.
//! - **Every operand is evaluated for every pair**: the right side of an `AND` is computed even where the left side is
//!   false, so an error in it is raised even there.
//! - **Numbers compare by value**, whatever their width, sign and scale; integers of up to 64 bits compare with floats
//!   exactly. All NaNs are equal to each other and greater than every number, and -0.0 equals 0.0. A decimal column
//!   cannot be compared with a float column.
//! - **Literals** take the type of the other operand if that type can hold their value, and are compared by value if it
//!   cannot. Next to a float, a decimal literal becomes the nearest float of that type; next to a decimal, a float
//!   literal becomes the shortest decimal that reads as that float. In arithmetic, a decimal or float literal never
//!   becomes an integer. `IN` and `BETWEEN` behave like the comparisons that they abbreviate.
//! - **Timestamps** compare by instant over all units and zones, but a timestamp with a zone cannot be compared with
//!   one without. Times and durations compare over all units. A date is its midnight, also next to a timestamp without
//!   a zone.
//! - **Text** compares by bytes, whether Utf8, LargeUtf8 or Utf8View, and so do the binary types, FixedSizeBinary
//!   included. Dictionary and run-end-encoded columns compare by their values.
//! - **Arithmetic** on integers gives Int64, or UInt64 if both are unsigned and one of them is UInt64; with a float it
//!   gives Float64; on decimals it follows Arrow's rules. Integer `/` truncates. Overflow of an integer or a decimal
//!   and division by zero, also by a float zero, are [`Error::Execution`](crate::Error::Execution). A null operand
//!   gives null.
//! - **Intervals** are added to timestamps and dates as calendar months first, then as days of 24 hours, then as time.
//!   In a zone other than UTC or a fixed offset, only hours and smaller units can be added. Differences are durations,
//!   which can be compared with interval literals without months. A time of day wraps around at midnight.
//! - **Casts** follow Arrow, with two exceptions: a timestamp is rounded down to a coarser unit also before 1970, and
//!   text is read as literals are. A value that does not fit is [`Error::Execution`](crate::Error::Execution), or null
//!   for [`Expr::try_cast`].

mod arithmetic;
mod bind;
mod cast;
mod compare;
mod constant;
mod construct;
mod display;
mod in_list;
mod kind;
mod like;
mod literal;
mod position;
mod predicate;
mod sql;
mod temporal;
#[cfg(test)]
mod tests;
mod text;
mod time;
mod tree;
pub(crate) mod type_name;

pub(crate) use compare::Value;
pub use literal::Literal;
pub use position::TextPosition;
pub use predicate::Predicate;
pub(crate) use sql::type_named;
pub use tree::{ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, MAX_DEPTH, Side};
pub(crate) use type_name::name_of as type_name;

/// A column of the build side, by name or by position.
///
/// ```
/// use prejoin::expr::build;
///
/// assert_eq!(build("my price").to_string(), r#"build."my price""#);
/// assert_eq!(build(2).to_string(), "build[2]");
/// ```
pub fn build(column: impl Into<ColumnId>) -> Expr {
    Expr::Column(ColumnRef { side: Some(Side::Build), id: column.into(), at: None })
}

/// A column of the probe side, by name or by position.
///
/// ```
/// use prejoin::expr::{lit, probe};
///
/// assert_eq!(probe("amount").gt(lit(10)).to_string(), "probe.amount > 10");
/// ```
pub fn probe(column: impl Into<ColumnId>) -> Expr {
    Expr::Column(ColumnRef { side: Some(Side::Probe), id: column.into(), at: None })
}

/// A constant. `None` is null.
///
/// ```
/// use prejoin::expr::lit;
///
/// assert_eq!(lit("it's").to_string(), "'it''s'");
/// assert_eq!(lit(None::<i64>).to_string(), "NULL");
/// ```
pub fn lit(value: impl Into<Literal>) -> Expr {
    Expr::Literal(value.into())
}
