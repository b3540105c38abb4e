"""One line on a terminal that says how far a command is."""

from __future__ import annotations

import os
import time
from typing import TextIO

INTERVAL = 0.1
"""Seconds between two updates."""


class Progress:
    """Counts rows, and shows them where `stream` is a terminal."""

    def __init__(self, stream: TextIO, total: int | None, shown: bool = True) -> None:
        """`total` is the number of rows to read, where it is known."""
        self._stream, self._total = stream, total
        self.shown = shown and stream.isatty() and os.environ.get("TERM") != "dumb"
        self.read = self.written = 0
        self._started = time.monotonic()
        self._next = self._started + INTERVAL

    def count_read(self, rows: int) -> None:
        """Count rows read."""
        self.read += rows
        self._show()

    def count_written(self, rows: int) -> None:
        """Count rows written."""
        self.written += rows
        self._show()

    def _show(self) -> None:
        if not self.shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + INTERVAL
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns or 80
        except OSError:
            width = 80
        self._write("\r\x1b[K" + self.text(now - self._started)[: max(width - 1, 0)])

    def text(self, seconds: float) -> str:
        """The line after so many seconds."""
        done = f"{self.read:,} rows"
        if self._total:
            share = min(self.read / self._total, 1)
            done = f"[{'#' * round(10 * share):-<10}] {share:4.0%}  {self.read:,} of {self._total:,} rows"
        return f"{done}, {self.written:,} out, {_short(self.read / max(seconds, 1e-9))} rows/s"

    def close(self, last: str | None = None) -> None:
        """Take the line away, and leave `last` in its place."""
        if self.shown:
            self._write("\r\x1b[K" + (f"{last} in {time.monotonic() - self._started:,.1f} s\n" if last else ""))
            self.shown = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _short(number: float) -> str:
    for unit in ("", "k"):
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.1f}M"
