"""Outputs: in their place and whole, or not at all."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import prejoin
from commands import EVENTS, FORMATS, USERS, process, ran, read, run, started


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
