"""What happens in a cache, reported in the order in which it happened."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

LOG = logging.getLogger("prejoin.cache")


class Events:
    """A queue of events that waits until no lock of the cache is held.

    One thread at a time delivers them, so that nobody hears of a result before its cause.
    """

    def __init__(self, on_event: Callable[[dict[str, Any]], object] | None) -> None:
        self._on_event = on_event
        self.forget()

    def forget(self) -> None:
        """Drops what waits, also in a child process whose parent was delivering."""
        self._waiting: deque[dict[str, Any]] = deque()
        self._delivering = threading.Lock()

    def add(self, kind: str, name: str, **facts: Any) -> None:
        """Notes what happened; called under the lock of the cache."""
        self._waiting.append({"event": kind, "name": name, **facts})

    def deliver(self) -> None:
        """Reports all that waits, unless another thread, or a caller of this one, is doing so."""
        # Asked again after each round: another thread may have added an event and found this one still delivering.
        while self._waiting and self._delivering.acquire(blocking=False):
            try:
                while self._waiting:
                    self._report(self._waiting.popleft())
            finally:
                self._delivering.release()

    def _report(self, event: dict[str, Any]) -> None:
        level = logging.WARNING if "error" in event else logging.DEBUG
        LOG.log(level, "%s: %s", event["name"], ", ".join(f"{key}={value!r}" for key, value in event.items()))
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception:
                LOG.exception("on_event failed")
