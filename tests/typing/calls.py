"""Typical calls and the types that editors see for their results; read by type checkers, never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
from typing_extensions import assert_type

import prejoin
from prejoin.typing import HashJoinHow, How, Keep, LegHow, Select, Validate

HOW: How = "left_semi"
LEG: LegHow = "left outer"
HASH_JOIN: HashJoinHow = "probe_outer"
KEEP: Keep = "first"
VALIDATE: Validate = "many_to_one"
SELECT: Select = ["probe.*", {"town": "build.city"}]


def enrich(batch: pa.RecordBatch, users: prejoin.PreparedBuild) -> pa.RecordBatch:
    return prejoin.join(batch, users)


def enrich_table(table: pa.Table, users: prejoin.PreparedBuild) -> pa.Table:
    return users.join(table, {"user": "id"}, "left", default={"name": "?"}, prefix="user_")


def enrich_polars(frame: pl.DataFrame, users: prejoin.PreparedBuild) -> pl.DataFrame:
    return prejoin.join(frame, users, how="left", select=SELECT)


def enrich_pandas(frame: pd.DataFrame, users: prejoin.PreparedBuild) -> pd.DataFrame:
    return prejoin.join(frame, users, on="id", validate="m:1", dtype_backend="pyarrow")


def joins(
    batch: pa.RecordBatch,
    table: pa.Table,
    reader: pa.RecordBatchReader,
    polars: pl.DataFrame,
    lazy: pl.LazyFrame,
    pandas: pd.DataFrame,
    batches: list[pa.RecordBatch],
    stream: Iterator[pa.RecordBatch],
    build: prejoin.PreparedBuild,
) -> None:
    assert_type(prejoin.join(batch, build), pa.RecordBatch)
    assert_type(prejoin.join(table, build, "id", "right", where="build.x > 1"), pa.Table)
    assert_type(prejoin.join(table, pandas, on="id"), pa.Table)
    assert_type(prejoin.join(reader, build), pa.RecordBatchReader)
    assert_type(prejoin.join(stream, build), pa.RecordBatchReader)
    assert_type(prejoin.join(lazy, build, batch_size=100), pa.RecordBatchReader)
    assert_type(prejoin.join(prejoin.Source(table), build), pa.RecordBatchReader)
    assert_type(prejoin.join(polars, build, limit=1), pl.DataFrame)
    assert_type(prejoin.join(pandas, build, coalesce=False), pd.DataFrame)
    assert_type(prejoin.join(batches, build, suffix="_b"), pa.Table)
    assert_type(prejoin.join(polars, [prejoin.Leg(build), build]), pl.DataFrame)
    assert_type(prejoin.join(table, {"users": build}), pa.Table)
    assert_type(build.join(batch), pa.RecordBatch)
    assert_type(build.join(pandas, on=["id"]), pd.DataFrame)
    assert_type(build.join(lazy), pa.RecordBatchReader)
    assert_type(prejoin.join_asof(table, build, on="id", asof="at", tolerance=5), pa.Table)
    assert_type(prejoin.join_asof(polars, build, strategy="nearest"), pl.DataFrame)
    assert_type(prejoin.join_schema(table.schema, build, how="full"), pa.Schema)
    star = prejoin.StarJoin({"users": prejoin.Leg(build, {"user": "id"}, "left", default=0)}, select=["probe.*"])
    assert_type(star(batch), pa.RecordBatch)
    assert_type(star(table), pa.Table)
    assert_type(star(polars), pl.DataFrame)
    assert_type(star(pandas), pd.DataFrame)
    assert_type(star(reader), pa.RecordBatchReader)
    assert_type(star(batches), pa.Table)


def builds(table: pa.Table, build: prejoin.PreparedBuild) -> None:
    assert_type(prejoin.prepare(table, on="id", null_equal=True, keep="last"), prejoin.PreparedBuild)
    assert_type(build.get(1), dict[str, Any] | None)
    assert_type(build.get(1, default=0), dict[str, Any] | int)
    assert_type(build[1], dict[str, Any])
    assert_type(1 in build, bool)
    assert_type(build.lookup([1, 2], ["name"], default={"name": "?"}), pa.RecordBatch)
    assert_type(build.counts(), pa.Table)
    assert_type(build.to_table(), pa.Table)
    assert_type(len(build), int)


def hash_joins(users: pa.Table, events: pa.Table, batch: pa.RecordBatch) -> None:
    join = prejoin.HashJoin(users.schema, events, on=[("id", "user")], how="probe_outer")
    task = join.with_prepared_build(join.prepare_build(users))
    assert_type(task, prejoin.HashJoin)
    assert_type(task(batch), pa.RecordBatch)
    assert_type(task.execute(), pa.RecordBatchReader)
    assert_type(task.how, HashJoinHow)
    condition = prejoin.col("probe.at") >= prejoin.col("build.since")
    assert_type(condition, prejoin.Expr)
    prejoin.join(batch, task.prepare_build(users), where=condition & (prejoin.col("build.n") > 1))


def mistakes(table: pa.Table, build: prejoin.PreparedBuild) -> None:
    """Each line is an error to a type checker, or it is one that nothing was to be ignored."""
    prejoin.join(table, build, how="sideways")  # type: ignore[call-overload]
    prejoin.join(table, build, left_on="user")  # type: ignore[call-overload]
    build.join(table, validate="one")  # type: ignore[call-overload]
    prejoin.HashJoin(table, table, "id", how="left")  # type: ignore[arg-type]
    prejoin.Leg(build, how="full")  # type: ignore[arg-type]
    batch: pa.RecordBatch = prejoin.join(table, build)  # type: ignore[assignment]
    prejoin.prepare(table, "id", keep=batch)  # type: ignore[arg-type]
