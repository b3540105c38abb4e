//! Binding: names become columns, types are checked, and each operation is chosen.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, SchemaRef};

use super::arithmetic::Arithmetic;
use super::compare::Comparison;
use super::kind::{Kind, value_type};
use super::literal::Literal;
use super::predicate::{Node, Predicate};
use super::tree::{ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, MAX_DEPTH, Side};
use crate::build::{names, position};
use crate::error::{Result, plan_err};

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
    /// let text = "Plan error: build.v < probe.name compares Int64 with Utf8, which do not compare";
    /// assert_eq!(error.to_string(), text);
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a column that is not there or not unique, for operands whose types do
    /// not compare or compute, for an expression that is not Boolean where it must be, and for a tree deeper than
    /// [`MAX_DEPTH`].
    pub fn bind(&self, build: &SchemaRef, probe: &SchemaRef) -> Result<Predicate> {
        let depth = self.depth();
        if depth > MAX_DEPTH {
            return plan_err!(
                "the predicate has {depth} levels, at most {MAX_DEPTH} are supported; use fewer in each other"
            );
        }
        let mut binder = Binder { build, probe, columns: Vec::new(), types: Vec::new() };
        let root = binder.boolean(self)?;
        Ok(Predicate { expr: self.clone(), root, columns: binder.columns, types: binder.types })
    }
}

/// A bound expression and the type it gives.
struct Bound {
    node: Node,
    data_type: DataType,
}

struct Binder<'a> {
    build: &'a SchemaRef,
    probe: &'a SchemaRef,
    columns: Vec<(Side, usize)>,
    types: Vec<DataType>,
}

impl Binder<'_> {
    fn bind(&mut self, expr: &Expr) -> Result<Bound> {
        let node = match expr {
            Expr::Column(column) => return self.column(column),
            Expr::Literal(literal) => return Ok(constant(literal.to_array()?)),
            Expr::Compare { op, left, right } => self.compare(expr, *op, left, right)?,
            Expr::Arithmetic { op, left, right } => return self.arithmetic(expr, *op, left, right),
            Expr::And(all) => Node::And(all.iter().map(|expr| self.boolean(expr)).collect::<Result<_>>()?),
            Expr::Or(any) => Node::Or(any.iter().map(|expr| self.boolean(expr)).collect::<Result<_>>()?),
            Expr::Not(inner) => Node::Not(Box::new(self.boolean(inner)?)),
            Expr::IsNull(inner) => Node::IsNull(Box::new(self.bind(inner)?.node)),
        };
        Ok(Bound { node, data_type: DataType::Boolean })
    }

    fn column(&mut self, column: &ColumnRef) -> Result<Bound> {
        let schema = if column.side == Side::Build { self.build } else { self.probe };
        let position = match &column.id {
            ColumnId::Name(name) => position(schema, name, &column.side.to_string())?,
            ColumnId::Position(position) if *position < schema.fields().len() => *position,
            ColumnId::Position(position) => {
                return plan_err!(
                    "the {} side has no column at position {position}; its {} columns are {}",
                    column.side,
                    schema.fields().len(),
                    names(schema)
                );
            }
        };
        let wanted = (column.side, position);
        let data_type = schema.field(position).data_type().clone();
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
            _ => plan_err!("a condition must be Boolean, {expr} has type {}", bound.data_type),
        }
    }

    fn compare(&mut self, expr: &Expr, op: CompareOp, left: &Expr, right: &Expr) -> Result<Node> {
        let (l, r) = self.pair(left, right, Literal::to_array_beside)?;
        let Some(comparison) = Comparison::between(&l.data_type, &r.data_type) else {
            let hint = match (Kind::of(value_type(&l.data_type)), Kind::of(value_type(&r.data_type))) {
                (Kind::Timestamp { .. }, Kind::Timestamp { .. }) => ": give both a time zone or none",
                _ => "",
            };
            return plan_err!("{expr} compares {} with {}, which do not compare{hint}", l.data_type, r.data_type);
        };
        Ok(Node::Compare { op, comparison, left: Box::new(l.node), right: Box::new(r.node) })
    }

    fn arithmetic(&mut self, expr: &Expr, op: ArithmeticOp, left: &Expr, right: &Expr) -> Result<Bound> {
        // A float literal stays one beside an integer: `/ 2.0` is no integer division.
        let (l, r) = self.pair(left, right, |literal, other| match literal {
            Literal::Float(_) if other.is_integer() => literal.to_array(),
            _ => literal.to_array_beside(other),
        })?;
        match Arithmetic::between(op, &l.data_type, &r.data_type, expr.to_string()) {
            Some((arithmetic, data_type)) => Ok(Bound {
                node: Node::Arithmetic { arithmetic, left: Box::new(l.node), right: Box::new(r.node) },
                data_type,
            }),
            None => plan_err!("{expr} needs {} {op} {}, which is not supported", l.data_type, r.data_type),
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
                let right = self.bind(right)?;
                Ok((constant(beside(literal, value_type(&right.data_type))?), right))
            }
            (_, Expr::Literal(literal)) => {
                let left = self.bind(left)?;
                let right = constant(beside(literal, value_type(&left.data_type))?);
                Ok((left, right))
            }
            _ => Ok((self.bind(left)?, self.bind(right)?)),
        }
    }
}

fn constant(array: ArrayRef) -> Bound {
    Bound { data_type: array.data_type().clone(), node: Node::Constant(array) }
}
