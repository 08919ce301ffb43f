"""Finds the table among the lines of a file: its names, its units, its first and its last row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from webapp.imports.dialect import Line
from webapp.imports.footer import is_summary
from webapp.imports.labview import END_OF_HEADER
from webapp.imports.shapes import is_typed, shape
from webapp.imports.time_names import is_hint
from webapp.imports.units import TYPES, is_aggregate, is_unit

# Share of the typed cells of a row that must fit the columns, for the row to belong to the table.
FITS_SHARE = 0.6
ROWS_AHEAD = 3
ROWS_LIKE = 20
FOOTER_MAX = 60
_TIMES_SHARE = 0.9
_FORMAT = re.compile(r"\d{1,3}[snd]")
_ATTRIBUTE = re.compile(r"\s*@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s", re.IGNORECASE)
"""A line of an ARFF file that names a column."""
# Share of a column's cells that must be numbers or times, for the column to be one of data.
_TYPED_SHARE = 0.6
# Share of the cells of a row below names that must be units, and the greatest length of a unit.
_UNITS_SHARE, _UNIT_CHARACTERS = 0.6, 24


@dataclass(frozen=True)
class Place:
    """The place of a table. Line numbers are from 1. `width` is the usual number of cells. `names` are those
    of the header or of lines above the rows, or (). After `last` there are only lines of text; it is known
    only if the file's end is known."""

    width: int
    header: int | None
    units: int | None
    first: int
    last: int
    names: tuple[str, ...]
    unit_cells: tuple[str, ...]


def found(
    rows: Sequence[Line],
    comments: Sequence[Line] = (),
    header: int | None = None,
    units: int | None = None,
    first: int | None = None,
    *,
    header_known: bool = False,
) -> Place:
    """Returns the place of the table. Given arguments are kept. With `header_known` and without `header`, the
    table has no header.

    `rows` are without comments. If no row above the table has names, `comments` are searched for them.
    """
    filled = _below_headers([row for row in rows if row.cells])
    if first is None and header is None and not header_known and (place := _of_attributes(filled)):
        return place
    width = _width(filled)
    body = [row for row in filled if first is not None and row.number >= first] or filled
    typed = _typed_columns(
        [row for row in body if len(row.cells) == width and not is_summary(row.text)], width
    )
    if first is None and header_known and header is None:
        first = next((row.number for row in filled if len(row.cells) == width), 1)
    if first is None:
        after = max(header or 0, units or 0)
        first = _first_row([row for row in filled if row.number > after], typed, width)
    above = [row for row in filled if row.number < first]
    if not header_known and header is None:
        head, unit = _names(above, width)
        if head is None and not above:
            head, unit = _names_in_comments(comments, width, first)
        if head is None and not typed and not above and len(filled) > 1:
            head = filled[0] if _are_names(filled[0], width) and not _is_like(filled[0], filled[1:]) else None
            first = filled[1].number if head is not None else first
        begins = [row for row in filled if row.number >= first]
        if head is None and not above and _are_odd_names(begins, width):
            head, first = begins[0], begins[1].number
        header_row, unit_row = head, unit
    else:
        given = [row for row in (*filled, *comments) if row.number == header]
        header_row = min(given, key=lambda row: abs(len(row.cells) - width), default=None)
        below = [row for row in above if header_row is None or row.number > header_row.number]
        unit_row = next((row for row in below if _are_units(row)), None)
    if units is not None:
        unit_row = next((row for row in filled if row.number == units), None)
    names = _completed(header_row, above) if header_row is not None else ()
    names = _completed_below(names, [row for row in above if header_row and row.number > header_row.number])
    return Place(
        width=max(width, len([name for name in names if name.strip()])),
        header=header_row.number if header_row is not None else None,
        units=unit_row.number if unit_row is not None else None,
        first=first,
        last=_last_row([row for row in filled if row.number >= first], typed, width),
        names=names,
        unit_cells=unit_row.cells if unit_row is not None else (),
    )


def _of_attributes(rows: Sequence[Line]) -> Place | None:
    """Returns the place of the table in an ARFF file, or None. Its rows follow the line `@data`."""
    begins = (row.number for row in rows if row.text.strip().lower() == "@data")
    first = next((row.number for begin in begins for row in rows if row.number > begin), None)
    names = names_of_attributes(rows)
    return Place(len(names), None, None, first, rows[-1].number, names, ()) if names and first else None


def names_of_attributes(rows: Sequence[Line]) -> tuple[str, ...]:
    """Returns the names of the columns in an ARFF file, which has a line for each column, or ()."""
    found = (_ATTRIBUTE.match(row.text) for row in rows)
    return tuple(each[1].strip("'\"") for each in found if each is not None)


