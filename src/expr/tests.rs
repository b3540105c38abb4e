//! Predicates against a plain evaluation row by row, and the edges that random data seldom meets.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use proptest::prelude::*;

use super::*;
use crate::error::{Error, Result};

/// A value as the plain evaluation sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plain {
    /// `raw / 10^scale`
    Number(i128, u32),
    Float(f64),
    Bool(bool),
    Text(&'static str),
    Bytes(&'static [u8]),
    /// Seconds and below as for numbers, of the kind given: time, duration, timestamp, timestamp with a zone.
    Clock(u8, i128, u32),
    Days(i32),
}
use Plain::*;

fn order(a: Plain, b: Plain) -> Ordering {
    // Every float of the tests is whole once multiplied by this.
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

fn compared(op: CompareOp, left: Option<Plain>, right: Option<Plain>) -> Option<bool> {
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

/// Column types of the tests, in families that compare with each other, with values for each.
fn families() -> Vec<Vec<(DataType, Vec<Plain>)>> {
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

/// All column types with their family; even ones go to the build side, odd ones to the probe side.
fn all_types() -> Vec<(usize, DataType, Vec<Plain>)> {
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

fn column(data_type: &DataType, values: &[Option<Plain>]) -> ArrayRef {
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

fn literal(value: Plain) -> Literal {
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

/// A condition of the tests, which both sides of the comparison are made from.
#[derive(Debug, Clone)]
enum Test {
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
enum Operand {
    /// Index into `all_types`.
    Column(usize),
    Value(Option<Plain>),
    Arithmetic(ArithmeticOp, Box<Operand>, Box<Operand>),
}

impl Operand {
    fn expr(&self) -> Expr {
        match self {
            Operand::Column(i) if i % 2 == 0 => build(i / 2),
            Operand::Column(i) => probe(format!("c{i}")),
            Operand::Value(value) => lit(value.map(literal)),
            Operand::Arithmetic(op, left, right) => left.expr().arithmetic(*op, right.expr()),
        }
    }

    /// The value of one row, or that there is none because it fails.
    fn plain(&self, row: &[Option<Plain>]) -> Result<Option<Plain>, ()> {
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
    fn expr(&self) -> Expr {
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

    fn plain(&self, row: &[Option<Plain>]) -> Result<Option<bool>, ()> {
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

fn compare_op() -> impl Strategy<Value = CompareOp> {
    use CompareOp::*;
    proptest::sample::select(vec![Eq, Ne, Lt, Le, Gt, Ge, Distinct, NotDistinct])
}

/// A column or literal of a family, sometimes null.
fn operand_of(family: usize) -> impl Strategy<Value = Operand> {
    let types = all_types();
    let columns: Vec<usize> = (0..types.len()).filter(|&i| types[i].0 == family).collect();
    let values: Vec<Plain> = columns.iter().flat_map(|&i| types[i].2.clone()).collect();
    prop_oneof![
        6 => proptest::sample::select(columns).prop_map(Operand::Column),
        3 => proptest::sample::select(values).prop_map(|v| Operand::Value(Some(v))),
        1 => Just(Operand::Value(None)),
    ]
}

fn comparison() -> impl Strategy<Value = Test> {
    use ArithmeticOp::*;
    // Families 0 to 2 are integers, floats, decimals; decimals meet integers, integers meet floats.
    let mixed = proptest::sample::select(vec![(0, 1), (1, 0), (0, 2), (2, 0)]);
    let pair = prop_oneof![2 => (0..families().len()).prop_map(|f| (f, f)), 1 => mixed]
        .prop_flat_map(|(l, r)| (operand_of(l), operand_of(r)));
    // Int8, Int32, Int64 and small literals: what computes in Int64.
    let integer = || {
        prop_oneof![(0usize..3).prop_map(Operand::Column), (-2i128..4).prop_map(|v| Operand::Value(Some(Number(v, 0))))]
    };
    let operation = proptest::sample::select(vec![Add, Sub, Mul, Div, Rem]);
    let computed = (operation, integer(), integer(), operand_of(0))
        .prop_map(|(op, l, r, other)| (Operand::Arithmetic(op, Box::new(l), Box::new(r)), other));
    (compare_op(), prop_oneof![6 => pair, 1 => computed]).prop_map(|(op, (l, r))| Test::Compare(op, l, r))
}

fn condition() -> impl Strategy<Value = Test> {
    let family = || 0..families().len();
    let list = family().prop_flat_map(|f| (operand_of(f), proptest::collection::vec(operand_of(f), 0..4)));
    let between = family().prop_flat_map(|f| (operand_of(f), operand_of(f), operand_of(f)));
    let leaf = prop_oneof![
        5 => comparison(),
        1 => list.prop_map(|(value, list)| Test::In(value, list)),
        1 => between.prop_map(|(value, low, high)| Test::Between(value, low, high)),
        1 => (0..families().len()).prop_flat_map(operand_of).prop_map(Test::OperandIsNull),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(l, r)| Test::And(Box::new(l), Box::new(r))),
            (inner.clone(), inner.clone()).prop_map(|(l, r)| Test::Or(Box::new(l), Box::new(r))),
            inner.clone().prop_map(|c| Test::Not(Box::new(c))),
            inner.clone().prop_map(|c| Test::IsNull(Box::new(c))),
            inner.clone().prop_map(|c| Test::IsTrue(Box::new(c))),
            inner.prop_map(|c| Test::IsFalse(Box::new(c))),
        ]
    })
}

/// Rows of picks: for each column a number that chooses from its pool, or null.
fn rows() -> impl Strategy<Value = Vec<Vec<Option<usize>>>> {
    let row = proptest::collection::vec(proptest::option::weighted(0.85, any::<usize>()), all_types().len());
    proptest::collection::vec(row, 0..12)
}

fn schemas() -> (SchemaRef, SchemaRef) {
    let side = |parity| {
        let types = all_types().into_iter().enumerate().filter(move |(i, _)| i % 2 == parity);
        Arc::new(Schema::new(types.map(|(i, (_, t, _))| Field::new(format!("c{i}"), t, true)).collect::<Vec<_>>()))
    };
    (side(0), side(1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// S37: three-valued over every type, null and error as a plain evaluation row by row has them.
    #[test]
    fn evaluates_as_row_by_row(test in condition(), picks in rows()) {
        let types = all_types();
        let pick = |row: &Vec<Option<usize>>| -> Vec<Option<Plain>> {
            row.iter().zip(&types).map(|(pick, (_, _, pool))| pick.map(|p| pool[p % pool.len()])).collect()
        };
        let rows: Vec<Vec<Option<Plain>>> = picks.iter().map(pick).collect();
        let (build, probe) = schemas();
        let predicate = test.expr().bind(&build, &probe).unwrap();
        let columns: Vec<ArrayRef> = predicate
            .columns()
            .iter()
            .map(|(side, position)| {
                let i = position * 2 + usize::from(*side == Side::Probe);
                column(&types[i].1, &rows.iter().map(|row| row[i]).collect::<Vec<_>>())
            })
            .collect();
        let got = predicate.evaluate(&columns, rows.len());
        let expected: Result<Vec<Option<bool>>, ()> = rows.iter().map(|row| test.plain(row)).collect();
        match (got, expected) {
            (Ok(got), Ok(expected)) => prop_assert_eq!(got.iter().collect::<Vec<_>>(), expected, "{}", predicate),
            (Err(Error::Execution(_)), Err(())) => {}
            (got, expected) => prop_assert!(false, "{predicate}: {got:?}, expected {expected:?}"),
        }
    }
}

/// B3: beside every type each constant is the same to `=`, to `IN` and to `BETWEEN`, also where it is refused.
#[test]
fn lists_and_ranges_take_constants_as_comparisons_do() {
    let types = all_types();
    let half = DataType::Float16;
    let halves = families()[1][0].1.clone();
    for (data_type, pool) in types.iter().map(|(_, t, pool)| (t.clone(), pool.clone())).chain([(half, halves)]) {
        let values: Vec<Option<Plain>> = pool.iter().copied().map(Some).chain([None]).collect();
        let a = match data_type {
            DataType::Float16 => cast(&column(&DataType::Float32, &values), &data_type).unwrap(),
            _ => column(&data_type, &values),
        };
        let decimal = |value: i64, scale| lit(Literal::Decimal { value: i256::from(value), scale });
        let others = [lit(300), lit(i128::MAX), lit(1e300), decimal(1, 1), decimal(1, 40), lit(None::<bool>)];
        let constants = types.iter().flat_map(|(.., pool)| pool.iter().map(|v| lit(literal(*v)))).chain(others);
        for constant in constants {
            let test = |expr: Expr| match run(expr, a.clone(), a.clone()) {
                Ok(found) => Some(found),
                Err(Error::Plan(_)) => None,
                Err(other) => panic!("{other}"),
            };
            let x = || build("a");
            let equal = test(x().eq(constant.clone()));
            assert_eq!(test(x().is_in([constant.clone()])), equal, "{data_type} IN ({constant})");
            assert_eq!(test(constant.clone().is_in([x()])), equal, "{constant} IN a {data_type}");
            let between = test(x().between(constant.clone(), constant.clone()));
            assert_eq!(between, equal, "{data_type} BETWEEN {constant}");
            let unequal = equal.map(|all| all.into_iter().map(|v| v.map(|v| !v)).collect::<Vec<_>>());
            assert_eq!(test(x().is_in([constant.clone()]).not()), unequal, "{data_type} NOT IN ({constant})");
        }
    }
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect::<Vec<_>>()))
}

/// Binds over one build column `a` and one probe column `b`, and evaluates.
fn run(expr: Expr, a: ArrayRef, b: ArrayRef) -> Result<Vec<Option<bool>>> {
    let predicate = expr.bind(&schema(&[("a", a.data_type().clone())]), &schema(&[("b", b.data_type().clone())]))?;
    let columns: Vec<ArrayRef> =
        predicate.columns().iter().map(|(side, _)| if *side == Side::Build { a.clone() } else { b.clone() }).collect();
    Ok(predicate.evaluate(&columns, a.len())?.iter().collect())
}

fn longs(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

#[test]
fn plan_errors_say_what_is_there() {
    let build_schema = schema(&[
        ("v", DataType::Int64),
        ("d", DataType::Decimal128(9, 2)),
        ("x", DataType::Int8),
        ("x", DataType::Int8),
    ]);
    let zoned = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
    let nested = DataType::new_list(DataType::Int64, true);
    let probe_schema = schema(&[
        ("w", DataType::Utf8),
        ("f", DataType::Float64),
        ("t", DataType::Timestamp(TimeUnit::Second, None)),
        ("z", zoned),
        ("l", nested),
        ("d32", DataType::Date32),
        ("d64", DataType::Date64),
    ]);
    let error = |expr: Expr| expr.bind(&build_schema, &probe_schema).unwrap_err().to_string();
    for (expr, text) in [
        (build("q").is_null(), r#"the build side has no column "q"; its columns are "v", "d", "x", "x""#),
        (build("x").is_null(), r#"the build side has more than one column "x""#),
        (build(4).is_null(), "the build side has no column at position 4; its 4 columns are"),
        (build("v").lt(probe("w")), "build.v < probe.w compares Int64 with Utf8, which do not compare"),
        (build("d").eq(probe("f")), "build.d = probe.f compares Decimal128(9, 2) with Float64"),
        (build("d").eq(lit(f64::NAN)), "the literal DOUBLE 'NaN' is no decimal, but stands beside Decimal128(9, 2)"),
        (probe("t").eq(probe("z")), "which do not compare: give both a time zone or none"),
        (probe("d32").eq(probe("z")), "probe.d32 = probe.z compares Date32 with Timestamp(s, \"UTC\")"),
        (probe("l").eq(probe("l")), "probe.l = probe.l compares List(Int64) with List(Int64)"),
        (build("v").and(lit(true)), "a condition must be Boolean, build.v has type Int64"),
        ((build("v") + lit(1)).not(), "a condition must be Boolean, build.v + 1 has type Int64"),
        (build("v").lt(probe("w") - lit(1)), "probe.w - 1 needs Utf8 - Int64, which is not supported"),
        ((0..MAX_DEPTH).fold(build("v").is_null(), |e, _| e.not()), "the predicate has 130 levels, at most 128"),
    ] {
        let got = error(expr);
        assert!(got.starts_with("Plan error: ") && got.contains(text), "{got}");
    }
    // A nested column still has nulls to ask for.
    assert!(probe("l").is_null().bind(&build_schema, &probe_schema).is_ok());
}

#[test]
fn a_literal_compares_by_value_whatever_the_column_holds() {
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(i32::MAX), None]));
    let yes = vec![Some(true), Some(true), None];
    for literal in [lit(3_000_000_000i64), lit(i128::MAX), lit(3e9), lit(1e300), lit(f64::NAN), lit(2147483647.5)] {
        assert_eq!(run(build("a").lt(literal.clone()), ints.clone(), ints.clone()).unwrap(), yes, "{literal}");
        assert_eq!(run(literal.clone().gt(build("a")), ints.clone(), ints.clone()).unwrap(), yes, "{literal}");
    }
    assert_eq!(run(build("a").eq(lit(1.0)), longs(&[1]), longs(&[0])).unwrap(), [Some(true)]);
    assert_eq!(run(build("a").eq(lit(1.5)), longs(&[1]), longs(&[0])).unwrap(), [Some(false)]);
    // Beside a decimal a float is what it prints as; beside a float a decimal is the float it reads as.
    let cents: ArrayRef = Arc::new(Decimal128Array::from(vec![310, 10]).with_precision_and_scale(9, 2).unwrap());
    assert_eq!(run(build("a").eq(lit(3.1)), cents.clone(), cents.clone()).unwrap(), [Some(true), Some(false)]);
    assert_eq!(run(build("a").lt(lit(1e70)), cents.clone(), cents.clone()).unwrap(), [Some(true), Some(true)]);
    assert_eq!(run(build("a").gt(lit(1e-70)), cents.clone(), cents.clone()).unwrap(), [Some(true), Some(true)]);
    let tenth = || lit(Literal::Decimal { value: i256::from(1), scale: 1 });
    let singles: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 0.2]));
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![0.1, 0.2]));
    for floats in [singles, doubles] {
        assert_eq!(run(build("a").eq(tenth()), floats.clone(), floats).unwrap(), [Some(true), Some(false)]);
    }
    let days: ArrayRef = Arc::new(Date64Array::from(vec![86_400_000, 0]));
    assert_eq!(run(build("a").eq(lit(Literal::Date(1))), days.clone(), days).unwrap(), [Some(true), Some(false)]);
}

#[test]
fn decimals_order_beyond_the_range_of_the_finer_scale() {
    let coarse: ArrayRef =
        Arc::new(Decimal128Array::from(vec![i128::MAX, i128::MIN, 0, 1]).with_precision_and_scale(38, 0).unwrap());
    let fine: ArrayRef =
        Arc::new(Decimal128Array::from(vec![1, -1, 0, 10i128.pow(37)]).with_precision_and_scale(38, 37).unwrap());
    let wide = cast(&fine, &DataType::Decimal256(76, 75)).unwrap();
    for fine in [fine, wide] {
        let lt = run(build("a").lt(probe("b")), coarse.clone(), fine.clone()).unwrap();
        assert_eq!(lt, [Some(false), Some(true), Some(false), Some(false)]);
        let ge = run(probe("b").ge(build("a")), coarse.clone(), fine).unwrap();
        assert_eq!(ge, [Some(false), Some(true), Some(true), Some(true)]);
    }
    // 10^40 is itself beyond 128 bits; zero stays zero.
    let decimal = |values: Vec<i128>, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, scale).unwrap())
    };
    let (coarse, fine) = (decimal(vec![0, 0, 0, 1, -1], -2), decimal(vec![0, 1, -1, i128::MAX, i128::MIN], 38));
    let lt = run(build("a").lt(probe("b")), coarse, fine).unwrap();
    assert_eq!(lt, [Some(false), Some(true), Some(false), Some(false), Some(true)]);
}

#[test]
fn constants_give_a_result_for_every_pair() {
    let none = schema(&[]);
    let eval = |expr: Expr, rows| {
        let predicate = expr.bind(&none, &none).unwrap();
        assert!(predicate.columns().is_empty());
        predicate.evaluate(&[], rows).map(|mask| mask.iter().collect::<Vec<_>>())
    };
    assert_eq!(eval(lit(1).lt(lit(2.5)), 3).unwrap(), [Some(true); 3]);
    assert_eq!(eval(lit(None::<bool>).or(lit(true)), 2).unwrap(), [Some(true); 2]);
    assert_eq!(eval(lit(None::<bool>), 2).unwrap(), [None; 2]);
    assert_eq!(eval(lit(1).eq(lit(None::<i32>)), 2).unwrap(), [None; 2]);
    assert_eq!(eval(Expr::And(vec![]), 2).unwrap(), [Some(true); 2]);
    assert_eq!(eval(Expr::Or(vec![]), 2).unwrap(), [Some(false); 2]);
    // Zero division is an error on pairs only.
    assert_eq!(eval((lit(1) / lit(0)).eq(lit(1)), 0).unwrap(), []);
    assert!(matches!(eval((lit(1) / lit(0)).eq(lit(1)), 1), Err(Error::Execution(_))));
}

#[test]
fn arithmetic_truncates_and_fails_loudly() {
    let sevens = longs(&[7, -7]);
    let twos = longs(&[2, 2]);
    assert_eq!(
        run((build("a") / probe("b")).eq(lit(3)), sevens.clone(), twos.clone()).unwrap(),
        [Some(true), Some(false)]
    );
    assert_eq!(
        run((build("a") / probe("b")).eq(lit(-3)), sevens.clone(), twos.clone()).unwrap(),
        [Some(false), Some(true)]
    );
    assert_eq!(run((build("a") / lit(2.0)).eq(lit(3.5)), sevens.clone(), twos).unwrap(), [Some(true), Some(false)]);
    let zeros = longs(&[1, 0]);
    for divided in [build("a") / probe("b"), build("a") % probe("b"), lit(1.5) / probe("b"), build("a") / lit(-0.0)] {
        let text = divided.to_string();
        let error = run(divided.gt(lit(1)), sevens.clone(), zeros.clone()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("Execution error: division by zero in {text}")), "{error}");
    }
    let huge: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 1]));
    for overflow in
        [build("a") * build("a"), lit(i64::MIN) - build("a"), probe("b") + build("a"), build("a") - probe("b")]
    {
        let text = overflow.to_string();
        let (a, b) =
            if text.contains("probe") { (longs(&[1, 2]), huge.clone()) } else { (longs(&[i64::MAX, 1]), huge.clone()) };
        let error = run(overflow.gt(lit(1)), a, b).unwrap_err().to_string();
        assert!(error.starts_with(&format!("Execution error: {text} does not fit its type, Int64")), "{error}");
    }
    // Null divided by zero is null, also among floats.
    let holes: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(1.0)]));
    let divisors: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.0), Some(2.0)]));
    assert_eq!(run((build("a") / probe("b")).gt(lit(0)), holes, divisors).unwrap(), [None, Some(true)]);
    // Decimals and unsigned integers keep their own arithmetic.
    let cents: ArrayRef = Arc::new(Decimal128Array::from(vec![150, 25]).with_precision_and_scale(9, 2).unwrap());
    assert_eq!(run((build("a") + lit(0.5)).eq(lit(2)), cents.clone(), cents).unwrap(), [Some(true), Some(false)]);
    assert_eq!(
        run((build("a") - lit(1)).eq(lit(u64::MAX - 1)), huge.clone(), huge).unwrap(),
        [Some(true), Some(false)]
    );
}

