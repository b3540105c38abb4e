from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeAlias, final

import pyarrow as pa

__version__: str

class PrejoinError(Exception):
    """Base of all errors of prejoin."""

class PlanError(PrejoinError, ValueError):
    """The request itself is wrong: unknown column, types that do not match, a build that does not fit."""

class ResourcesExhausted(PrejoinError, MemoryError):  # noqa: N818
    """A memory pool refused a request; nothing was allocated for it."""

class ExecutionError(PrejoinError, RuntimeError):
    """The data or its producer failed while the work ran."""

class NotSupported(PrejoinError, NotImplementedError):  # noqa: N818
    """A valid request that this version does not support."""

class InternalError(PrejoinError, RuntimeError):
    """A broken promise inside prejoin; please report it."""

@final
class MemoryPool:
    """A memory pool: grants at most `limit` bytes at a time (None: any number) and remembers its peak."""

    def __new__(cls, limit: int | None = None) -> MemoryPool: ...
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
    """Choices of one preparation; every field has a default that suits most builds."""

    def __new__(
        cls,
        *,
        perfect_hash_min_density: float | None = None,
        perfect_hash_small_range: int | None = None,
        in_list_max_bytes: int | None = None,
        in_list_max_values: int | None = None,
    ) -> Config: ...
    @property
    def perfect_hash_min_density(self) -> float:
        """Smallest share of distinct keys in their range that gets a perfect-hash index; above 1 turns it off."""
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
    """The build side of a hash join, prepared once: rows, index and memory charge. Immutable.

    Any number of joins and threads probe it at once.
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
    def index_kind(self) -> str:
        """Which index was made: "dense", "hashed", "bytes" or "rows"."""
    @property
    def reserved_bytes(self) -> int:
        """Bytes charged to the pool for as long as the build lives."""
    def memory(self) -> dict[str, int]:
        """Bytes by part: "rows", "index" (keys to groups), "groups" (groups to rows), and their sum "reserved"."""
    def to_table(self) -> pa.Table:
        """Return the build rows in build order; the table shares the build's memory and keeps the build alive."""
    def __len__(self) -> int: ...

@final
class Expr:
    """A condition over the columns of both sides of a join, made by `col` and `lit` and the operators on them."""

    def __lt__(self, value: _Operand, /) -> Expr: ...
    def __le__(self, value: _Operand, /) -> Expr: ...
    def __eq__(self, value: _Operand, /) -> Expr: ...  # type: ignore[override]
    def __ne__(self, value: _Operand, /) -> Expr: ...  # type: ignore[override]
    def __gt__(self, value: _Operand, /) -> Expr: ...
    def __ge__(self, value: _Operand, /) -> Expr: ...
    def __and__(self, value: _Operand, /) -> Expr: ...
    def __rand__(self, value: _Operand, /) -> Expr: ...
    def __or__(self, value: _Operand, /) -> Expr: ...
    def __ror__(self, value: _Operand, /) -> Expr: ...
    def __invert__(self) -> Expr: ...
    def __add__(self, value: _Operand, /) -> Expr: ...
    def __radd__(self, value: _Operand, /) -> Expr: ...
    def __sub__(self, value: _Operand, /) -> Expr: ...
    def __rsub__(self, value: _Operand, /) -> Expr: ...
    def __mul__(self, value: _Operand, /) -> Expr: ...
    def __rmul__(self, value: _Operand, /) -> Expr: ...
    def __truediv__(self, value: _Operand, /) -> Expr: ...
    def __rtruediv__(self, value: _Operand, /) -> Expr: ...
    def __mod__(self, value: _Operand, /) -> Expr: ...
    def __rmod__(self, value: _Operand, /) -> Expr: ...
    def __bool__(self) -> NoReturn: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def is_null(self) -> Expr:
        """True where the value is null."""
    def is_not_null(self) -> Expr:
        """True where the value is not null."""

