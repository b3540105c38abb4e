"""docs/migrating.md: each row of its tables against the library that it is about, and its code as it stands there."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import prejoin
from test_readme import python_in

PROBE = {"k": [1, None, 2, 1], "v": [1, 2, 3, 4]}
BUILD = {"k": [None, 1, 3, 1], "w": [7, 8, 9, 6]}
# Kind of prejoin: the words of pandas, polars, pyarrow and DuckDB.
KINDS: dict[str, tuple[str | None, str | None, str | None, str | None]] = {
    "inner": ("inner", "inner", "inner", "INNER"),
    "left": ("left", "left", "left outer", "LEFT"),
    "right": ("right", "right", "right outer", "RIGHT"),
    "full": ("outer", "full", "full outer", "FULL"),
    "semi": (None, "semi", "left semi", "SEMI"),
    "anti": ("left_anti", "anti", "left anti", "ANTI"),
    "build_semi": (None, None, "right semi", None),
    "build_anti": ("right_anti", None, "right anti", None),
}

Row = tuple[Any, ...]


def rows(table: Any, names: list[str]) -> list[Row]:
    """The rows in one order, nulls as None."""
    columns = [[None if value != value else value for value in table[name].to_pylist()] for name in names]
    return sorted(zip(*columns, strict=True), key=repr)


def joined(how: str, *, null_equal: bool = False) -> pa.Table:
    build = prejoin.prepare(pa.table(BUILD), "k", null_equal=null_equal)
    return prejoin.join(pa.table(PROBE), build, how=how)  # type: ignore[call-overload]


@pytest.mark.parametrize("how", KINDS)
def test_kinds(how: str) -> None:
    """Nulls of pandas match each other, so it is compared with a build whose nulls do."""
    of_pandas, of_polars, of_pyarrow, of_duckdb = KINDS[how]
    want = joined(how)
    names = want.column_names
    if of_pandas:
        left, right = pd.DataFrame(PROBE).astype("Int64"), pd.DataFrame(BUILD).astype("Int64")
        nullable = joined(how, null_equal=True)
        got = pa.Table.from_pandas(left.merge(right, "outer" if False else of_pandas, "k"), preserve_index=False)
        assert rows(got, names) == rows(nullable, names)
    if of_polars:
        coalesce = True if how in ("full", "right") else None
        got = pl.DataFrame(PROBE).join(pl.DataFrame(BUILD), "k", of_polars, coalesce=coalesce).to_arrow()  # type: ignore[arg-type]
        assert rows(got, names) == rows(want, names)
    if of_pyarrow:
        assert rows(pa.table(PROBE).join(pa.table(BUILD), "k", join_type=of_pyarrow), names) == rows(want, names)
    if of_duckdb:
        probe, build = pa.table(PROBE), pa.table(BUILD)
        with duckdb.connect() as connection:
            connection.register("probe", probe)
            connection.register("build", build)
            got = connection.sql(f"SELECT * FROM probe {of_duckdb} JOIN build USING (k)").to_arrow_table()
        assert rows(got, names) == rows(want, names)


def test_nulls_equal_and_marks() -> None:
    left, right = pl.DataFrame(PROBE), pl.DataFrame(BUILD)
    want = joined("inner", null_equal=True)
    assert rows(left.join(right, "k", nulls_equal=True).to_arrow(), want.column_names) == rows(want, want.column_names)
    probe, build = pa.table(PROBE), pa.table(BUILD)
    with duckdb.connect() as connection:
        connection.register("probe", probe)
        connection.register("build", build)
        got = connection.sql(
            "SELECT probe.k, v, w FROM probe JOIN build ON probe.k IS NOT DISTINCT FROM build.k"
        ).to_arrow_table()
    assert rows(got, want.column_names) == rows(want, want.column_names)
    once = pd.DataFrame(BUILD).drop_duplicates("k")
    marked = pd.DataFrame(PROBE).merge(once, "left", "k", indicator=True)
    assert (marked["_merge"] == "both").tolist() == joined("mark", null_equal=True)["mark"].to_pylist()


def test_names_and_keys() -> None:
    one, other = {"k": [1], "v": [2]}, {"k": [1, 3], "v": [4, 5]}
    build = prejoin.prepare(pa.table(other), "k")
    assert prejoin.join(pa.table(one), build).column_names == ["k", "v", "v_right"]
    assert pd.DataFrame(one).merge(pd.DataFrame(other), on="k").columns.tolist() == ["k", "v_x", "v_y"]
    assert pl.DataFrame(one).join(pl.DataFrame(other), "k").columns == ["k", "v", "v_right"]
    assert pa.table(one).join(pa.table(other), "k").column_names == ["k", "v", "v"]
    # The name with the suffix is taken as well.
    taken = {**one, "v_right": [0], "v_x": [0]}
    assert prejoin.join(pa.table(taken), build).column_names == ["k", "v", "v_right", "v_x", "build.v"]
    with pytest.raises(pd.errors.MergeError):
        pd.DataFrame(taken).merge(pd.DataFrame(other), on="k")
    with pytest.raises(pl.exceptions.DuplicateError):
        pl.DataFrame(taken).join(pl.DataFrame(other), "k")
    # Key columns of full joins.
    assert prejoin.join(pa.table(one), build, how="full")["k"].to_pylist() == [1, 3]
    both = prejoin.join(pa.table(one), build, how="full", coalesce=False)
    assert both.select(["k", "k_right"]).to_pydict() == {"k": [1, None], "k_right": [1, 3]}
    assert pd.DataFrame(one).merge(pd.DataFrame(other), "outer", "k")["k"].tolist() == [1, 3]
    assert "k_right" in pl.DataFrame(one).join(pl.DataFrame(other), "k", "full").columns
    assert "k_right" not in pl.DataFrame(one).join(pl.DataFrame(other), "k", "full", coalesce=True).columns
    assert pa.table(one).join(pa.table(other), "k", join_type="full outer").column_names == ["k", "v", "v"]
    kept = pa.table(one).join(pa.table(other), "k", join_type="full outer", coalesce_keys=False, right_suffix="_r")
    assert kept.column_names == ["k", "v", "k_r", "v_r"]


def test_order_validation_and_integers() -> None:
    assert joined("left")["v"].to_pylist() == [1, 1, 2, 3, 4, 4]
    assert joined("left")["w"].to_pylist() == [8, 6, None, None, 8, 6]
    assert joined("full")["w"].to_pylist()[-2:] == [7, 9]
    left, right = pd.DataFrame(PROBE), pd.DataFrame(BUILD)
    assert left.merge(right, "left", "k")["v"].tolist() == [1, 1, 2, 3, 4, 4]
    assert left.merge(right, "outer", "k")["k"].dropna().is_monotonic_increasing
    for call in (
        lambda: prejoin.join(pa.table(PROBE), prejoin.prepare(pa.table(BUILD), "k"), validate="m:1"),
        lambda: left.merge(right, on="k", validate="m:1"),
        lambda: pl.DataFrame(PROBE).join(pl.DataFrame(BUILD), "k", validate="m:1"),
    ):
        with pytest.raises(Exception, match=r"(?i)m:1|many-to-one"):
            call()
    missing = left.merge(pd.DataFrame({"k": [1], "n": [5]}), "left", "k")
    assert missing["n"].dtype == "float64"
    held = prejoin.join(left, prejoin.prepare(pd.DataFrame({"k": [1.0], "n": [5]}), "k"), how="left")
    assert held["n"].dtype == "Int64"


def test_values_by_key() -> None:
    build = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), "id")
    assert build.map([2, 3], "name").to_pylist() == ["bob", None]
    names = pd.Series(["ada", "bob"], index=[1, 2])
    assert pd.Series([2, 3]).map(names).isna().tolist() == [False, True]
    assert names.reindex([2, 3], fill_value="?").tolist() == ["bob", "?"]
    assert build.lookup([2, 3], ["name"], default="?")["name"].to_pylist() == ["bob", "?"]
    twice = pd.Series(["a", "b"], index=[1, 1])
    repeated = prejoin.prepare(pa.table({"id": [1, 1], "name": ["a", "b"]}), "id")
    with pytest.raises(pd.errors.InvalidIndexError):
        pd.Series([1]).map(twice)
    with pytest.raises(ValueError, match="duplicate"):
        twice.reindex([1, 2])
    with pytest.raises(prejoin.PlanError, match="keep="):
        repeated.map([1], "name")
    assert repeated.map([1], "name", keep="last").to_pylist() == ["b"]
    with pytest.raises(pl.exceptions.InvalidOperationError):
        pl.Series([2, 3]).replace_strict({2: "bob"})
    assert pl.Series([2, 3]).replace_strict({2: "bob"}, default="?").to_list() == ["bob", "?"]
    assert pl.Series([2, 3]).replace({2: 5}).to_list() == [5, 3]


def test_code_of_the_page_runs() -> None:
    blocks = python_in("docs/migrating.md")
    assert len(blocks) == 2
    exec(compile("\n".join(blocks), "docs/migrating.md", "exec"), {"__name__": "migrating"})
