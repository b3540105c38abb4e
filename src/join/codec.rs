//! A join as bytes, for sending its description elsewhere.
//!
//! Layout, all numbers little-endian: the magic, a version byte, both sides (schema as an Arrow IPC message, what the
//! source declared), then the fields of the join in the order of [`write_join`]. A list is its length, then its items;
//! an option is a byte 0, or 1 and the value. Key and output columns are written as they were given, by name or position.

use std::sync::Arc;

use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};

use super::join_type::{JoinType, PartitionMode};
use super::validate::Validate;
use crate::columns::{decode_schema, encode_schema};
use crate::error::{Error, Result, not_supported, plan_err};
use crate::expr::{self, ArithmeticOp, ColumnId, ColumnRef, CompareOp, Expr, Literal, MAX_DEPTH, Side};
use crate::prepare::NullEquality;
use crate::run::{HashJoin, ProjectedColumn, Source};

const MAGIC: &[u8] = b"prejoin.HashJoin";
const VERSION: u8 = 2;

/// Of an expression by itself.
#[cfg(feature = "python")]
const EXPR_VERSION: u8 = 1;

impl HashJoin {
    /// The join as bytes: everything that describes it, and of its sources the schemas and what they declare. A dynamic
    /// filter is an object of its run and stays behind.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if a prepared build is attached, or a schema is one that Arrow IPC does not carry;
    /// [`Error::Plan`] if the join is not valid.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.prepared_build().is_some() {
            return not_supported!(
                "a join with an attached prepared build is not serialized: the rows and their index stay where they \
                 are; serialize the join before attaching, and attach a prepared build of the receiver"
            );
        }
        self.check()?;
        let mut out = [MAGIC, &[VERSION]].concat();
        write_join(self, &mut out)?;
        Ok(out)
    }

    /// The join that [`to_bytes`](Self::to_bytes) wrote. Its sources have schemas only: give it others that open rows.
    ///
    /// # Errors
    /// [`Error::Plan`] for bytes that are no join of this version, or describe one that is not valid.
    pub fn from_bytes(bytes: &[u8]) -> Result<HashJoin> {
        let Some(bytes) = bytes.strip_prefix(MAGIC) else {
            return plan_err!("these bytes are no serialized HashJoin: they do not begin with its magic");
        };
        match bytes.split_first() {
            Some((&VERSION, bytes)) => {
                let mut input = Reader(bytes);
                let join = read_join(&mut input)?;
                if input.0.is_empty() { Ok(join) } else { Err(damaged("bytes follow its end")) }
            }
            Some((version, _)) => {
                plan_err!("this HashJoin was serialized as version {version}, this prejoin reads version {VERSION}")
            }
            None => Err(damaged("it ends early")),
        }
    }
}

impl Expr {
    /// The expression as bytes, in the form that a serialized join holds.
    #[cfg(feature = "python")]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![EXPR_VERSION];
        write_expr(self, &mut out);
        out
    }

    /// The expression that [`to_bytes`](Self::to_bytes) wrote.
    #[cfg(feature = "python")]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Expr> {
        let mut input = Reader(bytes);
        match input.byte()? {
            EXPR_VERSION => (),
            version => {
                return plan_err!(
                    "this expression was serialized as version {version}, this prejoin reads version {EXPR_VERSION}"
                );
            }
        }
        let expr = input.expr(MAX_DEPTH)?;
        if input.0.is_empty() { Ok(expr) } else { Err(damaged("bytes follow its end")) }
    }
}

fn damaged(what: &str) -> Error {
    Error::Plan(format!("these bytes are no serialized HashJoin: {what}; they were damaged or are something else"))
}

