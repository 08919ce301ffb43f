"""Reads the rows of a slice, in a Spark worker process: from a topic's partition or a source operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.columns import column, source_schema
from pipeline_runtime.batch.decode import TIMESTAMP, Decoded, decode
from pipeline_runtime.batch.gate_client import GateClient, Slice
from pipeline_runtime.batch.inputs import GroupInput, group_inputs, open_source
from pipeline_runtime.kafka.ahead import unpack
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.incoming import Records
from pipeline_runtime.kafka.partition_reader import PartitionReader
from pipeline_runtime.kafka.transactions import END_HEADER
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import SourceReader

# Further than any window reaches: the watermark that it leaves closes them all.
FLUSH_TIME = datetime(2200, 1, 1, tzinfo=UTC)


class GroupReader:
    """All inputs of one group, as one worker process reads them."""

    def __init__(self, gate: GateClient) -> None:
        self._gate = gate
        hello = gate.ask("hello")
        spec = GroupSpec.model_validate(hello["spec"])
        self._kafka = KafkaSettings(**hello["kafka"])
        self.files: dict[str, str] = hello["files"]
        self.directory = Path(hello["directory"])
        self.spec = spec
        self.inputs: tuple[GroupInput, ...] = group_inputs(spec)
        self.schema = source_schema([item.schema for item in self.inputs])
        self._partitions: dict[tuple[str, int], PartitionReader] = {}
        self._sources: dict[str, SourceReader] = {}

    def close(self) -> None:
        for reader in self._partitions.values():
            reader.close()

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        if part.input < 0:
            yield from self._flush_rows(part)
            return
        item = self.inputs[part.input]
        if item.topic is not None:
            yield from self._read_topic(item, part)
        else:
            yield from self._read_source(item, part)

    def _read_topic(self, item: GroupInput, part: Slice) -> Iterator[pa.RecordBatch]:
        rows, rejects, ended = 0, [], False
        for records in self._records(item, part):
            ends = _ends(records) if not item.external else set()
            if ends:
                ended = True
                records = records.taken([place for place in range(len(records)) if place not in ends])
            decoded = decode(records.values, item.schema)
            rows += len(records)
            rejects += [
                _rejected(int(records.offsets[reject.index]), records.values[reject.index], reject.reason)
                for reject in decoded.rejects
            ]
            if decoded.kept is not None:
                records = records.taken(decoded.kept)
            if len(records):
                yield from self._topic_rows(item, part, decoded, records)
        self._report(part, rows, rejects, ended)

    def _records(self, item: GroupInput, part: Slice) -> Iterator[Records]:
        assert item.topic is not None
        if part.records is not None:
            if part.records:
                yield unpack(part.records)
            return
        reader = self._partitions.get((item.topic, part.partition))
        if reader is None:
            reader = PartitionReader(self._kafka, item.topic, part.partition)
            self._partitions[item.topic, part.partition] = reader
        yield from reader.read(part.start, part.end)

    def _topic_rows(
        self, item: GroupInput, part: Slice, decoded: Decoded, records: Records
    ) -> Iterator[pa.RecordBatch]:
        times = pa.array(records.timestamps_ms).cast(pa.timestamp("ms", tz="UTC"))
        yield from self._rows(
            item,
            part,
            decoded.columns,
            key=_text_keys(records.keys),
            time=times.cast(TIMESTAMP),
            offset=pa.array(records.offsets),
        )

    def _read_source(self, item: GroupInput, part: Slice) -> Iterator[pa.RecordBatch]:
        source = self._sources.get(item.source)
        if source is None:
            source = open_source(self.spec, item, self.files, self.directory)
            self._sources[item.source] = source
        rows, rejects = 0, []
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
                key_field = item.schema.key
                key = (
                    table[key_field].cast(pa.string()) if key_field else pa.nulls(table.num_rows, pa.string())
                )
                yield from self._rows(
                    item, part, table, key=key, time=table["_time"].cast(TIMESTAMP), offset=table["_offset"]
                )
        self._report(part, rows, rejects, False)

    def _rows(
        self, item: GroupInput, part: Slice, table: pa.Table, *, key: Any, time: Any, offset: Any
    ) -> Iterator[pa.RecordBatch]:
        """Put the envelope around one input's columns; the other inputs' are null."""
        count = table.num_rows
        values = {
            "_input": pa.repeat(pa.scalar(item.index, pa.int32()), count),
            "_key": key,
            "_time": time,
            "_batch_time": _instants(part.batch_time_ms, count),
            "_partition": pa.repeat(pa.scalar(part.partition, pa.int32()), count),
            "_offset": offset,
            "_flush": pa.repeat(pa.scalar(False), count),
        }
        for name in item.schema.names:
            values[column(item.index, name)] = table[name]
        columns = [
            values[field.name] if field.name in values else pa.nulls(count, field.type)
            for field in self.schema
        ]
        yield from pa.table(columns, schema=self.schema).combine_chunks().to_batches()

    def _flush_rows(self, part: Slice) -> Iterator[pa.RecordBatch]:
        count = len(self.inputs)
        values: dict[str, Any] = {
            "_input": pa.array(range(count), pa.int32()),
            "_time": pa.repeat(pa.scalar(FLUSH_TIME, TIMESTAMP), count),
            "_batch_time": _instants(part.batch_time_ms, count),
            "_partition": pa.repeat(pa.scalar(-1, pa.int32()), count),
            "_offset": pa.repeat(pa.scalar(-1, pa.int64()), count),
            "_flush": pa.repeat(pa.scalar(True), count),
        }
        columns = [values.get(field.name, pa.nulls(count, field.type)) for field in self.schema]
        yield from pa.table(columns, schema=self.schema).to_batches()

    def _report(self, part: Slice, rows: int, rejects: list[dict[str, Any]], ended: bool) -> None:
        """Tell the gate, before the task ends, what is not in the rows: the sink commits it with them."""
        self._gate.ask(
            "read",
            input=part.input,
            partition=part.partition,
            rows=rows,
            rejects=rejects,
            ended=ended,
        )


def _text_keys(keys: Sequence[bytes | None]) -> pa.Array:
    """A user's own topic may have any bytes as keys; Spark's Python processes fail on what is no text."""
    try:
        return pa.array(keys, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if key is None else key.decode(errors="replace") for key in keys], pa.string())


def _ends(records: Records) -> set[int]:
    """The places of those that say that nothing follows."""
    return {
        place
        for place, headers in records.headers.items()
        if any(name == END_HEADER[0] for name, _ in headers)
    }


def _rejected(offset: int, raw: bytes | None, reason: str) -> dict[str, Any]:
    return {"offset": offset, "raw": (raw or b"").decode(errors="replace"), "reason": reason}


def _instants(time_ms: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(time_ms * 1000, pa.int64()), count).cast(TIMESTAMP)
