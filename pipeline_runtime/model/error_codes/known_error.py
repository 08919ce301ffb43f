"""The description of an error that a user can look up."""

from __future__ import annotations

from typing import NamedTuple


class KnownError(NamedTuple):
    code: str
    title: str
    happened: str
    safe: str
    next: str


UNCHANGED = "Nothing was changed. Running elements are not affected."
