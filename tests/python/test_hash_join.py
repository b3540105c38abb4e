"""`prejoin.HashJoin`: attaching, changing, running, and what it tells of itself."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import prejoin
from prejoin import HashJoin, PlanError, Source, col

SCHEMA = pa.schema([("key", pa.int64()), ("payload", pa.int64())])
BUILD = pa.table({"key": [1, 1], "payload": [2, 1]}, SCHEMA)
PROBE = pa.table({"key": [1, 2], "payload": [10, 20]}, SCHEMA)


def attached(**options: Any) -> HashJoin:
    join = HashJoin(SCHEMA, PROBE, [("key", "key")], **options)
    return join.with_prepared_build(join.prepare_build(BUILD))


def rows(result: pa.RecordBatchReader | pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    table = result.read_all() if isinstance(result, pa.RecordBatchReader) else result
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


MATCHES = [(1, 2, 1, 10), (1, 1, 1, 10)]


# ---- attaching


def test_an_attached_join_equals_the_ordinary_one() -> None:
    """S25, S33: build columns, then probe columns, both keys; probe order, matches in build order."""
    assert rows(attached().execute()) == rows(HashJoin(BUILD, PROBE, [(0, 0)]).execute()) == MATCHES
    assert rows(attached()(PROBE.to_batches()[0])) == MATCHES
    task = attached()
    assert task.prepared_build is not None
    assert task.with_prepared_build(task.prepared_build).prepared_build is task.prepared_build


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (HashJoin(SCHEMA, PROBE, [("payload", "key")]), "does not match schema, keys or null equality"),
        (HashJoin(SCHEMA, PROBE, ["key"], null_equal=True), "does not match schema, keys or null equality"),
        (HashJoin(SCHEMA.remove(1), PROBE, ["key"]), "does not match schema, keys or null equality"),
        (HashJoin(SCHEMA, PROBE, ["key", "payload"]), "does not match schema, keys or null equality"),
        (HashJoin(SCHEMA, PROBE, ["key"], mode="partitioned"), "Partitioned"),
    ],
)
def test_a_build_that_does_not_fit_is_refused(other: HashJoin, text: str) -> None:
    """S25."""
    prepared = attached().prepared_build
    assert prepared is not None
    with pytest.raises(PlanError, match=text):
        other.with_prepared_build(prepared)


def test_prepare_build_checks_before_it_reads() -> None:
    """S1, S2: the input's schema must be the join's; it is not read, nor is the join's own source."""
    asked: list[str] = []

    def source(name: str) -> Iterator[pa.RecordBatch]:
        asked.append(name)
        yield from BUILD.to_batches()

    join = HashJoin(pa.RecordBatchReader.from_batches(SCHEMA, source("own")), PROBE, ["key"])
    wrong = SCHEMA.set(1, pa.field("payload", pa.int32()))
    pool = prejoin.MemoryPool(1 << 20)
    for refused in (wrong, SCHEMA.remove(1), SCHEMA.with_metadata({"a": "b"})):
        with pytest.raises(PlanError, match="input schema does not match build schema"):
            join.prepare_build(pa.RecordBatchReader.from_batches(refused, source("refused")), pool=pool)
    with pytest.raises(PlanError, match="CollectLeft"):
        join.replace(mode="partitioned").prepare_build(iter(source("refused")), pool=pool)
    assert not asked
    assert (pool.reserved, pool.peak) == (0, 0)
    assert join.prepare_build(source("given")).num_rows == 2
    assert asked == ["given"]


def test_changes_after_attaching_are_validated_again() -> None:
    """S26: by every way to run; the change that is taken back runs."""
    task = attached()
    for name, value, text in [
        ("on", [("payload", "key")], "does not match schema, keys or null equality"),
        ("null_equal", True, "does not match schema, keys or null equality"),
        ("mode", "partitioned", "Partitioned"),
        ("null_aware", True, "NOT IN"),
        ("projection", [9], "9"),
        ("where", col("build.zz") == 1, "zz"),
    ]:
        before = getattr(task, name)
        setattr(task, name, value)
        batch = PROBE.to_batches()[0]
        for run in (task.execute, lambda: task.execute(0), lambda b=batch: task(b), task.open):
            with pytest.raises(PlanError, match=text):
                run()
        setattr(task, name, before)
        assert rows(task.execute()) == MATCHES
    task.how = "anti"
    assert rows(task.execute()) == [(2, 20)]
    with pytest.raises(PlanError, match="the kinds are"):
        task.how = "outer"  # type: ignore[assignment]
    assert task.how == "anti"


