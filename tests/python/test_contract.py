"""The lines of docs/contract.md: all there, each once, and no test names another."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_contract_has_every_line_that_tests_name() -> None:
    """The lines are S1 to S51 and B1 to B14, in order; tests and benchmarks name no others."""
    lines = re.findall(
        r"^- \*\*([SB]\d+)\*\* \S", (ROOT / "docs" / "contract.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert lines == [f"S{n}" for n in range(1, 52)] + [f"B{n}" for n in range(1, 15)]
    named: dict[str, set[str]] = {}
    for folder in ("tests", "src", "benches"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".rs", ".py"}:
                for line in re.findall(r"\b[SB]\d{1,2}\b", path.read_text(encoding="utf-8")):
                    named.setdefault(line, set()).add(path.name)
    assert len(named) > 50, "tests that name lines were not found"
    assert {line: files for line, files in named.items() if line not in lines} == {}


def test_the_focused_tests_of_s51_exist() -> None:
    """S51: the focused tests have the names that the contract gives them."""
    contract = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^- \*\*S51\*\*.*?(?=^\S)", contract, re.MULTILINE | re.DOTALL)
    names = re.findall(r"\b[a-z]+(?:_[a-z]+){2,}\b", line)
    names += [name for name in ("matches_collect_left", "serialization_is_refused") if name not in names]
    tests = "".join(path.read_text(encoding="utf-8") for path in [*ROOT.glob("tests/*.rs"), *ROOT.glob("src/**/*.rs")])
    assert len(names) == 16
    assert [name for name in names if f"fn {name}(" not in tests] == []
