"""Columns that CSV has no form for, as text."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

import pyarrow as pa


def written_as(schema: pa.Schema) -> pa.Schema:
    """The schema as it is written: as it is where pyarrow's writer knows the type, else text."""
    return pa.schema([pa.field(column.name, _text_type(column.type)) for column in schema])


def _text_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return _text_type(data_type.value_type)
    plain = (
        pa.types.is_integer(data_type)
        or pa.types.is_float32(data_type)
        or pa.types.is_float64(data_type)
        or pa.types.is_boolean(data_type)
        or pa.types.is_string(data_type)
        or pa.types.is_large_string(data_type)
        or pa.types.is_binary(data_type)
        or pa.types.is_large_binary(data_type)
        or pa.types.is_date(data_type)
        or pa.types.is_time(data_type)
        or pa.types.is_timestamp(data_type)
        or pa.types.is_decimal128(data_type)
        or pa.types.is_decimal256(data_type)
        or pa.types.is_null(data_type)
    )
    return data_type if plain else pa.string()


def texts(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of [`written_as`]."""
    columns = [_column(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch


def _column(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if column.type == data_type:
        return column
    if pa.types.is_dictionary(column.type):
        return _column(column.dictionary_decode(), data_type)
    if pa.types.is_run_end_encoded(column.type):
        return _column(pa.compute.run_end_decode(column), data_type)
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        return column.cast(data_type)
    values = [None if value is None else plain_text(value) for value in column.to_pylist()]
    return pa.array(values, data_type)


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
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, pa.Schema):
        return {column.name: str(column.type) for column in value}
    return str(value)
