"""`prejoin.BuildCache`."""

from __future__ import annotations

import datetime
import itertools
import os
import random
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from prejoin._core import Config, ExecutionError, MemoryPool, PlanError, PreparedBuild, ResourcesExhausted, prepare
from prejoin.cache import versions, waiting
from prejoin.cache.critical import Critical
from prejoin.cache.entry import UNCHANGED, Entry, Registration, Specification
from prejoin.cache.events import Events
from prejoin.cache.load import Load, Reference
from prejoin.typing import CacheStats, Keep, Version

if TYPE_CHECKING:
    from typing_extensions import Self

Loader = Callable[[], Any]


class BuildCache:
    """A cache of prepared builds: one load for many askers, and versions that swap while joins run.

    Any number of threads and asyncio tasks may use it. A load runs in a daemon thread of the cache and not in an asker,
    so an asker that is cancelled or interrupted stops nothing. No lock is held while a loader or another callback runs.

    Args:
        limit: Most bytes of the builds that the cache holds, None for any number. The builds that were not used for the
            longest time are evicted first. A build that is evicted while somebody has its handle stays in memory for as
            long as that lasts, and the next `get` returns it without a load.
        pool: Pays for builds that the cache prepares; by default the pool of the process.
        on_event: Called with a dict for each thing that happens ("event" and "name", and what else is known), in the
            order in which they happen, one at a time, in a thread that uses the cache. What it raises is logged. The
            logger "prejoin.cache" gets the same.
        load_timeout: Seconds after which askers of a load get a TimeoutError. Its thread is left to itself, and what it
            returns is dropped.

    Raises:
        PlanError: For a limit or timeout below 0.

    Example:
        >>> import prejoin, pyarrow as pa
        >>> with prejoin.BuildCache() as cache:
        ...     users = cache.get("users", lambda: pa.table({"id": [1, 2]}), on="id")
        ...     users is cache.get("users")
        True

    """

    def __init__(
        self,
        *,
        limit: int | None = None,
        pool: MemoryPool | None = None,
        on_event: Callable[[dict[str, Any]], object] | None = None,
        load_timeout: float | None = None,
        _clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, value in (("limit", limit), ("load_timeout", load_timeout)):
            if value is not None and value < 0:
                raise PlanError(f"{name} is at least 0, {value} was given")
        self._limit = limit
        self._pool = pool
        self._events = Events(on_event)
        self._load_timeout = load_timeout
        self._clock = _clock
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self._ticks = itertools.count(1)
        self._is_closed = False
        _CACHES.add(self)

    def get(
        self,
        name: str,
        loader: Loader | None = None,
        *,
        version: Version = None,
        on: str | list[str] | tuple[str, ...] | None = None,
        null_equal: bool | list[bool] | tuple[bool, ...] | None = None,
        keep: Keep = "all",
        config: Config | None = None,
        timeout: float | None = None,
    ) -> PreparedBuild:
        """The build of this name; loads it where the cache does not have it.

        All who ask while a load runs wait for that one, and get the same build or the same exception. A failed load is
        not remembered. Of a registered name that is due for a refresh, the old build is returned while the refresh
        runs.

        Args:
            name: Name of the build.
            loader: Called without arguments where a load is needed. It returns rows of any kind that `prepare` takes, a
                PreparedBuild, or `UNCHANGED` where the build that the cache has is still right. It may ask the cache
                for other names. Registered names need none.
            version: The version that the asker wants, None for whichever there is. Where the cache has another one, it
                is loaded.
            on: Names of the key columns, for a loader that returns rows.
            null_equal: As for `prepare`.
            keep: As for `prepare`.
            config: As for `prepare`.
            timeout: Seconds to wait, None for any time. The load goes on afterwards.

        Returns:
            The build.

        Raises:
            PlanError: For a name without a loader, for keys, null rules, keep or columns that differ from those that
                the name has already, for loaders that wait for each other, and for a closed cache.
            TimeoutError: If `timeout` or the cache's `load_timeout` is over.
            ResourcesExhausted: If the pool or the cache's limit refuses the build.

        """
        arguments = self._arguments(loader, version, on, null_equal, keep, config)
        while True:
            found = self._ask(name, *arguments)
            if isinstance(found, PreparedBuild):
                return found
            if not found.wait(timeout):
                raise _late(name, timeout)
            if version is None or found.wanted == version:
                return found.future.result()

    async def get_async(
        self,
        name: str,
        loader: Loader | None = None,
        *,
        version: Version = None,
        on: str | list[str] | tuple[str, ...] | None = None,
        null_equal: bool | list[bool] | tuple[bool, ...] | None = None,
        keep: Keep = "all",
        config: Config | None = None,
        timeout: float | None = None,
    ) -> PreparedBuild:
        """`get` for asyncio: the task waits, and the event loop does not.

        The loader is an ordinary function and runs in a thread. Cancelling the task ends its waiting alone.

        Args:
            name: As for `get`.
            loader: As for `get`.
            version: As for `get`.
            on: As for `get`.
            null_equal: As for `get`.
            keep: As for `get`.
            config: As for `get`.
            timeout: As for `get`.

        Returns:
            The build.

        Raises:
            PlanError: As `get`.
            TimeoutError: As `get`.
            ResourcesExhausted: As `get`.

        """
        arguments = self._arguments(loader, version, on, null_equal, keep, config)
        while True:
            found = self._ask(name, *arguments)
            if isinstance(found, PreparedBuild):
                return found
            if not await found.wait_async(timeout):
                raise _late(name, timeout)
            if version is None or found.wanted == version:
                return found.future.result()

    def register(
        self,
        name: str,
        loader: Loader,
        *,
        on: str | list[str] | tuple[str, ...],
        null_equal: bool | list[bool] | tuple[bool, ...] | None = None,
        keep: Keep = "all",
        config: Config | None = None,
        version: Callable[[], Version] | None = None,
        every: float | None = None,
        jitter: float = 0.0,
        eager: bool = False,
        on_failure: Literal["stale", "error"] = "stale",
        retry_delay: float = 0.0,
        max_stale: float | None = None,
    ) -> None:
        """Says how a name is loaded and kept fresh, so that `get` needs the name alone.

        A refresh is started by the first asker after it is due, who gets the old build like all others until the new
        one is there.

        Args:
            name: Name of the build.
            loader: As for `get`.
            on: Names of the key columns.
            null_equal: As for `prepare`.
            keep: As for `prepare`.
            config: As for `prepare`.
            version: Called before the loader; where it returns the version that the cache has, the loader is not
                called. It is to be cheap: time and size of a file, the snapshot id of a table, an HTTP etag.
            every: Seconds after which the build is due for a refresh, None for never.
            jitter: Most seconds that are added to `every`, at random, so that processes do not all refresh at once.
            eager: Starts the first load at once.
            on_failure: "stale" keeps the old build after a failed refresh; with "error", askers get the exception until
                a refresh succeeds.
            retry_delay: Seconds after a failed load in which no other is tried. While there is no build, askers get the
                exception of the failed load.
            max_stale: Seconds after `every` from which on askers wait for the refresh, None for never.

        Raises:
            PlanError: For a name that is registered already or that differs in keys, null rules or keep, and for times
                below 0.

        """
        specification = Specification.of(on, null_equal, keep)
        for label, value in (
            ("every", every),
            ("jitter", jitter),
            ("retry_delay", retry_delay),
            ("max_stale", max_stale),
        ):
            if value is not None and value < 0:
                raise PlanError(f"{label} is at least 0 seconds, {value} was given")
        if on_failure not in ("stale", "error"):
            raise PlanError(f'on_failure is "stale" or "error", {on_failure!r} was given')
        with self._critical() as after:
            entry = self._entry(name)
            if entry.registration is not None:
                raise PlanError(f"{name!r} is registered already")
            entry.check(specification)
            entry.config = config
            entry.registration = Registration(loader, version, every, jitter, on_failure, retry_delay, max_stale)
            if eager and entry.load is None and entry.held() is None:
                self._load(entry, None, loader, after)

    def current(self, name: str) -> PreparedBuild:
        """The newest build of this name that the cache has, without waiting for a refresh, however old it is.

        Where a refresh is due, it is started. Only where there is no build at all, the first load of a registered name
        is waited for.

        Args:
            name: Name of the build.

        Returns:
            The build.

        Raises:
            PlanError: For a name that the cache has no build of and that is not registered, and for a closed cache.

        """
        with self._critical() as after:
            entry = self._known(name)
            self._refresh_if_due(entry, after)
            build = self._hold(entry, after)
            if build is not None:
                entry.counts.hits += 1
                return build
        return self.get(name)

    def publish(self, name: str, build: PreparedBuild, version: Version = None) -> PreparedBuild:
        """Makes `build` the build of this name for all who ask from now on.

        Joins that use the build before it finish with that. A load of this name that runs is left aside: its askers get
        `build`, and what it returns later is dropped.

        Args:
            name: Name of the build.
            build: The build.
            version: Its version.

        Returns:
            The handle that askers get, which knows name, version and loaded_at: `build` itself, unless that already has
            others.

        Raises:
            PlanError: For keys, null rules or columns that differ from those that the name has already, and for a
                closed cache.
            ResourcesExhausted: For a build larger than the cache's limit.

        """
        if not isinstance(build, PreparedBuild):
            raise TypeError(f"publish takes a PreparedBuild, as prejoin.prepare makes it, not {type(build).__name__}")
        handle = _labelled(name, build, version)
        with self._critical() as after:
            entry = self._entry(name)
            entry.check_columns(handle)
            self._put(entry, handle, version, after)
            load, entry.load = entry.load, None
            if load is not None and load.wanted is None and not load.is_settled:
                load.is_settled = True
                after.later(partial(load.future.set_result, handle))
            after.event("published", name, version=version, bytes=entry.bytes)
        return handle

    def evict(self, name: str | None = None) -> None:
        """Lets go of the build of this name, or of all. Who uses it keeps it; the name itself stays known.

        Args:
            name: Name of the build, None for all.

        Raises:
            PlanError: For an unknown name, and for a closed cache.

        """
        with self._critical() as after:
            self._open()
            for entry in list(self._entries.values()) if name is None else [self._known(name)]:
                self._evict(entry, after)

    def stats(self) -> dict[str, CacheStats]:
        """What happened to each name so far.

        Returns:
            For each name: hits (askers who got the build at once), misses (who did not find it), waits (who waited for
            a load of somebody else), loads (that succeeded), failures, evictions, bytes (of the build that is held, 0
            without), age (seconds since it was loaded or found unchanged, None without), version, loaded_at, loading,
            error (text of the last failure since the last success).

        """
        now = self._clock()
        with self._critical():
            return {name: _stats_of(entry, now) for name, entry in self._entries.items()}

    def close(self) -> None:
        """Lets go of all builds. Askers of a load get an ExecutionError; what a loader returns later is dropped."""
        with self._critical() as after:
            self._is_closed = True
            for entry in self._entries.values():
                load, entry.load = entry.load, None
                if load is not None and not load.is_settled:
                    load.is_settled = True
                    error = ExecutionError(f"the cache was closed while {entry.name!r} was loaded")
                    after.later(partial(load.future.set_exception, error))
                after.dropped.append(entry)
            self._entries = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        with self._critical():
            held = [entry for entry in self._entries.values() if entry.build is not None]
            return f"BuildCache({len(held)} builds, {sum(entry.bytes for entry in held)} bytes)"

    def _critical(self) -> Critical:
        return Critical(self._lock, self._events)

    def _arguments(
        self, loader: Loader | None, version: Version, on: Any, null_equal: Any, keep: str, config: Config | None
    ) -> tuple[Loader | None, Version, Specification | None, Config | None]:
        versions.encode(version)
        return loader, version, Specification.of(on, null_equal, keep), config

    def _open(self) -> None:
        if self._is_closed:
            raise PlanError("the cache is closed")

    def _entry(self, name: str) -> Entry:
        self._open()
        if not isinstance(name, str):
            raise TypeError(f"a name of a build is text, {name!r} was given")
        return self._entries.setdefault(name, Entry(name))

    def _known(self, name: str) -> Entry:
        self._open()
        entry = self._entries.get(name)
        if entry is None:
            known = ", ".join(map(repr, sorted(self._entries))) or "none"
            raise PlanError(f"the cache has no build {name!r}, and none is registered; names that it knows: {known}")
        return entry

    def _ask(
        self,
        name: str,
        loader: Loader | None,
        wanted: Version,
        specification: Specification | None,
        config: Config | None,
    ) -> PreparedBuild | Load:
        """The build, or the load to wait for."""
        with self._critical() as after:
            entry = self._known(name) if loader is None else self._entry(name)
            entry.check(specification)
            registration = entry.registration
            if registration is not None:
                if wanted is not None:
                    raise PlanError(f"{name!r} is registered: its loader decides which version is loaded")
                loader = registration.loader
            elif config is not None:
                entry.config = config
            if entry.load is not None and self._is_late(entry.load):
                self._settle(entry, entry.load, _late(name, self._load_timeout), after)
            failure = entry.failure if self._clock() < entry.failed_until else None
            build = self._hold(entry, after)
            if build is not None and wanted in (None, entry.version):
                self._refresh_if_due(entry, after)
                if registration is None or not self._is_too_old(entry, registration):
                    if registration is not None and registration.on_failure == "error" and entry.failure is not None:
                        raise entry.failure
                    entry.counts.hits += 1
                    return build
            if entry.load is not None:
                entry.counts.waits += 1
                return entry.load
            entry.counts.misses += 1
            if failure is not None:
                raise failure
            if loader is None:
                raise PlanError(f"the cache has no build {name!r} now, and no loader was given")
            return self._load(entry, wanted, loader, after)

    def _hold(self, entry: Entry, after: Critical) -> PreparedBuild | None:
        """The build of a name, which counts as used; one that was evicted while somebody used it is held again."""
        build = entry.held()
        if build is None:
            return None
        if entry.build is None:
            self._put(entry, build, entry.version, after, is_new=False)
            after.event("revived", entry.name, version=entry.version, bytes=entry.bytes)
        entry.used = next(self._ticks)
        return build

    def _put(
        self, entry: Entry, build: PreparedBuild, version: Version, after: Critical, *, is_new: bool = True
    ) -> None:
        memory = build.memory()
        size = memory["private"] + memory["mapped"]
        if is_new and self._limit is not None and size > self._limit:
            raise ResourcesExhausted(
                f"the build {entry.name!r} has {size} bytes, and the cache holds at most {self._limit} bytes; raise "
                f"limit or prepare a smaller build; it holds {self._held()}"
            )
        after.dropped.append(entry.build)
        entry.put(build, version)
        entry.used = next(self._ticks)
        if is_new:
            entry.failure = None
            self._set_fresh(entry)
        held = [other for other in self._entries.values() if other.build is not None]
        total = sum(other.bytes for other in held)
        for other in sorted(held, key=lambda other: other.used):
            if self._limit is None or total <= self._limit or other is entry:
                break
            total -= other.bytes
            self._evict(other, after)

    def _held(self) -> str:
        held = [f"{entry.name!r} ({entry.bytes} bytes)" for entry in self._entries.values() if entry.build is not None]
        return ", ".join(held) or "no build"

    def _evict(self, entry: Entry, after: Critical) -> None:
        if entry.build is not None:
            entry.counts.evictions += 1
            after.dropped.append(entry.build)
            entry.build = None
            after.event("evicted", entry.name, version=entry.version, bytes=entry.bytes)

    def _set_fresh(self, entry: Entry) -> None:
        now, registration = self._clock(), entry.registration
        entry.fresh_at = now
        if registration is not None and registration.every is not None:
            entry.due_at = now + registration.every + random.random() * registration.jitter

    def _is_too_old(self, entry: Entry, registration: Registration) -> bool:
        if registration.every is None or registration.max_stale is None:
            return False
        return self._clock() > entry.fresh_at + registration.every + registration.max_stale

    def _refresh_if_due(self, entry: Entry, after: Critical) -> None:
        registration, now = entry.registration, self._clock()
        if registration is None or entry.due_at is None or now < max(entry.due_at, entry.failed_until):
            return
        if entry.load is None and entry.held() is not None:
            self._load(entry, None, registration.loader, after)

    def _load(self, entry: Entry, wanted: Version, loader: Loader, after: Critical) -> Load:
        """Makes a load, which gets its thread once the lock is free."""
        load = Load(entry.name, wanted, partial(self._work, entry, loader, wanted), partial(self._look, entry))
        load.deadline = None if self._load_timeout is None else self._clock() + self._load_timeout
        entry.load = load
        after.later(load.start)
        after.event("loading", entry.name, version=wanted)
        return load

    def _work(self, entry: Entry, loader: Loader, wanted: Version, load: Reference) -> None:
        """Loads, in the thread of the load, which its askers and the entry hold."""
        started = self._clock()
        try:
            loaded: tuple[PreparedBuild | None, Version] = self._loaded(entry, loader, wanted)
        except BaseException as error:
            self._fail(entry, load(), error)
            return
        try:
            self._finish(entry, load(), *loaded, self._clock() - started)
        except Exception as error:
            # The error must not keep the build that was refused.
            loaded = None, None
            traceback.clear_frames(error.__traceback__)
            self._fail(entry, load(), error)

    def _loaded(self, entry: Entry, loader: Loader, wanted: Version) -> tuple[PreparedBuild | None, Version]:
        """The build and its version; no build where the one that the cache has is still right."""
        registration, version = entry.registration, wanted
        if registration is not None and registration.version is not None:
            version = registration.version()
            versions.encode(version)
            with self._critical():
                if version is not None and version == entry.version and entry.held() is not None:
                    return None, version
        rows = loader()
        if rows is UNCHANGED:
            return None, version
        if isinstance(rows, PreparedBuild):
            return _labelled(entry.name, rows, version), version
        specification = entry.specification
        if specification is None:
            raise PlanError(f"the loader of {entry.name!r} returned rows: say with on= which columns are the keys")
        keep: Any = specification.keep or "all"
        null_equal = list(specification.null_equal)
        on = list(specification.on)
        build = prepare(rows, on, null_equal=null_equal, keep=keep, pool=self._pool, config=entry.config)
        return _labelled(entry.name, build, version), version

    def _finish(
        self, entry: Entry, load: Load | None, build: PreparedBuild | None, version: Version, seconds: float
    ) -> None:
        with self._critical() as after:
            is_current = entry.load is load
            if load is None or load.is_settled:
                after.event("dropped", entry.name, version=version)
                return
            result = build or entry.held()
            if result is None:
                raise PlanError(f"the loader of {entry.name!r} returned UNCHANGED, and the cache has no build of it")
            if is_current and build is not None:
                entry.check_columns(build)
                self._put(entry, build, version, after)
                entry.counts.loads += 1
                after.event("loaded", entry.name, version=version, bytes=entry.bytes, seconds=seconds)
            elif is_current:
                entry.failure = None
                self._set_fresh(entry)
                if version is not None:
                    entry.version = version
                after.event("unchanged", entry.name, version=version, seconds=seconds)
            if is_current:
                entry.load = None
            load.is_settled = True
            after.later(partial(load.future.set_result, result))

    def _fail(self, entry: Entry, load: Load | None, error: BaseException) -> None:
        if not isinstance(error, Exception):
            # What ends a thread or a task must not end those of the askers.
            ended = ExecutionError(f"the loader of {entry.name!r} ended with {type(error).__name__}: {error}")
            ended.__cause__ = error
            error = ended
        with self._critical() as after:
            self._settle(entry, load, error, after)

    def _settle(self, entry: Entry, load: Load | None, error: Exception, after: Critical) -> None:
        """Ends a load with an error, unless it has ended."""
        if load is None or load.is_settled:
            after.event("dropped", entry.name, error=repr(error))
            return
        load.is_settled = True
        if entry.load is load:
            entry.load = None
            entry.counts.failures += 1
            registration = entry.registration
            if registration is not None:
                entry.failure, entry.failed_until = error, self._clock() + registration.retry_delay
            after.event("failed", entry.name, error=repr(error))
        after.later(partial(load.future.set_exception, error))

    def _look(self, entry: Entry, load: Load) -> None:
        """Called now and then while somebody waits for a load."""
        if self._is_late(load):
            self._fail(entry, load, _late(entry.name, self._load_timeout))

    def _is_late(self, load: Load) -> bool:
        return load.deadline is not None and self._clock() >= load.deadline and not load.is_settled

    def _after_fork(self) -> None:
        """Makes the cache of a child empty: the threads of its loads are not there."""
        self._lock = threading.RLock()
        self._events.forget()
        for entry in self._entries.values():
            entry.build, entry.weak, entry.load, entry.failure = None, lambda: None, None, None
            entry.due_at = None


def _late(name: str, timeout: float | None) -> TimeoutError:
    return TimeoutError(f"{name!r} was not loaded within {timeout} seconds")


def _labelled(name: str, build: PreparedBuild, version: Version) -> PreparedBuild:
    return build._label(name, versions.encode(version), datetime.datetime.now(datetime.timezone.utc))


def _stats_of(entry: Entry, now: float) -> CacheStats:
    build, counts = entry.build, entry.counts
    return {
        "hits": counts.hits,
        "misses": counts.misses,
        "waits": counts.waits,
        "loads": counts.loads,
        "failures": counts.failures,
        "evictions": counts.evictions,
        "bytes": 0 if build is None else entry.bytes,
        "age": None if build is None else now - entry.fresh_at,
        "version": entry.version,
        "loaded_at": None if build is None else build.loaded_at,
        "loading": entry.load is not None,
        "error": None if entry.failure is None else str(entry.failure),
    }


_CACHES: weakref.WeakSet[BuildCache] = weakref.WeakSet()


def _after_fork() -> None:
    waiting.forget_threads()
    for cache in list(_CACHES):
        cache._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
