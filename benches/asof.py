"""As-of joins beside other engines, in one run. Build the extension by `maturin develop --release` first.

    python benches/asof.py

Prints the best of several times, and ratios to prejoin. The other engines get sides that are sorted already where they need
them sorted, which is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import prejoin


def best(call: Callable[[], Any], seconds: float) -> float:
    """The least time of a call, in seconds; it is repeated until so much time is over."""
    least, end = float("inf"), time.perf_counter() + seconds
    for n in range(10_000):
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
        if n >= 2 and time.perf_counter() > end:
            break
    return least


def quotes(rows: int, keys: int, seed: int) -> pa.Table:
    """Rows of random keys and times of microseconds, with a value."""
    rng = np.random.default_rng(seed)
    times = pa.array(rng.integers(0, 10**9, rows), pa.timestamp("us"))
    return pa.table({"symbol": rng.integers(0, keys, rows), "ts": times, "bid": rng.random(rows)})


def show(what: str, times: dict[str, float], rows: int) -> None:
    """One line for each engine."""
    print(what)
    for name, seconds in times.items():
        ratio = seconds / times["prejoin"]
        print(f"  {name:32} {seconds * 1e3:10.3f} ms {seconds / rows * 1e9:9.1f} ns/row {ratio:8.1f} x")


def against_peers(probe_rows: int, seconds: float) -> None:
    """Batches of one size against 1,000,000 rows of 10,000 keys."""
    build, probe = quotes(1_000_000, 10_000, 1), quotes(probe_rows, 10_000, 2).drop_columns(["bid"])
    batch = probe.combine_chunks().to_batches()[0]
    ordered = prejoin.prepare(build, on="symbol", order_by="ts")
    latest = prejoin.prepare(build, on="symbol", keep="last")
    right, left = build.to_pandas().sort_values("ts"), probe.to_pandas().sort_values("ts")
    right_pl, left_pl = pl.DataFrame(build).sort("ts"), pl.DataFrame(probe).sort("ts")
    db = duckdb.connect()
    db.register("probe", probe)
    db.register("source", build)
    db.execute("create table build as select * from source order by symbol, ts")
    query = "select * from probe asof left join build using (symbol, ts)"
    times = {
        "prejoin": best(lambda: prejoin.join_asof(batch, ordered), seconds),
        "prejoin, equal keys, keep=last": best(lambda: prejoin.join(batch, latest, how="left"), seconds),
        "pandas.merge_asof": best(lambda: pd.merge_asof(left, right, on="ts", by="symbol"), seconds),
        "polars.join_asof": best(
            lambda: left_pl.join_asof(right_pl, on="ts", by="symbol", check_sortedness=False), seconds
        ),
        "duckdb ASOF": best(lambda: db.sql(query).to_arrow_table(), seconds),
    }
    show(f"{probe_rows:,} probe rows, 1,000,000 build rows of 10,000 keys", times, probe_rows)


def one_group(seconds: float) -> None:
    """10,000 values looked for among 2,000,000 rows without keys."""
    build, probe = quotes(2_000_000, 1, 3), quotes(10_000, 1, 4).drop_columns(["bid", "symbol"])
    batch = probe.combine_chunks().to_batches()[0]
    ordered = prejoin.prepare(build, on=[], order_by="ts")
    sorted_times = np.sort(build["ts"].to_numpy().astype(np.int64))
    wanted = probe["ts"].to_numpy().astype(np.int64)
    right, left = build.to_pandas().sort_values("ts"), probe.to_pandas().sort_values("ts")
    right_pl, left_pl = pl.DataFrame(build).sort("ts"), pl.DataFrame(probe).sort("ts")
    times = {
        "prejoin": best(lambda: prejoin.join_asof(batch, ordered), seconds),
        "prejoin, one output column": best(lambda: prejoin.join_asof(batch, ordered, select=["bid"]), seconds),
        "numpy.searchsorted alone": best(lambda: np.searchsorted(sorted_times, wanted, side="right"), seconds),
        "pandas.merge_asof": best(lambda: pd.merge_asof(left, right, on="ts"), seconds),
        "polars.join_asof": best(lambda: left_pl.join_asof(right_pl, on="ts"), seconds),
    }
    show("10,000 probe rows, one group of 2,000,000 rows", times, 10_000)


def preparing(seconds: float) -> None:
    """What the order adds to preparing."""
    build = quotes(1_000_000, 10_000, 1)
    in_order = build.sort_by("ts")
    times = {
        "prejoin": best(lambda: prejoin.prepare(build, on="symbol"), seconds),
        "prejoin, order_by": best(lambda: prejoin.prepare(build, on="symbol", order_by="ts"), seconds),
        "prejoin, order_by, in order": best(lambda: prejoin.prepare(in_order, on="symbol", order_by="ts"), seconds),
    }
    show("preparing 1,000,000 rows of 10,000 keys", times, 1_000_000)


def main() -> None:
    """All measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement (1)")
    seconds = parser.parse_args().seconds
    against_peers(4_096, seconds)
    against_peers(1_000_000, seconds)
    one_group(seconds)
    preparing(seconds)


if __name__ == "__main__":
    main()
