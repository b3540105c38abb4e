"""`prejoin prepare` and `prejoin inspect`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import pyarrow as pa

import prejoin
from prejoin.cli.build import open_build
from prejoin.cli.columns import check_types, pairs
from prejoin.cli.errors import UsageError
from prejoin.files.csv_write import plain


def prepare(options: argparse.Namespace) -> None:
    """Prepare a build and save it."""
    if options.out == "-":
        raise UsageError("a .prejoin file is opened by its name: --out takes no standard output")
    side = open_build(options, pairs(options.on))
    check_types(options, iter(side.texts))
    build = side.prepare()
    # What save does by itself is not repeated here.
    build.save(options.out, **({} if options.mode is None else {"mode": options.mode}))
    if not options.quiet and sys.stderr.isatty():
        print(f"{build.num_rows:,} rows, {build.num_keys:,} keys written to {options.out}", file=sys.stderr)


def inspect(options: argparse.Namespace) -> None:
    """Say what a saved build holds."""
    held = prejoin.inspect(options.file)
    if options.json:
        print(json.dumps(held, default=plain))
        return
    width = max(len(name) for name in held)
    for name, value in held.items():
        print(f"{name:<{width}}  {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, pa.Schema):
        return ", ".join(f"{column.name}: {column.type}" for column in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