#[test]
fn evaluate_refuses_columns_other_than_asked() {
    let predicate = build("a").lt(lit(1)).bind(&schema(&[("a", DataType::Int64)]), &schema(&[])).unwrap();
    let short: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    for columns in [vec![], vec![longs(&[1, 2])], vec![short]] {
        assert!(matches!(predicate.evaluate(&columns, 1), Err(Error::Plan(_))));
    }
}

#[test]
fn text_of_expressions() {
    let (a, b) = (|| build("a"), || probe("b c"));
    let second =
        |zone: Option<&str>| lit(Literal::Timestamp { value: 0, unit: TimeUnit::Second, zone: zone.map(Into::into) });
    for (expr, text) in [
        (
            a().lt(b()).and(a().is_not_null()).and(!build(0).eq(lit(1))),
            r#"build.a < probe."b c" AND build.a IS NOT NULL AND NOT build[0] = 1"#,
        ),
        (
            a().eq(lit(true)).or(a().is_null().and(lit(None::<i64>))).not(),
            "NOT (build.a = TRUE OR build.a IS NULL AND NULL)",
        ),
        ((a() - (a() - lit(-1)) * lit(1.0)).ge(lit("it's")), "build.a - (build.a - -1) * 1e0 >= 'it''s'"),
        ((a() - (a() + a())).ne(a() / (a() * a())), "build.a - (build.a + build.a) <> build.a / (build.a * build.a)"),
        (a().lt(a()).is_null().eq(lit(&b"\x00\xff"[..])), "((build.a < build.a) IS NULL) = X'00FF'"),
        (
            second(None).lt(second(Some("Europe/Paris"))),
            "TIMESTAMP '1970-01-01 00:00:00' < TIMESTAMP '1970-01-01 00:00:00Z[Europe/Paris]'",
        ),
        (
            lit(Literal::Date(1)).eq(lit(Literal::Decimal { value: i256::from(-150), scale: 2 })),
            "DATE '1970-01-02' = -1.50",
        ),
    ] {
        assert_eq!(expr.to_string(), text);
        assert_eq!(expr, expr.clone());
    }
    assert_eq!(lit(f64::NAN), lit(f64::NAN));
    assert_ne!(lit(0.0), lit(-0.0));
}

