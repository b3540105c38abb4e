//! The expression tree.

use std::hash::{Hash, Hasher};

use arrow_schema::DataType;

use super::literal::Literal;
use super::position::TextPosition;

/// The most levels that an expression may have. A chain of `and` or of `or` is one level, however long.
pub const MAX_DEPTH: usize = 128;

/// One of the two inputs of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The side that is prepared once and probed many times.
    Build,
    /// The side whose rows look up their matches.
    Probe,
}

/// How a column is named.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnId {
    /// By a name that is unique in its schema.
    Name(String),
    /// By position in its schema.
    Position(usize),
}

impl From<&str> for ColumnId {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for ColumnId {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl From<usize> for ColumnId {
    fn from(position: usize) -> Self {
        Self::Position(position)
    }
}

/// A column of one side.
#[derive(Debug, Clone)]
pub struct ColumnRef {
    /// The side that has the column. `None` stands for the only side with a column of that name.
    pub side: Option<Side>,
    /// Which column of that side.
    pub id: ColumnId,
    /// Where an SQL text names the column, for error messages. Not part of equality.
    pub at: Option<TextPosition>,
}

impl PartialEq for ColumnRef {
    fn eq(&self, other: &Self) -> bool {
        (self.side, &self.id) == (other.side, &other.id)
    }
}

impl Eq for ColumnRef {}

impl Hash for ColumnRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.side, &self.id).hash(state);
    }
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `IS DISTINCT FROM`: like `<>`, but null equals null, so the result is never null.
    Distinct,
    /// `IS NOT DISTINCT FROM`: like `=`, but null equals null, so the result is never null.
    NotDistinct,
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`, which truncates between integers.
    Div,
    /// `%`, with the sign of the dividend.
    Rem,
}

/// An expression over the columns of both sides. Two expressions are equal if their trees are; `a = b` and `b = a` are
/// not.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Expr {
    /// A column.
    Column(ColumnRef),
    /// A constant.
    Literal(Literal),
    /// A comparison, null where an operand is null.
    Compare {
        /// Which comparison.
        op: CompareOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// Arithmetic, null where an operand is null.
    Arithmetic {
        /// Which operation.
        op: ArithmeticOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// False if an operand is false, else null if one is null, else true. True without operands.
    And(Vec<Expr>),
    /// True if an operand is true, else null if one is null, else false. False without operands.
    Or(Vec<Expr>),
    /// True if the operand is false, false if it is true, null if it is null.
    Not(Box<Expr>),
    /// True if the operand is null, else false.
    IsNull(Box<Expr>),
    /// True if the operand is true, else false.
    IsTrue(Box<Expr>),
    /// True if the operand is false, else false.
    IsFalse(Box<Expr>),
    /// Unary minus, null where the operand is null.
    Negate(Box<Expr>),
    /// True if an item of the list equals the value, else null if the value or an item is null, else false.
    In {
        /// The value that is looked for.
        value: Box<Expr>,
        /// The items that it may equal.
        list: Vec<Expr>,
    },
    /// `value >= low AND value <= high`.
    Between {
        /// The value tested.
        value: Box<Expr>,
        /// Least value that passes.
        low: Box<Expr>,
        /// Greatest value that passes.
        high: Box<Expr>,
    },
    /// Whether a text matches a pattern: `%` matches any text, `_` any one character, and `\\` makes the next character
    /// match itself.
    Like {
        /// The text that is matched.
        value: Box<Expr>,
        /// The pattern, a constant or a text column.
        pattern: Box<Expr>,
        /// Whether upper and lower case are the same, as for `ILIKE`.
        ignore_case: bool,
    },
    /// The value converted to another type.
    Cast {
        /// The value to convert.
        value: Box<Expr>,
        /// The type to convert to: a primitive type, text or bytes.
        to: DataType,
        /// Whether a value that does not fit becomes null, as for `TRY_CAST`, rather than an error.
        or_null: bool,
    },
}

impl Expr {
    /// The number of levels of the tree; a column or a literal has one.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// assert_eq!((build("a") + lit(1)).is_null().depth(), 3);
    /// ```
    pub fn depth(&self) -> usize {
        let (mut deepest, mut todo) = (0, vec![(self, 1)]);
        while let Some((expr, levels)) = todo.pop() {
            deepest = deepest.max(levels);
            todo.extend(expr.children().into_iter().map(|child| (child, levels + 1)));
        }
        deepest
    }

    /// The expression and all below it, parents first, left to right. Uses a list instead of recursion, so that a deep
    /// tree needs no more of the stack than a flat one.
    fn walk(&self) -> impl Iterator<Item = &Expr> {
        let mut todo = vec![self];
        std::iter::from_fn(move || {
            let expr = todo.pop()?;
            todo.extend(expr.children().into_iter().rev());
            Some(expr)
        })
    }

    /// The direct operands, left to right.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// assert_eq!(build("a").gt(lit(1)).children(), [&build("a"), &lit(1)]);
    /// ```
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Column(_) | Expr::Literal(_) => vec![],
            Expr::Compare { left, right, .. } | Expr::Arithmetic { left, right, .. } => vec![left, right],
            Expr::And(children) | Expr::Or(children) => children.iter().collect(),
            Expr::Not(child)
            | Expr::IsNull(child)
            | Expr::IsTrue(child)
            | Expr::IsFalse(child)
            | Expr::Negate(child)
            | Expr::Cast { value: child, .. } => vec![child],
            Expr::In { value, list } => std::iter::once(value.as_ref()).chain(list).collect(),
            Expr::Between { value, low, high } => vec![value, low, high],
            Expr::Like { value, pattern, .. } => vec![value, pattern],
        }
    }

    /// The columns that are named, each as often as it is.
    ///
    /// ```
    /// use prejoin::expr::{build, probe};
    ///
    /// let condition = build("since").le(probe("at")).and(build("since").gt(probe("first")));
    /// assert_eq!(condition.columns().count(), 4);
    /// ```
    pub fn columns(&self) -> impl Iterator<Item = &ColumnRef> {
        self.walk().filter_map(|expr| match expr {
            Expr::Column(column) => Some(column),
            _ => None,
        })
    }

    /// The first column that is named by position and may belong to `side`.
    pub(crate) fn position_on(&self, side: Side) -> Option<&ColumnRef> {
        match self {
            Expr::Column(column) if column.side.is_none_or(|of| of == side) => {
                matches!(column.id, ColumnId::Position(_)).then_some(column)
            }
            other => other.children().into_iter().find_map(|child| child.position_on(side)),
        }
    }

    /// Whether some column is named by its position, which changes where columns are left out.
    pub(crate) fn has_positions(&self) -> bool {
        self.walk().any(|expr| matches!(expr, Expr::Column(ColumnRef { id: ColumnId::Position(_), .. })))
    }

    /// The place of the first column in the SQL text that the expression was read from.
    pub(super) fn at(&self) -> Option<&TextPosition> {
        self.walk().find_map(|expr| match expr {
            Expr::Column(column) => column.at.as_ref(),
            _ => None,
        })
    }
}
