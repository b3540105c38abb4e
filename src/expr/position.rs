//! Positions in an SQL text, and errors that show them.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// The number of characters that an error shows on each side of a position.
const EXCERPT: usize = 50;

/// A position in an SQL text, as error messages show it.
///
/// ```
/// use prejoin::expr::Expr;
///
/// let Expr::IsNull(column) = Expr::parse_sql("build.a IS NULL")? else { unreachable!() };
/// let Expr::Column(column) = *column else { unreachable!() };
/// let at = column.at.unwrap();
/// assert_eq!((at.line(), at.column()), (1, 1));
/// # Ok::<(), prejoin::Error>(())
/// ```
#[derive(Clone)]
pub struct TextPosition {
    text: Arc<str>,
    /// Counted from 1.
    line: usize,
    /// The character of the line, counted from 1.
    column: usize,
}

impl TextPosition {
    pub(super) fn new(text: &Arc<str>, line: u64, column: u64) -> Self {
        let at_least_1 = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).max(1);
        Self { text: Arc::clone(text), line: at_least_1(line), column: at_least_1(column) }
    }

    /// The line of the text, counted from 1.
    ///
    /// ```
    /// use prejoin::expr::Expr;
    ///
    /// let Expr::IsNull(column) = Expr::parse_sql("build.a\n    IS NULL")? else { unreachable!() };
    /// let Expr::Column(column) = *column else { unreachable!() };
    /// assert_eq!(column.at.unwrap().line(), 1);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn line(&self) -> usize {
        self.line
    }

    /// The character of the line, counted from 1.
    ///
    /// ```
    /// use prejoin::expr::Expr;
    ///
    /// let Expr::Not(column) = Expr::parse_sql("NOT build.a")? else { unreachable!() };
    /// let Expr::Column(column) = *column else { unreachable!() };
    /// assert_eq!(column.at.unwrap().column(), 5);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn column(&self) -> usize {
        self.column
    }

    /// An [`Error::Plan`] that names this position.
    pub(super) fn error(&self, message: impl fmt::Display) -> Error {
        Error::Plan(format!("{message}, at {self}"))
    }
}

/// Line and column, then the text of the line with a caret below the character.
impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {} of the SQL text", self.line, self.column)?;
        let line = self.text.split('\n').nth(self.line - 1).unwrap_or_default();
        let from = self.column.saturating_sub(EXCERPT);
        // Control characters are replaced one for one, so that the caret stays below the right character.
        let sign = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let excerpt: String = line.chars().skip(from).take(2 * EXCERPT).map(sign).collect();
        let caret = self.column - 1 - from.min(self.column - 1);
        write!(f, "\n    {excerpt}\n    {:caret$}^", "")
    }
}

impl fmt::Debug for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Adds a position to a plan error.
pub(super) fn located<T>(result: Result<T>, at: Option<&TextPosition>) -> Result<T> {
    match (result, at) {
        (Err(Error::Plan(text)), Some(at)) => Err(at.error(text)),
        (result, _) => result,
    }
}
