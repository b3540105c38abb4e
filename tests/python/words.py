"""The words of `HashJoin`, whose build side comes first."""

from __future__ import annotations

from typing import Any


def hash_join_how(how: str) -> Any:
    """The word for a kind that `prejoin.join` calls `how`."""
    return {"left": "probe_outer", "right": "build_outer"}.get(how, how)
