"""The command line beside other processes: pipes, signals, terminals."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from commands import started


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
