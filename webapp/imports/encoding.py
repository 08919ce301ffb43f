"""Finds the encoding of a text: by a byte order mark, the zero bytes of UTF-16, valid UTF-8, or likely
letters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from charset_normalizer import from_bytes

from webapp.imports.foreign_letters import fit, has_known, tokens_of
from webapp.imports.foreign_words import BALTIC, CENTRAL, CYRILLIC, TURKISH, WESTERN

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WESTERN = ("cp1252", "cp850", "mac_roman", "cp437", "iso8859_15")
_CENTRAL = ("cp1250", "iso8859_2", "cp852", "mac_latin2")
_LANGUAGES = {
    **dict.fromkeys(_WESTERN, WESTERN),
    **dict.fromkeys(_CENTRAL, CENTRAL),
    **dict.fromkeys(("cp1254", "cp857", "mac_turkish"), TURKISH),
    **dict.fromkeys(("cp1257", "cp775", "iso8859_13"), BALTIC),
    **dict.fromkeys(("cp1251", "koi8_r", "cp866", "iso8859_5", "koi8_u"), CYRILLIC),
    **dict.fromkeys(("cp1253", "iso8859_7"), ("Greek",)),
    **dict.fromkeys(("cp1255", "iso8859_8"), ("Hebrew",)),
    **dict.fromkeys(("cp1256", "iso8859_6"), ("Arabic",)),
}
"""The encodings with one byte for each character, each with the languages that use it. If two encodings read
the same text, the first one counts."""

_LIKELY = {"cp1252": 2.0, "cp1250": 1.0}
_UNLIKELY = frozenset(("mac_latin2", "cp775", "iso8859_13", "cp857", "mac_turkish", "iso8859_6", "iso8859_8"))
_OF_SEVERAL_BYTES = ("gb18030", "cp932", "big5", "cp949", "euc_jp")
CANDIDATES_MAX = 9
WAYS_MAX, WIDE_MAX = 3, 3
MARGIN = 3.5  # if the best reading is better than the next one by less than this, a person is asked
SAMPLE_BYTES = 16_000
_LOST_SHARE = 0.1
_ODD_COST = 4.0
_WIDE_LETTERS = re.compile("[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uff9f\u2000-\u206f\u2100-\u214f]")
_ZEROS_SHARE = 0.2
_ODD_SHARE_MAX = 0.02
_ODD_CHARACTERS = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x9f\ufffd]")


def candidates(begin: bytes, pieces: Sequence[bytes] = ()) -> tuple[str, ...]:
    """Returns the codecs that may read the text, the likeliest first: `utf-8`, `utf-16-le`, `cp1252`.

    There is only one if the bytes decide. Otherwise only a person can see which text makes sense.
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
    return _by_letters(others[:SAMPLE_BYTES])


def _by_letters(sample: bytes) -> tuple[str, ...]:
    """Returns the encodings in which the letters beyond ASCII make sense, the best first."""
    fits = _fits(sample)
    best = max(fits, key=lambda said: fits[said][0])
    score, encoding = fits[best]
    others = sorted(
        (fit for said, fit in fits.items() if _are_other_words(said, best)), key=lambda fit: -fit[0]
    )
    near = [each for other, each in others if other > score - MARGIN]
    letters = any(letter.isalpha() for letter in "".join(best) if not letter.isascii())
    usual = encoding in _LIKELY or not letters or has_known(best)
    if score > 0 and usual:
        return (encoding, *near)[:CANDIDATES_MAX]
    # Nothing speaks for one encoding. So it may be the best one of each script, or one with wide characters.
    ways: dict[tuple[str, ...], str] = {}
    for _, each in others:
        ways.setdefault(_LANGUAGES[each], each)
    some = dict.fromkeys((encoding, *near[:WAYS_MAX], *[*ways.values()][:WAYS_MAX], *_LIKELY))
    plain = [each for each in some if not _ODD_CHARACTERS.search(sample.decode(each, errors="replace"))]
    wide = _wide(sample)
    return (*plain[: CANDIDATES_MAX - min(len(wide), WIDE_MAX)], *wide)[:CANDIDATES_MAX] or (encoding,)


