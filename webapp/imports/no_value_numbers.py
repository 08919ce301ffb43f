"""Numbers that mean "no value": usual ones far from the rest, and those that only a person can tell."""

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
USUAL = frozenset(map(float, _USUAL_WORDS.split()))
"""Numbers that loggers write when they have none."""

HUGE = 1e29  # nothing that is measured is as large
FAR = 3.0  # how many times the range of the other values a usual one lies outside of it
FAR_NINES = 1.0
SUSPECT_MAX, SUSPECT_TIMES = -99.0, 3
_OF_SENSORS = (-127.0, -273.15)
"""What a thermometer says that is not connected, and no temperature."""

_NINES = re.compile(r"[+-]?99+(?:[.,][09]*)?", re.ASCII)
"""99.00 and 999 of weather stations, which may as well be measured."""


def no_value_numbers(
    numbers: Sequence[str], decimal: str, thousands: str
) -> tuple[tuple[str, ...], str | None]:
    """Returns (numbers that mean "no value", one that may mean it).

    The first are usual ones, and either far outside of all others, or the only ones below zero, or all that
    the column has below zero. The second is made of nines and far outside, or all that the column has; or it
    is a whole one, -99 or below, that comes again and again while all others are at least zero.
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
    """Whether it is a lone 99 among whole numbers: no logger writes it once, and whole, for "no value"."""
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
    """Returns the number that all cells have, if it is made of nines."""
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
