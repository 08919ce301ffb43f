"""Scores how well letters beyond ASCII fit into the words of a language.

Nearly every byte is one letter in one encoding and another letter in another encoding. `tête`, for example,
becomes `tęte` in the encoding of Central Europe. The neighbours of a letter show which encoding is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from webapp.imports.foreign_words import WORDS

TOKENS_MAX = 40
TOKEN = re.compile(rb"[A-Za-z0-9\x80-\xff]*[\x80-\xff][A-Za-z0-9\x80-\xff]*")
"""A run of letters, digits and bytes beyond ASCII."""

_KNOWN, _SEEN, _NOT_SEEN, _NO_LETTER = 6.0, 1.0, -1.0, -4.0
_ODD, _SIGN, _USUAL_SIGN, _UNUSUAL, _ALONE = -5.0, 2.0, 6.0, -1.0, -1.0
_STEM_MIN = 4
_LETTERS = re.compile(r"[^\W\d_]+")
_SIGNS = frozenset("°±§€£¥¢©®™‰…–—•½¼¾×÷¡¿¬†·ªºµΩ²³¹«»‹›“”„‘’‚\u00a0")
_OPENING, _CLOSING = frozenset("“„«‹‘‚»›"), frozenset("”“»›’…®™©«‹‘ºª")
_QUOTES = {"“": "”", "”": "“„", "„": "“”", "«": "»", "»": "«", "‹": "›", "›": "‹", "‚": "‘’"}
_UNIT = re.compile(r"(?:[kcdmµnN]{0,2}m|[kcdm]?[lsghAVWKC]|ft|in|yd|Pa|mol)$")
_BEHIND_MICRO = re.compile(r"(?:m|s|S|g|A|V|W|F|H|l|L|mol|Pa|Sv|T|J|M|C|K|Ω|rad|strain|E|bar|Bq)(?![^\W\d_])")
_BEHIND_DEGREE = re.compile(r"(?:[CFKNSEWd]|dH)(?![^\W\d_])")
_SHORTENED = re.compile(
    r"(?:[dlnsctmj]|qu|[a-z]+)’(?:[st]|ll|re|ve|m|d)$|^(?:[dlnsctmj]|qu|un|all|dell|nell)’", re.I
)


@dataclass(frozen=True)
class _Language:
    words: frozenset[str]
    letters: frozenset[str]  # the letters of all words of the language
    # Pairs of neighbouring letters, at least one of them beyond ASCII; a space stands for the end of a word.
    pairs: frozenset[str]


@cache
def _languages() -> Mapping[str, _Language]:
    return {name: _language(words) for name, words in WORDS.items()}


def _language(words: Iterable[str]) -> _Language:
    known = frozenset(word.lower() for word in words)
    padded = [f" {word} " for word in known]
    pairs = {each[at : at + 2] for each in padded for at in range(len(each) - 1)}
    return _Language(
        known,
        frozenset(letter for word in known for letter in word),
        frozenset(pair for pair in pairs if not pair.isascii()),
    )


def tokens_of(data: bytes) -> list[tuple[int, int]]:
    """Returns the places of runs of characters beyond ASCII, each with the characters that touch it. Only the
    first runs count, and each different run once."""
    found: dict[bytes, tuple[int, int]] = {}
    for match in TOKEN.finditer(data):
        found.setdefault(match[0], match.span())
        if len(found) == TOKENS_MAX:
            break
    return list(found.values())


def fit(texts: Sequence[str], languages: Sequence[str]) -> float:
    """Returns how well texts make sense in one of the languages, for the most part. Each text is a run of
    characters, with one byte for each. Above zero, more speaks for the texts than against them."""
    marks = frozenset("".join(texts)) & _QUOTES.keys()
    signs = sum(_of_signs(text, marks) for text in texts)
    words = _foreign_words(texts)
    if not words:
        return signs
    by_language = [[_of_word(word, _languages()[each]) for word in words] for each in languages]
    best = [max(scores) for scores in zip(*by_language, strict=True)]
    # Words of one language are likelier than words of several. So each word of another language costs a
    # little.
    mixed = max(
        sum(max(own, other - 1) for own, other in zip(scores, best, strict=True)) for scores in by_language
    )
    return signs + mixed


def has_known(texts: Sequence[str]) -> bool:
    """Returns whether a language has one of the words."""
    words = [word.lower() for word in _foreign_words(texts)]
    return any(_is_known(word, language) for word in words for language in _languages().values())


def _foreign_words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in _words(text) if not word.isascii()]


def _is_known(word: str, language: _Language) -> bool:
    return (len(word) > 1 and word in language.words) or any(
        len(known) >= _STEM_MIN and not known.isascii() and known in word for known in language.words
    )


def _words(text: str) -> list[str]:
    return _LETTERS.findall("".join(" " if letter in _SIGNS else letter for letter in text))


def _of_word(word: str, language: _Language) -> float:
    low = word.lower()
    foreign = [letter for letter in low if not letter.isascii()]
    if any(letter not in language.letters for letter in foreign):
        return _NO_LETTER * len(foreign)
    score = 0.0
    if _is_known(low, language):
        score += _KNOWN
    if word != low and not word.isupper() and not word[1:].islower():
        score += _ODD  # a capital letter within a word of small letters
    # A plain letter that the language does not use, such as a q in Polish, costs a little.
    score += _UNUSUAL * sum(letter not in language.letters for letter in low if letter.isascii())
    if len(low) == 1:
        return score + (_SEEN if low in language.words else _ALONE)
    padded = f" {low} "
    for at in range(len(padded) - 1):
        pair = padded[at : at + 2]
        if not pair.isascii():
            score += _SEEN if pair in language.pairs else _NOT_SEEN
    return score


def _of_signs(text: str, marks: frozenset[str]) -> float:
    score = 0.0
    for at, sign in enumerate(text):
        if sign.isascii():
            continue
        before, behind = text[:at], text[at + 1 :]
        if sign.isalpha() and sign not in _SIGNS:
            # A letter that touches a digit: in a wrong encoding, £5 and 25°C look so.
            touches = before[-1:].isdigit() or behind[:1].isdigit()
            score += _ODD if touches else 0.0
        elif sign not in _SIGNS:
            score += _ODD
        else:
            lone = sign in _QUOTES and not marks.intersection(_QUOTES[sign])
            score += _ODD if lone else _of_sign(sign, before, behind)
    return score


def _of_sign(sign: str, before: str, behind: str) -> float:
    left, right = before[-1:].isalpha(), behind[:1].isalpha()
    if sign in "²³¹":
        known = before[-1:].isdigit() or _UNIT.search(before)
        return _ODD if right else _USUAL_SIGN if known else _UNUSUAL
    if sign == "µ":
        return _USUAL_SIGN if _BEHIND_MICRO.match(behind) and not left else _ODD
    if sign == "°":
        known = _BEHIND_DEGREE.match(behind)
        return _ODD if left or (right and not known) else _USUAL_SIGN if known else _SIGN
    if left and right:
        return _USUAL_SIGN if sign == "’" and _SHORTENED.search(before + sign + behind) else _ODD
    if {before[-1:], behind[:1]} & (_SIGNS - _CLOSING - _OPENING):
        return _ODD  # two signs beside each other
    if (left and sign in _CLOSING) or (right and sign in _OPENING):
        return _SIGN
    if not (before[-1:] + behind[:1]).isascii():
        return _ODD  # two foreign signs beside each other
    return _UNUSUAL if left or right else _SIGN
