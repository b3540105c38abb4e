"""Types of arguments and results, for annotations.

The protocols describe the part of the Arrow PyCapsule interface that prejoin uses. Objects of pyarrow, polars, pandas,
duckdb, nanoarrow and arro3 implement it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, Union

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np

    from prejoin._core import Expr, Leg, PreparedBuild, SharedBuild, Source

__all__ = [
    "ArrowArrayExportable",
    "ArrowSchemaExportable",
    "ArrowStreamExportable",
    "ArrowTable",
    "AsofOptions",
    "CacheStats",
    "DtypeBackend",
    "Estimate",
    "Frame",
    "HashJoinHow",
    "How",
    "JoinOptions",
    "Keep",
    "Key",
    "Keys",
    "LegHow",
    "Legs",
    "Memory",
    "Metrics",
    "On",
    "OneLeg",
    "Operand",
    "Properties",
    "Rows",
    "Saved",
    "SavedBytes",
    "Select",
    "Statistics",
    "Strategy",
    "SupportsCollectBatches",
    "SupportsReadNextBatch",
    "SupportsScanner",
    "SupportsToReader",
    "Tolerance",
    "Validate",
    "Version",
]

HashJoinHow: TypeAlias = Literal[
    "inner",
    "probe_outer",
    "build_outer",
    "full",
    "full_outer",
    "full outer",
    "outer",
    "semi",
    "probe_semi",
    "anti",
    "probe_anti",
    "mark",
    "probe_mark",
    "build_semi",
    "build_anti",
]
"""The kind of a `HashJoin`, whose build side comes first: words that do not say left or right."""

How: TypeAlias = (
    HashJoinHow
    | Literal["left", "left outer", "left_outer", "right", "right outer", "right_outer"]
    | Literal["left semi", "left_semi", "left anti", "left_anti"]
    | Literal["right semi", "right_semi", "right anti", "right_anti"]
)
"""The kind of a join, whose probe side comes first and is the left one."""

LegHow: TypeAlias = Literal[
    "inner",
    "left",
    "left outer",
    "left_outer",
    "probe_outer",
    "semi",
    "left semi",
    "left_semi",
    "probe_semi",
    "anti",
    "left anti",
    "left_anti",
    "probe_anti",
    "mark",
    "probe_mark",
]
"""The kind of one join of a `StarJoin`."""

Keep: TypeAlias = Literal["all", "first", "last"]
"""Which of the rows that share a key."""

Validate: TypeAlias = Literal["m:m", "1:1", "1:m", "m:1", "many_to_many", "one_to_one", "one_to_many", "many_to_one"]
"""How many rows of each side may share a key, the probe side first."""

Strategy: TypeAlias = Literal["backward", "forward", "nearest"]
"""Which row an as-of join takes."""

DtypeBackend: TypeAlias = Literal["numpy_nullable", "pyarrow"]
"""The types of a pandas.DataFrame."""

On: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]]
"""Key columns: names that both sides have, or {probe name: build name or names}."""

Tolerance: TypeAlias = Union[int, float, Decimal, datetime.timedelta, "np.timedelta64"]
"""Largest distance of a row that an as-of join takes."""

Select: TypeAlias = Sequence[str | Mapping[str, str]] | Mapping[str, str]
"""Output columns: names, or mappings {new name: name}, or both in a list."""

# What tells one state of a table from another: text, a number, or a tuple of these.
Version: TypeAlias = str | int | float | bool | tuple["Version", ...] | None


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


class ArrowTable(ArrowStreamExportable, Protocol):
    """A table in memory, such as `pyarrow.Table`. A join of one gives one of its class."""

    @property
    def combine_chunks(self) -> Any:
        """The same table in as few chunks as possible."""


class SupportsReadNextBatch(Protocol):
    """A reader, such as `pyarrow.RecordBatchReader`."""

    def read_next_batch(self) -> Any:
        """The next batch."""


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


class Frame(Protocol):
    """A frame in memory, such as `polars.DataFrame` and `pandas.DataFrame`. A join of one gives one of its class."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    def explode(self) -> Any:
        """Rows of the values of lists; tables of Arrow have no such method."""

    @property
    def sample(self) -> Any:
        """Some rows; lazy frames have no such method."""


Rows: TypeAlias = Union[
    ArrowStreamExportable,
    ArrowArrayExportable,
    SupportsScanner,
    SupportsToReader,
    SupportsCollectBatches,
    Iterable[Any],
    "Source",
]
"""Anything that prejoin can read rows from. The items of an iterable are batches, tables or frames, or dicts."""

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


class JoinOptions(TypedDict, total=False):
    """The options of `prejoin.join`; its documentation says what they mean."""

    where: Expr | str | None
    select: Select | None
    prefix: str
    suffix: str
    default: Any
    coalesce: bool | None
    limit: int | None
    batch_size: int | None
    validate: Validate | None
    dtype_backend: DtypeBackend | None


class AsofOptions(TypedDict, total=False):
    """The options of `prejoin.join_asof`; its documentation says what they mean."""

    asof: str | Mapping[str, str] | None
    strategy: Strategy
    tolerance: Tolerance | None
    allow_exact_matches: bool
    how: LegHow
    where: Expr | str | None
    select: Select | None
    prefix: str
    suffix: str
    default: Any
    limit: int | None
    batch_size: int | None
    dtype_backend: DtypeBackend | None


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


class CacheStats(TypedDict):
    """What happened to a name of a cache; `bytes`, `age` in seconds and `loaded_at` are of the build that is held."""

    hits: int
    misses: int
    waits: int
    loads: int
    failures: int
    evictions: int
    bytes: int
    age: float | None
    version: Version
    loaded_at: datetime.datetime | None
    loading: bool
    error: str | None


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
