"""Finds the mark before decimals and the mark between thousands. Some texts have two meanings: 1.008 may be
1008."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from webapp.imports.characters import APOSTROPHES, WIDE

_PLAIN = re.compile(r"[+-]?(\d*)([.,])(\d*)(?:[eE][+-]?\d+)?", re.ASCII)
_GROUPS = re.compile(
    rf"[+-]?\d{{1,3}}(?:([.,' {APOSTROPHES}{WIDE}])\d{{3}})(?:\1\d{{3}})*(?:([.,])\d*)?", re.ASCII
)
_GROUPS_OF_TWO = re.compile(r"[+-]?\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d*)?", re.ASCII)
"""Groups of two digits, as in the lakhs and crores of India: 1,00,000."""


@dataclass
class Marks:
    """The marks of some cells. `either` are cells with two meanings, by the mark in them."""

    decimals: dict[str, int] = field(default_factory=lambda: {".": 0, ",": 0})
    thousands: dict[str, int] = field(default_factory=dict)
    either: dict[str, list[str]] = field(default_factory=lambda: {".": [], ",": []})


def shown(cells: Iterable[str]) -> Marks:
    """Returns the marks that the cells of numbers show."""
    marks = Marks()
    whole_over_999 = False
    for cell in cells:
        text = cell.strip()
        if _GROUPS_OF_TWO.fullmatch(text):
            marks.thousands[","] = marks.thousands.get(",", 0) + 1
            marks.decimals["."] += "." in text
            continue
        groups = _GROUPS.fullmatch(text)
        plain = _PLAIN.fullmatch(text)
        if groups is None and plain is None:
            digits = text.lstrip("+-")
            whole_over_999 |= digits.isdecimal() and len(digits) > 3
            continue
        if plain is not None and groups is None:
            marks.decimals[plain[2]] += 1
        elif groups is not None:
            _take_groups(text, groups, marks)
    if whole_over_999:
        # A cell has 1008 without a mark, so no mark divides thousands.
        for mark, cells_of_it in marks.either.items():
            marks.decimals[mark] += len(cells_of_it)
            cells_of_it.clear()
    return marks


def _take_groups(text: str, groups: re.Match[str], marks: Marks) -> None:
    separator, decimal = groups[1], groups[2]
    if separator in APOSTROPHES:
        separator = "'"
    if separator in WIDE:
        separator = " "
    if decimal:
        marks.decimals[decimal] += 1
        marks.thousands[separator] = marks.thousands.get(separator, 0) + 1
    elif separator not in (".", ",") or text.count(separator) > 1:
        marks.thousands[separator] = marks.thousands.get(separator, 0) + 1
    elif text.lstrip("+-").startswith("0"):
        marks.decimals[separator] += 1
    else:
        marks.either[separator].append(text)


@dataclass(frozen=True)
class Decision:
    """The marks of a table. `doubt` is a cell with two meanings, if nothing decides between them. With
    `apart`, other columns have both marks before decimals. An answer then holds only for the columns in
    doubt."""

    decimal: str
    thousands: str
    doubt: str | None = None
    doubted_mark: str = ""
    columns: tuple[int, ...] = ()  # the columns whose cells are in doubt
    apart: bool = False

    def decimal_of(self, marks: Marks) -> str:
        """Returns the decimal mark of a column, which may differ from the mark of the table."""
        other = "." if self.decimal == "," else ","
        return other if marks.decimals[other] and not marks.decimals[self.decimal] else self.decimal

    def thousands_of(self, marks: Marks, decimal: str) -> str:
        """Returns the mark between thousands in a column with this decimal mark."""
        own = {mark: count for mark, count in marks.thousands.items() if mark != decimal}
        if own:
            return max(own, key=lambda mark: own[mark])
        return self.thousands if self.thousands != decimal else ""


def decide(columns: Sequence[Marks], delimiter: str, times: Collection[int] = ()) -> Decision:
    """Returns the marks of a table with these columns of numbers. `times`: columns of times; one that counts
    days has a decimal point, even if the other columns have commas."""
    points = sum(marks.decimals["."] for marks in columns)
    commas = sum(marks.decimals[","] for marks in columns)
    thousands: dict[str, int] = {}
    for marks in columns:
        for mark, count in marks.thousands.items():
            thousands[mark] = thousands.get(mark, 0) + count
    if thousands.get(".") and not points:
        decimal = ","
    elif thousands.get(",") and not commas:
        decimal = "."
    elif commas > points:
        decimal = ","
    elif points or delimiter == ",":
        # A file that has a comma between thousands does not divide its cells by commas.
        decimal = "."
    else:
        return _undecided(columns, thousands)
    separator = max(
        (mark for mark in thousands if mark != decimal), key=lambda mark: thousands[mark], default=""
    )
    other = "." if decimal == "," else ","
    doubted = any(marks.either[other] for marks in columns)
    if doubted and not separator:
        some = [marks for at, marks in enumerate(columns) if at not in times]
        if any(marks.decimals[other] and not marks.decimals[decimal] for marks in some):
            return _undecided_apart(columns, decimal, other)
        separator = other
    return Decision(decimal, separator)


def _undecided_apart(columns: Sequence[Marks], decimal: str, other: str) -> Decision:
    """Returns the marks of a table in which some columns have decimal points and others decimal commas."""
    places = tuple(
        at for at, marks in enumerate(columns) if marks.either[other] and not any(marks.decimals.values())
    )
    if not places:
        return Decision(decimal, "")
    return Decision(decimal, "", columns[places[0]].either[other][0], other, places, apart=True)


def _undecided(columns: Sequence[Marks], thousands: dict[str, int]) -> Decision:
    separator = max(thousands, key=lambda mark: thousands[mark], default="")
    for mark in (".", ","):
        places = tuple(at for at, marks in enumerate(columns) if marks.either[mark])
        if places:
            if separator:  # another mark divides thousands, so this mark stands before decimals
                return Decision(mark, separator)
            return Decision(mark, "", columns[places[0]].either[mark][0], mark, places)
    return Decision(".", separator)
