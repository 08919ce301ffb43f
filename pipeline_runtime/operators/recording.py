"""Recorded files: what columns they have, and their rows as Arrow, parsed once per process."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from pipeline_runtime.model.schema import Field, FieldType
from pipeline_runtime.operators.times import ISO_PATTERN, NUMBER_PATTERN, read_iso, read_times

DATA = Path(__file__).parent / "data"
HEAD_BYTES = 64 * 1024

COLUMNS_MAX = 2000
ROW_BYTES_MAX = 1 << 20
"""A row of up to so many bytes is read, one of more than twice as many never: a quote that is not closed
makes one row of all that follows."""
UNPACKED_BYTES_MAX = 2 << 30
UNPACKED_RATIO_MAX = 100
UNPACKED_BYTES_FREE = 4 << 20  # for which no ratio is asked
MEMORY_BYTES_MAX = 2 << 30
MEMORY_RATIO_MAX = 200  # to the bytes on the disk
MEMORY_BYTES_FREE = 128 << 20
_END_S = 1.0
_BAD_ROW_BYTES = 400  # that a malformed row takes beside its text

_GZIP_MAGIC = b"\x1f\x8b"
_PATTERNS = {
    FieldType.INTEGER: r"^[+-]?\d{1,18}$",
    FieldType.NUMBER: NUMBER_PATTERN,
    FieldType.BOOLEAN: r"^(?i:true|false|yes|no|0|1)$",
    FieldType.TIMESTAMP: ISO_PATTERN,
}
_ARROW_TYPES = {
    FieldType.INTEGER: pa.int64(),
    FieldType.NUMBER: pa.float64(),
    FieldType.STRING: pa.string(),
    FieldType.BOOLEAN: pa.bool_(),
    FieldType.TIMESTAMP: pa.timestamp("us", "UTC"),
}


_TIMESTAMP = _ARROW_TYPES[FieldType.TIMESTAMP]
_TIME = "_recorded"  # no column is called so: names of columns begin with another character


def arrow_type(type_: FieldType) -> pa.DataType:
    return _ARROW_TYPES[type_]


METADATA = "fogline"
"""The key of a table's facts in the metadata of its Parquet file."""


class Facts(BaseModel):
    """What is known of a table that was imported, without reading its rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[Field, ...]
    time: bool  # whether each row has a recorded time
    rows: int
    usual_interval_s: float | None = None
    zone: str = "UTC"


def facts_of(path: Path) -> Facts:
    """Returns what the import noted in the Parquet file. ValueError: it is no file of the import."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        return Facts.model_validate_json(metadata[METADATA.encode()])
    except (pa.ArrowInvalid, KeyError) as error:
        raise ValueError("it is no table that Fogline imported") from error


@dataclass(frozen=True)
class Layout:
    """How a file's text is to be read. `time_format`: see `times.read_times`."""

    columns: tuple[Field, ...]
    delimiter: str = ","
    header: bool = True
    time_column: str | None = None
    time_format: str = "iso"
    decimal: str = "."


@dataclass(frozen=True)
class Demo:
    """A recording that is shipped with Fogline."""

    file: str
    layout: Layout


def _debs2012() -> Demo:
    whole = ["index", "mf01", "mf02", "mf03"]
    analog = ["pc13", "pc14", "pc15", "pc25", "pc26", "pc27", "res"]
    booleans = [f"bm{n:02}" for n in range(5, 11)]
    rest = [f"pp{n:02}" for n in (*range(1, 22), *range(31, 37))]
    rest += [f"pc{n:02}" for n in (*range(1, 7), *range(19, 24))]
    fields = [Field(name="ts", type=FieldType.TIMESTAMP)]
    fields += [Field(name=name, type=FieldType.INTEGER) for name in (*whole, *analog)]
    fields += [Field(name=name, type=FieldType.BOOLEAN) for name in booleans]
    fields += [Field(name=name, type=FieldType.INTEGER) for name in rest]
    return Demo("debs2012-sample.tsv.gz", Layout(tuple(fields), "\t", header=False, time_column="ts"))


def _additives() -> Demo:
    fields = [Field(name="ts", type=FieldType.TIMESTAMP)]
    fields += [Field(name=f"mf{n:02}", type=FieldType.INTEGER) for n in range(1, 4)]
    fields += [Field(name=f"bm{n:02}", type=FieldType.BOOLEAN) for n in range(5, 11)]
    return Demo("debs2012-additives.csv.gz", Layout(tuple(fields), time_column="ts"))


