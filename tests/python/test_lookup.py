"""The index asked by itself: `get`, `lookup`, `contains`, `count_matches`, `probe_indices`."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import arro3.core
import nanoarrow as na
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from foreign import as_list

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
# Python values of each kind of key; build and asked keys are drawn from the same few, so that many match.
DAY = dt.datetime(2024, 2, 29, 12, 30, 1)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 7, 2**63 - 1, -(2**63)],
    pa.float64(): [0.0, -0.0, 1.5, math.nan, math.inf],
    pa.float32(): [0.0, 1.5, 0.25, math.nan],
    pa.bool_(): [True, False],
    pa.string(): ["", "a", "zß", "longer than sixteen bytes"],
    pa.large_string(): ["", "a", "zß"],
    pa.string_view(): ["", "a", "longer than sixteen bytes"],
    pa.binary(): [b"", b"\0", b"ab"],
    pa.binary(2): [b"ab", b"\0\0"],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    pa.date64(): [dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    pa.timestamp("s"): [DAY, DAY + dt.timedelta(days=1)],
    pa.timestamp("ns", "UTC"): [DAY.replace(tzinfo=dt.timezone.utc), dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)],
    pa.time64("us"): [dt.time(1, 2, 3, 4), dt.time(0)],
    pa.time32("s"): [dt.time(1, 2, 3), dt.time(0)],
    pa.duration("us"): [dt.timedelta(0), dt.timedelta(days=1, microseconds=1)],
    pa.decimal128(10, 2): [decimal.Decimal("1.50"), decimal.Decimal(0)],
    pa.dictionary(pa.int8(), pa.string()): ["a", "b", ""],
    pa.list_(pa.int64()): [[], [1], [1, None]],
    pa.struct([("a", pa.int64()), ("b", pa.string())]): [{"a": 1, "b": "x"}, {"b": "x", "a": None}],
    **{integer: [0, 1, 100] for integer in INTEGERS if integer != pa.int64()},
}
PAYLOAD = pa.schema([("n", pa.int64()), ("s", pa.string()), ("t", pa.timestamp("us")), ("l", pa.list_(pa.int8()))])


def same(a: Any, b: Any) -> bool:
    """Python's equality, but every NaN equals every NaN."""
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def payload(i: int) -> dict[str, Any]:
    return {"n": i, "s": None if i % 3 == 0 else f"row {i}", "t": DAY + dt.timedelta(i), "l": [i] if i % 2 else None}


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[pa.DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2))
    key = st.tuples(*(st.sampled_from([None, *VALUES[data_type]]) for data_type in types))
    return types, draw(st.lists(key, max_size=8)), draw(st.lists(key, max_size=8))


