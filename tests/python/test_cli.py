"""The command line as its users meet it: processes, pipes, a terminal, signals."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import gzip
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import prejoin
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


def run(*arguments: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "prejoin", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, timeout=60, check=False)


def ran(*arguments: object, stdin: bytes = b"", cwd: Path | None = None) -> bytes:
    done = run(*arguments, stdin=stdin, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return done.stdout


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write(USERS, tmp_path / "users.parquet")
    write(EVENTS, tmp_path / "events.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A join that takes seconds: 10,000,000 probe rows."""
    tmp_path = tmp_path_factory.mktemp("large")
    keys = list(range(200_000))
    write(pa.table({"id": keys, "v": [f"value {key}" for key in keys]}), tmp_path / "build.parquet")
    table = pa.table({"id": keys * 5, "w": keys * 5})
    with pa.parquet.ParquetWriter(tmp_path / "probe.parquet", table.schema) as writer:
        for _ in range(10):
            writer.write_table(table)
    return tmp_path


# ---- formats


@pytest.mark.parametrize("out", FORMATS)
@pytest.mark.parametrize("probe", FORMATS)
def test_every_pair_of_formats(tmp_path: Path, probe: str, out: str) -> None:
    """Whatever the files are, the rows are those of `prejoin.join`, in its order; the build's format takes turns."""
    build = FORMATS[(FORMATS.index(probe) + FORMATS.index(out)) % len(FORMATS)]
    users, events = write(USERS, tmp_path / f"users.{build}"), write(EVENTS, tmp_path / f"events.{probe}")
    path = tmp_path / f"joined.{out}"
    options = ["join", "--build", users, "--probe", events, "--on", "id", "--how", "full", "--out", str(path)]
    assert cli.run([*options, "--batch-size", "2", "--quiet"]) == 0
    want = prejoin.join(EVENTS, USERS, on="id", how="full")
    assert read(path, out).cast(want.schema).to_pylist() == want.to_pylist()
    assert sorted(os.listdir(tmp_path)) == sorted({Path(users).name, Path(events).name, path.name})


@pytest.mark.parametrize("format", FORMATS)
def test_pipes_of_every_format(files: Path, format: str) -> None:
    """Standard input tells its format by its first bytes, but for TSV."""
    events = Path(write(EVENTS, files / "piped", format)).read_bytes()
    said = ["--probe-format", format] if format == "tsv" else []
    arguments = ["join", "--build", files / "users.parquet", "--probe", "-", "--on", "id", "--out", "-"]
    joined = ran(*arguments, *said, "--out-format", format, stdin=events)
    want = prejoin.join(EVENTS, USERS, on="id")
    assert read(joined, format).cast(want.schema).to_pylist() == want.to_pylist()
    other = ran("join", "--build", "-", "--probe", files / "events.parquet", "--on", "id", "--out", "-",
                *(["--build-format", format] if format == "tsv" else []),
                stdin=Path(write(USERS, files / "users", format)).read_bytes())  # fmt: skip
    assert read(other, "csv").num_rows == want.num_rows


def test_csv_types_nulls_and_compression(files: Path) -> None:
    text = "id,when,code\n02,2024-02-29,NA\n1,2023-01-01,\n"
    (files / "codes.csv.gz").write_bytes(gzip.compress(text.encode()))
    write(pa.table({"id": ["02", "1"]}), files / "build.csv")
    out = files / "out.csv.gz"
    ran("join", "--build", files / "build.csv", "--probe", files / "codes.csv.gz", "--on", "id", "--out", out,
        "--csv-type", "id=string", "--csv-null", "NA")  # fmt: skip
    assert gzip.decompress(out.read_bytes()).decode() == '"id","when","code"\n"02",2024-02-29,\n"1",2023-01-01,\n'
    guessed = run("join", "--build", files / "users.parquet", "--probe", files / "codes.csv.gz", "--on", "code=id",
                  "--out", "-")  # fmt: skip
    assert guessed.returncode == 1
    assert b'build column "id" is Int64, probe column "code" is Utf8; cast one of them' in guessed.stderr


# ---- what a join may ask for


