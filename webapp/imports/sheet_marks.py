"""Finds the merged cells, the hidden rows and the hidden columns of a sheet."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import groupby
from pathlib import Path
from typing import IO

Merged = tuple[int, int, int]
"""A merged cell with several lines: (its first line, its last line, its column from 0). Lines count from
1."""

HIDDEN_MAX = 100_000
_BLOCK, _TAG_MAX = 1 << 20, 4 << 10
_HIDDEN = re.compile(rb"<(?:\w+:)?(row|col)\b([^<>]*?\bhidden=\"(?:1|true)\"[^<>]*)>")
_ATTRIBUTE = re.compile(r"([\w:]+)=\"([^\"]*)\"")
# If the value of a formula is an empty text, Excel saves it with the type str.
_UNSAVED = re.compile(
    rb"<c\b(?![^<>]*\bt=\"str\")[^<>]*><f\b[^<>]*?(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>"
)
_DAYS_OF_1904 = re.compile(rb"<(?:\w+:)?workbookPr\b[^<>]*\bdate1904=\"(?:1|true)\"")
_NUMBER = re.compile(rb"\b(r|min|max)=\"(\d{1,7})\"")


def filled_down(
    rows: Iterator[Sequence[str]], merged: Sequence[Merged], first: int, number: int = 1
) -> Iterator[list[str]]:
    """Yields the rows, from the table's first line on. Each line of a merged cell has the cell's value.

    Above the table a merged cell is a name or a title, and is not changed. `number` is the line of the first
    row.
    """
    begins: dict[int, list[Merged]] = {}
    for each in merged:
        if each[0] >= first:
            begins.setdefault(each[0], []).append(each)
    under_way: list[tuple[int, int, str]] = []
    for line, row in enumerate(rows, number):
        cells = list(row)
        for last, column, value in under_way:
            if line <= last and column < len(cells) and not cells[column].strip():
                cells[column] = value
        under_way = [each for each in under_way if each[0] > line]
        for _, last, column in begins.get(line, ()):
            if column < len(cells):
                under_way.append((last, column, cells[column]))
        yield cells


def hidden_in(path: Path, sheet: str) -> tuple[list[int], list[int]]:
    """Returns the hidden (lines, columns) of a sheet, from 1, at most HIDDEN_MAX of each."""
    rows: list[int] = []
    columns: list[int] = []
    with zipfile.ZipFile(path) as archive:
        part = part_of(archive, sheet)
        if part is None:
            return rows, columns
        with archive.open(part) as file:
            for found in _tags(file):
                said = {name: int(number) for name, number in _NUMBER.findall(found[2])}
                if found[1] == b"row" and b"r" in said:
                    rows.append(said[b"r"])
                elif b"min" in said and b"max" in said:
                    columns += range(said[b"min"], min(said[b"max"], said[b"min"] + 2_000) + 1)
                if len(rows) + len(columns) >= HIDDEN_MAX:
                    break
    return sorted(set(rows)), sorted(set(columns))


def notes_on_values(path: Path, sheet: str) -> list[str]:
    """Returns notes on facts that the cells do not show: formulas without a value."""
    notes: list[str] = []
    with zipfile.ZipFile(path) as archive:
        part = part_of(archive, sheet)
        if part is None:
            return notes
        with archive.open(part) as file:
            if any(_UNSAVED.search(block) for block in iter(lambda: file.read(_BLOCK), b"")):
                notes.append(
                    "Formulas without a saved value are read as empty cells. "
                    "Open the workbook in Excel and save it to have their values."
                )
    return notes


def counts_from_1904(path: Path) -> bool:
    """Returns whether day 0 of the workbook is 1 January 1904."""
    with zipfile.ZipFile(path) as archive:
        if "xl/workbook.xml" not in archive.namelist():
            return False
        return _DAYS_OF_1904.search(archive.read("xl/workbook.xml")) is not None


def _tags(file: IO[bytes]) -> Iterator[re.Match[bytes]]:
    held = b""
    while block := file.read(_BLOCK):
        data = held + block
        end = data.rfind(b">") + 1
        yield from _HIDDEN.finditer(data, 0, end)
        held = data[max(end, len(data) - _TAG_MAX) :]


def part_of(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """Returns the name of the file in the archive that holds the sheet."""
    names = archive.namelist()
    if "xl/workbook.xml" not in names or "xl/_rels/workbook.xml.rels" not in names:
        return None
    targets = {
        each.get("Id"): each.get("Target", "")
        for each in elements(archive.read("xl/_rels/workbook.xml.rels"), "Relationship")
    }
    for each in elements(archive.read("xl/workbook.xml"), "sheet"):
        target = targets.get(each.get("r:id"), "")
        if each.get("name") == sheet and target:
            part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            return part if part in names else None
    return None


def elements(data: bytes, name: str) -> Iterator[dict[str, str]]:
    """Yields the attributes of each XML element with this name."""
    for tag in re.findall(rf"<(?:\w+:)?{name}\b([^>]*)>", data.decode(errors="replace")):
        yield {key: unescape(value) for key, value in _ATTRIBUTE.findall(tag)}


def runs(numbers: Sequence[int]) -> str:
    """Returns numbers as a text such as "2, 5 to 9". It names at most five runs."""
    found = []
    for _, group in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        run = [number for _, number in group]
        found.append(f"{run[0]:,}" if len(run) == 1 else f"{run[0]:,} to {run[-1]:,}")
    return ", ".join(found[:5]) + (f" and {len(found) - 5:,} more" if len(found) > 5 else "")


def column_letters(number: int) -> str:
    """Returns the name of a workbook's column: A, Z, AA. `number` is from 1."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
