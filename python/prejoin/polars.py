"""Joins and lookups as methods of polars objects, under `prejoin`; importing this module adds them.

import prejoin.polars

flights.prejoin.join(planes, on="tailnum")
flights.with_columns(seats=pl.col("tailnum").prejoin.map(planes, "seats", default=0))
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

try:
    import polars as pl
    from polars.io.plugins import register_io_source
except ImportError as _error:
    raise ImportError("prejoin.polars needs polars, which cannot be imported: pip install polars") from _error

import prejoin
from prejoin._frames import polars_frame

__all__ = ["ExprMethods", "FrameMethods", "LazyFrameMethods", "SeriesMethods"]


@pl.api.register_dataframe_namespace("prejoin")
class FrameMethods:
    """`frame.prejoin`: joins of a polars.DataFrame."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def join(self, build: Any, on: Any = None, how: Any = "inner", **options: Any) -> pl.DataFrame:
        """Joins this frame, as the probe side, to `build`.

        Args:
            build: A PreparedBuild, rows together with `on`, or several legs.
            on: Names of key columns, as of `prejoin.join`.
            how: Which rows come out, as of `prejoin.join`.
            **options: Other arguments of `prejoin.join`.

        Returns:
            A polars.DataFrame.

        Raises:
            PlanError: As `prejoin.join` does.

        Example:
            >>> import polars as pl, prejoin.polars
            >>> users = prejoin.prepare(pl.DataFrame({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> pl.DataFrame({"id": [2, 3]}).prejoin.join(users, how="left")["name"].to_list()
            ['bob', None]

        """
        joined: pl.DataFrame = prejoin.join(self._frame, build, on, how, **options)
        return joined


