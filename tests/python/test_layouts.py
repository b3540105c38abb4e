"""Columns in any memory layout: any address, slices, garbage beneath nulls, nested and encoded types, and what outputs
share with them. Results are compared with Python lists of the same values."""

from __future__ import annotations

import gc
import pickle
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import nanoarrow as na
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import prejoin
from foreign import OneArgCapsule, misaligned

KINDS: list[Any] = ["inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti"]


def at(data: bytes, shift: int) -> pa.Buffer:
    """The bytes, at an address `shift` bytes after a multiple of 64."""
    room = np.zeros(len(data) + 128, np.uint8)
    start = -room.ctypes.data % 64 + shift
    room[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return pa.py_buffer(room[start : start + len(data)])


def plain(value: Any) -> Any:
    """A form of the value in which NaN equals itself."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return "NaN" if isinstance(value, float) and value != value else value


def values(column: Any) -> list[Any]:
    return [plain(value) for value in column.to_pylist()]


def expected(how: str, build: tuple[list[Any], list[Any]], probe: tuple[list[Any], list[Any]]) -> list[tuple[Any, ...]]:
    """A nested loop over (keys, values) of both sides; keys coalesced."""
    hit: set[int] = set()
    out: list[tuple[Any, ...]] = []
    for key, value in zip(*probe, strict=True):
        partners = [i for i, other in enumerate(build[0]) if key is not None and other == key]
        hit.update(partners)
        if (how == "semi" and partners) or (how == "anti" and not partners):
            out.append((key, value))
        elif how == "mark":
            out.append((key, value, bool(partners)))
        elif how in ("inner", "left", "right", "full"):
            out += [(key, value, build[1][i]) for i in partners]
            if not partners and how in ("left", "full"):
                out.append((key, value, None))
    for i, (key, value) in enumerate(zip(*build, strict=True)):
        if how in ("right", "full") and i not in hit:
            out.append((key, None, value))
        elif (how == "build_semi" and i in hit) or (how == "build_anti" and i not in hit):
            out.append((key, value))
    return out


def rows(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(values(table.column(i)) for i in range(table.num_columns)), strict=True))


def check(
    build: pa.Array, probe: pa.Array, kinds: list[Any], tmp_path: Path, give: Callable[[pa.Table], Any] = lambda t: t
) -> None:
    """The columns as payload of both sides: some kinds, a condition on each, lookups, keep=; all of it also saved."""
    build_keys = [None if i % 7 == 5 else i // 2 for i in range(len(build))]
    probe_keys = [None if i % 5 == 4 else (i * 3) % (len(build) + 2) for i in range(len(probe))]
    sides = (build_keys, values(build)), (probe_keys, values(probe))
    left = pa.table({"k": pa.array(build_keys, pa.int64()), "b": build})
    right = pa.table({"k": pa.array(probe_keys, pa.int64()), "p": probe})
    prepared = prejoin.prepare(give(left), "k")
    saved = prepared
    try:
        prepared.save(tmp_path / "build.prejoin")
        saved = prejoin.open(tmp_path / "build.prejoin")
    except prejoin.NotSupported:
        pass
    for how in kinds:
        for handle in (prepared, saved):
            got = pa.table(prejoin.join(give(right), handle, on="k", how=how, coalesce=True))
            got.validate(full=True)
            assert rows(got) == expected(how, *sides), how
            for name, column in (("b", build), ("p", probe)):
                assert name not in got.schema.names or got.schema.field(name).type == column.type
    for side in "bp":
        where = f"{side} IS NULL OR {side} IS NOT NULL"
        got = pa.table(prejoin.join(give(right), saved, on="k", where=where, batch_size=3))
        assert rows(got) == expected("inner", *sides)
    last: dict[int, Any] = {key: value for key, value in zip(*sides[0], strict=True) if key is not None}
    kept = prejoin.prepare(give(left), "k", keep="last")
    asked = [0, 999, 1, None, 0]
    for found in (kept.lookup(asked), prepared.lookup(asked, keep="last")):
        found.validate(full=True)
        assert values(found.column(1)) == [last.get(key) if key is not None else None for key in asked]
    for key, value in last.items():
        assert plain(kept.get(key)) == {"k": key, "b": value}


# ---------------------------------------------------------------- addresses


def fixed_width() -> dict[str, Callable[[int, int], Any]]:
    """So many rows of a fixed-width type at an address. DayTime intervals are made by nanoarrow: pyarrow has none."""
    types = [
        *[pa.binary(width) for width in (1, 2, 3, 4, 5, 8, 16, 24, 32)],
        *[pa.int8(), pa.uint16(), pa.float16(), pa.int32(), pa.float32(), pa.int64(), pa.uint64(), pa.float64()],
        *[pa.decimal32(7, 2), pa.decimal64(15, 2), pa.decimal128(20, 3), pa.decimal256(40, 3)],
        *[pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.timestamp("us"), pa.duration("ns")],
        pa.month_day_nano_interval(),
    ]

    def numbers(data_type: pa.DataType, count: int, shift: int) -> pa.Array:
        width = data_type.bit_width // 8
        small = Decimal(1) if pa.types.is_decimal(data_type) else 1
        day = 86_400_000 if data_type == pa.date64() else 1
        data = b"".join(
            (i * day if small else 0).to_bytes(width, "little")
            if width <= 8 and not pa.types.is_floating(data_type)
            else bytes((i + at) % 5 if at < 4 else 0 for at in range(width))
            for i in range(count)
        )
        validity = pa.array([i % 4 != 3 for i in range(count)]).buffers()[1]
        return pa.Array.from_buffers(data_type, count, [validity, at(data, shift)])

    return {str(t): lambda count, shift, t=t: numbers(t, count, shift) for t in types}  # type: ignore[misc]


FIXED = fixed_width()


@pytest.mark.parametrize("shift", [1, 2, 4, 8])
@pytest.mark.parametrize("name", FIXED)
def test_fixed_width_values_lie_at_any_address(name: str, shift: int, tmp_path: Path) -> None:
    column, other = FIXED[name](12, shift), FIXED[name](9, shift)
    check(column, other, KINDS, tmp_path)
    check(column, other, ["full", "build_anti"], tmp_path, lambda table: OneArgCapsule(table.to_reader()))
    flat = FIXED[name](24, shift)
    offsets = pa.array(range(0, 25, 2), pa.int32())
    for nested in (
        pa.StructArray.from_arrays([flat[:12]], ["f"], mask=pa.array([i == 2 for i in range(12)])),
        pa.ListArray.from_arrays(offsets, flat, mask=pa.array([i == 2 for i in range(12)])),
        pa.FixedSizeListArray.from_arrays(flat, 2, mask=pa.array([i == 2 for i in range(12)])),
        pa.ListViewArray.from_arrays(offsets[:12], pa.array([2] * 12, pa.int32()), flat),
        pa.DictionaryArray.from_arrays(pa.array([i % 5 for i in range(12)], pa.int8()), flat.drop_null()),
        pa.UnionArray.from_sparse(pa.array([i % 2 for i in range(12)], pa.int8()), [flat[:12], flat[12:]]),
        pa.RunEndEncodedArray.from_arrays(pa.array([5, 12], pa.int16()), flat[:2]),
    ):
        check(nested, nested[:9], ["full"], tmp_path)


@pytest.mark.parametrize("shift", [1, 2, 4, 8])
def test_day_time_intervals_lie_at_any_address(shift: int) -> None:
    pairs = [(i, -i) for i in range(8)]
    data = b"".join(struct.pack("<ii", *pair) for pair in pairs)
    column = na.c_array_from_buffers(na.interval_day_time(), 8, [None, memoryview(at(data, shift))])
    keys = na.c_array(list(range(8)), na.int64())
    schema = na.struct({"k": na.int64(), "v": na.interval_day_time()})
    table = na.c_array_from_buffers(schema, 8, [None], children=[keys, column])
    probe = pa.record_batch({"k": pa.array([7, 0, 3, 9], pa.int64())})

    build = prejoin.prepare(table, "k")

    def out(result: Any) -> list[Any]:
        # pyarrow cannot show the values.
        return [row.get("v") for row in na.Array(result).to_pylist()]

    assert out(prejoin.join(probe, build, how="left")) == [pairs[7], pairs[0], pairs[3], None]
    assert out(prejoin.join(probe.slice(1, 2), build, how="build_semi")) == [pairs[0], pairs[3]]
    assert out(prejoin.join(table, prejoin.prepare(probe, "k"), how="semi")) == [pairs[0], pairs[3], pairs[7]]
    assert out(build.lookup([1, 99])) == [pairs[1], None]
    assert out(prejoin.join(probe, prejoin.prepare(table, "k", keep="first"))) == [pairs[7], pairs[0], pairs[3]]


# ---------------------------------------------------------------- nested types


def solid_union(mode: str, count: int) -> pa.Array:
    """A union without a nullable child."""
    ids = pa.array([i % 2 for i in range(count)], pa.int8()).buffers()[1]
    fields = [pa.field("a", pa.int8(), nullable=False), pa.field("b", pa.string(), nullable=False)]
    children = [pa.array(range(count), pa.int8()), pa.array([str(i) for i in range(count)])]
    if mode == "sparse":
        return pa.Array.from_buffers(pa.sparse_union(fields), count, [None, ids], 0, 0, children)
    offsets = pa.array(range(count), pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.dense_union(fields), count, [None, ids, offsets], 0, 0, children)


@pytest.mark.parametrize("mode", ["sparse", "dense"])
def test_unions_without_a_nullable_child_lie_beneath_nulls(mode: str, tmp_path: Path) -> None:
    union = solid_union(mode, 24)
    offsets = pa.array(range(0, 25, 2), pa.int32())
    for column in (
        pa.StructArray.from_arrays([union[:12]], ["u"]),
        pa.FixedSizeListArray.from_arrays(union, 2),
        pa.ListArray.from_arrays(offsets, union),
        pa.FixedSizeListArray.from_arrays(pa.StructArray.from_arrays([union], ["u"]), 2),
    ):
        check(column, column[:9], KINDS, tmp_path)
        check(column, column[:0], ["right", "full"], tmp_path)
        # An empty build has no row to store beneath a null.
        empty = prejoin.prepare(pa.table({"k": pa.array([], pa.int64()), "b": column[:0]}), "k")
        got = pa.table(prejoin.join(pa.table({"k": [1, 2]}), empty, how="left"))
        got.validate(full=True)
        assert got["b"].to_pylist() == [None, None]
        assert empty.lookup([1]).column(1).to_pylist() == [None]


def test_an_empty_side_with_a_union_of_dictionaries_gives_nulls() -> None:
    for make in (pa.UnionArray.from_sparse, lambda i, c: pa.UnionArray.from_dense(i, pa.array([0], pa.int32()), c)):
        union = make(pa.array([0], pa.int8()), [pa.array([1], pa.int8()), pa.array(["a"]).dictionary_encode()])
        table = pa.table({"k": [9], "v": union})
        for rows in (table, table.slice(0, 0)):
            got = pa.table(prejoin.join(pa.table({"k": [1]}), prejoin.prepare(rows, "k"), how="left"))
            got.validate(full=True)
            assert got["v"].to_pylist() == [None]
            assert got.schema.field("v").type == union.type


def test_runs_of_unions_keep_their_type_ids() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.nulls(2, pa.int8()), pa.nulls(2, pa.string())])
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), union)
    build = prejoin.prepare(pa.table({"k": [1, 2], "v": runs}), "k")
    out = pa.table(prejoin.join(pa.table({"k": [1, 2]}), build))["v"].chunk(0)
    assert (out.run_ends.to_pylist(), out.values.type_codes.to_pylist()) == ([1, 2], [0, 1])


def test_fixed_size_lists_reach_beyond_32_bits() -> None:
    """2^32 child values that take no memory."""
    count = 65_537
    lists = pa.FixedSizeListArray.from_arrays(pa.nulls(count * 65_536), 65_536)
    build = prejoin.prepare(pa.table({"k": pa.array(range(count), pa.int32()), "v": lists}), "k")
    got = pa.table(prejoin.join(pa.table({"k": pa.array([65_534, 65_535, 65_536], pa.int32())}), build))
    assert got.num_rows == 3
    assert got["v"].chunk(0).values[0].as_py() is None
    assert build.lookup([65_536, 99_999]).num_rows == 2


SHORT = pa.RunEndEncodedArray.from_arrays(pa.array([30_000], pa.int16()), pa.array([7], pa.int8()))
OF_RUNS: dict[str, pa.Array] = {
    "list": pa.ListArray.from_arrays(pa.array([0, 15_000, 30_000], pa.int32()), SHORT),
    "map": pa.MapArray.from_arrays(pa.array([0, 15_000, 30_000], pa.int32()), pa.array(["k"] * 30_000), SHORT),
    "list view": pa.ListViewArray.from_arrays(
        pa.array([0, 15_000], pa.int32()), pa.array([15_000] * 2, pa.int32()), SHORT
    ),
    "fixed": pa.FixedSizeListArray.from_arrays(SHORT, 15_000),
    "struct of lists": pa.StructArray.from_arrays(
        [pa.ListArray.from_arrays(pa.array([0, 15_000, 30_000], pa.int32()), SHORT)], ["x"]
    ),
}


@pytest.mark.parametrize("name", OF_RUNS)
def test_runs_that_are_outgrown_within_others_are_refused_by_name(name: str) -> None:
    build = prejoin.prepare(pa.table({"k": [1, 2], "v": OF_RUNS[name]}), "k")
    probe = pa.record_batch({"k": [1] * 3})
    if name != "list view":
        with pytest.raises(prejoin.ExecutionError, match='column "v": 45000 rows do not fit the run ends'):
            prejoin.join(probe, build)
        # As a table or a stream it comes in more pieces.
        assert prejoin.join(pa.table(probe), build)["v"].num_chunks == 2
    # A condition evaluates fewer pairs at a time.
    where = "v IS NOT NULL"
    assert pa.table(prejoin.join(probe, build, select=["k"], where=where)).num_rows == 3
    assert prejoin.join(pa.table({"k": [2] * 3000}), build, select=["k"], where=where, batch_size=1).num_rows == 3000


def test_more_values_than_offsets_reach_are_found_before_they_are_copied() -> None:
    text = pa.array(["x" * (1 << 20)])
    build = prejoin.prepare(pa.table({"k": [1], "t": text, "l": pa.ListArray.from_arrays([0, 1], text)}), "k")
    probe = pa.record_batch({"k": [1] * 2050})
    before = pa.total_allocated_bytes()
    for at, column in enumerate("tl", 1):
        join = prejoin.HashJoin(build.schema, probe.schema, on="k", projection=[at]).with_prepared_build(build)
        with pytest.raises(prejoin.ExecutionError, match=f'column "{column}".*as a stream'):
            join(probe)
    assert pa.total_allocated_bytes() == before
    # A condition evaluates fewer pairs at a time.
    assert prejoin.join(probe, build, select=["k"], where="t LIKE 'x%'", batch_size=4096).num_rows == 2050


# ---------------------------------------------------------------- beneath nulls


def broken_text(data_type: pa.DataType, null: bool = True) -> pa.Array:
    """The second value is not UTF-8; nor is a boundary within a character."""
    validity = pa.array([True, not null, True]).buffers()[1]
    if data_type == pa.string_view():
        views = struct.pack("<i12si12si4sii", 1, b"a", 2, b"\xff\xfe", 40, b"long", 0, 0)
        if null:
            views = views[:16] + struct.pack("<i4sii", 99, b"what", 7, 5) + views[32:]
        return pa.Array.from_buffers(data_type, 3, [validity, pa.py_buffer(views), pa.py_buffer(b"long" + b"-" * 36)])
    offsets = pa.array([0, 1, 4, 6], pa.int64() if data_type == pa.large_string() else pa.int32()).buffers()[1]
    return pa.Array.from_buffers(data_type, 3, [validity, offsets, pa.py_buffer(b"a\xff\xfe\xc3\xc3\xa9")])


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_beneath_a_null_may_be_anything(data_type: pa.DataType, tmp_path: Path) -> None:
    broken = broken_text(data_type)
    broken.validate(full=True)
    wanted = ["a", None, "é" if data_type != pa.string_view() else "long" + "-" * 36]
    assert broken.to_pylist() == wanted
    check(broken, broken, KINDS, tmp_path)
    keyed = prejoin.prepare(pa.table({"v": broken}), "v")
    assert keyed.contains(wanted).to_pylist() == [True, False, True]
    ones = pa.array([0, 1, 2, 3], pa.int32())
    for column in (
        pa.ListArray.from_arrays(ones, broken),
        pa.StructArray.from_arrays([broken], ["x"]),
        pa.DictionaryArray.from_arrays(pa.array([2, 1, 0], pa.int8()), broken),
        pa.RunEndEncodedArray.from_arrays(ones[1:], broken),
    ):
        check(column, column, ["full"], tmp_path)
    copy = prejoin.MemoryPool(16)
    with pytest.raises(prejoin.ResourcesExhausted, match="alignment copy"):
        prejoin.prepare(pa.table({"v": broken}), "v", pool=copy)
    with pytest.raises(prejoin.ExecutionError, match='column "v"'):
        prejoin.prepare(pa.table({"v": broken_text(data_type, null=False)}), "v")


def test_list_views_beneath_a_null_may_point_anywhere(tmp_path: Path) -> None:
    validity = pa.array([True, False, True]).buffers()[1]
    ints = [pa.array(part, pa.int32()).buffers()[1] for part in ([0, 77, 1], [1, 9, 1])]
    column = pa.Array.from_buffers(
        pa.list_view(pa.int8()), 3, [validity, *ints], children=[pa.array([4, 5], pa.int8())]
    )
    assert column.to_pylist() == [[4], None, [5]]
    check(column, column, KINDS, tmp_path)


# ---------------------------------------------------------------- what outputs keep


def long_values(kind: str, count: int) -> pa.Array:
    texts = [f"a value of more than twelve bytes {i}" for i in range(count)]
    strings = pa.array(texts)
    match kind:
        case "string_view":
            return strings.cast(pa.string_view())
        case "binary_view":
            return strings.cast(pa.binary()).cast(pa.binary_view())
        case "list_view":
            return pa.array([[text] for text in texts], pa.list_view(pa.string()))
        case "large_list_view":
            return pa.array([[text] for text in texts], pa.large_list_view(pa.string()))
        case "struct of views":
            return pa.StructArray.from_arrays([strings.cast(pa.string_view())], ["x"])
        case "list of views":
            return pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), strings.cast(pa.string_view()))
        case "runs of views":
            return pa.RunEndEncodedArray.from_arrays(
                pa.array(range(1, count + 1), pa.int32()), strings.cast(pa.string_view())
            )
        case "dense union of views":
            ids, offsets = pa.array([0] * count, pa.int8()), pa.array(range(count), pa.int32())
            return pa.UnionArray.from_dense(ids, offsets, [strings.cast(pa.string_view())])
        case "small dictionary":
            codes = pa.array([i % 64 for i in range(count)], pa.int32())
            return pa.DictionaryArray.from_arrays(codes, strings[:64].cast(pa.string_view()))
        case _:
            return pa.array(range(count))


OWNED = [
    "string_view",
    "binary_view",
    "list_view",
    "large_list_view",
    "struct of views",
    "list of views",
    "runs of views",
    "dense union of views",
    "small dictionary",
]


@pytest.mark.parametrize("kind", OWNED)
def test_small_outputs_do_not_keep_the_build(kind: str) -> None:
    """S23: a few rows own their bytes, so they pickle small, and the build is freed with its charge."""
    count = 20_000
    pool = prejoin.MemoryPool()
    column = long_values(kind, count)
    build = prejoin.prepare(pa.record_batch({"k": pa.array(range(count)), "v": column}), "k", pool=pool)
    probe = pa.record_batch({"k": pa.array([5, 19_999])})
    outputs = [
        prejoin.join(probe, build, select=["v"]),
        prejoin.join(pa.Table.from_batches([probe]), build, select=["v"]),
        prejoin.join(OneArgCapsule(pa.Table.from_batches([probe]).to_reader()), build, select=["v"]).read_all(),
        prejoin.join(probe, build, how="build_semi", select=["v"]),
        build.lookup([5, 19_999], columns=["v"]),
    ]
    del build
    gc.collect()
    assert pool.reserved == 0
    for out in outputs:
        assert out.column(0).to_pylist() == [column[5].as_py(), column[19_999].as_py()]
        assert len(pickle.dumps(out)) < (6_000 if kind == "small dictionary" else 2_000)


def test_two_rows_of_a_polars_frame_pickle_small() -> None:
    frame = pl.DataFrame({"k": range(100_000), "v": [f"some text of row number {i}" for i in range(100_000)]})
    build = prejoin.prepare(frame, "k")
    out = prejoin.join(pa.record_batch({"k": [7, 70_000]}), build)
    assert out["v"].to_pylist() == ["some text of row number 7", "some text of row number 70000"]
    assert len(pickle.dumps(out)) < 1_000


@pytest.mark.parametrize("kind", ["string_view", "list_view"])
def test_outputs_that_use_most_of_a_column_share_it_under_a_lease(kind: str) -> None:
    """S23, S24: so text that many rows point to is not copied for each of them."""
    pool = prejoin.MemoryPool()
    build = prejoin.prepare(pa.record_batch({"k": [1], "v": long_values(kind, 1)}), "k", pool=pool)
    reserved = build.reserved_bytes
    out = prejoin.join(pa.record_batch({"k": [1] * 1_000}), build)
    del build
    gc.collect()
    assert pool.reserved == reserved
    del out
    gc.collect()
    assert pool.reserved == 0


@pytest.mark.parametrize("count", [50, 20_000])
def test_dictionaries_of_a_stream_fit_an_ipc_file(count: int, tmp_path: Path) -> None:
    """A file has room for one dictionary per column, so the values are never reduced to those of a batch."""
    codes = pa.array(range(count), pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, long_values("int", count).cast(pa.string()))
    build = prejoin.prepare(pa.record_batch({"k": codes, "v": column}), "k")
    stream = prejoin.join(pa.table({"k": codes[:50]}).to_reader(max_chunksize=10), build)
    with pa.OSFile(str(tmp_path / "out.arrow"), "wb") as file, pa.ipc.new_file(file, stream.schema) as writer:
        for batch in stream:
            writer.write_batch(batch)
    assert pa.ipc.open_file(tmp_path / "out.arrow").read_all()["v"].to_pylist() == column[:50].to_pylist()


@pytest.mark.parametrize("keep", ["first", "last"])
@pytest.mark.parametrize("kind", ["int", *OWNED])
def test_keep_releases_foreign_batches(kind: str, keep: Any) -> None:
    """S9: the memory that pyarrow still holds for a build is charged."""
    count = 20_000
    gc.collect()
    before = pa.total_allocated_bytes()
    other = pa.array(range(count))
    batch = pa.record_batch({"k": pa.array([i // 2 for i in range(count)]), "v": long_values(kind, count), "o": other})
    build = prejoin.prepare(batch, "k", keep=keep)
    del batch, other
    gc.collect()
    assert pa.total_allocated_bytes() - before < 4096
    assert build.num_rows == count // 2


@pytest.mark.parametrize("partitions", [1, 2])
def test_an_ordinary_join_charges_foreign_batches_like_prepare(partitions: int) -> None:
    """S9, S15: a small slice of a large table is copied instead of keeping the table."""
    gc.collect()
    before = pa.total_allocated_bytes()
    big = pa.table({"k": pa.array(range(1_000_000)), "v": pa.array(range(1_000_000))})
    batches = [big.slice(0, 32).to_batches()[0]]

    def give(partition: int) -> Any:
        return iter([batches.pop()] if batches else [])

    schema = batches[0].schema
    source = prejoin.Source(give, schema=schema, partitions=partitions)
    pool = prejoin.MemoryPool()
    join = prejoin.HashJoin(source, pa.table({"k": [1, 2]}), on="k")
    reader = join.execute(pool=pool)
    assert reader.read_next_batch().num_rows == 2
    del big
    gc.collect()
    assert pa.total_allocated_bytes() - before < 10_000
    assert pool.peak >= 2 * 8 * 1_000_000
    del reader, join, source
    gc.collect()
    assert pool.reserved == 0


# ---------------------------------------------------------------- any layout

FLAT = [
    *[pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.bool_(), pa.null(), pa.date32(), pa.timestamp("ns", "UTC")],
    *[pa.decimal128(20, 3), pa.decimal256(40, 3), pa.month_day_nano_interval(), pa.binary(2), pa.binary(8)],
    *[pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()],
]
TEXTS = ["", "a", "ü", "twelve bytes", "thirteen byte", "a text that is longer than a view holds"]


def value(chance: random.Random, data_type: pa.DataType) -> Any:
    number, text = chance.randint(0, 5), chance.choice(TEXTS)
    if pa.types.is_fixed_size_binary(data_type):
        return bytes((number + at) % 7 for at in range(data_type.byte_width))
    if "string" in str(data_type):
        return text
    if "binary" in str(data_type):
        return text.encode()
    if data_type == pa.month_day_nano_interval():
        return pa.MonthDayNano([number] * 3)
    if pa.types.is_decimal(data_type):
        return Decimal(number)
    return {"bool": bool(number % 2), "null": None, "float": float(number)}.get(str(data_type), number)


def flat(chance: random.Random, data_type: pa.DataType, count: int, nulls: bool = True) -> pa.Array:
    array = pa.array([value(chance, data_type) for _ in range(count)], data_type)
    if not nulls or data_type == pa.null() or chance.random() < 0.4:
        return array
    # The values beneath the nulls are kept.
    valid = pa.array([chance.random() < 0.7 for _ in range(count)], pa.bool_()).buffers()[1]
    array = pa.Array.from_buffers(data_type, count, [valid, *array.buffers()[1:]])
    return misaligned(array, chance.choice([1, 2, 4, 8])) if chance.random() < 0.5 else array


def any_array(chance: random.Random, count: int, depth: int) -> pa.Array:
    """An array of any type, as a slice of a longer one."""
    before, after = (chance.randint(0, 3), chance.randint(0, 3)) if chance.random() < 0.5 else (0, 0)
    whole = before + count + after
    kind = chance.choice(["flat", "list", "view", "fixed", "struct", "map", "dictionary", "runs", "union"])
    mask = pa.array([chance.random() < 0.2 for _ in range(whole)], pa.bool_()) if chance.random() < 0.6 else None
    lengths = [chance.choice([0, 1, 2, 3]) for _ in range(whole)]
    ends = [chance.randint(0, 2)]
    for length in lengths:
        ends.append(ends[-1] + length)
    match kind if depth else "flat":
        case "list":
            lists, width = chance.choice([(pa.ListArray, pa.int32()), (pa.LargeListArray, pa.int64())])
            array = lists.from_arrays(pa.array(ends, width), any_array(chance, ends[-1] + 1, depth - 1), mask=mask)
        case "view":
            child = any_array(chance, 9, depth - 1)
            offsets = [chance.randint(0, 9) for _ in range(whole)]
            sizes = [chance.randint(0, min(3, 9 - offset)) for offset in offsets]
            views, width = chance.choice([(pa.ListViewArray, pa.int32()), (pa.LargeListViewArray, pa.int64())])
            array = views.from_arrays(pa.array(offsets, width), pa.array(sizes, width), child, mask=mask)
        case "fixed":
            size = chance.choice([1, 2, 3])
            array = pa.FixedSizeListArray.from_arrays(any_array(chance, whole * size, depth - 1), size, mask=mask)
        case "struct":
            children = [any_array(chance, whole, depth - 1) for _ in range(chance.randint(1, 2))]
            array = pa.StructArray.from_arrays(children, ["x", "y"][: len(children)], mask=mask)
        case "map":
            keys = pa.array([f"key {i}" for i in range(ends[-1])])
            array = pa.MapArray.from_arrays(pa.array(ends, pa.int32()), keys, any_array(chance, ends[-1], depth - 1))
        case "dictionary":
            items = flat(chance, chance.choice([pa.string(), pa.string_view(), pa.binary(8)]), chance.choice([1, 60]))
            codes = [None if chance.random() < 0.2 else chance.randrange(len(items)) for _ in range(whole)]
            array = pa.DictionaryArray.from_arrays(pa.array(codes, chance.choice([pa.int8(), pa.uint16()])), items)
        case "runs" if whole:
            stops = sorted({whole, *chance.sample(range(1, whole + 1), whole // 2)})
            # pyarrow reads no runs of runs.
            items = flat(chance, chance.choice(FLAT), len(stops))
            array = pa.RunEndEncodedArray.from_arrays(pa.array(stops, chance.choice([pa.int16(), pa.int64()])), items)
        case "union":
            array = any_union(chance, whole, depth)
        case _:
            array = flat(chance, chance.choice(FLAT), whole)
    return array.slice(before, count)


def any_union(chance: random.Random, count: int, depth: int) -> pa.Array:
    nullable, dense = chance.random() < 0.6, chance.random() < 0.5
    ids = [chance.randrange(2) for _ in range(count)]
    offsets = [ids[:at].count(id) for at, id in enumerate(ids)]

    def child(id: int) -> pa.Array:
        rows = ids.count(id) if dense else count
        return any_array(chance, rows, depth - 1) if nullable else flat(chance, pa.binary(4), rows, nulls=False)

    children = [child(0), child(1)]
    fields = [pa.field(name, part.type, nullable=nullable) for name, part in zip("ab", children, strict=True)]
    data_type = pa.dense_union(fields) if dense else pa.sparse_union(fields)
    codes = [pa.array(ids, pa.int8()).buffers()[1]] + [pa.array(offsets, pa.int32()).buffers()[1]] * dense
    return pa.Array.from_buffers(data_type, count, [None, *codes], 0, 0, children)


GIVE: list[Callable[[pa.Table], Any]] = [
    lambda table: table,
    lambda table: OneArgCapsule(table.to_reader()),
    lambda table: na.ArrayStream(table),
    lambda table: table.to_batches(max_chunksize=4) or table,
]


@pytest.mark.parametrize("seed", range(80))
def test_any_layout_is_carried(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    build = any_array(chance, chance.choice([1, 6, 17]), seed % 4)
    probe = any_array(chance, chance.choice([1, 6, 17]), seed % 4)
    kinds = [kind for kind in chance.sample(KINDS, 4) if extends(kind, build, probe)]
    if not holds_nulls(build.type):
        build = pa.StructArray.from_arrays([build], ["inner"])
    check(build, probe, kinds, tmp_path, chance.choice(GIVE))


def holds_nulls(data_type: pa.DataType) -> bool:
    """As documented: no nulls are added to a union or run-end column without a nullable child."""
    if pa.types.is_union(data_type):
        return any(field.nullable and holds_nulls(field.type) for field in data_type)
    return True


def extends(how: str, build: pa.Array, probe: pa.Array) -> bool:
    return how not in ("right", "full") or holds_nulls(probe.type)


def test_outputs_own_their_bytes(pool: prejoin.MemoryPool) -> None:
    """S23: an output that is kept holds neither build nor charge; `to_table` holds both (S24)."""
    build = prejoin.prepare(pa.table({"k": [1, 2], "s": ["one", "two"]}), "k", pool=pool)
    joined = prejoin.join(pa.record_batch({"k": [1, 2]}), build)
    table = build.to_table()
    held = pool.reserved
    del build
    gc.collect()
    assert pool.reserved == held
    del table
    gc.collect()
    assert pool.reserved == 0
    assert joined["s"].to_pylist() == ["one", "two"]
