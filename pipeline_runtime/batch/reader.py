"""Reads the rows of a slice, in a Spark worker process: from a topic's partition or a source operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_runtime.batch.decode import ARROW_TYPES, TIMESTAMP, arrow_schema
from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.gate_messages import Describe, RecordWaits, Reject, Slice, SliceRead
from pipeline_runtime.batch.inputs import GroupInput, group_inputs, open_source
from pipeline_runtime.batch.outside import not_far_ahead
from pipeline_runtime.batch.portions import Portion, PortionReader
from pipeline_runtime.batch.reading_ahead import ReadingAhead
from pipeline_runtime.batch.rows import Asked, keyed
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError, no_registry
from pipeline_runtime.kafka.ahead import unpack
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import key_text
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import SourceReader
from pipeline_runtime.operators.tables import with_column

_META = (
    ("_key", pa.string()),
    ("_time", TIMESTAMP),
    ("_batch_time", TIMESTAMP),
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
)


@lru_cache(maxsize=256)
def input_schema(schema: StreamSchema) -> pa.Schema:
    """A stream's columns inside a group: its fields, and what the stream's record says of each row."""
    return pa.schema([*arrow_schema(schema), *_META])


def with_meta(rows: pa.Table, batch_time_ms: int) -> pa.Table:
    """A processor's rows, which have `_key` and `_time`, as a stream inside the group. They lie in no topic,
    so their partition is -1."""
    count = rows.num_rows
    for name, values in (
        ("_batch_time", _instants(batch_time_ms, count)),
        ("_partition", pa.repeat(pa.scalar(-1, pa.int32()), count)),
        ("_offset", pa.array(range(count), pa.int64())),
    ):
        rows = rows.append_column(name, values)
    return rows


class GroupReader:
    """All inputs of one group, as one worker process reads them."""

    def __init__(self, gate: Asked, registries: Registries = no_registry) -> None:
        """`registries`: may be asked by any thread."""
        self._gate = gate
        self.registries = registries
        group = gate.ask(Describe())
        spec = GroupSpec.model_validate(group.spec)
        self._kafka = KafkaSettings(**group.kafka)
        self.files = group.files
        self.directory = Path(group.directory)
        self.spec = spec
        self.inputs: tuple[GroupInput, ...] = group_inputs(spec)
        self.is_planned = GroupFacts(spec, self.files, self.directory).is_planned
        # By input and partition: two inputs may read one topic in two ways.
        self._partitions: dict[tuple[int, int], PortionReader] = {}
        self._reads_many = sum(item.partitions for item in self.inputs if item.topic is not None)
        self._read_last: set[PortionReader] = set()  # by this task itself, since `go_on`
        self._ahead = ReadingAhead()
        self._sources: dict[str, SourceReader] = {}

    def close(self) -> None:
        self.stop()
        for reader in self._partitions.values():
            reader.close()

    def expect(self, slices: Sequence[Slice]) -> None:
        """The task is given these. A topic may have more partitions by now than its definition says."""
        self._reads_many = max(self._reads_many, len(slices))

    def read(self, part: Slice) -> Iterator[pa.Table]:
        """The rows of a slice of one input (`input_schema`), in pieces."""
        group_input = self.inputs[part.input]
        return (
            self._read_source(group_input, part)
            if group_input.topic is None
            else self._read_topic(group_input, part)
        )

    def _read_topic(self, group_input: GroupInput, part: Slice) -> Iterator[pa.Table]:
        rows, size, ended = 0, 0, False
        rejects: list[Reject] = []
        seen: set[str] = set()
        newest_ms: int | None = None
        for portion in self._portions(group_input, part):
            records, read = portion.records, portion.read
            if group_input.reading is not None:
                read = not_far_ahead(read, group_input.reading, part.batch_time_ms)
            ended = ended or bool(portion.ends)
            rows += len(portion.unread) + len(read.places) + len(read.rejects)
            size += portion.bytes
            rejects += _unread(portion, group_input, part)
            rejects += [
                _rejected(
                    int(records.offsets[reject.index]),
                    records.values[reject.index].as_py() if reject.raw is None else reject.raw.encode(),
                    reject.reason,
                    records.keys[reject.index].as_py(),
                    int(records.timestamps_ms[reject.index]),
                )
                for reject in read.rejects
            ]
            if group_input.external and len(read.places):
                names = read.columns.column_names
                seen.update(name for name in names if read.columns[name].null_count < len(read.places))
                newest_ms = max(newest_ms or 0, int(read.times_us.max()) // 1000)
            if len(read.places):
                yield _rows(
                    group_input,
                    part,
                    read.columns,
                    key=_text_keys(_taken(records.keys, read.places)),
                    time=pa.array(read.times_us).cast(TIMESTAMP),
                    offset=pa.array(records.offsets[read.places]),
                )
        # The order in which they are committed must not depend on how the records came here.
        in_order = sorted(rejects, key=lambda reject: reject.offset)
        self._report(part, rows, size, in_order, ended, seen, newest_ms)

    def _portions(self, group_input: GroupInput, part: Slice) -> Iterator[Portion]:
        assert group_input.topic is not None
        try:
            yield from self._read_portions(group_input, group_input.topic, part)
        except SchemaRegistryError as error:
            registry = None if group_input.reading is None else group_input.reading.registry
            if registry is not None and error.number is not None and error.place is not None:
                place = group_input.topic, part.partition, error.place
                self._gate.ask(RecordWaits(*place, registry, error.number))
            raise

    def _read_portions(self, group_input: GroupInput, topic: str, part: Slice) -> Iterator[Portion]:
        if part.records is not None:
            for records in unpack(part.records, topic):
                yield Portion.of(records.between(part.start, part.end), group_input, self.registries)
            return
        reader = self._partitions.get((group_input.index, part.partition))
        if reader is None:
            reader = PortionReader(
                self._kafka, group_input, part.partition, self._reads_many, self.registries
            )
            self._partitions[group_input.index, part.partition] = reader
        self._read_last.add(reader)
        where = part.start, part.end, part.topic_id
        if reader.is_next(part.start, part.topic_id):
            self._ahead.wait_for(reader, partial(reader.holds_all, part.end))
        held = reader.held(*where)
        if held is None:
            self._ahead.pause()
        yield from reader.read(*where) if held is None else held

    def go_on(self) -> None:
        """All rows of a batch were read. A thread reads on behind them, where this task has read them by
        itself. It does not wait for rows."""
        self._ahead.go_on(self._read_last, self._partitions.values())
        self._read_last.clear()

    def stop(self) -> None:
        """Nothing is read ahead any more."""
        self._ahead.stop()

    def _read_source(self, group_input: GroupInput, part: Slice) -> Iterator[pa.Table]:
        source = self._sources.get(group_input.source)
        if source is None:
            source = open_source(self.spec, group_input, self.files, self.directory)
            self._sources[group_input.source] = source
        rows = 0
        rejects: list[Reject] = []
        for batch in source.read(part.start, part.end):
            table = pa.Table.from_batches([batch])
            rows += table.num_rows
            if "_reject" in table.column_names:
                bad = table.filter(pa.compute.is_valid(table["_reject"]))
                rejects += [
                    _rejected(row["_offset"], (row.get("_raw") or "").encode(), row["_reject"])
                    for row in bad.to_pylist()
                ]
                table = table.filter(pa.compute.is_null(table["_reject"]))
            if table.num_rows:
                key = pa.nulls(table.num_rows, pa.string())
                time = table["_time"].cast(TIMESTAMP)
                yield _rows(group_input, part, table, key=key, time=time, offset=table["_offset"])
        self._report(part, rows, 0, rejects, False)

    def _report(
        self,
        part: Slice,
        rows: int,
        size: int,
        rejects: list[Reject],
        ended: bool,
        seen: Iterable[str] = (),
        newest_ms: int | None = None,
    ) -> None:
        """Tell the gate what is not in the rows, before the task ends: it is committed with them."""
        read = SliceRead(
            part.input,
            part.partition,
            rows,
            size,
            rejects,
            ended,
            sorted(seen),
            newest_ms,
            part.batch_time_ms,
        )
        if self.is_planned:
            self._gate.ask(read)  # nothing else that this task asks for comes behind it
        else:
            self._gate.tell(read)


def _rows(
    group_input: GroupInput, part: Slice, table: pa.Table, *, key: Any, time: Any, offset: Any
) -> pa.Table:
    """`key`: of the records; a stream of a user's own, or a source's, may have a key field instead."""
    count = table.num_rows
    meta = [
        key,
        time,
        _instants(part.batch_time_ms, count),
        pa.repeat(pa.scalar(group_input.number_of(part.partition), pa.int32()), count),
        offset,
    ]
    columns = [table[name] for name in group_input.schema.names]
    rows = pa.table([*columns, *meta], schema=input_schema(group_input.schema))
    return rows if group_input.key_field is None else keyed(rows, group_input.schema)


def conformed(rows: pa.Table, schema: StreamSchema) -> pa.Table:
    """An operator's rows with the types of the schema's fields: it may give, say, integers of 32 bits."""
    for field in schema.fields:
        type_, values = ARROW_TYPES[field.type], rows[field.name]
        if values.type != type_:
            rows = with_column(rows, field.name, values.cast(type_))
    return rows


def _taken(values: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """Returns the values at these places. Most often they are all of them, one after the other."""
    if len(places) == len(values) and (places == np.arange(len(values))).all():
        return values
    return values.take(pa.array(places))


def _text_keys(keys: pa.BinaryArray) -> pa.Array:
    """A user's own topic may have any bytes as keys; Spark's Python processes fail on what is no text."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if key is None else key_text(key) for key in keys.to_pylist()]
        return pa.array(texts, pa.string())


def _unread(portion: Portion, group_input: GroupInput, part: Slice) -> list[Reject]:
    """Returns the records that were not unpacked. Their bytes are not here, so each says where it lies."""
    return [
        _rejected(
            offset,
            None,
            f"{group_input.topic}, partition {part.partition}, offset {offset}: not read, since {why}",
        )
        for offset, why in portion.unread.items()
    ]


def _rejected(
    offset: int, raw: bytes | None, reason: str, key: bytes | None = None, time_ms: int | None = None
) -> Reject:
    said = None if key is None else key_text(key)
    return Reject(offset, (raw or b"").decode(errors="replace"), reason, said, time_ms)


def _instants(time_ms: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(time_ms * 1000, TIMESTAMP), count)
