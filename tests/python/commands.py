"""Running the command line in this process or in its own, and files for it."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from prejoin import cli

USERS = pa.table({"id": [3, 1, 2, 2], "name": ["cy", "ada", "bob", None], "score": [0.5, None, 2.5, -1.0]})
EVENTS = pa.table(
    {"id": [2, 9, 1, None, 2], "at": ["x", "y, z", 'quo"te', "", "line\nbreak"], "score": [1, 2, 3, 4, 5]}
)
FORMATS = ("parquet", "csv", "tsv", "arrow", "arrows")


def write(table: pa.Table, path: Path | str, format: str | None = None) -> str:
    format = format or Path(path).suffix[1:]
    if format == "parquet":
        pa.parquet.write_table(table, path)
    elif format in ("csv", "tsv"):
        options = pa.csv.WriteOptions(delimiter="\t" if format == "tsv" else ",")
        pa.csv.write_csv(table, path, options)
    else:
        new = pa.ipc.new_file if format == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    return str(path)


def read(source: Any, format: str) -> pa.Table:
    if isinstance(source, bytes):
        source = pa.BufferReader(source)
    if format == "parquet":
        return pa.parquet.read_table(source)
    if format in ("csv", "tsv"):
        parse = pa.csv.ParseOptions(delimiter="\t" if format == "tsv" else ",", newlines_in_values=True)
        convert = pa.csv.ConvertOptions(null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False)
        return pa.csv.read_csv(source, parse_options=parse, convert_options=convert)
    return (pa.ipc.open_file if format == "arrow" else pa.ipc.open_stream)(source).read_all()


class Stream(io.BytesIO):
    """Standard output that keeps its bytes when it is closed."""

    def close(self) -> None:
        self.flush()


@contextlib.contextmanager
def within(cwd: Path | None) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(cwd or before)
    try:
        yield
    finally:
        os.chdir(before)


def run(*arguments: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command in this process, which is quicker by the start of another one."""
    out, errors = Stream(), Stream()
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)))
    sys.stdout, sys.stderr = io.TextIOWrapper(out, "utf-8"), io.TextIOWrapper(errors, "utf-8")
    try:
        with within(cwd):
            status = cli.run([*map(str, arguments)])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = before
    return subprocess.CompletedProcess([*map(str, arguments)], status, out.getvalue(), errors.getvalue())


def ran(*arguments: object, stdin: bytes = b"", cwd: Path | None = None) -> bytes:
    """Run a command that has to end well and to print nothing on standard error."""
    done = run(*arguments, stdin=stdin, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return done.stdout


def refused(*arguments: object, stdin: bytes = b"", cwd: Path | None = None) -> str:
    """The error of a command: one line, status 1, and nothing on standard output."""
    done = run(*arguments, stdin=stdin, cwd=cwd)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (1, b"", 1), (done.stdout, lines)
    start, _, text = lines[0].partition(": error: ")
    assert start == f"prejoin {arguments[0]}"
    return text


def process(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process, where that matters."""
    command = [sys.executable, "-m", "prejoin", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)


@contextlib.contextmanager
def started(*arguments: object, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "prejoin", *map(str, arguments)]
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


def rows_of(text: bytes, delimiter: str = ",") -> list[list[str]]:
    """The rows of CSV as Python reads them."""
    return list(csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter))


def put(directory: Path, **contents: str | bytes) -> Path:
    """Write CSV files: `name="content"`."""
    for name, content in contents.items():
        (directory / f"{name}.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return directory


def joined(directory: Path, *arguments: object, stdin: bytes = b"") -> list[list[str]]:
    """The rows of `b.csv` joined to `p.csv` on `id`, or as the arguments say."""
    base = ["join", "--probe", "p.csv", "--out", "-"]
    base += [] if "--build" in arguments else ["--build", "b.csv"]
    on = [] if "--on" in arguments else ["--on", "id"]
    return rows_of(ran(*base, *on, *arguments, stdin=stdin, cwd=directory))
