"""Keys of a lookup: given as text, or in a file."""

from __future__ import annotations

import argparse
import csv
import decimal
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

import prejoin
from prejoin.cli.columns import csv_options
from prejoin.files.csv_types import strict
from prejoin.files.csv_write import is_nanoseconds
from prejoin.files.errors import FileError, Naming
from prejoin.files.formats import TEXT, TableFile, input_file
from prejoin.files.tables import Tables


def asked_keys(options: argparse.Namespace, build: prejoin.PreparedBuild) -> Iterator[dict[str, Any]]:
    """The keys that are asked for, as columns of values."""
    if options.key:
        yield _typed_keys(options.key, build)
    if options.keys is None:
        return
    listed = options.keys != "-" and options.keys.endswith(".txt")
    # A pipe that shows no format of tables is a list too.
    file = input_file(options.keys, options.keys_format or ("lines" if listed else None), plain="lines")
    if file.format == "lines":
        yield _typed_keys(_lines(file), build)
        return
    types = {name: build.schema.field(name).type for name in build.keys}
    rows = Tables([file], 1 << 17, csv_options(options, build.keys))
    names = build.keys if set(build.keys) <= set(rows.schema.names) else rows.schema.names
    if len(names) != len(build.keys):
        raise FileError(
            f"{file.name}: has columns {', '.join(rows.schema.names)}, not the keys {', '.join(build.keys)}"
        )
    if file.format in TEXT:
        for key, name in zip(build.keys, names, strict=True):
            if name in rows.guesses:
                rows.retype(name, strict(_csv_type(types[key])))
    table = rows.reader(list(names)).read_all()
    yield {key: _values(table[name]) for key, name in zip(build.keys, names, strict=True)}


def _values(column: pa.ChunkedArray) -> Any:
    """A column of keys as any numbers or texts, or of its type where Python does not have the values."""
    return column.combine_chunks() if is_nanoseconds(column.type) else column.to_pylist()


def _lines(file: TableFile) -> list[str]:
    """The keys of a text file, one on each line; blank lines count for nothing."""
    with Naming(file.name):
        # pyarrow's own files look for the end of a pipe.
        data: bytes = (file.stream or file.open_bytes()).read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(f"{file.name}: line {line} is not UTF-8 text; convert the file") from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [line for line in lines if line.strip()]


def _csv_type(data_type: pa.DataType) -> pa.DataType:
    """The type without its dictionary or views, which no reader of text makes."""
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    if pa.types.is_string_view(data_type):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(data_type) else data_type


def _typed_keys(texts: Sequence[str], build: prejoin.PreparedBuild) -> dict[str, list[Any]]:
    """Keys given as text, in the types of the key columns."""
    keys = build.keys
    rows = [[text] for text in texts] if len(keys) == 1 else list(csv.reader(texts))
    for text, row in zip(texts, rows, strict=True):
        if len(row) != len(keys):
            raise FileError(f"key {text!r} has {len(row)} parts, the build is keyed by {','.join(keys)}")
    columns: dict[str, Any] = {}
    for i, name in enumerate(keys):
        data_type = _csv_type(build.schema.field(name).type)
        columns[name] = [_value(row[i], name, data_type) for row in rows]
        if pa.types.is_temporal(data_type) and not pa.types.is_date(data_type):
            columns[name] = pa.array(columns[name], data_type)
    return columns


def _value(text: str, name: str, data_type: pa.DataType) -> Any:
    """A key's value; times, timestamps and durations as the number that their type counts."""
    form = ""
    try:
        if pa.types.is_integer(data_type):
            return _plain_number(text, int)
        if pa.types.is_floating(data_type):
            return _plain_number(text, float)
        if pa.types.is_decimal(data_type):
            return _plain_number(text, decimal.Decimal)
        if pa.types.is_duration(data_type):
            form = f" (write a whole number of {data_type.unit})"
            return pa.scalar(_plain_number(text, int), data_type).value
        if pa.types.is_time(data_type):
            form = f" (as in 12:30:00, with parts of a second down to {data_type.unit})"
            return _time(text, data_type.unit)
        if (
            pa.types.is_binary(data_type)
            or pa.types.is_large_binary(data_type)
            or pa.types.is_fixed_size_binary(data_type)
        ):
            form = " (write hexadecimal digits, as in 01ff)"
            return bytes.fromhex(text)
        if getattr(data_type, "tz", None):
            form = " (with its zone, as in 2024-02-29 12:30:00Z)"
        value = pa.scalar(text).cast(data_type)
        return value.value if pa.types.is_timestamp(data_type) else value.as_py()
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise FileError(f"{text!r} is not a value of key {name!r}, which has type {data_type}{form}") from error


def _plain_number(text: str, kind: Callable[[str], Any]) -> Any:
    text = text.strip()
    # Python's 1_000, and codes with leading zeros, which are other texts than the number.
    if "_" in text or re.match(r"[+-]?0[0-9]", text):
        raise ValueError(text)
    return kind(text)


def _time(text: str, unit: str) -> int:
    """An ISO time of day as its number of units."""
    found = re.fullmatch(r"T?([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]{1,9}))?)?", text.strip())
    if not found:
        raise ValueError(text)
    hours, minutes, seconds, fraction = (part or "0" for part in found.groups())
    nanoseconds = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**9 + int(fraction.ljust(9, "0"))
    count, rest = divmod(nanoseconds, {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit])
    if rest:
        raise ValueError(text)
    return count
