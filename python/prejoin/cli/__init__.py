"""The command line: ``prejoin join``, ``lookup``, ``prepare``, ``inspect`` and ``demo``."""

from prejoin.cli.command import main, run

__all__ = ["main", "run"]
