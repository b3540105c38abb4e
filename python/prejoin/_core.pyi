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
    """A memory pool: grants at most `limit` bytes at a time (None: any number) and remembers its peak.

    Builds are charged to a pool before they allocate, for as long as they live.

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

    perfect_hash_min_density: smallest share of distinct keys in their range at which integer keys get a perfect-hash
        index; above 1 turns it off.
    perfect_hash_small_range: key ranges up to this get one whatever their density.
    in_list_max_bytes: largest key column, in bytes, that membership keeps as an IN-list; 0 turns IN-lists off.
    in_list_max_values: largest number of distinct keys that membership keeps as an IN-list; 0 turns IN-lists off.

    Raises PlanError for a number out of range.
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
        """Smallest share of distinct keys in their range at which a perfect-hash index is made; above 1 is off."""

    @property
    def perfect_hash_small_range(self) -> int:
        """Key ranges up to this are indexed by perfect hash whatever their density."""

    @property
    def in_list_max_bytes(self) -> int:
        """Largest key column, in bytes, that membership keeps as an IN-list; 0 turns IN-lists off."""

    @property
    def in_list_max_values(self) -> int:
        """Largest number of distinct keys that membership keeps as an IN-list; 0 turns IN-lists off."""

@final
class PreparedBuild:
    """The build side of a hash join, prepared once: rows, index and memory charge.

    Immutable; any number of joins and threads probe it at once. Made by `prepare` and `HashJoin.prepare_build`. When
    the last join, reader or table that uses it is gone, its memory and its charge go together.
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
        """True where no key that a probe can match stands in two rows."""

    @property
    def order_by(self) -> str | None:
        """Name of the column that the rows of each key are ordered by; None for build order."""

    @property
    def index_kind(self) -> str:
        """Which index was made: "dense", "hashed", "bytes" or "rows"; "single" without key columns."""

    @property
    def reserved_bytes(self) -> int:
        """Bytes charged to the pool for as long as the build lives."""

    @property
    def bounds(self) -> list[tuple[pa.Scalar, pa.Scalar] | None]:
        """Least and greatest value of each key as two pyarrow scalars; None for byte keys, and where there is none."""

    @property
    def membership(self) -> str:
        """How membership is told: "in_list" for a small build, else "map"."""

    def memory(self) -> Memory:
        """Bytes by part, by whose they are, and as the pool knows them.

        rows, index (keys to groups), groups (groups to rows); private (of this process), mapped (of a file, shared with
        all processes that map it); reserved (charged to the pool).
        """

    @property
    def fingerprint(self) -> str:
        """Identity of the contents: 32 hexadecimal digits.

        A hash of the rows in any order, the schema, the keys and their null equality. Computed once, in one pass over
        the rows; it does not withstand malice.
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

        mode: permission bits of the file; by default those of the file that is replaced, and for a new one 0o600, the
            user alone reads it.

        The file is written beside `path`, checked, brought to the disk, and renamed: a crash at any point leaves what
        was there before, or the new file. Who has the old file open keeps it.

        Raises NotSupported for types that Arrow IPC does not carry, OSError of the file system; nothing is left behind
        then.
        """

    def share(self) -> SharedBuild:
        """Copies the build into memory that other processes of this host map, and gives a handle that pickles.

        The copy is charged to the build's pool for as long as the handle lives.

        Raises NotSupported for types that Arrow IPC does not carry, ResourcesExhausted if the pool refuses.
        """

    def __reduce__(self) -> tuple[Any, tuple[str, str, bool, bool]]: ...
    def to_table(self) -> pa.Table:
        """The build rows in build order as a table that shares the build's memory and keeps the build alive."""

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
        """The row of one key as a dict of Python values, `default` where the key is absent.

        key: a value, or a tuple of one for each key column. Values match as keys of a join do. As in any mapping, what
            cannot be a key of this build is absent: an int that the key's type cannot hold, a text where keys are ints.
        keep: "first" or "last" row of a key, where some key has several.
        asof: for a build prepared with `order_by`, the value that is looked for among the rows of the key. It chooses
            one by `strategy`, `tolerance` and `allow_exact_matches`, as of `join_asof`. A build without key columns
            takes None as key.

        Raises PlanError for a build that repeats keys without `keep`.

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
        """One row per key, in order, as a pyarrow.RecordBatch; null, or the default, where the key is absent.

        keys: a list or another iterable of keys (of tuples where there are several key columns), an array or series, a
            mapping of key names to lists or arrays, or a table with the key columns; by position where it has none of
            their names.
        columns: names of build columns, all by default.
        default: what stands where the key is absent: {column: value}, or one value for all columns. A null of a key
            that is in the build stays null.
        keep: "first" or "last" row of a key, where some key has several.
        asof: for a build prepared with `order_by`, what is looked for among the rows of each key: one value for each,
            as a list or an array, or one for all. It chooses one row by `strategy`, `tolerance` and
            `allow_exact_matches`, as of `join_asof`. A build without key columns takes None as keys.

        Raises PlanError for keys of another type, for a default that the type of its column does not hold exactly, and
        for a build that repeats keys without `keep`.

        >>> import prejoin, pyarrow as pa
        >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
        >>> users.lookup([2, 3], columns=["name"]).to_pylist()
        [{'name': 'bob'}, {'name': None}]
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
        """The value of one column for each key, in order; null, or the default, where the key is absent.

        A pandas or polars series, or a pandas index, gives one of the same library with its name and index: in pandas'
        own types, where integers and Booleans with nulls are "Int64" and "boolean". All else gives a pyarrow.Array.

        keys: as for `lookup`.
        column: the name of a build column.
        default: what stands where the key is absent. A null of a key that is in the build stays null.
        keep: "first" or "last" row of a key, where some key has several.
        asof, strategy, tolerance, allow_exact_matches: as for `lookup`.

        Raises PlanError for an unknown column, for keys of another type, for a default that the column's type does not
        hold exactly, and for a build that repeats keys without `keep`.

        >>> import prejoin, pyarrow as pa
        >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
        >>> users.map([2, 3, 1], "name", "nobody").to_pylist()
        ['bob', 'nobody', 'ada']
        """

    def contains(self, keys: Keys) -> Any:
        """Whether each key is in the build: Booleans without nulls, in a pyarrow.BooleanArray or as of `map`.

        keys: as for `lookup`.
        """

    def count_matches(self, keys: Keys) -> Any:
        """The number of build rows of each key: 32-bit numbers without nulls, in a pyarrow.UInt32Array or as of `map`.

        keys: as for `lookup`.

        Their sum is the exact number of rows of an inner join, before anything of it is made.
        """

    def counts(self, *, limit: int | None = None) -> pa.Table:
        """The keys that stand in several rows, as a pyarrow.Table of the key columns and a column "count".

        Keys with most rows come first, of equal ones that of the earliest row. Keys that nothing can match, those with
        a null without `null_equal`, are left out. Where a key column is named "count", the numbers are in "count_".

        limit: largest number of keys, all by default.

        >>> import prejoin, pyarrow as pa
        >>> prejoin.prepare(pa.table({"id": [1, 2, 2, 3, 3, 3]}), on="id").counts().to_pylist()
        [{'id': 3, 'count': 3}, {'id': 2, 'count': 2}]
        """

    @overload
    def join(self, probe: _Dicts, on: On | None = None, how: How = "inner", **options: Unpack[JoinOptions]) -> _Dicts:
        """Joins `probe` to this build: `prejoin.join(probe, build, ..)` with the same arguments.

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
        """The pairs of a join as row numbers: (probe rows, build rows), two pyarrow.UInt32Arrays of one length.

        keys: the probe side's keys, as for `lookup`.
        how: "inner", "left", "right" or "full". The order is that of `join`; null stands for no partner.

        Build rows are positions in `to_table()`.

        >>> import prejoin, pyarrow as pa
        >>> users = prejoin.prepare(pa.table({"id": [1, 2, 2]}), on="id")
        >>> [rows.to_pylist() for rows in users.probe_indices([2, 3], how="left")]
        [[0, 0, 1], [1, 2, None]]
        """

    def __len__(self) -> int: ...

@final
class SharedBuild:
    """A build in memory that other processes of this host map. Made by `PreparedBuild.share`; it pickles.

    On Linux it is sealed memory without a name. The kernel frees it with the last handle and the last build that was
    opened, also when processes are killed; it can be received as long as the sender lives. Elsewhere it is a temporary
    file, removed with the first handle.

    >>> import pickle, prejoin, pyarrow as pa
    >>> shared = prejoin.prepare(pa.table({"id": [1, 2]}), on="id").share()
    >>> pickle.loads(pickle.dumps(shared)).open().num_rows
    2
    """

    def open(self, *, verify: bool = True, pool: MemoryPool | None = None) -> PreparedBuild:
        """Maps the build; `verify` and `pool` are those of `prejoin.open`.

        Raises what `prejoin.open` raises.
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
        frame gives a frame of the same library; a stream gives a pyarrow.RecordBatchReader that pulls lazily.

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

    data: any rows; with `partitions`, a sequence of as many sources, or a callable `open(partition)` that gives one
        each time it is asked (needs `schema`).
    schema: names and types of the columns; needed where the data does not tell, else checked.
    ordering: columns, by name or position, that the rows of each partition are ordered by, ascending.
    equal: pairs of columns that hold equal values in every row.

    What is declared is believed, never checked. A Source may be used wherever rows are taken.

    Raises PlanError for columns that do not exist and for a callable without schema, TypeError for what gives no rows.

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
        """A source of several partitions, each any rows; all with the same columns."""

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
        """All rows, one partition after the other."""

    def __getnewargs_ex__(self) -> tuple[tuple[Any], dict[str, Any]]: ...