def _wind_turbine() -> Demo:
    fields = [Field(name="time", type=FieldType.TIMESTAMP), Field(name="turbine", type=FieldType.STRING)]
    fields += _measured(FieldType.NUMBER, wind_speed="m/s", power="kW")
    fields += _measured(FieldType.NUMBER, pitch="°", nacelle_angle="°", wind_direction="°", temperature="°C")
    return Demo("wind-turbine.csv.gz", Layout(tuple(fields), time_column="time"))


def _household_power() -> Demo:
    fields = [Field(name="time", type=FieldType.TIMESTAMP)]
    fields += _measured(FieldType.NUMBER, power="kW", reactive_power="kvar", voltage="V", current="A")
    fields += _measured(FieldType.INTEGER, kitchen="Wh", laundry="Wh", heating="Wh")
    return Demo("household-power.csv.gz", Layout(tuple(fields), time_column="time"))


def _measured(type_: FieldType, **units: str) -> list[Field]:
    return [Field(name=name, type=type_, unit=unit) for name, unit in units.items()]


def _ecg() -> Demo:
    fields = (Field(name="ts", type=FieldType.TIMESTAMP), Field(name="adc", type=FieldType.INTEGER))
    return Demo("ecg.csv.gz", Layout(fields, time_column="ts"))


DEMOS = {
    "demo:debs2012": _debs2012(),
    "demo:debs2012-additives": _additives(),
    "demo:wind-turbine": _wind_turbine(),
    "demo:household-power": _household_power(),
    "demo:ecg": _ecg(),
}


@dataclass(frozen=True)
class Recording:
    """A parsed file of n rows.

    table: n rows of the layout's columns, then `_reject` and `_raw` (null where the row is good);
    time_us: the recorded time of each row as Unix time, or None without a time column;
    due_us: (n,) when each row is due after the first, never falling; period_us: of one loop.
    """

    table: pa.Table
    time_us: NDArray[np.int64] | None
    due_us: NDArray[np.int64] | None
    period_us: int

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)


def head_text(head: bytes) -> tuple[str, bool]:
    """(the readable beginning of a file, whether that is all of it). It may be gzip, and cut anywhere: a last
    line that was cut is left out. ValueError says what is wrong."""
    if b"\0" in head and not head.startswith(_GZIP_MAGIC):
        raise ValueError("the file is not text in UTF-8; save it as CSV (UTF-8), then upload it again")
    unpacked = head
    if head.startswith(_GZIP_MAGIC):
        try:
            unpacked = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error as error:
            raise ValueError(f"the gzip file is damaged: {error}") from error
    whole = max(len(head), len(unpacked)) < HEAD_BYTES
    text = unpacked.decode("utf-8-sig", errors="replace")
    if not whole and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    return text, whole


