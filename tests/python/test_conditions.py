"""Conditions over every pair of types: laws between the operators, and DuckDB as a second evaluation."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import itertools
import math
import operator
import subprocess
import sys
import textwrap
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prejoin
from prejoin import col, lit, sql

D = decimal.Decimal
UTC = dt.timezone.utc
ONE = pa.table({"k": [1]})
X, Y = col("build.x"), col("build.y")
# What a condition is on each row; or the class of its error.
Truth = list[bool | None] | type[Exception]


def truth(where: str | prejoin.Expr, **columns: pa.Array) -> Truth:
    rows = max(map(len, columns.values()))
    build = prejoin.prepare(pa.table({"k": [1] * rows, "row": range(rows), **columns}), "k")
    condition = sql(where) if isinstance(where, str) else where
    try:
        yes, no = (prejoin.join(ONE, build, where=w)["row"].to_pylist() for w in (condition, ~condition))
    except prejoin.PrejoinError as error:
        return type(error)
    return [True if row in yes else False if row in no else None for row in range(rows)]


DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
STAMPS = [
    dt.datetime(1900, 1, 1, 0, 0, 0, 1),
    dt.datetime(1969, 12, 31),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500_000),
    dt.datetime(1970, 1, 1),
    dt.datetime(2024, 2, 29, 12, 34, 56, 789_012),
]
TIMES = [dt.time(0), dt.time(12, 34, 56), dt.time(12, 34, 56, 789_000), dt.time(23, 59, 59, 999_999)]
INTS = [-(2**63), -(2**31), -129, -128, -1, 0, 1, 2, 100, 127, 128, 255, 256, 2**24, 2**24 + 1, 2**53, 2**53 + 1]
INTS += [2**63 - 1, 2**63, 2**64 - 1]
FLOATS = [0.0, -0.0, 0.1, 1.0, 1.5, -1.5, 100.0, 2.0**24, 2.0**53, math.nan, math.inf, -math.inf]
CENTS = [D("0.10"), D("1.50"), D("-1.50"), D("2.00"), D("100.00")]
UNITS = ["s", "ms", "us", "ns"]


def floored(values: pa.Array, to: pa.DataType) -> pa.Array:
    return values.cast(to, safe=False) if to.unit != "s" else pc.floor_temporal(values, unit="second").cast(to)


def integers(data_type: pa.DataType) -> pa.Array:
    bits, signed = data_type.bit_width, pa.types.is_signed_integer(data_type)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    return pa.array([None, *(n for n in INTS if low <= n < high)], data_type)


COLUMNS: dict[str, pa.Array] = {
    **{str(t): integers(t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(t): integers(t) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "half": pa.array([None, *(np.float16(v) for v in FLOATS if not 65_504 < v < math.inf)], pa.float16()),
    "float": pa.array([None, *(float(np.float32(v)) for v in FLOATS)], pa.float32()),
    "double": pa.array([None, *FLOATS], pa.float64()),
    "decimal32": pa.array([None, *CENTS], pa.decimal32(5, 2)),
    "decimal64": pa.array([None, *CENTS], pa.decimal64(12, 3)),
    "decimal128": pa.array([None, *CENTS, D("0.125")], pa.decimal128(20, 4)),
    "decimal256": pa.array([None, *CENTS], pa.decimal256(50, 6)),
    "bool": pa.array([None, True, False]),
    "string": pa.array([None, "", "a", "1", "2024-02-29", "σ"]),
    "large_string": pa.array([None, "", "a", "longer than twelve bytes"], pa.large_string()),
    "string_view": pa.array([None, "", "a", "longer than twelve bytes"], pa.string_view()),
    "binary": pa.array([None, b"", b"a", b"\x00\xff"]),
    "binary_view": pa.array([None, b"", b"a"], pa.binary_view()),
    "fixed": pa.array([None, b"ab", b"\x00\xff"], pa.binary(2)),
    "date32": pa.array([None, *DAYS], pa.date32()),
    "date64": pa.array([None, *DAYS], pa.date64()),
    **{
        f"time {u}": pa.array([None, *TIMES], pa.time64("us")).cast(
            pa.time32(u) if u in ("s", "ms") else pa.time64(u), safe=False
        )
        for u in UNITS
    },
    **{f"timestamp {u}": floored(pa.array([None, *STAMPS], pa.timestamp("us")), pa.timestamp(u)) for u in UNITS},
    **{
        f"zoned {u}": floored(pa.array([None, *STAMPS], pa.timestamp("us", zone)), pa.timestamp(u, zone))
        for u, zone in zip(UNITS, ["UTC", "Europe/Paris", "+05:30", "UTC"], strict=True)
    },
    **{f"duration {u}": pa.array([None, 0, 1, -1, 1500, 86_400], pa.duration(u)) for u in UNITS},
    "interval": pa.array([None, (0, 1, 0), (1, 0, 0)], pa.month_day_nano_interval()),
    "null": pa.nulls(3),
    "list": pa.array([None, [1], []]),
}
CONSTANTS: list[Any] = [
    *(None, True, False, 0.1, 1e300, 1e-70, 2.0**63, 65_504.0, 70_000.0, "", "a", "1", "2024-02-29", b"", b"a", b"ab"),
    *INTS,
    *(2**64, 2**64 + 1, 2**70, 10**38),
    *FLOATS,
    *CENTS,
    *(D("0.1"), D("2"), D("70000"), D("1E3"), D("0.125"), D("1E-30"), D("9" * 40), D("1E45")),
    *DAYS,
    *STAMPS,
    *(stamp.replace(tzinfo=UTC) for stamp in STAMPS),
    *TIMES,
    *(dt.timedelta(0), dt.timedelta(seconds=1), dt.timedelta(days=-1), dt.timedelta(milliseconds=1500)),
    pa.scalar((0, 1, 0), pa.month_day_nano_interval()),
    pa.scalar((1, 0, 0), pa.month_day_nano_interval()),
    pa.scalar(10**12 + 1, pa.timestamp("ns")),
]


def encoded(values: pa.Array, how: str) -> pa.Array:
    if how == "dictionary":
        return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.int8()), values)
    if how == "runs":
        return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(values) + 1), pa.int32()), values)
    return values


def repeated(values: pa.Array, rows: int) -> pa.Array:
    return pa.concat_arrays([values] * (rows // len(values) + 1)).slice(0, rows)


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_lists_and_ranges_are_their_comparisons(data: st.DataObject) -> None:
    """B3: IN is OR of =, BETWEEN two comparisons, and turning one around changes nothing; values and errors alike."""
    draw = data.draw
    name, other = (draw(st.sampled_from(sorted(COLUMNS))) for _ in range(2))
    how = draw(st.sampled_from(["plain", "plain", "dictionary", "runs"]))
    plain = {"x": COLUMNS[name], "y": repeated(COLUMNS[other], len(COLUMNS[name]))}
    columns = plain | {"x": encoded(plain["x"], how)}
    operand = st.sampled_from([*CONSTANTS, Y])
    items = draw(st.lists(operand, min_size=1, max_size=3))
    value = draw(st.sampled_from([X, X, X, Y, None]))
    value = lit(draw(st.sampled_from(CONSTANTS))) if value is None else value
    listed = value.is_in(items)
    found = truth(listed, **columns)
    assert found == truth(functools.reduce(operator.or_, [value == item for item in items]), **columns), listed
    assert found == truth(sql(repr(listed)), **columns) == truth(listed, **plain), listed
    low, high = draw(operand), draw(operand)
    between = value.between(low, high)
    assert truth(between, **columns) == truth((value >= low) & (value <= high), **columns), between
    if value is not X:
        return
    for item in items:
        less = truth(value < item, **columns)
        turned = item > value if isinstance(item, prejoin.Expr) else lit(item) > value
        assert less == truth(turned, **columns) == truth(~(value >= item), **columns), (name, item)


COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
# Kinds that compare with each other; all other pairs are refused.
KINDS = [{"int", "float"}, {"int", "decimal"}, {"date", "timestamp"}, {"string"}, {"binary"}, {"bool"}, {"time"}]
KINDS += [{"zoned"}, {"duration"}]


def kind(name: str) -> str:
    word = name.split()[0]
    groups = {"half": "float", "double": "float", "large_string": "string", "fixed": "binary"}
    groups |= dict.fromkeys(["date32", "date64"], "date")
    stripped = word.lstrip("u").rstrip("0123456789")
    return groups.get(word, groups.get(stripped, stripped.replace("double", "float")))


# DuckDB has no type for these, or compares them another way: it cuts nanoseconds off spans, has two types of time and
# reads decimals of 256 bits as floats.
NOT_IN_DUCKDB = {
    "half",
    "decimal256",
    "binary_view",
    "string_view",
    "interval",
    "null",
    "list",
    "duration ns",
    "time ns",
}


def small(values: pa.Array) -> pa.Array:
    """The numbers of which a float holds every integer around."""
    kept = [v for v in values.to_pylist() if v is None or not math.isfinite(v) or abs(v) <= 2**24]
    return pa.array(kept, values.type)


def every_pair(left: str, right: str) -> pa.Table:
    """Each value of one column beside each of the other, as far as DuckDB compares them by value."""
    a, b = COLUMNS[left], COLUMNS[right]
    if {kind(left), kind(right)} == {"int", "float"}:
        a, b = small(a), small(b)
    if "timestamp ns" in (left, right):
        # Days beyond the years of nanoseconds are refused there.
        a, b = (v.slice(2, 3) if pa.types.is_date(v.type) else v for v in (a, b))
    rows = len(a) * len(b)
    each = pa.array([value for value in a.to_pylist() for _ in range(len(b))], a.type)
    return pa.table({"row": range(rows), "x": each, "y": repeated(b, rows)})


@functools.cache
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'")
    return made


def duck(table: pa.Table, expression: str) -> pa.Array:
    """What DuckDB says on each row."""
    found = connection().from_arrow(table).query("pairs", f"SELECT {expression} AS found FROM pairs ORDER BY row")
    assert found is not None
    return found.to_arrow_table()["found"].combine_chunks()


def test_duckdb_compares_every_pair_of_types_alike() -> None:
    """B3: each value of one type with each of the other; refused are the pairs that the documentation names."""
    for left, right in itertools.combinations_with_replacement(sorted(COLUMNS.keys() - NOT_IN_DUCKDB), 2):
        table = every_pair(left, right)
        x, y = (table[name].combine_chunks() for name in "xy")
        if not any({kind(left), kind(right)} <= kinds for kinds in KINDS):
            assert truth("x = y", x=x, y=y) is truth("x < y", x=x, y=y) is prejoin.PlanError, (left, right)
            continue
        # One query for all of them: a list on each row.
        tests = [f"x {compare} y" for compare in COMPARISONS]
        due = duck(table, f"[{', '.join(tests)}]").to_pylist()
        for i, test in enumerate(tests):
            assert truth(test, x=x, y=y) == [row[i] for row in due], (left, test, right)


NUMBERS = ["tinyint", "bigint", "ubigint", "real", "double", "decimal(9, 2)", "decimal(38, 6)", "varchar"]
CASTS = {
    **{name: [*NUMBERS, "boolean"] for name in ("int8", "int32", "int64", "uint8", "uint64")},
    "decimal128": ["double", "decimal(9, 2)", "decimal(38, 6)"],
    "double": ["real", "double", "decimal(9, 2)"],
    "bool": ["bigint", "boolean", "varchar"],
    "string": ["varchar", "bigint", "double", "decimal(9, 2)", "date"],
    "date32": ["date", "timestamp", "timestamptz", "varchar"],
    **{f"timestamp {u}": ["date", "time", "timestamp"] for u in UNITS},
    **{f"zoned {u}": ["timestamp", "timestamptz"] for u in UNITS},
    "zoned s": ["date", "timestamp", "timestamptz"],
    "time us": ["time", "varchar"],
}


def test_duckdb_casts_alike() -> None:
    """B3: where both have a rule; docs/predicates.md says where ours is another one."""
    for name, targets in CASTS.items():
        a = COLUMNS[name]
        table = pa.table({"row": range(len(a)), "x": a})
        for to in targets:
            b = duck(table, f"TRY_CAST(x AS {to})")
            same = truth(f"TRY_CAST(x AS {to}) IS NOT DISTINCT FROM y", x=a, y=b)
            assert same == [True] * len(a), (name, to, b)


@pytest.mark.parametrize("how", ["plain", "dictionary", "runs"])
def test_casts_to_a_coarser_unit_go_down(how: str) -> None:
    """B3: a cast, then a comparison; before 1970 as after, like ::DATE and ::TIME. The oracle counts in integers."""
    per_second = {unit: 10 ** (3 * i) for i, unit in enumerate(UNITS)}
    for fine, coarse in itertools.combinations(reversed(UNITS), 2):
        counts = [c * per_second[fine] + d for c in (-86_400, -1, 0, 1, 86_399) for d in (-1, 0, 1)]
        due = [count * per_second[coarse] // per_second[fine] for count in counts]
        for zone in (None, "UTC", "+05:30", "Europe/Paris"):
            x = encoded(pa.array(counts, pa.timestamp(fine, zone)), how)
            y = pa.array(due, pa.timestamp(coarse, zone))
            digits = 3 * UNITS.index(coarse)
            to = f"timestamp({digits})" if zone is None else f"timestamp({digits}) with time zone"
            assert truth(f"x::{to} = y", x=x, y=y) == [True] * len(counts), (fine, coarse, zone)
        days = [count // per_second[fine] // 86_400 for count in counts]
        x, y = pa.array(counts, pa.timestamp(fine)), pa.array(days, pa.int32()).cast(pa.date32())
        assert truth('x::date = y and x::"Date64" = y', x=x, y=y) == [True] * len(counts)
    # A date in milliseconds that is no midnight.
    x = pa.Array.from_buffers(pa.date64(), 3, [None, pa.py_buffer(np.array([-86_400_001, -1, 86_400_001], "<i8"))])
    y = pa.array([-2, -1, 1], pa.int32()).cast(pa.date32())
    assert truth("x::date = y", x=x, y=y) == [True] * 3
    for where in ("x + interval '1 day' = x::timestamp(3) + interval '1 day'", "x - interval '1 day' < x"):
        assert truth(where, x=x) == [True] * 3, where
    y = pa.array([-86_401, -1, 86_400], pa.timestamp("s"))
    assert truth("x::timestamp(0) = y", x=x, y=y) == [True] * 3


@pytest.mark.parametrize("data_type", [pa.float16(), pa.float32(), pa.float64()])
def test_a_decimal_beside_a_float_is_the_nearest_of_its_type(data_type: pa.DataType) -> None:
    x = pa.array(np.array([0.1, np.inf, 1.0], data_type.to_pandas_dtype()))
    assert truth("x = 0.1 and x <= 0.1 and not x < 0.1", x=x) == [True, False, False]
    assert truth("x in (0.1, 1)", x=x) == [True, False, True]
    assert truth("x between 0.1 and 0.1", x=x) == [True, False, False]
    # Beyond the range of the type it keeps its value and is not infinite.
    assert truth("x = 70000.5 or x > 70000.5", x=x) == [False, True, False]
    assert truth(f"x in ({10**40}.5)", x=x) == [False] * 3


def test_a_number_with_a_point_is_no_integer_in_arithmetic() -> None:
    x = pa.array([3, 4, None])
    for where in ("x / 2.0 = 1.5", "x / 2e0 = 1.5", "x * 0.5 = 1.5", "x / decimal '2' = 1.5", "x / -2.0 = -1.5"):
        assert truth(where, x=x) == [True, False, None], where
    assert truth(X / D(2) == 1.5, x=x) == [True, False, None]
    assert truth("x / 2 = 1", x=x) == [True, False, None]


def test_null_with_anything_is_null_and_never_fails() -> None:
    x = pa.array([2**63, 1, None], pa.uint64())
    y = pa.array([None, 2, 2**62], pa.int64())
    for op in "+-*/%":
        assert truth(f"(x {op} y) is null and (y {op} x) is null", x=x, y=y) == [True, False, True], op
        assert truth(f"(x {op} null) is null and (null {op} x) is null", x=x) == [True] * 3, op
    assert truth("x * y = 2", x=x, y=pa.array([None, 2, None], pa.int8())) == [None, True, None]
    assert truth("null / 0 is null and null % 0 is null", x=x) == [True] * 3
    far = pa.array([dt.datetime(1, 1, 1), dt.datetime(2024, 1, 1)])
    spans = pa.array([None, 1], pa.duration("ns"))
    assert truth("x + y > x", x=far, y=spans) == [None, True]
    assert truth("x * y = 2", x=pa.array([2**63], pa.uint64()), y=pa.array([1])) is prejoin.ExecutionError


def test_values_that_no_pair_has_cannot_fail() -> None:
    """B3: a dictionary may hold values that are used by other rows only, or by none."""
    stamps = [dt.datetime(2024, 1, 1), dt.datetime(1, 1, 1)]
    for values, where in [
        (pa.array([1, 2, 2**63], pa.uint64()), "-x < 0"),
        (pa.array([1, 2, 2**63], pa.uint64()), "x + -3 < 0"),
        (pa.array([1, 2, 300]), "x::tinyint > 0"),
        (pa.array(["1", "2", "x"]), "x::int > 0"),
        (pa.array(["1", "2", "x"]), "x::decimal(9, 2) > 0"),
        (pa.array([stamps[0], stamps[0], stamps[1]], pa.timestamp("us")), "x + interval '1 ns' > x"),
        (pa.array([stamps[0], stamps[0], stamps[1]], pa.timestamp("us")), "x::timestamp(9) = x"),
    ]:
        x = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), values)
        for column in (x, x.dictionary_decode(), pc.run_end_encode(values)):
            build = prejoin.prepare(pa.table({"k": [1, 1, 7], "x": column}), "k")
            assert prejoin.join(ONE, build, where=where).num_rows == 2, where
        unused = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), values)
        assert truth(where, x=unused) == [True, True, None]
        assert truth(where, x=x) is prejoin.ExecutionError


def test_decimals_have_no_more_digits_than_their_type() -> None:
    x = pa.array([D("9" * 33 + "." + "9" * 5)], pa.decimal128(38, 5))
    for where in ("x + 1.50 > x", "x + x > x", "x - -1 > x", "x * 10 > x"):
        assert truth(where, x=x) is prejoin.ExecutionError, where
    wide = pa.array([D("9" * 76)], pa.decimal256(76, 0))
    assert truth("x + 1 > x", x=wide) is prejoin.ExecutionError
    small = pa.array([D("1.25")], pa.decimal128(5, 2))
    assert truth("x + 1000000 = 1000001.25", x=small) == [True]
    assert truth("x * 2 * 2 = 5", x=pa.array([D("1.25")], pa.decimal128(38, 20))) == [True]


TEXTS = [
    *(
        "12:34:60",
        "12:34:59",
        "24:00",
        "1:2",
        "1:02",
        "12:34 PM",
        "12:34:56.123456789",
        "12:34:56.1234567891",
        " 12:34\n",
    ),
    *("2024-02-29", "2023-02-29", "20240229", "2024-2-9", "+12024-01-01", "-0044-03-15", "2024-02-29 10:00", "x", ""),
    *("2024-02-29T10:00:00Z", "2024-02-29 10:00:00.5+05:30", "2024-02-29 10:00 UTC", "2024-02-29 25:00", "2024-02-29T"),
    *("1.5", "-1.50", "+7", "1e3", ".5", "5.", "1e400", "nan", "-Infinity", "0x10", "1_000", "1,5", "\t1.5 ", "1 5"),
    *("1 day", "1 month 2 days", "01:02:03", "5", "1 fortnight", "1500 ms", "0.5 months"),
]


@pytest.mark.parametrize(
    ("word", "to"),
    [
        ("DATE", "date"),
        ("DATE", '"Date64"'),
        ("TIME", "time(9)"),
        ("TIMESTAMP WITH TIME ZONE", "timestamp with time zone"),
        ("DOUBLE", "double"),
        ("DECIMAL", "decimal(38, 6)"),
        ("INTERVAL", "interval"),
        ("DURATION", '"Duration(ns)"'),
    ],
)
def test_casts_read_the_texts_that_constants_take(word: str, to: str) -> None:
    """B3: the same texts are taken and refused, and mean the same."""
    for layout in (pa.string(), pa.large_string(), pa.string_view()):
        texts = pa.array(TEXTS, layout)
        read = truth(f"TRY_CAST(x AS {to}) IS NOT NULL", x=texts)
        strict = [truth(f"CAST(x AS {to}) IS NOT NULL", x=pa.array([text], layout)) == [True] for text in TEXTS]
        assert read == strict
        for text, taken in zip(TEXTS, strict, strict=True):
            try:
                constant = sql(f"{word} '{text}'")
            except prejoin.PlanError:
                assert not taken, text
                continue
            assert taken, text
            if word != "INTERVAL":
                assert truth(sql(f"CAST(x AS {to})") == constant, x=pa.array([text], layout)) == [True], text


@pytest.mark.parametrize(
    ("array", "text", "hint"),
    [
        (pa.array(DAYS), "2024-01-05", "write DATE '2024-01-05', or cast one of them"),
        (pa.array(DAYS, pa.date64()), "soon", "write DATE '2024-12-31', or cast one of them"),
        (pa.array(STAMPS), "2024-01-05 10:00", "write TIMESTAMP '2024-01-05 10:00:00', or cast one of them"),
        (pa.array(STAMPS, pa.timestamp("s", "UTC")), "2024-01-05", "write TIMESTAMP '2024-01-05 00:00:00Z'"),
        (pa.array(TIMES), "10:00", "write TIME '10:00:00', or cast one of them"),
        (pa.array([1], pa.duration("s")), "2 hours", "write INTERVAL '7200 seconds', or cast one of them"),
        (pa.array([1]), "5", "write 5 without quotes, or cast one of them"),
        (pa.array([True]), "true", "write TRUE or FALSE, or cast one of them"),
    ],
)
def test_text_beside_another_type_says_how_to_write_it(array: pa.Array, text: str, hint: str) -> None:
    build = prejoin.prepare(pa.table({"k": [1] * len(array), "x": array}), "k")
    compared: list[Any] = [text == X, lit(text) < X, X.is_in([text]), X.between(text, text), sql(f"x <> '{text}'")]
    for condition in compared:
        with pytest.raises(prejoin.PlanError) as refused:
            prejoin.join(ONE, build, where=condition)
        assert f"which do not compare; {hint}" in str(refused.value)
    columns = prejoin.prepare(pa.table({"k": [1], "x": ["a"], "y": [dt.date(2024, 1, 1)]}), "k")
    with pytest.raises(prejoin.PlanError, match="which do not compare; cast one of them"):
        prejoin.join(ONE, columns, where=X == Y)


def test_letters_that_differ_by_case_are_the_same_to_ilike() -> None:
    """B3: one character for one, as str.casefold has it where that is one character."""
    letters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    folded = [(c, c.casefold()) for c in letters if len(c.casefold()) == 1 and c.casefold() != c]
    x, y = (pa.array(column) for column in zip(*folded, strict=True))
    assert truth("x ilike y and y ilike x", x=x, y=y) == [True] * len(folded)
    # A form of a letter by another way of changing case is the same only where casefold has it so.
    forms = {(c, form) for c in letters for form in (c.lower(), c.upper(), c.title()) if len(form) == 1 and form != c}
    pairs = sorted(forms | {("ı", "i"), ("ı", "I"), ("İ", "i"), ("ß", "s")})
    x, y = (pa.array(column) for column in zip(*pairs, strict=True))
    assert truth("x ilike y", x=x, y=y) == [a.casefold() == b.casefold() for a, b in pairs]
    assert truth("x ilike 'ΣΚΥΛΟΣ'", x=pa.array(["σκυλος", "σκυλοσ", "σκυλο"])) == [True, True, False]


DEEPEST = """
    import pickle, sys, threading
    import pyarrow as pa, prejoin
    from prejoin import HashJoin, col, sql
    build = pa.table({"k": [1], "s": [True], "n": [0]})
    prepared, probe = prejoin.prepare(build, "k"), pa.table({"k": [1]})
    s, n = col("build.s"), col("build.n")
    prejoin.join(probe, prepared, where=pickle.loads(pickle.dumps(s)))

    def grown(expr, grow):
        levels = 1
        while True:
            try:
                expr = grow(expr)
            except prejoin.PlanError as error:
                assert "more than 128 levels" in str(error)
                return levels, expr
            levels += 1

    def use(where):
        again = pickle.loads(pickle.dumps(where))
        assert repr(again) == repr(where)
        prejoin.join(probe, prepared, where=again)
        join = HashJoin(build, probe, ["k"], where=where)
        join.explain(), pickle.dumps(join.where), join.execute().read_all()

    def work():
        conditions = [lambda e: ~e, lambda e: e.is_true(), lambda e: e == s, lambda e: s.is_in([e]),
                      lambda e: s.between(e, s), lambda e: (e & s).is_null(), lambda e: (e | s) & s]
        for grow in conditions:
            levels, deepest = grown(s, grow)
            assert levels >= 64, levels
            use(deepest)
        numbers = [lambda e: -e, lambda e: e + 1, lambda e: 1 - e, lambda e: e.cast("bigint"), lambda e: e * n]
        for grow in numbers:
            deepest = n
            for _ in range(126):
                deepest = grow(deepest)
            use(deepest == 0)
        for text in ("not (" * 63 + "s" + ")" * 63, "not " * 127 + "s", "(" * 250 + "s" + ")" * 250,
                     "- " * 126 + "n = 0"):
            use(sql(text))
        for text in ("(" * 100_000, "not (" * 10_000 + "s" + ")" * 10_000, "- " * 10_000 + "n = 0",
                     "cast(" * 10_000 + "s"):
            try:
                sql(text)
            except prejoin.PlanError as error:
                assert "nested deeper than 128 levels" in str(error)
            else:
                raise AssertionError(text)
        use(sql("s" + " and s" * 50_000))
        print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the stack of a thread has another least size there")
def test_the_deepest_conditions_need_little_stack() -> None:
    """B3: on a thread of 128 KiB, the default of musl, each accepted condition works and each other is refused."""
    code = textwrap.dedent(DEEPEST) + textwrap.dedent("""
        threading.stack_size(128 * 1024)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    """)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
