"""Asks which table to import, if an archive, a workbook or a JSON document has several. Only one is imported
at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from pipeline_runtime.model.schema import FieldType
from webapp.imports.faults import ImportFault
from webapp.imports.preview import preview
from webapp.imports.reading import Choice, Detection, Reading
from webapp.imports.sample import Head
from webapp.imports.table_parts import difference

TABLES = ("member", "sheet", "records")
"""The places of a reading that name one of several tables."""

ROWS_MIN = 3
CHOICES_MAX = 8
COLUMNS_SHOWN = 8
_MEASURED = (FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN)


def asked_which_table(found: Detection, head: Head, others: Iterable[tuple[Head, Detection]]) -> Detection:
    """Returns the detection. If other tables have rows as well, it has the question which table to read."""
    if not _is_table(head, found.reading):
        return found
    tables = islice((each for at, each in others if _is_table(at, each.reading)), CHOICES_MAX - 1)
    choices = [_choice(found, each) for each in (found, *tables)]
    return found.asking(
        "table", "The file has several tables. One is imported at a time. Which one?", choices
    )


def _choice(found: Detection, other: Detection) -> Choice:
    reading = other.reading
    own = {place: getattr(reading, place) for place in TABLES}
    named = {place: value for place, value in own.items() if value is not None}
    names = ", ".join(column.name for column in reading.columns[:COLUMNS_SHOWN])
    if reading.records is not None:
        title = reading.records.removesuffix("*").removesuffix(".") or "The document itself"
    else:
        title = reading.member or reading.sheet or ""
    return Choice(title=title, example=names, changes={**named, **difference(found.reading, reading)})


def _is_table(head: Head, reading: Reading) -> bool:
    """Returns whether a part of the file is a table. A table has some rows, with a time or a column of
    numbers. A page of remarks has neither."""
    if reading.time is None and not any(column.type in _MEASURED for column in reading.columns[1:]):
        return False
    try:
        rows = preview(head, reading).rows
    except ImportFault:
        return False
    return sum(row.reject is None for row in rows) >= ROWS_MIN
