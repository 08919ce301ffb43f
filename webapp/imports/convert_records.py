"""Reads files that are no delimited text, batch by batch: JSON lines, Parquet and workbooks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import python_calamine
from numpy.typing import NDArray

from webapp.imports.cell_text import quoted
from webapp.imports.convert_cells import Batch, lines_of
from webapp.imports.convert_sql import Query, typed
from webapp.imports.convert_text import Counted, in_lines, in_utf8, pieces, unpacked
from webapp.imports.faults import ImportFault
from webapp.imports.json_document import json_lines
from webapp.imports.reading import Reading, Source
from webapp.imports.sheet_marks import filled_down
from webapp.imports.sheets import merged_down, open_workbook, sheet_rows
from webapp.imports.table_width import width_of

_SHEET_ROWS = 20_000
_PARQUET_ROWS = 20_000
_BATCH_BYTES_MAX = 256 << 20
_PATH = re.compile(r"([^.\[\]]+)|\[(\d{1,9})\]")


def json_batches(
    path: Path, reading: Reading, query: Query, connection: duckdb.DuckDBPyConnection, directory: Path
) -> Generator[Batch, None, None]:
    """Yields a row for each line. A column's source is its path, such as `a.b` or `a[0].b`."""
    paths: list[str] = []
    names: dict[Source, str] = {}
    for source in _sources(query):
        literal, nested = f'$."{_escaped(str(source))}"', json_path(str(source))
        paths += [literal, nested]
        names[source] = f"coalesce(j[{len(paths) - 1}], j[{len(paths)}])"
    listed = ", ".join(quoted(each) for each in paths)
    cells = (
        f"(SELECT json_extract_string(CASE WHEN ok THEN line END, [{listed}]) AS j, NOT ok AS over,"  # noqa: S608
        " false AS short FROM (SELECT line, json_valid(line) AND ltrim(line) LIKE '{%' AS ok FROM cells))"
    )
    plain = reading.model_copy(update={"quote": "", "delimiter": ",", "comment": ""})
    counted = Counted(path)
    with counted.file:
        blocks = in_utf8(unpacked(counted, reading), reading.encoding)
        if reading.records is not None:
            blocks = json_lines(blocks, reading.records)
        for piece in pieces(in_lines(blocks, plain), plain):
            lines = [line for line in piece.data.split(b"\n") if line.strip(b"\r")]
            given = pa.table({"line": pa.array(lines, pa.binary()).cast(pa.string())})
            table = _asked(connection, query, given, cells, names)
            found = lines_of(piece, table.num_rows)
            yield Batch(table, "is no JSON object", counted.done, counted.size, found, piece.text)


def _sources(query: Query) -> list[Source]:
    asked_for = [*query.sources, *(source for moment in query.moments for source in moment.sources)]
    return list(dict.fromkeys(asked_for))


def json_path(source: str) -> str:
    """Returns the JSON path of a column's source: `a[0].b` is `$."a"[0]."b"`."""
    parts = (f'."{_escaped(found[1])}"' if found[1] else f"[{found[2]}]" for found in _PATH.finditer(source))
    return "$" + "".join(parts)


def _escaped(key: str) -> str:
    return key.replace("\\", "\\\\").replace('"', '\\"')


def _asked(
    connection: duckdb.DuckDBPyConnection, query: Query, given: pa.Table, cells: str, names: dict[Source, str]
) -> pa.Table:
    connection.register("cells", given)
    try:
        return typed(connection, query, cells, names, ", over, short")
    finally:
        connection.unregister("cells")


