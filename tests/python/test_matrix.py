"""`lookup_numpy`: the matrix is that of `lookup`, value by value."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from prejoin import ExecutionError, PlanError

INTS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
NUMBERS = [
    *INTS,
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.decimal128(9, 2),
    pa.dictionary(pa.int8(), pa.int16()),
]


def column(data_type: pa.DataType, random: Random, rows: int, nulls: bool) -> pa.Array:
    few: list[Any] = [1, 0, 3, 100] if not pa.types.is_boolean(data_type) else [True, False]
    few = [Decimal(v) / 4 for v in few] if pa.types.is_decimal(data_type) else few
    items = [random.choice([None, *few] if nulls else few) for _ in range(rows)]
    if pa.types.is_dictionary(data_type):
        return pa.array(items, data_type.value_type).dictionary_encode().cast(data_type)
    if pa.types.is_float16(data_type):
        items = [item if item is None else np.float16(item / 8) for item in items]
    return pa.array(items, data_type)


def expected(build: prejoin.PreparedBuild, keys: Any, columns: list[str], default: Any, dtype: str) -> np.ndarray:
    """From the values of `lookup`, one at a time."""
    found = build.lookup(keys, columns)
    matrix = np.empty((found.num_rows, len(columns)), dtype)
    for at, name in enumerate(columns):
        fill = default.get(name, np.nan) if isinstance(default, dict) else default
        for row, value in enumerate(found.column(at).to_pylist()):
            matrix[row, at] = fill if value is None else value
    return matrix


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_a_matrix_is_its_lookup(seed: int) -> None:
    """Of all types of numbers, with nulls, absent keys and repeated columns."""
    random = Random(seed)
    rows, nulls = random.choice([0, 1, 300]), random.random() < 0.5
    types = [random.choice(NUMBERS) for _ in range(random.randint(1, 6))]
    table = pa.table({"k": range(rows)} | {f"c{i}": column(t, random, rows, nulls) for i, t in enumerate(types)})
    build = prejoin.prepare(table, "k", config=prejoin.Config(_collide=random.choice([0, 3])))
    keys = [random.randrange(rows * 2 + 1) for _ in range(random.choice([0, 1, 700]))]
    columns = [f"c{random.randrange(len(types))}" for _ in range(random.randint(0, 5))]
    default = random.choice([None, -1.5, {columns[0]: 2} if columns else 2])
    dtype = random.choice(["float32", "float64"])
    found = build.lookup_numpy(keys, columns, default=default, dtype=dtype)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    assert found.flags.writeable
    wanted = expected(build, keys, columns, np.nan if default is None else default, dtype)
    np.testing.assert_array_equal(found, wanted)
    out = np.full(wanted.shape, 7, dtype)
    assert build.lookup_numpy(keys, columns, default=default, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    whole = [f"c{i}" for i, t in enumerate(types) if pa.types.is_integer(t) or pa.types.is_boolean(t)]
    integers = build.lookup_numpy(np.array(keys, np.int64), whole, default=-9, dtype=np.int32)
    np.testing.assert_array_equal(integers, expected(build, keys, whole, -9, "int32"))


def test_dtype_by_the_columns() -> None:
    small = pa.table({"k": [1], "a": pa.array([2], pa.int16()), "b": pa.array([0.5], pa.float32()), "c": [True]})
    build = prejoin.prepare(small.append_column("d", pa.array([2**24 + 1])), "k")
    assert build.lookup_numpy([1], ["a", "b", "c"]).dtype == np.float32
    assert build.lookup_numpy([1], ["a", "d"]).tolist() == [[2.0, 2.0**24 + 1]]
    assert build.lookup_numpy([1, 2], ["d"], dtype="int64", default=-1).tolist() == [[2**24 + 1], [-1]]
    assert build.lookup_numpy([1], ["d"], dtype=np.dtype("int64")).dtype == np.int64
    assert build.lookup_numpy([1], [], dtype="float32").shape == (1, 0)
    twice = prejoin.prepare(pa.table({"k": [1, 1], "v": [1.0, 2.0]}), "k")
    assert [twice.lookup_numpy([1], ["v"], keep=keep).item() for keep in ("first", "last")] == [1.0, 2.0]


def test_a_view_of_a_larger_matrix() -> None:
    """Rows of an array that others own, and a subclass of numpy's array."""
    build = prejoin.prepare(pa.table({"k": [1, 2], "v": [1.5, 2.5]}), "k")
    whole = np.zeros((5, 1))
    build.lookup_numpy([2, 1], ["v"], out=whole[2:4])
    assert whole.ravel().tolist() == [0, 0, 2.5, 1.5, 0]

    class Own(np.ndarray):
        __array_interface__ = {"data": (1, False)}  # noqa: RUF012

    own = np.zeros((1, 1)).view(Own)
    build.lookup_numpy([1], ["v"], out=own)
    assert np.asarray(own.view(np.ndarray)).item() == 1.5


def test_what_is_refused() -> None:
    table = pa.table(
        {"k": [1, 2], "v": [1.5, None], "i": [2**40, None], "t": ["a", "b"], "d": pa.array([0, 1], pa.date32())}
    )
    build = prejoin.prepare(table, "k")
    frozen = np.zeros((1, 1))
    frozen.flags.writeable = False
    odd = np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float64).reshape(1, 1)
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (["t"], {}, PlanError, 'column "t" has type Utf8, a matrix takes numbers and Booleans'),
        (["d"], {}, PlanError, 'column "d" has type Date32'),
        (["x"], {}, PlanError, 'no column "x"'),
        ("v", {}, TypeError, "columns is a list of column names"),
        (["v"], {"dtype": "int64"}, PlanError, "dtype=int64 does not hold"),
        (["v"], {"dtype": "float16"}, PlanError, "float16 was asked for"),
        (["v"], {"dtype": ">f8"}, PlanError, "was asked for"),
        (
            ["i"],
            {"dtype": "int32", "default": 0},
            ExecutionError,
            'the value of key 0 in column "i" does not fit int32',
        ),
        (["i"], {"dtype": "int64", "keys": [1, 2]}, ExecutionError, "key 1 is absent or has no value"),
        (["i"], {"dtype": "int64", "keys": [1, 3]}, ExecutionError, "key 1 is absent or has no value"),
        (["i"], {"dtype": "int64", "default": 0.5}, PlanError, 'default=0.5 of column "i" is no int64'),
        (["v"], {"default": "x"}, PlanError, "default=x"),
        (["v"], {"default": {"w": 1}}, PlanError, 'default names the column "w"'),
        (["v"], {"out": [[0.0]]}, TypeError, "out is an array of numpy, list was given"),
        (["v"], {"out": np.zeros((2, 1))}, PlanError, "out has the shape [2, 1]"),
        (["v"], {"out": np.zeros(1)}, PlanError, "out has the shape [1]"),
        (["v"], {"out": np.zeros((1, 1), "int8")}, PlanError, "int8 was asked for"),
        (["v"], {"out": np.zeros((1, 1)), "dtype": "float32"}, PlanError, "the dtype float64, asked for"),
        (["v", "v"], {"out": np.zeros((1, 2))[:, ::-1]}, PlanError, "not C_CONTIGUOUS"),
        (["v"], {"out": frozen}, PlanError, "not WRITEABLE"),
        (["v"], {"out": odd}, PlanError, "not ALIGNED"),
    ]
    for columns, options, error, message in cases:
        keys = options.pop("keys", [1])
        with pytest.raises(error) as caught:
            build.lookup_numpy(keys, columns, **options)
        assert message in str(caught.value), caught.value