@pl.api.register_lazyframe_namespace("prejoin")
class LazyFrameMethods:
    """`lazy_frame.prejoin`: joins of a polars.LazyFrame."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def join(self, build: Any, on: Any = None, how: Any = "inner", **options: Any) -> pl.LazyFrame:
        """Joins this frame, as the probe side, to `build` when the result is collected, batch by batch.

        The query before the join is run by polars' streaming engine. Columns that the query after the join does not
        use are not read, and a limit stops the join. A filter after the join is applied to the joined batches; filter
        before the join where that is possible.

        Args:
            build: A PreparedBuild, or several legs.
            on: Names of key columns, as of `prejoin.join`.
            how: Which rows come out, as of `prejoin.join`.
            **options: Other arguments of `prejoin.join`.

        Returns:
            A polars.LazyFrame. It can be collected any number of times, by any engine.

        Raises:
            TypeError: For a build that is not prepared, since it may have to be read several times.
            ComputeError: Of polars, with the text of what `prejoin.join` raises, when the schema is asked for. Errors
                of the query before the join are raised as they are.

        Example:
            >>> import polars as pl, prejoin.polars
            >>> users = prejoin.prepare(pl.DataFrame({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> events = pl.LazyFrame({"id": [2, 3, 1]})
            >>> events.prejoin.join(users).select("name").collect().to_series().to_list()
            ['bob', 'ada']

        """
        frame, template = self._frame, pl.DataFrame()
        if not isinstance(build, prejoin.PreparedBuild | prejoin.Leg | list | tuple | dict):
            given = type(build)
            raise TypeError(
                "a lazy join takes a PreparedBuild or legs, since it may read its build several times; "
                f"{given.__module__}.{given.__qualname__} was given: prejoin.prepare(rows, on=..) makes a build of rows"
            )

        def schema() -> pl.Schema:
            empty = frame.collect_schema().to_frame()
            joined: pl.DataFrame = prejoin.join(empty, build, on, how, **options)
            return joined.schema

        def batches(
            columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_size: int | None
        ) -> Iterator[pl.DataFrame]:
            asked = dict(options)
            if columns is not None and asked.get("select") is None:
                asked["select"] = columns
            if rows is not None:
                asked["limit"] = rows if asked.get("limit") is None else min(rows, asked["limit"])
            if batch_size and asked.get("batch_size") is None:
                asked["batch_size"] = batch_size
            for batch in prejoin.join(frame, build, on, how, **asked):
                joined = polars_frame(batch, template)
                if columns is not None:
                    joined = joined.select(columns)
                yield joined if predicate is None else joined.filter(predicate)

        return register_io_source(batches, schema=schema, is_pure=True)


@pl.api.register_series_namespace("prejoin")
class SeriesMethods:
    """`series.prejoin`: lookups of the values of a polars.Series."""

    def __init__(self, keys: pl.Series) -> None:
        self._keys = keys

    def map(self, build: prejoin.PreparedBuild, column: str, default: Any = None, *, keep: Any = "all") -> pl.Series:
        """The value of one column of `build` for each key.

        Args:
            build: The prepared build.
            column: Name of a build column.
            default: A value of the column's type for keys that are absent.
            keep: "first" or "last" row of a key, where some key has several.

        Returns:
            A polars.Series with the name of this one.

        Raises:
            PlanError: As `PreparedBuild.map` does.

        Example:
            >>> import polars as pl, prejoin.polars
            >>> users = prejoin.prepare(pl.DataFrame({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> pl.Series([2, 3]).prejoin.map(users, "name", default="-").to_list()
            ['bob', '-']

        """
        mapped: pl.Series = build.map(self._keys, column, default, keep=keep)
        return mapped

    def contains(self, build: prejoin.PreparedBuild) -> pl.Series:
        """Whether each key is in `build`, as `is_in` says whether it is in a list.

        Args:
            build: The prepared build.

        Returns:
            A polars.Series of Booleans with the name of this one.

        Raises:
            PlanError: As `PreparedBuild.contains` does.

        Example:
            >>> import polars as pl, prejoin.polars
            >>> users = prejoin.prepare(pl.DataFrame({"id": [1, 2]}), on="id")
            >>> pl.Series([2, 3]).prejoin.contains(users).to_list()
            [True, False]

        """
        found: pl.Series = build.contains(self._keys)
        return found


@pl.api.register_expr_namespace("prejoin")
class ExprMethods:
    """`expression.prejoin`: lookups of the values of a polars.Expr, in any context and engine."""

    def __init__(self, keys: pl.Expr) -> None:
        self._keys = keys

    def map(self, build: prejoin.PreparedBuild, column: str, default: Any = None, *, keep: Any = "all") -> pl.Expr:
        """The value of one column of `build` for each key. For keys of several columns, map a `pl.struct` of them.

        Args:
            build: The prepared build.
            column: Name of a build column.
            default: A value of the column's type for keys that are absent.
            keep: "first" or "last" row of a key, where some key has several.

        Returns:
            An elementwise polars.Expr of the column's type with the name of the keys.

        Raises:
            PlanError: For an unknown column, a default of another type, and keys that repeat without `keep`; for keys
                of another type when the query runs.

        Example:
            >>> import polars as pl, prejoin.polars
            >>> users = prejoin.prepare(pl.DataFrame({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> events = pl.DataFrame({"id": [2, 3]})
            >>> events.select(pl.col("id").prejoin.map(users, "name", default="-")).to_series().to_list()
            ['bob', '-']

        """
        data_type = polars_frame(build.lookup([], [column], default=default, keep=keep), pl.DataFrame()).dtypes[0]

        def mapped(keys: pl.Series) -> pl.Series:
            values: pl.Series = build.map(keys, column, default, keep=keep)
            return values

        return self._keys.map_batches(mapped, return_dtype=data_type, is_elementwise=True)

    def contains(self, build: prejoin.PreparedBuild) -> pl.Expr:
        """Whether each key is in `build`, as `is_in` says whether it is in a list.

        Args:
            build: The prepared build.

        Returns:
            An elementwise polars.Expr of Booleans with the name of the keys.

        Example:
            >>> import polars as pl, prejoin.polars
            >>> users = prejoin.prepare(pl.DataFrame({"id": [1, 2]}), on="id")
            >>> pl.DataFrame({"id": [2, 3]}).filter(pl.col("id").prejoin.contains(users)).to_series().to_list()
            [2]

        """

        def contained(keys: pl.Series) -> pl.Series:
            found: pl.Series = build.contains(keys)
            return found

        return self._keys.map_batches(contained, return_dtype=pl.Boolean, is_elementwise=True)
