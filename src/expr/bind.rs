//! Binding an expression to two schemas: names become positions, types are checked, and each operation is fixed.

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef, new_empty_array};
use arrow_schema::{DataType, SchemaRef};

use super::arithmetic::{self, Arithmetic, Negate, Span};
use super::cast::Cast;
use super::compare::Comparison;
use super::constant::{self, Operation};
use super::in_list::InList;
use super::kind::{Kind, value_type};
use super::literal::Literal;
use super::position::located;
use super::predicate::{Predicate, Step};
use super::tree::{ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, MAX_DEPTH, Side};
use crate::columns::{Positions, names};
use crate::error::{Error, Result, internal_err, plan_err};

impl Expr {
    /// Checks the expression against the schemas of both sides and decides how each part is evaluated.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_schema::{DataType, Field, Schema};
    /// use prejoin::expr::{build, probe};
    ///
    /// let users = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]));
    /// let events = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
    /// let error = build("v").lt(probe("name")).bind(&users, &events).unwrap_err();
    /// let text = "Plan error: build.v < probe.name compares Int64 with Utf8, which is not supported; cast one of them";
    /// assert_eq!(error.to_string(), text);
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if a column does not exist or its name is not unique, if an operation is not
    /// supported for the types of its operands, if a condition is not Boolean, and if the tree is deeper than
    /// [`MAX_DEPTH`].
    pub fn bind(&self, build: &SchemaRef, probe: &SchemaRef) -> Result<Predicate> {
        let (build_names, probe_names) = (Positions::new(build, "build"), Positions::new(probe, "probe"));
        let sides = Sides { build, probe, build_names, probe_names };
        self.bind_with(&mut |column| sides.find(column))
    }

    /// [`bind`](Self::bind) where `find` says which column of which side is meant, and its type.
    pub(crate) fn bind_with(&self, find: &mut Find<'_>) -> Result<Predicate> {
        let depth = self.depth();
        if depth > MAX_DEPTH {
            return plan_err!(
                "the condition has {depth} levels, at most {MAX_DEPTH} are supported; nest it less deeply"
            );
        }
        let mut binder =
            Binder { find, columns: Vec::new(), index_of: HashMap::new(), types: Vec::new(), steps: Vec::new() };
        binder.bind(self)?;
        let Binder { steps, columns, types, .. } = binder;
        Ok(Predicate { expr: self.clone(), steps, columns, types })
    }
}

