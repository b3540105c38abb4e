//! The tokens of a text, read one after the other, and the errors that name their place.

use std::sync::Arc;

use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Result};
use crate::expr::position::TextPosition;

/// Words of the grammar. A column of such a name must be quoted or written with its side.
const RESERVED: &[&str] = &[
    "AND", "AS", "BETWEEN", "BUILD", "CASE", "CAST", "DISTINCT", "ESCAPE", "EXISTS", "FALSE", "FROM", "ILIKE", "IN",
    "IS", "LIKE", "NOT", "NULL", "OR", "PROBE", "SELECT", "TRUE", "TRY_CAST", "UNKNOWN",
];

/// True for a column name that is not read unless it is quoted or has its side.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// True for a column name that has to be written in quotes where it has no side. Beside the reserved words that is `interval`: a
/// minus sign and a number behind it would be read as a constant.
pub(in crate::expr) fn needs_quotes(name: &str) -> bool {
    is_reserved(name) || name.eq_ignore_ascii_case("INTERVAL")
}

/// How `sqlparser` cuts the text: identifiers may have letters of any language, and strings have no backslash escapes.
#[derive(Debug)]
struct Tokens;

impl Dialect for Tokens {
    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_'
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '"'
    }
}

/// Reads the tokens of a text from left to right.
pub(super) struct Parser<'a> {
    pub(super) text: &'a Arc<str>,
    /// Without white space and comments. The last one is EOF, and it is never removed.
    pub(super) tokens: Vec<TokenWithSpan>,
    pub(super) next: usize,
    /// A column may be one of any table, not only of the two sides.
    pub(super) tables: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a Arc<str>) -> Result<Self> {
        let tokens = Tokenizer::new(&Tokens, text).tokenize_with_location();
        let tokens = tokens.map_err(|error| {
            TextPosition::new(text, error.location.line, error.location.column).error(error.message)
        })?;
        let mut tokens: Vec<TokenWithSpan> =
            tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
        let end = tokens.last().map_or(Location::new(1, 1), |last| last.span.end);
        tokens.push(TokenWithSpan::at(Token::EOF, end, end));
        Ok(Self { text, tokens, next: 0, tables: false })
    }

    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.next].token
    }

    pub(super) fn peek_after(&self) -> &Token {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)].token
    }

    pub(super) fn skip(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    /// Removes and returns the next token.
    pub(super) fn take(&mut self) -> Token {
        let token = match self.peek() {
            Token::EOF => Token::EOF,
            _ => std::mem::replace(&mut self.tokens[self.next].token, Token::Comma),
        };
        self.skip();
        token
    }

    pub(super) fn here(&self) -> TextPosition {
        self.place(self.next)
    }

    pub(super) fn place(&self, token: usize) -> TextPosition {
        let start = self.tokens[token].span.start;
        TextPosition::new(self.text, start.line, start.column)
    }

    /// An error that says what is allowed at this place and what was found.
    pub(super) fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            Token::EOF => "the end of the text".to_owned(),
            token => shown(&token.to_string()),
        };
        self.here().error(format!("expected {what}, found {found}"))
    }

    /// An error for SQL that this language does not have; `what` is a subject with its verb, such as "subqueries are".
    pub(super) fn unsupported(&self, what: &str) -> Error {
        self.here().error(format!("{what} not supported (see docs/predicates.md)"))
    }

    /// Skips the next token if it is this one.
    pub(super) fn eat(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn expect(&mut self, token: &Token) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("{:?}", token.to_string()))) }
    }

    /// True if the next token is this word, in upper or lower case and without quotes.
    pub(super) fn is_word(&self, word: &str) -> bool {
        is_word(self.peek(), word)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(word)) }
    }
}

pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// A piece of the text, quoted for an error message and shortened if it is long.
pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short:?}..") } else { format!("{short:?}") }
}