@final
class Expr:
    """A condition over the columns of both sides of a join, made by `col`, `lit` and `sql` and the operators on them.

    Compare with == != < <= > >=, combine with & | ~, calculate with + - * / %; the methods are the tests of SQL. Logic
    has three values, as in SQL: a comparison with null is null, and null means "no". Python's and, or, not and chained
    comparisons raise TypeError. Values beside an expression become literals as by `lit`. It shows itself as SQL text
    that `sql` reads as the same expression.

    Raises PlanError for an expression of more than 128 levels; chains of & or | count once.

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
        """True where the value is null."""

    def is_not_null(self) -> Expr:
        """True where the value is not null."""

    def is_true(self) -> Expr:
        """True where the condition is true, false where it is false or null."""

    def is_false(self) -> Expr:
        """True where the condition is false, false where it is true or null."""

    def is_distinct_from(self, other: Operand) -> Expr:
        """Like !=, but null is a value: equal to null and to nothing else."""

    def is_not_distinct_from(self, other: Operand) -> Expr:
        """Like ==, but null is a value: equal to null and to nothing else."""

    def is_in(self, values: Iterable[Operand]) -> Expr:
        """True where the value equals one of `values`, an iterable of literals and expressions, or a pyarrow array.

        Null where the value is null, and where nothing is equal beside a null in `values`; false for no values at all.
        """

    def between(self, low: Operand, high: Operand) -> Expr:
        """True where the value is at least `low` and at most `high`."""

    def like(self, pattern: Operand) -> Expr:
        """True where the text matches `pattern`, in which % is any text and _ any character.

        A backslash takes the next character as it is.
        """

    def ilike(self, pattern: Operand) -> Expr:
        """`like` where upper and lower case are the same."""

    def cast(self, to: pa.DataType | str) -> Expr:
        """The value as another type: a pyarrow.DataType or the name of a type in SQL.

        A value that does not fit is an ExecutionError.
        """

    def try_cast(self, to: pa.DataType | str) -> Expr:
        """`cast`, but null where a value does not fit."""

@final
class Session:
    """A join whose probe batches are pushed by hand; made by `HashJoin.open`.

    After an error, and after `finish`, it is done: another call raises PlanError.
    """

    def push(self, batch: ArrowArrayExportable) -> pa.RecordBatch:
        """Joins one probe batch; gives one batch of whatever size."""

    def finish(self) -> pa.RecordBatch:
        """Says that no batch follows; gives the rows that are left.

        These are the unmatched build rows of right and full, all rows of build_semi and build_anti, none of others.
        """

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the output."""

