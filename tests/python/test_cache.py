"""B6: one load for many askers, versions that swap, eviction that leaves builds in use alone."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import prejoin
from prejoin import UNCHANGED, BuildCache

TIMEOUT = 60.0


def rows(n: int = 3, value: int = 0) -> pa.Table:
    return pa.table({"id": list(range(n)), "value": [value] * n})


class Gated:
    """A loader that waits until it is let go, and counts its calls."""

    def __init__(self, result: Any = None) -> None:
        self.result = rows() if result is None else result
        self.calls = 0
        self.entered = threading.Event()
        self.gate = threading.Event()

    def __call__(self) -> Any:
        self.calls += 1
        self.entered.set()
        assert self.gate.wait(TIMEOUT)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class Clock:
    """Time that passes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def threads_ended() -> None:
    """Returns once no thread of a load is left, which holds its build until it ends."""
    for thread in threading.enumerate():
        if thread.name.startswith("prejoin load"):
            thread.join(TIMEOUT)
    gc.collect()


def waits(cache: BuildCache, name: str, n: int) -> None:
    """Returns once `n` askers wait for a load of somebody else."""
    for _ in range(6000):
        if cache.stats().get(name, {"waits": 0})["waits"] >= n:
            return
        time.sleep(0.01)
    raise AssertionError(cache.stats())


@pytest.mark.parametrize("fails", [False, True])
def test_simultaneous_askers_share_one_load(fails: bool) -> None:
    """50 threads and 50 tasks get the same object, or the same exception."""
    error = OSError("the table is gone")
    loader = Gated(error if fails else None)
    with BuildCache() as cache:

        def ask() -> object:
            try:
                return cache.get("users", loader, on="id", timeout=TIMEOUT)
            except OSError as raised:
                return raised

        async def ask_async() -> object:
            try:
                return await cache.get_async("users", loader, on="id", timeout=TIMEOUT)
            except OSError as raised:
                return raised

        async def many() -> list[object]:
            return list(await asyncio.gather(*[ask_async() for _ in range(50)]))

        with ThreadPoolExecutor(51) as threads:
            asked = [threads.submit(ask) for _ in range(50)]
            tasks = threads.submit(lambda: asyncio.run(many()))
            waits(cache, "users", 99)
            loader.gate.set()
            found = [each.result(TIMEOUT) for each in asked] + tasks.result(TIMEOUT)
        assert loader.calls == 1
        assert len(found) == 100
        assert len({id(each) for each in found}) == 1
        assert isinstance(found[0], OSError if fails else prejoin.PreparedBuild)
        assert (found[0] is error) == fails
        stats = cache.stats()["users"]
        assert (stats["misses"], stats["waits"], stats["loads"], stats["failures"]) == (1, 99, not fails, fails)
        if fails:  # not remembered
            with pytest.raises(OSError, match="gone"):
                cache.get("users", loader, on="id", timeout=TIMEOUT)
            assert loader.calls == 2


def test_askers_that_go_leave_the_load_alone() -> None:
    """A timeout and a cancelled task end their own waiting."""
    loader = Gated()
    with BuildCache() as cache:
        with pytest.raises(TimeoutError, match=r"'users' was not loaded within 0\.01 seconds"):
            cache.get("users", loader, on="id", timeout=0.01)

        async def cancelled() -> None:
            task = asyncio.ensure_future(cache.get_async("users", loader, on="id"))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(TimeoutError):
                await cache.get_async("users", loader, on="id", timeout=0.01)

        asyncio.run(asyncio.wait_for(cancelled(), TIMEOUT))
        loader.gate.set()
        assert cache.get("users", timeout=TIMEOUT).num_rows == 3
        assert loader.calls == 1


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_the_waiting_of_one_asker() -> None:
    loader = Gated()
    with BuildCache() as cache, ThreadPoolExecutor(1) as threads:
        other = threads.submit(cache.get, "users", loader, on="id", timeout=TIMEOUT)
        assert loader.entered.wait(TIMEOUT)
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            cache.get("users", loader, on="id", timeout=TIMEOUT)
        loader.gate.set()
        assert other.result(TIMEOUT) is cache.get("users", timeout=TIMEOUT)


