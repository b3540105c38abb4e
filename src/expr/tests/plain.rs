//! A second, plain evaluation of conditions, row by row, with the columns and constants that it knows.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, TimeUnit};

use crate::error::Result;
use crate::expr::*;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plain {
    /// `raw / 10^scale`
    Number(i128, u32),
    Float(f64),
    Bool(bool),
    Text(&'static str),
    Bytes(&'static [u8]),
    /// `raw / 10^scale` seconds. The first number is the kind: 0 time, 1 duration, 2 timestamp, 3 timestamp with a
    /// zone.
    Clock(u8, i128, u32),
    Days(i32),
}
use Plain::*;

pub(super) fn order(a: Plain, b: Plain) -> Ordering {
    // Every float in the tests, multiplied by this, is a whole number.
    const UNIT: f64 = 1_048_576.0;
    match (a, b) {
        (Number(x, s), Number(y, t)) | (Clock(_, x, s), Clock(_, y, t)) => {
            (x * 10i128.pow(9 - s)).cmp(&(y * 10i128.pow(9 - t)))
        }
        (Float(x), Float(y)) => x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan())),
        (Number(..), Float(y)) if y.is_nan() || y > 1e25 => Ordering::Less,
        (Number(..), Float(y)) if y < -1e25 => Ordering::Greater,
        (Number(x, s), Float(y)) => (x * UNIT as i128).cmp(&((y * UNIT) as i128 * 10i128.pow(s))),
        (Float(_), Number(..)) => order(b, a).reverse(),
        (Bool(x), Bool(y)) => x.cmp(&y),
        (Text(x), Text(y)) => x.cmp(y),
        (Bytes(x), Bytes(y)) => x.cmp(y),
        (Days(x), Days(y)) => x.cmp(&y),
        other => panic!("no order of {other:?}"),
    }
}

pub(super) fn compared(op: CompareOp, left: Option<Plain>, right: Option<Plain>) -> Option<bool> {
    match op {
        CompareOp::Distinct => return compared(CompareOp::NotDistinct, left, right).map(|same| !same),
        CompareOp::NotDistinct => {
            return Some(compared(CompareOp::Eq, left, right).unwrap_or(left.is_none() && right.is_none()));
        }
        _ => (),
    }
    let order = order(left?, right?);
    Some(match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        _ => order.is_ge(),
    })
}

