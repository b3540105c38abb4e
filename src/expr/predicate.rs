//! Bound predicates and their evaluation.

use std::fmt;
use std::sync::Arc;

use arrow_arith::boolean;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;

use super::arithmetic::{self, Arithmetic};
use super::cast::Cast;
use super::compare::{Comparison, Value};
use super::in_list::InList;
use super::like::like;
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
    /// Whether the condition is this value, and not null.
    Is(bool, Box<Node>),
    Negate {
        value: Box<Node>,
        to: DataType,
        /// For errors.
        text: String,
    },
    Between {
        value: Box<Node>,
        low: (Comparison, Box<Node>),
        high: (Comparison, Box<Node>),
    },
    In {
        value: Box<Node>,
        constants: InList,
        others: Vec<(Comparison, Node)>,
    },
    Like {
        value: Box<Node>,
        pattern: Box<Node>,
        ignore_case: bool,
    },
    Cast {
        cast: Cast,
        value: Box<Node>,
    },
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
        let columns: Vec<Value> = columns.iter().map(|array| Value { array: array.clone(), scalar: false }).collect();
        self.evaluate_values(&columns, rows)
    }

    /// [`evaluate`](Self::evaluate) where a column may be one row that all pairs have.
    pub(crate) fn evaluate_values(&self, columns: &[Value], rows: usize) -> Result<BooleanArray> {
        if columns.len() != self.columns.len() {
            return plan_err!("{self} needs {} columns, {} were given", self.columns.len(), columns.len());
        }
        for ((Value { array, scalar }, data_type), (side, position)) in
            columns.iter().zip(&self.types).zip(&self.columns)
        {
            let wanted = if *scalar { 1 } else { rows };
            if array.data_type() != data_type || array.len() != wanted {
                return plan_err!(
                    "{self} needs {wanted} rows of {data_type} for {side}[{position}], {} rows of {} were given",
                    array.len(),
                    array.data_type()
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
    columns: &'a [Value],
    rows: usize,
}

impl Pairs<'_> {
    fn value(&self, node: &Node) -> Result<Value> {
        match node {
            Node::Column(index) => Ok(self.columns[*index].clone()),
            Node::Constant(array) => Ok(Value { array: array.clone(), scalar: true }),
            Node::Compare { op, comparison, left, right } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let array = comparison.evaluate(*op, &left, &right, self.rows)?;
                Ok(Value { array: Arc::new(array), scalar: left.scalar && right.scalar })
            }
            Node::Arithmetic { arithmetic, left, right } => {
                arithmetic.evaluate(&self.value(left)?, &self.value(right)?)
            }
            Node::IsNull(inner) => {
                let Value { array, scalar } = self.value(inner)?;
                Ok(Value { array: Arc::new(boolean::is_null(&array)?), scalar })
            }
            Node::Negate { value, to, text } => arithmetic::negate(&self.value(value)?, to, text),
            Node::Cast { cast, value } => cast.evaluate(&self.value(value)?),
            Node::Like { value, pattern, ignore_case } => {
                let (value, pattern) = (self.value(value)?, self.value(pattern)?);
                let array = like(&value, &pattern, *ignore_case, self.rows)?;
                Ok(Value { array: Arc::new(array), scalar: value.scalar && pattern.scalar })
            }
            Node::And(_) | Node::Or(_) | Node::Not(_) | Node::Is(..) | Node::Between { .. } | Node::In { .. } => {
                Ok(Value { array: Arc::new(self.boolean(node)?), scalar: false })
            }
        }
    }

    /// A condition with a row per pair.
    fn boolean(&self, node: &Node) -> Result<BooleanArray> {
        match node {
            Node::And(all) => self.fold(all, true, boolean::and_kleene),
            Node::Or(any) => self.fold(any, false, boolean::or_kleene),
            Node::Not(inner) => Ok(boolean::not(&self.boolean(inner)?)?),
            Node::Is(wanted, inner) => {
                let inner = self.boolean(inner)?;
                let values = if *wanted { inner.values().clone() } else { !inner.values() };
                let values = inner.nulls().map_or(values.clone(), |valid| &values & valid.inner());
                Ok(BooleanArray::new(values, None))
            }
            Node::Between { value, low, high } => {
                let value = self.value(value)?;
                let end = |op, (comparison, end): &(Comparison, Box<Node>)| {
                    let end = self.value(end)?;
                    let scalar = value.scalar && end.scalar;
                    Ok(self.spread(&comparison.evaluate(op, &value, &end, self.rows)?, scalar))
                };
                let low: Result<_> = end(CompareOp::Ge, low);
                Ok(boolean::and_kleene(&low?, &end(CompareOp::Le, high)?)?)
            }
            Node::In { value, constants, others } => {
                let value = self.value(value)?;
                let found = self.spread(&constants.evaluate(&value)?, value.scalar);
                others.iter().try_fold(found, |found, (comparison, item)| {
                    let item = self.value(item)?;
                    let equal = comparison.evaluate(CompareOp::Eq, &value, &item, self.rows)?;
                    Ok(boolean::or_kleene(&found, &self.spread(&equal, value.scalar && item.scalar))?)
                })
            }
            other => {
                let value = self.value(other)?.cast(&DataType::Boolean)?;
                Ok(self.spread(value.array.as_boolean(), value.scalar))
            }
        }
    }

    /// A row per pair, from one for all where `scalar`.
    fn spread(&self, array: &BooleanArray, scalar: bool) -> BooleanArray {
        match scalar {
            false => array.clone(),
            true if array.is_null(0) => BooleanArray::new_null(self.rows),
            true => self.all(array.value(0)),
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
