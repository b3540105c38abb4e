"""Frames and series in, frames and series of the same library out; the accessors of pandas and polars."""

# mypy: disable-error-code="attr-defined,arg-type,operator,union-attr,call-overload", allow-untyped-calls
from __future__ import annotations

import datetime as dt
import decimal
import doctest
import subprocess
import sys
from typing import Any, Literal

import arro3.core
import nanoarrow as na
import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
import prejoin.pandas
import prejoin.polars
from prejoin import PlanError

How = Literal["inner", "left", "right", "full", "semi", "anti"]
USERS = pa.table({"id": [1, 2, 4], "name": ["ada", None, "eve"], "age": [36, 41, None], "vip": [True, None, False]})


@pytest.fixture
def users() -> prejoin.PreparedBuild:
    return prejoin.prepare(USERS, "id")


def merged(left: pd.DataFrame, right: pd.DataFrame, how: str) -> pd.DataFrame:
    """What pandas gives, over types that hold nulls."""
    return left.merge(right, on="id", how="outer" if how == "full" else how, suffixes=("", "_right"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3))),
    st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(-3, 3)))),
    st.sampled_from(["inner", "left"]),
)
def test_a_pandas_join_is_merge(left: list[Any], right: list[Any], how: How) -> None:
    """B10. Rows, order, labels, types and index are those of `merge`, but that integers stay integers."""
    probe = pd.DataFrame({"id": [k for k, _ in left], "v": [v for _, v in left]}, index=range(7, 7 + len(left)))
    build = pd.DataFrame(
        {"id": pd.Series([k for k, _ in right], dtype="int64"), "v": pd.array([v for _, v in right], "Int64")}
    )
    probe = probe.astype("int64")
    prepared = prejoin.prepare(build, "id")
    found = prejoin.join(probe, prepared, how=how)
    assert isinstance(found, pd.DataFrame)
    assert isinstance(found.index, pd.RangeIndex)
    oracle = merged(probe, build, how)
    assert list(found.dtypes[["id", "v"]]) == ["int64", "int64"]
    assert found["v_right"].dtype == ("Int64" if oracle["v_right"].isna().any() else "int64")
    pd.testing.assert_frame_equal(found.astype({"v_right": "Int64"}), oracle)
    star = prejoin.StarJoin([prejoin.Leg(prepared, how=how)])
    pd.testing.assert_frame_equal(star(probe), found)
    pd.testing.assert_frame_equal(probe.prejoin.join(prepared, how=how), found)


def test_integers_that_gain_nulls(users: prejoin.PreparedBuild) -> None:
    probe = pd.DataFrame({"id": [1, 9, 2**53 + 1], "n": [2**53 + 1, 5, 6], "ok": [True, False, True]})
    left = prejoin.join(probe, users, how="left")
    assert [str(t) for t in left.dtypes] == [
        "int64",
        "int64",
        "bool",
        str(pd.Series(["a", None]).dtype),
        "Int64",
        "boolean",
    ]
    full = prejoin.join(probe, users, how="full")
    assert [str(full.dtypes[name]) for name in ("id", "n", "ok")] == ["int64", "Int64", "boolean"]
    assert full["n"].tolist() == [2**53 + 1, 5, 6, pd.NA, pd.NA]
    assert full["id"].tolist() == [1, 9, 2**53 + 1, 2, 4]
    # One may write into a result.
    left.loc[0, "n"] = 0
    left.iloc[1, 3] = "new"
    assert left["n"].tolist() == [0, 5, 6]
    assert probe["n"].tolist() == [2**53 + 1, 5, 6]


