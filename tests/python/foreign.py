"""Objects like those that other libraries make."""

from __future__ import annotations

import ctypes

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
