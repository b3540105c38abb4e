"""Versions of tables as text, the form in which files and manifests hold them."""

from __future__ import annotations

import json
import math

from prejoin._core import PlanError
from prejoin.typing import Version


def encode(version: Version) -> str | None:
    """A version as JSON, None for none; tuples become lists.

    Raises:
        PlanError: For a value that JSON does not hold as it is.

    """
    if version is None:
        return None
    if not _holds(version):
        raise PlanError(
            f"a version is text, a number or a tuple of these, so that files can hold it; {version!r} was given"
        )
    return json.dumps(version)


def _holds(version: object) -> bool:
    if isinstance(version, tuple):
        return all(map(_holds, version))
    return version is None or isinstance(version, str | int) or (isinstance(version, float) and math.isfinite(version))


def decode(text: str) -> Version:
    """The version that `encode` made this text of; text of another origin stays as it is."""
    try:
        return _frozen(json.loads(text))
    except ValueError:
        return text


def _frozen(value: Version | list[Version]) -> Version:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
