"""The output of a group's batch: records for topics, rows for sinks, and dead letters.

Inside a group rows are Arrow tables with a column for each field. Many rows leave as they are for one of
Fogline's own topics. Few rows, and all for a user's topic, become JSON texts here, once. A sink of the group
gets the columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.decode import TIMESTAMP
from pipeline_runtime.batch.rows import Letter, in_ms, keyed
from pipeline_runtime.batch.streams import sink_streams
from pipeline_runtime.kafka.arrow_batches import (
    KEY,
    ROW_BYTES_MAX,
    ROWS_MIN,
    TIME_MS,
    is_own,
    largest_row_bytes,
)
from pipeline_runtime.kafka.json_rows import finite_rows, json_texts
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.tables import RAW, REJECT, about_rows, quoted_rows

RECORDS = pa.schema([("key", pa.string()), ("time_ms", pa.int64()), ("value", pa.string())])
"""The records of a stream: `value` is the row as a JSON object."""
LETTERS = pa.schema(
    [
        ("element", pa.string()),
        ("reason", pa.string()),
        ("raw", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.string()),
        ("time_ms", pa.int64()),
    ]
)
"""Dead letters: the element that could not take a row, why, what it was given, where that lies in what the
group reads (`partition` is a GroupInput.number_of), and its key and time. What nobody knows is null."""
_NOT_FINITE = "ValueError: a number is infinite or NaN, which JSON does not have"
_NO_LETTERS = LETTERS.empty_table()
_SIZE_BYTES = 4
_WRITTEN = pa.ipc.IpcWriteOptions()
_SMALL_BYTES = 1 << 16


@dataclass(frozen=True)
class BatchOutput:
    """All that a batch makes, or one task's part of it. Streams are named "element.port"."""

    records: Mapping[str, pa.Table]  # RECORDS by the stream that leaves into a topic; streams with rows only
    sinks: Mapping[str, pa.Table]  # by the stream that a sink of the group writes: its columns, and `_time`
    letters: pa.Table  # LETTERS
    counts: Mapping[str, int]  # how many rows a stream has; what Spark passes on inside is not counted
    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    """By the stream that leaves as columns: its fields, KEY and TIME_MS."""
    bodies: Mapping[str, pa.Table] = field(default_factory=dict)
    """By the stream whose rows are encoded already: batch.encoded.BODIES."""


@dataclass(frozen=True)
class Destinations:
    """Where the streams of a group go."""

    schemas: Mapping[str, StreamSchema]
    topics: frozenset[str]  # the streams that leave the group
    sinks: frozenset[str]  # the streams that sinks of the group write
    # How many partitions each of `topics` has that only Fogline reads.
    own_partitions: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(spec: GroupSpec) -> Destinations:
        topics = frozenset(output.source for output in spec.outputs)
        outputs = {output.source: output for output in spec.outputs}
        own = {source: each.partitions for source, each in outputs.items() if is_own(each.topic)}
        return Destinations(spec.schemas, topics, frozenset(sink_streams(spec).values()), own)