_Literal: TypeAlias = bool | int | float | str | bytes | None
_Operand: TypeAlias = Expr | _Literal
_Key: TypeAlias = str | int | Expr

def col(name: str) -> Expr:
    """Name a column: "build.x" or "probe.y"."""

def lit(value: _Literal) -> Expr:
    """Make a constant."""

@final
class Session:
    """A join whose probe batches are pushed by hand. Build-driven kinds give their unmatched rows at `finish`."""

    def push(self, batch: Any) -> pa.RecordBatch:
        """Join one probe batch; the result is one batch of whatever size."""
    def finish(self) -> pa.RecordBatch:
        """Say that no batch follows; the result is the rows that are left."""
    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the output."""

@final
class HashJoin:
    """A hash join of a build side and a probe side, ordinary or attached to a PreparedBuild.

    The attributes on, how, null_equal, where, projection, limit, mode and null_aware may be changed; every execution
    validates them again.
    """

    def __new__(
        cls,
        build: Any,
        probe: Any,
        on: Iterable[tuple[_Key, _Key]],
        how: str = "inner",
        *,
        null_equal: bool | Sequence[bool] | None = None,
        where: Expr | None = None,
        projection: Iterable[int | str] | None = None,
        limit: int | None = None,
        mode: str = "collect_left",
        null_aware: bool = False,
    ) -> HashJoin: ...
    on: Any
    how: str
    null_equal: Any
    where: Expr | None
    projection: Any
    limit: int | None
    mode: str
    null_aware: bool
    def replace(self, **changes: Any) -> HashJoin:
        """Return a new join with some parameters of the constructor changed and a fresh run state."""
    def prepare_build(
        self, source: Any, *, pool: MemoryPool | None = None, config: Config | None = None
    ) -> PreparedBuild:
        """Prepare `source` as a build for joins like this one; the join's own build source is not touched."""
    def with_prepared_build(self, build: PreparedBuild) -> HashJoin:
        """Return this join, attached to a prepared build; its build source is replaced by an empty placeholder."""
    def execute(self, partition: int | None = None, batch_size: int = 8192) -> pa.RecordBatchReader:
        """Run one probe partition, or all of them one after the other, lazily."""
    def __call__(self, batch: Any) -> pa.RecordBatch:
        """Join one probe batch as if it were the whole probe side; the result is one batch of whatever size."""
    def open(self) -> Session:
        """Open the join for probe batches that are pushed by hand."""
    def reset(self) -> None:
        """Forget run state and keep the prepared build, so that the same join runs again."""
    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the output."""
    @property
    def prepared_build(self) -> PreparedBuild | None:
        """The prepared build that is attached, else None."""

def prepare(
    source: Any,
    on: str | Sequence[str],
    *,
    schema: Any = None,
    null_equal: bool | Sequence[bool] | None = None,
    pool: MemoryPool | None = None,
    config: Config | None = None,
) -> PreparedBuild:
    """Prepare `source` as a build: read it once, index it by the key columns `on`, return the finished handle."""

def join(
    probe: Any,
    build: Any,
    on: str | Sequence[str] | Mapping[str, str] | None = None,
    how: str = "inner",
    *,
    suffix: str = "_right",
    coalesce: bool | None = None,
    limit: int | None = None,
    batch_size: int | None = None,
) -> Any:
    """Join `probe` to `build`, a PreparedBuild or a table to prepare for this call.

    A batch gives a pyarrow.RecordBatch, a table or frame a pyarrow.Table, anything else a pyarrow.RecordBatchReader
    that pulls lazily.
    """

def read_all(source: Any, schema: Any = None, pool: MemoryPool | None = None) -> pa.Table:
    """Every batch of a source as one table. Copies for alignment are held from `pool` while the call lasts."""

def read(source: Any, schema: Any = None) -> pa.RecordBatchReader:
    """The batches of a source as a reader that asks for them one by one."""

def _probe_steps() -> int:
    """Key comparisons plus buckets visited by this thread, for tests; 0 in builds without debug assertions."""
