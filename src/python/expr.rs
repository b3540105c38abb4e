//! `prejoin.col`, `prejoin.lit` and the operators on them.

use pyo3::basic::CompareOp as PyCompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::errors::{guarded, plan, type_error};
use super::literal::literal;
use crate::expr::{self, ArithmeticOp, CompareOp, Expr, MAX_DEPTH};

/// A condition over the columns of both sides of a join, made by `col` and `lit` and the operators on them.
///
/// Compare with == != < <= > >=, combine with & | ~, test with is_null() and is_not_null(), calculate with + - * / %.
/// Logic has three values, as in SQL: a comparison with null is null, and null means "no". Python's and, or, not and
/// chained comparisons raise TypeError. Values beside an expression become literals as by `lit`.
///
/// Raises PlanError for an expression of more than 128 levels; chains of & or | count once.
///
/// >>> import prejoin
/// >>> (prejoin.col("probe.ts") >= prejoin.col("build.valid_from")) & ~prejoin.col("build.code").is_null()
/// probe.ts >= build.valid_from AND build.code IS NOT NULL
#[pyclass(name = "Expr", module = "prejoin", frozen)]
#[derive(Clone)]
pub(crate) struct PyExpr(Expr);

impl PyExpr {
    pub(crate) fn expr(&self) -> Expr {
        self.0.clone()
    }

    /// The expression, unless it is so deep that walking it could overflow the stack.
    fn checked(expr: Expr) -> PyResult<Self> {
        if expr.depth() > MAX_DEPTH {
            return Err(plan(format!(
                "the expression has more than {MAX_DEPTH} levels; chain conditions with & or | instead of nesting them"
            )));
        }
        Ok(Self(expr))
    }
}

impl From<Expr> for PyExpr {
    fn from(expr: Expr) -> Self {
        Self(expr)
    }
}

/// A column: "build.x" or "probe.y".
///
/// Raises PlanError for a name without its side.
#[pyfunction]
pub(super) fn col(name: &str) -> PyResult<PyExpr> {
    guarded(|| match name.split_once('.') {
        Some(("build", column)) => Ok(PyExpr(expr::build(column))),
        Some(("probe", column)) => Ok(PyExpr(expr::probe(column))),
        _ => Err(plan(format!(
            "a column is named with its side, \"build.{name}\" or \"probe.{name}\"; {name:?} was given"
        ))),
    })
}

/// A constant: None, bool, int, float, str, bytes, date, datetime, time, timedelta or Decimal.
///
/// A datetime with a zone is an instant, one without is local time. pandas' Timestamp and Timedelta keep their
/// nanoseconds, integers of numpy are integers.
///
/// Raises TypeError for other values, PlanError for a number that is too large.
#[pyfunction]
pub(super) fn lit(value: &Bound<'_, PyAny>) -> PyResult<PyExpr> {
    guarded(|| literal(value).map(|literal| PyExpr(Expr::Literal(literal))))
}

/// An expression that `Expr.__reduce__` wrote.
#[pyfunction]
#[pyo3(name = "_load_expr")]
pub(super) fn load_expr(bytes: &[u8]) -> PyResult<PyExpr> {
    guarded(|| Ok(PyExpr(Expr::from_bytes(bytes)?)))
}

/// An operand: an expression, or a constant.
fn operand(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    match value.cast::<PyExpr>() {
        Ok(expr) => Ok(expr.get().expr()),
        Err(_) => literal(value).map(Expr::Literal),
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
        guarded(|| Self::checked(self.expr().and(operand(other)?)))
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(operand(other)?.and(self.expr())))
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().or(operand(other)?)))
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Self::checked(operand(other)?.or(self.expr())))
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

    /// True where the value is null.
    fn is_null(&self) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().is_null()))
    }

    /// True where the value is not null.
    fn is_not_null(&self) -> PyResult<Self> {
        guarded(|| Self::checked(self.expr().is_not_null()))
    }

    /// Refused: `a and b` would drop a side silently.
    fn __bool__(&self) -> PyResult<bool> {
        Err(type_error(
            "a condition on columns has no truth value of its own; combine conditions with & | ~, not with \
             and, or, not",
        ))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        guarded(|| {
            let load = py.import("prejoin._core")?.getattr("_load_expr")?;
            Ok((load, (PyBytes::new(py, &self.0.to_bytes()),).into_pyobject(py)?))
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guarded(|| Ok(self.0.to_string()))
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
