"""`prejoin lookup`: keys as text and in files, rows as they are printed."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from commands import EVENTS, USERS, ran, run, write


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
    assert wrong.stderr == b"prejoin lookup: error: 'one' is not a value of key 'id', which has type int64\n"


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
        assert re.fullmatch(rf".*is not a value of key '{key}', which has type [\w\[\]]+{form}\n", done.stderr.decode())
    missing = run("lookup", "--build", build, "--on", "t", "02:00", "01:00", "--format", "csv", "--columns", "n")
    assert (missing.returncode, missing.stdout) == (0, b"n\n18\n")
    assert missing.stderr == b"prejoin lookup: no row for 02:00:00.000\n"
    # JSON has no NaN and no infinities.
    lines = ran("lookup", "--build", build, "--on", "n", "18", "7", "--format", "json").decode().splitlines()
    rows = [json.loads(line, parse_constant=lambda text: pytest.fail(text)) for line in lines]
    assert [(row["x"], row["many"]) for row in rows] == [(1.5, [None, 1.0]), (None, [])]
