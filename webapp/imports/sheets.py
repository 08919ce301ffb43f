"""The cells of a workbook, as text."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from python_calamine import CalamineWorkbook

from webapp.imports.faults import ImportFault
from webapp.imports.sheet_marks import Merged

WORKBOOK_BYTES_MAX = 256 << 20
"""A workbook is read as a whole, so its parts may unpack to so many bytes."""


def open_workbook(path: Path) -> CalamineWorkbook:
    """Raises ImportFault if it is none or too large, and CalamineError if it cannot be read."""
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


def sheet_rows(workbook: CalamineWorkbook, sheet: str, rows_max: int | None = None) -> Iterator[list[str]]:
    """Yields the cells of each row, from the sheet's first line: dates as ISO 8601, empty ones as ""."""
    rows = workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=False, nrows=rows_max)
    for row in rows:
        yield [cell_text(value) for value in row]


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
    """Returns 26:30:00 or -01:00:00: hours are not cut at a day, as in Excel's [h]:mm:ss."""
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    hours, seconds = divmod(seconds, 3600)
    fraction = f".{micros:06}" if micros else ""
    sign = "-" if value < timedelta() else ""
    return f"{sign}{hours:02}:{seconds // 60:02}:{seconds % 60:02}{fraction}"