def parquet_batches(
    path: Path, reading: Reading, query: Query, connection: duckdb.DuckDBPyConnection, directory: Path
) -> Generator[Batch, None, None]:
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ImportFault(f"The Parquet file cannot be read: {error}.", None, "Write it again.") from error
    sources = [str(source) for source in _sources(query)]
    known = file.schema_arrow.names
    for source in sources:
        if source not in known:
            raise ImportFault(f"The file has no column {source!r}.", None, "Choose the columns again.")
    names: dict[Source, str] = {each: f"CAST({_identifier(each)} AS VARCHAR)" for each in sources}
    rows, size = 0, path.stat().st_size
    with file:
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=sources):
            if batch.nbytes > _BATCH_BYTES_MAX:
                raise ImportFault("Its rows are too long.", f"behind row {rows:,}", "Leave out columns.")
            batch = _without_halves(batch)
            cells = "(SELECT *, false AS over, false AS short FROM cells)"
            table = _asked(connection, query, pa.Table.from_batches([batch]), cells, names)
            done = size * (rows + len(batch)) // max(file.metadata.num_rows, 1)
            yield Batch(table, "", done, size, _numbers(rows, len(batch)), partial(_as_json, batch))
            rows += len(batch)


def _without_halves(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the batch with numbers of 16 bits, which DuckDB does not know, in 32."""
    fields = [
        field.with_type(pa.float32()) if pa.types.is_float16(field.type) else field for field in batch.schema
    ]
    return batch.cast(pa.schema(fields)) if any(map(pa.types.is_float16, batch.schema.types)) else batch


def _as_json(batch: pa.RecordBatch, row: int, characters: int) -> str:
    return json.dumps(batch.slice(row, 1).to_pylist()[0], default=str, ensure_ascii=False)[:characters]


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _numbers(begin: int, count: int) -> Callable[[], NDArray[np.int64]]:
    return lambda: np.arange(begin + 1, begin + count + 1, dtype=np.int64)


def sheet_batches(
    path: Path, reading: Reading, query: Query, connection: duckdb.DuckDBPyConnection, directory: Path
) -> Generator[Batch, None, None]:
    """Yields the rows of one sheet. Its cells are texts, as `sheets` makes them."""
    try:
        rows = _sheet(path, reading)
        header: list[str] = []
        for number in range(1, reading.first_line):
            cells = next(rows, [])
            header = cells if number == reading.header_line else header
        begin = reading.first_line
        width = 0
        if reading.last_line is not None:
            rows = islice(rows, max(0, reading.last_line + 1 - begin))
        while part := list(islice(rows, _SHEET_ROWS)):
            width = width or width_of(reading, header, part)
            # Rows that repeat the column names are left out. The other rows keep their line numbers.
            part = [[] if header and row == header else row for row in part]
            yield _sheet_batch(part, width, begin, path, query, connection)
            begin += len(part)
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        raise ImportFault(
            f"The workbook cannot be read: {error}.", None, "Save it again as .xlsx, or as CSV."
        ) from error


def _sheet(path: Path, reading: Reading) -> Iterator[list[str]]:
    workbook = open_workbook(path)
    names = workbook.sheet_names
    sheet = reading.sheet if reading.sheet is not None else next(iter(names), "")
    if sheet not in names:
        raise ImportFault(f"The workbook has no sheet {sheet!r}.", ", ".join(names[:10]), "Choose a sheet.")
    return filled_down(sheet_rows(path, workbook, sheet), merged_down(workbook, sheet), reading.first_line)


def _sheet_batch(
    part: list[list[str]],
    width: int,
    begin: int,
    path: Path,
    query: Query,
    connection: duckdb.DuckDBPyConnection,
) -> Batch:
    numbers = np.array([begin + n for n, row in enumerate(part) if any(row)], np.int64)
    filled: list[Any] = [row for row in part if any(row)]
    columns = {
        f"c{n}": pa.array([row[n] if n < len(row) else "" for row in filled], pa.string())
        for n in range(width)
    }
    over = [any(row[width:]) for row in filled]
    short = [not any(row[1:]) and width > 1 for row in filled]
    given = pa.table({**columns, "over": pa.array(over, pa.bool_()), "short": pa.array(short, pa.bool_())})
    names: dict[Source, str] = {n: f"c{n}" for n in range(width)}
    table = _asked(connection, query, given, "cells", names)
    size = path.stat().st_size
    text: Callable[[int, int], str] = lambda row, characters: "\t".join(filled[row])[:characters]  # noqa: E731
    return Batch(table, f"has more than {width} cells", size, size, lambda: numbers, text)
