"""Imports a file: makes a Parquet file of typed columns from its bytes, in one pass and in bounded memory.

DuckDB reads the text piece by piece. Each piece has whole rows. The rows keep their order. The same file and
the same reading always make the same Parquet file, byte for byte.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline_runtime.model.schema import Field, FieldType
from pipeline_runtime.operators.recording import Facts, arrow_type
from webapp.imports.ahead import ahead
from webapp.imports.convert_cells import Batch, text_batches
from webapp.imports.convert_check import check
from webapp.imports.convert_order import Order, interval_us
from webapp.imports.convert_records import json_batches, parquet_batches, sheet_batches
from webapp.imports.convert_report import BAD, Counts
from webapp.imports.convert_sql import Moment, Query, connected, missing
from webapp.imports.convert_write import Writer
from webapp.imports.convert_zone import Zone
from webapp.imports.faults import Cancelled, ImportFault
from webapp.imports.footer import is_remark, is_summary
from webapp.imports.reading import ColumnReading, Jump, Reading, Report, Source
from webapp.imports.table_width import CUT_OFF
from webapp.imports.time_text import COUNTED_IN_UTC, is_count, moment as in_iso, time_reader
from webapp.imports.turns import turns_of

ROWS_MAX = 1_000_000_000
TABLE = "table.parquet"
_RAW_CHARACTERS = 2000
_BACKWARD_ROWS = 100_000

_BATCHES = {
    "text": text_batches,
    "json-lines": json_batches,
    "parquet": parquet_batches,
    "xlsx": sheet_batches,
}

Told = Callable[[int, int, int], None]


def convert(path: Path, reading: Reading, out: Path, told: Told, cancelled: Callable[[], bool]) -> Report:
    """Writes the table of `path` to `out`. Calls `told(bytes_done, bytes_total, rows)` after each piece.

    If a column of whole numbers turns out to have decimals, a second pass reads the column as numbers. After
    a crash, `out` is whole or absent. Raises Cancelled, and ImportFault, whose text says what is wrong.
    """
    check(reading)
    directory = Path(tempfile.mkdtemp(prefix=f"{out.name}.", dir=out.parent))
    try:
        first = _Import(path, reading, directory, told, cancelled)
        report, wider = first.run(), first.counts.with_decimals()
        if wider:
            columns = tuple(
                each.model_copy(update={"type": FieldType.NUMBER}) if each.name in wider else each
                for each in reading.columns
            )
            reading = reading.model_copy(update={"columns": columns})
            report = _Import(path, reading, directory, told, cancelled).run()
        os.replace(directory / TABLE, out)
        return report.model_copy(update={"with_decimals": wider})
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class _Import:
    def __init__(
        self,
        path: Path,
        reading: Reading,
        directory: Path,
        told: Told,
        cancelled: Callable[[], bool],
    ) -> None:
        self.path, self.reading, self.directory = path, reading, directory
        self.told, self.cancelled = told, cancelled
        self.counts = Counts(reading)
        self.typing = _Typing(reading)
        self.order = Order(reading.time) if reading.time is not None else None
        self.jump: Jump | None = None
        self.skipped = self.footer = 0
        self.begins: int | None = None
        self.ends: int | None = None
        self._interval: int | None = None
        self._held: pa.Table | None = None

    def run(self) -> Report:
        """Writes the table into the directory and returns the report."""
        with Writer(self.directory / TABLE, self._schema()) as writer:
            tables = self._typed()
            if self.reading.time is not None and self.reading.time.newest_first:
                tables = self._oldest_first(tables)
            waiting: pa.Table | None = None
            for table in tables:
                if waiting is not None:
                    self._write(writer, waiting, False)
                waiting = table
            if waiting is not None:
                self._write(writer, waiting, True)
            report = self._report()
            writer.facts = self._facts(report)
        if self.cancelled():
            raise Cancelled
        return report

    def _typed(self) -> Iterator[pa.Table]:
        """Yields the file's rows with typed columns, in its order, without the footer."""
        rows = 0
        waiting: pa.Table | None = None
        batch: Batch | None = None
        connection = connected(self.directory)
        try:
            batches = _BATCHES[self.reading.kind]
            made = batches(self.path, self.reading, self.typing.query, connection, self.directory)
            with closing(ahead(made)) as ready:
                for batch in ready:
                    if self.cancelled():
                        raise Cancelled
                    if waiting is not None:
                        yield waiting
                    waiting = self.typing.table(batch)
                    rows += waiting.num_rows
                    if rows > ROWS_MAX:
                        raise ImportFault(f"The file has more than {ROWS_MAX:,} rows.", None, "Split it.")
                    self.told(batch.bytes_done, batch.bytes_total, rows)
        finally:
            connection.close()
        if waiting is not None and batch is not None:
            kept = (
                self._without_footer(waiting)
                if self.order is not None
                else self._without_sums(waiting, batch)
            )
            yield kept if batch.ended or self.footer else _with_cut_off_row(kept, batch)

    def _without_sums(self, table: pa.Table, batch: Batch) -> pa.Table:
        """Removes the sums after the last row with a time. The first cell of such a line is a word, and
        others are numbers."""
        first, end = self.reading.columns[0], table.num_rows
        if first.source != 0 or first.type not in (FieldType.INTEGER, FieldType.NUMBER):
            return table
        cells = table[first.name]
        while end > 1 and not cells[end - 1].is_valid and is_summary(batch.text(end - 1, _RAW_CHARACTERS)):
            end -= 1
        self.footer = table.num_rows - end
        return table.slice(0, end)

    def _without_footer(self, table: pa.Table) -> pa.Table:
        ending = pa.array([text is not None and self._is_behind(text) for text in table["_raw"].to_pylist()])
        short = pc.or_(table["_short"], ending)
        idle = pc.and_(short, pc.invert(table["_known"])).to_numpy()
        end = len(idle) if not idle.all() else 0
        while end and idle[end - 1]:
            end -= 1
        if end == 0 and table.num_rows:
            return table  # no row has a time: the report says so
        self.footer = table.num_rows - end
        return table.slice(0, end)

    def _is_behind(self, text: str) -> bool:
        if self.reading.kind not in ("text", "xlsx"):
            return False
        return is_summary(text) or is_remark(text, self.reading.delimiter)

    def _oldest_first(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yields all rows from the last to the first. A temporary file holds them meanwhile."""
        path = self.directory / "backwards.parquet"
        writer = None
        for table in tables:
            whole = pa.concat_tables(
                [self.typing.schema.empty_table(), table], promote_options="default"
            ).select(self.typing.schema.names)
            writer = writer or pq.ParquetWriter(path, self.typing.schema, compression="lz4")
            writer.write_table(whole, row_group_size=_BACKWARD_ROWS)
        if writer is None:
            return
        writer.close()
        with pq.ParquetFile(path) as file:
            for group in reversed(range(file.num_row_groups)):
                table = file.read_row_group(group)
                yield table.take(pa.array(np.arange(table.num_rows - 1, -1, -1)))

    def _write(self, writer: Writer, table: pa.Table, last: bool) -> None:
        if self.order is None:
            empty = table.filter(pc.is_null(table["_reject"])) if last and not table.num_rows else table
            self.counts.add(empty)
            writer.add(table.select([*self.typing.names, "_reject", "_raw"]))
            return
        table = self.typing.in_utc(table)
        if self._held is not None:
            table = pa.concat_tables([self._held, table], promote_options="default")
            self._held = None
        table, time = self._times(table, self.order, last)
        time, due = self.order.due(time)
        if len(time):
            low, high = int(time.min()), int(time.max())
            self.begins = low if self.begins is None else min(self.begins, low)
            self.ends = high if self.ends is None else max(self.ends, high)
        self.counts.add(table)
        out = table.select(self.typing.names)
        out = out.append_column("_time", pa.array(time, pa.int64()).cast(arrow_type(FieldType.TIMESTAMP)))
        out = out.append_column("_due_us", pa.array(due, pa.int64()))
        for name in ("_reject", "_raw"):
            out = out.append_column(name, table[name])
        writer.add(out)

    def _times(self, table: pa.Table, order: Order, last: bool) -> tuple[pa.Table, NDArray[np.int64]]:
        """Returns the rows that are kept, and their times."""
        known = table["_known"].to_numpy()
        time = table["_at"].to_numpy()
        if order.reading.marks == "end":
            if self._interval is None:
                self._interval = interval_us(time[known])
            time = time - self._interval
        time = order.filled(time, known)
        stay, held = order.glitches(time, last)
        if held:
            self._held = table.slice(table.num_rows - held)
            table, time, stay = table.slice(0, len(time) - held), time[:-held], stay[:-held]
        self._name_jump(table, time, order)
        if not stay.all():
            self.skipped += int((~stay).sum())
            table, time = table.filter(pa.array(stay)), time[stay]
        return table, time

    def _name_jump(self, table: pa.Table, time: NDArray[np.int64], order: Order) -> None:
        found = order.largest(time)
        if found is None or (self.jump is not None and abs(found[1]) <= abs(self.jump.seconds) * 1e6):
            return
        row, step = found
        self.jump = Jump(
            line=table["_line"][row].as_py(),
            before=in_iso(int(time[row]) - step),
            after=in_iso(int(time[row])),
            seconds=step / 1e6,
        )

    def _schema(self) -> pa.Schema:
        fields = [(column.name, arrow_type(column.type)) for column in self.reading.columns]
        if self.reading.time is not None:
            fields += [("_time", arrow_type(FieldType.TIMESTAMP)), ("_due_us", pa.int64())]
        return pa.schema([*fields, ("_reject", pa.string()), ("_raw", pa.string())])

    def _facts(self, report: Report) -> Facts:
        return Facts(
            columns=tuple(
                Field(name=each.name, type=each.type, unit=each.unit) for each in self.reading.columns
            ),
            time=self.reading.time is not None,
            rows=report.rows,
            usual_interval_s=report.usual_interval_s,
            zone=self.reading.time.zone if self.reading.time is not None else "UTC",
        )

    def _report(self) -> Report:
        usual = self.order.usual_us() if self.order is not None else None
        good = self.counts.rows > self.counts.dead
        return Report(
            rows=self.counts.rows,
            dead=self.counts.dead,
            first_dead=self.counts.first_dead,
            columns=self.counts.columns(),
            begins=in_iso(self.begins) if self.begins is not None and good else None,
            ends=in_iso(self.ends) if self.ends is not None and good else None,
            usual_interval_s=usual / 1e6 if usual is not None else None,
            largest_jump=self.jump,
            skipped=self.skipped,
            footer=self.footer,
            questions=self.counts.questions(self.jump),
        )


def _with_cut_off_row(table: pa.Table, batch: Batch) -> pa.Table:
    """Marks the last row as a dead letter if the file was cut off in it. That is so if the file does not end
    with a line's end, and if its last row is the only short one. Nobody can know whether the last cell of
    such a row is whole."""
    last = table.num_rows - 1
    short = table["_short"].to_numpy()
    if last < 1 or not short[last] or short[:last].any() or table["_reject"][last].is_valid:
        return table
    for name, text in (("_reject", CUT_OFF), ("_raw", batch.text(batch.table.num_rows - 1, _RAW_CHARACTERS))):
        column = pa.chunked_array([*table[name].slice(0, last).chunks, pa.array([text], pa.string())])
        table = table.set_column(table.column_names.index(name), name, column)
    return table


class _Typing:
    """Turns a batch of texts into typed columns and times, and finds out why a row is a dead letter."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.names = [column.name for column in reading.columns]
        time = reading.time
        self.zone = Zone(time.zone) if time is not None and time.zone != "UTC" else None
        plain = tuple(column for column in reading.columns if column.type is not FieldType.TIMESTAMP)
        moments = [] if time is None else [Moment("", time.columns, time.format)]
        values = 0
        self._places: list[tuple[str, int]] = []  # the name of each column's values in the result
        for column in reading.columns:
            if column.type is not FieldType.TIMESTAMP:
                self._places.append(("v", values))
                values += 1
            elif (
                time is not None and time.columns == (column.source,) and column.format in (None, time.format)
            ):
                self._places.append(("time", 0))
            else:
                self._places.append(("a", len(moments)))
                moments.append(Moment(column.name, (column.source,), column.format or "iso"))
        sources = dict.fromkeys([each.source for each in plain])
        self._zones = [self._new_zone() for _ in moments]
        newest_first = time is not None and time.newest_first
        self._turns = [turns_of(moment.format, newest_first) for moment in moments]
        try:
            for moment in moments:
                time_reader(moment.format)
        except ValueError as error:
            raise ImportFault(
                f"The time's format cannot be read: {error}.", None, "Choose another format."
            ) from error
        # A line with only these characters is no row.
        self._idle = reading.divider + " \t\r\n" + reading.quote
        self.query = Query(reading, tuple(sources), tuple(moments), plain)
        fields = [(column.name, arrow_type(column.type)) for column in reading.columns]
        fields += [
            ("_reject", pa.string()),
            ("_raw", pa.string()),
            ("_line", pa.int64()),
            ("_short", pa.bool_()),
        ]
        fields += [("_known", pa.bool_()), ("_at", pa.int64()), ("_utc", pa.bool_())]
        fields += [(f"{BAD}{number}", pa.string()) for number in range(len(reading.columns))]
        self.schema = pa.schema(fields)

    def _new_zone(self) -> Zone | None:
        return Zone(self.reading.time.zone) if self.reading.time and self.reading.time.zone != "UTC" else None

    def table(self, batch: Batch) -> pa.Table:
        """Returns the batch's rows. Where `_utc` is false, `_at` is a local time in the reading's zone."""
        found, rows = batch.table, batch.table.num_rows
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        bad: dict[str, pa.Array] = {}
        time = self._moment(found, 0) if self.reading.time is not None else None
        for number, (column, (kind, place)) in enumerate(
            zip(self.reading.columns, self._places, strict=True)
        ):
            if kind == "v":
                columns[column.name] = found[f"v{place}"].cast(arrow_type(column.type))
            elif kind == "time":
                columns[column.name] = pa.nulls(rows, arrow_type(column.type))  # `in_utc` puts the values in
            else:
                columns[column.name], texts = self._data_time(found, place, column)
                if texts is not None:
                    bad[f"{BAD}{number}"] = texts
        if found["bad"].null_count < rows:
            bad |= self._bad_texts(found["bad"])
        known, at, utc = time if time is not None else (np.zeros(rows, bool), np.zeros(rows, np.int64), None)
        reject, raw = self._refused(batch, known if time is not None else None)
        columns |= {"_reject": reject, "_raw": raw, "_line": pa.array(batch.lines(), pa.int64())}
        columns |= {"_short": found["short"], "_known": pa.array(known), "_at": pa.array(at, pa.int64())}
        columns["_utc"] = pa.array(utc if utc is not None else np.ones(rows, bool))
        return self._without_idle(pa.table(columns | bad))

    def _without_idle(self, table: pa.Table) -> pa.Table:
        """Removes dead letters that have only delimiters. Excel writes such lines after a table."""
        raw = table["_raw"]
        if raw.null_count == table.num_rows:
            return table
        idle = [text is not None and not text.strip(self._idle) for text in raw.to_pylist()]
        return table.filter(pa.array([not each for each in idle])) if any(idle) else table

    def in_utc(self, table: pa.Table) -> pa.Table:
        """Returns the rows, in the order in which the file gets them, with their times in UTC."""
        at, utc = table["_at"].to_numpy(), table["_utc"].to_numpy()
        known = table["_known"].to_numpy()
        local = ~utc & known
        if self.zone is not None and local.any():
            at = at.copy()
            at[local] = self.zone.to_utc(at[local])
            table = table.set_column(table.column_names.index("_at"), "_at", pa.array(at, pa.int64()))
        for number, (kind, _) in enumerate(self._places):
            if kind == "time":
                values = pa.array(at, pa.int64(), mask=~known).cast(arrow_type(FieldType.TIMESTAMP))
                table = table.set_column(number, self.names[number], values)
        return table

    def _moment(
        self, found: pa.Table, n: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]:
        """Returns (whether a row has this time, microseconds, whether they are in UTC)."""
        moment = self.query.moments[n]
        fast = found[f"a{n}"].combine_chunks()
        if not fast.null_count and not (moment.format == "iso" and self.query.zoned):
            counted = moment.format in COUNTED_IN_UTC
            return np.ones(len(fast), bool), fast.to_numpy(), np.full(len(fast), counted)
        known = pc.is_valid(fast).to_numpy(zero_copy_only=False).copy()
        at = pc.fill_null(fast, 0).to_numpy(zero_copy_only=False).copy()
        utc = np.full(len(at), moment.format in COUNTED_IN_UTC)
        if moment.format == "iso" and self.query.zoned:
            utc = pc.fill_null(found[f"z{n}"].combine_chunks(), False).to_numpy(zero_copy_only=False).copy()
        if known.all():
            return known, at, utc
        read = time_reader(moment.format)
        texts = found[f"t{n}"].combine_chunks()
        left = np.flatnonzero(pc.is_valid(texts).to_numpy(zero_copy_only=False))
        comma = self.reading.decimal == "," and is_count(moment.format)
        for row, text in zip(left.tolist(), texts.drop_null().to_pylist(), strict=True):
            parsed = read(text.replace(",", ".") if comma else text)
            if parsed is not None:
                known[row], (at[row], utc[row]) = True, parsed
        turns = self._turns[n]
        return known, at if turns is None else turns.of(at, known), utc

    def _data_time(self, found: pa.Table, n: int, column: ColumnReading) -> tuple[pa.Array, pa.Array | None]:
        known, at, utc = self._moment(found, n)
        zone = self._zones[n]
        local = known & ~utc
        if zone is not None and local.any():
            at = at.copy()
            at[local] = zone.to_utc(at[local])
        values = pa.array(at, pa.int64(), mask=~known).cast(arrow_type(FieldType.TIMESTAMP))
        if known.all():
            return values, None
        texts = found[f"t{n}"].combine_chunks()
        given = pc.and_(pa.array(~known), pc.is_valid(texts))
        no_value = pa.array(missing(self.reading, column), pa.string())
        given = pc.and_(given, pc.invert(pc.is_in(texts, value_set=no_value)))
        return values, pc.if_else(given, pc.utf8_slice_codeunits(texts, 0, 200), pa.scalar(None, pa.string()))

    def _bad_texts(self, lists: pa.ChunkedArray) -> dict[str, pa.Array]:
        whole = lists.combine_chunks()
        found = {}
        for number, (kind, place) in enumerate(self._places):
            if kind == "v" and self.reading.columns[number].type is not FieldType.STRING:
                texts = pc.list_element(whole, place)
                if texts.null_count < len(texts):
                    found[f"{BAD}{number}"] = texts
        return found

    def _refused(self, batch: Batch, known: NDArray[np.bool_] | None) -> tuple[pa.Array, pa.Array]:
        """Returns why each row is a dead letter, and the row's text. Both are null for a row that is none."""
        rows = batch.table.num_rows
        over = batch.table["over"].to_numpy()
        dead = over if known is None else over | ~known
        if not dead.any():
            return pa.nulls(rows, pa.string()), pa.nulls(rows, pa.string())
        places = np.flatnonzero(dead)
        no_time = self._no_time()
        reasons = np.full(rows, no_time, dtype=object)
        reasons[over] = batch.refused
        texts = np.full(rows, None, dtype=object)
        for row in places.tolist():
            texts[row] = batch.text(row, _RAW_CHARACTERS)
        return pa.array(reasons, pa.string(), mask=~dead), pa.array(texts, pa.string())

    def _no_time(self) -> str:
        if self.reading.time is None:
            return ""
        named: dict[Source, str] = {column.source: column.name for column in self.reading.columns}
        names = [f'"{named.get(source, source)}"' for source in self.reading.time.columns]
        return (
            f"column {names[0]} holds no time"
            if len(names) == 1
            else f"columns {', '.join(names)} hold no time"
        )