def head_rows(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """(line, from 1, and cells) of each row that is not empty. The line of a long row is its first."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows, line = [], 1
    try:
        for row in reader:
            if row:
                rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"line {line} cannot be read: {error}") from error
    if not rows:
        raise ValueError("the file is empty")
    if len(rows[0][1]) > COLUMNS_MAX:
        raise ValueError(f"the file has {len(rows[0][1]):,} columns; at most {COLUMNS_MAX:,} go")
    return rows


def infer_columns(
    head: bytes, delimiter: str = ",", header: bool = True, decimal: str = "."
) -> tuple[Field, ...]:
    """Names and types from the first bytes of a CSV file (gzip too); ValueError says what is wrong.

    A column is of the narrowest type that all its values in the head have; one without any value is
    a string.
    """
    text, _ = head_text(head)
    return columns_of([row for _, row in head_rows(text, delimiter)], header, decimal)


def columns_of(rows: Sequence[Sequence[str]], header: bool, decimal: str = ".") -> tuple[Field, ...]:
    """Names and types of at least one row; those with another number of cells than the first say nothing."""
    names = header_names(rows[0]) if header else [f"c{n + 1}" for n in range(len(rows[0]))]
    body = [row for row in (rows[1:] if header else rows) if len(row) == len(names)]
    return tuple(
        Field(name=name, type=narrowest([row[index].strip() for row in body], decimal))
        for index, name in enumerate(names)
    )


def header_names(row: Sequence[str]) -> list[str]:
    """Names that Fogline can use: trimmed, not empty, not starting with _, no two alike."""
    names: list[str] = []
    taken: set[str] = set()
    for index, text in enumerate(row):
        name = re.sub(r"[`\x00-\x1f]", "", text).strip().lstrip("_.")[:100] or f"c{index + 1}"
        candidate, number = name, 2
        while candidate.lower() in taken:
            candidate, number = f"{name}_{number}", number + 1
        names.append(candidate)
        taken.add(candidate.lower())
    return names


def narrowest(values: Sequence[str], decimal: str = ".") -> FieldType:
    given = [value for value in values if value]
    # 0 and 1 alone are read as integers: a boolean that is written so cannot be told apart.
    for type_ in (FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN, FieldType.TIMESTAMP):
        texts = [value.replace(decimal, ".") for value in given] if type_ is FieldType.NUMBER else given
        if given and all(re.match(_PATTERNS[type_], value) for value in texts):
            return type_
    return FieldType.STRING


def load_recording(path: Path, layout: Layout) -> Recording:
    """The parsed file, kept in memory for the next reader of the same file and layout."""
    stat = path.stat()
    return _load(str(path), stat.st_mtime_ns, stat.st_size, layout)


@lru_cache(maxsize=4)
def _load(path: str, _modified_ns: int, size: int, layout: Layout) -> Recording:
    """Block by block: the text is never in memory as a whole."""
    names = [*(field.name for field in layout.columns), "_reject", "_raw", _TIME]
    types = [*(arrow_type(field.type) for field in layout.columns), pa.string(), pa.string(), _TIMESTAMP]
    budget = min(MEMORY_BYTES_MAX, MEMORY_BYTES_FREE + MEMORY_RATIO_MAX * size)
    bad = _BadRows(budget)
    blocks: list[pa.RecordBatch] = []
    taken = 0
    with Path(path).open("rb") as file:
        for texts in _text_blocks(_Text(file, size), layout, bad):
            blocks.append(pa.record_batch(parsed(texts, layout), names=names))
            taken += blocks[-1].nbytes
            if taken + bad.bytes > budget:
                raise _too_much(budget)
    table = pa.Table.from_batches(blocks, pa.schema(list(zip(names, types, strict=True))))
    table = _with_gaps(table, bad.rows, 2 if layout.header else 1).combine_chunks()
    times = _filled(table.column(_TIME)) if layout.time_column is not None and table.num_rows else None
    return _timed(table.drop_columns([_TIME]), times)


def parsed(texts: pa.Table, layout: Layout) -> list[pa.Array]:
    """A block's columns; why each row is refused, or null; the text of those that are; each row's time."""
    columns, reasons = _convert(texts, layout)
    times = _times(texts, columns, layout, reasons)
    reject, raw = pa.nulls(texts.num_rows, pa.string()), pa.nulls(texts.num_rows, pa.string())
    if reasons:
        lines: list[str | None] = [None] * texts.num_rows
        for row in reasons:
            cells = texts.slice(row, 1).to_pylist()[0].values()
            lines[row] = layout.delimiter.join(str(value) for value in cells)
        reject = pa.array([reasons.get(row) for row in range(texts.num_rows)], pa.string())
        raw = pa.array(lines, pa.string())
    return [*columns, reject, raw, times]


def _too_much(budget: int) -> ValueError:
    return ValueError(f"the recording needs more than {budget:,} bytes of memory; split it")


class _BadRows:
    """Rows with a wrong number of cells: (number in the file, why, text)."""

    def __init__(self, bytes_max: int) -> None:
        self.rows: list[tuple[int, str, str]] = []
        self.bytes = 0
        self.bytes_max = bytes_max

    def __call__(self, row: Any) -> str:
        reason = wrong_cells(row.actual_columns, row.expected_columns)
        self.rows.append((int(row.number), reason, str(row.text)))
        self.bytes += _BAD_ROW_BYTES + len(row.text)
        return "skip" if self.bytes <= self.bytes_max else "error"


class _Text(io.RawIOBase):
    """A file's text as UTF-8, unpacked when it is gzip: with what is no UTF-8 replaced, without a mark at its
    beginning, and no more of it than its size on the disk allows."""

    def __init__(self, file: io.BufferedReader, size: int) -> None:
        self._packed = file.peek(2).startswith(_GZIP_MAGIC)
        self._source: Any = gzip.GzipFile(fileobj=file) if self._packed else file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._left = b""
        self.unpacked = 0
        self._ratio_bytes = UNPACKED_BYTES_FREE + UNPACKED_RATIO_MAX * size
        self.refused: ValueError | None = None  # what Arrow says of it is not for people
        self._reading = threading.Lock()
        self._ended = False
        self._at_end = threading.Event()

    def readable(self) -> bool:
        return True

    def end(self) -> None:
        """Arrow reads ahead in a thread of its own, which must not read when Python comes to its end."""
        with self._reading:
            self._ended = True
        self._at_end.wait(_END_S)  # nobody reads any more when Arrow has read as far ahead as it may

    def readinto(self, buffer: Any) -> int:
        with self._reading:
            count = 0 if self._ended else self._fill(buffer)
        if not count:
            self._at_end.set()
        return count

    def _fill(self, buffer: Any) -> int:
        while not self._left:
            piece = self._source.read(len(buffer))
            self._count(len(piece))
            self._left = self._decoder.decode(piece, final=not piece).encode()
            if not piece and not self._left:
                return 0
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def _count(self, more: int) -> None:
        self.unpacked += more
        if not self._packed or self.unpacked <= min(UNPACKED_BYTES_MAX, self._ratio_bytes):
            return
        if self.unpacked > UNPACKED_BYTES_MAX:
            why = f"is larger than {UNPACKED_BYTES_MAX:,} bytes when it is unpacked"
        else:
            why = f"is more than {UNPACKED_RATIO_MAX} times as large when it is unpacked"
        self.refused = ValueError(f"the recording {why}; split it, or upload it unpacked")
        self._at_end.set()
        raise self.refused


def _text_blocks(text: _Text, layout: Layout, bad: _BadRows) -> Iterator[pa.Table]:
    """All cells as text, without the rows that have a wrong number of cells: those go to `bad`."""
    names = [field.name for field in layout.columns]
    try:
        reader = pa_csv.open_csv(
            # Buffered, so that each block is full: of short ones, one row may touch three.
            io.BufferedReader(text, ROW_BYTES_MAX),
            # One thread: only then does a malformed row know its number.
            read_options=pa_csv.ReadOptions(
                column_names=names,
                skip_rows=1 if layout.header else 0,
                use_threads=False,
                block_size=ROW_BYTES_MAX,
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=bad
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types={name: pa.string() for name in names}, strings_can_be_null=False
            ),
        )
        for block in reader:
            yield pa.Table.from_batches([block])
    except pa.ArrowInvalid as error:
        if text.refused is not None:
            raise text.refused from error
        if bad.bytes > bad.bytes_max:
            raise _too_much(bad.bytes_max) from error
        short = text.unpacked < ROW_BYTES_MAX
        if "straddl" in str(error) or ("skip initial" in str(error) and not short):
            raise ValueError(
                f"the recording has a row of more than {ROW_BYTES_MAX:,} bytes; is a closing quote missing?"
            ) from error
        if "Empty CSV" not in str(error) and "skip initial" not in str(error):
            raise  # else it has no rows
    finally:
        text.end()


def _with_gaps(table: pa.Table, bad: list[tuple[int, str, str]], first: int) -> pa.Table:
    """With a row for each malformed one where it stood, so that every row keeps its place."""
    if not bad:
        return table
    # Each was counted with those before it; `first` is the number of a file's first row.
    ranked = sorted(bad)
    places = np.array(
        [min(number - first, table.num_rows + index) for index, (number, _, _) in enumerate(ranked)], np.int64
    )
    good = np.ones(table.num_rows + len(ranked), dtype=bool)
    good[places] = False
    found = table.take(pa.array(np.cumsum(good) - 1, pa.int64(), mask=~good))
    for name, texts in (
        ("_reject", [why for _, why, _ in ranked]),
        ("_raw", [text for _, _, text in ranked]),
    ):
        column = found.column(name).combine_chunks()
        column = pc.replace_with_mask(column, pa.array(~good), pa.array(texts, pa.string()))
        found = found.set_column(found.column_names.index(name), name, column)
    return found


def _convert(texts: pa.Table, layout: Layout) -> tuple[list[pa.Array], dict[int, str]]:
    """Columns of the layout's types and {row: reason} where a cell is not of its type."""
    columns: list[pa.Array] = []
    reasons: dict[int, str] = {}
    for field in layout.columns:
        text = texts.column(field.name).combine_chunks()
        if field.type is FieldType.STRING:
            columns.append(text)
            continue
        is_time = field.name == layout.time_column and layout.time_format != "iso"
        trimmed = pc.utf8_trim_whitespace(text)
        trimmed = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
        if is_time and field.type is FieldType.TIMESTAMP:
            values = read_times(trimmed, layout.time_format)
        else:
            number = field.type is FieldType.NUMBER and layout.decimal != "."
            plain = pc.replace_substring(trimmed, layout.decimal, ".") if number else trimmed
            values = parse_cells(plain, field.type)
        columns.append(values)
        wrong = pc.and_(pc.is_valid(trimmed), pc.is_null(values)).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(wrong).tolist():
            shown = str(text[row].as_py())[:40]
            reasons.setdefault(row, f'column "{field.name}": {shown!r} is not {field.type.words}')
    return columns, reasons


def wrong_cells(actual: int, expected: int) -> str:
    """Why a row with another number of cells than its table is refused: 'has 1 cell instead of 4'."""
    return f"has {actual} {'cell' if actual == 1 else 'cells'} instead of {expected}"


def parse_cells(text: pa.Array, type_: FieldType) -> pa.Array:
    """Null where a text is not of the type."""
    matches = pc.match_substring_regex(text, _PATTERNS[type_])
    good = pc.if_else(matches, text, pa.scalar(None, pa.string()))
    if type_ is FieldType.BOOLEAN:
        values = pc.is_in(pc.utf8_lower(good), value_set=pa.array(["true", "yes", "1"]))
        values = pc.if_else(pc.is_null(good), pa.scalar(None, pa.bool_()), values)
    elif type_ is FieldType.TIMESTAMP:
        values = read_iso(good)
    else:
        values = pc.cast(pc.replace_substring_regex(good, r"^\+", ""), arrow_type(type_))
    if type_ is FieldType.NUMBER:
        # A number too large for a double is read as infinity, which is no JSON number.
        values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, pa.float64()))
    return values


