"""Patterns of `like`: `%` stands for any text, `_` for any one character, all else for itself."""

from __future__ import annotations

from functools import lru_cache

import pyarrow.compute as pc

from pipeline_runtime.operators.expressions.values import Values


def is_like(values: Values, pattern: str) -> Values:
    """Whether each text is like the pattern. The time rises with the text's length, whatever the pattern is:
    RE2 tries no two ways to share a text out among several `%`."""
    return pc.match_substring_regex(values, _regex(pattern))


@lru_cache(maxsize=256)
def _regex(pattern: str) -> str:
    """A regular expression of RE2 that finds something in exactly the texts that are like the pattern."""
    return f"(?s)\\A{''.join(map(_part, pattern))}\\z"


def _part(char: str) -> str:
    # Characters by number: none has a meaning of its own then.
    return {"%": ".*", "_": "."}.get(char) or f"\\x{{{ord(char):x}}}"
