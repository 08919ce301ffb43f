"""Reads a file's cells as texts, in batches of whole rows, and gives them to DuckDB."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from webapp.imports.ahead import ahead
from webapp.imports.convert_plain import divided
from webapp.imports.convert_sql import THREADS, Query, connected, csv_cells, typed
from webapp.imports.convert_text import (
    ROW_BYTES_MAX,
    Counted,
    Piece,
    in_lines,
    in_utf8,
    newlines,
    pieces,
    unpacked,
)
from webapp.imports.cuts import at_places
from webapp.imports.faults import ImportFault
from webapp.imports.reading import Reading, Source
from webapp.imports.table_width import HEAD_ROWS, over_width, width_of

_HEAD_BYTES = 1 << 20


@dataclass
class Batch:
    """Some rows. `table` has the query's columns. `over` and `short` say whether a row has more or fewer
    cells than the table."""

    table: pa.Table
    refused: str  # the reason for the dead letter of a row that is `over`
    bytes_done: int
    bytes_total: int
    lines: Callable[[], NDArray[np.int64]]  # returns the line numbers of the rows, from 1
    text: Callable[[int, int], str]  # (row, characters) -> the row's text in the file
    ended: bool = True  # whether the last line has a line end


def text_batches(
    path: Path, reading: Reading, query: Query, connection: duckdb.DuckDBPyConnection, directory: Path
) -> Generator[Batch, None, None]:
    """Yields the rows of delimited text in their order. Raises ImportFault. `connection` has one thread."""
    width = _width(path, reading)
    file = directory / "piece.csv"
    counted = Counted(path)
    with counted.file, closing(connected(directory, THREADS)) as of_files:
        blocks = in_lines(in_utf8(unpacked(counted, reading), reading.encoding), reading)
        found = ((piece, last, counted.done) for piece, last in _with_last(pieces(blocks, reading)))
        with closing(ahead(found)) as prepared:
            for piece, last, done in prepared:
                table = _without_file(piece, reading, query, connection, width)
                if table is None:
                    file.write_bytes(piece.data)
                    table = _typed(piece, last, reading, query, connection, of_files, file, width)
                lines = lines_of(piece, table.num_rows)
                refused = over_width(reading, width)
                yield Batch(table, refused, done, counted.size, lines, piece.text, piece.ended)


def _with_last(found: Iterator[Piece]) -> Iterator[tuple[Piece, bool]]:
    """Yields (piece, whether it is the file's last)."""
    waiting = next(found, None)
    for piece in found:
        assert waiting is not None
        yield waiting, False
        waiting = piece
    if waiting is not None:
        yield waiting, True


def _without_file(
    piece: Piece, reading: Reading, query: Query, connection: duckdb.DuckDBPyConnection, width: int
) -> pa.Table | None:
    """Returns the same as `_typed`, for a piece that Arrow can divide into cells. Otherwise returns None."""
    found = divided(piece, reading, query, width)
    if found is None:
        return None
    rows = found.cells.num_rows
    columns = found.known | {"over": _all_false(rows), "short": _all_false(rows)}
    if not found.query.asks:
        return pa.table(columns | {"bad": pa.nulls(rows, pa.list_(pa.string()))})
    connection.register("cells", found.cells)
    try:
        names: dict[Source, str] = {n: f"c{n}" for n in range(width)}
        asked = typed(connection, found.query, "cells", names, "")
    finally:
        connection.unregister("cells")
    return pa.table(columns | dict(zip(asked.column_names, asked.columns, strict=True)))


def _all_false(rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(False, rows)])


def _typed(
    piece: Piece,
    last: bool,
    reading: Reading,
    query: Query,
    connection: duckdb.DuckDBPyConnection,
    of_files: duckdb.DuckDBPyConnection,
    file: Path,
    width: int,
) -> pa.Table:
    names: dict[Source, str] = {n: f"c{n}" for n in range(width)}
    over = f"CASE WHEN c{width} IS NULL THEN false ELSE trim(c{width}) <> '' END AS over"

    def ask(
        asked: duckdb.DuckDBPyConnection, cells: str, short: str, numbers: frozenset[Source] = frozenset()
    ) -> pa.Table:
        whole = f"(SELECT *, {over}, {short} AS short FROM {cells})"  # noqa: S608  no text of the file
        return typed(asked, query, whole, names, ", over, short", numbers)

    try:
        # The footer is in the last piece. Only for a footer does it matter whether a row is short.
        if query.numbers and not last and b"_" not in piece.data:
            cells = csv_cells(file, reading, width, piece.quoted_lines, query.numbers)
            table = ask(of_files, cells, "false", query.numbers)
            if _all_finite(table):
                return table
    except duckdb.ConversionException:
        pass  # some cell is no number, so all cells are read as texts to find it
    try:
        return ask(of_files, csv_cells(file, reading, width, piece.quoted_lines), f"c{width - 1} IS NULL")
    except duckdb.Error:
        # DuckDB refuses some wrong quotes that Python's csv module accepts.
        connection.register("cells", _by_hand(piece, reading, width))
        try:
            return ask(connection, "cells", f"c{width - 1} IS NULL")
        finally:
            connection.unregister("cells")


