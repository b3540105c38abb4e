"""CSV as other programs write it: marks, line ends, quotes, encodings, headers, long cells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commands import joined, put, ran, refused, rows_of

WANT = [["id", "n", "label"], ["2", "20", "two"], ["1", "10", "one"]]
BUILD, PROBE = "id,label\n1,one\n2,two\n", "id,n\n2,20\n1,10\n"


def ends(text: str, *line_ends: str) -> str:
    """The text with other line ends, in turn."""
    lines = text.rstrip("\n").split("\n")
    return "".join(line + line_ends[i % len(line_ends)] for i, line in enumerate(lines))


@pytest.mark.parametrize("line_ends", [("\r\n",), ("\r",), ("\n", "\r\n", "\r"), ("\r\n", "\n")])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("quoted", [False, True])
def test_marks_and_line_ends(tmp_path: Path, line_ends: tuple[str, ...], mark: str, last: bool, quoted: bool) -> None:
    """Files, standard input and lists of keys, with a byte order mark and without the last line end."""
    build, probe = BUILD, PROBE
    if quoted:
        build, probe = (
            "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in text.split("\n")[:-1]) + "\n"
            for text in (build, probe)
        )
    build, probe = (mark + ends(text, *line_ends) for text in (build, probe))
    if not last:
        build, probe = build.rstrip("\r\n"), probe.rstrip("\r\n")
    put(tmp_path, b=build, p=probe)
    assert joined(tmp_path) == WANT
    assert joined(tmp_path, "--probe", "-", stdin=probe.encode()) == WANT
    keys = (mark + ends("2\n\n1\n\n", *line_ends)).encode()
    found = ran("lookup", "--build", "b.csv", "--on", "id", "--keys", "-", "--format", "csv", stdin=keys, cwd=tmp_path)
    assert rows_of(found)[1:] == [["2", "two"], ["1", "one"]]
    (tmp_path / "b.csv").rename(tmp_path / "keys.csv")
    put(tmp_path, b=BUILD)
    found = ran("lookup", "--build", "b.csv", "--on", "id", "--keys", "keys.csv", "--format", "csv", cwd=tmp_path)
    assert rows_of(found)[1:] == [["1", "one"], ["2", "two"]]


@pytest.mark.parametrize("header", ["id,x", "id,x\n", "id,x\r\n", "\ufeffid,x", '"id","x"', "\n\nid,x"])
def test_a_header_alone_has_no_rows(tmp_path: Path, header: str) -> None:
    put(tmp_path, h=header, p="id,n\n1,10\n")
    assert joined(tmp_path, "--build", "h.csv", "--how", "left") == [["id", "n", "x"], ["1", "10", ""]]
    assert joined(tmp_path, "--build", "p.csv", "--probe", "h.csv") == [["id", "x", "n"]]
    out = ran("lookup", "--build", "p.csv", "--on", "id", "--keys", "h.csv", "--format", "csv", cwd=tmp_path)
    assert out == b"id,n\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('id,n\n1,a\n2,"b\n3,c\n', "line 3"),
        ('id,n\n"1,a\n2,b\n', "line 2"),
        ('id,"n\n1,a\n', "line 1"),
        ('id,n\n1,"a\nb"\n2,"c\n', "line 4"),
        ('id,n\n1,"a" b\n2,"c\n3,d', "line 3"),
        ("id,n\n" + "1,text\n" * 200_000 + '2,"open\n' + "3,text\n" * 200_000, "line 200002"),
    ],
)
def test_a_quote_that_never_ends_is_refused(tmp_path: Path, text: str, line: str) -> None:
    put(tmp_path, b=BUILD, p=text)
    want = f"p.csv: {line}: a quote is opened and never closed"
    for build, probe in (("b.csv", "p.csv"), ("p.csv", "b.csv")):
        error = refused("join", "--build", build, "--probe", probe, "--on", "id", "--how", "full", "--out", "o.csv",
                        cwd=tmp_path)  # fmt: skip
        assert error.startswith(want), error
    assert "never closed" in refused("join", "--build", "b.csv", "--probe", "-", "--on", "id", "--out", "o.csv",
                                     stdin=text.encode(), cwd=tmp_path)  # fmt: skip
    assert sorted(os.listdir(tmp_path)) == ["b.csv", "p.csv"]


def test_quotes_within_text(tmp_path: Path) -> None:
    put(tmp_path, b=BUILD, p='id,n\n1,5" nail\n2,"say ""hi"", twice"\n1,"two\nlines"\n')
    assert [row[1] for row in joined(tmp_path)[1:]] == ['5" nail', 'say "hi", twice', "two\nlines"]


@pytest.mark.parametrize("size", [70_000, 1_500_000, 9_000_000])
def test_cells_of_any_length(tmp_path: Path, size: int) -> None:
    """A cell may be longer than what is read at once, quoted and with lines in it."""
    cells = ["x" * size, "a,\n" * (size // 3), "short"]
    put(tmp_path, b=BUILD, p="id,n\n" + "".join(f'{1 + i % 2},"{cell}"\n' for i, cell in enumerate(cells)))
    assert [row[1] for row in joined(tmp_path)[1:]] == cells
    assert [row[2] for row in joined(tmp_path, "--build", "p.csv", "--probe", "b.csv")[1:]] == [
        cells[0], cells[2], cells[1]]  # fmt: skip


def test_many_columns(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(2000)]
    put(tmp_path, b=BUILD, p=f"id,{','.join(names)}\n1,{','.join(map(str, range(2000)))}\n")
    assert joined(tmp_path, "--select", "c0,c1999,label") == [["c0", "c1999", "label"], ["0", "1999", "one"]]


@pytest.mark.parametrize(("delimiter", "name"), [(";", "';'"), ("\t", "a tab"), ("|", "'|'")])
def test_other_delimiters_are_named(tmp_path: Path, delimiter: str, name: str) -> None:
    build, probe = (text.replace(",", delimiter) for text in (BUILD, PROBE))
    put(tmp_path, b=build, p=probe, c=BUILD)
    for side in (["--build", "b.csv", "--probe", "c.csv"], ["--build", "c.csv", "--probe", "b.csv"]):
        error = refused("join", *side, "--on", "id", "--out", "-", cwd=tmp_path)
        start = f"b.csv: line 1: the header {f'id{delimiter}label'!r} is one column; if {name} separates the columns, "
        assert error.startswith(start), error
    assert joined(tmp_path, "--csv-delimiter", delimiter) == WANT
    if delimiter == "\t":
        assert joined(tmp_path, "--format", "tsv", "--out-format", "csv") == WANT


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"id,n\n1,\xff\n", "p.csv: line 2: column 'n' holds text that is not UTF-8"),
        (b'id,n\n1,"a\nb"\n2,\xff\n', "p.csv: line 4: column 'n' holds text that is not UTF-8"),
        (b"id,n\xe9\n1,2\n", "p.csv: line 1: the header is not UTF-8 text"),
        ("id,n\n1,2\n".encode("utf-16"), "p.csv: is UTF-16 text"),
        (b"id,n\n1,2\n\n1\n", "p.csv: line 4: has 1 fields, and the header has 2 columns"),
        (b"id,n\n" + b"1,text\n" * 400_000 + b"1,2,3\n", "p.csv: line 400002: has 3 fields"),
        (b"", "p.csv: is empty"),
        (b"\n\n", "p.csv: holds no header line"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: bytes, error: str) -> None:
    put(tmp_path, b=BUILD, p=text)
    for command in (
        ["join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--out", "o.csv"],
        ["join", "--build", "p.csv", "--probe", "b.csv", "--on", "id", "--out", "o.parquet"],
        ["prepare", "--build", "p.csv", "--on", "id", "--out", "o.prejoin"],
        ["lookup", "--build", "p.csv", "--on", "id", "1"],
        ["lookup", "--build", "b.csv", "--on", "id", "--keys", "p.csv"],
    ):
        assert refused(*command, cwd=tmp_path).startswith(error)
        assert sorted(os.listdir(tmp_path)) == ["b.csv", "p.csv"]


def test_bytes_are_kept_on_request(tmp_path: Path) -> None:
    put(tmp_path, b=BUILD, p=b"id,n\n1,caf\xe9\n")
    out = ran("join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--csv-type", "n=binary", "--out", "-",
              cwd=tmp_path)  # fmt: skip
    assert out == b'"id","n","label"\n1,"caf\xe9","one"\n'