/// The tags of a fieldless enum are its positions in this list; append only.
macro_rules! tags {
    ($($name:ident: $type:ty = [$($value:expr),* $(,)?];)*) => { $(
        const $name: &[$type] = &[$($value),*];
    )* };
}
tags! {
    JOIN_TYPES: JoinType = [
        JoinType::Inner, JoinType::ProbeOuter, JoinType::BuildOuter, JoinType::FullOuter, JoinType::ProbeSemi,
        JoinType::ProbeAnti, JoinType::ProbeMark, JoinType::BuildSemi, JoinType::BuildAnti,
    ];
    MODES: PartitionMode = [PartitionMode::CollectLeft, PartitionMode::Partitioned];
    NULL_EQUALITIES: NullEquality = [NullEquality::NullEqualsNothing, NullEquality::NullEqualsNull];
    BOOLS: bool = [false, true];
    VALIDATIONS: Validate = [
        Validate::ManyToMany, Validate::OneToOne, Validate::OneToMany, Validate::ManyToOne,
    ];
    SIDES: Option<Side> = [Some(Side::Build), Some(Side::Probe), None];
    COMPARE_OPS: CompareOp = [
        CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge,
        CompareOp::Distinct, CompareOp::NotDistinct,
    ];
    ARITHMETIC_OPS: ArithmeticOp = [
        ArithmeticOp::Add, ArithmeticOp::Sub, ArithmeticOp::Mul, ArithmeticOp::Div, ArithmeticOp::Rem,
    ];
    TIME_UNITS: TimeUnit = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
}

fn write_join(join: &HashJoin, out: &mut Vec<u8>) -> Result<()> {
    write_source(join.build_source(), out)?;
    write_source(join.probe_source(), out)?;
    let (build, probe) = (join.build_source().schema(), join.probe_source().schema());
    write_list(&join.given_on(build, probe), out, |(build, probe), out| {
        write_column(build, out);
        write_column(probe, out);
    });
    write_tag(JOIN_TYPES, join.join_type, out);
    write_list(&join.null_equality, out, |&null_equality, out| write_tag(NULL_EQUALITIES, null_equality, out));
    write_option(join.filter.as_ref(), out, write_expr);
    write_option(join.given_projection(build, probe), out, |columns, out| write_list(&columns, out, write_projected));
    write_option(join.limit, out, write_len);
    write_tag(MODES, join.mode, out);
    write_tag(BOOLS, join.null_aware, out);
    write_tag(BOOLS, join.coalesce, out);
    write_option(join.names.as_ref(), out, |names, out| {
        write_list(names, out, |name, out| write_bytes(name.as_bytes(), out))
    });
    write_tag(VALIDATIONS, join.validate, out);
    Ok(())
}

fn read_join(input: &mut Reader<'_>) -> Result<HashJoin> {
    let (build, probe) = (input.source()?, input.source()?);
    let mut join = HashJoin::builder(build, probe)
        .on(input.list(|input| Ok((input.column()?, input.column()?)))?)
        .join_type(input.tag(JOIN_TYPES)?)
        .null_equalities(input.list(|input| input.tag(NULL_EQUALITIES))?)
        .filter(input.option(|input| input.expr(MAX_DEPTH))?)
        .projected(input.option(|input| input.list(Reader::projected))?)
        .limit(input.option(Reader::len)?)
        .mode(input.tag(MODES)?)
        .null_aware(input.tag(BOOLS)?)
        .build()?;
    join.coalesce = input.tag(BOOLS)?;
    join.names = input.option(|input| input.list(Reader::text))?;
    join.validate = input.tag(VALIDATIONS)?;
    join.check()?;
    Ok(join)
}

fn write_source(source: &Source, out: &mut Vec<u8>) -> Result<()> {
    let schema = source.schema();
    // What IPC leaves out, such as a dictionary of dictionaries, must not get lost in silence.
    let Some(message) = encode_schema(schema) else {
        return not_supported!(
            "Arrow IPC does not carry a schema of this join, so the join is not serialized: {schema}"
        );
    };
    write_bytes(&message, out);
    write_list(source.ordering(), out, |&column, out| write_len(column, out));
    write_list(source.equal_columns(), out, write_pair);
    Ok(())
}

fn write_column(id: &ColumnId, out: &mut Vec<u8>) {
    match id {
        ColumnId::Name(name) => write_option(Some(name.as_bytes()), out, write_bytes),
        ColumnId::Position(position) => {
            write_option(None, out, write_bytes);
            write_len(*position, out);
        }
    }
}

fn write_projected(column: &ProjectedColumn, out: &mut Vec<u8>) {
    match column {
        ProjectedColumn::Position(position) => {
            out.push(0);
            write_len(*position, out);
        }
        ProjectedColumn::Build(name) => {
            out.push(1);
            write_bytes(name.as_bytes(), out);
        }
        ProjectedColumn::Probe(name) => {
            out.push(2);
            write_bytes(name.as_bytes(), out);
        }
        ProjectedColumn::Mark => out.push(3),
    }
}

