//! The expression tree and the methods that make it.

use std::hash::{Hash, Hasher};
use std::ops;

use arrow_schema::DataType;

use super::literal::Literal;
use super::position::TextPosition;

/// Deepest tree that [`Expr::bind`] accepts. Chains of `and` and `or` are flat and count once.
pub const MAX_DEPTH: usize = 128;

/// One of the two inputs of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The prepared side.
    Build,
    /// The side that streams by.
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
    /// The side that has the column; `None` for whichever one has it alone.
    pub side: Option<Side>,
    /// Which of its columns.
    pub id: ColumnId,
    /// Where an SQL text names it, for errors. Equality looks past it.
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

/// The comparisons.
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
    /// `IS DISTINCT FROM`: `<>` where null is a value, so never null itself.
    Distinct,
    /// `IS NOT DISTINCT FROM`: `=` where null is a value, so never null itself.
    NotDistinct,
}

/// Arithmetic between two numbers.
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

/// An expression over the columns of both sides. Equality is that of the tree, not of its meaning.
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
    /// True where all are true, false where one is false, else null. Empty: true.
    And(Vec<Expr>),
    /// True where one is true, false where all are false, else null. Empty: false.
    Or(Vec<Expr>),
    /// Turns true and false around; null stays.
    Not(Box<Expr>),
    /// True where the operand is null, else false.
    IsNull(Box<Expr>),
    /// True where the operand is true, else false.
    IsTrue(Box<Expr>),
    /// True where the operand is false, else false.
    IsFalse(Box<Expr>),
    /// Unary minus, null where the operand is null.
    Negate(Box<Expr>),
    /// True where one of the list is equal, else null where the operand or one of the list is null, else false.
    In {
        /// The value looked for.
        value: Box<Expr>,
        /// What it may equal.
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
    /// Whether a text matches a pattern, in which `%` is any text, `_` any character and `\\` takes the next one as it is.
    Like {
        /// The text.
        value: Box<Expr>,
        /// The pattern, a text as well.
        pattern: Box<Expr>,
        /// Upper and lower case are the same.
        ignore_case: bool,
    },
    /// The value as another type.
    Cast {
        /// The value.
        value: Box<Expr>,
        /// The type asked for: a primitive type, text or bytes.
        to: DataType,
        /// Null instead of an error where a value does not fit.
        or_null: bool,
    },
}

/// Comparisons and connectives; arithmetic is by the operators `+ - * / %`.
///
/// ```
/// use prejoin::expr::{build, lit, probe};
///
/// let close = (probe("ts") - build("ts")).le(lit(60)).and(build("code").eq(lit("x")).or(build("code").is_null()));
/// assert_eq!(close.to_string(), "probe.ts - build.ts <= 60 AND (build.code = 'x' OR build.code IS NULL)");
/// assert_eq!((!close).to_string(), "NOT (probe.ts - build.ts <= 60 AND (build.code = 'x' OR build.code IS NULL))");
/// ```
impl Expr {
    /// `self = other`
    pub fn eq(self, other: Expr) -> Expr {
        self.compare(CompareOp::Eq, other)
    }

    /// `self <> other`
    pub fn ne(self, other: Expr) -> Expr {
        self.compare(CompareOp::Ne, other)
    }

    /// `self < other`
    pub fn lt(self, other: Expr) -> Expr {
        self.compare(CompareOp::Lt, other)
    }

    /// `self <= other`
    pub fn le(self, other: Expr) -> Expr {
        self.compare(CompareOp::Le, other)
    }

    /// `self > other`
    pub fn gt(self, other: Expr) -> Expr {
        self.compare(CompareOp::Gt, other)
    }

    /// `self >= other`
    pub fn ge(self, other: Expr) -> Expr {
        self.compare(CompareOp::Ge, other)
    }

    /// `self op other`
    pub fn compare(self, op: CompareOp, other: Expr) -> Expr {
        Expr::Compare { op, left: Box::new(self), right: Box::new(other) }
    }

    /// `self op other`
    pub fn arithmetic(self, op: ArithmeticOp, other: Expr) -> Expr {
        Expr::Arithmetic { op, left: Box::new(self), right: Box::new(other) }
    }

    /// `self AND other`; a chain becomes one flat list.
    pub fn and(self, other: Expr) -> Expr {
        let mut all = if let Expr::And(all) = self { all } else { vec![self] };
        if let Expr::And(more) = other {
            all.extend(more)
        } else {
            all.push(other)
        }
        Expr::And(all)
    }

