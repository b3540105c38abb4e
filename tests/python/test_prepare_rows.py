"""Preparing from dicts and from files, some columns alone, and refusing a build that repeats keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import prejoin
from commands import FORMATS, USERS, write
from prejoin import ExecutionError, PlanError

ROWS: list[dict[str, Any]] = [{"id": 1, "name": "ada"}, {"id": 2, "tags": ["x"]}, {"name": "bob", "id": None}]


def test_dicts(pool: prejoin.MemoryPool) -> None:
    """All names of all rows, in the order in which they appear; also of generators and tuples."""
    columns = pa.table({"id": [1, 2, None], "name": ["ada", None, "bob"], "tags": [None, ["x"], None]})
    sources: list[Any] = [ROWS, tuple(ROWS), (row for row in ROWS), iter(ROWS)]
    for source in sources:
        build = prejoin.prepare(source, "id", pool=pool)
        assert build.to_table().equals(columns)
    assert prejoin.join([{"id": 2, "at": 5}], ROWS, on="id") == [{"id": 2, "at": 5, "name": None, "tags": ["x"]}]
    assert prejoin.join(pa.table({"id": [1]}), ROWS, on="id", select=["name"]).to_pydict() == {"name": ["ada"]}
    join = prejoin.HashJoin(ROWS, pa.table({"id": [2]}), "id", how="inner")
    assert join.execute().read_all()["tags"].to_pylist() == [["x"]]


def test_dicts_of_a_schema(pool: prejoin.MemoryPool) -> None:
    """Read in pieces, in the types that were asked for; an empty list is no rows."""
    schema = pa.schema([("id", pa.int16()), ("name", pa.string())])
    read = []

    def rows() -> Iterator[dict[str, Any]]:
        for id in range(20_000):
            read.append(id)
            yield {"id": id, "name": f"n{id}", "other": id}

    build = prejoin.prepare(rows(), "id", schema=schema, pool=pool)
    assert build.schema.equals(schema)
    assert build.num_rows == len(read) == 20_000
    assert build.get(12_345) == {"id": 12_345, "name": "n12345"}
    assert prejoin.prepare(ROWS, "id", schema=schema).to_table()["name"].to_pylist() == ["ada", None, "bob"]
    assert prejoin.prepare([], "id", schema=schema).num_rows == 0
    wrong: list[Any] = [2**20, "x"]
    for value in wrong:
        with pytest.raises(PlanError, match="not of the schema"):
            prejoin.prepare([{"id": value}], "id", schema=schema, pool=pool)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ([{"id": 1}, {"id": "x"}], PlanError, "the values of 'id' in the rows are of no one type"),
        ([{"id": 1}, (2,)], TypeError, "rows are dicts, as the first one is; tuple was found"),
        ([{1: 1}], TypeError, "the names of a row become columns and are str, int was found"),
        ([{}], PlanError, "the rows have no names"),
        ([], PlanError, "pass schema="),
        ([{"x": 1}], PlanError, '"id"'),
        ({"id": [1]}, TypeError, "a source is a table"),
    ],
)
def test_dicts_that_are_refused(source: Any, error: type[Exception], message: str, pool: prejoin.MemoryPool) -> None:
    with pytest.raises(error) as caught:
        prejoin.prepare(source, "id", pool=pool)
    assert message in str(caught.value), caught.value


@pytest.mark.parametrize("format", FORMATS)
def test_files(format: str, tmp_path: Path, pool: prejoin.MemoryPool) -> None:
    """By name or path, also as a pattern; CSV as the command line reads it."""
    path = tmp_path / f"users-1.{format}"
    write(USERS, path)
    for source in (path, str(path), str(tmp_path / f"users-*.{format}")):
        assert prejoin.prepare(source, "id", pool=pool).to_table().equals(USERS), source
    some = prejoin.prepare(path, "id", columns=["score"], pool=pool)
    assert some.to_table().equals(USERS.select(["id", "score"]))
    with pytest.raises(PlanError, match=r'no column "x".*"id".*"name".*"score"'):
        prejoin.prepare(path, "id", columns=["x"], pool=pool)
    with pytest.raises(PlanError, match="validate=m:1 needs a build with one row per key, 2 rows of this one"):
        prejoin.prepare(path, "id", validate="m:1", pool=pool)


def test_files_that_are_refused(tmp_path: Path, pool: prejoin.MemoryPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prejoin.prepare(USERS, "id").save("held.prejoin")
    Path("bad.parquet").write_bytes(b"PAR1 and no more")
    Path("words.txt").write_text("id\n1\n")
    Path("empty.csv").write_bytes(b"")
    Path("zero.csv").write_text("id,name\n")
    os.mkdir("folder")
    cases: list[tuple[str, type[Exception], str]] = [
        ("absent.parquet", FileNotFoundError, "absent.parquet"),
        ("-", FileNotFoundError, "-"),
        ("absent-*.parquet", ExecutionError, "no file matches"),
        ("held.prejoin", ExecutionError, "open it by prejoin.open"),
        ("bad.parquet", ExecutionError, "bad.parquet: "),
        ("words.txt", ExecutionError, "no ending of a known format; read it by pyarrow and give the table"),
        ("empty.csv", ExecutionError, "is empty"),
        ("folder", ExecutionError, "is a directory"),
    ]
    for path, error, message in cases:
        with pytest.raises(error) as caught:
            prejoin.prepare(path, "id", pool=pool)
        assert message in str(caught.value), caught.value
        assert "--" not in str(caught.value)
    assert prejoin.prepare("zero.csv", "id").num_rows == 0
    with pytest.raises(TypeError, match="a source is a table"):
        prejoin.prepare(b"zero.csv", "id")


def test_columns(pool: prejoin.MemoryPool) -> None:
    """Keys are kept, in the order of the source; of frames, readers and datasets as well."""
    table = pa.table({"a": [1, 2], "k": [3, 4], "b": ["x", "y"], "c": [b"", b"z"]})
    wanted = table.select(["a", "k", "c"])
    for source in (table, table.to_reader(), table.to_batches(), table.to_pylist(), table.to_pandas()):
        build = prejoin.prepare(source, "k", columns=["c", "a", "c"], pool=pool)
        assert build.schema.names == wanted.column_names
        assert [row["a"] for row in build.lookup_rows([4, 3])] == [2, 1]
    assert prejoin.prepare(table, ["k", "a"], columns=[], pool=pool).schema.names == ["a", "k"]
    with pytest.raises(TypeError, match="columns is a list of column names"):
        prejoin.prepare(table, "k", columns="a")
    union = table.append_column("u", pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]))
    assert prejoin.prepare(union, "k", columns=["a"]).schema.names == ["a", "k"]


def test_validate(pool: prejoin.MemoryPool) -> None:
    """A build that repeats keys is refused before anybody can join with it, and its memory is given back."""
    once, twice = pa.table({"k": [1, None, None]}), pa.table({"k": [1, 2, 1]})
    words: list[Any] = ["m:1", "1:1", "many_to_one", "one_to_one"]
    for word in words:
        assert prejoin.prepare(once, "k", validate=word, pool=pool).num_rows == 3
        assert prejoin.prepare(twice, "k", validate=word, keep="last", pool=pool).num_rows == 2
        with pytest.raises(PlanError) as caught:
            prejoin.prepare(twice, "k", validate=word, pool=pool)
        assert "1" in str(caught.value)
        assert pool.reserved == 0
    others: list[Any] = ["m:m", "1:m", "one_to_many", None]
    for word in others:
        assert prejoin.prepare(twice, "k", validate=word, pool=pool).num_keys == 2
    with pytest.raises(PlanError, match="validate="):
        prejoin.prepare(once, "k", validate="1-1")  # type: ignore[arg-type]
