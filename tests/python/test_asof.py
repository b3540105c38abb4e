"""As-of joins and lookups (B11): every case against a search by hand, and against polars, pandas and duckdb."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prejoin

STRATEGIES = ["backward", "forward", "nearest"]


def exact(value: Any) -> Any:
    """A value as a number without rounding, or as bytes where it has no distances."""
    match value:
        case dt.datetime():
            epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc if value.tzinfo else None)
            return Fraction((value - epoch) // dt.timedelta(microseconds=1))
        case dt.date():
            return Fraction(value.toordinal() * 86_400 * 10**6)
        case dt.timedelta():
            return Fraction(value // dt.timedelta(microseconds=1))
        case dt.time():
            return Fraction(((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond)
        case str():
            return value.encode()
        case bytes():
            return value
        case float() if math.isinf(value):
            return value
        case _:
            return Fraction(value)


def oracle(
    keys: list[Any],
    order: list[Any],
    key: Any,
    value: Any,
    strategy: str = "backward",
    tolerance: Any = None,
    allow: bool = True,
) -> int | None:
    """The build row that an as-of join takes, found by looking at all."""

    def is_number(x: Any) -> bool:
        return x is not None and not (isinstance(x, float) and math.isnan(x))

    if key is None or not is_number(value):
        return None
    value = exact(value)
    rows = [(exact(x), i) for i, (k, x) in enumerate(zip(keys, order, strict=True)) if k == key and is_number(x)]
    before = [pair for pair in rows if pair[0] < value or (allow and pair[0] == value)]
    after = [pair for pair in rows if pair[0] > value or (allow and pair[0] == value)]
    last = max(before, default=None)
    first = min(after, default=None)
    near = None if tolerance is None else exact(tolerance)

    def distance(pair: tuple[Any, int]) -> Any:
        return 0 if pair[0] == value else abs(pair[0] - value)

    last, first = (x if x is None or near is None or distance(x) <= near else None for x in (last, first))
    if strategy == "nearest":
        if last and first:
            return last[1] if distance(last) <= distance(first) else first[1]
        return (last or first or (0, None))[1]
    chosen = last if strategy == "backward" else first
    return chosen[1] if chosen else None


def rows_of(probe: pa.Table, build: prejoin.PreparedBuild, **options: Any) -> list[int | None]:
    """The build row beside each probe row; the build has them in column "row"."""
    joined = prejoin.join_asof(probe, build, **options)
    # As text, in which NaN is NaN and -0.0 is not 0.0.
    assert repr(joined.select(probe.column_names).to_pydict()) == repr(probe.to_pydict())
    rows: list[int | None] = joined["row"].to_pylist()
    return rows


MICROS = st.integers(-50, 50).map(lambda n: n * 250_000)
#: Types of the build's order column, of the probe's, values of both, and tolerances.
TYPES: list[tuple[pa.DataType, pa.DataType, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = []
for b, p in [
    ("int64", "int64"), ("int8", "int64"), ("int64", "int8"), ("uint64", "int64"), ("int32", "uint32"),
    ("uint32", "int32"), ("uint8", "int16"), ("int64", "uint64"), ("uint16", "uint64"),
]:  # fmt: skip
    low = min(np.iinfo(b).min, np.iinfo(p).min)
    edges = [np.iinfo(t).min for t in (b, p)] + [np.iinfo(t).max for t in (b, p)]
    near = st.sampled_from([int(e) + d for e in edges for d in (-1, 0, 1)] + list(range(-6, 7)))
    TYPES.append((pa.from_numpy_dtype(b), pa.from_numpy_dtype(p), near, st.integers(0, 3) | st.just(2**63)))
FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 65504.0])
REACH = st.sampled_from([0, 0.5, 1, 3.0, math.inf])
TYPES += [(t, t, FLOATS, REACH) for t in (pa.float64(), pa.float32(), pa.float16())]
for unit in ("s", "ms", "us", "ns"):
    for probed in ("s", "ms", "us", "ns"):
        instants = MICROS.map(lambda n: dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=n))
        spans = st.sampled_from([0, 1, 250_000, 499_999, 500_000, 1_000_000]).map(
            lambda n: dt.timedelta(microseconds=n)
        )
        TYPES.append((pa.timestamp(unit, "UTC"), pa.timestamp(probed, "Europe/Berlin"), instants, spans))
TICK = dt.timedelta(microseconds=1)
SPANS = st.sampled_from([dt.timedelta(0), dt.timedelta(milliseconds=300), dt.timedelta(days=1), dt.timedelta(hours=36)])
TYPES += [
    (pa.timestamp("us"), pa.timestamp("ms"), MICROS.map(lambda n: dt.datetime(1970, 1, 1) + n * TICK), SPANS),
    (pa.date32(), pa.date32(), st.integers(-3, 3).map(lambda n: dt.date(2020, 1, 4) + dt.timedelta(n)), SPANS),
    (pa.date64(), pa.date64(), st.integers(-3, 3).map(lambda n: dt.date(2020, 1, 4) + dt.timedelta(n)), SPANS),
    (pa.duration("ms"), pa.duration("us"), MICROS.map(lambda n: dt.timedelta(microseconds=n)), SPANS),
    (pa.time32("s"), pa.time64("us"), st.integers(0, 20).map(lambda n: dt.time(1, 1, n // 4, n % 4 * 250_000)), SPANS),
    (pa.time64("us"), pa.time32("ms"), st.integers(0, 20).map(lambda n: dt.time(1, 1, n // 4, n % 4 * 250_000)), SPANS),
]  # fmt: skip
for precision in (9, 18, 38, 76):
    decimals = st.integers(-60, 60).map(lambda n: Decimal(n) / 4)
    cents = st.sampled_from([0, 1, Decimal("0.25"), Decimal("0.24"), 0.5, Decimal("7.5")])
    kind = {9: pa.decimal32, 18: pa.decimal64, 38: pa.decimal128, 76: pa.decimal256}[precision]
    for scale, other in [(2, 2), (0, 2), (2, 0), (1, 2), (3, 2)]:
        TYPES.append((kind(precision, scale), pa.decimal128(20, other), decimals, cents))
TEXTS = st.sampled_from(["", "a", "a\0", "ab", "abcdefgh", "abcdefghi", "abcdefgh\0", "abcdefgz", "é", "zz", "z" * 20])
for t in (pa.string(), pa.large_string(), pa.string_view()):
    TYPES.append((t, pa.string(), TEXTS, st.none()))
TYPES += [
    (pa.binary(), pa.large_binary(), TEXTS.map(str.encode), st.none()),
    (pa.binary(3), pa.binary(3), st.integers(0, 9).map(lambda n: b"x%dy" % n), st.none()),
    (pa.dictionary(pa.int8(), pa.int64()), pa.dictionary(pa.int32(), pa.int64()), st.integers(-3, 3), st.just(1)),
]  # fmt: skip


def array(values: list[Any], data_type: pa.DataType) -> pa.Array:
    """The values that the type holds, others as null."""
    held = []
    for value in values:
        try:
            one = pa.array([value], data_type)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            one = pa.nulls(1, data_type)
        held.append(one)
    return pa.concat_arrays(held) if held else pa.array([], data_type)


@given(data=st.data())
def test_every_type_and_strategy_equals_a_search_by_hand(data: st.DataObject) -> None:
    """B11"""
    of_build, of_probe, values, tolerances = data.draw(st.sampled_from(TYPES))
    keyed = data.draw(st.booleans())
    row = st.tuples(st.sampled_from([1, 1, 2, None]), values | st.none())
    build_rows, probe_rows = data.draw(st.lists(row, max_size=30)), data.draw(st.lists(row, max_size=12))
    order = array([x for _, x in build_rows], of_build)
    build = pa.table({"k": pa.array([k for k, _ in build_rows], pa.int64()), "t": order, "row": range(len(order))})
    wanted = array([x for _, x in probe_rows], of_probe)
    probe = pa.table({"k": pa.array([k for k, _ in probe_rows], pa.int64()), "t": wanted})
    strategy = data.draw(st.sampled_from(STRATEGIES))
    tolerance = data.draw(st.none() | tolerances)
    if pa.types.is_string(of_probe) or "binary" in str(of_probe):
        strategy, tolerance = data.draw(st.sampled_from(STRATEGIES[:2])), None
    allow = data.draw(st.booleans())
    sizes = data.draw(st.sampled_from([1, 3, 100]))
    prepared = prejoin.prepare(build.to_batches(max_chunksize=sizes) or build, "k" if keyed else [], order_by="t")
    assert prepared.order_by == "t"
    options = {"strategy": strategy, "tolerance": tolerance, "allow_exact_matches": allow}
    found = rows_of(probe, prepared, **options)
    keys = build["k"].to_pylist() if keyed else [0] * len(build)
    of_probe_keys = probe["k"].to_pylist() if keyed else [0] * len(probe)
    pairs = zip(of_probe_keys, wanted.to_pylist(), strict=True)
    expected = [oracle(keys, order.to_pylist(), k, x, strategy, tolerance, allow) for k, x in pairs]
    assert found == expected, (of_build, of_probe, options)
    # Lookups find the same rows.
    asked = probe["k"] if keyed else None
    assert prepared.map(asked, "row", asof=wanted, **options).to_pylist() == expected


def quotes(rows: int, keys: int, seed: int, span: int = 1_000) -> pa.Table:
    rng = np.random.default_rng(seed)
    ts = rng.integers(0, span, rows)
    return pa.table({"k": rng.integers(0, keys, rows), "ts": ts, "row": np.arange(rows)})


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("tolerance", [None, 0, 3])
@pytest.mark.parametrize(("rows", "keys"), [(5_000, 40), (3_000, 1), (400, 3_000)])
def test_the_same_rows_as_polars_and_pandas(strategy: Any, tolerance: int | None, rows: int, keys: int) -> None:
    """B11: distinct times per key, so that nobody chooses among equal rows; both peers want sorted sides."""
    build = quotes(rows, keys, 1, 100_000)
    build = pa.Table.from_pandas(build.to_pandas().drop_duplicates(["k", "ts"]), preserve_index=False)
    probe = quotes(4_000, keys + 3, 2, 100_000).select(["k", "ts"])
    prepared = prejoin.prepare(build, on="k", order_by="ts")
    found = rows_of(probe, prepared, strategy=strategy, tolerance=tolerance)
    left, right = pl.from_arrow(probe), pl.from_arrow(build)
    assert isinstance(left, pl.DataFrame)
    assert isinstance(right, pl.DataFrame)
    joined = (
        left.with_row_index()
        .sort("ts")
        .join_asof(right.sort("ts"), on="ts", by="k", strategy=strategy, tolerance=tolerance, check_sortedness=False)
    )
    if strategy != "nearest":
        assert joined.sort("index")["row"].to_list() == found
    frame = probe.to_pandas().reset_index().sort_values("ts")
    merged = pd.merge_asof(
        frame, build.to_pandas().sort_values("ts"), on="ts", by="k", direction=strategy, tolerance=tolerance
    )  # fmt: skip
    by_pandas = [None if math.isnan(row) else int(row) for row in merged.sort_values("index")["row"]]
    if strategy == "nearest":
        # Of two at the same distance pandas may take the later one, so the distances are compared.
        times = dict(zip(build["row"].to_pylist(), build["ts"].to_pylist(), strict=True))
        pairs = (zip(rows_, probe["ts"].to_pylist(), strict=True) for rows_ in (found, by_pandas))
        apart = [[None if r is None else abs(times[r] - t) for r, t in pairs_] for pairs_ in pairs]
        assert apart[0] == apart[1]
    else:
        assert by_pandas == found


def test_the_same_rows_as_duckdb() -> None:
    """B11"""
    build, probe = quotes(3_000, 50, 3, 10**6), quotes(2_000, 55, 4, 10**6).select(["k", "ts"])
    build = pa.Table.from_pandas(build.to_pandas().drop_duplicates(["k", "ts"]), preserve_index=False)
    probe = probe.append_column("i", pa.array(range(len(probe))))
    prepared = prejoin.prepare(build, on="k", order_by="ts")
    for strategy, sign in [("backward", ">="), ("forward", "<=")]:
        for allow in (True, False):
            on = f"probe.k = build.k and probe.ts {sign if allow else sign[0]} build.ts"
            query = f"select row from probe asof left join build on {on} order by i"
            expected = duckdb.execute(query).fetchall()
            found = rows_of(probe, prepared, strategy=strategy, allow_exact_matches=allow)
            assert [(row,) for row in found] == expected


def test_ties_take_the_last_backward_and_the_first_forward() -> None:
    """B11: also where the build comes unsorted."""
    build = pa.table({"k": [1] * 6, "ts": [5, 3, 5, 3, 5, 7], "row": range(6)})
    prepared = prejoin.prepare(build, on="k", order_by="ts")
    probe = pa.table({"k": [1, 1, 1], "ts": [5, 6, 4]})
    assert rows_of(probe, prepared) == [4, 4, 3]
    assert rows_of(probe, prepared, strategy="forward") == [0, 5, 0]
    # 6 is as far from 5 as from 7, 4 as far from 3 as from 5.
    assert rows_of(probe, prepared, strategy="nearest") == [4, 4, 3]
    assert rows_of(probe, prepared, strategy="nearest", allow_exact_matches=False) == [3, 4, 3]


@pytest.mark.parametrize("how", ["left", "inner", "semi", "anti", "mark"])
@pytest.mark.parametrize("where", [None, "build.row % 2 = 0", "build.row % 2 = probe.ts % 2"])
def test_kinds_and_conditions_are_those_of_the_chosen_pairs(how: Any, where: str | None) -> None:
    build, probe = quotes(900, 30, 5), quotes(500, 40, 6).select(["k", "ts"])
    prepared = prejoin.prepare(build, on="k", order_by="ts")
    of = [oracle(build["k"].to_pylist(), build["ts"].to_pylist(), k, t)
          for k, t in zip(probe["k"].to_pylist(), probe["ts"].to_pylist(), strict=True)]  # fmt: skip
    passes: dict[str | None, Callable[[int, int], bool]] = {
        None: lambda row, ts: True,
        "build.row % 2 = 0": lambda row, ts: row % 2 == 0,
        "build.row % 2 = probe.ts % 2": lambda row, ts: row % 2 == ts % 2,
    }
    of = [
        row if row is not None and passes[where](row, t) else None
        for row, t in zip(of, probe["ts"].to_pylist(), strict=True)
    ]
    for rows in (probe, *probe.to_batches(), probe.to_reader(max_chunksize=70)):
        joined = prejoin.join_asof(rows, prepared, how=how, where=where)
        if isinstance(joined, pa.RecordBatchReader):
            joined = joined.read_all()
        matched = [row is not None for row in of]
        match how:
            case "left":
                assert joined["row"].to_pylist() == of
            case "inner":
                assert joined["row"].to_pylist() == [row for row in of if row is not None]
            case "mark":
                assert joined["mark"].to_pylist() == matched
            case _:
                kept = [hit == (how == "semi") for hit in matched]
                assert joined["ts"].to_pylist() == pc.filter(probe["ts"], pa.array(kept)).to_pylist()


def test_output_options_are_those_of_join() -> None:
    prepared = prejoin.prepare(
        pa.table({"s": ["a", "a", "b"], "at": [1, 5, 2], "bid": [10, 11, 7]}), on="s", order_by="at"
    )
    probe = pa.record_batch({"symbol": ["a", "b", "a"], "ts": [9, 1, 4]})
    joined = prejoin.join_asof(probe, prepared, on={"symbol": "s"}, asof={"ts": "at"})
    assert joined.to_pylist() == [
        {"symbol": "a", "ts": 9, "at": 5, "bid": 11},
        {"symbol": "b", "ts": 1, "at": None, "bid": None},
        {"symbol": "a", "ts": 4, "at": 1, "bid": 10},
    ]
    options: dict[str, Any] = {"on": {"symbol": "s"}, "asof": {"ts": "at"}, "how": "inner"}
    one = prejoin.join_asof(probe, prepared, select={"b": "bid", "t": "probe.ts"}, limit=1, **options)
    assert one.to_pylist() == [{"b": 11, "t": 9}]
    twice = prejoin.join_asof(probe.rename_columns(["symbol", "at"]), prepared, on={"symbol": "s"}, suffix="_q")
    assert twice.column_names == ["symbol", "at", "at_q", "bid"]
    frame = pl.DataFrame({"s": ["b"], "at": [3]})
    assert prejoin.join_asof(frame, prepared).to_dict(as_series=False) == {
        "s": ["b"],
        "at": [3],
        "at_right": [2],
        "bid": [7],
    }
    # Rows that are prepared for this call.
    rows = pa.table({"s": ["a", "b"], "at": [5, 2], "bid": [11, 7]})
    assert prejoin.join_asof(frame, rows, on="s", asof="at")["bid"].to_list() == [7]
    assert prejoin.join_asof(frame, rows, on=[], asof="at", tolerance=1)["bid"].to_list() == [7]
    with pytest.raises(prejoin.PlanError, match="asof="):
        prejoin.join_asof(frame, rows, on="s")


def test_lookups_take_a_value_for_each_key_or_one_for_all() -> None:
    day = dt.date(2024, 1, 1)
    rates = pa.table({
        "currency": ["EUR", "EUR", "USD"], "since": [day, day + dt.timedelta(30), day], "rate": [1.1, 1.2, 1.0],
    })  # fmt: skip
    rates = prejoin.prepare(rates, on="currency", order_by="since")
    later = day + dt.timedelta(40)
    assert rates.get("EUR", asof=later) == {"currency": "EUR", "since": day + dt.timedelta(30), "rate": 1.2}
    assert rates.get("EUR", "none", asof=day - dt.timedelta(1)) == "none"
    assert rates.map(["EUR", "USD", "CHF"], "rate", asof=later).to_pylist() == [1.2, 1.0, None]
    assert rates.map(["EUR", "EUR"], "rate", asof=[day, later]).to_pylist() == [1.1, 1.2]
    assert rates.map(pl.Series(["EUR"]), "rate", 0.0, asof=np.array(["2023-01-01"], "datetime64[D]")).to_list() == [0.0]
    found = rates.lookup(["EUR", "CHF"], ["rate"], default={"rate": -1.0}, asof=later, strategy="forward")
    assert found.to_pydict() == {"rate": [-1.0, -1.0]}
    # Between two values of the type.
    ticks = prejoin.prepare(pa.table({"t": pa.array([1, 2], pa.timestamp("s"))}), on=[], order_by="t")
    assert ticks.lookup(None, asof=[dt.datetime(1970, 1, 1, 0, 0, 1, 500_000)])["t"].to_pylist() == [
        dt.datetime(1970, 1, 1, 0, 0, 1)
    ]
    assert ticks.get(None, asof=dt.datetime(1970, 1, 1), strategy="forward") == {"t": dt.datetime(1970, 1, 1, 0, 0, 1)}
    # Without asof the choice of a row is by the order too.
    assert rates.map(["EUR"], "rate", keep="last").to_pylist() == [1.2]
    for call in (
        lambda: rates.map(["EUR"], "rate", asof=later, keep="last"),
        lambda: rates.map(["EUR"], "rate", keep="last", strategy="forward"),
        lambda: rates.map(["EUR"], "rate", asof=[day, later]),
        lambda: rates.map(["EUR"], "rate", asof=["soon"]),
        lambda: rates.map(["EUR"], "rate", asof=later, tolerance=3),
        lambda: ticks.get(1, asof=later),
        lambda: ticks.get(None),
    ):
        with pytest.raises(prejoin.PlanError):
            call()


def test_keep_and_plain_joins_follow_the_order() -> None:
    """Rows without a value come first, of one value in build order."""
    build = pa.table({"k": [1] * 6, "t": [3, None, 1, 3, None, 2], "row": range(6)})
    prepared = prejoin.prepare(build, on="k", order_by="t")
    assert prejoin.join(pa.table({"k": [1]}), prepared)["row"].to_pylist() == [1, 4, 2, 5, 0, 3]
    last = prejoin.prepare(build, on="k", order_by="t", keep="last")
    assert last.to_table()["row"].to_pylist() == [3]
    assert rows_of(pa.table({"k": [1, 1], "t": [3, 2]}), last) == [3, None]


def test_legs_of_a_star_equal_the_chain() -> None:
    rates = prejoin.prepare(quotes(700, 20, 7), on="k", order_by="ts")
    names = prejoin.prepare(pa.table({"k": range(20), "at": range(0, 400, 20)}), on="k")
    prices = quotes(900, 1, 8).select(["ts", "row"]).rename_columns(["since", "price"])
    prices = prejoin.prepare(prices, on=[], order_by="since")
    probe = quotes(1_500, 25, 9).select(["k", "ts"])
    chain = prejoin.join_asof(probe, rates, strategy="nearest", tolerance=9)
    chain = prejoin.join(chain, names, how="left")
    chain = prejoin.join_asof(
        chain, prices, asof={"at": "since"}, strategy="forward", allow_exact_matches=False, how="inner"
    )
    legs = {
        "rates": prejoin.Leg(rates, how="left", asof="ts", strategy="nearest", tolerance=9),
        "names": prejoin.Leg(names, how="left"),
        "prices": prejoin.Leg(prices, asof={"names.at": "since"}, strategy="forward", allow_exact_matches=False),
    }
    star = prejoin.StarJoin(legs)
    assert star(probe).equals(chain)
    assert len(chain) > 100
    assert "on k, asof ts nearest within 9" in star.explain()
    assert "tolerance=9" in repr(legs["rates"])
    with pytest.raises(prejoin.PlanError, match="order_by"):
        prejoin.Leg(names, asof="ts")
    with pytest.raises(prejoin.PlanError, match="validate"):
        prejoin.Leg(rates, asof="ts", validate="1:1")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ({"by": "k", "on": "ts"}, "on=keys, asof=time"),
        ({"left_on": "ts"}, "asof=time"),
        ({"direction": "forward"}, "strategy="),
        ({"how": "right"}, "right"),
        ({"how": "full"}, "full"),
        ({"strategy": "back"}, "backward, forward, nearest"),
        ({"tolerance": -1}, "not negative"),
        ({"tolerance": math.nan}, "not negative"),
        ({"tolerance": dt.timedelta(1)}, "a number"),
        ({"tolerance": "1s"}, "timedelta"),
        ({"asof": "other"}, "order_by=\"ts\""),
        ({"asof": {"other": "ts"}}, "other"),
        ({"asof": ["ts"]}, "probe name"),
        ({"on": "ts"}, "prepared on"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(call: dict[str, Any], text: str) -> None:
    prepared = prejoin.prepare(quotes(10, 3, 1), on="k", order_by="ts")
    with pytest.raises((prejoin.PlanError, TypeError), match=text):
        prejoin.join_asof(quotes(10, 3, 2), prepared, **call)


def test_types_are_checked() -> None:
    when = pa.array([1], pa.timestamp("us"))
    prepared = prejoin.prepare(pa.table({"k": [1], "ts": when}), on="k", order_by="ts")
    for other in (pa.array([1]), pa.array([1], pa.timestamp("us", "UTC")), pa.array([1], pa.date32()), pa.array(["x"])):
        with pytest.raises(prejoin.PlanError, match="asof types must match"):
            prejoin.join_asof(pa.table({"k": [1], "ts": other}), prepared)
    with pytest.raises(prejoin.PlanError, match="a timedelta"):
        prejoin.join_asof(pa.table({"k": [1], "ts": when}), prepared, tolerance=5)
    texts = prejoin.prepare(pa.table({"k": [1], "ts": ["a"]}), on="k", order_by="ts")
    for options in ({"strategy": "nearest"}, {"tolerance": 1}):
        with pytest.raises(prejoin.PlanError):
            prejoin.join_asof(pa.table({"k": [1], "ts": ["a"]}), texts, **options)
    for refused in (pa.array([True]), pa.array([[1]]), pa.array(["a"]).dictionary_encode(), pa.nulls(1)):
        with pytest.raises(prejoin.PlanError, match="order column"):
            prejoin.prepare(pa.table({"k": [1], "ts": refused}), on="k", order_by="ts")
    with pytest.raises(prejoin.PlanError, match="at least one key"):
        prejoin.prepare(pa.table({"k": [1]}), on=[])
    with pytest.raises(prejoin.PlanError, match="order_by"):
        prejoin.join_asof(pa.table({"k": [1]}), prejoin.prepare(pa.table({"k": [1]}), on="k"))
    with pytest.raises(prejoin.PlanError, match="key"):
        prejoin.join(pa.table({"ts": when}), prejoin.prepare(pa.table({"ts": when}), on=[], order_by="ts"))


def test_memory_is_charged_and_given_back() -> None:
    build = quotes(20_000, 100, 10)
    plain, ordered = prejoin.MemoryPool(), prejoin.MemoryPool()
    without = prejoin.prepare(build, on="k", pool=plain)
    prepared = prejoin.prepare(build, on="k", order_by="ts", pool=ordered)
    # One code of eight bytes per row.
    assert prepared.reserved_bytes == without.reserved_bytes + 8 * 20_000
    assert prepared.memory()["groups"] == without.memory()["groups"] + 8 * 20_000
    assert ordered.reserved == prepared.reserved_bytes
    peak = ordered.peak
    del prepared
    assert ordered.reserved == 0
    for limit in range(0, peak, peak // 40):
        pool = prejoin.MemoryPool(limit)
        with pytest.raises(prejoin.ResourcesExhausted):
            prejoin.prepare(build, on="k", order_by="ts", pool=pool)
        assert pool.reserved == 0


def test_long_text_keys_and_forced_collisions() -> None:
    """Indexes that compare keys of the build find them by rows in another order."""
    rng = np.random.default_rng(11)
    keys = [f"{'x' * 40}{n}" for n in rng.integers(0, 30, 2_000)]
    build = pa.table({"k": keys, "ts": rng.permutation(2_000), "row": range(2_000)})
    probe = pa.table({"k": keys[:300], "ts": rng.integers(0, 2_000, 300)})
    expected = [oracle(keys, build["ts"].to_pylist(), k, t)
                for k, t in zip(probe["k"].to_pylist(), probe["ts"].to_pylist(), strict=True)]  # fmt: skip
    for config in (prejoin.Config(), prejoin.Config(_collide=2)):
        prepared = prejoin.prepare(build, on="k", order_by="ts", config=config)
        assert rows_of(probe, prepared) == expected
        two = prejoin.prepare(build.append_column("k2", build["k"]), on=["k", "k2"], order_by="ts", config=config)
        assert rows_of(probe.append_column("k2", probe["k"]), two) == expected


def test_a_long_group_is_sorted_in_pieces() -> None:
    rng = np.random.default_rng(12)
    ts = rng.integers(0, 50_000, 100_001)
    prepared = prejoin.prepare(pa.table({"ts": ts, "row": np.arange(len(ts))}), on=[], order_by="ts")
    wanted = rng.integers(-10, 50_010, 3_000)
    found = prepared.map(None, "row", asof=wanted).to_pylist()
    order = np.argsort(ts, kind="stable")
    at = np.searchsorted(ts[order], wanted, side="right")
    assert found == [int(order[i - 1]) if i else None for i in at]


def test_ordered_builds_say_that_they_are_not_saved(tmp_path: Any) -> None:
    prepared = prejoin.prepare(quotes(10, 3, 1), on="k", order_by="ts")
    for call in (lambda: prepared.save(tmp_path / "a"), prepared.share, lambda: pickle.dumps(prepared)):
        with pytest.raises((prejoin.NotSupported, TypeError, prejoin.PlanError)):
            call()
    assert not list(tmp_path.iterdir())
    assert 'order_by="ts"' in repr(prepared)
