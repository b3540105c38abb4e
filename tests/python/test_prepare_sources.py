"""Preparing from Python sources: what is charged, what is shared, and what is given back."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import prejoin
from foreign import OneArgCapsule, misaligned

ROWS = 65_536
KEYS = pa.array([None if i % 11 == 5 else i * 32 for i in range(ROWS)], pa.int64())
PAYLOAD = pa.array(range(ROWS), pa.int64())
DECIMALS = pa.array([decimal.Decimal(i) for i in range(ROWS)], pa.decimal128(20, 0))


def batches(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    return [table.slice(start, rows).to_batches()[0] for start in range(0, table.num_rows, rows)]


@pytest.mark.parametrize("rows", [32, 64, 8192])
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(lambda: (KEYS, PAYLOAD), id="aligned"),
        pytest.param(lambda: (misaligned(KEYS, 1), misaligned(PAYLOAD, 1)), id="ptr % 8 = 1"),
        pytest.param(lambda: (KEYS, misaligned(DECIMALS, 8)), id="decimal at ptr % 16 = 8"),
    ],
)
def test_many_small_slices_fit_a_small_pool(rows: int, payload: Callable[[], tuple[pa.Array, pa.Array]]) -> None:
    """S16: as `table.slice` batches, also where every one of them must be copied to be aligned."""
    key, value = payload()
    table = pa.table({"k": key, "v": value})
    pool = prejoin.MemoryPool(9 * 2**19)
    build = prejoin.prepare(batches(table, rows), "k", pool=pool)
    assert build.num_rows == ROWS
    assert pool.reserved == build.reserved_bytes
    assert build.to_table().equals(pa.table({"k": KEYS, "v": DECIMALS if value.type == DECIMALS.type else PAYLOAD}))
    del build
    assert pool.reserved == 0


def test_a_single_batch_is_kept_as_it_came() -> None:
    """S15: same addresses; but a small slice of a large allocation is copied, so that it does not keep all of it."""
    table = pa.table({"k": PAYLOAD, "v": PAYLOAD.cast(pa.string())})
    pool = prejoin.MemoryPool()
    build = prejoin.prepare(table.to_batches()[0], "k", pool=pool)
    for name in ("k", "v"):
        kept, given = build.to_table()[name].chunk(0).buffers(), table[name].chunk(0).buffers()
        assert [b and b.address for b in kept][1:] == [b and b.address for b in given][1:]
    part = prejoin.prepare(table.slice(100, 32), "k", pool=pool)
    assert part.reserved_bytes < 8192
    assert part.to_table().equals(table.slice(100, 32))
    del build, part, kept
    assert pool.reserved == 0


class SnappedError(Exception):
    pass


def failing(error: Exception) -> Iterator[pa.RecordBatch]:
    yield from batches(pa.table({"k": PAYLOAD}), 8192)[:3]
    raise error


def test_a_source_that_fails_gives_everything_back(pool: prejoin.MemoryPool) -> None:
    """S8, S20: the very exception that was raised, and the pool as before."""
    schema = pa.schema([("k", pa.int64())])
    error = SnappedError("the producer's own")
    for source in (failing(error), pa.RecordBatchReader.from_batches(schema, failing(error))):
        with pytest.raises(SnappedError) as caught:
            prejoin.prepare(source, "k", pool=pool)
        assert caught.value is error
        assert pool.reserved == 0
    capsule = OneArgCapsule(pa.RecordBatchReader.from_batches(schema, failing(error)))
    with pytest.raises(prejoin.ExecutionError, match="the producer's own"):
        prejoin.prepare(capsule, "k", pool=pool)
    assert pool.reserved == 0
    assert pool.peak > 0


def test_a_later_batch_of_another_schema_is_refused(pool: prejoin.MemoryPool) -> None:
    """S2, S20."""
    source = [pa.record_batch({"k": PAYLOAD}), pa.record_batch({"k": pa.array([1], pa.int8())})]
    with pytest.raises(prejoin.PlanError, match=r'"k" of batch 1 .* Int8, .* Int64'):
        prejoin.prepare(source, "k", pool=pool)
    assert pool.reserved == 0


def test_a_pool_that_is_too_small_says_so() -> None:
    """S20: what was asked, what is used, the limit."""
    table = pa.table({"k": misaligned(PAYLOAD, 1)})
    for limit in (0, 1000, 600_000):
        pool = prejoin.MemoryPool(limit)
        with pytest.raises(prejoin.ResourcesExhausted, match=rf"asked for \d+ bytes, \d+ of {limit} bytes are in use"):
            prejoin.prepare(batches(table, 8192), "k", pool=pool)
        assert pool.reserved == 0


def test_a_refused_source_was_not_read() -> None:
    """S2: wrong requests are refused before the source is asked for its first batch."""
    asked: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        asked.append(1)
        yield pa.record_batch({"k": [1]})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("k", pa.int64())]), source())
    with pytest.raises(prejoin.PlanError, match='no column "x"'):
        prejoin.prepare(reader, "x")
    assert not asked
    assert prejoin.prepare(reader, "k").num_rows == 1


def test_columns_of_type_null() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"k": [1, 2], "n": [None, None]})
    build = prejoin.prepare(frame, "k")
    assert build.to_table().column("n").to_pylist() == [None, None]
    joined = prejoin.join(frame, build)
    assert joined.to_dict(as_series=False) == {"k": [1, 2], "n": [None, None], "n_right": [None, None]}
