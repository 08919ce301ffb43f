"""Which encoding a text has: decided by a mark, zero bytes of UTF-16, valid UTF-8, or likely letters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from charset_normalizer import from_bytes

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WESTERN = ("cp1252", "cp850", "mac_roman")
_LIKELY = frozenset("äöüÄÖÜßéèêàáâçñíóúôûîåÅøØæÆ°µμ²³±·§€\u2013\u2014\u2018\u2019“”„…Ωø½¼©®\u00a0")
_LIKELY_SHARE = 0.9
_ZEROS_SHARE = 0.2
_ODD_SHARE_MAX = 0.02
_ODD_CHARACTERS = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x9f\ufffd]")


def detected(begin: bytes, pieces: Sequence[bytes] = ()) -> str:
    """Returns the name of a codec that reads the text, such as `utf-8`, `utf-16` or `cp1252`."""
    for mark, encoding in _MARKS:
        if begin.startswith(mark):
            return encoding
    if (wide := _without_mark(begin)) is not None:
        return wide
    if all(_is_utf8(part) for part in (begin, *pieces)):
        return "utf-8"
    others = b"\n".join(line for part in (begin, *pieces) for line in part.splitlines() if not line.isascii())
    scores = {encoding: _likely(others, encoding) for encoding in _WESTERN}
    best = max(_WESTERN, key=lambda encoding: scores[encoding])
    if scores[best] >= _LIKELY_SHARE:
        return best
    found = from_bytes(others[:64_000]).best()
    return "cp1252" if found is None else found.encoding


def decoded(data: bytes, encoding: str) -> str:
    """Returns the text without the mark of its encoding and without NUL characters.

    Bytes that the encoding does not have become the replacement character.
    """
    return data.decode(encoding, errors="replace").removeprefix("\ufeff").replace("\0", "")


def is_text(text: str) -> bool:
    """Returns whether there is text, rather than the bytes of a picture or a program read as if it were."""
    odd = len(_ODD_CHARACTERS.findall(text))
    return bool(text.strip()) and odd <= max(2, len(text) * _ODD_SHARE_MAX)


def _without_mark(begin: bytes) -> str | None:
    """UTF-16 of mostly Latin text has a zero in every other byte."""
    if len(begin) < 4:
        return None
    half = len(begin) // 2
    even, odd = begin[0::2].count(0) / half, begin[1::2].count(0) / half
    if odd > _ZEROS_SHARE and even < odd / 10:
        return "utf-16-le"
    return "utf-16-be" if even > _ZEROS_SHARE and odd < even / 10 else None


def _is_utf8(part: bytes) -> bool:
    """Whether it is UTF-8, apart from a character that is cut at one of its ends."""
    begin = next((at for at in range(min(4, len(part))) if part[at] & 0xC0 != 0x80), 0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(part[begin:])
    except UnicodeDecodeError:
        return False
    return True


def _likely(others: bytes, encoding: str) -> float:
    text = others.decode(encoding, errors="replace")
    foreign = [character for character in text if not character.isascii()]
    if not foreign:
        return 0.0
    likely = sum(character in _LIKELY for character in foreign)
    return likely / (len(foreign) + len(_ODD_CHARACTERS.findall(text)))
