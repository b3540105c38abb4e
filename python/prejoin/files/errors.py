"""Errors of files, each one line that names the file."""

from __future__ import annotations

import pyarrow as pa

from prejoin._core import ExecutionError


class FileError(ExecutionError):
    """A file that cannot be read or written; the text is one line that names it."""


def one_line(error: BaseException) -> str:
    """What an error says, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__


class Naming:
    """Names the file in the errors of pyarrow and of the system that come out of a `with` block."""

    def __init__(self, name: str) -> None:
        """`name` is what messages call the file."""
        self.name = name

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Turn an error of the block into one that names the file."""
        if isinstance(error, pa.ArrowException | OSError | UnicodeError) and not isinstance(error, BrokenPipeError):
            raise FileError(f"{self.name}: {one_line(error)}") from error
