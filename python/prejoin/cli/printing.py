"""Rows on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pyarrow as pa

from prejoin.files.csv_write import BARE, as_bytes, as_json, plain_text, to_python
from prejoin.files.value_types import is_binary

# Rows that are made text at once.
ROWS = 4096


def print_rows(table: pa.Table, format: str) -> None:
    """Print a table for readers, as CSV, or as an object a line."""
    if format == "json":
        for batch in table.to_batches(max_chunksize=ROWS):
            columns = map(to_python, batch.columns)
            for row in zip(*columns, strict=True):
                print(as_json(dict(zip(table.column_names, row, strict=True))))
        return
    if format == "csv":
        sys.stdout.write(_csv_line(table.column_names))
        for row in _rows(table):
            sys.stdout.write(_csv_line(row))
        return
    numbers = [_is_number(column) for column in table.schema]
    cells = [[_cell(name) for name in table.column_names]]
    cells += [["null" if value is None else _cell(value) for value in row] for row in _rows(table)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        aligned = zip(line, widths, numbers, strict=True)
        print("  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in aligned).rstrip())


def _is_number(column: pa.Field) -> bool:
    return bool(
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_decimal(column.type)
        or pa.types.is_duration(column.type)
        or (column.metadata or {}).items() >= BARE.items()
    )


def _rows(table: pa.Table) -> Iterable[tuple[str | None, ...]]:
    """The rows as text, of which bytes are hexadecimal digits here."""
    for batch in table.to_batches(max_chunksize=ROWS):
        yield from zip(*map(_texts, batch.columns), strict=True)


def _texts(column: pa.Array) -> list[str | None]:
    if is_binary(column.type) or pa.types.is_floating(column.type):
        return [None if value is None else plain_text(value) for value in column.to_pylist()]
    texts: list[str | None] = as_bytes(column).cast(pa.string()).to_pylist()
    return texts


def _csv_line(fields: Iterable[str | None]) -> str:
    """A line of CSV: nothing is null, two quotes are the empty text."""
    return ",".join("" if field is None else _csv_field(field) for field in fields) + "\n"


def _csv_field(text: str) -> str:
    if text and not any(letter in text for letter in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _cell(text: str) -> str:
    """Text on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
