"""Compares saved builds with builds in memory: the cost of opening one, and the speed of probing in place.

    python benches/saved.py [--rows 1000000] [--seconds 5]

Builds in memory and mapped builds are probed in turn with the same batches, so that other load on the machine affects
both; the ratio is that of the medians. For opening, processor time is shown: it uses one thread and waits for nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import prejoin

PROBE_ROWS = 65_536
BATCHES = 16


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that `work` takes; its result is dropped outside."""
    start = clock()
    result = work()
    took = clock() - start
    del result
    return took


def builds(rows: int) -> dict[str, tuple[pa.Table, list[str]]]:
    """Tables with the keys of each kind of index, a number and a text."""
    ids, texts = list(range(rows)), [f"user number {i}" for i in range(rows)]
    order = random.Random(1).sample(ids, rows)
    payload = {"score": [i / 7 for i in ids], "name": texts}
    return {
        "dense": (pa.table({"id": order, **payload}), ["id"]),
        "hashed": (pa.table({"id": [i * 1_000_003 for i in order], **payload}), ["id"]),
        "bytes": (pa.table({"id": [f"key-{i:08}" for i in order], **payload}), ["id"]),
        "long bytes": (pa.table({"id": [f"a longer key of {i:08} bytes" for i in order], **payload}), ["id"]),
        "rows": (pa.table({"id": order, "part": [f"p{i % 7}" for i in order], **payload}), ["id", "part"]),
    }


def probes(table: pa.Table, on: list[str]) -> list[pa.RecordBatch]:
    """Batches of keys from all parts of the table."""
    pick = random.Random(2)
    keys = table.select(on)
    rows = [[pick.randrange(table.num_rows) for _ in range(PROBE_ROWS)] for _ in range(BATCHES)]
    return [keys.take(some).combine_chunks().to_batches()[0] for some in rows]


def main() -> None:
    """Prints one line for each kind of index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    print(f"{options.rows} rows; probe batches of {PROBE_ROWS} rows, all matching")
    print("build          MiB  save ms  open ms  ms/MiB  unverified us  in memory ns/row  mapped ns/row  ratio")
    with tempfile.TemporaryDirectory() as directory:
        for name, (table, on) in builds(options.rows).items():
            path = os.path.join(directory, name)
            build = prejoin.prepare(table, on)
            saving = seconds(lambda: build.save(path))
            size = os.path.getsize(path) / (1 << 20)
            opening = min(seconds(lambda: prejoin.open(path), time.process_time) for _ in range(5))
            lazily = min(seconds(lambda: prejoin.open(path, verify=False), time.process_time) for _ in range(5))
            opened = prejoin.open(path)
            took: dict[bool, list[float]] = {False: [], True: []}
            batches = probes(table, on)
            end = time.perf_counter() + options.seconds
            turn = 0
            while time.perf_counter() < end:
                batch, mapped = batches[turn // 2 % BATCHES], turn % 2 == 1
                took[mapped].append(seconds(lambda: prejoin.join(batch, opened if mapped else build)))
                turn += 1
            # The first round is not measured: it loads the pages.
            inside, outside = (statistics.median(took[mapped][BATCHES:]) / PROBE_ROWS * 1e9 for mapped in took)
            print(
                f"{name:11} {size:6.1f} {saving * 1e3:8.0f} {opening * 1e3:8.1f} {opening * 1e3 / size:7.3f} "
                f"{lazily * 1e6:14.0f} {inside:17.1f} {outside:14.1f} {outside / inside:6.2f}"
            )


if __name__ == "__main__":
    main()
