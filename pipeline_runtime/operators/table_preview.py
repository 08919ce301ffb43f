"""What is in the beginning of a table's file, and how it can be read: what a user chooses from by looking."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mode

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from pipeline_runtime.model.schema import Field, FieldType
from pipeline_runtime.operators.columns import ColumnType
from pipeline_runtime.operators.recording import (
    DATA,
    DEMOS,
    HEAD_BYTES,
    Layout,
    columns_of,
    head_rows,
    head_text,
    narrowest,
    parsed,
    wrong_cells,
)
from pipeline_runtime.operators.times import TimeReading, best_time, checked_format, time_readings

ROWS_SHOWN = 6
BAD_SHOWN = 3
COLUMNS_SHOWN = 100
CELL_CHARACTERS_MAX = 60
LINE_CHARACTERS_MAX = 120
NEAR_MIN = 0.8
"""The share of a text column's values that are of a narrower type, from which on that is said."""
_DELIMITERS = "\t;|,"  # the comma last: it also stands in numbers and texts
_SNIFFED_ROWS = 50


class _Shown(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Near(_Shown):
    """A column of text that would be of a narrower type but for some values."""

    type: FieldType
    others: int  # rows with another value
    line: int  # of the first of them
    text: str


class PreviewColumn(_Shown):
    name: str
    type: FieldType
    near: Near | None
    times: tuple[TimeReading, ...]  # in which formats it can be the rows' time, the likeliest first


class PreviewRow(_Shown):
    line: int
    cells: tuple[str, ...]
    bad: bool


class BadLine(_Shown):
    line: int
    reason: str
    text: str


class TablePreview(_Shown):
    """How the first bytes of a file are read, and what could be chosen.

    `found`: what a reading of this file should say, of what was not given; `rows` counts those that were
    looked at, which are all when `whole`.
    """

    delimiter: str
    decimal: str
    header: bool
    columns: tuple[PreviewColumn, ...]
    columns_total: int
    first: tuple[PreviewRow, ...]
    rows: int
    whole: bool
    rows_about: int | None  # in the whole file; None when its size does not tell
    bad: tuple[BadLine, ...]
    bad_total: int
    time_column: str | None  # as which column it would be replayed, were nothing chosen
    time_format: str | None
    replaced: int  # characters that are no UTF-8
    fixed: bool = False  # what the file looks like is known: only its time can be chosen


def preview_demo(path: str, time_column: str | None, time_format: str | None) -> TablePreview:
    """As `preview`, of a recording that is shipped; KeyError when there is none of this name."""
    demo = DEMOS[path]
    with (DATA / demo.file).open("rb") as file:
        head = file.read(HEAD_BYTES)
    layout = demo.layout
    columns = tuple(ColumnType(name=field.name, type=field.type) for field in layout.columns)
    found = preview(
        head,
        None,
        delimiter=layout.delimiter,
        header=layout.header,
        columns=columns,
        time_column=time_column or layout.time_column,
        time_format=time_format or layout.time_format,
    )
    return found.model_copy(update={"fixed": True})


def preview(
    head: bytes,
    size: int | None,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    columns: Sequence[ColumnType] | None = None,
    time_column: str | None = None,
    time_format: str | None = None,
) -> TablePreview:
    """What the first bytes of a file of `size` bytes hold (gzip too). What is None is found out.

    Rows are judged as a replay judges them. ValueError says why it is no table.
    """
    if time_format is not None:
        checked_format(time_format)
    text, whole = head_text(head)
    delimiter = delimiter or sniffed_delimiter(text)
    rows = head_rows(text, delimiter)
    header, decimal = _look([row for _, row in rows], delimiter, header, decimal)
    given = tuple(column.field() for column in columns or ())
    fields = given or columns_of([row for _, row in rows], header, decimal)
    body = rows[1:] if header else rows
    even = [(line, row) for line, row in body if len(row) == len(fields)]
    readings = [
        (field.name, time_readings(field.name, [row[index] for _, row in even]))
        for index, field in enumerate(fields[:COLUMNS_SHOWN])
    ]
    best = best_time(readings)
    known = time_column if time_column in [field.name for field in fields] else None
    bad = _uneven(body, len(fields), delimiter) + _refused(
        even, Layout(fields, delimiter, header, known, time_format or "iso", decimal)
    )
    bad.sort(key=lambda one: one.line)
    wrong = {one.line for one in bad}
    packed = size is None or head[:2] == b"\x1f\x8b"
    return TablePreview(
        delimiter=delimiter,
        decimal=decimal,
        header=header,
        columns=tuple(
            PreviewColumn(
                name=field.name,
                type=field.type,
                near=None if given else _near(field, index, even, decimal),
                times=tuple(readings[index][1]),
            )
            for index, field in enumerate(fields[:COLUMNS_SHOWN])
        ),
        columns_total=len(fields),
        first=tuple(
            PreviewRow(
                line=line,
                cells=tuple(_short(cell, CELL_CHARACTERS_MAX) for cell in row[:COLUMNS_SHOWN]),
                bad=line in wrong,
            )
            for line, row in body[:ROWS_SHOWN]
        ),
        rows=len(body),
        whole=whole,
        rows_about=len(body)
        if whole
        else None
        if packed
        else _about(len(body), len(text.encode()), size or 0),
        bad=tuple(bad[:BAD_SHOWN]),
        bad_total=len(bad),
        time_column=best[0] if best else None,
        time_format=best[1] if best else None,
        replaced=text.count("\N{REPLACEMENT CHARACTER}"),
    )


def columns_found(head: bytes) -> tuple[Field, ...]:
    """All columns of a file that begins so, as a source reads it by itself; ValueError: it is no table."""
    text, _ = head_text(head)
    delimiter = sniffed_delimiter(text)
    rows = [row for _, row in head_rows(text, delimiter)]
    return columns_of(rows, *_look(rows, delimiter))


def _look(
    rows: Sequence[Sequence[str]], delimiter: str, header: bool | None = None, decimal: str | None = None
) -> tuple[bool, str]:
    """Whether there is a header, and what stands before decimals; what is None is found out."""
    if header is None:
        header = looks_like_header(rows)
    if decimal is None:
        decimal = "," if delimiter != "," and _has_decimal_commas(rows) else "."
    return header, decimal


def sniffed_delimiter(text: str) -> str:
    """The one that cuts all of the first rows into as many cells, or else cuts the first row most often.

    Not csv.Sniffer: its expressions take quadratic time, and a comma in a quoted cell misleads it.
    """
    some = "".join(text.splitlines(keepends=True)[:_SNIFFED_ROWS])
    for delimiter in _DELIMITERS:
        try:
            widths = {len(row) for _, row in head_rows(some, delimiter)}
        except ValueError:
            continue
        if len(widths) == 1 and widths != {1}:
            return delimiter
    first = some.partition("\n")[0]
    return max(reversed(_DELIMITERS), key=first.count)


def looks_like_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has names: where the others have numbers or times, it has none."""
    first, width = rows[0], mode(len(row) for row in rows)
    body = [row for row in rows[1:] if len(row) == width]
    if len(first) != width or not body:
        return all(narrowest([cell.strip()]) is FieldType.STRING for cell in first)
    types = [narrowest([row[index].strip() for row in body]) for index in range(width)]
    typed = [index for index, type_ in enumerate(types) if type_ is not FieldType.STRING]
    if not typed:
        return all(narrowest([cell.strip()]) is FieldType.STRING for cell in first)
    return any(narrowest([first[index].strip()]) is FieldType.STRING for index in typed)


def _has_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    """Whether some column has numbers that are written 1,5 and none that is written 1.5."""
    for index in range(len(rows[0])):
        cells = [row[index].strip() for row in rows[1:] if len(row) == len(rows[0])]
        numbers = [cell for cell in cells if narrowest([cell], ",") is FieldType.NUMBER]
        commas = [cell for cell in numbers if "," in cell]
        if commas and len(numbers) >= NEAR_MIN * len(cells) and len(commas) == len(numbers):
            return True
    return False


def _uneven(body: Sequence[tuple[int, list[str]]], width: int, delimiter: str) -> list[BadLine]:
    return [
        BadLine(
            line=line,
            reason=wrong_cells(len(row), width),
            text=_short(delimiter.join(row), LINE_CHARACTERS_MAX),
        )
        for line, row in body
        if len(row) != width
    ]


def _refused(even: Sequence[tuple[int, list[str]]], layout: Layout) -> list[BadLine]:
    """The rows that a replay would refuse for what is in their cells."""
    names = [field.name for field in layout.columns]
    if not even or len({name.lower() for name in names}) < len(names):
        return []  # two columns of one name are a fault of the element's, which is told there
    cells = [pa.array([row[index] for _, row in even], pa.string()) for index in range(len(names))]
    *_, reasons, _, _ = parsed(pa.table(cells, names=names), layout)
    return [
        BadLine(line=line, reason=why, text=_short(layout.delimiter.join(row), LINE_CHARACTERS_MAX))
        for (line, row), why in zip(even, reasons.to_pylist(), strict=True)
        if why is not None
    ]


def _near(field: Field, index: int, even: Sequence[tuple[int, list[str]]], decimal: str) -> Near | None:
    if field.type is not FieldType.STRING:
        return None
    given = [(line, text) for line, row in even if (text := row[index].strip())]
    types = [narrowest([text], decimal) for _, text in given]
    for kinds, type_ in (
        ((FieldType.INTEGER,), FieldType.INTEGER),
        ((FieldType.INTEGER, FieldType.NUMBER), FieldType.NUMBER),
        ((FieldType.TIMESTAMP,), FieldType.TIMESTAMP),
    ):
        others = [one for one, kind in zip(given, types, strict=True) if kind not in kinds]
        if given and 0 < len(others) <= (1 - NEAR_MIN) * len(given):
            line, text = others[0]
            return Near(type=type_, others=len(others), line=line, text=_short(text, CELL_CHARACTERS_MAX))
    return None


def _about(rows: int, head_bytes: int, size: int) -> int:
    """Estimates the rows of the whole file, to two digits."""
    estimate = rows * size / max(head_bytes, 1)
    return int(float(f"{estimate:.2g}"))


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
