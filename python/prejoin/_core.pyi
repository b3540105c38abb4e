"""The compiled part of prejoin. Import from `prejoin`, not from here."""

import datetime
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, final, overload

import pyarrow as pa
from typing_extensions import Self, Unpack

from prejoin.typing import (
    ArrowArrayExportable,
    ArrowSchemaExportable,
    ArrowTable,
    AsofOptions,
    DtypeBackend,
    Frame,
    HashJoinHow,
    How,
    JoinOptions,
    Keep,
    Key,
    Keys,
    LegHow,
    Legs,
    Memory,
    Metrics,
    On,
    Operand,
    Properties,
    Rows,
    Saved,
    Select,
    Statistics,
    Strategy,
    SupportsCollectBatches,
    SupportsReadNextBatch,
    SupportsScanner,
    SupportsToReader,
    Tolerance,
    Validate,
    Version,
)

__version__: str

_Mode: TypeAlias = Literal["collect_left", "partitioned"]
_T = TypeVar("_T")
# What is joined tells what comes out, whatever library it is of.
_Frame = TypeVar("_Frame", bound=Frame)
_Batch = TypeVar("_Batch", bound=ArrowArrayExportable)
_Table = TypeVar("_Table", bound=ArrowTable)
_Dicts: TypeAlias = list[dict[str, Any]]
_Batches: TypeAlias = Sequence[ArrowArrayExportable] | Sequence[ArrowTable]
_Lazy: TypeAlias = SupportsCollectBatches | SupportsScanner | Source | Iterator[Any]
_Reader: TypeAlias = SupportsReadNextBatch | SupportsToReader
_Build: TypeAlias = PreparedBuild | Rows | Leg | Legs

class PrejoinError(Exception):
    """Base of all errors of prejoin."""

class PlanError(PrejoinError, ValueError):
    """The request itself is wrong: unknown column, types that do not match, a build that does not fit."""

class ResourcesExhausted(PrejoinError, MemoryError):
    """A memory pool refused a request; nothing was allocated for it."""

class ExecutionError(PrejoinError, RuntimeError):
    """The data or its producer failed while the work ran."""

class NotSupported(PrejoinError, NotImplementedError):
    """A valid request that this version does not support."""

class InternalError(PrejoinError, RuntimeError):
    """A broken promise inside prejoin; please report it."""

@final
class MemoryPool:
    """A memory pool: grants bytes up to a limit, and remembers the most that were granted at one time.

    Builds are charged to a pool before they allocate, for as long as they live.

    Args:
        limit: The largest number of bytes that are granted at one time; None for any number.

    Raises:
        PlanError: For a limit that is negative or does not fit 64 bits.
        TypeError: For a limit that is not an int.

    Example:
        >>> import prejoin
        >>> prejoin.MemoryPool(64 << 20)
        MemoryPool(limit=67108864, reserved=0, peak=0)

    """

    def __new__(cls, limit: int | None = None) -> Self: ...
    @property
    def reserved(self) -> int:
        """Bytes granted and not yet given back."""

    @property
    def peak(self) -> int:
        """The largest number of bytes that were granted at one time."""

    @property
    def limit(self) -> int | None:
        """The limit in bytes, None where there is none."""

@final
class Config:
    """Choices of one preparation; every field has a default that suits most builds.

    Integer keys that lie close together get a dense index: a bitmap over the range from the least to the greatest
    key, in which nothing is hashed. The two arguments for it have the name "perfect hash", by which such an index
    is also known.

    Args:
        perfect_hash_min_density: The smallest share of distinct keys in their range, such as 0.15, at which integer
            keys get a dense index; above 1 none do, apart from small ranges.
        perfect_hash_small_range: The largest range of keys that gets a dense index whatever its density.
        in_list_max_bytes: The largest key column, in bytes, that a filter gets as a list of keys; 0 turns lists
            off.
        in_list_max_values: The largest number of distinct keys that a filter gets as a list; 0 turns lists off.

    Raises:
        PlanError: For a number out of range.
        TypeError: For a value that is not a number.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> config = prejoin.Config(perfect_hash_min_density=2.0, perfect_hash_small_range=0)
        >>> prejoin.prepare(pa.table({"id": [1, 2]}), on="id", config=config).index_kind
        'hashed'

    """

    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __new__(
        cls,
        *,
        perfect_hash_min_density: float | None = None,
        perfect_hash_small_range: int | None = None,
        in_list_max_bytes: int | None = None,
        in_list_max_values: int | None = None,
        _collide: int | None = None,
    ) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    @property
    def perfect_hash_min_density(self) -> float:
        """Smallest share of distinct keys in their range at which integer keys get a dense index."""

    @property
    def perfect_hash_small_range(self) -> int:
        """Largest range of keys that gets a dense index whatever its density."""

    @property
    def in_list_max_bytes(self) -> int:
        """Largest key column, in bytes, that a filter gets as a list of keys; 0 turns lists off."""

    @property
    def in_list_max_values(self) -> int:
        """Largest number of distinct keys that a filter gets as a list; 0 turns lists off."""

