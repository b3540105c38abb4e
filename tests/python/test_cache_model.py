"""B6: any order of asking, publishing, evicting, failing, time passing and closing gives what a model says."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import prejoin

TIMEOUT = 60.0
EVERY = 10


class Call:
    """One call of the loader: the test decides when and how it ends."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.rows: pa.Table | None = None
        self.thread = threading.current_thread()


class Machine(RuleBasedStateMachine):
    """One registered name. Each build holds a number, which says where it came from."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.pool = prejoin.MemoryPool()
        self.calls: list[Call] = []
        self.events = threading.Condition()
        self.ended = 0
        self.started = 0
        self.cache = prejoin.BuildCache(pool=self.pool, on_event=self.listen, _clock=lambda: self.now)
        self.cache.register("t", self.load, on="id", every=EVERY)
        # The model.
        self.number = 0
        self.held: int | None = None
        self.due = 0.0
        self.loading: Call | None = None
        self.left: list[Call] = []
        self.in_use: prejoin.PreparedBuild | None = None
        self.asker: threading.Thread | None = None
        self.answers: list[object] = []
        self.closed = False

    def load(self) -> pa.Table:
        call = Call()
        with self.events:
            self.calls.append(call)
            self.events.notify_all()
        assert call.gate.wait(TIMEOUT)
        if call.rows is None:
            raise OSError("the table is gone")
        return call.rows

    def listen(self, event: dict[str, Any]) -> None:
        with self.events:
            self.ended += event["event"] in ("loaded", "failed", "dropped")
            self.events.notify_all()

    def rows(self) -> pa.Table:
        self.number += 1
        return pa.table({"id": [1, 2], "number": [self.number] * 2})

    def shown(self, build: prejoin.PreparedBuild) -> object:
        row = build.get(1)
        assert row is not None
        return row["number"]

    def expect_call(self) -> None:
        """The model's load has begun: its loader is called."""
        self.started += 1
        with self.events:
            assert self.events.wait_for(lambda: len(self.calls) == self.started, TIMEOUT)
        self.loading = self.calls[-1]

    def end(self, call: Call, rows: pa.Table | None) -> None:
        ended = self.ended
        call.rows = rows
        call.gate.set()
        with self.events:
            assert self.events.wait_for(lambda: self.ended == ended + 1, TIMEOUT)
        call.thread.join(TIMEOUT)  # until then it holds the build

    def answered(self) -> object:
        """What the asker in another thread got."""
        assert self.asker is not None
        self.asker.join(TIMEOUT)
        assert not self.asker.is_alive()
        self.asker = None
        return self.answers.pop()

    @precondition(lambda self: not self.closed and self.held is not None)
    @rule(use=st.booleans(), current=st.booleans())
    def ask_for_what_is_there(self, use: bool, current: bool) -> None:
        build = self.cache.current("t") if current else self.cache.get("t", timeout=TIMEOUT)
        assert self.shown(build) == self.held
        if use:
            self.in_use = build
        if self.loading is None and self.now >= self.due:
            self.expect_call()

    @precondition(lambda self: not self.closed and self.held is None and self.asker is None)
    @rule()
    def ask_for_what_is_not_there(self) -> None:
        def ask() -> None:
            try:
                self.answers.append(self.shown(self.cache.get("t", timeout=TIMEOUT)))
            except Exception as error:
                self.answers.append(type(error))

        waits = self.cache.stats()["t"]["waits"]
        self.asker = threading.Thread(target=ask)
        self.asker.start()
        if self.loading is None:
            self.expect_call()
        else:
            for _ in range(60_000):
                if self.cache.stats()["t"]["waits"] > waits:
                    break
                self.asker.join(0.001)

    @precondition(lambda self: not self.closed and self.held is None)
    @rule()
    def an_impatient_asker(self) -> None:
        try:  # pytest.raises would keep the load, and so its build
            build: object = self.cache.get("t", timeout=0)
        except TimeoutError:
            build = None
        assert build is None
        if self.loading is None:
            self.expect_call()

    @precondition(lambda self: self.loading is not None)
    @rule(fails=st.booleans())
    def the_load_ends(self, fails: bool) -> None:
        call, self.loading = self.loading, None
        assert call is not None
        rows = None if fails else self.rows()
        self.end(call, rows)
        if not fails:
            self.held, self.due = self.number, self.now + EVERY
        if self.asker is not None:
            assert self.answered() == (OSError if fails else self.held)

    @precondition(lambda self: self.left)
    @rule(fails=st.booleans())
    def a_load_that_was_left_aside_ends(self, fails: bool) -> None:
        self.end(self.left.pop(), None if fails else self.rows())

    @precondition(lambda self: not self.closed)
    @rule(use=st.booleans())
    def publish(self, use: bool) -> None:
        build = self.cache.publish("t", prejoin.prepare(self.rows(), "id", pool=self.pool), version=self.number)
        self.held, self.due = self.number, self.now + EVERY
        if use:
            self.in_use = build
        if self.loading is not None:
            self.left.append(self.loading)
            self.loading = None
        if self.asker is not None:
            assert self.answered() == self.held

    @precondition(lambda self: not self.closed)
    @rule()
    def evict(self) -> None:
        self.cache.evict("t")
        if self.in_use is None or self.shown(self.in_use) != self.held:
            self.held = None

    @rule()
    def nobody_uses_it(self) -> None:
        evicted = not self.closed and self.cache.stats()["t"]["bytes"] == 0
        if evicted and self.in_use is not None and self.shown(self.in_use) == self.held:
            self.held = None
        self.in_use = None

    @rule(seconds=st.sampled_from([1, EVERY]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @precondition(lambda self: not self.closed)
    @rule()
    def close(self) -> None:
        self.cache.close()
        self.closed, self.held = True, None
        if self.loading is not None:
            self.left.append(self.loading)
            self.loading = None
        if self.asker is not None:
            assert self.answered() is prejoin.ExecutionError

    @invariant()
    def nothing_was_loaded_twice(self) -> None:
        assert len(self.calls) == self.started

    def teardown(self) -> None:
        self.cache.close()
        for call in self.calls:
            call.gate.set()
        for thread in threading.enumerate():
            if thread.name == "prejoin load t" or thread is self.asker:
                thread.join(TIMEOUT)
        self.in_use = None
        gc.collect()
        assert self.pool.reserved == 0


TestCache = Machine.TestCase
TestCache.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
