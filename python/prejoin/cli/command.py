"""Running one command: its options, its errors on one line, its exit status, and signals in every state."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

import pyarrow as pa

import prejoin
from prejoin import demo
from prejoin.cli import join, lookup, options, saved
from prejoin.cli.errors import UsageError
from prejoin.files import output
from prejoin.files.errors import FileError, one_line

# Seconds that a command has after a signal to end by itself.
GRACE = 1.0


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command and end the process with its exit status."""
    _watch_signals()
    sys.meta_path.insert(0, _WithoutPandas())
    # A standard stream that was closed (`>&-`) is None. Text for None would go to the other stream.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        status = run(argv)
        if sys.stdout:
            sys.stdout.flush()
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        status = 128 + getattr(signal, "SIGPIPE", 13)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream:
                stream.flush()
    # A thread of pyarrow may wait for a pipe that never ends; nothing else is left to do.
    os._exit(status)


class _WithoutPandas:
    """Hides pandas from pyarrow, which imports it for its first scalar: that takes longer than many a command."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def run(argv: Sequence[str] | None) -> int:
    """Run one command and give its exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["demo"]:
        # It has options of its own.
        demo.main(arguments[1:])
        return 0
    commands = {"join": join.join, "lookup": lookup.lookup, "prepare": saved.prepare, "inspect": saved.inspect}
    given = options.parser(commands).parse_args(arguments)
    try:
        prints = given.run in (lookup.lookup, saved.inspect) or getattr(given, "explain", False) or given.out == "-"
        if prints and sys.stdout is None:
            raise FileError("standard output is closed")
        return int(given.run(given) or 0)
    except UsageError as error:
        given.parser.print_usage(sys.stderr)
        print(f"{given.parser.prog}: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except (FileError, prejoin.PrejoinError, pa.ArrowException, MemoryError, OSError, UnicodeError) as error:
        name = getattr(error, "filename", None)
        text = f"{name}: {one_line(error)}" if name and isinstance(error, OSError) else one_line(error)
        print(f"{given.parser.prog}: error: {text}", file=sys.stderr)
        return 1
    except Exception as error:
        # A user wants no traceback, but a report of this error needs its type.
        print(f"{given.parser.prog}: error: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
        return 1


def _watch_signals() -> None:
    """Let SIGINT and SIGTERM end the process, also while the main thread waits in code that sees no signal."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_end_late, args=(reading,), daemon=True).start()


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _end_late(reading: int) -> None:
    """Ends the process some time after a signal, with nothing left behind."""
    number = os.read(reading, 1)[0]
    while number not in (signal.SIGINT, signal.SIGTERM):
        number = os.read(reading, 1)[0]
    threading.Event().wait(GRACE)
    for path in list(output.unfinished):
        with contextlib.suppress(OSError):
            os.unlink(path)
    os._exit(128 + number)
