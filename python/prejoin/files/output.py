"""Tables written to files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from prejoin.files.csv_write import Lines
from prejoin.files.errors import FileError, Naming
from prejoin.files.formats import BINARY, COMPRESSIONS, FORMATS, NAMES, format_of

# Rows and bytes of a Parquet row group that is written.
GROUP_ROWS = 1 << 18
GROUP_BYTES = 64 << 20

# File systems take names of so many bytes; the temporary name has a random part and an ending.
NAME_BYTES = 255 - 24

unfinished: set[str] = set()
"""Files that are written now, for whoever has to end the process at once."""


class Output:
    """A table that is written beside its place and moved there when it is complete; on an error nothing is left.

    Standard output, devices and pipes are written in place.
    """

    def __init__(self, path: str, format: str | None, schema: pa.Schema) -> None:
        """Make the file, so that a directory that is not there is found before any work."""
        self.path = path
        said = format or ("csv" if path == "-" else format_of(path))
        if said is None:
            raise FileError(
                f"{path}: its name has no ending of a known format; name it by --out-format ({', '.join(FORMATS)})"
            )
        if path == "-" and said in BINARY and sys.stdout.isatty():
            raise FileError(f"{NAMES[said]} is not written to a terminal; give --out FILE or a pipe")
        self.format, self.rows = said, 0
        self._pending: list[pa.RecordBatch] = []
        self._beside: str | None = None
        self._name = "standard output" if path == "-" else path
        self.schema = schema
        self._writer: Any = None
        with Naming(self._name):
            # Nothing is written before the types and the first rows are known to be good: it may go to a pipe.
            if said == "parquet":
                self._check_parquet()
            self._open_writer(pa.BufferOutputStream())
            self._sink: Any = None
            try:
                self._sink = self._open_sink()
            except BaseException:
                self._abort()
                raise

    def _open_sink(self) -> Any:
        if self.path == "-":
            return pa.PythonFile(sys.stdout.buffer, mode="w")
        compression = COMPRESSIONS.get(os.path.splitext(self.path.lower())[1])
        mode = 0o666 & ~_umask()
        try:
            # Of the path itself: that of a pipe in /dev/fd has no real one.
            status = os.stat(self.path)
            if not stat.S_ISREG(status.st_mode):
                if stat.S_ISDIR(status.st_mode):
                    raise IsADirectoryError(21, "is a directory")
                # pyarrow's own files seek, which pipes refuse.
                pipe = pa.PythonFile(open(self.path, "wb"), mode="w")  # noqa: SIM115
                return pa.CompressedOutputStream(pipe, compression) if compression else pipe
            mode = stat.S_IMODE(status.st_mode)
        except FileNotFoundError:
            pass
        # Through a link, its target is replaced and the link stays, also where there is no target yet.
        place = os.path.realpath(self.path)
        handle, self._beside = tempfile.mkstemp(".tmp", f".{_cut(os.path.basename(place))}.", os.path.dirname(place))
        unfinished.add(self._beside)
        os.fchmod(handle, mode)
        os.close(handle)
        return pa.output_stream(self._beside, compression=compression)

    def _open_writer(self, sink: Any) -> Any:
        if self.format == "parquet":
            return pa.parquet.ParquetWriter(sink, self.schema)
        if self.format == "arrow":
            return pa.ipc.new_file(sink, self.schema)
        if self.format == "arrows":
            return pa.ipc.new_stream(sink, self.schema)
        return Lines(sink, self.schema, "\t" if self.format == "tsv" else ",")

    def _check_parquet(self) -> None:
        for column in self.schema:
            if not _parquet_has(column):
                raise FileError(
                    f"{self._name}: column {column.name!r} has type {column.type}, which Parquet does not have; "
                    "write .arrow or .csv, or leave the column out by --select"
                )

    def _begin(self) -> None:
        if self._writer is None:
            self._writer = self._open_writer(self._sink)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch of the schema."""
        self.rows += batch.num_rows
        with Naming(self._name):
            self._begin()
            if self.format != "parquet":
                self._writer.write_batch(batch)
                return
            self._pending.append(batch)
            rows = sum(batch.num_rows for batch in self._pending)
            if rows >= GROUP_ROWS or sum(batch.nbytes for batch in self._pending) >= GROUP_BYTES:
                self._write_group()

    def _write_group(self) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending, self.schema)
            self._pending = []
            self._writer.write_table(table, row_group_size=table.num_rows)

    def __enter__(self) -> Output:
        """Begin to write."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: object) -> None:
        """Put the file in its place, or remove it after an error."""
        if kind is not None:
            self._abort()
            return
        try:
            with Naming(self._name):
                self._begin()
                if self.format == "parquet":
                    self._write_group()
                self._writer.close()
                if self.path == "-":
                    sys.stdout.buffer.flush()
                    return
                self._sink.close()
                if self._beside:
                    self._publish(self._beside)
        except BaseException:
            self._abort()
            raise

    def _publish(self, beside: str) -> None:
        """Move the file to its place once it is on the disk, so that a crash leaves one of the two files whole."""
        place = os.path.realpath(self.path)
        _sync(beside)
        os.replace(beside, place)
        self._beside = None
        unfinished.discard(beside)
        # A directory cannot be opened everywhere; the file itself is there.
        with contextlib.suppress(OSError):
            _sync(os.path.dirname(place))

    def _abort(self) -> None:
        beside, self._beside = self._beside, None
        if self.format == "parquet" and self._writer:
            # It is not to write the end of the file when it is let go of.
            self._writer.is_open = False
        if self.path != "-":
            # What is still buffered may not fit the disk either; the file goes in any case.
            with contextlib.suppress(Exception):
                self._sink.close()
        if beside:
            os.unlink(beside)
            unfinished.discard(beside)


def _parquet_has(column: pa.Field) -> bool:
    try:
        pa.parquet.ParquetWriter(pa.BufferOutputStream(), pa.schema([column]))
    except pa.ArrowException:
        return False
    return True


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cut(name: str) -> str:
    """A name short enough to be part of a longer one."""
    return os.fsdecode(os.fsencode(name)[:NAME_BYTES].decode("utf-8", "ignore"))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