def test_one_specification_for_a_name() -> None:
    """Another table never comes under a name (apache/gluten#12264)."""
    with BuildCache() as cache:
        build = cache.get("users", rows, on="id")
        assert cache.get("users", rows, on=["id"], null_equal=[False]) is build is cache.get("users")
        for other in ({"on": "value"}, {"on": "id", "null_equal": True}, {"on": "id", "keep": "first"}):
            with pytest.raises(prejoin.PlanError, match="names of their own"):
                cache.get("users", rows, **other)
        with pytest.raises(prejoin.PlanError, match="names of their own"):
            cache.publish("users", prejoin.prepare(rows(), "value"))
        with pytest.raises(prejoin.PlanError, match="id: int64, value: int64, and a build with id: int64 came"):
            cache.publish("users", prejoin.prepare(pa.table({"id": [1]}), "id"))
        with pytest.raises(prejoin.PlanError, match=r"has no build 'people'.*names that it knows: 'users'"):
            cache.get("people")
        with pytest.raises(prejoin.PlanError, match="say with on="):
            cache.get("people", rows)
        with pytest.raises(prejoin.PlanError, match="UNCHANGED, and the cache has no build"):
            cache.get("people", lambda: UNCHANGED)
        assert cache.get("users") is build


def test_loaders_that_wait_for_each_other() -> None:
    with BuildCache() as cache:
        with pytest.raises(prejoin.PlanError, match="a -> a"):
            cache.get("a", lambda: cache.get("a"), timeout=TIMEOUT)
        both = threading.Barrier(2)

        def a() -> Any:
            both.wait(TIMEOUT)
            return cache.get("b", b, timeout=TIMEOUT)

        def b() -> Any:
            both.wait(TIMEOUT)
            return cache.get("a", a, timeout=TIMEOUT)

        with ThreadPoolExecutor(2) as threads:
            asked = [threads.submit(cache.get, *each, timeout=TIMEOUT) for each in (("a", a), ("b", b))]
            for each in asked:
                with pytest.raises(prejoin.PlanError, match=r"a -> b -> a|b -> a -> b"):
                    each.result(TIMEOUT)
        # Without a circle, a loader may ask for other names.
        assert cache.get("c", lambda: cache.get("d", rows, on="id").to_table(), on="id", timeout=TIMEOUT).num_rows == 3


def test_eviction_leaves_builds_in_use() -> None:
    pool = prejoin.MemoryPool()
    size = prejoin.prepare(rows(1000), "id").reserved_bytes
    events: list[dict[str, Any]] = []
    with BuildCache(limit=2 * size, pool=pool, on_event=events.append) as cache:
        builds = {name: cache.get(name, lambda: rows(1000), on="id") for name in "ab"}
        cache.get("a")
        del builds["a"]
        cache.get("c", lambda: rows(1000), on="id")  # evicts b, which is in use
        assert [cache.stats()[name]["bytes"] > 0 for name in "abc"] == [True, False, True]
        assert pool.reserved == 3 * size
        assert cache.get("b") is builds["b"]  # evicts a, which nobody uses
        threads_ended()
        assert pool.reserved == 2 * size
        assert [cache.stats()[name]["bytes"] > 0 for name in "abc"] == [False, True, True]
        with pytest.raises(prejoin.PlanError, match="has no build 'a' now, and no loader"):
            cache.get("a")
        with pytest.raises(prejoin.ResourcesExhausted, match="at most"):
            cache.get("d", lambda: rows(100_000), on="id")
        cache.evict()
        threads_ended()
        assert pool.reserved == size
        builds.clear()
        assert pool.reserved == 0
    kinds = [event["event"] for event in events if event["name"] == "b"]
    assert kinds == ["loading", "loaded", "evicted", "revived", "evicted"]


def test_versions_swap_while_the_old_one_is_used() -> None:
    with BuildCache() as cache:
        first = cache.publish("users", prejoin.prepare(rows(3, 1), "id"), version="1")
        assert (first.name, first.version, cache.get("users")) == ("users", "1", first)
        second = cache.publish("users", prejoin.prepare(rows(3, 2), "id"), version=("2", 7))
        assert cache.get("users") is second is cache.get("users", version=("2", 7))
        assert first.to_table()["value"].to_pylist() == [1, 1, 1]
        third = cache.get("users", lambda: rows(3, 3), version="3")
        assert (third.version, cache.current("users")) == ("3", third)
        again = cache.publish("users", first, version="4")
        assert (again is first, again.version, first.version) == (False, "4", "1")
        assert second.loaded_at is not None
        assert first.loaded_at is not None
        assert first.loaded_at <= second.loaded_at
        with pytest.raises(TypeError, match="takes a PreparedBuild"):
            cache.publish("users", rows())


