"""Values by key: `map`, `[]`, `in`, defaults, `counts`, and `join` as a method."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import inspect
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from prejoin import PlanError

ROWS = {"id": [3, 1, 2], "seats": [55, None, 149], "name": ["eve", "ada", None], "price": [0.5, 1.5, None]}
ABSENT = object()


@pytest.fixture
def build() -> prejoin.PreparedBuild:
    return prejoin.prepare(pa.table(ROWS), "id")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.integers(0, 30), st.one_of(st.none(), st.integers(-5, 5)), max_size=20),
    st.lists(st.one_of(st.none(), st.integers(-3, 33))),
    st.one_of(st.none(), st.integers(-9, 9)),
)
def test_a_map_is_a_dict(rows: dict[int, int | None], keys: list[int | None], default: int | None) -> None:
    """B10. A default is for keys that are absent; a null that the build holds stays one."""
    data = pa.table({"k": pa.array(rows, pa.int64()), "v": pa.array(rows.values(), pa.int16())})
    build = prejoin.prepare(data, "k")
    wanted = [rows.get(key, default) if key is not None else default for key in keys]
    found = build.map(keys, "v", default)
    assert found.type == pa.int16()
    assert found.to_pylist() == wanted
    assert build.lookup(keys, ["v"], default=default)["v"].to_pylist() == wanted
    assert [key in build for key in keys] == [key in rows for key in keys]
    for key in keys:
        assert build.get(key, ABSENT) is ABSENT if key not in rows else build[key] == {"k": key, "v": rows[key]}

    series = pd.Series(keys, [f"row {i}" for i in range(len(keys))], "Int64", name="asked")
    mapped = build.map(series, "v", default)
    assert isinstance(mapped, pd.Series)
    assert mapped.name == "asked"
    assert mapped.index.equals(series.index)
    assert mapped.dtype == ("Int16" if None in wanted else "int16")
    assert [None if pd.isna(value) else value for value in mapped] == wanted

    if rows:
        asked = pl.Series("asked", keys, pl.Int64)
        # Polars looks a null up as if it were a key that is absent.
        oracle = asked.replace_strict(list(rows), list(rows.values()), default=default, return_dtype=pl.Int16)
        of_polars = build.map(asked, "v", default)
        assert isinstance(of_polars, pl.Series)
        assert of_polars.equals(oracle, check_names=True, check_dtypes=True)


def test_pandas_map_gives_the_same() -> None:
    """The answer of `Series.map` for values without nulls: types, index and name."""
    held: dict[str, list[Any]] = {
        "int": [1, 2, 3],
        "float": [0.5, 1.5, float("nan")],
        "text": ["a", "b", "c"],
        "flag": [True, False, True],
        "time": [dt.datetime(2024, 1, day) for day in (1, 2, 3)],
    }
    build = prejoin.prepare(pa.table({"k": [10, 20, 30], **held}), "k")
    keys = pd.Series([30, 10, 10, 20], [7, 5, 5, 1], name="k")
    for column, values in held.items():
        own = pd.Series(values, [10, 20, 30])
        oracle = keys.map(own)
        found = build.map(keys, column)
        if column == "time":
            found = found.astype(oracle.dtype)
        pd.testing.assert_series_equal(found, oracle)
        found.iloc[0] = found.iloc[1]
    # Integers that gain nulls stay integers.
    assert build.map(pd.Series([10, 11]), "int").dtype == "Int64"
    assert build.map(pd.Series([10, 11]), "flag").dtype == "boolean"
    assert build.map(pd.Series([], dtype="int64"), "int").dtype == "int64"


def test_the_kind_of_the_answer(build: prejoin.PreparedBuild) -> None:
    keys = [2, 9]
    for given_keys in (keys, tuple(keys), pa.array(keys), pa.chunked_array([[2], [9]]), np.array(keys), {"id": keys}):
        found = build.map(given_keys, "seats", 0)
        assert isinstance(found, pa.Int64Array)
        assert found.to_pylist() == [149, 0]
    assert build.map([], "name").type == pa.string()
    for unnamed in (pd.Series(keys), pl.Series(keys)):
        assert list(build.map(unnamed, "seats", 0)) == [149, 0]
        assert build.map(unnamed, "seats").name == unnamed.name
    with pytest.raises(PlanError, match='no column "nothing"'):
        build.map(keys, "nothing")


def test_keys_that_repeat() -> None:
    build = prejoin.prepare(pa.table({"k": [1, 2, 1], "v": ["a", "b", "c"]}), "k")
    assert build.map([1, 3], "v", "-", keep="first").to_pylist() == ["a", "-"]
    assert build.map([1, 3], "v", keep="last").to_pylist() == ["c", None]
    assert 1 in build
    for ask in (lambda: build.map([1], "v"), lambda: build[1], lambda: build.get(1, None)):
        with pytest.raises(PlanError, match='say which by keep="first" or keep="last"'):
            ask()


def test_keys_of_several_columns() -> None:
    build = prejoin.prepare(pa.table({"a": [1, 1], "b": ["x", "y"], "v": [1.5, 2.5]}), ["a", "b"])
    assert build[1, "y"] == {"a": 1, "b": "y", "v": 2.5}
    assert (1, "x") in build
    assert (2, "x") not in build
    assert build.map([(1, "y"), (2, "y")], "v", 0).to_pylist() == [2.5, 0.0]
    with pytest.raises(KeyError) as caught:
        build[2, "x"]
    assert caught.value.args == ((2, "x"),)


def test_one_key(build: prejoin.PreparedBuild) -> None:
    assert build[1] == {"id": 1, "seats": None, "name": "ada", "price": 1.5}
    for absent in (7, None, 2**70):
        assert absent not in build
        assert build.get(absent) is None
        assert build.get(absent, ABSENT) is ABSENT
        with pytest.raises(KeyError) as caught:
            build[absent]
        assert caught.value.args == (absent,)
    # As in any mapping, a key of another kind is one that is absent; the cause says what it is.
    for other, cause in [("x", "type Int64"), (1.5, "type Int64"), ([1], "type Int64"), ((1, 2), "type Int64")]:
        assert other not in build
        assert build.get(other, ABSENT) is ABSENT
        with pytest.raises(KeyError) as caught:
            build[other]
        assert caught.value.args == (other,)
        assert isinstance(caught.value.__cause__, PlanError)
        assert cause in str(caught.value.__cause__)
    # Many keys of another kind are a mistake.
    for ask in (build.lookup, build.contains, lambda keys: build.map(keys, "name")):
        with pytest.raises(PlanError, match="type Int64"):
            ask(["x"])
    # A build is not a sequence of rows: 0, 1, 2 are keys.
    for walk in (iter, list, reversed):
        with pytest.raises(TypeError):
            walk(build)  # type: ignore[call-overload]


TYPES: list[tuple[pa.DataType, Any, list[Any]]] = [
    (pa.int8(), 7, [128, True, 1.0, "7", b"7"]),
    (pa.uint64(), 2**64 - 1, [-1, 2**64, False]),
    (pa.float64(), 0.25, ["0.25", True, 2**53 + 1, decimal.Decimal("0.25")]),
    (pa.float32(), 0.25, [0.1, 2**24 + 1]),
    (pa.float64(), 3, []),
    (pa.bool_(), False, [0, "false"]),
    (pa.string(), "-", [1, b"-", "\ud800"]),
    (pa.large_string(), "-", [1]),
    (pa.string_view(), "longer than sixteen bytes", [1]),
    (pa.binary(), b"-", ["-"]),
    (pa.binary(2), b"--", [b"-", "--"]),
    (pa.date32(), dt.date(2024, 2, 29), ["2024-02-29", 1]),
    (pa.timestamp("us"), dt.datetime(2024, 2, 29, 1, 2, 3, 4), [1, "2024-02-29"]),
    (pa.timestamp("s", "UTC"), dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc), [1]),
    (pa.duration("ms"), dt.timedelta(milliseconds=5), [dt.timedelta(microseconds=5), 5]),
    (pa.decimal128(10, 2), decimal.Decimal("1.50"), [decimal.Decimal("1.505"), "1.50"]),
    (pa.dictionary(pa.int8(), pa.string()), "-", [1]),
    (pa.list_(pa.int64()), [1, None], [1, ["x"]]),
]


@pytest.mark.parametrize(("data_type", "good", "bad"), TYPES, ids=[str(row[0]) for row in TYPES])
def test_a_default_has_the_type_of_its_column(data_type: pa.DataType, good: Any, bad: list[Any]) -> None:
    build = prejoin.prepare(pa.table({"k": [1, 2], "v": pa.array([None, good], pa.field("v", data_type).type)}), "k")
    for value in [good, pa.scalar(good, data_type)] if not pa.types.is_dictionary(data_type) else [good]:
        found = build.map([3, 1, 2], "v", value)
        assert found.type == data_type
        assert found.to_pylist() == [good, None, good]
    for value in bad:
        with pytest.raises(PlanError) as caught:
            build.map([3], "v", value)
        text = str(caught.value)
        assert f'{type(value).__qualname__}, column "v" has type ' in text, text


def test_defaults_of_lookup(build: prejoin.PreparedBuild) -> None:
    keys = [9, 2]
    found = build.lookup(keys, ["seats", "price"], default={"price": 0.0})
    assert found.to_pylist() == [{"seats": None, "price": 0.0}, {"seats": 149, "price": None}]
    assert build.lookup(keys, ["seats", "price"], default=np.int64(4)).to_pylist()[0] == {"seats": 4, "price": 4.0}
    assert build.lookup(keys, default={"id": -1, "name": "nobody"})["id"].to_pylist() == [-1, 2]
    # Where no key is absent there is nothing to fill, but a default that does not fit is refused all the same.
    with pytest.raises(PlanError, match=r"default='x' is of type .*str, column \"price\" has type Float64"):
        build.lookup([2], ["price"], default={"price": "x"})
    with pytest.raises(PlanError, match='default names the column "x", the columns are'):
        build.lookup(keys, ["seats"], default={"x": 1})
    with pytest.raises(PlanError, match='column "name" has type Utf8'):
        build.lookup(keys, default=0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["x", "y", None]))),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 4)),
    st.sampled_from([("a", "b"), ("a", "count")]),
)
def test_counts(rows: list[tuple[int, str | None]], null_equal: bool, limit: int | None, names: Any) -> None:
    """B10. Which keys repeat, how often: those of most rows first, then those that come first."""
    data = pa.table([[a for a, _ in rows], pa.array([b for _, b in rows], pa.string())], names=names)
    data = data.set_column(0, names[0], data[0].cast(pa.int64()))
    build = prejoin.prepare(data, list(names), null_equal=null_equal)
    counted = collections.Counter(row for row in rows if null_equal or row[1] is not None)
    wanted = [(*row, count) for row, count in counted.most_common() if count > 1][:limit]
    found = build.counts(limit=limit)
    assert found.column_names == [*names, "count_" if "count" in names else "count"]
    assert found.schema.types == [pa.int64(), pa.string(), pa.uint32()]
    assert [tuple(row) for row in zip(*found.to_pydict().values(), strict=True)] == wanted


HOWS: list[Literal["inner", "left", "semi"]] = ["inner", "left", "semi"]


def test_join_as_a_method(build: prejoin.PreparedBuild) -> None:
    """The function with its second argument given: the same signature, the same answers."""
    function, method = (inspect.signature(of).parameters for of in (prejoin.join, prejoin.PreparedBuild.join))
    assert [str(p) for name, p in function.items() if name != "build"] == [
        str(p) for name, p in method.items() if name != "self"
    ]
    rows = pa.table({"user": [2, 9, 1]})
    for how in HOWS:
        assert build.join(rows, {"user": "id"}, how).equals(prejoin.join(rows, build, {"user": "id"}, how))
    options: dict[str, Any] = {
        "on": {"user": "id"}, "where": "build.price IS NOT NULL", "select": ["name"], "suffix": "_x", "coalesce": False,
        "limit": 1, "batch_size": 1, "validate": "m:1",
    }  # fmt: skip
    assert build.join(rows, **options).to_pydict() == {"name": ["ada"]}
    with pytest.raises(PlanError, match='how="x" is not a kind of join'):
        build.join(rows, how="x")  # type: ignore[call-overload]