@final
class DynamicFilter:
    """A filter on the probe rows of one join, empty until that join's build is known.

    probe: the probe side of the join, or its schema.
    on: the probe key columns by name or position, in key order.

    Give it to the join, and let the probe source ask it: before the first probe batch is asked for it is complete, and
    then it tests bounds and membership of the build. It never drops a row that would match; for joins that keep
    unmatched probe rows it keeps every row. In partitioned mode it is complete once the last build is known. Each
    independent run needs a filter of its own; a new run empties it. It holds the builds that it tests, so it may
    outlive its join, and `await filter` waits until it is complete.

    Raises PlanError for columns that do not exist.

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
        """Waits until the filter is complete, at most `timeout` seconds; None waits without end. Tells whether it is.

        The build is made by the thread that first pulls from the join: another one may wait.
        """

    def __await__(self) -> Generator[Any]: ...
    def evaluate(self, batch: ArrowArrayExportable) -> pa.BooleanArray:
        """The rows of `batch` that can match, without nulls; all rows until the filter is complete.

        Columns are found by their position in the probe schema. Raises PlanError where they are not there.
        """

@final
class HashJoin:
    """A hash join of a build side and a probe side, ordinary or attached to a PreparedBuild.

    build, probe: a schema alone, any rows, or a `Source`.
    on: pairs (build key, probe key), each a name, a position or `col(...)`; or names that both sides have.
    how: which rows come out: inner, probe_outer (all probe rows), build_outer (all build rows), full, semi, anti, mark,
        build_semi or build_anti. left and right are refused, since the build side comes first here.
    null_equal: whether null matches null; one bool, or one for each key.
    where: a condition on matched pairs, SQL text or made with `col` and `lit`; null means "no".
    projection: output columns, as positions in (build columns, probe columns) or names "build.x", "probe.y"; an empty
        list keeps the row count.
    limit: largest number of output rows.
    mode: "collect_left" makes one build for all probe partitions, "partitioned" one for each.
    null_aware: SQL NOT IN, for anti and build_anti.
    validate: "m:m", "m:1" (a build with one row per key), "1:m" (no two probe rows of one run share a key of the build)
        or "1:1".
    dynamic_filter: the filter that the join tells its build to.

    The output has the build's columns, then the probe's, both key columns included; semi, anti and mark have the
    probe's, build_semi and build_anti the build's. Rows come in probe order, matches of one row in build order,
    unmatched build rows last.

    The attributes on, how, null_equal, where, projection, limit, mode, null_aware and validate may be changed; every
    execution validates them again. Sources and the prepared build are changed by `replace` and `with_prepared_build`,
    which give a new join.

    A join that is not attached pickles, with the objects behind its sources; if these do not pickle, neither does it
    (send `join.replace(build=schema, probe=schema)` instead). An attached one raises NotSupported.

    Raises PlanError for unknown columns, key types that differ and options that do not go together, TypeError for what
    is no source.

    >>> import prejoin, pyarrow as pa
    >>> users = pa.table({"id": [1, 2], "name": ["ada", "bob"]})
    >>> events = pa.table({"user": [2, 3, 2], "at": [10, 20, 30]})
    >>> join = prejoin.HashJoin(users.schema, events.schema, on=[("id", "user")], projection=["build.name", "probe.at"])
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

        Where a source is replaced, names in on, projection and where are looked up in the new one. What was given by
        position needs a source with the same columns.

        Raises PlanError for a position where the columns are others, and where a prepared build is attached and the
        build source, its keys or the mode would change.
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

        The caller chooses the snapshot; nothing verifies its contents. The schema must equal the join's build schema.
        An exception of the source comes through unchanged. After an error the pool is as it was.

        keep: "all" rows of a key, or only its "first" or "last".

        Raises PlanError before the first batch is asked for, ResourcesExhausted if the pool refuses.
        """

    def with_prepared_build(self, build: PreparedBuild) -> HashJoin:
        """The join attached to a prepared build; its build source is replaced by an empty placeholder.

        Raises PlanError where schema, keys, null equality or mode of the build do not fit.
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

        Without `partition` this is a run of its own; the partitions of one run are asked for one by one. Output batches
        have at most `batch_size` rows (8192). `pool` pays for an ordinary build and for the visited bits of right,
        full, build_semi and build_anti. Dropping the reader releases everything.

        The closing rows of these four kinds (unmatched build rows; for build_semi the matched ones) come once per run,
        from the last partition that is read to its end or dropped. A partition that fails or is dropped counts with the
        probe rows that it has read so far. Where it is the last one after all others have been read, the closing rows
        do not come; while a partition is not asked for at all, they wait for it.

        Raises PlanError if the join, changed since it was made, is not valid any more.
        """

    def __call__(
        self, batch: ArrowArrayExportable, *, pool: MemoryPool | None = None, config: Config | None = None
    ) -> pa.RecordBatch:
        """Joins one batch as if it were the whole probe side; gives one batch of whatever size.

        An ordinary join collects its build for each call.
        """

    def open(
        self, partition: int | None = None, *, pool: MemoryPool | None = None, config: Config | None = None
    ) -> Session:
        """Opens the join for probe batches that are pushed by hand."""

    def reset(self) -> None:
        """Forgets run state, detaches the dynamic filter and keeps the prepared build: the same join runs again."""

    def explain(self, format: str = "indent") -> str:
        """The join as text: one line ("indent") or a tree ("tree")."""

    def statistics(self) -> Statistics:
        """Row counts before the join runs: known, guessed, or None."""

    def properties(self) -> Properties:
        """Order, equal columns and partitions of the output; columns are positions in the output."""

    def metrics(self) -> Metrics:
        """What the current run did so far; times are seconds, memory is bytes."""

    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the output."""

    @property
    def prepared_build(self) -> PreparedBuild | None:
        """The prepared build that is attached, else None."""

    @property
    def dynamic_filter(self) -> DynamicFilter | None:
        """The filter that the join tells its build to, else None."""

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
        """How build and probe partitions meet."""

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
    source: Rows,
    on: str | Sequence[str],
    *,
    schema: ArrowSchemaExportable | None = None,
    null_equal: bool | Sequence[bool] | None = None,
    keep: Keep = "all",
    order_by: str | None = None,
    pool: MemoryPool | None = None,
    config: Config | None = None,
) -> PreparedBuild:
    """Prepares `source` as a build: reads it once, indexes it by the key columns `on`, returns the finished handle.

    schema: needed for an iterator that may be empty; else checked against the source's own.
    null_equal: whether null matches null; one bool, or one for each key. By default null matches nothing.
    keep: "all" rows of a key, or only its "first" or "last"; the others are dropped before rows are counted.
    order_by: a column by which the rows of each key are ordered, for `join_asof`: integers, floats, decimals, dates,
        times, timestamps, durations, text or bytes. Equal ones stay in build order; rows whose value is null or NaN
        come first, and no search finds them. `on` may be [] then. `keep`, also that of lookups, is by this order.
    pool: pays for the build for as long as it lives; by default one unlimited pool per process.

    An exception of the source comes through unchanged. After an error the pool is as it was.

    Raises PlanError for unknown columns and unsupported types, before the source is asked for rows; ResourcesExhausted
    if the pool refuses; TypeError for what gives no rows.

    >>> import prejoin, pyarrow as pa
    >>> users = prejoin.prepare(pa.table({"id": [1, 2, 2], "name": ["ada", "bob", "bea"]}), on="id")
    >>> users.num_rows, users.num_keys, users.is_unique
    (3, 2, False)
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

    verify: check all sums and every offset, group, row number and string at once, at most 0.5 ms per MiB. Without, it
        opens in microseconds: the index is read with bounds checks only, each column is checked when it is first used.
    pool: pays for the mapped bytes, once per process however often the file is opened with it; by default nobody does.
    memory: copy the file into memory of this process, charged to the pool like a build that was prepared. Nothing that
        happens to the file later can harm it, and nothing is shared.

    A mapped file must stay as it is while the build is used. `cp` over it, or whatever else writes to it or cuts it in
    place, changes memory in use: wrong rows, or the end of the process by SIGBUS. Replace it instead, without harm:
    `prejoin.open(new).save(path)`, or `mv` within one file system. Where others write to it, open with `memory=True`.

    An opened build pickles as its path and fingerprint, and is opened again on the other side.

    Raises ExecutionError for a damaged or foreign file, NotSupported for one of another version, ResourcesExhausted if
    the pool refuses, and OSError (FileNotFoundError, ...) of the file system.

    >>> import os, tempfile, prejoin, pyarrow as pa
    >>> path = os.path.join(tempfile.mkdtemp(), "users.prejoin")
    >>> prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id").save(path)
    >>> users = prejoin.open(path)
    >>> prejoin.join(pa.table({"id": [2]}), users)["name"].to_pylist()
    ['bob']
    """

