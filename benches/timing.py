"""Timing that several benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def least(calls: dict[str, Callable[[], Any]], seconds: float, repeat: int = 1) -> dict[str, float]:
    """Microseconds of one call of each, timed in turn, so that other load on the machine hits all."""
    best = dict.fromkeys(calls, float("inf"))
    end = time.perf_counter() + seconds * len(calls)
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeat):
                result = call()
            best[name] = min(best[name], (time.perf_counter() - start) / repeat * 1e6)
            del result
        rounds += 1
    return best


def bar(text: str, value: float, most: float) -> None:
    """Prints whether a figure reaches its bar."""
    print(f"  {text}: {value:.2f}, at most {most:.2f}: {'reached' if value <= most else 'MISSED'}")
