"""Types of CSV columns: guessed so that no two different texts become one value, and held to for all rows.

A column is a whole number, a date, a time or a timestamp where every value is written as such a value is printed. A
column that is not a key may also be a truth value or a floating-point number. Everything else stays text, as do numbers
with leading zeros, plus signs or exponents, numbers of more digits than their type holds, and numbers some of which end
in a zero after the point, since 1.1 and 1.10 may be versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
TIME = r"^[0-9]{2}:[0-9]{2}:[0-9]{2}$"
STAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}%s)?%s$"
# One instant in two forms is two texts: the keys of a column all have the form of the first one.
STAMP_OF_KEYS = "^[0-9]{4}-[0-9]{2}-[0-9]{2}%s[0-9]{2}:[0-9]{2}%s%s$"
STAMP_PARTS = r"[0-9-]{10}([ T])[0-9]{2}:[0-9]{2}(:[0-9]{2}(?:\.([0-9]{1,9}))?)?(Z?)$"
# Numbers with a point: as they are printed, or with the same number of digits after it in every value.
SHORTEST = r"^-?(0|[1-9][0-9]*)(\.(0|[0-9]*[1-9]))?(e[+-][0-9]{2,})?$"
FIXED = r"^-?(0|[1-9][0-9]*)\.[0-9]{%d}$"
TRUTHS = (r"^(true|false)$", r"^(True|False)$", r"^(TRUE|FALSE)$")

# What a reader may take for a number, a date or a time, however it is written.
NUMERIC = r"^\s*[-+(]?\s*[$€£]?\.?[0-9][-+0-9.,:/ _%()TZeE]*$"
SAMPLE = 1000
"""Values that say what a column of text looks like."""

# A decimal number of so many characters is the double that it reads as, and no other text of that length is.
SURE = 16


@dataclass(frozen=True)
class Guess:
    """The type of a column, and what its values look like; no form means any text."""

    type: pa.DataType
    form: str | None = None
    empty: bool = False
    """No value was seen."""
    bare: bool = False
    """Text that is a number, a date or a time in all it says, so it is written without quotes."""
    numeric: str | None = None
    """A value of a column that is text, but most of whose values look like numbers, dates or times."""


TEXT = Guess(pa.string())
NOTHING = Guess(pa.string(), None, True)


class MisfitError(Exception):
    """A value that is not of its column's type."""

    def __init__(self, row: int, value: str) -> None:
        """`row` is the value's position in the converted rows."""
        super().__init__(value)
        self.row, self.value = row, value


def guess(strings: pa.Array | pa.ChunkedArray, key: bool) -> Guess:
    """The type of a column of these texts."""
    values = _present(strings)
    if len(values) == 0:
        return NOTHING
    # One value rules out most types.
    first = values[0].as_py()
    for form, data_type in _candidates(values, key):
        if re.search(form, first) and _all_match(values, form) and _fits(values, data_type):
            return Guess(data_type, form)
    values = values[:SAMPLE]
    looks = pc.match_substring_regex(values, NUMERIC)
    numeric = values[pc.index(looks, True).as_py()].as_py() if 2 * pc.sum(looks).as_py() >= len(values) else None
    return Guess(pa.string(), numeric=numeric)


def passed(strings: pa.Array | pa.ChunkedArray) -> Guess:
    """A column that goes from text to text as it is: no value is converted, but quotes may be spared."""
    values = _present(strings[:SAMPLE])
    found = guess(values, False)
    if found.empty:
        return NOTHING
    return Guess(pa.string(), bare=found.type != pa.string() or _all_match(values, DECIMAL))


def _present(strings: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    values = strings.drop_null()
    empty = pc.equal(values, "")
    return values.filter(pc.invert(empty)) if pc.any(empty).as_py() else values


def _candidates(values: pa.ChunkedArray, key: bool) -> list[tuple[str, pa.DataType]]:
    first = values[0].as_py()
    found = [(INTEGER, pa.int64()), (DATE, pa.date32()), (TIME, pa.time32("s"))]
    if parts := re.match(STAMP_PARTS, first):
        found += _stamps_of_keys(*parts.groups("")) if key else _stamps(parts[4])
    if not key:
        found += [(truth, pa.bool_()) for truth in TRUTHS]
        _, point, digits = first.partition(".")
        found += [(SHORTEST, pa.float64()), *([(FIXED % len(digits), pa.float64())] if point else [])]
    return found


def _stamps(zone: str) -> list[tuple[str, pa.DataType]]:
    fractions = [("", "s"), (r"(\.[0-9]{1,6})?", "us"), (r"(\.[0-9]{1,9})?", "ns")]
    return [(STAMP % (digits, zone), pa.timestamp(unit, "UTC" if zone else None)) for digits, unit in fractions]


def _stamps_of_keys(between: str, seconds: str, fraction: str, zone: str) -> list[tuple[str, pa.DataType]]:
    unit = "s" if not fraction else "us" if len(fraction) <= 6 else "ns"
    seconds = seconds and ":[0-9]{2}" + (rf"\.[0-9]{{{len(fraction)}}}" if fraction else "")
    return [(STAMP_OF_KEYS % (between, seconds, zone), pa.timestamp(unit, "UTC" if zone else None))]


def _all_match(values: pa.ChunkedArray, form: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, form), min_count=0).as_py())


