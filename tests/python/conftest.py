"""Fixtures that several files use."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import prejoin
from commands import EVENTS, USERS, write
from prejoin.demo import load_tables


@pytest.fixture(scope="session")
def flights_data() -> dict[str, pa.Table]:
    return load_tables()


@pytest.fixture
def pool() -> Iterator[prejoin.MemoryPool]:
    """A pool that must be empty after the test, when all its objects are gone (S20)."""
    pool = prejoin.MemoryPool(1 << 30)
    yield pool
    gc.collect()
    assert pool.reserved == 0


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write(USERS, tmp_path / "users.parquet")
    write(EVENTS, tmp_path / "events.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A join that takes seconds: 10,000,000 probe rows."""
    tmp_path = tmp_path_factory.mktemp("large")
    keys = list(range(200_000))
    write(pa.table({"id": keys, "v": [f"value {key}" for key in keys]}), tmp_path / "build.parquet")
    table = pa.table({"id": keys * 5, "w": keys * 5})
    with pa.parquet.ParquetWriter(tmp_path / "probe.parquet", table.schema) as writer:
        for _ in range(10):
            writer.write_table(table)
    return tmp_path