@final
class PreparedBuild:
    """The build side of a hash join, prepared once: rows, index and memory charge.

    It never changes, and any number of joins and threads probe it at once. `prepare`, `open` and
    `HashJoin.prepare_build` make it. When the last join, reader or table that uses it is gone, its memory is freed
    and its charge ends.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
        >>> users.num_rows, users.keys, users.index_kind
        (2, ['id'], 'dense')

    """

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the build."""

    @property
    def keys(self) -> list[str]:
        """Names of the key columns, in key order."""

    @property
    def null_equal(self) -> tuple[bool, ...]:
        """Whether null matches null, for each key."""

    @property
    def num_rows(self) -> int:
        """Number of build rows, duplicates and null keys included."""

    @property
    def num_keys(self) -> int:
        """Number of distinct keys that a probe can match."""

    @property
    def is_unique(self) -> bool:
        """True if no key that a probe can match is in two rows."""

    @property
    def order_by(self) -> str | None:
        """Name of the column that the rows of each key are ordered by; None for build order."""

    @property
    def index_kind(self) -> str:
        """The kind of index: "dense", "hashed", "bytes" or "rows"; "single" for a build without key columns."""

    @property
    def reserved_bytes(self) -> int:
        """Bytes charged to the pool for as long as the build lives."""

    @property
    def bounds(self) -> list[tuple[pa.Scalar, pa.Scalar] | None]:
        """Least and greatest value of each key as two pyarrow scalars.

        None for a key column without values, and for types without an order, such as text.
        """

    @property
    def membership(self) -> str:
        """How a filter finds out which keys there are.

        "in_list" if the build is small and has a list of them, else "map": they are looked up in the index.
        """

    def memory(self) -> Memory:
        """Bytes of the build, by part and by who shares them.

        Returns:
            A dict of byte counts: rows, index (from keys to groups of equal keys), groups (from groups to rows);
            private (of this process alone), mapped (of a file, shared with all processes that map it); reserved
            (charged to the pool).

        """

    @property
    def fingerprint(self) -> str:
        """Identity of the contents: 32 hexadecimal digits.

        A hash of the rows in any order, the schema, the keys and their null equality. It is computed once, in one pass
        over the rows. It finds accidents; somebody who wants to can construct two builds with the same fingerprint.
        """

    @property
    def name(self) -> str | None:
        """The name under which a cache holds the build, or the file that it was opened from; else None."""

    @property
    def version(self) -> Version:
        """The version of the table that the build holds, as its loader or publisher named it; else None."""

    @property
    def loaded_at(self) -> datetime.datetime | None:
        """When the build was loaded, as a datetime in UTC, where a cache loaded it; else None."""

    def _label(self, name: str, version: str | None, loaded_at: datetime.datetime) -> Self: ...
    @property
    def path(self) -> str | None:
        """The file that the build was opened from, as an absolute path; None for a build in memory."""

    def save(self, path: str | os.PathLike[str], *, mode: int | None = None) -> None:
        """Saves the build as one file that `prejoin.open` maps; the same batches give the same file, byte for byte.

        The file also says name, version and loaded_at, where the handle has them.

        The file is written beside `path`, checked, brought to the disk, and renamed: a crash at any point leaves what
        was there before, or the new file. A process that has the old file open keeps it.

        Args:
            path: The name of the file.
            mode: Permission bits of the file. By default those of the file that is replaced, and for a new one 0o600,
                which lets only the user read it.

        Raises:
            NotSupported: For types that Arrow IPC does not carry.
            OSError: Of the file system, in its subclasses. Nothing is left behind after an error.

        Example:
            >>> import os, tempfile, prejoin, pyarrow as pa
            >>> path = os.path.join(tempfile.mkdtemp(), "users.prejoin")
            >>> prejoin.prepare(pa.table({"id": [1, 2]}), on="id").save(path)
            >>> prejoin.open(path).num_rows
            2

        """

    def share(self) -> SharedBuild:
        """Copies the build into memory that other processes of this host map.

        The copy is charged to the build's pool for as long as the handle lives.

        Returns:
            A handle that can be pickled.

        Raises:
            NotSupported: For types that Arrow IPC does not carry.
            ResourcesExhausted: If the pool refuses.
            OSError: Of the system.

        """

    def __reduce__(self) -> tuple[Any, tuple[str, str, bool, bool]]: ...
    def to_table(self) -> pa.Table:
        """The build rows in build order.

        Returns:
            A pyarrow.Table that shares the build's memory and keeps the build and its charge alive.

        """

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The build rows as a stream, by the Arrow PyCapsule interface: a build is a table for whoever reads tables."""

    def __arrow_c_schema__(self) -> Any:
        """The schema of the build rows, by the Arrow PyCapsule interface."""

    @overload
    def get(
        self,
        key: Any,
        default: None = None,
        *,
        keep: Keep = "all",
        asof: Any = None,
        strategy: Strategy = "backward",
        tolerance: Tolerance | None = None,
        allow_exact_matches: bool = True,
    ) -> dict[str, Any] | None:
        """The row of one key as a dict of Python values.

        Args:
            key: A value, or a tuple of one value for each key column. Values match as keys of a join do. As in any
                mapping, what cannot be a key of this build is absent: an int that the type of the key cannot hold, text
                if keys are ints.
            default: What is returned if the key is absent.
            keep: "first" or "last" row of a key, for builds in which keys repeat.
            asof: For a build prepared with `order_by`: the value that is looked for among the rows of the key. It
                chooses one row of each key by `strategy`, `tolerance` and `allow_exact_matches`. A build without key
                columns takes None as key.
            strategy: "backward", "forward" or "nearest", as for `join_asof`.
            tolerance: The largest distance of the row that `asof` chooses.
            allow_exact_matches: Whether `asof` takes rows at the value itself.

        Returns:
            {column name: value}, or `default`.

        Raises:
            PlanError: If keys repeat and `keep` is "all".

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> users.get(2), users.get(3), users[1], 3 in users
            ({'id': 2, 'name': 'bob'}, None, {'id': 1, 'name': 'ada'}, False)

        """

    @overload
    def get(
        self,
        key: Any,
        default: _T,
        *,
        keep: Keep = "all",
        asof: Any = None,
        strategy: Strategy = "backward",
        tolerance: Tolerance | None = None,
        allow_exact_matches: bool = True,
    ) -> dict[str, Any] | _T: ...
    def __getitem__(self, key: Any, /) -> dict[str, Any]:
        """The row of one key as a dict, as of `get`; KeyError where the key is absent."""

    def __contains__(self, key: Any, /) -> bool:
        """Whether one key is in the build."""

    def lookup(
        self,
        keys: Keys | None,
        columns: Sequence[str] | None = None,
        *,
        default: Any = None,
        keep: Keep = "all",
        asof: Any = None,
        strategy: Strategy = "backward",
        tolerance: Tolerance | None = None,
        allow_exact_matches: bool = True,
    ) -> pa.RecordBatch:
        """One row for each key, in the order of the keys.

        Args:
            keys: A list or another iterable of keys (of tuples if there are several key columns), an array or series, a
                mapping of key names to lists or arrays, or a table with the key columns. Columns of a table are found
                by name, or by position if it has none of the names.
            columns: Names of build columns; all by default.
            default: The values of a key that is absent: {column: value}, or one value for all columns. A null of a key
                that is in the build stays null.
            keep: "first" or "last" row of a key, for builds in which keys repeat.
            asof: For a build prepared with `order_by`: what is looked for among the rows of each key, one value for
                each as a list or an array, or one for all. It chooses one row of each key by `strategy`, `tolerance`
                and `allow_exact_matches`. A build without key columns takes None as keys.
            strategy: "backward", "forward" or "nearest", as for `join_asof`.
            tolerance: The largest distance of the row that `asof` chooses.
            allow_exact_matches: Whether `asof` takes rows at the value itself.

        Returns:
            A pyarrow.RecordBatch of as many rows as keys, with null or the default for keys that are absent.

        Raises:
            PlanError: For keys of another type, a default that the type of its column does not hold exactly, and if
                keys repeat and `keep` is "all".

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> users.lookup([2, 3], columns=["name"]).to_pylist()
            [{'name': 'bob'}, {'name': None}]

        """

    def lookup_rows(
        self, keys: Keys, columns: Sequence[str] | None = None, default: Any = None, *, keep: Keep = "all"
    ) -> list[dict[str, Any]]:
        """One row per key, in order, as a list of dicts of Python values.

        Values are those of `lookup(..).to_pylist()`, made straight from the columns.

        Args:
            keys: As for `lookup`.
            columns: Names of build columns, which the dicts have in this order; all by default.
            default: What stands where the key is absent: {column: value}, or one value for all columns, by default
                None.
            keep: "first" or "last" row of a key, where some key has several.

        Returns:
            A list of one dict per key; each is the caller's to change.

        Raises:
            PlanError: As for `lookup`, and where the build has a name twice.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> users.lookup_rows([2, 3], ["name"])
            [{'name': 'bob'}, {'name': None}]

        """

    def lookup_numpy(
        self,
        keys: Keys,
        columns: Sequence[str],
        *,
        default: float | Mapping[str, float] | None = None,
        dtype: Any = None,
        out: Any = None,
        keep: Keep = "all",
    ) -> Any:
        """The numbers of some columns for each key, in order, as one matrix of numpy with a row per key.

        The values are copied straight into the matrix, in C order. Booleans are 0 and 1. numpy is imported by the call.

        Args:
            keys: As for `lookup`.
            columns: Names of build columns that hold numbers or Booleans.
            default: What stands where the key is absent or its value is null: {column: value}, or one value for all
                columns. NaN by default; integers have none, so that they need a default where one is used.
            dtype: "float32", "float64", "int32" or "int64", or what numpy.dtype takes for them. By default that of
                `out`, else float32 where it holds every value of the columns' types, else float64. Only columns of
                integers and Booleans become integers.
            out: The matrix to fill: of as many rows and columns, writable, contiguous in C order.
            keep: "first" or "last" row of a key, where some key has several.

        Returns:
            A numpy.ndarray of shape (number of keys, number of columns), or `out`.

        Raises:
            PlanError: As for `lookup`, for columns that hold no numbers, and for another dtype or shape.
            ExecutionError: For an integer that the dtype does not hold, and where a default is needed and missing.
            TypeError: If `out` is not a numpy array.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> shops = prejoin.prepare(pa.table({"id": [1, 2], "rank": [7, 8], "open": [True, False]}), on="id")
            >>> shops.lookup_numpy([2, 9, 1], ["rank", "open"], default={"rank": -1}).tolist()
            [[8.0, 0.0], [-1.0, nan], [7.0, 1.0]]

        """

    def map(
        self,
        keys: Keys | None,
        column: str,
        default: Any = None,
        *,
        keep: Keep = "all",
        asof: Any = None,
        strategy: Strategy = "backward",
        tolerance: Tolerance | None = None,
        allow_exact_matches: bool = True,
    ) -> Any:
        """The value of one column for each key, in the order of the keys.

        Args:
            keys: As for `lookup`.
            column: The name of a build column.
            default: The value of a key that is absent. A null of a key that is in the build stays null.
            keep: "first" or "last" row of a key, for builds in which keys repeat.
            asof: As for `lookup`.
            strategy: As for `lookup`.
            tolerance: As for `lookup`.
            allow_exact_matches: As for `lookup`.

        Returns:
            For a pandas or polars series, or a pandas index, one of the same library with its name and index: in
            pandas' own types, where integers and Booleans with nulls are "Int64" and "boolean". For other keys a
            pyarrow.Array. Keys that are absent have null or the default.

        Raises:
            PlanError: For an unknown column, keys of another type, a default that the column's type does not hold
                exactly, and if keys repeat and `keep` is "all".

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> users.map([2, 3, 1], "name", "nobody").to_pylist()
            ['bob', 'nobody', 'ada']

        """

    def contains(self, keys: Keys) -> Any:
        """Whether each key is in the build.

        Args:
            keys: As for `lookup`.

        Returns:
            Booleans without nulls, one for each key: a series or index as of `map`, else a pyarrow.BooleanArray.

        Raises:
            PlanError: For keys of another type.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> prejoin.prepare(pa.table({"id": [1, 2]}), on="id").contains([2, 3]).to_pylist()
            [True, False]

        """

    def count_matches(self, keys: Keys) -> Any:
        """The number of build rows of each key.

        Their sum is the exact number of rows of an inner join, before it is made.

        Args:
            keys: As for `lookup`.

        Returns:
            32-bit numbers without nulls, one for each key: a series or index as of `map`, else a pyarrow.UInt32Array.

        Raises:
            PlanError: For keys of another type.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> prejoin.prepare(pa.table({"id": [1, 2, 2]}), on="id").count_matches([2, 3]).to_pylist()
            [2, 0]

        """

    def counts(self, *, limit: int | None = None) -> pa.Table:
        """The keys that are in several rows, and how many rows each has.

        Keys that nothing can match, those with a null without `null_equal`, are left out.

        Args:
            limit: The largest number of keys; all by default.

        Returns:
            A pyarrow.Table of the key columns and a column "count" ("count_" if a key column has that name). Keys with
            most rows come first; of keys with equally many rows, the one of the earliest row.

        Raises:
            PlanError: For a limit that is negative.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> prejoin.prepare(pa.table({"id": [1, 2, 2, 3, 3, 3]}), on="id").counts().to_pylist()
            [{'id': 3, 'count': 3}, {'id': 2, 'count': 2}]

        """

    @overload
    def join(self, probe: _Dicts, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]) -> _Dicts:
        """Joins `probe` to this build: `prejoin.join(probe, build, ...)` with the same arguments, results and errors.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> users.join(pa.record_batch({"user": [2, 3]}), on={"user": "id"}, how="left").to_pylist()
            [{'user': 2, 'name': 'bob'}, {'user': 3, 'name': None}]

        """

    @overload
    def join(
        self, probe: _Frame, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]
    ) -> _Frame: ...
    @overload
    def join(
        self, probe: _Lazy, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]
    ) -> pa.RecordBatchReader: ...
    @overload
    def join(
        self, probe: _Batch, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]
    ) -> _Batch: ...
    @overload
    def join(
        self,
        probe: _Table,
        on: On | None = None,
        how: How = "inner",
        **options: Unpack[JoinOptions],
    ) -> _Table: ...
    @overload
    def join(
        self,
        probe: _Batches,
        on: On | None = None,
        how: How = "inner",
        **options: Unpack[JoinOptions],
    ) -> pa.Table: ...
    @overload
    def join(
        self,
        probe: _Reader,
        on: On | None = None,
        how: How = "inner",
        **options: Unpack[JoinOptions],
    ) -> pa.RecordBatchReader: ...
    @overload
    def join(
        self,
        probe: Rows,
        on: On | None = None,
        how: How = "inner",
        *,
        where: Expr | str | None = None,
        select: Select | None = None,
        prefix: str = "",
        suffix: str = "_right",
        default: Any = None,
        coalesce: bool | None = None,
        limit: int | None = None,
        batch_size: int | None = None,
        validate: Validate | None = None,
        dtype_backend: DtypeBackend | None = None,
    ) -> Any: ...
    def probe_indices(
        self, keys: Keys, how: Literal["inner", "left", "right", "full"] = "inner"
    ) -> tuple[pa.UInt32Array, pa.UInt32Array]:
        """The pairs of a join as row numbers, in the order of `join`.

        Args:
            keys: The keys of the probe side, as for `lookup`.
            how: "inner", "left", "right" or "full".

        Returns:
            (probe rows, build rows): two pyarrow.UInt32Arrays of one length, with null for a row without a partner.
            Build rows are positions in `to_table()`.

        Raises:
            PlanError: For keys of another type, and for another word for `how`.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = prejoin.prepare(pa.table({"id": [1, 2, 2]}), on="id")
            >>> [rows.to_pylist() for rows in users.probe_indices([2, 3], how="left")]
            [[0, 0, 1], [1, 2, None]]

        """

    def __len__(self) -> int: ...

