//! Binding: names become columns, types are checked, and each operation is chosen.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, SchemaRef};

use super::arithmetic::{self, Arithmetic};
use super::cast::Cast;
use super::compare::Comparison;
use super::in_list::InList;
use super::kind::{Kind, value_type};
use super::literal::Literal;
use super::position::located;
use super::predicate::{Node, Predicate};
use super::tree::{ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, MAX_DEPTH, Side};
use crate::columns::{names, position};
use crate::error::{Error, Result, plan_err};

impl Expr {
    /// Checks the expression against the schemas of both sides and fixes how it is evaluated.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_schema::{DataType, Field, Schema};
    /// use prejoin::expr::{build, probe};
    ///
    /// let users = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]));
    /// let events = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
    /// let error = build("v").lt(probe("name")).bind(&users, &events).unwrap_err();
    /// let text = "Plan error: build.v < probe.name compares Int64 with Utf8, which do not compare; cast one of them";
    /// assert_eq!(error.to_string(), text);
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a column that is not there or not unique, for operands whose types do
    /// not compare or compute, for an expression that is not Boolean where it must be, and for a tree deeper than
    /// [`MAX_DEPTH`].
    pub fn bind(&self, build: &SchemaRef, probe: &SchemaRef) -> Result<Predicate> {
        let sides = Sides { build, probe };
        self.bind_with(&mut |column| sides.find(column))
    }

    /// [`bind`](Self::bind) where `find` says which column of which side is meant, and its type.
    pub(crate) fn bind_with(&self, find: &mut Find<'_>) -> Result<Predicate> {
        let depth = self.depth();
        if depth > MAX_DEPTH {
            return plan_err!(
                "the predicate has {depth} levels, at most {MAX_DEPTH} are supported; use fewer in each other"
            );
        }
        let mut binder = Binder { find, columns: Vec::new(), types: Vec::new() };
        let root = binder.boolean(self)?;
        Ok(Predicate { expr: self.clone(), root, columns: binder.columns, types: binder.types })
    }
}

/// A bound expression and the type it gives.
struct Bound {
    node: Node,
    data_type: DataType,
}

/// Finds the column that an expression names.
pub(crate) type Find<'a> = dyn FnMut(&ColumnRef) -> Result<(Side, usize, DataType)> + 'a;

struct Binder<'a, 'b> {
    find: &'a mut Find<'b>,
    columns: Vec<(Side, usize)>,
    types: Vec<DataType>,
}

/// The two sides of an ordinary join.
struct Sides<'a> {
    build: &'a SchemaRef,
    probe: &'a SchemaRef,
}

impl Binder<'_, '_> {
    fn bind(&mut self, expr: &Expr) -> Result<Bound> {
        let node = match expr {
            Expr::Column(column) => return located(self.column(column), column.at.as_ref()),
            Expr::Literal(literal) => return Ok(constant(literal.to_array()?)),
            Expr::Compare { op, left, right } => self.compare(expr, *op, left, right)?,
            Expr::Arithmetic { op, left, right } => return self.arithmetic(expr, *op, left, right),
            Expr::And(all) => Node::And(all.iter().map(|expr| self.boolean(expr)).collect::<Result<_>>()?),
            Expr::Or(any) => Node::Or(any.iter().map(|expr| self.boolean(expr)).collect::<Result<_>>()?),
            Expr::Not(inner) => Node::Not(Box::new(self.boolean(inner)?)),
            Expr::IsNull(inner) => Node::IsNull(Box::new(self.bind(inner)?.node)),
            Expr::IsTrue(inner) => Node::Is(true, Box::new(self.boolean(inner)?)),
            Expr::IsFalse(inner) => Node::Is(false, Box::new(self.boolean(inner)?)),
            Expr::Negate(inner) => {
                let Bound { node, data_type } = self.bind(inner)?;
                return match arithmetic::negated(value_type(&data_type)) {
                    Some(to) => Ok(Bound {
                        node: Node::Negate { value: Box::new(node), to: to.clone(), text: expr.short() },
                        data_type: to,
                    }),
                    None => Err(refused(
                        expr,
                        format!(
                            "{expr} needs the negative of {data_type}, which is not supported",
                            expr = expr.short()
                        ),
                    )),
                };
            }
            Expr::In { value, list } => self.in_list(expr, value, list)?,
            Expr::Between { value, low, high } => self.between(expr, value, low, high)?,
            Expr::Like { value, pattern, ignore_case } => {
                let (value, pattern) = (self.bind(value)?, self.bind(pattern)?);
                for operand in [&value, &pattern] {
                    if !matches!(Kind::of(value_type(&operand.data_type)), Kind::Text | Kind::Null) {
                        return Err(refused(
                            expr,
                            format!("{expr} matches text, {} was found", operand.data_type, expr = expr.short()),
                        ));
                    }
                }
                let (value, pattern) = (Box::new(value.node), Box::new(pattern.node));
                Node::Like { value, pattern, ignore_case: *ignore_case }
            }
            Expr::Cast { value, to, or_null } => {
                let Bound { node, data_type } = self.bind(value)?;
                let cast = match Cast::new(value_type(&data_type), to, *or_null, expr) {
                    Ok(cast) => cast,
                    Err(reason) => {
                        return Err(refused(
                            expr,
                            format!("{expr} casts {data_type} to {to}, {reason}", expr = expr.short()),
                        ));
                    }
                };
                return Ok(Bound { node: Node::Cast { cast, value: Box::new(node) }, data_type: to.clone() });
            }
        };
        Ok(Bound { node, data_type: DataType::Boolean })
    }