class OutputBuilder:
    """Collects what the elements of one batch make. Each stream is added once."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations
        self._records: dict[str, pa.Table] = {}
        self._rows: dict[str, pa.Table] = {}
        self._sinks: dict[str, pa.Table] = {}
        self._letters: list[pa.Table] = []
        self._counts: dict[str, int] = {}

    def add(self, source: str, rows: pa.Table, *, new_keys: bool = False) -> pa.Table:
        """Take a stream's rows: its columns, `_key`, `_time`, and perhaps `_reject` and `_raw`. Returns the
        rows that are good, which the next elements may read; the others are dead letters of the element.

        `new_keys`: `_key` is that of the rows which the element was given, and becomes that of the stream."""
        to = self._destinations
        schema = to.schemas[source]
        good = self._without_bad_rows(source.partition(".")[0], rows, schema)
        if new_keys:
            good = keyed(good, schema)
        self._counts[source] = good.num_rows
        if source in to.topics and good.num_rows:
            self._add_for_topic(source, good, schema)
        if source in to.sinks:
            times = in_ms(good["_time"]).cast(TIMESTAMP)
            self._sinks[source] = good.select(schema.names).append_column("_time", times)
        return good

    def _add_for_topic(self, source: str, rows: pa.Table, schema: StreamSchema) -> None:
        keys, times_ms = rows["_key"], in_ms(rows["_time"]).cast(pa.int64())
        fields = rows.select(schema.names)
        partitions = self._destinations.own_partitions.get(source)
        if (
            partitions is not None
            and rows.num_rows >= ROWS_MIN * partitions
            and largest_row_bytes(rows.select([*schema.names, "_key"])) <= ROW_BYTES_MAX
        ):
            self._rows[source] = fields.append_column(KEY, keys).append_column(TIME_MS, times_ms)
        else:
            self._records[source] = pa.table([keys, times_ms, json_texts(rows, schema)], schema=RECORDS)

    def reject(self, element: str, letters: Sequence[Letter]) -> None:
        """Take dead letters of an element."""
        if letters:
            columns = [[element] * len(letters), *map(list, zip(*letters, strict=True))]
            self._letters.append(pa.table(columns, schema=LETTERS))

    def output(self) -> BatchOutput:
        """Returns all of it."""
        letters = pa.concat_tables(self._letters) if self._letters else _NO_LETTERS
        return BatchOutput(self._records, self._sinks, letters, self._counts, self._rows)

    def _without_bad_rows(self, element: str, rows: pa.Table, schema: StreamSchema) -> pa.Table:
        """Returns the good rows, and takes the others as dead letters."""
        is_good = finite_rows(rows, schema) if rows.num_rows else None
        if REJECT in rows.column_names:
            accepted = pc.is_null(rows[REJECT])
            is_good = accepted if is_good is None else pc.and_(is_good, accepted)
        if is_good is None or pc.all(is_good).as_py():
            return _without_marks(rows)
        bad = rows.filter(pc.invert(is_good))
        reasons, raws = (
            bad[name].to_pylist() if name in bad.column_names else [None] * bad.num_rows
            for name in (REJECT, RAW)
        )
        texts = quoted_rows(bad, schema.names)
        told = zip(reasons, raws, texts, about_rows(bad), strict=True)
        self.reject(
            element,
            [Letter(reason or _NOT_FINITE, raw or text, *about) for reason, raw, text, about in told],
        )
        return _without_marks(rows.filter(is_good))


def merged(parts: Iterable[BatchOutput]) -> BatchOutput:
    """What several tasks have made of one batch, as if one had made it: their rows one after another."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    counts: dict[str, int] = {}
    for part in parts:
        for source, count in part.counts.items():
            counts[source] = counts.get(source, 0) + count
    return BatchOutput(
        _by_stream([part.records for part in parts]),
        _by_stream([part.sinks for part in parts]),
        pa.concat_tables([part.letters for part in parts]),
        counts,
        _by_stream([part.rows for part in parts]),
        _by_stream([part.bodies for part in parts]),
    )


_KINDS = ("records", "rows", "bodies", "sinks")


def packed(output: BatchOutput) -> memoryview:
    """The output as bytes, for the gate: how many bytes of JSON follow, JSON that says which tables there
    are, and an Arrow stream for each of them."""
    tables = [(kind, source, table) for kind in _KINDS for source, table in getattr(output, kind).items()]
    if output.letters.num_rows:
        tables.append(("letters", "", output.letters))
    about = {"counts": dict(output.counts), "tables": [(kind, source) for kind, source, _ in tables]}
    text = json.dumps(about).encode()
    head = len(text).to_bytes(_SIZE_BYTES, "big") + text
    if sum(table.nbytes for *_, table in tables) < _SMALL_BYTES:
        small = pa.BufferOutputStream()
        _write_all(small, head, tables)
        return memoryview(small.getvalue())
    counted = pa.MockOutputStream()
    _write_all(counted, head, tables)
    # A stream that grows would copy what it has, again and again.
    buffer = pa.allocate_buffer(counted.size())
    _write_all(pa.FixedSizeBufferWriter(buffer), head, tables)
    return memoryview(buffer)


def _write_all(sink: pa.NativeFile, head: bytes, tables: Sequence[tuple[str, str, pa.Table]]) -> None:
    sink.write(head)
    for *_, table in tables:
        with pa.ipc.new_stream(sink, table.schema, options=_WRITTEN) as stream:
            stream.write_table(table)


def unpacked(payload: bytes) -> BatchOutput:
    """Returns the output that `packed` made the bytes of."""
    buffer = pa.BufferReader(payload)
    about = json.loads(buffer.read(int.from_bytes(buffer.read(_SIZE_BYTES), "big")))
    tables: dict[str, dict[str, pa.Table]] = {kind: {} for kind in (*_KINDS, "letters")}
    for kind, source in about["tables"]:
        with pa.ipc.open_stream(buffer) as stream:
            tables[kind][source] = stream.read_all()
    letters = tables.pop("letters").get("", _NO_LETTERS)
    return BatchOutput(letters=letters, counts=about["counts"], **tables)


def _by_stream(parts: Sequence[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    streams = {source: None for part in parts for source in part}
    return {
        source: pa.concat_tables([part[source] for part in parts if source in part]) for source in streams
    }


def _without_marks(rows: pa.Table) -> pa.Table:
    marks = [name for name in (REJECT, RAW) if name in rows.column_names]
    return rows.drop_columns(marks) if marks else rows
