"""Names of columns as files have them, and as options name them."""

from __future__ import annotations

from pathlib import Path

from commands import run


def test_a_key_that_a_header_repeats(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("id,id,v\n1,2,3\n")
    (tmp_path / "once.csv").write_text("id,w\n1,2\n")
    for build, probe, side in (("twice", "once", "build"), ("once", "twice", "probe")):
        done = run(
            "join", "--build", f"{build}.csv", "--probe", f"{probe}.csv", "--on", "id", "--out", "-", cwd=tmp_path
        )
        text = f"the {side} has more than one column 'id', a key; here they are id:1, id:2: name one"
        assert (done.returncode, done.stderr.decode()) == (1, f"prejoin join: error: {text}\n")
