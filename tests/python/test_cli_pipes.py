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
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import prejoin
from commands import EVENTS, USERS, process, put, ran, read, refused, run, started, write


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


COMPRESSIONS = ["gzip", "bz2", "zstd", "lz4"]


def compressed(data: bytes, kind: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, kind) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


@contextlib.contextmanager
def piped(directory: Path, data: bytes, name: str = "fifo") -> Iterator[Path]:
    """A named pipe that somebody writes data into."""
    path = directory / name
    os.mkfifo(path)

    def write_all() -> None:
        with contextlib.suppress(BrokenPipeError), open(path, "wb") as pipe:
            pipe.write(data)

    thread = threading.Thread(target=write_all)
    thread.start()
    try:
        yield path
    finally:
        # Whoever still waits for a reader gets one.
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        thread.join()
        path.unlink()


@pytest.mark.parametrize("kind", ["", *COMPRESSIONS])
@pytest.mark.parametrize("format", ["csv", "parquet", "arrow", "arrows"])
def test_named_pipes_of_every_format_and_compression(files: Path, format: str, kind: str) -> None:
    """A pipe is known by its first bytes, compressed or not, as build, probe, and file of keys."""
    events, users = (
        compressed(data, kind) if kind else data
        for data in (Path(write(table, files / "x", format)).read_bytes() for table in (EVENTS, USERS))
    )
    want = prejoin.join(EVENTS, USERS, on="id")
    out = ["--on", "id", "--out", "-", "--out-format", "arrows"]
    with piped(files, events) as pipe:
        table = read(ran("join", "--build", files / "users.parquet", "--probe", pipe, *out), "arrows")
        assert table.cast(want.schema).equals(want)
    with piped(files, users) as pipe:
        table = read(ran("join", "--probe", files / "events.parquet", "--build", pipe, *out), "arrows")
        assert table.cast(want.schema).equals(want)
    table = read(ran("join", "--build", files / "users.parquet", "--probe", "-", *out, stdin=events), "arrows")
    assert table.cast(want.schema).equals(want)
    with piped(files, users) as pipe:
        said = ["--keys-format", "csv"] if format == "csv" else []
        found = run("lookup", "--build", files / "events.parquet", "--on", "id", "--keys", pipe, *said,
                    "--columns", "score", "--format", "csv")  # fmt: skip
        assert found.stdout == b"score\n3\n1\n5\n1\n5\n"


@pytest.mark.parametrize("kind", ["", *COMPRESSIONS])
def test_keys_from_a_pipe_are_lines(tmp_path: Path, kind: str) -> None:
    """The first of them is a key too; --keys-format says otherwise."""
    put(tmp_path, b="id,label\n7,seven\n120000,many\n")
    keys = b"7\n120000\n"
    keys = compressed(keys, kind) if kind else keys
    base = ["lookup", "--build", tmp_path / "b.csv", "--on", "id", "--format", "csv"]
    both = b"id,label\n7,seven\n120000,many\n"
    with piped(tmp_path, keys) as pipe:
        assert ran(*base, "--keys", pipe) == both
    assert ran(*base, "--keys", "-", stdin=keys) == both
    assert process(*base, "--keys", "/dev/stdin", stdin=keys).stdout == both
    assert ran(*base, "--keys", "-", stdin=b"") == b"id,label\n"
    headed = b"id\n7\n" if not kind else compressed(b"id\n7\n", kind)
    assert ran(*base, "--keys", "-", "--keys-format", "csv", stdin=headed) == b"id,label\n7,seven\n"


def test_a_compressed_pipe_that_ends_early(tmp_path: Path) -> None:
    put(tmp_path, b="id,label\n7,seven\n")
    cut = compressed(b"id,n\n" + b"7,x\n" * 5000, "gzip")[:-20]
    base = ["join", "--build", tmp_path / "b.csv", "--on", "id", "--out", tmp_path / "o.csv", "--probe"]
    assert refused(*base, "-", stdin=cut) == "standard input: Truncated compressed stream"
    with piped(tmp_path, b"id,n\n", "p.csv.gz") as pipe:
        assert refused(*base, pipe) == f"{pipe}: is not compressed by gzip, as its name says"
    (tmp_path / "p.csv").write_bytes(compressed(b"id,n\n7,x\n", "gzip"))
    assert "which its name has to say by the ending .gz" in refused(*base, tmp_path / "p.csv")
    assert sorted(os.listdir(tmp_path)) == ["b.csv", "p.csv"]


def waiting(state: str, directory: Path) -> list[object]:
    """A command that waits: for somebody to open a named pipe, for bytes, or for a reader."""
    pipe, base = directory / "fifo", ["join", "--on", "id", "--out"]
    if state == "opening the probe":
        return [*base, directory / "o.csv", "--build", directory / "users.parquet", "--probe", pipe]
    if state == "opening the build":
        return [*base, directory / "o.csv", "--build", pipe, "--probe", directory / "events.parquet"]
    if state == "opening the output":
        return [*base, pipe, "--out-format", "csv", "--build", directory / "users.parquet", "--probe",
                directory / "events.parquet"]  # fmt: skip
    if state == "reading the probe":
        return [*base, directory / "o.csv", "--build", directory / "users.parquet", "--probe", "-"]
    if state == "reading the build":
        return ["prepare", "--on", "id", "--out", directory / "o.prejoin", "--build", "-"]
    return ["lookup", "--on", "id", "--build", directory / "users.parquet", "--keys", "-"]


STATES = ["opening the probe", "opening the build", "opening the output", "reading the probe", "reading the build",
          "reading the keys"]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("state", STATES)
def test_a_signal_ends_every_wait(files: Path, state: str, number: signal.Signals) -> None:
    os.mkfifo(files / "fifo")
    command = waiting(state, files)
    before = sorted(os.listdir(files))
    with started(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin
        child.stdin.write(b"id,n\n1,2\n")
        child.stdin.flush()
        # It waits where it sleeps, with all of its modules loaded.
        until = time.monotonic() + 60
        while not asleep(child.pid):
            assert child.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        child.send_signal(number)
        _, errors = child.communicate(timeout=30)
        assert (child.returncode, errors) == (128 + number, b"")
    assert sorted(os.listdir(files)) == before


def asleep(pid: int, seconds: float = 0.4) -> bool:
    """Whether a process does nothing for a while."""

    def used() -> tuple[str, ...]:
        return tuple(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])

    before = used()
    time.sleep(seconds)
    return before == used() and int(before[0]) > 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_write_to_a_full_pipe(large: Path, number: signal.Signals) -> None:
    base = ["join", "--build", large / "build.parquet", "--probe", large / "probe.parquet", "--on", "id", "--out", "-"]
    with started(*base, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stderr
        assert child.stdout.read(4)
        while not asleep(child.pid):
            assert child.poll() is None
        child.send_signal(number)
        assert child.wait(timeout=30) == 128 + number
        assert child.stderr.read() == b""
