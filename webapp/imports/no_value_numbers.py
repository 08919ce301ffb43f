"""Finds numbers that mean "no value": usual ones far from all others, and those about which only a person can
decide."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import read_cell

_USUAL_WORDS = """
-9.99 -9.999 -99.9 -99.99 -777 -999 -999.25 -999.9 -999.99 -6999 -7999 -9999 -9999.9 -9999.99 -99999 -999999
-32767 -32768 -2147483648 999.9 999.99 6999 7999 9999 9999.9 9999.99 99999 999999 32767 65535 2147483647
4294967295 1e20 -1e20
"""
_ENDS_OF_REGISTERS = (32767, -32767, -32768, 65535, 2147483647, -2147483648, 4294967295)
_SCALED = frozenset(end / scale for end in _ENDS_OF_REGISTERS for scale in (10, 100, 1000))
"""The first and the last whole number of a register, with the decimals of a measurement: 3276.7 is 32767."""
USUAL = frozenset(map(float, _USUAL_WORDS.split())) | _SCALED
"""Numbers that loggers write in place of a missing value."""

HUGE = 1e29  # a larger number is never a measurement
# A usual number counts if its distance from the other values is more than so many times their range.
FAR = 3.0
FAR_NINES = 1.0
SUSPECT_MAX, SUSPECT_TIMES = -99.0, 3
_OF_SENSORS = (-127.0, -273.15)
"""Numbers that a thermometer without a connection shows. They are no temperatures."""

_NINES = re.compile(r"[+-]?99+(?:[.,][09]*)?", re.ASCII)
"""99.00 and 999 of weather stations. They may also be measurements."""


def no_value_numbers(
    numbers: Sequence[str], decimal: str, thousands: str
) -> tuple[tuple[str, ...], str | None]:
    """Returns (the numbers that mean "no value", one number that may mean it).

    The first are usual numbers that are far from all others, or that are all numbers below zero in the
    column. The second is made of nines and far from all others, or is the only number of the column. It may
    also be a whole number of at most -99 that comes again and again while all other numbers are at least
    zero.
    """
    counts = Counter(numbers)
    values = {text: value for text in counts if (value := _number(text, decimal, thousands)) is not None}
    usual = {text for text, value in values.items() if value in USUAL or abs(value) >= HUGE}
    nines = {text for text in values.keys() - usual if _NINES.fullmatch(text) or values[text] in _OF_SENSORS}
    rest = [value for text, value in values.items() if text not in usual and text not in nines]
    if not rest:
        alone = len(values) == 1
        found = tuple(
            text
            for text in sorted(usual)
            if (values[text] <= SUSPECT_MAX or values[text] >= HUGE) and (alone or abs(values[text]) < HUGE)
        )
        return found, _of_nothing_else(counts, found)
    found = tuple(
        text
        for text in sorted(usual)
        if _is_outside(values[text], rest, FAR)
        or (values[text] < 0 <= min(rest) and values[text] <= SUSPECT_MAX)
    )
    far = [
        text for text in nines if _is_outside(values[text], rest, FAR_NINES) and not _is_a_count(text, counts)
    ]
    if far:
        return found, max(far, key=lambda text: (counts[text], text))
    return found, None if found else _far_below(counts, values, rest)


def _number(text: str, decimal: str, thousands: str) -> float | None:
    value = read_cell(text, FieldType.NUMBER, decimal, thousands)
    return value if isinstance(value, int | float) else None


def _is_a_count(text: str, counts: Counter[str]) -> bool:
    """Returns whether the text is a single 99 among whole numbers. No logger writes "no value" so, and only
    once."""
    return (
        text.lstrip("+") == "99"
        and counts[text] == 1
        and all(each.lstrip("+-").isdecimal() for each in counts)
    )


def _is_outside(value: float, rest: Sequence[float], times: float) -> bool:
    low, high = min(rest), max(rest)
    reach = max(high - low, abs(high), abs(low), 1.0) * times
    return value < low - reach or value > high + reach


def _of_nothing_else(counts: Counter[str], found: Sequence[str]) -> str | None:
    """Returns the number that all cells have, if it is made of nines, or None."""
    left = [text for text in counts if text not in found]
    one = left[0] if len(left) == 1 else ""
    return one if _NINES.fullmatch(one) and counts[one] >= SUSPECT_TIMES else None


def _far_below(counts: Counter[str], values: dict[str, float], rest: Sequence[float]) -> str | None:
    low = min(rest)
    others = [value for value in rest if value != low]
    if not others or min(others) < 0 or low > SUSPECT_MAX or low % 1:
        return None
    text = next(text for text in counts if values.get(text) == low)
    return text if counts[text] >= SUSPECT_TIMES else None
