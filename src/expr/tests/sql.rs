//! SQL text: what it means, that a written expression is read again as the same one, and that hostile texts are
//! refused.

use std::sync::Arc;

use arrow_buffer::i256;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use proptest::prelude::*;

use crate::error::Error;
use crate::expr::*;

fn parse(text: &str) -> Expr {
    Expr::parse_sql(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    match Expr::parse_sql(text) {
        Err(Error::Plan(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

/// B3: every construct of the language, with the precedence of SQL.
#[test]
fn reads_the_language() {
    let (a, b, x) = (|| build("a"), || probe("b"), || parse("x"));
    let decimal = |value: i64, scale| lit(Literal::Decimal { value: i256::from(value), scale });
    let interval = |months, days, nanos| lit(Literal::Interval { months, days, nanos });
    let unit = TimeUnit::Second;
    for (text, expr) in [
        ("build.a=probe.b", a().eq(b())),
        ("BUILD.a != \"probe\".\"b\"", a().ne(b())),
        ("build.\"my \"\"col\" <> build[3]", build("my \"col").ne(build(3))),
        ("x > 1 or x > 2 and not x > 3", x().gt(lit(1)).or(x().gt(lit(2)).and(x().gt(lit(3)).not()))),
        ("(x > 1 or x > 2) and x > 3", x().gt(lit(1)).or(x().gt(lit(2))).and(x().gt(lit(3)))),
        ("x + 1 * 2 - 3 = 4", (x() + lit(1) * lit(2) - lit(3)).eq(lit(4))),
        ("x - (1 - 2) < -3 - -4", (x() - (lit(1) - lit(2))).lt(lit(-3) - lit(-4))),
        ("-x * - (1) / +2 % 3 <= 0", ((-x() * -lit(1)) / lit(2) % lit(3)).le(lit(0))),
        ("x is null and x is not null", x().is_null().and(x().is_not_null())),
        ("x is not true or x is false", x().is_true().not().or(x().is_false())),
        ("x = 1 is unknown", x().eq(lit(1)).is_null()),
        ("x is not distinct from y + 1", x().compare(CompareOp::NotDistinct, parse("y") + lit(1))),
        ("x is distinct from null", x().compare(CompareOp::Distinct, lit(None::<bool>))),
        ("x between 1 and 2 and x in (1, 'b')", x().between(lit(1), lit(2)).and(x().is_in([lit(1), lit("b")]))),
        ("x not between 1 and 2 or x not in (1)", x().between(lit(1), lit(2)).not().or(x().is_in([lit(1)]).not())),
        ("x in ()", x().is_in([])),
        ("x like 'a%' and x not ilike '_'", x().like(lit("a%")).and(x().ilike(lit("_")).not())),
        ("x like 'a!%\\' escape '!'", x().like(lit("a\\%\\\\"))),
        ("x like 'a\\%' escape ''", x().like(lit("a\\\\%"))),
        ("cast(x as bigint)::text = 'a''b'", x().cast(DataType::Int64).cast(DataType::Utf8).eq(lit("a'b"))),
        ("try_cast(x as decimal(9, 2)) = 1.50", x().try_cast(DataType::Decimal128(9, 2)).eq(decimal(150, 2))),
        ("-1::int = x", (-lit(1).cast(DataType::Int32)).eq(x())),
        (
            "x::timestamp(3) with time zone is null",
            x().cast(DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))).is_null(),
        ),
        ("x::double precision < 1e3", x().cast(DataType::Float64).lt(lit(1000.0))),
        ("x::\"LargeUtf8\" = ''", x().cast(DataType::LargeUtf8).eq(lit(""))),
        (".5 < 5. and x", decimal(5, 1).lt(decimal(5, 0)).and(x())),
        ("true and FALSE or null", lit(true).and(lit(false)).or(lit(None::<bool>))),
        ("x = X'00fF'", x().eq(lit(&b"\x00\xff"[..]))),
        ("x = date '1970-01-02'", x().eq(lit(Literal::Date(1)))),
        ("x = time '00:01'", x().eq(lit(Literal::Time { value: 60, unit }))),
        ("x = timestamp '1970-01-01 00:00:01'", x().eq(lit(Literal::Timestamp { value: 1, unit, zone: None }))),
        (
            "x = timestamp with time zone '1970-01-01 01:00:00+01:00'",
            x().eq(lit(Literal::Timestamp { value: 0, unit, zone: Some("UTC".into()) })),
        ),
        ("x + interval '1 month 2 days 3 seconds' < y", (x() + interval(1, 2, 3_000_000_000)).lt(parse("y"))),
        (
            "x + interval '5' minute < y - interval -1 day",
            (x() + interval(0, 0, 300_000_000_000)).lt(parse("y") - interval(0, -1, 0)),
        ),
        ("x /* a */ < -- b\n 3", x().lt(lit(3))),
        ("date = 1", parse("\"date\"").eq(lit(1))),
        ("\"interval\" - 1 > 0", (parse("interval") - lit(1)).gt(lit(0))),
        ("größe > 1", parse("\"größe\"").gt(lit(1))),
    ] {
        assert_eq!(parse(text), expr, "{text}");
        assert_eq!(parse(&expr.to_string()), expr, "{text} is written {expr}");
    }
}

/// B3: an error says what is wrong and where.
#[test]
fn refuses_with_a_place() {
    for (text, message, line, column) in [
        ("", "the condition is empty", 1, 1),
        ("  \n ", "the condition is empty", 1, 1),
        ("build.a = ", "expected a column, a constant or a parenthesis, found the end of the text", 1, 10),
        ("build.a = 1 build.b", "expected an operator or the end of the text, found \"build\"", 1, 13),
        ("build.a = 1\n  and foo.b = 2", "\"foo\" is not a side; the sides are build and probe", 2, 7),
        ("build.a.b = 1", "write a name that contains a dot in double quotes", 1, 8),
        ("build. = 1", "expected a column of build", 1, 8),
        ("a < b < c", "comparisons cannot be chained", 1, 7),
        ("a in (select 1)", "subqueries are not supported", 1, 7),
        ("case when a then b end", "CASE is not supported", 1, 1),
        ("a = ?", "parameters are not supported", 1, 5),
        ("abs(a) = 1", "function \"abs\" is not supported; the only functions are CAST and TRY_CAST", 1, 1),
        ("a::frob = 1", "\"FROB\" is not a type that values can be cast to; the types are BOOLEAN", 1, 4),
        ("cast(a as varchar(3)) = ''", "\"VARCHAR(3)\" is not a type", 1, 11),
        ("a = date '2023-02-29'", "\"2023-02-29\" is not a valid DATE; write DATE '2024-12-31'", 1, 5),
        ("a < interval '3 fortnights'", "\"3 fortnights\" is not a valid INTERVAL", 1, 5),
        ("a = 'x", "Unterminated string literal", 1, 5),
        ("a = \"x", "Expected close delimiter '\"'", 1, 5),
        ("a = X'0'", "an even number of hexadecimal digits", 1, 5),
        ("a like 'x!' escape '!'", "the pattern ends with its escape character", 1, 20),
        ("a || b = 'c'", "expected an operator or the end of the text, found \"||\"", 1, 3),
        ("(a, b) = (1, 2)", "rows of several values are not supported", 1, 3),
        ("a = 1;", "expected an operator or the end of the text, found \";\"", 1, 6),
        ("a = 1e999", "the number \"1e999\" is too large", 1, 5),
        ("order by a", "expected an operator or the end of the text", 1, 7),
        ("a = select", "subqueries are", 1, 5),
        ("a = from", "\"from\" is a reserved word; write a column of that name in double quotes", 1, 5),
    ] {
        let found = refused(text);
        assert!(found.contains(message), "{text}: {found}");
        assert!(found.contains(&format!("at line {line}, column {column} of")), "{text}: {found}");
    }
    let shown = refused("build.a = 1\n  and foo.b = 2");
    assert!(shown.ends_with("\n      and foo.b = 2\n          ^"), "{shown}");
}

/// B3: errors that need the schemas name the place in the text as well.
#[test]
fn columns_and_types_are_refused_with_a_place() {
    let schema = |fields: &[(&str, DataType)]| {
        Arc::new(Schema::new(fields.iter().map(|(n, t)| Field::new(*n, t.clone(), true)).collect::<Vec<_>>()))
    };
    let paris = DataType::Timestamp(TimeUnit::Second, Some("Europe/Paris".into()));
    let build = schema(&[("id", DataType::Int64), ("a", DataType::Int64), ("t", paris)]);
    let probe = schema(&[("id", DataType::Int64), ("b", DataType::Utf8)]);
    for (text, message) in [
        (
            "a > 1\n and build.q = 1",
            "the build side has no column \"q\"; its columns are \"id\", \"a\", \"t\", at line 2, column 6",
        ),
        ("id = 1", "both sides have a column \"id\"; write build.id or probe.id, at line 1, column 1"),
        (
            "zz = 1",
            "neither side has a column \"zz\"; the build side has \"id\", \"a\", \"t\", the probe side \"id\", \"b\", at",
        ),
        (
            "1 < 2 and 1 < b",
            "1 < b compares Int64 with Utf8, which is not supported; cast one of them, at line 1, column 15",
        ),
        ("a", "a condition must be Boolean, a has type Int64, at line 1, column 1"),
        ("a like 'x'", "a LIKE 'x' needs text, but found Int64, at"),
        ("-b = 1", "-b needs the negative of Utf8, which is not supported, at line 1, column 2"),
        ("b in (1, 2)", "compares Utf8 with Int64"),
        ("a between 1 and 'x'", "compares Int64 with Utf8"),
        ("t + interval '1 day' < t", "days of a zone differ in length; add hours, or cast to a timestamp in UTC, at"),
        ("cast(t as date) is null", "which needs the rules of zone Europe/Paris; cast to a timestamp in UTC first, at"),
        (
            "cast(a as \"Interval(MonthDayNano)\") is null",
            "casts Int64 to Interval(MonthDayNano), which is not supported, at",
        ),
        ("a + t > t", "needs Int64 + Timestamp"),
    ] {
        let found = match Expr::parse_sql(text).and_then(|expr| expr.bind(&build, &probe)) {
            Err(Error::Plan(found)) => found,
            other => panic!("{text}: {other:?}"),
        };
        assert!(found.contains(message), "{text}: {found}");
    }
    for text in
        ["a = 1 and b is null", "build.id = probe.id", "t + interval '1 hour' > t", "cast(t as timestamp) is null"]
    {
        Expr::parse_sql(text).unwrap().bind(&build, &probe).unwrap();
    }
}

/// Long chains are read in a loop, nesting is limited, and nothing overflows the stack.
#[test]
fn hostile_texts_are_refused_or_read() {
    let depth = 100_000;
    for text in [
        "(".repeat(depth),
        format!("{}a{}", "(".repeat(depth), ")".repeat(depth)),
        format!("{}a", "not ".repeat(depth)),
        format!("{}a", "- ".repeat(depth)),
        format!("{}a", "cast(".repeat(depth)),
        format!("a{}", "::int".repeat(depth)),
        format!("a{}", "+1".repeat(depth)),
        format!("a{}", " is null".repeat(depth)),
        format!("a in {}", "(a in ".repeat(depth)),
        format!("a between {}", "(a between ".repeat(depth / 2)),
        format!("a {}", "/* ".repeat(depth)),
        format!("a = \"{}", "(".repeat(depth)),
        "a = 1 ".repeat(1_000_000),
        "\0".repeat(9),
        "a = cast(1 as \"List(List(List(List(List(Int8)))))\")".to_owned(),
        "\u{feff}a = \u{202e}1".to_owned(),
        format!("a = {}", "9".repeat(100_000)),
        format!("a = 0.{}", "9".repeat(100_000)),
        format!("a = interval '{}'", "1 day ".repeat(10) + &"9".repeat(60)),
        "a[99999999999999999999] = 1".to_owned(),
        "build[99999999999999999999] = 1".to_owned(),
    ] {
        let shown: String = text.chars().take(30).collect();
        assert!(refused(&text).len() < 1_000, "{shown}");
    }
    let Expr::Or(terms) = parse(&format!("a = 0{}", " or a = 1".repeat(depth))) else { panic!("a chain is flat") };
    assert_eq!(terms.len(), depth + 1);
    // A string may hold any characters.
    assert_eq!(parse("a = '\0\u{1f600}''\n'"), parse("a").eq(lit("\0\u{1f600}'\n")));
    // The deepest tree that can be bound is written and read again.
    let deepest = (0..MAX_DEPTH - 2).fold(build("a"), |e, _| -(e + lit(1)).is_null().not());
    assert!(Expr::parse_sql(&deepest.to_string()).is_err());
    let deepest = (0..MAX_DEPTH - 1).fold(build("a"), |e, i| if i % 2 == 0 { lit(1) - e } else { -e });
    assert_eq!(deepest.depth(), MAX_DEPTH);
    assert_eq!(parse(&deepest.to_string()), deepest);
}

/// B3: with a small stack, a condition is either refused, or it can be read, bound, evaluated, written, copied,
/// compared and dropped. Chains are flat, however long.
#[test]
fn the_deepest_conditions_need_little_stack() {
    const STACK: usize = 64 << 10;
    let schema = Arc::new(Schema::new(vec![
        Field::new("s", DataType::Boolean, true),
        Field::new("n", DataType::Int64, true),
        Field::new("t", DataType::Utf8, true),
    ]));
    let columns = |predicate: &Predicate| -> Vec<arrow_array::ArrayRef> {
        let column = |position: &usize| -> arrow_array::ArrayRef {
            match position {
                0 => Arc::new(arrow_array::BooleanArray::from(vec![Some(true), None])),
                1 => Arc::new(arrow_array::Int64Array::from(vec![Some(1), None])),
                _ => Arc::new(arrow_array::StringArray::from(vec![Some("1"), None])),
            }
        };
        predicate.columns().iter().map(|(_, position)| column(position)).collect()
    };
    let shapes: Vec<(&str, &str, &str, &str)> = vec![
        ("(", "s", ")", ""),
        ("not (", "s", ")", ""),
        ("not ", "s", "", ""),
        ("(", "s", ") is true", ""),
        ("(", "s", ") is null", ""),
        ("s and (s or ", "s", ")", ""),
        ("(", "s", " and s) or s", ""),
        ("(", "s", ") = s", ""),
        ("s is distinct from (", "s", ")", ""),
        ("s in (", "s", ")", ""),
        ("(", "s", ") in (s, true)", ""),
        ("s between s and (", "s", ")", ""),
        ("(", "s", ") between false and true", ""),
        ("n - (", "n", ")", " = 0"),
        ("-(", "n", ")", " = 0"),
        ("", "n", " + 1", " = 0"),
        ("", "n", " + n", " = 0"),
        ("+", "n", "", " = 0"),
        ("", "n", "::bigint", " = 0"),
        ("cast(", "n", " as bigint)", " = 0"),
        ("try_cast(", "t", " as varchar)", " = '1'"),
        ("t like cast((", "t", ") is null as varchar)", ""),
    ];
    let work = move || {
        for (open, inner, close, end) in shapes {
            let mut accepted = 0;
            for levels in (1..=140).chain([1_000, 100_000]) {
                let text = format!("{}{inner}{}{end}", open.repeat(levels), close.repeat(levels));
                let read = match Expr::parse_sql(&text) {
                    Ok(read) => read,
                    Err(Error::Plan(message)) => {
                        assert!(message.contains("nested deeper than 128 levels") || text.len() > 1 << 20, "{message}");
                        continue;
                    }
                    Err(other) => panic!("{other:?}"),
                };
                accepted += 1;
                assert!(read.depth() <= MAX_DEPTH);
                let written = read.to_string();
                assert!(Expr::parse_sql(&written).is_ok_and(|again| again == read));
                let none = Arc::new(Schema::empty());
                let predicate = read.clone().bind(&schema, &none).unwrap();
                assert_eq!(predicate.evaluate(&columns(&predicate), 2).unwrap().len(), 2);
                drop((read, predicate));
            }
            assert!(accepted >= 40, "{open}: {accepted}");
        }
        for word in ["and", "or"] {
            let text = format!("s{}", format!(" {word} s").repeat(100_000));
            let read = Expr::parse_sql(&text).unwrap();
            let predicate = read.bind(&schema, &Arc::new(Schema::empty())).unwrap();
            assert_eq!(
                predicate.evaluate(&columns(&predicate), 2).unwrap().iter().collect::<Vec<_>>(),
                [Some(true), None]
            );
            assert_eq!(read.to_string().len(), text.len());
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
}

fn literal() -> impl Strategy<Value = Literal> {
    use Literal::*;
    let unit = || {
        proptest::sample::select(vec![
            TimeUnit::Second,
            TimeUnit::Millisecond,
            TimeUnit::Microsecond,
            TimeUnit::Nanosecond,
        ])
    };
    let zone = proptest::sample::select(vec![None, Some("UTC"), Some("Europe/Paris"), Some("-03:30"), Some("it's")]);
    let scale = |unit| {
        10i64.pow(match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        })
    };
    prop_oneof![
        Just(Null),
        any::<bool>().prop_map(Boolean),
        any::<i128>().prop_map(Integer),
        (-9i128..9).prop_map(Integer),
        any::<f64>().prop_filter("one NaN", |v| !v.is_nan() || v.to_bits() == f64::NAN.to_bits()).prop_map(Float),
        proptest::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300]).prop_map(Float),
        (any::<i128>(), -38i8..39).prop_map(|(v, scale)| Decimal { value: i256::from_i128(v), scale }),
        ".{0,9}".prop_map(Text),
        proptest::collection::vec(any::<u8>(), 0..5).prop_map(Binary),
        any::<i32>().prop_map(Date),
        (unit(), 0..86_400_000_000_000i64).prop_map(move |(unit, v)| Time { value: v % (86_400 * scale(unit)), unit }),
        (any::<i64>(), unit(), zone).prop_map(|(value, unit, zone)| Timestamp {
            value,
            unit,
            zone: zone.map(Into::into)
        }),
        (any::<i64>(), unit()).prop_map(|(value, unit)| Duration { value, unit }),
        any::<(i32, i32, i64)>().prop_map(|(months, days, nanos)| Interval { months, days, nanos }),
    ]
}

fn data_type() -> impl Strategy<Value = DataType> {
    use DataType::*;
    let zone = |zone: &str| Some(zone.into());
    proptest::sample::select(vec![
        Boolean,
        Int8,
        Int32,
        Int64,
        UInt8,
        UInt64,
        Float16,
        Float32,
        Float64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        BinaryView,
        Date32,
        Date64,
        Decimal32(5, 2),
        Decimal64(12, 3),
        Decimal128(9, 2),
        Decimal256(76, 0),
        Decimal256(9, 2),
        Decimal128(9, -2),
        Time32(TimeUnit::Second),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Second, zone("UTC")),
        Timestamp(TimeUnit::Nanosecond, zone("Europe/Paris")),
        Timestamp(TimeUnit::Millisecond, zone("+01:00")),
        Duration(TimeUnit::Millisecond),
        Interval(IntervalUnit::MonthDayNano),
        Interval(IntervalUnit::DayTime),
    ])
}

fn expression() -> impl Strategy<Value = Expr> {
    let name =
        prop_oneof!["[a-z_]{1,4}", ".{1,4}", Just("and".to_owned()), Just("build".to_owned()), Just("Date".to_owned())];
    let side = proptest::sample::select(vec![Some(Side::Build), Some(Side::Probe), None]);
    let column = (side, name).prop_map(|(side, name)| Expr::Column(ColumnRef { side, id: name.into(), at: None }));
    let leaf = prop_oneof![column, (0usize..9).prop_map(probe), literal().prop_map(Expr::Literal)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let compare = proptest::sample::select(vec![
            CompareOp::Eq,
            CompareOp::Ne,
            CompareOp::Lt,
            CompareOp::Le,
            CompareOp::Gt,
            CompareOp::Ge,
            CompareOp::Distinct,
            CompareOp::NotDistinct,
        ]);
        let arithmetic = proptest::sample::select(vec![
            ArithmeticOp::Add,
            ArithmeticOp::Sub,
            ArithmeticOp::Mul,
            ArithmeticOp::Div,
            ArithmeticOp::Rem,
        ]);
        let one = || inner.clone();
        let many = |least| proptest::collection::vec(inner.clone(), least..4);
        prop_oneof![
            (compare, one(), one()).prop_map(|(op, l, r)| l.compare(op, r)),
            (arithmetic, one(), one()).prop_map(|(op, l, r)| l.arithmetic(op, r)),
            many(2).prop_map(Expr::And),
            many(2).prop_map(Expr::Or),
            one().prop_map(Expr::not),
            one().prop_map(Expr::is_null),
            one().prop_map(Expr::is_true),
            one().prop_map(Expr::is_false),
            one().prop_map(|e| -e),
            (one(), many(0)).prop_map(|(value, list)| value.is_in(list)),
            (one(), one(), one()).prop_map(|(value, low, high)| value.between(low, high)),
            (one(), one(), any::<bool>()).prop_map(|(l, r, i)| if i { l.ilike(r) } else { l.like(r) }),
            (one(), data_type(), any::<bool>()).prop_map(|(e, t, n)| if n { e.try_cast(t) } else { e.cast(t) }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// B3: reading a written expression gives the same expression.
    #[test]
    fn written_text_reads_as_the_same(expr in expression()) {
        let text = expr.to_string();
        let read = Expr::parse_sql(&text);
        prop_assert_eq!(read.as_ref().ok(), Some(&expr), "{}: {:?}", text, read);
    }

    /// Any text is refused or read; what was read can be written and read again.
    #[test]
    fn any_text_is_read_or_refused(
        words in proptest::collection::vec(prop_oneof![
            3 => proptest::sample::select(vec![
                "build", "probe", ".", "a", "\"b c\"", "1", "2.5", "1e3", "'x'", "(", ")", ",", "and", "or", "not", "is", "null", "true",
                "in", "between", "like", "escape", "cast", "as", "int", "::", "+", "-", "*", "/", "%", "=", "<", "<>", "interval",
                "'1 day'", "date", "timestamp", "with", "time", "zone", "distinct", "from", "[", "]", "X'00'", "'", "\"", "--", "/*", "\n",
            ]).prop_map(str::to_owned),
            1 => ".{0,3}",
        ], 0..14)
    ) {
        match Expr::parse_sql(&words.join(" ")) {
            Ok(expr) => prop_assert_eq!(Expr::parse_sql(&expr.to_string()).ok(), Some(expr)),
            Err(error) => prop_assert!(matches!(error, Error::Plan(_)) && error.to_string().contains("at line "), "{}", error),
        }
    }
}
