"""Which encoding a text has: decided by a mark, zero bytes of UTF-16, valid UTF-8, or likely letters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from charset_normalizer import from_bytes

from webapp.imports.foreign_letters import CENTRAL, ODD_LETTER, is_central

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WESTERN = ("cp1252", "cp850", "mac_roman")
_LIKELY = frozenset("äöüÄÖÜßéèêàáâçñíóúôûîåÅøØæÆ°µμ²³±·§€\u2013\u2014\u2018\u2019“”„…Ωø½¼©®\u00a0")
_LIKELY_SHARE = 0.9
_FURTHER = ("cp1250", "gb18030", "cp1252")  # what is often meant where little text shows it
CANDIDATES_MAX = 5
SAMPLE_BYTES = 16_000
_LOST_SHARE = 0.1
_WITHIN_WORD = re.compile(r"(?<=[^\W\d_])[^\x00-\x7f](?=[^\W\d_])")
_BEHIND_WORD = re.compile("[^\\W\\d_]{2}[\u00a1-\u00bf]")
_ZEROS_SHARE = 0.2
_ODD_SHARE_MAX = 0.02
_ODD_CHARACTERS = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x9f\ufffd]")


def candidates(begin: bytes, pieces: Sequence[bytes] = ()) -> tuple[str, ...]:
    """Returns codecs that may read the text, the likeliest first: `utf-8`, `utf-16-le`, `cp1252`.

    There is one if the bytes decide it. With more, only a person can see which text makes sense.
    """
    for mark, encoding in _MARKS:
        if begin.startswith(mark):
            return (encoding,)
    if (wide := _without_mark(begin)) is not None:
        return (wide,)
    if all(_is_utf8(part) for part in (begin, *pieces)):
        return ("utf-8",)
    others = b"\n".join(line for part in (begin, *pieces) for line in part.splitlines() if not line.isascii())
    if _is_nearly_utf8(others):
        return ("utf-8",)
    scores = {encoding: _likely(others, encoding) for encoding in _WESTERN}
    best = max(_WESTERN, key=lambda encoding: scores[encoding])
    sample = others[:SAMPLE_BYTES]
    central = (CENTRAL,) if is_central(sample) else ()
    if scores[best] >= _LIKELY_SHARE:
        said = {each: sample.decode(each, errors="replace") for each in _WESTERN}
        alike = (
            each
            for each in _WESTERN
            if scores[each] == scores[best] and _are_other_words(said[each], said[best])
        )
        western = (best, *alike)
        return (*western, *central) if _are_letters(sample, best) else (*central, *western)
    likely = [*central, *(match.encoding for match in from_bytes(sample))][:CANDIDATES_MAX]
    texts: dict[str, str] = {}
    for encoding in (*likely, *_FURTHER):
        text = _decoded_or_none(sample, encoding)
        if text is not None and not _ODD_CHARACTERS.search(text):
            texts.setdefault(text, encoding)
    return tuple(texts.values())[:CANDIDATES_MAX] or ("cp1252",)


def decoded(data: bytes, encoding: str) -> str:
    """Returns the text without marks of its encoding, wherever they are, NUL characters and form feeds.

    Bytes that the encoding does not have become the replacement character.
    """
    return data.decode(encoding, errors="replace").replace("\ufeff", "").replace("\0", "").replace("\f", "")


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


def _is_nearly_utf8(others: bytes) -> bool:
    """Whether all but a few characters are UTF-8: some bytes were damaged, or come from another program."""
    text = others.decode(errors="replace")
    foreign = sum(not character.isascii() for character in text)
    lost = text.count("\ufffd")
    return 0 < lost <= max(1, _LOST_SHARE * foreign) and foreign - lost > lost


def _decoded_or_none(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _are_other_words(one: str, other: str) -> bool:
    """Whether texts of the same bytes differ in a letter, and not only in signs such as © and ®."""
    pairs = zip(one, other, strict=True)
    return any(here != there and (here.isalpha() or there.isalpha()) for here, there in pairs)


def _are_letters(data: bytes, encoding: str) -> bool:
    """Whether no sign stands right behind a word, as in by³, which is był in another encoding."""
    return _BEHIND_WORD.search(data.decode(encoding, errors="replace")) is None


def _likely(others: bytes, encoding: str) -> float:
    text = others.decode(encoding, errors="replace")
    foreign = [character for character in text if not character.isascii()]
    if not foreign:
        return 0.0
    likely = sum(character in _LIKELY for character in foreign)
    # Within a word there are letters: what reads an o with dots as a quotation mark reads it wrong.
    wrong = sum(not character.isalpha() for character in _WITHIN_WORD.findall(text))
    wrong += len(ODD_LETTER.findall(text))
    return (likely - wrong) / (len(foreign) + len(_ODD_CHARACTERS.findall(text)))