def inspect(path: str | os.PathLike[str]) -> Saved:
    """What the header of a saved build tells, without reading the rest or checking it.

    Keys: schema, keys, null_equal, num_rows, num_keys, duplicates (rows whose key a row before them has), index_kind,
    membership, bytes (by part, and of the file), rows_at (offset and length of the Arrow IPC file in it), fingerprint,
    name, version and loaded_at (of the snapshot that it holds, None where nobody said), created (when the file was
    written), prejoin_version, format_version.

    Raises what `open` raises.
    """

def col(name: str) -> Expr:
    """A column: "build.x" or "probe.y", or with the name of a leg of a StarJoin "planes.z".

    Raises PlanError for a name without its side.
    """

def lit(value: Any) -> Expr:
    """A constant: a value of Python, a scalar of numpy, or a pyarrow.Scalar.

    Python's are None, bool, int, float, str, bytes, date, datetime, time, timedelta and Decimal; a scalar is of one of
    these kinds, or an interval. A datetime with a zone is an instant, one without is local time. pandas' Timestamp and
    Timedelta keep their nanoseconds. Months and days are a pyarrow interval, or `sql("interval '1 month'")`.

    Raises TypeError for other values, PlanError for a number that is too large.
    """

def sql(text: str) -> Expr:
    """A condition, or a part of one, from SQL text.

    A column is `build.x`, `probe.y` or `"build"."my x"`, in a StarJoin also `planes.z` with the name of a leg; a name
    without its side is the one side's that has it. The language is in docs/predicates.md. Wherever a condition is
    taken, its text is taken as well.

    Raises PlanError, with line and column, for text that is not of the language.

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
