"""Files with the same columns as one stream of batches, or as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from prejoin.files.csv_read import Csv, CsvFile, typed_field
from prejoin.files.csv_types import Guess, MisfitError, convert
from prejoin.files.errors import FileError, Naming
from prejoin.files.formats import TEXT, TableFile
from prejoin.files.names import numbered
from prejoin.files.parquet import ParquetSource


@dataclass
class _Part:
    """One file that was opened."""

    file: TableFile
    schema: pa.Schema
    num_rows: int | None
    batches: Callable[[Sequence[str] | None], Iterator[pa.RecordBatch]]
    csv: CsvFile | None = None


class Tables:
    """Some files with the same columns as one stream of batches."""

    def __init__(self, files: Sequence[TableFile], batch_size: int, csv: Csv) -> None:
        """Open the files; no rows are read, but the beginning of a CSV file to guess its types."""
        self._batch_size, self._csv = batch_size, csv
        self._parts: list[_Part] = []
        for file in files:
            self._parts.append(self._open(file))
            if difference := _difference(self._parts[0].schema, self._parts[-1].schema):
                raise FileError(f"{file.name}: {difference} in {files[0].name}")
        known = [part.num_rows for part in self._parts if part.num_rows is not None]
        self.num_rows = sum(known) if len(known) == len(self._parts) else None

    @property
    def schema(self) -> pa.Schema:
        """The columns of all files."""
        first = self._parts[0].schema
        # pandas' notes on an index say nothing true about the rows of a join.
        metadata = {key: value for key, value in (first.metadata or {}).items() if key != b"pandas"}
        return first.with_metadata(metadata or None)

    @property
    def guesses(self) -> Mapping[str, Guess]:
        """The guessed columns: of CSV files, where nobody said their type."""
        first = self._parts[0].csv
        return first.guesses if first else {}

    def retype(self, name: str, how: Guess) -> None:
        """Take a guessed column for another type."""
        for part in self._parts:
            if part.csv:
                part.csv.guesses[name] = how
                part.schema = part.csv.schema

    def reader(
        self, columns: Sequence[str] | None = None, read: Callable[[int], None] | None = None
    ) -> pa.RecordBatchReader:
        """All rows, or some of their columns in the order of the files; `read` is called with each batch's rows."""
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

    def _open(self, file: TableFile) -> _Part:
        with Naming(file.name):
            if file.format in TEXT:
                return self._open_csv(file)
            opened = {"parquet": self._open_parquet, "arrow": self._open_arrow, "arrows": self._open_arrows}[
                file.format
            ](file)
        return _renamed(opened)

    def _open_csv(self, file: TableFile) -> _Part:
        first = self._parts[0] if self._parts else None
        # The first file decides; those after it are held to its types.
        guesses = first.csv.guesses if first and first.csv else None
        asked = self._csv
        if first and not first.csv:
            asked = replace(asked, types={**{column.name: column.type for column in first.schema}, **asked.types})
        opened = CsvFile(file, asked, dict(guesses) if guesses else None)
        return _Part(file, opened.schema, None, opened.batches, opened)

    def _open_parquet(self, file: TableFile) -> _Part:
        opened = ParquetSource(file.open_whole(), file.name)
        return _Part(file, opened.schema, opened.num_rows, lambda columns: opened.batches(self._batch_size, columns))

    def _open_arrow(self, file: TableFile) -> _Part:
        source = file.open_whole()

        def open_file() -> pa.ipc.RecordBatchFileReader:
            return pa.ipc.open_file(pa.memory_map(source) if isinstance(source, str) else source)

        def batches(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
            reader = open_file()
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                yield batch if columns is None else batch.select(columns)

        return _Part(file, open_file().schema, None, batches)

    def _open_arrows(self, file: TableFile) -> _Part:
        reader = pa.ipc.open_stream(
            pa.memory_map(file.path) if file.stream is None else pa.PythonFile(file.stream, mode="r")
        )

        def batches(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
            yield from (batch if columns is None else batch.select(columns) for batch in reader)

        return _Part(file, reader.schema, None, batches)


def _renamed(part: _Part) -> _Part:
    """The part with repeated names numbered, and its errors with the file's name."""
    names, read, file = numbered(part.schema.names), part.batches, part.file
    repeated = names != part.schema.names
    if repeated:
        part.schema = pa.schema(
            [column.with_name(name) for column, name in zip(part.schema, names, strict=True)], part.schema.metadata
        )

    def batches(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        with Naming(file.name):
            if not repeated:
                yield from read(columns)
                return
            for batch in read(None):
                whole = batch.rename_columns(names)
                yield whole if columns is None else whole.select(columns)

    part.batches = batches
    return part


@dataclass
class WholeRows:
    """The rows of a build: a table where CSV is among the files, else a stream."""

    rows: pa.Table | pa.RecordBatchReader
    guesses: dict[str, Guess] = field(default_factory=dict)
    texts: dict[str, pa.ChunkedArray] = field(default_factory=dict)
    """The guessed key columns as they were written."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.rows.schema

    def retype(self, name: str, how: Guess, source: str) -> None:
        """Take a guessed key column for another type."""
        column = _converted(name, self.texts[name], how, source)
        position = self.rows.schema.names.index(name)
        self.rows = self.rows.set_column(position, typed_field(name, how), column)
        self.guesses[name] = how


def _converted(name: str, texts: pa.ChunkedArray, how: Guess, source: str) -> pa.ChunkedArray:
    chunks, rows = [], 0
    for chunk in texts.chunks:
        try:
            chunks.append(convert(chunk, how))
        except MisfitError as misfit:
            raise FileError(
                f"{source}: row {rows + misfit.row + 1}, column {name!r}: {misfit.value!r} is not {how.type}; "
                f"say the type of the column by --csv-type {name}=TYPE"
            ) from None
        rows += len(chunk)
    return pa.chunked_array(chunks, how.type)


def read_whole(files: Sequence[TableFile], csv: Csv) -> WholeRows:
    """All rows of some files; the types of CSV are guessed from all rows of the CSV files."""
    if not any(file.format in TEXT for file in files):
        return WholeRows(Tables(files, 1 << 17, csv).reader())
    others = [file for file in files if file.format not in TEXT]
    if others:
        # The other formats know their types, and CSV is held to them.
        known = Tables(others[:1], 1 << 17, csv).schema
        csv = replace(csv, types={**{column.name: column.type for column in known}, **csv.types})
        tables: list[pa.Table] = []
        for file in files:
            table = Tables([file], 1 << 17, csv).reader().read_all().replace_schema_metadata()
            if difference := _difference(tables[0].schema, table.schema) if tables else None:
                raise FileError(f"{file.name}: {difference} in {files[0].name}")
            tables.append(table)
        return WholeRows(pa.concat_tables(tables))
    return _read_texts(files, csv)


def _read_texts(files: Sequence[TableFile], csv: Csv) -> WholeRows:
    opened = [CsvFile(file, csv, {}) for file in files]
    names = opened[0].schema.names
    columns: list[list[pa.Array]] = [[] for _ in names]
    starts = []
    for part in opened:
        if part.schema.names != names:
            difference = f"has columns {', '.join(part.schema.names)}, not {', '.join(names)} as"
            raise FileError(f"{part.file.name}: {difference} in {files[0].name}")
        starts.append(sum(map(len, columns[0])) if columns else 0)
        for batch in part.text_batches():
            for column, array in zip(columns, batch.columns, strict=True):
                column.append(array)
    guesses: dict[str, Guess] = {}
    texts: dict[str, pa.ChunkedArray] = {}
    fields, done = [], []
    for i, name in enumerate(names):
        written = pa.chunked_array(columns[i], csv.read_as(name))
        columns[i] = []
        if csv.read_as(name) != pa.string():
            fields.append(pa.field(name, csv.types[name]))
            done.append(written)
            continue
        how = Guess(csv.types[name]) if name in csv.types else csv.guess(name, written)
        if name not in csv.types:
            guesses[name] = how
            if name in csv.keys:
                texts[name] = written
        fields.append(typed_field(name, how))
        done.append(_convert_whole(name, written, how, opened, starts))
    return WholeRows(pa.Table.from_arrays(done, schema=pa.schema(fields)), guesses, texts)


def _convert_whole(
    name: str, written: pa.ChunkedArray, how: Guess, opened: Sequence[CsvFile], starts: Sequence[int]
) -> pa.ChunkedArray:
    chunks, rows = [], 0
    for chunk in written.chunks:
        try:
            chunks.append(convert(chunk, how))
        except MisfitError as misfit:
            row = rows + misfit.row
            at = max(i for i, start in enumerate(starts) if start <= row)
            raise opened[at].misfit(name, how, row - starts[at], misfit.value) from None
        rows += len(chunk)
    return pa.chunked_array(chunks, how.type)


def _difference(first: pa.Schema, other: pa.Schema) -> str | None:
    if first.names != other.names:
        return f"has columns {', '.join(other.names)}, not {', '.join(first.names)} as"
    for a, b in zip(first, other, strict=True):
        if a.type != b.type:
            return f"column {b.name!r} has type {b.type}, not {a.type} as"
    return None
