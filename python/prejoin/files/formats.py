"""Which files there are and what is in them: patterns, names, first bytes. A pipe is opened once, here."""

from __future__ import annotations

import glob
import io
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from prejoin.files.errors import FileError, one_line

FORMATS = ("parquet", "csv", "tsv", "arrow", "arrows")
"""Parquet; text with commas or tabs; Arrow IPC as a file (also Feather) and as a stream."""

EXTENSIONS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrows",
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
BINARY = ("parquet", "arrow", "arrows")
TEXT = ("csv", "tsv")
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrows"}
# First bytes of compressed files and of text that is not UTF-8.
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
NAMES = {
    "parquet": "Parquet",
    "arrow": "an Arrow IPC file",
    "arrows": "an Arrow IPC stream",
    "csv": "CSV",
    "tsv": "TSV",
}

SAY = "name it by --build-format, --probe-format or --keys-format"


@dataclass(frozen=True)
class TableFile:
    """A file of a known format; the path "-" is standard input or output."""

    path: str
    format: str
    stream: Any = None
    """The opened pipe, decompressed, where the file can be read only once."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard input" if self.path == "-" else self.path

    def open_bytes(self) -> Any:
        """Its bytes as a file of pyarrow, decompressed."""
        if self.stream is None:
            return pa.input_stream(self.path, compression=_compression_of(self.path))
        return pa.PythonFile(self.stream, mode="r")

    def open_whole(self) -> Any:
        """Something that can be read from its end: the path, or a copy of a pipe in a file without a name."""
        return self.path if self.stream is None else _spooled(self.stream)


def expand(patterns: Sequence[str]) -> list[str]:
    """The files that patterns mean, each pattern's in the order of their names."""
    paths: list[str] = []
    for pattern in patterns:
        if pattern == "-" or os.path.lexists(pattern) or not glob.has_magic(pattern):
            paths.append(pattern)
            continue
        found = sorted(path for path in glob.glob(pattern, recursive=True) if not os.path.isdir(path))
        if not found:
            raise FileError(f"{pattern}: no file matches")
        paths += found
    return paths


def format_of(path: str) -> str | None:
    """The format of this name."""
    stem, extension = os.path.splitext(path.lower())
    if extension in COMPRESSIONS:
        extension = os.path.splitext(stem)[1]
        return EXTENSIONS.get(extension) if extension in (".csv", ".tsv") else None
    return EXTENSIONS.get(extension)


def input_file(path: str, format: str | None, plain: str = "csv") -> TableFile:
    """A file to read: there, not empty, and of the format that it is said to have.

    A pipe is opened here and stays open, since its bytes come only once; those of a compressed one are decompressed.
    Where neither its name nor its first bytes say the format it is `plain`. A Parquet file of no rows has bytes, so an
    empty file is one that was never written; but a list of keys may be empty.
    """
    name = "standard input" if path == "-" else path
    stream = None
    try:
        if path == "-":
            stream = sys.stdin.buffer
        elif not stat.S_ISREG(os.stat(path).st_mode):
            stream = _Pipe(_Handle(path))
        if stream is not None:
            stream, head = _decompressed(stream, _compression_of(path))
        else:
            with open(path, "rb") as file:
                head = file.read(8)
    except FileNotFoundError:
        raise FileError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise FileError(f"{name}: is a directory; name its files, as in '{path.rstrip('/')}/*.parquet'") from None
    except OSError as error:
        raise FileError(f"{name}: {one_line(error)}") from None
    seen = next((format for magic, format in MAGIC.items() if head.startswith(magic)), None)
    said = format or format_of(path) or (seen or plain if stream is not None else None)
    if not head and said != "lines":
        raise FileError(f"{name}: is empty")
    if said is None:
        raise FileError(f"{name}: its name has no ending of a known format; {SAY} ({', '.join(FORMATS)})")
    if said != seen and (said in BINARY or seen is not None):
        found = f"it is {NAMES[seen]}" if seen else f"it begins with {head[:4]!r}"
        raise FileError(f"{name}: is not {NAMES[said]}, {found}; {SAY}")
    if said not in BINARY:
        _check_text(name, path if stream is None else "", head)
    return TableFile(path, said, stream)


def _check_text(name: str, path: str, head: bytes) -> None:
    if head.startswith(UTF_16):
        raise FileError(f"{name}: is UTF-16 text, and UTF-8 is read; convert it, as in iconv -f UTF-16 -t UTF-8")
    compressed = next((kind for magic, kind in COMPRESSED.items() if head.startswith(magic)), None)
    named = _compression_of(path)
    if compressed and compressed != named:
        ending = next(ending for ending, kind in COMPRESSIONS.items() if kind == compressed)
        raise FileError(f"{name}: is compressed by {compressed}, which its name has to say by the ending {ending}")
    if named and not compressed:
        raise FileError(f"{name}: is not compressed by {named}, as its name says")


def _compression_of(path: str) -> str | None:
    return COMPRESSIONS.get(os.path.splitext(path.lower())[1])


def _decompressed(stream: Any, named: str | None) -> tuple[Any, bytes]:
    """A pipe, decompressed where its first bytes show that it has to be, and its first bytes then."""
    head: bytes = stream.peek(8)[:8]
    kind = next((kind for magic, kind in COMPRESSED.items() if head.startswith(magic)), None)
    if kind is None:
        if named:
            raise OSError(f"is not compressed by {named}, as its name says")
        return stream, head
    opened = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), kind))
    return opened, opened.peek(8)[:8]


class _Pipe(io.BufferedReader):
    """A pipe that is closed by whoever lets go of it last."""

    def __del__(self) -> None:
        self.close()


class _Handle(io.FileIO):
    """A file that is closed by whoever lets go of it last."""

    def __del__(self) -> None:
        self.close()


def _spooled(stream: IO[bytes]) -> Any:
    with tempfile.TemporaryFile() as file:
        while block := stream.read(1 << 20):
            file.write(block)
        file.seek(0)
        return _Handle(os.dup(file.fileno()))


def is_saved_build(path: str) -> bool:
    """Whether a file is a saved build, by its name or its first bytes."""
    if path.endswith(".prejoin"):
        return True
    try:
        # A pipe is read once, so not here.
        with open(path, "rb") if os.path.isfile(path) else io.BytesIO() as file:
            return file.read(8) == b"\x89PJOIN\r\n"
    except OSError:
        return False
