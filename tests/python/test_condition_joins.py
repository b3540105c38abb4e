"""Conditions in every join type, compared with a nested loop that evaluates them pair by pair in three-valued logic."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prejoin
from prejoin import HashJoin, col, lit, sql
from words import hash_join_how

KINDS = ["inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti"]
Row = dict[str, Any]


class FailsError(Exception):
    """Evaluating the condition for this pair fails."""


@dataclass
class Node:
    """An expression, and a function that evaluates it for one pair."""

    expr: prejoin.Expr
    value: Callable[[Row], Any]


# ---- values: None is null; decimals are fractions; timestamps and spans are microseconds, dates their midnight

EPOCH = dt.datetime(1970, 1, 1)
MICRO = dt.timedelta(microseconds=1)
BUILD = {
    "i": pa.int32(),
    "k": pa.int8(),
    "a": pa.int8(),
    "u": pa.uint64(),
    "f": pa.float64(),
    "s": pa.string(),
    "d": pa.decimal128(9, 2),
    "t": pa.timestamp("ms"),
    "b": pa.bool_(),
}
PROBE = {
    "j": pa.int32(),
    "k": pa.int8(),
    "x": pa.int64(),
    "g": pa.float32(),
    "r": pa.dictionary(pa.int8(), pa.large_string()),
    "e": pa.decimal128(20, 4),
    "w": pa.timestamp("us"),
    "y": pa.date32(),
    "c": pa.bool_(),
}
INTS = st.sampled_from([-128, -3, -1, 0, 1, 2, 3, 127])
LONGS = st.sampled_from([-(2**63), -(2**62), -2, -1, 0, 1, 2, 3, 2**53 + 1, 2**62, 2**63 - 1])
FLOATS = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, 1.0, -1.5, 3.0, float(2**53), 1e300])
TEXTS = st.sampled_from(["", "a", "A", "ab", "a%", "%b", "_", "a\\%", "é_", "b'b"])
CENTS = st.integers(-300, 300).map(lambda n: decimal.Decimal(n).scaleb(-2))
STAMPS = st.sampled_from([EPOCH + dt.timedelta(milliseconds=n) for n in (-1, 0, 1, 86_400_000, 60_000)])
SPANS = st.sampled_from([dt.timedelta(milliseconds=n) for n in (-86_400_000, -1, 0, 1, 60_000)] + [MICRO])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "k": st.sampled_from([0, 0, 0, 1]),
    "a": INTS,
    "u": st.sampled_from([0, 1, 3, 127, 2**63, 2**64 - 1]),
    "f": FLOATS,
    "s": TEXTS,
    "d": CENTS,
    "t": STAMPS,
    "b": st.booleans(),
    "x": LONGS,
    "g": FLOATS.map(lambda v: float(np.float32(min(v, 1e30)))),
    "r": TEXTS,
    "e": CENTS.map(lambda v: v + decimal.Decimal("0.0001")) | CENTS,
    "w": STAMPS | STAMPS.map(lambda v: v + MICRO),
    "y": STAMPS.map(lambda v: v.date()),
    "c": st.booleans(),
}


def plain(value: Any) -> Any:
    match value:
        case decimal.Decimal():
            return Fraction(value)
        case dt.datetime():
            return (value - EPOCH) // MICRO
        case dt.date():
            return (dt.datetime(value.year, value.month, value.day) - EPOCH) // MICRO
        case dt.timedelta():
            return value // MICRO
    return value


def order(a: Any, b: Any) -> int:
    """-1, 0 or 1; every NaN equals every NaN and is above all numbers."""
    a_nan, b_nan = (isinstance(v, float) and math.isnan(v) for v in (a, b))
    if a_nan or b_nan:
        return int(a_nan) - int(b_nan)
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def null_safe(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: None if any(v is None for v in values) else f(*values)


def same(a: Any, b: Any) -> bool:
    return (a is None and b is None) if a is None or b is None else order(a, b) == 0


def kleene_and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def kleene_or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def like(text: str, pattern: str, ignore_case: bool) -> bool:
    parts = re.findall(r"\\.|\\$|%|_|[^%_\\]", pattern, re.DOTALL)
    signs = [{"%": ".*", "_": "."}.get(p) or re.escape(p[1:] if len(p) == 2 else p) for p in parts]
    return re.fullmatch("".join(signs), text, re.DOTALL | (re.IGNORECASE if ignore_case else 0)) is not None


def within(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise FailsError
    return number


def quotient(a: Any, b: Any) -> Any:
    if b == 0:
        raise FailsError
    if isinstance(a, int):
        return within(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    return a / b


def remainder(a: int, b: int) -> int:
    if b == 0:
        raise FailsError
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


ARITHMETIC: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "/": (lambda a, b: a / b, quotient),
    "%": (lambda a, b: a % b, remainder),
}


def column(name: str) -> Node:
    side = "build" if name in BUILD else "probe"
    expr = sql(name) if name not in ("i", "j", "k") and len(name) == 1 and ord(name) % 2 else col(f"{side}.{name}")
    return Node(expr, lambda row: plain(row[name]))


def constant(value: Any) -> Node:
    return Node(lit(value), lambda row: plain(value))


def family(columns: str, constants: st.SearchStrategy[Any]) -> st.SearchStrategy[Node]:
    return st.sampled_from(columns).map(column) | (constants | st.none()).map(constant)


def applied(f: Callable[..., prejoin.Expr], g: Callable[..., Any], *nodes: Node) -> Node:
    """`f` of the expressions; `g` of their values, all of which are computed."""
    return Node(f(*(n.expr for n in nodes)), lambda row: g(*[n.value(row) for n in nodes]))


@st.composite
def integers(draw: st.DrawFn) -> Node:
    leaf = family("ax", INTS | LONGS)
    node = draw(leaf)
    steps = draw(st.sampled_from([0, 1, 1, 2]))
    for sign in draw(st.lists(st.sampled_from([*ARITHMETIC, "negate"]), min_size=steps, max_size=steps)):
        if sign == "negate":
            node = applied(lambda e: -e, null_safe(lambda v: within(-v)), node)
        else:
            f, g = ARITHMETIC[sign]
            pair = (node, draw(leaf)) if draw(st.booleans()) else (draw(leaf), node)
            node = applied(f, null_safe(lambda a, b, g=g: within(g(a, b))), *pair)
    return node


@st.composite
def floats(draw: st.DrawFn) -> Node:
    node = draw(family("fg", FLOATS))
    if draw(st.booleans()):
        f, g = ARITHMETIC[draw(st.sampled_from("+-*/"))]
        node = applied(f, null_safe(g), node, draw(st.sampled_from("fg").map(column)))
    return node


@st.composite
def decimals(draw: st.DrawFn) -> Node:
    node = draw(st.sampled_from("de").map(column))
    if draw(st.booleans()):
        f, g = ARITHMETIC[draw(st.sampled_from("+-*"))]
        node = applied(f, null_safe(g), node, draw(family("dea", CENTS)))
    return node


@st.composite
def stamps(draw: st.DrawFn) -> Node:
    node = draw(family("tw", STAMPS) | st.just(column("y")))
    if draw(st.booleans()):
        f, g = ARITHMETIC[draw(st.sampled_from("+-"))]
        node = applied(f, null_safe(g), draw(st.sampled_from("twy").map(column)), constant(draw(SPANS)))
    return node


@st.composite
def spans(draw: st.DrawFn) -> Node:
    f, g = ARITHMETIC["-"]
    pair = draw(st.tuples(st.sampled_from("tw"), st.sampled_from("twy")))
    return applied(f, null_safe(g), *map(column, pair))


def comparable() -> st.SearchStrategy[tuple[Node, ...]]:
    """Three values that compare with each other."""
    numbers = st.one_of(integers(), family("axu", LONGS), floats())
    exact = st.one_of(integers(), decimals(), family("de", CENTS))
    text = family("sr", TEXTS)
    times = st.one_of(stamps(), family("y", STAMPS.map(lambda v: v.date())))
    durations = st.one_of(spans(), SPANS.map(constant))
    return st.one_of(*(st.tuples(n, n, n) for n in (numbers, exact, text, times, durations)))


COMPARISONS: list[tuple[Callable[..., prejoin.Expr], Callable[[int], bool]]] = [
    (lambda a, b: a == b, lambda o: o == 0),
    (lambda a, b: a != b, lambda o: o != 0),
    (lambda a, b: a < b, lambda o: o < 0),
    (lambda a, b: a <= b, lambda o: o <= 0),
    (lambda a, b: a > b, lambda o: o > 0),
    (lambda a, b: a >= b, lambda o: o >= 0),
]


@st.composite
def single_tests(draw: st.DrawFn) -> Node:
    a, b, c = draw(comparable())
    equal = null_safe(lambda x, y: order(x, y) == 0)
    least, most = (null_safe(lambda x, y: order(x, y) >= 0), null_safe(lambda x, y: order(x, y) <= 0))
    match draw(st.integers(0, 8)):
        case 0:
            return applied(lambda x: x.is_null(), lambda x: x is None, a)
        case 1:
            return applied(lambda x, y: x.is_distinct_from(y), lambda x, y: not same(x, y), a, b)
        case 2:
            return applied(lambda x, y: x.is_not_distinct_from(y), same, a, b)
        case 3:
            return applied(lambda x, *y: x.is_in(y), lambda x, *y: kleene_or(*(equal(x, z) for z in y)), a, b, c)
        case 4:
            return applied(
                lambda x, y, z: x.between(y, z), lambda x, y, z: kleene_and(least(x, y), most(x, z)), a, b, c
            )
        case 5:
            s, pattern = (draw(family("sr", TEXTS)) for _ in range(2))
            return applied(lambda x, y: x.like(y), null_safe(lambda x, y: like(x, y, False)), s, pattern)
        case 6:
            s, pattern = (draw(family("sr", TEXTS)) for _ in range(2))
            return applied(lambda x, y: x.ilike(y), null_safe(lambda x, y: like(x, y, True)), s, pattern)
        case _:
            f, passes = draw(st.sampled_from(COMPARISONS))
            return applied(f, null_safe(lambda x, y: passes(order(x, y))), a, b)


def conditions() -> st.SearchStrategy[Node]:
    leaf = st.one_of(single_tests(), single_tests(), family("bc", st.booleans()))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda n: applied(lambda a, b: a & b, kleene_and, *n)),
            st.tuples(inner, inner).map(lambda n: applied(lambda a, b: a | b, kleene_or, *n)),
            inner.map(lambda n: applied(lambda a: ~a, null_safe(lambda v: not v), n)),
            inner.map(lambda n: applied(lambda a: a.is_true(), lambda v: v is True, n)),
            inner.map(lambda n: applied(lambda a: a.is_false(), lambda v: v is False, n)),
            inner.map(lambda n: applied(lambda a: a.is_null(), lambda v: v is None, n)),
        ),
        max_leaves=5,
    )


def side(types: dict[str, pa.DataType]) -> st.SearchStrategy[list[Row]]:
    """Rows; the first column counts them."""
    counter, *names = types
    # One value in five is null; nearly every key has a partner.
    row = st.fixed_dictionaries({n: VALUES[n] if n == "k" else st.one_of(*[VALUES[n]] * 4, st.none()) for n in names})
    return st.lists(row, min_size=2, max_size=5).map(lambda rows: [{counter: i, **row} for i, row in enumerate(rows)])


def table(rows: list[Row], types: dict[str, pa.DataType]) -> pa.Table:
    return pa.table({n: pa.array([row[n] for row in rows], t) for n, t in types.items()})


Pairs = list[tuple[int | None, int | None]]


def expected(how: str, build: list[Row], probe: list[Row], passes: Callable[[Row, Row], bool]) -> list[Any]:
    """The row numbers of a nested loop: (build, probe) pairs, or what a kind gives of one side."""
    pairs = [(b["i"], p["j"]) for p in probe for b in build if b["k"] == p["k"] and passes(b, p)]
    matched_build, matched_probe = {b for b, _ in pairs}, {p for _, p in pairs}
    unmatched: Pairs = [(b["i"], None) for b in build if b["i"] not in matched_build]
    outer: Pairs = []
    for p in probe:
        outer += [pair for pair in pairs if pair[1] == p["j"]] or [(None, p["j"])]
    kinds: dict[str, Callable[[], list[Any]]] = {
        "inner": lambda: pairs,
        "left": lambda: outer,
        "right": lambda: pairs + unmatched,
        "full": lambda: outer + unmatched,
        "semi": lambda: [p["j"] for p in probe if p["j"] in matched_probe],
        "anti": lambda: [p["j"] for p in probe if p["j"] not in matched_probe],
        "mark": lambda: [(p["j"], p["j"] in matched_probe) for p in probe],
        "build_semi": lambda: [b["i"] for b in build if b["i"] in matched_build],
        "build_anti": lambda: [b["i"] for b in build if b["i"] not in matched_build],
    }
    return kinds[how]()


def found(how: str, result: pa.RecordBatchReader) -> list[Any]:
    names = {"semi": ["j"], "anti": ["j"], "mark": ["j", "mark"], "build_semi": ["i"], "build_anti": ["i"]}
    columns = [result_column.to_pylist() for result_column in result.read_all().select(names.get(how, ["i", "j"]))]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(conditions(), side(BUILD), side(PROBE), st.sampled_from(KINDS), st.sampled_from([1, 3, 8192]), st.booleans())
def test_every_join_type_equals_a_nested_loop(
    condition: Node, build: list[Row], probe: list[Row], how: str, batch_size: int, as_text: bool
) -> None:
    """B3: nulls and errors included; a condition and its text mean the same."""
    text = repr(condition.expr)
    assert repr(sql(text)) == repr(pickle.loads(pickle.dumps(condition.expr))) == text
    join = HashJoin(
        table(build, BUILD),
        table(probe, PROBE).to_reader(max_chunksize=4),
        ["k"],
        hash_join_how(how),
        where=text if as_text else condition.expr,
    )
    try:
        rows = expected(how, build, probe, lambda b, p: condition.value({**b, **p}) is True)
    except FailsError:
        with pytest.raises(prejoin.ExecutionError):
            join.execute(batch_size=batch_size).read_all()
    else:
        assert found(how, join.execute(batch_size=batch_size)) == rows, text


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_keys_with_many_rows_are_evaluated_in_pieces(how: str, shuffled: bool) -> None:
    """B3: keys of 1, 50, 1,023, 1,024 and 20,000 build rows, of which some probe rows pass none, three, or all."""
    rng = np.random.default_rng(7)
    keys = np.repeat(np.arange(5), [1, 50, 1023, 1024, 20_000])
    if shuffled:
        rng.shuffle(keys)
    at = rng.integers(0, 1000, len(keys))
    build = pa.table({"i": pa.array(np.arange(len(keys)), pa.int32()), "k": keys, "at": at})
    probe_keys = np.array([4, 4, 9, 3, 0, 4, 2, 1, 9, 3, 4])
    low = np.array([0, 998, 0, 500, 0, 999, 990, 990, 3, 2000, 2000])
    probe = pa.table({"j": pa.array(np.arange(len(low)), pa.int32()), "k": probe_keys, "low": low})
    pairs = [
        (int(b), p)
        for p, (key, least) in enumerate(zip(probe_keys, low, strict=True))
        for b in np.flatnonzero((keys == key) & (at >= least) & (at != 999))
    ]
    by_probe: dict[int, list[tuple[int, int]]] = {}
    for pair in pairs:
        by_probe.setdefault(pair[1], []).append(pair)
    matched = {b for b, _ in pairs}
    rest = [(b, None) for b in range(len(keys)) if b not in matched]
    outer: Pairs = [pair for p in range(len(low)) for pair in by_probe.get(p, [(None, p)])]
    rows: dict[str, list[Any]] = {
        "inner": pairs,
        "left": outer,
        "right": pairs + rest,
        "full": outer + rest,
        "semi": sorted(by_probe),
        "anti": [p for p in range(len(low)) if p not in by_probe],
        "mark": [(p, p in by_probe) for p in range(len(low))],
        "build_semi": sorted(matched),
        "build_anti": [b for b, _ in rest],
    }
    where = "at >= low and at <> 999"
    for batch_size in (1000, 8192, 100_000):
        join = HashJoin(build, probe, ["k"], hash_join_how(how), where=where)
        batches = list(join.execute(batch_size=batch_size))
        sizes = [batch.num_rows for batch in batches]
        assert found(how, pa.RecordBatchReader.from_batches(join.schema, batches)) == rows[how]
        assert max(sizes) <= batch_size
    limited = HashJoin(build, probe, ["k"], hash_join_how(how), where=where, limit=5)
    assert found(how, limited.execute()) == rows[how][:5]


@pytest.mark.parametrize("how", KINDS)
def test_only_candidate_pairs_can_fail(how: str) -> None:
    """B3: a probe row without candidates has no pair, so the condition cannot fail for it."""
    build = pa.table({"k": [1, 2], "v": [1, 0]})
    probe = pa.table({"k": [1, 3], "w": [6, 2**63 - 1]})
    for where in ("w / v = 6", "w + 1 > 0", "1 / (k2 - k2) = 1", "w % v = 0"):
        text = where.replace("k2", "probe.k")
        join = HashJoin(build, probe.slice(1), ["k"], hash_join_how(how), where=text)
        join.execute().read_all()
    HashJoin(build, probe, ["k"], hash_join_how(how), where="w / v = 6 and w + 1 > 0").execute().read_all()
    with pytest.raises(prejoin.ExecutionError, match=re.escape("division by zero in 1 / (probe.k - probe.k)")):
        HashJoin(build, probe, ["k"], hash_join_how(how), where="1 / (probe.k - probe.k) = 1").execute().read_all()
    with pytest.raises(prejoin.ExecutionError, match=re.escape("w * 9223372036854775807 does not fit its type, Int64")):
        HashJoin(build, probe, ["k"], hash_join_how(how), where="w * 9223372036854775807 > 0").execute().read_all()


def test_text_is_accepted_wherever_a_condition_is() -> None:
    """B3: by `join`, `HashJoin`, `replace` and the attribute `where`; errors in it name the place."""
    build, probe = pa.table({"k": [1, 1], "my col": [1, 5]}), pa.record_batch({"k": [1], "w": [3]})
    prepared = prejoin.prepare(build, "k")
    where = 'probe.w < build."my col"'
    assert prejoin.join(probe, prepared, where=where).to_pylist() == [{"k": 1, "w": 3, "my col": 5}]
    assert prejoin.join(probe, build, "k", where=sql(where) & (col("probe.w") > 0)).num_rows == 1
    join = HashJoin(build, pa.table(probe), ["k"], where="w > 3")
    assert join.execute().read_all().num_rows == 0
    assert join.replace(where=where).execute().read_all().num_rows == 1
    join.where = '"my col" is not null'
    assert repr(join.where) == '"my col" IS NOT NULL'
    assert join.execute().read_all().num_rows == 2
    assert 'filter="my col" IS NOT NULL' in join.explain()
    with pytest.raises(TypeError, match=r"Expression was given; expressions of other libraries do not show"):
        prejoin.join(probe, prepared, where=pc.field("w") < 3)
    for bad, text in [
        ("w <\n frob(1)", r'function "frob" is not supported; .* at line 2, column 2 of the SQL text\n     frob'),
        ("w < v", r'neither side has a column "v"; .*, at line 1, column 5 of the SQL text\n    w < v\n        \^'),
        ("k = 1", r'both sides have a column "k"; write build\.k or probe\.k, at line 1, column 1'),
        ("w::nope = 1", r'"NOPE" is not a type that values can be cast to; .* at line 1, column 4'),
        ("", "the condition is empty"),
    ]:
        with pytest.raises(prejoin.PlanError, match=text):
            prejoin.join(probe, prepared, where=bad)


def test_long_chains_grow_in_linear_time() -> None:
    """Each link shares the links before it; two chains that continue the same one do not affect each other."""
    a = col("build.a")
    first = (a == 0) | (a == 1)
    one, other = first | (a == 2), first | (a == 3)
    assert [repr(e).count("OR") for e in (first, one, other)] == [1, 2, 2]
    assert repr(other) == "build.a = 0 OR build.a = 1 OR build.a = 3"
    assert repr(one | other).count("OR") == 5
    assert repr(one & other) == f"({one!r}) AND ({other!r})"
    chain = first
    for i in range(50_000):
        chain = chain | (a == i)
    assert repr(sql(repr(chain))) == repr(chain)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.5), "5e-1"),
        (np.bool_(True), "TRUE"),
        (np.str_("x"), "'x'"),
        (np.datetime64("2020-01-01T00:00:00.000000001"), "TIMESTAMP '2020-01-01 00:00:00.000000001'"),
        (np.datetime64("2020-01-01"), "DATE '2020-01-01'"),
        (np.datetime64("2020-01"), "DATE '2020-01-01'"),
        (np.timedelta64(3, "ms"), "DURATION '3 ms'"),
        (np.timedelta64(-2, "h"), "DURATION '-7200 s'"),
        (np.datetime64("NaT", "s"), "NULL"),
        (pa.scalar((1, -2, 3), pa.month_day_nano_interval()), "INTERVAL '1 months -2 days 0.000000003 seconds'"),
        (pa.scalar(5, pa.uint8()), "5"),
        (pa.scalar("x", pa.large_string()), "'x'"),
        (pa.scalar(b"\x01", pa.binary(1)), "X'01'"),
        (pa.scalar(None, pa.int8()), "NULL"),
        (pa.scalar(decimal.Decimal("1.50"), pa.decimal256(50, 2)), "1.50"),
        (pa.scalar(1, pa.timestamp("ns", "Europe/Paris")), "TIMESTAMP '1970-01-01 00:00:00.000000001Z[Europe/Paris]'"),
        (pa.scalar(dt.date(2020, 1, 1), pa.date64()), "DATE '2020-01-01'"),
        (pa.scalar(1, pa.time32("s")), "TIME '00:00:01'"),
        (pa.array(["x"]).dictionary_encode()[0], "'x'"),
    ],
)
def test_scalars_of_numpy_and_pyarrow(value: Any, text: str) -> None:
    assert repr(lit(value)) == text
    assert repr(sql(text)) == text


def test_methods_refuse_what_they_do_not_take() -> None:
    a = col("build.a")
    assert repr(a.is_in(pa.chunked_array([[1], [None]]))) == "build.a IN (1, NULL)"
    assert repr(a.is_in(range(2)) | a.is_in([])) == "build.a IN (0, 1) OR build.a IN ()"
    assert repr(a.cast(pa.int8()).try_cast("decimal(9, 2)")) == "TRY_CAST(CAST(build.a AS TINYINT) AS DECIMAL(9, 2))"
    misuses: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: a.is_in("abc"), TypeError, "a list of values, str was given"),
        (lambda: a.is_in(cast(Any, 1)), TypeError, "a list of values, int was given"),
        (lambda: a.is_in([object()]), TypeError, "object was given"),
        (lambda: a.is_in(pa.array([[1]])), TypeError, "no literal has the type List"),
        (lambda: a.cast(pa.list_(pa.int8())), prejoin.PlanError, "a value cannot be cast to"),
        (lambda: a.cast("frob"), prejoin.PlanError, "a value cannot be cast to"),
        (lambda: a.cast(int), TypeError, "a pyarrow.DataType or the name of a type"),
        (lambda: lit(np.timedelta64(1, "M")), TypeError, "in units of M"),
        (lambda: lit(np.longdouble(1)), TypeError, "a literal cannot be a numpy.longdouble"),
        (lambda: lit(pa.scalar([1])), TypeError, "a literal cannot be a pyarrow"),
    ]
    for misuse, error, text in misuses:
        with pytest.raises(error, match=text):
            misuse()


@pytest.mark.parametrize(
    "where", ["'s' <= probe.p", "probe.p <> probe.p", "probe.p = probe.q", "probe.p in ('a', probe.q)"]
)
def test_dictionaries_of_a_row_with_many_candidates(where: str) -> None:
    build = prejoin.prepare(pa.table({"k": [1] * 1100}), "k")
    plain = pa.table({"k": [1] * 4, "p": ["a", "t", None, "b"], "q": ["a", "b", "t", None]})
    encoded = pa.table({"k": plain["k"], "p": plain["p"].dictionary_encode(), "q": plain["q"].dictionary_encode()})
    joined = prejoin.join(encoded, build, where=where)
    assert joined.to_pydict() == prejoin.join(plain, build, where=where).to_pydict()


@pytest.mark.parametrize("how", ["inner", "semi", "build_semi", "build_anti", "left"])
def test_positions_count_all_columns(how: Any) -> None:
    build = prejoin.prepare(pa.table({"k": [1, 2, 3]}), "k")
    probe = pa.table({"a": [1, 1, 1], "b": [0, 0, 5], "k": [1, 2, 3], "c": [7, 8, 9]})
    select = ["k"]
    by_name = prejoin.join(probe, build, how=how, where="probe.b > 3", select=select)
    joined = prejoin.join(probe, build, how=how, where="probe[1] > 3", select=select)
    assert joined.to_pydict() == by_name.to_pydict()