    fn column(&mut self, column: &ColumnRef) -> Result<Bound> {
        let (side, position, data_type) = (self.find)(column)?;
        let wanted = (side, position);
        let index = self.columns.iter().position(|known| *known == wanted).unwrap_or_else(|| {
            self.columns.push(wanted);
            self.types.push(data_type.clone());
            self.columns.len() - 1
        });
        Ok(Bound { node: Node::Column(index), data_type })
    }

    /// An expression where a condition must stand.
    fn boolean(&mut self, expr: &Expr) -> Result<Node> {
        let bound = self.bind(expr)?;
        match Kind::of(value_type(&bound.data_type)) {
            Kind::Boolean | Kind::Null => Ok(bound.node),
            _ => Err(refused(
                expr,
                format!("a condition must be Boolean, {expr} has type {}", bound.data_type, expr = expr.short()),
            )),
        }
    }

    fn compare(&mut self, expr: &Expr, op: CompareOp, left: &Expr, right: &Expr) -> Result<Node> {
        let (l, r) = self.pair(left, right, Literal::to_array_beside)?;
        let comparison = comparison(expr, &l.data_type, &r.data_type)?;
        Ok(Node::Compare { op, comparison, left: Box::new(l.node), right: Box::new(r.node) })
    }

    /// The value is bound and evaluated once, whatever it holds.
    fn between(&mut self, expr: &Expr, value: &Expr, low: &Expr, high: &Expr) -> Result<Node> {
        if let Expr::Literal(_) = value {
            let low = self.compare(expr, CompareOp::Ge, value, low)?;
            return Ok(Node::And(vec![low, self.compare(expr, CompareOp::Le, value, high)?]));
        }
        let value = self.bind(value)?;
        let mut end = |end| -> Result<(Comparison, Box<Node>)> {
            let end = self.beside(end, &value.data_type)?;
            Ok((comparison(expr, &value.data_type, &end.data_type)?, Box::new(end.node)))
        };
        let (low, high) = (end(low)?, end(high)?);
        Ok(Node::Between { value: Box::new(value.node), low, high })
    }

    fn in_list(&mut self, expr: &Expr, value: &Expr, list: &[Expr]) -> Result<Node> {
        let value = self.bind(value)?;
        // Half floats have no literals of their own.
        let data_type = match value_type(&value.data_type) {
            DataType::Float16 => DataType::Float64,
            plain => plain.clone(),
        };
        let (mut constants, mut others) = (Vec::new(), Vec::new());
        for item in list {
            let bound = self.beside(item, &data_type)?;
            let comparison = comparison(expr, &data_type, &bound.data_type)?;
            match bound.node {
                Node::Constant(array) => constants.push(array),
                node => others.push((comparison, node)),
            }
        }
        if list.is_empty() {
            return Ok(Node::Or(Vec::new()));
        }
        let constants = InList::new(&data_type, &constants)?;
        Ok(Node::In { value: Box::new(value.node), constants, others })
    }

