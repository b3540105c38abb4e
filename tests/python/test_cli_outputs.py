"""Outputs: in their place and whole, or not at all."""

from __future__ import annotations

import datetime
import gzip
import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import prejoin
from commands import EVENTS, FORMATS, USERS, process, put, ran, read, refused, rows_of, run, started, write


def test_an_output_that_cannot_be_made(files: Path) -> None:
    base = ["join", "--build", files / "users.parquet", "--probe", files / "events.parquet", "--on", "id", "--out"]
    for out, text in [
        (files / "no" / "x.csv", "No such file or directory"),
        (files, "no ending of a known format"),
        (files / "x.doc", "its name has no ending of a known format; name it by --out-format"),
    ]:
        done = run(*base, out)
        assert (done.returncode, done.stdout) == (1, b"")
        assert text in done.stderr.decode()
    assert sorted(os.listdir(files)) == ["events.parquet", "users.parquet"]


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
    assert process(*base, "--out", "/dev/stdout", "--out-format", "csv").stdout == ran(*base, "--out", "-")
    assert sorted(os.listdir(files)) == ["events.parquet", "fifo.csv.gz", "users.parquet"]


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


AWKWARD = pa.table({
    "id": [1, 2],
    "bytes": pa.array([b"\xff,", None], pa.binary_view()),
    "text": pa.array(['a"b', ""], pa.string_view()),
    "uuid": pa.array([b"0" * 16, None], pa.uuid()),
    "list": pa.array([[1, None], []], pa.list_(pa.int64())),
    "struct": pa.array([{"a": "x"}, None], pa.struct([("a", pa.string())])),
    "kind": pa.array(["p", "q"]).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["r"])),
    "span": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "nanos": pa.array([1, 1_000], pa.timestamp("ns")),
    "none": pa.nulls(2),
})  # fmt: skip


def test_types_that_csv_has_no_form_for(tmp_path: Path) -> None:
    write(AWKWARD, tmp_path / "p.arrow")
    put(tmp_path, b="id\n1\n2\n")
    base = ["join", "--build", "b.csv", "--probe", "p.arrow", "--on", "id", "--out"]
    header = ",".join(f'"{name}"' for name in AWKWARD.column_names).encode()
    uuid = "30303030-3030-3030-3030-303030303030"
    one = f'"a""b","{uuid}","[1, null]","{{""a"": ""x""}}","p","r","[1, 2, 3]",1970-01-01 00:00:00.000000001,'.encode()
    two = b'2,,"",,"[]",,"q","r",,1970-01-01 00:00:00.000001000,'
    want = header + b'\n1,"\xff,",' + one + b"\n" + two + b"\n"
    assert ran(*base, "-", cwd=tmp_path) == want
    ran(*base, "o.csv", cwd=tmp_path)
    assert (tmp_path / "o.csv").read_bytes() == want
    # Parquet lacks two of the types, and says so before anything is written.
    for out in (["o.parquet"], ["-", "--out-format", "parquet"]):
        assert "column 'runs' has type run_end_encoded" in refused(*base, *out, cwd=tmp_path)
    rest = [name for name in AWKWARD.column_names if name not in ("runs", "span")]
    ran(*base, "o.parquet", "--select", ",".join(rest), cwd=tmp_path)
    ran(*base, "o.arrows", cwd=tmp_path)
    assert read(tmp_path / "o.arrows", "arrows").num_rows == 2
    # The other command prints the same texts, but for bytes.
    printed = ran("lookup", "--build", "p.arrow", "--on", "id", "1", "2", "--format", "csv", cwd=tmp_path)
    assert rows_of(printed)[1][2:] == rows_of(want.replace(b"\xff", b""))[1][2:]
    assert rows_of(printed)[1][1] == "ff2c"


def test_old_parquet_times(tmp_path: Path) -> None:
    """Of 96 bits: those beyond 64 bits of nanoseconds are right, and lost nanoseconds are refused before output."""
    far = pa.array([datetime.datetime(9999, 12, 31), datetime.datetime(1, 1, 1)], pa.timestamp("us"))
    old = {"use_deprecated_int96_timestamps": True}
    pa.parquet.write_table(pa.table({"id": [1, 2], "at": far}), tmp_path / "p.parquet", **old)
    put(tmp_path, b="id\n1\n2\n")
    base = ["join", "--build", "b.csv", "--probe", "p.parquet", "--on", "id", "--out"]
    assert rows_of(ran(*base, "-", cwd=tmp_path))[1:] == [
        ["1", "9999-12-31 00:00:00.000000"], ["2", "0001-01-01 00:00:00.000000"]]  # fmt: skip
    fine = pa.array([0, 1], pa.timestamp("ns"))
    pa.parquet.write_table(pa.table({"id": [1, 2], "at": fine}), tmp_path / "p.parquet", **old)
    for out in ("-", "o.csv"):
        assert refused(*base, out, cwd=tmp_path).startswith("p.parquet: column 'at' holds INT96 times with nanoseconds")
    assert sorted(os.listdir(tmp_path)) == ["b.csv", "p.parquet"]


def test_null_and_empty_text_differ(tmp_path: Path) -> None:
    write(pa.table({"id": [1, 2], "t": ["", None]}), tmp_path / "b.parquet")
    put(tmp_path, p="id\n1\n2\n")
    lookup = ["lookup", "--build", "b.parquet", "--on", "id", "1", "2", "--format"]
    assert ran(*lookup, "csv", cwd=tmp_path) == b'id,t\n1,""\n2,\n'
    assert ran(*lookup, "json", cwd=tmp_path) == b'{"id": 1, "t": ""}\n{"id": 2, "t": null}\n'
    out = ran("join", "--build", "b.parquet", "--probe", "p.csv", "--on", "id", "--out", "-", cwd=tmp_path)
    assert out == b'"id","t"\n1,""\n2,\n'


def test_the_longest_names(tmp_path: Path) -> None:
    put(tmp_path, b="id,v\n1,2\n")
    for name in ("é" * 125 + ".csv", "x" * 251 + ".csv"):
        ran("join", "--build", "b.csv", "--probe", "b.csv", "--on", "id", "--out", name, cwd=tmp_path)
        assert (tmp_path / name).read_text() == '"id","v","v_right"\n1,2,2\n'
        (tmp_path / name).unlink()
    # A link whose target is not there yet.
    (tmp_path / "link.csv").symlink_to("target.csv")
    ran(
        "join", "--build", "b.csv", "--probe", "b.csv", "--on", "id", "--how", "semi", "--out", "link.csv", cwd=tmp_path
    )
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text() == '"id","v"\n1,2\n'
    assert sorted(os.listdir(tmp_path)) == ["b.csv", "link.csv", "target.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
def test_a_full_disk(tmp_path: Path) -> None:
    put(tmp_path, b="id,v\n1,2\n")
    base = ["join", "--build", "b.csv", "--probe", "b.csv", "--on", "id", "--out", "/dev/full", "--out-format"]
    for format in FORMATS:
        assert refused(*base, format, cwd=tmp_path) == "/dev/full: No space left on device"
