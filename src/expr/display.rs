//! Expressions as SQL text that reads as the same expression, with only the parentheses that are needed.

use std::fmt::{self, Display, Formatter, Write as _};

use super::literal::Literal;
use super::sql::is_reserved;
use super::temporal;
use super::tree::{ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, Side};
use super::type_name::name_of;

impl Display for Side {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Build => "build",
            Side::Probe => "probe",
        })
    }
}

impl Display for ColumnRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (&self.side, &self.id) {
            (Some(side), ColumnId::Position(position)) => write!(f, "{side}[{position}]"),
            (None, ColumnId::Position(position)) => write!(f, "[{position}]"),
            (Some(side), ColumnId::Name(name)) if is_plain(name) => write!(f, "{side}.{name}"),
            (None, ColumnId::Name(name)) if is_plain(name) && !is_reserved(name) => f.write_str(name),
            (Some(side), ColumnId::Name(name)) => write!(f, "{side}.{}", quoted(name)),
            (None, ColumnId::Name(name)) => f.write_str(&quoted(name)),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// True for a name that reads as one word without quotes.
fn is_plain(name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    name.chars().all(word) && name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
}

impl Display for CompareOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompareOp::Eq => "=",
            CompareOp::Ne => "<>",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
            CompareOp::Distinct => "IS DISTINCT FROM",
            CompareOp::NotDistinct => "IS NOT DISTINCT FROM",
        })
    }
}

impl Display for ArithmeticOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArithmeticOp::Add => "+",
            ArithmeticOp::Sub => "-",
            ArithmeticOp::Mul => "*",
            ArithmeticOp::Div => "/",
            ArithmeticOp::Rem => "%",
        })
    }
}

// How tightly an expression binds; an operand that binds less than its place asks for gets parentheses.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const SIGN: u8 = 7;
const ATOM: u8 = 8;

fn binding(expr: &Expr) -> u8 {
    match expr {
        Expr::Column(_) | Expr::Literal(_) | Expr::Cast { .. } => ATOM,
        Expr::Negate(_) => SIGN,
        Expr::Arithmetic { op: ArithmeticOp::Add | ArithmeticOp::Sub, .. } => SUM,
        Expr::Arithmetic { .. } => PRODUCT,
        Expr::Not(inner) if takes_not(inner) => COMPARE,
        Expr::Not(_) => NOT,
        // One operand or none prints as that operand or a constant.
        Expr::And(all) | Expr::Or(all) if all.is_empty() => ATOM,
        Expr::And(all) | Expr::Or(all) if all.len() == 1 => binding(&all[0]),
        Expr::And(_) => AND,
        Expr::Or(_) => OR,
        _ => COMPARE,
    }
}

/// True where NOT is written inside: `x IS NOT NULL`.
fn takes_not(expr: &Expr) -> bool {
    use Expr::*;
    matches!(expr, IsNull(_) | IsTrue(_) | IsFalse(_) | In { .. } | Between { .. } | Like { .. })
}

fn operand(f: &mut Formatter<'_>, expr: &Expr, at_least: u8) -> fmt::Result {
    if binding(expr) < at_least { write!(f, "({expr})") } else { write!(f, "{expr}") }
}