    fn arithmetic(&mut self, expr: &Expr, op: ArithmeticOp, left: &Expr, right: &Expr) -> Result<Bound> {
        let (l, r) = self.pair(left, right, arithmetic::beside)?;
        let span = arithmetic::Span::of(left, &l.data_type).max(arithmetic::Span::of(right, &r.data_type));
        match Arithmetic::between(op, &l.data_type, &r.data_type, span, expr.short()) {
            Some((arithmetic, data_type)) => Ok(Bound {
                node: Node::Arithmetic { arithmetic, left: Box::new(l.node), right: Box::new(r.node) },
                data_type,
            }),
            None => {
                let hint = arithmetic::hint(&l.data_type, &r.data_type);
                let message = format!(
                    "{expr} needs {} {op} {}, which is not supported{hint}",
                    l.data_type,
                    r.data_type,
                    expr = expr.short()
                );
                Err(refused(expr, message))
            }
        }
    }

    /// Both operands; a literal takes on the type of the other one through `beside`.
    fn pair(
        &mut self,
        left: &Expr,
        right: &Expr,
        beside: impl Fn(&Literal, &DataType) -> Result<ArrayRef>,
    ) -> Result<(Bound, Bound)> {
        match (left, right) {
            (Expr::Literal(literal), _) => {
                let bound = self.bind(right)?;
                let array = located(beside(literal, value_type(&bound.data_type)), right.at())?;
                Ok((constant(array), bound))
            }
            (_, Expr::Literal(literal)) => {
                let bound = self.bind(left)?;
                let array = located(beside(literal, value_type(&bound.data_type)), left.at())?;
                Ok((bound, constant(array)))
            }
            _ => Ok((self.bind(left)?, self.bind(right)?)),
        }
    }

    /// An operand that is compared with a value of type `other`.
    fn beside(&mut self, expr: &Expr, other: &DataType) -> Result<Bound> {
        match expr {
            Expr::Literal(literal) => literal.to_array_beside(value_type(other)).map(constant),
            _ => self.bind(expr),
        }
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
            ColumnId::Name(name) => position(schema, name, &side.to_string())?,
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

    /// The side that alone has a column of this name.
    fn side_of(&self, id: &ColumnId) -> Result<Side> {
        let ColumnId::Name(name) = id else { return plan_err!("a column by position needs its side, build or probe") };
        let has = |schema: &SchemaRef| schema.fields().iter().any(|field| field.name() == name);
        match (has(self.build), has(self.probe)) {
            (true, false) => Ok(Side::Build),
            (false, true) => Ok(Side::Probe),
            (true, true) => {
                let column = |side| ColumnRef { side: Some(side), id: id.clone(), at: None };
                let (build, probe) = (column(Side::Build), column(Side::Probe));
                plan_err!("both sides have a column {name:?}; write {build} or {probe}")
            }
            (false, false) => plan_err!(
                "no side has a column {name:?}; the columns of build are {}, those of probe {}",
                names(self.build),
                names(self.probe)
            ),
        }
    }
}

fn comparison(expr: &Expr, left: &DataType, right: &DataType) -> Result<Comparison> {
    Comparison::between(left, right).ok_or_else(|| {
        let hint = match (Kind::of(value_type(left)), Kind::of(value_type(right))) {
            (Kind::Timestamp { .. }, Kind::Timestamp { .. }) => ": give both a time zone or none",
            (Kind::Other | Kind::Interval, _) | (_, Kind::Other | Kind::Interval) => "",
            _ => "; cast one of them",
        };
        refused(expr, format!("{expr} compares {left} with {right}, which do not compare{hint}", expr = expr.short()))
    })
}

/// A plan error, with the place of the expression where it came from a text.
fn refused(expr: &Expr, message: String) -> Error {
    match expr.at() {
        Some(at) => at.error(message),
        None => Error::Plan(message),
    }
}

fn constant(array: ArrayRef) -> Bound {
    Bound { data_type: array.data_type().clone(), node: Node::Constant(array) }
}