def test_an_old_build_is_returned_while_a_refresh_runs() -> None:
    clock, loader, version = Clock(), Gated(), ["1"]
    loader.gate.set()
    with BuildCache(_clock=clock) as cache:
        cache.register("users", loader, on="id", version=lambda: version[0], every=10, eager=True)
        old = cache.get("users", timeout=TIMEOUT)
        clock.now = 9
        assert (cache.get("users"), loader.calls) == (old, 1)
        clock.now = 10  # due: the version is asked for, and it is the same
        assert cache.get("users") is old
        settled(cache, "users")
        assert (cache.get("users"), loader.calls, cache.stats()["users"]["age"]) == (old, 1, 0)
        clock.now, version[0] = 20, "2"
        loader.gate.clear()
        loader.entered.clear()
        assert cache.get("users") is old is cache.current("users")
        assert loader.entered.wait(TIMEOUT)
        assert cache.get("users") is old  # while the refresh runs
        assert loader.calls == 2
        loader.gate.set()
        settled(cache, "users")
        new = cache.get("users")
        assert (new is old, new.version) == (False, "2")


@pytest.mark.parametrize("on_failure", ["stale", "error"])
def test_failed_refreshes(on_failure: Any) -> None:
    clock, loader = Clock(), Gated()
    loader.gate.set()
    with BuildCache(_clock=clock) as cache:
        cache.register("users", loader, on="id", every=10, on_failure=on_failure, retry_delay=5, max_stale=20)
        old = cache.get("users", timeout=TIMEOUT)
        loader.result, clock.now = OSError("gone"), 10
        assert cache.get("users") is old
        settled(cache, "users")
        for _ in range(3):  # no further try for 5 seconds
            if on_failure == "stale":
                assert cache.get("users") is old
            else:
                with pytest.raises(OSError, match="gone"):
                    cache.get("users")
        assert (loader.calls, cache.current("users")) == (2, old)
        assert cache.stats()["users"]["error"] == "gone"
        clock.now = 31  # too old: who asks waits for the refresh
        with pytest.raises(OSError, match="gone"):
            cache.get("users", timeout=TIMEOUT)
        assert loader.calls == 3
        assert cache.current("users") is old
        loader.result, clock.now = rows(5), 37
        assert cache.get("users", timeout=TIMEOUT).num_rows == 5
        assert cache.stats()["users"]["error"] is None


def settled(cache: BuildCache, name: str) -> None:
    """Returns once no load of this name runs."""
    for _ in range(6000):
        if not cache.stats()[name]["loading"]:
            return
        time.sleep(0.01)
    raise AssertionError(cache.stats())


def test_publish_wins_over_a_load_that_runs() -> None:
    loader = Gated(rows(3, 1))
    with BuildCache() as cache, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(cache.get, "users", loader, on="id", timeout=TIMEOUT)
        assert loader.entered.wait(TIMEOUT)
        published = cache.publish("users", prejoin.prepare(rows(3, 2), "id"), version=2)
        assert asked.result(TIMEOUT) is published
        dropped = threading.Event()

        def listen(event: dict[str, Any]) -> None:
            if event["event"] == "dropped":
                dropped.set()

        cache._events._on_event = listen
        loader.gate.set()
        assert dropped.wait(TIMEOUT)
        assert cache.get("users") is published


def test_closing_with_a_load_that_runs() -> None:
    loader, pool = Gated(rows(1000)), prejoin.MemoryPool()
    cache = BuildCache(pool=pool)
    cache.get("others", rows, on="id")
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(cache.get, "users", loader, on="id", timeout=TIMEOUT)
        assert loader.entered.wait(TIMEOUT)
        running = [thread for thread in threading.enumerate() if thread.name == "prejoin load users"]
        cache.close()
        with pytest.raises(prejoin.ExecutionError, match="closed while 'users' was loaded"):
            asked.result(TIMEOUT)
    loader.gate.set()
    for thread in running:
        thread.join(TIMEOUT)
    gc.collect()
    assert pool.reserved == 0
    for call in (lambda: cache.get("users"), lambda: cache.current("users"), cache.evict):
        with pytest.raises(prejoin.PlanError, match="is closed"):
            call()
    cache.close()


