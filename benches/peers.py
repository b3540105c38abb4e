#!/usr/bin/env python3
"""How fast do prejoin and today's tools join ONE build (dimension) table against MANY probe batches from Python?

Workload: build table (key, payload), probe batch (key, probe_value), inner join on key; the result
(key, payload, probe_value) is Arrow data.  Probe batches arrive as pyarrow RecordBatches; converting them into
the engine's own form, and its result into a pyarrow Table or RecordBatch, is inside the timed region.
Half of the probe rows match: row i has key index (i//2) % rows + (i%2) * rows.

Categories: rebuild   the engine's own join called per batch; the build table is already loaded in the engine
            prepared  the best "prepare once" trick the engine has; preparing and loading is setup_ms
            stream    ONE query over many batches, so that the engine hashes the build table once; the time is
                      (time of 1056 batches - time of 32 batches) / 1024.  Not a call per batch: no answer per
                      batch, no re-use by a second query.  A throughput bound for that engine
            limit     only gathers the three output columns by already known matching indices
            crossing  only brings the batch into the engine and three columns out again, without a join
Kinds of keys: int64 (i * 17: the dense index), random64 (64 random bits), utf8 ("key-" and 8 digits), uuid (16 random
bytes). Build rows are in random order. `first` is the time of the first call after preparing.
Every engine runs in a process of its own, once with 1 thread and once with its default number of threads.
Every result is compared in full with the expected table; a wrong result is an error, not a number.

    make bench-peers                                          # everything; writes docs/performance.md and plots
    python benches/peers.py --engines limit,prejoin           # prejoin beside the least that any join must do
    python benches/peers.py --engines polars,duckdb --kinds int64 --rows 65536 --modes small
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version

SMALL, LARGE, LOW, HIGH = 4096, 1_000_000, 32, 1056
OUT = ["key", "payload", "probe_value"]
SQL = "SELECT p.key AS key, b.payload AS payload, p.probe_value AS probe_value FROM {} p JOIN {} b ON p.key = b.key"


def mix(np, idx):
    """64 random-looking bits of each index (splitmix64)."""
    x = idx.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Case:
    """Build table, probe batches, and for each batch the matching (build row, probe row) indices."""

    def __init__(self, kind, rows, args):
        import numpy as np
        import pyarrow as pa

        self.kind, self.rows, self.pa, self.np = kind, rows, pa, np
        self.is_int = kind in ("int64", "random64")
        rng = np.random.default_rng(args.seed)
        order = rng.permutation(rows) if args.shuffle else np.arange(rows)  # build position -> key index
        self.position = np.argsort(order)  # key index -> build position
        self.build = pa.table({"key": self.keys(order), "payload": pa.array(order * 3 + 1)})
        self.keycol, self.payload = self.build["key"].chunk(0), self.build["payload"].chunk(0)
        self.truth, n = {}, args.batches
        pairs = (
            np.arange(SMALL // 2)[None, :]
            if n == 1
            else rng.permutation(max(rows, n * SMALL // 2))[: n * SMALL // 2].reshape(n, -1)
        )  # a pair is one hit and one miss
        self.small = [self.batch(np.stack([2 * p, 2 * p + 1], axis=1).ravel()) for p in pairs]
        self.large = [self.batch(rng.permutation(LARGE))] if "large" in args.modes else []

    def keys(self, idx):
        pa, np = self.pa, self.np
        if self.kind == "int64":
            return pa.array(idx * 17)
        if self.kind == "utf8":
            return pa.array([f"key-{i:08d}" for i in idx.tolist()])
        low = mix(np, idx)  # a bijection: distinct keys stay distinct
        if self.kind == "random64":
            return pa.array(low.view(np.int64))
        both = np.stack([low, mix(np, idx + (1 << 40))], axis=1)
        return pa.Array.from_buffers(pa.binary(16), len(idx), [None, pa.py_buffer(both.tobytes())])

    def batch(self, i):
        key_index = (i // 2) % self.rows + (i % 2) * self.rows
        batch = self.pa.record_batch({"key": self.keys(key_index), "probe_value": self.pa.array(i + 1_000_003)})
        hit = self.np.flatnonzero(i % 2 == 0)
        self.truth[id(batch)] = self.position[key_index[hit]], hit
        return batch

    def gather(self, batch, build_ix, probe_ix):
        """Output from pyarrow index arrays."""
        return self.pa.record_batch(
            [batch.column(0).take(probe_ix), self.payload.take(build_ix), batch.column(1).take(probe_ix)], names=OUT
        )

    def numpy_gather(self, batch, payload, build_ix, probe_ix):
        """Output from numpy index arrays and a numpy payload (string keys are still taken by pyarrow)."""
        pa, key = self.pa, batch.column(0)
        key = pa.array(key.to_numpy().take(probe_ix)) if self.is_int else key.take(pa.array(probe_ix))
        return pa.record_batch(
            [key, pa.array(payload.take(build_ix)), pa.array(batch.column(1).to_numpy().take(probe_ix))], names=OUT
        )

    def check(self, result, batch):
        assert isinstance(result, (self.pa.Table, self.pa.RecordBatch)), type(result)
        want = self.pa.table(self.gather(batch, *map(self.pa.array, self.truth[id(batch)])))
        got = self.pa.table([result[c] for c in OUT], OUT).cast(want.schema)
        assert got.num_rows == batch.num_rows // 2, f"{got.num_rows} rows"
        assert got.sort_by("probe_value").equals(want.sort_by("probe_value")), "wrong rows"


# Each engine yields (method, category, setup); setup() returns call(batch), for "stream" call(schema, batches).
def limit(case, threads):
    def pyarrow_take():
        index = {k: tuple(map(case.pa.array, v)) for k, v in case.truth.items()}
        return lambda batch: case.gather(batch, *index[id(batch)])

    def numpy_take():
        payload = case.payload.to_numpy()
        return lambda batch: case.numpy_gather(batch, payload, *case.truth[id(batch)])

    yield "pyarrow_take", "limit", pyarrow_take
    yield "numpy_take", "limit", numpy_take


def prejoin(case, threads):
    import prejoin as module

    def join():
        build = module.prepare(case.build, on="key")
        return lambda batch: module.join(batch, build)

    def hashed():
        off = module.Config(perfect_hash_min_density=2.0, perfect_hash_small_range=0)
        build = module.prepare(case.build, on="key", config=off)
        return lambda batch: module.join(batch, build)

    def stream():
        build = module.prepare(case.build, on="key")
        return lambda schema, batches: module.join(case.pa.RecordBatchReader.from_batches(schema, batches), build)

    def rebuild():
        return lambda batch: module.join(batch, module.prepare(case.build, on="key"))

    yield "join", "prepared", join
    if case.kind == "int64":
        yield "join_hashed", "prepared", hashed
    yield "join_reader", "stream", stream
    yield "prepare+join", "rebuild", rebuild


def numpy(case, threads):
    def searchsorted():
        np, keys = case.np, case.keycol.to_numpy()
        order = np.argsort(keys)
        keys, payload = keys[order], case.payload.to_numpy()[order]

        def call(batch):
            probe = batch.column(0).to_numpy()
            at = np.minimum(np.searchsorted(keys, probe), len(keys) - 1)
            hit = np.flatnonzero(keys[at] == probe)
            return case.numpy_gather(batch, payload, at[hit], hit)

        return call

    if case.is_int:
        yield "searchsorted", "prepared", searchsorted


def python(case, threads):
    def dictionary():
        table = dict(zip(case.keycol.to_pylist(), case.payload.to_pylist()))

        def call(batch):
            got = [table.get(k) for k in batch.column(0).to_pylist()]
            hit = case.pa.array([i for i, v in enumerate(got) if v is not None])
            return case.pa.record_batch(
                [
                    batch.column(0).take(hit),
                    case.pa.array([v for v in got if v is not None]),
                    batch.column(1).take(hit),
                ],
                names=OUT,
            )

        return call

    yield "dict", "prepared", dictionary


def pandas(case, threads):
    import pandas as pd

    def merge():
        right = case.build.to_pandas()
        return lambda batch: case.pa.Table.from_pandas(batch.to_pandas().merge(right, on="key"), preserve_index=False)

    def get_indexer(dtype):
        keys = (lambda a: a.to_pandas()) if dtype == "str" else lambda a: a.to_numpy(zero_copy_only=False)
        index, payload = pd.Index(keys(case.keycol), dtype=dtype), case.payload.to_numpy()
        index.get_indexer(index[:1])  # builds the hash table, which the Index keeps

        def call(batch):
            at = index.get_indexer(keys(batch.column(0)))
            hit = case.np.flatnonzero(at >= 0)
            return case.numpy_gather(batch, payload, at[hit], hit)

        return call

    yield "merge", "rebuild", merge
    for dtype in ["int64"] if case.is_int else ["str", "object"] if case.kind == "utf8" else ["object"]:
        yield f"get_indexer_{dtype}", "prepared", lambda: get_indexer(dtype)


def pyarrow(case, threads):
    import pyarrow.acero as ac
    import pyarrow.compute as pc

    pa, build, many = case.pa, case.build, threads != 1

    def index_in(batch):  # hashes the whole value_set on every call
        at = pc.index_in(batch.column(0), value_set=case.keycol)
        return case.gather(batch, at.drop_null(), pc.indices_nonzero(at.is_valid()))

    def stream(schema, batches):
        probe = ac.Declaration(
            "record_batch_reader_source",
            ac.RecordBatchReaderSourceNodeOptions(pa.RecordBatchReader.from_batches(schema, batches)),
        )
        options = ac.HashJoinNodeOptions("inner", ["key"], ["key"], ["key", "probe_value"], ["payload"])
        right = ac.Declaration("table_source", ac.TableSourceNodeOptions(build))
        return ac.Declaration("hashjoin", options, [probe, right]).to_reader(use_threads=many)

    table = lambda batch: pa.Table.from_batches([batch])
    yield "join", "rebuild", lambda: lambda b: table(b).join(build, "key", join_type="inner", use_threads=many)
    yield "join_swapped", "rebuild", lambda: lambda b: build.join(table(b), "key", join_type="inner", use_threads=many)
    yield "index_in", "rebuild", lambda: index_in
    yield "acero_hashjoin", "stream", lambda: stream


def polars(case, threads):
    import polars as pl
    from polars.io.plugins import register_io_source

    arrow = pl.from_arrow

    def join(sort=False):
        build = arrow(case.build).sort("key") if sort else arrow(case.build)  # sort also sets polars' sorted flag
        return lambda batch: arrow(batch).join(build, on="key").to_arrow()

    def search_sorted():
        build = arrow(case.build).sort("key")
        keys, payload, last = build["key"], build["payload"], len(build) - 1

        def call(batch):
            probe = arrow(batch)
            at = keys.search_sorted(probe["key"]).clip(upper_bound=last)
            hit = keys.gather(at) == probe["key"]
            return probe.filter(hit).with_columns(payload.gather(at.filter(hit))).to_arrow()

        return call

    def replace_strict():  # no prepared form: hashes old and new on every call
        build = arrow(case.build)
        new = pl.col("key").replace_strict(build["key"], build["payload"], default=None).alias("payload")
        return lambda batch: arrow(batch).with_columns(new).drop_nulls("payload").to_arrow()

    def categorical():  # interns the keys, also every missing probe key
        build, dtype = arrow(case.build), pl.Categorical(pl.Categories.random())
        held = build["key"].cast(dtype)  # the interned strings live only as long as this
        payload = build["payload"].gather(held.to_physical().arg_sort())

        def call(batch, held=held):
            probe = arrow(batch)
            got = payload.gather(probe["key"].cast(dtype).to_physical(), null_on_oob=True)
            return probe.with_columns(got).drop_nulls("payload").to_arrow()

        return call

    def stream():
        build = arrow(case.build).lazy()

        def call(schema, batches):
            def source(columns, predicate, n_rows, batch_size):
                yield from map(arrow, batches)

            probe = register_io_source(source, schema=arrow(schema.empty_table()).schema)
            joined = probe.join(build, on="key", build_side="force_right")
            return (d.to_arrow() for d in joined.collect_batches(engine="streaming"))

        return call

    yield "join", "rebuild", join
    yield "join_sorted", "rebuild", lambda: join(sort=True)
    yield "replace_strict", "rebuild", replace_strict
    yield "search_sorted", "prepared", search_sorted
    if case.kind == "utf8":
        yield "categorical", "prepared", categorical
    yield "streaming", "stream", stream


def duckdb(case, threads):
    import duckdb as module

    table, sql = lambda batch: case.pa.Table.from_batches([batch]), SQL.format("probe", "build")

    def connect(*statements):
        con = module.connect()
        con.register("arrow_build", case.build)
        for s in [f"SET threads = {threads}"] * bool(threads) + ["CREATE TABLE build AS FROM arrow_build", *statements]:
            con.execute(s)
        return con

    def run(con, sql, batch):
        con.register("probe", table(batch))
        return con.sql(sql).to_arrow_table()

    def join():
        con = connect()
        return lambda batch: run(con, sql, batch)

    def index_prepare():
        con = connect("CREATE UNIQUE INDEX build_key ON build (key)")
        con.register("probe", table(case.small[0]))
        con.execute("PREPARE q AS " + sql)
        return lambda batch: run(con, "EXECUTE q", batch)

    def stream():  # keep the table written last as the build side
        con = connect("SET disabled_optimizers = 'join_order,build_side_probe_side'")

        def call(schema, batches):
            con.register("probe", case.pa.RecordBatchReader.from_batches(schema, batches))
            return con.sql(sql).to_arrow_reader(SMALL)

        return call

    yield "join", "rebuild", join
    yield "art_index_prepare", "prepared", index_prepare
    yield "arrow_stream", "stream", stream


def datafusion(case, threads):
    from datafusion import SessionConfig, SessionContext

    def context(**options):
        config = SessionConfig().with_target_partitions(threads) if threads else SessionConfig()
        for name, value in options.items():
            config = config.set("datafusion.optimizer." + name, value)
        ctx = SessionContext(config)
        ctx.register_record_batches("build", [case.build.to_batches()])
        return ctx

    def query(ctx, sql, batches):
        ctx.deregister_table("probe")
        ctx.register_record_batches("probe", [batches])
        return ctx.sql(sql)

    def join():
        ctx, sql = context(), SQL.format("probe", "build")
        return lambda batch: query(ctx, sql, [batch]).to_arrow_table()

    def stream():  # the left table is hashed: put build there, keep it
        ctx = context(join_reordering="false")
        sql = SQL.format("probe", "build").replace("probe p JOIN build b", "build b JOIN probe p")
        return lambda schema, batches: (b.to_pyarrow() for b in query(ctx, sql, list(batches)).execute_stream())

    yield "join", "rebuild", join
    yield "execute_stream", "stream", stream


def chdb(case, threads, state={}):
    if case.kind == "uuid":  # reads binary columns as text
        return
    import chdb as module

    state.setdefault("con", module.connect(":memory:"))  # one connection per process
    key, id_type, layout, get = (
        ("String", "String", "COMPLEX_KEY_HASHED", "tuple(key)")
        if case.kind == "utf8"
        else ("Int64", "UInt64", "HASHED", "toUInt64(key)")
    )

    def setup(sql, *ddl):
        build = case.build
        for s in [
            "DROP DICTIONARY IF EXISTS lookup",
            "DROP TABLE IF EXISTS joined",
            "DROP TABLE IF EXISTS build",
            f"CREATE TABLE build (key {key}, payload Int64) ENGINE = Memory",
            "INSERT INTO build SELECT key, payload FROM Python(build)",
            *ddl,
        ]:
            state["con"].query(s, "ArrowTable")
        sql += f" SETTINGS max_threads = {threads}" if threads else ""

        def call(probe):
            probe = case.pa.Table.from_batches([probe])
            return state["con"].query(sql, "ArrowTable")

        return call

    fill = "INSERT INTO joined SELECT key, payload FROM build"
    yield "join", "rebuild", lambda: setup(SQL.format("Python(probe)", "build"))
    yield (
        "join_engine",
        "prepared",
        lambda: setup(
            SQL.format("Python(probe)", "joined").replace(" JOIN ", " ALL INNER JOIN "),
            f"CREATE TABLE joined (key {key}, payload Int64) ENGINE = Join(ALL, INNER, key)",
            fill,
        ),
    )
    yield (
        "joinGet",
        "prepared",
        lambda: setup(
            "SELECT key, joinGet('joined', 'payload', key) AS payload, probe_value FROM Python(probe) WHERE payload IS NOT NULL",
            f"CREATE TABLE joined (key {key}, payload Nullable(Int64)) ENGINE = Join(ANY, LEFT, key)",
            fill,
        ),
    )
    yield (
        "dictionary",
        "prepared",
        lambda: setup(
            f"SELECT key, dictGet('lookup', 'payload', {get}) AS payload, probe_value FROM Python(probe) "
            f"WHERE dictHas('lookup', {get})",
            f"CREATE DICTIONARY lookup (key {id_type}, payload Int64) PRIMARY KEY key "
            f"SOURCE(CLICKHOUSE(TABLE 'build' DB 'default')) LAYOUT({layout}()) LIFETIME(0)",
            "SYSTEM RELOAD DICTIONARY lookup",
        ),
    )


ENGINES = {f.__name__: f for f in (limit, prejoin, numpy, python, pandas, pyarrow, polars, duckdb, datafusion, chdb)}
SINGLE_THREADED = ("limit", "prejoin", "numpy", "python", "pandas")


def measure_calls(case, call, batches, args):
    """Median and minimum nanoseconds of one call(batch), how many there were, and the time of the very first one."""
    first = None
    for batch in batches:
        start = time.perf_counter_ns()
        result = call(batch)
        first = first or time.perf_counter_ns() - start
        case.check(result, batch)
    times, end = [], time.perf_counter() + args.seconds
    while len(times) < 5 or time.perf_counter() < end:
        batch = batches[len(times) % len(batches)]
        start = time.perf_counter_ns()
        result = call(batch)
        times.append(time.perf_counter_ns() - start)
        del result
    return statistics.median(times), min(times), len(times), first


def measure_stream(case, call, batches, args):
    """Nanoseconds per batch when one query gets many batches: the slope between LOW and HIGH batches."""
    times, end, payload = {LOW: [], HIGH: []}, time.perf_counter() + 2 * args.seconds, case.payload.to_numpy()
    sums = [int(payload[case.truth[id(b)][0]].sum()) for b in batches]
    while len(times[HIGH]) < 5 or time.perf_counter() < end:
        for n in (LOW, HIGH):
            start = time.perf_counter_ns()
            out = list(call(batches[0].schema, (batches[i % len(batches)] for i in range(n))))
            times[n].append(time.perf_counter_ns() - start)
            got = sum(r.num_rows for r in out), sum(int(r["payload"].to_numpy().sum()) for r in out)
            assert got == (n * SMALL // 2, sum(sums[i % len(batches)] for i in range(n))), f"wrong rows or sum: {got}"
    slope = lambda of: (of(times[HIGH]) - of(times[LOW])) / (HIGH - LOW)
    return slope(statistics.median), slope(min), len(times[HIGH]), None


def worker(args):
    """Measure one engine at one thread setting; print a JSON line per case."""
    import pyarrow as pa

    if args.threads:
        pa.set_cpu_count(args.threads)
    for kind, rows in [(k, r) for k in args.kinds for r in args.rows]:
        case = Case(kind, rows, args)
        for name, category, setup in ENGINES[args.engines[0]](case, args.threads):
            start, call = time.perf_counter(), None
            for mode in args.modes if category != "stream" else set(args.modes) & {"small"}:
                line = dict(
                    kind=kind,
                    rows=rows,
                    mode=mode,
                    engine=args.engines[0],
                    method=name,
                    category=category,
                    threads=args.threads or "default",
                    shuffle=args.shuffle,
                    batches=args.batches,
                )
                try:
                    if call is None:
                        call = setup()
                        setup_ms = round(1e3 * (time.perf_counter() - start), 2)
                    gc.collect()
                    gc.disable()
                    measure = measure_stream if category == "stream" else measure_calls
                    median, least, repeats, first = measure(case, call, getattr(case, mode), args)
                    scale, unit = (1e3, "us/batch") if mode == "small" else (LARGE, "ns/row")
                    line |= dict(
                        unit=unit,
                        median=round(median / scale, 2),
                        min=round(least / scale, 2),
                        repeats=repeats,
                        setup_ms=setup_ms,
                        first_us=first and round(first / 1e3, 1),
                        load=round(os.getloadavg()[0], 2),
                    )
                except Exception as error:  # shown in the table as an error
                    line["error"] = f"{type(error).__name__}: {error}"[:300]
                gc.enable()
                print(json.dumps(line), flush=True)


def table(results, args):
    for kind, rows, mode in [(k, r, m) for k in args.kinds for r in args.rows for m in args.modes]:
        got = [r for r in results if (r["kind"], r["rows"], r["mode"]) == (kind, rows, mode)]
        take = min((r["median"] for r in got if r["category"] == "limit" and "error" not in r), default=float("nan"))
        unit = "us per 4096-row batch" if mode == "small" else "ns per row of the 1,000,000-row probe"
        print(f"\n## {kind}, build {rows}, {mode} probe: {unit}; x = median / take limit ({take:g})")
        print(
            f"{'engine.method':28} {'threads':>7} {'category':9} {'median':>10} {'min':>10} {'x':>8} {'setup ms':>9} {'first us':>9}"
        )
        for r in sorted(got, key=lambda r: r.get("median", float("inf"))):
            tail = (
                r["error"][:60]
                if "error" in r
                else (
                    f"{r['median']:10.2f} {r['min']:10.2f} {r['median'] / take:8.2f} {r['setup_ms']:9.1f} {r['first_us'] or 0:9.1f}"
                )
            )
            print(f"{r['engine'] + '.' + r['method']:28} {r['threads']:>7} {r['category']:9} {tail}")


# What prejoin.join has to reach, as multiples of the quickest limit of the same run.
BARS = {
    ("small", "int64", 64): 1.5,
    ("small", "int64", 65536): 1.5,
    ("small", "int64", 1_000_000): 2.0,
    ("small", "utf8", 65536): 2.5,
    ("small", "utf8", 1_000_000): 4.5,
    ("large", "int64", 65536): 2.5,
    ("large", "int64", 1_000_000): 3.5,
    ("large", "utf8", 65536): 5.0,
    ("large", "utf8", 1_000_000): 8.0,
    ("large", "random64", 65536): 5.5,
    ("large", "random64", 1_000_000): 7.0,
}
# Nanoseconds a row of preparing.
PREPARE_BARS = {
    ("int64", 65536): 6,
    ("int64", 1_000_000): 18,
    ("utf8", 65536): 12,
    ("utf8", 1_000_000): 30,
    ("random64", 65536): 12,
    ("random64", 1_000_000): 30,
}
# Microseconds that a join of 1 or 64 rows may take beyond the bare crossing.
SMALL_CALL_BAR = 4.0


def reached(value, bar):
    return f"{value:8.2f}  bar {bar:6.2f}  {'reached' if value <= bar else 'NOT reached'}"


def bars(results):
    """Prints each bar as reached or not."""
    print("\n## bars of prejoin.join: multiples of the quickest take limit of this run")
    for (mode, kind, rows), bar in BARS.items():
        got = [r for r in results if (r["mode"], r["kind"], r["rows"]) == (mode, kind, rows) and "median" in r]
        take = min((r["median"] for r in got if r["category"] == "limit"), default=None)
        ours = next((r["median"] for r in got if (r["engine"], r["method"]) == ("prejoin", "join")), None)
        if take and ours:
            print(f"{mode:6} {kind:9} {rows:>8}: {reached(ours / take, bar)}")


def prepare_bars(args):
    """Measures preparing and small calls, and prints their bars."""
    import numpy as np
    import pyarrow as pa

    import prejoin as module

    median = lambda work, repeats: statistics.median(timed(work) for _ in range(repeats))

    def timed(work):
        start = time.perf_counter_ns()
        result = work()
        elapsed = time.perf_counter_ns() - start
        del result
        return elapsed

    print("\n## bars of prejoin.prepare: ns a row; bytes a row beyond the data")
    for (kind, rows), bar in PREPARE_BARS.items():
        if kind in args.kinds and rows in args.rows:
            args.modes = []
            build = Case(kind, rows, args).build.combine_chunks()
            took = median(lambda: module.prepare(build, on="key"), 9)
            memory = module.prepare(build, on="key").memory()
            beyond = (memory["index"] + memory["groups"]) / rows
            print(f"{kind:9} {rows:>8}: {reached(took / rows, bar)}  {beyond:5.1f} bytes")
    print("\n## bars of small calls: us beyond the bare crossing of the same columns")
    keys = np.arange(65536) * 17
    build = module.prepare(pa.table({"key": keys, "payload": keys}), on="key")
    for rows in (1, 64):
        batch = pa.record_batch({"key": keys[:rows], "probe_value": keys[:rows]})
        crossing = median(lambda: module._core._crossing(batch), 5000)
        joined = median(lambda: module.join(batch, build), 5000)
        print(f"{rows:>8} rows, crossing {crossing / 1e3:.2f}: {reached((joined - crossing) / 1e3, SMALL_CALL_BAR)}")


def main():
    items = lambda s: s.split(",")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", type=items, default=list(ENGINES), help=",".join(ENGINES))
    parser.add_argument("--kinds", type=items, default=["int64", "random64", "utf8", "uuid"])
    parser.add_argument("--rows", type=lambda s: [int(x) for x in s.split(",")], default=[64, 65536, 1_000_000])
    parser.add_argument(
        "--modes", type=items, default=["small", "large"], help="small: 4096 rows; large: 1,000,000 rows"
    )
    parser.add_argument(
        "--batches", type=int, default=64, help="how many different small batches (1: the formula above)"
    )
    parser.add_argument(
        "--shuffle", action=argparse.BooleanOptionalAction, default=True, help="order of the build keys"
    )
    parser.add_argument("--seconds", type=float, default=0.7, help="time spent per case, after warm-up")
    parser.add_argument("--threads", type=int, help="only this number of threads (0: the engine's default)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", help="file for the results, one JSON object per line; benches/report.py reads it")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args)

    def installed(package):
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    packages = ("prejoin", "numpy", "pyarrow", "pandas", "polars", "duckdb", "datafusion", "chdb")
    versions = {package: installed(package) for package in packages}
    print(json.dumps(versions))
    print(json.dumps({"python": sys.version.split()[0], "cpus": os.cpu_count(), "load": os.getloadavg()}), flush=True)
    results = []
    for engine in args.engines:
        for threads in [1] if engine in SINGLE_THREADED else [1, 0] if args.threads is None else [args.threads]:
            # polars, tokio and others read their thread limit when loaded, so each setting is a process of its own
            limits = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS")
            env = os.environ | ({k: str(threads) for k in limits} if threads else {})
            command = [
                sys.executable,
                os.path.abspath(__file__),
                *sys.argv[1:],
                "--worker",
                "--engines",
                engine,
                "--threads",
                str(threads),
            ]
            process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
            for line in process.stdout:
                print(line, end="", flush=True)
                results += [json.loads(line)] if line.startswith("{") else []
            if process.wait():
                print(f"{engine} with {threads or 'default'} threads ended with {process.returncode}", flush=True)
    table(results, args)
    if args.out:
        with open(args.out, "w") as file:
            file.writelines(json.dumps(r) + "\n" for r in [{"versions": versions}, *results])
    if "prejoin" in args.engines:
        bars(results)
        prepare_bars(args)
    print("\nload average at the end:", os.getloadavg())


if __name__ == "__main__":
    main()
