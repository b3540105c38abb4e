"""Options that belong to one build of several: to the `--build` before them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

DEFAULTS: Mapping[str, Any] = {
    "build": None,
    "on": None,
    "how": "inner",
    "where": None,
    "select": None,
    "suffix": "_right",
    "validate": None,
    "keep": "all",
    "null_equal": False,
    "build_format": None,
}
"""The options of one build."""


def builds_of(options: argparse.Namespace) -> list[argparse.Namespace]:
    """The options of each build: its own, and those of the whole command."""
    whole = {name: value for name, value in vars(options).items() if name != "builds"}
    return [argparse.Namespace(**{**whole, **vars(build)}) for build in options.builds]


def output_columns(options: argparse.Namespace) -> str | None:
    """`--select` of the whole output: before the first of several builds, or anywhere where there is one."""
    first = options.builds[0]
    return first.output_select if len(options.builds) > 1 or first.select is None else str(first.select)


class OfBuild(argparse.Action):
    """Keeps the value for the last build so far; the options before the first one are its own."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Add what was given to the options of its build."""
        if namespace.builds is None:
            namespace.builds = [_new()]
        build = namespace.builds[-1]
        if self.dest == "build" and build.build is not None:
            build = _new()
            namespace.builds.append(build)
        if self.dest == "on":
            build.on = [*(build.on or []), values]
        elif self.dest == "select" and build.build is None:
            build.output_select = values
        else:
            setattr(build, self.dest, True if self.nargs == 0 else values)


def _new() -> argparse.Namespace:
    return argparse.Namespace(**DEFAULTS, output_select=None)


def add_of_build(parser: argparse.ArgumentParser, *names: str, **options: Any) -> None:
    """Add an option that belongs to one build."""
    dest = names[0].removeprefix("--").replace("-", "_")
    parser.add_argument(*names, action=OfBuild, dest=dest, default=argparse.SUPPRESS, **options)


def stdin_files(builds: Sequence[argparse.Namespace], probe: Sequence[str]) -> int:
    """How many files are standard input."""
    return [*(path for build in builds for path in build.build), *probe].count("-")
