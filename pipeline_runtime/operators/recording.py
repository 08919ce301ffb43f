"""Recorded files: what columns they have, and their rows as Arrow, parsed once per process."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from pipeline_runtime.model.schema import Field, FieldType

DATA = Path(__file__).parent / "data"
HEAD_BYTES = 64 * 1024

UNPACKED_BYTES_MAX = 2 << 30
_PIECE_BYTES = 1 << 20

_GZIP_MAGIC = b"\x1f\x8b"
_PATTERNS = {
    FieldType.INTEGER: r"^[+-]?\d{1,18}$",
    FieldType.NUMBER: r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$",
    FieldType.BOOLEAN: r"^(?i:true|false|yes|no|0|1)$",
    FieldType.TIMESTAMP: r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$",
}
_ARROW_TYPES = {
    FieldType.INTEGER: pa.int64(),
    FieldType.NUMBER: pa.float64(),
    FieldType.STRING: pa.string(),
    FieldType.BOOLEAN: pa.bool_(),
    FieldType.TIMESTAMP: pa.timestamp("us", "UTC"),
}


def arrow_type(type_: FieldType) -> pa.DataType:
    return _ARROW_TYPES[type_]


@dataclass(frozen=True)
class Layout:
    """How a file's text is to be read. `time_format`: iso, epoch_s, epoch_ms or a strptime format."""

    columns: tuple[Field, ...]
    delimiter: str = ","
    header: bool = True
    time_column: str | None = None
    time_format: str = "iso"


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


DEMOS = {"demo:debs2012": _debs2012()}


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


def decompressed_head(head: bytes) -> bytes:
    """The readable beginning of a file, which may be gzip and cut anywhere."""
    if not head.startswith(_GZIP_MAGIC):
        return head
    return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)


def infer_columns(head: bytes, delimiter: str = ",", header: bool = True) -> tuple[Field, ...]:
    """Names and types from the first bytes of a CSV file (gzip too); ValueError says what is wrong.

    A column is of the narrowest type that all its values in the head have; one without any value is
    a string.
    """
    text = decompressed_head(head).decode("utf-8-sig", errors="replace")
    # The last line of a head that was cut is not whole.
    lines = text.splitlines(keepends=True)
    if len(lines) > 1 and len(head) >= HEAD_BYTES:
        lines = lines[:-1]
    rows = [row for row in csv.reader(io.StringIO("".join(lines)), delimiter=delimiter) if row]
    if not rows:
        raise ValueError("the file is empty")
    names = _header_names(rows[0]) if header else [f"c{n + 1}" for n in range(len(rows[0]))]
    body = [row for row in (rows[1:] if header else rows) if len(row) == len(names)]
    return tuple(
        Field(name=name, type=_narrowest([row[index].strip() for row in body]))
        for index, name in enumerate(names)
    )


def _header_names(row: Sequence[str]) -> list[str]:
    """Names that Fogline can use: trimmed, not empty, not starting with _, no two alike."""
    names: list[str] = []
    for index, text in enumerate(row):
        name = re.sub(r"[`\x00-\x1f]", "", text).strip().lstrip("_.")[:100] or f"c{index + 1}"
        taken = {other.lower() for other in names}
        candidate, number = name, 2
        while candidate.lower() in taken:
            candidate, number = f"{name}_{number}", number + 1
        names.append(candidate)
    return names


def _narrowest(values: Sequence[str]) -> FieldType:
    given = [value for value in values if value]
    # 0 and 1 alone are read as integers: a boolean that is written so cannot be told apart.
    for type_ in (FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN, FieldType.TIMESTAMP):
        if given and all(re.match(_PATTERNS[type_], value) for value in given):
            return type_
    return FieldType.STRING


def load_recording(path: Path, layout: Layout) -> Recording:
    """The parsed file, kept in memory for the next reader of the same file and layout."""
    stat = path.stat()
    return _load(str(path), stat.st_mtime_ns, stat.st_size, layout)


