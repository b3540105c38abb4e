//! Operators and how tightly they bind.

use sqlparser::tokenizer::Token;

use super::parser::{Parser, is_word};
use crate::error::Result;
use crate::expr::like::with_our_escape;
use crate::expr::literal::Literal;
use crate::expr::tree::{ArithmeticOp, CompareOp, Expr, MAX_DEPTH};

/// The deepest nesting of operands and parentheses. A tree of [`MAX_DEPTH`] levels fits, even with parentheses
/// everywhere.
const MAX_NESTING: usize = 2 * MAX_DEPTH + 2;

/// How tightly an operator binds, the loosest level first.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Level {
    Or,
    And,
    Not,
    Compare,
    Sum,
    Product,
    Sign,
}

/// An expression and the number of levels of its tree.
pub(super) struct Tree(pub(super) Expr, pub(super) usize);

/// An operand that is being read: what is done with it, and how far it goes.
struct Open {
    then: Then,
    /// Its operators bind at least as tightly as this.
    level: Level,
    /// Whether it holds a comparison already: comparisons cannot be chained.
    compared: bool,
}

/// What is done with an operand once it is read; this holds the operands before it. A list of these replaces recursion,
/// so that a deep text needs no more of the stack than a flat one.
pub(super) enum Then {
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

/// The result of a step of the parser: an expression was read, or an operand of one begins.
pub(super) enum Read {
    Tree(Tree),
    Open(Then, Level),
}

/// What was found after an expression.
enum Operator {
    Read(Read),
    /// The operand ends with the expression.
    End(Tree),
}

impl Read {
    pub(super) fn literal(literal: Literal) -> Result<Read> {
        Ok(Read::Tree(leaf(Expr::Literal(literal))))
    }
}

impl Parser<'_> {
    /// An expression whose operands have `levels` levels.
    pub(super) fn node(&self, levels: usize, expr: Expr) -> Result<Tree> {
        if levels >= MAX_DEPTH {
            let message = format!("the condition is nested deeper than {MAX_DEPTH} levels");
            return Err(self.here().error(message));
        }
        Ok(Tree(expr, levels + 1))
    }

    /// Reads a whole expression.
    pub(super) fn expr(&mut self) -> Result<Tree> {
        let mut open = vec![Open { then: Then::Whole, level: Level::Or, compared: false }];
        let mut level = Level::Or;
        loop {
            // Whatever is read completes the innermost open operand, until another operand begins.
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

    /// Reads the operator after `left`, if it belongs to the operand that is being read.
    fn operator(&mut self, left: Tree, operand: &mut Open) -> Result<Operator> {
        let level = operand.level;
        let read = match self.binary() {
            Some((of, op)) if of >= level => {
                self.skip();
                // The right operand binds one level more tightly: `a - b - c` is `(a - b) - c`.
                let right = if of == Level::Sum { Level::Product } else { Level::Sign };
                Read::Open(Then::Arithmetic(left, op), right)
            }
            Some(_) => return Ok(Operator::End(left)),
            None if level <= Level::Compare && self.is_word("IS") => self.is(left)?,
            None if level <= Level::Compare && self.at_comparison() => {
                if std::mem::replace(&mut operand.compared, true) {
                    return Err(self.here().error("comparisons cannot be chained; write AND or parentheses"));
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

    /// Does what an operand was read for.
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
            // A chain becomes one flat list.
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

    /// Reads the rest of a comparison after its left operand.
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

    /// Reads the escape character after ESCAPE and rewrites the pattern to use our own.
    fn escaped(&mut self, pattern: Expr) -> Result<Expr> {
        let at = self.here();
        let Token::SingleQuotedString(escape) = self.take() else {
            return Err(at.error("ESCAPE needs one character in quotes, or empty quotes"));
        };
        let mut signs = escape.chars();
        let (escape, None) = (signs.next(), signs.next()) else {
            return Err(at.error("ESCAPE needs one character in quotes, or empty quotes"));
        };
        match &pattern {
            Expr::Literal(Literal::Text(text)) => match with_our_escape(text, escape) {
                Some(text) => Ok(Expr::Literal(Literal::Text(text))),
                None => Err(at.error("the pattern ends with its escape character")),
            },
            _ => Err(at.error("ESCAPE needs a pattern that is a text in quotes")),
        }
    }

    /// Reads `IS [NOT] NULL | UNKNOWN | TRUE | FALSE | DISTINCT FROM x`.
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
}

pub(super) fn leaf(expr: Expr) -> Tree {
    Tree(expr, 1)
}
