"""Rows as dicts and feature matrices: `lookup_rows`, a star of dicts, `lookup_numpy`.

    python benches/rows.py [--seconds 1.0]

All ways of a line are timed in turn, so that other load on the machine hits each of them; a figure is the least time of one
call, a ratio that of two such figures of one run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from timing import bar, least

import prejoin

Call = Callable[[], Any]
Rows = list[dict[str, Any]]


def lookups(rows: int, seconds: float) -> None:
    """1,000 keys, nine of ten of which are held: a text and a number of each."""
    random = np.random.default_rng(1)
    held = random.permutation(rows * 2)[:rows]
    table = pa.table({"id": held, "name": [f"name {i}" for i in range(rows)], "score": random.random(rows)})
    build = prejoin.prepare(table, "id")
    by_id = {row["id"]: row for row in table.to_pylist()}
    absent = [int(key) for key in random.integers(rows * 2, rows * 3, 100)]
    keys = [int(key) for key in random.choice(held, 900)] + absent
    random.shuffle(keys)

    def loop() -> Rows:
        found = []
        for key in keys:
            row = by_id.get(key)
            if row is None:
                found.append({"name": None, "score": None})
            else:
                found.append({"name": row["name"], "score": row["score"]})
        return found

    calls: dict[str, Call] = {
        "lookup_rows": lambda: build.lookup_rows(keys, ["name", "score"]),
        "a loop over a dict of rows": loop,
        "lookup(..).to_pylist()": lambda: build.lookup(keys, ["name", "score"]).to_pylist(),
    }
    assert calls["lookup_rows"]() == loop() == calls["lookup(..).to_pylist()"]()
    times = least(calls, seconds)
    print(f"1,000 keys of {rows:,}, two columns, microseconds:")
    print("  " + ", ".join(f"{name} {taken:,.0f}" for name, taken in times.items()))
    bar("lookup_rows / loop", times["lookup_rows"] / times["a loop over a dict of rows"], 0.8)


def enrich(events: int, seconds: float) -> None:
    """Events of six names through four tables: each leg by its own key, three columns of each."""
    random = np.random.default_rng(2)
    sizes = {"user": 100_000, "shop": 5_000, "item": 50_000, "country": 200}
    tables = {
        name: pa.table(
            {
                f"{name}_id": range(size),
                f"{name}_name": [f"{name} {i}" for i in range(size)],
                f"{name}_rank": random.integers(0, 1000, size),
                f"{name}_score": random.random(size),
            }
        )
        for name, size in sizes.items()
    }
    builds = {name: prejoin.prepare(table, f"{name}_id") for name, table in tables.items()}
    ids = {f"{name}_id": random.integers(0, size * 11 // 10, events) for name, size in sizes.items()}
    rows: Rows = [
        {"event": f"e{at}", "at": at} | {name: int(keys[at]) for name, keys in ids.items()} for at in range(events)
    ]
    star = prejoin.StarJoin([prejoin.Leg(build, how="left") for build in builds.values()])

    def by_columns(joined: Callable[[pa.Table], Any]) -> Rows:
        return joined(pa.Table.from_pylist(rows)).to_pylist()

    def chain(table: pa.Table) -> pa.Table:
        for build in builds.values():
            table = prejoin.join(table, build, how="left")
        return table

    names = {
        name: [column for column in table.column_names if column != f"{name}_id"] for name, table in tables.items()
    }
    by_id = {name: {row.pop(f"{name}_id"): row for row in table.to_pylist()} for name, table in tables.items()}
    missing = {name: dict.fromkeys(columns) for name, columns in names.items()}

    def dicts() -> Rows:
        found = []
        for row in rows:
            new = dict(row)
            for name, by in by_id.items():
                new.update(by.get(row[f"{name}_id"], missing[name]))
            found.append(new)
        return found

    calls: dict[str, Call] = {
        "StarJoin of dicts": lambda: star(rows),
        "from_pylist, chain, to_pylist": lambda: by_columns(chain),
        "from_pylist, StarJoin, to_pylist": lambda: by_columns(star),
        "four dicts of rows": dicts,
    }
    expected = dicts()
    assert all(call() == expected for call in calls.values())
    times = least(calls, seconds)
    print(f"{events:,} dicts through four tables, microseconds:")
    print("  " + ", ".join(f"{name} {taken:,.0f}" for name, taken in times.items()))
    ours = times["StarJoin of dicts"]
    for other, most in (("from_pylist, chain, to_pylist", 0.5), ("four dicts of rows", 1.0)):
        if events == 1_000:
            bar(f"StarJoin of dicts / {other}", ours / times[other], most)
        else:
            print(f"  StarJoin of dicts / {other}: {ours / times[other]:.2f}")


def matrix(rows: int, keys: int, columns: int, seconds: float) -> None:
    """Features of float32 for many keys, beside numpy's take from each column with rows that are known."""
    random = np.random.default_rng(3)
    held = random.permutation(rows * 2)[:rows]
    features = {f"f{i}": random.random(rows, np.float32) for i in range(columns)}
    build = prejoin.prepare(pa.table({"id": held} | features), "id")
    known = random.integers(0, rows, keys)
    asked, names, arrays = held[known], list(features), list(features.values())
    out = np.empty((keys, columns), np.float32)

    def take() -> np.ndarray:
        made = np.empty((keys, columns), np.float32)
        for at, array in enumerate(arrays):
            made[:, at] = array.take(known)
        return made

    calls: dict[str, Call] = {
        "lookup_numpy": lambda: build.lookup_numpy(asked, names),
        "with out=": lambda: build.lookup_numpy(asked, names, out=out),
        "numpy take of known rows": take,
        "lookup, to_numpy": lambda: np.column_stack([c.to_numpy() for c in build.lookup(asked, names).columns]),
    }
    assert all(np.array_equal(call(), take()) for call in calls.values())
    times = least(calls, seconds)
    print(f"matrix of {keys:,} keys x {columns} float32 of {rows:,} rows, microseconds:")
    print("  " + ", ".join(f"{name} {taken:,.0f}" for name, taken in times.items()))
    bar("lookup_numpy / take", times["lookup_numpy"] / times["numpy take of known rows"], 1.3)


def main() -> None:
    """Prints all figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each figure")
    options = parser.parse_args()
    for rows in (10_000, 1_000_000):
        lookups(rows, options.seconds)
    for events in (1, 50, 1_000):
        enrich(events, options.seconds)
    for rows in (100_000, 1_000_000):
        matrix(rows, 20_000, 32, options.seconds)


if __name__ == "__main__":
    main()
