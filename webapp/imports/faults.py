"""Errors of an import, in words for the person who uploaded the file."""

from __future__ import annotations


class ImportFault(Exception):
    """Says what is wrong (`what`), where (`where`: a line, a column, a member), and what to do (`next`)."""

    def __init__(self, what: str, where: str | None = None, next: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.next = next


class Cancelled(Exception):
    """A person cancelled the import."""
