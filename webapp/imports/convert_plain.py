"""Divides text without quotes into cells, and reads numbers and times, by Arrow. It takes a third of DuckDB's
time.

Arrow reads fewer forms than `cell_text` and `time_text` do, but it reads these forms in the same way. DuckDB
reads the other forms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import read_cell
from webapp.imports.convert_sql import YEAR_1000_US, Moment, Query, marks, missing
from webapp.imports.convert_text import Piece
from webapp.imports.reading import Reading, Source

_BLOCK_BYTES = 1 << 20  # the size of a block for Arrow; DuckDB reads a row that is longer
_LOCAL_SIZES = (10, 16, 19, *range(21, 27))
"""The lengths of a date, of a date with a time, and of one with a fraction. Arrow would also read an hour
without minutes."""
_ZONED_SIZE_MIN = 20  # a shorter text may have an hour without minutes before its offset


@dataclass(frozen=True)
class Divided:
    """A divided piece. `cells` has a column c<n> for each source. `known` has columns of the query's result:
    v<n>, a<n>, t<n> and z<n>. `query` computes the other columns."""

    cells: pa.Table
    known: dict[str, pa.Array | pa.ChunkedArray]
    query: Query


def divided(piece: Piece, reading: Reading, query: Query, width: int) -> Divided | None:
    """Returns the divided rows of a piece. Returns None if the piece has quotes, or if a row has another
    number of cells than `width`."""
    divider = reading.divider.encode()
    if len(divider) != 1 or (reading.quote and reading.quote.encode() in piece.data):
        return None
    try:
        numbers = query.numbers
        cells = _cells(piece.data, reading, query, width, numbers)
        if cells is None and numbers:
            numbers = frozenset()
            cells = _cells(piece.data, reading, query, width, numbers)
    except _OtherWidth:
        return None
    if cells is None:
        return None
    known: dict[str, pa.Array | pa.ChunkedArray] = {}
    for n, column in enumerate(query.plain):
        if column.source in numbers:
            known[f"v{n}"] = _kept(cells[f"c{column.source}"], query, n)
    for n, moment in enumerate(query.moments):
        known |= _times(cells, moment, n, query.zoned)
    return Divided(cells, known, replace(query, left_out=frozenset(known)))


class _OtherWidth(Exception):
    pass


def _cells(
    data: bytes, reading: Reading, query: Query, width: int, numbers: frozenset[Source]
) -> pa.Table | None:
    """Returns the cells as texts, and those of `numbers` as numbers. Returns None if one of these is no
    number. Raises _OtherWidth."""
    other: list[int] = []

    def refuse(row: pyarrow.csv.InvalidRow) -> str:
        other.append(row.actual_columns)
        return "error"

    sources = dict.fromkeys([*query.sources, *(each for moment in query.moments for each in moment.sources)])
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data),
            pyarrow.csv.ReadOptions(
                column_names=[f"c{n}" for n in range(width)], block_size=_BLOCK_BYTES, use_threads=False
            ),
            pyarrow.csv.ParseOptions(delimiter=reading.divider, quote_char=False, invalid_row_handler=refuse),
            pyarrow.csv.ConvertOptions(
                column_types={f"c{n}": pa.float64() if n in numbers else pa.string() for n in sources},
                include_columns=[f"c{n}" for n in sources],
                null_values=list(missing(reading, None)) if numbers else [],
                strings_can_be_null=bool(numbers),
                decimal_point=reading.decimal,
                check_utf8=False,  # `pieces` yields only UTF-8
            ),
        )
    except pa.ArrowInvalid as error:
        if other or not numbers:
            raise _OtherWidth from error
        return None
    said = (pc.all(pc.is_finite(table[f"c{n}"])).as_py() for n in numbers)
    return None if False in said else table  # a cell is nan or inf


def _kept(values: pa.ChunkedArray, query: Query, n: int) -> pa.ChunkedArray:
    """Returns the numbers. A number that means "no value" becomes null."""
    column = query.plain[n]
    read = (
        read_cell(text, FieldType.NUMBER, *marks(query.reading, column))
        for text in missing(query.reading, column)
    )
    absent = [value for value in read if value is not None]
    if not absent:
        return values
    none = pc.is_in(values, value_set=pa.array(absent, pa.float64()))
    return pc.if_else(none, pa.scalar(None, pa.float64()), values)


def _times(cells: pa.Table, moment: Moment, n: int, zoned: bool) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Returns the columns of a time if Arrow can read it in all rows that have one. Otherwise returns {}."""
    if moment.format != "iso":
        return {}
    parts = [cells[f"c{source}"] for source in moment.sources]
    texts = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, " ")
    if texts.null_count == len(texts):
        return {}
    sizes = pc.unique(pc.binary_length(texts)).drop_null().to_pylist()
    rows = len(texts)
    for type_, fits in (
        (pa.timestamp("us"), all(size in _LOCAL_SIZES for size in sizes)),
        (pa.timestamp("us", "UTC"), min(sizes) >= _ZONED_SIZE_MIN),
    ):
        if not fits:
            continue
        try:
            micros = texts.cast(type_).cast(pa.int64())
        # A text is no time, has an offset although none is expected, or has none although one is expected.
        except pa.ArrowInvalid:
            continue
        if pc.min(micros).as_py() < YEAR_1000_US:
            return {}
        found = {f"a{n}": micros, f"t{n}": pa.chunked_array([pa.nulls(rows, pa.string())])}
        if zoned:
            found[f"z{n}"] = pa.chunked_array([pa.repeat(type_.tz is not None, rows)])
        return found
    return {}