def _all_finite(table: pa.Table) -> bool:
    """Returns whether no cell is nan or inf, which DuckDB reads as numbers."""
    return all(
        pc.all(pc.is_finite(column)).as_py() is not False
        for column in table.columns
        if pa.types.is_floating(column.type)
    )


def lines_of(piece: Piece, rows: int) -> Callable[[], NDArray[np.int64]]:
    """Returns a function that returns the line numbers of so many rows."""

    def lines() -> NDArray[np.int64]:
        if piece.lines is None and not piece.quoted_lines and _line_count(piece.data) == rows:
            return np.arange(rows, dtype=np.int64) + piece.first_line
        _, found = piece.rows
        if len(found) < rows:  # DuckDB found more rows than line ends outside of quotes
            last = found[-1] if len(found) else piece.first_line
            found = np.concatenate([found, np.full(rows - len(found), last, np.int64)])
        return found[:rows]

    return lines


def _line_count(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _by_hand(piece: Piece, reading: Reading, width: int) -> pa.Table:
    columns: list[list[str | None]] = [[] for _ in range(width + 1)]
    try:
        for row in _parsed(piece.data.decode(), reading):
            for n, cells in enumerate(columns):
                cells.append(row[n] if n < len(row) else None)
    except csv.Error as error:
        raise ImportFault(
            f"Some rows cannot be divided into cells: {error}.",
            f"behind line {piece.first_line + len(columns[0]):,}",
            "Choose another delimiter or another quote.",
        ) from error
    return pa.table({f"c{n}": pa.array(cells, pa.string()) for n, cells in enumerate(columns)})


def _parsed(text: str, reading: Reading) -> Iterator[list[str]]:
    delimiter = reading.divider
    if len(delimiter) > 1:
        yield from (line.split(delimiter) for line in text.splitlines())
        return
    quoting = csv.QUOTE_MINIMAL if reading.quote else csv.QUOTE_NONE
    csv.field_size_limit(max(csv.field_size_limit(), ROW_BYTES_MAX))
    rows = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quotechar=reading.quote or None, quoting=quoting
    )
    yield from (row for row in rows if row)


def _names_of(header: str, reading: Reading) -> list[str]:
    if reading.delimiter == "places":
        return at_places(header, reading.cuts)
    if reading.delimiter == "whitespace":
        names = header.split()
        return at_places(header, reading.cuts) if len(names) > len(reading.cuts) + 1 > 1 else names
    return next(_parsed(header, reading), [])


def _width(path: Path, reading: Reading) -> int:
    counted = Counted(path)
    with counted.file:
        head = b""
        for block in in_lines(in_utf8(unpacked(counted, reading), reading.encoding), reading):
            head += block
            if len(head) >= _HEAD_BYTES:
                break
    ends = newlines(head)
    begin = int(ends[reading.first_line - 2]) + 1 if 1 < reading.first_line <= len(ends) + 1 else 0
    end = head.rfind(b"\n", begin, begin + _HEAD_BYTES)
    head = head[: end + 1] if end >= 0 else head
    header: list[str] = []
    if reading.header_line is not None:
        begin = int(ends[reading.header_line - 2]) + 1 if 1 < reading.header_line <= len(ends) + 1 else 0
        end = int(ends[reading.header_line - 1]) if reading.header_line <= len(ends) else len(head)
        text = head[begin:end].decode(errors="replace").rstrip("\r")
        header = _names_of(text, reading)
    first = next(pieces(iter([head]), reading), None)
    text = "" if first is None else first.data.decode(errors="replace")
    return width_of(reading, header, list(islice(_parsed(text, reading), HEAD_ROWS)))
