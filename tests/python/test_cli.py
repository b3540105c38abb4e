"""What the commands do with files of every format, and what they refuse."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import prejoin
from commands import EVENTS, FORMATS, USERS, process, ran, read, run, write


@pytest.mark.parametrize("out", FORMATS)
@pytest.mark.parametrize("probe", FORMATS)
def test_every_pair_of_formats(tmp_path: Path, probe: str, out: str) -> None:
    """Whatever the files are, the rows are those of `prejoin.join`, in its order; the build's format takes turns."""
    build = FORMATS[(FORMATS.index(probe) + FORMATS.index(out)) % len(FORMATS)]
    users, events = write(USERS, tmp_path / f"users.{build}"), write(EVENTS, tmp_path / f"events.{probe}")
    path = tmp_path / f"joined.{out}"
    options = ["join", "--build", users, "--probe", events, "--on", "id", "--how", "full", "--out", str(path)]
    ran(*options, "--batch-size", "2", "--quiet")
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


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("missing.parquet", None, "no such file"),
        ("empty.parquet", b"", "is empty"),
        ("text.parquet", b"id,name\n1,a\n", "is not Parquet, it begins with b'id,n'"),
        ("parquet.csv", b"PAR1....", "is not CSV, it is Parquet"),
        ("cut.parquet", b"PAR1....", "Parquet"),
        ("cut.arrow", b"ARROW1\0\0abc", "Arrow file|not an Arrow|File is too small"),
        ("ragged.csv", b"id,name\n1,a\n2\n", "line 3: has 1 fields, and the header has 2 columns"),
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
        (["join", "--build", "a", "--probe", "b", "--out", "c", "--memory-limit", "lots"], "not a size such as 500MB"),
        (["join", "--build", "a", "--probe", "b", "--out", "c", "--batch-size", "0"], "from 1 to"),
        (
            ["join", "--build", "a", "--probe", "b", "--out", "c", "--threads", "9" * 11],
            "not a whole number from 1 to 1024",
        ),
        (["join", "--build", "a", "--probe", "b", "--out", "c", "--limit", "9" * 5000], "is not a whole number from 0"),
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


def test_version_help_and_demo(tmp_path: Path) -> None:
    assert ran("--version") == f"prejoin {prejoin.__version__}\n".encode()
    for command in ("join", "lookup", "prepare", "inspect"):
        assert b"Exit status: 0 done" in ran(command, "--help")
    assert b"flights per batch" in process("demo", "--help").stdout
    done = process("demo", "--out", tmp_path / "demo.parquet", "--batch-size", "100000").stdout.decode()
    assert "276,688 rows, 48 columns" in done


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
    assert process("demo", "--batch-size", "0").returncode == 2