@lru_cache(maxsize=4)
def _load(path: str, _modified_ns: int, _size: int, layout: Layout) -> Recording:
    data = _unpacked(Path(path))
    texts, rejects = _parse_text(data, layout)
    columns, reasons = _convert(texts, layout)
    time_us = _times(texts, columns, layout, reasons)
    raw: list[str | None] = [None] * texts.num_rows
    for row in reasons:
        raw[row] = layout.delimiter.join(str(value) for value in texts.slice(row, 1).to_pylist()[0].values())
    for row, (reason, text) in rejects.items():
        reasons[row], raw[row] = reason, text
    reject = [reasons.get(row) for row in range(texts.num_rows)]
    table = pa.table(
        [*columns, pa.array(reject, pa.string()), pa.array(raw, pa.string())],
        names=[*(field.name for field in layout.columns), "_reject", "_raw"],
    ).combine_chunks()
    return _timed(table, time_us)


def _unpacked(path: Path) -> bytes:
    with path.open("rb") as file:
        if not file.peek(2).startswith(_GZIP_MAGIC):
            return file.read()
        data = io.BytesIO()
        with gzip.open(file) as packed:
            # In pieces: memory is taken for what is there, not for what is allowed.
            while piece := packed.read(_PIECE_BYTES):
                data.write(piece)
                if data.tell() > UNPACKED_BYTES_MAX:
                    raise ValueError(
                        f"the recording is larger than {UNPACKED_BYTES_MAX:,} bytes when it is unpacked; "
                        "split it"
                    )
    return data.getvalue()


def _parse_text(data: bytes, layout: Layout) -> tuple[pa.Table, dict[int, tuple[str, str]]]:
    """All cells as text, and {row: (reason, raw)} of rows with a wrong number of cells, which are
    rows of nulls in the table."""
    try:
        data.decode()
    except UnicodeDecodeError:
        data = data.decode("utf-8", errors="replace").encode()
    names = [field.name for field in layout.columns]
    bad: list[tuple[int, str, str]] = []

    def on_invalid(row: Any) -> str:
        reason = f"has {row.actual_columns} cells, expected {row.expected_columns}"
        bad.append((int(row.number), reason, str(row.text)))
        return "skip"

    body = data.removeprefix(b"\xef\xbb\xbf")
    if not body.strip() or (layout.header and b"\n" not in body.strip()):
        return pa.table([pa.array([], pa.string()) for _ in names], names=names), {}
    table = pa_csv.read_csv(
        io.BytesIO(body),
        # One thread: only then does a malformed row know its number.
        read_options=pa_csv.ReadOptions(
            column_names=names, skip_rows=1 if layout.header else 0, use_threads=False, block_size=1 << 24
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=on_invalid
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False
        ),
    )
    return _with_gaps(table, bad, 2 if layout.header else 1)


def _with_gaps(
    table: pa.Table, bad: list[tuple[int, str, str]], first: int
) -> tuple[pa.Table, dict[int, tuple[str, str]]]:
    """Rows of nulls where malformed rows stood, so that every row keeps its place."""
    if not bad:
        return table, {}
    rejects = {
        min(number - first, table.num_rows + index): (reason, text)
        for index, (number, reason, text) in enumerate(sorted(bad))
    }
    total = table.num_rows + len(rejects)
    good = np.ones(total, dtype=bool)
    good[list(rejects)] = False
    places = np.cumsum(good) - 1
    indices = pa.array(places, pa.int64(), mask=~good)
    return table.take(indices), rejects


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
            values, wrong = _parse_times(trimmed, layout.time_format)
        else:
            values, wrong = _parse_cells(trimmed, field.type)
        columns.append(values)
        for row in wrong:
            shown = str(text[row].as_py())[:40]
            reasons.setdefault(row, f'column "{field.name}": {shown!r} is not of type {field.type.value}')
    return columns, reasons


