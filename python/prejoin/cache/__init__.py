"""A cache of builds: one load for many askers, and versions that swap while joins run."""

from prejoin.cache.cache import BuildCache
from prejoin.cache.entry import UNCHANGED

__all__ = ["UNCHANGED", "BuildCache"]
