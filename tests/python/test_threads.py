"""Threads: many probe one prepared build, others run meanwhile, and no lock is held while Python code runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pyarrow as pa

import prejoin


def test_eight_threads_probe_one_handle(pool: prejoin.MemoryPool) -> None:
    """S34: each thread has its own probe and its own streams, and gets the right rows."""
    rows, threads, batches = 20_000, 8, 25
    keys = pa.array([i * 3 % rows for i in range(rows)], pa.int64())
    table = pa.table({"k": keys, "v": pa.array([f"v{i}" for i in range(rows)])})
    prepared = prejoin.prepare(table, "k", pool=pool)
    value = {key: f"v{i}" for i, key in enumerate(keys.to_pylist()) if i < rows}
    start = threading.Barrier(threads)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            start.wait()
            for step in range(batches):
                probe = [number * 31 + step * 17 + i * 13 for i in range(2000)]
                # Odd threads stream, even ones join batch by batch.
                batch = pa.record_batch({"k": pa.array(probe, pa.int64())})
                output = prejoin.join(iter([batch, batch]) if number % 2 else batch, prepared)
                got = output.read_all() if isinstance(output, pa.RecordBatchReader) else output
                expected = [(key, value[key]) for key in probe if key in value] * (2 if number % 2 else 1)
                assert list(zip(got["k"].to_pylist(), got["v"].to_pylist(), strict=True)) == expected
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures[0]
    assert pool.reserved == prepared.reserved_bytes


def test_other_threads_run_meanwhile() -> None:
    """Long work runs without the interpreter lock: a thread of Python makes steps between its begin and its end."""
    count = [0]
    stop = threading.Event()

    def step() -> None:
        while not stop.is_set():
            count[0] += 1
            time.sleep(0.0005)

    keys = pa.array([(i * 2_654_435_761) % (1 << 40) for i in range(300_000)], pa.int64())
    batch = pa.record_batch({"k": keys})
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # nobody is asked to give the lock away: the thread steps when we let go
    thread = threading.Thread(target=step)
    try:
        thread.start()
        before = count[0]
        build = prejoin.prepare(batch, "k")
        during_prepare = count[0]
        joined = prejoin.join(batch, build)
        during_join = count[0]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert before < during_prepare < during_join
    assert joined.num_rows == 300_000


def test_a_source_may_use_the_pool_and_the_build_of_its_caller(pool: prejoin.MemoryPool) -> None:
    """No lock of ours is held while Python code runs: it may prepare, join and change on its own."""
    build = prejoin.prepare(pa.table({"k": [1, 2]}), "k", pool=pool)
    join = prejoin.HashJoin(build.schema, build.schema, "k")

    def source(task: prejoin.HashJoin | None = None) -> Iterator[pa.RecordBatch]:
        inner = prejoin.prepare(prejoin.join(pa.table({"k": [2]}), build), "k", pool=pool)
        assert prejoin.join(pa.record_batch({"k": [2]}), inner).num_rows == 1
        if task is not None:
            task.limit = 5
            assert task.metrics()["output_rows"] == 0
            assert task(pa.record_batch({"k": [1]})).num_rows == 1
        yield pa.record_batch({"k": [1, 3]})

    outer = prejoin.prepare(source(), "k", pool=pool)
    assert outer.num_rows == 2
    tasks: list[prejoin.HashJoin] = []
    probe = prejoin.Source(lambda _: source(tasks[0]), schema=build.schema, partitions=1)
    tasks.append(join.replace(probe=probe).with_prepared_build(build))
    assert tasks[0].execute().read_all().num_rows == 1
    tasks.clear()  # the source refers to its own join