def test_a_load_that_hangs() -> None:
    clock, loader = Clock(), Gated()
    with BuildCache(load_timeout=30, _clock=clock) as cache, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(cache.get, "users", loader, on="id", timeout=TIMEOUT)
        assert loader.entered.wait(TIMEOUT)
        clock.now = 31
        with pytest.raises(TimeoutError, match="within 30 seconds"):
            asked.result(TIMEOUT)
        assert cache.get("users", lambda: rows(7), on="id", timeout=TIMEOUT).num_rows == 7
        loader.gate.set()
    assert loader.calls == 1


def test_a_loader_that_exits_ends_no_asker() -> None:
    def leaves() -> Any:
        raise SystemExit(3)

    with BuildCache() as cache, pytest.raises(prejoin.ExecutionError, match="ended with SystemExit: 3"):
        cache.get("users", leaves, on="id", timeout=TIMEOUT)


def test_callbacks_run_without_a_lock() -> None:
    """A loader, a version and a listener that use the cache from another thread, and wait for it."""
    with BuildCache() as cache, ThreadPoolExecutor(4) as threads:

        def use(*_: object) -> Any:
            return threads.submit(cache.stats).result(TIMEOUT)

        cache._events._on_event = use
        cache.register("users", lambda: use() and rows(), on="id", version=lambda: str(use()))
        assert cache.get("users", timeout=TIMEOUT).num_rows == 3

        def fails(_: object) -> None:
            raise OSError("listener")

        cache._events._on_event = fails
        cache.evict()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_the_child_of_a_fork_has_an_empty_cache() -> None:
    loader = Gated()
    with BuildCache() as cache, ThreadPoolExecutor(1) as threads:
        cache.register("others", rows, on="id")
        kept = cache.get("others", timeout=TIMEOUT)
        asked = threads.submit(cache.get, "users", loader, on="id", timeout=TIMEOUT)
        assert loader.entered.wait(TIMEOUT)
        child = os.fork()
        if child == 0:
            try:
                empty = cache.stats()["others"]["bytes"] == 0 and not cache.stats()["users"]["loading"]
                loaded = cache.get("others", timeout=TIMEOUT)
                both = loaded is not kept and cache.get("users", rows, on="id", timeout=TIMEOUT).num_rows == 3
                os._exit(0 if empty and both else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        loader.gate.set()
        assert asked.result(TIMEOUT).num_rows == 3
        assert cache.get("others") is kept


def test_many_threads_over_few_names() -> None:
    """16 threads that get, publish and evict: what they get is right, no lock is left, the pool is exact at the end."""
    pool = prejoin.MemoryPool()
    steps = int(os.environ.get("PREJOIN_CACHE_STEPS", "150"))
    sizes = {"a": 100, "b": 200, "c": 300}
    limit = 2 * prejoin.prepare(rows(300), "id").reserved_bytes
    with BuildCache(limit=limit, pool=pool) as cache, ThreadPoolExecutor(16) as threads:

        def work(seed: int) -> None:
            for step in range(steps):
                name = "abc"[(seed + step * 7) % 3]
                match (seed * 31 + step) % 10:
                    case 0:
                        cache.evict(name) if name in cache.stats() else None
                    case 1:
                        cache.publish(name, prejoin.prepare(rows(sizes[name], step), "id", pool=pool), version=step)
                    case 2:
                        build = asyncio.run(cache.get_async(name, partial(rows, sizes[name]), on="id", timeout=TIMEOUT))
                        assert build.num_rows == sizes[name]
                    case _:
                        build = cache.get(name, partial(rows, sizes[name]), on="id", timeout=TIMEOUT)
                        assert build.num_rows == sizes[name]
                        assert build.get(sizes[name] - 1) is not None

        for done in [threads.submit(work, seed) for seed in range(16)]:
            done.result(4 * TIMEOUT)
        assert sum(entry["bytes"] for entry in cache.stats().values()) <= limit
    threads_ended()
    assert pool.reserved == 0
