"""Which load waits for which: loads that would wait for each other in a circle are refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from prejoin._core import PlanError


class Node:
    """A load as others wait for it; unlike the load itself it holds no build."""

    def __init__(self, name: str) -> None:
        self.name = name


# The load whose loader runs here. Tasks and `asyncio.to_thread` inherit it.
RUNNING: ContextVar[Node | None] = ContextVar("prejoin_running_load", default=None)

_lock = threading.Lock()
# For each load the loads that it waits for now; a loader may wait in several threads.
_waits: dict[Node, list[Node]] = {}


@contextmanager
def waiting_for(load: Node) -> Iterator[None]:
    """Notes that the load that runs here waits for `load`.

    Raises:
        PlanError: Where `load` waits for this one, directly or through others.

    """
    running = RUNNING.get()
    if running is None:
        yield
        return
    with _lock:
        path = _path(load, running)
        if path is None:
            _waits.setdefault(running, []).append(load)
    if path is not None:
        names = " -> ".join(each.name for each in [running, *path])
        raise PlanError(f"loaders wait for each other: {names}; one of them has to do without the other's build")
    try:
        yield
    finally:
        with _lock:
            others = _waits[running]
            others.remove(load)
            if not others:
                del _waits[running]


def _path(start: Node, end: Node) -> list[Node] | None:
    """The loads from `start` to `end`, each of which waits for the next."""
    paths = [[start]]
    seen = {start}
    while paths:
        path = paths.pop()
        if path[-1] is end:
            return path
        for other in _waits.get(path[-1], ()):
            if other not in seen:
                seen.add(other)
                paths.append([*path, other])
    return None


def forget_threads() -> None:
    """Forgets all waits, in a child process after a fork: the threads that waited exist in the parent alone."""
    global _lock
    _lock = threading.Lock()
    _waits.clear()
