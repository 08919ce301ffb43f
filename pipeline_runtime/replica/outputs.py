"""Turns the results of a batch into the records of one Kafka transaction. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_runtime.batch.encoded import bodies_in
from pipeline_runtime.batch.inputs import stream_and_partition
from pipeline_runtime.batch.output import BatchOutput
from pipeline_runtime.batch.written import HEADERS
from pipeline_runtime.formats.writing import Headers
from pipeline_runtime.journal.records import ElementCounts
from pipeline_runtime.kafka.arrow_batches import BODY_BYTES_MAX, Rows, rows_of
from pipeline_runtime.kafka.limits import TopicLimits, headers_bytes
from pipeline_runtime.kafka.peek import key_text
from pipeline_runtime.kafka.record_batches import Columns
from pipeline_runtime.kafka.transactions import (
    END_HEADER,
    Outgoing,
    OutgoingBodies,
    OutgoingRecord,
    OutgoingRows,
)
from pipeline_runtime.model.dead_letters import Place
from pipeline_runtime.model.spec import GroupSpec, OutputStream
from pipeline_runtime.planning.replay import streams_read

RAW_CHARACTERS_MAX = 100_000
KEY_CHARACTERS_MAX = 1000
"""A dead letter quotes at most so many characters of a row's text and of its key."""


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """An input record that could not be read."""

    consumer: str  # the element to whose dead letters the record goes
    input: str  # the stream, "element.port"
    partition: int
    offset: int
    raw: str
    reason: str
    key: str | None = None
    time_ms: int | None = None  # the timestamp of the record in its topic


@dataclass(frozen=True, slots=True)
class BatchRecords:
    records: list[Outgoing]
    rows_out: int
    dead_letters: Mapping[str, int]  # by element
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
    """Returns the records of a batch: its output rows and its dead letters.

    The input records in `rejected` become dead letters. With `ending`, each stream gets a last record that
    says that nothing follows. If a topic would refuse a row by its `limits`, the row becomes a dead letter of
    the element that made it. So one row never stops the others.
    """
    records: list[Outgoing] = []
    rows_out = 0
    refused: list[dict[str, Any]] = []
    stream_bytes: dict[str, int] = {}
    for output in spec.outputs:
        size, of_topic = 0, limits(output.topic)
        for columns, headers in _made(batch_output, output.source, of_topic, now_ms):
            if isinstance(columns, Rows) and not _takes(of_topic, int(columns.times_ms.max()), now_ms):
                columns = columns.as_json()
            if isinstance(columns, Columns):
                size += int(columns.sizes().sum())
                columns, headers, letters = _within(of_topic, output, columns, headers, now_ms)
                refused += letters
            else:
                size += columns.bytes
            if headers is not None:
                size += sum(map(headers_bytes, headers))
                records += _with_headers(output.topic, columns, headers)
            elif len(columns):
                records.append(OutgoingRows(output.topic, columns))
            rows_out += len(columns)
        if (table := batch_output.bodies.get(output.source)) is not None and _takes_bodies(
            of_topic, table, now_ms
        ):
            size += pc.sum(table["rows_bytes"]).as_py()
            rows_out += pc.sum(table["count"]).as_py()
            records.append(OutgoingBodies(output.topic, bodies_in(table)))
        stream_bytes[output.source] = size
    letters = [*_letters_of(spec, batch_output.letters), *refused, *map(_letter_of, rejected)]
    for letter in letters:
        letter["raw"] = _shortened(letter["raw"])
        _tell_of_row(letter)
        records.append(OutgoingRecord(spec.dead_letters(letter["element"]), _json(letter)))
    if ending:
        records += _end_records(spec)
    dead_letters = Counter(letter["element"] for letter in letters)
    return BatchRecords(records, rows_out, dead_letters, stream_bytes)


def _letters_of(spec: GroupSpec, letters: pa.Table) -> Iterator[dict[str, Any]]:
    """Yields the dead letters of the elements. A letter names the place of its row in the input, if the
    element reads that input itself, not through another element of the group."""
    for letter in letters.to_pylist():
        number, offset = letter.pop("partition"), letter.pop("offset")
        source, partition = (None, 0) if number is None else stream_and_partition(spec, number)
        if source is not None and source in {each.source for each in streams_read(spec, letter["element"])}:
            letter["input"] = Place(source, partition, offset).text
        yield letter


def _letter_of(record: RejectedRecord) -> dict[str, Any]:
    return {
        "reason": record.reason,
        "raw": record.raw,
        "element": record.consumer,
        "input": Place(record.input, record.partition, record.offset).text,
        "key": record.key,
        "time_ms": record.time_ms,
    }


def _tell_of_row(letter: dict[str, Any]) -> None:
    """Removes the key and the time if they are not known, and cuts a long key."""
    for name in ("key", "time_ms"):
        if letter.get(name) is None:
            letter.pop(name, None)
    if "key" in letter:
        letter["key"] = letter["key"][:KEY_CHARACTERS_MAX]


