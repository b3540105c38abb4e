"""Every case of public_reports.py: small checks from public reports of command lines, conditions, lookups and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import prejoin
from public_reports import CASES

# Numbers of cases that are known to fail, each with what is missing.
NOT_YET = {
    31: "save makes a temporary name that is longer than the name",
    73: "ILIKE folds the two small forms of sigma into different letters",
    75: "lookups take arrays of pandas as Python lists of objects",
}


def number(case: Callable[[Any], None]) -> int:
    return int(case.__name__.split("_")[1])


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.__name__,
            marks=[pytest.mark.xfail(reason=NOT_YET[number(case)])] if number(case) in NOT_YET else [],
        )
        for case in CASES
    ],
)
@pytest.mark.filterwarnings("default")
def test_reported_case(case: Callable[[Any], None]) -> None:
    case(prejoin)
