"""Names of columns as files have them, and as options name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import joined, put, ran, refused, rows_of


def test_names_in_quotes(tmp_path: Path) -> None:
    """Names with blanks at their ends, commas, equals signs and quotes stand in double quotes, as in CSV."""
    header = '" id","a,b",x=y,"say ""hi""",naïve'
    put(tmp_path, b=f"{header}\n1,2,3,4,5\n", p="id,n\n1,10\n")
    on = ["--on", 'id=" id"']
    assert joined(tmp_path, *on) == [["id", "n", "a,b", "x=y", 'say "hi"', "naïve"], ["1", "10", "2", "3", "4", "5"]]
    select = '"a,b","x=y" , new="say ""hi""","b, c"=naïve'
    assert joined(tmp_path, *on, "--select", select) == [["a,b", "x=y", "new", "b, c"], ["2", "3", "4", "5"]]
    assert joined(tmp_path, *on, "--where", 'build."a,b" = 2 and build."say ""hi""" < 5', "--select", "n")[1:] == [
        ["10"]
    ]
    typed = ["--csv-type", '"x=y"=string', "--csv-type", "naïve=double", "--csv-type", '" id"=int64']
    assert joined(tmp_path, *on, *typed, "--select", '"x=y",naïve')[1:] == [["3", "5"]]
    found = ran("lookup", "--build", "b.csv", "--on", '" id"', "1", "--columns", '"x=y","a,b"', "--format", "csv",
                cwd=tmp_path)  # fmt: skip
    assert rows_of(found) == [["x=y", "a,b"], ["3", "2"]]


def test_one_rename_leaves_the_other_names(tmp_path: Path) -> None:
    put(tmp_path, b="id,v,w\n1,2,3\n", p="id,v,n\n1,4,5\n")
    assert joined(tmp_path, "--select", "id,probe.v,number=n,build.w,v_right") == [
        ["id", "v", "number", "w", "v_right"], ["1", "4", "5", "3", "2"]]  # fmt: skip
    assert joined(tmp_path, "--select", "x=n,probe.v,build.v") == [["x", "v", "v_right"], ["5", "4", "2"]]
    assert joined(tmp_path, "--select", "probe.*,w") == [["id", "v", "n", "w"], ["1", "4", "5", "3"]]
    assert 'select gives two columns the name "v"' in refused(
        "join", "--build", "b.csv", "--probe", "p.csv", "--on", "id", "--select", "v=n,probe.v", "--out", "-",
        cwd=tmp_path)  # fmt: skip


def test_names_that_a_file_repeats_are_numbered(tmp_path: Path) -> None:
    put(tmp_path, b="id,x,x,x:1\n1,2,3,4\n", p="id,n,n\n1,5,6\n")
    assert joined(tmp_path) == [["id", "n:1", "n:2", "x:2", "x:3", "x:1"], ["1", "5", "6", "2", "3", "4"]]
    assert joined(tmp_path, "--select", "n:2,x:3")[1:] == [["6", "3"]]
    assert joined(tmp_path, "--where", 'probe."n:1" = 5 and build."x:1" > 3', "--select", "n:2")[1:] == [["6"]]
    put(tmp_path, b="id,id,v\n1,2,3\n", p="id,w\n1,2\n")
    for build, probe, side in (("b.csv", "p.csv", "build"), ("p.csv", "b.csv", "probe")):
        assert refused("join", "--build", build, "--probe", probe, "--on", "id", "--out", "-", cwd=tmp_path) == (
            f"the {side} has more than one column 'id', a key; here they are id:1, id:2: name one"
        )
    assert joined(tmp_path, "--on", "id=id:1")[1:] == [["1", "2", "2", "3"]]
    assert ran("lookup", "--build", "b.csv", "--on", "id:2", "2", "--format", "csv", cwd=tmp_path) == (
        b"id:1,id:2,v\n1,2,3\n"
    )
    error = refused("lookup", "--build", "b.csv", "--on", "v", "3", "--columns", "id", cwd=tmp_path)
    assert error == "the build has 2 columns 'id', called id:1, id:2 here; name one"


def test_a_column_without_a_name(tmp_path: Path) -> None:
    """Lines that end in a delimiter have one."""
    put(tmp_path, b="id,label,\n1,one,\n", p=",id\n0,1\n")
    assert joined(tmp_path) == [["", "id", "label", "_right"], ["0", "1", "one", ""]]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--on", "nope"], 'the build side has no column "nope"; its columns are "id", "label"'),
        (["--on", "n=id"], None),
        (["--on", "id", "--select", "nope"], 'select names "nope", which the output does not have'),
        (["--on", "id", "--where", "probe.nope = 1"], 'no column "nope"'),
        (
            ["--on", "id", "--csv-type", "nope=int64"],
            "--csv-type: no CSV file has a column 'nope'; there are id, label, n",
        ),
    ],
)
def test_names_that_are_not_there(tmp_path: Path, arguments: list[str], error: str | None) -> None:
    put(tmp_path, b="id,label\n1,one\n", p="id,n\n1,1\n")
    if error is None:
        assert joined(tmp_path, *arguments)[1:] == [["1", "1", "one"]]
        return
    base = ["join", "--build", "b.csv", "--probe", "p.csv", "--out", "o.csv"]
    assert error in refused(*base, *arguments, cwd=tmp_path)
    assert not (tmp_path / "o.csv").exists()