def test_only_a_new_probe_side_is_taken_after_attaching() -> None:
    """S28, S29."""
    task = attached()
    for build in (BUILD, SCHEMA):
        with pytest.raises(PlanError, match="Cannot replace the build child"):
            task.replace(build=build)
    other = task.replace(probe=PROBE.slice(1), how="left")
    assert rows(other.execute()) == [(None, None, 2, 20)]
    assert task.how == "inner"
    for changes in ({"on": [("payload", "key")]}, {"null_equal": True}, {"mode": "partitioned"}):
        with pytest.raises(PlanError):
            task.replace(**changes)
    with pytest.raises(PlanError, match="HashJoin has no parameter probes; it has build, probe"):
        task.replace(probes=PROBE)


def test_declared_order_goes_with_the_replaced_build() -> None:
    """S27: placeholder_properties_and_reset, from Python."""
    build = Source(BUILD, ordering=["payload"], equal=[("key", "payload")])
    join = HashJoin(build, Source(PROBE, ordering="key"), ["key"])
    assert join.properties() == {"ordering": [2], "equal_columns": [[0, 1, 2]], "partitions": 1}
    task = join.with_prepared_build(join.prepare_build(BUILD))
    assert task.properties() == {"ordering": [2], "equal_columns": [[0, 2]], "partitions": 1}
    # The prepared rows break what was declared, and both come out.
    assert rows(task.execute()) == MATCHES
    assert "Placeholder" in task.explain("tree")
    assert "ordered_by=[payload]" in join.explain("tree")


def test_reset_keeps_the_build_and_forgets_the_run() -> None:
    """S31, S47: the same output batch for batch, and figures that start anew."""
    task = attached()
    first = list(task.execute(0, batch_size=1))
    assert [batch.num_rows for batch in first] == [1, 1]
    assert task.metrics()["output_rows"] == 2
    task.reset()
    assert task.metrics()["output_rows"] == 0
    assert list(task.execute(0, batch_size=1)) == first


# ---- running


def test_partitions_of_one_run_share_it() -> None:
    """S34: each partition by itself or all in turn; unmatched build rows once, from the last to finish."""
    parts = Source.partitioned([PROBE.slice(0, 1), PROBE.slice(1), PROBE.slice(0, 0)])
    task = HashJoin(BUILD, parts, ["payload"], "right", projection=["build.payload", "probe.payload"])
    build = pa.table({"key": [0, 0, 0], "payload": [20, 30, 10]}, SCHEMA)
    task = task.with_prepared_build(task.prepare_build(build))
    assert rows(task.execute()) == [(10, 10), (20, 20), (30, None)]
    task.reset()
    readers = [task.execute(i) for i in (2, 0, 1)]
    assert [rows(reader) for reader in readers] == [[], [(10, 10)], [(20, 20), (30, None)]]
    with pytest.raises(PlanError, match="executed before"):
        task.execute(1)
    with pytest.raises(PlanError, match="partition 3 was asked of a join with 3"):
        task.execute(3)
    with pytest.raises(PlanError, match="3 probe partitions"):
        task.open()
    task.reset()
    assert task.open(0).push(PROBE.to_batches()[0]).num_rows == 2


def test_partitioned_mode_joins_partition_by_partition() -> None:
    """Each probe partition meets the build partition of its number only."""
    opened: list[int] = []

    def probe(partition: int) -> pa.Table:
        opened.append(partition)
        return PROBE

    build = Source.partitioned([BUILD, pa.table({"key": [2], "payload": [7]}, SCHEMA)])
    join = HashJoin(build, Source(probe, schema=SCHEMA, partitions=2), ["key"], mode="partitioned")
    assert not opened
    assert rows(join.execute(1)) == [(2, 7, 2, 20)]
    assert opened == [1]
    assert rows(join.execute()) == [*MATCHES, (2, 7, 2, 20)]
    assert join.metrics()["build_input_rows"] == 3
    with pytest.raises(PlanError, match="one of its 2 builds"):
        join(PROBE.to_batches()[0])
    with pytest.raises(PlanError, match="as many build as probe partitions"):
        join.replace(probe=PROBE)


