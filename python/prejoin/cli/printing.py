"""Rows on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from prejoin.files.csv_write import as_json, plain_text


def print_rows(table: pa.Table, format: str) -> None:
    """Print a table for readers, as CSV, or as an object a line."""
    if format == "csv":
        sys.stdout.write(_csv_line(table.column_names))
        for row in _rows(table):
            sys.stdout.write(_csv_line([None if value is None else plain_text(value) for value in row]))
        return
    if format == "json":
        for row in _rows(table):
            print(as_json(dict(zip(table.column_names, row, strict=True))))
        return
    numbers = [pa.types.is_integer(c.type) or pa.types.is_floating(c.type) for c in table.schema]
    cells = [[_cell(name) for name in table.column_names]]
    cells += [["null" if value is None else _cell(plain_text(value)) for value in row] for row in _rows(table)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        aligned = zip(line, widths, numbers, strict=True)
        print("  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in aligned).rstrip())


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    for batch in table.to_batches(max_chunksize=4096):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


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
