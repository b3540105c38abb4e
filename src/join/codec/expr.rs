//! An expression as bytes: its tag, what belongs to it alone, then its operands. A parent comes before its children.

use std::sync::Arc;

use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};

use super::bytes::{BOOLS, Decoder, unreadable, write_bytes, write_column, write_len, write_option, write_tag};
use crate::error::{Result, plan_err};
use crate::expr::{self, ArithmeticOp, ColumnRef, CompareOp, Expr, Literal, MAX_DEPTH, Side};

/// The version of an expression that is serialized by itself.
const EXPR_VERSION: u8 = 1;

// The tags are the positions in these lists; append only.
const SIDES: &[Option<Side>] = &[Some(Side::Build), Some(Side::Probe), None];
const COMPARE_OPS: &[CompareOp] = &[
    CompareOp::Eq,
    CompareOp::Ne,
    CompareOp::Lt,
    CompareOp::Le,
    CompareOp::Gt,
    CompareOp::Ge,
    CompareOp::Distinct,
    CompareOp::NotDistinct,
];
const ARITHMETIC_OPS: &[ArithmeticOp] =
    &[ArithmeticOp::Add, ArithmeticOp::Sub, ArithmeticOp::Mul, ArithmeticOp::Div, ArithmeticOp::Rem];
const TIME_UNITS: &[TimeUnit] = &[TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];

impl Expr {
    /// The expression as bytes, in the form that a serialized join holds.
    ///
    /// ```
    /// use prejoin::expr::{Expr, lit, probe};
    ///
    /// let condition = probe("amount").gt(lit(10));
    /// assert_eq!(Expr::from_bytes(&condition.to_bytes())?, condition);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![EXPR_VERSION];
        write_expr(self, &mut out);
        out
    }

    /// The expression that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// ```
    /// use prejoin::expr::{Expr, lit};
    ///
    /// assert_eq!(Expr::from_bytes(&lit("x").to_bytes())?, lit("x"));
    /// assert!(Expr::from_bytes(b"something else").is_err());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for bytes of another version or of something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Expr> {
        let mut input = Decoder(bytes);
        match input.byte()? {
            EXPR_VERSION => (),
            version => {
                return plan_err!(
                    "this expression was serialized as version {version}, this prejoin reads version {EXPR_VERSION}"
                );
            }
        }
        let expr = input.expr(MAX_DEPTH)?;
        input.end()?;
        Ok(expr)
    }
}

