"""Finds out how a file can be read, from its first 64 KiB."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.recording import HEAD_BYTES, head_text
from pipeline_runtime.operators.table_preview import TablePreview, preview as table_preview
from webapp.imports.answer import changed
from webapp.imports.cell_text import read_cell
from webapp.imports.faults import ImportFault
from webapp.imports.reading import (
    ColumnReading,
    Detection,
    Preview,
    PreviewCell,
    PreviewColumn,
    PreviewLine,
    PreviewRow,
    Reading,
    TimeReading,
)
from webapp.imports.time_text import moment, read_time

LINES_SHOWN = 60
_GZIP = b"\x1f\x8b"
_WORDS = {",": "A comma", ";": "A semicolon", "\t": "A tab", "|": "A vertical bar"}


class Head(BaseModel):
    """The beginning of a file, from which its preview is made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    packed: bool


@dataclass(frozen=True)
class Look:
    detection: Detection
    head: Head


def look(path: Path, name: str) -> Look:
    """Returns how the file can be read. Raises ImportFault if it is no table."""
    with path.open("rb") as file:
        data = file.read(HEAD_BYTES)
    try:
        text, _ = head_text(data)
    except ValueError as error:
        raise ImportFault(f"It cannot be read as a table: {error}.", None, "Upload another file.") from error
    head = Head(text=text, packed=data.startswith(_GZIP))
    return Look(redetect(head, {}), head)


def redetect(head: Head, fixed: Mapping[str, JsonValue]) -> Detection:
    """Returns how the file can be read when these places of the reading are as they are said to be.

    Raises ImportFault if it is no table.
    """
    known: dict[str, Any] = {key: fixed[key] for key in ("delimiter", "decimal") if key in fixed}
    if "header_line" in fixed:
        known["header"] = fixed["header_line"] is not None
    try:
        found = table_preview(head.text.encode(), None, **known)
        reading = changed(_reading(found, head), fixed)
    except ValueError as error:
        raise ImportFault(f"It cannot be read as a table: {error}.", None, "Upload another file.") from error
    return Detection(reading=reading, notes=_notes(reading))


def _reading(found: TablePreview, head: Head) -> Reading:
    names = [column.name for column in found.columns]
    columns = []
    for index, column in enumerate(found.columns):
        type_ = column.type
        if column.name == found.time_column and type_ is FieldType.STRING:
            type_ = FieldType.TIMESTAMP
        columns.append(ColumnReading(source=index, name=column.name, type=type_))
    time = None
    if found.time_column is not None and found.time_format is not None:
        time = TimeReading(columns=(names.index(found.time_column),), format=found.time_format)
    return Reading(
        compression="gzip" if head.packed else "",
        delimiter=found.delimiter,
        decimal="," if found.decimal == "," else ".",
        header_line=1 if found.header else None,
        first_line=2 if found.header else 1,
        columns=tuple(columns),
        time=time,
    )


def _notes(reading: Reading) -> tuple[str, ...]:
    notes = [f"{_WORDS.get(reading.delimiter, reading.delimiter)} divides the cells."]
    if reading.header_line is not None:
        notes.append(f"Line {reading.header_line} holds the column names.")
    if reading.decimal == ",":
        notes.append("A comma is the decimal mark.")
    if reading.time is not None:
        notes.append(f"The time is read as {reading.time.format}.")
    return tuple(notes)


def preview(head: Head, reading: Reading) -> Preview:
    """Returns the first lines as they lie and as they are read. Raises ImportFault if they are no table."""
    lines, rows = [], []
    try:
        for number, cells, text in _numbered(head.text, reading):
            is_row = number >= reading.first_line
            kind = "row" if is_row else "header" if number == reading.header_line else "preamble"
            lines.append(PreviewLine(number=number, kind=kind, text=text, cells=tuple(cells)))
            if is_row:
                rows.append(_row(number, cells, reading))
    except (csv.Error, ValueError) as error:
        raise ImportFault(f"It cannot be read so: {error}.", None, "Change how it is read.") from error
    return Preview(lines=tuple(lines), columns=_columns(reading, rows), rows=tuple(rows))


def _numbered(text: str, reading: Reading) -> list[tuple[int, list[str], str]]:
    whole = text.splitlines()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=reading.delimiter)
    found: list[tuple[int, list[str], str]] = []
    line = 1
    for cells in reader:
        if len(found) == LINES_SHOWN:
            break
        if cells:
            found.append((line, cells, "\n".join(whole[line - 1 : reader.line_num])))
        line = reader.line_num + 1
    return found


def _row(number: int, cells: list[str], reading: Reading) -> PreviewRow:
    values: list[JsonValue] = []
    unreadable = []
    for place, column in enumerate(reading.columns):
        text = cells[column.source] if isinstance(column.source, int) and column.source < len(cells) else ""
        missing = text.strip() in (column.missing or reading.missing)
        value = None if missing else _value(text, column, reading)
        if value is None and not missing:
            unreadable.append(PreviewCell(column=place, text=text, why=f"it is no {column.type.value}"))
        values.append(value)
    time = reading.time
    micros = None
    if time is not None:
        parts = [cells[at] for at in time.columns if isinstance(at, int) and at < len(cells)]
        micros = read_time(" ".join(parts), time.format)
    return PreviewRow(
        line=number,
        values=tuple(values),
        time=None if micros is None else moment(micros[0]),
        unreadable=tuple(unreadable),
        reject="its time cannot be read" if time is not None and micros is None else None,
    )


def _value(text: str, column: ColumnReading, reading: Reading) -> JsonValue:
    if column.type is FieldType.TIMESTAMP:
        time = reading.time
        is_time = time is not None and column.source in time.columns
        read = read_time(text, column.format or (time.format if time is not None and is_time else "iso"))
        return None if read is None else moment(read[0])
    thousands = reading.thousands if column.thousands is None else column.thousands
    return read_cell(text, column.type, column.decimal or reading.decimal, thousands)


def _columns(reading: Reading, rows: list[PreviewRow]) -> tuple[PreviewColumn, ...]:
    times = reading.time.columns if reading.time is not None else ()
    bad = [cell.column for row in rows for cell in row.unreadable]
    return tuple(
        PreviewColumn(
            source=column.source,
            name=column.name,
            type=column.type,
            unit=column.unit,
            unreadable=bad.count(place),
            missing=sum(row.values[place] is None for row in rows) - bad.count(place),
            is_time=column.source in times,
        )
        for place, column in enumerate(reading.columns)
    )