def test_a_limit_stops_the_probe_side() -> None:
    """S36: over all partitions of a run; what is not needed is not asked for."""
    asked: list[int] = []

    def probe(partition: int) -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            asked.append(partition)
            yield PROBE.to_batches()[0]

    task = attached().replace(probe=Source(probe, schema=SCHEMA, partitions=3), limit=7)
    assert len(rows(task.execute())) == 7
    assert asked == [0, 0, 0, 1]
    assert rows(task.replace(limit=0).execute()) == []


def test_many_consumers_of_one_build(pool: prejoin.MemoryPool) -> None:
    """S22, S34, S35: own probes, predicates and progress; dropped unread or half-read, nothing changes."""
    keys = 1000
    join = HashJoin(SCHEMA, SCHEMA, ["key"], projection=["build.payload", "probe.payload"])
    build = pa.table({"key": range(keys), "payload": range(keys)}, SCHEMA)
    prepared = join.prepare_build(build, pool=pool)
    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def consume(number: int) -> None:
        try:
            probe = pa.table({"key": [i % keys for i in range(5000)], "payload": [number] * 5000}, SCHEMA)
            payload = col("build.payload")
            where = payload > 500 if number % 2 else payload < 500
            task = join.replace(probe=Source.partitioned([probe] * 2), where=where).with_prepared_build(prepared)
            start.wait()
            for turn in range(4):
                reader = task.execute(batch_size=100)
                if turn % 2:
                    reader.read_next_batch()
                    continue
                table = reader.read_all()
                assert table.num_rows == 2 * 5 * (499 if number % 2 else 500)
                assert set(table.column(1).to_pylist()) == {number}
                want = [i % keys for i in range(10_000) if (i % keys > 500 if number % 2 else i % keys < 500)]
                assert table.column(0).to_pylist() == want
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=consume, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert pool.reserved == prepared.reserved_bytes


def test_visited_bits_are_charged_and_given_back(pool: prejoin.MemoryPool) -> None:
    """S22, S35: state of build-driven kinds belongs to its run; dropping the reader releases it, closing does not."""
    build = pa.table({"key": range(100_000), "payload": range(100_000)}, SCHEMA)
    join = HashJoin(SCHEMA, PROBE, ["key"], "build_anti")
    task = join.with_prepared_build(join.prepare_build(build))
    reader = task.execute(batch_size=10, pool=pool)
    assert pool.reserved == 0
    reader.read_next_batch()
    assert pool.reserved > 0
    reader.close()
    assert pool.reserved > 0
    del reader
    gc.collect()
    assert pool.reserved == 0
    with pytest.raises(prejoin.ResourcesExhausted):
        task.execute(pool=prejoin.MemoryPool(0)).read_all()


def test_an_ordinary_join_pays_for_its_build(pool: prejoin.MemoryPool) -> None:
    """S20, S47: charged while it runs, from the pool and with the config that were given."""
    join = HashJoin(BUILD, PROBE, ["key"])
    reader = join.execute(
        batch_size=1, pool=pool, config=prejoin.Config(perfect_hash_min_density=2, perfect_hash_small_range=0)
    )
    reader.read_next_batch()
    figures = join.metrics()
    assert figures["build_mem_used"] == pool.reserved > 0
    assert (figures["build_input_rows"], figures["build_input_batches"]) == (2, 1)
    assert figures["index_kind"] == "hashed"
    assert figures["build_time"] > 0
    join.reset()
    del reader
    gc.collect()
    assert pool.reserved == 0
    with pytest.raises(prejoin.ResourcesExhausted, match="of 10 bytes"):
        join.execute(pool=prejoin.MemoryPool(10)).read_all()


