"""The options of every command."""

from __future__ import annotations

import argparse
import decimal
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import prejoin
from prejoin.cli.of_build import add_of_build
from prejoin.files.formats import FORMATS

HOWS = ("inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti")

# The largest number that every part of the way takes.
MOST = (1 << 63) - 1

FILES = """\
Files are Parquet, CSV, TSV or Arrow IPC (a file, also called Feather, or a stream), known by their names: .parquet .pq,
.csv .tsv (also .gz .bz2 .zst .lz4), .arrow .feather .ipc, .arrows. "-" is standard input or output. Pipes are known by
their first bytes, also compressed. A build may be a .prejoin file that `prejoin prepare` made.

CSV columns are whole numbers, dates, times or text, so that no two different texts become one key; columns that a
condition or typed output needs may be floating-point or truth values too, and --csv-type says otherwise.

Names with commas, equals signs or blanks at their ends are written in double quotes: --on '"a,b"'. A name that a file
repeats is followed by its number here: price:1, price:2.

Exit status: 0 done, 1 an error, 2 wrong usage, 130 stopped by Ctrl-C. An output file appears when it is complete, and
after an error not at all."""


def parser(commands_by_name: Mapping[str, Callable[[argparse.Namespace], int | None]]) -> argparse.ArgumentParser:
    """The parser; each command is run by the function of its name."""
    parser = argparse.ArgumentParser(
        prog="prejoin",
        description=prejoin.__doc__,
        epilog=FILES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"prejoin {prejoin.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=text, description=text, epilog=FILES, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        made.set_defaults(run=commands_by_name[name], parser=made)
        return made

    join = command("join", "Join probe files, however large, to builds that are held in memory.")
    join.set_defaults(builds=None)
    _add_builds(join)
    join.add_argument("--probe", nargs="+", required=True, metavar="FILE", help="files or globs, read as one stream")
    join.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    add_of_build(join, "--how", choices=HOWS, help="left keeps probe rows, right build rows (inner)")
    add_of_build(join, "--where", metavar="SQL", help="a condition on matched pairs, as in 'probe.ts >= build.since'")
    add_of_build(
        join,
        "--select",
        metavar="COLUMNS",
        help="output columns: names of the output, build.x or probe.y, probe.* for all of a side, NEW=NAME to rename; "
        "behind one of several builds the columns that it adds, before the first one those of the output",
    )
    add_of_build(join, "--suffix", help="appended to build columns whose name is taken (_right)")
    join.add_argument("--limit", type=_number(0, MOST), metavar="N", help="largest number of output rows")
    add_of_build(
        join,
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

    lookup = command("lookup", "Print the rows of some keys.")
    _add_build(lookup, action="append")
    lookup.add_argument("key", nargs="*", metavar="KEY", help="a key; for several key columns a,b as in a CSV line")
    lookup.add_argument(
        "--keys",
        metavar="FILE",
        help="more keys: a table that holds the key columns, or a key a line (.txt, standard input, pipes)",
    )
    lookup.add_argument("--keys-format", choices=(*FORMATS, "lines"), help="format of the file of keys")
    lookup.add_argument("--columns", metavar="COLUMNS", help="columns to print, all by default")
    _add_reading(lookup, output=("table", "csv", "json"))

    prepare = command("prepare", "Prepare a build and save it, to be opened in no time by any process.")
    _add_build(prepare, nargs="+")
    prepare.add_argument("--out", required=True, metavar="FILE", help="the .prejoin file to write")
    prepare.add_argument(
        "--mode",
        type=_mode,
        metavar="BITS",
        help="its permissions, octal (600: yours alone, as for a new file; 644: all read)",
    )
    _add_reading(prepare)

    inspect = command("inspect", "Say what a .prejoin file holds.")
    inspect.add_argument("file", metavar="FILE")
    inspect.add_argument("--json", action="store_true", help="as one JSON object")

    commands.add_parser("demo", help="join a year of real flights to four tables (needs prejoin[demo])")
    return parser


ON = "key columns: a,b or PROBE=BUILD; a .prejoin file knows its own"
KEEP = "which build rows of a key (all)"
NULL_EQUAL = "null keys match null keys"
BUILD_FORMAT = "format of the build files"


def _add_build(parser: argparse.ArgumentParser, **how_many: Any) -> None:
    parser.add_argument("--build", required=True, metavar="FILE", help="files or globs, or a .prejoin file", **how_many)
    parser.add_argument("--on", action="append", metavar="KEYS", help=ON)
    parser.add_argument("--keep", choices=("all", "first", "last"), default="all", help=KEEP)
    parser.add_argument("--null-equal", action="store_true", help=NULL_EQUAL)
    parser.add_argument("--build-format", choices=FORMATS, help=BUILD_FORMAT)
    _add_limit(parser)


def _add_builds(parser: argparse.ArgumentParser) -> None:
    add_of_build(
        parser,
        "--build",
        nargs="+",
        required=True,
        metavar="FILE",
        help="files or globs, or a .prejoin file; once for each build, followed by its --on, --how, --where, --suffix, "
        "--select, --validate, --keep, --null-equal and --build-format",
    )
    add_of_build(parser, "--on", metavar="KEYS", help=ON)
    add_of_build(parser, "--keep", choices=("all", "first", "last"), help=KEEP)
    add_of_build(parser, "--null-equal", nargs=0, help=NULL_EQUAL)
    add_of_build(parser, "--build-format", choices=FORMATS, help=BUILD_FORMAT)
    _add_limit(parser)


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory-limit", type=_size, metavar="SIZE", help="what the builds may take, as in 2GiB")


def _add_reading(parser: argparse.ArgumentParser, output: Sequence[str] = ()) -> None:
    if output:
        parser.add_argument(
            "--format", choices=output, default=output[0], dest="printed", help=f"how rows are printed ({output[0]})"
        )
        parser.set_defaults(format=None)
    else:
        parser.add_argument("--format", choices=FORMATS, help="format of all files whose own is not given")
    parser.add_argument(
        "--csv-type", action="append", default=[], metavar="NAME=TYPE", help="type of a CSV column, as zip=string"
    )
    parser.add_argument(
        "--csv-delimiter", type=_delimiter, default=",", metavar="CHAR", help="what separates CSV columns (a comma)"
    )
    parser.add_argument(
        "--csv-null",
        action="append",
        default=[],
        metavar="TEXT",
        help="a word for null in CSV, as NA; an empty field is null anyway",
    )
    parser.add_argument(
        "--threads", type=_number(1, 1024), metavar="N", help="threads that decode files; the join takes one"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on the terminal")


def _number(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        # Leading zeros aside, digits are counted first: Python refuses to read thousands of them.
        if not re.fullmatch(r"0*[0-9]{1,19}", text) or not least <= int(text.lstrip("0") or "0") <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text.lstrip("0") or "0")

    return number


def _delimiter(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text in '"\r\n\0' or text.isalnum():
        raise argparse.ArgumentTypeError(f"{text!r} is not one character such as ; or |")
    return text


def _mode(text: str) -> int:
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a mode such as 600 or 644")
    return int(text, 8)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?b?)|b)?", text.strip().lower())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500MB, 2GiB or 1073741824")
    number, unit, kind = found.groups()
    base = 1000 if kind == "b" else 1024
    scale: int = base ** (" kmgt".index(unit) if unit else 0)
    if len(number) > 19 or (size := int(decimal.Decimal(number) * scale)) > MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {MOST} bytes")
    return size
