"""Memory goes back to the system, as /proc shows it: each case in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SCRIPT = """
    import gc, resource, sys, threading
    import numpy as np, pyarrow as pa, prejoin

    ROWS, MIB = 1_000_000, 1 << 20
    random = np.random.default_rng(0)
    keys = random.integers(-(2**62), 2**62, ROWS)

    def halves(table):
        return pa.concat_tables([table.slice(0, len(table) // 2), table.slice(len(table) // 2)])

    def shape(name):
        if name == "one chunk":
            return pa.table({"id": keys, "v": np.arange(ROWS)}), "id", {}
        if name == "chunks":
            return halves(pa.table({"id": keys, "v": np.arange(ROWS)})), "id", {}
        if name == "text":
            texts = pa.array([f"key-{i:020d}" for i in range(ROWS // 2)]).take(pa.array(random.permutation(ROWS // 2)))
            return halves(pa.table({"id": texts, "v": np.arange(ROWS // 2)})), "id", {}
        if name == "wide":
            few = ROWS // 4
            return halves(pa.table({"id": keys[:few], **{f"c{i}": np.arange(few) for i in range(12)}})), "id", {}
        if name == "keep":
            return halves(pa.table({"id": keys >> 41, "v": np.arange(ROWS)})), "id", {"keep": "first"}
        if name == "two keys":
            few = ROWS // 2
            texts = pa.array([str(i % 97) for i in range(few)])
            return halves(pa.table({"id": keys[:few], "k": texts, "v": np.arange(few)})), ["id", "k"], {}
        raise ValueError(name)

    def held():
        gc.collect()
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

    table, on, options = shape(sys.argv[1])
    prepare = lambda pool=None: prejoin.prepare(table, on, pool=pool, **options)
    # What any call brings with it is there before the first measurement.
    prejoin.prepare(table.slice(0, 1000), on, **options)
    before = held()

    def grown(what, charged, slack):
        found, most = held() - before, 1.10 * charged + slack * MIB
        assert found <= most, f"{what}: {found / MIB:.1f} MiB more, at most {most / MIB:.1f} are due"

    build = prepare()
    charged = build.reserved_bytes
    assert charged >= 16 * MIB, charged
    grown("after one", charged, 4)
    builds = [build, *(prepare() for _ in range(3))]
    grown("four at once", 4 * charged, 4)
    del build, builds
    grown("all dropped", 0, 8)
    for _ in range(10):
        prepare()
    grown("ten in a row", 0, 8)
    for _ in range(10):
        build = prepare()
    grown("the last of ten", charged, 4)
    # Made in one thread, dropped in another one.
    made = [build]
    del build
    for work in (lambda: made.append(prepare()), made.clear):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    grown("across threads", 0, 8)
    pool = prejoin.MemoryPool()
    prepare(pool)
    for percent in (30, 60, 80, 95):
        try:
            prepare(prejoin.MemoryPool(pool.peak * percent // 100))
        except prejoin.ResourcesExhausted:
            grown(f"refused at {percent}%", 0, 8)
        else:
            raise AssertionError(percent)

    # Large outputs keep their pages for the next ones.
    small = prejoin.prepare(pa.table({"id": np.arange(65536), "v": np.arange(65536)}), "id")
    probe = pa.record_batch({"id": random.integers(0, 65536, ROWS), "w": np.arange(ROWS)})
    faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    found = []
    for _ in range(11):
        start = faults()
        prejoin.join(probe, small)
        found.append(faults() - start)
    # The allocator gives back by itself what was free for a second, which a busy machine may meet once or twice.
    assert sorted(found)[5] < 400, f"page faults of each join: {found}; its output has 4,000 pages"
"""


@pytest.mark.parametrize("shape", ["one chunk", "chunks", "text", "wide", "keep", "two keys"])
def test_memory_of_large_builds_goes_back_to_the_system(shape: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), shape]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
