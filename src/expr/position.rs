//! Places in an SQL text, and errors that show them.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Characters of a line that an error shows on each side of the place.
const EXCERPT: usize = 50;

/// A place in an SQL text.
#[derive(Clone)]
pub struct TextPosition {
    text: Arc<str>,
    /// Counted from 1.
    line: usize,
    /// In characters, counted from 1.
    column: usize,
}

impl TextPosition {
    pub(super) fn new(text: &Arc<str>, line: u64, column: u64) -> Self {
        let at_least_1 = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).max(1);
        Self { text: Arc::clone(text), line: at_least_1(line), column: at_least_1(column) }
    }

    /// Line of the text, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Character of the line, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// A [`Error::Plan`] about this place.
    pub(super) fn error(&self, message: impl fmt::Display) -> Error {
        Error::Plan(format!("{message}, at {self}"))
    }
}

/// The place, then the line around it with a caret below.
impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {} of the SQL text", self.line, self.column)?;
        let line = self.text.split('\n').nth(self.line - 1).unwrap_or_default();
        let from = self.column.saturating_sub(EXCERPT);
        // One sign per character, so that the caret stands below its own.
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

/// Adds a place to the text of a plan error.
pub(super) fn located<T>(result: Result<T>, at: Option<&TextPosition>) -> Result<T> {
    match (result, at) {
        (Err(Error::Plan(text)), Some(at)) => Err(at.error(text)),
        (result, _) => result,
    }
}
