"""Objects as other libraries make them."""

from __future__ import annotations

import ctypes

import pyarrow as pa


class OneArgCapsule:
    """Only the capsule protocol, without its optional parameter."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.reader = reader

    def __arrow_c_stream__(self) -> object:
        return self.reader.__arrow_c_stream__()


def misaligned(array: pa.Array, shift: int) -> pa.Array:
    """The same values with every buffer `shift` bytes past a multiple of 64."""

    def move(buffer: pa.Buffer | None) -> pa.Buffer | None:
        if buffer is None:
            return None
        fresh = pa.allocate_buffer(buffer.size + 64 + shift)
        ctypes.memmove(fresh.address + shift, buffer.address, buffer.size)
        return fresh.slice(shift, buffer.size)

    return pa.Array.from_buffers(array.type, len(array), [move(b) for b in array.buffers()], offset=array.offset)
