"""A batch's collected rows as the records of one transaction. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.kafka.transactions import END_HEADER, OutgoingRecord
from pipeline_runtime.model.ids import DEAD
from pipeline_runtime.model.spec import GroupSpec

RAW_CHARACTERS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """An input record that could not be read."""

    consumer: str  # the element whose dead letters take it
    input: str  # the stream, "element.port"
    partition: int
    offset: int
    raw: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    records: list[OutgoingRecord]
    rows_out: int
    dead_letters: int
    stream_bytes: dict[str, int]  # by output, "element.port": keys and values


def outgoing(
    spec: GroupSpec, collected: pa.Table, rejected: Sequence[RejectedRecord], *, ending: bool
) -> Outgoing:
    """`collected`: as spark.frame describes. `ending`: readers are told that nothing follows."""
    records: list[OutgoingRecord] = []
    stream_bytes: dict[str, int] = {}
    for output in spec.outputs:
        rows = _rows(collected, output.source)
        records += _stream_records(output.topic, rows)
        stream_bytes[output.source] = sum(_bytes(rows[name]) for name in ("_key", "_value"))
    rows_out = len(records)
    for element in spec.elements:
        rows = _rows(collected, f"{element.id}.{DEAD}")
        for value in rows["_value"].to_pylist():
            letter = {**json.loads(value), "element": element.id}
            letter["raw"] = _shortened(letter.get("raw"))
            records.append(OutgoingRecord(spec.dead_letters(element.id), _json(letter)))
    for item in rejected:
        letter = {
            "reason": item.reason,
            "raw": _shortened(item.raw),
            "element": item.consumer,
            "input": f"{item.input} partition {item.partition} offset {item.offset}",
        }
        records.append(OutgoingRecord(spec.dead_letters(item.consumer), _json(letter)))
    dead_letters = len(records) - rows_out
    if ending:
        records += _end_records(spec)
    return Outgoing(records, rows_out, dead_letters, stream_bytes)


def element_rows(
    spec: GroupSpec, collected: pa.Table, rows_in: int
) -> dict[str, tuple[int | None, int | None]]:
    """Rows in and out of each element of a group of several; None where Spark alone saw them.

    `rows_in`: what the group read. Where that is one stream, its readers got all of it; of several it is not
    known how many rows were of each.
    """
    if len(spec.elements) < 2:
        return {}
    counted = pc.value_counts(collected["_out"].combine_chunks())
    counts = {item["values"]: item["counts"] for item in counted.to_pylist()}
    leaving = {output.source for output in spec.outputs}
    members = {element.id for element in spec.elements}
    # A source element has no inputs: it stands for the stream that it reads.
    inputs = {element.id: list(element.inputs.values()) or [element.id] for element in spec.elements}
    inside = {
        id: [source for source in sources if source.partition(".")[0] in members and source != id]
        for id, sources in inputs.items()
    }
    outside = {source for id, sources in inputs.items() for source in sources if source not in inside[id]}
    found: dict[str, tuple[int | None, int | None]] = {}
    for element in spec.elements:
        sources = inside[element.id]
        if len(sources) == len(inputs[element.id]):
            read = sum(counts.get(source, 0) for source in sources)
            known_in = all(source in leaving or source in counts for source in sources)
        else:
            read = rows_in
            known_in = not sources and len(outside) == 1
        out = f"{element.id}.out"
        known_out = out in leaving or out in counts
        found[element.id] = (read if known_in else None, counts.get(out, 0) if known_out else None)
    return found


def _rows(collected: pa.Table, tag: str) -> pa.Table:
    return collected.filter(pc.equal(collected["_out"], tag))


def _bytes(column: pa.ChunkedArray) -> int:
    return pc.sum(pc.binary_length(column.cast(pa.binary()))).as_py() or 0


def _stream_records(topic: str, rows: pa.Table) -> Iterable[OutgoingRecord]:
    keys = rows["_key"].cast(pa.binary()).to_pylist()
    values = rows["_value"].cast(pa.binary()).to_pylist()
    times = rows["_time_ms"].to_pylist()
    return map(OutgoingRecord, repeat(topic), values, keys, times)


def _end_records(spec: GroupSpec) -> list[OutgoingRecord]:
    return [
        OutgoingRecord(output.topic, b"", partition=partition, headers=(END_HEADER,))
        for output in spec.outputs
        if not output.external
        for partition in range(output.partitions)
    ]


def _shortened(raw: Any) -> Any:
    """A dead letter must fit into a record, however large and odd what it quotes is."""
    if not isinstance(raw, str) or len(raw) <= RAW_CHARACTERS_MAX:
        return raw
    return f"{raw[:RAW_CHARACTERS_MAX]}... ({len(raw)} characters)"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