def test_options_are_those_of_the_function(files: Path) -> None:
    base = ["join", "--build", files / "users.parquet", "--probe", files / "events.parquet", "--out", "-",
            "--out-format", "arrows"]  # fmt: skip
    cases: list[tuple[list[str], dict[str, Any]]] = [
        (["--on", "id", "--how", "left", "--suffix", "_b"], {"on": "id", "how": "left", "suffix": "_b"}),
        (["--on", "id=id", "--select", "name, build.score"], {"on": "id", "select": ["name", "build.score"]}),
        (["--on", "id", "--select", "who=name,probe.score"], {"on": "id", "select": {"who": "name", "score": "score"}}),
        (["--on", "id", "--how", "build_anti"], {"on": "id", "how": "build_anti"}),
        (["--on", "id", "--limit", "1"], {"on": "id", "limit": 1}),
        (["--on", "id", "--how", "semi", "--validate", "m:m"], {"on": "id", "how": "semi"}),
    ]
    for arguments, options in cases:
        want = prejoin.join(EVENTS, USERS, **options)
        assert read(ran(*base, *arguments), "arrows").equals(want), arguments
    kept = prejoin.join(EVENTS, prejoin.prepare(USERS, "id", keep="last", null_equal=True), how="anti")
    assert read(ran(*base, "--on", "id", "--keep", "last", "--null-equal", "--how", "anti"), "arrows").equals(kept)
    for validate, side in (("m:1", "a build with one row per key"), ("1:m", "probe rows with different keys")):
        refused = run(*base, "--on", "id", "--validate", validate)
        assert refused.returncode == 1
        assert side in refused.stderr.decode()


def test_globs_and_several_files(tmp_path: Path) -> None:
    for i in range(3):
        write(EVENTS.slice(i, 1), tmp_path / f"part-{i}.parquet")
        write(USERS.slice(i, 2), tmp_path / f"users-{i}.csv")
    arguments = ["--on", "id", "--out", "-", "--out-format", "arrows"]
    joined = ran("join", "--build", "users-0.csv", "users-2.csv", "--probe", "part-*.parquet", *arguments, cwd=tmp_path)
    assert read(joined, "arrows")["name"].to_pylist() == ["bob", None, "ada"]
    # A file whose name looks like a pattern is that file.
    write(EVENTS, tmp_path / "[0].parquet")
    named = ran("join", "--build", "users-?.csv", "--probe", "[0].parquet", *arguments, cwd=tmp_path)
    assert read(named, "arrows").num_rows == 8
    write(EVENTS.drop_columns(["at"]), tmp_path / "part-3.parquet")
    mixed = run("join", "--build", "users-0.csv", "--probe", "part-*.parquet", *arguments, cwd=tmp_path)
    assert mixed.returncode == 1
    assert b"part-3.parquet: has columns id, score, not id, at, score as in part-0.parquet" in mixed.stderr


def test_explain_reads_no_more_than_needed(files: Path) -> None:
    told = ran("join", "--build", files / "users.parquet", "--probe", files / "events.parquet", "--on", "id",
               "--select", "name", "--out", files / "out.csv", "--explain").decode()  # fmt: skip
    assert "on=[(build.id, probe.id)]" in told
    assert "prepared_build=4 rows" in told
    assert "probe: 5 rows, reading id, score\n" in told
    assert told.endswith("output: name: string\n")
    assert not (files / "out.csv").exists()


def test_memory_limit(large: Path, tmp_path: Path) -> None:
    """The limit is told in the error, and a limit that suffices is not passed by the process either."""
    arguments = ["join", "--build", large / "build.parquet", "--probe", large / "probe.parquet", "--on", "id"]
    refused = run(*arguments, "--out", tmp_path / "out.parquet", "--memory-limit", "1MiB")
    assert refused.returncode == 1
    assert b"of 1048576 bytes are in use" in refused.stderr
    assert not list(tmp_path.iterdir())
    # Its output alone would be 280 MB in memory.
    code = "import resource; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    script = f"import subprocess, sys; subprocess.run(sys.argv[1:], check=True)\n{code}"
    command = [sys.executable, "-c", script, sys.executable, "-m", "prejoin", *map(str, arguments), "--out", os.devnull]
    command += ["--out-format", "arrows", "--memory-limit", "20 MB"]
    peak = int(subprocess.run(command, capture_output=True, check=True, timeout=100).stdout)
    assert peak < 230 << 10, f"{peak} KiB"


