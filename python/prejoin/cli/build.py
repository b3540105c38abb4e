"""The build of a command: prepared now, or saved before."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

import prejoin
from prejoin.cli.columns import check_keys, csv_options
from prejoin.cli.errors import UsageError
from prejoin.files.csv_types import Guess
from prejoin.files.errors import FileError
from prejoin.files.formats import TEXT, expand, input_file, is_saved_build
from prejoin.files.tables import WholeRows, read_whole


@dataclass
class BuildSide:
    """A build, or the rows that one is prepared of."""

    name: str
    options: argparse.Namespace
    on: list[tuple[str, str]] | None
    pool: prejoin.MemoryPool
    saved: prejoin.PreparedBuild | None = None
    rows: WholeRows | None = None
    texts: list[pa.Schema] = field(default_factory=list)
    """The columns of the CSV files, where there are some."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the build."""
        if self.saved is not None:
            return self.saved.schema
        assert self.rows is not None
        return self.rows.schema

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The key pairs, as (probe name, build name)."""
        if self.on is not None:
            return self.on
        return [(key, key) for key in self.saved.keys] if self.saved else []

    @property
    def keys(self) -> list[str]:
        """The key columns of the build."""
        return self.saved.keys if self.saved else list(dict.fromkeys(build for _, build in self.pairs))

    @property
    def guesses(self) -> Mapping[str, Guess]:
        """The columns whose types were guessed."""
        return self.rows.guesses if self.rows else {}

    def retype(self, name: str, how: Guess) -> None:
        """Take a guessed key column for another type."""
        assert self.rows is not None
        self.rows.retype(name, how, self.name)

    def prepare(self) -> prejoin.PreparedBuild:
        """The build."""
        if self.saved is not None:
            return self.saved
        assert self.rows is not None
        keep, null_equal = self.options.keep, self.options.null_equal
        return prejoin.prepare(self.rows.rows, self.keys, keep=keep, null_equal=null_equal, pool=self.pool)


def open_build(
    options: argparse.Namespace,
    on: list[tuple[str, str]] | None,
    typed: Callable[[str], bool] = lambda _: True,
    *,
    others: Iterable[str] = (),
    pool: prejoin.MemoryPool | None = None,
) -> BuildSide:
    """The files of `--build`, opened.

    `typed` says of which CSV columns the types matter; `others` are columns that other builds are joined on.
    """
    pool = pool or prejoin.MemoryPool(options.memory_limit)
    if options.threads:
        pa.set_cpu_count(options.threads)
    paths = expand(options.build)
    if any(is_saved_build(path) for path in paths):
        return _open_saved(options, paths, on, pool)
    if not on:
        raise UsageError("--on is needed, unless the build is a .prejoin file")
    format = options.build_format or options.format
    files = [input_file(path, format) for path in paths]
    csv = csv_options(options, [*(build for _, build in on), *others], typed)
    side = BuildSide(", ".join(file.name for file in files), options, on, pool, rows=read_whole(files, csv))
    if any(file.format in TEXT for file in files):
        side.texts.append(side.schema)
    check_keys("build", side.schema, side.keys)
    return side


def _open_saved(
    options: argparse.Namespace, paths: Sequence[str], on: list[tuple[str, str]] | None, pool: prejoin.MemoryPool
) -> BuildSide:
    if len(paths) > 1:
        raise UsageError("--build takes one .prejoin file, and nothing beside it")
    path = paths[0]
    build = prejoin.open(path, pool=pool)
    if on and {build_name for _, build_name in on} != set(build.keys):
        asked = ",".join(dict.fromkeys(build_name for _, build_name in on))
        raise FileError(f"{path}: is prepared on {','.join(build.keys)}, not on {asked}")
    if options.null_equal and not all(build.null_equal):
        raise FileError(f"{path}: is prepared already, for null keys that match nothing; drop --null-equal")
    if options.keep in ("first", "last") and not build.is_unique:
        raise FileError(f"{path}: is prepared already, with several rows of some keys; drop --keep {options.keep}")
    return BuildSide(path, options, on, pool, saved=build)