@final
class SharedBuild:
    """A build in memory that other processes of this host map. `PreparedBuild.share` makes it; it can be pickled.

    On Linux it is sealed memory without a name. The kernel frees it with the last handle and the last build that
    was opened, also when processes are killed; it can be received as long as the sender lives. Elsewhere it is a
    temporary file, removed with the first handle.

    Example:
        >>> import pickle, prejoin, pyarrow as pa
        >>> shared = prejoin.prepare(pa.table({"id": [1, 2]}), on="id").share()
        >>> pickle.loads(pickle.dumps(shared)).open().num_rows
        2

    """

    def open(self, *, verify: bool = True, pool: MemoryPool | None = None) -> PreparedBuild:
        """Maps the build.

        Args:
            verify: As for `prejoin.open`.
            pool: As for `prejoin.open`.

        Returns:
            The build.

        Raises:
            ExecutionError: If something else is in the place of the build, because the process that shared it is gone.
            ResourcesExhausted: If the pool refuses.
            OSError: Of the system, in its subclasses.

        """

    @property
    def fingerprint(self) -> str:
        """Identity of the contents: 32 hexadecimal digits."""

    def __reduce__(self) -> tuple[Any, tuple[str, str]]: ...

@final
class Leg:
    """One join of a StarJoin: a prepared build, and how rows are joined with it.

    Args:
        build: A PreparedBuild, also an opened one, or a SharedBuild, which is opened.
        on: What the build's keys are looked up by: None for columns that have the names of the keys, a name, a list of
            names, or {column: build key or keys}. A column is one of the probe side or of an earlier leg, also one that
            does not come out: its name, or "probe.x" or "planes.model" with the leg's name. Several columns may meet
            one key.
        how: "inner", "left", "semi", "anti" or "mark".
        where: A condition on matched pairs, SQL text or made with `col` and `lit`; null means "no". "build.x" is a
            column of this build, "probe.x" one of the probe side, "planes.x" one of the leg of that name; a name alone
            is that of the only column that has it.
        prefix: Put before the name of each build column, and before "mark".
        suffix: Appended to names of build columns that are taken; where that is taken too, the leg's name goes before
            the column's.
        select: The build columns that come out, a list or {new name: name}; all but the keys by default. Later legs
            reach the others all the same.
        default: What rows of a left join without a match have instead of null: {build column: value}, or one value for
            all columns that come out. It is of the column's type. A later leg looks it up as any value.
        validate: "m:m" checks nothing; "m:1" asks for a build with one row per key, "1:m" for rows of which no two
            share a key of the build, "1:1" for both.
        asof: For a build prepared with `order_by`: the column whose values choose one row of each key, a name as of
            `on` or {column: order column}; this makes the leg an as-of join.
        strategy: "backward", "forward" or "nearest", as for `join_asof`.
        tolerance: Largest distance of the row that `asof` chooses.
        allow_exact_matches: Whether `asof` takes rows at the value itself.

    Raises:
        PlanError: For a `how` or `validate` other than these, keys that the build does not have, a build that
            `validate` refuses, a default of another type, and a condition that cannot be read.
        TypeError: For anything but a build, and for arguments that do not exist.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
        >>> prejoin.Leg(users, on={"user": "id"}, how="left")
        Leg(keys=['id'], rows=2, on={'user': 'id'}, how='left')

    """

    def __new__(
        cls,
        build: PreparedBuild | SharedBuild,
        on: On | None = None,
        how: LegHow = "inner",
        *,
        where: Expr | str | None = None,
        prefix: str = "",
        suffix: str = "_right",
        select: Select | None = None,
        default: Any = None,
        validate: Validate | None = None,
        asof: str | Mapping[str, str] | None = None,
        strategy: Strategy = "backward",
        tolerance: Tolerance | None = None,
        allow_exact_matches: bool = True,
    ) -> Self: ...
    @property
    def build(self) -> PreparedBuild:
        """The build."""

    @property
    def on(self) -> str | list[str] | dict[str, str | list[str]] | None:
        """What the keys are looked up by, as it was given."""

    @property
    def how(self) -> str:
        """Which rows come out."""

    @property
    def where(self) -> Expr | None:
        """The condition on pairs."""

    @property
    def prefix(self) -> str:
        """What is put before the names of the build columns."""

    @property
    def suffix(self) -> str:
        """What is appended to names that are taken."""

    @property
    def select(self) -> list[str | dict[str, str]] | dict[str, str] | None:
        """The build columns that come out, as they were given."""

    @property
    def default(self) -> Any:
        """What rows without a match have instead of null, as it was given."""

    @property
    def validate(self) -> str:
        """How many rows of each side may share a key."""

    @property
    def asof(self) -> str | dict[str, str] | None:
        """The values that are searched for in the build's order, as they were given; None where keys alone decide."""

    @property
    def strategy(self) -> str:
        """Which row an as-of join takes."""

    @property
    def tolerance(self) -> Tolerance | None:
        """Largest distance of a match of an as-of join, as it was given."""

    @property
    def allow_exact_matches(self) -> bool:
        """Whether an as-of join takes rows at the value itself."""

    def __getnewargs_ex__(self) -> tuple[tuple[Any], dict[str, Any]]: ...

