//! Conditions as SQL text.
//!
//! The words come from the tokenizer of `sqlparser`. The grammar is here: a chain of a hundred thousand terms needs a
//! loop, not a stack, and every refusal can say where it stands.

use std::sync::Arc;

use arrow_buffer::i256;
use arrow_schema::DataType;
use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

use super::like::with_our_escape;
use super::literal::Literal;
use super::position::TextPosition;
use super::tree::{ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, MAX_DEPTH, Side};
use super::{temporal, type_name};
use crate::error::Result;

/// Longest text that is read.
const MAX_LENGTH: usize = 1 << 20;

/// Deepest nesting of operands and parentheses; a tree of [`MAX_DEPTH`] levels, written with parentheses, fits.
const MAX_NESTING: usize = 2 * MAX_DEPTH + 2;

/// Words of the grammar, which are no column names unless they are quoted or follow a side.
const RESERVED: &[&str] = &[
    "AND", "AS", "BETWEEN", "BUILD", "CASE", "CAST", "DISTINCT", "ESCAPE", "EXISTS", "FALSE", "FROM", "ILIKE", "IN",
    "IS", "LIKE", "NOT", "NULL", "OR", "PROBE", "SELECT", "TRUE", "TRY_CAST", "UNKNOWN",
];

/// True for a name that must be quoted where its side is not named.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// How `sqlparser` cuts the text: identifiers of any language, strings without backslashes.
#[derive(Debug)]
struct Words;

impl Dialect for Words {
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
        Self::parse(sql, false)
    }

    /// [`parse_sql`](Self::parse_sql) where a column may be that of any table: `t.x` is a column named `"t.x"`, of
    /// whichever side has it.
    #[cfg_attr(not(feature = "python"), allow(dead_code))] // conditions come as text from Python
    pub(crate) fn parse_sql_of_tables(sql: &str) -> Result<Expr> {
        Self::parse(sql, true)
    }

    fn parse(sql: &str, tables: bool) -> Result<Expr> {
        let text: Arc<str> = sql.into();
        if sql.len() > MAX_LENGTH {
            let message = format!(
                "the text has {} bytes, at most {MAX_LENGTH} are read; make long lists with Expr::is_in",
                sql.len()
            );
            return Err(TextPosition::new(&text, 1, 1).error(message));
        }
        let mut parser = Parser::new(&text)?;
        parser.tables = tables;
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

/// How tightly an operator binds, the loosest first.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Or,
    And,
    Not,
    Compare,
    Sum,
    Product,
    Sign,
}

/// An expression and the levels of its tree.
struct Tree(Expr, usize);

struct Parser<'a> {
    text: &'a Arc<str>,
    /// Without white space and comments; the last one is EOF.
    tokens: Vec<TokenWithSpan>,
    next: usize,
    /// A column may be that of any table, not of the two sides only.
    tables: bool,
}

/// An operand that is being read: what is done with it, and how far it goes.
struct Open {
    then: Then,
    /// Its operators bind at least as tightly as this.
    level: Level,
    /// It has a comparison already, which is no operand of another one without parentheses.
    compared: bool,
}

/// What is done with an operand once it is read. The operands before it are held here: a list of these takes the place of
/// calls, so that depth costs no stack.
enum Then {
    Whole,
    Not,
    Plus,
    Negate,
    Parenthesis,
    Cast { or_null: bool },
    Arithmetic(Tree, ArithmeticOp),
    Compare(Tree, CompareOp),
    Chain { is_and: bool, all: Vec<Expr>, levels: usize },
    In { not: bool, value: Tree, list: Vec<Expr>, levels: usize },
    BetweenLow { not: bool, value: Tree },
    BetweenHigh { not: bool, value: Tree, low: Tree },
    Like { not: bool, ignore_case: bool, value: Tree },
}

/// A step of the parser: an expression is read, or an operand of it begins.
enum Read {
    Tree(Tree),
    Open(Then, Level),
}

/// What follows an expression.
enum Operator {
    Read(Read),
    /// Nothing that belongs to the operand.
    End(Tree),
}

