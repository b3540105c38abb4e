//! The methods and operators that build larger expressions.

use std::ops;

use arrow_schema::DataType;

use super::tree::{ArithmeticOp, CompareOp, Expr};

/// Methods that build larger expressions. The operators `+ - * / %`, unary `-` and `!` build arithmetic, negatives and
/// `NOT`.
///
/// ```
/// use prejoin::expr::{build, lit, probe};
///
/// let close = (probe("ts") - build("ts")).le(lit(60)).and(build("code").eq(lit("x")).or(build("code").is_null()));
/// assert_eq!(close.to_string(), "probe.ts - build.ts <= 60 AND (build.code = 'x' OR build.code IS NULL)");
/// assert_eq!((!close).to_string(), "NOT (probe.ts - build.ts <= 60 AND (build.code = 'x' OR build.code IS NULL))");
/// ```
impl Expr {
    /// `self = other`: null if an operand is null.
    ///
    /// ```
    /// use prejoin::expr::{build, probe};
    ///
    /// assert_eq!(build("a").eq(probe("b")).to_string(), "build.a = probe.b");
    /// ```
    pub fn eq(self, other: Expr) -> Expr {
        self.compare(CompareOp::Eq, other)
    }

    /// `self <> other`: null if an operand is null.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// assert_eq!(build("a").ne(lit(1)).to_string(), "build.a <> 1");
    /// ```
    pub fn ne(self, other: Expr) -> Expr {
        self.compare(CompareOp::Ne, other)
    }

    /// `self < other`: null if an operand is null.
    ///
    /// ```
    /// use prejoin::expr::{build, probe};
    ///
    /// assert_eq!(build("since").lt(probe("at")).to_string(), "build.since < probe.at");
    /// ```
    pub fn lt(self, other: Expr) -> Expr {
        self.compare(CompareOp::Lt, other)
    }

    /// `self <= other`: null if an operand is null.
    ///
    /// ```
    /// use prejoin::expr::{build, probe};
    ///
    /// assert_eq!(build("since").le(probe("at")).to_string(), "build.since <= probe.at");
    /// ```
    pub fn le(self, other: Expr) -> Expr {
        self.compare(CompareOp::Le, other)
    }

    /// `self > other`: null if an operand is null.
    ///
    /// ```
    /// use prejoin::expr::{lit, probe};
    ///
    /// assert_eq!(probe("at").gt(lit(0)).to_string(), "probe.at > 0");
    /// ```
    pub fn gt(self, other: Expr) -> Expr {
        self.compare(CompareOp::Gt, other)
    }

    /// `self >= other`: null if an operand is null.
    ///
    /// ```
    /// use prejoin::expr::{lit, probe};
    ///
    /// assert_eq!(probe("at").ge(lit(0)).to_string(), "probe.at >= 0");
    /// ```
    pub fn ge(self, other: Expr) -> Expr {
        self.compare(CompareOp::Ge, other)
    }

    /// The comparison `self op other`.
    ///
    /// ```
    /// use prejoin::expr::{CompareOp, build, probe};
    ///
    /// let same = build("a").compare(CompareOp::NotDistinct, probe("b"));
    /// assert_eq!(same.to_string(), "build.a IS NOT DISTINCT FROM probe.b");
    /// ```
    pub fn compare(self, op: CompareOp, other: Expr) -> Expr {
        Expr::Compare { op, left: Box::new(self), right: Box::new(other) }
    }

    /// The arithmetic `self op other`; usually written with the operators `+ - * / %`.
    ///
    /// ```
    /// use prejoin::expr::{ArithmeticOp, build, lit};
    ///
    /// assert_eq!(build("a").arithmetic(ArithmeticOp::Rem, lit(7)), build("a") % lit(7));
    /// ```
    pub fn arithmetic(self, op: ArithmeticOp, other: Expr) -> Expr {
        Expr::Arithmetic { op, left: Box::new(self), right: Box::new(other) }
    }

    /// `self AND other`. A chain of these becomes one flat list.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// let range = build("a").gt(lit(0)).and(build("a").lt(lit(9)));
    /// assert_eq!(range.to_string(), "build.a > 0 AND build.a < 9");
    /// ```
    pub fn and(self, other: Expr) -> Expr {
        let mut all = if let Expr::And(all) = self { all } else { vec![self] };
        if let Expr::And(more) = other {
            all.extend(more)
        } else {
            all.push(other)
        }
        Expr::And(all)
    }

