"""Finds out how to read the cells of a table: where the table is, its columns and its time. Asks about
doubts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from pipeline_runtime.model.schema import FieldType
from webapp.imports import column_names, column_types, number_marks, table_place
from webapp.imports.beside import beside, name_before, unit_of
from webapp.imports.cell_text import EXCEL_TEXT, OTHERWISE, without_beside
from webapp.imports.column_names import named
from webapp.imports.column_types import Cell, Judged
from webapp.imports.detect_time import Timed, detected_time, since
from webapp.imports.dialect import Line
from webapp.imports.faults import ImportFault
from webapp.imports.fixed import whole_of
from webapp.imports.labview import measurement
from webapp.imports.number_marks import Decision, Marks
from webapp.imports.reading import (
    COLUMNS_MAX,
    MISSING_MAX,
    ColumnReading,
    Detection,
    Reading,
)
from webapp.imports.repeats import repeats
from webapp.imports.shapes import shape
from webapp.imports.table_place import Place
from webapp.imports.table_questions import (
    Facts,
    Table,
    marks_question,
    missing_questions,
    shift_question,
    short,
    type_questions,
)
from webapp.imports.time_names import is_hint
from webapp.imports.time_text import is_count, time_reader

QUESTIONS_MAX = 20
NOTES_MAX = 60
LOST_SHARE = 0.02


def detected_table(facts: Facts, fixed: Mapping[str, JsonValue]) -> Detection:
    """Returns the whole reading. A text that is no table becomes one column of text. Raises ImportFault if
    there are too many columns."""
    table = _table(facts, fixed)
    delimiter = facts.base.delimiter if facts.base.kind == "text" else ";"
    besides = [
        beside(name, [cell.text for cell in cells])
        for (name, _), cells in zip(table.names, table.columns, strict=True)
    ]
    bare = [
        tuple(replace(cell, text=without_beside(cell.text, text)) for cell in cells) if text else cells
        for cells, text in zip(table.columns, besides, strict=True)
    ]
    shown = _shown(bare)
    times = [at for at, (name, _) in enumerate(table.names) if is_hint(name)]
    marks = _decided(shown, delimiter, fixed, times)
    decimals = [marks.decimal if "decimal" in fixed else marks.decimal_of(each) for each in shown]
    for at in marks.columns if marks.apart else ():
        decimals[at] = marks.doubted_mark
    thousands = [
        marks.thousands if "thousands" in fixed else marks.thousands_of(each, decimal)
        for each, decimal in zip(shown, decimals, strict=True)
    ]
    quoted_differs = _quoted_columns(table)
    judged = [
        column_types.judge(name, cells, decimals[at], thousands[at], at in quoted_differs, unit)
        for at, ((name, unit), cells) in enumerate(zip(table.names, bare, strict=True))
    ]
    measured = measurement(facts.rows)
    begins = table.place.header or table.place.first
    timed = detected_time(
        [name for name, _ in table.names],
        [[cell.text for cell in cells[: len(table.rows)]] for cells in table.columns],
        [[cell.text for cell in cells[len(table.rows) :]] for cells in table.columns],
        _headers(table),
        [row.number for row in table.rows],
        marks.decimal,
        fixed,
        [row.text for row in (*facts.rows, *facts.comments) if row.number < begins],
        facts.days,
    )
    if measured is not None and timed.reading is None and "time" not in fixed:
        timed = since(measured.seconds, [cell.text for cell in table.columns[0]])
    reading = _reading(table, marks, list(zip(decimals, thousands, strict=True)), besides, judged, timed)
    questions = [
        *shift_question(table),
        *marks_question(marks, table),
        *timed.questions,
        *missing_questions(reading, table, judged),
        *type_questions(reading, table, judged),
    ]
    notes = [
        *_lost_notes(table, timed),
        *_place_notes(table),
        *_mark_notes(marks),
        *timed.notes,
        *_column_notes(table, besides, judged, timed),
    ]
    return Detection(
        reading=reading, notes=tuple(notes[:NOTES_MAX]), questions=tuple(questions[:QUESTIONS_MAX])
    )


def _table(facts: Facts, fixed: Mapping[str, JsonValue]) -> Table:
    place = table_place.found(
        facts.rows,
        facts.comments,
        header=whole_of(fixed, "header_line"),
        units=whole_of(fixed, "units_line"),
        first=whole_of(fixed, "first_line"),
        header_known="header_line" in fixed,
    )
    again = repeated(facts.rows, place)
    rows = tuple(
        row
        for row in facts.rows
        if row.cells and place.first <= row.number <= place.last and row.number not in again
    )
    width = place.width
    if width > COLUMNS_MAX:
        raise ImportFault(
            f"The table has {width:,} columns. Fogline reads {COLUMNS_MAX:,} at most.",
            f"line {place.first:,}",
            "Split it by columns, or choose another delimiter.",
        )
    pieces = [
        row for row in facts.pieces if len(row.cells) in (width, width + 1) and row.cells != place.names
    ]
    columns = tuple(
        (
            *(_cell(row, at, row.number) for row in rows),
            *(_cell(row, at, None) for row in pieces),
        )
        for at in range(width)
    )
    unnamed = not "".join(place.names[width - 1 : width]).strip()
    if width > 1 and unnamed and all(not cell.text.strip() for cell in columns[-1]):
        # Each line ends with a delimiter, and there is no column after it.
        columns, width = columns[:-1], width - 1
    shift = column_names.shift_of(place.names, [[cell.text for cell in cells[:200]] for cells in columns])
    if shift is not None:
        place = replace(place, names=shift.names)
    measured = measurement(facts.rows)
    units = place.unit_cells or (measured.units if measured is not None else ())
    names = named(place.names or _names_before(columns), units, width)
    return Table(facts, place, columns, names, rows, shift, min(again, default=None))


def _names_before(columns: Sequence[Sequence[Cell]]) -> list[str]:
    """Returns the names before the values, for a table without a line of names: `T=0.5`."""
    return [name_before([cell.text for cell in cells if cell.text.strip()]) for cells in columns]


def repeated(rows: Sequence[Line], place: Place) -> set[int]:
    """Returns the numbers of the lines that repeat the names below the first names, and of the lines that
    belong to them."""
    header = next((row for row in rows if row.number == place.header), None)
    if header is None:
        return set()
    around = {row.text for row in rows if row.number < place.first} - {header.text, ""}
    below = [row for row in rows if row.number >= place.first]
    return {below[at].number for at in repeats([row.text for row in below], header.text, around)}


def _cell(row: Line, at: int, line: int | None) -> Cell:
    return Cell(line, row.cells[at] if at < len(row.cells) else "")


def _headers(table: Table) -> list[str]:
    names = table.place.names
    return [names[at] if at < len(names) else "" for at in range(len(table.columns))]


def _shown(columns: Sequence[Sequence[Cell]]) -> list[Marks]:
    numbers = []
    for cells in columns:
        texts = [cell.text for cell in cells if cell.text.strip()]
        kinds = [shape(text) for text in texts]
        if kinds.count("number") * 2 >= len(kinds) - kinds.count("none") > 0:
            numbers.append(
                number_marks.shown(text for text, kind in zip(texts, kinds, strict=True) if kind == "number")
            )
        else:
            numbers.append(Marks())
    return numbers


def _decided(
    shown: Sequence[Marks], delimiter: str, fixed: Mapping[str, JsonValue], times: Sequence[int]
) -> Decision:
    marks = number_marks.decide(shown, delimiter, times)
    decimal, thousands = fixed.get("decimal"), fixed.get("thousands")
    if isinstance(decimal, str) or isinstance(thousands, str):
        marks = replace(
            marks,
            decimal=decimal if isinstance(decimal, str) else marks.decimal,
            thousands=thousands if isinstance(thousands, str) else marks.thousands,
            doubt=None,
        )
        if marks.thousands == marks.decimal:
            marks = replace(marks, thousands="")
    return marks


def _quoted_columns(table: Table) -> frozenset[int]:
    """Returns the columns whose cells stand in quotes, if other columns of the file have numbers without
    quotes."""
    quote, delimiter = table.facts.base.quote, table.facts.base.delimiter
    if not quote or table.facts.base.kind != "text" or len(delimiter) > 1:
        return frozenset()
    quoted: dict[int, int] = {}
    rows = [row for row in table.rows[:50] if "\n" not in row.text and quote in row.text]
    for row in rows:
        for at, raw in enumerate(
            re.split(
                rf"{re.escape(delimiter)}(?=(?:[^{quote}]*{quote}[^{quote}]*{quote})*[^{quote}]*$)", row.text
            )
        ):
            quoted[at] = quoted.get(at, 0) + raw.strip().startswith(quote)
    numeric = [
        at
        for at, cells in enumerate(table.columns)
        if any(shape(cell.text) == "number" for cell in cells[:20])
    ]
    plain = [at for at in numeric if not quoted.get(at)]
    return (
        frozenset(at for at in numeric if quoted.get(at, 0) * 2 > len(rows))
        if plain and rows
        else frozenset()
    )


def _reading(
    table: Table,
    marks: Decision,
    own_marks: Sequence[tuple[str, str]],
    besides: Sequence[str],
    judged: Sequence[Judged],
    timed: Timed,
) -> Reading:
    missing = [""]
    for each in judged:
        missing += [text for text in each.missing if text not in missing and text not in each.sentinels]
    missing = missing[:MISSING_MAX]
    columns = []
    for at, ((name, unit), kind) in enumerate(zip(table.names, judged, strict=True)):
        type_, format_ = timed.type_of(at, kind.type)
        own: tuple[str, ...] | None = None
        if kind.sentinels:
            own = (*missing[: MISSING_MAX - len(kind.sentinels)], *kind.sentinels)
        elif (
            type_ is FieldType.STRING
            and len(missing) > 1
            and not kind.missing
            and not _like_ids(table.columns[at])
        ):
            own = ("",)  # in a column of words, NA can be a word
        counts = type_ in (FieldType.INTEGER, FieldType.NUMBER)
        beside_it = besides[at] if counts or (besides[at] == EXCEL_TEXT and type_ is kind.type) else ""
        columns.append(
            ColumnReading(
                source=at,
                name=name,
                type=type_,
                unit=unit or unit_of(beside_it),
                decimal=None if own_marks[at][0] == marks.decimal else own_marks[at][0],
                thousands=None if own_marks[at][1] == marks.thousands else own_marks[at][1],
                missing=own,
                beside=beside_it,
                format=format_,
            )
        )
    place = table.place
    return table.facts.base.model_copy(
        update={
            "header_line": place.header,
            "units_line": place.units,
            "first_line": place.first,
            "decimal": marks.decimal,
            "thousands": marks.thousands,
            "missing": tuple(missing),
            "columns": tuple(columns),
            "time": timed.reading,
        }
    )


def _like_ids(cells: Sequence[Cell]) -> bool:
    texts = [cell.text for cell in cells if cell.text.strip()]
    return bool(texts) and sum(bool(re.search(r"\d", text)) for text in texts) * 2 > len(texts)


# --- notes


def _place_notes(table: Table) -> list[str]:
    place, notes = table.place, []
    if place.header is not None:
        notes.append(f"Line {place.header} holds the column names.")
    else:
        above = bool(place.names) and place.names == table_place.names_of_attributes(table.facts.rows)
        notes.append("Lines above the rows name the columns." if above else "There are no column names.")
    if place.units is not None:
        notes.append(f"Line {place.units} holds the units.")
    if place.first > max(place.header or 0, place.units or 0, 1) + 1 or (place.header or place.first) > 1:
        notes.append(f"The table begins at line {place.first}.")
    if any(row.cells and row.number > place.last for row in table.facts.rows):
        notes.append(f"The table ends at line {place.last}. What follows is left out.")
    if table.again is not None:
        notes.append(f"The column names come again at line {table.again}. They are left out there.")
    if table.shift is not None and table.shift.note:
        notes.append(table.shift.note)
    if table.shift is None and place.header is not None:
        unnamed = [
            name
            for at, (name, _) in enumerate(table.names)
            if not "".join(place.names[at : at + 1]).strip()
            and any(cell.text.strip() for cell in table.columns[at])
        ]
        if unnamed:
            notes.append(f"Without a name in line {place.header}: {', '.join(unnamed[:8])}.")
    short = next((row for row in table.rows if len(row.cells) < place.width), None)
    if table.facts.base.delimiter == "whitespace" and short is not None:
        notes.append(
            f"Line {short.number} has {len(short.cells)} cells, and others have {place.width}. Between "
            "spaces nothing says which is missing, so the last ones are taken to be."
        )
    if len(table.columns) < place.width:
        notes.append("Each line ends with a delimiter, and no column follows it.")
    return notes


def _lost_notes(table: Table, timed: Timed) -> list[str]:
    """Returns a note that says how many rows have no time, and names the first one."""
    if timed.reading is None:
        return []
    read = time_reader(timed.reading.format)
    cells = [[cell.text.strip() for cell in table.columns[at][: len(table.rows)]] for at in timed.columns]
    texts = [" ".join(row) for row in zip(*cells, strict=True)]
    if is_count(timed.reading.format):
        texts = [text.replace(",", ".") for text in texts]
    lost = [at for at, text in enumerate(texts) if read(text) is None]
    if len(lost) < LOST_SHARE * len(texts) or not lost:
        return []
    first = table.rows[lost[0]]
    return [
        f"{len(lost):,} of {len(texts):,} rows have no time that can be read, and become dead letters. "
        f"The first is at line {first.number}: {short(first.text)!r}."
    ]


def _mark_notes(marks: Decision) -> list[str]:
    notes = ["A comma is the decimal mark."] if marks.decimal == "," else []
    if marks.thousands:
        words = {".": "A point", ",": "A comma", " ": "A space", "'": "An apostrophe"}
        notes.append(f"{words[marks.thousands]} stands between thousands.")
    return notes


def _column_notes(table: Table, besides: Sequence[str], judged: Sequence[Judged], timed: Timed) -> list[str]:
    notes = []
    for at, ((name, _), kind) in enumerate(zip(table.names, judged, strict=True)):
        if at in timed.columns:
            continue
        if besides[at] and (kind.type is not FieldType.STRING or besides[at] == EXCEL_TEXT):
            notes.append(_beside_note(name, besides[at], table.columns[at]))
        if kind.why_text is not None and timed.type_of(at, kind.type)[0] is FieldType.STRING:
            notes.append(f"{name} stays text: {kind.why_text}{_such_as(kind.unreadable)}.")
        if kind.missing and kind.type is FieldType.STRING:
            notes.append(f"{name} has no values: there is only {' and '.join(kind.missing)}.")
        if kind.sentinels:
            verb = "means" if len(kind.sentinels) == 1 else "mean"
            notes.append(f"{' and '.join(kind.sentinels)} {verb} no value in {name}.")
        if kind.unreadable is not None and not kind.asks and kind.type is not FieldType.STRING:
            line = f"line {kind.unreadable.line}" if kind.unreadable.line else "one of its cells"
            notes.append(
                f"{name} is read as numbers. At {line} it has no value: {short(kind.unreadable.text)!r}."
            )
    return notes


def _such_as(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f", such as {short(cell.text)!r}" + (f" at line {cell.line}" if cell.line else "")


def _beside_note(name: str, beside: str, cells: Sequence[Cell]) -> str:
    if beside == EXCEL_TEXT:
        return f'In {name}, ="001" is read as 001: Excel writes texts so.'
    if beside == OTHERWISE:
        odd = next((cell for cell in cells if shape(cell.text) not in ("number", "none")), None)
        read = f", as {without_beside(odd.text, beside)}" if odd is not None else ""
        return f"In {name}, numbers are written in another way and read all the same{_such_as(odd)}{read}."
    return f"In {name}, {beside} stands beside each number. It is taken as the unit."
