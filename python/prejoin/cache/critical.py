"""What is done under a cache's lock, and what has to wait until it is free again."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from prejoin.cache.events import Events


class Critical:
    """Holds the lock of a cache. Futures, events and the end of builds, which may run other Python, come after."""

    def __init__(self, lock: Any, events: Events) -> None:
        self._lock = lock
        self._events = events
        self._later: list[Callable[[], object]] = []
        # Builds that are to go once the lock is free.
        self.dropped: list[Any] = []

    def later(self, call: Callable[[], object]) -> None:
        """Calls `call` once the lock is free."""
        self._later.append(call)

    def event(self, kind: str, name: str, **facts: Any) -> None:
        """Reports what happened, once the lock is free."""
        self._events.add(kind, name, **facts)

    def __enter__(self) -> Critical:
        self._lock.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        self.dropped.clear()
        try:
            for call in self._later:
                call()
        finally:
            self._events.deliver()
