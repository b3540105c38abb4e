"""Waking a coroutine that waits for a dynamic filter."""

from __future__ import annotations

import asyncio
import contextlib


def wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Ends `future` in its own loop; called from any thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(_finish, future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