/// The column types of the tests with values for each, in families of types that can be compared with each other.
pub(super) fn families() -> Vec<Vec<(DataType, Vec<Plain>)>> {
    use DataType::*;
    let whole = |values: &[i128], scale| values.iter().map(|&v| Number(v, scale)).collect::<Vec<_>>();
    let clock = |kind, values: &[i128], scale| values.iter().map(|&v| Clock(kind, v, scale)).collect::<Vec<_>>();
    let long = [i64::MIN as i128, -1, 0, 1, 2, 3, 1 << 53, (1 << 53) + 1, i64::MAX as i128];
    let floats = [0.0, -0.0, 0.25, 1.5, -2.25, 2.0, 9007199254740992.0, 9223372036854775808.0, 18446744073709551616.0];
    let edges = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let float: Vec<Plain> = floats.iter().chain(&edges).map(|&v| Float(v)).collect();
    let text = ["", "a", "ab", "b", "é", "longer than twelve bytes"].map(Text).to_vec();
    let bytes: [&[u8]; 4] = [b"", b"\x00\xff", b"ab", b"longer than twelve bytes"];
    let bytes = bytes.map(Bytes).to_vec();
    let dictionary = |values: DataType| Dictionary(Box::new(Int16), Box::new(values));
    let runs =
        RunEndEncoded(Arc::new(Field::new("run_ends", Int32, false)), Arc::new(Field::new("values", Int64, true)));
    let stamp = |unit, zone: Option<&str>| Timestamp(unit, zone.map(Into::into));
    vec![
        vec![
            (Int8, whole(&[-128, -1, 0, 1, 2, 127], 0)),
            (Int32, whole(&[i32::MIN as i128, -1, 0, 2, i32::MAX as i128], 0)),
            (Int64, whole(&long, 0)),
            (UInt8, whole(&[0, 1, 2, 255], 0)),
            (UInt64, whole(&[0, 1, 2, (1 << 53) + 1, i64::MAX as i128, i64::MAX as i128 + 1, u64::MAX as i128], 0)),
            (dictionary(Int64), whole(&long, 0)),
            (runs, whole(&long, 0)),
        ],
        vec![
            (Float32, float.clone()),
            (Float64, [float.clone(), vec![Float(1e300), Float(9007199254740994.0)]].concat()),
        ],
        vec![
            (Decimal32(7, 2), whole(&[-100, 0, 25, 100, 150], 2)),
            (Decimal64(12, 3), whole(&[-1000, 0, 250, 1500, 1501], 3)),
            (Decimal128(20, 2), whole(&[-225, 0, 25, 150, 200, 12_345_678_901_234_567_890], 2)),
            (Decimal256(40, 6), whole(&[-2_250_000, 0, 250_000, 1_500_000, 1_500_001], 6)),
        ],
        vec![(Utf8, text.clone()), (LargeUtf8, text.clone()), (Utf8View, text.clone()), (dictionary(Utf8), text)],
        vec![
            (Binary, bytes.clone()),
            (LargeBinary, bytes.clone()),
            (BinaryView, bytes),
            (FixedSizeBinary(2), [b"\x00\xff" as &[u8], b"ab"].map(Bytes).to_vec()),
        ],
        vec![(Boolean, vec![Bool(false), Bool(true)])],
        vec![(Date32, [-1, 0, 19_000].map(Days).to_vec())],
        vec![
            (Time32(TimeUnit::Second), clock(0, &[0, 1, 86_399], 0)),
            (Time32(TimeUnit::Millisecond), clock(0, &[0, 1000, 1001], 3)),
            (Time64(TimeUnit::Nanosecond), clock(0, &[0, 1_000_000_000, 1_001_000_000], 9)),
        ],
        vec![
            (Duration(TimeUnit::Second), clock(1, &[-1, 0, 1, i64::MAX as i128], 0)),
            (Duration(TimeUnit::Microsecond), clock(1, &[-1_000_000, 0, 1_000_000, i64::MAX as i128], 6)),
        ],
        vec![
            (stamp(TimeUnit::Second, None), clock(2, &[i64::MIN as i128, -1, 0, 1], 0)),
            (stamp(TimeUnit::Nanosecond, None), clock(2, &[i64::MIN as i128, -1_000_000_000, 0, 1], 9)),
        ],
        vec![
            (stamp(TimeUnit::Second, Some("UTC")), clock(3, &[i64::MAX as i128, -1, 0, 1], 0)),
            (stamp(TimeUnit::Millisecond, Some("Europe/Paris")), clock(3, &[-1000, 0, 1, 1000], 3)),
        ],
    ]
}

/// All column types with their family. Those at even positions are build columns, the others probe columns.
pub(super) fn all_types() -> Vec<(usize, DataType, Vec<Plain>)> {
    let families = families().into_iter().enumerate();
    families.flat_map(|(family, types)| types.into_iter().map(move |(t, pool)| (family, t, pool))).collect()
}

macro_rules! primitive {
    ($type:ty, $data_type:expr, $values:expr, $pattern:pat => $value:expr) => {
        Arc::new(
            PrimitiveArray::<$type>::from_iter($values.iter().map(|v| {
                v.map(|v| match v {
                    $pattern => $value,
                    other => panic!("{other:?} in a column of {}", $data_type),
                })
            }))
            .with_data_type($data_type.clone()),
        )
    };
}

