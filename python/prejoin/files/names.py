"""Column names that occur more than once in a file."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence


def numbered(names: Sequence[str]) -> list[str]:
    """The names, with `:1`, `:2` and so on after each one that occurs more than once."""
    counts = collections.Counter(names)
    seen: collections.Counter[str] = collections.Counter()
    taken = {name for name, count in counts.items() if count == 1}
    found = []
    for name in names:
        if counts[name] == 1:
            found.append(name)
            continue
        seen[name] += 1
        while (new := f"{name}:{seen[name]}") in taken:
            seen[name] += 1
        taken.add(new)
        found.append(new)
    return found


def repeats(name: str, names: Iterable[str]) -> list[str]:
    """What the columns are called that a file calls `name` more than once."""
    return [other for other in names if other.rpartition(":")[0] == name and other.rpartition(":")[2].isdigit()]
