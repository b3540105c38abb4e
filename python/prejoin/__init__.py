"""Prepare the build side of a hash join once, probe it from any number of joins."""

from prejoin._core import (
    Config,
    ExecutionError,
    InternalError,
    MemoryPool,
    NotSupported,
    PlanError,
    PrejoinError,
    ResourcesExhausted,
    __version__,
)

__all__ = [
    "Config",
    "ExecutionError",
    "InternalError",
    "MemoryPool",
    "NotSupported",
    "PlanError",
    "PrejoinError",
    "ResourcesExhausted",
    "__version__",
]
