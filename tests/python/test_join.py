"""`prejoin.join` against a nested loop and against polars, whatever the shape of its inputs."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from foreign import as_table

Row = tuple[Any, ...]
HOWS = ["inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti"]
TYPES = {"int": pa.int64(), "text": pa.string()}
VALUES = {
    "int": st.sampled_from([None, 0, 1, 2, -1, 2**63 - 1, -(2**63), 4096]),
    "text": st.sampled_from([None, "", "a", "ab", "b", "zß", "a longer text than sixteen bytes"]),
}


def nested_loop(probe: list[Row], build: list[Row], keys: int, how: str, nulls: list[bool], where: bool) -> list[Row]:
    """The rows of `prejoin.join` in their order: probe rows in order, their matches in build order, the rest last."""

    def matches(p: Row, b: Row) -> bool:
        for i in range(keys):
            if p[i] != b[i] or (p[i] is None and not nulls[i]):
                return False
        return not where or (p[-1] is not None and b[-1] is not None and p[-1] < b[-1])

    pairs = [[j for j, b in enumerate(build) if matches(p, b)] for p in probe]
    hit = {j for found in pairs for j in found}
    if how in ("build_semi", "build_anti"):
        return [b for j, b in enumerate(build) if (j in hit) == (how == "build_semi")]
    if how in ("semi", "anti"):
        return [p for p, found in zip(probe, pairs, strict=True) if bool(found) == (how == "semi")]
    if how == "mark":
        return [(*p, bool(found)) for p, found in zip(probe, pairs, strict=True)]
    rows: list[Row] = []
    for p, found in zip(probe, pairs, strict=True):
        rows += [(*p, build[j][-1]) for j in found]
        if not found and how in ("left", "full"):
            rows.append((*p, None))
    if how in ("right", "full"):
        rows += [(*b[:-1], None, b[-1]) for j, b in enumerate(build) if j not in hit]
    return rows


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[str], list[Row], list[Row]]:
    kinds = draw(st.lists(st.sampled_from(["int", "text"]), min_size=1, max_size=2))
    # The payload is last: the row's number, or null.
    rows = st.lists(st.tuples(*(VALUES[kind] for kind in kinds), st.one_of(st.none(), st.integers(0, 9))), max_size=14)
    return kinds, draw(rows), draw(rows)


def cut(draw: Any, rows: list[Row], kinds: list[str], payload: str) -> pa.Table:
    """The rows as a table of chunks, each a slice out of a longer batch."""
    names = [*(f"k{i}" for i in range(len(kinds))), payload]
    types = [*(TYPES[kind] for kind in kinds), pa.int64()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    batches = []
    for start, stop in itertools.pairwise([0, *cuts, len(rows)]):
        before, after = draw(st.integers(0, 9)), draw(st.integers(0, 2))
        pad: list[Row] = [tuple(None for _ in names)]
        part = pad * before + rows[start:stop] + pad * after
        columns = [pa.array([row[i] for row in part], types[i]) for i in range(len(names))]
        batches.append(pa.record_batch(columns, schema=schema).slice(before, stop - start))
    return pa.Table.from_batches(batches, schema)


def rows_of(result: pa.Table | pa.RecordBatch) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in result.columns), strict=True))


@settings(max_examples=250, deadline=None)
@given(sides(), st.sampled_from(HOWS), st.data())
def test_every_kind_equals_a_nested_loop(
    inputs: tuple[list[str], list[Row], list[Row]], how: Any, data: st.DataObject
) -> None:
    """S6, S33, S36, S37: all kinds, one key and two, nulls, duplicates, chunks and slices, both null rules by key."""
    kinds, probe_rows, build_rows = inputs
    keys = [f"k{i}" for i in range(len(kinds))]
    nulls = data.draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds)))
    where = data.draw(st.booleans())
    collide = data.draw(st.sampled_from([0, 1, 3]))
    condition = prejoin.col("probe.p") < prejoin.col("build.b") if where else None
    probe, build = cut(data.draw, probe_rows, kinds, "p"), cut(data.draw, build_rows, kinds, "b")
    pool = prejoin.MemoryPool()
    prepared = prejoin.prepare(build, keys, null_equal=nulls, pool=pool, config=prejoin.Config(_collide=collide))
    want = nested_loop(probe_rows, build_rows, len(kinds), how, nulls, where)
    table = prejoin.join(probe, prepared, how=how, where=condition)
    assert rows_of(table) == want
    stream = prejoin.join(probe.to_reader(), prepared, how=how, where=condition, batch_size=3)
    batches = list(stream)
    assert all(0 < batch.num_rows <= 3 for batch in batches)
    assert rows_of(pa.Table.from_batches(batches, stream.schema)) == want
    whole = probe.combine_chunks().to_batches()
    if len(whole) == 1:
        batch = prejoin.join(whole[0], prepared, how=how, where=condition)
        assert batch.schema.equals(table.schema, check_metadata=True)
        assert rows_of(batch) == want
        limit = data.draw(st.integers(0, len(want) + 1))
        assert rows_of(prejoin.join(whole[0], prepared, how=how, where=condition, limit=limit)) == want[:limit]
    assert pool.reserved == prepared.reserved_bytes
    del prepared, stream, batches
    assert pool.reserved == 0


POLARS = ["inner", "left", "right", "full", "semi", "anti"]


@settings(max_examples=100, deadline=None)
@given(sides(), st.sampled_from(POLARS), st.booleans())
def test_kinds_equal_polars(inputs: tuple[list[str], list[Row], list[Row]], how: Any, nulls: bool) -> None:
    """S33: an answer that shares no code with ours; as multisets, since polars keeps no order."""
    kinds, probe_rows, build_rows = inputs
    keys = [f"k{i}" for i in range(len(kinds))]
    frames = []
    for rows, payload in ((probe_rows, "p"), (build_rows, "b")):
        columns = {
            name: pa.array([row[i] for row in rows], TYPES[kinds[i]] if i < len(kinds) else pa.int64())
            for i, name in enumerate([*keys, payload])
        }
        frames.append(pa.table(columns))
    probe, build = frames
    got = prejoin.join(probe, prejoin.prepare(build, keys, null_equal=nulls), how=how)
    left, right = pl.from_arrow(probe), pl.from_arrow(build)
    assert isinstance(left, pl.DataFrame)
    assert isinstance(right, pl.DataFrame)
    coalesce = True if how in ("right", "full") else None
    want = left.join(right, on=keys, how=how, nulls_equal=nulls, coalesce=coalesce).select(got.column_names)
    assert Counter(rows_of(got)) == Counter(want.rows())


# Columns of a probe side that compare with a key of the build, and values that meet in them.
MEET: dict[str, tuple[pa.DataType, list[pa.DataType], list[Any]]] = {
    "int": (
        pa.int32(),
        [pa.int32(), pa.int8(), pa.int64(), pa.uint16(), pa.dictionary(pa.int8(), pa.int64())],
        [None, 0, 1, 2, 3],
    ),
    "float": (
        pa.float64(),
        [pa.float64(), pa.dictionary(pa.int16(), pa.float64())],
        [None, 0.0, -0.0, float("nan"), -float("nan"), 1.5],
    ),
    "text": (
        pa.string(),
        [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
        [None, "", "a", "b"],
    ),
}


def as_key(value: Any) -> Any:
    return "nan" if value != value else value


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(HOWS), st.data())
def test_every_set_of_pairs_equals_a_nested_loop(how: Any, data: st.DataObject) -> None:
    """Several probe columns that meet one key, and one that meets several keys: each pair is an equality of keys."""
    draw = data.draw
    kind = draw(st.sampled_from(sorted(MEET)))
    key_type, probe_types, values = MEET[kind]
    keys = ["x", "y"][: draw(st.integers(1, 2))]
    columns = [f"p{i}" for i in range(draw(st.integers(1, 4)))]
    types = [draw(st.sampled_from(probe_types)) for _ in columns]
    nulls = [draw(st.booleans()) for _ in keys]
    every = [(column, key) for column in columns for key in keys]
    pairs = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    pairs += [(columns[0], key) for key in keys if key not in {key for _, key in pairs}]
    on = {column: [key for of, key in pairs if of == column] for column in dict(pairs)}
    on = {column: of if len(of) > 1 or draw(st.booleans()) else of[0] for column, of in on.items()}  # type: ignore[misc]

    value = st.sampled_from(values)
    build_rows = draw(st.lists(st.tuples(*(value for _ in keys)), max_size=8))
    probe_rows = draw(st.lists(st.tuples(*(value for _ in columns)), max_size=12))
    # Rows in which all columns agree would be rare otherwise.
    probe_rows += [(row[0],) * len(columns) for row in build_rows]
    build = pa.table(
        {key: pa.array([row[i] for row in build_rows], key_type) for i, key in enumerate(keys)}
        | {"b": pa.array(range(len(build_rows)), pa.int64())}
    )
    probe = pa.table(
        {column: pa.array([row[i] for row in probe_rows], types[i]) for i, column in enumerate(columns)}
        | {"p": pa.array(range(len(probe_rows)), pa.int64())}
    )
    where = draw(st.sampled_from([None, "p > b"]))

    def matches(i: int, j: int) -> bool:
        for column, key in pairs:
            p, b = probe_rows[i][columns.index(column)], build_rows[j][keys.index(key)]
            if (p is None and b is None and not nulls[keys.index(key)]) or as_key(p) != as_key(b):
                return False
        return where is None or i > j

    found = [[j for j in range(len(build_rows)) if matches(i, j)] for i in range(len(probe_rows))]
    hit = {j for partners in found for j in partners}
    want: list[Row]
    if how in ("build_semi", "build_anti"):
        want = [(j,) for j in range(len(build_rows)) if (j in hit) == (how == "build_semi")]
    elif how in ("semi", "anti"):
        want = [(i,) for i, partners in enumerate(found) if bool(partners) == (how == "semi")]
    elif how == "mark":
        want = [(i, bool(partners)) for i, partners in enumerate(found)]
    else:
        none: list[Any] = [None] if how in OUTER else []
        want = [(i, j) for i, partners in enumerate(found) for j in partners or none]
        want += [(None, j) for j in range(len(build_rows)) if how in ("right", "full") and j not in hit]
    select = {"mark": ["p", "mark"]}.get(how, ["b"] if how.startswith("build") else ["p"])
    if how in ("inner", "left", "right", "full"):
        select = ["p", "b"]

    order = draw(st.permutations(keys))
    prepared = prejoin.prepare(build, order, null_equal=[nulls[keys.index(key)] for key in order])
    assert rows_of(prejoin.join(probe, prepared, on, how, where=where, select=select)) == want
    stream = prejoin.join(probe.to_reader(2), prepared, on, how, where=where, batch_size=3)
    whole = pa.Table.from_batches(list(stream), stream.schema)
    assert rows_of(whole.select(select)) == want
    if not any(nulls):
        assert rows_of(prejoin.join(probe, build, on, how, where=where, select=select)) == want
    if how in ("right", "full") and not whole.schema.names.count("x"):
        # Coalesced: unmatched build rows hold their keys in every probe column that meets one.
        for column, key in pairs:
            rest = [build_rows[j][keys.index(key)] for i, j in want if i is None]
            got = whole[column].to_pylist()[len(want) - len(rest) :]
            assert list(map(as_key, got)) == list(map(as_key, rest))


OUTER = ("left", "full")


@pytest.mark.parametrize("saved", [False, True])
def test_pairs_of_one_build_column_are_all_asked(tmp_path: Any, saved: bool) -> None:
    """Nothing is dropped where a build column is met twice; what one column cannot hold is not coalesced."""
    build = prejoin.prepare(pa.table({"dst": [1, 2, 3], "src": [1, 2, 2], "v": [5, 6, 7]}), ["src", "dst"])
    if saved:
        build.save(tmp_path / "edges.prejoin")
        build = prejoin.open(tmp_path / "edges.prejoin")
    probe = pa.table({"node": [1, 2, 9], "other": [1, 3, 9]})
    loops = prejoin.join(probe, build, {"node": ["dst", "src"]})
    assert loops.to_pydict() == {"node": [1, 2], "other": [1, 3], "v": [5, 6]}
    assert prejoin.join(probe, build, {"other": "dst", "node": "src"})["v"].to_pylist() == [5, 7]
    assert prejoin.join(probe, build, {"node": ["src", "dst"], "other": "dst"})["v"].to_pylist() == [5]
    right = prejoin.join(probe, build, {"node": ["src", "dst"]}, "right")
    assert rows_of(right) == [(1, 1, 1, 1, 5), (2, 3, 2, 2, 6), (None, None, 3, 2, 7)]
    for on, options, text in [
        ({"node": ["src", "dst"]}, {"how": "full", "coalesce": True}, 'one value for the probe column "node"'),
        ({"node": ["src", "v"]}, {}, "prepared on"),
        ({"node": ["src", "dst", "v"]}, {}, "prepared on"),
        ({"node": "src", "other": "src"}, {}, "prepared on"),
        ({"node": []}, {}, 'no build column for the probe column "node"'),
        ({"node": ["src", 1]}, {}, "a build name may be a list of names"),
    ]:
        with pytest.raises(prejoin.PlanError, match=text):
            prejoin.join(probe, build, on, **options)  # type: ignore[call-overload]
    one = prejoin.prepare(pa.table({"x": [1, 2], "w": [3, 4]}), "x")
    probe = pa.table({"a": [1, 1, 2], "b": [1, 2, 2]})
    assert prejoin.join(probe, one, {"a": "x", "b": "x"})["w"].to_pylist() == [3, 4]
    # Rows that have no key of the build share none.
    assert prejoin.join(probe, one, {"a": "x", "b": "x"}, validate="1:m").num_rows == 2
    with pytest.raises(prejoin.PlanError, match='probe column "b" is Utf8'):
        prejoin.join(pa.table({"a": [1], "b": ["1"]}), one, {"a": "x", "b": "x"})


def test_key_columns_of_one_name_are_not_guessed() -> None:
    schema = pa.schema([("k", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
    table = pa.Table.from_arrays([pa.array([1, 1]), pa.array([1, 2]), pa.array([5, 6])], schema=schema)
    keyed = prejoin.HashJoin(schema, pa.schema([("a", pa.int64()), ("b", pa.int64())]), [(0, "a"), (1, "b")])
    build = keyed.prepare_build(table)
    probe = pa.table({"a": [1], "b": [2]})
    assert keyed.replace(probe=probe).with_prepared_build(build).execute().read_all()["v"].to_pylist() == [6]
    for on in ({"a": "k", "b": "k"}, {"a": "k"}):
        with pytest.raises(prejoin.PlanError, match='build column "k", of which the build has more than one'):
            prejoin.join(probe, build, on, select=["a", "v"])
    # The names of the keys are all "k": the one probe column of that name meets both.
    assert prejoin.join(pa.table({"k": [1, 2]}), build, select=["v"])["v"].to_pylist() == [5]


def test_answers_in_kind() -> None:
    build = prejoin.prepare(pa.table({"k": [1, 2]}), "k")
    batch = pa.record_batch({"k": [2, 3]})
    table = pa.table(batch)
    for probe in (batch, table, [batch], (batch,), pl.DataFrame({"k": [2, 3]}), table.to_pandas()):
        kind = pa.Table if isinstance(probe, list | tuple) else type(probe)
        result = prejoin.join(probe, build)
        assert isinstance(result, kind)
        assert as_table(result).to_pydict() == {"k": [2]}
    for make in (table.to_reader, lambda: iter([batch]), pl.LazyFrame({"k": [2, 3]}).lazy):
        result = prejoin.join(make(), build)
        assert isinstance(result, pa.RecordBatchReader)
        assert result.read_all().to_pydict() == {"k": [2]}


def test_a_remembered_join_is_not_mixed_up() -> None:
    """The same build with other options, schemas and metadata in turn; each answer is its own."""
    build = prejoin.prepare(pa.table({"k": [1, 2, 2], "v": ["a", "b", "c"]}), "k")
    probes = [
        pa.record_batch({"k": [2, 3]}),
        pa.record_batch({"k": [2, 3]}).replace_schema_metadata({"a": "b"}),
        pa.record_batch({"k": [2, 3], "v": [1, 2]}),
        pa.record_batch({"v": [1, 2], "k": [2, 3]}),
        pa.record_batch([pa.array([2, 3])], schema=pa.schema([pa.field("k", pa.int64(), nullable=False)])),
    ]
    asked: list[dict[str, Any]] = [
        {"how": how, "limit": limit, "suffix": suffix, "where": where}
        for how in ("inner", "left", "anti")
        for limit in (None, 1)
        for suffix in ("_right", "_b")
        for where in (None, prejoin.col("build.v") == "b", prejoin.col("build.v") == "c")
    ]
    for _ in range(2):
        for probe, options in itertools.product(probes, asked):
            want = prejoin.join(probe, prejoin.prepare(build.to_table(), "k"), **options)
            got = prejoin.join(probe, build, **options)
            assert got.equals(want)
            assert got.schema.equals(want.schema, check_metadata=True)


def test_keys_by_name_list_and_mapping() -> None:
    build = prejoin.prepare(pa.table({"a": [1, 2], "b": [3, 4], "v": [5, 6]}), ["a", "b"])
    probe = pa.record_batch({"x": [2, 1], "b": [4, 4], "a": [2, 9]})
    assert prejoin.join(probe, build).to_pydict() == {"x": [2], "b": [4], "a": [2], "v": [6]}
    assert prejoin.join(probe, build, on=["b", "a"]).num_rows == 1
    assert prejoin.join(probe, build, on={"b": "b", "x": "a"}).to_pydict()["v"] == [6]
    assert prejoin.join(probe, pa.table({"a": [2], "w": [7]}), on="a")["w"].to_pylist() == [7]
    for on, text in [
        ([("a", "a")], "order would have to be guessed"),
        ("a", "prepared on"),
        ({"a": 1}, "names only"),
        (7, "7 was given"),
        (["a", "zz"], "prepared on"),
        ({"zz": "a", "b": "b"}, 'no column "zz"'),
    ]:
        with pytest.raises(prejoin.PlanError, match=text):
            prejoin.join(probe, build, on=on)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"limit": -1}, prejoin.PlanError, "limit is a whole number"),
        ({"limit": "1"}, TypeError, "limit is a whole number"),
        ({"batch_size": 0}, prejoin.PlanError, "batch_size is a number of rows of at least 1"),
        ({"batch_size": 1.5}, TypeError, "batch_size is a whole number"),
        ({"how": "cross"}, prejoin.PlanError, "the kinds are inner, left"),
        ({"where": 1}, TypeError, "where is SQL text or a condition made with"),
        ({"where": prejoin.col("probe.zz") > 1}, prejoin.PlanError, "zz"),
        ({"on": ["k", "k"]}, prejoin.PlanError, "prepared on"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], error: type[Exception], text: str) -> None:
    build = prejoin.prepare(pa.table({"k": [1], "v": [2]}), "k")
    with pytest.raises(error, match=text):
        prejoin.join(pa.table({"k": [1], "v": [3]}).to_reader(), build, **options)


def test_a_schema_is_no_probe() -> None:
    """Told by the call, not by the first read of its result."""
    with pytest.raises(TypeError, match=r"a source is a table.*pyarrow.*Schema was given"):
        prejoin.join(pa.schema([("k", pa.int64())]), prejoin.prepare(pa.table({"k": [1]}), "k"))


def test_a_result_without_columns_keeps_its_rows() -> None:
    """S32: `projection=[]`; also a source of no columns."""
    join = prejoin.HashJoin(pa.schema([("k", pa.int64())]), pa.schema([("k", pa.int64())]), on="k", projection=[])
    task = join.with_prepared_build(join.prepare_build(pa.table({"k": [1, 1, 2]})))
    batch = pa.record_batch({"k": [1, 2, 3]})
    assert task(batch).num_rows == 3
    assert task(batch).num_columns == 0
    results = list(task.replace(probe=pa.table(batch)).execute(batch_size=2))
    assert [result.num_rows for result in results] == [2, 1]


def test_one_batch_of_more_than_2_gib_is_refused_before_it_is_made() -> None:
    """Each piece of 2^20 rows has 64 MiB: the error comes when 2^31 bytes are passed, not when memory is gone."""
    build = prejoin.prepare(pa.table({"k": [0], "v": pa.array([b"x" * 4096], pa.binary(4096))}), "k")
    probe = pa.record_batch({"k": pa.array([0] * 600_000)})
    with pytest.raises(
        prejoin.ExecutionError, match=r'"v" of type FixedSizeBinary.* outgrows 2 GiB; give the probe side as a stream'
    ):
        prejoin.join(probe, build)


def test_a_table_is_answered_in_one_chunk() -> None:
    """Whatever the chunks of the probe side, the size of a lazy batch and the limit."""
    build = prejoin.prepare(pa.table({"k": list(range(10)), "s": [str(i) for i in range(10)]}), "k")
    whole = pa.table({"k": [i % 12 for i in range(30_000)], "n": range(30_000)})
    due = [(k, n, str(k)) for k, n in zip(whole["k"].to_pylist(), range(30_000), strict=True) if k < 10]
    chunked = pa.concat_tables([whole.slice(0, 10), whole.slice(10, 20_000), whole.slice(20_010)])
    choices: list[dict[str, Any]] = [{}, {"batch_size": 7}, {"limit": 9_000}]
    for probe in (whole, chunked, chunked.to_batches(), pl.from_arrow(chunked), chunked.to_pandas()):
        for options in choices:
            joined = as_table(prejoin.join(probe, build, **options))
            assert joined["s"].num_chunks == 1
            rows = list(zip(*(joined[name].to_pylist() for name in ("k", "n", "s")), strict=True))
            assert rows == due[: options.get("limit")]
    assert prejoin.join(whole.slice(0, 0), build).num_rows == 0


def test_a_table_that_outgrows_a_chunk_comes_in_as_few_as_fit() -> None:
    """2,400 MiB of values do not fit one chunk: there are two."""
    build = prejoin.prepare(pa.table({"k": [0], "v": pa.array([b"x" * (1 << 20)], pa.binary(1 << 20))}), "k")
    joined = prejoin.join(pa.table({"k": [0] * 2_400}), build, batch_size=800, select=["v"])
    assert [len(chunk) for chunk in joined["v"].chunks] == [1_200, 1_200]


def test_words_of_other_libraries() -> None:
    probe, build = pa.table({"k": [1, 2, 2]}), prejoin.prepare(pa.table({"k": [2, 3], "v": [4, 5]}), "k")
    words = {
        "full": ["outer", "full outer"],
        "left": ["left outer"],
        "right": ["right outer"],
        "semi": ["left semi"],
        "anti": ["left anti"],
        "build_semi": ["right semi"],
        "build_anti": ["right anti"],
    }
    for own, others in words.items():
        for how in [*others, *(word.replace(" ", "_") for word in others)]:
            assert prejoin.join(probe, build, how=how).equals(prejoin.join(probe, build, how=own)), how  # type: ignore[call-overload]
    assert prejoin.Leg(build, how="left_semi").how == "semi"
    assert prejoin.Leg(build, validate="many_to_one").validate == "m:1"
    for validate in ("one_to_one", "one_to_many"):
        with pytest.raises(prejoin.ExecutionError):
            prejoin.join(probe, build, validate=validate)
    assert prejoin.join(probe, build, validate="many_to_many").num_rows == 2


@pytest.mark.parametrize(
    ("swap", "text"),
    [
        (lambda rows, build: (build, rows), "the second the build side; a PreparedBuild was given first"),
        (lambda rows, build: (rows, [build, rows]), 'leg "leg1" is a Leg or a PreparedBuild, pyarrow.*Table was given'),
        (lambda rows, build: (rows, rows), r"prejoin.prepare\(rows, on\).*pyarrow.*Table was given without on="),
    ],
)
def test_sides_that_are_swapped_or_not_prepared_are_named(swap: Any, text: str) -> None:
    rows = pa.table({"k": [1]})
    with pytest.raises((TypeError, prejoin.PlanError), match=text):
        prejoin.join(*swap(rows, prejoin.prepare(rows, "k")))


def test_errors_on_repeated_names_say_what_helps() -> None:
    """And what they say works: other names, positions of a HashJoin. Names in the output are made unique."""
    rows = pa.record_batch([pa.array([1, 2]), pa.array([3, 4]), pa.array([5, 6])], names=["k", "v", "v"])
    probe = pa.record_batch({"k": [2]})
    build = prejoin.prepare(rows, "k")
    for suffix in ("_right", "_other"):
        assert prejoin.join(probe, build, suffix=suffix).to_pydict() == {"k": [2], "v": [4], "v" + suffix: [6]}
    assert prejoin.join(probe, build, select=["k"]).to_pydict() == {"k": [2]}
    for projection in ([1], [2]):
        join = prejoin.HashJoin(rows.schema, probe.schema, on="k", projection=projection).with_prepared_build(build)
        assert join(probe).to_pydict() == {"v": [2 + 2 * projection[0]]}
    both = prejoin.HashJoin(rows.schema, probe.schema, on="k").with_prepared_build(build)(probe)
    assert [column.to_pylist() for column in both.columns] == [[2], [4], [6], [2]]
    names = r'more than one column "v"; rename all but one, or use HashJoin, whose keys and projection may be positions'
    for call in (
        lambda: prejoin.join(probe, build, select=["build.v"]),
        lambda: build.lookup([1], columns=["v"]),
        lambda: prejoin.prepare(rows, "v"),
        lambda: prejoin.join(rows, prejoin.prepare(pa.table({"v": [3]}), "v")),
    ):
        with pytest.raises(prejoin.PlanError, match=names):
            call()
    renamed = prejoin.prepare(rows.rename_columns(["k", "v", "w"]), "k")
    assert prejoin.join(probe, renamed, select=["w"]).to_pydict() == {"w": [6]}
    keyed = prejoin.HashJoin(rows.schema, probe.schema, on=[(2, 0)])
    assert keyed.prepare_build(rows).bounds == [(pa.scalar(5), pa.scalar(6))]