def test_sessions_push_and_finish() -> None:
    """Batches by hand, unmatched build rows at the end, and clear words after it."""
    batch = PROBE.to_batches()[0]
    build = pa.table({"key": [2, 1, 3], "payload": [5, 6, 7]}, SCHEMA)
    join = HashJoin(SCHEMA, SCHEMA, ["key"], "full", projection=["build.payload", "probe.payload"])
    task = join.with_prepared_build(join.prepare_build(build))
    session = task.open()
    assert session.schema == task.schema
    assert rows(session.push(batch)) == [(6, 10), (5, 20)]
    assert rows(session.push(batch.slice(0, 0))) == []
    assert rows(session.finish()) == [(7, None)]
    for use in (session.finish, lambda: session.push(batch)):
        with pytest.raises(PlanError, match="finished, failed, or used by another thread"):
            use()
    failing = task.open()
    with pytest.raises(PlanError, match="probe batch has 1 columns"):
        failing.push(batch.select(["key"]))
    with pytest.raises(PlanError, match="failed"):
        failing.push(batch)


# ---- what it tells


def test_explain_shows_everything() -> None:
    """S45."""
    where = col("build.payload") > 1
    task = attached(where=where, limit=5, projection=["build.payload", 2])
    assert (
        task.explain()
        == repr(task)
        == (
            "HashJoin: mode=CollectLeft, join_type=Inner, on=[(build.key, probe.key)], filter=build.payload > 1, "
            "projection=[build.payload, probe.key], limit=5, null_equality=NullEqualsNothing, prepared_build=2 rows"
        )
    )
    tree = task.explain("tree").splitlines()
    assert tree[0] == "HashJoin"
    assert "│   prepared_build=2 rows" in tree
    assert tree[-1] == "└── probe: Source, partitions=1, columns=[key: Int64, payload: Int64], rows=2"
    with pytest.raises(PlanError, match="the formats are indent and tree"):
        task.explain("json")


def test_statistics_know_the_build() -> None:
    """S46: the estimate of an attached join is not 0."""
    assert attached().statistics() == {
        "build_rows": {"rows": 2, "exact": True},
        "probe_rows": {"rows": 2, "exact": True},
        "output_rows": {"rows": 4, "exact": False},
    }
    unknown = HashJoin(SCHEMA, PROBE.to_reader(), ["key"]).statistics()
    assert unknown == {"build_rows": None, "probe_rows": None, "output_rows": None}


def test_metrics_are_those_of_the_latest_run() -> None:
    """S47: an attached join has built nothing; runs, calls and sessions are counted alike."""
    task = attached()
    assert task.metrics()["index_kind"] is None
    batch = PROBE.to_batches()[0]
    session_of = []

    def push() -> None:
        session_of.append(task.open())
        session_of[-1].push(batch)

    for run in (lambda: rows(task.execute()), lambda: task(batch), push):
        run()
        figures = task.metrics()
        assert figures["join_time"] > 0
        assert (figures["input_rows"], figures["input_batches"]) == (2, 1)
        assert (figures["output_rows"], figures["output_batches"]) == (2, 1)
        assert figures["index_kind"] == "dense"
        assert {
            figures[name] for name in ("build_input_rows", "build_input_batches", "build_mem_used", "build_time")
        } == {0}


@pytest.mark.parametrize(
    ("on", "text"),
    [
        ([], "at least one key pair"),
        ([("key",)], "pairs"),
        ({"key": "key"}, "pairs"),
        ([("zz", "key")], 'no column "zz"'),
        ([(True, 0)], "pairs"),
        ([(5, 0)], "5"),
        ([(-1, 0)], "pairs"),
        ([(col("probe.key"), "key")], "build key, probe key"),
        ([(col("build.key") + 1, "key")], "direct column keys"),
        (3, "3 was given"),
    ],
)
def test_wrong_keys_are_named(on: Any, text: str) -> None:
    """S3."""
    with pytest.raises(PlanError, match=text):
        HashJoin(SCHEMA, PROBE, on)


def test_key_types_must_match() -> None:
    """S3: both columns and types are named."""
    with pytest.raises(PlanError, match='key types must match: build column "key" is Int64, probe column "s" is Utf8'):
        HashJoin(SCHEMA, pa.schema([("s", pa.string())]), [("key", "s")])


def test_names_that_repeat_are_joined_by_position() -> None:
    build = pa.table([[1, 2], [3, 4]], names=["x", "x"])
    join = HashJoin(build, build, [(1, 1)], projection=[0, 3])
    assert rows(join.execute()) == [(1, 3), (2, 4)]
    with pytest.raises(PlanError, match="more than one column"):
        HashJoin(build, build, "x")
