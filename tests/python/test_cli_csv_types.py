"""Types of CSV columns: guessed so that no two different texts become one value."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import prejoin
from commands import joined, put, ran, refused, rows_of, run

# Two texts a line that a careless reader takes for one value.
ALIKE = [
    ("12345678901234567890", "12345678901234567891"),
    ("9007199254740993", "9007199254740992"),
    ("007", "7"),
    ("+7", "7"),
    ("-0", "0"),
    ("1e5", "100000"),
    ("1E5", "1e5"),
    ("1.10", "1.1"),
    ("1.0", "1"),
    (".5", "0.5"),
    ("0.1000000000000000055", "0.1"),
    ("NaN", "nan"),
    ("inf", "Infinity"),
    ("0x10", "16"),
    ("1_000", "1000"),
    ("true", "TRUE"),
    (" 7", "7"),
    ("7 ", "7"),
    ("1,5", "1.5"),
    ("2024-02-29 12:00", "2024-02-29 12:00:00"),
    ("2024-02-29T12:00:00", "2024-02-29 12:00:00"),
    ("2024-02-29 12:00:00.5", "2024-02-29 12:00:00.50"),
    ("2024-2-9", "2024-02-09"),
    ("9:05:00", "09:05:00"),
    ("a\0b", "a"),
    ("é", "e\u0301"),
]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_texts_that_are_alike_stay_two_keys(tmp_path: Path, first: str, second: str) -> None:
    """Each text finds its own row, in a join and by lookups, whichever of the two comes first in the file."""
    for texts in ((first, second), (second, first)):
        build = "id,label\n" + "".join(f'"{text}",{i}\n' for i, text in enumerate(texts))
        put(tmp_path, b=build, p="id,n\n" + "".join(f'"{text}",{i}\n' for i, text in enumerate(texts)))
        want = [[text, str(i), str(i)] for i, text in enumerate(texts)]
        assert joined(tmp_path)[1:] == want
        assert rows_of(ran("lookup", "--build", "b.csv", "--on", "id", "--keys", "p.csv", "--format", "csv",
                           cwd=tmp_path))[1:] == [row[:2] for row in want]  # fmt: skip
        ran("prepare", "--build", "b.csv", "--on", "id", "--out", "b.prejoin", cwd=tmp_path)
        saved = prejoin.open(tmp_path / "b.prejoin").to_table()["id"].cast(pa.string()).to_pylist()
        assert saved == list(texts)


PAYLOADS = ["9.50", "9.5", "1.10", "1.1", "TRUE", "true", "1e5", "+5", "007", "2024-02-29T12:00:00", "NaN", "1,000.00",
            "12:00", "29.02.2024", "2024-02-29 12:00:00.5", "0.30000000000000004", "-1.0", " x ", 'say "no"',
            "two\nlines", "", "a\0b", "=1+1"]  # fmt: skip


@pytest.mark.parametrize("format", ["csv", "tsv"])
@pytest.mark.parametrize("value", PAYLOADS)
def test_what_nobody_computes_with_keeps_its_text(tmp_path: Path, value: str, format: str) -> None:
    quoted = '"' + value.replace('"', '""') + '"'
    put(tmp_path, b=f"id,v,w\n1,{quoted},\n2,3,4\n", p=f"id,x\n1,{quoted}\n")
    out = ran("join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--out", "-", "--out-format", format,
              cwd=tmp_path)  # fmt: skip
    assert rows_of(out, "\t" if format == "tsv" else ",")[1:] == [["1", value, value, ""]]


def test_quotes_in_output_say_what_is_text(tmp_path: Path) -> None:
    """Numbers, dates and times stand without quotes, also where they are passed on as they are; null is nothing."""
    put(tmp_path, b='id,n,d,t,z,e\n1,9.50,2024-02-29,a,007,\n2,1.25,2024-03-01,,,""\n', p="id\n1\n2\n")
    out = ran("join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--out", "-", cwd=tmp_path)
    assert out == b'"id","n","d","t","z","e"\n1,9.50,2024-02-29,"a","007",\n2,1.25,2024-03-01,,,""\n'
    # A row of one null is a row.
    assert ran("join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--select", "t", "--out", "-",
               cwd=tmp_path) == b'"t"\n"a"\n""\n'  # fmt: skip


def test_types_for_those_who_compute(tmp_path: Path) -> None:
    """Parquet, JSON and conditions get values."""
    put(tmp_path, b="id,lim,on,at\n1,9.50,true,2024-02-29T12:00:00\n2,10.25,false,\n", p="id,price\n1,10\n2,10\n")
    join = ["join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--out"]
    ran(*join, "o.parquet", cwd=tmp_path)
    table = pa.parquet.read_table(tmp_path / "o.parquet")
    assert table.schema.types == [pa.int64(), pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("ms")]
    assert table["lim"].to_pylist() == [9.5, 10.25]
    assert joined(tmp_path, "--where", "probe.price > build.lim") == [
        ["id", "price", "lim", "on", "at"], ["1", "10", "9.5", "true", "2024-02-29T12:00:00"]]  # fmt: skip
    row = ran("lookup", "--build", "b.csv", "--on", "id", "1", "--format", "json", cwd=tmp_path)
    assert row == b'{"id": 1, "lim": 9.5, "on": true, "at": "2024-02-29T12:00:00"}\n'


@pytest.mark.parametrize(
    "values", ["9.5,10.25,3.10", "1.9,1.10,1.1", "$5,$10,$7", "5,n/a,10", "1/2/2024,12/1/2023,3/4/2024", "007,10,9"]
)
@pytest.mark.parametrize("where", ["probe.v > build.lim", "build.lim between 'a' and probe.v", "probe[1] <= build[1]"])
def test_text_that_looks_like_numbers_has_no_order(tmp_path: Path, values: str, where: str) -> None:
    """Text orders '10' before '9': a condition over such a column is refused until its type is said."""
    lines = "".join(f"{i},{value}\n" for i, value in enumerate(values.split(",")))
    put(tmp_path, b="id,lim\n" + lines, p="id,v\n" + lines)
    base = ["join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--where", where, "--out", "-"]
    error = refused(*base, cwd=tmp_path)
    assert error.startswith("b.csv: column 'lim' is read as text")
    assert "--csv-type lim=double (or another), or lim=string" in error
    said = ["--csv-type", "lim=string", "--csv-type", "v=string"]
    assert run(*base, *said, cwd=tmp_path).returncode == 0
    # Equality of text is the equality of keys, and other columns do not count.
    assert run(*base[:-3], "probe.v = build.lim and probe.id >= 0", "--out", "-", cwd=tmp_path).returncode == 1
    assert joined(tmp_path, "--where", "probe.v = build.lim")[1:] == [
        [str(i), value, value] for i, value in enumerate(values.split(","))]  # fmt: skip
    assert len(joined(tmp_path, "--where", "probe.id <= build.id and 'build.lim' <> '<'")) == 4


def test_prices_compare_as_numbers_where_their_type_is_said(tmp_path: Path) -> None:
    put(tmp_path, b="id,lim\n1,9.5\n2,10.25\n3,3.10\n", p="id,price\n1,10\n2,9.50\n3,4.0\n")
    said = ["--csv-type", "lim=double", "--csv-type", "price=double"]
    where = ["--where", "probe.price > build.lim", "--select", "id"]
    assert joined(tmp_path, *where, *said)[1:] == [["1"], ["3"]]


def test_types_that_change_in_a_csv_stream(files: Path) -> None:
    """The types of a stream are guessed from its beginning; a later value that does not fit is refused by its line."""
    (files / "late.csv").write_text("id,v\n" + "1,2\n" * 400_000 + "1,text\n")
    arguments = ["join", "--build", files / "users.parquet", "--probe", files / "late.csv", "--on", "id", "--out"]
    assert refused(*arguments, files / "out.parquet") == (
        f"{files / 'late.csv'}: line 400002, column 'v': 'text' is not int64; the values before it are of type int64; "
        "keep all as they are by --csv-type v=string"
    )
    piped = ["join", "--build", files / "users.parquet", "--probe", "-", "--on", "id", "--out", files / "out.parquet"]
    assert "row 400001, column 'v': 'text'" in refused(*piped, stdin=(files / "late.csv").read_bytes())
    assert sorted(os.listdir(files)) == ["events.parquet", "late.csv", "users.parquet"]
    ran(*arguments, files / "out.parquet", "--csv-type", "v=string")
    # Text needs no type to be passed on.
    ran(*arguments, files / "out.csv")
    assert (files / "out.csv").read_text().endswith('\n1,text,"ada",\n')


def test_said_types_are_held_to(tmp_path: Path) -> None:
    put(tmp_path, b="id,v\n1,1.005\n", p='id,n\n1,""\n2,2024-01-01\n')
    assert "column 'v': '1.005' is not decimal128(10, 2)" in refused(
        "join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--out", "-", "--csv-type", "v=decimal128(10,2)",
        cwd=tmp_path)  # fmt: skip
    assert joined(tmp_path, "--csv-type", "v=decimal128(10,4)", "--csv-type", "n=date32", "--how", "left") == [
        ["id", "n", "v"], ["1", "", "1.0050"], ["2", "2024-01-01", ""]]  # fmt: skip
    assert "no CSV file has a column 'w'; there are id, v, n" in refused(
        "join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--out", "-", "--csv-type", "w=int64",
        cwd=tmp_path)  # fmt: skip


def test_durations_are_whole_numbers_of_their_unit(tmp_path: Path) -> None:
    """Those that join writes are those that lookup prints and takes, and --csv-type reads them."""
    durations = pa.array([5, 90061, None], pa.duration("ms"))
    table = pa.table({"id": [1, 2, 3], "d": durations, "l": pa.array([[5], [], None], pa.list_(pa.duration("s")))})
    pa.parquet.write_table(table, tmp_path / "b.parquet")
    put(tmp_path, p="id\n1\n2\n3\n")
    want = [["1", "5", "[5]"], ["2", "90061", "[]"], ["3", "", ""]]
    out = ran("join", "--build", "b.parquet", "--probe", "p.csv", "--on", "id", "--out", "-", cwd=tmp_path)
    assert rows_of(out)[1:] == want
    (tmp_path / "o.csv").write_bytes(out)
    base = ["lookup", "--build", "b.parquet", "--format", "csv", "--on"]
    assert rows_of(ran(*base, "id", "1", "2", "3", cwd=tmp_path))[1:] == want
    assert rows_of(ran(*base, "d", "90061", cwd=tmp_path))[1:] == want[1:2]
    again = ["lookup", "--build", "o.csv", "--on", "d", "--csv-type", "d=duration[ms]", "5", "--format", "csv"]
    assert rows_of(ran(*again, cwd=tmp_path))[1:] == want[:1]
    assert ran(*base[:3], "--format", "json", "--on", "id", "1", cwd=tmp_path) == b'{"id": 1, "d": 5, "l": [5]}\n'


def test_empty_and_header_only_columns_take_the_other_sides_type(tmp_path: Path) -> None:
    put(tmp_path, b="id,label\n", p="id,n\n1,10\n,20\n")
    assert joined(tmp_path, "--how", "full") == [["id", "n", "label"], ["1", "10", ""], ["", "20", ""]]
    put(tmp_path, b="id,label\n,none\n", p="id,n\nx,10\n")
    assert joined(tmp_path, "--how", "full")[1:] == [["x", "10", ""], ["", "", "none"]]
    # Numbers on one side and text on the other are joined as the text that both are.
    put(tmp_path, b="id,label\n7,seven\n08,eight\n", p="id,n\n7,10\n8,20\n")
    assert joined(tmp_path)[1:] == [["7", "10", "seven"]]
