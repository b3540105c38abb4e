"""Text as batches: records of any length, types that are held to, and errors with file, line and column."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.csv

from prejoin.files.csv_types import TEXT, Guess, MisfitError, convert, guess, passed
from prejoin.files.csv_write import BARE
from prejoin.files.errors import FileError, Naming, one_line
from prejoin.files.formats import TableFile
from prejoin.files.names import numbered

PIECE = 1 << 20
"""Bytes that are parsed at once, at least; a piece ends where a record seems to end."""

SAY = "--csv-type"
DELIMITERS = ";\t|,"
END = "the end of this file"
CLOSE = "close it, or double the quotes that belong to the text"


@dataclass(frozen=True)
class Csv:
    """How text becomes columns."""

    types: dict[str, pa.DataType] = field(default_factory=dict)
    """Types of columns that are not to be guessed."""
    nulls: tuple[str, ...] = ("",)
    """What means null if it is not quoted."""
    keys: frozenset[str] = frozenset()
    """Columns that are joined on."""
    delimiter: str = ","
    """The separator of fields, except in TSV."""
    typed: Callable[[str], bool] = lambda _: True
    """Whether a column's type matters. The others are passed on as the text that they are."""

    def guess(self, name: str, texts: pa.Array | pa.ChunkedArray) -> Guess:
        """The type of a column of which nobody said it."""
        key = name in self.keys
        return guess(texts, key) if key or self.typed(name) else passed(texts)

    def read_as(self, name: str) -> pa.DataType:
        """The type that a column is parsed as: text, unless what was asked for is kept as its bytes."""
        asked = self.types.get(name, pa.string())
        return asked if _is_bytes(asked) else pa.string()


def _is_bytes(data_type: pa.DataType) -> bool:
    return any(
        test(data_type)
        for test in (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_large_string,
            pa.types.is_dictionary,
        )
    )


class Pieces:
    """A stream of bytes in pieces that end where a line ends outside of quotes, so that no record is cut.

    Counts quotes, so that one that never ends is found, and ends the last line where the file does not.
    """

    closed = False

    def __init__(self, source: Any) -> None:
        """`source` has a `read` method."""
        self._source, self._rest = source, b""
        self._ended = False
        self._ahead: bytes | None = None
        self.quotes = 0
        self.last = b""

    def peek(self) -> bytes:
        """The next piece, which `read` gives once more."""
        if self._ahead is None:
            self._ahead = self._next()
        return self._ahead

    def read(self, _: int = -1) -> bytes:
        """The next piece; no bytes at the end."""
        ahead, self._ahead = self._ahead, None
        return ahead or self._next()

    def _next(self) -> bytes:
        parts, size = [self._rest], len(self._rest)
        self._rest = b""
        self.quotes += parts[0].count(b'"')
        while not self._ended:
            block = self._source.read(PIECE)
            if not block:
                self._ended = True
                break
            parts.append(block)
            size += len(block)
            if size >= PIECE and (found := _line_end(block, self.quotes)):
                cut, quotes = found
                self.quotes += quotes
                self._rest = block[cut:]
                parts[-1] = block[:cut]
                break
            self.quotes += block.count(b'"')
        piece = b"".join(parts)
        if self._ended and piece and piece[-1:] not in (b"\n", b"\r"):
            # A header alone needs the end of its line.
            piece += b"\n"
        self.last = piece[-1:] or self.last
        return piece

    def readable(self) -> bool:
        """It is read."""
        return True

    def writable(self) -> bool:
        """It is not written."""
        return False

    def seekable(self) -> bool:
        """It is read from its beginning to its end."""
        return False

    def close(self) -> None:
        """Nothing is held here."""


def _line_end(block: bytes, quotes: int) -> tuple[int, int] | None:
    """Where the last line of `block` ends that does not end within quotes, and how many quotes come before that.

    `quotes` of them came before the block.
    """
    ends = [end for end in (block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) if end >= 0]
    end = max(ends, default=-1)
    for _ in range(64):
        if end < 0:
            return None
        if (quotes + (before := block.count(b'"', 0, end))) % 2 == 0:
            return end + 1, before
        end = max(block.rfind(b"\n", 0, end), -1)
    return None


