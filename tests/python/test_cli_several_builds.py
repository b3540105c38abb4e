"""`prejoin join` with several builds: the output is that of one join after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import prejoin
from commands import put, ran, read, refused, rows_of, run, write

FLIGHTS = pa.table(
    {"flight": [1, 2, 3, 4], "tailnum": ["N2", "N9", "N1", "N2"], "dest": ["MIA", "IAH", None, "IAH"], "year": [13] * 4}
)
PLANES = pa.table({"tailnum": ["N1", "N2"], "model": [7, 8], "year": [1999, 2004]})
AIRPORTS = pa.table({"faa": ["IAH", "MIA", "IAH"], "city": ["Houston", "Miami", "Spring"], "tz": [-6, -5, -6]})
MODELS = pa.table({"id": [7, 8], "seats": [149, 55]})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, rows in {"flights": FLIGHTS, "planes": PLANES, "airports": AIRPORTS, "models": MODELS}.items():
        write(rows, tmp_path / f"{name}.parquet")
        write(rows, tmp_path / f"{name}.csv")
    return tmp_path


def chain(*steps: dict[str, Any]) -> pa.Table:
    rows = FLIGHTS
    for step in steps:
        rows = prejoin.join(rows, **step)
    return rows


def found(files: Path, *arguments: str, ending: str = "parquet") -> pa.Table:
    given = [f"{files / argument[1:]}.{ending}" if argument.startswith("@") else argument for argument in arguments]
    out = ran("join", "--probe", f"{files / 'flights'}.{ending}", *given, "--out", "-", "--out-format", "arrows")
    return read(out, "arrows")


PLANES_STEP: dict[str, Any] = {"build": PLANES, "on": "tailnum"}
AIRPORTS_STEP: dict[str, Any] = {"build": AIRPORTS, "on": {"dest": "faa"}}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        (["--build", "@planes", "--on", "tailnum", "--build", "@airports", "--on", "dest=faa"],
         [PLANES_STEP, AIRPORTS_STEP]),
        (["--build", "@planes", "--on", "tailnum", "--how", "left", "--suffix", "_p",
          "--build", "@airports", "--on", "dest=faa", "--how", "left", "--keep", "first", "--validate", "m:1"],
         [{**PLANES_STEP, "how": "left", "suffix": "_p"},
          {**AIRPORTS_STEP, "build": AIRPORTS.slice(0, 2), "how": "left"}]),
        # The key of the last build is a column that the first one adds.
        (["--build", "@planes", "--on", "tailnum", "--build", "@airports", "--on", "dest=faa", "--how", "semi",
          "--build", "@models", "--on", "model=id"],
         [PLANES_STEP, {**AIRPORTS_STEP, "how": "semi"}, {"build": MODELS, "on": {"model": "id"}}]),
        (["--build", "@planes", "--on", "tailnum", "--build", "@models", "--on", "planes.model=id", "--where",
          "planes.year > 2000 and seats < 100", "--how", "mark"],
         [PLANES_STEP, {"build": MODELS, "on": {"model": "id"}, "how": "mark",
                        "where": "probe.year_right > 2000 and seats < 100"}]),
        (["--build", "@planes", "--on", "tailnum", "--select", "made=year", "--build", "@airports", "--on", "dest=faa",
          "--select", "city"],
         [{**PLANES_STEP, "select": ["probe.*", {"made": "build.year"}]},
          {**AIRPORTS_STEP, "select": ["probe.*", "city"]}]),
        # Before the first build: what belongs to it, and the columns of the whole output.
        (["--select", "flight,planes.year,town=airports.city", "--on", "tailnum", "--build", "@planes",
          "--build", "@airports", "--on", "dest=faa"],
         [PLANES_STEP, {**AIRPORTS_STEP, "select": ["flight", "year_right", {"town": "city"}]}]),
    ],
)  # fmt: skip
def test_several_builds_are_a_chain(
    files: Path, arguments: list[str], steps: list[dict[str, Any]], ending: str
) -> None:
    want = chain(*steps)
    got = found(files, *arguments, ending=ending)
    if "--select" in arguments and arguments[0] == "--select":
        want = want.rename_columns(["flight", "year", "town"])
    assert got.column_names == want.column_names
    assert got.to_pylist() == want.to_pylist()


def test_types_of_keys_that_earlier_builds_add(tmp_path: Path) -> None:
    """A key column is read as a key in whatever file it is: `07` and `7` are two models."""
    put(tmp_path, probe="flight,tailnum\n1,N1\n2,N2\n3,N3\n", planes="tailnum,model\nN1,07\nN2,7\nN3,8\n")
    put(tmp_path, models="id,seats\n07,149\n7,55\n")
    arguments = ["join", "--probe", "probe.csv", "--build", "planes.csv", "--on", "tailnum", "--build", "models.csv",
                 "--on", "model=id", "--out", "-"]  # fmt: skip
    assert rows_of(ran(*arguments, cwd=tmp_path)) == [
        ["flight", "tailnum", "model", "seats"], ["1", "N1", "07", "149"], ["2", "N2", "7", "55"]]  # fmt: skip
    # Text on one side and numbers on the other.
    put(tmp_path, models="id,seats\n7,149\n8,55\n")
    assert rows_of(ran(*arguments, cwd=tmp_path))[1:] == [["2", "N2", "7", "149"], ["3", "N3", "8", "55"]]
    assert rows_of(ran(*arguments, "--where", "seats > 100", cwd=tmp_path))[1:] == [["2", "N2", "7", "149"]]


def test_saved_builds_limits_and_explain(files: Path) -> None:
    for name, key in (("planes", "tailnum"), ("models", "id")):
        ran("prepare", "--build", files / f"{name}.parquet", "--on", key, "--out", files / f"{name}.prejoin")
    arguments = ["join", "--probe", files / "flights.parquet", "--build", files / "planes.prejoin",
                 "--build", files / "models.prejoin", "--on", "model=id", "--select", "", "--out", "-"]  # fmt: skip
    limited = rows_of(ran(*arguments, "--limit", "1"))
    assert limited == [
        ["flight", "tailnum", "dest", "year", "model", "year_right"],
        ["1", "N2", "MIA", "13", "8", "2004"],
    ]
    shown = ran(*arguments, "--explain").decode().splitlines()
    assert shown[0].startswith("StarJoin: 2 legs")
    assert shown[1].startswith("  planes: inner on tailnum; build of 2 rows")
    assert shown[-2] == "probe: 4 rows, reading flight, tailnum, dest, year"
    assert shown[-1].startswith("output: flight: int64, tailnum: string")
    few = ran("join", "--select", "models.seats", *arguments[1:], "--explain").decode().splitlines()
    assert few[-2] == "probe: 4 rows, reading tailnum, year"
    # One limit for all builds.
    tight = run(*arguments, "--memory-limit", "10")
    assert (tight.returncode, b"10 bytes" in tight.stderr) == (1, True), tight.stderr


def test_what_is_refused(files: Path) -> None:
    base = [
        "join",
        "--probe",
        files / "flights.parquet",
        "--out",
        "-",
        "--build",
        files / "planes.parquet",
        "--on",
        "tailnum",
    ]
    second = ["--build", files / "airports.parquet"]
    assert "--on is needed" in run(*base, *second).stderr.decode()
    assert "standard input is one file" in run(*base, "--build", "-", "--on", "a", "--build", "-").stderr.decode()
    assert "a right join gives build rows after the last probe row" in refused(*base, *second, "--on", "dest=faa",
                                                                              "--how", "right")  # fmt: skip
    assert 'leg "airports": build column "faa" is Utf8, flight is' in refused(
        *base, *second, "--on", "flight=faa"
    ).replace("key types must match: ", "").replace("probe.flight", "flight")
    missing = run("join", "--probe", files / "flights.parquet", "--out", "-", "--on", "tailnum")
    assert (missing.returncode, b"--build" in missing.stderr) == (2, True)
    # Files of one name have other addresses.
    twice = ran(*base, "--build", files / "planes.parquet", "--on", "tailnum", "--explain").decode()
    assert "\n  planes: " in twice
    assert "\n  leg1: " in twice
