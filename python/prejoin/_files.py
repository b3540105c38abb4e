"""Tables in files, for the command line: formats, batches one by one, outputs that appear whole or not at all."""

from __future__ import annotations

import glob
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

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
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrows"}
NAMES = {
    "parquet": "Parquet",
    "arrow": "an Arrow IPC file",
    "arrows": "an Arrow IPC stream",
    "csv": "CSV",
    "tsv": "TSV",
}

SAY = "say it by --build-format, --probe-format or --keys-format"

# Rows and bytes of a Parquet row group that is written.
GROUP_ROWS = 1 << 18
GROUP_BYTES = 64 << 20


class FileError(Exception):
    """A file that cannot be read or written; the text is one line that names it."""


@dataclass(frozen=True)
class Csv:
    """How text becomes columns."""

    types: dict[str, pa.DataType] = field(default_factory=dict)
    """Types of columns that are not to be guessed."""
    nulls: tuple[str, ...] = ("",)
    """What stands for null where it is not quoted."""

    def check(self, file: TableFile, schema: pa.Schema) -> None:
        """Refuse text in another encoding, which pyarrow takes for bytes."""
        for column in schema:
            if pa.types.is_binary(column.type) and column.name not in self.types:
                raise FileError(
                    f"{file.name}: column {column.name!r} holds text that is not UTF-8; convert the file, or keep its "
                    f"bytes by --csv-type {column.name}=binary"
                )

    def options(self, file: TableFile, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """The options of pyarrow's readers."""
        convert = pa.csv.ConvertOptions(
            column_types=self.types,
            null_values=list(self.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=columns,
        )
        parse = pa.csv.ParseOptions(delimiter="\t" if file.format == "tsv" else ",", newlines_in_values=True)
        return {"convert_options": convert, "parse_options": parse}


@dataclass(frozen=True)
class TableFile:
    """A file of a known format; the path "-" is standard input or output."""

    path: str
    format: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard input" if self.path == "-" else self.path


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
    """The format that a name tells."""
    stem, extension = os.path.splitext(path.lower())
    if extension in COMPRESSIONS:
        extension = os.path.splitext(stem)[1]
        return EXTENSIONS.get(extension) if extension in (".csv", ".tsv") else None
    return EXTENSIONS.get(extension)


def input_file(path: str, format: str | None) -> TableFile:
    """A file to read: there, not empty, and of the format that it is said to have."""
    if path == "-":
        # Typed as any binary stream; it is a buffered reader.
        head = sys.stdin.buffer.peek(8)[:8]  # type: ignore[union-attr]
    else:
        try:
            with open(path, "rb") as file:
                head = file.read(8)
        except FileNotFoundError:
            raise FileError(f"{path}: no such file") from None
        except IsADirectoryError:
            raise FileError(f"{path}: is a directory; name its files, as in '{path.rstrip('/')}/*.parquet'") from None
        except OSError as error:
            raise FileError(f"{path}: {error.strerror}") from None
    name = "standard input" if path == "-" else path
    if not head:
        raise FileError(f"{name}: is empty")
    seen = next((format for magic, format in MAGIC.items() if head.startswith(magic)), None)
    said = format or (seen or "csv" if path == "-" else format_of(path))
    if said is None:
        raise FileError(f"{name}: its name tells no format; {SAY} ({', '.join(FORMATS)})")
    if said != seen and (said in BINARY or seen is not None):
        found = f"it is {NAMES[seen]}" if seen else f"it begins with {head[:4]!r}"
        raise FileError(f"{name}: is not {NAMES[said]}, {found}; {SAY}")
    return TableFile(path, said)


def one_line(error: BaseException) -> str:
    """The first line of what an error says."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


class _Told:
    """Names the file in the errors of pyarrow that come out of a `with` block."""

    def __init__(self, file: TableFile) -> None:
        self.file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, pa.ArrowException | OSError | UnicodeError) and not isinstance(error, BrokenPipeError):
            text = one_line(error)
            if "conversion error" in text:
                text += "; types are guessed from the beginning of the file, say them by --csv-type NAME=TYPE"
            raise FileError(f"{self.file.name}: {text}") from error


@dataclass
class _Open:
    schema: pa.Schema
    num_rows: int | None
    batches: Callable[[Sequence[str] | None], Iterator[pa.RecordBatch]]


class Tables:
    """Some files with the same columns as one stream of batches."""

    def __init__(self, files: Sequence[TableFile], batch_size: int, csv: Csv) -> None:
        """Open the files; no rows are read, but the beginning of a CSV file to guess its types."""
        self._batch_size, self._csv = batch_size, csv
        self._parts = [self._open(files[0])]
        first = self._parts[0].schema
        self._csv = Csv({**{column.name: column.type for column in first}, **csv.types}, csv.nulls)
        for file in files[1:]:
            part = self._open(file)
            if difference := _difference(first, part.schema):
                raise FileError(f"{file.name}: {difference} in {files[0].name}")
            self._parts.append(part)
        # pandas' notes on an index say nothing true about the rows of a join.
        metadata = {key: value for key, value in (first.metadata or {}).items() if key != b"pandas"}
        self.schema = first.with_metadata(metadata or None)
        known = [part.num_rows for part in self._parts if part.num_rows is not None]
        self.num_rows = sum(known) if len(known) == len(self._parts) else None

    def reader(
        self, columns: Sequence[str] | None = None, read: Callable[[int], None] | None = None
    ) -> pa.RecordBatchReader:
        """All rows, or some of their columns in the order of the files; `read` is told of each batch's rows."""
        schema = self.schema
        if columns is not None:
            fields = [column for column in schema if column.name in columns]
            columns, schema = [column.name for column in fields], pa.schema(fields, schema.metadata)

        def batches() -> Iterator[pa.RecordBatch]:
            for part in self._parts:
                for batch in part.batches(columns):
                    for start in range(0, batch.num_rows, self._batch_size):
                        piece = batch.slice(start, self._batch_size)
                        if read:
                            read(piece.num_rows)
                        yield piece

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _open(self, file: TableFile) -> _Open:
        with _Told(file):
            source: Any = file.path
            if file.path == "-":
                # Parquet and IPC files are read from their ends.
                source = _spooled(sys.stdin.buffer) if file.format in ("parquet", "arrow") else sys.stdin.buffer
            opened = getattr(self, f"_open_{file.format}")(source, file)
            assert isinstance(opened, _Open)
            read = opened.batches

            def told(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
                with _Told(file):
                    yield from read(columns)

            return _Open(opened.schema, opened.num_rows, told)

    def _open_parquet(self, source: Any, _: TableFile) -> _Open:
        # A column chunk is read piece by piece: memory does not follow the size of row groups.
        def open_file() -> pa.parquet.ParquetFile:
            return pa.parquet.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False)

        def batches(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
            with open_file() as file:
                yield from file.iter_batches(self._batch_size, columns=columns)

        with open_file() as file:
            return _Open(file.schema_arrow, file.metadata.num_rows, batches)

    def _open_csv(self, _: Any, file: TableFile) -> _Open:
        first: Any = pa.csv.open_csv(_csv_stream(file.path), **self._csv.options(file))
        schema = first.schema
        self._csv.check(file, schema)

        def batches(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
            nonlocal first
            reader, first = first, None
            if columns is not None and file.path != "-":
                # Columns that nobody asks for are not even converted.
                types = Csv({column.name: column.type for column in schema}, self._csv.nulls)
                reader = pa.csv.open_csv(_csv_stream(file.path), **types.options(file, columns))
            for batch in reader:
                yield batch if columns is None else batch.select(columns)

        return _Open(schema, None, batches)

    _open_tsv = _open_csv

    def _open_arrow(self, source: Any, _: TableFile) -> _Open:
        def open_file() -> pa.ipc.RecordBatchFileReader:
            return pa.ipc.open_file(pa.memory_map(source) if isinstance(source, str) else source)

        def batches(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
            reader = open_file()
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                yield batch if columns is None else batch.select(columns)

        return _Open(open_file().schema, None, batches)

    def _open_arrows(self, source: Any, _: TableFile) -> _Open:
        reader = pa.ipc.open_stream(pa.memory_map(source) if isinstance(source, str) else pa.PythonFile(source))

        def batches(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
            yield from (batch if columns is None else batch.select(columns) for batch in reader)

        return _Open(reader.schema, None, batches)


def read_whole(files: Sequence[TableFile], csv: Csv) -> pa.Table | pa.RecordBatchReader:
    """All rows of some files: CSV as a table, its types guessed from the whole first file, others as a stream."""
    if not any(file.format in ("csv", "tsv") for file in files):
        return Tables(files, 1 << 17, csv).reader()
    tables: list[pa.Table] = []
    for file in files:
        with _Told(file):
            if file.format in ("csv", "tsv"):
                tables.append(pa.csv.read_csv(_csv_stream(file.path), **csv.options(file)))
                csv.check(file, tables[-1].schema)
                csv = Csv({**{column.name: column.type for column in tables[0].schema}, **csv.types}, csv.nulls)
            else:
                tables.append(Tables([file], 1 << 17, csv).reader().read_all())
        if difference := _difference(tables[0].schema, tables[-1].schema):
            raise FileError(f"{file.name}: {difference} in {files[0].name}")
    return pa.concat_tables(table.replace_schema_metadata() for table in tables)


def _csv_stream(path: str) -> Any:
    return pa.PythonFile(sys.stdin.buffer) if path == "-" else pa.input_stream(path, compression="detect")


def _difference(first: pa.Schema, other: pa.Schema) -> str | None:
    if first.names != other.names:
        return f"has columns {', '.join(other.names)}, not {', '.join(first.names)} as"
    for a, b in zip(first, other, strict=True):
        if a.type != b.type:
            return f"column {b.name!r} has type {b.type}, not {a.type} as"
    return None


def _spooled(stream: IO[bytes]) -> Any:
    file = tempfile.TemporaryFile()  # noqa: SIM115
    while block := stream.read(1 << 20):
        file.write(block)
    file.seek(0)
    return file


class Output:
    """A table that is written beside its place and moved there when it is complete; on an error nothing is left.

    Standard output, devices and pipes are written in place.
    """

    def __init__(self, path: str, format: str | None, schema: pa.Schema) -> None:
        """Make the file, so that a directory that is not there is told before any work."""
        self.path = path
        told = format or ("csv" if path == "-" else format_of(path))
        if told is None:
            raise FileError(f"{path}: its name tells no format; say which by --out-format ({', '.join(FORMATS)})")
        if path == "-" and told in BINARY and sys.stdout.isatty():
            raise FileError(f"{NAMES[told]} is not written to a terminal; give --out FILE or a pipe")
        self.format, self.schema, self.rows = told, schema, 0
        self._pending: list[pa.RecordBatch] = []
        self._beside: str | None = None
        self._closed = False
        self._told = _Told(TableFile("standard output" if path == "-" else path, told))
        with self._told:
            self._sink = self._open_sink()
            try:
                self._writer = self._open_writer()
            except BaseException:
                self._abort()
                raise

    def _open_sink(self) -> Any:
        if self.path == "-":
            return pa.PythonFile(sys.stdout.buffer, mode="w")
        compression = COMPRESSIONS.get(os.path.splitext(self.path.lower())[1])
        # Through a link, its target is replaced and the link stays.
        place = os.path.realpath(self.path)
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
        handle, self._beside = tempfile.mkstemp(".tmp", f".{os.path.basename(place)}.", os.path.dirname(place))
        os.close(handle)
        os.chmod(self._beside, mode)
        return pa.output_stream(self._beside, compression=compression)

    def _open_writer(self) -> Any:
        if self.format == "parquet":
            return pa.parquet.ParquetWriter(self._sink, self.schema)
        if self.format == "arrow":
            return pa.ipc.new_file(self._sink, self.schema)
        if self.format == "arrows":
            return pa.ipc.new_stream(self._sink, self.schema)
        options = pa.csv.WriteOptions(delimiter="\t" if self.format == "tsv" else ",")
        return pa.csv.CSVWriter(self._sink, self.schema, write_options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch of the schema."""
        self.rows += batch.num_rows
        with self._told:
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
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: object) -> None:
        if kind is not None:
            self._abort()
            return
        try:
            with self._told:
                if self.format == "parquet":
                    self._write_group()
                self._writer.close()
                if self.path == "-":
                    sys.stdout.buffer.flush()
                    return
                self._sink.close()
                if self._beside:
                    os.replace(self._beside, os.path.realpath(self.path))
                    self._beside = None
        except BaseException:
            self._abort()
            raise

    def _abort(self) -> None:
        beside, self._beside = self._beside, None
        if beside:
            os.unlink(beside)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