pub(super) fn column(data_type: &DataType, values: &[Option<Plain>]) -> ArrayRef {
    use DataType::*;
    use TimeUnit::*;
    let text = || values.iter().map(|v| v.map(|v| if let Text(v) = v { v } else { panic!("{v:?}") }));
    let bytes = || values.iter().map(|v| v.map(|v| if let Bytes(v) = v { v } else { panic!("{v:?}") }));
    match data_type {
        Int8 => primitive!(Int8Type, data_type, values, Number(v, _) => v as i8),
        Int32 => primitive!(Int32Type, data_type, values, Number(v, _) => v as i32),
        Int64 => primitive!(Int64Type, data_type, values, Number(v, _) => v as i64),
        UInt8 => primitive!(UInt8Type, data_type, values, Number(v, _) => v as u8),
        UInt64 => primitive!(UInt64Type, data_type, values, Number(v, _) => v as u64),
        Float32 => primitive!(Float32Type, data_type, values, Float(v) => v as f32),
        Float64 => primitive!(Float64Type, data_type, values, Float(v) => v),
        Decimal32(..) => primitive!(Decimal32Type, data_type, values, Number(v, _) => v as i32),
        Decimal64(..) => primitive!(Decimal64Type, data_type, values, Number(v, _) => v as i64),
        Decimal128(..) => primitive!(Decimal128Type, data_type, values, Number(v, _) => v),
        Decimal256(..) => primitive!(Decimal256Type, data_type, values, Number(v, _) => i256::from_i128(v)),
        Date32 => primitive!(Date32Type, data_type, values, Days(v) => v),
        Time32(Second) => primitive!(Time32SecondType, data_type, values, Clock(_, v, _) => v as i32),
        Time32(_) => primitive!(Time32MillisecondType, data_type, values, Clock(_, v, _) => v as i32),
        Time64(_) => primitive!(Time64NanosecondType, data_type, values, Clock(_, v, _) => v as i64),
        Duration(Second) => primitive!(DurationSecondType, data_type, values, Clock(_, v, _) => v as i64),
        Duration(_) => primitive!(DurationMicrosecondType, data_type, values, Clock(_, v, _) => v as i64),
        Timestamp(Second, _) => primitive!(TimestampSecondType, data_type, values, Clock(_, v, _) => v as i64),
        Timestamp(Millisecond, _) => {
            primitive!(TimestampMillisecondType, data_type, values, Clock(_, v, _) => v as i64)
        }
        Timestamp(_, _) => primitive!(TimestampNanosecondType, data_type, values, Clock(_, v, _) => v as i64),
        Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|v| v.map(|v| v == Bool(true))))),
        Utf8 => Arc::new(StringArray::from_iter(text())),
        LargeUtf8 => Arc::new(LargeStringArray::from_iter(text())),
        Utf8View => Arc::new(StringViewArray::from_iter(text())),
        Binary => Arc::new(BinaryArray::from_iter(bytes())),
        LargeBinary => Arc::new(LargeBinaryArray::from_iter(bytes())),
        BinaryView => Arc::new(BinaryViewArray::from_iter(bytes())),
        FixedSizeBinary(n) => {
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes(), *n).expect("fixed size"))
        }
        Dictionary(_, inner) => cast(&column(inner, values), data_type).expect("dictionary"),
        RunEndEncoded(_, inner) => cast(&column(inner.data_type(), values), data_type).expect("runs"),
        other => panic!("no column of {other}"),
    }
}

pub(super) fn literal(value: Plain) -> Literal {
    let unit = |scale| {
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond][scale as usize / 3]
    };
    match value {
        Number(v, 0) => Literal::Integer(v),
        Number(v, scale) => Literal::Decimal { value: i256::from_i128(v), scale: scale as i8 },
        Float(v) => Literal::Float(v),
        Bool(v) => v.into(),
        Text(v) => v.into(),
        Bytes(v) => v.into(),
        Days(v) => Literal::Date(v),
        Clock(0, v, scale) => Literal::Time { value: v as i64, unit: unit(scale) },
        Clock(1, v, scale) => Literal::Duration { value: v as i64, unit: unit(scale) },
        Clock(kind, v, scale) => {
            Literal::Timestamp { value: v as i64, unit: unit(scale), zone: (kind == 3).then(|| "UTC".into()) }
        }
    }
}