@settings(max_examples=400, deadline=None)
@given(asked(), st.data())
def test_answers_equal_a_scan(
    case: tuple[list[pa.DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    """B3: every answer, for keys of every type as Python values, against a scan of the build rows."""
    types, build_keys, keys = case
    names = [f"k{i}" for i in range(len(types))]
    nulls = data.draw(st.lists(st.booleans(), min_size=len(types), max_size=len(types)))
    columns: list[Any] = [pa.array([key[i] for key in build_keys], data_type) for i, data_type in enumerate(types)]
    columns += [pa.array([payload(i)[f.name] for i in range(len(build_keys))], f.type) for f in PAYLOAD]
    build = prejoin.prepare(pa.table(columns, names=[*names, *PAYLOAD.names]), names, null_equal=nulls)

    def equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        return all(same(x, y) and (x is not None or null) for x, y, null in zip(a, b, nulls, strict=True))

    found = [[i for i, other in enumerate(build_keys) if equal(other, key)] for key in keys]
    one = len(types) == 1
    given: Any = [key[0] for key in keys] if one else keys
    assert build.contains(given).to_pylist() == [bool(rows) for rows in found]
    counts = build.count_matches(given)
    assert counts.type == pa.uint32()
    assert counts.to_pylist() == [len(rows) for rows in found]
    pairs = [(i, j) for i, rows in enumerate(found) for j in rows]
    got = build.probe_indices(given)
    assert list(zip(*(array.to_pylist() for array in got), strict=True)) == pairs
    assert all(array.type == pa.uint32() for array in got)
    table = build.to_table().to_pylist()
    for keep, at in (("first", 0), ("last", -1)):
        want = [table[rows[at]] if rows else None for rows in found]
        rows = build.lookup(given, keep=keep)  # type: ignore[arg-type]
        rows.validate(full=True)
        absent = dict.fromkeys(rows.schema.names)
        assert [
            [same(a, b) for a, b in zip(r.values(), (w or absent).values(), strict=True)]
            for r, w in zip(rows.to_pylist(), want, strict=True)
        ] == [[True] * len(absent)] * len(want)
        assert [build.get(key[0] if one else key, keep=keep) is None for key in keys] == [w is None for w in want]  # type: ignore[call-overload]
        for key, w in zip(keys, want, strict=True):
            row = build.get(key[0] if one else key, keep=keep)  # type: ignore[call-overload]
            assert row is None or (w is not None and all(same(row[name], w[name]) for name in w))
            assert row is None or [type(v) for v in row.values()] == [type(v) for v in w.values()]  # type: ignore[union-attr]
    if build.is_unique:
        assert repr(build.lookup(given).to_pylist()) == repr(build.lookup(given, keep="first").to_pylist())
    else:
        for ask in (lambda: build.lookup(given), lambda: build.get(build_keys[0][0] if one else build_keys[0])):
            with pytest.raises(prejoin.PlanError, match=r'rows of this one have "k0" = .*keep="first"'):
                ask()


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_indices_are_those_of_the_join(how: Any) -> None:
    """B3: taking the rows by the indices gives the join, at a size where pieces, stages and threads matter."""
    rng = np.random.default_rng(7)
    table = pa.table({"k": rng.integers(0, 5_000, 20_000), "v": np.arange(20_000)})
    probe = pa.table({"k": rng.integers(0, 9_000, 60_000), "p": np.arange(60_000)})
    build = prejoin.prepare(table, "k")
    joined = prejoin.join(probe, build, how=how)
    left, right = build.probe_indices(probe.select(["k"]), how)
    assert probe["p"].take(left).equals(joined["p"])
    assert build.to_table()["v"].take(right).equals(joined["v"])
    assert left.null_count == joined["p"].null_count
    if how == "inner":
        assert pc.sum(build.count_matches(probe["k"])).as_py() == len(left)


FORMS: list[Callable[[pa.Array], Any]] = [
    pa.Array.to_pylist,
    lambda keys: tuple(keys.to_pylist()),
    lambda keys: dict.fromkeys(keys.to_pylist()).keys(),
    lambda keys: {"id": dict.fromkeys(keys.to_pylist()).keys()},
    lambda keys: keys,
    lambda keys: keys.cast(pa.uint8()),
    lambda keys: keys.dictionary_encode(),
    lambda keys: pa.chunked_array([keys[:1], keys[1:]]),
    lambda keys: pl.Series(keys.to_pylist()),
    lambda keys: pd.Series(keys.to_pylist()),
    lambda keys: pd.Index(keys.to_pylist()),
    lambda keys: np.array(keys.to_pylist()),
    lambda keys: list(np.array(keys.to_pylist())),
    lambda keys: {"id": keys},
    lambda keys: {"id": keys.to_pylist(), "more": "ignored"},
    lambda keys: pa.record_batch({"id": keys}),
    lambda keys: pa.record_batch({"other": keys, "id": keys}),
    lambda keys: pa.record_batch({"named otherwise": keys}),
    lambda keys: pa.table({"id": pa.chunked_array([keys[:2], keys[2:]])}),
    lambda keys: pl.DataFrame({"id": keys.to_pylist()}),
    lambda keys: pd.DataFrame({"id": keys.to_pylist()}),
]


@pytest.mark.parametrize("form", FORMS)
def test_keys_in_many_forms(form: Callable[[pa.Array], Any]) -> None:
    build = prejoin.prepare(pa.table({"id": pa.array([1, 2, 3], pa.int16()), "v": ["a", "b", "c"]}), "id")
    keys = form(pa.array([3, 9, 1]))
    assert build.lookup(keys, ["v"]).to_pydict() == {"v": ["c", None, "a"]}
    assert as_list(build.contains(keys)) == [True, False, True]


def chunks() -> dict[str, Callable[[list[bytes | None]], pa.Array]]:
    """Makers of one chunk. pyarrow's `combine_chunks` refuses these, in part because of the empty chunk."""

    def dictionary(values: list[bytes | None]) -> pa.Array:
        numbers = pa.array(range(len(values)), pa.int8())
        return pa.DictionaryArray.from_arrays(numbers, pa.array(values, pa.binary(2)))

    def sliced(values: list[bytes | None]) -> pa.Array:
        # No bytes lie before the offset where there are no rows.
        if not values:
            bits, data = (pa.py_buffer(b"\xff\xff"), pa.py_buffer(b""))
            return pa.Array.from_buffers(pa.binary(2), 0, [bits, data], -1, 9)
        return pa.array([b"no", *values], pa.binary(2))[1:]

    def runs(values: list[bytes | None]) -> pa.Array:
        return pa.RunEndEncodedArray.from_arrays(
            pa.array(range(1, len(values) + 1), pa.int16()), pa.array(values, pa.binary(2))
        )

    return {
        "plain": lambda values: pa.array(values, pa.binary(2)),
        "dictionary": dictionary,
        "sliced": sliced,
        "runs": runs,
    }


@pytest.mark.parametrize("kind", chunks())
def test_keys_in_chunks(kind: str) -> None:
    values: list[bytes | None] = [b"aa", b"zz", None, b"bb", b"aa"]
    column = pa.chunked_array([chunks()[kind](part) for part in (values[:2], [], values[2:4], values[4:])])
    build = prejoin.prepare(pa.table({"id": pa.array([b"aa", b"bb"], pa.binary(2)), "v": [1, 2]}), "id")
    two = prejoin.prepare(build.to_table(), ["id", "v"])
    for keys in (column, {"id": column}, pa.table({"id": column}), pa.table({"id": column}).to_reader()):
        assert build.contains(keys).to_pylist() == [True, False, False, True, True]
    assert two.contains(pa.table({"id": column, "v": [1] * 5})).to_pylist() == [True, False, False, False, True]
    if kind != "runs":
        written = "build.id IN (X'6161', X'7A7A', NULL, X'6262', X'6161')"
        assert repr(prejoin.col("build.id").is_in(column)) == written


def test_several_keys_in_many_forms() -> None:
    build = prejoin.prepare(pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"], "v": [10, 20, 30]}), ["b", "a"])
    rows = [("y", 1), ("y", 2)]
    b, a = pa.array(["y", "y"]), pa.array([1, 2])
    struct = pa.StructArray.from_arrays([a, b], ["a", "b"])
    table = pa.table({"a": a, "b": b})
    for keys in (rows, [list(row) for row in rows], struct, table, table.to_batches()[0], {"a": a, "b": ["y", "y"]}):
        assert build.lookup(keys, columns=["v"]).to_pydict() == {"v": [20, None]}
    assert build.get(("x", 2)) == {"a": 2, "b": "x", "v": 30}
    for keys, text in [
        ("y", "keys are a list of keys"),
        (["y"], "a tuple of 2 values, 'y' was given"),
        ([("y", 1, 2)], "a tuple of 2 values"),
        (pa.array([1]), "2 key columns; give a struct array"),
        (pa.table({"a": a}), 'have columns "a", the build\'s key columns are "b", "a"'),
        ({"a": a}, 'no column "b"'),
        ({"a": a, "b": ["y"]}, "1 and 2 rows"),
        (pa.table({"a": b, "b": b}), 'column "a" has type Utf8, which does not compare'),
    ]:
        with pytest.raises((prejoin.PlanError, TypeError), match=text):
            build.contains(keys)
    with pytest.raises(KeyError) as caught:
        build[1]
    assert "a tuple of 2 values, 1 was given" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("data_type", "held", "absent", "refused"),
    [
        (pa.int8(), [1], [300, -129, 2**64, -(2**70)], [1.0, "1", True, b"1", dt.date(2024, 1, 1)]),
        (pa.uint64(), [2**64 - 1], [-1, 2**64], [1.5, False]),
        # An int is the float it equals, and no other.
        (pa.float64(), [2.0**53, 2.0**70], [2**53 + 1, 2**70 + 1, 10**400], ["1", True]),
        (pa.float32(), [0.5, np.float16(0.25)], [0.1, 1e300, np.float32(0.1)], ["1", True]),
        (pa.float16(), [np.float16(0.1), math.inf, 2048], [1e300, 0.1, 2049, 2**53 + 1, 10**400], ["1", True]),
        (pa.string(), ["1"], ["2", "\ud800"], [1, b"1"]),
        (pa.large_string(), ["1", ""], ["\ud800"], [1]),
        (pa.string_view(), ["1", ""], ["\ud800"], [1]),
        (pa.binary(2), [b"ab"], [b"a", b"abc", b""], ["ab"]),
        (pa.bool_(), [True], [False], [1, 0, "True"]),
        # Nothing is cut to fit.
        (pa.date32(), [dt.date(2024, 1, 1)], [dt.date(2024, 1, 2)], [dt.datetime(2024, 1, 1), "2024-01-01", 19723]),
        (pa.time32("s"), [dt.time(1)], [dt.time(1, 0, 0, 5)], ["01:00", 3600, dt.time(1, tzinfo=dt.timezone.utc)]),
        (pa.time64("ns"), [dt.time(1)], [dt.time(1, 0, 0, 5)], [dt.time(1, tzinfo=dt.timezone.utc)]),
        (
            pa.timestamp("s"),
            [dt.datetime(2024, 1, 1)],
            [dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
            [dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), dt.date(2024, 1, 1)],
        ),
        (
            pa.timestamp("ns"),
            [pd.Timestamp(0), pd.Timestamp(-1), np.datetime64(7, "ns")],
            [pd.Timestamp(1), np.datetime64(8, "ns"), dt.datetime.max, pd.NaT, np.datetime64("NaT")],
            [pd.Timestamp(0, tz="UTC"), np.timedelta64(7, "ns"), 0],
        ),
        (
            pa.timestamp("ns", "UTC"),
            [pd.Timestamp(5, tz="UTC"), pd.Timestamp(1001, tz="Asia/Tokyo")],
            [pd.Timestamp(6, tz="UTC"), pd.Timestamp(1000, tz="Asia/Tokyo"), pd.NaT],
            [pd.Timestamp(5), np.datetime64(5, "ns")],
        ),
        (
            pa.duration("ns"),
            [pd.Timedelta(0), pd.Timedelta(-1), np.timedelta64(7, "ns")],
            [pd.Timedelta(1), np.timedelta64(8, "ns"), dt.timedelta.max, pd.NaT, np.timedelta64("NaT", "s")],
            [pd.Timestamp(0), 0],
        ),
        (pa.duration("s"), [dt.timedelta(999999999)], [dt.timedelta.max, pd.Timedelta(1)], [1]),
        (
            pa.decimal128(5, 2),
            [decimal.Decimal("1.5"), 2, decimal.Decimal("-999.99")],
            [
                *(
                    decimal.Decimal(text)
                    for text in ["1.501", "NaN", "sNaN", "-Infinity", "1e999999", "1e-999999", "1000.25"]
                ),
                *(1000, 2**63, 10**40, -(10**5000), np.int64(3)),
            ],
            ["1.5", 1.5, True],
        ),
        (pa.decimal256(76, 0), [10**75, 3], [10**76, decimal.Decimal("0.1")], [1.0]),
        (pa.decimal128(5, -2), [decimal.Decimal("1.5e3"), 0], [1550, 150], [1.0]),
    ],
)
def test_values_match_exactly_or_are_refused(
    data_type: pa.DataType, held: list[Any], absent: list[Any], refused: list[Any]
) -> None:
    """B3: keys that the type cannot hold are absent, and so is one key of another kind, as in any mapping; many keys of
    another kind are an error that names key and type."""
    keys = pa.concat_arrays(pa.array([value], data_type) for value in held)
    build = prejoin.prepare(pa.table({"id": keys}), "id")
    assert build.contains(held).to_pylist() == [True] * len(held)
    for value in (*held, *keys.to_pylist()):
        assert build.get(value) is not None, value
    for value in absent:
        assert build.get(value) is None, value
        assert build.contains([value, *held, None]).to_pylist() == [False, *[True] * len(held), False]
    for value in refused:
        assert build.get(value) is None
        with pytest.raises(
            prejoin.PlanError, match=r'"id".*(Int8|UInt64|Float|Utf8|Binary|Bool|Date|Time|Duration|Decimal)'
        ):
            build.lookup([value])


@pytest.mark.parametrize(
    ("data_type", "held", "absent", "refused"),
    [
        (
            pa.timestamp("s"),
            dt.datetime(2024, 1, 1),
            pd.Timestamp("2024-01-01 00:00:00.000000001"),
            pd.Timestamp(0, tz="UTC"),
        ),
        (pa.timestamp("ns"), pd.Timestamp(1), pd.Timestamp(0), dt.date(1970, 1, 1)),
        (pa.float16(), 0.5, 0.1, True),
        (pa.float32(), 1, 0.1, "1"),
        (pa.int8(), 1, 300, 1.5),
        (pa.decimal128(5, 2), decimal.Decimal("1.5"), 1000, 1.5),
        (pa.date32(), dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.datetime(2024, 1, 1, 5)),
        (pa.string(), "x", "\ud800", b"x"),
        (pa.bool_(), np.True_, False, 1),
        (pa.struct([("z", pa.int8())]), {"z": 1}, {"z": 300}, {"z": True}),
    ],
)
def test_values_in_structs_and_lists_match_exactly(
    data_type: pa.DataType, held: Any, absent: Any, refused: Any
) -> None:
    """B3: what holds at the top holds within; nulls there equal each other."""
    wraps: list[tuple[pa.DataType, Callable[[Any], Any]]] = [
        (pa.struct([("a", data_type), ("b", pa.int64())]), lambda value: {"a": value, "b": 1}),
        (pa.list_(data_type), lambda value: [None, value]),
        (pa.large_list(data_type), lambda value: (value,)),
        (pa.list_view(data_type), lambda value: [value, None]),
        (pa.large_list_view(data_type), lambda value: [value]),
        (pa.list_(data_type, 2), lambda value: [value, None]),
        (pa.list_(pa.struct([("a", data_type)])), lambda value: [{"a": None}, {"a": value}]),
    ]
    for outer, wrap in wraps:
        keys = pa.concat_arrays([pa.array([wrap(None), None], outer), pa.array([wrap(held)], outer)])
        build = prejoin.prepare(pa.table({"id": keys}), "id")
        asked = [wrap(absent), wrap(held), None, wrap(None), keys[2], keys[2].as_py()]
        assert build.contains(asked).to_pylist() == [False, True, False, True, True, True], outer
        assert build.get(wrap(absent)) is None
        with pytest.raises(prejoin.PlanError, match='"id" has type'):
            build.contains([wrap(held), wrap(refused)])
    fixed = prejoin.prepare(pa.table({"id": pa.array([[held, None]], pa.list_(data_type, 2))}), "id")
    assert fixed.contains([[held], [held, None], [held, None, None], []]).to_pylist() == [False, True, False, False]


def test_numpy_times_of_any_unit() -> None:
    build = prejoin.prepare(pa.table({"id": pa.array([7200], pa.timestamp("s"))}), "id")
    points = [np.datetime64(2, "h"), np.datetime64(120, "m"), np.datetime64(7200 * 10**9, "ns"), np.datetime64(1, "h")]
    assert build.contains(points).to_pylist() == [True, True, True, False]
    build = prejoin.prepare(pa.table({"id": pa.array([7 * 86_400_000], pa.duration("ms"))}), "id")
    spans = [np.timedelta64(1, "W"), np.timedelta64(7, "D"), np.timedelta64(168, "h"), np.timedelta64(1, "D")]
    assert build.contains(spans).to_pylist() == [True, True, True, False]


def test_decimals_of_any_scale_in_one_list() -> None:
    """B3: each is asked by its own digits, zeros at their end or not."""
    texts = ["1.5", "1000.25", "1.50000", "15e-1", "0.015e2", "-0", "1.5" + "0" * 90, "7e1"]
    build = prejoin.prepare(
        pa.table({"id": pa.array(map(decimal.Decimal, ["1.5", "0", "70"]), pa.decimal64(5, 2))}), "id"
    )
    assert build.contains([decimal.Decimal(text) for text in texts]).to_pylist() == [
        text != "1000.25" for text in texts
    ]


@pytest.mark.parametrize(
    ("data_type", "null"),
    [
        (pa.timestamp("ns"), pd.NaT),
        (pa.timestamp("s"), np.datetime64("NaT")),
        (pa.duration("ms"), np.timedelta64("NaT")),
        (pa.date32(), pd.NaT),
    ],
)
def test_a_time_that_is_none_is_null(data_type: pa.DataType, null: Any) -> None:
    build = prejoin.prepare(pa.table({"id": pa.array([None, 0], data_type)}), "id")
    table, keys = build.to_table(), [null, build.to_table()["id"][1]]
    assert prejoin.prepare(table, "id", null_equal=True).contains(keys).to_pylist() == [True, True]
    assert build.contains(keys).to_pylist() == [False, True]


def test_columns_and_errors() -> None:
    build = prejoin.prepare(pa.table({"id": [1], "v": ["a"], "w": [2.5]}), "id")
    assert build.lookup([1], ["w", "id"]).to_pydict() == {"w": [2.5], "id": [1]}
    none = build.lookup([1, 2], [])
    assert (none.num_rows, none.num_columns) == (2, 0)
    assert build.lookup([]).num_rows == 0
    assert build.lookup([None]).to_pylist() == [{"id": None, "v": None, "w": None}]
    with pytest.raises(prejoin.PlanError, match=r'no column "zz"; its columns are "id", "v", "w"'):
        build.lookup([1], ["zz"])
    with pytest.raises(TypeError, match="columns is a list of column names"):
        build.lookup([1], "v")
    one: Any
    for one in (1, "1", b"1", bytearray(1), pa.scalar([1]), np.str_("1"), collections.UserDict()):
        with pytest.raises(TypeError, match="for one key, give a list"):
            build.lookup(one)
    assert build.contains(range(3)).to_pylist() == [False, True, False]
    assert build.contains(key for key in (2, 1)).to_pylist() == [False, True]
    assert build.contains({1}).to_pylist() == build.contains(frozenset({1})).to_pylist() == [True]
    with pytest.raises(prejoin.PlanError, match="indices are those of pairs"):
        build.probe_indices([1], "semi")  # type: ignore[arg-type]
    with pytest.raises(prejoin.PlanError, match='keep="most" is no choice of rows'):
        build.get(1, keep="most")  # type: ignore[call-overload]
    same_names = prejoin.prepare(pa.table([[1], [2], [3]], names=["id", "v", "v"]), "id")
    with pytest.raises(prejoin.PlanError, match="a dict has each name once"):
        same_names.get(1)
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    assert prejoin.prepare(pa.table([pa.array([1]), union], names=["id", "u"]), "id").get(1) == {"id": 1, "u": 1}


def test_a_result_outlives_its_build(pool: prejoin.MemoryPool) -> None:
    """S23: rows own their bytes; pyarrow's part of a getter holds no build that its owner let go."""
    table = pa.table({"id": [1, 2], "t": pa.array([DAY, None], pa.timestamp("us")), "s": ["a", "b"]})
    build = prejoin.prepare(table, "id", pool=pool)
    row, rows = build.get(1), build.lookup([2, 1])
    del build
    assert pool.reserved == 0
    assert row == {"id": 1, "t": DAY, "s": "a"}
    assert rows.to_pydict() == {"id": [2, 1], "t": [None, DAY], "s": ["b", "a"]}


def test_threads_ask_one_build_at_once() -> None:
    build = prejoin.prepare(pa.table({"id": range(1000), "v": [f"v{i}" for i in range(1000)]}), "id")
    wrong: list[Any] = []

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(300):
            keys = rng.integers(0, 1200, 20)
            want = [f"v{i}" if i < 1000 else None for i in keys]
            row = build.get(int(keys[0]))
            if build.lookup(keys, ["v"])["v"].to_pylist() != want or (row and row["v"]) != want[0]:
                wrong.append(keys)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_long_answers_leave_the_interpreter_to_others() -> None:
    """B3: a long call releases the interpreter lock: another thread runs Python code while the pairs are made."""
    build = prejoin.prepare(pa.table({"k": np.zeros(3_000, dtype=np.int64)}), "k")
    keys = pa.array(np.zeros(8_000, dtype=np.int64))
    turns = [0]
    done = threading.Event()

    def spin() -> None:
        while not done.is_set():
            turns[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # Python takes the lock from nobody: the other thread runs only when we release it
    thread = threading.Thread(target=spin)
    try:
        thread.start()
        before = turns[0]
        pairs = build.probe_indices(keys)
        during = turns[0] - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()
    assert len(pairs[0]) == 24_000_000
    assert during > 3


def test_keys_of_pandas_numpy_and_streams_of_arrays() -> None:
    """Each gives the rows that a list of the same values gives."""
    build = prejoin.prepare(pa.table({"k": pa.array([1, 2, 3], pa.int64()), "v": [10, 20, 30]}), "k")
    series = pd.Series([2, None, 7], dtype="Int64")
    masked = np.ma.masked_array([2, 5, 7], mask=[False, True, False])
    chunked = pa.chunked_array([[2, None], [7]], pa.int64())
    asked: list[Any] = [series, series.array, list(series), masked, pl.Series([2, None, 7])]
    asked += [
        arro3.core.ChunkedArray.from_arrow(chunked),
        na.ArrayStream(chunked),
        na.Array(chunked),
        {"k": series.array},
    ]
    for keys in asked:
        assert build.lookup(keys)["v"].to_pylist() == [20, None, None], type(keys)

    texts = prejoin.prepare(pa.table({"k": ["a", "b"], "v": [1, 2]}), "k")
    for dtype in ("str", "string", "category", object):
        words = pd.Series(["b", None, "z"], dtype=dtype)
        for keys in (
            words,
            words.array,
            list(words.dropna()) and words.astype(object).where(words.notna(), None).tolist(),
        ):
            assert texts.lookup(keys)["v"].to_pylist() == [2, None, None], (dtype, type(keys))

    two = prejoin.prepare(pa.table({"a": [1, 2], "b": ["x", "y"], "v": [1, 2]}), ["a", "b"])
    records = np.array([("y", 2), ("z", 1)], dtype=[("b", "U1"), ("a", "i8")])
    index = pd.MultiIndex.from_tuples([(2, "y"), (1, "z")], names=["a", "b"])
    for keys in (records, index, index.set_names([None, None])):
        assert two.lookup(keys)["v"].to_pylist() == [2, None], type(keys)


DAY = dt.datetime(2024, 1, 1)


def as_objects(values: list[Any]) -> Any:
    """A numpy array of one dimension, whatever the values are."""
    array = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        array[at] = value
    return array


NULLS = {
    "int": prejoin.prepare(pa.table({"k": pa.array([1, None], pa.int64())}), "k", null_equal=True),
    "text": prejoin.prepare(pa.table({"k": ["a", None]}), "k", null_equal=True),
    "float": prejoin.prepare(pa.table({"k": [1.5, math.nan]}), "k", null_equal=True),
    "time": prejoin.prepare(pa.table({"k": pa.array([DAY, None], pa.timestamp("us"))}), "k", null_equal=True),
    "list": prejoin.prepare(pa.table({"k": [[1, None], None]}), "k", null_equal=True),
    "struct": prejoin.prepare(pa.table({"k": [{"a": 1, "b": None}, None]}), "k", null_equal=True),
}


@pytest.mark.parametrize("form", [list, as_objects, lambda keys: pd.Series(as_objects(keys))])
@pytest.mark.parametrize(
    ("kind", "keys", "found"),
    [
        ("int", [1, pd.NA, None, math.nan, pd.NaT, np.float32("nan"), 10**30, 2], [1, 1, 1, 1, 1, 1, 0, 0]),
        ("text", ["a", pd.NA, None, math.nan, pd.NaT, "zz"], [1, 1, 1, 1, 1, 0]),
        ("text", list(pd.Categorical(["a", None, "zz"])), [1, 1, 0]),
        ("float", [1.5, math.nan, np.float32("nan"), None, pd.NA], [1, 1, 1, 0, 0]),
        ("time", [DAY, pd.NaT, np.datetime64("NaT"), pd.NA, None], [1, 1, 1, 1, 1]),
        ("list", [[1, pd.NA], [1, None], [1, 1], pd.NA], [1, 1, 0, 1]),
        ("struct", [{"a": 1, "b": pd.NA}, {"a": pd.NA, "b": None}, pd.NA], [1, 0, 1]),
    ],
)
def test_nulls_of_other_libraries_are_nulls(form: Any, kind: str, keys: list[Any], found: list[int]) -> None:
    """In lists, in arrays of objects and at any depth; NaN too, but where it is a value of the column."""
    assert as_list(NULLS[kind].contains(form(keys))) == [bool(one) for one in found]


@pytest.mark.parametrize(
    "keys",
    [
        np.array([1, 7], dtype=">i8"),
        np.array([1, 7], dtype=object),
        pd.Series([1, 7]).values,
        pd.Series([1, 7], dtype="Int64").values,
        pd.Series([1, 7], dtype="category").values,
        pd.Series([1, 7], dtype=pd.ArrowDtype(pa.int64())).values,
        pd.arrays.SparseArray([1, 7]),
        pd.DataFrame({"other": [1, "text"], "k": [1, 7]}),
        arro3.core.Table.from_arrow(pa.table({"k": [1, 7]})),
        pl.DataFrame({"k": [1, 7]}),
    ],
)
def test_arrays_that_arrow_does_not_read_at_once(keys: Any) -> None:
    assert NULLS["int"].contains(keys).to_pylist() == [True, False]


@pytest.mark.parametrize(
    "column",
    [
        lambda column: arro3.core.Array.from_arrow(column),
        lambda column: arro3.core.ChunkedArray.from_arrow(pa.chunked_array([column.slice(0, 1), column.slice(1)])),
        lambda column: na.Array(column),
        lambda column: pl.DataFrame({"any": column}),
        lambda column: pa.table({"any": column}),
        lambda column: column.to_pandas().to_frame(),
        lambda column: as_objects(column.to_pylist()),
    ],
)
def test_a_mapping_of_any_columns(column: Callable[[pa.Array], Any]) -> None:
    build = prejoin.prepare(pa.table({"a": [1, 2], "b": ["x", "y"]}), ["a", "b"])
    keys = {"b": column(pa.array(["x", "x"])), "a": column(pa.array([1, 2]))}
    assert build.contains(keys).to_pylist() == [True, False]


@pytest.mark.parametrize(
    "keys",
    [
        as_objects([1, "a"]),
        pd.Series(as_objects([1, "a"])),
        np.array([1j]),
        np.array([[1, 2]]),
        pd.arrays.IntervalArray.from_breaks([0, 1]),
        {"k": as_objects([1, "a"])},
        pd.DataFrame({"k": as_objects([1, "a"])}),
    ],
)
def test_keys_of_no_use_are_refused_by_us(keys: Any) -> None:
    """Never by pyarrow, whatever reads them."""
    with pytest.raises(prejoin.PlanError, match='"k" has type'):
        NULLS["int"].contains(keys)
    with pytest.raises(TypeError, match="one dimension"):
        NULLS["int"].contains(np.array(1))


def test_keys_that_share_a_name_are_taken_by_position() -> None:
    """A name that says which column is meant to neither key is refused, in mappings and tables."""
    pair = pa.record_batch([pa.array([1, 2]), pa.array([1, 4])], names=["x", "x"])
    join = prejoin.HashJoin(pair.schema, pa.schema([("a", pa.int64()), ("b", pa.int64())]), on=[(0, 0), (1, 1)])
    build = join.prepare_build(pair)
    for fits in (
        pair,
        pa.table({"a": [1, 2], "b": [1, 4]}),
        [(1, 1), (2, 4)],
        pd.DataFrame({"a": [1, 2], "b": [1, 4]}),
    ):
        assert build.contains(fits).to_pylist() == [True, True]
    with pytest.raises(prejoin.PlanError, match=r'two key columns "x", which a mapping'):
        build.contains({"x": [1, 2]})
    for table in (pa.table({"x": [1, 2]}), pa.table({"x": [1, 2], "y": [1, 4]}), pd.DataFrame({"x": [1], "y": [1]})):
        with pytest.raises(prejoin.PlanError, match=r'two key columns "x", so that .* taken in key order'):
            build.contains(table)