class CsvFile:
    """One CSV file: its columns, and its rows batch by batch."""

    def __init__(self, file: TableFile, asked: Csv, guesses: dict[str, Guess] | None = None) -> None:
        """Parse the beginning. `guesses` are types that the file has to have; otherwise its first piece decides."""
        self.file, self.asked = file, asked
        self._reader: Any = None
        self._raw, self._first = self._start(None)
        self._names = numbered(self._raw)
        self.guesses = guesses or {
            name: asked.guess(name, column)
            for name, column in zip(self._names, self._first.columns, strict=True)
            if name not in asked.types
        }

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return pa.schema([typed_field(name, self._how(name)) for name in self._names])

    def _how(self, name: str) -> Guess:
        asked = self.asked.types.get(name)
        return Guess(asked) if asked is not None else self.guesses.get(name, TEXT)

    def _start(self, columns: Sequence[str] | None) -> tuple[list[str], pa.RecordBatch]:
        """Open the file, for some columns or all; the names, and the rows of the first piece as text."""
        with Naming(self.file.name):
            self._pieces = Pieces(self.file.open_bytes())
            names = self._header() if columns is None else list(columns)
            convert = pa.csv.ConvertOptions(
                column_types={name: self.asked.read_as(name) for name in names},
                null_values=list(self.asked.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=columns,
            )
            parse = pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
            read = pa.csv.ReadOptions(block_size=(1 << 31) - 1, use_threads=False)
            self._row = 0
            with self._explained():
                self._reader = pa.csv.open_csv(pa.PythonFile(self._pieces, mode="r"), read, parse, convert)
                schema = self._reader.schema
                try:
                    first = self._reader.read_next_batch()
                except StopIteration:
                    first = pa.RecordBatch.from_pylist([], schema)
            return list(schema.names), first

    @property
    def quotes(self) -> int:
        """Quotes that were read."""
        return self._pieces.quotes

    def _explained(self) -> _Explained:
        return _Explained(self)

    @property
    def delimiter(self) -> str:
        """The separator of fields."""
        return "\t" if self.file.format == "tsv" else self.asked.delimiter

    def _header(self) -> list[str]:
        """The names of the columns, read ahead."""
        head = self._pieces.peek()
        try:
            text = head.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            text = head[: error.start].decode("utf-8-sig")
            if not text.strip("\r\n") or ("\n" not in text and "\r" not in text):
                raise FileError(f"{self.file.name}: line 1: the header is not UTF-8 text; convert the file") from None
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        csv.field_size_limit(1 << 30)
        names = next((row for row in rows if row), [])
        self._check_delimiter(names)
        return names

    def _check_delimiter(self, names: Sequence[str]) -> None:
        """Refuse a header that other delimiters separate: it would be the name of one column."""
        if len(names) != 1 or names[0] in self.asked.keys or names[0] in self.asked.types:
            return
        found = max(DELIMITERS, key=names[0].count)
        if found in names[0]:
            shown = repr(found) if found != "\t" else "a tab"
            way = "name the format tsv" if found == "\t" else f"give --csv-delimiter {found!r}"
            raise FileError(
                f"{self.file.name}: line 1: the header {_short(names[0])!r} is one column; if {shown} separates the "
                f"columns, {way}"
            )

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, of some columns or all."""
        positions = [self._names.index(name) for name in columns] if columns is not None else None
        if columns and self.file.stream is None and self._names == self._raw:
            # Columns that nobody asks for are not even parsed into arrays.
            batch, positions = self._start(columns)[1], None
        else:
            batch = self._first
        del self._first
        whole = self.schema
        schema = whole if columns is None else pa.schema([whole.field(name) for name in columns])
        while batch is not None:
            batch = batch if positions is None else batch.select(positions)
            arrays = [self._converted(name, column) for name, column in zip(schema.names, batch.columns, strict=True)]
            yield _batch(arrays, schema, batch.num_rows)
            self._row += batch.num_rows
            last, batch = batch, self._next()
            if batch is None:
                self._check_quotes(last)

    def text_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows as text."""
        batch = self._first
        del self._first
        while batch is not None:
            yield batch
            self._row += batch.num_rows
            last, batch = batch, self._next()
            if batch is None:
                self._check_quotes(last)

    def _next(self) -> pa.RecordBatch | None:
        with Naming(self.file.name), self._explained():
            try:
                return self._reader.read_next_batch()
            except StopIteration:
                return None

    def _converted(self, name: str, column: pa.Array) -> pa.Array:
        how = self._how(name)
        if self.asked.read_as(name) != pa.string():
            return column
        try:
            return convert(column, how)
        except MisfitError as misfit:
            raise self.misfit(name, how, self._row + misfit.row, misfit.value) from None

    def misfit(self, name: str, how: Guess, row: int, value: str) -> FileError:
        """The error for a value that is not of its column's type."""
        shown = _short(value)
        said = self.asked.types.get(name)
        if said is not None:
            advice = f"{SAY} {name}={said} was given"
        else:
            advice = f"the values before it are of type {how.type}; keep all as they are by {SAY} {name}=string"
        return FileError(f"{self.file.name}: {self.place(row)}, column {name!r}: {shown!r} is not {how.type}; {advice}")

    def place(self, row: int) -> str:
        """Where a row is: its line, or its number where the file cannot be read again."""
        if self.file.stream is None:
            try:
                with io.TextIOWrapper(self.file.open_bytes(), "utf-8", "replace", newline="") as text:
                    reader = csv.reader(text, delimiter=self.delimiter)
                    begins = 1
                    rows = -1
                    for record in reader:
                        if record:
                            if rows == row:
                                return f"line {begins}"
                            rows += 1
                        begins = reader.line_num + 1
            except (OSError, csv.Error, pa.ArrowException):
                pass
        return f"row {row + 1}"

    def _check_quotes(self, last: pa.RecordBatch) -> None:
        """Refuse a quote that never ends: it takes the rest of the file for one value."""
        if self._pieces.quotes % 2 == 0:
            return
        if self.file.stream is None:
            self.refuse_open_quote()
            return
        value = last.column(last.num_columns - 1)[-1].as_py() if last.num_rows and last.num_columns else None
        if isinstance(value, str) and value.endswith(self._pieces.last.decode("utf-8", "replace")):
            raise FileError(f"{self.file.name}: row {self._row}: a quote is opened and never closed; {CLOSE}")

    def refuse_open_quote(self) -> None:
        """Read a file once more, up to a line after its end: within a quote that line is not a record."""
        with io.TextIOWrapper(self.file.open_bytes(), "utf-8", "replace", newline="") as text:
            reader = csv.reader(itertools.chain(text, [END]), delimiter=self.delimiter)
            began, ended = 1, 0
            last: list[str] = []
            for record in reader:
                last, began, ended = record, ended + 1, reader.line_num
        if last != [END]:
            raise FileError(f"{self.file.name}: line {began}: a quote is opened and never closed; {CLOSE}")


def _short(value: str) -> str:
    return value if len(value) <= 60 else value[:57] + "..."


def typed_field(name: str, how: Guess) -> pa.Field:
    """A column of the schema."""
    return pa.field(name, how.type, metadata=BARE if how.bare else None)


def _batch(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # A batch without columns has rows only where a struct gives it some.
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


class _Explained:
    """Says of an error of pyarrow's CSV reader where it is and what to do."""

    def __init__(self, csv_file: CsvFile) -> None:
        self.csv_file = csv_file

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not isinstance(error, pa.ArrowInvalid):
            return
        file = self.csv_file.file
        if file.stream is None and self.csv_file.quotes % 2:
            self.csv_file.refuse_open_quote()
        text = one_line(error)
        # Of a pipe nobody knows, since it cannot be read again.
        perhaps = "; a quote may be opened and never closed" if self.csv_file.quotes % 2 else ""
        if counts := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
            row, columns, got = map(int, counts.groups())
            raise FileError(
                f"{file.name}: {self.csv_file.place(row - 2)}: has {got} fields, "
                f"and the header has {columns} columns{perhaps}"
            ) from error
        if "invalid UTF8" in text:
            found = _bad_text(file, self.csv_file.delimiter) if file.stream is None else None
            line, column = found or (None, None)
            where = f"line {line}: " if line else ""
            which = f"column {column!r} holds" if column else "it holds"
            kept = f"{SAY} {column or 'NAME'}=binary"
            raise FileError(
                f"{file.name}: {where}{which} text that is not UTF-8; convert the file, or keep the bytes by {kept}"
            ) from error
        if "Empty CSV" in text:
            raise FileError(f"{file.name}: holds no header line{perhaps}") from error


def _bad_text(file: TableFile, delimiter: str) -> tuple[int, str | None] | None:
    """Line and column of the first bytes that are not UTF-8."""
    names: list[str] = []
    with io.TextIOWrapper(file.open_bytes(), "utf-8", "surrogateescape", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter)
        line = 1
        for record in reader:
            names = names or record
            for i, cell in enumerate(record):
                if any("\udc80" <= letter <= "\udcff" for letter in cell):
                    return line, names[i] if i < len(names) and record is not names else None
            line = reader.line_num + 1
    return None
