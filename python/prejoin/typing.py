"""Types of arguments and results, for annotations.

The protocols describe the part of the Arrow PyCapsule interface that prejoin uses. Objects of pyarrow, polars, pandas,
duckdb, nanoarrow and arro3 implement it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, Union

import pyarrow as pa

if TYPE_CHECKING:
    from prejoin._core import Expr, Leg, PreparedBuild, SharedBuild, Source

__all__ = [
    "ArrowArrayExportable",
    "ArrowSchemaExportable",
    "ArrowStreamExportable",
    "Estimate",
    "Key",
    "Keys",
    "Legs",
    "Memory",
    "Metrics",
    "OneLeg",
    "Operand",
    "Properties",
    "Rows",
    "Saved",
    "SavedBytes",
    "Statistics",
    "SupportsCollectBatches",
    "SupportsScanner",
    "SupportsToReader",
    "Version",
]

# What tells one state of a table from another: text, a number, or a tuple of these.
Version: TypeAlias = str | int | float | bool | None | tuple["Version", ...]


class ArrowSchemaExportable(Protocol):
    """A schema, such as `pyarrow.Schema`."""

    def __arrow_c_schema__(self) -> Any:
        """The schema as a PyCapsule."""


class ArrowArrayExportable(Protocol):
    """One batch of rows, such as `pyarrow.RecordBatch`."""

    def __arrow_c_array__(self) -> Any:
        """Schema and rows as two PyCapsules."""


class ArrowStreamExportable(Protocol):
    """Any number of batches, such as a table, a frame, a reader or a relation."""

    def __arrow_c_stream__(self) -> Any:
        """A stream of batches as a PyCapsule."""


class SupportsScanner(Protocol):
    """A dataset, such as `pyarrow.dataset.Dataset`."""

    def scanner(self) -> Any:
        """A scanner of all rows."""


class SupportsToReader(Protocol):
    """A scanner, such as `pyarrow.dataset.Scanner`."""

    def to_reader(self) -> Any:
        """A reader of the scanned rows."""


class SupportsCollectBatches(Protocol):
    """A lazy frame, such as `polars.LazyFrame`."""

    def collect_batches(self) -> Any:
        """An iterator of frames."""


Rows: TypeAlias = Union[
    ArrowStreamExportable,
    ArrowArrayExportable,
    SupportsScanner,
    SupportsToReader,
    SupportsCollectBatches,
    Iterable[Any],
    "Source",
]
"""Anything that prejoin can read rows from. The items of an iterable are batches, tables or frames."""

Operand: TypeAlias = Any
"""An `Expr`, or a value that `prejoin.lit` accepts."""

Key: TypeAlias = Union[str, int, "Expr"]
"""A key column: its name, its position, or `prejoin.col(...)`."""


Keys: TypeAlias = Any
"""Any number of keys: an iterable of values, or of tuples if there are several key columns; an array or series; a
mapping of key names to iterables, arrays or series; or a table with the key columns."""

OneLeg: TypeAlias = Union["Leg", "PreparedBuild", "SharedBuild"]
"""A leg of a star join; a build alone is one on the names of its keys."""

Legs: TypeAlias = Sequence[OneLeg] | Mapping[str, OneLeg]
"""The legs of a star join: in a list, or by name."""


class Estimate(TypedDict):
    """A number of rows; `exact` says whether it is known or estimated."""

    rows: int
    exact: bool


class Statistics(TypedDict):
    """Numbers of rows before a join runs; None if nothing is known."""

    build_rows: Estimate | None
    probe_rows: Estimate | None
    output_rows: Estimate | None


class Properties(TypedDict):
    """What is known of a join's output before it runs. Columns are given as positions in the output.

    The rows of each partition are sorted by the columns in `ordering`, ascending, by the first one first. It is empty
    if no order is known. The columns of each group in `equal_columns` have equal values in every row.
    """

    ordering: list[int]
    equal_columns: list[list[int]]
    partitions: int


class Metrics(TypedDict):
    """What one run of a join has done so far. Times are in seconds, memory in bytes.

    The build figures of a join with an attached build are 0, since it builds nothing. `build_time` includes the time
    spent waiting for the build source; `join_time` does not include waiting for the probe source. `index_kind` is None
    until the build is known.
    """

    build_input_rows: int
    build_input_batches: int
    build_mem_used: int
    build_time: float
    input_rows: int
    input_batches: int
    output_rows: int
    output_batches: int
    join_time: float
    index_kind: str | None


class Memory(TypedDict):
    """Bytes of a prepared build.

    `rows`, `index` and `groups` are its parts; `private` and `mapped` say how much is memory of this process and how
    much lies in a mapped file; `reserved` is the charge to the pool.
    """

    rows: int
    index: int
    groups: int
    private: int
    mapped: int
    reserved: int


class SavedBytes(TypedDict):
    """Bytes of a saved build by part, and of the whole file."""

    rows: int
    index: int
    groups: int
    file: int


class Saved(TypedDict):
    """The header of a saved build."""

    schema: pa.Schema
    keys: list[str]
    null_equal: tuple[bool, ...]
    num_rows: int
    num_keys: int
    duplicates: int
    index_kind: str
    membership: str
    bytes: SavedBytes
    rows_at: tuple[int, int]
    fingerprint: str
    name: str | None
    version: Version
    loaded_at: datetime.datetime | None
    created: datetime.datetime | None
    prejoin_version: str
    format_version: int