def columns_of_every_kind() -> dict[str, pd.Series]:
    days = pd.to_datetime(["2024-01-31 00:00:00", None, "2024-03-30 01:02:03"])
    return {
        "int8": pd.Series([1, -2, 3], dtype="int8"),
        "uint64": pd.Series([2**64 - 1, 0, 1], dtype="uint64"),
        "float32": pd.Series([0.5, np.nan, -0.0], dtype="float32"),
        "Int64": pd.Series([2**53 + 1, None, 3], dtype="Int64"),
        "Float64": pd.Series([0.5, None, 3], dtype="Float64"),
        "boolean": pd.Series([True, None, False], dtype="boolean"),
        "bool": pd.Series([True, True, False]),
        "text": pd.Series(["a", None, "c"]),
        "objects": pd.Series(["a", None, "c"], dtype=object),
        "numbers as objects": pd.Series([2**53 + 1, None, 3], dtype=object),
        "string[python]": pd.Series(["a", None, "c"], dtype="string[python]"),
        "string[pyarrow]": pd.Series(["a", None, "c"], dtype="string[pyarrow]"),
        "arrow": pd.Series([1, None, 3], dtype=pd.ArrowDtype(pa.int16())),
        "arrow decimals": pd.Series([decimal.Decimal("1.5"), None, None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        "arrow lists": pd.Series([[1, None], None, []], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        "datetime": pd.Series(days).astype("datetime64[ns]"),
        "datetime in seconds": pd.Series(days).astype("datetime64[s]"),
        "zone": pd.Series(days).dt.tz_localize("Europe/Berlin"),
        "offset": pd.Series(days).dt.tz_localize(dt.timezone(dt.timedelta(hours=2))),
        "timedelta": pd.Series(pd.to_timedelta([1, None, 3], unit="s")),
        "category": pd.Series(pd.Categorical(["b", None, "a"], ["c", "b", "a"])),
        "ordered category": pd.Series(pd.Categorical(["b", None, "a"], ["c", "b", "a"], ordered=True)),
        "category of ints": pd.Series(pd.Categorical([5, None, 3])),
        "period": pd.Series(pd.PeriodIndex(["2024-01", None, "2024-03"], freq="M")),
        "interval": pd.Series(pd.arrays.IntervalArray.from_tuples([(0, 1), None, (2, 3)])),
        "decimals": pd.Series([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")]),
        "dates": pd.Series([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]),
        "times": pd.Series([dt.time(1, 2, 3, 4), None, dt.time(0)]),
        "bytes": pd.Series([b"a", None, b""]),
    }


@pytest.mark.parametrize("name", columns_of_every_kind())
def test_columns_of_pandas_come_back(name: str) -> None:
    """Types and values of the probe side are those that `merge` gives."""
    column = columns_of_every_kind()[name]
    probe = pd.DataFrame({"id": [3, 1, 2], "x": column})
    build = prejoin.prepare(pd.DataFrame({"id": [1, 2, 3, 3]}), "id")
    oracle = probe.merge(pd.DataFrame({"id": [1, 2, 3, 3]}), on="id")
    pd.testing.assert_frame_equal(prejoin.join(probe, build), oracle)
    # With rows that have no partner.
    right = prejoin.join(probe, prejoin.prepare(pd.DataFrame({"id": [3, 9]}), "id"), how="right")
    assert right["id"].tolist() == [3, 9]
    first, second = right["x"].tolist()
    assert first == column[0] or name == "arrow lists"
    assert pd.isna(second)
    no_null = {"int8": "Int8", "uint64": "UInt64", "bool": "boolean"}
    assert right["x"].dtype == no_null.get(name, column.dtype)


def test_build_columns_that_pandas_has_no_type_for() -> None:
    """They keep all digits and nulls: in pandas' own types, as Python objects, or in Arrow's."""
    held = {
        "decimal": pa.array([decimal.Decimal("1.5"), None]),
        "list": pa.array([[2**53 + 1, None], None]),
        "struct": pa.array([{"a": 2**53 + 1}, {"a": None}]),
        "zone": pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
        "year 1": pa.array([dt.datetime(1, 1, 1), None], pa.timestamp("us")),
        "date": pa.array([dt.date(1, 1, 1), None]),
        "nanoseconds": pa.array([1, None], pa.time64("ns")),
        "union": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
        "category": pa.array(["x", None]).dictionary_encode(),
        "view": pa.array(["x", None], pa.string_view()),
        "list view": pa.array([[1, None], None], pa.list_view(pa.int64())),
        "uint64": pa.array([2**64 - 1, None], pa.uint64()),
        "binary": pa.array([b"x", None], pa.binary(1)),
        "null": pa.nulls(2),
    }
    build = prejoin.prepare(pa.table({"id": [1, 2], **held}), "id")
    found = prejoin.join(pd.DataFrame({"id": [1, 2]}), build)
    assert isinstance(found["category"].dtype, pd.CategoricalDtype)
    assert found["uint64"].dtype == "UInt64"
    assert str(found["zone"].dtype) == "datetime64[us, Europe/Berlin]"

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, pd.Timestamp):
            return value.to_pydatetime()
        return value

    for name, column in held.items():
        for value, wanted in zip(found[name], column, strict=True):
            if not wanted.is_valid:
                assert value is None or pd.isna(value), name
            elif name == "nanoseconds":
                assert pa.array(found[name].array).equals(column)
            else:
                assert plain(value) == wanted.as_py(), name


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_dtype_backend(users: prejoin.PreparedBuild, backend: Literal["numpy_nullable", "pyarrow"]) -> None:
    """As pandas' own `convert_dtypes` chooses them."""
    probe = pd.DataFrame({"id": [1, 9], "price": [0.5, 1.5]})
    oracle = merged(probe, USERS.to_pandas(), "left").convert_dtypes(dtype_backend=backend)
    found = prejoin.join(probe, users, how="left", dtype_backend=backend)
    kind = (lambda t: "string" if pa.types.is_large_string(t) else str(t)) if backend == "pyarrow" else str
    of = (lambda d: kind(d.pyarrow_dtype)) if backend == "pyarrow" else str
    types = {"age": "int64", "vip": "bool"} if backend == "pyarrow" else {"age": "Int64", "vip": "boolean"}
    assert [of(d) for d in found.dtypes] == [types.get(n, of(d)) for n, d in oracle.dtypes.items()]
    assert [[None if pd.isna(v) else v for v in row] for row in found.itertuples(index=False)] == [
        [None if pd.isna(v) else v for v in row] for row in oracle.itertuples(index=False)
    ]
    star = prejoin.StarJoin([prejoin.Leg(users, how="left")])
    pd.testing.assert_frame_equal(star(probe, dtype_backend=backend), found)
    pd.testing.assert_frame_equal(prejoin.join(probe, [prejoin.Leg(users, how="left")], dtype_backend=backend), found)
    pd.testing.assert_frame_equal(users.join(probe, how="left", dtype_backend=backend), found)


def test_dtype_backend_is_for_pandas(users: prejoin.PreparedBuild) -> None:
    with pytest.raises(PlanError, match=r"a probe side of pyarrow.lib.Table does not give"):
        prejoin.join(USERS, users, dtype_backend="pyarrow")
    with pytest.raises(PlanError, match='it is "numpy_nullable" or "pyarrow"'):
        prejoin.join(USERS.to_pandas(), users, dtype_backend="numpy")


def test_labels_of_pandas(users: prejoin.PreparedBuild) -> None:
    """Labels that are no texts come back, where a column keeps its name."""
    probe = pd.DataFrame({"id": [1, 2], 7: [3, 4], ("a", 1): [5, 6], None: [0, 0]})
    assert list(prejoin.join(probe, users, select=["id", "7", "age"]).columns) == ["id", 7, "age"]
    assert list(prejoin.join(probe, users, select={"seven": "7", "7": "age"}).columns) == ["seven", "7"]
    assert prejoin.join(probe, users, select=[]).shape == (2, 0)
    assert list(prejoin.join(probe[["id", ("a", 1)]], users, how="semi").columns) == ["id", ("a", 1)]


def test_empty_frames(users: prejoin.PreparedBuild) -> None:
    none = pd.DataFrame({"id": pd.Series([], dtype="int64"), "x": pd.Series([], dtype="category")})
    found = prejoin.join(none, users)
    assert (len(found), str(found["x"].dtype), str(found["age"].dtype)) == (0, "category", "int64")
    assert isinstance(found.index, pd.RangeIndex)
    frame = pl.DataFrame(schema={"id": pl.Int64, "x": pl.Enum(["a"])})
    assert prejoin.join(frame, users).schema == {"id": pl.Int64, "x": pl.Enum(["a"])} | pl.DataFrame(USERS).schema


POLARS = pl.DataFrame(
    {
        "id": pl.Series([3, 1, None], dtype=pl.Int32),
        "category": pl.Series(["a", None, "b"], dtype=pl.Categorical),
        "enum": pl.Series(["b", "a", None], dtype=pl.Enum(["c", "b", "a"])),
        "decimal": pl.Series([decimal.Decimal("1.50"), None, None], dtype=pl.Decimal(20, 2)),
        "zone": pl.Series([dt.datetime(2024, 1, 1)] * 3, dtype=pl.Datetime("us")).dt.replace_time_zone("Asia/Tokyo"),
        "time": [dt.time(1), None, dt.time(2)],
        "duration": pl.Series([1, None, 3], dtype=pl.Duration("ms")),
        "list": [[1, None], None, []],
        "array": pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.UInt8, 2)),
        "struct": [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None],
        "text": ["a text that is no short one", None, ""],
        "bytes": [b"x", None, b""],
        "null": [None, None, None],
        "small": pl.Series([1, 2, None], dtype=pl.UInt8),
    }
)
KINDS: dict[How, str] = {"inner": "inner", "left": "left", "full": "full", "semi": "semi", "anti": "anti"}


@pytest.mark.parametrize("how", KINDS)
def test_a_polars_join_is_that_of_polars(how: How) -> None:
    """B10. All types, by an eager and by a lazy frame."""
    other = pl.DataFrame(
        {"id": pl.Series([1, 3, 3, 7], dtype=pl.Int32), "e": pl.Series(["y", "x", "y", "x"], dtype=pl.Enum(["x", "y"]))}
    )
    build = prejoin.prepare(other, "id")
    coalesce = None if how in ("semi", "anti") else True
    oracle = POLARS.join(other, on="id", how=KINDS[how], coalesce=coalesce, maintain_order="left_right")
    found = prejoin.join(POLARS, build, how=how)
    assert isinstance(found, pl.DataFrame)
    assert found.schema == oracle.schema
    pl.testing.assert_frame_equal(found, oracle)
    pl.testing.assert_frame_equal(POLARS.prejoin.join(build, how=how), oracle)
    lazy = POLARS.lazy().prejoin.join(build, how=how)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == oracle.schema
    for engine in ("in-memory", "streaming"):
        pl.testing.assert_frame_equal(lazy.collect(engine=engine), oracle)


def test_python_objects_in_polars_are_refused(users: prejoin.PreparedBuild) -> None:
    """Polars exports their addresses."""
    frame = pl.DataFrame({"id": [1], "o": [object()]})
    for ask in (
        lambda: prejoin.join(frame, users),
        lambda: prejoin.join(frame.lazy(), users),
        lambda: prejoin.prepare(frame, "id"),
        lambda: prejoin.StarJoin([users])(frame),
    ):
        with pytest.raises(PlanError, match='column "o" holds Python objects, which polars gives to no other library'):
            ask()
    assert prejoin.join(frame.drop("o"), users).height == 1


def test_frames_of_arro3_and_nanoarrow(users: prejoin.PreparedBuild) -> None:
    table = pa.table({"id": [1, 2, 9]})
    batch = table.combine_chunks().to_batches()[0]
    wanted = prejoin.join(table, users)
    for probe in (
        arro3.core.Table.from_arrow(table),
        arro3.core.RecordBatch.from_arrow(batch),
        na.Array(batch),
        na.c_array(batch),
    ):
        for found in (prejoin.join(probe, users), prejoin.StarJoin([users])(probe)):
            assert type(found) is type(probe)
            assert pa.table(found).equals(wanted)
    for stream in (arro3.core.RecordBatchReader.from_arrow(table), na.ArrayStream(table), pl.LazyFrame(table)):
        reader = prejoin.join(stream, users)
        assert isinstance(reader, pa.RecordBatchReader)
        assert reader.read_all().select(["id"]).equals(wanted.select(["id"]))


def test_lazy_joins_read_what_is_used(users: prejoin.PreparedBuild) -> None:
    """The query after the join decides which columns and how many rows are made."""
    seen: list[tuple[int, list[str]]] = []

    def look(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append((frame.height, frame.columns))
        return frame

    rows = pl.DataFrame({"id": [1, 2, 4, 9] * 50_000, "x": range(200_000)})
    watched = rows.lazy().map_batches(look, streamable=True, schema=rows.schema)
    joined = rows.lazy().prejoin.join(users, how="left")
    eager = rows.prejoin.join(users, how="left")
    queries = [
        lambda f: f,
        lambda f: f.select("name", "x"),
        lambda f: f.head(10),
        lambda f: f.filter(pl.col("age") > 36).select("x"),
        lambda f: f.filter(pl.col("age") > 36).head(3),
        lambda f: f.head(7).filter(pl.col("age") > 36),
        lambda f: f.slice(3, 5).with_columns(y=pl.col("x") + 1),
        lambda f: f.group_by("name", maintain_order=True).len(),
        lambda f: f.tail(3),
        lambda f: f.select(pl.len()),
        lambda f: f.drop("id", "x").unique(maintain_order=True),
    ]
    for query in queries:
        for engine in ("in-memory", "streaming"):
            pl.testing.assert_frame_equal(query(joined).collect(engine=engine), query(eager))
    assert watched.prejoin.join(users).head(5).collect().height == 5
    chosen = rows.lazy().prejoin.join(users, select={"n": "build.name", "x": "x"}, limit=5)
    assert chosen.collect_schema().names() == ["n", "x"]
    assert chosen.select("x").collect().to_series().to_list() == [0, 1, 2, 4, 5]
    assert chosen.head(2).select("n").collect().to_series().to_list() == ["ada", None]
    # A lazy frame is used twice in a query, and joined with itself.
    both = joined.join(joined.select("x", again="name"), on="x").collect()
    assert both.height == 200_000
    star = rows.lazy().prejoin.join([prejoin.Leg(users, how="semi"), prejoin.Leg(users, how="left")])
    assert star.collect().equals(rows.prejoin.join(users))


def test_errors_of_lazy_joins(users: prejoin.PreparedBuild) -> None:
    lazy = pl.LazyFrame({"id": [1], "x": ["a"]})
    with pytest.raises(TypeError, match=r"pyarrow.lib.Table was given: prejoin.prepare\(rows, on=..\) makes a build"):
        lazy.prejoin.join(USERS, on="id")
    with pytest.raises(pl.exceptions.ComputeError, match='PlanError: the probe side has no column "nothing"'):
        lazy.prejoin.join(users, on={"nothing": "id"}).collect_schema()
    with pytest.raises(pl.exceptions.InvalidOperationError, match=r"conversion from `str` to `i64` failed"):
        lazy.with_columns(id=pl.col("x").cast(pl.Int64)).prejoin.join(users).collect()


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(st.integers(0, 9), st.one_of(st.none(), st.integers(-5, 5)), max_size=6, min_size=1),
    st.lists(st.one_of(st.none(), st.integers(-3, 12))),
    st.one_of(st.none(), st.integers(-9, 9)),
)
def test_a_mapped_expression_is_replace_strict(rows: dict[int, Any], keys: list[Any], default: int | None) -> None:
    build = prejoin.prepare(pa.table({"k": pa.array(rows, pa.int64()), "v": pa.array(rows.values(), pa.int16())}), "k")
    frame = pl.DataFrame({"asked": pl.Series(keys, dtype=pl.Int64)})
    own = pl.col("asked").replace_strict(list(rows), list(rows.values()), default=default, return_dtype=pl.Int16)
    ours = pl.col("asked").prejoin.map(build, "v", default)
    is_in, contained = pl.col("asked").is_in(list(rows)).fill_null(False), pl.col("asked").prejoin.contains(build)
    queries = [
        lambda f, e, c: f.select(e),
        lambda f, e, c: f.with_columns(v=e, c=c),
        lambda f, e, c: f.filter(e > 0),
        lambda f, e, c: f.filter(c).with_columns(e + 1),
        lambda f, e, c: f.group_by(pl.col("asked") % 2, maintain_order=True).agg(
            v=e.alias("v").sum(), c=c.alias("c").sum()
        ),
        lambda f, e, c: f.select(v=pl.when(c).then(e).otherwise(pl.lit(0, pl.Int16))),
        lambda f, e, c: f.sort(e, maintain_order=True, nulls_last=True),
    ]
    for query in queries:
        oracle = query(frame, own, is_in)
        assert isinstance(oracle, pl.DataFrame)
        pl.testing.assert_frame_equal(query(frame, ours, contained), oracle)
        assert query(frame.lazy(), ours, contained).collect_schema() == oracle.schema
        for engine in ("in-memory", "streaming"):
            pl.testing.assert_frame_equal(query(frame.lazy(), ours, contained).collect(engine=engine), oracle)


def test_expressions_over_several_keys_and_types() -> None:
    build = prejoin.prepare(
        pl.DataFrame({"a": [1, 1], "b": ["x", "y"], "e": pl.Series(["q", "p"], dtype=pl.Enum(["p", "q"]))}), ["a", "b"]
    )
    frame = pl.DataFrame({"a": [1, 2, 1], "b": ["y", "y", None]})
    for keys in (pl.struct("a", "b"), pl.struct(u="a", v="b")):
        found = frame.select(e=keys.prejoin.map(build, "e", "q"))
        assert found["e"].to_list() == ["p", "q", "q"]
        assert found["e"].dtype == pl.Enum(["p", "q"])
    with pytest.raises(PlanError, match='no column "x"'):
        pl.col("a").prejoin.map(build, "x")
    with pytest.raises(PlanError, match='column "e" has type'):
        pl.col("a").prejoin.map(build, "e", 5)
    names = prejoin.prepare(pl.DataFrame({"k": [1, 1], "v": [5, 6]}), "k")
    with pytest.raises(PlanError, match="keep="):
        pl.col("a").prejoin.map(names, "v")
    assert frame.select(pl.col("a").prejoin.map(names, "v", keep="last"))["a"].to_list() == [6, None, 6]
    with pytest.raises(PlanError, match="does not compare with the build's key of type Int64"):
        frame.select(pl.col("b").prejoin.map(names, "v", keep="last"))


def test_series_and_indices(users: prejoin.PreparedBuild) -> None:
    """Labels, index and type as of pandas' own calls."""
    held = USERS.to_pandas().set_index("id")
    keys = pd.Series([4, 9, 1], ["x", "y", "z"], name="user")
    pd.testing.assert_series_equal(keys.prejoin.map(users, "name"), keys.map(held["name"]), check_dtype=True)
    pd.testing.assert_series_equal(keys.prejoin.contains(users), keys.isin(held.index))
    pd.testing.assert_series_equal(users.count_matches(keys), keys.isin(held.index).astype("uint32"))
    index = pd.Index([4, 9, 1], name="user")
    pd.testing.assert_index_equal(index.prejoin.map(users, "name", "-"), index.map({4: "eve", 9: "-", 1: "ada"}))
    pd.testing.assert_index_equal(users.map(index, "age"), pd.Index([None, None, 36], dtype="Int64", name="user"))
    own = pl.Series("user", [4, None, 1])
    assert own.prejoin.contains(users).equals(own.is_in([1, 2, 4]).fill_null(False), check_names=True)
    assert own.prejoin.map(users, "age", 0).to_list() == [None, 0, 36]


def test_an_absent_library_is_one_line() -> None:
    for module in ("pandas", "polars"):
        code = f"import sys; sys.modules[{module!r}] = None\n"
        code += f"try:\n import prejoin.{module}\nexcept ImportError as e:\n print(e)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == f"prejoin.{module} needs {module}, which cannot be imported: pip install {module}\n"
        # Without it, nothing of it is needed: the package itself imports neither.
        code = "import sys, prejoin; print([m for m in ('pandas', 'polars') if m in sys.modules])"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_examples_of_the_accessors() -> None:
    for module in (prejoin.pandas, prejoin.polars):
        result = doctest.testmod(module)
        assert result.attempted > 5
        assert result.failed == 0