impl Read {
    fn literal(literal: Literal) -> Result<Read> {
        Ok(Read::Tree(leaf(Expr::Literal(literal))))
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a Arc<str>) -> Result<Self> {
        let tokens = Tokenizer::new(&Words, text).tokenize_with_location();
        let tokens = tokens.map_err(|error| {
            TextPosition::new(text, error.location.line, error.location.column).error(error.message)
        })?;
        let mut tokens: Vec<TokenWithSpan> =
            tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
        let end = tokens.last().map_or(Location::new(1, 1), |last| last.span.end);
        tokens.push(TokenWithSpan::at(Token::EOF, end, end));
        Ok(Self { text, tokens, next: 0, tables: false })
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn peek_after(&self) -> &Token {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)].token
    }

    fn skip(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    /// Takes the next token out.
    fn take(&mut self) -> Token {
        let token = match self.peek() {
            Token::EOF => Token::EOF,
            _ => std::mem::replace(&mut self.tokens[self.next].token, Token::Comma),
        };
        self.skip();
        token
    }

    fn here(&self) -> TextPosition {
        self.place(self.next)
    }

    fn place(&self, token: usize) -> TextPosition {
        let start = self.tokens[token].span.start;
        TextPosition::new(self.text, start.line, start.column)
    }

    fn expected(&self, what: &str) -> crate::error::Error {
        let found = match self.peek() {
            Token::EOF => "the text ends".to_owned(),
            token => format!("{} was found", shown(&token.to_string())),
        };
        self.here().error(format!("{what} is expected, {found}"))
    }

    fn unsupported(&self, what: &str) -> crate::error::Error {
        self.here().error(format!("{what} not part of this language (see docs/predicates.md)"))
    }

    fn eat(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.skip();
        }
        found
    }

    fn expect(&mut self, token: &Token) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("{:?}", token.to_string()))) }
    }

    /// True where the next token is this word, in any case and not quoted.
    fn is_word(&self, word: &str) -> bool {
        is_word(self.peek(), word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.skip();
        }
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    /// A node above `levels` levels of operands.
    fn node(&self, levels: usize, expr: Expr) -> Result<Tree> {
        if levels >= MAX_DEPTH {
            let message = format!("the condition is nested deeper than {MAX_DEPTH} levels");
            return Err(self.here().error(message));
        }
        Ok(Tree(expr, levels + 1))
    }

    /// A whole expression.
    fn expr(&mut self) -> Result<Tree> {
        let mut open = vec![Open { then: Then::Whole, level: Level::Or, compared: false }];
        let mut level = Level::Or;
        loop {
            // What is read goes to the innermost open operand, until another one begins.
            let mut read = self.prefix(level)?;
            let begins = loop {
                match read {
                    Read::Open(then, level) => break Open { then, level, compared: false },
                    Read::Tree(tree) => {
                        let Some(mut innermost) = open.pop() else { return Ok(tree) };
                        read = match self.operator(tree, &mut innermost)? {
                            Operator::End(tree) => self.close(innermost.then, tree)?,
                            Operator::Read(read) => {
                                open.push(innermost);
                                read
                            }
                        };
                    }
                }
            };
            level = begins.level;
            open.push(begins);
            if open.len() > MAX_NESTING {
                let message = format!("the condition is nested deeper than {MAX_DEPTH} levels");
                return Err(self.here().error(message));
            }
        }
    }

    /// The operator after `left`, if it belongs to the operand that is being read.
    fn operator(&mut self, left: Tree, operand: &mut Open) -> Result<Operator> {
        let level = operand.level;
        let read = match self.binary() {
            Some((of, op)) if of >= level => {
                self.skip();
                // One tighter than itself: `a - b - c` is `(a - b) - c`.
                let right = if of == Level::Sum { Level::Product } else { Level::Sign };
                Read::Open(Then::Arithmetic(left, op), right)
            }
            Some(_) => return Ok(Operator::End(left)),
            None if level <= Level::Compare && self.is_word("IS") => self.is(left)?,
            None if level <= Level::Compare && self.at_comparison() => {
                if std::mem::replace(&mut operand.compared, true) {
                    return Err(self.here().error("comparisons do not chain; write AND or parentheses"));
                }
                self.comparison(left)?
            }
            None if (level <= Level::And && self.is_word("AND")) || (level == Level::Or && self.is_word("OR")) => {
                operand.compared = false;
                let is_and = self.is_word("AND");
                self.skip();
                let then = Then::Chain { is_and, all: vec![left.0], levels: left.1 };
                Read::Open(then, if is_and { Level::Not } else { Level::And })
            }
            None => return Ok(Operator::End(left)),
        };
        Ok(Operator::Read(read))
    }

    /// What an operand was read for.
    fn close(&mut self, then: Then, tree: Tree) -> Result<Read> {
        let read = match then {
            Then::Whole | Then::Plus => tree,
            Then::Not => self.node(tree.1, tree.0.not())?,
            Then::Negate => self.node(tree.1, -tree.0)?,
            Then::Parenthesis => {
                if *self.peek() == Token::Comma {
                    return Err(self.unsupported("rows of several values are"));
                }
                self.expect(&Token::RParen)?;
                self.casts(tree)?
            }
            Then::Cast { or_null } => {
                self.expect_word("AS")?;
                let to = self.type_name()?;
                self.expect(&Token::RParen)?;
                let cast = self.node(tree.1, Expr::Cast { value: Box::new(tree.0), to, or_null })?;
                self.casts(cast)?
            }
            Then::Arithmetic(left, op) => self.node(left.1.max(tree.1), left.0.arithmetic(op, tree.0))?,
            Then::Compare(left, op) => self.node(left.1.max(tree.1), left.0.compare(op, tree.0))?,
            // A chain is one flat list.
            Then::Chain { is_and, mut all, levels } => {
                let levels = levels.max(tree.1);
                all.push(tree.0);
                if self.eat_word(if is_and { "AND" } else { "OR" }) {
                    let level = if is_and { Level::Not } else { Level::And };
                    return Ok(Read::Open(Then::Chain { is_and, all, levels }, level));
                }
                self.node(levels, if is_and { Expr::And(all) } else { Expr::Or(all) })?
            }
            Then::In { not, value, mut list, levels } => {
                let levels = levels.max(tree.1);
                list.push(tree.0);
                if self.eat(&Token::Comma) {
                    return Ok(Read::Open(Then::In { not, value, list, levels }, Level::Or));
                }
                self.expect(&Token::RParen)?;
                let found = self.node(levels, value.0.is_in(list))?;
                self.negated(not, found)?
            }
            Then::BetweenLow { not, value } => {
                self.expect_word("AND")?;
                return Ok(Read::Open(Then::BetweenHigh { not, value, low: tree }, Level::Sum));
            }
            Then::BetweenHigh { not, value, low } => {
                let levels = value.1.max(low.1).max(tree.1);
                let found = self.node(levels, value.0.between(low.0, tree.0))?;
                self.negated(not, found)?
            }
            Then::Like { not, ignore_case, value } => {
                let pattern = if self.eat_word("ESCAPE") { self.escaped(tree.0)? } else { tree.0 };
                let (levels, value, pattern) = (value.1.max(tree.1), Box::new(value.0), Box::new(pattern));
                let found = self.node(levels, Expr::Like { value, pattern, ignore_case })?;
                self.negated(not, found)?
            }
        };
        Ok(Read::Tree(read))
    }

    fn negated(&self, not: bool, found: Tree) -> Result<Tree> {
        if not { self.node(found.1, found.0.not()) } else { Ok(found) }
    }

    fn binary(&self) -> Option<(Level, ArithmeticOp)> {
        Some(match self.peek() {
            Token::Plus => (Level::Sum, ArithmeticOp::Add),
            Token::Minus => (Level::Sum, ArithmeticOp::Sub),
            Token::Mul => (Level::Product, ArithmeticOp::Mul),
            Token::Div => (Level::Product, ArithmeticOp::Div),
            Token::Mod => (Level::Product, ArithmeticOp::Rem),
            _ => return None,
        })
    }

    fn compare_op(&self) -> Option<CompareOp> {
        Some(match self.peek() {
            Token::Eq | Token::DoubleEq => CompareOp::Eq,
            Token::Neq => CompareOp::Ne,
            Token::Lt => CompareOp::Lt,
            Token::LtEq => CompareOp::Le,
            Token::Gt => CompareOp::Gt,
            Token::GtEq => CompareOp::Ge,
            _ => return None,
        })
    }

    fn at_comparison(&self) -> bool {
        let word = |token| ["IN", "BETWEEN", "LIKE", "ILIKE"].iter().any(|word| is_word(token, word));
        self.compare_op().is_some() || word(self.peek()) || (self.is_word("NOT") && word(self.peek_after()))
    }

    /// What follows the left operand of a comparison.
    fn comparison(&mut self, left: Tree) -> Result<Read> {
        if let Some(op) = self.compare_op() {
            self.skip();
            if ["ANY", "ALL", "SOME"].iter().any(|word| self.is_word(word)) {
                return Err(self.unsupported("comparisons with ANY and ALL are"));
            }
            return Ok(Read::Open(Then::Compare(left, op), Level::Sum));
        }
        let not = self.eat_word("NOT");
        if self.eat_word("IN") {
            self.expect(&Token::LParen)?;
            if self.is_word("SELECT") || self.is_word("WITH") {
                return Err(self.unsupported("subqueries are"));
            }
            if self.eat(&Token::RParen) {
                let found = self.node(left.1, left.0.is_in([]))?;
                return self.negated(not, found).map(Read::Tree);
            }
            let levels = left.1;
            return Ok(Read::Open(Then::In { not, value: left, list: Vec::new(), levels }, Level::Or));
        }
        if self.eat_word("BETWEEN") {
            return Ok(Read::Open(Then::BetweenLow { not, value: left }, Level::Sum));
        }
        let ignore_case = self.is_word("ILIKE");
        self.skip();
        Ok(Read::Open(Then::Like { not, ignore_case, value: left }, Level::Sum))
    }

    /// The pattern with our own escape, after the word ESCAPE.
    fn escaped(&mut self, pattern: Expr) -> Result<Expr> {
        let at = self.here();
        let Token::SingleQuotedString(escape) = self.take() else {
            return Err(at.error("ESCAPE takes one character in quotes, or none"));
        };
        let mut signs = escape.chars();
        let (escape, None) = (signs.next(), signs.next()) else {
            return Err(at.error("ESCAPE takes one character in quotes, or none"));
        };
        match &pattern {
            Expr::Literal(Literal::Text(text)) => match with_our_escape(text, escape) {
                Some(text) => Ok(Expr::Literal(Literal::Text(text))),
                None => Err(at.error("the pattern ends with its escape character")),
            },
            _ => Err(at.error("ESCAPE is only taken after a pattern that is a text")),
        }
    }

    /// `IS [NOT] NULL | UNKNOWN | TRUE | FALSE | DISTINCT FROM x`
    fn is(&mut self, left: Tree) -> Result<Read> {
        self.skip();
        let not = self.eat_word("NOT");
        if self.eat_word("DISTINCT") {
            self.expect_word("FROM")?;
            let op = if not { CompareOp::NotDistinct } else { CompareOp::Distinct };
            return Ok(Read::Open(Then::Compare(left, op), Level::Sum));
        }
        let found = if self.eat_word("NULL") || self.eat_word("UNKNOWN") {
            self.node(left.1, left.0.is_null())?
        } else if self.eat_word("TRUE") {
            self.node(left.1, left.0.is_true())?
        } else if self.eat_word("FALSE") {
            self.node(left.1, left.0.is_false())?
        } else {
            return Err(self.expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"));
        };
        self.negated(not, found).map(Read::Tree)
    }

    /// A sign, the word NOT, or an operand with the casts after it.
    fn prefix(&mut self, level: Level) -> Result<Read> {
        if self.is_word("NOT") && level <= Level::Not {
            self.skip();
            return Ok(Read::Open(Then::Not, Level::Not));
        }
        match self.peek() {
            Token::Plus => {
                self.skip();
                Ok(Read::Open(Then::Plus, Level::Sign))
            }
            Token::Minus => {
                self.skip();
                // `-1` is a literal; `-1::int` is the negative of a cast.
                let cast = *self.peek_after() == Token::DoubleColon;
                match self.peek() {
                    Token::Number(..) if !cast => self.number("-"),
                    _ => Ok(Read::Open(Then::Negate, Level::Sign)),
                }
            }
            _ => match self.operand()? {
                Read::Tree(value) => self.casts(value).map(Read::Tree),
                open => Ok(open),
            },
        }
    }

    /// The casts after a value.
    fn casts(&mut self, mut value: Tree) -> Result<Tree> {
        while self.eat(&Token::DoubleColon) {
            let to = self.type_name()?;
            value = self.node(value.1, value.0.cast(to))?;
        }
        Ok(value)
    }

    fn operand(&mut self) -> Result<Read> {
        match self.peek() {
            Token::LParen => {
                self.skip();
                if self.is_word("SELECT") || self.is_word("WITH") {
                    return Err(self.unsupported("subqueries are"));
                }
                Ok(Read::Open(Then::Parenthesis, Level::Or))
            }
            Token::Number(..) => self.number(""),
            Token::SingleQuotedString(_) => match self.take() {
                Token::SingleQuotedString(text) => Read::literal(Literal::Text(text)),
                _ => Err(self.expected("a text")),
            },
            Token::HexStringLiteral(_) => self.bytes(),
            Token::Word(_) => self.word(),
            Token::EOF if self.next == 0 => Err(self.here().error("the condition is empty")),
            Token::Question | Token::Placeholder(_) | Token::Colon | Token::AtSign => {
                Err(self.unsupported("parameters are"))
            }
            _ => Err(self.expected("a column, a literal or a parenthesis")),
        }
    }

    /// A number with `sign` before it: whole, decimal with a point, float with an exponent.
    fn number(&mut self, sign: &str) -> Result<Read> {
        let at = self.here();
        let Token::Number(digits, false) = self.take() else { return Err(at.error("a number has no suffix here")) };
        let text = format!("{sign}{digits}");
        let number = if digits.contains(['e', 'E']) {
            text.parse().ok().filter(|float: &f64| float.is_finite()).map(Literal::Float)
        } else if digits.contains('.') {
            decimal(&text)
        } else {
            text.parse().ok().map(Literal::Integer)
        };
        match number {
            Some(number) => Read::literal(number),
            None => Err(at.error(format!("the number {} is too large", shown(&text)))),
        }
    }

    fn bytes(&mut self) -> Result<Read> {
        let at = self.here();
        let Token::HexStringLiteral(text) = self.take() else { return Err(at.error("bytes are expected")) };
        let pairs = text.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2 && !pair.contains('+'))?;
            u8::from_str_radix(pair, 16).ok()
        });
        match pairs.collect() {
            Some(bytes) => Read::literal(Literal::Binary(bytes)),
            None => Err(at.error("X'..' takes an even number of hexadecimal digits")),
        }
    }

    /// A column, a constant, a typed literal or a cast.
    fn word(&mut self) -> Result<Read> {
        let at = self.here();
        let after = self.peek_after().clone();
        let Token::Word(word) = self.take() else { return Err(at.error("a word is expected")) };
        if word.quote_style.is_none() {
            let upper = word.value.to_ascii_uppercase();
            match upper.as_str() {
                "TRUE" => return Read::literal(Literal::Boolean(true)),
                "FALSE" => return Read::literal(Literal::Boolean(false)),
                "NULL" => return Read::literal(Literal::Null),
                "CAST" | "TRY_CAST" if after == Token::LParen => {
                    self.skip();
                    return Ok(Read::Open(Then::Cast { or_null: upper == "TRY_CAST" }, Level::Or));
                }
                "CASE" => return Err(at.error("CASE is not part of this language (see docs/predicates.md)")),
                "EXISTS" | "SELECT" => {
                    return Err(at.error("subqueries are not part of this language (see docs/predicates.md)"));
                }
                _ => (),
            }
            if let Some(found) = self.typed(&upper, &at)? {
                return Ok(found);
            }
            if after == Token::LParen {
                let message = format!("there is no function {}; there are CAST and TRY_CAST", shown(&word.value));
                return Err(at.error(message));
            }
        }
        self.column(word, at)
    }

    fn column(&mut self, first: Word, at: TextPosition) -> Result<Read> {
        let side = [Side::Build, Side::Probe].into_iter().find(|side| match first.quote_style {
            None => side.to_string().eq_ignore_ascii_case(&first.value),
            Some(_) => side.to_string() == first.value,
        });
        let column = |side, id, at| Read::Tree(leaf(Expr::Column(ColumnRef { side, id, at: Some(at) })));
        match (self.peek(), side) {
            (Token::Period, side) if side.is_some() || self.tables => {
                self.skip();
                let table = side.map_or_else(|| first.value.clone(), |side| side.to_string());
                if !matches!(self.peek(), Token::Word(_)) {
                    return Err(self.expected(&format!("a column of {table}")));
                }
                let Token::Word(name) = self.take() else { return Err(at.error("a column is expected")) };
                if *self.peek() == Token::Period {
                    return Err(self.here().error("a name that has a point is written in double quotes"));
                }
                let name = if side.is_some() { name.value } else { format!("{table}.{}", name.value) };
                Ok(column(side, ColumnId::Name(name), at))
            }
            (Token::Period, _) => {
                Err(at.error(format!("{} is no side; the sides are build and probe", shown(&first.value))))
            }
            (Token::LBracket, Some(side)) => {
                self.skip();
                let place = self.here();
                let Token::Number(number, false) = self.take() else {
                    return Err(place.error(format!("the position of a column of {side} is expected")));
                };
                let Ok(position) = number.parse() else {
                    return Err(place.error(format!("{} is no position of a column", shown(&number))));
                };
                self.expect(&Token::RBracket)?;
                Ok(column(Some(side), ColumnId::Position(position), at))
            }
            _ if first.quote_style.is_none() && is_reserved(&first.value) => Err(at.error(format!(
                "{} is a word of the language here; a column of that name is written in double quotes",
                shown(&first.value)
            ))),
            _ => Ok(column(None, ColumnId::Name(first.value), at)),
        }
    }

    /// `DATE '..'` and its like, after the word.
    fn typed(&mut self, word: &str, at: &TextPosition) -> Result<Option<Read>> {
        let start = self.next;
        let mut zoned = word == "TIMESTAMPTZ";
        if word == "TIMESTAMP" && (self.is_word("WITH") || self.is_word("WITHOUT")) {
            zoned = self.is_word("WITH");
            self.skip();
            self.expect_word("TIME")?;
            self.expect_word("ZONE")?;
        }
        let sign = if word == "INTERVAL" && self.eat(&Token::Minus) { "-" } else { "" };
        let text = match self.peek() {
            Token::SingleQuotedString(text) => text.clone(),
            Token::Number(number, false) if word == "INTERVAL" => format!("{sign}{number}"),
            _ => {
                self.next = start;
                return Ok(None);
            }
        };
        self.skip();
        let (value, form) = match word {
            "DATE" => (temporal::parse_date(&text), "DATE '2024-12-31'"),
            "TIME" => (temporal::parse_time(&text), "TIME '23:59:59.123456'"),
            "TIMESTAMP" | "TIMESTAMPTZ" => {
                let form = "TIMESTAMP '2024-12-31 23:59:59.123456', with an offset such as +01:00 or Z for an instant";
                let zone = |value: Literal| match value {
                    Literal::Timestamp { value, unit, zone: None } if zoned => {
                        Literal::Timestamp { value, unit, zone: Some("UTC".into()) }
                    }
                    other => other,
                };
                (temporal::parse_timestamp(&text).map(zone), form)
            }
            "DURATION" => (temporal::parse_duration(&text), "DURATION '1500 ms'"),
            "INTERVAL" => {
                let unit = match self.peek() {
                    Token::Word(unit) => Some(unit.value.clone()),
                    _ => None,
                };
                let value = temporal::parse_interval(&text, None).or_else(|| {
                    let value = temporal::parse_interval(&text, Some(&unit?))?;
                    self.skip();
                    Some(value)
                });
                (value, "INTERVAL '1 month 2 days 03:04:05.678' or INTERVAL '5' MINUTE")
            }
            "DECIMAL" | "NUMERIC" => (decimal(&text), "DECIMAL '12.50'"),
            "DOUBLE" => (float(&text), "DOUBLE '1.5'"),
            _ => return Err(at.error(format!("{} takes no text after it", shown(word)))),
        };
        match value {
            Some(value) => Read::literal(value).map(Some),
            None => Err(at.error(format!("{} is no {word} within range; write {form}", shown(&text)))),
        }
    }

    fn type_name(&mut self) -> Result<DataType> {
        let at = self.here();
        let Token::Word(word) = self.peek().clone() else { return Err(self.expected("a type")) };
        self.skip();
        let unknown = |name: &str| {
            at.error(format!("{} is no type that a value can be cast to; there are {}", shown(name), type_name::KNOWN))
        };
        if word.quote_style.is_some() {
            return type_name::arrow_type(&word.value).ok_or_else(|| unknown(&word.value));
        }
        let mut name = word.value.to_ascii_uppercase();
        let mut parameters = Vec::new();
        if self.eat(&Token::LParen) {
            loop {
                let number = match self.peek() {
                    Token::Number(number, false) => number.parse().ok(),
                    _ => None,
                };
                parameters.push(number.ok_or_else(|| self.expected("a whole number"))?);
                self.skip();
                if parameters.len() > 2 || !self.eat(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::RParen)?;
        }
        let rest: &[&str] = match (name.as_str(), self.peek(), self.peek_after()) {
            ("DOUBLE", next, _) if is_word(next, "PRECISION") => &["PRECISION"],
            ("TIME" | "TIMESTAMP", next, after) if is_word(next, "WITH") && is_word(after, "TIME") => {
                &["WITH", "TIME", "ZONE"]
            }
            ("TIME" | "TIMESTAMP", next, _) if is_word(next, "WITHOUT") => &["WITHOUT", "TIME", "ZONE"],
            (_, next, _) if is_word(next, "UNSIGNED") => &["UNSIGNED"],
            _ => &[],
        };
        for word in rest {
            self.expect_word(word)?;
            name = format!("{name} {word}");
        }
        type_name::type_of(&name, &parameters).ok_or_else(|| match parameters.as_slice() {
            [] => unknown(&name),
            _ => unknown(&format!("{name}{parameters:?}").replace('[', "(").replace(']', ")")),
        })
    }
}

fn leaf(expr: Expr) -> Tree {
    Tree(expr, 1)
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Text of the condition in an error, cut where it is long.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short:?}..") } else { format!("{short:?}") }
}

/// `-12.50` or `125E-1`, exactly.
pub(super) fn decimal(text: &str) -> Option<Literal> {
    let (number, exponent) = match text.trim().split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i16>().ok()?),
        None => (text.trim(), 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if digits.len() + fraction.len() == 0 || !all_digits(digits) || !all_digits(fraction) {
        return None;
    }
    let scale = i16::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let scale = i8::try_from(scale).ok().filter(|scale| (-76..=76).contains(scale))?;
    let value = format!("{}{fraction}", whole.strip_prefix('+').unwrap_or(whole));
    // More digits than any decimal has are no number even if they are zeros.
    (value.len() <= 78).then(|| i256::from_string(&value).map(|value| Literal::Decimal { value, scale }))?
}

fn float(text: &str) -> Option<Literal> {
    text.trim().parse().ok().map(Literal::Float)
}