# ---- lookup


def test_lookup_prints_rows(files: Path) -> None:
    base = ["lookup", "--build", files / "users.parquet", "--on", "id"]
    assert ran(*base, "2", "1") == (b"id  name  score\n 2  bob     2.5\n 2  null   -1.0\n 1  ada    null\n")
    some = run(*base, "9", "3", "--format", "csv", "--columns", "name,score")
    assert (some.returncode, some.stdout, some.stderr) == (
        0,
        b"name,score\ncy,0.5\n",
        b"prejoin lookup: no row for 9\n",
    )
    none = run(*base, "9", "--format", "csv")
    assert (none.returncode, none.stdout) == (1, b"id,name,score\n")
    lines = ran(*base, "--keys", "-", "--format", "json", stdin=b"3\n1\n").decode().splitlines()
    assert [json.loads(line) for line in lines] == [USERS.to_pylist()[0], USERS.to_pylist()[1]]
    (files / "keys.txt").write_text("1\n")
    for keys in (
        "keys.txt",
        write(EVENTS.slice(2, 1), files / "keys.parquet"),
        write(EVENTS.slice(2, 1), files / "k.csv"),
    ):
        assert ran(*base, "--keys", files / keys, "--keep", "first", "--format", "csv") == b"id,name,score\n1,ada,\n"
    wrong = run(*base, "one")
    assert (wrong.returncode, wrong.stdout) == (1, b"")
    assert wrong.stderr == b"prejoin lookup: error: 'one' is no value of key 'id', which has type int64\n"


def test_lookup_of_other_types(tmp_path: Path) -> None:
    table = pa.table({
        "day": pa.array(["2024-02-29"]).cast(pa.date32()),
        "code": pa.array(["a,b"]).dictionary_encode(),
        "at": pa.array([datetime.datetime(2024, 2, 29, 12)], pa.timestamp("ms", "UTC")),
        "raw": pa.array([b"\x01\xff"]),
        "tab": ["a\tb"],
    })  # fmt: skip
    base = ["lookup", "--build", write(table, tmp_path / "t.parquet")]
    assert b"2024-02-29" in ran(*base, "--on", "day,code", '2024-02-29,"a,b"')
    row = json.loads(ran(*base, "--on", "at", "2024-02-29T12:00:00Z", "--format", "json"))
    assert row == {"day": "2024-02-29", "code": "a,b", "at": "2024-02-29T12:00:00+00:00", "raw": "01ff", "tab": "a\tb"}
    assert b"a\\tb" in ran(*base, "--on", "day", "2024-02-29")
    assert b"(with its zone, as in" in run(*base, "--on", "at", "2024-02-29T12:00:00").stderr
    assert b"has 1 parts, the build is keyed by day,code" in run(*base, "--on", "day,code", "2024-02-29").stderr


def test_lookup_in_views(tmp_path: Path) -> None:
    """Columns of views, as polars writes them, alone and in lists; also as keys."""
    table = pa.table({
        "id": [1, 2, 2],
        "s": pa.array(["a", None, "a text too long to stand in its view"], pa.string_view()),
        "b": pa.array([b"\x01", b"\xff", None], pa.binary_view()),
        "l": pa.array([["x"], None, []], pa.list_(pa.string_view())),
    })  # fmt: skip
    base = ["lookup", "--build", write(table, tmp_path / "t.arrow"), "--format", "json"]
    rows = [json.loads(line) for line in ran(*base, "--on", "id", "2", "1").decode().splitlines()]
    assert [row["s"] for row in rows] == [None, "a text too long to stand in its view", "a"]
    assert [row["b"] for row in rows] == ["ff", None, "01"]
    assert [row["l"] for row in rows] == [None, [], ["x"]]
    assert json.loads(ran(*base, "--on", "s,b", "a,01"))["id"] == 1
    keys = write(table.select(["s"]).slice(2).cast(pa.schema({"s": pa.string()})), tmp_path / "keys.csv")
    assert json.loads(ran(*base, "--on", "s", "--keys", keys))["id"] == 2


