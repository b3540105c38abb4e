"""What a condition says of columns, as far as the command line has to know before it is read in full."""

from __future__ import annotations

import re
from collections.abc import Mapping

from prejoin.files.csv_types import Guess
from prejoin.files.errors import FileError

QUOTED = re.compile(r"""("(?:[^"]|"")*")|'(?:[^']|'')*'""")
ORDER = re.compile(r"<(?!>)|(?<!<)>|\b(between|greatest|least)\b")


class Condition:
    """The text of `--where`. A column more than it names does no harm, so it is looked for and not parsed."""

    def __init__(self, sql: str | None) -> None:
        """Without a condition no column is named."""
        # Names are found whatever their case.
        self._text = QUOTED.sub(lambda found: found[1] or "''", sql or "").casefold()

    def names(self, name: str, side: str) -> bool:
        """Whether a column of one side may be meant."""
        # A position, as in probe[1], is one of all columns.
        if "[" in self._text:
            return True
        other = {"probe": "build", "build": "probe"}[side]
        sought = name.replace('"', '""').casefold()
        at = self._text.find(sought)
        while at >= 0:
            before = self._text[:at].rstrip('" ')
            if not re.search(rf'\b{other}"?\s*\.$', before):
                return True
            at = self._text.find(sought, at + 1)
        return False

    def check(self, side: str, source: str, guesses: Mapping[str, Guess]) -> None:
        """Refuse to order text that looks like numbers, and that nobody said to be text: 9 comes after 10 there."""
        if not ORDER.search(self._text):
            return
        for name, how in guesses.items():
            if how.numeric is not None and self.names(name, side):
                raise FileError(
                    f"{source}: column {name!r} is read as text, since its values (one is {how.numeric!r}) are not all "
                    "written as numbers, dates or times of one form are; --where would order text, so say its type by "
                    f"--csv-type {name}=double (or another), or {name}=string to order it as text"
                )
