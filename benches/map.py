"""Values by key: `map`, `in` and `[]` beside `lookup`, polars `replace_strict` and pandas `map`.

    python benches/map.py [--seconds 1.0] [--rows 10000000]

All ways of a line are timed in turn, so that other load on the machine hits each of them; a figure is the least time of one
call, a ratio that of two such figures of one run.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

# Read when polars is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "2")

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from timing import bar, least

import prejoin

Call = Callable[[], Any]


def one_key(rows: int, seconds: float) -> None:
    """One key of a held mapping."""
    random = np.random.default_rng(1)
    keys = random.permutation(rows * 4)[:rows]
    held = prejoin.prepare(pa.table({"k": keys, "v": random.random(rows)}), "k")
    single = prejoin.prepare(pa.table({"k": keys[:1_000_000]}), "k")
    key, absent = int(keys[rows // 2]), rows * 5
    inside = int(keys[500_000])
    times = least(
        {
            "map([key])": lambda: held.map([key], "v"),
            "map([absent], default)": lambda: held.map([absent], "v", 0.0),
            "in": lambda: key in held,
            "not in": lambda: absent in held,
            "[] of one column": lambda: single[inside],
            "[] of two columns": lambda: held[key],
            "get": lambda: held.get(key),
        },
        seconds,
        repeat=1000,
    )
    print(f"one key of {rows:,}, microseconds:")
    print("  " + ", ".join(f"{name} {taken:.2f}" for name, taken in times.items()))
    bar("map of one key", times["map([key])"], 5.0)
    bar("in", times["in"], 1.2)
    bar("[] of one column", times["[] of one column"], 1.2)


def many_keys(asked: int, seconds: float) -> None:
    """Many keys of a mapping of a million."""
    random = np.random.default_rng(2)
    rows = 1_000_000
    held_keys = random.permutation(rows * 2)[:rows]
    for kind, values in (
        ("int64", random.integers(0, 1000, rows)),
        ("text", [f"value {i % 1000}" for i in range(rows)]),
    ):
        table = pa.table({"k": held_keys, "v": values})
        build = prejoin.prepare(table, "k")
        # Of its own frame, so that texts are views, as in polars' columns.
        build_of_polars = prejoin.prepare(pl.DataFrame(table), "k")
        default = 0 if kind == "int64" else "-"
        keys = random.integers(0, rows * 2, asked)
        arrow, of_polars, of_pandas = pa.array(keys), pl.Series(keys), pd.Series(keys)
        old, new = pl.Series(held_keys), pl.Series(table["v"])
        mapping = pd.Series(table["v"].to_pandas().to_numpy(), held_keys)
        calls: dict[str, Call] = {
            "lookup": lambda build=build, arrow=arrow: build.lookup(arrow, ["v"]),
            "map": lambda build=build, arrow=arrow: build.map(arrow, "v"),
            "map with default": lambda build=build, arrow=arrow, default=default: build.map(arrow, "v", default),
            "map of a polars series": lambda build=build_of_polars, keys=of_polars, default=default: build.map(
                keys, "v", default
            ),
            "replace_strict": lambda keys=of_polars, old=old, new=new, default=default: keys.replace_strict(
                old, new, default=default
            ),
            "map of a pandas series": lambda build=build, keys=of_pandas: build.map(keys, "v"),
            "pandas map": lambda keys=of_pandas, mapping=mapping: keys.map(mapping),
        }
        assert calls["map of a polars series"]().equals(calls["replace_strict"]())
        times = least(calls, seconds)
        print(f"{asked:,} keys of {rows:,} to {kind}, milliseconds:")
        print("  " + ", ".join(f"{name} {taken / 1000:,.2f}" for name, taken in times.items()))
        bar("map / lookup", times["map"] / times["lookup"], 1.2)
        bar("map / replace_strict", times["map of a polars series"] / times["replace_strict"], 0.2)
        bar("map / pandas map", times["map of a pandas series"] / times["pandas map"], 0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each figure")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the mapping that is asked for one key")
    options = parser.parse_args()
    one_key(options.rows, options.seconds)
    for asked in (10_000, 1_000_000):
        many_keys(asked, options.seconds)


if __name__ == "__main__":
    main()
