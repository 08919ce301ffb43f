"""Handles tables that stand one below the other in a file, such as exports that somebody put together."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from webapp.imports.detect_table import repeated
from webapp.imports.dialect import Line
from webapp.imports.reading import Choice, Detection, Reading
from webapp.imports.shapes import is_typed, shape
from webapp.imports.table_place import Place

PARTS_MAX = 5
_ROWS_LOOKED_AT = 3


def later_names(rows: Sequence[Line], place: Place) -> list[Line]:
    """Returns the rows that are names of another table: only words, with data above and below them."""
    if place.header is None:
        return []
    again = repeated(rows, place)
    filled = [row for row in rows if row.cells and row.number >= place.first and row.number not in again]
    typed = [
        at
        for at in range(place.width)
        if any(is_typed(row.cells[at]) for row in filled[:_ROWS_LOOKED_AT] if at < len(row.cells))
    ]
    known = {name.strip().lower() for name in place.names} - {""}
    found = []
    for at, row in enumerate(filled):
        cells = [cell.strip() for cell in row.cells]
        named = [cell for cell in cells if cell]
        if len(named) < 2 or len(set(named)) < len(named) or any(shape(cell) != "words" for cell in named):
            continue
        same = len(known & {cell.lower() for cell in named})
        words = [column for column in typed if column < len(cells) and shape(cells[column]) == "words"]
        behind = filled[at + 1 : at + 1 + _ROWS_LOOKED_AT]
        data = behind and all(any(map(is_typed, each.cells)) for each in behind)
        if data and row.cells != place.names and (same * 2 >= len(known) or len(words) >= max(2, len(typed))):
            found.append(row)
    return found[: PARTS_MAX - 1]


def asked_which(parts: Sequence[Detection], names: Sequence[Line]) -> Detection:
    """Returns the detection of the first part, with the question which part to read."""
    first = parts[0]
    choices = tuple(
        Choice(
            title=_title(part.reading),
            example=", ".join(column.name for column in part.reading.columns[:8]),
            changes=difference(first.reading, part.reading),
        )
        for part in parts
    )
    lines = ", ".join(f"{row.number:,}" for row in names)
    text = f"Other column names stand at line {lines}. One table is imported at a time. Which one?"
    return first.asking("part", text, choices, names[0].number)


def difference(before: Reading, after: Reading) -> dict[str, JsonValue]:
    """Returns the changes that turn the first reading into the second one."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return {name: value for name, value in new.items() if value != old[name]}


def _title(reading: Reading) -> str:
    to = "the end" if reading.last_line is None else f"line {reading.last_line:,}"
    return f"The table from line {reading.header_line or reading.first_line:,} to {to}"
