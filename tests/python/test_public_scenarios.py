"""The scenarios of cases.py: behaviour that no single input table shows. One test function per scenario."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import queue
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import prejoin
from cases import SCENARIOS, SameCapsule

heavy = pytest.mark.skipif(os.environ.get("PREJOIN_HEAVY") != "1", reason="needs several GiB: PREJOIN_HEAVY=1")


def keyed(keys: Any, name: str = "k") -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys, pa.int64())], names=[name])


def script(text: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a separate process."""
    command = [sys.executable, "-c", textwrap.dedent(text)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def test_every_scenario_is_tested() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {scenario["name"] for scenario in SCENARIOS} <= tested


# ---- memory


def test_mem_slices_counted_once() -> None:
    column = pa.array(range(1_000_000), pa.int64())
    pool = prejoin.MemoryPool(64 << 20)
    sliced = prejoin.prepare((keyed(column.slice(i * 5000, 5000)) for i in range(200)), "k", pool=pool)
    whole = prejoin.prepare(keyed(column), "k")
    assert 8_000_000 <= sliced.reserved_bytes <= 8_000_000 + sliced.num_rows * 8
    # Concatenation pads each output buffer to 64 bytes.
    assert abs(sliced.reserved_bytes - whole.reserved_bytes) <= 256
    assert prejoin.join(keyed([999_999, -1]), sliced).num_rows == 1


def test_mem_table_sized_by_keys() -> None:
    values = ["a", "bb", None, "ccc"]
    batch = pa.record_batch([pa.array([values[i % 4] for i in range(65_536)])], names=["k"])
    small = prejoin.MemoryPool(4 << 20)
    prepared = prejoin.prepare(batch, "k", pool=small)
    assert prepared.num_rows == 65_536
    assert prepared.num_keys == 3
    assert prejoin.join(pa.record_batch({"k": ["ccc", "a", "no"]}), prepared).num_rows == 2 * 16_384


def test_mem_held_while_alive(pool: prejoin.MemoryPool) -> None:
    table = pa.table({"k": pa.array(range(1000), pa.int64()), "v": [str(i) for i in range(1000)]})
    prepared = prejoin.prepare(table, "k", pool=pool)
    held = pool.reserved
    assert held == prepared.reserved_bytes > table.nbytes
    del table
    gc.collect()
    assert pool.reserved == held
    reader = prejoin.join(iter([keyed([7]), keyed([8])]), prepared)
    first = reader.read_next_batch()
    del prepared
    gc.collect()
    # The iterator holds the build alone now (S24).
    assert pool.reserved == held
    assert reader.read_next_batch().num_rows == first.num_rows == 1
    del reader
    gc.collect()
    assert pool.reserved == 0


def test_mem_probe_indices_untracked() -> None:
    # 100,000,000 pairs: their row numbers alone would take 800 MB.
    done = script("""
        import resource
        import prejoin, pyarrow as pa
        build = pa.table({"k": pa.array([1] * 1000, pa.int64()), "v": pa.array(range(1000), pa.int64())})
        probe = pa.table({"k": pa.array([1] * 100_000, pa.int64())})
        prepared = prejoin.prepare(build, "k")
        reader = prejoin.HashJoin(build=build.schema, probe=probe, on=[("k", "k")]).with_prepared_build(prepared)
        reader = reader.execute(batch_size=1024)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rows = 0
        for _, batch in zip(range(2000), reader):
            assert batch.num_rows <= 1024
            rows += batch.num_rows
        assert rows == 2000 * 1024, rows
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 64 * 1024, f"{grown} KiB"
    """)
    assert done.returncode == 0, done.stderr


def test_mem_output_outlives_build(pool: prejoin.MemoryPool) -> None:
    table = pa.table({"k": pa.array(range(5000), pa.int64()), "v": [f"value {i}" for i in range(5000)]})
    prepared = prejoin.prepare(table, "k", pool=pool)
    output = prejoin.join(keyed(range(0, 5000, 7)), prepared)
    expected = [f"value {i}" for i in range(0, 5000, 7)]
    del prepared, table
    gc.collect()
    # S23: these columns own their bytes, so nothing is charged for them.
    assert pool.reserved == 0
    output.validate(full=True)
    assert output["v"].to_pylist() == expected


# ---- size limits


@heavy
def test_build_strings_above_2gib() -> None:
    text = pa.array(["x" * 2**20])
    batches = (pa.record_batch([pa.array([i], pa.int64()), text], names=["k", "s"]) for i in range(2200))
    with pytest.raises(prejoin.PrejoinError, match='"s"'):
        prejoin.prepare(batches, "k", schema=pa.schema([("k", pa.int64()), ("s", pa.string())]))


@heavy
def test_fsl_u32_overflow() -> None:
    rows, width = 4100, 1 << 20
    data = bytearray(rows * width)
    data[(rows - 1) * width] = 7
    values = pa.Array.from_buffers(pa.int8(), rows * width, [None, pa.py_buffer(data)])
    lists = pa.FixedSizeListArray.from_arrays(values, width)
    prepared = prejoin.prepare(pa.record_batch([pa.array(range(rows), pa.int64()), lists], names=["k", "v"]), "k")
    output = prejoin.join(keyed([rows - 1]), prepared)
    assert output["v"].flatten()[:2].to_pylist() == [7, 0]


@heavy
def test_row_table_above_4gib() -> None:
    rows, step = 1 << 26, 1 << 20
    schema = pa.schema([("k", pa.int64()), *[(f"v{i}", pa.int64()) for i in range(8)]])

    def batches() -> Iterator[pa.RecordBatch]:
        for at in range(0, rows, step):
            column = pa.compute.add(pa.array(range(step), pa.int64()), at)
            yield pa.record_batch([column] * 9, schema=schema)

    prepared = prejoin.prepare(batches(), "k", schema=schema)
    last = list(range(rows - 3, rows))
    output = prejoin.join(keyed(last), prepared)
    assert all(output.column(i).to_pylist() == last for i in range(9))


# ---- streams


def test_capsule_consumed_twice(pool: prejoin.MemoryPool) -> None:
    for _ in range(1000):
        once = SameCapsule(pa.RecordBatchReader.from_batches(keyed([]).schema, [keyed([1, 2])]))
        prepared = prejoin.prepare(once, "k", pool=pool)
        with pytest.raises((prejoin.PrejoinError, ValueError, TypeError)):
            prejoin.prepare(once, "k", pool=pool)
        with pytest.raises((prejoin.PrejoinError, ValueError, TypeError)):
            list(prejoin.join(once, prepared))
    assert pool.reserved == prepared.reserved_bytes


@pytest.mark.parametrize("returned", ["another name", 7, None, RuntimeError("no schema today")], ids=repr)
def test_get_schema_fails(returned: Any, pool: prejoin.MemoryPool) -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            if isinstance(returned, Exception):
                raise returned
            return pa.int64().__arrow_c_schema__() if returned == "another name" else returned

    expected = RuntimeError if isinstance(returned, Exception) else (TypeError, ValueError)
    with pytest.raises(expected) as raised:
        prejoin.prepare(Broken(), "k", pool=pool)
    if isinstance(returned, Exception):
        assert raised.value is returned


def test_infinite_probe_empty_build() -> None:
    asked = []

    def endless() -> Iterator[pa.RecordBatch]:
        for number in itertools.count():
            asked.append(number)
            yield keyed([number])

    prepared = prejoin.prepare(keyed([]), "k")
    reader = pa.RecordBatchReader.from_batches(keyed([]).schema, endless())
    joined = (
        prejoin.HashJoin(build=prepared.schema, probe=reader, on=[("k", "k")]).with_prepared_build(prepared).execute()
    )
    assert sum(batch.num_rows for batch in joined) == 0
    assert asked == []


# ---- threads, GIL, fork, exit


def test_gil_source_needs_other_thread() -> None:
    batches: queue.Queue[pa.RecordBatch | None] = queue.Queue(maxsize=1)
    finished: list[prejoin.PreparedBuild] = []

    def feed() -> None:
        for number in range(50):
            batches.put(keyed([number]))
            time.sleep(0.001)
        batches.put(None)

    def prepare() -> None:
        source = iter(batches.get, None)
        finished.append(prejoin.prepare(source, "k", schema=keyed([]).schema))

    threads = [threading.Thread(target=work, daemon=True) for work in (feed, prepare)]
    for thread in threads:
        thread.start()
    for thread in threads:
        # The timeout only turns a deadlock into a failure.
        thread.join(60)
    assert finished
    assert finished[0].num_rows == 50


def test_exit_with_live_reader() -> None:
    done = script("""
        import prejoin, pyarrow as pa
        def batches():
            for i in range(1000):
                yield pa.record_batch({"k": pa.array([i], pa.int64())})
        prepared = prejoin.prepare(batches(), "k")
        reader = prejoin.join(batches(), prepared)
        print(reader.read_next_batch().num_rows)
    """)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_after_prepare() -> None:
    done = script("""
        import os
        import prejoin, pyarrow as pa
        table = pa.table({"k": pa.array(range(100_000), pa.int64())})
        prepared = prejoin.prepare(table, "k")
        assert prejoin.join(table, prepared).num_rows == 100_000
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if prejoin.join(table, prepared).num_rows == 100_000 else 1)
            except BaseException:
                os._exit(2)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert done.returncode == 0, done.stderr


def test_peer_abandons_probe(pool: prejoin.MemoryPool) -> None:
    prepared = prejoin.prepare(keyed(range(100)), "k", pool=pool)
    probe = [keyed(range(i * 10, i * 10 + 20)) for i in range(10)]
    # One after the other here: what the abandoned join leaves behind must not be waited for.
    abandoned = prejoin.join(iter(probe), prepared, how="full")
    assert abandoned.read_next_batch().num_rows > 0
    answers: list[pa.Table] = []

    def work() -> None:
        answers.append(prejoin.join(iter(probe), prepared, how="full").read_all())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    del abandoned
    thread.join(60)
    expected = [key for batch in probe for key in batch["k"].to_pylist()]
    assert sorted(answers[0]["k"].to_pylist()) == sorted(expected + [key for key in range(100) if key not in expected])


def test_build_shared_is_complete() -> None:
    """Each probe is a separate join: its unmatched build rows are those that *its* rows did not match."""
    prepared = prejoin.prepare(keyed(range(40)), "k")
    parts = [list(range(at, 36, 4)) for at in range(4)]
    left_over: list[set[int]] = [set() for _ in parts]

    def work(number: int) -> None:
        unmatched = prejoin.join(keyed(parts[number]), prepared, how="build_anti")
        left_over[number] = set(unmatched["k"].to_pylist())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert left_over == [set(range(40)) - set(part) for part in parts]
    assert set.intersection(*left_over) == {36, 37, 38, 39}


# ---- reuse and errors


# ---- persistence


def test_pickle_of_sliced_input(tmp_path: Path) -> None:
    """B5: the slice is saved and sent, not the table that it was cut from."""
    table = pa.table({"k": range(1_000_000), "s": [f"text {i}" for i in range(1_000_000)]})
    build = prejoin.prepare(table.slice(500_000, 10), "k")
    path = tmp_path / "slice"
    build.save(path)
    assert path.stat().st_size < 100_000
    sent = pickle.dumps(prejoin.open(path))
    assert len(sent) < 1000
    probe = keyed([499_999, 500_000, 500_009, 500_010])
    for opened in (prejoin.open(path), pickle.loads(sent)):
        assert prejoin.join(probe, opened).to_pylist() == prejoin.join(probe, build).to_pylist()
        assert opened.to_table().equals(build.to_table())
    with pytest.raises(prejoin.NotSupported, match=r"save\(path\).*share\(\)"):
        pickle.dumps(build)


def test_mmap_truncated(tmp_path: Path) -> None:
    """B5, from Python; tests/saved.rs goes through every index."""
    path = tmp_path / "build"
    prejoin.prepare(pa.table({"k": range(1000), "s": [f"text {i}" for i in range(1000)]}), "k").save(path)
    whole = path.read_bytes()
    damaged = [whole[: len(whole) * i // 16] for i in range(16)]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(256)]
    for number, content in enumerate(damaged):
        other = tmp_path / f"damaged-{number}"
        other.write_bytes(content)
        with pytest.raises((prejoin.ExecutionError, prejoin.NotSupported), match=other.name):
            prejoin.open(other)
        if number < 16:
            with pytest.raises(prejoin.ExecutionError, match=other.name):
                prejoin.open(other, verify=False)


# ---- identity and errors of a reused build


@pytest.mark.parametrize(
    ("fields", "on", "null_equal"),
    [
        pytest.param([("a", pa.int64()), ("b", pa.int64())], ["b"], False, id="another key"),
        pytest.param([("a", pa.int64()), ("b", pa.int64())], ["a"], True, id="null equality"),
        pytest.param([("a", pa.int64()), ("b", pa.int32())], ["a"], False, id="column type"),
        pytest.param([("a", pa.int64()), ("b", pa.int64())], ["a", "b"], False, id="more keys"),
    ],
)
def test_attach_wrong_build(fields: list[tuple[str, pa.DataType]], on: list[str], null_equal: bool) -> None:
    built = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    prepared = prejoin.prepare(built.empty_table(), "a")
    schema = pa.schema(fields)
    join = prejoin.HashJoin(build=schema, probe=schema, on=[(key, key) for key in on], null_equal=null_equal)
    with pytest.raises(prejoin.PlanError, match="does not match schema, keys or null equality"):
        join.with_prepared_build(prepared)


def test_attach_wrong_build_by_key_order() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    prepared = prejoin.prepare(schema.empty_table(), ["a", "b"])
    with pytest.raises(prejoin.PlanError, match="does not match schema, keys or null equality"):
        prejoin.HashJoin(build=schema, probe=schema, on=[("b", "b"), ("a", "a")]).with_prepared_build(prepared)


def test_no_panic_exception() -> None:
    """test_public_reports.py accepts no panic in any case; this checks the text of the error."""
    build, probe = pa.table({"id": pa.array([1], pa.int64())}), pa.table({"name": ["1"]})
    with pytest.raises(prejoin.PlanError) as raised:
        prejoin.HashJoin(build=build, probe=probe, on=[("id", "name")])
    assert all(word in str(raised.value) for word in ("id", "name", "Int64", "Utf8"))