def _fits(sample: bytes) -> dict[tuple[str, ...], tuple[float, str]]:
    """Returns, for each text that the bytes may stand for, how well it fits, and its encoding."""
    places = tokens_of(sample)
    fits: dict[tuple[str, ...], tuple[float, str]] = {}
    for encoding, languages in _LANGUAGES.items():
        text = sample.decode(encoding, errors="replace")
        said = tuple(text[begin:end] for begin, end in places)
        odd = sum(len(_ODD_CHARACTERS.findall(each)) for each in said)
        score = fit(said, languages) - _ODD_COST * odd
        score += _LIKELY.get(encoding, -2.0 * (encoding in _UNLIKELY))
        before, first = fits.get(said, (score, encoding))
        fits[said] = max(score, before), first
    return fits


def _wide(sample: bytes) -> tuple[str, ...]:
    """Returns the encodings in which the text may be Chinese, Japanese or Korean: one encoding for each
    different text."""
    likely = [match.encoding for match in from_bytes(sample) if match.encoding in _OF_SEVERAL_BYTES]
    found = dict.fromkeys([*likely, *(each for each in _OF_SEVERAL_BYTES if _is_wide(sample, each))])
    texts: dict[str, str] = {}
    for encoding in found:
        text = _decoded_or_none(sample, encoding)
        if text is not None:
            texts.setdefault(text, encoding)
    return tuple(texts.values())


def decoded(data: bytes, encoding: str) -> str:
    """Returns the text without byte order marks, NUL characters and form feeds.

    Bytes that the encoding does not have become the replacement character.
    """
    return data.decode(encoding, errors="replace").replace("\ufeff", "").replace("\0", "").replace("\f", "")


def is_text(text: str) -> bool:
    """Returns whether the text is one. It is none if it comes from the bytes of a picture or a program."""
    odd = len(_ODD_CHARACTERS.findall(text))
    return bool(text.strip()) and odd <= max(2, len(text) * _ODD_SHARE_MAX)


def _without_mark(begin: bytes) -> str | None:
    """Returns the encoding of a text without a byte order mark, or None. UTF-16 of mostly Latin text has a
    zero in every other byte."""
    if len(begin) < 4:
        return None
    half = len(begin) // 2
    even, odd = begin[0::2].count(0) / half, begin[1::2].count(0) / half
    if odd > _ZEROS_SHARE and even < odd / 10:
        return "utf-16-le"
    return "utf-16-be" if even > _ZEROS_SHARE and odd < even / 10 else None


def _is_utf8(part: bytes) -> bool:
    """Returns whether the bytes are UTF-8, except for a character that is cut at one of their ends."""
    begin = next((at for at in range(min(4, len(part))) if part[at] & 0xC0 != 0x80), 0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(part[begin:])
    except UnicodeDecodeError:
        return False
    return True


def _is_nearly_utf8(others: bytes) -> bool:
    """Returns whether all but a few characters are UTF-8. The few may be damaged, or come from another
    program."""
    text = others.decode(errors="replace")
    foreign = sum(not character.isascii() for character in text)
    lost = text.count("\ufffd")
    return 0 < lost <= max(1, _LOST_SHARE * foreign) and foreign - lost > lost


def _decoded_or_none(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _is_wide(data: bytes, encoding: str) -> bool:
    """Returns whether the bytes are Chinese, Japanese or Korean in this encoding."""
    text = _decoded_or_none(data, encoding)
    foreign = [letter for letter in text or "" if not letter.isascii()]
    return bool(foreign) and all(_WIDE_LETTERS.fullmatch(letter) for letter in foreign)


def _are_other_words(one: Sequence[str], other: Sequence[str]) -> bool:
    """Returns whether two texts of the same bytes differ in a letter. Signs such as © and ® do not count."""
    pairs = (pair for texts in zip(one, other, strict=True) for pair in zip(*texts, strict=True))
    return any(here != there and (here.isalpha() or there.isalpha()) for here, there in pairs)
