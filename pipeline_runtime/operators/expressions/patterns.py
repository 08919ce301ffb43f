"""Patterns of `like`: `%` stands for any text, `_` for any one character, and every other character for
itself."""

from __future__ import annotations

from functools import lru_cache

import pyarrow.compute as pc

from pipeline_runtime.operators.expressions.values import Values


def is_like(values: Values, pattern: str) -> Values:
    """Returns whether each text matches the pattern. The time grows with the text's length for any pattern,
    since RE2 does not backtrack."""
    return pc.match_substring_regex(values, _regex(pattern))


@lru_cache(maxsize=256)
def _regex(pattern: str) -> str:
    """Returns a regular expression of RE2 that matches exactly the texts that the pattern matches."""
    return f"(?s)\\A{''.join(map(_part, pattern))}\\z"


def _part(char: str) -> str:
    # Characters by number, so that none has a special meaning.
    return {"%": ".*", "_": "."}.get(char) or f"\\x{{{ord(char):x}}}"