    /// `self OR other`. A chain of these becomes one flat list.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// let either = build("a").eq(lit(1)).or(build("a").is_null());
    /// assert_eq!(either.to_string(), "build.a = 1 OR build.a IS NULL");
    /// ```
    pub fn or(self, other: Expr) -> Expr {
        let mut any = if let Expr::Or(any) = self { any } else { vec![self] };
        if let Expr::Or(more) = other {
            any.extend(more)
        } else {
            any.push(other)
        }
        Expr::Or(any)
    }

    /// `NOT self`, the same as the operator `!`.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// assert_eq!(build("a").eq(lit(1)).not(), !build("a").eq(lit(1)));
    /// ```
    #[allow(clippy::should_implement_trait)] // implemented below; the method spares callers the import
    pub fn not(self) -> Expr {
        Expr::Not(Box::new(self))
    }

    /// `self IS NULL`, never null itself.
    ///
    /// ```
    /// use prejoin::expr::{build};
    ///
    /// assert_eq!(build("a").is_null().to_string(), "build.a IS NULL");
    /// ```
    pub fn is_null(self) -> Expr {
        Expr::IsNull(Box::new(self))
    }

    /// `self IS NOT NULL`, never null itself.
    ///
    /// ```
    /// use prejoin::expr::{build};
    ///
    /// assert_eq!(build("a").is_not_null().to_string(), "build.a IS NOT NULL");
    /// ```
    pub fn is_not_null(self) -> Expr {
        self.is_null().not()
    }

    /// `self IS TRUE`: false if the condition is null.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// assert_eq!(build("a").gt(lit(1)).is_true().to_string(), "(build.a > 1) IS TRUE");
    /// ```
    pub fn is_true(self) -> Expr {
        Expr::IsTrue(Box::new(self))
    }

    /// `self IS FALSE`: false if the condition is null.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// assert_eq!(build("a").gt(lit(1)).is_false().to_string(), "(build.a > 1) IS FALSE");
    /// ```
    pub fn is_false(self) -> Expr {
        Expr::IsFalse(Box::new(self))
    }

    /// `self IN (list)`: true if an item is equal.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// let code = build("code").is_in([lit("x"), lit("y")]);
    /// assert_eq!(code.to_string(), "build.code IN ('x', 'y')");
    /// ```
    pub fn is_in(self, list: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::In { value: Box::new(self), list: list.into_iter().collect() }
    }

    /// `self BETWEEN low AND high`, both ends included.
    ///
    /// ```
    /// use prejoin::expr::{build, probe};
    ///
    /// let valid = probe("at").between(build("since"), build("until"));
    /// assert_eq!(valid.to_string(), "probe.at BETWEEN build.since AND build.until");
    /// ```
    pub fn between(self, low: Expr, high: Expr) -> Expr {
        Expr::Between { value: Box::new(self), low: Box::new(low), high: Box::new(high) }
    }

    /// `self LIKE pattern`: `%` matches any text, `_` any one character.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// assert_eq!(build("name").like(lit("A%")).to_string(), "build.name LIKE 'A%'");
    /// ```
    pub fn like(self, pattern: Expr) -> Expr {
        Expr::Like { value: Box::new(self), pattern: Box::new(pattern), ignore_case: false }
    }

    /// `self ILIKE pattern`: [`like`](Self::like) where upper and lower case are the same.
    ///
    /// ```
    /// use prejoin::expr::{build, lit};
    ///
    /// assert_eq!(build("name").ilike(lit("a%")).to_string(), "build.name ILIKE 'a%'");
    /// ```
    pub fn ilike(self, pattern: Expr) -> Expr {
        Expr::Like { value: Box::new(self), pattern: Box::new(pattern), ignore_case: true }
    }

    /// `CAST(self AS to)`: evaluation fails if a value does not fit.
    ///
    /// ```
    /// use arrow_schema::DataType;
    /// use prejoin::expr::build;
    ///
    /// assert_eq!(build("a").cast(DataType::Int64).to_string(), "CAST(build.a AS BIGINT)");
    /// ```
    pub fn cast(self, to: DataType) -> Expr {
        Expr::Cast { value: Box::new(self), to, or_null: false }
    }

    /// `TRY_CAST(self AS to)`: null where a value does not fit.
    ///
    /// ```
    /// use arrow_schema::DataType;
    /// use prejoin::expr::build;
    ///
    /// assert_eq!(build("a").try_cast(DataType::Int64).to_string(), "TRY_CAST(build.a AS BIGINT)");
    /// ```
    pub fn try_cast(self, to: DataType) -> Expr {
        Expr::Cast { value: Box::new(self), to, or_null: true }
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

/// Implements the operators of `std::ops` as arithmetic.
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
