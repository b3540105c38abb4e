"""How columns are named on the command line: lists of names, pairs, renames, types; double quotes as in CSV."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from prejoin.cli.errors import UsageError
from prejoin.files.csv_read import Csv
from prejoin.files.errors import FileError
from prejoin.files.names import repeats

# A quoted text, in which two quotes are one, or anything but a separator.
PART = re.compile(r'\s*"((?:[^"]|"")*)"\s*|([^,="][^,=]*|)')


def split(text: str) -> list[list[str]]:
    """The names in `a,NEW=NAME,"b,c"`: each a list of the parts that `=` separates.

    Blanks around a name do not count, unless they are in quotes.
    """
    found: list[list[str]] = []
    parts: list[str] = []
    at = 0
    while True:
        match = PART.match(text, at)
        assert match is not None  # the pattern matches the empty text
        quoted, plain = match.groups()
        parts.append(quoted.replace('""', '"') if quoted is not None else plain.strip())
        at = match.end()
        if at < len(text) and text[at] == "=":
            at += 1
            continue
        if at < len(text) and text[at] != ",":
            raise UsageError(f"{text!r}: quotes go around a whole name, and two of them within one mean one")
        if parts != [""]:
            found.append(parts)
        parts = []
        if at >= len(text):
            return found
        at += 1


def names(text: str, option: str) -> list[str]:
    """A list of names."""
    found = []
    for parts in split(text):
        if len(parts) > 1:
            raise UsageError(f'{option}: {"=".join(parts)!r} is not a name; write "{"=".join(parts)}" in double quotes')
        found += parts
    return found


def pairs(given: Sequence[str] | None) -> list[tuple[str, str]] | None:
    """`--on` as pairs of a probe and a build column."""
    if given is None:
        return None
    found = []
    for text in given:
        for parts in split(text):
            if len(parts) > 2 or "" in parts:
                raise UsageError(f"--on: {'='.join(parts)!r} is neither a name nor PROBE=BUILD")
            pair = (parts[0], parts[-1])
            if pair not in found:
                found.append(pair)
    return found


def mapping(on: Sequence[tuple[str, str]]) -> dict[str, str | list[str]]:
    """The pairs as `prejoin.join` takes them: {probe name: build name or names}."""
    found: dict[str, list[str]] = {}
    for probe, build in on:
        found.setdefault(probe, []).append(build)
    return {probe: builds[0] if len(builds) == 1 else builds for probe, builds in found.items()}


def selection(text: str | None) -> list[str | dict[str, str]] | None:
    """`--select` as `prejoin.join` takes it."""
    if text is None:
        return None
    chosen = split(text)
    for parts in chosen:
        if len(parts) > 2 or "" in parts:
            raise UsageError(f"--select: {'='.join(parts)!r} is neither a name nor NEW=NAME")
    return [parts[0] if len(parts) == 1 else {parts[0]: parts[1]} for parts in chosen]


def chosen_names(select: Iterable[str | dict[str, str]]) -> set[str]:
    """The columns that a selection names."""
    return {name for item in select for name in ([item] if isinstance(item, str) else item.values())}


def csv_types(given: Sequence[str]) -> dict[str, pa.DataType]:
    """`--csv-type` as {name: type}."""
    types: dict[str, pa.DataType] = {}
    for text in given:
        # A type may hold a comma, as in decimal128(10, 2), and a name in quotes an equals sign.
        quoted = re.fullmatch(r'\s*"((?:[^"]|"")*)"\s*=(.*)', text)
        name, alias = (quoted[1].replace('""', '"'), quoted[2]) if quoted else text.rpartition("=")[::2]
        types[name.strip() if not quoted else name] = _type(alias.strip(), text)
    return types


def _type(alias: str, text: str) -> pa.DataType:
    decimal = re.fullmatch(r"decimal(128|256)?\(\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*\)", alias)
    try:
        if decimal:
            make = pa.decimal256 if decimal[1] == "256" else pa.decimal128
            return make(int(decimal[2]), int(decimal[3]))
        return pa.type_for_alias(alias)
    except ValueError:
        raise UsageError(
            f"--csv-type {text}: {alias!r} is not a type; types are int64, double, string, bool, date32, "
            "timestamp[us], decimal128(10,2) and the others of pyarrow"
        ) from None


def csv_options(options: argparse.Namespace, keys: Iterable[str], typed: Callable[[str], bool] = lambda _: True) -> Csv:
    """How the CSV files of a command are read; `typed` says whether the type of a column matters."""
    nulls = ("", *options.csv_null)
    return Csv(csv_types(options.csv_type), nulls, frozenset(keys), options.csv_delimiter, typed)


def check_types(given: argparse.Namespace, schemas: Iterator[pa.Schema]) -> None:
    """Refuse a type for a column that no CSV file has."""
    known = [name for schema in schemas for name in schema.names]
    for name in csv_types(given.csv_type):
        if known and name not in known:
            raise FileError(
                f"--csv-type: no CSV file has a column {name!r}; there are {', '.join(dict.fromkeys(known))}"
            )


def check_keys(side: str, schema: pa.Schema, keys: Sequence[str]) -> None:
    """Refuse a key that the file repeats."""
    for name in keys:
        if name not in schema.names and (found := repeats(name, schema.names)):
            called = ", ".join(found)
            raise FileError(f"the {side} has more than one column {name!r}, a key; here they are {called}: name one")
