"""Key columns of CSV files, whose types were guessed, brought together with what they are joined with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from prejoin.files.csv_types import TEXT, Guess, strict
from prejoin.files.value_types import is_string, value_type


class Typed(Protocol):
    """A side of a join, some of whose types were guessed."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    @property
    def guesses(self) -> Mapping[str, Guess]:
        """The columns whose types were guessed."""

    def retype(self, name: str, how: Guess) -> None:
        """Take a guessed column for another type."""


def agree(table: Typed, name: str, build: Typed, key: str) -> str | None:
    """Bring the types of two key columns together, where that cannot make one value of two texts.

    A column without values takes on the other one's type; where one is text, the other is read as the text that it was
    written as. Gives advice for key columns that stay of different types.
    """
    if name not in table.schema.names or key not in build.schema.names:
        return None
    ours, theirs = table.guesses.get(name), build.guesses.get(key)
    types = table.schema.field(name).type, build.schema.field(key).type
    if types[0] == types[1]:
        return None
    if ours is not None and ours.empty:
        table.retype(name, theirs or strict(_readable(types[1])))
    elif theirs is not None and theirs.empty:
        build.retype(key, ours or strict(_readable(types[0])))
    elif ours is not None and is_string(types[1]):
        table.retype(name, TEXT)
    elif theirs is not None and is_string(types[0]):
        build.retype(key, TEXT)
    elif ours is not None:
        return f"read the probe column as that type by --csv-type {name}={types[1]}"
    elif theirs is not None:
        return f"read the build column as that type by --csv-type {key}={types[0]}"
    return None


def _readable(data_type: pa.DataType) -> pa.DataType:
    """A type of the same kind that text can be read as."""
    return pa.string() if is_string(data_type) else value_type(data_type)
