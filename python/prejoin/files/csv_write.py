"""Rows as lines of CSV, and values as text: each type has one form, whichever command writes it."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from prejoin.files.value_types import is_binary, is_string, value_type

BARE = {b"prejoin.bare": b"1"}
"""Notes on a column of text that is written without quotes where it can be."""

# Rows are put together in arrays, whose offsets have 32 bits.
MOST_BYTES = 1 << 28


class Lines:
    """Writes batches of a schema as lines of text."""

    def __init__(self, sink: Any, schema: pa.Schema, delimiter: str) -> None:
        """Write the header to `sink`."""
        self._sink, self._delimiter = sink, delimiter.encode()
        self._special = (self._delimiter, b'"', b"\r", b"\n")
        self._quotes = [_quotes(column) for column in schema]
        names = ('"' + name.replace('"', '""') + '"' for name in schema.names)
        sink.write(f"{delimiter.join(names)}\n".encode())

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""
        if not batch.num_columns:
            self._sink.write(b"\n" * batch.num_rows)
        elif batch.num_rows:
            self._write([as_bytes(column) for column in batch.columns])

    def close(self) -> None:
        """Nothing is left to be written."""

    def _write(self, columns: Sequence[pa.Array]) -> None:
        rows = len(columns[0])
        if rows > 1 and sum(column.nbytes for column in columns) > MOST_BYTES:
            self._write([column.slice(0, rows // 2) for column in columns])
            self._write([column.slice(rows // 2) for column in columns])
            return
        # Parts of a row, and the text that comes before the next one.
        parts: list[Any] = []
        between = b""
        for texts, quotes in zip(columns, self._quotes, strict=True):
            fields, quote = self._fields(texts, quotes)
            parts += [between + quote] if between + quote else []
            parts.append(fields)
            between = quote + self._delimiter
        if len(columns) == 1 and not quote:
            # Most readers do not take an empty line as a row.
            parts = [pc.if_else(pc.equal(fields, b""), pa.scalar(b'""'), fields)]
        between = between[: -len(self._delimiter)] + b"\n"
        lines = pc.binary_join_element_wise(*parts, between, b"")
        self._sink.write(lines.buffers()[2])

    def _fields(self, texts: pa.Array, quotes: str) -> tuple[pa.Array, bytes]:
        """A column's texts, nothing for null, and the quotes that go around all of them."""
        if quotes == "all":
            if _has(texts, b'"'):
                texts = pc.replace_substring(texts, '"', '""')
            if not texts.null_count:
                return texts, b'"'
            texts = pc.binary_join_element_wise(b'"', texts, b'"', b"")
        elif quotes == "some" and (_has(texts, *self._special) or _any_empty(texts)):
            quoted = pc.binary_join_element_wise(b'"', pc.replace_substring(texts, '"', '""'), b'"', b"")
            special = pc.equal(texts, b"")
            for sign in self._special:
                special = pc.or_(special, pc.match_substring(texts, sign))
            texts = pc.if_else(special, quoted, texts)
        return (pc.fill_null(texts, b"") if texts.null_count else texts), b""


