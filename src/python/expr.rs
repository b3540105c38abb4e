//! `prejoin.col`, `prejoin.lit` and the operators on them.

use pyo3::basic::CompareOp as PyCompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use super::errors::{guarded, plan, type_error};
use super::interchange::type_name;
use crate::expr::{self, ArithmeticOp, CompareOp, Expr, Literal};

/// A condition over the columns of both sides of a join, made by `col` and `lit` and the operators on them.
///
/// Compare with == != < <= > >=, combine with & | ~, test with is_null() and is_not_null(), calculate with + - * / %.
#[pyclass(name = "Expr", module = "prejoin", frozen)]
#[derive(Clone)]
pub(crate) struct PyExpr(Expr);

impl PyExpr {
    pub(crate) fn expr(&self) -> Expr {
        self.0.clone()
    }
}

impl From<Expr> for PyExpr {
    fn from(expr: Expr) -> Self {
        Self(expr)
    }
}

/// A column: "build.x" or "probe.y".
#[pyfunction]
pub(super) fn col(name: &str) -> PyResult<PyExpr> {
    match name.split_once('.') {
        Some(("build", column)) => Ok(PyExpr(expr::build(column))),
        Some(("probe", column)) => Ok(PyExpr(expr::probe(column))),
        _ => Err(plan(format!(
            "a column is named with its side, \"build.{name}\" or \"probe.{name}\"; {name:?} was given"
        ))),
    }
}

/// A constant: None, bool, int, float, str or bytes.
#[pyfunction]
pub(super) fn lit(value: &Bound<'_, PyAny>) -> PyResult<PyExpr> {
    literal(value).map(|literal| PyExpr(Expr::Literal(literal)))
}

fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    Ok(match value {
        value if value.is_none() => Literal::Null,
        value if value.is_instance_of::<PyBool>() => Literal::Boolean(value.extract()?),
        value if value.is_instance_of::<PyInt>() => {
            Literal::Integer(value.extract().map_err(|_| plan(format!("the integer {value} does not fit 128 bits")))?)
        }
        value if value.is_instance_of::<PyFloat>() => Literal::Float(value.extract()?),
        value if value.is_instance_of::<PyString>() => Literal::Text(value.extract()?),
        value if value.is_instance_of::<PyBytes>() => Literal::Binary(value.extract()?),
        other => {
            return Err(type_error(format!(
                "a literal is None, bool, int, float, str or bytes; {} was given",
                type_name(other)
            )));
        }
    })
}

/// An operand: an expression, or a constant.
fn operand(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    match value.extract::<PyRef<'_, PyExpr>>() {
        Ok(expr) => Ok(expr.expr()),
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
        guarded(|| Ok(Self(self.expr().compare(op, operand(other)?))))
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Ok(Self(self.expr().and(operand(other)?))))
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Ok(Self(operand(other)?.and(self.expr()))))
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Ok(Self(self.expr().or(operand(other)?))))
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Ok(Self(operand(other)?.or(self.expr()))))
    }

    fn __invert__(&self) -> Self {
        Self(self.expr().not())
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
    fn is_null(&self) -> Self {
        Self(self.expr().is_null())
    }

    /// True where the value is not null.
    fn is_not_null(&self) -> Self {
        Self(self.expr().is_not_null())
    }

    /// Refused: `a and b` would drop a side silently.
    fn __bool__(&self) -> PyResult<bool> {
        Err(type_error(
            "a condition on columns has no truth value of its own; combine conditions with & | ~, not with and, or, not",
        ))
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

impl PyExpr {
    fn arithmetic(&self, op: ArithmeticOp, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Ok(Self(self.expr().arithmetic(op, operand(other)?))))
    }

    fn arithmetic_from(&self, op: ArithmeticOp, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| Ok(Self(operand(other)?.arithmetic(op, self.expr()))))
    }
}
