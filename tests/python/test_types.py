"""Keys of every family and payloads of many types, in any encoding, compared with a nested loop, polars and duckdb."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import pickle
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from cases import values
from foreign import as_table
from words import hash_join_how

Row = tuple[Any, ...]


class Family(NamedTuple):
    """Types that can be compared with each other, values, and the type in which other engines compare them."""

    types: list[pa.DataType]
    values: list[Any]
    plain: pa.DataType
    fits: Callable[[pa.DataType, Any], bool] = lambda _type, _value: True


def in_range(data_type: pa.DataType, value: int) -> bool:
    try:
        pa.scalar(value, data_type)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def encoded(data_type: pa.DataType) -> list[pa.DataType]:
    return [data_type, pa.dictionary(pa.int8(), data_type), pa.run_end_encoded(pa.int32(), data_type)]


UNITS = ["s", "ms", "us", "ns"]
INSTANTS = [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23), dt.datetime(2024, 2, 29, 12, 30)]
ZONED = [instant.replace(tzinfo=dt.timezone.utc) for instant in INSTANTS]
TEXTS = ["", "a", "a\0", "twelve bytes", "thirteen byte", "thirteen bytf", "zß", "a text longer than two blocks of 16"]
FAMILIES = {
    "integer": Family(
        [*(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)), *encoded(pa.int32())],
        [0, 1, 2, -1, 127, -128, 200, 300, 2**31, 2**63 - 1, -(2**63)],
        pa.int64(),
        in_range,
    ),
    "text": Family([*encoded(pa.string()), pa.large_string(), pa.string_view()], TEXTS, pa.string()),
    "binary": Family(
        [pa.binary(), pa.large_binary(), pa.binary_view()], [text.encode() for text in TEXTS], pa.binary()
    ),
    "decimal": Family(
        [pa.decimal128(10, 2), pa.decimal128(20, 4), pa.decimal256(50, 3)],
        [Decimal("0.00"), Decimal("1.5"), Decimal("-1.5"), Decimal(120), Decimal("0.01")],
        pa.decimal128(20, 4),
    ),
    "instant": Family([pa.timestamp(unit) for unit in UNITS], INSTANTS, pa.timestamp("us")),
    "zoned": Family(
        [pa.timestamp(unit, zone) for unit in UNITS for zone in ("UTC", "Asia/Tokyo")], ZONED, pa.timestamp("us", "UTC")
    ),
    "time": Family(
        [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
        [dt.time(0), dt.time(23, 59, 59), dt.time(1)],
        pa.time64("us"),
    ),
    "date": Family([pa.date32()], [dt.date(1970, 1, 1), dt.date(1969, 1, 1), dt.date(2024, 2, 29)], pa.date32()),
    "float": Family([pa.float64()], [0.0, -0.0, math.nan, 1.5, -1.5, math.inf], pa.float64()),
    "bool": Family(encoded(pa.bool_()), [False, True], pa.bool_()),
    "fixed": Family([pa.binary(2)], [b"ab", b"ba", b"\0\0"], pa.binary()),
    "struct": Family(
        [pa.struct([("x", number), ("y", text)]) for number in (pa.int8(), pa.int64()) for text in (pa.string(),)],
        [{"x": 1, "y": "a"}, {"x": 1, "y": None}, {"x": None, "y": None}, {"x": 2, "y": "a"}],
        pa.null(),
    ),
    "list": Family(
        [pa.list_(pa.int16()), pa.list_(pa.int64())], [[], [1], [1, None], [None, 1], [None], [1, 2]], pa.null()
    ),
}
PAYLOADS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string_view(), TEXTS),
    (pa.dictionary(pa.uint8(), pa.string()), TEXTS),
    (pa.list_view(pa.int16()), [[], [1, None], [3]]),
    (pa.large_list(pa.string_view()), [[], [TEXTS[-1], None], ["a"]]),
    (pa.list_(pa.float32(), 2), [[1.0, None], [2.0, 3.0]]),
    (pa.map_(pa.string(), pa.int8()), [[], [("a", 1), ("b", None)]]),
    (pa.struct([("x", pa.list_(pa.struct([("y", pa.date32())])))]), [{"x": [{"y": None}]}, {"x": None}, {"x": []}]),
    (pa.binary(0), [b""]),
    (pa.null(), []),
    (pa.month_day_nano_interval(), [pa.MonthDayNano([1, -1, 1]), pa.MonthDayNano([0, 0, 0])]),
    (pa.float16(), [0.5, -0.0]),
    (pa.duration("ms"), [dt.timedelta(seconds=1), dt.timedelta(days=-3)]),
    (pa.uuid(), [bytes(range(16)), bytes(16)]),
    (pa.json_(), ['{"a": 1}', "null"]),
    (pa.run_end_encoded(pa.int16(), pa.decimal256(40, 1)), [Decimal("1.5"), Decimal(-3)]),
]


def column(data_type: pa.DataType, items: list[Any]) -> pa.Array:
    if pa.types.is_dictionary(data_type):
        return pa.array(items, data_type.value_type).dictionary_encode().cast(data_type)
    if pa.types.is_run_end_encoded(data_type):
        return pc.run_end_encode(pa.array(items, data_type.value_type), data_type.run_end_type)
    if isinstance(data_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(data_type, pa.array(items, data_type.storage_type))
    return pa.array(items, data_type)


class Side(NamedTuple):
    table: pa.Table
    keys: list[Row]
    """Key values as Python objects."""
    canonical: list[Row]
    """All columns in the canonical form of cases.py."""


@st.composite
def side(draw: st.DrawFn, families: list[Family]) -> Side:
    """A table of keys, a payload of any type and row numbers, in chunks that are slices of longer batches."""
    types = [draw(st.sampled_from(family.types)) for family in families]
    fitting = [[v for v in f.values if f.fits(_plain(t), v)] for f, t in zip(families, types, strict=True)]
    keys = draw(st.lists(st.tuples(*(st.sampled_from([None, *items]) for items in fitting)), max_size=14))
    payload_type, payload_values = draw(st.sampled_from(PAYLOADS))
    payload = [draw(st.sampled_from([None, *payload_values])) for _ in keys]
    names = [*(f"k{i}" for i in range(len(types))), "payload", "row"]
    types = [*types, payload_type, pa.int64()]
    fields = [pa.field(name, t, metadata={"origin": name}) for name, t in zip(names, types, strict=True)]
    rows = [(*key, item, i) for i, (key, item) in enumerate(zip(keys, payload, strict=True))]
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    batches = []
    for start, stop in itertools.pairwise([0, *cuts, len(rows)]):
        before, after = draw(st.integers(0, 9)), draw(st.integers(0, 2))
        padding = rows[:1] or [tuple(None for _ in names)]
        part = padding * before + rows[start:stop] + padding * after
        columns = [column(t, [row[i] for row in part]) for i, t in enumerate(types)]
        batches.append(pa.record_batch(columns, schema=pa.schema(fields)).slice(before, stop - start))
    table = pa.Table.from_batches(batches, pa.schema(fields))
    return Side(table, keys, canonical(table))


def _plain(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if hasattr(data_type, "value_type") and not pa.types.is_list(data_type) else data_type


@st.composite
def inputs(draw: st.DrawFn, names: list[str]) -> tuple[list[Family], Side, Side]:
    families = [FAMILIES[name] for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))]
    return families, draw(side(families)), draw(side(families))


def canonical(table: pa.Table) -> list[Row]:
    return list(zip(*(values(column) for column in table.columns), strict=True))


def equal(build: Any, probe: Any) -> bool:
    if isinstance(build, float) and isinstance(probe, float) and math.isnan(build):
        return math.isnan(probe)
    return bool(build == probe)


def nested_loop(build: Side, probe: Side, how: str, nulls: list[bool]) -> list[Row]:
    """The rows of a nested loop: build columns first, in probe order, then in build order; closing build rows last."""

    def matches(b: Row, p: Row) -> bool:
        return all(equal(x, y) and (x is not None or null) for x, y, null in zip(b, p, nulls, strict=True))

    partners = [[i for i, b in enumerate(build.keys) if matches(b, p)] for p in probe.keys]
    hit = {i for found in partners for i in found}
    if how in ("build_semi", "build_anti"):
        return [row for i, row in enumerate(build.canonical) if (i in hit) == (how == "build_semi")]
    if how in ("semi", "anti"):
        pairs = zip(probe.canonical, partners, strict=True)
        return [row for row, found in pairs if bool(found) == (how == "semi")]
    if how == "mark":
        marks = ["T" if found else "F" for found in partners]
        return [(*row, mark) for row, mark in zip(probe.canonical, marks, strict=True)]
    rows: list[Row] = []
    for p, found in zip(probe.canonical, partners, strict=True):
        rows += [(*build.canonical[i], *p) for i in found]
        if not found and how in ("left", "full"):
            rows.append((*[None] * build.table.num_columns, *p))
    if how in ("right", "full"):
        rows += [(*b, *[None] * probe.table.num_columns) for i, b in enumerate(build.canonical) if i not in hit]
    return rows


HOWS = ["inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti"]


def prepare(
    build: Side, probe: Side, nulls: list[bool], pool: prejoin.MemoryPool, collide: int = 0
) -> prejoin.PreparedBuild:
    join = hash_join(build, probe, "inner", nulls)
    return join.prepare_build(build.table, pool=pool, config=prejoin.Config(_collide=collide))


def hash_join(build: Side, probe: Side, how: Any, nulls: list[bool], **options: Any) -> prejoin.HashJoin:
    keys = [f"k{i}" for i in range(len(nulls))]
    return prejoin.HashJoin(
        build.table.schema, probe.table, on=keys, how=hash_join_how(how), null_equal=nulls, **options
    )


@settings(max_examples=300, deadline=None)
@given(inputs(list(FAMILIES)), st.data())
def test_every_kind_on_one_handle_equals_a_nested_loop(
    drawn: tuple[list[Family], Side, Side], data: st.DataObject
) -> None:
    """B1, B2, B4, S36: one to three keys of any family, payloads of any type, null equality of each key."""
    families, build, probe = drawn
    nulls = data.draw(st.lists(st.booleans(), min_size=len(families), max_size=len(families)))
    pool = prejoin.MemoryPool()
    prepared = prepare(build, probe, nulls, pool, data.draw(st.sampled_from([0, 3])))
    for how in HOWS:
        reader = hash_join(build, probe, how, nulls).with_prepared_build(prepared).execute(batch_size=5)
        got = reader.read_all()
        assert canonical(got) == nested_loop(build, probe, how, nulls), how
        sides = {"semi": "p", "anti": "p", "mark": "p", "build_semi": "b", "build_anti": "b"}.get(how, "bp")
        fields = [field for letter in sides for field in ({"b": build, "p": probe}[letter]).table.schema]
        for field, want in zip(got.schema, fields, strict=False):
            assert field.equals(want, check_metadata=True)
        del reader, got
    assert pool.reserved == prepared.reserved_bytes
    del prepared
    assert pool.reserved == 0


def pairs(result: pa.Table) -> Counter[Row]:
    """The row numbers of both sides, build first; for semi and anti joins only those of the probe side."""
    rows = [column for column, name in zip(result.columns, result.column_names, strict=True) if name == "row"]
    return Counter(zip(*(column.to_pylist() for column in rows), strict=True))


def plain(side: Side, families: list[Family], row: str) -> pa.Table:
    columns = {f"k{i}": pa.array([key[i] for key in side.keys], f.plain) for i, f in enumerate(families)}
    return pa.table({**columns, row: pa.array(range(len(side.keys)), pa.int64())})


FLAT = [name for name, family in FAMILIES.items() if family.plain != pa.null()]


@settings(max_examples=150, deadline=None)
@given(inputs(FLAT), st.booleans())
def test_join_types_equal_polars(drawn: tuple[list[Family], Side, Side], null: bool) -> None:
    """B1, B2: the same row numbers in any order, by an implementation that shares no code with this one."""
    families, build, probe = drawn
    nulls = [null] * len(families)
    prepared = prepare(build, probe, nulls, prejoin.MemoryPool())
    left, right = pl.from_arrow(plain(probe, families, "p")), pl.from_arrow(plain(build, families, "b"))
    assert isinstance(left, pl.DataFrame)
    assert isinstance(right, pl.DataFrame)
    how: Any
    for how in ["inner", "left", "right", "full", "semi", "anti"]:
        got = hash_join(build, probe, how, nulls).with_prepared_build(prepared).execute().read_all()
        want = left.join(right, on=[f"k{i}" for i in range(len(families))], how=how, nulls_equal=null)
        assert pairs(got) == Counter(want.select(["p"] if how in ("semi", "anti") else ["b", "p"]).rows()), how


@settings(max_examples=150, deadline=None)
@given(inputs(FLAT), st.data())
def test_join_types_equal_duckdb(drawn: tuple[list[Family], Side, Side], data: st.DataObject) -> None:
    """B1, B2, B4: as for polars, with null equality for each key; build-side joins are written with swapped sides."""
    families, build, probe = drawn
    nulls = data.draw(st.lists(st.booleans(), min_size=len(families), max_size=len(families)))
    prepared = prepare(build, probe, nulls, prejoin.MemoryPool())
    signs = ["IS NOT DISTINCT FROM" if null else "=" for null in nulls]
    condition = " AND ".join(f"build.k{i} {sign} probe.k{i}" for i, sign in enumerate(signs))
    with duckdb.connect() as connection:
        connection.register("build", plain(build, families, "b"))
        connection.register("probe", plain(probe, families, "p"))
        for how in [how for how in HOWS if how != "mark"]:
            got = hash_join(build, probe, how, nulls).with_prepared_build(prepared).execute().read_all()
            tables, kind = ("build", "probe"), how.removeprefix("build_")
            if how not in ("build_semi", "build_anti"):
                tables = ("probe", "build")
            columns = "b, p" if kind not in ("semi", "anti") else tables[0][0]
            query = f"SELECT {columns} FROM {tables[0]} {kind} JOIN {tables[1]} ON {condition}"
            assert pairs(got) == Counter(connection.sql(query).fetchall()), query


NAMES = ["ann", "bob", None, "a name of more than twelve bytes"]
TEXT_SOURCES: dict[str, Callable[[], Any]] = {
    "arrow": lambda: pa.table({"name": pa.array(NAMES), "v": [0, 1, 2, 3]}),
    "polars": lambda: pl.DataFrame({"name": NAMES, "v": [0, 1, 2, 3]}),
    "polars categorical": lambda: pl.DataFrame({"name": pl.Series(NAMES, dtype=pl.Categorical), "v": [0, 1, 2, 3]}),
    "polars enum": lambda: pl.DataFrame(
        {"name": pl.Series(NAMES, dtype=pl.Enum([name for name in NAMES if name])), "v": [0, 1, 2, 3]}
    ),
    "pandas object": lambda: pd.DataFrame({"name": pd.Series(NAMES, dtype=object), "v": [0, 1, 2, 3]}),
    "pandas string": lambda: pd.DataFrame({"name": pd.Series(NAMES, dtype="string"), "v": [0, 1, 2, 3]}),
    "pandas arrow": lambda: pd.DataFrame(
        {"name": pd.Series(NAMES, dtype=pd.ArrowDtype(pa.string())), "v": [0, 1, 2, 3]}
    ),
    "pandas category": lambda: pd.DataFrame({"name": pd.Series(NAMES, dtype="category"), "v": [0, 1, 2, 3]}),
}


@pytest.mark.parametrize("build", TEXT_SOURCES)
@pytest.mark.parametrize("probe", TEXT_SOURCES)
def test_strings_of_all_kinds_of_frames_match(build: str, probe: str) -> None:
    prepared = prejoin.prepare(TEXT_SOURCES[build](), "name", null_equal=True)
    got = as_table(prejoin.join(TEXT_SOURCES[probe](), prepared))
    assert [str(name) if name else None for name in got["name"].to_pylist()] == NAMES
    assert got["v"].to_pylist() == got["v_right"].to_pylist() == [0, 1, 2, 3]


def test_a_full_dictionary_beside_nulls_fits_one_batch() -> None:
    """All parts of an output batch share a dictionary that fills its key type; unmatched build rows add no value."""
    codes = pa.array(range(256), pa.uint8())
    texts = pa.DictionaryArray.from_arrays(codes, pa.array([f"text {i}" for i in range(256)]))
    probe = pa.record_batch({"k": pa.array(range(256), pa.int64()), "d": texts})
    build = prejoin.prepare(pa.table({"k": [255, 255, 256], "v": [1, 2, 3]}), "k")
    got = prejoin.join(probe, build, how="full")
    assert got.schema.field("d").type == texts.type
    assert got["d"].to_pylist() == [f"text {i}" for i in [*range(255), 255, 255]] + [None]


def joined(build: Any, probe: Any, how: Any = "inner", **options: Any) -> None:
    join = prejoin.HashJoin(build.schema, probe, on="k", how=how, **options)
    join.with_prepared_build(join.prepare_build(build)).execute().read_all()


def one(data_type: pa.DataType) -> pa.Table:
    return pa.table([pa.array([None], data_type)], schema=pa.schema([("k", data_type)]))


def beside(column: pa.Array) -> pa.RecordBatch:
    """A table with this column and a key that is always 1."""
    return pa.record_batch([pa.array([1] * len(column), pa.int64()), column], names=["k", "v"])


def texts(start: int) -> pa.RecordBatch:
    codes = pa.array(range(100), pa.int8())
    return beside(pa.DictionaryArray.from_arrays(codes, pa.array([str(start + i) for i in range(100)])))


def lists(*ends: int) -> pa.RecordBatch:
    """Lists of so many values that need no memory."""
    return beside(pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), pa.nulls(ends[-1])))


def runs(length: int) -> pa.RecordBatch:
    return beside(pa.RunEndEncodedArray.from_arrays(pa.array([length], pa.int16()), pa.array(["x"])))


def coded_twice() -> pa.RecordBatch:
    codes = pa.array([0], pa.int8())
    coded = pa.DictionaryArray.from_arrays(codes, pa.array(["x"]))
    return beside(pa.DictionaryArray.from_arrays(codes, coded))


def dictionary_of_uuids() -> pa.RecordBatch:
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    return beside(pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), uuids))


SOLID = pa.dense_union([pa.field("x", pa.int8(), nullable=False)])
KEYS = pa.record_batch({"k": [1] * 20_000})
REFUSED: dict[str, Callable[[], Any]] = {
    "for which no equality is defined; join on another column or on parts of it": lambda: prejoin.prepare(
        one(pa.list_(pa.map_(pa.string(), pa.int8()))), "k"
    ),
    "key types must match": lambda: joined(one(pa.int64()), one(pa.string())),
    "null_aware is SQL NOT IN and needs an anti join": lambda: joined(
        one(pa.int64()), one(pa.int64()), null_aware=True
    ),
    "has no place for; make a child of it nullable, or leave the column out": lambda: prejoin.HashJoin(
        pa.schema([("k", pa.int64()), ("u", SOLID)]), pa.schema([("k", pa.int64())]), on="k", how="probe_outer"
    ),
    "cast the column to wider dictionary keys or to its values": lambda: prejoin.prepare([texts(0), texts(100)], "k"),
    "cast the column to wider run ends or to its values": lambda: prejoin.prepare([runs(20_000), runs(20_000)], "k"),
    "pass the probe side as a stream": lambda: prejoin.join(KEYS, prejoin.prepare(runs(2), "k")),
    "or split the build": lambda: prejoin.prepare([lists(1 << 30), lists(1 << 30)], "k"),
    "more than its offsets reach; pass the probe side as a stream": lambda: prejoin.join(
        KEYS, prejoin.prepare(lists(1 << 30), "k")
    ),
    # Each piece of the output fits, and both together do not: the pairs, and the rows without a match.
    "give the probe side as a stream": lambda: prejoin.join(
        KEYS,
        prejoin.prepare(lists(1 << 16, (1 << 30) + (1 << 16)).set_column(0, "k", pa.array([1, 2])), "k"),
        how="full",
    ),
    "cast it to its values or to their storage": lambda: prejoin.prepare(dictionary_of_uuids(), "k"),
    "Arrow IPC does not carry": lambda: prejoin.prepare(coded_twice(), "k").share(),
    "save(path) it": lambda: pickle.dumps(prejoin.prepare(runs(2), "k")),
    "filter the build side or split it": lambda: prejoin.prepare(pa.record_batch([pa.nulls(2**32 - 1)], ["k"]), "k"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals_have_the_documented_message(message: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "support.md").read_text()
    rows = [row for row in page.splitlines() if message in row and row.startswith("|")]
    assert rows, "not in docs/support.md"
    with pytest.raises(prejoin.PrejoinError) as raised:
        REFUSED[message]()
    assert message in str(raised.value)
    assert any(f"`{type(raised.value).__name__}`" in row for row in rows)


def test_every_documented_refusal_is_tested() -> None:
    page = (Path(__file__).parents[2] / "docs" / "support.md").read_text()
    table = [row for row in page.partition("## What is refused")[2].splitlines() if row.startswith("|")]
    for row in table[2:]:
        assert any(message in row for message in REFUSED), row


def test_dictionaries_that_would_lose_a_flag_or_extension_type_are_refused() -> None:
    """They are refused by name before a batch is read. Flags and extension types that belong to a field are kept."""

    def fail(_: int) -> Any:
        raise AssertionError("asked for data")

    codes = pa.array([0], pa.int8())
    ordered = pa.DictionaryArray.from_arrays(codes, pa.array(["x"]), ordered=True)
    uuids = dictionary_of_uuids().column(1)
    for column in (uuids, pa.StructArray.from_arrays([uuids], ["x"]), pa.DictionaryArray.from_arrays(codes, ordered)):
        schema = pa.schema({"k": pa.int64(), "v": column.type})
        with pytest.raises(prejoin.PlanError, match='column "v" holds a dictionary whose values are'):
            prejoin.Source(fail, schema=schema, partitions=1)
    storage = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    for column in (
        ordered,
        pa.StructArray.from_arrays([ordered, storage], ["x", "y"]),
        pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), ordered),
        pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), storage),
        pa.DictionaryArray.from_arrays(codes, pa.StructArray.from_arrays([ordered, storage], ["x", "y"])),
        pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), ordered),
    ):
        build = prejoin.prepare(beside(column), "k")
        assert build.schema.field("v").type == column.type
        assert prejoin.join(beside(codes), build)["v_right"].type == column.type
