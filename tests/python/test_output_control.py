"""`select=`, `validate=` and `keep=`: which columns and rows come out, and which joins are refused."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin

HOWS = ["inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti"]
PROBE = pa.table({"k": [2, 3, 2, None], "v": ["p", "q", "r", "s"], "w": [1, 2, 3, 4]})
BUILD = pa.table({"id": [1, 2, 4], "v": ["a", "b", "c"], "x": [0.5, 1.5, 2.5]})


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(HOWS), st.data())
def test_select_is_a_projection_of_the_join(how: Any, data: st.DataObject) -> None:
    """Selected columns equal those of the full output, whatever the kind of probe object and the predicate."""
    build = prejoin.prepare(BUILD, "id")
    on, coalesce = {"k": "id"}, data.draw(st.sampled_from([None, False]))
    where = data.draw(st.sampled_from([None, prejoin.col("probe.w") > 1, prejoin.col("build.x") < 2.0]))
    options: dict[str, Any] = {"on": on, "how": how, "where": where, "coalesce": coalesce}
    whole = prejoin.join(PROBE, build, **options)
    names = data.draw(st.lists(st.sampled_from(whole.column_names), unique=True))
    renamed = {f"new {i}": name for i, name in enumerate(names)}
    shape = data.draw(st.sampled_from(["table", "batch", "reader", "list"]))
    batch = PROBE.to_batches()[0]
    probe = {"table": PROBE, "batch": batch, "reader": PROBE.to_reader(), "list": [batch[:2], pa.table(batch[2:])]}[
        shape
    ]
    asked = data.draw(st.sampled_from([names, tuple(names), renamed]))
    got = prejoin.join(probe, build, select=asked, **options)
    if isinstance(got, pa.RecordBatchReader):
        got = got.read_all()
    assert got.num_rows == whole.num_rows
    assert got.schema.names == (list(renamed) if asked is renamed else names)
    for new, name in zip(got.schema.names, names, strict=True):
        want = whole.schema.field(name).with_name(new)
        assert got.schema.field(new).equals(want, check_metadata=True)
        assert got[new].to_pylist() == whole[name].to_pylist()


def test_qualified_names_reach_every_column() -> None:
    build = prejoin.prepare(BUILD, "id")
    options: dict[str, Any] = {"on": {"k": "id"}, "how": "left"}
    got = prejoin.join(PROBE, build, select=["build.v", "probe.w", "build.id", "x"], **options)
    assert got.to_pydict() == {
        "v": ["b", None, "b", None],
        "w": [1, 2, 3, 4],
        "id": [2, None, 2, None],
        "x": [1.5, None, 1.5, None],
    }
    both = prejoin.join(PROBE, build, select={"a": "probe.v", "b": "build.v", "again": "v"}, **options)
    assert both.to_pydict()["b"] == ["b", None, "b", None]
    assert both["again"].equals(both["a"])
    # A name of the output is looked up first, also one that contains a dot.
    pointed = pa.table({"k": [2], "build.x": [7]})
    assert prejoin.join(pointed, build, {"k": "id"}, select=["build.x"])["build.x"].to_pylist() == [7]
    nothing = prejoin.join(PROBE.to_batches()[0], build, select=[], **options)
    assert (nothing.num_columns, nothing.num_rows) == (0, 4)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"select": ["zz"]}, prejoin.PlanError, r'names "zz", which the output does not have; it has "k", "v", "w"'),
        ({"select": ["build.zz"]}, prejoin.PlanError, 'the build side has no column "zz"'),
        ({"select": ["w", "w"]}, prejoin.PlanError, 'gives two columns the name "w"; rename one by select='),
        ({"select": ["w", "probe.*"]}, prejoin.PlanError, 'gives two columns the name "w"'),
        ({"select": {"w": "probe.*"}}, prejoin.PlanError, 'one name; list "probe.*" without a new name'),
        ({"select": ["build.*"], "how": "semi"}, prejoin.PlanError, "a semi join gives no build columns"),
        ({"select": ["build.v"], "how": "mark"}, prejoin.PlanError, "a mark join gives no build columns"),
        ({"select": ["probe.*"], "how": "build_semi"}, prejoin.PlanError, "a build_semi join gives no probe columns"),
        ({"select": [["w"]]}, TypeError, "select is a list of column names or a mapping"),
        ({"select": ["build.v"], "how": "semi"}, prejoin.PlanError, "a semi join gives no build columns"),
        ({"select": ["probe.v"], "how": "build_anti"}, prejoin.PlanError, "a build_anti join gives no probe columns"),
        ({"select": "v"}, TypeError, "select is a list of column names or a mapping"),
        ({"select": [1]}, TypeError, "select is a list of column names or a mapping"),
        ({"select": {"a": 1}}, TypeError, "select is a list of column names or a mapping"),
        ({"validate": "many"}, prejoin.PlanError, "none of m:m, 1:1, 1:m, m:1"),
    ],
)
def test_wrong_choices_are_named(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        prejoin.join(PROBE, prejoin.prepare(BUILD, "id"), on={"k": "id"}, **options)


def test_no_clash_of_names_is_an_error() -> None:
    build = prejoin.prepare(pa.table({"k": [1], "mark": [2], "v": [3]}), "k")
    probe = pa.table({"k": [1], "mark": [4], "v": [5]})
    marked = prejoin.join(probe, build, how="mark", select=["mark", {"found": "mark_right"}])
    assert marked.to_pydict() == {"mark": [4], "found": [True]}
    assert prejoin.join(probe, build, suffix="").schema.names == ["k", "mark", "v", "build.mark", "build.v"]
    assert prejoin.join(probe, build, select=["build.v", "probe.v"]).to_pydict() == {"v_right": [3], "v": [5]}
    assert prejoin.join(probe, build, how="inner", suffix="", select=["k", "build.v"]).to_pydict() == {
        "k": [1],
        "v": [3],
    }
    repeated = pa.table([[1], [2], [3]], names=["k", "v", "v"])
    with pytest.raises(prejoin.PlanError, match=r'"v", of which the output has two.* by "probe\.\*"'):
        prejoin.join(repeated, build, select=["v"])
    assert prejoin.join(repeated, build, select=["probe.*", "build.v"]).schema.names == ["k", "v", "v", "v_right"]


def test_columns_that_are_not_selected_are_not_read() -> None:
    """Columns that are not selected are not checked: text that is not UTF-8 is an error only if it is read."""
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    batch = pa.record_batch([pa.array([2]), broken], names=["k", "v"])
    build = prejoin.prepare(BUILD, "id")
    probes: list[Any] = [batch, pa.Table.from_batches([batch]), [batch]]
    probes.append(pa.RecordBatchReader.from_batches(batch.schema, iter([batch, batch])))
    for probe in probes:
        got = prejoin.join(probe, build, on={"k": "id"}, select=["x"])
        got = got.read_all() if isinstance(got, pa.RecordBatchReader) else got
        assert set(got["x"].to_pylist()) == {1.5}
    with pytest.raises(prejoin.ExecutionError, match=r'"v" of type Utf8'):
        prejoin.join(batch, build, on={"k": "id"})


KEYS = st.lists(st.sampled_from([None, 0, 1, 2, 3]), max_size=6)


@settings(max_examples=400, deadline=None)
@given(KEYS, KEYS, st.sampled_from(HOWS), st.sampled_from(["m:m", "1:1", "1:m", "m:1"]), st.booleans(), st.data())
def test_validate_refuses_repeated_keys(
    probe_keys: list[Any], build_keys: list[Any], how: Any, validate: Any, nulls: bool, data: st.DataObject
) -> None:
    """B4: exactly the joins whose keys repeat are refused, whatever the join type, and nothing stays charged."""

    def repeats(keys: list[Any], among: list[Any]) -> bool:
        live = [key for key in keys if key in among and (key is not None or nulls)]
        return len(live) != len(set(live))

    # With an empty side, some join types read no rows.
    cut = data.draw(st.integers(0, len(probe_keys)))
    probe = pa.table({"k": pa.chunked_array([probe_keys[:cut], probe_keys[cut:]], pa.int64())})
    build_pool = prejoin.MemoryPool()
    build = prejoin.prepare(pa.table({"k": pa.array(build_keys, pa.int64())}), "k", null_equal=nulls, pool=build_pool)
    charged = build_pool.reserved
    bad_build = repeats(build_keys, build_keys) and validate in ("1:1", "m:1")
    bad_probe = repeats(probe_keys, build_keys) and validate in ("1:1", "1:m")
    if bad_build:
        with pytest.raises(prejoin.PlanError, match=rf'validate={validate} .* rows of this one have "k" = '):
            prejoin.join(probe, build, how=how, validate=validate)
    elif bad_probe:
        for rows in (probe, probe.combine_chunks().to_batches()[0], probe.to_reader()):
            with pytest.raises(prejoin.ExecutionError, match=rf'validate={validate} .*two or more have "k" = '):
                list(prejoin.join(rows, build, how=how, validate=validate))
    else:
        want = prejoin.join(probe, build, how=how)
        assert prejoin.join(probe, build, how=how, validate=validate).equals(want)
    assert build_pool.reserved == charged


def test_validate_over_partitions_and_runs() -> None:
    """B4: all partitions of a run are checked together; each run starts afresh. Its state is charged while it runs."""
    build = prejoin.prepare(pa.table({"k": list(range(100_000))}), "k")
    parts = [pa.table({"k": [1, 2, -1, -1]}), pa.table({"k": [3, 2]})]
    schema = pa.schema([("k", pa.int64())])
    probe = prejoin.Source.partitioned(parts)
    join = prejoin.HashJoin(schema, probe, on="k", how="semi", validate="1:m").with_prepared_build(build)
    assert join.validate == "1:m"
    assert "validate=1:m" in join.explain()
    pool = prejoin.MemoryPool()
    first, second = (join.execute(partition, pool=pool) for partition in (0, 1))
    assert next(iter(first)).num_rows == 2
    assert pool.reserved >= 100_000 // 8
    with pytest.raises(prejoin.ExecutionError, match='"k" = 2'):
        second.read_all()
    del first
    assert pool.reserved == 0
    with pytest.raises(prejoin.ExecutionError, match='"k" = 2'):
        join.execute().read_all()
    join.validate = "m:1"
    assert join.execute().read_all().num_rows == 4
    alone = join.replace(validate="1:1", probe=parts[0])
    assert alone.execute().read_all().num_rows == 2
    assert alone(parts[1].to_batches()[0]).num_rows == 2
    session = alone.open()
    session.push(parts[0].to_batches()[0])
    with pytest.raises(prejoin.ExecutionError, match='"k" = 2'):
        session.push(parts[1].to_batches()[0])
    full = prejoin.MemoryPool(1000)
    with pytest.raises(prejoin.ResourcesExhausted, match="keys seen by validate"):
        alone.execute(pool=full).read_all()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, "a"])), max_size=9), st.data())
def test_keep_equals_polars(rows: list[tuple[Any, Any]], data: st.DataObject) -> None:
    """B4: the first or last row of each key, chosen before rows are counted; null keys that match nothing are kept."""
    keys = data.draw(st.sampled_from([["a"], ["a", "b"]]))
    keep: Any = data.draw(st.sampled_from(["first", "last"]))
    nulls = data.draw(st.booleans())
    table = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.int64()),
            "b": pa.array([row[1] for row in rows], pa.string()),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    null = pl.any_horizontal(pl.col(keys).is_null()) & (not nulls)
    want = pl.concat([frame.filter(null), frame.filter(~null).unique(keys, keep=keep)]).sort("n")
    pool = prejoin.MemoryPool()
    chunks = table.slice(0, len(rows) // 2), table.slice(len(rows) // 2)
    for source in (table, pa.concat_tables(chunks)):
        build = prejoin.prepare(source, keys, keep=keep, null_equal=nulls, pool=pool)
        assert build.to_table().to_pydict() == want.to_dict(as_series=False)
        assert build.is_unique
        assert len(build) == want.height
        assert pool.reserved == build.reserved_bytes
        join = prejoin.HashJoin(table.schema, table.schema, on=keys, null_equal=nulls)
        assert join.prepare_build(source, keep=keep).to_table().equals(build.to_table())
        del build
    assert pool.reserved == 0
    assert prejoin.prepare(table, keys, keep="all").num_rows == len(rows)
