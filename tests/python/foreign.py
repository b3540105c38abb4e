"""Objects like those that other libraries make, and theirs as those of pyarrow."""

from __future__ import annotations

import ctypes
from typing import Any

import pandas as pd
import pyarrow as pa


class OneArgCapsule:
    """An object with nothing but the capsule method, and without its optional parameter."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.reader = reader

    def __arrow_c_stream__(self) -> object:
        return self.reader.__arrow_c_stream__()


def misaligned(array: pa.Array, shift: int) -> pa.Array:
    """The same values, with every buffer at an address `shift` bytes after a multiple of 64."""

    def move(buffer: pa.Buffer | None) -> pa.Buffer | None:
        if buffer is None:
            return None
        fresh = pa.allocate_buffer(buffer.size + 64 + shift)
        ctypes.memmove(fresh.address + shift, buffer.address, buffer.size)
        return fresh.slice(shift, buffer.size)

    return pa.Array.from_buffers(array.type, len(array), [move(b) for b in array.buffers()], offset=array.offset)


def as_table(rows: Any) -> pa.Table:
    """The rows of any table, frame or reader."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pd.DataFrame):
        return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(None)
    return pa.table(rows)


def as_list(values: Any) -> list[Any]:
    """The values of any array or series."""
    return values.to_pylist() if isinstance(values, pa.Array) else list(values)
