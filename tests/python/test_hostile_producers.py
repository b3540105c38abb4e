"""Producers that break the rules of the Arrow C interfaces cause an error, never a crash."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import prejoin
from prejoin import _core

TABLE = pa.table({"k": [1, 2], "s": ["a", None]})
Spoil = Callable[[Any], object]


class CSchema(ctypes.Structure):
    pass


class CArray(ctypes.Structure):
    pass


class CStream(ctypes.Structure):
    pass


SCHEMA_RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(CSchema))
ARRAY_RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(CArray))
STREAM_RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(CStream))
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CStream), ctypes.POINTER(CSchema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CStream), ctypes.POINTER(CArray))
LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(CStream))
CSchema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(CSchema))),
    ("dictionary", ctypes.POINTER(CSchema)), ("release", SCHEMA_RELEASE), ("private_data", ctypes.c_void_p),
]  # fmt: skip
CArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(CArray))), ("dictionary", ctypes.POINTER(CArray)),
    ("release", ARRAY_RELEASE), ("private_data", ctypes.c_void_p),
]  # fmt: skip
CStream._fields_ = [
    ("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", LAST_ERROR), ("release", STREAM_RELEASE),
    ("private_data", ctypes.c_void_p),
]  # fmt: skip

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# The C structs of the Arrow interfaces.
KEPT: list[object] = []


RELEASE_SCHEMA = SCHEMA_RELEASE(lambda pointer: setattr(pointer.contents, "release", SCHEMA_RELEASE()))
RELEASE_ARRAY = ARRAY_RELEASE(lambda pointer: setattr(pointer.contents, "release", ARRAY_RELEASE()))


class Hostile:
    """Takes pyarrow's structs for `batch`, lets the test change them in place, and hands them out.

    pyarrow's own release would stumble over the changes, so what it made is never given back.
    """

    def __init__(self, batch: pa.RecordBatch, array: Spoil | None = None, schema: Spoil | None = None) -> None:
        self.schema, self.array = CSchema(), CArray()
        batch._export_to_c(ctypes.addressof(self.array), ctypes.addressof(self.schema))
        self.schema.release, self.array.release = RELEASE_SCHEMA, RELEASE_ARRAY
        if array:
            array(self.array)
        if schema:
            schema(self.schema)
        KEPT.append((batch, self))

    def __arrow_c_array__(self) -> tuple[object, object]:
        return (
            new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )


def column(struct: Any) -> Any:
    return struct.children[0].contents


def put(struct: Any, **values: object) -> bool:
    for name, value in values.items():
        setattr(struct, name, value)
    return True


def buffer(array: Any, at: int, value: int | None) -> None:
    column(array).buffers[at] = value


NUMBERS = pa.record_batch({"c": pa.array([1, None, 3, 4])})
TEXTS = pa.record_batch({"c": pa.array(["ab", "é", None, "cd"])})
LISTS = pa.record_batch({"c": pa.array([[1], [2, 3]])})
VIEWS = pa.record_batch({"c": pa.array(["x" * 20, "y" * 30], pa.string_view())})
CODES = pa.record_batch({"c": pa.array(["a", "b"]).dictionary_encode()})
RUNS = pa.record_batch({"c": pa.compute.run_end_encode(pa.array([5, 6, 6]))})
UNIONS = pa.record_batch({"c": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])])})


def int32s(*values: int) -> int:
    data = (ctypes.c_int32 * len(values))(*values)
    KEPT.append(data)
    return ctypes.addressof(data)


def byte_string(text: bytes) -> int:
    KEPT.append(data := ctypes.create_string_buffer(text))
    return ctypes.addressof(data)


ARRAYS: dict[str, tuple[pa.RecordBatch, Spoil]] = {
    "negative length": (NUMBERS, lambda a: put(column(a), length=-1)),
    "negative length of the batch": (NUMBERS, lambda a: put(a, length=-5)),
    "negative offset": (NUMBERS, lambda a: put(column(a), offset=-8)),
    "huge offset": (NUMBERS, lambda a: put(column(a), offset=2**63 - 2)),
    "huge batch": (NUMBERS, lambda a: (put(a, length=2**62), put(column(a), length=2**62))),
    "batch longer than its column": (NUMBERS, lambda a: put(a, length=5)),
    "null count": (NUMBERS, lambda a: put(column(a), null_count=5)),
    "null count below -1": (NUMBERS, lambda a: put(column(a), null_count=-2)),
    "nulls without a bitmap": (NUMBERS, lambda a: buffer(a, 0, None)),
    "values are null": (NUMBERS, lambda a: buffer(a, 1, None)),
    "one buffer": (NUMBERS, lambda a: put(column(a), n_buffers=1)),
    "three buffers": (NUMBERS, lambda a: put(column(a), n_buffers=3)),
    "negative number of buffers": (NUMBERS, lambda a: put(column(a), n_buffers=-1)),
    "no buffers": (NUMBERS, lambda a: put(column(a), buffers=None)),
    "no children": (NUMBERS, lambda a: put(a, n_children=0)),
    "children are null": (NUMBERS, lambda a: put(a, children=None)),
    "a child is null": (NUMBERS, lambda a: a.children.__setitem__(0, ctypes.POINTER(CArray)())),
    "children where none are due": (NUMBERS, lambda a: put(column(a), n_children=1)),
    "top-level nulls": (NUMBERS, lambda a: (put(a, null_count=1), a.buffers.__setitem__(0, byte_string(b"\x01")))),
    "falling offsets": (TEXTS, lambda a: buffer(a, 1, int32s(0, 2, 1, 4, 6))),
    "negative offsets": (TEXTS, lambda a: buffer(a, 1, int32s(-2, 2, 4, 4, 6))),
    "invalid UTF-8": (TEXTS, lambda a: buffer(a, 2, byte_string(b"ab\xff\xffcd"))),
    "an offset inside a character": (TEXTS, lambda a: buffer(a, 1, int32s(0, 3, 4, 4, 6))),
    "text is null": (TEXTS, lambda a: buffer(a, 2, None)),
    "list longer than its values": (LISTS, lambda a: buffer(a, 1, int32s(0, 1, 4))),
    "list without child": (LISTS, lambda a: put(column(a), n_children=0)),
    "view array with two buffers": (VIEWS, lambda a: put(column(a), n_buffers=2)),
    "view beyond its buffer": (VIEWS, lambda a: buffer(a, 3, byte_string((25).to_bytes(8, sys.byteorder)))),
    "negative view buffer": (VIEWS, lambda a: buffer(a, 3, byte_string((-1).to_bytes(8, sys.byteorder, signed=True)))),
    "dictionary index out of range": (CODES, lambda a: buffer(a, 1, int32s(0, 2))),
    "negative dictionary index": (CODES, lambda a: buffer(a, 1, int32s(0, -1))),
    "dictionary missing": (CODES, lambda a: put(column(a), dictionary=None)),
    "runs end early": (RUNS, lambda a: (put(a, length=4), put(column(a), length=4))),
    "falling runs": (RUNS, lambda a: column(a).children[0].contents.buffers.__setitem__(1, int32s(3, 1))),
    "unknown type id": (UNIONS, lambda a: buffer(a, 0, byte_string(b"\x00\x07"))),
    "released array": (NUMBERS, lambda a: put(a, release=ARRAY_RELEASE())),
}
SCHEMAS: dict[str, tuple[pa.RecordBatch, Spoil]] = {
    "null format": (NUMBERS, lambda s: put(column(s), format=None)),
    "unknown format": (NUMBERS, lambda s: put(column(s), format=b"??")),
    "format that is not UTF-8": (NUMBERS, lambda s: put(column(s), format=b"\xff")),
    "name that is not UTF-8": (NUMBERS, lambda s: put(column(s), name=b"\xff")),
    "list type without child": (NUMBERS, lambda s: put(column(s), format=b"+l")),
    "struct claims": (NUMBERS, lambda s: put(s, n_children=-1)),
    "schema children are null": (NUMBERS, lambda s: put(s, children=None)),
    "not a table": (NUMBERS, lambda s: put(s, format=b"l", n_children=0)),
    "negative metadata": (
        NUMBERS,
        lambda s: put(s, metadata=byte_string((-1).to_bytes(4, sys.byteorder, signed=True))),
    ),
    "bad decimal": (NUMBERS, lambda s: put(column(s), format=b"d:99,")),
    "bad fixed size": (NUMBERS, lambda s: put(column(s), format=b"w:-3")),
    "released schema": (NUMBERS, lambda s: put(s, release=SCHEMA_RELEASE())),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_broken_array_is_an_error(name: str) -> None:
    batch, spoil = ARRAYS[name]
    with pytest.raises((prejoin.ExecutionError, prejoin.PlanError)):
        _core.read_all(Hostile(batch, array=spoil))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_broken_schema_is_an_error(name: str) -> None:
    batch, spoil = SCHEMAS[name]
    with pytest.raises(prejoin.PlanError):
        _core.read_all(Hostile(batch, schema=spoil))


def test_an_unchanged_array_is_read() -> None:
    for batch in (NUMBERS, TEXTS, LISTS, VIEWS, CODES, RUNS, UNIONS):
        assert _core.read_all(Hostile(batch)).to_batches()[0].equals(batch)


class Stream:
    """A C stream whose functions are written in Python."""

    def __init__(self, get_schema: Any, get_next: Any) -> None:
        self.released = 0
        self.functions = (
            GET_SCHEMA(get_schema),
            GET_NEXT(get_next),
            LAST_ERROR(lambda _: None),
            STREAM_RELEASE(self.release),
        )
        self.stream = CStream(*self.functions)
        KEPT.append(self)

    def release(self, stream: Any) -> None:
        self.released += 1
        stream.contents.release = STREAM_RELEASE()

    def __arrow_c_stream__(self) -> object:
        return new_capsule(ctypes.addressof(self.stream), b"arrow_array_stream", None)


def give_schema(_: object, out: Any) -> int:
    TABLE.schema._export_to_c(ctypes.addressof(out.contents))
    return 0


def test_a_stream_that_fails_without_a_text_is_asked_once() -> None:
    calls: list[int] = []

    def fail(*_: object) -> int:
        calls.append(1)
        return 5

    stream = Stream(give_schema, fail)
    reader = _core.read(stream)
    with pytest.raises(prejoin.ExecutionError, match="without a text"):
        reader.read_next_batch()
    with pytest.raises(StopIteration):
        reader.read_next_batch()
    assert (len(calls), stream.released) == (1, 1)
    stream = Stream(fail, fail)
    with pytest.raises(prejoin.ExecutionError, match="its schema"):
        _core.read_all(stream)
    assert stream.released == 1


def test_a_stream_is_not_asked_after_its_end() -> None:
    calls: list[int] = []

    def end(_: object, out: Any) -> int:
        calls.append(1)
        out.contents.release = ARRAY_RELEASE()
        return 0

    stream = Stream(give_schema, end)
    assert _core.read_all(stream).num_rows == 0
    assert (len(calls), stream.released) == (1, 1)
    stream = Stream(give_schema, end)
    reader = _core.read(stream)
    del reader
    assert stream.released == 1


def test_capsules_of_the_wrong_kind() -> None:
    class Wrong:
        def __init__(self, value: object) -> None:
            self.value = value

        def __arrow_c_stream__(self) -> object:
            return self.value

    for value in (None, 5, "x", TABLE.schema.__arrow_c_schema__()):
        with pytest.raises(TypeError, match="arrow_array_stream"):
            _core.read_all(Wrong(value))
    with pytest.raises(prejoin.PlanError, match="struct of columns"):
        _core.read_all(Wrong(pa.chunked_array([[1]]).__arrow_c_stream__()))
