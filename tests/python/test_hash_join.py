"""`prejoin.HashJoin`: attaching, changing, running, and what it tells of itself."""

from __future__ import annotations

import gc
import pickle
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
        task.how = "cross"  # type: ignore[assignment]
    assert task.how == "anti"


def test_only_a_new_probe_side_is_taken_after_attaching() -> None:
    """S28, S29."""
    task = attached()
    for build in (BUILD, SCHEMA):
        with pytest.raises(PlanError, match="Cannot replace the build child"):
            task.replace(build=build)
    other = task.replace(probe=PROBE.slice(1), how="probe_outer")
    assert rows(other.execute()) == [(None, None, 2, 20)]
    assert task.how == "inner"
    for changes in ({"on": [("payload", "key")]}, {"null_equal": True}, {"mode": "partitioned"}):
        with pytest.raises(PlanError):
            task.replace(**changes)
    with pytest.raises(PlanError, match="HashJoin has no parameter probes; it has build, probe"):
        task.replace(probes=PROBE)


def test_names_are_looked_up_in_a_replaced_source() -> None:
    """A probe with its columns in another order, or with one more in front, before and after attaching and pickling."""
    text = pa.string()
    probe = pa.table({"key": [1, 2], "at": ["x", "y"]})
    others = [
        pa.table({"at": ["x", "y"], "key": [1, 2]}),
        pa.table({"more": pa.array([2, 1]), "at": ["x", "y"], "key": [1, 2]}),
        pa.table({"at": ["x", "y"], "payload": [1, 1], "key": [1, 2], "none": pa.array([None, None], text)}),
    ]
    build = pa.table({"key": [1, 3], "payload": [7, 8]}, SCHEMA)
    options: dict[str, Any] = {"projection": ["probe.at", "build.payload"], "where": "at = 'x' AND build.payload > 0"}
    for on in ("key", [("key", "key")], [(col("build.key"), col("probe.key"))], [(0, "key")]):
        join = HashJoin(SCHEMA, probe.schema, on, **options)
        set_later = HashJoin(SCHEMA, probe.schema, [(0, 0)])
        set_later.on, set_later.projection, set_later.where = on, options["projection"], options["where"]
        for start in (join, set_later, pickle.loads(pickle.dumps(join)), pickle.loads(pickle.dumps(set_later))):
            task = start.with_prepared_build(start.prepare_build(build))
            for other in others:
                for made in (start.replace(probe=other, build=build), task.replace(probe=other)):
                    assert rows(made.execute()) == [("x", 7)]
                # Back and forth: names were kept, not where they were found.
                assert rows(task.replace(probe=other).replace(probe=probe).execute()) == [("x", 7)]
    wide = pa.table({"payload": [7, 8], "more": [0, 0], "key": [1, 3]})
    assert rows(HashJoin(SCHEMA, probe, "key", **options).replace(build=wide).execute()) == [("x", 7)]
    mark = HashJoin(SCHEMA, probe, "key", "mark", projection=["mark", "probe.key"])
    assert rows(mark.replace(probe=others[1], build=wide).execute()) == [(True, 1), (False, 2)]
    with pytest.raises(PlanError, match='no column "key"'):
        mark.replace(probe=pa.table({"id": [1]}))
    other = mark.replace(build=build, probe=pa.table({"id": [3]}), on=[("key", "id")], projection=["mark"])
    assert rows(other.execute()) == [(True,)]


