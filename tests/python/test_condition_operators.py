"""Conditions made in Python: the operators of `col` and `lit`, the limit of depth, and what constants mean."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import prejoin
from prejoin import col, lit

A, B = col("build.a"), col("probe.b")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (A == B, "build.a = probe.b"),
        (A != 1, "build.a <> 1"),
        (1 < A, "build.a > 1"),  # noqa: SIM300
        ((A >= 1) & (B <= 2) & (A > 0), "build.a >= 1 AND probe.b <= 2 AND build.a > 0"),
        ((A < 1) | ~(B == "x"), "build.a < 1 OR NOT probe.b = 'x'"),
        (A.is_null() & B.is_not_null(), "build.a IS NULL AND probe.b IS NOT NULL"),
        (2 * (A + 1) - B / 3 % 2 == 0, "2 * (build.a + 1) - probe.b / 3 % 2 = 0"),
        (True & (A == 1), "TRUE AND build.a = 1"),
    ],
)
def test_operators(expr: prejoin.Expr, text: str) -> None:
    assert repr(expr) == text


def test_conditions_have_neither_truth_value_nor_hash() -> None:
    for misuse in (lambda: bool(A == 1), lambda: 0 < A < 9, lambda: not A, lambda: [A].index(B)):
        with pytest.raises(TypeError, match=r"combine conditions with & \| ~"):
            misuse()
    with pytest.raises(TypeError, match="unhashable"):
        hash(A)
    with pytest.raises(prejoin.PlanError, match=r'"build\.a" or "probe\.a"'):
        col("a")
    with pytest.raises(TypeError, match="object was given"):
        lit(object())


def grow_on(grow: Callable[[Any], Any], expr: Any) -> None:
    for _ in range(100_000):
        expr = grow(expr)


def test_depth_is_limited_when_a_condition_is_made() -> None:
    """A tree too deep for the stack is never made. A chain of `&` is flat and may be long."""
    steps: list[Callable[[Any], Any]] = [
        lambda e: ~e,
        lambda e: e.is_null(),
        lambda e: e + 1,
        lambda e: 1 - e,
        lambda e: e == 1,
    ]
    for grow in steps:
        expr = A
        for _ in range(60):
            expr = grow(expr)
        with pytest.raises(prejoin.PlanError, match="more than 128 levels"):
            grow_on(grow, expr)
        assert len(repr(expr)) < 10_000
    chain = A == 0
    for i in range(2000):
        chain = chain & (i != A)
    assert repr(chain).count("AND") == 2000


UTC = dt.timezone.utc
ROME = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "array"),
    [
        (dt.date(1969, 12, 31), pa.array([-1], pa.date32())),
        (dt.datetime(1970, 1, 1, 0, 0, 1, 5), pa.array([1_000_005], pa.timestamp("us"))),
        (dt.datetime(1969, 12, 31, 23, 59, 59), pa.array([-1], pa.timestamp("s"))),
        (dt.datetime(1970, 1, 1, 2, tzinfo=ROME), pa.array([0], pa.timestamp("ns", "America/Lima"))),
        (pd.Timestamp(1_000_000_007), pa.array([1_000_000_007], pa.timestamp("ns"))),
        (pd.Timestamp(7, tz="Asia/Tokyo"), pa.array([7], pa.timestamp("ns", "UTC"))),
        (dt.time(1, 2, 3, 4), pa.array([3_723_000_004], pa.time64("us"))),
        (dt.timedelta(days=-1, microseconds=1), pa.array([-86_399_999_999], pa.duration("us"))),
        (pd.Timedelta(1_001), pa.array([1_001], pa.duration("ns"))),
        (decimal.Decimal("-12.340"), pa.array([decimal.Decimal("-12.34")], pa.decimal128(9, 2))),
        (decimal.Decimal("1E3"), pa.array([1000], pa.int64())),
        (decimal.Decimal("9" * 76), pa.array([decimal.Decimal("9" * 76)], pa.decimal256(76, 0))),
        (np.int64(-5), pa.array([-5], pa.int8())),
        (np.float64(0.5), pa.array([0.5], pa.float32())),
        (np.uint64(2**64 - 1), pa.array([2**64 - 1], pa.uint64())),
        (True, pa.array([True])),
        ("zß", pa.array(["zß"])),
        (b"\x00", pa.array([b"\x00"], pa.binary(1))),
    ],
)
def test_a_constant_equals_its_own_value_in_a_column(value: Any, array: pa.Array) -> None:
    """S37: it is neither less nor greater than that value, and null equals nothing."""
    batch = pa.record_batch({"k": pa.array([1]), "x": array})
    null = pa.record_batch({"k": pa.array([1]), "x": pa.nulls(1, array.type)})
    build = prejoin.prepare(pa.table({"k": [1]}), "k")

    def rows(condition: prejoin.Expr, batch: pa.RecordBatch) -> int:
        return int(prejoin.join(batch, build, where=condition).num_rows)

    x = col("probe.x")
    assert rows(x == value, batch) == rows(x >= value, batch) == rows(lit(value) <= x, batch) == 1
    assert rows(x != value, batch) == rows(x > value, batch) == rows(x < value, batch) == 0
    assert rows((x == value) | (x != value), null) == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**127, "does not fit 128 bits"),
        (dt.time(1, tzinfo=UTC), "remove it"),
        (dt.timedelta.max, "does not fit 64 bits"),
        (decimal.Decimal("NaN"), "is not a number"),
        (decimal.Decimal("1E-77"), "at most 76"),
        (decimal.Decimal("1E9999"), "at most 76"),
    ],
)
def test_constants_out_of_range_are_refused(value: Any, text: str) -> None:
    with pytest.raises(prejoin.PlanError, match=text):
        lit(value)


def test_not_a_time_is_null() -> None:
    assert repr(lit(pd.NaT)) == "NULL"
