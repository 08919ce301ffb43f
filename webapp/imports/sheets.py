"""The cells of a workbook, as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from python_calamine import CalamineWorkbook


def sheet_names(path: Path) -> list[str]:
    return list(CalamineWorkbook.from_path(path).sheet_names)


def sheet_rows(path: Path, sheet: str) -> Iterator[list[str]]:
    """Yields the cells of each row, from the sheet's first line: dates as ISO 8601, empty ones as ""."""
    for row in CalamineWorkbook.from_path(path).get_sheet_by_name(sheet).to_python(skip_empty_area=False):
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
        return str((datetime(2000, 1, 1) + value).time())  # noqa: DTZ001  a time of day
    return str(value)
