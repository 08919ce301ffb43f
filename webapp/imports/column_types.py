"""What type a column has, judged by all cells of it that are known; and what in it means "no value"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import read_cell
from webapp.imports.shapes import is_no_value, shape

NUMBERS_SHARE = 0.9  # of the cells with a value, for a column of numbers
NEAR_FEW = 2  # so many cells such as 10.00% are no question, however few rows there are
DOUBT_SHARE = 0.5  # from which on somebody is asked
EXACT_MAX = 1 << 53  # above it, a number does not keep all its digits everywhere
_SENTINEL_WORDS = """
-9.99 -9.999
-9999 -999 -99999 -999999 -9999.0 -999.0 -999.9 -999.99 -9999.9 -9999.99 -9999.00 -99.99 -99.9 -32768 -32767
-2147483648 -7999 -6999 9999 99999 999999 9999.9 999.9 9999.99 999.99 32767 65535 2147483647 7999 6999
1e20 -1e20 1e31 -1e31
"""
SENTINELS = frozenset(_SENTINEL_WORDS.split())
"""Numbers that loggers write when they have none."""

FAR = 3.0  # how many times the range of the other values a sentinel lies outside of it
SUSPECT_MAX, SUSPECT_TIMES = -99.0, 3
_TRUTHS = (
    ("true", "false"),
    ("yes", "no"),
    ("on", "off"),
    ("ja", "nein"),
    ("wahr", "falsch"),
    ("ein", "aus"),
    ("an", "aus"),
    ("oui", "non"),
    ("vrai", "faux"),
    ("j", "n"),
    ("t", "f"),
    ("y", "n"),
)
_ID = re.compile(
    r"(?:^|[^a-z])(?:id|ids|nr|no|serial|sn|code|plz|zip|phone|tag|asset|uuid|key|batch|charge|lot|order|auftrag)(?:$|[^a-z])"
    r"|(?:id|nr|no|num|number|nummer|code|serial)$",
)
_EXACT_NAME = re.compile(
    r"(?:^|[^a-z])(?:version|firmware|revision|release|phone|telephone|telefon|fax|iban|ean|gtin)(?:$|[^a-z])"
)
"""Names of columns whose 1.10 is not 1.1, or whose + counts."""

_CODE = re.compile(r"\d{1,4}[eE]\d{1,4}", re.ASCII)
_HEX = re.compile(r"(?:0[xX] ?|&[hH]|[#$]|(?:W#|B#|DW#)?16#)[0-9A-Fa-f]+|[0-9A-Fa-f]{1,16}[hH]")
_ODD_NUMBER = re.compile(r"^\W{0,3}\d|\d[.,]\d")
"""What has a number at its beginning, or decimals: whoever wrote it may have meant one."""

_HEX_DIGITS = re.compile(r"(?:[0-9A-F]{2}){1,8}|(?:[0-9a-f]{2}){1,8}")
_LEADING_ZERO = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass(frozen=True)
class Cell:
    line: int | None  # None in a piece from the middle, whose line is not known
    text: str


@dataclass(frozen=True)
class Judged:
    """`missing` are texts that mean "no value"; `sentinels` are those of them that are numbers, and `suspect`
    is a number that may mean it. `unreadable` is the first cell that is no number in a column of numbers, or
    the one for which a column of numbers stays text."""

    type: FieldType
    missing: tuple[str, ...] = ()
    sentinels: tuple[str, ...] = ()
    suspect: str | None = None
    why_text: str | None = None
    unreadable: Cell | None = None
    asks: bool = False
    numbers: int = 0
    others: int = 0


def judge(name: str, cells: Sequence[Cell], decimal: str, thousands: str, quoted_differs: bool) -> Judged:
    """Returns the type of a column. `quoted_differs`: its numbers are in quotes, and others are not."""
    filled = [cell for cell in cells if cell.text.strip()]
    words = [cell for cell in filled if not is_no_value(cell.text)]
    if not words:
        return Judged(FieldType.STRING)
    texts = [cell.text.strip() for cell in filled if is_no_value(cell.text)]
    missing = tuple(text for text, _ in Counter(texts).most_common(10))
    if _are_truths(words):
        return Judged(FieldType.BOOLEAN, missing=missing)
    numbers = [cell for cell in words if _number(cell.text, decimal, thousands) is not None]
    others = [cell for cell in words if _number(cell.text, decimal, thousands) is None]
    if not numbers:
        return _texts_alone(others)
    why_text, kept = _why_text(name, numbers, quoted_differs)
    if why_text:
        return Judged(FieldType.STRING, why_text=why_text, unreadable=kept)
    share = len(numbers) / len(words)
    mixed = f"{len(others):,} of its {len(words):,} cells that were looked at are no numbers"
    if share < DOUBT_SHARE:
        return Judged(FieldType.STRING, why_text=mixed, unreadable=others[0])
    few = share < NUMBERS_SHARE and not (len(others) <= NEAR_FEW and _are_near(others))
    if few and not _are_near(others) and _scattered(words, decimal, thousands):
        return Judged(FieldType.STRING, why_text=mixed, unreadable=others[0])
    sentinels, suspect = _sentinels([cell.text.strip() for cell in numbers], decimal, thousands)
    whole = all(
        read_cell(cell.text, FieldType.INTEGER, decimal, thousands) is not None
        for cell in numbers
        if cell.text.strip() not in sentinels
    )
    return Judged(
        FieldType.INTEGER if whole else FieldType.NUMBER,
        missing=missing + sentinels,
        sentinels=sentinels,
        suspect=suspect,
        unreadable=others[0] if others else None,
        asks=few,
        numbers=len(numbers),
        others=len(others),
    )


def _number(text: str, decimal: str, thousands: str) -> float | None:
    value = read_cell(text, FieldType.NUMBER, decimal, thousands)
    return value if isinstance(value, int | float) else None


def _are_truths(words: Sequence[Cell]) -> bool:
    """A column of truth values has both kinds of a pair, or one of `true` and `false`."""
    said = {cell.text.strip().lower() for cell in words}
    return any(said == set(pair) for pair in _TRUTHS) or said <= {"true", "false"}


def _texts_alone(words: Sequence[Cell]) -> Judged:
    """Returns a column without a plain number. It is said of cells that nearly are numbers or times."""
    kinds = {kind: [cell for cell in words if shape(cell.text) == kind] for kind in ("near", "time", "clock")}
    if _are_hexadecimal([cell.text.strip() for cell in words]):
        return Judged(FieldType.STRING, why_text="it may hold hexadecimal numbers", unreadable=words[0])
    if len(kinds["near"]) == len(words):
        return Judged(
            FieldType.STRING, why_text="its numbers have something beside them", unreadable=words[0]
        )
    for kind, why in (("clock", "its times have no date"), ("time", "its times are not all written alike")):
        if len(kinds[kind]) >= DOUBT_SHARE * len(words):
            return Judged(FieldType.STRING, why_text=why, unreadable=kinds[kind][0])
    numbers = [cell for cell in words if shape(cell.text) in ("number", "near")]
    if len(numbers) >= DOUBT_SHARE * len(words):
        return Judged(
            FieldType.STRING, why_text="its numbers are written in several ways", unreadable=numbers[0]
        )
    odd = [cell for cell in words if _ODD_NUMBER.search(cell.text)]
    if len(odd) >= DOUBT_SHARE * len(words):
        return Judged(FieldType.STRING, why_text="its cells are no plain numbers", unreadable=odd[0])
    return Judged(FieldType.STRING)


def _are_hexadecimal(texts: Sequence[str]) -> bool:
    """Whether each text says so, as 0x1F does, or all have as many digits as some bytes."""
    if all(map(_HEX.fullmatch, texts)):
        return True
    digits = sum(any(map(str.isdigit, text)) for text in texts)
    return (
        len(set(map(len, texts))) == 1 and 2 * digits > len(texts) and all(map(_HEX_DIGITS.fullmatch, texts))
    )


def _why_text(name: str, numbers: Sequence[Cell], quoted_differs: bool) -> tuple[str, Cell]:
    """Returns (why numbers stay text, the first for which they do). The reason is "" if nothing speaks
    against numbers."""
    texts = [cell.text.strip() for cell in numbers]
    for number, text in zip(numbers, texts, strict=True):
        if _LEADING_ZERO.fullmatch(text):
            return "numbers begin with a zero, which a number would lose", number
        digits = text.lstrip("+-")
        if len(digits) > 15 and digits.isdecimal() and int(digits) > EXACT_MAX:
            return "numbers have more digits than a number keeps exactly", number
    if _EXACT_NAME.search(name.lower()):
        return "it is no quantity, by its name", numbers[0]
    codes = [number for number, text in zip(numbers, texts, strict=True) if _CODE.fullmatch(text)]
    if codes and all(_CODE.fullmatch(text) or text.isdecimal() for text in texts):
        return "it holds codes such as 12E4", codes[0]
    if quoted_differs and all(map(str.isdecimal, texts)) and _ID.search(name.lower()):
        return "its numbers are in quotes, and the others of the file are not", numbers[0]
    return "", numbers[0]


def _scattered(words: Sequence[Cell], decimal: str, thousands: str) -> bool:
    """Whether numbers and other texts take turns, rather than one following the other."""
    kinds = [_number(cell.text, decimal, thousands) is not None for cell in words]
    changes = sum(before != after for before, after in pairwise(kinds))
    return changes > 2


def _is_far_below(text: str, decimal: str, thousands: str) -> bool:
    value = _number(text, decimal, thousands)
    return value is not None and value <= SUSPECT_MAX


def _are_near(others: Sequence[Cell]) -> bool:
    """Whether they are numbers with something beside them: `10.00%`, `<0.5`."""
    return all(shape(cell.text) == "near" for cell in others)


def _sentinels(numbers: Sequence[str], decimal: str, thousands: str) -> tuple[tuple[str, ...], str | None]:
    """Returns (numbers that mean "no value", one that may mean it).

    The first are usual ones, and either far outside of all others, or the only ones below zero, or all that
    the column has below zero. The second is a whole one, -99 or below, that comes again and again while all
    others are at least zero.
    """
    usual = set(numbers) & SENTINELS
    counts = Counter(numbers)
    rest = [
        value
        for text in counts
        if text not in usual and (value := _number(text, decimal, thousands)) is not None
    ]
    if not rest:
        return tuple(sorted(text for text in usual if _is_far_below(text, decimal, thousands))), None
    low, high = min(rest), max(rest)
    reach = max(high - low, abs(high), abs(low), 1.0) * FAR
    found = []
    for text in sorted(usual):
        value = _number(text, decimal, thousands)
        if value is not None and (
            value < low - reach or value > high + reach or (value < 0 <= low and value <= SUSPECT_MAX)
        ):
            found.append(text)
    if found or low >= 0:
        return tuple(found), None
    others = [value for value in rest if value != low]
    text = next(text for text in counts if _number(text, decimal, thousands) == low)
    if others and min(others) >= 0 and low <= SUSPECT_MAX and low % 1 == 0 and counts[text] >= SUSPECT_TIMES:
        return (), text
    return (), None
