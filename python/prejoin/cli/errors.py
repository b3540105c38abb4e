"""Errors of the command line."""


class UsageError(Exception):
    """Options that do not go together, or that cannot be read."""