/// What is still to be written of an expression.
enum Piece<'a> {
    Expr(&'a Expr),
    /// Expressions after their number.
    List(&'a [Expr]),
    Flag(bool),
    Type(&'a DataType),
}

/// Parents come first. What follows is a list and no calls, so that depth costs no stack.
fn write_expr(root: &Expr, out: &mut Vec<u8>) {
    use Piece::{Expr as One, Flag, List, Type};
    let mut todo = vec![One(root)];
    while let Some(piece) = todo.pop() {
        let expr = match piece {
            One(expr) => expr,
            List(exprs) => {
                write_len(exprs.len(), out);
                todo.extend(exprs.iter().rev().map(One));
                continue;
            }
            Flag(flag) => {
                write_tag(BOOLS, flag, out);
                continue;
            }
            Type(data_type) => {
                write_bytes(expr::type_name(data_type).as_bytes(), out);
                continue;
            }
        };
        // The last one first.
        match expr {
            Expr::Column(ColumnRef { side, id, at: _ }) => {
                out.push(0);
                write_tag(SIDES, *side, out);
                write_column(id, out);
            }
            Expr::Literal(literal) => {
                out.push(1);
                write_literal(literal, out);
            }
            Expr::Compare { op, left, right } => {
                out.push(2);
                write_tag(COMPARE_OPS, *op, out);
                todo.extend([One(right), One(left)]);
            }
            Expr::Arithmetic { op, left, right } => {
                out.push(3);
                write_tag(ARITHMETIC_OPS, *op, out);
                todo.extend([One(right), One(left)]);
            }
            Expr::And(children) => {
                out.push(4);
                todo.push(List(children));
            }
            Expr::Or(children) => {
                out.push(5);
                todo.push(List(children));
            }
            Expr::Not(child) => {
                out.push(6);
                todo.push(One(child));
            }
            Expr::IsNull(child) => {
                out.push(7);
                todo.push(One(child));
            }
            Expr::IsTrue(child) => {
                out.push(8);
                todo.push(One(child));
            }
            Expr::IsFalse(child) => {
                out.push(9);
                todo.push(One(child));
            }
            Expr::Negate(child) => {
                out.push(10);
                todo.push(One(child));
            }
            Expr::In { value, list } => {
                out.push(11);
                todo.extend([List(list), One(value)]);
            }
            Expr::Between { value, low, high } => {
                out.push(12);
                todo.extend([One(high), One(low), One(value)]);
            }
            Expr::Like { value, pattern, ignore_case } => {
                out.push(13);
                todo.extend([Flag(*ignore_case), One(pattern), One(value)]);
            }
            Expr::Cast { value, to, or_null } => {
                out.push(14);
                todo.extend([Flag(*or_null), Type(to), One(value)]);
            }
        }
    }
}

fn write_literal(literal: &Literal, out: &mut Vec<u8>) {
    match literal {
        Literal::Null => out.push(0),
        Literal::Boolean(value) => {
            out.push(1);
            write_tag(BOOLS, *value, out);
        }
        Literal::Integer(value) => {
            out.push(2);
            out.extend(value.to_le_bytes());
        }
        Literal::Float(value) => {
            out.push(3);
            out.extend(value.to_le_bytes());
        }
        Literal::Decimal { value, scale } => {
            out.push(4);
            out.extend(value.to_le_bytes());
            out.extend(scale.to_le_bytes());
        }
        Literal::Text(text) => {
            out.push(5);
            write_bytes(text.as_bytes(), out);
        }
        Literal::Binary(bytes) => {
            out.push(6);
            write_bytes(bytes, out);
        }
        Literal::Date(days) => {
            out.push(7);
            out.extend(days.to_le_bytes());
        }
        Literal::Time { value, unit } => {
            out.push(8);
            write_instant(*value, *unit, out);
        }
        Literal::Timestamp { value, unit, zone } => {
            out.push(9);
            write_instant(*value, *unit, out);
            write_option(zone.as_deref(), out, |zone, out| write_bytes(zone.as_bytes(), out));
        }
        Literal::Duration { value, unit } => {
            out.push(10);
            write_instant(*value, *unit, out);
        }
        Literal::Interval { months, days, nanos } => {
            out.push(11);
            out.extend(months.to_le_bytes());
            out.extend(days.to_le_bytes());
            out.extend(nanos.to_le_bytes());
        }
    }
}

fn write_instant(value: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    out.extend(value.to_le_bytes());
    write_tag(TIME_UNITS, unit, out);
}

fn write_tag<T: PartialEq>(values: &[T], value: T, out: &mut Vec<u8>) {
    let tag = values.iter().position(|other| *other == value);
    debug_assert!(tag.is_some());
    // Reading refuses a tag that is in no list.
    out.push(tag.and_then(|tag| u8::try_from(tag).ok()).unwrap_or(u8::MAX));
}

fn write_len(len: usize, out: &mut Vec<u8>) {
    out.extend((len as u64).to_le_bytes());
}

fn write_pair(&(a, b): &(usize, usize), out: &mut Vec<u8>) {
    write_len(a, out);
    write_len(b, out);
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_len(bytes.len(), out);
    out.extend(bytes);
}

fn write_list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    write_len(items.len(), out);
    items.iter().for_each(|item| write(item, out));
}

fn write_option<T>(value: Option<T>, out: &mut Vec<u8>, write: impl Fn(T, &mut Vec<u8>)) {
    write_tag(BOOLS, value.is_some(), out);
    if let Some(value) = value {
        write(value, out);
    }
}

/// An expression whose operands are being read.
struct Open {
    tag: u8,
    compare: Option<CompareOp>,
    arithmetic: Option<ArithmeticOp>,
    /// How many operands it has.
    wanted: usize,
    operands: Vec<Expr>,
}

enum Begun {
    Done(Expr),
    Open(Open),
}

/// What is left to read. Nothing is allocated for a length that was only claimed.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(|| damaged("it ends early"))?;
        self.0 = rest;
        Ok(*array)
    }

    fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    fn tag<T: Copy>(&mut self, values: &[T]) -> Result<T> {
        let tag = self.byte()?;
        values.get(usize::from(tag)).copied().ok_or_else(|| damaged("it holds an unknown choice"))
    }

    fn len(&mut self) -> Result<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| damaged("it holds too large a number"))
    }

    fn pair(&mut self) -> Result<(usize, usize)> {
        Ok((self.len()?, self.len()?))
    }

    fn column(&mut self) -> Result<ColumnId> {
        Ok(match self.option(Self::text)? {
            Some(name) => ColumnId::Name(name),
            None => ColumnId::Position(self.len()?),
        })
    }

    fn projected(&mut self) -> Result<ProjectedColumn> {
        Ok(match self.byte()? {
            0 => ProjectedColumn::Position(self.len()?),
            1 => ProjectedColumn::Build(self.text()?),
            2 => ProjectedColumn::Probe(self.text()?),
            3 => ProjectedColumn::Mark,
            _ => return Err(damaged("it holds an unknown choice")),
        })
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.len()?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or_else(|| damaged("it ends early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<String> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| damaged("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let len = self.len()?;
        let mut items = Vec::new();
        for _ in 0..len {
            items.push(read(self)?);
        }
        Ok(items)
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.tag(BOOLS)? { read(self).map(Some) } else { Ok(None) }
    }

    fn source(&mut self) -> Result<Source> {
        let schema = decode_schema(self.bytes()?).ok_or_else(|| damaged("a schema is not readable"))?;
        let source = Source::schema_only(schema);
        let (ordering, equal) = (self.list(Self::len)?, self.list(Self::pair)?);
        Ok(source.with_ordering(ordering).with_equal_columns(equal))
    }

    /// An expression of at most `depth` levels. Those whose operands are still to come are a list and no calls.
    fn expr(&mut self, depth: usize) -> Result<Expr> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            if open.len() >= depth {
                return Err(damaged("its predicate is nested too deeply"));
            }
            let mut begun = self.begin()?;
            loop {
                // An expression is done with its last operand, and is then an operand itself.
                let done = match begun {
                    Begun::Done(expr) => expr,
                    Begun::Open(parent) if parent.wanted > parent.operands.len() => {
                        open.push(parent);
                        break;
                    }
                    Begun::Open(parent) => self.finish(parent)?,
                };
                let Some(mut parent) = open.pop() else { return Ok(done) };
                parent.operands.push(done);
                if (parent.tag, parent.operands.len()) == (11, 1) {
                    parent.wanted = self.len()?.saturating_add(1);
                }
                begun = Begun::Open(parent);
            }
        }
    }

    /// What stands before the operands of an expression.
    fn begin(&mut self) -> Result<Begun> {
        let mut open = Open { tag: self.byte()?, compare: None, arithmetic: None, wanted: 0, operands: Vec::new() };
        open.wanted = match open.tag {
            0 => {
                let side = self.tag(SIDES)?;
                return Ok(Begun::Done(Expr::Column(ColumnRef { side, id: self.column()?, at: None })));
            }
            1 => return Ok(Begun::Done(Expr::Literal(self.literal()?))),
            2 => {
                open.compare = Some(self.tag(COMPARE_OPS)?);
                2
            }
            3 => {
                open.arithmetic = Some(self.tag(ARITHMETIC_OPS)?);
                2
            }
            4 | 5 => self.len()?,
            6..=11 | 14 => 1,
            12 => 3,
            13 => 2,
            _ => return Err(damaged("its predicate holds an unknown node")),
        };
        Ok(Begun::Open(open))
    }

    /// An expression of its operands, and what stands after them.
    fn finish(&mut self, open: Open) -> Result<Expr> {
        let Open { tag, compare, arithmetic, wanted: _, operands } = open;
        if let 4 | 5 = tag {
            return Ok(if tag == 4 { Expr::And(operands) } else { Expr::Or(operands) });
        }
        let mut operands = operands.into_iter();
        let mut operand = || operands.next().ok_or_else(|| damaged("an operand is missing"));
        let first = operand()?;
        Ok(match (tag, compare, arithmetic) {
            (_, Some(op), _) => first.compare(op, operand()?),
            (_, _, Some(op)) => first.arithmetic(op, operand()?),
            (6, ..) => first.not(),
            (7, ..) => first.is_null(),
            (8, ..) => first.is_true(),
            (9, ..) => first.is_false(),
            (10, ..) => -first,
            (11, ..) => first.is_in(operands),
            (12, ..) => first.between(operand()?, operand()?),
            (13, ..) => {
                let (value, pattern) = (Box::new(first), Box::new(operand()?));
                Expr::Like { value, pattern, ignore_case: self.tag(BOOLS)? }
            }
            _ => {
                let (value, name) = (Box::new(first), self.text()?);
                let to = expr::type_named(&name).ok_or_else(|| damaged("it casts to an unknown type"))?;
                Expr::Cast { value, to, or_null: self.tag(BOOLS)? }
            }
        })
    }

    fn literal(&mut self) -> Result<Literal> {
        Ok(match self.byte()? {
            0 => Literal::Null,
            1 => Literal::Boolean(self.tag(BOOLS)?),
            2 => Literal::Integer(i128::from_le_bytes(self.array()?)),
            3 => Literal::Float(f64::from_le_bytes(self.array()?)),
            4 => {
                Literal::Decimal { value: i256::from_le_bytes(self.array()?), scale: i8::from_le_bytes(self.array()?) }
            }
            5 => Literal::Text(self.text()?),
            6 => Literal::Binary(self.bytes()?.to_vec()),
            7 => Literal::Date(i32::from_le_bytes(self.array()?)),
            8 => {
                let (value, unit) = self.instant()?;
                Literal::Time { value, unit }
            }
            9 => {
                let (value, unit) = self.instant()?;
                Literal::Timestamp { value, unit, zone: self.option(Self::text)?.map(Arc::from) }
            }
            10 => {
                let (value, unit) = self.instant()?;
                Literal::Duration { value, unit }
            }
            11 => Literal::Interval {
                months: i32::from_le_bytes(self.array()?),
                days: i32::from_le_bytes(self.array()?),
                nanos: i64::from_le_bytes(self.array()?),
            },
            _ => return Err(damaged("its predicate holds an unknown literal")),
        })
    }

    fn instant(&mut self) -> Result<(i64, TimeUnit)> {
        Ok((i64::from_le_bytes(self.array()?), self.tag(TIME_UNITS)?))
    }
}
