"""How far a reader that is no group of Fogline's has come: stored in Kafka as the position of a consumer
group."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from time import monotonic
from typing import Any

from kafka.errors import OffsetOutOfRangeError as OffsetOutOfRangeError  # others take it from here
from kafka.structs import OffsetAndMetadata

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, close_spent, open_consumer, within
from pipeline_runtime.kafka.reading import TopicEnd

COUNTED_MAX = 2000
"""How many offsets are looked at to count rows. How many rows lie behind them is then estimated."""
COUNT_S = 2.0
"""For how long rows are read to count them. The rest is then estimated."""
ANSWER_S = 5.0
_POLL_MS = 200


def open_deliverers_consumer(kafka: KafkaSettings, name: str, tp: TopicPartition, wait_ms: int) -> Any:
    """Returns a consumer that reads the partition and may store positions under the name.

    A poll behind a position that Kafka has deleted raises OffsetOutOfRangeError: it goes nowhere by itself.
    """
    consumer = open_consumer(kafka, group_id=name, fetch_max_wait_ms=wait_ms, auto_offset_reset="none")
    consumer.assign([tp])
    return consumer


def stored_position(consumer: Any, tp: TopicPartition) -> int | None:
    """Returns the position that was stored last, or None. Raises KafkaError."""
    position = consumer.committed(tp)
    return None if position is None else int(position)


def store_position(consumer: Any, tp: TopicPartition, end: int) -> None:
    """Raises KafkaError."""
    consumer.commit({tp: OffsetAndMetadata(end, "", -1)})


def tell_position(consumer: Any, tp: TopicPartition, end: int, told: Callable[[bool], None]) -> None:
    """Stores the position without waiting for it. `told` is called by the consumer's next poll, with whether
    Kafka has it. Raises KafkaError."""
    consumer.commit_async(
        {tp: OffsetAndMetadata(end, "", -1)}, lambda _, answer: told(not isinstance(answer, Exception))
    )


def noted_position(consumer: Any, tp: TopicPartition) -> tuple[int, str] | None:
    """Returns the position that was stored last, and what its writer has noted beside it, or None. Raises
    KafkaError."""
    found = consumer.committed(tp, metadata=True)
    return None if found is None else (int(found.offset), str(found.metadata))


@dataclass(frozen=True)
class Undelivered:
    """The rows of a stream that its reader has not done, as far as Kafka was told. `at`: the offset after the
    last row that it has done."""

    rows: int
    at: int
    estimated: bool = False


def undelivered(kafka: KafkaSettings, topic: str) -> Undelivered:
    """Counts the rows of a stream with one partition. A stream that is not there has none. Raises
    KafkaError."""
    return within(ANSWER_S, lambda: _counted(kafka, TopicPartition(topic, 0)))


def unread(kafka: KafkaSettings, topic: str, at: int) -> Undelivered:
    """Counts the records of a stream with one partition from that offset, as a group reads them: a record
    with headers may be a row, too. What an open transaction hides counts as at least one row. A stream that
    is not there has none. Raises KafkaError, and Doubtful."""
    return within(ANSWER_S, lambda: _counted(kafka, TopicPartition(topic, 0), at))


def _counted(kafka: KafkaSettings, tp: TopicPartition, read_to: int | None = None) -> Undelivered:
    """`read_to`: where a group stands that reads the stream, or None if a deliverer reads it."""
    consumer = open_deliverers_consumer(kafka, tp.topic, tp, _POLL_MS)
    try:
        if not consumer.partitions_for_topic(tp.topic):
            return Undelivered(0, 0)
        stored = stored_position(consumer, tp) if read_to is None else read_to
        first = consumer.beginning_offsets([tp])[tp]
        end = consumer.end_offsets([tp])[tp] if read_to is None else _whole_end(kafka, tp.topic)
        # A position behind the end belongs to an earlier stream of that name.
        at = stored if stored is not None and first <= stored <= end else first
        consumer.seek(tp, at)
        rows, until, late_s = 0, min(end, at + COUNTED_MAX), monotonic() + COUNT_S
        while (looked_to := min(until, consumer.position(tp))) < until and monotonic() < late_s:
            polled = consumer.poll(_POLL_MS).get(tp, [])
            rows += sum(
                record.offset < until and (read_to is not None or not record.headers) for record in polled
            )
        if looked_to == end:
            return Undelivered(rows, at)
        return Undelivered(_estimated(rows, looked_to - at, end - at), at, estimated=True)
    finally:
        close_spent(consumer)


def _whole_end(kafka: KafkaSettings, topic: str) -> int:
    """Returns where the stream ends, with what open transactions hide. Raises Doubtful."""
    with closing(TopicEnd(kafka, topic)) as end:
        return end.ask(hidden=True)


def _estimated(rows: int, looked_at: int, offsets: int) -> int:
    """Returns how many rows that many offsets hold, at least 1: only a count may say that nothing waits."""
    return max(1, round(rows / looked_at * offsets) if looked_at else offsets)