fn list(f: &mut Formatter<'_>, exprs: &[Expr], word: &str, empty: &str, at_least: u8) -> fmt::Result {
    match exprs {
        [] => f.write_str(empty),
        [one] => write!(f, "{one}"),
        [first, rest @ ..] => {
            operand(f, first, at_least)?;
            rest.iter().try_for_each(|expr| {
                write!(f, " {word} ")?;
                operand(f, expr, at_least)
            })
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Column(column) => write!(f, "{column}"),
            Expr::Literal(literal) => write!(f, "{literal}"),
            Expr::Compare { op, left, right } => {
                operand(f, left, SUM)?;
                write!(f, " {op} ")?;
                operand(f, right, SUM)
            }
            Expr::Arithmetic { op, left, right } => {
                operand(f, left, binding(self))?;
                write!(f, " {op} ")?;
                operand(f, right, binding(self) + 1)
            }
            Expr::And(all) => list(f, all, "AND", "TRUE", NOT),
            Expr::Or(any) => list(f, any, "OR", "FALSE", AND),
            Expr::Not(inner) if takes_not(inner) => test(f, inner, "NOT "),
            Expr::Not(inner) => {
                f.write_str("NOT ")?;
                operand(f, inner, NOT)
            }
            Expr::Negate(value) => {
                f.write_str("-")?;
                // A number right after the sign would read as one literal with it.
                match **value {
                    Expr::Literal(_) => write!(f, "({value})"),
                    _ => operand(f, value, ATOM),
                }
            }
            Expr::Cast { value, to, or_null } => {
                write!(f, "{}CAST({value} AS {})", if *or_null { "TRY_" } else { "" }, name_of(to))
            }
            other => test(f, other, ""),
        }
    }
}

/// Most bytes of an expression in an error.
const SHORT: usize = 300;

/// Takes the beginning of a text, then refuses the rest, so that a list of a million values is not written for an error.
struct Beginning(String);

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut left = SHORT - self.0.len();
        if text.len() <= left {
            self.0.push_str(text);
            return Ok(());
        }
        while !text.is_char_boundary(left) {
            left -= 1;
        }
        self.0.push_str(&text[..left]);
        Err(fmt::Error)
    }
}

impl Expr {
    /// The text for an error, cut where it is long.
    pub(super) fn short(&self) -> String {
        let mut out = Beginning(String::new());
        match write!(out, "{self}") {
            Ok(()) => out.0,
            Err(fmt::Error) => out.0 + "..",
        }
    }
}

/// A test of one value, with `not` where SQL has the word.
fn test(f: &mut Formatter<'_>, expr: &Expr, not: &str) -> fmt::Result {
    match expr {
        Expr::IsNull(value) | Expr::IsTrue(value) | Expr::IsFalse(value) => {
            operand(f, value, SUM)?;
            let what = match expr {
                Expr::IsNull(_) => "NULL",
                Expr::IsTrue(_) => "TRUE",
                _ => "FALSE",
            };
            write!(f, " IS {not}{what}")
        }
        Expr::In { value, list } => {
            operand(f, value, SUM)?;
            write!(f, " {not}IN (")?;
            for (i, item) in list.iter().enumerate() {
                write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str(")")
        }
        Expr::Between { value, low, high } => {
            operand(f, value, SUM)?;
            write!(f, " {not}BETWEEN ")?;
            operand(f, low, SUM)?;
            f.write_str(" AND ")?;
            operand(f, high, SUM)
        }
        Expr::Like { value, pattern, ignore_case } => {
            operand(f, value, SUM)?;
            write!(f, " {not}{} ", if *ignore_case { "ILIKE" } else { "LIKE" })?;
            operand(f, pattern, SUM)
        }
        // The other kinds are written where they are matched.
        _ => Ok(()),
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("NULL"),
            Literal::Boolean(value) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Literal::Integer(value) => write!(f, "{value}"),
            // With an exponent, without which the number would read as a decimal.
            Literal::Float(value) if value.is_finite() => write!(f, "{value:e}"),
            Literal::Float(value) => write!(f, "DOUBLE '{value}'"),
            Literal::Decimal { value, scale: scale @ 1.. } => {
                let digits = format!("{:0>width$}", value.wrapping_abs().to_string(), width = *scale as usize + 1);
                let (whole, fraction) = digits.split_at(digits.len() - *scale as usize);
                write!(f, "{}{whole}.{fraction}", if value.is_negative() { "-" } else { "" })
            }
            Literal::Decimal { value, scale: 0 } => write!(f, "DECIMAL '{value}'"),
            Literal::Decimal { value, scale } => write!(f, "DECIMAL '{value}E{}'", -i16::from(*scale)),
            Literal::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Literal::Binary(bytes) => {
                f.write_str("X'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                f.write_str("'")
            }
            _ => temporal::write(self, f),
        }
    }
}
