from typing import Any, final

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

def read_all(source: Any, schema: Any = None, pool: MemoryPool | None = None) -> pa.Table:
    """Every batch of a source as one table. Copies for alignment are held from `pool` while the call lasts."""

def read(source: Any, schema: Any = None) -> pa.RecordBatchReader:
    """The batches of a source as a reader that asks for them one by one."""

def _probe_steps() -> int:
    """Key comparisons plus buckets visited by this thread, for tests; 0 in builds without debug assertions."""
