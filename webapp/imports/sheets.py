"""Reads the cells of a workbook as texts."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from python_calamine import CalamineWorkbook

from webapp.imports.cell_text import can_be_either
from webapp.imports.faults import ImportFault
from webapp.imports.sheet_cells import SheetCells, as_written, cells_in
from webapp.imports.sheet_formats import Shown
from webapp.imports.sheet_marks import Merged

WORKBOOK_BYTES_MAX = 256 << 20
"""The limit for the unpacked parts of a workbook, because a workbook is read as a whole."""


def open_workbook(path: Path) -> CalamineWorkbook:
    """Opens a workbook. Raises ImportFault if the file is no workbook or too large, and CalamineError if it
    cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except zipfile.BadZipFile as error:
        raise ImportFault("The file is no workbook.", None, "Save it again as .xlsx, or as CSV.") from error
    if size > WORKBOOK_BYTES_MAX:
        raise ImportFault(
            f"The workbook unpacks to {size:,} bytes; at most {WORKBOOK_BYTES_MAX:,} are possible.",
            None,
            "Save its sheet as CSV.",
        )
    return CalamineWorkbook.from_path(path)


def merged_down(workbook: CalamineWorkbook, sheet: str) -> list[Merged]:
    """Returns the merged cells of a sheet that have several lines."""
    ranges = workbook.get_sheet_by_name(sheet).merged_cell_ranges or []
    return [(top + 1, bottom + 1, left) for (top, left), (bottom, _) in ranges if bottom > top]


def sheet_rows(
    path: Path, workbook: CalamineWorkbook, sheet: str, rows_max: int | None = None
) -> Iterator[list[str]]:
    """Returns the cells of each row, from the sheet's first line on. Dates are ISO 8601, and empty cells are
    "".

    Raises ImportFault if the cells reach too far, before it reads any of them.
    """
    texts = _Texts(path, sheet, cells_in(path, sheet))
    rows = workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=False, nrows=rows_max)
    return (
        [texts.of(value, line, column) for column, value in enumerate(row)]
        for line, row in enumerate(rows, 1)
    )


class _Texts:
    """Turns a sheet's cells into texts. The caller asks for them in their order."""

    def __init__(self, path: Path, sheet: str, cells: SheetCells) -> None:
        self._cells = cells
        self._written = as_written(path, sheet)
        self._next: tuple[int, int, str] | None = (0, 0, "")

    def of(self, value: Any, line: int, column: int) -> str:
        if isinstance(value, str):
            # Excel marks a text that looks like a number. No reader treats it as a number.
            return f"'{value}" if column in self._cells.doubtful and can_be_either(value) else value
        if isinstance(value, bool):
            return cell_text(value)
        if isinstance(value, int | float):
            return self._number(value, line, column)
        if isinstance(value, date | time) and _may_be_no_date(value):
            return self._date(value, line, column)
        return cell_text(value)

    def _number(self, value: int | float, line: int, column: int) -> str:
        shown = self._cells.shown.get(column, Shown())
        if shown.tens:
            value = float(Decimal(repr(value)).scaleb(shown.tens))
        text = shown.text_of(value) or cell_text(value)
        if abs(value) >= 1e15:
            text = self._as_written(line, column) or text
        return f"{text} {shown.behind}" if shown.behind else text

    def _date(self, value: date | time, line: int, column: int) -> str:
        written = self._as_written(line, column)
        if written is None:
            return cell_text(value)
        return written if written.startswith("-") else cell_text(value).replace("1900-02-28", "1900-02-29")

    def _as_written(self, line: int, column: int) -> str | None:
        while self._next is not None and self._next[:2] < (line, column):
            self._next = next(self._written, None)
        return self._next[2] if self._next is not None and self._next[:2] == (line, column) else None


def _may_be_no_date(value: date | time) -> bool:
    """Returns whether a date may be none. The library reads day 60 as 28 February 1900, and a negative number
    with a date's format as midnight."""
    if isinstance(value, time):
        return value == time()
    return (value.year, value.month, value.day) == (1900, 2, 28)


def cell_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration_text(value)
    return str(value)


def _duration_text(value: timedelta) -> str:
    """Returns a duration such as 26:30:00 or -01:00:00. As in Excel's [h]:mm:ss, there may be more than 24
    hours."""
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    hours, seconds = divmod(seconds, 3600)
    fraction = f".{micros:06}" if micros else ""
    sign = "-" if value < timedelta() else ""
    return f"{sign}{hours:02}:{seconds // 60:02}:{seconds % 60:02}{fraction}"
