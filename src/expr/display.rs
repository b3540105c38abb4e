//! Expressions as text, close to SQL, with only the parentheses that are needed.

use std::fmt::{self, Display, Formatter};

use arrow_array::{Array, ArrayRef};
use arrow_cast::display::array_value_to_string;

use super::literal::Literal;
use super::tree::{ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, Side};

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
        match &self.id {
            ColumnId::Position(position) => write!(f, "{}[{position}]", self.side),
            ColumnId::Name(name) if is_plain(name) => write!(f, "{}.{name}", self.side),
            ColumnId::Name(name) => write!(f, "{}.\"{}\"", self.side, name.replace('"', "\"\"")),
        }
    }
}

/// True for a name that reads as one word without quotes.
fn is_plain(name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    name.chars().all(word) && name.chars().next().is_some_and(|c| !c.is_numeric())
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
const ATOM: u8 = 7;

fn binding(expr: &Expr) -> u8 {
    match expr {
        Expr::Column(_) | Expr::Literal(_) => ATOM,
        Expr::Arithmetic { op: ArithmeticOp::Add | ArithmeticOp::Sub, .. } => SUM,
        Expr::Arithmetic { .. } => PRODUCT,
        Expr::Compare { .. } | Expr::IsNull(_) => COMPARE,
        Expr::Not(inner) if matches!(**inner, Expr::IsNull(_)) => COMPARE,
        Expr::Not(_) => NOT,
        // One operand or none prints as that operand or a constant.
        Expr::And(all) | Expr::Or(all) if all.is_empty() => ATOM,
        Expr::And(all) | Expr::Or(all) if all.len() == 1 => binding(&all[0]),
        Expr::And(_) => AND,
        Expr::Or(_) => OR,
    }
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
            Expr::Not(inner) => match &**inner {
                Expr::IsNull(value) => {
                    operand(f, value, SUM)?;
                    f.write_str(" IS NOT NULL")
                }
                inner => {
                    f.write_str("NOT ")?;
                    operand(f, inner, NOT)
                }
            },
            Expr::IsNull(value) => {
                operand(f, value, SUM)?;
                f.write_str(" IS NULL")
            }
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("NULL"),
            Literal::Boolean(value) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Literal::Integer(value) => write!(f, "{value}"),
            // Debug keeps the point: 3.0, not 3, which would read as an integer.
            Literal::Float(value) => write!(f, "{value:?}"),
            Literal::Decimal { .. } => self.write_array(f, "DECIMAL "),
            Literal::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Literal::Binary(bytes) => {
                f.write_str("X'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                f.write_str("'")
            }
            Literal::Date(_) => self.write_array(f, "DATE "),
            Literal::Time { .. } => self.write_array(f, "TIME "),
            // In UTC whatever the zone: naming an instant needs no zone database.
            Literal::Timestamp { value, unit, zone: Some(_) } => {
                let utc = Literal::Timestamp { value: *value, unit: *unit, zone: None };
                match utc.text() {
                    Some(text) => write!(f, "TIMESTAMP '{text}Z'"),
                    None => write!(f, "{self:?}"),
                }
            }
            Literal::Timestamp { .. } => self.write_array(f, "TIMESTAMP "),
            Literal::Duration { .. } => self.write_array(f, "DURATION "),
        }
    }
}

impl Literal {
    /// The value as Arrow writes it, if it is within the range that Arrow can write.
    fn text(&self) -> Option<String> {
        let array: ArrayRef = self.to_array().ok()?;
        array.is_valid(0).then(|| array_value_to_string(&array, 0).ok()).flatten()
    }

    fn write_array(&self, f: &mut Formatter<'_>, word: &str) -> fmt::Result {
        match self.text() {
            Some(text) => write!(f, "{word}'{text}'"),
            None => write!(f, "{self:?}"),
        }
    }
}
