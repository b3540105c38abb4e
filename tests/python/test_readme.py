"""The Python examples in README.md and docs/ run as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python_in(name: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


BLOCKS = python_in("README.md")


def test_readme_has_examples() -> None:
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_readme_example(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_examples_of_predicates() -> None:
    """They run one after the other, since the later ones use variables of the first one."""
    blocks = python_in("docs/predicates.md")
    assert len(blocks) == 3
    exec(compile("\n".join(blocks), "docs/predicates.md", "exec"), {"__name__": "predicates"})


def test_examples_of_star_joins(capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, and what the last one prints is what stands below it."""
    blocks = python_in("docs/star.md")
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), "docs/star.md", "exec"), {"__name__": "star"})
    shown = [line[2:] for line in blocks[-1].splitlines() if line.startswith("# ")]
    assert capsys.readouterr().out.splitlines() == shown


def test_examples_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other; the last one prints why the file is refused."""
    monkeypatch.chdir(tmp_path)
    blocks = python_in("docs/rows.md")
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), "docs/rows.md", "exec"), {"__name__": "rows"})
    assert "7" in capsys.readouterr().out


def test_examples_of_as_of_joins() -> None:
    """One after the other; each asserts what it gives."""
    blocks = python_in("docs/asof.md")
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), "docs/asof.md", "exec"), {"__name__": "asof"})


def test_examples_of_frames() -> None:
    blocks = python_in("docs/frames.md")
    assert len(blocks) == 2
    exec(compile("\n".join(blocks), "docs/frames.md", "exec"), {"__name__": "frames"})


def test_examples_of_the_cache() -> None:
    blocks = python_in("docs/cache.md")
    assert len(blocks) == 2
    exec(compile("\n".join(blocks), "docs/cache.md", "exec"), {"__name__": "cache"})
