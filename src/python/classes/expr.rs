//! `prejoin.col`, `prejoin.lit`, `prejoin.sql` and the operators on them.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::DataType;
use pyo3::basic::CompareOp as PyCompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::expr::{self, ArithmeticOp, CompareOp, Expr, MAX_DEPTH};
use crate::python::errors::{guarded, plan, type_error};
use crate::python::interchange::{is_a, schema_of, type_name};
use crate::python::values::literal::{literal, literals};

/// A condition over the columns of both sides of a join, made by `col`, `lit`, `sql` and operators on them.
///
/// Compare with == != < <= > >=, combine with & | ~, calculate with + - * / %; the methods are the tests of SQL.
/// Logic has three values, as in SQL: a comparison with null is null, and a pair of rows passes only if the
/// condition is true. Python's and, or, not and chained comparisons raise TypeError. Values beside an expression
/// become literals as by `lit`. The repr is SQL text that `sql` reads as the same expression.
///
/// Operators and methods raise PlanError for an expression of more than 128 levels, where a chain of & or | counts
/// once, and TypeError for values that cannot be literals.
///
/// Example:
///     >>> import prejoin
///     >>> (prejoin.col("probe.ts") >= prejoin.col("build.valid_from")) & ~prejoin.col("build.code").is_in(["x", "y"])
///     probe.ts >= build.valid_from AND build.code NOT IN ('x', 'y')
#[pyclass(name = "Expr", module = "prejoin", frozen)]
pub(crate) struct PyExpr {
    tree: Tree,
    /// Levels of the tree.
    depth: usize,
}

enum Tree {
    One(Expr),
    Chain(Chain),
}

/// A chain of `&` or `|` under construction. Python makes a new object for each link; all of them share one list, of which
/// each sees its own front part, so that a chain of n conditions is n steps and not n * n.
struct Chain {
    make: fn(Vec<Expr>) -> Expr,
    is_and: bool,
    items: Arc<Mutex<Vec<Expr>>>,
    len: usize,
}

impl Chain {
    fn new(is_and: bool, items: Vec<Expr>) -> Self {
        let len = items.len();
        let make = if is_and { Expr::And } else { Expr::Or };
        Self { make, is_and, items: Arc::new(Mutex::new(items)), len }
    }

    fn items(&self) -> Vec<Expr> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)[..self.len].to_vec()
    }

    /// The chain with more links; this one stays what it is.
    fn with(&self, more: Vec<Expr>) -> Self {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        if items.len() == self.len {
            items.extend(more);
            return Self { items: Arc::clone(&self.items), len: items.len(), ..*self };
        }
        // Another chain grew on from here before.
        let mut own = items[..self.len].to_vec();
        own.extend(more);
        Self::new(self.is_and, own)
    }
}

impl PyExpr {
    pub(crate) fn expr(&self) -> Expr {
        match &self.tree {
            Tree::One(expr) => expr.clone(),
            Tree::Chain(chain) => (chain.make)(chain.items()),
        }
    }

    /// The expression, unless it is so deep that walking it could overflow the stack.
    fn checked(expr: Expr) -> PyResult<Self> {
        let depth = expr.depth();
        Self { tree: Tree::One(expr), depth }.bounded()
    }

    fn bounded(self) -> PyResult<Self> {
        if self.depth > MAX_DEPTH {
            return Err(plan(format!(
                "the expression has more than {MAX_DEPTH} levels; chain conditions with & or | instead of nesting them"
            )));
        }
        Ok(self)
    }

    /// `self & other` or `self | other`, flat.
    fn linked(&self, is_and: bool, other: Expr) -> PyResult<Self> {
        let below = other.depth();
        let (more, levels) = match (is_and, other) {
            (true, Expr::And(all)) | (false, Expr::Or(all)) => (all, below),
            (_, one) => (vec![one], below + 1),
        };
        match &self.tree {
            Tree::Chain(chain) if chain.is_and == is_and => {
                Self { tree: Tree::Chain(chain.with(more)), depth: self.depth.max(levels) }.bounded()
            }
            _ => {
                let (mut items, own) = match (is_and, self.expr()) {
                    (true, Expr::And(all)) | (false, Expr::Or(all)) => (all, self.depth),
                    (_, one) => (vec![one], self.depth + 1),
                };
                items.extend(more);
                Self { tree: Tree::Chain(Chain::new(is_and, items)), depth: own.max(levels) }.bounded()
            }
        }
    }
}