def test_lookup_reads_keys_strictly(tmp_path: Path) -> None:
    table = pa.table({
        "n": [18, 7],
        "x": [1.5, float("nan")],
        "t": pa.array([3_600_000, 1], pa.time32("ms")),
        "u": pa.array([3_600_000_000_123, 1], pa.time64("ns")),
        "d": pa.array([90, -5], pa.duration("s")),
        "raw": [b"\x01\xff", b"ab"],
        "many": [[float("inf"), 1.0], []],
    })  # fmt: skip
    build = write(table, tmp_path / "t.arrow")

    def found(key: str, *texts: str) -> list[int]:
        lines = ran("lookup", "--build", build, "--on", key, "--format", "json", "--columns", "n", "--", *texts)
        return [json.loads(line)["n"] for line in lines.decode().splitlines()]

    assert found("n", "18", " 7") == [18, 7]
    assert found("t", "01:00", "01:00:00", "00:00:00.001") == [18, 18, 7]
    assert found("u", "01:00:00.000000123") == [18]
    assert found("d", "90", "-5") == [18, 7]
    assert found("raw", "01ff", "6162") == [18, 7]
    assert found("t,raw", "01:00,01FF") == [18]
    for key, text, form in [
        ("n", "1_8", ""),
        ("x", "1_5", ""),
        ("t", "25:00:00", r" \(as in 12:30:00, with parts of a second down to ms\)"),
        ("t", "01:00:00.0001", r" \(as in 12:30:00, with parts of a second down to ms\)"),
        ("d", "00:01:30", r" \(write a whole number of s\)"),
        ("raw", "ab!", r" \(write hexadecimal digits, as in 01ff\)"),
    ]:
        done = run("lookup", "--build", build, "--on", key, text)
        assert (done.returncode, done.stdout) == (1, b"")
        assert re.fullmatch(rf".*is no value of key '{key}', which has type [\w\[\]]+{form}\n", done.stderr.decode())
    missing = run("lookup", "--build", build, "--on", "t", "02:00", "01:00", "--format", "csv", "--columns", "n")
    assert (missing.returncode, missing.stdout) == (0, b"n\n18\n")
    assert missing.stderr == b"prejoin lookup: no row for 02:00:00\n"
    # JSON has no NaN and no infinities.
    lines = ran("lookup", "--build", build, "--on", "n", "18", "7", "--format", "json").decode().splitlines()
    rows = [json.loads(line, parse_constant=lambda text: pytest.fail(text)) for line in lines]
    assert [(row["x"], row["many"]) for row in rows] == [(1.5, [None, 1.0]), (None, [])]


# ---- what goes wrong


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("missing.parquet", None, "no such file"),
        ("empty.parquet", b"", "is empty"),
        ("text.parquet", b"id,name\n1,a\n", "is not Parquet, it begins with b'id,n'"),
        ("parquet.csv", b"PAR1....", "is not CSV, it is Parquet"),
        ("cut.parquet", b"PAR1....", "Parquet"),
        ("cut.arrow", b"ARROW1\0\0abc", "Arrow file|not an Arrow|File is too small"),
        ("ragged.csv", b"id,name\n1,a\n2\n", "Expected 2 columns, got 1"),
        ("latin.csv", b"id,name\n1,\xff\n", "'name' holds text that is not UTF-8"),
        ("unnamed", b"id\n1\n", "its name has no ending of a known format"),
        (".", None, "is a directory; name its files"),
        ("*.nothing", None, "no file matches"),
    ],
)
def test_a_bad_file_gets_one_line(files: Path, name: str, content: bytes | None, text: str) -> None:
    if content is not None:
        (files / name).write_bytes(content)
    for side in ("build", "probe"):
        chosen = {"build": files / "users.parquet", "probe": files / "events.parquet", side: files / name}
        arguments = [argument for side, path in chosen.items() for argument in (f"--{side}", path)]
        done = run("join", *arguments, "--on", "id", "--out", files / "out.csv")
        lines = done.stderr.decode().splitlines()
        assert (done.returncode, done.stdout, len(lines)) == (1, b"", 1), lines
        assert lines[0].startswith("prejoin join: error: ")
        assert re.search(text, lines[0]), lines
        assert name == "." or Path(name).name in lines[0]
        assert not (files / "out.csv").exists()


