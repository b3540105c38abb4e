"""Types of arguments and results, for annotations.

The protocols are the Arrow PyCapsule interface as far as it is used here; objects of pyarrow, polars, pandas, duckdb,
nanoarrow and arro3 have it.
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
]


class ArrowSchemaExportable(Protocol):
    """A schema: `pyarrow.Schema` and the like."""

    def __arrow_c_schema__(self) -> Any:
        """The schema as a PyCapsule."""


class ArrowArrayExportable(Protocol):
    """One batch of rows: `pyarrow.RecordBatch` and the like."""

    def __arrow_c_array__(self) -> Any:
        """Schema and rows as two PyCapsules."""


class ArrowStreamExportable(Protocol):
    """Any number of batches: a table, a frame, a reader, a relation."""

    def __arrow_c_stream__(self) -> Any:
        """A stream of batches as a PyCapsule."""


class SupportsScanner(Protocol):
    """`pyarrow.dataset.Dataset`."""

    def scanner(self) -> Any:
        """The scanner of all rows."""


class SupportsToReader(Protocol):
    """`pyarrow.dataset.Scanner`."""

    def to_reader(self) -> Any:
        """The reader of the scanned rows."""


class SupportsCollectBatches(Protocol):
    """`polars.LazyFrame`."""

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
"""Whatever gives rows. An iterable gives batches, tables or frames."""

Operand: TypeAlias = Any
"""An `Expr`, or a value that `prejoin.lit` takes."""

Key: TypeAlias = Union[str, int, "Expr"]
"""A key column: its name, its position, or `prejoin.col(...)`."""


Keys: TypeAlias = Any
"""Any number of keys: an iterable of values or tuples, an array or series, a mapping of names to either, or a table."""

OneLeg: TypeAlias = Union["Leg", "PreparedBuild", "SharedBuild"]
"""A leg of a star join; a build alone is one on the names of its keys."""

Legs: TypeAlias = Sequence[OneLeg] | Mapping[str, OneLeg]
"""The legs of a star join: in a list, or by name."""


class Estimate(TypedDict):
    """A number of rows, known or guessed."""

    rows: int
    exact: bool


class Statistics(TypedDict):
    """Row counts before a join runs; None where nothing is known."""

    build_rows: Estimate | None
    probe_rows: Estimate | None
    output_rows: Estimate | None


class Properties(TypedDict):
    """What is known of a join's output before it runs. Columns are positions in the output.

    The rows of each partition are ordered by `ordering`, ascending, the first column first; empty where no order is
    known. Each group in `equal_columns` holds columns with equal values in every row.
    """

    ordering: list[int]
    equal_columns: list[list[int]]
    partitions: int


class Metrics(TypedDict):
    """What one run of a join did so far. Times are seconds, memory is bytes.

    An attached join builds nothing: its build figures are 0. `build_time` includes waiting for the build source,
    `join_time` excludes waiting for the probe source. `index_kind` is None before the build is known.
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
    """Bytes of a prepared build by part and by whose they are; `reserved` is the charge to the pool."""

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
    """What the header of a saved build tells."""

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
    created: datetime.datetime | None
    prejoin_version: str
    format_version: int
