"""Sink: a CSV file, each row exactly once."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import Field, JsonValue

from pipeline_runtime.disk import sync_directory
from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.operators.columns import Decimal, Delimiter, SchemaCheck
from pipeline_runtime.operators.sdk import (
    OperatorContext,
    OtherColumns,
    Params,
    SinkOperator,
    SinkWriter,
)

_FILE = words_for_pattern(
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
    "a file name consists of at most 100 letters, digits, dots, underscores and hyphens, and begins with a"
    " letter or a digit, such as results.csv",
)


_DECIMALS: list[JsonValue] = [
    {"title": "A point, as in 1.5", "value": "."},
    {"title": "A comma, as in 1,5", "value": ","},
]


class CsvSinkParams(Params):
    file: str = Field(
        default="output.csv", pattern=_FILE, title="Name of the file", description="the name of the file"
    )
    columns: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=COLUMNS_MAX,
        description="the columns to write, in this order; empty: all",
    )
    delimiter: Delimiter = ","
    decimal: Decimal = Field(
        default=".",
        title="Decimal mark",
        description="what stands before the decimals of a number: a point, as in 1.5, or a comma, as in 1,5",
        json_schema_extra={"x-choices": _DECIMALS},
    )
    byte_order_mark: bool = Field(
        default=False,
        title="Mark the file as UTF-8",
        description="begin the file with a byte order mark, with which Excel shows umlauts as they are",
    )
    header: bool = Field(
        default=True,
        title="Begin with a line of column names",
        description="write the column names in the first line",
    )
    time: bool = Field(
        default=False,
        title="Begin each row with its time",
        description="write the event time as the first column, named time",
    )


class CsvSinkDamaged(RuntimeError):
    """The file is shorter than what was committed, so somebody else has changed it."""


class CsvSink(SinkOperator):
    """Writes its input to a CSV file (RFC 4180: lines end in CR LF), which you can download from the
    dashboard.

    Each row is in the file exactly once, whatever happens. The element writes and syncs a batch before the
    batch is committed. The file's length is part of the commit, and at a start the element cuts off whatever
    was not committed. A file keeps the columns with which it began, even if its input gets other columns in
    an upgrade. The file belongs to the element's checkpoint, so it moves with the element. Timestamps are ISO
    8601 in UTC. Null is an empty cell.

    For an Excel whose language writes 1,5, choose the semicolon as the delimiter, the comma as the decimal
    mark, and the mark for UTF-8.
    """

    type = "csv-sink"
    title = "CSV file"
    summary = "Writes rows to a CSV file, exactly once"
    category = "sinks"
    icon = "file-down"
    Params = CsvSinkParams
    example = {"file": "power.csv", "time": True}

    params: CsvSinkParams

    @classmethod
    def columns_may_change(cls, params: Mapping[str, Any]) -> OtherColumns:
        """A file keeps the columns with which it began. Without a header nobody knows them later."""
        return "any" if params.get("header", True) or params.get("columns") else "none"

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.columns or ()):
                check.column(schema, name, f"params.columns[{index}]")
            if self.params.time:
                check.unique(["time", *(self.params.columns or schema.names)], "params.time")
        return schema

    def open(self, ctx: OperatorContext) -> SinkWriter:
        columns = self.params.columns or ctx.input_schemas["in"].names
        return CsvSinkWriter(ctx.directory / self.params.file, self.params, columns)


class CsvSinkWriter(SinkWriter):
    """The mark is {"length": bytes, "rows": rows without the header}."""

    def __init__(self, path: Path, params: CsvSinkParams, columns: tuple[str, ...]) -> None:
        self.path = path
        self.params = params
        self.columns = columns
        self.mark: dict[str, int] = {"length": 0, "rows": 0}
        self.file: io.BufferedRandom | None = None

    def restore(self, mark: Any) -> None:
        """Cuts the file to what `mark` says, and creates it if there is none.

        Raises CsvSinkDamaged when the file lacks what was committed.
        """
        self.close()
        wanted = {"length": 0, "rows": 0} if mark is None else dict(mark)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        self.file = self.path.open("x+b" if new else "r+b")
        length = self.file.seek(0, os.SEEK_END)
        if length < wanted["length"]:
            self.close()
            raise CsvSinkDamaged(
                f"{self.path.name} has {length} bytes, but {wanted['length']} were committed: it was changed"
                " by another program. Nothing was written to it; restore the element from a checkpoint."
            )
        self.file.truncate(wanted["length"])
        if self.params.header and wanted["length"]:
            self.columns = self._columns_of_file()
        self.file.seek(wanted["length"])
        os.fsync(self.file.fileno())
        if new:
            sync_directory(self.path.parent)
        self.mark = wanted

    def _columns_of_file(self) -> tuple[str, ...]:
        """The columns with which the file began, by its header. The input may have others by now."""
        with self.path.open(encoding="utf-8-sig", newline="") as opened:
            names = next(csv.reader(opened, delimiter=self.params.delimiter), [])
        return tuple(names[1:] if self.params.time else names)

    def write(self, rows: pa.Table, seq: int) -> dict[str, int]:
        if self.file is None:
            raise RuntimeError("restore() comes before write(): only it knows where the file ends")
        if rows.num_rows == 0:
            return self.mark
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self.params.delimiter, lineterminator="\r\n")
        names = ["_time", *self.columns] if self.params.time else list(self.columns)
        if self.params.header and self.mark["length"] == 0:
            writer.writerow(["time" if name == "_time" else name for name in names])
        columns = [
            _cells(rows.column(name), self.params.decimal)
            if name in rows.column_names
            else [None] * rows.num_rows
            for name in names
        ]
        writer.writerows(zip(*columns, strict=True))
        marked = self.params.byte_order_mark and self.mark["length"] == 0
        data = text.getvalue().encode("utf-8-sig" if marked else "utf-8")
        self.file.write(data)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.mark = {
            "length": self.mark["length"] + len(data),
            "rows": self.mark["rows"] + rows.num_rows,
        }
        return self.mark

    def lengths(self, mark: Any) -> dict[str, int]:
        return {self.path.name: mark["length"] if mark is not None else 0}

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


def _cells(column: pa.ChunkedArray, decimal: str) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_timestamp(column.type):
        return [_iso(value) for value in values]
    if pa.types.is_boolean(column.type):
        return [None if value is None else "true" if value else "false" for value in values]
    if pa.types.is_floating(column.type) and decimal != ".":
        return [None if value is None else repr(value).replace(".", decimal) for value in values]
    return values


def _iso(value: datetime | None) -> str | None:
    if value is None:
        return None
    time = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