@final
class StarJoin:
    """Joins of one probe side with several prepared builds in one pass.

    Args:
        legs: A list of Leg or PreparedBuild, or a mapping {name: leg}. The legs of a list are named leg0, leg1, and so
            on.
        select: Output columns in their order, a list or {new name: column}: names of the output, or "probe.x" and
            "planes.seats" with the leg's name, which also reach what does not come out by itself. "probe.*" and
            "planes.*" are the columns of that table that come out without `select`. Others are not made at all; []
            keeps the row count.
        limit: Largest number of output rows.
        batch_size: Largest number of rows of a batch of a lazy result (8192).

    Rows, order, types and nulls are those of as many calls of `join` in a row, each with the output of the one before.
    Each leg looks up the rows that are left only, and every output column is copied once, at the end. The output has
    the probe's columns, then those of the legs in their order.

    It never changes: any number of threads may call it at once. It pickles where its builds do.

    Raises:
        PlanError: For no legs, and names of legs that are taken.
        TypeError: For anything but legs, and for arguments that do not exist.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> users = prejoin.prepare(pa.table({"id": [1, 2], "city": [7, 8]}), on="id")
        >>> cities = prejoin.prepare(pa.table({"city": [7, 8], "name": ["Rome", "Oslo"]}), on="city")
        >>> star = prejoin.StarJoin({"users": prejoin.Leg(users, on={"user": "id"}), "cities": cities})
        >>> star(pa.record_batch({"user": [2, 3, 1]})).to_pylist()
        [{'user': 2, 'city': 8, 'name': 'Oslo'}, {'user': 1, 'city': 7, 'name': 'Rome'}]

    """

    def __new__(
        cls,
        legs: Legs,
        *,
        select: Select | None = None,
        limit: int | None = None,
        batch_size: int | None = None,
    ) -> Self: ...
    @overload
    def __call__(self, probe: _Dicts, *, dtype_backend: DtypeBackend | None = None) -> _Dicts:
        """Joins `probe`: a batch with a batch as result, a table with a table, a stream with a stream, as `join` does.

        A batch gives one pyarrow.RecordBatch whatever its size; a table or a list of batches gives a pyarrow.Table; a
        frame gives a frame of the same library; a stream gives a pyarrow.RecordBatchReader that pulls lazily; a list of
        dicts gives a list of dicts.

        Args:
            probe: Any rows.
            dtype_backend: Types of a pandas.DataFrame, as of `join`.

        Raises:
            PlanError: For columns that are not there or not unique, and key types that differ.
            ExecutionError: For rows that `validate` refuses, and conditions that fail.

        """

    @overload
    def __call__(self, probe: _Frame, *, dtype_backend: DtypeBackend | None = None) -> _Frame: ...
    @overload
    def __call__(self, probe: _Lazy, *, dtype_backend: DtypeBackend | None = None) -> pa.RecordBatchReader: ...
    @overload
    def __call__(self, probe: _Batch, *, dtype_backend: DtypeBackend | None = None) -> _Batch: ...
    @overload
    def __call__(
        self,
        probe: _Table,
        *,
        dtype_backend: DtypeBackend | None = None,
    ) -> _Table: ...
    @overload
    def __call__(
        self,
        probe: _Batches,
        *,
        dtype_backend: DtypeBackend | None = None,
    ) -> pa.Table: ...
    @overload
    def __call__(self, probe: _Reader, *, dtype_backend: DtypeBackend | None = None) -> pa.RecordBatchReader: ...
    @overload
    def __call__(self, probe: Rows, *, dtype_backend: DtypeBackend | None = None) -> Any: ...
    def schema(self, probe_schema: ArrowSchemaExportable) -> pa.Schema:
        """The pyarrow.Schema of the output over a probe side of this schema, without any rows.

        Args:
            probe_schema: A pyarrow.Schema, anything with __arrow_c_schema__, or rows, which are not read.

        Returns:
            The schema that the output of a call has.

        Raises:
            PlanError: For columns that are not there or not unique, and key types that differ.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> prejoin.StarJoin([users]).schema(pa.schema({"id": pa.int64()})).names
            ['id', 'name']

        """

    def explain(self) -> str:
        """The star as text.

        Returns:
            One line for each leg, with the rows that reached it and the rows that it gave in all calls so far.

        """

    @property
    def legs(self) -> dict[str, Leg]:
        """The legs by name, in order."""

    @property
    def select(self) -> list[str | dict[str, str]] | dict[str, str] | None:
        """The output columns, as they were chosen."""

    @property
    def limit(self) -> int | None:
        """Largest number of output rows."""

    @property
    def batch_size(self) -> int:
        """Largest number of rows of a batch of a lazy result."""

    def __getnewargs_ex__(self) -> tuple[tuple[Any], dict[str, Any]]: ...

@final
class Source:
    """A side of a join with what is known about its rows: order, equal columns, partitions.

    What is declared is trusted, never checked. A Source may be given wherever rows are taken.

    Args:
        data: Any rows; with `partitions`, a sequence of as many sources, or a callable `open(partition)` that
            returns rows each time it is called (needs `schema`).
        schema: Names and types of the columns. Data that does not show its columns needs it; others are checked
            against it.
        partitions: The number of partitions.
        ordering: Columns, by name or position, that the rows of each partition are ordered by, ascending.
        equal: Pairs of columns, by name or position, that hold equal values in every row.

    Raises:
        PlanError: For columns that do not exist, and for a callable without a schema.
        TypeError: For an object that gives no rows.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> rows = pa.table({"day": [1, 2, 2], "n": [5, 3, 4]})
        >>> prejoin.Source(rows, ordering=["day"])
        Source(day: Int64, n: Int64; partitions=1, ordering=[0], equal=[])

    """

    def __new__(
        cls,
        data: Rows | Callable[[int], Rows],
        *,
        schema: ArrowSchemaExportable | None = None,
        partitions: int | None = None,
        ordering: str | Sequence[str | int] | None = None,
        equal: Iterable[tuple[str | int, str | int]] | None = None,
    ) -> Self: ...
    @staticmethod
    def partitioned(
        sources: Iterable[Rows],
        *,
        schema: ArrowSchemaExportable | None = None,
        ordering: str | Sequence[str | int] | None = None,
        equal: Iterable[tuple[str | int, str | int]] | None = None,
    ) -> Source:
        """A source of several partitions with the same columns.

        Args:
            sources: Any rows for each partition.
            schema: As for `Source`.
            ordering: As for `Source`.
            equal: As for `Source`.

        Returns:
            The source.

        Raises:
            PlanError: For partitions whose columns differ, no partitions without a schema, and columns that do not
                exist.
            TypeError: For an object that gives no rows.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> prejoin.Source.partitioned([pa.table({"n": [1]}), pa.table({"n": [2]})]).partitions
            2

        """

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the rows."""

    @property
    def partitions(self) -> int:
        """Number of partitions."""

    @property
    def ordering(self) -> list[int]:
        """Positions of the columns that the rows of each partition are declared to be ordered by."""

    @property
    def equal(self) -> list[tuple[int, int]]:
        """Pairs of positions of columns that are declared to hold equal values."""

    def to_reader(self) -> pa.RecordBatchReader:
        """All rows, one partition after the other.

        Returns:
            A pyarrow.RecordBatchReader that reads lazily.

        """

    def __getnewargs_ex__(self) -> tuple[tuple[Any], dict[str, Any]]: ...

@final
class Expr:
    """A condition over the columns of both sides of a join, made by `col`, `lit`, `sql` and operators on them.

    Compare with == != < <= > >=, combine with & | ~, calculate with + - * / %; the methods are the tests of SQL.
    Logic has three values, as in SQL: a comparison with null is null, and a pair of rows passes only if the
    condition is true. Python's and, or, not and chained comparisons raise TypeError. Values beside an expression
    become literals as by `lit`. The repr is SQL text that `sql` reads as the same expression.

    Operators and methods raise PlanError for an expression of more than 128 levels, where a chain of & or | counts
    once, and TypeError for values that cannot be literals.

    Example:
        >>> import prejoin
        >>> (prejoin.col("probe.ts") >= prejoin.col("build.valid_from")) & ~prejoin.col("build.code").is_in(["x", "y"])
        probe.ts >= build.valid_from AND build.code NOT IN ('x', 'y')

    """

    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __eq__(self, other: Operand, /) -> Expr: ...  # type: ignore[override]
    def __ne__(self, other: Operand, /) -> Expr: ...  # type: ignore[override]
    def __lt__(self, other: Operand, /) -> Expr: ...
    def __le__(self, other: Operand, /) -> Expr: ...
    def __gt__(self, other: Operand, /) -> Expr: ...
    def __ge__(self, other: Operand, /) -> Expr: ...
    def __and__(self, other: Operand, /) -> Expr: ...
    def __rand__(self, other: Operand, /) -> Expr: ...
    def __or__(self, other: Operand, /) -> Expr: ...
    def __ror__(self, other: Operand, /) -> Expr: ...
    def __invert__(self) -> Expr: ...
    def __add__(self, other: Operand, /) -> Expr: ...
    def __radd__(self, other: Operand, /) -> Expr: ...
    def __sub__(self, other: Operand, /) -> Expr: ...
    def __rsub__(self, other: Operand, /) -> Expr: ...
    def __mul__(self, other: Operand, /) -> Expr: ...
    def __rmul__(self, other: Operand, /) -> Expr: ...
    def __truediv__(self, other: Operand, /) -> Expr: ...
    def __rtruediv__(self, other: Operand, /) -> Expr: ...
    def __mod__(self, other: Operand, /) -> Expr: ...
    def __rmod__(self, other: Operand, /) -> Expr: ...
    def __neg__(self) -> Expr: ...
    def __bool__(self) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def is_null(self) -> Expr:
        """True if the value is null.

        Returns:
            A condition, never null.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.code").is_null()
            build.code IS NULL

        """

    def is_not_null(self) -> Expr:
        """True if the value is not null.

        Returns:
            A condition, never null.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.code").is_not_null()
            build.code IS NOT NULL

        """

    def is_true(self) -> Expr:
        """True if the condition is true, false if it is false or null.

        Returns:
            A condition, never null.

        Example:
            >>> import prejoin
            >>> (prejoin.col("build.n") > 1).is_true()
            (build.n > 1) IS TRUE

        """

    def is_false(self) -> Expr:
        """True if the condition is false, false if it is true or null.

        Returns:
            A condition, never null.

        Example:
            >>> import prejoin
            >>> (prejoin.col("build.n") > 1).is_false()
            (build.n > 1) IS FALSE

        """

    def is_distinct_from(self, other: Operand) -> Expr:
        """Like !=, but null is a value: equal to null and to nothing else.

        Args:
            other: An expression, or a value as for `lit`.

        Returns:
            A condition, never null.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.a").is_distinct_from(prejoin.col("probe.b"))
            build.a IS DISTINCT FROM probe.b

        """

    def is_not_distinct_from(self, other: Operand) -> Expr:
        """Like ==, but null is a value: equal to null and to nothing else.

        Args:
            other: An expression, or a value as for `lit`.

        Returns:
            A condition, never null.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.a").is_not_distinct_from(None)
            build.a IS NOT DISTINCT FROM NULL

        """

    def is_in(self, values: Iterable[Operand]) -> Expr:
        """True if the value equals one of `values`.

        Args:
            values: An iterable of values and expressions, or a pyarrow array.

        Returns:
            A condition: null if the value is null, and if it equals none of several values of which one is null; false
            if there are no values.

        Raises:
            TypeError: For text, and for a value that cannot be a literal.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.code").is_in(["x", "y"])
            build.code IN ('x', 'y')

        """

    def between(self, low: Operand, high: Operand) -> Expr:
        """True if the value is at least `low` and at most `high`.

        Args:
            low: An expression, or a value as for `lit`.
            high: An expression, or a value as for `lit`.

        Returns:
            A condition.

        Example:
            >>> import prejoin
            >>> prejoin.col("probe.n").between(1, prejoin.col("build.n"))
            probe.n BETWEEN 1 AND build.n

        """

    def like(self, pattern: Operand) -> Expr:
        """True if the text matches `pattern`, in which % is any text and _ any character.

        A backslash takes the next character as it is.

        Args:
            pattern: Text, or an expression whose values are text.

        Returns:
            A condition.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.name").like("a%")
            build.name LIKE 'a%'

        """

    def ilike(self, pattern: Operand) -> Expr:
        """`like` in which upper and lower case are the same.

        Args:
            pattern: Text, or an expression whose values are text.

        Returns:
            A condition.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.name").ilike("a%")
            build.name ILIKE 'a%'

        """

    def cast(self, to: pa.DataType | str) -> Expr:
        """The value as another type.

        A value that does not fit raises ExecutionError when the condition is evaluated.

        Args:
            to: A pyarrow.DataType, or the name of a type in SQL.

        Returns:
            An expression of that type.

        Raises:
            PlanError: For a type or name that is not known.
            TypeError: For an object that is neither.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.n").cast("double") / 2
            CAST(build.n AS DOUBLE) / 2

        """

    def try_cast(self, to: pa.DataType | str) -> Expr:
        """`cast`, but null for a value that does not fit.

        Args:
            to: A pyarrow.DataType, or the name of a type in SQL.

        Returns:
            An expression of that type.

        Raises:
            PlanError: For a type or name that is not known.
            TypeError: For an object that is neither.

        Example:
            >>> import prejoin
            >>> prejoin.col("build.n").try_cast("int")
            TRY_CAST(build.n AS INTEGER)

        """

@final
class Session:
    """A join whose probe batches are pushed by hand. `HashJoin.open` makes it.

    After an error, and after `finish`, it is done: another call raises PlanError.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> users, events = pa.table({"id": [1, 2]}), pa.record_batch({"user": [2, 3]})
        >>> session = prejoin.HashJoin(users, events.schema, on=[("id", "user")], how="build_outer").open()
        >>> session.push(events).to_pydict(), session.finish().num_rows
        ({'id': [2], 'user': [2]}, 1)

    """

    def push(self, batch: ArrowArrayExportable) -> pa.RecordBatch:
        """Joins one probe batch.

        Args:
            batch: A batch with the columns of the probe side.

        Returns:
            One pyarrow.RecordBatch of any number of rows.

        Raises:
            PlanError: For a batch with other columns, and for a session that is done.
            ExecutionError: For a condition that fails, and a probe row that `validate` refuses.

        """

    def finish(self) -> pa.RecordBatch:
        """Ends the probe side.

        Returns:
            The rows that are left, as one pyarrow.RecordBatch: unmatched build rows of joins that keep build rows, all
            rows of build_semi and build_anti, none of others.

        Raises:
            PlanError: For a session that is done.

        """

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the output."""

