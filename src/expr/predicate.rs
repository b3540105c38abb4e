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

/// A condition over pairs of rows, bound to the schemas of both sides by [`Expr::bind`].
///
/// A predicate never changes, so threads can share it.
#[derive(Debug)]
pub struct Predicate {
    pub(super) expr: Expr,
    pub(super) steps: Vec<Step>,
    pub(super) columns: Vec<(Side, usize)>,
    pub(super) types: Vec<DataType>,
}

/// One step of a bound condition. The steps are in postfix order and work on a stack of values, so that a deep
/// condition needs no more of the thread's stack than a flat one.
#[derive(Debug)]
pub(super) enum Step {
    /// Pushes a column, given by its index in [`Predicate::columns`].
    Column(usize),
    /// Pushes a constant: an array of one row, which holds for every pair.
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
    /// Pops a condition and pushes whether it is this value; null counts as neither.
    Is(bool),
    /// Turns a dictionary, run-end or Null array of conditions into a plain Boolean array.
    Boolean,
    Negate(Negate),
    /// For `BETWEEN`: pops the lower end, and pushes the comparison on top of the value, which stays.
    AtLeast(Comparison),
    /// For `BETWEEN`: pops the upper end, the result of [`Step::AtLeast`] and the value.
    AndAtMost(Comparison),
    /// For `IN`: pushes whether the value is one of the constants; the value stays below.
    Among(InList),
    /// For `IN`: pops a further item and the result so far, and pushes the new result; the value stays below.
    OrEquals(Comparison),
    /// For `IN`: removes the value from below the result.
    DropValue,
    /// Pops a text and a pattern.
    Like {
        ignore_case: bool,
    },
    Cast(Cast),
}

impl Predicate {
    /// The expression that was bound.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_schema::{DataType, Field, Schema};
    /// use prejoin::expr::{build, lit};
    ///
    /// # let users = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]));
    /// let predicate = build("v").gt(lit(1)).bind(&users, &Arc::new(Schema::empty()))?;
    /// assert_eq!(*predicate.expr(), build("v").gt(lit(1)));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The columns that the condition reads, as side and position, each once, in the order in which
    /// [`evaluate`](Self::evaluate) takes them.
    ///
    /// The example of [`prejoin::expr`](crate::expr) shows it.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::expr::{Side, build, probe};
    ///
    /// let (users, events) = (record_batch!(("v", Int64, [1]))?, record_batch!(("w", Int64, [2]))?);
    /// let predicate = build("v").lt(probe("w")).bind(&users.schema(), &events.schema())?;
    /// assert_eq!(predicate.columns(), [(Side::Build, 0), (Side::Probe, 0)]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn columns(&self) -> &[(Side, usize)] {
        &self.columns
    }

    /// The result for each of `rows` pairs: true, false or null. A pair passes only where it is true.
    ///
    /// `columns` holds the columns that [`columns`](Self::columns) lists, each with one row per pair. The example of
    /// [`prejoin::expr`](crate::expr) shows it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::expr::{build, probe};
    ///
    /// let (users, events) = (record_batch!(("v", Int64, [1, 5]))?, record_batch!(("w", Int64, [2, 2]))?);
    /// let predicate = build("v").lt(probe("w")).bind(&users.schema(), &events.schema())?;
    /// let columns = [Arc::clone(users.column(0)), Arc::clone(events.column(0))];
    /// assert_eq!(predicate.evaluate(&columns, 2)?.iter().collect::<Vec<_>>(), [Some(true), Some(false)]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the number, types or lengths of the columns are not those asked for;
    /// [`Error::Execution`](crate::Error::Execution) for division by zero, overflow, and casts that do not fit,
    /// whichever operand of `AND` or `OR` they are in.
    pub fn evaluate(&self, columns: &[ArrayRef], rows: usize) -> Result<BooleanArray> {
        let columns: Vec<Value> = columns.iter().map(|array| Value { array: array.clone(), scalar: false }).collect();
        self.evaluate_values(&columns, rows)
    }

    /// [`evaluate`](Self::evaluate) for columns of which some may be one row that holds for all pairs.
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
            // Errors belong to pairs: without a pair, not even `1 / 0` is one.
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
                Step::DropValue => {
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

    /// Combines two conditions. The result has one row per pair, unless both have one row for all pairs.
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

/// One row per pair; `scalar` says that the array has one row for all pairs.
fn spread(array: &BooleanArray, scalar: bool, rows: usize) -> BooleanArray {
    match scalar {
        false => array.clone(),
        true if array.is_null(0) => BooleanArray::new_null(rows),
        true if array.value(0) => BooleanArray::new(BooleanBuffer::new_set(rows), None),
        true => BooleanArray::new(BooleanBuffer::new_unset(rows), None),
    }
}

/// The operands that no step has consumed yet.
struct Stack(Vec<Value>);

impl Stack {
    fn pop(&mut self) -> Result<Value> {
        self.0.pop().map_or_else(|| internal_err!("a step of a condition lacks its operand"), Ok)
    }

    fn top(&self) -> Result<&Value> {
        self.0.last().map_or_else(|| internal_err!("a step of a condition lacks its operand"), Ok)
    }
}
