"""What travels to another process, and what says that it does not."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import prejoin
from prejoin import _core, col

USERS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
EVENTS = pa.table({"user": [3, 1, 3, 9], "at": [1, 2, 3, 4]})


def attributes(join: prejoin.HashJoin) -> list[Any]:
    names = ["on", "how", "null_equal", "projection", "limit", "mode", "null_aware", "schema"]
    return [join.explain("tree"), join.properties(), join.statistics(), *(getattr(join, name) for name in names)]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_unattached_join_round_trips(protocol: int) -> None:
    """S48: with its sources, its predicate and everything else."""
    where = (col("probe.at") > 1) & ~col("build.name").is_null()
    parts = prejoin.Source.partitioned([EVENTS.slice(0, 2), EVENTS.slice(2)], ordering="at")
    for join in (
        prejoin.HashJoin(USERS, EVENTS, [("id", "user")], "full", where=where, limit=7, null_equal=True),
        prejoin.HashJoin(USERS.schema, EVENTS.schema, [("id", "user")], "anti", null_aware=True),
        prejoin.HashJoin(prejoin.Source(USERS, equal=[("id", 0)]), parts, [(0, 0)], projection=["probe.at"]),
    ):
        sent = pickle.loads(pickle.dumps(join, protocol))
        assert attributes(sent) == attributes(join)
        assert repr(sent.where) == repr(join.where)
        if "rows=" in join.explain("tree"):
            assert sent.execute().read_all().equals(join.execute().read_all())
            assert copy.deepcopy(join).execute().read_all().num_rows > 0


def test_an_attached_join_is_refused() -> None:
    """S48: serialization_is_refused, from Python."""
    join = prejoin.HashJoin(USERS.schema, EVENTS, [("id", "user")])
    attached = join.with_prepared_build(join.prepare_build(USERS))
    with pytest.raises(prejoin.NotSupported, match="prepared build"):
        pickle.dumps(attached)
    with pytest.raises(NotImplementedError):
        copy.copy(attached)
    with pytest.raises(prejoin.NotSupported, match=r"save\(path\)"):
        pickle.dumps(attached.prepared_build)


def test_a_source_that_does_not_pickle_stops_its_join() -> None:
    """Rows never get lost on the way in silence; the description alone can be sent."""
    join = prejoin.HashJoin(USERS, EVENTS.to_reader(), [("id", "user")])
    with pytest.raises((TypeError, pickle.PicklingError, pa.ArrowException), match=r"(?i)pickle|reader"):
        pickle.dumps(join)
    sent = pickle.loads(pickle.dumps(join.replace(probe=EVENTS.schema)))
    with pytest.raises(prejoin.PlanError, match="has a schema and no rows"):
        sent.execute().read_all()
    assert sent.replace(probe=EVENTS).execute().read_all().num_rows == 3


def test_small_things_round_trip() -> None:
    config = prejoin.Config(perfect_hash_min_density=2.0, in_list_max_values=3)
    assert pickle.loads(pickle.dumps(config)) == config != prejoin.Config()
    source = prejoin.Source(USERS, ordering=["id"], equal=[(0, 1)])
    assert repr(pickle.loads(pickle.dumps(source))) == repr(source)
    expr = (col("build.v") + 1 >= col("probe.v")) | (col("build.s") == "x'\0y")
    assert repr(pickle.loads(pickle.dumps(expr))) == repr(expr)


@pytest.mark.parametrize(
    "damage", [b"", b"\x02", b"\x01", b"\x01\xff", b"\x01" + b"\x06" * 10_000, b"\x01\x04\xff\xff"]
)
def test_damaged_bytes_are_refused(damage: bytes) -> None:
    for load in (_core._load_expr, lambda data: _core._load_join(data, None, None)):
        with pytest.raises(prejoin.PlanError):
            load(damage)


def joined(join: prejoin.HashJoin) -> list[Any]:
    rows: list[Any] = join.execute().read_all()["at"].to_pylist()
    return rows


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_join_runs_in_another_process(method: str) -> None:
    join = prejoin.HashJoin(USERS, EVENTS, [("id", "user")])
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as workers:
        assert workers.submit(joined, join).result(timeout=60) == [1, 2, 3]
