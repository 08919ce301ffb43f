"""Shows the beginning of a file: its lines, and the rows that a reading makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import JsonValue

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import read_cell
from webapp.imports.convert_sql import marks, own_format
from webapp.imports.convert_zone import Zone
from webapp.imports.cuts import at_places, cut_line
from webapp.imports.decimal_commas import with_points
from webapp.imports.detect_records import document_lines, leaves
from webapp.imports.dialect import Line, divided, lines_of, unescaped
from webapp.imports.encoding import decoded
from webapp.imports.faults import ImportFault
from webapp.imports.footer import is_summary
from webapp.imports.json_document import first_of_keys
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
from webapp.imports.repeats import repeats
from webapp.imports.sample import Head
from webapp.imports.sheet_marks import filled_down
from webapp.imports.table_width import CUT_OFF, over_width, width_of
from webapp.imports.time_text import Parsed, is_count, moment, time_reader
from webapp.imports.turns import turns_of

LINES_MAX = 60
TEXT_MAX = 4_000
CELL_MAX = 200
Cells = dict[Source, str]
_Kind = Literal["preamble", "comment", "header", "units", "row", "footer"]


def preview(head: Head, reading: Reading) -> Preview:
    """Returns the first lines and rows. Raises ImportFault if the reading does not fit the file."""
    head = head.chosen(reading.member, reading.sheet)
    try:
        lines = _lines(head, reading)
        table = [(line.number, cells) for line, kind, cells in lines if kind == "row"]
        width = _width(lines, reading)
        rows = _rows(table, reading, width)
        if width is not None and _is_cut_off(head, reading, [line for line, _, _ in lines], width):
            rows[-1] = rows[-1].model_copy(update={"reject": rows[-1].reject or CUT_OFF})
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
    """Returns each line, its kind, and its cells by the sources of their columns."""
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
        cells = (tuple(map(str, row)) for row in head.rows)
        rows = [
            Line(number, tuple(row), "\t".join(row))
            for number, row in enumerate(filled_down(cells, head.merged, reading.first_line), 1)
        ]
        return _with_repeats([_placed(line, reading) for line in rows[:LINES_MAX]])
    text = decoded(head.begin_bytes, reading.encoding)
    texts = lines_of(unescaped(text, reading.divider) if reading.escape else text, cut=not head.whole)
    if reading.records is not None:
        texts = document_lines(head, text, reading.records)
    if reading.kind == "json-lines":
        return [_record(number, text) for number, text in enumerate(texts[:LINES_MAX], 1) if text.strip()]
    found: list[tuple[Line, _Kind, Cells]] = []
    for line in divided(texts, reading.delimiter, reading.quote):
        if len(found) == LINES_MAX:
            break
        if line.text.strip():
            found.append(_placed(prepared(line, reading), reading))
    return _with_repeats(found)


def prepared(line: Line, reading: Reading) -> Line:
    """Returns the line with its cells, divided as in the import."""
    cells: Sequence[str] = line.cells
    if reading.delimiter == "places":
        cells = at_places(line.text, reading.cuts)
    elif reading.cuts and line.number >= reading.first_line:
        cells = cut_line(line.text, reading.cuts)
    elif reading.commas:
        text = with_points(line.text.encode(), reading.commas).decode()
        cells = next(divided([text], reading.delimiter, reading.quote)).cells if text != line.text else cells
    return Line(line.number, tuple(cells), line.text)


def _with_repeats(found: list[tuple[Line, _Kind, Cells]]) -> list[tuple[Line, _Kind, Cells]]:
    """Marks lines that repeat the names, and the lines that belong to them."""
    kinds = {line.text: kind for line, kind, _ in found if kind in ("preamble", "header", "units")}
    names = next((line.text for line, kind, _ in found if kind == "header"), None)
    if names is None:
        return found
    again = repeats([line.text for line, _, _ in found], names, set(kinds) - {names})
    return [
        (line, kinds.get(line.text, kind) if at in again else kind, cells)
        for at, (line, kind, cells) in enumerate(found)
    ]


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
    elif reading.last_line is not None and line.number > reading.last_line:
        kind = "footer"
    return line, kind, cells


def _record(number: int, text: str) -> tuple[Line, _Kind, Cells]:
    cells: Cells = {}
    try:
        record = first_of_keys(text)
    except (ValueError, RecursionError):
        record = None
    if isinstance(record, dict):
        for path, value in leaves(record):
            cells[path] = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return Line(number, tuple(cells.values()), text), "row", cells


def _width(lines: Sequence[tuple[Line, _Kind, Cells]], reading: Reading) -> int | None:
    if reading.kind not in ("text", "xlsx") or not reading.columns:
        return None
    header = next((line.cells for line, kind, _ in lines if kind == "header"), ())
    return width_of(reading, header, [line.cells for line, kind, _ in lines if kind == "row"])


def _is_cut_off(head: Head, reading: Reading, lines: Sequence[Line], width: int) -> bool:
    """Returns whether the file ends within the last of these lines. `convert` decides in the same way."""
    if reading.kind != "text" or not head.whole or reading.last_line is not None:
        return False
    text = decoded(head.begin_bytes, reading.encoding)
    rows = [line for line in lines if line.number >= reading.first_line]
    return (
        len(rows) > 1
        and not text.endswith(("\n", "\r"))
        and text.endswith(rows[-1].text)
        and len(rows[-1].cells) < width <= min(len(row.cells) for row in rows[:-1])
        and not is_summary(rows[-1].text)
    )


def _rows(table: Sequence[tuple[int, Cells]], reading: Reading, width: int | None) -> list[PreviewRow]:
    """Returns the rows that the reading makes. In a repeated hour, the order of the rows decides about their
    times."""
    written = reading.time.format if reading.time is not None else ""
    times = _in_utc(_with_turns([_time_of(cells, reading) for _, cells in table], written, reading), reading)
    moments = {}
    for place, column in enumerate(reading.columns):
        if column.type is FieldType.TIMESTAMP:
            written = column.format or own_format(reading, column)
            found = [_parsed(cells.get(column.source, ""), written, reading) for _, cells in table]
            moments[place] = _in_utc(_with_turns(found, written, reading), reading)
    return [
        _row(
            number,
            cells,
            reading,
            times[at],
            {place: found[at] for place, found in moments.items()},
            over_width(reading, width) if width is not None and cells.get(width, "").strip() else None,
        )
        for at, (number, cells) in enumerate(table)
    ]


def _row(
    number: int,
    cells: Cells,
    reading: Reading,
    time: str | None,
    moments: Mapping[int, str | None],
    over: str | None,
) -> PreviewRow:
    values: list[JsonValue] = []
    unreadable = []
    for place, column in enumerate(reading.columns):
        text = cells.get(column.source, "")
        missing = text.strip() in (column.missing if column.missing is not None else reading.missing)
        value = moments[place] if place in moments else None if missing else _value(text, column, reading)
        if value is None and not missing:
            unreadable.append(
                PreviewCell(column=place, text=text[:CELL_MAX], why=f"it is not {column.type.words}")
            )
        values.append(value[:CELL_MAX] if isinstance(value, str) else value)
    lost = reading.time is not None and time is None
    return PreviewRow(
        line=number,
        values=tuple(values),
        time=time,
        unreadable=tuple(unreadable),
        reject=over or ("its time cannot be read" if lost else None),
    )


def _value(text: str, column: ColumnReading, reading: Reading) -> JsonValue:
    return read_cell(text, column.type, *marks(reading, column))


def _time_of(cells: Cells, reading: Reading) -> Parsed:
    if reading.time is None:
        return None
    text = " ".join(cells.get(source, "").strip() for source in reading.time.columns)
    return _parsed(text, reading.time.format, reading)


def _parsed(text: str, written: str, reading: Reading) -> Parsed:
    if reading.decimal == "," and is_count(written):
        text = text.replace(",", ".")
    return time_reader(written)(text)


def _with_turns(found: Sequence[Parsed], time_format: str, reading: Reading) -> list[Parsed]:
    turns = turns_of(time_format, reading.time is not None and reading.time.newest_first)
    if turns is None:
        return list(found)
    known = np.array([each is not None for each in found], bool)
    times = turns.of(np.array([each[0] if each else 0 for each in found], np.int64), known).tolist()
    return [(times[at], each[1]) if each and known[at] else None for at, each in enumerate(found)]


def _in_utc(found: Sequence[Parsed], reading: Reading) -> list[str | None]:
    times = [None if each is None else each[0] for each in found]
    local = [at for at, each in enumerate(found) if each is not None and not each[1]]
    if local and reading.time is not None and reading.time.zone != "UTC":
        if reading.time.newest_first:
            local.reverse()
        utc = Zone(reading.time.zone).to_utc(np.array([times[at] for at in local], np.int64))
        for at, micros in zip(local, utc.tolist(), strict=True):
            times[at] = micros
    return [None if micros is None else moment(micros) for micros in times]


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