@final
class DynamicFilter:
    """A filter on the probe rows of one join, empty until the build of that join is known.

    Give it to the join, and let the probe source call `evaluate`. Before the first probe batch is asked for it is
    complete, and from then on it tests bounds and membership of the build. It never drops a row that would match;
    for joins that keep unmatched probe rows it keeps every row. In partitioned mode it is complete once the last
    build is known. Each independent run needs another filter; a new run empties it. It keeps the builds that it
    tests alive, so it may outlive its join. `await filter` waits until it is complete.

    Args:
        probe: The probe side of the join, or its schema.
        on: The probe key columns by name or position, in key order.

    Raises:
        PlanError: For columns that do not exist.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> events = pa.record_batch({"id": [2, 3, 2], "at": [10, 20, 30]})
        >>> filter = prejoin.DynamicFilter(events.schema, on="id")
        >>> scan = lambda partition: iter([events.filter(filter.evaluate(events))])
        >>> probe = prejoin.Source(scan, schema=events.schema, partitions=1)
        >>> users = pa.table({"id": [1, 2]})
        >>> join = prejoin.HashJoin(users, probe, on="id", dynamic_filter=filter, projection=["probe.at"])
        >>> join.execute().read_all().to_pydict(), join.metrics()["input_rows"]
        ({'at': [10, 30]}, 2)
        >>> filter
        DynamicFilter [ id@0 >= 1 AND id@0 <= 2 AND id@0 IN (list of 2) ]

    """

    def __new__(cls, probe: ArrowSchemaExportable | Rows, on: str | Sequence[str | int]) -> Self: ...
    @property
    def keys(self) -> list[int]:
        """Positions of the tested columns in the probe schema, in key order."""

    @property
    def is_complete(self) -> bool:
        """True once the build is known, or all builds in partitioned mode."""

    def wait_complete(self, timeout: float | None = None) -> bool:
        """Waits until the filter is complete.

        The build is made by the thread that first pulls from the join, so another thread has to wait.

        Args:
            timeout: The longest time to wait, in seconds; None waits without end.

        Returns:
            Whether the filter is complete.

        Raises:
            PlanError: For a timeout that is negative or not a number.

        """

    def __await__(self) -> Generator[Any]: ...
    def evaluate(self, batch: ArrowArrayExportable) -> pa.BooleanArray:
        """The rows of a batch that can match; all rows until the filter is complete.

        Args:
            batch: A batch of the probe side. Columns are found by their position in the probe schema.

        Returns:
            A pyarrow.BooleanArray of as many values as rows, without nulls.

        Raises:
            PlanError: For a batch without these columns, or with columns of other types.

        """

