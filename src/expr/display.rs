//! Expressions as SQL text, with only the parentheses that are needed. Reading the text gives the same expression.

use std::fmt::{self, Display, Formatter, Write as _};

use arrow_schema::DataType;

use super::literal::Literal;
use super::sql::needs_quotes;
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
            (None, ColumnId::Name(name)) if is_plain(name) && !needs_quotes(name) => f.write_str(name),
            (Some(side), ColumnId::Name(name)) => write!(f, "{side}.{}", quoted(name)),
            (None, ColumnId::Name(name)) => f.write_str(&quoted(name)),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// True for a name that can be written without quotes.
fn is_plain(name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    name.chars().all(word) && name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
}

impl CompareOp {
    /// The operator with a space on each side.
    fn spaced(self) -> &'static str {
        match self {
            CompareOp::Eq => " = ",
            CompareOp::Ne => " <> ",
            CompareOp::Lt => " < ",
            CompareOp::Le => " <= ",
            CompareOp::Gt => " > ",
            CompareOp::Ge => " >= ",
            CompareOp::Distinct => " IS DISTINCT FROM ",
            CompareOp::NotDistinct => " IS NOT DISTINCT FROM ",
        }
    }
}

impl Display for CompareOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.spaced().trim())
    }
}

impl ArithmeticOp {
    /// The operator with a space on each side.
    fn spaced(self) -> &'static str {
        match self {
            ArithmeticOp::Add => " + ",
            ArithmeticOp::Sub => " - ",
            ArithmeticOp::Mul => " * ",
            ArithmeticOp::Div => " / ",
            ArithmeticOp::Rem => " % ",
        }
    }
}

impl Display for ArithmeticOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.spaced().trim())
    }
}

// How tightly an expression binds. An operand that binds less tightly than its operator requires gets parentheses.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const SIGN: u8 = 7;
const ATOM: u8 = 8;

fn binding(mut expr: &Expr) -> u8 {
    // AND or OR of a single operand is written as that operand.
    while let Expr::And(all) | Expr::Or(all) = expr
        && let [one] = all.as_slice()
    {
        expr = one;
    }
    match expr {
        Expr::Column(_) | Expr::Literal(_) | Expr::Cast { .. } => ATOM,
        Expr::Negate(_) => SIGN,
        Expr::Arithmetic { op: ArithmeticOp::Add | ArithmeticOp::Sub, .. } => SUM,
        Expr::Arithmetic { .. } => PRODUCT,
        Expr::Not(inner) if takes_not(inner) => COMPARE,
        Expr::Not(_) => NOT,
        Expr::And(all) | Expr::Or(all) if all.is_empty() => ATOM,
        Expr::And(_) => AND,
        Expr::Or(_) => OR,
        _ => COMPARE,
    }
}

/// True for tests that have NOT inside, such as `x IS NOT NULL`.
fn takes_not(expr: &Expr) -> bool {
    use Expr::*;
    matches!(expr, IsNull(_) | IsTrue(_) | IsFalse(_) | In { .. } | Between { .. } | Like { .. })
}

/// What is still to be written. These are kept in a list instead of recursing, so that a deep expression needs no more
/// of the stack than a flat one.
enum Piece<'a> {
    Text(&'static str),
    /// An expression, in parentheses if it binds less tightly than the number says.
    Operand(&'a Expr, u8),
    /// Expressions, each of them preceded by a text.
    Rest(&'static str, &'a [Expr], u8),
    /// ` AS type)`
    Type(&'a DataType),
}
use Piece::{Operand, Rest, Text, Type};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut todo = vec![Operand(self, 0)];
        while let Some(piece) = todo.pop() {
            match piece {
                Text(text) => f.write_str(text)?,
                Operand(expr, at_least) if binding(expr) < at_least => {
                    f.write_str("(")?;
                    todo.extend([Text(")"), Operand(expr, 0)]);
                }
                Operand(expr, _) => {
                    let from = todo.len();
                    pieces(f, expr, &mut todo)?;
                    todo[from..].reverse();
                }
                Rest(before, exprs, at_least) => {
                    if let [first, rest @ ..] = exprs {
                        f.write_str(before)?;
                        todo.extend([Rest(before, rest, at_least), Operand(first, at_least)]);
                    }
                }
                Type(to) => write!(f, " AS {})", name_of(to))?,
            }
        }
        Ok(())
    }
}

