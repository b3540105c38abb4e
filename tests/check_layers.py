"""Checks that the folders of src/ form a line: each uses only what stands left of it.

    python tests/check_layers.py

Reads the `use` lines and paths of every file as text. Also lists circles of files, of which only the named ones may be.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# From left to right. Names in one set stand beside each other and do not use each other.
LINE = [
    {"error"},
    {"cancel", "memory", "panics"},
    {"columns"},
    {"index"},
    {"prepare"},
    {"expr", "file"},
    {"join"},
    {"probe"},
    {"run"},
    {"lib"},
    {"python"},
]
RANK = {name: rank for rank, names in enumerate(LINE) for name in names}

# Circles of files that one concept explains.
CIRCLES: list[set[str]] = [
    # Rows of a nested type are copied by copying rows of its children.
    {"columns/gather.rs", "columns/gather_nested.rs"},
    # A build is saved, shared and opened, and each of these gives a build.
    {"python/classes/prepared.rs", "python/classes/saved.rs"},
    # pyarrow objects are exchanged as capsules where there is no quicker way, and capsules become pyarrow objects.
    {"python/interchange/capsule.rs", "python/interchange/pyarrow.rs"},
    # Values of nested types are read by reading values.
    {f"python/values/{name}.rs" for name in ("columns", "decimals", "keys", "nested", "temporal")},
]

SRC = Path(__file__).parent.parent / "src"
COMMENT = re.compile(r"//.*")
PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
USE = re.compile(r"\buse\s+((?:crate|super)\b[^;]+);")


def leaves(tree: str) -> list[str]:
    """The paths of a `use` tree."""
    tree = tree.strip()
    if not tree.endswith("}"):
        return [re.sub(r"\s+as\s+\w+$", "", tree)]
    head, body = tree.split("{", 1)
    parts, depth, current = [], 0, ""
    for letter in body[:-1]:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    parts.append(current)
    return [head + leaf for part in parts if part.strip() for leaf in leaves(part)]


def module_of(file: Path) -> list[str]:
    """The module path of a source file."""
    parts = list(file.relative_to(SRC).with_suffix("").parts)
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def absolute(path: str, module: list[str]) -> list[str]:
    """A path from the crate's root."""
    parts = path.split("::")
    if parts[0] == "crate":
        return parts[1:]
    above = sum(part == "super" for part in parts)
    return module[: len(module) - above] + parts[above:]


def used_by(file: Path) -> list[list[str]]:
    """Everything of this crate that a file names."""
    text = "\n".join(COMMENT.sub("", line) for line in file.read_text().splitlines())
    # Modules for tests may use whatever they test.
    text = text.split("#[cfg(test)]\nmod tests {")[0]
    named = [leaf for tree in USE.findall(text) for leaf in leaves(tree)] + PATH.findall(USE.sub("", text))
    return [absolute(path, module_of(file)) for path in named]


def files() -> dict[tuple[str, ...], Path]:
    """Every module and its file."""
    found = {tuple(module_of(file)): file for file in sorted(SRC.rglob("*.rs"))}
    return {module: file for module, file in found.items() if not file.stem.endswith("tests")}


def wrong_way(modules: dict[tuple[str, ...], Path]) -> list[str]:
    """Imports that go from a folder to one that does not stand left of it."""
    wrong = []
    for module, file in modules.items():
        own = module[0] if module else "lib"
        for path in used_by(file):
            other = path[0] if path and path[0] in RANK else "lib"
            if own in ("lib", other) or (own == "python" and other == "lib"):
                continue
            if RANK[other] >= RANK[own]:
                wrong.append(f"{file.relative_to(SRC.parent)}: {own} uses {'::'.join(path)}, which stands right of it")
    return wrong


def circles(modules: dict[tuple[str, ...], Path]) -> list[set[str]]:
    """Sets of files that use each other in a circle. A mod.rs only names what is in its folder, so it is left out."""
    uses: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, file in modules.items():
        if file.name in ("mod.rs", "lib.rs"):
            continue
        targets = set()
        for path in used_by(file):
            while path and tuple(path) not in modules:
                path = path[:-1]
            if path and modules[tuple(path)].name != "mod.rs" and tuple(path) != module:
                targets.add(tuple(path))
        uses[module] = targets
    reach = {module: set(targets) for module, targets in uses.items()}
    changed = True
    while changed:
        changed = False
        for targets in reach.values():
            more = set().union(*(reach.get(target, set()) for target in targets)) - targets if targets else set()
            if more:
                targets |= more
                changed = True
    found: list[set[str]] = []
    for module in reach:
        if module in reach[module]:
            circle = {m for m in reach[module] if module in reach.get(m, set())} | {module}
            names = {str(modules[m].relative_to(SRC)) for m in circle}
            if names not in found:
                found.append(names)
    return found


def main() -> int:
    """Prints what is wrong; the exit status says whether anything is."""
    modules = files()
    wrong = wrong_way(modules)
    wrong += [
        "files that use each other in a circle: " + ", ".join(sorted(circle))
        for circle in circles(modules)
        if circle not in CIRCLES
    ]
    print("\n".join(wrong) or f"{len(modules)} files, every folder uses only what stands left of it")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