def test_positions_need_an_equal_schema() -> None:
    probe = pa.table({"key": [1, 2], "at": [10, 20]})
    turned = pa.table({"at": [10, 20], "key": [1, 2]})
    by_name: dict[str, Any] = {"on": [("key", "key")], "projection": ["probe.at"], "where": "at > 1"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"on": [("key", 0)]}, r"key column probe\[0\] is given by position"),
        ({"projection": [3]}, "column 3 of the projection is given by position"),
        ({"where": "probe[1] > 1"}, r"column probe\[1\] of the predicate is given by position"),
    ]
    for changed, text in cases:
        join = HashJoin(BUILD, probe, **(by_name | changed))
        attached = HashJoin(SCHEMA, probe, **(by_name | changed))
        attached = attached.with_prepared_build(attached.prepare_build(BUILD))
        for start in (join, attached, pickle.loads(pickle.dumps(join))):
            assert len(rows(start.replace(probe=probe.replace_schema_metadata({"a": "b"})).execute())) == 2
            with pytest.raises(PlanError, match=text + '.*equal schema.*"at" Int64, "key" Int64'):
                start.replace(probe=turned)
            assert rows(start.replace(probe=turned, **by_name).execute()) == [(10,), (10,)]
    # Positions of the probe side in a projection count from the end of the build side.
    with pytest.raises(PlanError, match=r"column 3 of the projection .* build source is replaced"):
        HashJoin(BUILD, probe, "key", projection=[3]).replace(build=BUILD.select(["payload", "key"]))
    assert rows(HashJoin(BUILD, probe, "key", projection=[0]).replace(probe=turned).execute()) == [(1,), (1,)]


def test_new_keys_may_be_of_another_number() -> None:
    join = HashJoin(BUILD, BUILD, "key")
    assert rows(join.replace(on=["key", "payload"], null_equal=[True, False], projection=[1]).execute()) == [(2,), (1,)]


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
    task = HashJoin(BUILD, parts, ["payload"], "build_outer", projection=["build.payload", "probe.payload"])
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


def test_a_limit_gives_back_at_once(pool: prejoin.MemoryPool) -> None:
    """S36: with the batch that reaches the limit the probe source and the visited bits are released."""
    closed: list[int] = []

    def probe(partition: int) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield PROBE.to_batches()[0]
        finally:
            closed.append(partition)

    task = attached(validate="m:m").replace(probe=Source(probe, schema=SCHEMA, partitions=3), limit=2)
    for how, partition in (("inner", None), ("probe_outer", 0)):
        task = task.replace(how=how)
        reader = task.execute(partition, pool=pool)
        assert reader.read_next_batch().num_rows == 2
        gc.collect()
        assert closed.pop() == 0
        assert pool.reserved == 0
    for how in ("build_outer", "full"):
        task = task.replace(how=how)
        reader = task.execute(pool=pool)
        assert reader.read_next_batch().num_rows == 2
        assert (closed.pop(), pool.reserved) == (0, 0)
        del reader
    session = task.replace(probe=PROBE).open(pool=pool)
    assert session.push(PROBE.to_batches()[0]).num_rows == 2
    assert session.finish().num_rows == 0


@pytest.mark.parametrize("how", ["build_outer", "full", "build_semi", "build_anti"])
def test_a_run_that_ends_early_keeps_no_bits(how: Any, pool: prejoin.MemoryPool) -> None:
    """S35: a reader over all partitions that is dropped unread or half-read, or fails, waits for no partition."""
    raised = ValueError("probe")

    def failing(partition: int) -> Iterator[pa.RecordBatch]:
        yield PROBE.to_batches()[0]
        if partition == 1:
            raise raised

    parts = Source(failing, schema=SCHEMA, partitions=3)
    task = HashJoin(SCHEMA, parts, "key", how)
    task = task.with_prepared_build(task.prepare_build(BUILD))
    unread = task.execute(pool=pool)
    del unread
    assert pool.reserved == 0
    half = task.execute(pool=pool, batch_size=1)
    if how in ("build_outer", "full"):
        half.read_next_batch()
        assert pool.reserved > 0
    del half
    gc.collect()
    assert pool.reserved == 0
    with pytest.raises(ValueError, match="probe") as error:
        task.execute(pool=pool).read_all()
    assert error.value is raised
    assert pool.reserved == 0


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
