"""Star joins beside chains of joins: the flights of the demo, one to eight legs, and polars.

    python benches/star.py [--seconds 1.0]

Both ways are timed in turn on the same batches, so that other load on the machine hits both. A figure is the mean over the
batches of the least time that each of them took; the ratio is that of two such figures of one run.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

# Read when polars is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "2")

import numpy as np
import polars as pl
import pyarrow as pa

import prejoin
from prejoin import demo

Way = Callable[[Any], Any]


def least(ways: Sequence[Way], batches: Sequence[Any], seconds: float) -> list[float]:
    """Microseconds per batch of each way."""
    best = [[float("inf")] * len(batches) for _ in ways]
    end = time.perf_counter() + seconds * len(ways)
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for i, batch in enumerate(batches):
            for way, times in zip(ways, best, strict=True):
                start = time.perf_counter()
                result = way(batch)
                times[i] = min(times[i], time.perf_counter() - start)
                del result
        rounds += 1
    return [sum(times) / len(times) * 1e6 for times in best]


def flights(seconds: float) -> None:
    """The four joins of the demo: a batch of 4,096 rows, and the whole table in one call."""
    tables, steps = demo.load_tables(), demo.steps()
    builds = [prejoin.prepare(tables[step.table], list(step.on.values())) for step in steps]
    legs = {
        step.table: prejoin.Leg(build, step.on, suffix=step.suffix) for step, build in zip(steps, builds, strict=True)
    }
    star, lookups = prejoin.StarJoin(legs), prejoin.StarJoin(legs, select=[])

    def chain(rows: Any) -> Any:
        for step, build in zip(steps, builds, strict=True):
            rows = prejoin.join(rows, build, on=step.on, suffix=step.suffix)
        return rows

    batches = Random(1).sample(tables["flights"].to_batches(max_chunksize=4096)[:-1], 20)
    assert all(star(batch).equals(chain(batch)) for batch in batches)
    single = [
        (lambda leg: lambda rows: leg(rows))(prejoin.StarJoin({name: leg}, select=[])) for name, leg in legs.items()
    ]
    ways: list[Way] = [chain, star, lookups, *single]
    one, all_at_once, keys, *each = least(ways, batches, seconds)
    print("demo's flights, 4,096 rows a batch:")
    print(f"  chain {one:,.0f} us, star {all_at_once:,.0f} us: {all_at_once / one:.2f}")
    parts = ", ".join(f"{name} {time:,.0f}" for name, time in zip(legs, each, strict=True))
    print(f"  the star's look-ups alone {keys:,.0f} us; each leg by itself on all rows: {parts}")

    frames = {name: pl.DataFrame(table) for name, table in tables.items()}

    def by_polars(rows: Any) -> Any:
        for step in steps:
            left, right = list(step.on), list(step.on.values())
            rows = rows.join(
                frames[step.table], left_on=left, right_on=right, suffix=step.suffix, maintain_order="left_right"
            )
        return rows

    assert by_polars(frames["flights"]).height == star(tables["flights"]).num_rows
    whole = tables["flights"].combine_chunks()
    batch = whole.to_batches()[0]
    per = 4096 / whole.num_rows
    ways = [
        lambda _: star(batch),
        lambda _: star(whole),
        lambda _: chain(whole),
        lambda _: by_polars(frames["flights"]),
    ]
    figures = [figure * per for figure in least(ways, [None], seconds)]
    print("the whole table in one call, us per 4,096 rows:")
    names = ("star, one batch", "star, a table", "chain, a table", f"polars, {pl.thread_pool_size()} threads")
    print("  " + ", ".join(f"{name} {figure:,.0f}" for name, figure in zip(names, figures, strict=True)))


def int_keys(seconds: float) -> None:
    """The demo's four joins with the same rows and columns, each by one int64 key instead of texts and times."""
    tables, steps = demo.load_tables(), demo.steps()
    flights, builds = tables["flights"], []
    for step in steps:
        frame = pl.DataFrame(tables[step.table])
        keys = frame.select(step.on.values()).with_row_index("id").with_columns(pl.col("id").cast(pl.Int64) * 17)
        found = pl.DataFrame(flights.select(list(step.on))).join(
            keys, left_on=list(step.on), right_on=list(step.on.values()), how="left", maintain_order="left"
        )
        flights = flights.append_column(f"{step.table}_id", found["id"].to_arrow())
        rows = tables[step.table].append_column(f"{step.table}_id", keys["id"].to_arrow())
        builds.append(prejoin.prepare(rows, f"{step.table}_id"))
    star = prejoin.StarJoin([prejoin.Leg(b, suffix=s.suffix) for s, b in zip(steps, builds, strict=True)])

    def chain(rows: Any) -> Any:
        for step, build in zip(steps, builds, strict=True):
            rows = prejoin.join(rows, build, suffix=step.suffix)
        return rows

    batches = Random(1).sample(flights.to_batches(max_chunksize=4096)[:-1], 20)
    assert all(star(batch).equals(chain(batch)) for batch in batches)
    one, all_at_once = least([chain, star], batches, seconds)
    print("the same with four single int64 keys, 4,096 rows a batch:")
    print(f"  chain {one:,.0f} us, star {all_at_once:,.0f} us: {all_at_once / one:.2f}")


def tables_of(legs: int, build_rows: int) -> list[tuple[str, prejoin.PreparedBuild]]:
    """Builds with an int64 key and two int64 columns."""
    made = []
    for leg in range(legs):
        order = np.random.default_rng(leg).permutation(build_rows)
        rows = pa.table({f"k{leg}": order * 17, f"a{leg}": order, f"b{leg}": order + 1})
        made.append((f"k{leg}", prejoin.prepare(rows, f"k{leg}")))
    return made


def probe_of(legs: int, rows: int, build_rows: int, seed: int) -> pa.RecordBatch:
    """A key for each leg and two values; nine keys of ten match."""
    random = np.random.default_rng(seed)
    columns = {f"k{leg}": random.integers(0, build_rows * 10 // 9, rows) * 17 for leg in range(legs)}
    return pa.record_batch(columns | {"v": random.integers(0, 100, rows), "w": random.random(rows)})


def by_legs(seconds: float) -> None:
    """One to eight legs of single int64 keys, 64 to 1M probe rows; 65,536 build rows each."""
    build_rows = 65_536
    print("star / chain, us a batch: single int64 keys, 65,536 build rows a leg, 9 of 10 match in each")
    sizes = (64, 4_096, 65_536, 1_000_000)
    print("  legs " + "".join(f"{size:>30,} rows" for size in sizes))
    for legs in (1, 2, 4, 8):
        builds = tables_of(legs, build_rows)
        star = prejoin.StarJoin([build for _, build in builds])

        def chain(rows: Any, builds: list[tuple[str, prejoin.PreparedBuild]] = builds) -> Any:
            for _, build in builds:
                rows = prejoin.join(rows, build)
            return rows

        line = f"  {legs:<5}"
        for size in sizes:
            batches = [probe_of(legs, size, build_rows, seed) for seed in range(20 if size < 100_000 else 1)]
            assert star(batches[0]).equals(chain(batches[0]))
            one, all_at_once = least([chain, star], batches, seconds / 4)
            line += f"{all_at_once:>14,.0f} / {one:>9,.0f} = {all_at_once / one:.2f}"
        print(line, flush=True)


def main() -> None:
    """Prints all figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each way and set of batches")
    options = parser.parse_args()
    flights(options.seconds)
    int_keys(options.seconds)
    by_legs(options.seconds)


if __name__ == "__main__":
    main()
