"""What a batch makes, as the records of one transaction. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.output import BatchOutput
from pipeline_runtime.kafka.limits import TopicLimits
from pipeline_runtime.kafka.transactions import END_HEADER, OutgoingRecord
from pipeline_runtime.model.spec import GroupSpec, OutputStream

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
    spec: GroupSpec,
    batch_output: BatchOutput,
    rejected: Sequence[RejectedRecord],
    *,
    ending: bool,
    limits: Callable[[str], TopicLimits] = lambda _: TopicLimits(),
    now_ms: int = 0,
) -> Outgoing:
    """The records of a batch: its outputs, its dead letters, and those of the records that could not be read.
    With `ending` the readers are told that nothing follows. What a topic would refuse, by its `limits`, is a
    dead letter of the element that has made it: one record never stops the others."""
    records: list[OutgoingRecord] = []
    refused: list[dict[str, Any]] = []
    stream_bytes: dict[str, int] = {}
    for output in spec.outputs:
        rows = batch_output.records.get(output.source)
        if rows is None:
            stream_bytes[output.source] = 0
            continue
        found, of_topic = _stream_records(output.topic, rows), limits(output.topic)
        if _all_fit(of_topic, rows, now_ms):
            records += found
        else:
            accepted, letters = _within(of_topic, output, found, now_ms)
            records += accepted
            refused += letters
        stream_bytes[output.source] = sum(_bytes(rows[name]) for name in ("key", "value"))
    rows_out = len(records)
    for letter in [*batch_output.letters.to_pylist(), *refused]:
        letter["raw"] = _shortened(letter["raw"])
        records.append(OutgoingRecord(spec.dead_letters(letter["element"]), _json(letter)))
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
    spec: GroupSpec, counts: Mapping[str, int], rows_in: int
) -> dict[str, tuple[int | None, int | None]]:
    """The rows in and out of each element of a group of several. A number is None if only Spark saw the rows.

    `counts` has the rows of each stream that was seen. `rows_in` is all that the group has read, with what
    could not be read. If that is one stream, each of its readers got all of it.
    """
    if len(spec.elements) < 2:
        return {}
    members = {element.id for element in spec.elements}
    # A source element has no inputs: it stands for the stream that it reads.
    inputs = {element.id: list(element.inputs.values()) or [f"{element.id}.out"] for element in spec.elements}
    # A stream of another member has only rows that could be read.
    from_outside = {
        id: {
            source for source in sources if (maker := source.partition(".")[0]) == id or maker not in members
        }
        for id, sources in inputs.items()
    }
    outside = set().union(*from_outside.values())
    found: dict[str, tuple[int | None, int | None]] = {}
    for id, sources in inputs.items():
        is_whole = len(outside) == 1 and from_outside[id] == set(sources)
        found[id] = (rows_in if is_whole else _sum(counts, sources), counts.get(f"{id}.out"))
    return found


def _sum(counts: Mapping[str, int], sources: Sequence[str]) -> int | None:
    return None if any(source not in counts for source in sources) else sum(counts[each] for each in sources)


def _bytes(column: pa.ChunkedArray) -> int:
    return pc.sum(pc.binary_length(column.cast(pa.binary()))).as_py() or 0


def _stream_records(topic: str, rows: pa.Table) -> Iterable[OutgoingRecord]:
    keys = rows["key"].cast(pa.binary()).to_pylist()
    values = rows["value"].cast(pa.binary()).to_pylist()
    times = rows["time_ms"].to_pylist()
    return map(OutgoingRecord, repeat(topic), values, keys, times)


def _all_fit(limits: TopicLimits, rows: pa.Table, now_ms: int) -> bool:
    """Whether it is plain that the topic takes all of these records, as it nearly always is."""
    if not rows.num_rows:
        return True
    sizes = [pc.max(pc.binary_length(rows[name].cast(pa.binary()))).as_py() or 0 for name in ("key", "value")]
    times = pc.min_max(rows["time_ms"]).as_py()
    return (
        limits.takes_size(sum(sizes))
        and not (limits.needs_key and rows["key"].null_count)
        and (times["min"] is None or limits.takes_times(times["min"], times["max"], now_ms))
    )


def _within(
    limits: TopicLimits, output: OutputStream, records: Iterable[OutgoingRecord], now_ms: int
) -> tuple[list[OutgoingRecord], list[dict[str, Any]]]:
    """The records that the topic takes, and dead letters of the others."""
    accepted: list[OutgoingRecord] = []
    letters: list[dict[str, Any]] = []
    for record in records:
        why = limits.refusal(record.key, record.value, record.timestamp_ms, now_ms)
        if why is None:
            accepted.append(record)
            continue
        raw = record.value[: 4 * RAW_CHARACTERS_MAX].decode(errors="replace")
        reason = f"Kafka would refuse it in {output.topic}: {why}"
        letters.append({"element": output.source.partition(".")[0], "reason": reason, "raw": raw})
    return accepted, letters


def _end_records(spec: GroupSpec) -> list[OutgoingRecord]:
    return [
        OutgoingRecord(output.topic, b"", partition=partition, headers=(END_HEADER,))
        for output in spec.outputs
        if not output.external
        for partition in range(output.partitions)
    ]


def _shortened(raw: Any) -> Any:
    """The text that a dead letter quotes, cut to a length that fits into a record."""
    if not isinstance(raw, str) or len(raw) <= RAW_CHARACTERS_MAX:
        return raw
    return f"{raw[:RAW_CHARACTERS_MAX]}... ({len(raw)} characters)"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
