"""Dynamic filters: what they drop, to whom they belong, how long they live, and waiting in threads and event loops."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import prejoin

USERS = pa.table({"id": pa.array([1, 1_000_000, None, 1], pa.int64())})
EVENTS = pa.record_batch({"at": list(range(6)), "id": pa.array([1, 2, None, 1_000_000, 5_000_000, 1], pa.int64())})


def filtered(dynamic: prejoin.DynamicFilter, seen: list[int]) -> prejoin.Source:
    """A scan that applies the filter, which has to be complete by then."""

    def scan(partition: int) -> Iterator[pa.RecordBatch]:
        assert partition == 0
        assert dynamic.is_complete
        batch = EVENTS.filter(dynamic.evaluate(EVENTS))
        seen.append(batch.num_rows)
        yield batch

    return prejoin.Source(scan, schema=EVENTS.schema, partitions=1)


@pytest.mark.parametrize(
    ("how", "null_equal", "kept"),
    [("inner", False, 3), ("inner", True, 4), ("semi", False, 3), ("probe_outer", False, 6), ("anti", True, 6)],
)
def test_a_filter_is_complete_before_the_first_probe_batch(how: Any, null_equal: bool, kept: int) -> None:
    """S42: it never drops a row that would match, and drops none if the join returns unmatched probe rows."""
    seen: list[int] = []
    dynamic = prejoin.DynamicFilter(EVENTS.schema, ["id"])
    assert dynamic.evaluate(EVENTS).to_pylist() == [True] * 6
    join = prejoin.HashJoin(USERS, filtered(dynamic, seen), "id", how, null_equal=null_equal, dynamic_filter=dynamic)
    plain = prejoin.HashJoin(USERS, pa.table(EVENTS), "id", how, null_equal=null_equal)
    want = plain.execute().read_all()
    assert join.execute().read_all().equals(want)
    assert seen == [kept]
    attached = join.with_prepared_build(join.prepare_build(USERS))
    assert attached.dynamic_filter is dynamic
    assert not dynamic.is_complete  # S28: empty for the new run
    assert attached.execute().read_all().equals(want)
    assert seen == [kept, kept]
    assert "dynamic_filter=DynamicFilter [" in attached.explain()


def test_filters_of_two_consumers_are_independent() -> None:
    """S34, S42: one build, two joins, two filters; S31: reset detaches; S30: other probe keys are refused."""
    seen: list[int] = []
    one, two = (prejoin.DynamicFilter(EVENTS, "id") for _ in range(2))
    join = prejoin.HashJoin(USERS.schema, filtered(one, seen), "id", dynamic_filter=one)
    task = join.with_prepared_build(join.prepare_build(USERS))
    other = task.replace(probe=filtered(two, seen), dynamic_filter=two)
    assert task.execute().read_all().num_rows == 5
    assert one.is_complete
    assert not two.is_complete
    assert other.execute().read_all().num_rows == 5
    assert one.is_complete
    assert repr(one) == repr(two) == "DynamicFilter [ id@1 >= 1 AND id@1 <= 1000000 AND id@1 IN (list of 4) ]"
    with pytest.raises(prejoin.PlanError, match="dynamic filter keys do not match probe keys"):
        other.replace(on=[("id", "at")])
    task.reset()
    assert task.dynamic_filter is None
    # The filter of the probe source is detached, so it is not complete when the source applies it.
    with pytest.raises(AssertionError):
        task.replace(probe=filtered(prejoin.DynamicFilter(EVENTS, "id"), seen)).execute().read_all()
    assert other.replace(dynamic_filter=None, probe=pa.table(EVENTS)).execute().read_all().num_rows == 5


def test_a_filter_may_outlive_its_join(pool: prejoin.MemoryPool) -> None:
    """S24, S44: it keeps the build, and releases it when it is dropped."""
    dynamic = prejoin.DynamicFilter(EVENTS, "id")
    join = prejoin.HashJoin(USERS.schema, pa.table(EVENTS), "id", dynamic_filter=dynamic)
    prepared = join.prepare_build(USERS, pool=pool)
    held = prepared.reserved_bytes
    task = join.with_prepared_build(prepared)
    task.execute().read_all()
    del join, task, prepared
    gc.collect()
    assert pool.reserved == held
    assert dynamic.evaluate(EVENTS).to_pylist() == [True, False, False, True, False, True]
    del dynamic
    assert pool.reserved == 0


def test_waiting_in_a_thread() -> None:
    """S42: `wait_complete` blocks until the build is known or the timeout ends."""
    dynamic = prejoin.DynamicFilter(EVENTS, "id")
    join = prejoin.HashJoin(USERS, pa.table(EVENTS), "id", dynamic_filter=dynamic)
    assert dynamic.wait_complete(0) is False
    with pytest.raises(prejoin.PlanError, match="timeout"):
        dynamic.wait_complete(-1)
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(dynamic.wait_complete(60)))
    waiter.start()
    reader = join.execute()
    assert not answers
    reader.read_next_batch()
    waiter.join(60)
    assert answers == [True]
    assert dynamic.wait_complete() is True


def test_waiting_in_an_event_loop() -> None:
    """S42: `await filter`, completed by another thread; cancelled waiters and closed loops disturb no others."""
    dynamic = prejoin.DynamicFilter(EVENTS, "id")
    join = prejoin.HashJoin(USERS, pa.table(EVENTS), "id", dynamic_filter=dynamic)

    async def wait() -> bool:
        await dynamic
        return dynamic.is_complete

    async def scenario() -> None:
        waiting = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        rows = asyncio.to_thread(lambda: join.execute().read_all().num_rows)
        assert await rows == 5
        assert await waiting[1]
        assert await waiting[2]
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        assert await asyncio.wait_for(wait(), 60)

    async def give_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait(), 0.01)

    asyncio.run(scenario())
    join.execute()
    asyncio.run(give_up())
    assert join.execute().read_all().num_rows == 5


def test_a_task_that_waits_for_ever_is_collected_with_its_filter() -> None:
    """The filter wakes the task, whose frame holds the filter; nobody else can complete it."""
    loop = asyncio.new_event_loop()
    filter = prejoin.DynamicFilter(pa.schema([("k", pa.int64())]), "k")

    class Mark:
        pass

    async def wait(filter: prejoin.DynamicFilter, mark: Mark) -> None:
        await filter
        assert mark

    mark = Mark()
    gone = weakref.ref(mark)
    waiting = wait(filter, mark)
    task = loop.create_task(waiting)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.set_exception_handler(lambda *_: None)
    assert not task.done()
    del filter, mark, waiting, task
    gc.collect()
    assert gone() is None
    loop.close()
