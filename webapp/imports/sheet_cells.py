"""Reads facts about a sheet's cells that the library for workbooks does not give.

The library does not say how far the cells reach, which signs their number formats show, which texts stand
among numbers, and which digits were written. The sheet's XML has these facts. This module expects attributes
in the order in which Excel, LibreOffice, openpyxl and XlsxWriter write them.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO

from webapp.imports.cell_text import can_be_either
from webapp.imports.faults import ImportFault
from webapp.imports.sheet_formats import Shown, shown_by_styles
from webapp.imports.sheet_marks import column_letters, part_of

CELLS_MAX = 20_000_000
"""A sheet may have so many cells from A1 to its last cell. The library reads all of them, and also the empty
ones."""

_BLOCK, _CELL_BYTES_MAX = 1 << 20, 1 << 18
_LETTERS_SHOWN = 8
_C, _F, _V = rb"<(?:\w+:)?c", rb"<(?:\w+:)?f", rb"<(?:\w+:)?v>"
_FORMULA = rb"(?:" + _F + rb"\b[^<>]*?(?:/>|>[^<]*</(?:\w+:)?f>))?"
_REFERENCE = re.compile(_C + rb"\b[^<>]*?\br=[\"']([A-Za-z]{1,3})(\d{1,7})")
_LINE = re.compile(rb"<(?:\w+:)?row\b[^<>]*?\br=[\"'](\d{1,7})")
_PLACE = rb" r=\"([A-Z]{1,3})(\d{1,7})\"(?: s=\"\d{1,6}\")?"
_NUMBER = re.compile(
    _C + rb" r=\"([A-Z]{1,3})\d{1,7}\"(?: s=\"(\d{1,6})\")?(?: t=\"n\")?>" + _FORMULA + _V + rb"[-.\d]"
)
_WRITTEN = re.compile(
    _C + _PLACE + rb"(?: t=\"n\")?>" + _FORMULA + _V + rb"(-?\d{16,}|60(?:\.\d*)?|-[\d.]+(?:[eE][+-]?\d+)?)<"
)
_ROUNDED = re.compile(
    _C + _PLACE + rb"(?: t=\"n\")?>" + _FORMULA + _V + rb"(-?[\d.]+[eE]\+(?:1[5-9]|[2-9]\d|\d{3}))<"
)
_BETWEEN = rb"\">" + _FORMULA + rb"(?:<(?:\w+:)?(?:v|is|t)[^<>]*>)+([^<]{1,40})<"
_TEXT = re.compile(_C + _PLACE + rb" t=\"(?:str|inlineStr)" + _BETWEEN)
_SHARED_CELL = re.compile(_C + _PLACE + rb" t=\"s" + _BETWEEN)
_SHARED = re.compile(rb"<(?:\w+:)?si>(.*?)</(?:\w+:)?si>", re.DOTALL)
_SHARED_TEXT = re.compile(rb"<(?:\w+:)?t(?: [^<>]*)?>([^<]*)<")


@dataclass(frozen=True)
class SheetCells:
    """Facts about the cells of a sheet. Columns count from 0. `shown` is the sign that the format of all
    numbers of a column shows beside the digits. `doubtful` are columns of numbers with texts that have two
    meanings."""

    shown: Mapping[int, Shown] = field(default_factory=dict)
    doubtful: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def cells_in(path: Path, sheet: str) -> SheetCells:
    """Returns the facts about a sheet. Raises ImportFault if the cells reach too far."""
    return _cells_in(path, path.stat().st_mtime_ns, sheet)


@lru_cache(maxsize=32)  # a look at the file reads the beginning of each sheet more than once
def _cells_in(path: Path, modified_ns: int, sheet: str) -> SheetCells:
    with zipfile.ZipFile(path) as archive:
        part = part_of(archive, sheet)
        if part is None:
            return SheetCells()
        formats = shown_by_styles(archive)
        either = _texts_that_are_either(archive)
        columns: set[bytes] = set()
        styles: set[tuple[bytes, bytes]] = set()
        texts: dict[bytes, str] = {}
        rounded: dict[bytes, str] = {}
        last = 0
        with archive.open(part) as file:
            for block in _blocks(file):
                places = _REFERENCE.findall(block)
                columns.update(letters.upper() for letters, _ in places)
                styles.update(_NUMBER.findall(block))
                lines = {*_LINE.findall(block), *(line for _, line in places)}
                last = max(last, *map(int, lines), 0)
                for letters, line, number in _ROUNDED.findall(block):
                    rounded.setdefault(letters, f"{number.decode()} in {letters.decode()}{line.decode()}")
                said = [
                    (each[1], each[2], each[3].decode(errors="replace")) for each in _TEXT.finditer(block)
                ]
                for each in _SHARED_CELL.finditer(block) if either else ():
                    said.append((each[1], each[2], either.get(each[3], "")))
                for letters, line, text in said:
                    if letters not in texts and can_be_either(text):
                        texts[letters] = f"'{text}' in {letters.decode()}{line.decode()}"
    _refuse_if_far(sheet, last, columns)
    shown: dict[bytes, set[Shown]] = {}
    for letters, style in styles:
        shown.setdefault(letters, set()).add(formats.get(int(style or b"0"), Shown()))
    alike = {letters: next(iter(each)) for letters, each in shown.items() if len(each) == 1}
    doubtful = {letters: text for letters, text in texts.items() if letters in shown}
    return SheetCells(
        {_number_of(letters): each for letters, each in alike.items()},
        frozenset(map(_number_of, doubtful)),
        tuple(_notes(doubtful, rounded, shown)),
    )


def as_written(path: Path, sheet: str) -> Iterator[tuple[int, int, str]]:
    """Yields (line from 1, column from 0, text) of numbers that would lose something in the library.

    These have 16 or more digits, are negative although no date is negative, or are day 60, which no calendar
    has.
    """
    with zipfile.ZipFile(path) as archive:
        part = part_of(archive, sheet)
        if part is None:
            return
        with archive.open(part) as file:
            for block in _blocks(file):
                for letters, line, text in _WRITTEN.findall(block):
                    yield int(line), _number_of(letters), text.decode()


def _refuse_if_far(sheet: str, last: int, columns: set[bytes]) -> None:
    width = max(map(_number_of, columns), default=-1) + 1
    if last * width > CELLS_MAX:
        raise ImportFault(
            f"The sheet reaches to {column_letters(width)}{last}. Those are {last * width:,} cells; at most "
            f"{CELLS_MAX:,} are possible.",
            sheet,
            "Delete the rows and columns after the table, also empty ones, and save the workbook. "
            "Or save the table as CSV.",
        )


def _notes(
    doubtful: Mapping[bytes, str], rounded: Mapping[bytes, str], shown: Mapping[bytes, set[Shown]]
) -> Iterator[str]:
    for letters, text in sorted(doubtful.items())[:_LETTERS_SHOWN]:
        yield (
            f"Column {letters.decode()} holds numbers, and texts that can be read in two ways, "
            f"such as {text}. Such texts stay without a value. Make them numbers in the workbook."
        )
    for letters, text in sorted(rounded.items())[:_LETTERS_SHOWN]:
        yield (
            f"Column {letters.decode()} holds numbers of more than 15 digits, such as {text}. "
            "A workbook keeps no further digits. Save identifiers as text."
        )
    mixed = sorted((letters.decode(), each) for letters, each in shown.items() if len(each) > 1)
    percent = [letters for letters, each in mixed if any(one.tens > 0 for one in each)]
    masked = [letters for letters, each in mixed if any(one.mask for one in each)]
    thousands = [letters for letters, each in mixed if any(one.tens < 0 for one in each)]
    for letters, each in sorted(shown.items())[:_LETTERS_SHOWN]:
        if len(each) == 1 and (tens := next(iter(each)).tens) < 0:
            yield f"Column {letters.decode()} shows its numbers divided by {10**-tens:,}. They are read so."
    if thousands:
        letters_of = ", ".join(thousands[:_LETTERS_SHOWN])
        yield f"Only some cells of {letters_of} show thousands. All are read as they are saved."
    if percent:
        letters_of = ", ".join(percent[:_LETTERS_SHOWN])
        yield f"Only some cells of {letters_of} show percent. All are read as they are saved: 5 % is 0.05."
    if masked:
        letters_of = ", ".join(masked[:_LETTERS_SHOWN])
        yield (
            f"Only some cells of {letters_of} show zeros or characters that are not saved, as 0012 for 12 "
            "does. All are read as they are saved."
        )


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yields the file in pieces. No piece ends within a cell."""
    held = b""
    while block := file.read(_BLOCK):
        data = held + block
        cut = max(data.rfind(b"<c "), data.rfind(b"<", 0, max(0, data.rfind(b":c "))))
        if cut <= 0:
            cut = len(data)
        yield data[:cut]
        held = data[cut:] if len(data) - cut < _CELL_BYTES_MAX else b""
    yield held


def _number_of(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number - 1


def _texts_that_are_either(archive: zipfile.ZipFile) -> dict[bytes, str]:
    """Returns the shared texts with two meanings, by their numbers."""
    if "xl/sharedStrings.xml" not in archive.namelist():
        return {}
    found = {}
    for number, each in enumerate(_SHARED.finditer(archive.read("xl/sharedStrings.xml"))):
        text = b"".join(_SHARED_TEXT.findall(each[1])).decode(errors="replace")
        if can_be_either(text):
            found[b"%d" % number] = text.strip()
    return found
