"""Ctrl-C and signal handlers that raise end preparing and joining, and everything is given back."""

from __future__ import annotations

import _thread
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import prejoin


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def endless(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    while True:
        yield batch


class InC:
    """So many batches that reading them takes seconds, and no Python code runs between them."""

    def __init__(self) -> None:
        chunk = pa.array([1], pa.int64())
        self.table = pa.table({"k": pa.chunked_array([chunk] * 1_000_000)})

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        assert requested_schema is None
        return self.table.to_reader().__arrow_c_stream__()


def interrupted(work: Callable[[], Any], begun: Callable[[], bool]) -> None:
    """Runs `work` in the main thread and presses Ctrl-C once it has begun."""

    def interrupt() -> None:
        while not begun():
            time.sleep(0.001)
        _thread.interrupt_main()

    presser = threading.Thread(target=interrupt, daemon=True)
    presser.start()
    ended = []

    def run() -> None:
        work()
        ended.append(True)
        presser.join()
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert not ended


SOURCES_TO_INTERRUPT = {"Python": lambda: endless(pa.record_batch({"k": [1]})), "C": InC}


@pytest.mark.parametrize("make", SOURCES_TO_INTERRUPT.values(), ids=SOURCES_TO_INTERRUPT)
def test_ctrl_c_ends_preparing(make: Callable[[], Any], pool: prejoin.MemoryPool) -> None:
    """S7, S20: while batches are pulled; everything is given back."""
    interrupted(lambda: prejoin.prepare(make(), "k", pool=pool), lambda: pool.reserved > 0)
    gc.collect()
    assert pool.reserved == 0


@pytest.mark.parametrize("make", SOURCES_TO_INTERRUPT.values(), ids=SOURCES_TO_INTERRUPT)
def test_ctrl_c_ends_a_join(make: Callable[[], Any]) -> None:
    """S7: while nothing comes out; the same join runs again."""
    build = prejoin.prepare(pa.table({"k": [-1]}), "k")
    join = prejoin.HashJoin(build.schema, make(), "k").with_prepared_build(build)
    reader = join.execute()
    interrupted(reader.read_all, lambda: join.metrics()["input_batches"] > 0)
    assert join.replace(probe=pa.table({"k": [-1]})).execute().read_all().num_rows == 1


def test_ctrl_c_ends_one_large_batch() -> None:
    """While a single batch is joined into hundreds of millions of rows, of which none is kept."""
    build = prejoin.prepare(pa.table({"k": pa.array([1] * 30_000, pa.int64())}), "k")
    probe = pa.record_batch({"k": pa.array([1] * 30_000, pa.int64())})
    join = prejoin.HashJoin(build.schema, probe.schema, "k", projection=[]).with_prepared_build(build)
    session = join.open()
    interrupted(lambda: session.push(probe), lambda: join.metrics()["input_batches"] > 0)


def test_a_handler_that_raises_ends_the_work() -> None:
    """Whatever the handler raises is what the caller sees."""

    class AlarmError(Exception):
        pass

    def ring(*_: Any) -> None:
        raise AlarmError

    def source() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"k": [1]})
        signal.raise_signal(signal.SIGUSR1)
        yield pa.record_batch({"k": [1]})

    before = signal.signal(signal.SIGUSR1, ring)
    try:
        with pytest.raises(AlarmError):
            prejoin.prepare(source(), "k")
    finally:
        signal.signal(signal.SIGUSR1, before)
