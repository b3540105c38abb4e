//! Operands: a sign, a column, a constant, a cast, and the type that a cast names.

use arrow_schema::DataType;
use sqlparser::tokenizer::{Token, Word};

use super::number::{decimal, float};
use super::operators::{Level, Read, Then, Tree, leaf};
use super::parser::{Parser, is_reserved, is_word, shown};
use crate::error::Result;
use crate::expr::literal::Literal;
use crate::expr::position::TextPosition;
use crate::expr::tree::{ColumnId, ColumnRef, Expr, Side};
use crate::expr::{temporal, type_name};

impl Parser<'_> {
    /// Reads a sign, the word NOT, or an operand with the casts after it.
    pub(super) fn prefix(&mut self, level: Level) -> Result<Read> {
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
                // `-1` is a literal, but `-1::int` is the negative of `1::int`.
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

    /// Reads the casts after a value.
    pub(super) fn casts(&mut self, mut value: Tree) -> Result<Tree> {
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
            _ => Err(self.expected("a column, a constant or a parenthesis")),
        }
    }

    /// Reads a number with `sign` before it: an integer, a decimal if it has a decimal point, a float if it has an
    /// exponent.
    fn number(&mut self, sign: &str) -> Result<Read> {
        let at = self.here();
        let Token::Number(digits, false) = self.take() else { return Err(at.error("a number must not have a suffix")) };
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
        let Token::HexStringLiteral(text) = self.take() else { return Err(at.error("expected bytes")) };
        let pairs = text.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2 && !pair.contains('+'))?;
            u8::from_str_radix(pair, 16).ok()
        });
        match pairs.collect() {
            Some(bytes) => Read::literal(Literal::Binary(bytes)),
            None => Err(at.error("X'..' needs an even number of hexadecimal digits")),
        }
    }

    /// Reads a column, a constant, a typed constant such as `DATE '2024-12-31'`, or a cast.
    fn word(&mut self) -> Result<Read> {
        let at = self.here();
        let after = self.peek_after().clone();
        let Token::Word(word) = self.take() else { return Err(at.error("expected a word")) };
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
                "CASE" => return Err(at.error("CASE is not supported (see docs/predicates.md)")),
                "EXISTS" | "SELECT" => {
                    return Err(at.error("subqueries are not supported (see docs/predicates.md)"));
                }
                _ => (),
            }
            if let Some(found) = self.typed(&upper, &at)? {
                return Ok(found);
            }
            if after == Token::LParen {
                let message = format!(
                    "function {} is not supported; the only functions are CAST and TRY_CAST",
                    shown(&word.value)
                );
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
                let Token::Word(name) = self.take() else { return Err(at.error("expected a column")) };
                if *self.peek() == Token::Period {
                    return Err(self.here().error("write a name that contains a dot in double quotes"));
                }
                let name = if side.is_some() { name.value } else { format!("{table}.{}", name.value) };
                Ok(column(side, ColumnId::Name(name), at))
            }
            (Token::Period, _) => {
                Err(at.error(format!("{} is not a side; the sides are build and probe", shown(&first.value))))
            }
            (Token::LBracket, Some(side)) => {
                self.skip();
                let place = self.here();
                let Token::Number(number, false) = self.take() else {
                    return Err(place.error(format!("expected the position of a column of {side}")));
                };
                let Ok(position) = number.parse() else {
                    return Err(place.error(format!("{} is not a column position", shown(&number))));
                };
                self.expect(&Token::RBracket)?;
                Ok(column(Some(side), ColumnId::Position(position), at))
            }
            _ if first.quote_style.is_none() && is_reserved(&first.value) => Err(at.error(format!(
                "{} is a reserved word; write a column of that name in double quotes",
                shown(&first.value)
            ))),
            _ => Ok(column(None, ColumnId::Name(first.value), at)),
        }
    }

    /// Reads the text of a typed constant such as `DATE '..'` after its first word.
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
            _ => return Err(at.error(format!("{} cannot be followed by a text in quotes", shown(word)))),
        };
        match value {
            Some(value) => Read::literal(value).map(Some),
            None => Err(at.error(format!("{} is not a valid {word}; write {form}", shown(&text)))),
        }
    }

    pub(super) fn type_name(&mut self) -> Result<DataType> {
        let at = self.here();
        let Token::Word(word) = self.peek().clone() else { return Err(self.expected("a type")) };
        self.skip();
        let unknown = |name: &str| {
            at.error(format!(
                "{} is not a type that values can be cast to; the types are {}",
                shown(name),
                type_name::KNOWN
            ))
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
