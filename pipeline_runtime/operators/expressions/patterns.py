"""Patterns of `like` as regular expressions that take no more time than the text is long."""

from __future__ import annotations


def like_regex(pattern: str) -> str | None:
    """A Java regular expression that finds something in exactly the texts that are like the pattern; None:
    Spark's own LIKE is as good, because % stands at an end alone.

    Spark makes `.*` of each %, and Java tries every way to share the text out among them: of ten, a text
    of some hundred characters takes for ever. The leftmost place for each part is as good as any other, so
    what was found is kept: `(?>...)` is never tried again. Only the last part has to stand at the end.
    """
    inner = pattern.removeprefix("%").removesuffix("%")
    if "%" not in inner and "_" not in inner:
        return None
    first, *middle = pattern.split("%")
    if not middle:
        return f"(?s)\\A{_part(first)}\\z"
    last = middle.pop()
    found = "".join(f"(?>.*?{_part(part)})" for part in middle if part)
    end = f".*?{_part(last)}\\z" if last else ""
    return f"(?s)\\A{_part(first)}{found}{end}"


def _part(text: str) -> str:
    """Code points by number: none of them has a meaning of its own then."""
    return "".join("." if char == "_" else f"\\x{{{ord(char):x}}}" for char in text)