/// What is still to be bound.
enum Task<'a> {
    /// An expression whose operands are not bound yet.
    Visit(&'a Expr),
    /// An expression whose operands are bound.
    Finish(&'a Expr),
    /// A comparison of the last two operands, as a part of `BETWEEN` or `IN`.
    Compare(&'a Expr, CompareOp),
    /// Checks that the last operand is a condition.
    Condition(&'a Expr),
    /// Combines the last two conditions by AND, or by OR.
    Combine { is_and: bool },
    /// The lower end of `BETWEEN`.
    AtLeast(&'a Expr),
    /// The constants of a list.
    Among(&'a Expr, &'a [Expr]),
    /// A further item of a list, which is not a constant.
    OrEquals(&'a Expr),
    /// The end of a list.
    DropValue,
}

/// A bound operand.
struct Operand<'a> {
    data_type: DataType,
    /// For a constant: its value. Its step is a placeholder until the type of the other operand is known.
    literal: Option<&'a Literal>,
    /// The position of its first step.
    from: usize,
}

/// Finds the column that an expression names.
pub(crate) type Find<'a> = dyn FnMut(&ColumnRef) -> Result<(Side, usize, DataType)> + 'a;

/// The two sides of an ordinary join.
struct Sides<'a> {
    build: &'a SchemaRef,
    probe: &'a SchemaRef,
    build_names: Positions<'a>,
    probe_names: Positions<'a>,
}

struct Binder<'a, 'b> {
    find: &'a mut Find<'b>,
    columns: Vec<(Side, usize)>,
    /// Where each of `columns` is.
    index_of: HashMap<(Side, usize), usize>,
    types: Vec<DataType>,
    steps: Vec<Step>,
}

impl Binder<'_, '_> {
    /// Writes the steps of a condition. Uses a list of tasks instead of recursion, so that a deep condition needs no
    /// more of the stack than a flat one.
    fn bind(&mut self, root: &Expr) -> Result<()> {
        let mut tasks = vec![Task::Condition(root), Task::Visit(root)];
        let mut operands: Vec<Operand<'_>> = Vec::new();
        while let Some(task) = tasks.pop() {
            let operand = match task {
                Task::Visit(expr) => match self.visit(expr, &mut tasks)? {
                    Some(leaf) => leaf,
                    None => continue,
                },
                Task::Finish(expr) => self.finish(expr, &mut operands)?,
                Task::Compare(expr, op) => {
                    let [mut left, mut right] = last(&mut operands)?;
                    self.type_constants(expr, &mut left, &mut right, Operation::Comparison)?;
                    let comparison = comparison(expr, &left, &right)?;
                    self.result(left.from, Step::Compare { op, comparison }, DataType::Boolean)
                }
                Task::Condition(expr) => {
                    let [operand] = last(&mut operands)?;
                    self.condition(expr, operand)?
                }
                Task::Combine { is_and } => {
                    let [left, _] = last(&mut operands)?;
                    let step = if is_and { Step::And } else { Step::Or };
                    self.result(left.from, step, DataType::Boolean)
                }
                Task::AtLeast(expr) => {
                    let [value, mut low] = last(&mut operands)?;
                    self.type_constant(expr, &mut low, Some(&value.data_type), Operation::Comparison)?;
                    let step = Step::AtLeast(comparison(expr, &value, &low)?);
                    operands.push(value);
                    self.result(low.from, step, DataType::Boolean)
                }
                Task::Among(expr, list) => {
                    let [value] = last(&mut operands)?;
                    if list.is_empty() {
                        self.steps.truncate(value.from);
                        self.constant(Literal::Boolean(false).to_array()?)
                    } else {
                        let step = Step::Among(among(expr, &value, list)?);
                        operands.push(value);
                        self.result(self.steps.len(), step, DataType::Boolean)
                    }
                }
                Task::OrEquals(expr) => {
                    let [value, found, item] = last(&mut operands)?;
                    let step = Step::OrEquals(comparison(expr, &value, &item)?);
                    operands.push(value);
                    self.result(found.from, step, DataType::Boolean)
                }
                Task::DropValue => {
                    let [value, _] = last(&mut operands)?;
                    self.result(value.from, Step::DropValue, DataType::Boolean)
                }
            };
            operands.push(operand);
        }
        Ok(())
    }

    /// Binds a column or a constant at once. For any other expression, adds its tasks, the first one last.
    fn visit<'e>(&mut self, expr: &'e Expr, tasks: &mut Vec<Task<'e>>) -> Result<Option<Operand<'e>>> {
        let mut all = Vec::new();
        match expr {
            Expr::Column(column) => return located(self.column(column), column.at.as_ref()).map(Some),
            Expr::Literal(literal) => {
                let from = self.steps.len();
                self.steps.push(Step::Constant(new_empty_array(&DataType::Null)));
                return Ok(Some(Operand { data_type: DataType::Null, literal: Some(literal), from }));
            }
            Expr::And(list) | Expr::Or(list) => {
                let is_and = matches!(expr, Expr::And(_));
                if list.is_empty() {
                    return Ok(Some(self.constant(Literal::Boolean(is_and).to_array()?)));
                }
                for (i, condition) in list.iter().enumerate() {
                    all.extend([Task::Visit(condition), Task::Condition(condition)]);
                    if i > 0 {
                        all.push(Task::Combine { is_and });
                    }
                }
            }
            Expr::Not(inner) | Expr::IsTrue(inner) | Expr::IsFalse(inner) => {
                all.extend([Task::Visit(inner), Task::Condition(inner), Task::Finish(expr)]);
            }
            // A constant value takes the type of each end, which may differ, so it is bound once for each.
            Expr::Between { value, low, high } if matches!(**value, Expr::Literal(_)) => {
                all.extend([Task::Visit(value), Task::Visit(low), Task::Compare(expr, CompareOp::Ge)]);
                all.extend([Task::Visit(value), Task::Visit(high), Task::Compare(expr, CompareOp::Le)]);
                all.push(Task::Combine { is_and: true });
            }
            Expr::Between { value, low, high } => {
                all.extend([Task::Visit(value), Task::Visit(low), Task::AtLeast(expr), Task::Visit(high)]);
                all.push(Task::Finish(expr));
            }
            Expr::In { value, list } if matches!(**value, Expr::Literal(_)) && !list.is_empty() => {
                for (i, item) in list.iter().enumerate() {
                    all.extend([Task::Visit(value), Task::Visit(item), Task::Compare(expr, CompareOp::Eq)]);
                    if i > 0 {
                        all.push(Task::Combine { is_and: false });
                    }
                }
            }
            Expr::In { value, list } => {
                all.extend([Task::Visit(value), Task::Among(expr, list)]);
                let others: Vec<_> = list.iter().filter(|item| !matches!(item, Expr::Literal(_))).collect();
                others.iter().for_each(|item| all.extend([Task::Visit(item), Task::OrEquals(expr)]));
                if !list.is_empty() {
                    all.push(Task::DropValue);
                }
            }
            _ => {
                all.extend(expr.children().into_iter().map(Task::Visit));
                all.push(Task::Finish(expr));
            }
        }
        tasks.extend(all.into_iter().rev());
        Ok(None)
    }

    /// Writes the step of an expression after those of its operands.
    fn finish<'e>(&mut self, expr: &'e Expr, operands: &mut Vec<Operand<'e>>) -> Result<Operand<'e>> {
        let (from, step) = match expr {
            Expr::Compare { op, .. } => {
                let [mut left, mut right] = last(operands)?;
                self.type_constants(expr, &mut left, &mut right, Operation::Comparison)?;
                (left.from, Step::Compare { op: *op, comparison: comparison(expr, &left, &right)? })
            }
            Expr::Between { .. } => {
                let [value, _, mut high] = last(operands)?;
                self.type_constant(expr, &mut high, Some(&value.data_type), Operation::Comparison)?;
                (value.from, Step::AndAtMost(comparison(expr, &value, &high)?))
            }
            Expr::Arithmetic { op, left: l, right: r } => {
                let [mut left, mut right] = last(operands)?;
                self.type_constants(expr, &mut left, &mut right, Operation::Arithmetic(*op))?;
                let (step, data_type) = arithmetic(expr, *op, (l, &left), (r, &right))?;
                return Ok(self.result(left.from, Step::Arithmetic(step), data_type));
            }
            Expr::Negate(_) => {
                let [mut value] = last(operands)?;
                self.type_constant(expr, &mut value, None, Operation::Comparison)?;
                let Some(negate) = Negate::of(value_type(&value.data_type), expr) else {
                    let message = format!(
                        "{expr} needs the negative of {}, which is not supported",
                        value.data_type,
                        expr = expr.short()
                    );
                    return Err(refused(expr, message));
                };
                let data_type = negate.to().clone();
                return Ok(self.result(value.from, Step::Negate(negate), data_type));
            }
            Expr::Cast { to, or_null, .. } => {
                let [mut value] = last(operands)?;
                self.type_constant(expr, &mut value, None, Operation::Comparison)?;
                let cast = Cast::new(value_type(&value.data_type), to, *or_null, expr).map_err(|reason| {
                    refused(expr, format!("{expr} casts {} to {to}, {reason}", value.data_type, expr = expr.short()))
                })?;
                return Ok(self.result(value.from, Step::Cast(cast), to.clone()));
            }
            Expr::Like { ignore_case, .. } => {
                let [mut value, mut pattern] = last(operands)?;
                for operand in [&mut value, &mut pattern] {
                    self.type_constant(expr, operand, None, Operation::Comparison)?;
                    if !matches!(Kind::of(value_type(&operand.data_type)), Kind::Text | Kind::Null) {
                        let message =
                            format!("{expr} needs text, but found {}", operand.data_type, expr = expr.short());
                        return Err(refused(expr, message));
                    }
                }
                (value.from, Step::Like { ignore_case: *ignore_case })
            }
            _ => {
                let [mut value] = last(operands)?;
                self.type_constant(expr, &mut value, None, Operation::Comparison)?;
                let step = match expr {
                    Expr::Not(_) => Step::Not,
                    Expr::IsTrue(_) => Step::Is(true),
                    Expr::IsFalse(_) => Step::Is(false),
                    _ => Step::IsNull,
                };
                (value.from, step)
            }
        };
        Ok(self.result(from, step, DataType::Boolean))
    }

    /// Writes a step whose operands begin at the step `from`.
    fn result<'e>(&mut self, from: usize, step: Step, data_type: DataType) -> Operand<'e> {
        self.steps.push(step);
        Operand { data_type, literal: None, from }
    }

    fn constant<'e>(&mut self, array: ArrayRef) -> Operand<'e> {
        let data_type = array.data_type().clone();
        self.result(self.steps.len(), Step::Constant(array), data_type)
    }

    /// Writes the step of a constant, converted for an operand of type `other` if there is one.
    fn type_constant(
        &mut self,
        expr: &Expr,
        operand: &mut Operand<'_>,
        other: Option<&DataType>,
        operation: Operation,
    ) -> Result<()> {
        let Some(literal) = operand.literal.take() else { return Ok(()) };
        let array = match other {
            Some(other) => located(constant::convert(literal, value_type(other), operation), expr.at())?,
            None => literal.to_array()?,
        };
        operand.data_type = array.data_type().clone();
        self.steps[operand.from] = Step::Constant(array);
        Ok(())
    }

    /// Converts a constant for the type of the other operand. Of two constants, the left one is converted.
    fn type_constants(
        &mut self,
        expr: &Expr,
        left: &mut Operand<'_>,
        right: &mut Operand<'_>,
        operation: Operation,
    ) -> Result<()> {
        if left.literal.is_some() {
            self.type_constant(expr, right, None, operation)?;
            self.type_constant(expr, left, Some(&right.data_type), operation)
        } else {
            self.type_constant(expr, right, Some(&left.data_type), operation)
        }
    }

    /// Checks that an operand is a condition, and brings it to a plain Boolean array.
    fn condition<'e>(&mut self, expr: &Expr, mut operand: Operand<'e>) -> Result<Operand<'e>> {
        self.type_constant(expr, &mut operand, None, Operation::Comparison)?;
        match (&operand.data_type, Kind::of(value_type(&operand.data_type))) {
            (DataType::Boolean, _) => Ok(operand),
            (_, Kind::Boolean | Kind::Null) => Ok(self.result(operand.from, Step::Boolean, DataType::Boolean)),
            (data_type, _) => {
                let message = format!("a condition must be Boolean, {} has type {data_type}", expr.short());
                Err(refused(expr, message))
            }
        }
    }

    fn column<'e>(&mut self, column: &ColumnRef) -> Result<Operand<'e>> {
        let (side, position, data_type) = (self.find)(column)?;
        let wanted = (side, position);
        let index = *self.index_of.entry(wanted).or_insert_with(|| {
            self.columns.push(wanted);
            self.types.push(data_type.clone());
            self.columns.len() - 1
        });
        Ok(self.result(self.steps.len(), Step::Column(index), data_type))
    }
}

impl Sides<'_> {
    fn find(&self, column: &ColumnRef) -> Result<(Side, usize, DataType)> {
        let side = match (column.side, &column.id) {
            (Some(side), _) => side,
            (None, id) => self.side_of(id)?,
        };
        let schema = self.schema(side);
        let position = match &column.id {
            ColumnId::Name(name) => self.names(side).get(name)?,
            ColumnId::Position(position) if *position < schema.fields().len() => *position,
            ColumnId::Position(position) => {
                return plan_err!(
                    "the {side} side has no column at position {position}; its {} columns are {}",
                    schema.fields().len(),
                    names(schema)
                );
            }
        };
        Ok((side, position, schema.field(position).data_type().clone()))
    }

    fn schema(&self, side: Side) -> &SchemaRef {
        if side == Side::Build { self.build } else { self.probe }
    }

    fn names(&self, side: Side) -> &Positions<'_> {
        if side == Side::Build { &self.build_names } else { &self.probe_names }
    }

    /// The only side that has a column of this name.
    fn side_of(&self, id: &ColumnId) -> Result<Side> {
        let ColumnId::Name(name) = id else { return plan_err!("a column by position needs its side, build or probe") };
        match (self.build_names.contains(name), self.probe_names.contains(name)) {
            (true, false) => Ok(Side::Build),
            (false, true) => Ok(Side::Probe),
            (true, true) => {
                let column = |side| ColumnRef { side: Some(side), id: id.clone(), at: None };
                let (build, probe) = (column(Side::Build), column(Side::Probe));
                plan_err!("both sides have a column {name:?}; write {build} or {probe}")
            }
            (false, false) => plan_err!(
                "neither side has a column {name:?}; the build side has {}, the probe side {}",
                names(self.build),
                names(self.probe)
            ),
        }
    }
}

