//! Conditions as SQL text.
//!
//! `sqlparser` cuts the text into tokens ([`parser`]). The grammar is written here, because a chain of a hundred
//! thousand terms has to be read in a loop rather than on the stack, and because every error names the place in the
//! text: [`operators`] combines operands, [`operands`] reads a column, a constant, a cast or its type.

mod number;
mod operands;
mod operators;
mod parser;

use std::sync::Arc;

use arrow_schema::DataType;
use sqlparser::tokenizer::Token;

use super::position::TextPosition;
use super::tree::Expr;
use crate::error::Result;

pub(super) use number::decimal;
use parser::Parser;
pub(super) use parser::needs_quotes;

/// The longest text that is accepted, in bytes.
const MAX_LENGTH: usize = 1 << 20;

impl Expr {
    /// Reads an SQL condition. Columns are written `build.x`, `probe.y` or `"build"."my x"`; plain `x` stands for the
    /// column of the only side that has one, which [`bind`](Self::bind) looks up. `docs/predicates.md` describes the
    /// language.
    ///
    /// ```
    /// use prejoin::expr::{Expr, build, lit, probe};
    ///
    /// let expr = Expr::parse_sql("probe.ts >= build.since AND build.code NOT IN ('x', 'y')")?;
    /// let codes = [lit("x"), lit("y")];
    /// assert_eq!(expr, probe("ts").ge(build("since")).and(build("code").is_in(codes).not()));
    ///
    /// let error = Expr::parse_sql("build.a = = 1").unwrap_err().to_string();
    /// assert!(error.contains("line 1, column 11"), "{error}");
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) with line, column and the text of the line, if the text is not a condition
    /// of this language, names an unknown type, or is nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    pub fn parse_sql(sql: &str) -> Result<Expr> {
        Self::parse(sql, false)
    }

    /// [`parse_sql`](Self::parse_sql) where a column may be one of any table, as in a leg of a
    /// [`StarJoin`](../struct.StarJoin.html): `t.x` is read as a column named `"t.x"` without a side.
    ///
    /// ```
    /// use prejoin::expr::{ColumnId, Expr};
    ///
    /// let Expr::IsNull(column) = Expr::parse_sql_of_tables("planes.seats IS NULL")? else { unreachable!() };
    /// let Expr::Column(column) = *column else { unreachable!() };
    /// assert_eq!((column.side, column.id), (None, ColumnId::Name("planes.seats".to_owned())));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`parse_sql`](Self::parse_sql).
    pub fn parse_sql_of_tables(sql: &str) -> Result<Expr> {
        Self::parse(sql, true)
    }

    fn parse(sql: &str, tables: bool) -> Result<Expr> {
        let text: Arc<str> = sql.into();
        if sql.len() > MAX_LENGTH {
            let message = format!(
                "the text has {} bytes, at most {MAX_LENGTH} are supported; build long lists with Expr::is_in",
                sql.len()
            );
            return Err(TextPosition::new(&text, 1, 1).error(message));
        }
        let mut parser = Parser::new(&text)?;
        parser.tables = tables;
        let expr = parser.expr()?;
        match parser.peek() {
            Token::EOF => Ok(expr.0),
            _ => Err(parser.expected("an operator or the end of the text")),
        }
    }
}

/// The type of this name in SQL text; reads what [`name_of`](super::type_name::name_of) writes.
pub(crate) fn type_named(name: &str) -> Option<DataType> {
    let text: Arc<str> = name.into();
    let mut parser = Parser::new(&text).ok()?;
    let found = parser.type_name().ok()?;
    (*parser.peek() == Token::EOF).then_some(found)
}
