"""What is done under a cache's lock, and what has to wait until it is free again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any

LOG = logging.getLogger("prejoin.cache")


class Critical:
    """Holds the lock of a cache. Futures, events and the end of builds, which may run other Python, come after."""

    def __init__(self, lock: Any, on_event: Callable[[dict[str, Any]], object] | None) -> None:
        self._lock = lock
        self._on_event = on_event
        self._later: list[Callable[[], object]] = []
        self._events: list[dict[str, Any]] = []
        # Builds that are to go once the lock is free.
        self.dropped: list[Any] = []

    def later(self, call: Callable[[], object]) -> None:
        """Calls `call` once the lock is free."""
        self._later.append(call)

    def event(self, kind: str, name: str, **facts: Any) -> None:
        """Reports what happened, once the lock is free."""
        self._events.append({"event": kind, "name": name, **facts})

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
            for event in self._events:
                self._report(event)

    def _report(self, event: dict[str, Any]) -> None:
        level = logging.WARNING if "error" in event else logging.DEBUG
        LOG.log(level, "%s: %s", event["name"], ", ".join(f"{key}={value!r}" for key, value in event.items()))
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception:
                LOG.exception("on_event failed")