/// A condition of the tests. The expression and the plain evaluation are both made from it.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Compare(CompareOp, Operand, Operand),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Not(Box<Test>),
    IsNull(Box<Test>),
    IsTrue(Box<Test>),
    IsFalse(Box<Test>),
    In(Operand, Vec<Operand>),
    Between(Operand, Operand, Operand),
    OperandIsNull(Operand),
}

#[derive(Debug, Clone)]
pub(super) enum Operand {
    /// The position in `all_types`.
    Column(usize),
    Value(Option<Plain>),
    Arithmetic(ArithmeticOp, Box<Operand>, Box<Operand>),
}

impl Operand {
    pub(super) fn expr(&self) -> Expr {
        match self {
            Operand::Column(i) if i % 2 == 0 => build(i / 2),
            Operand::Column(i) => probe(format!("c{i}")),
            Operand::Value(value) => lit(value.map(literal)),
            Operand::Arithmetic(op, left, right) => left.expr().arithmetic(*op, right.expr()),
        }
    }

    /// The value in one row, or `Err` if computing it fails.
    pub(super) fn plain(&self, row: &[Option<Plain>]) -> Result<Option<Plain>, ()> {
        Ok(match self {
            Operand::Column(i) => row[*i],
            Operand::Value(value) => *value,
            Operand::Arithmetic(op, left, right) => match (left.plain(row)?, right.plain(row)?) {
                (Some(Number(x, _)), Some(Number(y, _))) => {
                    let z = match op {
                        ArithmeticOp::Add => x + y,
                        ArithmeticOp::Sub => x - y,
                        ArithmeticOp::Mul => x * y,
                        ArithmeticOp::Div => x.checked_div(y).ok_or(())?,
                        ArithmeticOp::Rem => x.checked_rem(y).ok_or(())?,
                    };
                    Some(Number(i64::try_from(z).map_err(|_| ())?.into(), 0))
                }
                _ => None,
            },
        })
    }
}

impl Test {
    pub(super) fn expr(&self) -> Expr {
        match self {
            Test::Compare(op, left, right) => left.expr().compare(*op, right.expr()),
            Test::And(left, right) => left.expr().and(right.expr()),
            Test::Or(left, right) => left.expr().or(right.expr()),
            Test::Not(inner) => inner.expr().not(),
            Test::IsNull(inner) => inner.expr().is_null(),
            Test::IsTrue(inner) => inner.expr().is_true(),
            Test::IsFalse(inner) => inner.expr().is_false(),
            Test::In(value, list) => value.expr().is_in(list.iter().map(Operand::expr)),
            Test::Between(value, low, high) => value.expr().between(low.expr(), high.expr()),
            Test::OperandIsNull(operand) => operand.expr().is_null(),
        }
    }

    pub(super) fn plain(&self, row: &[Option<Plain>]) -> Result<Option<bool>, ()> {
        Ok(match self {
            Test::Compare(op, left, right) => compared(*op, left.plain(row)?, right.plain(row)?),
            Test::In(value, list) => {
                let value = value.plain(row)?;
                let equal = |item: &Operand| Ok(compared(CompareOp::Eq, value, item.plain(row)?));
                let equal = list.iter().map(equal).collect::<Result<Vec<_>, ()>>()?;
                match () {
                    () if equal.contains(&Some(true)) => Some(true),
                    () if equal.contains(&None) => None,
                    () => Some(false),
                }
            }
            Test::Between(value, low, high) => {
                let (value, low, high) = (value.plain(row)?, low.plain(row)?, high.plain(row)?);
                match (compared(CompareOp::Ge, value, low), compared(CompareOp::Le, value, high)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            Test::IsTrue(inner) => Some(inner.plain(row)? == Some(true)),
            Test::IsFalse(inner) => Some(inner.plain(row)? == Some(false)),
            Test::And(left, right) => match (left.plain(row)?, right.plain(row)?) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Test::Or(left, right) => match (left.plain(row)?, right.plain(row)?) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Test::Not(inner) => inner.plain(row)?.map(|v| !v),
            Test::IsNull(inner) => Some(inner.plain(row)?.is_none()),
            Test::OperandIsNull(operand) => Some(operand.plain(row)?.is_none()),
        })
    }
}
