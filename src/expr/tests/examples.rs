//! Edge cases that random conditions seldom reach.

use std::sync::Arc;

use arrow_array::types::IntervalMonthDayNanoType;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};

use super::{longs, run, schema};
use crate::error::{Error, Result};
use crate::expr::*;

#[test]
fn plan_errors_name_columns_types_and_operation() {
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
        (build("v").lt(probe("w")), "build.v < probe.w compares Int64 with Utf8, which is not supported"),
        (build("d").eq(probe("f")), "build.d = probe.f compares Decimal128(9, 2) with Float64"),
        (
            build("d").eq(lit(f64::NAN)),
            "the literal DOUBLE 'NaN' has no decimal value, so it cannot be used with Decimal128(9, 2)",
        ),
        (probe("t").eq(probe("z")), "which is not supported: give both a time zone or none"),
        (probe("d32").eq(probe("z")), "probe.d32 = probe.z compares Date32 with Timestamp(s, \"UTC\")"),
        (probe("l").eq(probe("l")), "probe.l = probe.l compares List(Int64) with List(Int64)"),
        (build("v").and(lit(true)), "a condition must be Boolean, build.v has type Int64"),
        ((build("v") + lit(1)).not(), "a condition must be Boolean, build.v + 1 has type Int64"),
        (build("v").lt(probe("w") - lit(1)), "probe.w - 1 needs Utf8 - Int64, which is not supported"),
        ((0..MAX_DEPTH).fold(build("v").is_null(), |e, _| e.not()), "the condition has 130 levels, at most 128"),
    ] {
        let got = error(expr);
        assert!(got.starts_with("Plan error: ") && got.contains(text), "{got}");
    }
    // A nested column can be tested for null.
    assert!(probe("l").is_null().bind(&build_schema, &probe_schema).is_ok());
}

#[test]
fn a_literal_compares_by_value_even_if_the_type_cannot_hold_it() {
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(i32::MAX), None]));
    let yes = vec![Some(true), Some(true), None];
    for literal in [lit(3_000_000_000i64), lit(i128::MAX), lit(3e9), lit(1e300), lit(f64::NAN), lit(2147483647.5)] {
        assert_eq!(run(build("a").lt(literal.clone()), ints.clone(), ints.clone()).unwrap(), yes, "{literal}");
        assert_eq!(run(literal.clone().gt(build("a")), ints.clone(), ints.clone()).unwrap(), yes, "{literal}");
    }
    assert_eq!(run(build("a").eq(lit(1.0)), longs(&[1]), longs(&[0])).unwrap(), [Some(true)]);
    assert_eq!(run(build("a").eq(lit(1.5)), longs(&[1]), longs(&[0])).unwrap(), [Some(false)]);
    // Next to a decimal, a float is the decimal that it is printed as; next to a float, a decimal is the nearest float.
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
fn decimals_compare_beyond_the_range_of_the_finer_scale() {
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
    // Division by zero is an error only if there is a pair.
    assert_eq!(eval((lit(1) / lit(0)).eq(lit(1)), 0).unwrap(), []);
    assert!(matches!(eval((lit(1) / lit(0)).eq(lit(1)), 1), Err(Error::Execution(_))));
}

#[test]
fn arithmetic_truncates_and_reports_overflow_and_division_by_zero() {
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
    // Null divided by zero is null, for floats as well.
    let holes: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(1.0)]));
    let divisors: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.0), Some(2.0)]));
    assert_eq!(run((build("a") / probe("b")).gt(lit(0)), holes, divisors).unwrap(), [None, Some(true)]);
    // Arithmetic on decimals and on unsigned integers keeps their types.
    let cents: ArrayRef = Arc::new(Decimal128Array::from(vec![150, 25]).with_precision_and_scale(9, 2).unwrap());
    assert_eq!(run((build("a") + lit(0.5)).eq(lit(2)), cents.clone(), cents).unwrap(), [Some(true), Some(false)]);
    assert_eq!(
        run((build("a") - lit(1)).eq(lit(u64::MAX - 1)), huge.clone(), huge).unwrap(),
        [Some(true), Some(false)]
    );
}

#[test]
fn evaluate_refuses_other_columns_than_it_asked_for() {
    let predicate = build("a").lt(lit(1)).bind(&schema(&[("a", DataType::Int64)]), &schema(&[])).unwrap();
    let short: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    for columns in [vec![], vec![longs(&[1, 2])], vec![short]] {
        assert!(matches!(predicate.evaluate(&columns, 1), Err(Error::Plan(_))));
    }
}

#[test]
fn expressions_are_written_as_sql() {
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

/// B3: dates, times and timestamps plus and minus durations and intervals, and their differences, over units and zones.
#[test]
fn arithmetic_on_dates_and_times() {
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
        // The dates and timestamps are on 1970-01-31.
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

/// B3: the error of a cast names what failed; TRY_CAST gives null instead.
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

/// B3: a negative that its type cannot hold is an error.
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

/// B3: a pattern may be a constant, a column or null, and text of any layout.
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
