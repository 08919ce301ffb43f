"""Counts the cells of a row. The preview and the import use the same rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from webapp.imports.faults import ImportFault
from webapp.imports.reading import COLUMNS_MAX, Reading, Source

HEAD_ROWS = 200
CUT_OFF = "the file ends within this row"


def width_of(reading: Reading, header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Returns the number of cells of a row: as many as the header has, or as most of the first rows have.
    Empty cells at the end of the header, and one at the end of a row, do not count."""
    cells = len(header)
    while cells and not header[cells - 1].strip():
        cells -= 1
    if not cells and rows:
        lengths = Counter(len(row) - (len(row) > 1 and not row[-1].strip()) for row in rows[:HEAD_ROWS])
        cells = lengths.most_common(1)[0][0]
    width = max(cells, *(source + 1 for source in _sources(reading)))
    if width > COLUMNS_MAX:
        raise ImportFault(
            f"The table has {width:,} columns; at most {COLUMNS_MAX:,} are possible.",
            None,
            "Choose another delimiter, or remove the text after the table.",
        )
    return width


def over_width(reading: Reading, width: int) -> str:
    """Returns why a row with more than `width` cells is a dead letter."""
    return (
        "its cells do not stand where those of other rows do"
        if reading.cuts
        else f"has more than {width} cells"
    )


def _sources(reading: Reading) -> Iterator[int]:
    for column in reading.columns:
        yield _place(column.source)
    for source in reading.time.columns if reading.time is not None else ():
        yield _place(source)


def _place(source: Source) -> int:
    if not isinstance(source, int) or not 0 <= source < COLUMNS_MAX:
        raise ImportFault(
            f"{source!r} is no place of a column in a text file.", None, "Choose the columns again."
        )
    return source
