"""A build after fork, and processes that exit while joins, sessions or threads are alive."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from typing import Any

import pyarrow as pa
import pytest

import prejoin


def child(build: prejoin.PreparedBuild, out: Any) -> None:
    keys = pa.array(range(100_000), pa.int64())
    out.send(prejoin.join(pa.record_batch({"k": keys}), build).num_rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_build_is_probed_after_fork() -> None:
    build = prejoin.prepare(pa.table({"k": pa.array(range(0, 100_000, 2), pa.int64())}), "k")
    context = multiprocessing.get_context("fork")
    for _ in range(2):
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=child, args=(build, send))
        process.start()
        assert receive.poll(60)
        assert receive.recv() == 50_000
        process.join(60)
        assert process.exitcode == 0


@pytest.mark.parametrize(
    "text",
    [
        "reader = prejoin.join(iter([batch] * 3), build); reader.read_next_batch()",
        "reader = prejoin.join(stream(), build); reader.read_next_batch()",
        "reader = prejoin.HashJoin(build.schema, stream(), 'k').with_prepared_build(build).execute()",
        "session = prejoin.HashJoin(build.schema, build.schema, 'k', 'full').with_prepared_build(build).open()",
        "threading.Thread(target=lambda: prejoin.prepare(itertools.repeat(batch), 'k'), daemon=True).start()",
        "f = prejoin.DynamicFilter(build.schema, 'k'); threading.Thread(target=f.wait_complete, daemon=True).start()",
    ],
)
def test_exit_with_something_alive(text: str) -> None:
    """The process ends by itself with code 0 and says nothing."""
    script = f"""
        import itertools, threading, pyarrow as pa, prejoin
        batch = pa.record_batch({{"k": [1, 2]}})
        build = prejoin.prepare(batch, "k")
        class Stream:
            def __arrow_c_stream__(self, requested_schema=None):
                return pa.RecordBatchReader.from_batches(batch.schema, iter([batch] * 3)).__arrow_c_stream__()
        stream = Stream
        {text}
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


ALONE = """
    import importlib, importlib.metadata, pkgutil, sys

    # numpy is a package of pyarrow: old versions need it.
    kept = {"prejoin", "pyarrow", "numpy"}
    others = set(importlib.metadata.packages_distributions()) - kept

    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in others:
                raise ModuleNotFoundError(f"no module {name}", name=name)

    sys.meta_path.insert(0, Absent())
    import prejoin, pyarrow as pa

    libraries = {"prejoin.pandas", "prejoin.polars"}
    for module in pkgutil.walk_packages(prejoin.__path__, "prejoin."):
        if module.name not in libraries and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with prejoin.BuildCache() as cache:
        users = cache.get("users", lambda: pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
        print(prejoin.join([{"id": 2}], users), users.map([1], "name").to_pylist())
"""


def test_the_package_needs_nothing_but_its_dependencies() -> None:
    """A user has pyarrow alone, not what the tests and the type checkers bring."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(ALONE)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[{'id': 2, 'name': 'bob'}] ['ada']\n", "")
