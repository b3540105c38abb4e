"""Every case of public_reports.py: small checks from public reports of command lines, conditions, lookups and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import prejoin
from public_reports import CASES


@pytest.mark.parametrize("case", [pytest.param(case, id=case.__name__) for case in CASES])
@pytest.mark.filterwarnings("default")
def test_reported_case(case: Callable[[Any], None]) -> None:
    case(prejoin)