def element_rows(
    spec: GroupSpec, counts: Mapping[str, int], rows_in: int, dead_letters: Mapping[str, int]
) -> ElementCounts:
    """Returns the number of rows in, rows out and dead letters of each element. Returns {} for a group of one
    element. A number of rows is None if only Spark saw the rows.

    `counts` has the number of rows of each stream whose rows Python saw. `rows_in` is the number of all rows
    that the group has read, including the unreadable ones. If the group reads one stream, each element that
    reads the stream got all of its rows.
    """
    if len(spec.elements) < 2:
        return {}
    members = {element.id for element in spec.elements}
    # A source element has no inputs, so its own output stands for them.
    inputs = {element.id: list(element.inputs.values()) or [f"{element.id}.out"] for element in spec.elements}
    # A stream of another element of the group has no unreadable rows.
    from_outside = {
        id: {
            source for source in sources if (maker := source.partition(".")[0]) == id or maker not in members
        }
        for id, sources in inputs.items()
    }
    outside = set().union(*from_outside.values())
    found: ElementCounts = {}
    for id, sources in inputs.items():
        is_whole = len(outside) == 1 and from_outside[id] == set(sources)
        read = rows_in if is_whole else _sum(counts, sources)
        found[id] = (read, counts.get(f"{id}.out"), dead_letters.get(id, 0))
    return found


def _sum(counts: Mapping[str, int], sources: Sequence[str]) -> int | None:
    return None if any(source not in counts for source in sources) else sum(counts[each] for each in sources)


def _with_headers(topic: str, columns: Columns | Rows, headers: Sequence[Headers]) -> list[OutgoingRecord]:
    plain = OutgoingRows(topic, columns).records()
    return [record._replace(headers=tuple(each)) for record, each in zip(plain, headers, strict=True)]


def _made(
    batch_output: BatchOutput, source: str, limits: TopicLimits, now_ms: int
) -> Iterator[tuple[Columns | Rows, Sequence[Headers] | None]]:
    """Yields a stream's rows, with their headers if they have any. A row without a time gets `now_ms`. Rows
    that a task has encoded are left out if the topic takes them in that form."""
    if (records := batch_output.records.get(source)) is not None:
        keys, values = (records[name].cast(pa.binary()).combine_chunks() for name in ("key", "value"))
        headers = records[HEADERS].to_pylist() if HEADERS in records.column_names else None
        yield Columns(keys, values, _times_ms(records["time_ms"], now_ms)), headers
    if (rows := batch_output.rows.get(source)) is not None:
        yield Rows.of(rows, now_ms), None
    bodies = batch_output.bodies.get(source)
    if bodies is not None and not _takes_bodies(limits, bodies, now_ms):
        yield from ((rows_of(body), None) for body in bodies_in(bodies))


def _times_ms(times: pa.ChunkedArray, now_ms: int) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (times.fill_null(now_ms) if times.null_count else times).to_numpy()
    return found


def _takes_bodies(limits: TopicLimits, bodies: pa.Table, now_ms: int) -> bool:
    return _takes(limits, pc.max(bodies["newest_ms"]).as_py(), now_ms)


def _takes(limits: TopicLimits, newest_ms: int, now_ms: int) -> bool:
    """Returns whether the topic surely takes rows as columns. `newest_ms`: the time of the newest row."""
    return (
        limits.takes_size(BODY_BYTES_MAX)
        and not limits.needs_key
        and limits.takes_times(newest_ms, newest_ms, now_ms)
    )


def _all_fit(limits: TopicLimits, columns: Columns, headers: Sequence[Headers] | None, now_ms: int) -> bool:
    """Returns whether the topic surely takes all of these records. This is nearly always so."""
    times_ms = columns.times_ms
    beside = max(map(headers_bytes, headers or ()), default=0)
    return not len(columns) or (
        limits.takes_size(int(columns.sizes().max()) + beside)
        and not (limits.needs_key and columns.keys.null_count)
        and limits.takes_times(int(times_ms.min()), int(times_ms.max()), now_ms)
    )


def _within(
    limits: TopicLimits,
    output: OutputStream,
    columns: Columns,
    headers: Sequence[Headers] | None,
    now_ms: int,
) -> tuple[Columns, Sequence[Headers] | None, list[dict[str, Any]]]:
    """Returns the records that the topic takes, their headers, and dead letters for the other records."""
    if _all_fit(limits, columns, headers, now_ms):
        return columns, headers, []
    accepted: list[int] = []
    letters: list[dict[str, Any]] = []
    keys, values, times_ms = columns.keys, columns.values, columns.times_ms.tolist()
    for place, time_ms in enumerate(times_ms):
        value = values[place].as_py()
        beside = () if headers is None else headers[place]
        why = limits.refusal(keys[place].as_py(), value, time_ms, now_ms, beside)
        if why is None:
            accepted.append(place)
            continue
        raw = value[: 4 * RAW_CHARACTERS_MAX].decode(errors="replace")
        reason = f"Kafka would refuse it in {output.topic}: {why}"
        key = keys[place].as_py()
        letters.append(
            {
                "element": output.source.partition(".")[0],
                "reason": reason,
                "raw": raw,
                "key": None if key is None else key_text(key),
                "time_ms": time_ms,
            }
        )
    taken = None if headers is None else [headers[place] for place in accepted]
    return columns.take(np.array(accepted, np.int64)), taken, letters


def _end_records(spec: GroupSpec) -> list[OutgoingRecord]:
    return [
        OutgoingRecord(output.topic, b"", partition=partition, headers=(END_HEADER,))
        for output in spec.outputs
        if not output.external
        for partition in range(output.partitions)
    ]


def _shortened(raw: Any) -> Any:
    """Returns the text that a dead letter quotes, cut to a length that fits into a record."""
    if not isinstance(raw, str) or len(raw) <= RAW_CHARACTERS_MAX:
        return raw
    return f"{raw[:RAW_CHARACTERS_MAX]}... ({len(raw)} characters)"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
