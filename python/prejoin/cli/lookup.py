"""`prejoin lookup`."""

from __future__ import annotations

import argparse
import sys

import pyarrow as pa

from prejoin.cli.build import open_build
from prejoin.cli.columns import check_types, names, pairs
from prejoin.cli.errors import UsageError
from prejoin.cli.keys import asked_keys
from prejoin.cli.printing import print_rows
from prejoin.files.csv_write import plain_text
from prejoin.files.errors import FileError
from prejoin.files.names import repeats


def lookup(options: argparse.Namespace) -> int:
    """Print the rows of some keys; 1 where none has a row."""
    if [*options.build, options.keys].count("-") > 1:
        raise UsageError("standard input is one file: give one of --build and --keys another name")
    if not options.key and options.keys is None:
        raise UsageError("give keys, or a file of them by --keys")
    # JSON knows numbers, and the other forms print what was read.
    side = open_build(options, pairs(options.on), lambda _: options.printed == "json")
    check_types(options, iter(side.texts))
    build = side.prepare()
    rows = build.to_table()
    if options.columns is not None:
        rows = rows.select([_position(rows.schema, name) for name in names(options.columns, "--columns")])
    found: list[pa.Table] = []
    missing = 0
    for keys in asked_keys(options, build):
        probe, matches = build.probe_indices(keys, "left")
        for row in probe.filter(matches.is_null()).to_pylist():
            missing += 1
            key = [column[row] for column in keys.values()]
            print(f"{options.parser.prog}: no row for {','.join(map(plain_text, key))}", file=sys.stderr)
        found.append(_take(rows, matches.drop_null()))
    table = pa.concat_tables(found)
    print_rows(table, options.printed)
    return 1 if missing and not table.num_rows else 0


def _take(table: pa.Table, rows: pa.Array) -> pa.Table:
    def taken(column: pa.ChunkedArray) -> pa.ChunkedArray:
        try:
            return column.take(rows)
        except pa.ArrowNotImplementedError:
            # Views, alone or in lists: pyarrow slices them, but does not take from them.
            slices = [chunk for row in rows.to_pylist() for chunk in column.slice(row, 1).chunks]
            return pa.chunked_array(slices, column.type)

    return pa.Table.from_arrays([taken(column) for column in table.columns], schema=table.schema)


def _position(schema: pa.Schema, name: str) -> int:
    if schema.names.count(name) == 1:
        return int(schema.get_field_index(name))
    if found := repeats(name, schema.names):
        raise FileError(f"the build has {len(found)} columns {name!r}, called {', '.join(found)} here; name one")
    raise FileError(f"the build has no column {name!r}; its columns are {', '.join(schema.names)}")
