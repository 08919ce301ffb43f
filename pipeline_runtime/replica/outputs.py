"""What a batch makes, as the records of one transaction. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_runtime.batch.output import BatchOutput
from pipeline_runtime.kafka.limits import TopicLimits
from pipeline_runtime.kafka.record_batches import Columns
from pipeline_runtime.kafka.transactions import END_HEADER, Outgoing, OutgoingRecord, OutgoingRows
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
class BatchRecords:
    records: list[Outgoing]
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
) -> BatchRecords:
    """The records of a batch: its outputs, its dead letters, and those of the records that could not be read.
    With `ending` the readers are told that nothing follows. What a topic would refuse, by its `limits`, is a
    dead letter of the element that has made it: one record never stops the others."""
    records: list[Outgoing] = []
    rows_out = 0
    refused: list[dict[str, Any]] = []
    stream_bytes: dict[str, int] = {}
    for output in spec.outputs:
        rows = batch_output.records.get(output.source)
        if rows is None:
            stream_bytes[output.source] = 0
            continue
        columns, of_topic = _columns(rows, now_ms), limits(output.topic)
        sizes = columns.sizes()
        if not _all_fit(of_topic, columns, sizes, now_ms):
            columns, letters = _within(of_topic, output, columns, now_ms)
            refused += letters
        if len(columns):
            records.append(OutgoingRows(output.topic, columns))
        rows_out += len(columns)
        stream_bytes[output.source] = int(sizes.sum())
    before_letters = len(records)
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
    dead_letters = len(records) - before_letters
    if ending:
        records += _end_records(spec)
    return BatchRecords(records, rows_out, dead_letters, stream_bytes)


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


def _columns(rows: pa.Table, now_ms: int) -> Columns:
    """A stream's rows (RECORDS) as records. One without a time gets the present one."""
    times = rows["time_ms"].fill_null(now_ms) if rows["time_ms"].null_count else rows["time_ms"]
    keys, values = (rows[name].cast(pa.binary()).combine_chunks() for name in ("key", "value"))
    return Columns(keys, values, times.to_numpy())


def _all_fit(limits: TopicLimits, columns: Columns, sizes: NDArray[np.int64], now_ms: int) -> bool:
    """Whether it is plain that the topic takes all of these records, as it nearly always is."""
    times_ms = columns.times_ms
    return not len(columns) or (
        limits.takes_size(int(sizes.max()))
        and not (limits.needs_key and columns.keys.null_count)
        and limits.takes_times(int(times_ms.min()), int(times_ms.max()), now_ms)
    )


def _within(
    limits: TopicLimits, output: OutputStream, columns: Columns, now_ms: int
) -> tuple[Columns, list[dict[str, Any]]]:
    """The records that the topic takes, and dead letters of the others."""
    accepted: list[int] = []
    letters: list[dict[str, Any]] = []
    keys, values, times_ms = columns.keys, columns.values, columns.times_ms.tolist()
    for place, time_ms in enumerate(times_ms):
        value = values[place].as_py()
        why = limits.refusal(keys[place].as_py(), value, time_ms, now_ms)
        if why is None:
            accepted.append(place)
            continue
        raw = value[: 4 * RAW_CHARACTERS_MAX].decode(errors="replace")
        reason = f"Kafka would refuse it in {output.topic}: {why}"
        letters.append({"element": output.source.partition(".")[0], "reason": reason, "raw": raw})
    return columns.take(np.array(accepted, np.int64)), letters


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
