"""One load that any number of askers wait for."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeAlias

from prejoin._core import PreparedBuild
from prejoin.cache.waiting import RUNNING, Node, waiting_for
from prejoin.typing import Version

# How long a waiting asker sleeps before it looks whether the load has a thread and is not late. Where a signal does not
# end such a sleep, it has to be short.
SLICE = 0.5 if os.name == "posix" else 0.04


Reference: TypeAlias = weakref.ReferenceType["Load"]


def _run(node: Node, claim: threading.Lock, work: Callable[[Reference], None], load: Reference) -> None:
    """The thread of a load; of several, the first one does the work."""
    if claim.acquire(blocking=False):
        RUNNING.set(node)
        work(load)


class Load:
    """A load of one name, in a daemon thread of its own.

    An asker that is cancelled or interrupted takes nothing down: the thread belongs to no asker. Whoever waits sees to
    it that the load has a thread, because the asker that was to start it may have been interrupted.
    """

    def __init__(
        self, name: str, wanted: Version, work: Callable[[Reference], None], look: Callable[[Load], None]
    ) -> None:
        """A load that `work` does; `look` is called now and then while somebody waits."""
        self.node = Node(name)
        # The version that its askers want, None for whichever there is.
        self.wanted = wanted
        # When it is late, by the cache's clock.
        self.deadline: float | None = None
        # Whether it has a result, which the future may get a moment later. Guarded by the cache's lock.
        self.is_settled = False
        self.future: Future[PreparedBuild] = Future()
        self.future.set_running_or_notify_cancel()
        self._work = work
        self._look = look
        self._claim = threading.Lock()
        self._is_starting = False

    def start(self) -> None:
        """Gives the load its thread, if it has none."""
        if self._is_starting:
            return
        self._is_starting = True
        try:
            # Weakly: a load that was left aside holds what its askers got instead, and its loader may run for long.
            arguments = (self.node, self._claim, self._work, weakref.ref(self))
            threading.Thread(target=_run, args=arguments, name=f"prejoin load {self.node.name}", daemon=True).start()
        except BaseException:
            # Interrupted, or there is no room for a thread: the next one who waits tries again.
            self._is_starting = False
            raise

    def wait(self, timeout: float | None) -> bool:
        """Waits in this thread.

        Returns:
            Whether the load is done.

        Raises:
            PlanError: Where the load waits for the one that runs here.

        """
        until = None if timeout is None else time.monotonic() + timeout
        done = threading.Event()
        self.future.add_done_callback(lambda _: done.set())
        with waiting_for(self.node):
            while not done.is_set():
                self.start()
                self._look(self)
                left = SLICE if until is None else min(SLICE, until - time.monotonic())
                if not done.wait(max(left, 0)) and left <= 0:
                    return False
        return True

    async def wait_async(self, timeout: float | None) -> bool:
        """`wait` in this task."""
        # Only those who await pay for it: it takes some MiB in each process.
        import asyncio

        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def finish() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def done(_: Future[PreparedBuild]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish)

        self.future.add_done_callback(done)
        until = None if timeout is None else loop.time() + timeout
        with waiting_for(self.node):
            while not self.future.done():
                self.start()
                self._look(self)
                left = SLICE if until is None else min(SLICE, until - loop.time())
                await asyncio.wait([waiter], timeout=max(left, 0))
                if left <= 0 and not self.future.done():
                    return False
        return True
