//! Random conditions over random rows of every type, held against the plain evaluation.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use proptest::prelude::*;

use super::plain::Plain::*;
use super::plain::{Operand, Plain, Test, all_types, column, families, literal};
use super::run;
use crate::error::{Error, Result};
use crate::expr::*;

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
    // Families 0 to 2 are integers, floats and decimals. Integers are also compared with floats and with decimals.
    let mixed = proptest::sample::select(vec![(0, 1), (1, 0), (0, 2), (2, 0)]);
    let pair = prop_oneof![2 => (0..families().len()).prop_map(|f| (f, f)), 1 => mixed]
        .prop_flat_map(|(l, r)| (operand_of(l), operand_of(r)));
    // Int8, Int32, Int64 and small literals, whose arithmetic is that of Int64.
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

/// Rows in which each column has a number that picks one of its values, or null.
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

    /// S37: over every type, the same true, false, null and error as a plain evaluation row by row.
    #[test]
    fn equals_a_plain_evaluation_row_by_row(test in condition(), picks in rows()) {
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

/// B3: for every type and every constant, `IN` and `BETWEEN` give what `=` gives, also if it is refused.
#[test]
fn lists_and_ranges_treat_constants_like_comparisons() {
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