def _fits(values: pa.ChunkedArray, data_type: pa.DataType) -> bool:
    try:
        converted = _cast(values, data_type)
    except (pa.ArrowException, ValueError):
        return False
    return not pa.types.is_float64(data_type) or len(_inexact(values, converted)) == 0


def _inexact(texts: pa.ChunkedArray, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """The long numbers that are printed with other digits than they were written with."""
    picked = pc.fill_null(pc.greater(pc.binary_length(texts), SURE), False)
    if pc.any(exponents := pc.fill_null(pc.match_substring(texts, "e"), False)).as_py():
        picked = pc.or_(picked, exponents)
    if not pc.any(picked).as_py():
        return texts[:0]
    texts, numbers = texts.filter(picked), numbers.filter(picked)
    return texts.filter(pc.not_equal(numbers.cast(pa.string()), texts))


def convert(strings: pa.Array, how: Guess) -> pa.Array:
    """Texts as values of the type; an empty text is a missing value, but in text.

    Raises:
        MisfitError: for the first value that the type or the form does not have.

    """
    if how.type == pa.string():
        return strings
    empty = pc.equal(strings, "")
    present = pc.if_else(empty, pa.scalar(None, pa.string()), strings) if pc.any(empty).as_py() else strings
    if how.form is not None:
        fits = pc.fill_null(pc.match_substring_regex(present, how.form), True)
        if not pc.all(fits, min_count=0).as_py():
            row = pc.index(fits, False).as_py()
            raise MisfitError(row, strings[row].as_py())
    try:
        converted = _cast(present, how.type)
    except (pa.ArrowException, ValueError):
        row = _first(present, lambda part: not _casts(part, how.type))
        raise MisfitError(row, strings[row].as_py()) from None
    if how.form is not None and pa.types.is_float64(how.type) and len(wrong := _inexact(present, converted)):
        raise MisfitError(pc.index(strings, wrong[0]).as_py(), wrong[0].as_py())
    return converted


def _first(values: pa.Array, wrong: Callable[[pa.Array], bool]) -> int:
    """The first of `values` that is wrong, by halves."""
    start, length = 0, len(values)
    while length > 1:
        half = length // 2
        if wrong(values.slice(start, half)):
            length = half
        else:
            start, length = start + half, length - half
    return start


def _casts(values: pa.Array, data_type: pa.DataType) -> bool:
    try:
        _cast(values, data_type)
    except (pa.ArrowException, ValueError):
        return False
    return True


def _cast(values: pa.Array | pa.ChunkedArray, data_type: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if values.null_count == len(values):
        empty = pa.nulls(len(values), data_type)
        return pa.chunked_array([empty]) if isinstance(values, pa.ChunkedArray) else empty
    if pa.types.is_duration(data_type):
        return values.cast(pa.int64()).cast(data_type)
    if pa.types.is_decimal(data_type):
        # The cast rounds digits that the scale does not hold.
        exact = values.cast(pa.decimal256(76, 38))
        return exact.cast(data_type)
    if not pa.types.is_time(data_type):
        return values.cast(data_type)
    # There is no cast from text to a time of day, but the CSV reader has one.
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(pa.table({"x": values}), sink, pa.csv.WriteOptions(include_header=False))
    read = pa.csv.read_csv(
        pa.BufferReader(sink.getvalue()),
        pa.csv.ReadOptions(column_names=["x"]),
        pa.csv.ParseOptions(ignore_empty_lines=False),
        pa.csv.ConvertOptions(column_types={"x": data_type}, null_values=[""]),
    )["x"]
    return read if isinstance(values, pa.ChunkedArray) else read.combine_chunks()


def strict(data_type: pa.DataType) -> Guess:
    """A known type for texts of which nobody said that they are of it: whole numbers have to be written as such."""
    return Guess(data_type, INTEGER if pa.types.is_signed_integer(data_type) else None)