/// Writes an expression that has no operands; adds the pieces of any other one, in order.
fn pieces<'a>(f: &mut Formatter<'_>, expr: &'a Expr, todo: &mut Vec<Piece<'a>>) -> fmt::Result {
    let list = |exprs: &'a [Expr], before, empty, at_least| match exprs {
        [] => vec![Text(empty)],
        [one] => vec![Operand(one, 0)],
        [first, rest @ ..] => vec![Operand(first, at_least), Rest(before, rest, at_least)],
    };
    match expr {
        Expr::Column(column) => write!(f, "{column}")?,
        Expr::Literal(literal) => write!(f, "{literal}")?,
        Expr::Compare { op, left, right } => {
            todo.extend([Operand(left, SUM), Text(op.spaced()), Operand(right, SUM)]);
        }
        Expr::Arithmetic { op, left, right } => {
            let level = binding(expr);
            todo.extend([Operand(left, level), Text(op.spaced()), Operand(right, level + 1)]);
        }
        Expr::And(all) => todo.extend(list(all, " AND ", "TRUE", NOT)),
        Expr::Or(any) => todo.extend(list(any, " OR ", "FALSE", AND)),
        Expr::Not(inner) if takes_not(inner) => test(inner, true, todo),
        Expr::Not(inner) => todo.extend([Text("NOT "), Operand(inner, NOT)]),
        // Without the parentheses, `-1` would be read as one literal.
        Expr::Negate(value) if matches!(**value, Expr::Literal(_)) => {
            todo.extend([Text("-("), Operand(value, 0), Text(")")]);
        }
        Expr::Negate(value) => todo.extend([Text("-"), Operand(value, ATOM)]),
        Expr::Cast { value, to, or_null } => {
            todo.extend([Text(if *or_null { "TRY_CAST(" } else { "CAST(" }), Operand(value, 0), Type(to)]);
        }
        other => test(other, false, todo),
    }
    Ok(())
}

/// Adds the pieces of a test, with NOT where SQL writes it inside.
fn test<'a>(expr: &'a Expr, not: bool, todo: &mut Vec<Piece<'a>>) {
    let word = |plain, negated| Text(if not { negated } else { plain });
    match expr {
        Expr::IsNull(value) => todo.extend([Operand(value, SUM), word(" IS NULL", " IS NOT NULL")]),
        Expr::IsTrue(value) => todo.extend([Operand(value, SUM), word(" IS TRUE", " IS NOT TRUE")]),
        Expr::IsFalse(value) => todo.extend([Operand(value, SUM), word(" IS FALSE", " IS NOT FALSE")]),
        Expr::In { value, list } => {
            todo.extend([Operand(value, SUM), word(" IN (", " NOT IN (")]);
            if let [first, rest @ ..] = list.as_slice() {
                todo.extend([Operand(first, 0), Rest(", ", rest, 0)]);
            }
            todo.push(Text(")"));
        }
        Expr::Between { value, low, high } => {
            todo.extend([Operand(value, SUM), word(" BETWEEN ", " NOT BETWEEN ")]);
            todo.extend([Operand(low, SUM), Text(" AND "), Operand(high, SUM)]);
        }
        Expr::Like { value, pattern, ignore_case } => {
            let word = if *ignore_case { word(" ILIKE ", " NOT ILIKE ") } else { word(" LIKE ", " NOT LIKE ") };
            todo.extend([Operand(value, SUM), word, Operand(pattern, SUM)]);
        }
        // `pieces` writes the other kinds of expressions itself.
        _ => (),
    }
}

/// The most bytes of an expression that an error message shows.
const SHORT: usize = 300;

/// Keeps the beginning of a text and stops the writer after it, so that an error about a list of a million values does
/// not write all of them.
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
    /// The expression as text for an error message, shortened if it is long.
    pub(super) fn short(&self) -> String {
        let mut out = Beginning(String::new());
        match write!(out, "{self}") {
            Ok(()) => out.0,
            Err(fmt::Error) => out.0 + "..",
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("NULL"),
            Literal::Boolean(value) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Literal::Integer(value) => write!(f, "{value}"),
            // With an exponent; without one, the number would be read as a decimal.
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