def _parse_cells(text: pa.Array, type_: FieldType) -> tuple[pa.Array, list[int]]:
    matches = pc.match_substring_regex(text, _PATTERNS[type_])
    good = pc.if_else(matches, text, pa.scalar(None, pa.string()))
    if type_ is FieldType.BOOLEAN:
        values = pc.is_in(pc.utf8_lower(good), value_set=pa.array(["true", "yes", "1"]))
        values = pc.if_else(pc.is_null(good), pa.scalar(None, pa.bool_()), values)
    elif type_ is FieldType.TIMESTAMP:
        values = _parse_iso(good)
    else:
        values = pc.cast(pc.replace_substring_regex(good, r"^\+", ""), arrow_type(type_))
    if type_ is FieldType.NUMBER:
        # A number too large for a double is read as infinity, which is no JSON number.
        values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, pa.float64()))
    wrong = pc.and_(pc.is_valid(text), pc.is_null(values))
    return values, np.flatnonzero(wrong.to_numpy(zero_copy_only=False)).tolist()


def _parse_iso(text: pa.Array) -> pa.Array:
    """ISO 8601 to UTC; without a zone it is UTC. Impossible dates become null."""
    zoned = pc.match_substring_regex(text, r"(Z|[+-]\d\d:?\d\d)$")
    # A bare date ends in -dd as well: a zone needs a time of day before it.
    zoned = pc.and_(zoned, pc.match_substring_regex(text, r"[T ]\d\d:"))
    with_zone = pc.if_else(zoned, text, pc.binary_join_element_wise(_with_time(text), "Z", ""))
    try:
        fine = pc.cast(with_zone, pa.timestamp("ns", "UTC"))
        return pc.cast(fine, pa.timestamp("us", "UTC"), safe=False)
    except pa.ArrowInvalid:
        # Some value has the form of a date and is none (or is outside the range of nanoseconds).
        return pa.array([_iso_or_none(value) for value in with_zone.to_pylist()], pa.timestamp("us", "UTC"))


def _with_time(text: pa.Array) -> pa.Array:
    bare = pc.equal(pc.utf8_length(text), 10)
    return pc.if_else(bare, pc.binary_join_element_wise(text, "T00:00:00", ""), text)


def _iso_or_none(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _parse_times(text: pa.Array, time_format: str) -> tuple[pa.Array, list[int]]:
    """A time column that is not ISO: numbers since 1970 or a strptime format."""
    if time_format in ("epoch_s", "epoch_ms"):
        numbers, wrong = _parse_cells(text, FieldType.NUMBER)
        factor = 1e6 if time_format == "epoch_s" else 1e3
        micros = pc.cast(pc.round(pc.multiply(numbers, factor)), pa.int64(), safe=False)
        return pc.cast(micros, pa.timestamp("us", "UTC")), wrong
    values = [_strptime_or_none(value, time_format) for value in text.to_pylist()]
    array = pa.array(values, pa.timestamp("us", "UTC"))
    wrong_mask = pc.and_(pc.is_valid(text), pc.is_null(array))
    return array, np.flatnonzero(wrong_mask.to_numpy(zero_copy_only=False)).tolist()


def _strptime_or_none(text: str | None, time_format: str) -> datetime | None:
    if text is None:
        return None
    try:
        value = datetime.strptime(text, time_format)  # noqa: DTZ007  the zone is set below
    except ValueError:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _times(
    texts: pa.Table, columns: list[pa.Array], layout: Layout, reasons: dict[int, str]
) -> NDArray[np.int64] | None:
    """Each row's recorded time in Unix microseconds; a row without one is rejected, and takes the
    time of the row before it, so that it is released in its turn."""
    if layout.time_column is None or texts.num_rows == 0:
        return None
    index = [field.name for field in layout.columns].index(layout.time_column)
    values = columns[index]
    if layout.columns[index].type is not FieldType.TIMESTAMP:
        text = pc.utf8_trim_whitespace(texts.column(layout.time_column).combine_chunks())
        iso = layout.time_format == "iso"
        values = (
            _parse_cells(text, FieldType.TIMESTAMP)[0] if iso else _parse_times(text, layout.time_format)[0]
        )
    known = pc.is_valid(values).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(~known).tolist():
        reasons.setdefault(row, f'column "{layout.time_column}": no time in it')
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