def test_types_that_change_in_a_csv_stream(files: Path) -> None:
    """The types of a stream are guessed from its beginning; what does not fit later is told, and how to say it."""
    (files / "late.csv").write_text("id,v\n" + "1,2\n" * 400_000 + "1,text\n")
    arguments = ["join", "--build", files / "users.parquet", "--probe", files / "late.csv", "--on", "id", "--out"]
    done = run(*arguments, files / "out.csv")
    assert done.returncode == 1
    assert re.fullmatch(
        r".*late\.csv: .*conversion error to int64.*say them by --csv-type NAME=TYPE\n", done.stderr.decode()
    )
    assert sorted(os.listdir(files)) == ["events.parquet", "late.csv", "users.parquet"]
    ran(*arguments, files / "out.csv", "--csv-type", "v=string")
    assert (files / "out.csv").read_text().endswith('\n1,"text","ada",\n')


def test_a_key_that_a_header_repeats(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("id,id,v\n1,2,3\n")
    (tmp_path / "once.csv").write_text("id,w\n1,2\n")
    for build, probe, side in (("twice", "once", "build"), ("once", "twice", "probe")):
        done = run(
            "join", "--build", f"{build}.csv", "--probe", f"{probe}.csv", "--on", "id", "--out", "-", cwd=tmp_path
        )
        text = f"the {side} has more than one column 'id', a key; rename all but one in the file"
        assert (done.returncode, done.stderr.decode()) == (1, f"prejoin join: error: {text}\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "required: COMMAND"),
        (["join"], "--build"),
        (["join", "--build", "a.csv", "--probe", "b.csv", "--out", "c.csv"], "--on is needed"),
        (["join", "--build", "-", "--probe", "-", "--on", "a", "--out", "-"], "standard input is one file"),
        (
            ["join", "--build", "a", "--probe", "b", "--on", "a", "--out", "c", "--how", "outer"],
            "invalid choice: 'outer'",
        ),
        (["join", "--build", "a", "--probe", "b", "--out", "c", "--memory-limit", "lots"], "no size such as 500MB"),
        (["join", "--build", "a", "--probe", "b", "--out", "c", "--batch-size", "0"], "from 1 to"),
        (
            ["join", "--build", "a", "--probe", "b", "--out", "c", "--threads", "9" * 11],
            "no whole number from 1 to 1024",
        ),
        (["join", "--build", "a", "--probe", "b", "--out", "c", "--limit", "9" * 5000], "is no whole number from 0"),
        (["join", "--build", "a", "--probe", "b", "--out", "c", "--memory-limit", "9" * 400], "is more than"),
        (["prepare", "--build", "a", "--on", "a", "--out", "-"], "takes no standard output"),
        (["lookup", "--build", "a.csv", "--on", "a"], "give keys, or a file of them"),
        (["join", "--build", "a.prejoin", "b.csv", "--probe", "b", "--out", "c"], "takes one .prejoin file"),
    ],
)
def test_wrong_usage(arguments: Sequence[str], text: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert text in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_an_output_that_cannot_be_made(files: Path) -> None:
    base = ["join", "--build", files / "users.parquet", "--probe", files / "events.parquet", "--on", "id", "--out"]
    for out, text in [
        (files / "no" / "x.csv", "No such file or directory"),
        (files, "tells no format"),
        (files / "x.doc", "its name tells no format; say which by --out-format"),
    ]:
        done = run(*base, out)
        assert (done.returncode, done.stdout) == (1, b"")
        assert text in done.stderr.decode()
    nested = pa.table({"id": [2], "l": [[1]]})
    done = run("join", "--build", write(nested, files / "n.parquet"), *base[3:], files / "x.csv")
    assert done.returncode == 1
    assert b"x.csv: " in done.stderr
    assert not list(files.glob("*x.csv*"))


def test_an_output_keeps_its_place(files: Path) -> None:
    """A link stays a link, a mode stays as it was, and a probe file may be replaced by its own join."""
    link, target = files / "link.parquet", files / "target.parquet"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    base = ["join", "--build", files / "users.parquet", "--on", "id", "--how", "semi"]
    ran(*base, "--probe", files / "events.parquet", "--out", link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert read(target, "parquet").num_rows == 3
    ran(*base, "--probe", files / "events.parquet", "--out", files / "events.parquet")
    assert read(files / "events.parquet", "parquet").num_rows == 3
    mask = os.umask(0)
    os.umask(mask)
    assert (files / "events.parquet").stat().st_mode & 0o777 in (0o666 & ~mask, 0o644)
    ran(*base, "--probe", files / "events.parquet", "--out", files / "new.csv")
    assert (files / "new.csv").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_pipe_is_written_in_place(files: Path) -> None:
    """A named pipe is not replaced by a file, nor is one that only /dev/fd names."""
    base = ["join", "--build", files / "users.parquet", "--probe", files / "events.parquet", "--on", "id"]
    want = prejoin.join(EVENTS, USERS, on="id")
    fifo = files / "fifo"
    os.mkfifo(fifo)
    for format in FORMATS:
        with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
            ran(*base, "--out", fifo, "--out-format", format)
            assert read(reader.communicate(timeout=30)[0], format).cast(want.schema).equals(want)
        assert fifo.is_fifo()
    os.rename(fifo, fifo := files / "fifo.csv.gz")
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        ran(*base, "--out", fifo)
        assert gzip.decompress(reader.communicate(timeout=30)[0]) == ran(*base, "--out", "-")
    assert ran(*base, "--out", "/dev/stdout", "--out-format", "csv") == ran(*base, "--out", "-")
    assert sorted(os.listdir(files)) == ["events.parquet", "fifo.csv.gz", "users.parquet"]


def test_closed_standard_streams(files: Path) -> None:
    base = [sys.executable, "-m", "prejoin"]
    join = [*base, "join", "--build", files / "users.parquet", "--probe", files / "events.parquet", "--on", "id"]

    def closed(stream: str, *command: object) -> subprocess.CompletedProcess[bytes]:
        shell = ["sh", "-c", f'exec "$@" {stream}', "sh", *map(str, command)]
        return subprocess.run(shell, capture_output=True, timeout=60, check=False)

    for command in (
        [*join, "--out", "-"],
        [*join, "--out", files / "out.csv", "--explain"],
        [*base, "lookup", "--build", files / "users.parquet", "--on", "id", "1"],
    ):
        done = closed(">&-", *command)
        assert done.returncode == 1
        assert re.fullmatch(rb"prejoin \w+: error: standard output is closed\n", done.stderr)
    for stream in (">&-", "2>&-", "<&-"):
        done = closed(stream, *join, "--out", files / "out.csv")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    # What belongs to standard error does not go to standard output.
    missing = closed("2>&-", *base, "lookup", "--build", files / "users.parquet", "--on", "id", "9", "--format", "csv")
    assert (missing.returncode, missing.stdout) == (1, b"id,name,score\n")


# ---- signals, pipes, terminals


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(large: Path, tmp_path: Path, number: signal.Signals) -> None:
    base = ["join", "--build", large / "build.parquet", "--probe", *[large / "probe.parquet"] * 20, "--on", "id"]
    out = tmp_path / "out.parquet"
    out.write_bytes(b"the last one")
    with started(*base, "--out", out, stderr=subprocess.PIPE) as process:
        waited = time.monotonic() + 60
        while not any(path.stat().st_size for path in tmp_path.glob(".out.parquet.*.tmp")):
            assert time.monotonic() < waited
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (128 + number, b"")
    assert os.listdir(tmp_path) == ["out.parquet"]
    assert out.read_bytes() == b"the last one"


@pytest.mark.parametrize("format", ["csv", "parquet", "arrows"])
def test_a_closed_pipe_ends_it_quietly(large: Path, format: str) -> None:
    base = ["join", "--build", large / "build.parquet", "--probe", large / "probe.parquet", "--on", "id", "--out", "-"]
    with started(*base, "--out-format", format, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.read(4)
        process.stdout.close()
        assert process.stderr
        assert process.stderr.read() == b""
        assert process.wait(timeout=30) == 128 + signal.SIGPIPE


def in_terminal(*arguments: object, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Exit status, and what a terminal as standard error shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    with started(*arguments, stderr=theirs, env={**os.environ, "TERM": "xterm", **(env or {})}) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
        return process.wait(timeout=30), shown.decode()


def test_progress_on_a_terminal_only(large: Path, tmp_path: Path) -> None:
    arguments = ["join", "--build", large / "build.parquet", "--probe", large / "probe.parquet", "--on", "id", "--out"]
    out = tmp_path / "out.arrow"
    status, shown = in_terminal(*arguments, out, "--batch-size", "20000")
    assert status == 0
    lines = re.split(r"\r\x1b\[K", shown)
    progress = re.compile(r"\[#*-*\] +\d+%  [\d,]+ of 10,000,000 rows, [\d,]+ out, [\d.]+[kM]? rows/s")
    assert all(progress.match(line) for line in lines[1:-1])
    assert len(lines) > 3
    assert re.fullmatch(
        r"10,000,000 probe rows read, 10,000,000 rows written to .*out\.arrow in [\d.]+ s\r\n", lines[-1]
    )
    assert in_terminal(*arguments, out, "--limit", "5", "--quiet") == (0, "")
    assert in_terminal(*arguments, out, "--limit", "5", env={"TERM": "dumb"}) == (0, "")
    status, shown = in_terminal(*arguments, out, "--memory-limit", "1k")
    assert (status, shown.count("\n")) == (1, 1)


def test_binary_output_is_kept_from_a_terminal(files: Path) -> None:
    ours, theirs = pty.openpty()
    arguments = ["join", "--build", files / "users.parquet", "--probe", files / "events.parquet", "--on", "id"]
    with started(*arguments, "--out", "-", "--out-format", "arrow", stdout=theirs, stderr=subprocess.PIPE) as process:
        _, errors = process.communicate(timeout=30)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 1
    assert b"an Arrow IPC file is not written to a terminal" in errors


def test_version_help_and_demo(tmp_path: Path) -> None:
    assert ran("--version") == f"prejoin {prejoin.__version__}\n".encode()
    for command in ("join", "lookup", "prepare", "inspect"):
        assert b"Exit status: 0 done" in ran(command, "--help")
    assert b"flights per batch" in ran("demo", "--help")
    done = ran("demo", "--out", tmp_path / "demo.parquet", "--batch-size", "100000").decode()
    assert "276,688 rows, 48 columns" in done


# ---- saved builds and conditions


def test_prepare_then_join_and_lookup(files: Path) -> None:
    saved = files / "users.prejoin"
    ran("prepare", "--build", files / "users.parquet", "--on", "id", "--keep", "first", "--out", saved)
    joined = ran("join", "--build", saved, "--probe", files / "events.parquet", "--out", "-", "--out-format", "arrows")
    build = prejoin.prepare(USERS, "id", keep="first")
    assert read(joined, "arrows").equals(prejoin.join(EVENTS, build))
    assert ran("lookup", "--build", saved, "2", "--format", "csv") == b"id,name,score\n2,bob,2.5\n"
    other = run("join", "--build", saved, "--probe", files / "events.parquet", "--on", "name", "--out", "-")
    assert (other.returncode, b"is prepared on id, not on name" in other.stderr) == (1, True)
    (files / "wrong.prejoin").write_bytes(b"id\n1\n")
    wrong = run("join", "--build", files / "wrong.prejoin", "--probe", files / "events.parquet", "--out", "-")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 1)
    assert sorted(os.listdir(files)) == ["events.parquet", "users.parquet", "users.prejoin", "wrong.prejoin"]


def test_a_saved_build_keeps_its_rules(files: Path) -> None:
    """Options that a saved build cannot follow are refused; those that agree with it are not."""
    prepared: list[tuple[str, list[str]]] = [
        ("all", []),
        ("first", ["--keep", "first"]),
        ("null", ["--null-equal"]),
    ]
    for name, options in prepared:
        ran("prepare", "--build", files / "users.parquet", "--on", "id", *options, "--out", files / f"{name}.prejoin")
    commands: list[list[Any]] = [
        ["join", "--probe", files / "events.parquet", "--out", files / "out.csv"],
        ["lookup", "1"],
        ["prepare", "--out", files / "again.prejoin"],
    ]
    for command in commands:
        for name, option, text in (
            ("all", ["--keep", "last"], "with several rows of some keys; drop --keep last"),
            ("first", ["--null-equal"], "for null keys that match nothing; drop --null-equal"),
        ):
            done = run(*command, "--build", files / f"{name}.prejoin", *option)
            assert (done.returncode, done.stdout) == (1, b"")
            assert done.stderr.decode() == (
                f"prejoin {command[0]}: error: {files / name}.prejoin: is prepared already, {text}\n"
            )
        for name, option in (("first", ["--keep", "last"]), ("null", ["--null-equal", "--keep", "all"])):
            ran(*command, "--build", files / f"{name}.prejoin", *option)


def test_inspect_tells_what_a_file_holds(files: Path) -> None:
    saved = files / "users.prejoin"
    ran("prepare", "--build", files / "users.parquet", "--on", "id", "--out", saved)
    told = json.loads(ran("inspect", saved, "--json"))
    assert told["schema"] == {"id": "int64", "name": "string", "score": "double"}
    assert (told["keys"], told["num_rows"], told["num_keys"]) == (["id"], 4, 3)
    lines = dict(line.split(None, 1) for line in ran("inspect", saved).decode().splitlines())
    assert lines["keys"] == "id"
    assert set(lines) == set(told)
    assert run("inspect", files / "users.parquet").returncode == 1


def test_where_is_sql(files: Path) -> None:
    base = ["join", "--build", files / "users.parquet", "--probe", files / "events.parquet", "--on", "id", "--out", "-",
            "--out-format", "arrows"]  # fmt: skip
    where = 'probe.score > build.score or "build"."name" is null'
    # The condition's columns are read though nobody selects them.
    some = read(ran(*base, "--where", where, "--select", "at,name"), "arrows")
    assert some.equals(prejoin.join(EVENTS, USERS, on="id", where=where, select=["at", "name"]))
    # Positions are those of the file, whatever is selected.
    for where, named in (
        ("probe[2] > 4", "probe.score > 4"),
        ("probe [1] = 'x' and build[2] > 1", "probe.at = 'x' and build.score > 1"),
        ("\"probe\"[1] <> 'probe[0]' and build[2] < probe[2]", "probe.at <> 'probe[0]' and build.score < probe.score"),
    ):
        some = read(ran(*base, "--where", where, "--select", "name"), "arrows")
        assert some.num_rows > 0
        assert some.equals(prejoin.join(EVENTS, USERS, on="id", where=named, select=["name"]))
        semi = read(ran(*base, "--where", where, "--how", "build_semi"), "arrows")
        assert semi.equals(prejoin.join(EVENTS, USERS, on="id", where=named, how="build_semi"))
    wrong = run(*base, "--where", "probe.scor > 1")
    assert wrong.returncode == 1
    assert b'no column "scor"' in wrong.stderr


def test_saved_builds_by_content_and_mode(files: Path) -> None:
    saved = files / "users.of-any-name"
    ran("prepare", "--build", files / "users.parquet", "--on", "id", "--out", saved, "--mode", "644")
    assert saved.stat().st_mode & 0o777 == 0o644
    assert ran("lookup", "--build", saved, "3", "--format", "csv") == b"id,name,score\n3,cy,0.5\n"
    assert run("prepare", "--build", saved, "--out", saved, "--mode", "rw").returncode == 2
    assert run("demo", "--batch-size", "0").returncode == 2
