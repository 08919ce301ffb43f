"""The beginning of a file as it lies and as a reading has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import read_cell
from webapp.imports.detect_records import leaves
from webapp.imports.dialect import Line, divided, lines_of
from webapp.imports.encoding import decoded
from webapp.imports.faults import ImportFault
from webapp.imports.reading import (
    ColumnReading,
    Preview,
    PreviewCell,
    PreviewColumn,
    PreviewLine,
    PreviewRow,
    Reading,
    Source,
)
from webapp.imports.sample import Head
from webapp.imports.time_text import moment, time_reader

LINES_MAX = 60
TEXT_MAX = 4_000
CELL_MAX = 200
Cells = dict[Source, str]
_Kind = Literal["preamble", "comment", "header", "units", "row", "footer"]


def preview(head: Head, reading: Reading) -> Preview:
    """Returns the first lines and rows. Raises ImportFault if the reading is none for this file."""
    try:
        lines = _lines(head, reading)
        table = [(line.number, cells) for line, kind, cells in lines if kind == "row"]
        rows = [_row(number, cells, reading) for number, cells in table]
    except (LookupError, ValueError) as error:
        raise ImportFault(f"It cannot be read like this: {error}.", None, "Change how it is read.") from error
    shown = tuple(
        PreviewLine(
            number=line.number,
            kind=kind,
            text=line.text[:TEXT_MAX],
            cells=tuple(cell[:CELL_MAX] for cell in line.cells),
        )
        for line, kind, _ in lines
    )
    return Preview(lines=shown, columns=_columns(reading, rows), rows=tuple(rows))


def _lines(head: Head, reading: Reading) -> list[tuple[Line, _Kind, Cells]]:
    """Returns each line, what it is taken for, and its cells by their columns' sources."""
    if head.kind == "parquet":
        return [
            (
                Line(number, cells, "\t".join(cells)),
                "row",
                dict(zip((name for name, _ in head.columns), cells, strict=True)),
            )
            for number, row in enumerate(head.rows[:LINES_MAX], 1)
            for cells in [tuple("" if value is None else str(value) for value in row)]
        ]
    if head.kind == "xlsx":
        rows = [
            Line(number, tuple(map(str, row)), "\t".join(map(str, row)))
            for number, row in enumerate(head.rows, 1)
        ]
        return [_placed(line, reading) for line in rows[:LINES_MAX]]
    texts = lines_of(decoded(head.begin_bytes, reading.encoding), cut=not head.whole)
    if reading.kind == "json-lines":
        return [_record(number, text) for number, text in enumerate(texts[:LINES_MAX], 1) if text.strip()]
    found: list[tuple[Line, _Kind, Cells]] = []
    for line in divided(texts, reading.delimiter, reading.quote):
        if len(found) == LINES_MAX:
            break
        if line.text.strip():
            found.append(_placed(line, reading))
    return found


def _placed(line: Line, reading: Reading) -> tuple[Line, _Kind, Cells]:
    cells: Cells = dict(enumerate(line.cells))
    kind: _Kind = "row"
    if line.number == reading.header_line:
        kind = "header"
    elif line.number == reading.units_line:
        kind = "units"
    elif reading.comment and line.text.lstrip().startswith(reading.comment):
        kind = "comment"
    elif line.number < reading.first_line:
        kind = "preamble"
    return line, kind, cells


def _record(number: int, text: str) -> tuple[Line, _Kind, Cells]:
    cells: Cells = {}
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if isinstance(record, dict):
        for path, value in leaves(record):
            cells[path] = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return Line(number, tuple(cells.values()), text), "row", cells


def _row(number: int, cells: Cells, reading: Reading) -> PreviewRow:
    values: list[JsonValue] = []
    unreadable = []
    for place, column in enumerate(reading.columns):
        text = cells.get(column.source, "")
        missing = text.strip() in (column.missing if column.missing is not None else reading.missing)
        value = None if missing else _value(text, column, reading)
        if value is None and not missing:
            unreadable.append(
                PreviewCell(column=place, text=text[:CELL_MAX], why=f"it is not {column.type.words}")
            )
        values.append(value[:CELL_MAX] if isinstance(value, str) else value)
    time = _time(cells, reading)
    lost = reading.time is not None and time is None
    return PreviewRow(
        line=number,
        values=tuple(values),
        time=time,
        unreadable=tuple(unreadable),
        reject="its time cannot be read" if lost else None,
    )


def _value(text: str, column: ColumnReading, reading: Reading) -> JsonValue:
    if column.type is FieldType.TIMESTAMP:
        read = time_reader(column.format or "iso")(text)
        return None if read is None else moment(read[0])
    thousands = reading.thousands if column.thousands is None else column.thousands
    return read_cell(text, column.type, column.decimal or reading.decimal, thousands)


def _time(cells: Cells, reading: Reading) -> str | None:
    if reading.time is None:
        return None
    text = " ".join(cells.get(source, "").strip() for source in reading.time.columns)
    if reading.decimal == "," and reading.time.format in ("excel_days", "epoch_s"):
        text = text.replace(",", ".")
    read = time_reader(reading.time.format)(text)
    return None if read is None else moment(read[0])


def _columns(reading: Reading, rows: Sequence[PreviewRow]) -> tuple[PreviewColumn, ...]:
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
