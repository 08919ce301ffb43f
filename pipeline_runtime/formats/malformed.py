"""The errors for records that cannot be read or written."""

from __future__ import annotations


class Malformed(ValueError):
    """A record's value is not of its format. The message is the reason."""


class Unwritable(ValueError):
    """A row cannot be written in a format. The message is the reason."""
