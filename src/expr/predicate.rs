//! Bound predicates and their evaluation.

use std::fmt;

use arrow_arith::boolean;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;

use super::arithmetic::Arithmetic;
use super::compare::{Comparison, Value};
use super::tree::{CompareOp, Expr, Side};
use crate::error::{Result, plan_err};

/// A condition over pairs of rows, bound to the schemas of both sides by [`Expr::bind`]. Immutable, shared freely.
#[derive(Debug)]
pub struct Predicate {
    pub(super) expr: Expr,
    pub(super) root: Node,
    pub(super) columns: Vec<(Side, usize)>,
    pub(super) types: Vec<DataType>,
}

/// A bound expression: columns by their place in [`Predicate::columns`], operations chosen for their types.
#[derive(Debug)]
pub(super) enum Node {
    Column(usize),
    /// One row for all pairs.
    Constant(ArrayRef),
    Compare {
        op: CompareOp,
        comparison: Comparison,
        left: Box<Node>,
        right: Box<Node>,
    },
    Arithmetic {
        arithmetic: Arithmetic,
        left: Box<Node>,
        right: Box<Node>,
    },
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
}

impl Predicate {
    /// The expression that was bound.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The distinct columns needed, as side and position, in the order that [`evaluate`](Self::evaluate) wants them.
    pub fn columns(&self) -> &[(Side, usize)] {
        &self.columns
    }

    /// The result for each of `rows` pairs: true, false, or null, which the caller takes as "no".
    ///
    /// `columns` are those of [`columns`](Self::columns), gathered for the pairs, so each has `rows` rows.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for columns other than asked; [`Error::Execution`](crate::Error::Execution)
    /// for division by zero and overflow, whichever operand of `AND` or `OR` they are in.
    pub fn evaluate(&self, columns: &[ArrayRef], rows: usize) -> Result<BooleanArray> {
        if columns.len() != self.columns.len() {
            return plan_err!("{self} needs {} columns, {} were given", self.columns.len(), columns.len());
        }
        for ((column, data_type), (side, position)) in columns.iter().zip(&self.types).zip(&self.columns) {
            if column.data_type() != data_type || column.len() != rows {
                return plan_err!(
                    "{self} needs {rows} rows of {data_type} for {side}[{position}], {} rows of {} were given",
                    column.len(),
                    column.data_type()
                );
            }
        }
        if rows == 0 {
            // Without a pair not even `1 / 0` is an error.
            return Ok(BooleanArray::new(BooleanBuffer::new_unset(0), None));
        }
        Pairs { columns, rows }.boolean(&self.root)
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

/// The candidate pairs that a predicate is evaluated on.
struct Pairs<'a> {
    columns: &'a [ArrayRef],
    rows: usize,
}

impl Pairs<'_> {
    fn value(&self, node: &Node) -> Result<Value> {
        match node {
            Node::Column(index) => Ok(Value { array: self.columns[*index].clone(), scalar: false }),
            Node::Constant(array) => Ok(Value { array: array.clone(), scalar: true }),
            Node::Compare { op, comparison, left, right } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let array = comparison.evaluate(*op, &left, &right, self.rows)?;
                Ok(Value { array: std::sync::Arc::new(array), scalar: left.scalar && right.scalar })
            }
            Node::Arithmetic { arithmetic, left, right } => {
                arithmetic.evaluate(&self.value(left)?, &self.value(right)?)
            }
            Node::IsNull(inner) => {
                let Value { array, scalar } = self.value(inner)?;
                Ok(Value { array: std::sync::Arc::new(boolean::is_null(&array)?), scalar })
            }
            Node::And(_) | Node::Or(_) | Node::Not(_) => {
                Ok(Value { array: std::sync::Arc::new(self.boolean(node)?), scalar: false })
            }
        }
    }

    /// A condition with a row per pair.
    fn boolean(&self, node: &Node) -> Result<BooleanArray> {
        match node {
            Node::And(all) => self.fold(all, true, boolean::and_kleene),
            Node::Or(any) => self.fold(any, false, boolean::or_kleene),
            Node::Not(inner) => Ok(boolean::not(&self.boolean(inner)?)?),
            other => {
                let value = self.value(other)?.cast(&DataType::Boolean)?;
                let array = value.array.as_boolean();
                Ok(match value.scalar {
                    false => array.clone(),
                    true if array.is_null(0) => BooleanArray::new_null(self.rows),
                    true => self.all(array.value(0)),
                })
            }
        }
    }

    fn fold<E>(
        &self,
        nodes: &[Node],
        empty: bool,
        combine: impl Fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, E>,
    ) -> Result<BooleanArray>
    where
        crate::error::Error: From<E>,
    {
        let Some((first, rest)) = nodes.split_first() else { return Ok(self.all(empty)) };
        rest.iter().try_fold(self.boolean(first)?, |so_far, node| Ok(combine(&so_far, &self.boolean(node)?)?))
    }

    fn all(&self, value: bool) -> BooleanArray {
        let values = if value { BooleanBuffer::new_set(self.rows) } else { BooleanBuffer::new_unset(self.rows) };
        BooleanArray::new(values, None)
    }
}
