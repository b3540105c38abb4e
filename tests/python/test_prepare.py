"""Preparing and joining as a guest in Python: signals, processes, threads, exit."""

from __future__ import annotations

import _thread
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import prejoin


def test_null_equality_and_bounds() -> None:
    """S6, S39, S40, S41: told by the handle."""
    table = pa.table({"k": pa.array([1, 1_000_000, None, 1], pa.int64()), "s": ["b", "a", None, "b"]})
    build = prejoin.prepare(table, ["k", "s"], null_equal=[True, False])
    assert build.keys == ["k", "s"]
    assert build.null_equal == (True, False)
    ints = prejoin.prepare(table, "k")
    assert ints.bounds == [(pa.scalar(1), pa.scalar(1_000_000))]
    assert ints.membership == "in_list"
    assert len(ints) == ints.num_rows == 4
    off = prejoin.prepare(table, "k", config=prejoin.Config(in_list_max_values=0))
    assert off.membership == "map"
    assert off.reserved_bytes == ints.reserved_bytes
    texts = prejoin.prepare(table, "s")
    assert (texts.bounds, texts.membership, texts.index_kind) == ([None], "map", "bytes")
    assert prejoin.prepare(table.slice(0, 0), "k").bounds == [None]
    parts = ints.memory()
    assert parts["rows"] + parts["index"] + parts["groups"] == parts["reserved"] == ints.reserved_bytes
    assert parts["rows"] >= table.nbytes


def test_repr_shows_no_contents() -> None:
    """S5."""
    build = prejoin.prepare(pa.table({"k": [7_777_777], "v": ["secret"]}), "k")
    assert repr(build).startswith('PreparedBuild(k: Int64, v: Utf8; keys=["k"], rows=1, distinct_keys=1, index=')
    assert "secret" not in repr(build)
    assert "7777777" not in repr(build)


# Called wrongly on purpose.
prepare: Any = prejoin.prepare
memory_pool: Any = prejoin.MemoryPool
config: Any = prejoin.Config


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: prepare(t, "zz"), prejoin.PlanError, 'no column "zz".*"k"'),
        (lambda t: prepare(t, []), prejoin.PlanError, "key"),
        (lambda t: prepare(t, 5), prejoin.PlanError, "int was given"),
        (lambda t: prepare(t, ["k", 5]), prejoin.PlanError, "column name"),
        (lambda t: prepare(t, "k", null_equal=[True, True]), prejoin.PlanError, "2 entries for 1 keys"),
        (lambda t: prepare(t, "k", null_equal=1), prejoin.PlanError, "null_equal is a bool"),
        (lambda t: prepare(t, "k", pool=5), TypeError, "MemoryPool"),
        (lambda t: prepare(t, "k", config={}), TypeError, "Config"),
        (lambda _: prepare("t.csv", "k"), TypeError, "str was given"),
        (lambda _: prepare(None, "k"), TypeError, "NoneType was given"),
        (lambda _: prepare(iter([]), "k"), prejoin.PlanError, "pass schema="),
        (lambda _: memory_pool("1"), TypeError, "limit is a whole number"),
        (lambda _: memory_pool(2**64), prejoin.PlanError, "limit is a whole number"),
        (lambda _: config(in_list_max_values=-1), prejoin.PlanError, "in_list_max_values"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(pa.table({"k": [1]}))


def test_an_iterator_may_be_empty_where_its_schema_is_told(pool: prejoin.MemoryPool) -> None:
    """S10."""
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    build = prejoin.prepare(iter([]), "k", schema=schema, pool=pool)
    assert build.num_rows == 0
    assert build.schema == schema
    assert pool.reserved == build.reserved_bytes > 0
    assert prejoin.join(pa.record_batch({"k": [1]}), build, how="anti").num_rows == 1


def test_batches_may_differ_in_nullability() -> None:
    """S2."""
    strict = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    batches = [pa.record_batch([pa.array([1])], schema=strict), pa.record_batch({"k": pa.array([None, 2])})]
    for schema in (None, strict, pa.schema([("k", pa.int64())])):
        build = prejoin.prepare(batches, "k", schema=schema)
        assert build.to_table()["k"].to_pylist() == [1, None, 2]
        assert prejoin.join(batches[1], build, how="left")["k"].to_pylist() == [None, 2]


# ---- signals


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


# ---- threads


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


# ---- processes


def child(build: prejoin.PreparedBuild, out: Any) -> None:
    keys = pa.array(range(100_000), pa.int64())
    out.send(prejoin.join(pa.record_batch({"k": keys}), build).num_rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_build_is_probed_after_fork() -> None:
    build = prejoin.prepare(pa.table({"k": pa.array(range(0, 100_000, 2), pa.int64())}), "k")
    context = multiprocessing.get_context("fork")
    for _ in range(2):
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=child, args=(build, send))
        process.start()
        assert receive.poll(60)
        assert receive.recv() == 50_000
        process.join(60)
        assert process.exitcode == 0


@pytest.mark.parametrize(
    "text",
    [
        "reader = prejoin.join(iter([batch] * 3), build); reader.read_next_batch()",
        "reader = prejoin.join(stream(), build); reader.read_next_batch()",
        "reader = prejoin.HashJoin(build.schema, stream(), 'k').with_prepared_build(build).execute()",
        "session = prejoin.HashJoin(build.schema, build.schema, 'k', 'full').with_prepared_build(build).open()",
        "threading.Thread(target=lambda: prejoin.prepare(itertools.repeat(batch), 'k'), daemon=True).start()",
        "f = prejoin.DynamicFilter(build.schema, 'k'); threading.Thread(target=f.wait_complete, daemon=True).start()",
    ],
)
def test_exit_with_something_alive(text: str) -> None:
    """The process ends by itself with code 0 and says nothing."""
    script = f"""
        import itertools, threading, pyarrow as pa, prejoin
        batch = pa.record_batch({{"k": [1, 2]}})
        build = prejoin.prepare(batch, "k")
        class Stream:
            def __arrow_c_stream__(self, requested_schema=None):
                return pa.RecordBatchReader.from_batches(batch.schema, iter([batch] * 3)).__arrow_c_stream__()
        stream = Stream
        {text}
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_outputs_own_their_bytes(pool: prejoin.MemoryPool) -> None:
    """S23: an output that is kept holds neither build nor charge; `to_table` holds both (S24)."""
    build = prejoin.prepare(pa.table({"k": [1, 2], "s": ["one", "two"]}), "k", pool=pool)
    joined = prejoin.join(pa.record_batch({"k": [1, 2]}), build)
    table = build.to_table()
    held = pool.reserved
    del build
    gc.collect()
    assert pool.reserved == held
    del table
    gc.collect()
    assert pool.reserved == 0
    assert pc.equal(joined["s"], pa.array(["one", "two"])).to_pylist() == [True, True]
