"""The command line: ``prejoin join``, ``lookup``, ``prepare``, ``inspect`` and ``demo``."""

from __future__ import annotations

import argparse
import csv
import datetime
import decimal
import io
import json
import math
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa

import prejoin
from prejoin import demo
from prejoin._files import FORMATS, Csv, FileError, Output, Tables, expand, input_file, one_line, read_whole
from prejoin._progress import Progress

HOWS = ("inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti")

# The largest number that every part of the way takes.
MOST = (1 << 63) - 1

FILES = """\
Files are Parquet, CSV, TSV or Arrow IPC (a file, also called Feather, or a stream), as their names tell: .parquet .pq,
.csv .tsv (also .gz .bz2 .zst .lz4), .arrow .feather .ipc, .arrows. "-" is standard input or output. A build may be a
.prejoin file that `prejoin prepare` made.

Exit status: 0 done, 1 an error, 2 wrong usage, 130 stopped by Ctrl-C. An output file appears when it is complete, and
after an error not at all."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command and end the process with its exit status."""
    signal.signal(signal.SIGTERM, _end)
    # A standard stream that was closed (`>&-`) is None. Text for None would go to the other stream.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        status = _run(argv)
        if sys.stdout:
            sys.stdout.flush()
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 128 + getattr(signal, "SIGPIPE", 13)
    sys.exit(status)


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _run(argv: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["demo"]:
        # It has options of its own.
        demo.main(arguments[1:])
        return 0
    options = _parser().parse_args(arguments)
    try:
        prints = options.run in (_lookup, _inspect) or getattr(options, "explain", False) or options.out == "-"
        if prints and sys.stdout is None:
            raise FileError("standard output is closed")
        return int(options.run(options) or 0)
    except _UsageError as error:
        options.parser.print_usage(sys.stderr)
        print(f"{options.parser.prog}: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except (FileError, prejoin.PrejoinError, pa.ArrowException, MemoryError, OSError) as error:
        name = getattr(error, "filename", None)
        text = f"{name}: {one_line(error)}" if name and isinstance(error, OSError) else str(error).strip()
        print(f"{options.parser.prog}: error: {text or one_line(error)}", file=sys.stderr)
        return 1


class _UsageError(Exception):
    """Options that do not go together."""


# ---- options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prejoin",
        description=prejoin.__doc__,
        epilog=FILES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"prejoin {prejoin.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int | None], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=text, description=text, epilog=FILES, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        made.set_defaults(run=run, parser=made)
        return made

    join = command("join", _join, "Join probe files, however large, to a build that is held in memory.")
    _add_build(join, nargs="+")
    join.add_argument("--probe", nargs="+", required=True, metavar="FILE", help="files or globs, read as one stream")
    join.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    join.add_argument("--how", choices=HOWS, default="inner", help="left keeps probe rows, right build rows (inner)")
    join.add_argument("--where", metavar="SQL", help="a condition on matched pairs, as in 'probe.ts >= build.since'")
    join.add_argument(
        "--select",
        metavar="COLUMNS",
        help="output columns: names of the output, build.x or probe.y, NEW=NAME to rename",
    )
    join.add_argument("--suffix", default="_right", help="appended to build columns whose name is taken (_right)")
    join.add_argument("--limit", type=_number(0, MOST), metavar="N", help="largest number of output rows")
    join.add_argument(
        "--validate",
        choices=("m:m", "1:1", "1:m", "m:1"),
        help="m:1 refuses a build that repeats keys, 1:m such a probe",
    )
    join.add_argument(
        "--batch-size", type=_number(1, (1 << 31) - 1), default=1 << 16, metavar="N", help="rows read at once (65536)"
    )
    join.add_argument("--probe-format", choices=FORMATS, help="format of the probe files")
    join.add_argument("--out-format", choices=FORMATS, help="format of the output")
    join.add_argument("--explain", action="store_true", help="say what would be done, and do not do it")
    _add_reading(join)

    lookup = command("lookup", _lookup, "Print the rows of some keys.")
    _add_build(lookup, action="append")
    lookup.add_argument("key", nargs="*", metavar="KEY", help="a key; for several key columns a,b as in a CSV line")
    lookup.add_argument(
        "--keys", metavar="FILE", help="more keys: a table that holds the key columns, or (.txt, -) a key a line"
    )
    lookup.add_argument("--keys-format", choices=(*FORMATS, "lines"), help="format of the file of keys")
    lookup.add_argument("--columns", metavar="COLUMNS", help="columns to print, all by default")
    _add_reading(lookup, output=("table", "csv", "json"))

    prepare = command("prepare", _prepare, "Prepare a build and save it, to be opened in no time by any process.")
    _add_build(prepare, nargs="+")
    prepare.add_argument("--out", required=True, metavar="FILE", help="the .prejoin file to write")
    prepare.add_argument(
        "--mode",
        type=_mode,
        default=0o600,
        metavar="BITS",
        help="its permissions, octal (600: yours alone; 644: all read)",
    )
    _add_reading(prepare)

    inspect = command("inspect", _inspect, "Say what a .prejoin file holds.")
    inspect.add_argument("file", metavar="FILE")
    inspect.add_argument("--json", action="store_true", help="as one JSON object")

    commands.add_parser("demo", help="join a year of real flights to four tables (needs prejoin[demo])")
    return parser


def _add_build(parser: argparse.ArgumentParser, **how_many: Any) -> None:
    parser.add_argument("--build", required=True, metavar="FILE", help="files or globs, or a .prejoin file", **how_many)
    parser.add_argument(
        "--on", action="append", metavar="KEYS", help="key columns: a,b or PROBE=BUILD; a .prejoin file knows its own"
    )
    parser.add_argument(
        "--keep", choices=("all", "first", "last"), default="all", help="which build rows of a key (all)"
    )
    parser.add_argument("--null-equal", action="store_true", help="null keys match null keys")
    parser.add_argument("--memory-limit", type=_size, metavar="SIZE", help="what the build may take, as in 2GiB")
    parser.add_argument("--build-format", choices=FORMATS, help="format of the build files")


def _add_reading(parser: argparse.ArgumentParser, output: Sequence[str] = ()) -> None:
    if output:
        parser.add_argument(
            "--format", choices=output, default=output[0], dest="printed", help=f"how rows are printed ({output[0]})"
        )
        parser.set_defaults(format=None)
    else:
        parser.add_argument("--format", choices=FORMATS, help="format of all files whose own is not given")
    parser.add_argument("--csv-type", action="append", default=[], metavar="NAME=TYPE", help="type of a CSV column")
    parser.add_argument("--csv-null", action="append", default=[], metavar="TEXT", help="null in CSV, beside nothing")
    parser.add_argument(
        "--threads", type=_number(1, 1024), metavar="N", help="threads that decode files; the join takes one"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on the terminal")


def _number(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        # Leading zeros aside, digits are counted first: Python refuses to read thousands of them.
        if not re.fullmatch(r"0*[0-9]{1,19}", text) or not least <= int(text.lstrip("0") or "0") <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return int(text.lstrip("0") or "0")

    return number


def _mode(text: str) -> int:
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no permission bits such as 600 or 644")
    return int(text, 8)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?b?)|b)?", text.strip().lower())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 500MB, 2GiB or 1073741824")
    number, unit, kind = found.groups()
    base = 1000 if kind == "b" else 1024
    scale: int = base ** (" kmgt".index(unit) if unit else 0)
    if len(number) > 19 or (size := int(decimal.Decimal(number) * scale)) > MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {MOST} bytes")
    return size


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _on(options: argparse.Namespace) -> dict[str, str] | None:
    """`--on` as {probe name: build name}."""
    if options.on is None:
        return None
    pairs = [name.partition("=") for names in options.on for name in _names(names)]
    return {probe.strip(): (build if equal else probe).strip() for probe, equal, build in pairs}


def _selection(text: str | None) -> list[str] | dict[str, str] | None:
    """`--select` as `prejoin.join` takes it."""
    if text is None:
        return None
    pairs = [name.partition("=") for name in _names(text)]
    if not any(equal for _, equal, _ in pairs):
        return [name for name, _, _ in pairs]
    # Beside renamed columns, a qualified one keeps its own name as well.
    return {
        (new if equal else new.split(".", 1)[-1]).strip(): (name if equal else new).strip()
        for new, equal, name in pairs
    }


def _csv(options: argparse.Namespace) -> Csv:
    types: dict[str, pa.DataType] = {}
    for given in options.csv_type:
        name, _, alias = given.rpartition("=")
        try:
            types[name] = pa.type_for_alias(alias.strip())
        except ValueError:
            raise _UsageError(f"--csv-type {given}: {alias!r} is no type such as int64, string or date32") from None
    return Csv(types, ("", *options.csv_null))


# ---- commands


def _open_build(options: argparse.Namespace) -> prejoin.PreparedBuild:
    """The build, prepared now or saved before."""
    if options.threads:
        pa.set_cpu_count(options.threads)
    paths, pool = expand(options.build), prejoin.MemoryPool(options.memory_limit)
    on = _on(options)
    if any(_is_saved(path) for path in paths):
        if len(paths) > 1:
            raise _UsageError("--build takes one .prejoin file, and nothing beside it")
        build = prejoin.open(paths[0], pool=pool)
        if on and list(on.values()) != build.keys:
            raise FileError(f"{paths[0]}: is prepared on {','.join(build.keys)}, not on {','.join(on.values())}")
        if options.null_equal and not all(build.null_equal):
            raise FileError(f"{paths[0]}: is prepared already, for null keys that match nothing; drop --null-equal")
        if options.keep in ("first", "last") and not build.is_unique:
            raise FileError(
                f"{paths[0]}: is prepared already, with several rows of some keys; drop --keep {options.keep}"
            )
        return build
    if not on:
        raise _UsageError("--on is needed, unless the build is a .prejoin file")
    format = options.build_format or options.format
    rows = read_whole([input_file(path, format) for path in paths], _csv(options))
    _check_keys("build", rows.schema, on.values())
    return prejoin.prepare(rows, list(on.values()), keep=options.keep, null_equal=options.null_equal, pool=pool)


def _is_saved(path: str) -> bool:
    """Whether a file is a saved build, by its name or its first bytes."""
    if path.endswith(".prejoin"):
        return True
    try:
        # A pipe is read once, so not here.
        with open(path, "rb") if os.path.isfile(path) else io.BytesIO() as file:
            return file.read(8) == b"\x89PJOIN\r\n"
    except OSError:
        return False


def _check_keys(side: str, schema: pa.Schema, keys: Iterable[str]) -> None:
    for name in keys:
        if schema.names.count(name) > 1:
            raise FileError(f"the {side} has more than one column {name!r}, a key; rename all but one in the file")


def _join(options: argparse.Namespace) -> None:
    if [*options.build, *options.probe].count("-") > 1:
        raise _UsageError("standard input is one file: give one of --build and --probe another name")
    build = _open_build(options)
    on = _on(options) or {key: key for key in build.keys}
    files = [input_file(path, options.probe_format or options.format) for path in expand(options.probe)]
    probe = Tables(files, options.batch_size, _csv(options))
    _check_keys("probe", probe.schema, on)
    choices: dict[str, Any] = {
        "on": on,
        "how": options.how,
        "where": options.where,
        "select": _selection(options.select),
        "suffix": options.suffix,
        "limit": options.limit,
        "validate": options.validate,
        "batch_size": options.batch_size,
    }
    if options.explain:
        print("\n".join(_explain(build, probe, on, choices)))
        return
    progress = Progress(sys.stderr, probe.num_rows, not options.quiet)
    columns = _needed(probe.schema, build.schema, choices)
    try:
        rows = prejoin.join(probe.reader(columns, progress.count_read), build, **choices)
        with Output(options.out, options.out_format or options.format, rows.schema) as out:
            for batch in rows:
                out.write(batch)
                progress.count_written(batch.num_rows)
        progress.close(f"{progress.read:,} probe rows read, {out.rows:,} rows written to {options.out}")
    finally:
        progress.close()


def _needed(probe: pa.Schema, build: pa.Schema, choices: dict[str, Any]) -> list[str] | None:
    """The probe columns that are worth reading; None for all. A column more than needed does no harm."""
    select, where = choices["select"], choices["where"] or ""
    if choices["how"] in ("build_semi", "build_anti"):
        select = []
    # A position in the condition, as in probe[1], is one of all columns.
    if select is None or len(set(probe.names)) != len(probe.names) or "[" in where:
        return None
    selected = set(select.values() if isinstance(select, dict) else select)
    # A name that the build has too decides about suffixes.
    named = {*choices["on"], *build.names, *selected, *(name.removeprefix("probe.") for name in selected)}
    return [name for name in probe.names if name in named or name.replace('"', '""') in where]


def _explain(build: prejoin.PreparedBuild, probe: Tables, on: dict[str, str], choices: dict[str, Any]) -> Iterator[str]:
    output = prejoin.join(pa.RecordBatchReader.from_batches(probe.schema, iter(())), build, **choices).schema
    pairs = [(key, next(name for name, other in on.items() if other == key)) for key in build.keys]
    join = prejoin.HashJoin(
        build.schema,
        probe.schema,
        on=pairs,
        how=choices["how"],
        null_equal=build.null_equal,
        where=choices["where"],
        limit=choices["limit"],
        validate=choices["validate"],
    )
    yield join.with_prepared_build(build).explain("tree")
    yield f"build: {build!r}"
    rows = "an unknown number of" if probe.num_rows is None else f"{probe.num_rows:,}"
    read = _needed(probe.schema, build.schema, choices)
    yield f"probe: {rows} rows, reading {', '.join(probe.schema.names if read is None else read)}"
    yield f"output: {', '.join(f'{column.name}: {column.type}' for column in output)}"


def _lookup(options: argparse.Namespace) -> int:
    if [*options.build, options.keys].count("-") > 1:
        raise _UsageError("standard input is one file: give one of --build and --keys another name")
    if not options.key and options.keys is None:
        raise _UsageError("give keys, or a file of them by --keys")
    build = _open_build(options)
    wanted = _names(options.columns) if options.columns is not None else build.schema.names
    rows = build.to_table()
    for name in wanted:
        if rows.schema.names.count(name) != 1:
            raise FileError(f"the build has no column {name!r}; its columns are {', '.join(rows.schema.names)}")
    rows = rows.select(wanted) if options.columns is not None else rows
    found: list[pa.Table] = []
    missing = 0
    for keys in _keys(options, build):
        probe, matches = build.probe_indices(keys, "left")
        for row in probe.filter(matches.is_null()).to_pylist():
            missing += 1
            key = [column[row] for column in keys.values()]
            print(f"{options.parser.prog}: no row for {','.join(map(_plain_text, key))}", file=sys.stderr)
        found.append(_take(rows, matches.drop_null()))
    table = pa.concat_tables(found)
    _print_rows(table, options.printed)
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


def _keys(options: argparse.Namespace, build: prejoin.PreparedBuild) -> Iterator[dict[str, list[Any]]]:
    """The keys that are asked for, as columns of values."""
    if options.key:
        yield _typed_keys(options.key, build)
    if options.keys is None:
        return
    format = options.keys_format
    if format == "lines" or (format is None and (options.keys == "-" or options.keys.endswith(".txt"))):
        try:
            stream = sys.stdin if options.keys == "-" else open(options.keys, encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise FileError(f"{options.keys}: {one_line(error)}") from None
        with stream:
            yield _typed_keys([line.rstrip("\r\n") for line in stream], build)
        return
    file = input_file(options.keys, format)
    types = {name: build.schema.field(name).type for name in build.keys}
    texts = {name: _csv_type(data_type) for name, data_type in types.items()}
    known = Csv({**texts, **_csv(options).types}, _csv(options).nulls)
    rows = read_whole([file], known)
    table = rows if isinstance(rows, pa.Table) else rows.read_all()
    names = build.keys if set(build.keys) <= set(table.column_names) else table.column_names
    if len(names) != len(build.keys):
        raise FileError(
            f"{file.name}: has columns {', '.join(table.column_names)}, not the keys {', '.join(build.keys)}"
        )
    yield {key: table[name].to_pylist() for key, name in zip(build.keys, names, strict=True)}


def _csv_type(data_type: pa.DataType) -> pa.DataType:
    """The type without its dictionary or views, which no reader of text makes."""
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    if pa.types.is_string_view(data_type):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(data_type) else data_type


def _typed_keys(texts: Sequence[str], build: prejoin.PreparedBuild) -> dict[str, list[Any]]:
    """Keys given as text, in the types of the key columns."""
    keys = build.keys
    rows = [[text] for text in texts] if len(keys) == 1 else list(csv.reader(texts))
    for text, row in zip(texts, rows, strict=True):
        if len(row) != len(keys):
            raise FileError(f"key {text!r} has {len(row)} parts, the build is keyed by {','.join(keys)}")
    columns: dict[str, Any] = {}
    for i, name in enumerate(keys):
        data_type = build.schema.field(name).type
        columns[name] = [_value(row[i], name, data_type) for row in rows]
        if pa.types.is_time(data_type) or pa.types.is_duration(data_type):
            columns[name] = pa.array(columns[name], data_type)
    return columns


def _value(text: str, name: str, data_type: pa.DataType) -> Any:
    """A key's value; times and durations as the number that their type counts."""
    data_type = _csv_type(data_type)
    form = ""
    try:
        if pa.types.is_integer(data_type):
            return _plain_number(text, int)
        if pa.types.is_floating(data_type):
            return _plain_number(text, float)
        if pa.types.is_decimal(data_type):
            return _plain_number(text, decimal.Decimal)
        if pa.types.is_duration(data_type):
            form = f" (write a whole number of {data_type.unit})"
            return pa.scalar(_plain_number(text, int), data_type).value
        if pa.types.is_time(data_type):
            form = f" (as in 12:30:00, with parts of a second down to {data_type.unit})"
            return _time(text, data_type.unit)
        if (
            pa.types.is_binary(data_type)
            or pa.types.is_large_binary(data_type)
            or pa.types.is_fixed_size_binary(data_type)
        ):
            form = " (write hexadecimal digits, as in 01ff)"
            return bytes.fromhex(text)
        if getattr(data_type, "tz", None):
            form = " (with its zone, as in 2024-02-29 12:30:00Z)"
        return pa.scalar(text).cast(data_type).as_py()
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise FileError(f"{text!r} is no value of key {name!r}, which has type {data_type}{form}") from error


def _plain_number(text: str, kind: Callable[[str], Any]) -> Any:
    if "_" in text:
        # Python's 1_000.
        raise ValueError(text)
    return kind(text)


def _time(text: str, unit: str) -> int:
    """An ISO time of day as its number of units."""
    found = re.fullmatch(r"T?([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]{1,9}))?)?", text.strip())
    if not found:
        raise ValueError(text)
    hours, minutes, seconds, fraction = (part or "0" for part in found.groups())
    nanoseconds = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**9 + int(fraction.ljust(9, "0"))
    count, rest = divmod(nanoseconds, {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit])
    if rest:
        raise ValueError(text)
    return count


def _prepare(options: argparse.Namespace) -> None:
    if options.out == "-":
        raise _UsageError("a .prejoin file is opened by its name: --out takes no standard output")
    build = _open_build(options)
    build.save(options.out, mode=options.mode)
    if not options.quiet and sys.stderr.isatty():
        print(f"{build.num_rows:,} rows, {build.num_keys:,} keys written to {options.out}", file=sys.stderr)


def _inspect(options: argparse.Namespace) -> None:
    told = prejoin.inspect(options.file)
    if options.json:
        print(json.dumps(told, default=_plain))
        return
    width = max(len(name) for name in told)
    for name, value in told.items():
        print(f"{name:<{width}}  {_told(value)}")


def _told(value: Any) -> str:
    if isinstance(value, pa.Schema):
        return ", ".join(f"{column.name}: {column.type}" for column in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_told(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_told, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# ---- printing


def _print_rows(table: pa.Table, format: str) -> None:
    if format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(table.column_names)
        writer.writerows([["" if value is None else _plain_text(value) for value in row] for row in _rows(table)])
        return
    if format == "json":
        for row in _rows(table):
            print(_json(dict(zip(table.column_names, row, strict=True))))
        return
    numbers = [pa.types.is_integer(c.type) or pa.types.is_floating(c.type) for c in table.schema]
    cells = [[_cell(name) for name in table.column_names]]
    cells += [["null" if value is None else _cell(_plain_text(value)) for value in row] for row in _rows(table)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        aligned = zip(line, widths, numbers, strict=True)
        print("  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in aligned).rstrip())


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    for batch in table.to_batches(max_chunksize=4096):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _json(value: Any) -> str:
    return json.dumps(_finite(value), default=_plain, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    """The value with None for the numbers that JSON does not know: NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    """A value that JSON has no form for."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, pa.Schema):
        return {column.name: str(column.type) for column in value}
    return str(value)


def _plain_text(value: Any) -> str:
    if isinstance(value, dict | list):
        return _json(value)
    if isinstance(value, str | int | float):
        return str(value)
    return str(_plain(value))


def _cell(text: str) -> str:
    """Text on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


if __name__ == "__main__":
    main()