/// Removes the last operands.
fn last<'e, const N: usize>(operands: &mut Vec<Operand<'e>>) -> Result<[Operand<'e>; N]> {
    let at = operands.len().saturating_sub(N);
    match operands.split_off(at).try_into() {
        Ok(last) => Ok(last),
        Err(_) => internal_err!("an operand of an expression is missing"),
    }
}

/// The constants of a list, converted for the type of the value that is looked for.
fn among(expr: &Expr, value: &Operand<'_>, list: &[Expr]) -> Result<InList> {
    let data_type = value_type(&value.data_type);
    let literals = list.iter().filter_map(|item| if let Expr::Literal(literal) = item { Some(literal) } else { None });
    let mut constants = Vec::new();
    for literal in literals {
        let array = located(constant::convert(literal, data_type, Operation::Comparison), expr.at())?;
        let item = Operand { data_type: array.data_type().clone(), literal: None, from: 0 };
        comparison(expr, value, &item)?;
        constants.push(array);
    }
    InList::new(data_type, &constants)
}

fn arithmetic(
    expr: &Expr,
    op: ArithmeticOp,
    (l, left): (&Expr, &Operand<'_>),
    (r, right): (&Expr, &Operand<'_>),
) -> Result<(Arithmetic, DataType)> {
    let span = Span::of(l, &left.data_type).max(Span::of(r, &right.data_type));
    Arithmetic::between(op, &left.data_type, &right.data_type, span, expr.short()).ok_or_else(|| {
        let hint = arithmetic::hint(&left.data_type, &right.data_type);
        let message = format!(
            "{expr} needs {} {op} {}, which is not supported{hint}",
            left.data_type,
            right.data_type,
            expr = expr.short()
        );
        refused(expr, message)
    })
}

fn comparison(expr: &Expr, left: &Operand<'_>, right: &Operand<'_>) -> Result<Comparison> {
    let (left, right) = (&left.data_type, &right.data_type);
    Comparison::between(left, right).ok_or_else(|| {
        let hint = match (Kind::of(value_type(left)), Kind::of(value_type(right))) {
            (Kind::Timestamp { .. }, Kind::Timestamp { .. }) => ": give both a time zone or none".to_owned(),
            (Kind::Other | Kind::Interval, _) | (_, Kind::Other | Kind::Interval) => String::new(),
            (Kind::Text, _) | (_, Kind::Text) => constant::text_hint(expr, left, right),
            _ => "; cast one of them".to_owned(),
        };
        refused(expr, format!("{expr} compares {left} with {right}, which is not supported{hint}", expr = expr.short()))
    })
}

/// A plan error, with the place of the expression in the SQL text that it was read from.
fn refused(expr: &Expr, message: String) -> Error {
    match expr.at() {
        Some(at) => at.error(message),
        None => Error::Plan(message),
    }
}
