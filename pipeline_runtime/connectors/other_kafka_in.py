"""Reads a topic of a Kafka cluster that is not Fogline's own. Its position is committed with the records."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from pipeline_runtime.connectors.intake import RECORD_BYTES_MAX
from pipeline_runtime.connectors.kafka_session import ASK_S, asking, partitions_of, reached
from pipeline_runtime.connectors.sdk import ConnectorError, OnceIngester, OnceIntake, Record
from pipeline_runtime.kafka.clients import TopicPartition, close_spent, open_consumer, within
from pipeline_runtime.kafka.delivered import OffsetOutOfRangeError
from pipeline_runtime.kafka.unpacking import UNREAD
from pipeline_runtime.operators.other_kafka import KafkaConnection, OtherKafkaInParams

RECORDS_MAX = 2000
"""The most records of one commit."""
POLL_MS = 500
LOOK_S = 2.0
"""How often it is asked whether the cluster answers and which partitions the topic has."""


class OtherKafkaIngester(OnceIngester[OtherKafkaInParams, KafkaConnection]):
    """Its position is {"topic": name, "offsets": {partition: the offset behind the last record}}."""

    patience_s = 60.0  # each call has a bound of its own

    def run(self, intake: OnceIntake, stop: threading.Event) -> None:
        connection = self.place.connection
        kafka = reached(connection)
        with asking(connection):
            consumer = within(
                ASK_S, lambda: open_consumer(kafka, fetch_max_wait_ms=POLL_MS, auto_offset_reset="none")
            )
        try:
            reader = _Reader(consumer, self.place.connection, self.place.params)
            reader.begin(intake.position)
            intake.connected()
            while not stop.is_set():
                self._next(reader, intake, stop)
        finally:
            close_spent(consumer)

    def _next(self, reader: _Reader, intake: OnceIntake, stop: threading.Event) -> None:
        records = reader.poll()
        for why, rows in reader.take_gaps():
            intake.gap(why, rows)
        position = reader.position()
        if not records and position == intake.position:
            reader.look()
            return
        self.commit(intake, records, position, stop)


class _Reader:
    """The partitions of the topic. Each method raises ConnectorError."""

    def __init__(self, consumer: Any, connection: KafkaConnection, params: OtherKafkaInParams) -> None:
        self._consumer, self._connection, self._params = consumer, connection, params
        self._takes_headers = params.reading().reads_headers
        self._tps: list[TopicPartition] = []
        self._gaps: list[tuple[str, int | None]] = []
        self._looked_s = monotonic()

    def begin(self, position: Mapping[str, Any] | None) -> None:
        """Goes to the position, or to where the parameters say if there is none of this topic."""
        topic = self._params.topic
        known = dict(position["offsets"]) if position and position["topic"] == topic else None
        found = partitions_of(self._consumer, self._connection, topic)
        self._tps = [TopicPartition(topic, partition) for partition in found]
        first, ends = self._bounds(self._tps)
        self._consumer.assign(self._tps)
        for tp in self._tps:
            if known is None:
                at = first[tp] if self._params.start == "earliest" else ends[tp]
            else:
                at = self._from(tp, int(known.get(str(tp.partition), 0)), first[tp], ends[tp])
            self._consumer.seek(tp, at)

    def _from(self, tp: TopicPartition, at: int, first: int, end: int) -> int:
        """Returns where to go on behind a position."""
        if at > end:
            self._gaps.append(
                (f"Partition {tp.partition} of {tp.topic} was made again: it is read from its begin", None)
            )
            return first
        if 0 < at < first:
            self._gaps.append((f"{tp.topic} had deleted records before they were read", first - at))
        return max(at, first)

    def poll(self) -> list[Record]:
        """Returns the next committed records of all partitions. None may have come within half a second."""
        try:
            with asking(self._connection):
                polled = self._consumer.poll(timeout_ms=POLL_MS, max_records=RECORDS_MAX)
        except ConnectorError as error:
            if isinstance(error.__cause__, OffsetOutOfRangeError):  # the next run tells how many are gone
                raise ConnectorError(
                    f"{self._params.topic} has deleted records that were not read."
                ) from error
            raise
        return [self._record(each) for records in polled.values() for each in records]

    def position(self) -> dict[str, Any]:
        with asking(self._connection):
            offsets = {str(tp.partition): int(self._consumer.position(tp)) for tp in self._tps}
        return {"topic": self._params.topic, "offsets": offsets}

    def take_gaps(self) -> Sequence[tuple[str, int | None]]:
        gaps, self._gaps = self._gaps, []
        return gaps

    def look(self) -> None:
        """Asks now and then whether the cluster answers, and reads partitions that the topic has got."""
        if monotonic() - self._looked_s < LOOK_S:
            return
        self._looked_s = monotonic()
        found = partitions_of(self._consumer, self._connection, self._params.topic)
        self._bounds(self._tps)
        if len(found) > len(self._tps):
            self.begin(self.position())

    def _bounds(self, tps: Sequence[TopicPartition]) -> tuple[Any, Any]:
        with asking(self._connection):
            return within(
                ASK_S, lambda: (self._consumer.beginning_offsets(tps), self._consumer.end_offsets(tps))
            )

    def _record(self, record: Any) -> Record:
        headers = tuple((name, value) for name, value in record.headers if name != UNREAD)
        why = ""
        if record.value is None:
            why = "it is a tombstone: it has a key, and no value"
        elif len(record.value) > RECORD_BYTES_MAX:
            why = f"it has {len(record.value):,} bytes, and at most {RECORD_BYTES_MAX:,} are taken"
        if why:
            return Record(b"", record.timestamp, record.key, ((UNREAD, why.encode()),))
        return Record(record.value, record.timestamp, record.key, headers if self._takes_headers else ())