/// Evaluates SQL text over one build column `a` and one probe column `b`.
fn sql(text: &str, a: &ArrayRef, b: &ArrayRef) -> Result<Vec<Option<bool>>> {
    run(Expr::parse_sql(text)?, a.clone(), b.clone())
}

/// B3: dates, times and timestamps plus and minus spans, and their differences, over units and zones.
#[test]
fn spans_of_time() {
    const DAY: i64 = 86_400;
    let empty = Arc::new(NullArray::new(1)) as ArrayRef;
    let months = |months, days, nanos| IntervalMonthDayNanoType::make_value(months, days, nanos);
    let seconds = |zone: Option<&str>| -> ArrayRef {
        Arc::new(TimestampSecondArray::from(vec![30 * DAY]).with_timezone_opt(zone.map(Arc::<str>::from)))
    };
    let date: ArrayRef = Arc::new(Date32Array::from(vec![30]));
    let date64: ArrayRef = Arc::new(Date64Array::from(vec![30 * DAY * 1000]));
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![30 * DAY * 1_000_000 + 1]));
    let paris: ArrayRef =
        Arc::new(TimestampMillisecondArray::from(vec![30 * DAY * 1000 + 1]).with_timezone("Europe/Paris"));
    let time: ArrayRef = Arc::new(Time32SecondArray::from(vec![3600]));
    let late: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![(DAY - 1) * 1_000_000]));
    let spans: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![months(1, 1, 1_500_000_000)]));
    let duration: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![1500]));
    let far: ArrayRef = Arc::new(Date32Array::from(vec![2_932_896]));
    let (plain, utc) = (seconds(None), seconds(Some("UTC")));
    for (text, a, b) in [
        // 1970-01-31
        ("a + interval '1 month' = timestamp '1970-02-28'", &plain, &empty),
        ("a - interval '1 month' = timestamp '1969-12-31 00:00:00.000'", &plain, &empty),
        ("interval '1 day' + a = timestamp '1970-02-01'", &plain, &empty),
        ("a + interval '1 day -1 ns' = timestamp '1970-01-31 23:59:59.999999999'", &plain, &empty),
        ("a + interval '1 month 1 us' = timestamp '1970-02-28 00:00:00.000001'", &plain, &empty),
        ("a + interval '1 month' = timestamp '1970-02-28Z'", &utc, &empty),
        ("a + interval '90 minutes' = timestamp '1970-01-31 01:30:00.001Z'", &paris, &empty),
        ("a - b = interval '1' millisecond and a > b", &paris, &utc),
        ("a - b <= interval '1 us' and b - a = duration '-1 us'", &micros, &plain),
        ("a + b = timestamp '1970-01-31 00:00:01.500'", &plain, &duration),
        ("a + b = timestamp '1970-03-01 00:00:01.500'", &plain, &spans),
        ("a + 2 * b = timestamp '1970-04-02 00:00:03'", &plain, &spans),
        ("a + b = timestamp '1970-03-01 00:00:01.5' and b + a = a + b", &date, &spans),
        ("a + b - a = interval '1500 ms'", &date, &duration),
        ("a + interval '1 day' > date '9999-12-31'", &far, &empty),
        ("a + b > timestamp '9999-12-31'", &far, &spans),
        ("a + interval '1 month' = date '1970-02-28'", &date, &empty),
        ("a + interval '1 day' = date '1970-02-01'", &date64, &empty),
        ("a + interval '24 hours' = date '1970-02-01'", &date, &empty),
        ("a - interval '1 hour' = timestamp '1970-01-30 23:00:00'", &date, &empty),
        ("a - date '1970-01-01' = interval '30 days'", &date, &empty),
        ("b - a = interval '1 us' and b - a > interval '0 s'", &date, &micros),
        ("a - b = interval '0 s'", &date64, &date),
        ("a + interval '-2 hours' = time '23:00'", &time, &empty),
        ("a + interval '1 day 1 s' = time '00:00'", &late, &empty),
        ("b + a = time '00:00:00.500'", &late, &duration),
        ("a - b > interval '22 hours'", &late, &time),
        ("a + interval '1 s' = interval '2500 ms' and -a = interval '-1.5 s'", &duration, &empty),
        ("b + (b - b) + interval '1 month' is not null", &empty, &spans),
        ("a::date = date '1970-01-31' and a::text = '1970-01-31T00:00:00Z'", &utc, &empty),
        ("a::timestamp with time zone = timestamp '1970-01-31Z'", &plain, &empty),
        ("a::timestamp = timestamp '1970-01-31 00:00:00.001'", &paris, &empty),
        ("a::timestamp = timestamp '1970-01-31'", &date, &empty),
        ("a = b and b >= a", &date, &plain),
        ("a < b and b is distinct from a", &date, &micros),
        ("a = b and a in (timestamp '1970-01-31', null)", &date, &date64),
        ("a = date '1970-01-31' and a not in (date '1970-02-01')", &plain, &empty),
        ("a = timestamp '1970-01-31' and a < timestamp '1970-01-31 00:00:00.001'", &date64, &empty),
        ("a = timestamp '1970-01-31' and a < timestamp '1970-01-31 00:00:00.001'", &date, &empty),
        ("a in (timestamp '1970-01-31', timestamp '1970-01-31 00:00:00.5')", &plain, &empty),
        ("a between timestamp '1970-01-30 23:59:59.9' and timestamp '1970-01-31'", &plain, &empty),
    ] {
        assert_eq!(sql(text, a, b).unwrap_or_else(|error| panic!("{text}: {error}")), [Some(true)], "{text}");
    }
    for (text, a, message) in [
        (
            "a + interval '300000 years' > a",
            &plain,
            "Execution error: a + INTERVAL '3600000 months 0 seconds' does not fit",
        ),
        ("a + interval '9000000000 s' + interval '1 ns' > a", &far, "Execution error: a + INTERVAL "),
        ("a - date '1970-01-01' < interval '1 month'", &date, "has months, which have no fixed length"),
        ("a + 1 > a", &date, "needs Date32 + Int64, which is not supported; add INTERVAL"),
        ("a + a > a", &time, "needs Time32(s) + Time32(s), which is not supported"),
        ("a + time '00:01' > a", &plain, "is not supported"),
    ] {
        let error = sql(text, a, &empty).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

/// B3: casts say what failed, TRY_CAST gives null; both on the rows that are there.
#[test]
fn casts() {
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("12"), Some("x"), None]));
    let codes: ArrayRef =
        cast(&text, &DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))).unwrap();
    for a in [&text, &codes] {
        assert_eq!(sql("try_cast(a as int) = 12", a, a).unwrap(), [Some(true), None, None]);
        let error = sql("cast(a as int) = 12", a, a).unwrap_err().to_string();
        assert!(error.starts_with("Execution error: CAST(a AS INTEGER) failed: ") && error.contains("'x'"), "{error}");
    }
    let longs = longs(&[1, 300]);
    assert_eq!(sql("try_cast(a as tinyint) = 1", &longs, &longs).unwrap(), [Some(true), None]);
    assert!(matches!(sql("a::tinyint = 1", &longs, &longs), Err(Error::Execution(_))));
    assert_eq!(sql("'1'::int = a", &longs, &longs).unwrap(), [Some(true), Some(false)]);
    assert_eq!(sql("a::text like '3%0'", &longs, &longs).unwrap(), [Some(false), Some(true)]);
    assert_eq!(sql("a::decimal(9, 2) / 3 > 99.99", &longs, &longs).unwrap(), [Some(false), Some(true)]);
}