@final
class HashJoin:
    """A hash join of a build side and a probe side, ordinary or attached to a PreparedBuild.

    The output has the build's columns, then the probe's, both key columns included; semi, anti and mark joins have
    the probe's, build_semi and build_anti joins the build's. Rows come in probe order, matches of one row in build
    order, and unmatched build rows last.

    The attributes on, how, null_equal, where, projection, limit, mode, null_aware and validate may be changed;
    every execution validates them again. `replace` and `with_prepared_build` return a new join with other sources
    or another prepared build.

    A join that is not attached can be pickled if the objects behind its sources can; if not, pickle
    `join.replace(build=schema, probe=schema)`. Pickling an attached join raises NotSupported.

    Args:
        build: A schema alone, any rows, or a `Source`.
        probe: A schema alone, any rows, or a `Source`.
        on: Pairs (build key, probe key), each a name, a position or `col(...)`; or names that both sides have.
        how: Which rows come out: "inner", "probe_outer" (all probe rows), "build_outer" (all build rows), "full",
            "semi", "anti", "mark", "build_semi" or "build_anti". "left" and "right" are refused, since the build
            side comes first here.
        null_equal: Whether null matches null; one bool, or one for each key. By default null matches nothing.
        where: A condition on matched pairs, SQL text or made with `col` and `lit`. A pair passes only if it is
            true.
        projection: Output columns, as positions in (build columns, probe columns) or names "build.x", "probe.y"; an
            empty list keeps the row count.
        limit: The largest number of output rows.
        mode: "collect_left" makes one build for all probe partitions, "partitioned" one for each.
        null_aware: SQL NOT IN, for anti and build_anti.
        validate: "m:m", "m:1" (a build with one row per key), "1:m" (no two probe rows of one run share a key of
            the build) or "1:1".
        dynamic_filter: A filter that tests probe rows against the build of this join, once the build is known.

    Raises:
        PlanError: For unknown columns, key types that differ and options that do not go together.
        TypeError: For an object that gives no rows and has no schema.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> users = pa.table({"id": [1, 2], "name": ["ada", "bob"]})
        >>> events = pa.table({"user": [2, 3, 2], "at": [10, 20, 30]})
        >>> columns = ["build.name", "probe.at"]
        >>> join = prejoin.HashJoin(users.schema, events.schema, on=[("id", "user")], projection=columns)
        >>> prepared = join.prepare_build(users)
        >>> task = join.replace(probe=events).with_prepared_build(prepared)
        >>> task.execute().read_all().to_pylist()
        [{'name': 'bob', 'at': 10}, {'name': 'bob', 'at': 30}]

    """

    def __new__(
        cls,
        build: ArrowSchemaExportable | Rows,
        probe: ArrowSchemaExportable | Rows,
        on: Key | Iterable[Key | tuple[Key, Key]],
        how: HashJoinHow = "inner",
        *,
        null_equal: bool | Sequence[bool] | None = None,
        where: Expr | str | None = None,
        projection: Iterable[str | int] | None = None,
        limit: int | None = None,
        mode: _Mode = "collect_left",
        null_aware: bool = False,
        validate: Validate | None = None,
        dynamic_filter: DynamicFilter | None = None,
    ) -> Self: ...
    def replace(self, **changes: Any) -> HashJoin:
        """A new join with some parameters of the constructor changed and a fresh run state.

        If a source is replaced, names in on, projection and where are looked up in the new one. What was given by
        position needs a source with the same columns.

        Args:
            **changes: Parameters of the constructor.

        Returns:
            The new join.

        Raises:
            PlanError: For an unknown parameter, a position if the columns of the new source differ, and a change of the
                build source, its keys or the mode while a prepared build is attached.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> join = prejoin.HashJoin(pa.schema({"id": pa.int64()}), pa.schema({"id": pa.int64()}), on="id")
            >>> changed = join.replace(how="anti", limit=10)
            >>> changed.how, changed.limit, join.limit
            ('anti', 10, None)

        """

    def prepare_build(
        self,
        source: Rows,
        *,
        keep: Keep = "all",
        pool: MemoryPool | None = None,
        config: Config | None = None,
    ) -> PreparedBuild:
        """Prepares `source` as a build for joins like this one; the join's own build source is not touched.

        The caller chooses which rows, and nothing compares them with the rows of the build source.

        Args:
            source: Any rows, with the columns of the join's build side.
            keep: "all" rows of a key, or only its "first" or "last".
            pool: Pays for the build for as long as it lives. By default one unlimited pool per process.
            config: Choices about index and filters.

        Returns:
            The finished build.

        Raises:
            PlanError: For a join that cannot have a prepared build, and for other columns, before the first batch is
                asked for.
            ResourcesExhausted: If the pool refuses. After an error the pool is as it was before.
            Exception: What the source raises, unchanged.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = pa.table({"id": [1, 2]})
            >>> prejoin.HashJoin(users.schema, users.schema, on="id").prepare_build(users).num_rows
            2

        """

    def with_prepared_build(self, build: PreparedBuild) -> HashJoin:
        """The join attached to a prepared build; its build source is replaced by an empty placeholder.

        Args:
            build: A build with the schema, keys and null equality of this join.

        Returns:
            The attached join.

        Raises:
            PlanError: For a build that does not fit, and for a join in partitioned mode.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> users = prejoin.prepare(pa.table({"id": [1, 2]}), on="id")
            >>> join = prejoin.HashJoin(users.schema, pa.schema({"id": pa.int64()}), on="id").with_prepared_build(users)
            >>> join(pa.record_batch({"id": [2, 3]})).num_rows
            1

        """

    def execute(
        self,
        partition: int | None = None,
        batch_size: int | None = None,
        *,
        pool: MemoryPool | None = None,
        config: Config | None = None,
    ) -> pa.RecordBatchReader:
        """Runs one probe partition, or all of them one after the other, as a reader that pulls lazily.

        Each call without `partition` is a new run. The partitions of one run are executed one by one.

        Unmatched build rows of build_outer and full joins, and all rows of build_semi and build_anti joins, come once
        per run, from the last partition that is read to its end or dropped. A partition that fails or is dropped counts
        with the probe rows that it has read so far. If it is the last one after all others have been read, these rows
        do not come; while a partition is not executed at all, they wait for it.

        Args:
            partition: The number of a probe partition; None for all of them.
            batch_size: The largest number of rows of an output batch (8192).
            pool: Pays for the build of a join that is not attached, and for the bits that say which build rows have
                matched. By default one unlimited pool per process.
            config: Choices about the index of a join that is not attached.

        Returns:
            A pyarrow.RecordBatchReader. Dropping it releases everything.

        Raises:
            PlanError: For a join that is not valid any more since it was changed, a partition that does not exist, and
                one that was executed before.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> join = prejoin.HashJoin(pa.table({"id": [1, 2]}), pa.table({"user": [2, 3]}), on=[("id", "user")])
            >>> join.execute().read_all().to_pylist()
            [{'id': 2, 'user': 2}]

        """

    def __call__(
        self, batch: ArrowArrayExportable, *, pool: MemoryPool | None = None, config: Config | None = None
    ) -> pa.RecordBatch:
        """Joins one batch as if it were the whole probe side.

        A join that is not attached collects its build at each call.

        Args:
            batch: A batch with the columns of the probe side.
            pool: As for `execute`.
            config: As for `execute`.

        Returns:
            One pyarrow.RecordBatch of any number of rows.

        Raises:
            PlanError: For a batch with other columns, and for a join that is not valid any more since it was changed.
            ExecutionError: For a condition that fails, a probe row that `validate` refuses, and an output that does not
                fit one batch.

        """

    def open(
        self, partition: int | None = None, *, pool: MemoryPool | None = None, config: Config | None = None
    ) -> Session:
        """Opens the join for probe batches that are pushed by hand.

        Args:
            partition: The number of a probe partition of a run; None for a new run of a join with one partition.
            pool: As for `execute`.
            config: As for `execute`.

        Returns:
            A session.

        Raises:
            PlanError: For a join that is not valid any more since it was changed, a partition that does not exist or
                was executed before, and None if there are several.

        """

    def reset(self) -> None:
        """Prepares the join for another run: metrics start at 0, and the dynamic filter is detached.

        A prepared build stays attached.
        """

    def explain(self, format: str = "indent") -> str:
        """The join as text.

        Args:
            format: "indent" for one line, "tree" for a tree.

        Returns:
            Everything that is set, whether or not the join is still valid.

        Raises:
            PlanError: For another format.

        Example:
            >>> import prejoin, pyarrow as pa
            >>> join = prejoin.HashJoin(pa.schema({"id": pa.int64()}), pa.schema({"id": pa.int64()}), on="id")
            >>> join.explain()
            'HashJoin: mode=CollectLeft, join_type=Inner, on=[(build.id, probe.id)], null_equality=NullEqualsNothing'

        """

    def statistics(self) -> Statistics:
        """Row counts before the join runs.

        Returns:
            A dict of build_rows, probe_rows and output_rows, each {"rows": number, "exact": bool}, or None if nothing
            is known.

        """

    def properties(self) -> Properties:
        """Order, equal columns and partitions of the output; columns are positions in the output.

        Returns:
            A dict of ordering, equal_columns and partitions.

        Raises:
            PlanError: For a join that is not valid any more since it was changed.

        """

    def metrics(self) -> Metrics:
        """What the current run did so far.

        Returns:
            A dict of counters; times are seconds, memory is bytes.

        """

    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the output."""

    @property
    def prepared_build(self) -> PreparedBuild | None:
        """The prepared build that is attached, else None."""

    @property
    def dynamic_filter(self) -> DynamicFilter | None:
        """The filter that tests probe rows against the build of this join, else None."""

    @property
    def on(self) -> list[tuple[int, int]]:
        """Key pairs as positions (build column, probe column)."""

    @on.setter
    def on(self, on: Key | Iterable[Key | tuple[Key, Key]]) -> None: ...
    @property
    def how(self) -> HashJoinHow:
        """The kind of the join."""

    @how.setter
    def how(self, how: HashJoinHow) -> None: ...
    @property
    def null_equal(self) -> tuple[bool, ...]:
        """Whether null matches null, for each key."""

    @null_equal.setter
    def null_equal(self, null_equal: bool | Sequence[bool]) -> None: ...
    @property
    def where(self) -> Expr | None:
        """The residual predicate, else None."""

    @where.setter
    def where(self, where: Expr | str | None) -> None: ...
    @property
    def projection(self) -> list[int] | None:
        """Output columns as positions in (build columns, probe columns), else None."""

    @projection.setter
    def projection(self, projection: Iterable[str | int] | None) -> None: ...
    @property
    def limit(self) -> int | None:
        """Largest number of output rows, else None."""

    @limit.setter
    def limit(self, limit: int | None) -> None: ...
    @property
    def mode(self) -> _Mode:
        """One build for all probe partitions, "collect_left", or one for each, "partitioned"."""

    @mode.setter
    def mode(self, mode: _Mode) -> None: ...
    @property
    def null_aware(self) -> bool:
        """SQL NOT IN for anti joins."""

    @null_aware.setter
    def null_aware(self, null_aware: bool) -> None: ...
    @property
    def validate(self) -> Validate:
        """How many rows of each side may share a key."""

    @validate.setter
    def validate(self, validate: Validate | None) -> None: ...

def prepare(
    source: Rows | str | os.PathLike[str],
    on: str | Sequence[str],
    *,
    schema: ArrowSchemaExportable | None = None,
    columns: Sequence[str] | None = None,
    null_equal: bool | Sequence[bool] | None = None,
    keep: Keep = "all",
    order_by: str | None = None,
    validate: Validate | None = None,
    pool: MemoryPool | None = None,
    config: Config | None = None,
) -> PreparedBuild:
    """Prepares `source` as a build: reads it once and indexes it by the key columns `on`.

    Args:
        source: Any rows: a table, frame, batch, list or iterator of batches, reader, dataset, file scan, and
            whatever else has the Arrow PyCapsule interface; a list or another iterable of dicts, one for each row,
            whose types pyarrow finds in all of their values; or the path of a Parquet, Arrow IPC or CSV file (str or
            os.PathLike, also a pattern such as "planes-*.parquet"), read as the command line reads it.
        on: The names of the key columns, one or several.
        schema: Names and types of the columns. An iterator that may be empty needs it; others are checked against
            it, and dicts are read in its types.
        columns: The columns that are kept beside the keys and `order_by`, in the order of the source; all by
            default. Others are not read.
        null_equal: Whether null matches null; one bool, or one for each key. By default null matches nothing.
        order_by: A column by which the rows of each key are ordered, for `join_asof`: integers, floats, decimals,
            dates, times, timestamps, durations, text or bytes. Equal values stay in build order; rows whose value
            is null or NaN come first, and no search finds them. `on` may be [] then. `keep`, also that of lookups,
            is by this order.
        keep: "all" rows of a key, or only its "first" or "last"; the others are dropped before rows are counted.
        validate: "m:1" or "1:1" refuses rows that repeat a key, after `keep`; "m:m" and "1:m" refuse nothing.
        pool: Pays for the build for as long as it lives. By default one unlimited pool per process.
        config: Choices about index and filters.

    Returns:
        The finished build.

    Raises:
        PlanError: For unknown columns and unsupported types, before the source is asked for rows; for dicts whose
            values of one name have no one type; and for keys that `validate` refuses.
        ExecutionError: For a file that cannot be read as what it is.
        OSError: For a file that is not there.
        ResourcesExhausted: If the pool refuses. After an error the pool is as it was before.
        TypeError: For an object that gives no rows.
        Exception: What the source raises, unchanged.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> users = prejoin.prepare(pa.table({"id": [1, 2, 2], "name": ["ada", "bob", "bea"]}), on="id")
        >>> users.num_rows, users.num_keys, users.is_unique
        (3, 2, False)
        >>> prejoin.prepare([{"id": 1, "name": "ada"}, {"id": 2}], on="id", validate="m:1").get(2)
        {'id': 2, 'name': None}

    """

@overload
def join(
    probe: _Dicts, build: _Build, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]
) -> _Dicts:
    """Joins `probe` to `build`: a batch with a batch as result, a table with a table, a stream with a stream.

    A batch gives one pyarrow.RecordBatch whatever its size, and a table or a list of batches a pyarrow.Table. A
    polars.DataFrame gives a polars.DataFrame, a pandas.DataFrame a pandas.DataFrame with a new index; tables, batches
    and arrays of arro3 and nanoarrow give such objects. A reader, dataset, scanner, lazy frame, relation, iterator or
    unknown stream gives a pyarrow.RecordBatchReader that pulls lazily.

    A list of dicts, one for each row, gives a list of dicts: each is a copy of its row with the columns of the build.
    Rows may have different names; a key that a row does not have is None. Rows that come from the build alone have None
    for the other names. Only keys and what `where` tests is read. [] gives [], or rows of the build alone.

    build: a PreparedBuild, rows that are prepared for this call (needs `on`), or several builds: a list of Leg or
        PreparedBuild, or a mapping {name: leg}, as for `StarJoin`, which plans once for any number of calls.
    on: None for the build's key names, one name, a list of names that both sides have, or {probe name: build name},
        where a list of build names asks for equality with each. The build columns named are the build's keys, in any
        order; several probe columns may meet one of them.
    how: which rows come out. left keeps probe rows, right keeps build rows.
        Words of other libraries are taken too: outer, left_semi, right anti.
    where: a condition on matched pairs, SQL text or made with `col` and `lit`; null means "no".
    select: output columns in their order: a list of names, or a mapping {new name: name}. A name is one of the output,
        or "probe.x" or "build.y", which also reaches the build's keys. "probe.*" and "build.*" are the columns of that
        side that come out without `select`; a list may hold mappings beside them. Others are not made at all; [] keeps
        the row count.
    prefix: put before the name of each build column, and before "mark".
    suffix: appended to the names of build columns that are taken, as by the probe side; where that is taken too, it is
        "build." before the name instead.
    default: what probe rows of left and full joins without a match have instead of null: {build column: value}, or one
        value for all build columns that come out, apart from keys. It is of the column's type.
    coalesce: for right and full, one key column that is filled from the build on unmatched build rows; by default where
        the key types are equal and no probe column meets several build columns.
    limit: largest number of output rows.
    batch_size: largest number of rows of a batch of a lazy result (8192).
    validate: "m:m" checks nothing; "m:1" asks for a build with one row per key, which costs nothing per probe; "1:m"
        for probe rows of which no two share a key of the build, over all batches of this join; "1:1" for both.
    dtype_backend: for a pandas.DataFrame, "numpy_nullable" or "pyarrow" types in all columns. By default the columns of
        the probe side keep theirs and the build's get pandas' own; integers and Booleans with nulls become "Int64" and
        "boolean".

    The output has the probe's columns, then the build's without its keys; semi, anti and mark have the probe's (mark
    adds a Boolean column "mark"), build_semi and build_anti the build's.

    Raises PlanError for unknown columns, key types that differ, a default of another type than its column, and builds
    that validate refuses; ExecutionError for probe rows that it refuses; TypeError for what gives no rows, and for
    arguments that do not exist.

    >>> import prejoin, pyarrow as pa
    >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
    >>> prejoin.join(pa.record_batch({"id": [2, 3], "at": [10, 20]}), users, how="left").to_pylist()
    [{'id': 2, 'at': 10, 'name': 'bob'}, {'id': 3, 'at': 20, 'name': None}]
    """

@overload
def join(
    probe: _Frame, build: _Build, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]
) -> _Frame: ...
@overload
def join(
    probe: _Lazy, build: _Build, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]
) -> pa.RecordBatchReader: ...
@overload
def join(
    probe: _Batch, build: _Build, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]
) -> _Batch: ...
@overload
def join(
    probe: _Table,
    build: _Build,
    on: On | None = None,
    how: How = "inner",
    **options: Unpack[JoinOptions],
) -> _Table: ...
@overload
def join(
    probe: _Batches,
    build: _Build,
    on: On | None = None,
    how: How = "inner",
    **options: Unpack[JoinOptions],
) -> pa.Table: ...
@overload
def join(
    probe: _Reader,
    build: _Build,
    on: On | None = None,
    how: How = "inner",
    **options: Unpack[JoinOptions],
) -> pa.RecordBatchReader: ...
@overload
def join(
    probe: Rows,
    build: _Build,
    on: On | None = None,
    how: How = "inner",
    *,
    where: Expr | str | None = None,
    select: Select | None = None,
    prefix: str = "",
    suffix: str = "_right",
    default: Any = None,
    coalesce: bool | None = None,
    limit: int | None = None,
    batch_size: int | None = None,
    validate: Validate | None = None,
    dtype_backend: DtypeBackend | None = None,
) -> Any: ...
def join_schema(
    probe_schema: ArrowSchemaExportable | Rows,
    build: PreparedBuild | ArrowSchemaExportable | Rows | Leg | Legs,
    on: On | None = None,
    how: How = "inner",
    *,
    where: Expr | str | None = None,
    select: Select | None = None,
    prefix: str = "",
    suffix: str = "_right",
    default: Any = None,
    coalesce: bool | None = None,
    limit: int | None = None,
    batch_size: int | None = None,
    validate: Validate | None = None,
) -> pa.Schema:
    """The schema of what `join` returns for these arguments, without any rows.

    Args:
        probe_schema: The probe side's pyarrow.Schema, anything with __arrow_c_schema__, or rows, which are not read.
        build: A PreparedBuild, the schema of a build (needs `on`), rows of it, which are not read, or the legs of a
            StarJoin.
        on: As for `join`, like all that follow.
        how: Which rows come out.
        where: A condition on matched pairs.
        select: The output columns.
        prefix: Put before the names of build columns.
        suffix: Appended to names that are taken.
        default: What unmatched rows have instead of null.
        coalesce: Whether keys of right and full joins are one column.
        limit: Largest number of rows.
        batch_size: Largest number of rows of a batch.
        validate: How many rows of each side may share a key.

    Returns:
        The pyarrow.Schema of the result.

    Raises:
        PlanError: As of `join`.
        TypeError: For what has no schema, and for arguments that do not exist.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> users = pa.schema({"id": pa.int64(), "name": pa.string()})
        >>> events = pa.schema({"user": pa.int64()})
        >>> prejoin.join_schema(events, users, on={"user": "id"}, how="left", prefix="user_").names
        ['user', 'user_name']

    """

@overload
def join_asof(
    probe: _Dicts, build: PreparedBuild | Rows, on: On | None = None, **options: Unpack[AsofOptions]
) -> _Dicts:
    """Joins each row of `probe` with the one row of its key in `build` that is nearest in the build's order.

    Probe rows come in any order and keep it. A build is prepared once with `order_by` and searched by any number of
    calls.

    Args:
        probe: Rows, as for `join`.
        build: A PreparedBuild that was prepared with `order_by`, or rows that are prepared for this call (needs `on`
            and `asof`; `on=[]` where there are no keys).
        on: Key columns, which are equal in a match, as for `join`.
        asof: The values that are compared: a column name that both sides have, or {probe name: build name}; by default
            the name of the build's order column. The types compare as those of keys do: integers, decimals and
            timestamps by value over widths, scales and units.
        strategy: "backward" takes the last build row at or before the probe's value, of equal ones the last; "forward"
            the first row at or after it, of equal ones the first; "nearest" the nearer one of both, at the same
            distance the one of backward. Texts have no nearest.
        tolerance: Largest distance of a match: a number for numbers, a timedelta for dates and times; None is any.
        allow_exact_matches: Whether a build row at the probe's value itself counts.
        how: "left" keeps probe rows without a match, beside nulls; "inner", "semi", "anti" and "mark" as for `join`.
        where: A condition on the pairs that the search gave; a pair that does not meet it is no match. Other rows of
            the key are not tried then.
        select: Output columns, as for `join`.
        prefix: Put before the name of each build column.
        suffix: Appended to the names of build columns that the probe side has too, the order column among them.
        default: What probe rows without a match have instead of null, as for `join`.
        limit: Largest number of output rows.
        batch_size: Largest number of rows of a batch of a lazy result (8192).
        dtype_backend: Types of a pandas.DataFrame, as of `join`.
        **others: None; those of other libraries are refused with their name here.

    Build rows whose order value is null or NaN match nothing, nor do probe rows.

    Returns:
        The probe's columns, then the build's without its keys, in the kind of `probe`, as for `join`.

    Raises:
        PlanError: For a build that has no order, unknown columns, types that do not compare, a tolerance that does not
            fit them, and names that clash after the suffix.
        TypeError: For what gives no rows, and for arguments of other libraries.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> quotes = pa.table({"symbol": ["A", "A", "B"], "ts": [1, 5, 2], "bid": [10.0, 10.5, 7.0]})
        >>> quotes = prejoin.prepare(quotes, on="symbol", order_by="ts")
        >>> trades = pa.record_batch({"symbol": ["A", "B", "A"], "ts": [6, 1, 4]})
        >>> prejoin.join_asof(trades, quotes).to_pydict()
        {'symbol': ['A', 'B', 'A'], 'ts': [6, 1, 4], 'ts_right': [5, None, 1], 'bid': [10.5, None, 10.0]}

    """

@overload
def join_asof(
    probe: _Frame, build: PreparedBuild | Rows, on: On | None = None, **options: Unpack[AsofOptions]
) -> _Frame: ...
@overload
def join_asof(
    probe: _Lazy, build: PreparedBuild | Rows, on: On | None = None, **options: Unpack[AsofOptions]
) -> pa.RecordBatchReader: ...
@overload
def join_asof(
    probe: _Batch, build: PreparedBuild | Rows, on: On | None = None, **options: Unpack[AsofOptions]
) -> _Batch: ...
@overload
def join_asof(
    probe: _Table,
    build: PreparedBuild | Rows,
    on: On | None = None,
    **options: Unpack[AsofOptions],
) -> _Table: ...
@overload
def join_asof(
    probe: _Batches,
    build: PreparedBuild | Rows,
    on: On | None = None,
    **options: Unpack[AsofOptions],
) -> pa.Table: ...
@overload
def join_asof(
    probe: _Reader,
    build: PreparedBuild | Rows,
    on: On | None = None,
    **options: Unpack[AsofOptions],
) -> pa.RecordBatchReader: ...
@overload
def join_asof(
    probe: Rows,
    build: PreparedBuild | Rows,
    on: On | None = None,
    *,
    asof: str | Mapping[str, str] | None = None,
    strategy: Strategy = "backward",
    tolerance: Tolerance | None = None,
    allow_exact_matches: bool = True,
    how: LegHow = "left",
    where: Expr | str | None = None,
    select: Select | None = None,
    prefix: str = "",
    suffix: str = "_right",
    default: Any = None,
    limit: int | None = None,
    batch_size: int | None = None,
    dtype_backend: DtypeBackend | None = None,
) -> Any: ...
def open(
    path: str | os.PathLike[str], *, verify: bool = True, pool: MemoryPool | None = None, memory: bool = False
) -> PreparedBuild:
    """Maps a saved build: nothing is parsed, copied or rebuilt, and all processes of a host share one copy of it.

    A mapped file must stay as it is while the build is used. `cp` over it, or whatever else writes to it or cuts it
    in place, changes memory in use: joins give wrong rows, or SIGBUS ends the process. Replace the file instead:
    `prejoin.open(new).save(path)`, or `mv` within one file system. If others may write to it, open it with
    `memory=True`.

    An opened build is pickled as its path and fingerprint, and is opened again where it is unpickled.

    Args:
        path: The name of the file.
        verify: Check all sums and every offset, group, row number and string at once, at most 0.5 ms per MiB.
            Without it opening takes microseconds: the index is read with bounds checks only, each column is checked
            when it is first used.
        pool: Pays for the mapped bytes, once per process however often the file is opened with it. By default no
            pool does.
        memory: Copy the file into memory of this process, charged to the pool like a build that was prepared.
            Nothing that happens to the file later can harm it, and nothing is shared.

    Returns:
        The build.

    Raises:
        ExecutionError: For a damaged file, and for one of another kind.
        NotSupported: For a file of another version.
        ResourcesExhausted: If the pool refuses.
        OSError: Of the file system, in its subclasses such as FileNotFoundError.

    Example:
        >>> import os, tempfile, prejoin, pyarrow as pa
        >>> path = os.path.join(tempfile.mkdtemp(), "users.prejoin")
        >>> prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id").save(path)
        >>> users = prejoin.open(path)
        >>> prejoin.join(pa.table({"id": [2]}), users)["name"].to_pylist()
        ['bob']

    """

def inspect(path: str | os.PathLike[str]) -> Saved:
    """What the header of a saved build says. The rest of the file is neither read nor checked.

    Args:
        path: The name of the file.

    Returns:
        A dict: schema, keys, null_equal, num_rows, num_keys, duplicates (rows whose key a row before them has),
        index_kind, membership, bytes (by part, and of the file), rows_at (offset and length in bytes of the Arrow
        IPC file in it), fingerprint, name, version and loaded_at (of the snapshot that it holds, None where nobody
        said), created (when the file was written), prejoin_version, format_version.

    Raises:
        ExecutionError: For a damaged header, and for a file of another kind.
        NotSupported: For a file of another version.
        OSError: Of the file system, in its subclasses such as FileNotFoundError.

    Example:
        >>> import os, tempfile, prejoin, pyarrow as pa
        >>> path = os.path.join(tempfile.mkdtemp(), "users.prejoin")
        >>> prejoin.prepare(pa.table({"id": [1, 2, 2]}), on="id").save(path)
        >>> header = prejoin.inspect(path)
        >>> header["keys"], header["num_rows"], header["duplicates"]
        (['id'], 3, 1)

    """

def col(name: str) -> Expr:
    """A column: "build.x" or "probe.y", or with the name of a leg of a StarJoin "planes.z".

    Args:
        name: The side, a point, and the name of the column.

    Returns:
        An expression.

    Raises:
        PlanError: For a name without its side.

    Example:
        >>> import prejoin
        >>> prejoin.col("build.n") > 1
        build.n > 1

    """

def lit(value: Any) -> Expr:
    """A constant.

    Args:
        value: A value of Python (None, bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal), a
            scalar of numpy, or a pyarrow.Scalar of one of these kinds or an interval. A datetime with a zone is an
            instant, one without is local time. pandas' Timestamp and Timedelta keep their nanoseconds. Months and
            days are a pyarrow interval, or `sql("interval '1 month'")`.

    Returns:
        An expression.

    Raises:
        PlanError: For a number that is too large.
        TypeError: For other values.

    Example:
        >>> import datetime, prejoin
        >>> prejoin.lit(datetime.date(2024, 12, 31))
        DATE '2024-12-31'

    """

def sql(text: str) -> Expr:
    """A condition, or a part of one, from SQL text. docs/predicates.md describes the language.

    Wherever a condition is taken, its text is taken as well.

    Args:
        text: SQL. A column is `build.x`, `probe.y` or `"build"."my x"`, in a StarJoin also `planes.z` with the name
            of a leg; a name without a side is the column of the only side that has it.

    Returns:
        An expression.

    Raises:
        PlanError: For text that is not of the language, with line and column.

    Example:
        >>> import prejoin
        >>> prejoin.sql("probe.ts < build.since + interval '1' hour") & (prejoin.col("build.n") > 0)
        probe.ts < build.since + INTERVAL '3600 seconds' AND build.n > 0

    """

def read_all(source: Any, schema: ArrowSchemaExportable | None = None, pool: MemoryPool | None = None) -> pa.Table:
    """Every batch of a source as one table; for tests. `pool` holds copies for alignment while the call lasts."""

def read(source: Any, schema: ArrowSchemaExportable | None = None) -> pa.RecordBatchReader:
    """The batches of a source as a reader that asks for them one by one; for tests."""

def _probe_steps() -> int: ...
def _crossing(batch: ArrowArrayExportable) -> pa.RecordBatch: ...
def _attach(path: str, fingerprint: str) -> SharedBuild: ...
def _reopen(path: str, fingerprint: str, verify: bool, memory: bool = False) -> PreparedBuild: ...
def _load_expr(bytes: bytes) -> Expr: ...
def _load_join(bytes: bytes, build: Any, probe: Any) -> HashJoin: ...
