"""Replaces characters that programs write in numbers and times by the ASCII characters of the same
meaning."""

from __future__ import annotations

import re

WIDE = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""The spaces of Unicode: no-break spaces, narrow spaces, thin spaces and wide spaces."""

MINUSES = "\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\uff0d"
APOSTROPHES = "\u2019\u2018\u02bc\u00b4`"
INVISIBLE = (
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
)
"""Characters without a width on the screen: marks of the text direction, and places where a line may
break."""

_ZEROS = (0xFF10, 0x0660, 0x06F0, 0x0966)  # full width, Arabic, Persian, Devanagari
FOREIGN = (
    WIDE
    + MINUSES
    + "\uff0b\uff0e\uff0c\uff1a\uff05\u066b"
    + "".join(chr(zero + digit) for zero in _ZEROS for digit in range(10))
)
PLAIN = " " * len(WIDE) + "-" * len(MINUSES) + "+.,:%." + "0123456789" * len(_ZEROS)
"""Maps each character of FOREIGN to the ASCII character of the same meaning."""

_NAMED_TIME = re.compile(r"(?:ts|t|time|timestamp|date|datetime|at|clock|zeit|datum)=", re.IGNORECASE)
_MEANT = str.maketrans(FOREIGN, PLAIN, INVISIBLE)


def in_ascii(text: str) -> str:
    """Returns the text with plain spaces, signs, points and digits, and without invisible characters."""
    return text if text.isascii() else text.translate(_MEANT)


def unwrapped(text: str) -> str:
    """Returns an ASCII text without the signs that programs put around a time: `="..."`, `[...]`."""
    text = in_ascii(text).strip()
    if (named := _NAMED_TIME.match(text)) is not None:
        text = text[named.end() :].strip('"')  # time=2024-05-01 00:00:00
    if text[:1] not in ("=", "[", "'", "D"):
        return text
    if text.startswith(("DT#", "D#")):
        return text[text.index("#") + 1 :]  # the form of a PLC, such as DT#2024-05-01
    for begin, end in (('="', '"'), ("[", "]"), ("'", "'"), ("'", "")):
        if text.startswith(begin) and text.endswith(end) and len(text) > len(begin) + len(end):
            return text[len(begin) : len(text) - len(end)]
    return text