/// B3: a sign that has no room is an error, on rows that are there.
#[test]
fn negatives() {
    let least: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MIN), None]));
    let error = sql("-a > 0", &least, &least).unwrap_err().to_string();
    assert!(error.starts_with("Execution error: -a does not fit its type, Int64"), "{error}");
    let small: ArrayRef = Arc::new(Int8Array::from(vec![Some(i8::MIN), None]));
    assert_eq!(sql("-a = 128", &small, &small).unwrap(), [Some(true), None]);
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.0, -1.5]));
    assert_eq!(sql("-a = 0 or -a = 1.5", &floats, &floats).unwrap(), [Some(true), Some(true)]);
}

/// B3: a pattern may be a constant, a column, or null, and text of any layout.
#[test]
fn patterns_over_columns() {
    let words = [Some("abc"), Some("aXc"), None, Some("ab%")];
    let patterns: ArrayRef = Arc::new(LargeStringArray::from(vec![Some("a_c"), Some("%x%"), Some("%"), Some("ab\\%")]));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let text: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
    for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, dictionary] {
        let a = cast(&text, &data_type).unwrap();
        assert_eq!(sql("a like b", &a, &patterns).unwrap(), [Some(true), Some(false), None, Some(true)]);
        assert_eq!(sql("a ilike b", &a, &patterns).unwrap(), [Some(true), Some(true), None, Some(true)]);
        assert_eq!(sql("a like 'a%'", &a, &patterns).unwrap(), [Some(true), Some(true), None, Some(true)]);
        assert_eq!(sql("a not like null", &a, &patterns).unwrap(), [None; 4]);
        assert_eq!(sql("'abc' like b", &a, &patterns).unwrap(), [Some(true), Some(false), Some(true), Some(false)]);
    }
}

/// Predicates are shared by the partitions of a join.
#[test]
fn predicates_are_send_and_sync() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Predicate>();
    shared::<Expr>();
}
