"""Eight processes probe one saved build, and the host holds its rows and its index only once.

Prints the memory of the processes (proportional set size, in which a page shared by n processes counts 1/n for each)
and that of as many interpreters that only import pyarrow. Exits with status 1 if the difference is more than
`--at-most` copies of the build. Linux only.

    python examples/one_copy_per_host.py --rows 1000000 --processes 8
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from typing import Any

BATCH = 2048


def pss() -> int:
    """Proportional set size of this process in bytes."""
    with open("/proc/self/smaps_rollup") as smaps:
        return next(int(line.split()[1]) * 1024 for line in smaps if line.startswith("Pss:"))


def bare(barrier: Any, results: Any) -> None:
    """A process that imports pyarrow and nothing else."""
    import pyarrow as pa

    pa.table({"id": [1]})
    report(barrier, results, 0)


def probe(path: str, rows: int, number: int, barrier: Any, results: Any) -> None:
    """Opens the build and joins it with twice as many rows as it has."""
    import pyarrow as pa

    import prejoin

    users = prejoin.open(path)
    found = 0
    for start in range(number, 2 * rows, BATCH):
        # Keys from all parts of the build; half of them match.
        ids = [i * 7919 % (2 * rows) for i in range(start, start + BATCH)]
        found += prejoin.join(pa.record_batch({"user_id": ids}), users).num_rows
    report(barrier, results, found)


def report(barrier: Any, results: Any, found: int) -> None:
    """Measures while all processes are alive."""
    barrier.wait()
    results.put((pss(), found))
    barrier.wait()


def run(processes: int, target: Any, *args: Any) -> tuple[int, int]:
    """The sums of the proportional set sizes of so many processes and of the rows that they found."""
    spawn = multiprocessing.get_context("spawn")
    barrier, results = spawn.Barrier(processes), spawn.Queue()
    workers = [
        spawn.Process(target=target, args=(*args, number, barrier, results) if args else (barrier, results))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    measured = [results.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join()
    return sum(size for size, _ in measured), sum(found for _, found in measured)


def main() -> int:
    """Prints the figures; returns 1 if the processes need too much memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--at-most", type=float, default=1.15, metavar="COPIES")
    options = parser.parse_args()
    without, _ = run(options.processes, bare)

    import pyarrow as pa

    import prejoin

    ids = range(options.rows)
    table = pa.table(
        {
            "user_id": ids,
            "name": [f"user number {i}" for i in ids],
            "email": [f"user.number.{i}@mail.example.com" for i in ids],
            "address": [f"{i % 997} Long Street, district {i % 31}, city {i % 1009}" for i in ids],
            "score": [i / 7 for i in ids],
        }
    )
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "users.prejoin")
        prejoin.prepare(table, on="user_id").save(path)
        copy = os.path.getsize(path)
        using, found = run(options.processes, probe, path, options.rows)
    if found == 0:
        raise RuntimeError("no row was found")
    mib = 1 << 20
    more = (using - without) / copy
    print(f"one copy of {options.rows} rows: {copy / mib:.1f} MiB")
    print(f"{options.processes} bare interpreters with pyarrow: {without / mib:.1f} MiB")
    print(f"{options.processes} processes that probe the build: {using / mib:.1f} MiB, {more:.2f} more copies")
    return 0 if more <= options.at_most else 1


if __name__ == "__main__":
    sys.exit(main())