impl From<Expr> for PyExpr {
    fn from(expr: Expr) -> Self {
        let depth = expr.depth();
        Self { tree: Tree::One(expr), depth }
    }
}

/// A column: "build.x" or "probe.y", or with the name of a leg of a StarJoin "planes.z".
///
/// Args:
///     name: The side, a point, and the name of the column.
///
/// Returns:
///     An expression.
///
/// Raises:
///     PlanError: For a name without its side.
///
/// Example:
///     >>> import prejoin
///     >>> prejoin.col("build.n") > 1
///     build.n > 1
#[pyfunction]
pub(crate) fn col(name: &str) -> PyResult<PyExpr> {
    guarded(|| match name.split_once('.') {
        Some(("build", column)) => Ok(expr::build(column).into()),
        Some(("probe", column)) => Ok(expr::probe(column).into()),
        Some(_) => Ok(Expr::Column(expr::ColumnRef { side: None, id: name.into(), at: None }).into()),
        _ => Err(plan(format!(
            "a column is named with its side, \"build.{name}\" or \"probe.{name}\"; {name:?} was given"
        ))),
    })
}

/// A constant.
///
/// Args:
///     value: A value of Python (None, bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal), a
///         scalar of numpy, or a pyarrow.Scalar of one of these kinds or an interval. A datetime with a zone is an
///         instant, one without is local time. pandas' Timestamp and Timedelta keep their nanoseconds. Months and
///         days are a pyarrow interval, or `sql("interval '1 month'")`.
///
/// Returns:
///     An expression.
///
/// Raises:
///     PlanError: For a number that is too large.
///     TypeError: For other values.
///
/// Example:
///     >>> import datetime, prejoin
///     >>> prejoin.lit(datetime.date(2024, 12, 31))
///     DATE '2024-12-31'
#[pyfunction]
pub(crate) fn lit(value: &Bound<'_, PyAny>) -> PyResult<PyExpr> {
    guarded(|| literal(value).map(|literal| Expr::Literal(literal).into()))
}

/// A condition, or a part of one, from SQL text. docs/predicates.md describes the language.
///
/// Wherever a condition is taken, its text is taken as well.
///
/// Args:
///     text: SQL. A column is `build.x`, `probe.y` or `"build"."my x"`, in a StarJoin also `planes.z` with the name
///         of a leg; a name without a side is the column of the only side that has it.
///
/// Returns:
///     An expression.
///
/// Raises:
///     PlanError: For text that is not of the language, with line and column.
///
/// Example:
///     >>> import prejoin
///     >>> prejoin.sql("probe.ts < build.since + interval '1' hour") & (prejoin.col("build.n") > 0)
///     probe.ts < build.since + INTERVAL '3600 seconds' AND build.n > 0
#[pyfunction]
pub(crate) fn sql(text: &str) -> PyResult<PyExpr> {
    guarded(|| Ok(Expr::parse_sql_of_tables(text)?.into()))
}

/// `where=`: a condition or its text.
pub(crate) fn condition(given: &Bound<'_, PyAny>) -> PyResult<Expr> {
    condition_by(given, Expr::parse_sql)
}

/// The same for a StarJoin, in which a column may be that of a leg, "planes.x".
pub(crate) fn condition_of_tables(given: &Bound<'_, PyAny>) -> PyResult<Expr> {
    condition_by(given, Expr::parse_sql_of_tables)
}

fn condition_by(given: &Bound<'_, PyAny>, parse: fn(&str) -> crate::Result<Expr>) -> PyResult<Expr> {
    if let Ok(expr) = given.cast::<PyExpr>() {
        return Ok(expr.get().expr());
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(parse(text.to_str()?)?);
    }
    let foreign = is_a(given, "pyarrow.compute", "Expression")? || is_a(given, "polars", "Expr")?;
    let hint = if foreign { "; expressions of other libraries do not show what they hold" } else { "" };
    Err(type_error(format!(
        "where is SQL text or a condition made with prejoin.col and prejoin.lit, {} was given{hint}",
        type_name(given)
    )))
}

/// An expression that `Expr.__reduce__` wrote.
#[pyfunction]
#[pyo3(name = "_load_expr")]
pub(crate) fn load_expr(bytes: &[u8]) -> PyResult<PyExpr> {
    guarded(|| Ok(Expr::from_bytes(bytes)?.into()))
}