/// What is still to be written of an expression.
enum Unwritten<'a> {
    Expr(&'a Expr),
    /// Expressions after their number.
    List(&'a [Expr]),
    Flag(bool),
    Type(&'a DataType),
}

/// Parents come first. What is still to be written is kept in a list, not on the stack, so that deep expressions need no deep
/// stack.
pub(super) fn write_expr(root: &Expr, out: &mut Vec<u8>) {
    use Unwritten::{Expr as One, Flag, List, Type};
    let mut todo = vec![One(root)];
    while let Some(piece) = todo.pop() {
        let expr = match piece {
            One(expr) => expr,
            List(exprs) => {
                write_len(exprs.len(), out);
                todo.extend(exprs.iter().rev().map(One));
                continue;
            }
            Flag(flag) => {
                write_tag(BOOLS, flag, out);
                continue;
            }
            Type(data_type) => {
                write_bytes(expr::type_name(data_type).as_bytes(), out);
                continue;
            }
        };
        // The list is read from its end, so the last operand is put there first.
        match expr {
            Expr::Column(ColumnRef { side, id, at: _ }) => {
                out.push(0);
                write_tag(SIDES, *side, out);
                write_column(id, out);
            }
            Expr::Literal(literal) => {
                out.push(1);
                write_literal(literal, out);
            }
            Expr::Compare { op, left, right } => {
                out.push(2);
                write_tag(COMPARE_OPS, *op, out);
                todo.extend([One(right), One(left)]);
            }
            Expr::Arithmetic { op, left, right } => {
                out.push(3);
                write_tag(ARITHMETIC_OPS, *op, out);
                todo.extend([One(right), One(left)]);
            }
            Expr::And(children) => {
                out.push(4);
                todo.push(List(children));
            }
            Expr::Or(children) => {
                out.push(5);
                todo.push(List(children));
            }
            Expr::Not(child) => {
                out.push(6);
                todo.push(One(child));
            }
            Expr::IsNull(child) => {
                out.push(7);
                todo.push(One(child));
            }
            Expr::IsTrue(child) => {
                out.push(8);
                todo.push(One(child));
            }
            Expr::IsFalse(child) => {
                out.push(9);
                todo.push(One(child));
            }
            Expr::Negate(child) => {
                out.push(10);
                todo.push(One(child));
            }
            Expr::In { value, list } => {
                out.push(11);
                todo.extend([List(list), One(value)]);
            }
            Expr::Between { value, low, high } => {
                out.push(12);
                todo.extend([One(high), One(low), One(value)]);
            }
            Expr::Like { value, pattern, ignore_case } => {
                out.push(13);
                todo.extend([Flag(*ignore_case), One(pattern), One(value)]);
            }
            Expr::Cast { value, to, or_null } => {
                out.push(14);
                todo.extend([Flag(*or_null), Type(to), One(value)]);
            }
        }
    }
}

fn write_literal(literal: &Literal, out: &mut Vec<u8>) {
    match literal {
        Literal::Null => out.push(0),
        Literal::Boolean(value) => {
            out.push(1);
            write_tag(BOOLS, *value, out);
        }
        Literal::Integer(value) => {
            out.push(2);
            out.extend(value.to_le_bytes());
        }
        Literal::Float(value) => {
            out.push(3);
            out.extend(value.to_le_bytes());
        }
        Literal::Decimal { value, scale } => {
            out.push(4);
            out.extend(value.to_le_bytes());
            out.extend(scale.to_le_bytes());
        }
        Literal::Text(text) => {
            out.push(5);
            write_bytes(text.as_bytes(), out);
        }
        Literal::Binary(bytes) => {
            out.push(6);
            write_bytes(bytes, out);
        }
        Literal::Date(days) => {
            out.push(7);
            out.extend(days.to_le_bytes());
        }
        Literal::Time { value, unit } => {
            out.push(8);
            write_instant(*value, *unit, out);
        }
        Literal::Timestamp { value, unit, zone } => {
            out.push(9);
            write_instant(*value, *unit, out);
            write_option(zone.as_deref(), out, |zone, out| write_bytes(zone.as_bytes(), out));
        }
        Literal::Duration { value, unit } => {
            out.push(10);
            write_instant(*value, *unit, out);
        }
        Literal::Interval { months, days, nanos } => {
            out.push(11);
            out.extend(months.to_le_bytes());
            out.extend(days.to_le_bytes());
            out.extend(nanos.to_le_bytes());
        }
    }
}

fn write_instant(value: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    out.extend(value.to_le_bytes());
    write_tag(TIME_UNITS, unit, out);
}

/// An expression whose operands are being read.
struct Unfinished {
    tag: u8,
    compare: Option<CompareOp>,
    arithmetic: Option<ArithmeticOp>,
    /// How many operands it has.
    wanted: usize,
    operands: Vec<Expr>,
}

enum Begun {
    Done(Expr),
    Unfinished(Unfinished),
}

impl Decoder<'_> {
    /// An expression of at most `depth` levels. Those whose operands are still to come are kept in a list, not on the stack.
    pub(super) fn expr(&mut self, depth: usize) -> Result<Expr> {
        let mut open: Vec<Unfinished> = Vec::new();
        loop {
            if open.len() >= depth {
                return Err(unreadable("its predicate is nested too deeply"));
            }
            let mut begun = self.begin()?;
            loop {
                // An expression is done with its last operand, and is then an operand itself.
                let done = match begun {
                    Begun::Done(expr) => expr,
                    Begun::Unfinished(parent) if parent.wanted > parent.operands.len() => {
                        open.push(parent);
                        break;
                    }
                    Begun::Unfinished(parent) => self.finish(parent)?,
                };
                let Some(mut parent) = open.pop() else { return Ok(done) };
                parent.operands.push(done);
                if (parent.tag, parent.operands.len()) == (11, 1) {
                    parent.wanted = self.len()?.saturating_add(1);
                }
                begun = Begun::Unfinished(parent);
            }
        }
    }

    /// What comes before the operands of an expression.
    fn begin(&mut self) -> Result<Begun> {
        let mut open =
            Unfinished { tag: self.byte()?, compare: None, arithmetic: None, wanted: 0, operands: Vec::new() };
        open.wanted = match open.tag {
            0 => {
                let side = self.tag(SIDES)?;
                return Ok(Begun::Done(Expr::Column(ColumnRef { side, id: self.column()?, at: None })));
            }
            1 => return Ok(Begun::Done(Expr::Literal(self.literal()?))),
            2 => {
                open.compare = Some(self.tag(COMPARE_OPS)?);
                2
            }
            3 => {
                open.arithmetic = Some(self.tag(ARITHMETIC_OPS)?);
                2
            }
            4 | 5 => self.len()?,
            6..=11 | 14 => 1,
            12 => 3,
            13 => 2,
            _ => return Err(unreadable("its predicate holds an unknown node")),
        };
        Ok(Begun::Unfinished(open))
    }

    /// An expression of its operands, and what comes after them.
    fn finish(&mut self, open: Unfinished) -> Result<Expr> {
        let Unfinished { tag, compare, arithmetic, wanted: _, operands } = open;
        if let 4 | 5 = tag {
            return Ok(if tag == 4 { Expr::And(operands) } else { Expr::Or(operands) });
        }
        let mut operands = operands.into_iter();
        let mut operand = || operands.next().ok_or_else(|| unreadable("an operand is missing"));
        let first = operand()?;
        Ok(match (tag, compare, arithmetic) {
            (_, Some(op), _) => first.compare(op, operand()?),
            (_, _, Some(op)) => first.arithmetic(op, operand()?),
            (6, ..) => first.not(),
            (7, ..) => first.is_null(),
            (8, ..) => first.is_true(),
            (9, ..) => first.is_false(),
            (10, ..) => -first,
            (11, ..) => first.is_in(operands),
            (12, ..) => first.between(operand()?, operand()?),
            (13, ..) => {
                let (value, pattern) = (Box::new(first), Box::new(operand()?));
                Expr::Like { value, pattern, ignore_case: self.tag(BOOLS)? }
            }
            _ => {
                let (value, name) = (Box::new(first), self.text()?);
                let to = expr::type_named(&name).ok_or_else(|| unreadable("it casts to an unknown type"))?;
                Expr::Cast { value, to, or_null: self.tag(BOOLS)? }
            }
        })
    }

    fn literal(&mut self) -> Result<Literal> {
        Ok(match self.byte()? {
            0 => Literal::Null,
            1 => Literal::Boolean(self.tag(BOOLS)?),
            2 => Literal::Integer(i128::from_le_bytes(self.array()?)),
            3 => Literal::Float(f64::from_le_bytes(self.array()?)),
            4 => {
                Literal::Decimal { value: i256::from_le_bytes(self.array()?), scale: i8::from_le_bytes(self.array()?) }
            }
            5 => Literal::Text(self.text()?),
            6 => Literal::Binary(self.bytes()?.to_vec()),
            7 => Literal::Date(i32::from_le_bytes(self.array()?)),
            8 => {
                let (value, unit) = self.instant()?;
                Literal::Time { value, unit }
            }
            9 => {
                let (value, unit) = self.instant()?;
                Literal::Timestamp { value, unit, zone: self.option(Self::text)?.map(Arc::from) }
            }
            10 => {
                let (value, unit) = self.instant()?;
                Literal::Duration { value, unit }
            }
            11 => Literal::Interval {
                months: i32::from_le_bytes(self.array()?),
                days: i32::from_le_bytes(self.array()?),
                nanos: i64::from_le_bytes(self.array()?),
            },
            _ => return Err(unreadable("its predicate holds an unknown literal")),
        })
    }

    fn instant(&mut self) -> Result<(i64, TimeUnit)> {
        Ok((i64::from_le_bytes(self.array()?), self.tag(TIME_UNITS)?))
    }
}