def _below_headers(rows: Sequence[Line]) -> Sequence[Line]:
    """Returns the rows after the headers of a LabVIEW measurement. There are two headers, with no rows
    between them."""
    begin = 0
    for at, row in enumerate(rows):
        if row.cells[0].strip() == END_OF_HEADER:
            begin = at + 1
        elif begin and shape(row.cells[0]) == "number":
            break
    return rows[begin:] or rows


def _width(rows: Sequence[Line]) -> int:
    """Returns the usual number of cells. The last lines count most."""
    if not rows:
        return 1
    later = rows[len(rows) // 2 :] if len(rows) > 8 else rows
    widths = Counter(len(row.cells) for row in later)
    return max(widths.items(), key=lambda each: (each[1] * (2 if each[0] > 1 else 1), each[0]))[0]


def _typed_columns(rows: Sequence[Line], width: int) -> frozenset[int]:
    """Returns the columns of numbers and times, by the later rows."""
    later = rows[len(rows) // 2 :] if len(rows) > 6 else rows[1:] or rows
    typed = set()
    for column in range(width):
        cells = [row.cells[column] for row in later if row.cells[column].strip()]
        if cells and sum(is_typed(cell) for cell in cells) >= _TYPED_SHARE * len(cells):
            typed.add(column)
    return frozenset(typed)


def _first_row(rows: Sequence[Line], typed: frozenset[int], width: int) -> int:
    """Returns the line of the first row that fits and is followed by rows that fit."""
    if not rows:
        return 1
    if not typed:
        return next((row.number for row in rows if len(row.cells) == width), rows[0].number)
    timed = _timed(rows, typed, width)
    fits = [
        _fits(row, typed, width) and not _is_sum_above(row, timed) and not _are_formats(row) for row in rows
    ]
    for at, row in enumerate(rows):
        ahead = fits[at + 1 : at + 1 + ROWS_AHEAD]
        # An empty line comes before the table.
        is_apart = bool(ahead) and rows[at + 1].number > row.number + 1
        if is_apart and not ahead[0] and _are_names(rows[at + 1], width) and _is_other(row, timed, width):
            continue
        if fits[at] and (not ahead or sum(ahead) * 2 >= len(ahead)):
            return _with_rows_before(rows, at, typed, width)
    return rows[0].number


def _are_formats(row: Line) -> bool:
    """Returns whether the cells give the widths and types of columns: `5s`, `20d`, `14n` of the USGS."""
    kinds = {cell.strip()[-1:] for cell in row.cells}
    return len(kinds) > 1 and all(_FORMAT.fullmatch(cell.strip()) for cell in row.cells)


def _is_other(row: Line, timed: Sequence[int], width: int) -> bool:
    """Returns whether a row right above the names belongs to another table, such as one with the place of a
    station."""
    more = any(map(str.strip, row.cells[width:]))
    return more or any(shape(row.cells[at]) not in ("time", "clock") for at in timed if at < len(row.cells))


def _with_rows_before(rows: Sequence[Line], first: int, typed: frozenset[int], width: int) -> int:
    """Returns the line of the first row. Rows right above the first fitting row may have a text among
    numbers. They are rows, and no names, if they have a time, or if none of their cells is words."""
    timed = _timed(rows[first:], typed, width)
    while first > 0 and len(rows[first - 1].cells) == width:
        cells = rows[first - 1].cells
        if timed:
            belongs = all(shape(cells[at]) in ("time", "clock") for at in timed)
        else:
            belongs = any(cell.strip() for cell in cells) and all(
                is_typed(cells[at]) for at in typed if cells[at].strip()
            )
        if not belongs or (_are_units(rows[first - 1]) and not all(map(is_typed, filter(str.strip, cells)))):
            break
        first -= 1
    return rows[first].number


def _timed(rows: Sequence[Line], typed: frozenset[int], width: int) -> list[int]:
    """Returns the columns of times. If there are dates, ratios such as 1:30 are no times of day."""
    some = [row for row in rows if len(row.cells) == width]
    dated = [at for at in typed if sum(shape(row.cells[at]) == "time" for row in some) * 2 > len(some)]
    return dated or [
        at for at in typed if sum(shape(row.cells[at]) == "clock" for row in some) * 2 > len(some)
    ]


def _is_sum_above(row: Line, timed: Sequence[int]) -> bool:
    """Returns whether a row has sums of the following rows: `Min;;20.1`, where rows have a time."""
    cells = [row.cells[at] for at in timed if at < len(row.cells)]
    return (
        bool(cells) and is_summary(row.text) and not any(shape(cell) in ("time", "clock") for cell in cells)
    )


def _last_row(rows: Sequence[Line], typed: frozenset[int], width: int) -> int:
    """Returns the line of the last row. The lines after it are shorter, and fit no column of data."""
    end = len(rows)
    while typed and end > 1 and _is_footer(rows[end - 1], typed, width):
        end -= 1
    # If the table would end within the beginning of the file, its rows do not fit, so all of them are shown.
    return (
        rows[end - 1].number if rows and end * 2 > len(rows) - FOOTER_MAX else rows[-1].number if rows else 1
    )


def _is_footer(row: Line, typed: frozenset[int], width: int) -> bool:
    if is_summary(row.text):
        first = next((at for at, cell in enumerate(row.cells) if cell.strip()), 0)
        return first in typed
    return not _fits(row, typed, width) and len(row.cells) < width


def _fits(row: Line, typed: frozenset[int], width: int) -> bool:
    if not min(width, 2) <= len(row.cells):
        return False
    if len(row.cells) < width and len(row.cells) <= max(typed, default=0) // 2:
        return False
    cells = [row.cells[column] for column in sorted(typed) if column < len(row.cells)]
    filled = [cell for cell in cells if cell.strip()]
    if not filled:
        return False
    good = sum(is_typed(cell) for cell in filled)
    return good >= FITS_SHARE * len(filled) and any(
        shape(cell) in ("number", "time", "clock", "near") for cell in filled
    )


def _names(above: Sequence[Line], width: int) -> tuple[Line | None, Line | None]:
    """Returns (the names, the units) of the rows above the table. The names are the nearest row that has
    neither units nor names of aggregates."""
    units = None
    for row in reversed(above):
        texts = [cell for cell in row.cells if cell.strip()]
        if texts and all(is_aggregate(cell) or not cell.strip().strip("-=+:") for cell in texts):
            continue  # names of aggregates, or a rule below the names
        if _are_formats(row):
            continue
        if is_summary(row.text):
            continue
        over = [other for other in above if other.number < row.number and _are_names(other, width)]
        names_below = bool(over) and _are_names_of_groups(row, over[-1])
        if over and not names_below and units is None and _are_units_below(row, over[-1]):
            units = row
            continue
        if names_below or _are_names(row, width):
            return row, units
        if units is None and len(texts) < 2 and width > 2:
            continue  # a line of text between the names and the rows
        break
    return None, units


def _completed(header: Line, above: Sequence[Line]) -> tuple[str, ...]:
    """Returns the names. A column without a name may have one in the line above, for example if descriptions
    follow."""
    before = next((row for row in reversed(above) if row.number < header.number), None)
    if before is not None and _are_groups(before, header):
        return _in_groups(before, header)
    if before is None or len(before.cells) != len(header.cells) or not all(map(str.strip, before.cells)):
        return header.cells
    if all(map(str.strip, header.cells)) or not _are_names(before, len(header.cells)):
        return header.cells
    return tuple(
        cell if cell.strip() else over for cell, over in zip(header.cells, before.cells, strict=True)
    )


def _are_groups(above: Line, header: Line) -> bool:
    """Returns whether some names come twice, and the line above has the names of their groups, as merged
    cells have."""
    names = [cell.strip() for cell in header.cells if cell.strip()]
    groups = [cell.strip() for cell in above.cells if cell.strip()]
    twice = len(set(names)) < len(names) and len(above.cells) <= len(header.cells)
    return twice and len(groups) > 1 and all(shape(cell) == "words" for cell in groups)


def _in_groups(above: Line, header: Line) -> tuple[str, ...]:
    """Returns the names. Names that come twice get the name of their group: `Motor 1 T`, `Motor 2 T`."""
    names, group = [], ""
    counts = Counter(cell.strip() for cell in header.cells)
    for at, cell in enumerate(header.cells):
        group = (above.cells[at].strip() if at < len(above.cells) else "") or group
        names.append(
            f"{group} {cell.strip()}" if group and cell.strip() and counts[cell.strip()] > 1 else cell
        )
    return tuple(names)


def _are_units(row: Line) -> bool:
    texts = [cell for cell in row.cells if cell.strip()]
    return bool(texts) and (all(map(is_unit, texts)) or _are_types(row))


def _are_types(row: Line) -> bool:
    texts = [cell.strip().lower() for cell in row.cells if cell.strip()]
    return bool(texts) and all(text in TYPES for text in texts)


def _are_names_of_groups(row: Line, above: Line) -> bool:
    """Returns whether letters that may be units are names: `T,H,T,H` below `Station A,,Station B,`."""
    gaps = [not cell.strip() for cell in above.cells]
    return any(gaps) and all(map(str.strip, row.cells)) and _are_groups(above, row)


def _are_units_below(row: Line, names: Line) -> bool:
    if _are_types(row):  # in the last line of a preamble, words such as timestamp and real may be names, too
        return any(is_hint(name) for name in names.cells) or not any(is_hint(cell) for cell in row.cells)
    return _are_units(row) or _are_units_for_the_most_part(row, names)


def _are_units_for_the_most_part(row: Line, names: Line) -> bool:
    """Returns whether a row right below the names has known units, and short words that may be units. Below
    the names of a Campbell logger, for example, stand `TS`, `RN`, `Volts` and `meters/second`."""
    cells = [cell.strip() for cell in row.cells]
    some = [cell for cell in cells if cell]
    known = sum(is_unit(cell) for cell in some)
    over = [is_unit(cell) for cell in names.cells]
    return (
        len(cells) == len(over)
        and all(map(str.strip, names.cells))
        and len(some) > 2
        and known >= _UNITS_SHARE * len(some)
        and known / len(some) > sum(over) / len(over)
        and all(len(cell) <= _UNIT_CHARACTERS and not is_typed(cell) for cell in some)
    )


def _completed_below(names: Sequence[str], below: Sequence[Line]) -> tuple[str, ...]:
    """Returns the names, completed by the rows between them and the table. A name that comes twice gets the
    name of its aggregate. A column without a name gets one, such as an index of pandas."""
    found = list(names)
    counts = Counter(name.strip() for name in names)
    for row in below:
        cells = [cell.strip() for cell in row.cells[: len(found)]]
        cells = [cell if cell.strip("-=+: ") else "" for cell in cells]  # a rule is no name
        filled = [at for at, cell in enumerate(cells) if cell]
        if all(is_aggregate(cells[at]) for at in filled):
            for at in filled:
                if names[at].strip() and counts[names[at].strip()] > 1:
                    found[at] = f"{names[at].strip()} {cells[at]}"
        elif filled and all(not found[at].strip() and shape(cells[at]) == "words" for at in filled):
            for at in filled:
                found[at] = cells[at]
    return tuple(found)


def _are_names(row: Line, width: int) -> bool:
    """Returns whether a row has names: mostly words, and about as many as there are cells."""
    cells = [cell.strip() for cell in row.cells]
    while cells and not cells[-1]:
        cells.pop()
    if width == 1:
        return len(cells) >= 1 and not is_typed(cells[0])
    if len(cells) < max(2, (width + 1) // 2) or len(cells) > width + 2:
        return False
    words = [cell for cell in cells if cell and shape(cell) in ("words", "near", "none")]
    return len(words) * 2 > len([cell for cell in cells if cell])


def _is_like(row: Line, others: Sequence[Line]) -> bool:
    """Returns whether a cell of the row has the same form as the cells below it, except for the digits:
    `[10:01]` above `[10:02]`."""

    def form(cell: str) -> str:
        return re.sub(r"\d", "0", cell.strip())

    below = [other for other in others[:ROWS_LIKE] if len(other.cells) == len(row.cells)]
    return any(
        "0" in form(cell) and 2 * sum(form(other.cells[at]) == form(cell) for other in below) > len(below) > 1
        for at, cell in enumerate(row.cells)
    )


def _are_odd_names(rows: Sequence[Line], width: int) -> bool:
    """Returns whether the first row has names although most of them are numbers: `time,1,2,3`,
    `station,2019,2020,2021`."""
    if len(rows) < 3 or len(rows[0].cells) != width or width < 2:
        return False
    head = [cell.strip() for cell in rows[0].cells]
    later = [row for row in rows[1:] if len(row.cells) == width]
    if len(set(head)) < width or not later:
        return False
    for at, name in enumerate(head):
        times = sum(shape(row.cells[at]) == "time" for row in later)
        if shape(name) == "words" and times >= _TIMES_SHARE * len(later):
            return True
    return (
        shape(head[0]) in ("words", "none") and _counts_up(head) and not any(map(_counts_up_row, later[:5]))
    )


def _counts_up_row(row: Line) -> bool:
    return _counts_up(row.cells)


def _counts_up(cells: Sequence[str]) -> bool:
    """Returns whether all numbers are whole, and each is one more than the one before: 2019, 2020, 2021."""
    numbers = [cell.strip() for cell in cells if shape(cell) == "number"]
    if len(numbers) < 3 or not all(number.isdecimal() for number in numbers):
        return False
    return all(int(after) == int(before) + 1 for before, after in pairwise(numbers))


def _names_in_comments(comments: Sequence[Line], width: int, first: int) -> tuple[Line | None, Line | None]:
    """Returns (the names, the units) from comments. Scientific files have them in the last comments above the
    rows."""
    above = [line for line in comments if line.number < first]
    some = [line for line in above if len(line.cells) == width]
    if not some or some[-1].number != above[-1].number:
        return None, None
    over = next((line for line in reversed(some) if line.number == some[-1].number - 1), None)
    units = over is not None and (_are_units(some[-1]) or _are_units_for_the_most_part(some[-1], over))
    if over is not None and units and _are_names(over, width):
        return over, some[-1]
    return (some[-1] if _are_names(some[-1], width) else None), None