def _times(texts: pa.Table, columns: list[pa.Array], layout: Layout, reasons: dict[int, str]) -> pa.Array:
    """Each row's recorded time, or null; a row without one is rejected. Without a time column, nulls."""
    if layout.time_column is None:
        return pa.nulls(texts.num_rows, _TIMESTAMP)
    index = [field.name for field in layout.columns].index(layout.time_column)
    values = columns[index]
    if layout.columns[index].type is not FieldType.TIMESTAMP:
        text = pc.utf8_trim_whitespace(texts.column(layout.time_column).combine_chunks())
        values = read_times(text, layout.time_format)
    unknown = pc.is_null(values).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(unknown).tolist():
        reasons.setdefault(row, f'column "{layout.time_column}" holds no time')
    return values


def _filled(times: pa.ChunkedArray) -> NDArray[np.int64]:
    """In Unix microseconds. A row without a time takes that of the row before it, so that it is released in
    its turn."""
    values = times.combine_chunks()
    known = pc.is_valid(values).to_numpy(zero_copy_only=False)
    micros = pc.fill_null(pc.cast(values, pa.int64()), 0).to_numpy(zero_copy_only=False)
    if not known.any():
        return np.zeros(len(micros), dtype=np.int64)
    last = np.maximum.accumulate(np.where(known, np.arange(len(micros)), -1))
    filled = micros[np.where(last < 0, int(np.argmax(known)), last)]
    return np.asarray(filled, dtype=np.int64)


def _timed(table: pa.Table, time_us: NDArray[np.int64] | None) -> Recording:
    if time_us is None or len(time_us) == 0:
        return Recording(table, None, None, 0)
    due = np.maximum.accumulate(time_us - time_us[0])
    span = int(due[-1])
    # A loop begins one typical step after the last row, so that no two rows share a time by that.
    step = max(span // max(len(due) - 1, 1), 1)
    return Recording(table, time_us, due, span + step)
