"""What a cache knows of one name."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from prejoin._core import Config, PlanError, PreparedBuild
from prejoin.cache.load import Load
from prejoin.typing import Version


class Unchanged:
    """What a loader returns where the build that the cache holds is still right."""

    def __repr__(self) -> str:
        return "prejoin.UNCHANGED"


UNCHANGED = Unchanged()


@dataclass(frozen=True)
class Specification:
    """What a name is prepared for; the same for all who ask for it."""

    on: tuple[str, ...]
    null_equal: tuple[bool, ...]
    keep: str | None

    @classmethod
    def of(cls, on: Any, null_equal: Any, keep: str) -> Specification | None:
        """The specification of these arguments of `prepare`, None without keys."""
        if on is None:
            return None
        names = (on,) if isinstance(on, str) else tuple(on)
        each = (bool(null_equal),) * len(names) if null_equal in (None, True, False) else tuple(map(bool, null_equal))
        return cls(names, each, keep)

    @classmethod
    def of_build(cls, build: PreparedBuild) -> Specification:
        """The specification of a build that somebody else prepared, who knows alone which rows were kept."""
        return cls(tuple(build.keys), build.null_equal, None)

    def fits(self, other: Specification) -> bool:
        """Whether builds of both are the same."""
        keep = None in (self.keep, other.keep) or self.keep == other.keep
        return keep and (self.on, self.null_equal) == (other.on, other.null_equal)

    def __str__(self) -> str:
        kept = "" if self.keep is None else f", keep={self.keep!r}"
        return f"on={list(self.on)}, null_equal={list(self.null_equal)}{kept}"


@dataclass(frozen=True)
class Registration:
    """How a registered name is loaded and kept fresh; times in seconds."""

    loader: Callable[[], Any]
    version: Callable[[], Version] | None
    every: float | None
    jitter: float
    on_failure: Literal["stale", "error"]
    retry_delay: float
    max_stale: float | None


@dataclass
class Counts:
    """What happened to a name so far."""

    hits: int = 0
    misses: int = 0
    waits: int = 0
    loads: int = 0
    failures: int = 0
    evictions: int = 0


@dataclass
class Entry:
    """What a cache knows of one name. Guarded by the cache's lock."""

    name: str
    specification: Specification | None = None
    config: Config | None = None
    registration: Registration | None = None
    # Eviction drops the strong reference; while somebody uses the build, the weak one brings it back.
    build: PreparedBuild | None = None
    weak: Callable[[], PreparedBuild | None] = lambda: None
    version: Version = None
    columns: tuple[tuple[str, pa.DataType], ...] | None = None
    bytes: int = 0
    # By the cache's clock: when the build was loaded or found unchanged, and when it is to be loaded again.
    fresh_at: float = 0.0
    due_at: float | None = None
    load: Load | None = None
    # What the last load failed with, and until when it counts for askers.
    failure: BaseException | None = None
    failed_until: float = 0.0
    used: int = 0
    counts: Counts = field(default_factory=Counts)

    def check(self, specification: Specification | None) -> None:
        """Refuses another specification than that of the name, which the first one is.

        Raises:
            PlanError: Where it is another one.

        """
        if specification is None:
            return
        if self.specification is None:
            self.specification = specification
        elif not self.specification.fits(specification):
            raise PlanError(
                f"{self.name!r} is cached with {self.specification}, and {specification} was asked for; builds that "
                "differ in these need names of their own"
            )

    def check_columns(self, build: PreparedBuild) -> None:
        """Refuses a build with other keys or columns than those before.

        Raises:
            PlanError: Where it has others.

        """
        self.check(Specification.of_build(build))
        columns = tuple((column.name, column.type) for column in build.schema)
        if self.columns is not None and self.columns != columns:
            shown = [", ".join(f"{name}: {kind}" for name, kind in each) for each in (self.columns, columns)]
            raise PlanError(
                f"{self.name!r} is cached with the columns {shown[0]}, and a build with {shown[1]} came; give it "
                "another name"
            )
        self.columns = columns

    def held(self) -> PreparedBuild | None:
        """The build, if it is in memory."""
        return self.build if self.build is not None else self.weak()

    def put(self, build: PreparedBuild, version: Version) -> None:
        """Holds `build`."""
        self.build, self.weak, self.version = build, weakref.ref(build), version
        memory = build.memory()
        self.bytes = memory["private"] + memory["mapped"]
