"""Which letters beyond ASCII make sense where they stand. Windows-1250 and Windows-1252 write many alike."""

from __future__ import annotations

import re

CENTRAL = "cp1250"
_ALPHABETS = tuple(
    frozenset(letters)
    for letters in (
        "óąćęłńśźż",  # Polish
        "áäéíóôúýčďěľňřšťůž",  # Czech and Slovak
        "áéíóöúüőű",  # Hungarian
        "ćčđšž",  # Croatian and Slovene
        "âîăşţ",  # Romanian
        "äöüß",
    )
)
"""The letters of languages that are written in Windows-1250. Few texts have those of two of them."""

_NO_POLISH = re.compile("[ńćśź][aeouyó]", re.IGNORECASE)
"""Polish writes ni, ci, si and zi before these. In Windows-1252 they are the letters of año and of præ."""

_SIGN = re.compile("[\u00a0-\u00bf\u00d7\u00f7]")
_UNIT = re.compile(r"(?<![^\W\d_])(?:[kcdmnµNS]{0,2}m|[kcdm]?[lsghAVWKC]|ft|in|yd|Pa|mol)(?=[¹²³])")
_FOREIGN, _BOUND = r"(?!\d)[^\W\x00-\x7f²³¹µ]", r"(?![^\W_])"
ODD_LETTER = re.compile(
    rf"(?<![^\W_]){_FOREIGN}(?=(?:[CFSAVWm]|mol|Pa){_BOUND}|\d)"  # °C, µS, £5
    rf"|(?<![^\W_])(?<=[mM]){_FOREIGN}{_BOUND}|(?<=m){_FOREIGN}(?=/)"  # m², m³/h
    r"|(?<=[^\W\d_])[À-ÖØ-Þ](?=[a-zß-öø-ÿ])"
)
"""A letter where a sign stands, or a large one within a small word: the text is read in a wrong encoding."""

_WITHIN_WORD = re.compile(r"(?<=[^\W\d_])[^\w\s\x00-\x7f](?=[^\W\d_])")


def is_central(data: bytes) -> bool:
    """Returns whether the text has words in Windows-1250 that are others in Windows-1252."""
    try:
        text = data.decode(CENTRAL)
    except UnicodeDecodeError:
        return False
    western = data.decode("cp1252", errors="replace")
    signs = {found.end() for found in _UNIT.finditer(western)}
    signs |= {at for at in range(len(text)) if _SIGN.match(western[at]) and not _in_word(text, at)}
    letters = {
        each.lower()
        for at, each in enumerate(text)
        if each.isalpha() and not each.isascii() and at not in signs
    }
    differ = any(
        here != there and at not in signs for at, (here, there) in enumerate(zip(text, western, strict=True))
    )
    odd = _WITHIN_WORD.search(text) or any("\x7f" <= each < "\xa0" for each in text)
    fits = any(letters <= alphabet for alphabet in _ALPHABETS)
    wrong = odd or _NO_POLISH.search(text) or ODD_LETTER.search(text)
    return differ and fits and not wrong


def _in_word(text: str, at: int) -> bool:
    return text[at - 1 : at].isalpha() or text[at + 1 : at + 2].isalpha()
