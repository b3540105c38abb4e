"""Preparing: what the handle shows, wrong arguments, batches that differ from the schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import prejoin


def test_null_equality_and_bounds() -> None:
    """S6, S39, S40, S41: the handle shows them."""
    table = pa.table({"k": pa.array([1, 1_000_000, None, 1], pa.int64()), "s": ["b", "a", None, "b"]})
    build = prejoin.prepare(table, ["k", "s"], null_equal=[True, False])
    assert build.keys == ["k", "s"]
    assert build.null_equal == (True, False)
    ints = prejoin.prepare(table, "k")
    assert ints.bounds == [(pa.scalar(1), pa.scalar(1_000_000))]
    assert ints.membership == "in_list"
    assert len(ints) == ints.num_rows == 4
    off = prejoin.prepare(table, "k", config=prejoin.Config(in_list_max_values=0))
    assert off.membership == "map"
    assert off.reserved_bytes == ints.reserved_bytes
    texts = prejoin.prepare(table, "s")
    assert (texts.bounds, texts.membership, texts.index_kind) == ([None], "map", "bytes")
    assert prejoin.prepare(table.slice(0, 0), "k").bounds == [None]
    parts = ints.memory()
    assert parts["rows"] + parts["index"] + parts["groups"] == parts["reserved"] == ints.reserved_bytes
    assert parts["rows"] >= table.nbytes


def test_repr_shows_no_contents() -> None:
    """S5."""
    build = prejoin.prepare(pa.table({"k": [7_777_777], "v": ["secret"]}), "k")
    assert repr(build).startswith('PreparedBuild(k: Int64, v: Utf8; keys=["k"], rows=1, distinct_keys=1, index=')
    assert "secret" not in repr(build)
    assert "7777777" not in repr(build)


# Called wrongly on purpose.
prepare: Any = prejoin.prepare
memory_pool: Any = prejoin.MemoryPool
config: Any = prejoin.Config


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: prepare(t, "zz"), prejoin.PlanError, 'no column "zz".*"k"'),
        (lambda t: prepare(t, []), prejoin.PlanError, "key"),
        (lambda t: prepare(t, 5), prejoin.PlanError, "int was given"),
        (lambda t: prepare(t, ["k", 5]), prejoin.PlanError, "column name"),
        (lambda t: prepare(t, "k", null_equal=[True, True]), prejoin.PlanError, "2 entries for 1 keys"),
        (lambda t: prepare(t, "k", null_equal=1), prejoin.PlanError, "null_equal is a bool"),
        (lambda t: prepare(t, "k", pool=5), TypeError, "MemoryPool"),
        (lambda t: prepare(t, "k", config={}), TypeError, "Config"),
        (lambda _: prepare(b"t.csv", "k"), TypeError, "bytes was given"),
        (lambda _: prepare(None, "k"), TypeError, "NoneType was given"),
        (lambda _: prepare(iter([]), "k"), prejoin.PlanError, "pass schema="),
        (lambda _: memory_pool("1"), TypeError, "limit is a whole number"),
        (lambda _: memory_pool(2**64), prejoin.PlanError, "limit is a whole number"),
        (lambda _: config(in_list_max_values=-1), prejoin.PlanError, "in_list_max_values"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(pa.table({"k": [1]}))


def test_an_iterator_may_be_empty_if_its_schema_is_given(pool: prejoin.MemoryPool) -> None:
    """S10."""
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    build = prejoin.prepare(iter([]), "k", schema=schema, pool=pool)
    assert build.num_rows == 0
    assert build.schema == schema
    assert pool.reserved == build.reserved_bytes > 0
    assert prejoin.join(pa.record_batch({"k": [1]}), build, how="anti").num_rows == 1


def test_batches_may_differ_in_nullability() -> None:
    """S2."""
    strict = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    batches = [pa.record_batch([pa.array([1])], schema=strict), pa.record_batch({"k": pa.array([None, 2])})]
    for schema in (None, strict, pa.schema([("k", pa.int64())])):
        build = prejoin.prepare(batches, "k", schema=schema)
        assert build.to_table()["k"].to_pylist() == [1, None, 2]
        assert prejoin.join(batches[1], build, how="left")["k"].to_pylist() == [None, 2]
