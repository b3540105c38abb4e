"""Many threads probe one prepared build."""

from __future__ import annotations

import threading

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