/// An operand: an expression, or a constant.
fn operand(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    match value.cast::<PyExpr>() {
        Ok(expr) => Ok(expr.get().expr()),
        Err(_) => literal(value).map(Expr::Literal),
    }
}

/// The type that `cast` was given.
fn data_type(given: &Bound<'_, PyAny>) -> PyResult<DataType> {
    if let Ok(name) = given.cast::<PyString>() {
        let name = name.to_str()?;
        return expr::type_named(name)
            .ok_or_else(|| plan(format!("a value cannot be cast to {name:?}, which is not the name of a type")));
    }
    if !is_a(given, "pyarrow", "DataType")? {
        return Err(type_error(format!(
            "a type is a pyarrow.DataType or the name of a type in SQL, {} was given",
            type_name(given)
        )));
    }
    let schema = given.py().import("pyarrow")?.call_method1("schema", (vec![("value", given)],))?;
    let to = schema_of(&schema)?.field(0).data_type().clone();
    match expr::type_name::is_cast_target(&to) {
        true => Ok(to),
        false => Err(plan(format!("a value cannot be cast to {to}"))),
    }
}

#[pymethods]
impl PyExpr {
    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: PyCompareOp) -> PyResult<Self> {
        let op = match op {
            PyCompareOp::Lt => CompareOp::Lt,
            PyCompareOp::Le => CompareOp::Le,
            PyCompareOp::Eq => CompareOp::Eq,
            PyCompareOp::Ne => CompareOp::Ne,
            PyCompareOp::Gt => CompareOp::Gt,
            PyCompareOp::Ge => CompareOp::Ge,
        };
        guarded(|| Self::checked(self.expr().compare(op, operand(other)?)))
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| self.linked(true, operand(other)?))
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::from(operand(other)?).linked(true, self.expr()))
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| self.linked(false, operand(other)?))
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::from(operand(other)?).linked(false, self.expr()))
    }

    fn __invert__(&self) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().not()))
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic(ArithmeticOp::Add, other)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic_from(ArithmeticOp::Add, other)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic(ArithmeticOp::Sub, other)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic_from(ArithmeticOp::Sub, other)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic(ArithmeticOp::Mul, other)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic_from(ArithmeticOp::Mul, other)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic(ArithmeticOp::Div, other)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic_from(ArithmeticOp::Div, other)
    }

    fn __mod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic(ArithmeticOp::Rem, other)
    }

    fn __rmod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.arithmetic_from(ArithmeticOp::Rem, other)
    }

    fn __neg__(&self) -> PyResult<Self> {
        guarded(|| Self::checked(-self.expr()))
    }

    /// True if the value is null.
    ///
    /// Returns:
    ///     A condition, never null.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.code").is_null()
    ///     build.code IS NULL
    fn is_null(&self) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().is_null()))
    }

    /// True if the value is not null.
    ///
    /// Returns:
    ///     A condition, never null.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.code").is_not_null()
    ///     build.code IS NOT NULL
    fn is_not_null(&self) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().is_not_null()))
    }

    /// True if the condition is true, false if it is false or null.
    ///
    /// Returns:
    ///     A condition, never null.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> (prejoin.col("build.n") > 1).is_true()
    ///     (build.n > 1) IS TRUE
    fn is_true(&self) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().is_true()))
    }

    /// True if the condition is false, false if it is true or null.
    ///
    /// Returns:
    ///     A condition, never null.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> (prejoin.col("build.n") > 1).is_false()
    ///     (build.n > 1) IS FALSE
    fn is_false(&self) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().is_false()))
    }

    /// Like !=, but null is a value: equal to null and to nothing else.
    ///
    /// Args:
    ///     other: An expression, or a value as for `lit`.
    ///
    /// Returns:
    ///     A condition, never null.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.a").is_distinct_from(prejoin.col("probe.b"))
    ///     build.a IS DISTINCT FROM probe.b
    fn is_distinct_from(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().compare(CompareOp::Distinct, operand(other)?)))
    }

    /// Like ==, but null is a value: equal to null and to nothing else.
    ///
    /// Args:
    ///     other: An expression, or a value as for `lit`.
    ///
    /// Returns:
    ///     A condition, never null.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.a").is_not_distinct_from(None)
    ///     build.a IS NOT DISTINCT FROM NULL
    fn is_not_distinct_from(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().compare(CompareOp::NotDistinct, operand(other)?)))
    }

    /// True if the value equals one of `values`.
    ///
    /// Args:
    ///     values: An iterable of values and expressions, or a pyarrow array.
    ///
    /// Returns:
    ///     A condition: null if the value is null, and if it equals none of several values of which one is null; false
    ///     if there are no values.
    ///
    /// Raises:
    ///     TypeError: For text, and for a value that cannot be a literal.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.code").is_in(["x", "y"])
    ///     build.code IN ('x', 'y')
    fn is_in(&self, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| {
            let refused = || type_error(format!("is_in takes a list of values, {} was given", type_name(values)));
            if values.is_instance_of::<PyString>() || values.is_instance_of::<PyBytes>() {
                return Err(refused());
            }
            let list: Vec<Expr> = match literals(values)? {
                Some(literals) => literals.into_iter().map(Expr::Literal).collect(),
                None => {
                    let items = values.try_iter().map_err(|_| refused())?;
                    items.map(|item| operand(&item?)).collect::<PyResult<_>>()?
                }
            };
            Self::checked(self.expr().is_in(list))
        })
    }

    /// True if the value is at least `low` and at most `high`.
    ///
    /// Args:
    ///     low: An expression, or a value as for `lit`.
    ///     high: An expression, or a value as for `lit`.
    ///
    /// Returns:
    ///     A condition.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("probe.n").between(1, prejoin.col("build.n"))
    ///     probe.n BETWEEN 1 AND build.n
    fn between(&self, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().between(operand(low)?, operand(high)?)))
    }

    /// True if the text matches `pattern`, in which % is any text and _ any character.
    ///
    /// A backslash takes the next character as it is.
    ///
    /// Args:
    ///     pattern: Text, or an expression whose values are text.
    ///
    /// Returns:
    ///     A condition.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.name").like("a%")
    ///     build.name LIKE 'a%'
    fn like(&self, pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().like(operand(pattern)?)))
    }

    /// `like` in which upper and lower case are the same.
    ///
    /// Args:
    ///     pattern: Text, or an expression whose values are text.
    ///
    /// Returns:
    ///     A condition.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.name").ilike("a%")
    ///     build.name ILIKE 'a%'
    fn ilike(&self, pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().ilike(operand(pattern)?)))
    }

    /// The value as another type.
    ///
    /// A value that does not fit raises ExecutionError when the condition is evaluated.
    ///
    /// Args:
    ///     to: A pyarrow.DataType, or the name of a type in SQL.
    ///
    /// Returns:
    ///     An expression of that type.
    ///
    /// Raises:
    ///     PlanError: For a type or name that is not known.
    ///     TypeError: For an object that is neither.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.n").cast("double") / 2
    ///     CAST(build.n AS DOUBLE) / 2
    fn cast(&self, to: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().cast(data_type(to)?)))
    }

    /// `cast`, but null for a value that does not fit.
    ///
    /// Args:
    ///     to: A pyarrow.DataType, or the name of a type in SQL.
    ///
    /// Returns:
    ///     An expression of that type.
    ///
    /// Raises:
    ///     PlanError: For a type or name that is not known.
    ///     TypeError: For an object that is neither.
    ///
    /// Example:
    ///     >>> import prejoin
    ///     >>> prejoin.col("build.n").try_cast("int")
    ///     TRY_CAST(build.n AS INTEGER)
    fn try_cast(&self, to: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().try_cast(data_type(to)?)))
    }

    /// Refused: `a and b` would drop a side silently.
    fn __bool__(&self) -> PyResult<bool> {
        Err(type_error(
            "a condition on columns has no truth value; combine conditions with & | ~, not with \
             and, or, not",
        ))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        guarded(|| {
            let load = py.import("prejoin._core")?.getattr("_load_expr")?;
            Ok((load, (PyBytes::new(py, &self.expr().to_bytes()),).into_pyobject(py)?))
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guarded(|| Ok(self.expr().to_string()))
    }
}

impl PyExpr {
    fn arithmetic(&self, op: ArithmeticOp, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().arithmetic(op, operand(other)?)))
    }

    fn arithmetic_from(&self, op: ArithmeticOp, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(operand(other)?.arithmetic(op, self.expr())))
    }
}
