"""The year of flights that the demo joins, compared with pandas."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import prejoin
from prejoin import demo

Tables = dict[str, pa.Table]


def frame(table: pa.Table) -> pd.DataFrame:
    """Nullable columns of the same types, so that an integer column with nulls stays an integer column."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


STEPS = demo.steps()


@pytest.mark.parametrize(
    ("step", "rows"),
    list(zip(STEPS, (284_170, 329_174, 336_776, 335_220), strict=True)),
    ids=[step.table for step in STEPS],
)
def test_join_equals_pandas(flights_data: Tables, pool: prejoin.MemoryPool, step: demo.Step, rows: int) -> None:
    flights, table = flights_data["flights"], flights_data[step.table]
    prepared = prejoin.prepare(table, list(step.on.values()), pool=pool)
    got = prejoin.join(flights, prepared, on=step.on, suffix=step.suffix)
    assert got.num_rows == rows

    probe_keys, build_keys = list(step.on), list(step.on.values())
    clashes = {name: name + step.suffix for name in table.column_names if name in flights.column_names}
    right = frame(table).rename(columns={old: new for old, new in clashes.items() if old not in build_keys})
    # pandas matches null keys with each other; SQL's = does not.
    right = right.dropna(subset=build_keys)
    expected = frame(flights).merge(right, left_on=probe_keys, right_on=build_keys)
    expected = expected[got.column_names]
    pd.testing.assert_frame_equal(frame(got), expected, check_index_type=False)


def test_the_data_has_what_the_joins_assume(flights_data: Tables) -> None:
    flights, weather = flights_data["flights"], flights_data["weather"]
    assert flights["tailnum"].null_count == 2512
    assert {"year"} <= set(flights.column_names) & set(flights_data["planes"].column_names)
    prepared = prejoin.prepare(weather, ["origin", "time_hour"])
    assert (prepared.num_rows, prepared.num_keys, prepared.is_unique) == (26_115, 26_115, True)


def test_demo(flights_data: Tables, tmp_path: Path) -> None:
    output = tmp_path / "out" / "flights.parquet"
    report = demo.run(flights_data, output)
    assert [step.rows_out for step in report.steps] == [284_170, 277_977, 277_977, 276_688]
    assert [step.rows_in for step in report.steps] == [336_776, 284_170, 277_977, 277_977]
    assert all(step.batches == 83 for step in report.steps)
    written = pa.parquet.read_table(output)
    assert written.num_rows == 276_688
    # The year in which a plane was built has the same name as the year of the flight.
    assert set(written["year"].unique().to_pylist()) == {2013}
    assert written["year_plane"].null_count > 0
    table = "\n".join(demo.lines(report))
    assert all(f"{step.rows_out:,}" in table for step in report.steps)
