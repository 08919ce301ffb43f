"""Looks into a stream for one of its readers: what it has read last, what waits, and what is searched for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka import TopicPartition

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import OpenTopic, PeekedRecord

LOOKED_MAX = 30_000
"""How many offsets one look goes through, at most."""
_MARKERS = 4
"""One commit marker for each record is the worst that is usual: so many times the wanted records are read."""


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a stream. Without a time and a search, it is what lies around the reader's place."""

    limit: int = 50
    key: str = ""  # the whole key
    text: str = ""  # anywhere in the record
    from_ms: int | None = None  # of the stream's own time

    @property
    def searches(self) -> bool:
        return bool(self.key or self.text)

    def takes(self, record: PeekedRecord) -> bool:
        """Returns whether a record is one that is wanted."""
        late = self.from_ms is None or record.timestamp_ms >= self.from_ms
        found = not self.text or self.text.casefold() in f"{record.key or ''} {record.value}".casefold()
        return late and found and (not self.key or record.key == self.key)


@dataclass(frozen=True)
class QueueRead:
    """What was found, by time."""

    records: list[PeekedRecord]
    looked: int  # records that were looked through
    more: bool  # there are more that were not looked through, or more were found than are wanted


def look(kafka: KafkaSettings, topic: str, position: Mapping[int, int] | None, wanted: Wanted) -> QueueRead:
    """Returns what is wanted of a stream. `position`: where the reader reads on, by partition; None if nobody
    knows. Raises KafkaError."""
    with OpenTopic(kafka, topic) as found:
        starts, ends = _range(found, position, wanted)
        records = found.read(starts, ends)
        whole = all(starts[tp] <= found.first[tp] and ends[tp] >= found.ends[tp] for tp in starts)
    kept = [record for record in records if wanted.takes(record)]
    shown = chosen(kept, position, wanted)
    return QueueRead(shown, len(records), not whole or len(shown) < len(kept))


def chosen(
    records: list[PeekedRecord], position: Mapping[int, int] | None, wanted: Wanted
) -> list[PeekedRecord]:
    """Returns the records that are shown of those that were found: the first ones from a time on, the newest
    ones of a search, and else the same number before and behind the reader's position. Pure."""
    most = wanted.limit
    if wanted.from_ms is not None:
        return records[:most]
    if wanted.searches or position is None:
        return records[-most:]
    waits = [each for each in records if each.offset >= position.get(each.partition, 0)]
    read = [each for each in records if each.offset < position.get(each.partition, 0)]
    few_wait = min(len(waits), max(most // 2, most - len(read)))
    few_read = min(len(read), most - few_wait)
    return _by_time([*read[len(read) - few_read :], *waits[:few_wait]])


def _range(
    found: OpenTopic, position: Mapping[int, int] | None, wanted: Wanted
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    each = LOOKED_MAX // max(1, len(found.ends))
    if wanted.from_ms is not None:
        starts = found.offsets_at(wanted.from_ms)
        return starts, {tp: min(end, starts[tp] + each) for tp, end in found.ends.items()}
    if wanted.searches:
        return {tp: max(found.first[tp], end - each) for tp, end in found.ends.items()}, dict(found.ends)
    near = min(each, _MARKERS * wanted.limit)
    at = {tp: end if position is None else position.get(tp.partition, 0) for tp, end in found.ends.items()}
    starts = {tp: max(found.first[tp], at[tp] - near) for tp in at}
    return starts, {tp: min(found.ends[tp], max(starts[tp], at[tp] + near)) for tp in at}


def _by_time(records: Iterable[PeekedRecord]) -> list[PeekedRecord]:
    return sorted(records, key=lambda each: (each.timestamp_ms, each.partition, each.offset))
