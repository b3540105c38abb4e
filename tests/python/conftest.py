"""Fixtures that several files use."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pyarrow as pa
import pytest

import prejoin
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
