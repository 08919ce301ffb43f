"""Tells the shape of a cell before anything is known about its file: a number, a time, no value, or words."""

from __future__ import annotations

import re
from functools import lru_cache

from webapp.imports.characters import APOSTROPHES, MINUSES, WIDE, unwrapped
from webapp.imports.units import unit_beside

_NO_VALUE_WORDS = """
nan na n/a n.a. #n/a #na null none nil \\n ? #value! #div/0! #ref! #num! missing n/v k.a.
bad error err -nan +nan 1.#qnan -1.#ind 1.#inf inf -inf +inf infinity -infinity x over ovr ovld ol
nodata fault invalid overflow underflow overrange underrange (null) <null> <na> #nv #n/v nd n.d. k.w. n.v.
offline off-line fehler ung\u00fcltig st\u00f6rung fehlt fehlend brak chyb\u00ed manquant
"""
_NO_VALUE_SENTENCES = """
no data, no signal, out of range, over range, under range, not connected, no value, no reading, no sample
bad input, i/o timeout, comm fail, comm error, pt created, shutdown, scan off, scan timeout, calc failed
not connect, unit down, intf shut, out of serv, configure, no result, arc off-line, inp outrange, no input
no good data for calculation, keine daten, kein wert, n. v., n. a., k. a., k. w., pas de valeur, sin datos,
brak danych, bez dat, manquante
"""
"""Texts for "no value" that historians and loggers write. The third and fourth lines are those of PI."""

_NO_VALUE = frozenset(("", *_NO_VALUE_WORDS.split(), *re.split(r",\s*|\n", _NO_VALUE_SENTENCES.strip())))
_MARKS_ALONE = re.compile(
    r"[-\u2013\u2014.#*_?]{1,20}|[-+]?1\.#(?:s?q?nan|ind|inf)\d*|[-+]?nan\([a-z0-9]{0,12}\)|[-+]?\u221e"
    r"|#[^\W\d_]{2,12}(?:/0)?[!?]"  # errors of Excel, in any language
)

_NUMBER = re.compile(
    rf"[+-]?(?:\d{{1,3}}(?:(?P<mark>[.,' {APOSTROPHES}{WIDE}])\d{{3}})(?:(?P=mark)\d{{3}})*(?:[.,]\d*)?"
    r"|\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d*)?|\d+(?:[.,]\d*)?|[.,]\d+)"
    r"(?:[eE][+-]?\d{1,3})?",
    re.ASCII,
)
_NEAR_NUMBER = re.compile(
    rf"(?:[<>~≈±$€£]|CHF|EUR|USD)?[ {WIDE}]*[+{MINUSES}-]?\d[\d.,' {APOSTROPHES}{WIDE}]*"
    rf"(?:[eE][+-]?\d+)?[ {WIDE}]*(?:[%‰*!?€$£-]|[A-Za-z°µ]{{1,4}}[0-9]?)?|\(\d[\d.,'{APOSTROPHES}]*\)",
    re.ASCII,
)
_DATE = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{4}:\d\d:\d\d|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})|\d{4}-\d{3}"
    r"|\d{1,2}\. \d{1,2}\. \d{4}"
    r"|\d{1,2}[-. /]?\s?[^\W\d_]{3,12}\.?[-. ,/]*\d{2,4}|[^\W\d_]{3,12}\.? \d{1,2},? \d{4}|(?:19|20)\d{6})"
)
_CLOCK = r"(?:\d{1,2}(?:(?<=[1-3])[AB])?:\d{2}(?::\d{2}(?:[.,:]\d{1,9})?)?(?: ?[AaPp](?:\.? ?[Mm]\.?)?)?)"
_CLOCK_DIGITS = r"(?:\d{4}(?:\d{2}(?:[.,]\d+)?)?)"
_ZONE = (
    r"(?: ?(?:Z|UTC|GMT|Uhr|[A-Z]{3,4}|[+-]\d{2}(?::?\d{2})?))?"
    r"(?:\[[A-Za-z][\w+/-]{2,40}\]| [A-Z]\w+/[\w+/-]{2,30})?"
)
_WITHOUT_YEAR = (
    r"(?:[A-Z][a-zä]{2,8}\.? +\d{1,2}|\d{1,2}\.? [A-Z][a-zä]{2,8}\.?|\d{1,2}\.\d{1,2}\.|\d{1,2}-\d{1,2}) "
)
WEEKDAYS = (
    "mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim|mi\u00e9|jue|vie|s\u00e1b|dom|gio"
    "|pon|wt|\u015br|czw|pt|pi\u0105|sob|ndz|nie|po|\u00fat|st|\u010dt|p\u00e1|ne"
)
"""The first letters of names of days, in the languages of the month names."""

_WEEKDAY = rf"(?:(?i:{WEEKDAYS})[^\W\d_]{{0,9}}\.?,? +)?"
_TIME = re.compile(
    rf"{_WEEKDAY}{_DATE}(?:(?:[TD]|[ ,]+| ?[-_:] ?|\s*;\s*)"
    rf"(?:{_CLOCK}|{_CLOCK_DIGITS}|\d{{1,2}}\.\d{{2}}(?:\.\d{{2}})?){_ZONE})?"
    rf"|(?:19|20)\d{{6}}T?{_CLOCK_DIGITS}{_ZONE}"
    rf"|{_WEEKDAY}[A-Z][a-z]{{2}} +\d{{1,2}} {_CLOCK} \d{{4}}"
    rf"|{_WEEKDAY}{_WITHOUT_YEAR}{_CLOCK}|\d{{4}}-?W\d{{2}}(?:-?\d)?|(?:19|20)\d{{8}}:\d{{2}}"
    rf"|{_CLOCK},? (?:- )?{_DATE}|\d{{4}}\. ?\d{{1,2}}\. ?\d{{1,2}}\. {_CLOCK}"
    r"|\d{4}年\d{1,2}月\d{1,2}日.*"
)
_CLOCK_ALONE = re.compile(_CLOCK)


def is_no_value(cell: str) -> bool:
    """Returns whether a cell among numbers means "no value": empty, `NaN`, `Overflow`, `---.-`."""
    text = cell.strip().lower()
    return text in _NO_VALUE or _MARKS_ALONE.fullmatch(text) is not None


@lru_cache(maxsize=100_000)
def shape(cell: str) -> str:
    """Returns `none`, `number`, `time`, `clock`, `words`, or `near`, which is a number followed by a unit."""
    text = cell.strip()
    if is_no_value(text):
        return "none"
    if len(text) > 60:
        return "words"
    if _NUMBER.fullmatch(text):
        return (
            "time"
            if re.fullmatch(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])\d{4}(?:\d{2})?", text)
            else "number"
        )
    bare = unwrapped(text)
    if _CLOCK_ALONE.fullmatch(bare):
        return "clock"
    if _TIME.fullmatch(bare):
        return "time"
    if _NEAR_NUMBER.fullmatch(text):
        return "near"
    return "near" if unit_beside(text) else "words"


def is_typed(cell: str) -> bool:
    """Returns whether a cell is a number, a time, or a text that means "no value". An empty cell is none of
    these."""
    return shape(cell) in ("number", "time", "clock", "near") or (
        bool(cell.strip()) and shape(cell) == "none"
    )
