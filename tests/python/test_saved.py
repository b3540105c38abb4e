"""B5: saved and shared builds, in this process and in others. tests/saved.rs tests the bytes of the files."""

from __future__ import annotations

import copy
import datetime
import errno
import mmap
import multiprocessing
import os
import pickle
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import prejoin

ROWS = 5000
USERS = pa.table({"id": range(ROWS), "name": [f"user {i}" for i in range(ROWS)]})
EVENTS = pa.table({"id": [3, ROWS, 7, 3]})
NAMES = ["user 3", "user 7", "user 3"]
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
METHODS = ["spawn", "forkserver", "fork"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "users.prejoin"
    prejoin.prepare(USERS, "id").save(path)
    return path


def names(build: Any) -> list[str]:
    found: list[str] = prejoin.join(EVENTS, build)["name"].to_pylist()
    return found


def names_of_shared(shared: prejoin.SharedBuild) -> list[str]:
    return names(shared.open())


def python(text: str, *arguments: str) -> subprocess.Popen[str]:
    """Runs Python code in a process that communicates over its standard streams."""
    command = [sys.executable, "-c", textwrap.dedent(text), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("verify", [True, False])
def test_an_opened_build_equals_the_saved_one(path: Path, verify: bool, pool: prejoin.MemoryPool) -> None:
    made = prejoin.prepare(USERS, "id")
    opened = prejoin.open(path, verify=verify, pool=pool)
    size = path.stat().st_size
    assert pool.reserved == opened.reserved_bytes == size
    assert opened.memory() == {
        **made.memory(),
        "mapped": size,
        "private": 0,
        "reserved": size,
        "rows": opened.memory()["rows"],
    }
    assert made.memory()["mapped"] == 0 < made.memory()["private"]
    assert names(opened) == NAMES
    assert opened.to_table().equals(USERS)
    assert opened.schema.equals(made.schema)
    assert (opened.bounds, opened.keys, opened.index_kind) == (made.bounds, made.keys, made.index_kind)
    assert opened.fingerprint == made.fingerprint
    assert (opened.path, made.path) == (str(path), None)
    join = prejoin.HashJoin(USERS.schema, EVENTS, ["id"], "full").with_prepared_build(opened)
    assert join.execute().read_all().num_rows == ROWS + 2
    del opened, join
    assert pool.reserved == 0


def test_the_same_input_gives_the_same_file(path: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    prejoin.prepare(USERS.to_batches(max_chunksize=ROWS), "id").save(again)
    assert again.read_bytes() == path.read_bytes()
    shuffled = pa.concat_tables([USERS.slice(1000), USERS.slice(0, 1000)])
    assert prejoin.prepare(shuffled, "id").fingerprint == prejoin.open(path).fingerprint
    assert prejoin.prepare(USERS, "name").fingerprint != prejoin.open(path).fingerprint


def test_inspect_reads_the_header(path: Path, tmp_path: Path) -> None:
    info = prejoin.inspect(path)
    opened = prejoin.open(path)
    assert info["schema"].equals(USERS.schema)
    assert (info["keys"], info["null_equal"], info["num_rows"], info["num_keys"]) == (["id"], (False,), ROWS, ROWS)
    assert (info["index_kind"], info["membership"], info["duplicates"]) == ("dense", "map", 0)
    assert info["fingerprint"] == opened.fingerprint
    memory = opened.memory()
    assert info["bytes"] == {
        "rows": memory["rows"],
        "index": memory["index"],
        "groups": memory["groups"],
        "file": path.stat().st_size,
    }
    assert info["created"] is not None
    assert abs(info["created"].timestamp() - path.stat().st_mtime) < 1e-3
    assert info["created"].tzinfo == datetime.timezone.utc
    assert (info["prejoin_version"], info["format_version"]) == (prejoin.__version__, 2)
    assert (info["name"], info["version"], info["loaded_at"]) == (None, None, None)
    repeated = pa.table({"id": [1, 2, 1, None, 1]})
    prejoin.prepare(repeated, "id").save(tmp_path / "repeated")
    assert prejoin.inspect(tmp_path / "repeated")["duplicates"] == 2


def test_pyarrow_reads_the_rows_in_place(path: Path) -> None:
    """As described in docs/format.md."""
    offset, length = prejoin.inspect(path)["rows_at"]
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    rows = pa.ipc.open_file(pa.py_buffer(mapped)[offset : offset + length]).read_all()
    assert rows.equals(USERS)


def test_the_format_is_as_documented(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code in docs/format.md reads the rows of a file, and its table lists every section with its checksum."""
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(path.parent)
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["rows"].equals(USERS)
    data = path.read_bytes()
    for i in range(found["count"]):
        _, flags, checksum, offset, length = struct.unpack_from("<16sIIQQ", data, 64 + 40 * i)
        assert flags == 1
        assert zlib.crc32(data[offset : offset + length]) == checksum
    first = min(offset for offset, _ in found["table"].values())
    assert zlib.crc32(data[:28] + bytes(4) + data[32:first]) == struct.unpack_from("<I", data, 28)[0]


GOLDEN = Path(__file__).parent / "saved_v2"
GOLDEN_BUILDS: dict[str, tuple[pa.Table, list[str], bool]] = {
    "dense": (pa.table({"k": [5, None, 3, 5], "v": ["a", "b", None, "d"]}), ["k"], True),
    "hashed": (pa.table({"k": [0.5, -0.0, 0.5], "v": [1, 2, 3]}), ["k"], False),
    "bytes": (pa.table({"k": ["a key of many bytes", "another key of them", None], "v": [1, 2, 3]}), ["k"], False),
    "rows": (pa.table({"k": ["x", "y", "x"], "n": [1.5, None, 2.5], "v": [1, 2, 3]}), ["k", "n"], True),
}


GOLDEN_LOADED_AT = datetime.datetime(2026, 12, 1, 5, 30, 0, 123456, datetime.timezone.utc)


@pytest.mark.parametrize("name", sorted(GOLDEN_BUILDS))
def test_files_of_versions_that_are_read_stay_readable(name: str) -> None:
    """A change that cannot read these files is a new format version (see docs/format.md): write a further folder with
    PREJOIN_GOLDEN=write, and keep the two before it."""
    table, on, null_equal = GOLDEN_BUILDS[name]
    made = prejoin.prepare(table, on, null_equal=null_equal)
    if os.environ.get("PREJOIN_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        made._label(name, '["7", 3]', GOLDEN_LOADED_AT).save(GOLDEN / f"{name}.prejoin", mode=0o644)
    for folder in sorted(GOLDEN.parent.glob("saved_v*")):
        opened = prejoin.open(folder / f"{name}.prejoin")
        assert prejoin.inspect(folder / f"{name}.prejoin")["format_version"] == int(folder.name[len("saved_v") :])
        assert (opened.name, opened.version, opened.loaded_at) == (name, ("7", 3), GOLDEN_LOADED_AT)
        same_as_made(opened, made, name, table, on)


def same_as_made(
    opened: prejoin.PreparedBuild, made: prejoin.PreparedBuild, name: str, table: pa.Table, on: list[str]
) -> None:
    assert (opened.index_kind, opened.fingerprint, opened.num_keys) == (name, made.fingerprint, made.num_keys)
    assert opened.to_table().equals(table)
    probe = pa.concat_tables([table.select(on), table.select(on).slice(0, 1)])
    for how in ("inner", "full"):
        assert prejoin.join(probe, opened, how=how).equals(prejoin.join(probe, made, how=how))


def test_files_and_modes(path: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for ask in (prejoin.open, prejoin.inspect):
        with pytest.raises(FileNotFoundError, match="missing"):
            ask(missing)
        with pytest.raises(IsADirectoryError):
            ask(tmp_path)
    with pytest.raises(OSError, match="no/such"):
        prejoin.open(path).save(tmp_path / "no/such")
    (tmp_path / "text").write_text("id,name\n" * 20)
    with pytest.raises(prejoin.ExecutionError, match="another file"):
        prejoin.open(tmp_path / "text")
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        prejoin.open(path).save(path, mode=0o640)
        assert path.stat().st_mode & 0o777 == 0o640
    for mode in (-1, 0o1000, 1 << 40):
        with pytest.raises(prejoin.PlanError, match="mode"):
            prejoin.open(path).save(path, mode=mode)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["text", "users.prejoin"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_builds_are_sent_to_other_processes(path: Path, method: str) -> None:
    """An opened build is sent as its path, a shared one as its handle; both stay usable here."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    opened, shared = prejoin.open(path), prejoin.prepare(USERS, "id").share()
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as workers:
        for _ in range(2):
            assert workers.submit(names, opened).result(timeout=60) == NAMES
            assert workers.submit(names_of_shared, shared).result(timeout=60) == NAMES
    assert names(opened) == names_of_shared(shared) == NAMES


def test_pickles_know_their_build(path: Path) -> None:
    opened = prejoin.open(path, verify=False)
    sent = pickle.dumps(opened)
    assert len(sent) < 1000
    assert copy.deepcopy(opened).fingerprint == pickle.loads(sent).fingerprint == opened.fingerprint
    other = prejoin.prepare(USERS.slice(1), "id")
    other.save(path)
    assert names(opened) == NAMES
    with pytest.raises(prejoin.ExecutionError, match=f"another build now .*{other.fingerprint}"):
        pickle.loads(sent)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(sent)
    with pytest.raises(prejoin.NotSupported, match="send the SharedBuild"):
        pickle.dumps(other.share().open())


def test_the_copy_is_charged_like_the_build(pool: prejoin.MemoryPool) -> None:
    build = prejoin.prepare(USERS, "id", pool=pool)
    alone = pool.reserved
    shared = build.share()
    assert pool.reserved > 2 * alone - 1000
    opened = shared.open()
    del shared
    assert (pool.reserved, names(opened)) == (alone, NAMES)
    # Room for the working memory of preparing, and not for a copy.
    small = prejoin.MemoryPool(alone + alone // 2)
    build = prejoin.prepare(USERS, "id", pool=small)
    with pytest.raises(prejoin.ResourcesExhausted, match="shared build"):
        build.share()
    assert small.reserved == alone
    del build, opened


@linux
def test_a_shared_build_outlives_a_killed_owner() -> None:
    """A process that has it open keeps it after kill -9 of the owner. Opening it anew is an error that says why."""
    owner = python(
        """
        import pickle, sys, prejoin, pyarrow as pa
        users = pa.table({"id": range(5000), "name": [f"user {i}" for i in range(5000)]})
        shared = prejoin.prepare(users, "id").share()
        print(pickle.dumps(shared).hex(), flush=True)
        sys.stdin.read()
        """
    )
    assert owner.stdout is not None
    sent = bytes.fromhex(owner.stdout.readline())
    opened = pickle.loads(sent).open()
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    assert names(opened) == NAMES
    with pytest.raises(FileNotFoundError, match="gone"):
        pickle.loads(sent)


def test_a_killed_save_leaves_one_of_two_files(tmp_path: Path) -> None:
    """B5: whenever a saving process is killed, the path leads to the old file or to the new one."""
    path = tmp_path / "build"
    whole = {prejoin.prepare(pa.table({"id": range(n)}), "id").fingerprint for n in (60_000, 70_000)}
    text = """
        import sys, prejoin, pyarrow as pa
        builds = [prejoin.prepare(pa.table({"id": range(n)}), "id") for n in (60_000, 70_000)]
        builds[0].save(sys.argv[1])
        print("saved", flush=True)
        while True:
            for build in builds:
                build.save(sys.argv[1])
        """
    for round in range(4):
        saving = python(text, str(path))
        assert saving.stdout is not None
        saving.stdout.readline()
        for _ in range(round * 5):
            assert prejoin.open(path).fingerprint in whole
        saving.kill()
        saving.communicate()
        assert prejoin.open(path).fingerprint in whole


def test_threads_open_and_save_at_once(path: Path, pool: prejoin.MemoryPool) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(20):
                opened = prejoin.open(path, verify=number % 2 == 0, pool=pool if number % 3 == 0 else None)
                assert names(opened) == NAMES
                if number == 0:
                    opened.save(path)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert pool.reserved == 0


@linux
def test_processes_share_one_copy() -> None:
    """B5: the example with a small build, for which the memory of each process matters more; four copies would show."""
    script = Path(__file__).parents[2] / "examples" / "one_copy_per_host.py"
    command = [sys.executable, str(script), "--rows", "200000", "--processes", "4", "--at-most", "1.6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_files_are_replaced(tmp_path: Path) -> None:
    build = prejoin.prepare(pa.table({"k": [1]}), "k")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a device, pipe or socket, not a file"):
        build.save(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        build.save(tmp_path)
    build.save(tmp_path / "file")
    (tmp_path / "link").symlink_to("file")
    other = prejoin.prepare(pa.table({"k": [1, 2]}), "k")
    other.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert prejoin.open(tmp_path / "file").num_rows == 2
    assert sorted(os.listdir(tmp_path)) == ["file", "link", "pipe"]


def test_damaged_rows_of_an_unverified_file_name_the_file(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What is caught on the way is not printed."""
    table = pa.table({"k": [30 * 10**11, 10**12, 20 * 10**11] * 100, "v": list(range(300))})
    prejoin.prepare(table, "k").save(path)
    data = bytearray(path.read_bytes())
    for section in range(struct.unpack_from("<I", data, 24)[0]):
        name, _, _, offset, length = struct.unpack_from("<16sIIQQ", data, 64 + 40 * section)
        if name.rstrip(b"\0") == b"group_rows":
            for at in range(offset, offset + length, 4):
                data[at + 1] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(prejoin.ExecutionError, match="checksum"):
        prejoin.open(path)
    build = prejoin.open(path, verify=False)
    keys = table["k"].slice(0, 2).combine_chunks()
    asked: list[Any] = [
        lambda: prejoin.join(pa.record_batch({"k": keys}), build),
        lambda: prejoin.join(pa.record_batch({"k": keys}), build, how="full"),
        lambda: prejoin.join(pa.record_batch({"k": keys}), build, where="build.v > 1"),
        lambda: build.lookup(keys, keep="first"),
        lambda: build.get(10**12, keep="last"),
        lambda: build.probe_indices(keys),
    ]
    for ask in asked:
        with pytest.raises(prejoin.ExecutionError, match="opened unverified and is damaged"):
            ask()
    assert capfd.readouterr() == ("", "")


def test_unverified_builds_are_checked_where_they_are_read(tmp_path: Path) -> None:
    """Joins, lookups and conditions check only the columns that they read; damage elsewhere does not stop them."""
    path = tmp_path / "build"
    rows = 2000
    table = pa.table(
        {
            "id": [i * 977 for i in range(rows)],
            "v": list(range(rows)),
            "bad text": ["abcdefgh"] * rows,
            "bad codes": pa.array(["x", "y"] * (rows // 2)).dictionary_encode(),
            "codes": pa.array(["p", "q"] * (rows // 2)).dictionary_encode(),
        }
    )
    prejoin.prepare(table, "id").save(path)
    data = path.read_bytes()
    assert data.count(b"abcdefgh" * rows) == 1
    data = data.replace(b"abcdefgh" * rows, b"abc\xff\xfeefg" * rows)
    codes = bytes([0, 0, 0, 0, 1, 0, 0, 0] * (rows // 2))
    first = data.index(codes)
    path.write_bytes(data[:first] + b"\xff" * len(codes) + data[first + len(codes) :])
    probe = pa.table({"id": [977, 5, 0], "w": [1, 2, 3]})
    opened = prejoin.open(path, verify=False)
    kinds: list[Any] = ["inner", "left", "right", "full", "build_semi", "build_anti"]
    row_kinds: list[Any] = ["semi", "anti", "mark"]
    for how in kinds:
        for columns in (["v"], ["v", "codes"]):
            got = prejoin.join(probe, opened, how=how, select=[f"build.{name}" for name in columns])
            want = prejoin.join(
                probe, prejoin.prepare(table, "id"), how=how, select=[f"build.{name}" for name in columns]
            )
            assert got.to_pydict() == want.to_pydict(), how
        assert prejoin.join(probe, opened, how=how, where="build.v > 0", select=["build.v"]).num_rows
    for how in row_kinds:
        assert prejoin.join(probe, opened, how=how).num_rows > 0
    assert opened.lookup([977, 5], columns=["v", "codes"]).to_pydict() == {"v": [1, None], "codes": ["q", None]}
    assert opened.contains([977, 5]).to_pylist() == [True, False]
    assert opened.count_matches([977]).to_pylist() == [1]
    for bad in ("bad text", "bad codes"):
        asks: list[Any] = [
            lambda bad=bad: prejoin.join(probe, opened, select=[f"build.{bad}"]),
            lambda bad=bad: opened.lookup([977], columns=[bad]),
            lambda bad=bad: prejoin.join(probe, opened, where=f"build.\"{bad}\" > 'a'", select=["build.v"]),
            opened.to_table,
        ]
        for ask in asks:
            with pytest.raises(prejoin.ExecutionError, match="not valid"):
                ask()


def test_a_copy_in_memory_does_not_need_its_file(path: Path, tmp_path: Path, pool: prejoin.MemoryPool) -> None:
    size = path.stat().st_size
    build = prejoin.open(path, memory=True, pool=pool)
    assert (pool.reserved, build.reserved_bytes, build.memory()["private"], build.memory()["mapped"]) == (size,) * 3 + (
        0,
    )
    assert prejoin.open(path, memory=True).reserved_bytes == size
    sent = pickle.dumps(build)
    assert pickle.loads(sent).memory()["private"] == size
    kept = path.read_bytes()
    path.write_bytes(b"")
    assert names(build) == NAMES
    assert build.to_table().equals(USERS)
    build.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == kept
    small = prejoin.MemoryPool(size - 1)
    with pytest.raises(prejoin.ResourcesExhausted, match="copy of a saved build"):
        prejoin.open(tmp_path / "again", memory=True, pool=small)
    assert small.reserved == 0
    del build
    assert pool.reserved == 0


@linux
def test_a_handle_of_something_else_is_refused(tmp_path: Path) -> None:
    """The process has ended, and its descriptor number now belongs to a pipe, which would block whoever opens it."""
    shared = prejoin.prepare(USERS, "id").share()
    attach = shared.__reduce__()[0]
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, Path("/dev/null"), Path(__file__)):
        with pytest.raises(prejoin.ExecutionError, match="something else is in the place of the shared build"):
            attach(str(place), "0" * 32)


def test_an_interrupted_call_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C during repeated saving, opening, sharing and fingerprints: each of them stops, and no file is left."""
    text = """
        import os, signal, sys, prejoin, pyarrow as pa
        rows = 300_000
        pool = prejoin.MemoryPool()
        table = pa.table({"id": pa.array(range(0, rows * 7, 7)), "s": [f"text {i}" for i in range(rows)]})
        build = prejoin.prepare(table, "id", pool=pool)
        held = pool.reserved
        path = sys.argv[1]
        rounds = 0

        class Stop(BaseException):
            pass

        def stop(*_):
            raise Stop

        signal.signal(signal.SIGALRM, stop)
        kept = None
        while rounds < 12:
            signal.setitimer(signal.ITIMER_REAL, 0.02 + 0.013 * rounds)
            try:
                while True:
                    build.save(path)
                    build.share().open(pool=pool)
                    prejoin.open(path, pool=pool)
                    prejoin.open(path, pool=pool, memory=True)
            except Stop:
                rounds += 1
            assert pool.reserved == held, (pool.reserved, held)
            assert set(os.listdir(os.path.dirname(path))) <= {os.path.basename(path)}
        print("done")
        """
    folder = tmp_path / "folder"
    folder.mkdir()
    done, _ = python(text, str(folder / "build")).communicate()
    assert done == "done\n"


def test_a_long_save_is_interrupted(tmp_path: Path) -> None:
    """The signal arrives before the call, so a save of 100 MB does not finish."""
    rows = 1_500_000
    build = prejoin.prepare(pa.table({"id": range(0, rows * 7, 7), **{f"v{i}": range(rows) for i in range(6)}}), "id")

    class Stop(BaseException):
        pass

    def stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        with pytest.raises(Stop):
            build.save(tmp_path / "build")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert os.listdir(tmp_path) == []


@linux
def test_files_in_hard_places(tmp_path: Path) -> None:
    """The longest names, links to files that do not exist yet, modes, and directories without read permission."""
    build = prejoin.prepare(USERS, "id")
    build.save(tmp_path / ("x" * 255))
    (tmp_path / ("x" * 255)).unlink()
    with pytest.raises(OSError, match="too long") as refused:
        build.save(tmp_path / ("x" * 256))
    assert refused.value.errno == errno.ENAMETOOLONG
    with pytest.raises(FileNotFoundError) as missing:
        prejoin.open(tmp_path / "missing")
    assert missing.value.errno == errno.ENOENT
    (tmp_path / "link").symlink_to("real")
    build.save(tmp_path / "link", mode=0o640)
    assert (tmp_path / "link").is_symlink()
    build.save(tmp_path / "link")
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    prejoin.open(tmp_path / "real", verify=False).save(tmp_path / "real")
    assert names(prejoin.open(tmp_path / "link")) == NAMES
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]
