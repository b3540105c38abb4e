#!/usr/bin/env python3
"""Does any shape of data make a join slow? Prints nanoseconds per probe row plus output row, and their ratio to the
plain case of the same keys and build size: keys in random order, of which half match. A ratio above 2 misses the bar.

    python benches/skew.py
    python benches/skew.py --kinds int64,uuid --rows 65536
"""

import argparse
import statistics
import time

import numpy as np
import pyarrow as pa

import prejoin

PROBE = 262_144
BAR = 2.0


def mix(numbers):
    """64 random-looking bits of each number (splitmix64, a bijection)."""
    x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def uuid(numbers):
    both = np.stack([mix(numbers), mix(numbers + (1 << 40))], axis=1)
    return pa.Array.from_buffers(pa.binary(16), len(numbers), [None, pa.py_buffer(both.tobytes())])


def strings(numbers):
    """Random strings of 3 to 40 bytes; different numbers are different strings from the 8th byte on at the latest."""
    digits = [f"{x:016x}" for x in mix(numbers).tolist()]
    return pa.array([f"{n:x}{d * 2}"[: 8 + int(d[:2], 16) % 33] for n, d in zip(numbers.tolist(), digits, strict=True)])


# Key columns by number; different numbers are different keys.
KINDS = {
    "int64": lambda n: [pa.array(n * 17)],
    "random64": lambda n: [pa.array(mix(n).view(np.int64))],
    "utf8": lambda n: [pa.array([f"key-{i:08d}" for i in n.tolist()])],
    "strings 3-40": lambda n: [strings(n)],
    "uuid": lambda n: [uuid(n)],
    "2 integers": lambda n: [pa.array(n // 365), pa.array((n % 365).astype(np.int32))],
    "integer, date, integer": lambda n: [
        pa.array(n // 3650),
        pa.array((n // 10 % 365).astype(np.int32), pa.date32()),
        pa.array((n % 10).astype(np.int8)),
    ],
    "integer, string": lambda n: [pa.array(n // 7), pa.array([f"part-{i}" for i in (n % 7).tolist()])],
    "5 mixed": lambda n: [
        pa.array(n // 7),
        pa.array([f"part-{i}" for i in (n % 7).tolist()]),
        pa.array(n * 0.5),
        pa.array(n % 2 == 0),
        pa.array((n % 1000).astype(np.int32), pa.date32()),
    ],
}


def table(kind, numbers, value):
    columns = KINDS[kind](numbers)
    names = [f"k{i}" for i in range(len(columns))]
    return pa.record_batch([*columns, pa.array(np.arange(len(numbers)))], [*names, value]), names


def measure(batch, build):
    """Median nanoseconds per probe row plus output row."""
    times = []
    for _ in range(9):
        start = time.perf_counter_ns()
        joined = prejoin.join(batch, build)
        times.append(time.perf_counter_ns() - start)
        rows = joined.num_rows
        del joined
    return statistics.median(times[1:]) / (batch.num_rows + rows), rows


def cases(kind, rows, rng):
    """(name, build, probe batch, rows expected)."""
    order = rng.permutation(rows)
    unique, names = table(kind, order, "payload")
    build = prejoin.prepare(unique, on=names)
    some = lambda hits: np.where(
        rng.random(PROBE) < hits, rng.integers(0, rows, PROBE), rng.integers(rows, 2 * rows, PROBE)
    )
    probe = lambda numbers: table(kind, numbers, "value")[0]
    half = some(0.5)
    yield "random, 50% match", build, probe(half), (half < rows).sum()
    for name, hits in [("none match", 0.0), ("all match", 1.0), ("1% match", 0.01), ("99% match", 0.99)]:
        numbers = some(hits)
        yield name, build, probe(numbers), (numbers < rows).sum()
    yield "sorted probe", build, probe(np.sort(half)), (half < rows).sum()
    ordered, _ = table(kind, np.arange(rows), "payload")
    yield "sorted build", prejoin.prepare(ordered, on=names), probe(half), (half < rows).sum()
    # Half of the build rows hold one key; so few probe rows ask for it that the output stays near the probe's size.
    heavy = np.where(np.arange(rows) % 2 == 0, 0, order)
    skewed, _ = table(kind, heavy, "payload")
    counts = np.bincount(heavy, minlength=2 * rows)
    asked = np.where(half == 0, rows, half)
    asked[: max(1, PROBE // rows)] = 0
    yield "one key in half the build", prejoin.prepare(skewed, on=names), probe(asked), counts[asked].sum()
    few = np.where(half < rows, half % 1000, 2 * rows - 1 - half % 1000)
    batch = probe(few)
    encoded = [
        column.dictionary_encode() if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    yield "dictionary-encoded probe", build, pa.record_batch(encoded, batch.schema.names), (few < rows).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", type=lambda s: s.split(","), default=list(KINDS))
    parser.add_argument("--rows", type=lambda s: [int(x) for x in s.split(",")], default=[65_536, 1_000_000])
    args = parser.parse_args()
    missed = []
    for kind in args.kinds:
        for rows in args.rows:
            plain = None
            for name, build, batch, expected in cases(kind, rows, np.random.default_rng(7)):
                took, found = measure(batch, build)
                assert found == expected, f"{kind}, {name}: {found} rows, not {expected}"
                plain = plain or took
                verdict = "reached" if took <= BAR * plain else "NOT reached"
                missed += [f"{kind}/{rows}/{name}"] * (verdict != "reached")
                print(
                    f"{kind:24} {rows:>9,} {build.index_kind:7} {name:26} {took:7.2f} ns  {took / plain:5.2f} x  {verdict}",
                    flush=True,
                )
    print(f"bar of {BAR} x the plain case missed by: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