    /// `self OR other`; a chain becomes one flat list.
    pub fn or(self, other: Expr) -> Expr {
        let mut any = if let Expr::Or(any) = self { any } else { vec![self] };
        if let Expr::Or(more) = other {
            any.extend(more)
        } else {
            any.push(other)
        }
        Expr::Or(any)
    }

    /// `NOT self`, as the operator `!`.
    #[allow(clippy::should_implement_trait)] // implemented below; this one needs no import
    pub fn not(self) -> Expr {
        Expr::Not(Box::new(self))
    }

    /// `self IS NULL`
    pub fn is_null(self) -> Expr {
        Expr::IsNull(Box::new(self))
    }

    /// `self IS NOT NULL`
    pub fn is_not_null(self) -> Expr {
        self.is_null().not()
    }

    /// `self IS TRUE`
    pub fn is_true(self) -> Expr {
        Expr::IsTrue(Box::new(self))
    }

    /// `self IS FALSE`
    pub fn is_false(self) -> Expr {
        Expr::IsFalse(Box::new(self))
    }

    /// `self IN (list)`
    pub fn is_in(self, list: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::In { value: Box::new(self), list: list.into_iter().collect() }
    }

    /// `self BETWEEN low AND high`, both ends included.
    pub fn between(self, low: Expr, high: Expr) -> Expr {
        Expr::Between { value: Box::new(self), low: Box::new(low), high: Box::new(high) }
    }

    /// `self LIKE pattern`
    pub fn like(self, pattern: Expr) -> Expr {
        Expr::Like { value: Box::new(self), pattern: Box::new(pattern), ignore_case: false }
    }

    /// `self ILIKE pattern`
    pub fn ilike(self, pattern: Expr) -> Expr {
        Expr::Like { value: Box::new(self), pattern: Box::new(pattern), ignore_case: true }
    }

    /// `CAST(self AS to)`: an error where a value does not fit.
    pub fn cast(self, to: DataType) -> Expr {
        Expr::Cast { value: Box::new(self), to, or_null: false }
    }

    /// `TRY_CAST(self AS to)`: null where a value does not fit.
    pub fn try_cast(self, to: DataType) -> Expr {
        Expr::Cast { value: Box::new(self), to, or_null: true }
    }

    /// Levels of the tree; a column or literal has 1.
    pub fn depth(&self) -> usize {
        let (mut deepest, mut todo) = (0, vec![(self, 1)]);
        while let Some((expr, levels)) = todo.pop() {
            deepest = deepest.max(levels);
            todo.extend(expr.children().into_iter().map(|child| (child, levels + 1)));
        }
        deepest
    }

    /// The expression and all below it, parents first, left to right. A list and no calls, so that depth costs no stack.
    fn walk(&self) -> impl Iterator<Item = &Expr> {
        let mut todo = vec![self];
        std::iter::from_fn(move || {
            let expr = todo.pop()?;
            todo.extend(expr.children().into_iter().rev());
            Some(expr)
        })
    }

    /// The direct operands, left to right.
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

    /// A column of `side` that is named by its position.
    pub(crate) fn position_on(&self, side: Side) -> Option<&ColumnRef> {
        match self {
            Expr::Column(column) if column.side.is_none_or(|of| of == side) => {
                matches!(column.id, ColumnId::Position(_)).then_some(column)
            }
            other => other.children().into_iter().find_map(|child| child.position_on(side)),
        }
    }

    /// Whether some column is named by its position, which changes where columns are left out.
    #[cfg(feature = "python")]
    pub(crate) fn has_positions(&self) -> bool {
        self.walk().any(|expr| matches!(expr, Expr::Column(ColumnRef { id: ColumnId::Position(_), .. })))
    }

    /// Where an SQL text has the first of its columns.
    pub(super) fn at(&self) -> Option<&TextPosition> {
        self.walk().find_map(|expr| match expr {
            Expr::Column(column) => column.at.as_ref(),
            _ => None,
        })
    }
}

impl ops::Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        Expr::Negate(Box::new(self))
    }
}

impl ops::Not for Expr {
    type Output = Expr;

    fn not(self) -> Expr {
        Expr::not(self)
    }
}

/// Operators of `std::ops` as arithmetic.
macro_rules! operators {
    ($($name:ident $method:ident),*) => { $(
        impl ops::$name for Expr {
            type Output = Expr;

            fn $method(self, other: Expr) -> Expr {
                self.arithmetic(ArithmeticOp::$name, other)
            }
        }
    )* };
}
operators!(Add add, Sub sub, Mul mul, Div div, Rem rem);