def _bytes_of(texts: pa.Array) -> bytes:
    """All texts one after the other."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return b""
    ends = memoryview(offsets).cast("i")
    found: bytes = data[ends[texts.offset] : ends[texts.offset + len(texts)]].to_pybytes()
    return found


def _has(texts: pa.Array, *signs: bytes) -> bool:
    """Whether one of the signs is anywhere in the texts."""
    return any(map(_bytes_of(texts).__contains__, signs))


def _any_empty(texts: pa.Array) -> bool:
    return bool(pc.any(pc.equal(texts, b"")).as_py())


def _quotes(column: pa.Field) -> str:
    """Which values of a column are quoted."""
    if not _is_text(column.type):
        return "none"
    return "some" if column.metadata and column.metadata.items() >= BARE.items() else "all"


def _is_text(data_type: pa.DataType) -> bool:
    """Whether values of the type may hold any character, so that they are quoted."""
    values = value_type(data_type)
    return not (
        pa.types.is_integer(values)
        or pa.types.is_floating(values)
        or pa.types.is_boolean(values)
        or (pa.types.is_temporal(values) and not pa.types.is_interval(values))
        or pa.types.is_decimal(values)
        or pa.types.is_null(values)
    )


def as_bytes(column: pa.Array) -> pa.Array:
    """The values of a column as text: binary data as it is, durations as numbers of their unit, the rest as printed."""
    data_type = column.type
    if pa.types.is_dictionary(data_type):
        return as_bytes(column.dictionary_decode())
    if pa.types.is_run_end_encoded(data_type):
        return as_bytes(pc.run_end_decode(column))
    if is_string(data_type) or (is_binary(data_type) and not pa.types.is_fixed_size_binary(data_type)):
        return column.cast(pa.binary())
    if pa.types.is_duration(data_type):
        return as_bytes(column.cast(pa.int64()))
    if not _is_text(data_type):
        return column.cast(pa.string()).cast(pa.binary())
    values = [None if value is None else plain_text(value).encode() for value in to_python(column)]
    return pa.array(values, pa.binary())


def to_python(column: Any) -> list[Any]:
    """The values as Python objects: durations as numbers of their unit, nanoseconds that Python lacks as text."""
    try:
        found: list[Any] = _cast(column, _python_type(column.type, False)).to_pylist()
    except pa.ArrowInvalid:
        # Nanoseconds would be lost.
        found = _cast(column, _python_type(column.type, True)).to_pylist()
    return found


def _cast(column: Any, data_type: pa.DataType) -> Any:
    # Casts from a type to itself are not there for all types.
    return column if data_type == column.type else column.cast(data_type)


def _python_type(data_type: pa.DataType, as_text: bool) -> pa.DataType:
    """The type without durations and nanoseconds, also within lists and structs; `as_text` takes text for these."""

    def of(column: pa.Field) -> pa.Field:
        return column.with_type(_python_type(column.type, as_text))

    if pa.types.is_duration(data_type):
        return pa.int64()
    if is_nanoseconds(data_type):
        if as_text:
            return pa.string()
        return pa.time64("us") if pa.types.is_time(data_type) else pa.timestamp("us", data_type.tz)
    if pa.types.is_list(data_type):
        return pa.list_(of(data_type.value_field))
    if pa.types.is_large_list(data_type):
        return pa.large_list(of(data_type.value_field))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(of(data_type.value_field), data_type.list_size)
    if pa.types.is_struct(data_type):
        return pa.struct([of(data_type.field(i)) for i in range(data_type.num_fields)])
    if pa.types.is_map(data_type):
        return pa.map_(of(data_type.key_field), of(data_type.item_field))
    return data_type


def is_nanoseconds(data_type: pa.DataType) -> bool:
    """Whether the type is a time or a timestamp of a unit that Python does not have."""
    return bool((pa.types.is_time(data_type) or pa.types.is_timestamp(data_type)) and data_type.unit == "ns")


def plain_text(value: Any) -> str:
    """A value as text; lists and structs as JSON, bytes in hexadecimal digits."""
    if isinstance(value, dict | list | tuple):
        return as_json(value)
    if isinstance(value, str | int | float):
        return str(value)
    return str(plain(value))


def as_json(value: Any) -> str:
    """A value as JSON on one line."""
    return json.dumps(_finite(value), default=plain, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    """The value with None for the numbers that JSON does not know: NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


def plain(value: Any) -> Any:
    """A value that JSON has no form for."""
    if isinstance(value, pa.Scalar):
        return as_bytes(pa.array([value]))[0].as_py().decode()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, pa.Schema):
        return {column.name: str(column.type) for column in value}
    return str(value)
