"""Reads the beginning of files without lines of text: Parquet and workbooks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import python_calamine
from python_calamine import SheetVisibleEnum

from pipeline_runtime.model.schema import FieldType
from webapp.imports.faults import ImportFault
from webapp.imports.sample import CHOICES_MAX, Head
from webapp.imports.sheet_cells import cells_in
from webapp.imports.sheet_marks import column_letters, counts_from_1904, hidden_in, notes_on_values, runs
from webapp.imports.sheets import merged_down, open_workbook, sheet_rows

ROWS_KEPT = 200
CELL_CHARACTERS_MAX = 200
LETTERS_SHOWN = 8
OTHER_CHARACTERS_MAX = 200_000  # of a sheet that is not the first choice


def read_sheet_head(path: Path) -> Head:
    """Returns the first rows of the first sheet with rows. Raises ImportFault."""
    try:
        workbook = open_workbook(path)
        names = workbook.sheet_names
        if not names:
            raise ImportFault("The workbook has no sheet.", None, "Upload one with a table.")
        shown = [each.name for each in workbook.sheets_metadata if each.visible == SheetVisibleEnum.Visible]
        names = sorted(names, key=lambda name: name not in shown)
        beginnings = ((name, _first_rows(path, workbook, name)) for name in names)
        chosen, rows = next((each for each in beginnings if len(each[1]) > 1), (names[0], ()))
        rows = rows or _first_rows(path, workbook, chosen)
        sheets = tuple([chosen, *(name for name in names if name != chosen)][:CHOICES_MAX])
        heads = [
            Head(kind="xlsx", sheet=name, rows=_shortened(_first_rows(path, workbook, name)))
            for name in sheets[1:]
        ]
        others = tuple(_with_marks(head, workbook, path, shown) for head in heads)
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        raise ImportFault(
            f"The workbook cannot be read: {error}.", None, "Save it again as .xlsx, or as CSV."
        ) from error
    head = Head(
        kind="xlsx",
        sheet=chosen,
        sheets=tuple(name for name in workbook.sheet_names if name in sheets),
        others=others,
        left_out=len(names) - len(sheets),
        rows=rows,
        whole=len(rows) < ROWS_KEPT,
    )
    return _with_marks(head, workbook, path, shown)


def _with_marks(
    head: Head, workbook: python_calamine.CalamineWorkbook, path: Path, shown: Sequence[str]
) -> Head:
    """Returns the head with the merged cells of its rows, and with notes on merged and hidden cells."""
    assert head.sheet is not None
    merged = merged_down(workbook, head.sheet)
    rows, columns = hidden_in(path, head.sheet)
    notes = [] if head.sheet in shown else ["The sheet is hidden in the workbook."]
    notes += [*notes_on_values(path, head.sheet), *cells_in(path, head.sheet).notes]
    if merged:
        notes.append("Cells are merged. In the table, each line of such a cell has its value.")
    if rows:
        notes.append(f"Hidden rows are read as well: {runs(rows)}.")
    if columns:
        letters = ", ".join(map(column_letters, columns[:LETTERS_SHOWN]))
        notes.append(f"Hidden columns are read as well: {letters}{', …' if columns[LETTERS_SHOWN:] else ''}.")
    near = tuple(each for each in merged if each[0] <= len(head.rows))
    days_from = 1904 if counts_from_1904(path) else 1900
    return head.model_copy(update={"merged": near, "notes": tuple(notes), "days_from": days_from})


def _shortened(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    ends = accumulate(sum(map(len, cells)) + len(cells) for cells in rows)
    return tuple(cells for cells, end in zip(rows, ends, strict=True) if end <= OTHER_CHARACTERS_MAX)


def _first_rows(
    path: Path, workbook: python_calamine.CalamineWorkbook, sheet: str
) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(cell[:CELL_CHARACTERS_MAX] for cell in cells[:2_000])
        for cells in sheet_rows(path, workbook, sheet, ROWS_KEPT)
    )


def read_parquet_head(path: Path) -> Head:
    """Returns the columns of a Parquet file and its first rows. Raises ImportFault."""
    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        batch = next(file.iter_batches(batch_size=ROWS_KEPT), None)
    except (pa.ArrowInvalid, OSError) as error:
        raise ImportFault(f"The Parquet file cannot be read: {error}.", None, "Write it again.") from error
    kinds = {field.name: _type_of(field.type) for field in schema}
    for name in _beyond_integers(file):
        kinds[name] = FieldType.STRING
    columns = tuple((name, kind.value) for name, kind in kinds.items() if kind is not None)
    left_out = [name for name, kind in kinds.items() if kind is None]
    notes = (f"Left out, since no value of theirs is one cell: {', '.join(left_out[:LETTERS_SHOWN])}.",)
    rows: tuple[tuple[object, ...], ...] = ()
    if batch is not None:
        texts = [
            [None if value is None else str(value) for value in batch.column(name).to_pylist()]
            for name, _ in columns
        ]
        rows = tuple(zip(*texts, strict=True)) if texts else ()
    return Head(kind="parquet", columns=columns, rows=rows, notes=notes if left_out else ())


def _beyond_integers(file: pq.ParquetFile) -> list[str]:
    """Returns the columns of unsigned whole numbers whose values do not fit into 63 bits."""
    found = []
    paths = [file.metadata.schema.column(at).path for at in range(file.metadata.num_columns)]
    for field in file.schema_arrow:
        if field.type == pa.uint64():
            at = paths.index(field.name)
            groups = (file.metadata.row_group(n).column(at) for n in range(file.num_row_groups))
            known = [group.statistics for group in groups]
            if any(each is None or not each.has_min_max or each.max >= 1 << 63 for each in known):
                found.append(field.name)
    return found


def _type_of(type_: pa.DataType) -> FieldType | None:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_boolean(type_):
        return FieldType.BOOLEAN
    if pa.types.is_integer(type_):
        return FieldType.INTEGER
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return FieldType.NUMBER
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return FieldType.TIMESTAMP
    if pa.types.is_time(type_):
        return FieldType.STRING  # a time of day is a text, in the form that DuckDB writes
    return FieldType.STRING if pa.types.is_string(type_) or pa.types.is_large_string(type_) else None
