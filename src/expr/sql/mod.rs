//! Conditions as SQL text.
//!
//! `sqlparser` cuts the text into tokens ([`parser`]). The grammar is written here, because a chain of a hundred thousand
//! terms has to be read in a loop rather than on the stack, and because every error names the place in the text:
//! [`operators`] combines operands, [`operands`] reads a column, a constant, a cast or its type.

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
pub(super) use parser::is_reserved;

/// Longest text that is read.
const MAX_LENGTH: usize = 1 << 20;

impl Expr {
    /// Reads an SQL condition. Columns are `build.x`, `probe.y`, `"build"."my x"`, or `x` where one side alone has it, which
    /// [`bind`](Self::bind) finds. What may be written is in `docs/predicates.md`.
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
    /// [`Error::Plan`](crate::error::Error::Plan), with line, column and the line itself, for text that is no condition of this
    /// language, for an unknown type, and for one nested deeper than [`MAX_DEPTH`].
    pub fn parse_sql(sql: &str) -> Result<Expr> {
        let text: Arc<str> = sql.into();
        if sql.len() > MAX_LENGTH {
            let message = format!(
                "the text has {} bytes, at most {MAX_LENGTH} are read; make long lists with Expr::is_in",
                sql.len()
            );
            return Err(TextPosition::new(&text, 1, 1).error(message));
        }
        let mut parser = Parser::new(&text)?;
        let expr = parser.expr()?;
        match parser.peek() {
            Token::EOF => Ok(expr.0),
            _ => Err(parser.expected("an operator or the end")),
        }
    }
}

/// The type that [`name_of`](type_name::name_of) wrote.
pub(crate) fn type_named(name: &str) -> Option<DataType> {
    let text: Arc<str> = name.into();
    let mut parser = Parser::new(&text).ok()?;
    let found = parser.type_name().ok()?;
    (*parser.peek() == Token::EOF).then_some(found)
}
