//! Bound predicates and their evaluation.

use std::fmt;
use std::sync::Arc;

use arrow_arith::boolean;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType};

use super::arithmetic::{Arithmetic, Negate};
use super::cast::Cast;
use super::compare::{Comparison, Value};
use super::in_list::InList;
use super::like::like;
use super::tree::{CompareOp, Expr, Side};
use crate::error::{Result, internal_err, plan_err};

/// A condition over pairs of rows, bound to the schemas of both sides by [`Expr::bind`]. Immutable, shared freely.
#[derive(Debug)]
pub struct Predicate {
    pub(super) expr: Expr,
    pub(super) steps: Vec<Step>,
    pub(super) columns: Vec<(Side, usize)>,
    pub(super) types: Vec<DataType>,
}

/// One step of a bound condition. The steps are in postfix order over a stack of values, so that a deep condition takes
/// no more of the thread's stack than a flat one.
#[derive(Debug)]
pub(super) enum Step {
    /// Pushes a column, by its place in [`Predicate::columns`].
    Column(usize),
    /// Pushes one row for all pairs.
    Constant(ArrayRef),
    /// Pops two operands.
    Compare {
        op: CompareOp,
        comparison: Comparison,
    },
    /// Pops two operands.
    Arithmetic(Arithmetic),
    /// Pops two conditions.
    And,
    /// Pops two conditions.
    Or,
    Not,
    IsNull,
    /// Whether the condition is this value, and not null.
    Is(bool),
    /// A condition of another layout, or one that is always null, as a plain Boolean array.
    Boolean,
    Negate(Negate),
    /// Pops the lower end and leaves the value below what it pushes.
    AtLeast(Comparison),
    /// Pops the upper end, what [`Step::AtLeast`] pushed, and the value.
    AndAtMost(Comparison),
    /// Pushes whether the value is one of the constants, and leaves the value below.
    Among(InList),
    /// Pops one more item of a list and the test so far, and leaves the value below what it pushes.
    OrEquals(Comparison),
    /// Drops the value of a list below its test.
    Listed,
    /// Pops a text and a pattern.
    Like {
        ignore_case: bool,
    },
    Cast(Cast),
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
        let found = Pairs { columns, rows }.run(&self.steps)?;
        Ok(spread(found.array.as_boolean(), found.scalar, rows))
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
    fn run(&self, steps: &[Step]) -> Result<Value> {
        let mut stack = Stack(Vec::new());
        for step in steps {
            let value = match step {
                Step::Column(index) => self.columns[*index].clone(),
                Step::Constant(array) => Value { array: array.clone(), scalar: true },
                Step::Compare { op, comparison } => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    self.compare(*op, comparison, &left, &right)?
                }
                Step::Arithmetic(arithmetic) => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    arithmetic.evaluate(&left, &right)?
                }
                Step::And => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    self.combine(boolean::and_kleene, &left, &right)?
                }
                Step::Or => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    self.combine(boolean::or_kleene, &left, &right)?
                }
                Step::Not => {
                    let Value { array, scalar } = stack.pop()?;
                    Value { array: Arc::new(boolean::not(array.as_boolean())?), scalar }
                }
                Step::IsNull => {
                    let Value { array, scalar } = stack.pop()?;
                    Value { array: Arc::new(boolean::is_null(&array)?), scalar }
                }
                Step::Is(wanted) => {
                    let Value { array, scalar } = stack.pop()?;
                    let inner = array.as_boolean();
                    let values = if *wanted { inner.values().clone() } else { !inner.values() };
                    let values = inner.nulls().map_or(values.clone(), |valid| &values & valid.inner());
                    Value { array: Arc::new(BooleanArray::new(values, None)), scalar }
                }
                Step::Boolean => stack.pop()?.cast(&DataType::Boolean)?,
                Step::Negate(negate) => negate.evaluate(&stack.pop()?)?,
                Step::Cast(cast) => cast.evaluate(&stack.pop()?)?,
                Step::Like { ignore_case } => {
                    let (pattern, value) = (stack.pop()?, stack.pop()?);
                    let array = like(&value, &pattern, *ignore_case, self.rows)?;
                    Value { array: Arc::new(array), scalar: value.scalar && pattern.scalar }
                }
                Step::AtLeast(comparison) => {
                    let low = stack.pop()?;
                    self.compare(CompareOp::Ge, comparison, stack.top()?, &low)?
                }
                Step::AndAtMost(comparison) => {
                    let (high, at_least, value) = (stack.pop()?, stack.pop()?, stack.pop()?);
                    let at_most = self.compare(CompareOp::Le, comparison, &value, &high)?;
                    self.combine(boolean::and_kleene, &at_least, &at_most)?
                }
                Step::Among(constants) => {
                    let value = stack.top()?;
                    Value { array: Arc::new(constants.evaluate(value)?), scalar: value.scalar }
                }
                Step::OrEquals(comparison) => {
                    let (item, found) = (stack.pop()?, stack.pop()?);
                    let equal = self.compare(CompareOp::Eq, comparison, stack.top()?, &item)?;
                    self.combine(boolean::or_kleene, &found, &equal)?
                }
                Step::Listed => {
                    let found = stack.pop()?;
                    stack.pop()?;
                    found
                }
            };
            stack.0.push(value);
        }
        stack.pop()
    }

    fn compare(&self, op: CompareOp, comparison: &Comparison, left: &Value, right: &Value) -> Result<Value> {
        let array = comparison.evaluate(op, left, right, self.rows)?;
        Ok(Value { array: Arc::new(array), scalar: left.scalar && right.scalar })
    }

    /// Two conditions as one, which has a row per pair unless both are one for all.
    fn combine(
        &self,
        combine: impl Fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, ArrowError>,
        left: &Value,
        right: &Value,
    ) -> Result<Value> {
        let scalar = left.scalar && right.scalar;
        let side = |value: &Value| spread(value.array.as_boolean(), value.scalar && !scalar, self.rows);
        Ok(Value { array: Arc::new(combine(&side(left), &side(right))?), scalar })
    }
}

/// A row per pair, from one for all where `scalar`.
fn spread(array: &BooleanArray, scalar: bool, rows: usize) -> BooleanArray {
    match scalar {
        false => array.clone(),
        true if array.is_null(0) => BooleanArray::new_null(rows),
        true if array.value(0) => BooleanArray::new(BooleanBuffer::new_set(rows), None),
        true => BooleanArray::new(BooleanBuffer::new_unset(rows), None),
    }
}

/// Operands that are not used up yet.
struct Stack(Vec<Value>);

impl Stack {
    fn pop(&mut self) -> Result<Value> {
        self.0.pop().map_or_else(|| internal_err!("a step of a condition lacks its operand"), Ok)
    }

    fn top(&self) -> Result<&Value> {
        self.0.last().map_or_else(|| internal_err!("a step of a condition lacks its operand"), Ok)
    }
}
