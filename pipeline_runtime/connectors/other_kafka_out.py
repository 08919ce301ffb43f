"""Writes rows to a topic of a Kafka cluster that is not Fogline's own, with the position in the same
transaction.

The position is the offset of a consumer group of that cluster, which nobody else uses. Its metadata names the
owner that wrote it, so an earlier owner that comes back does not begin.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from time import monotonic, time
from typing import Any

from pipeline_runtime.connectors import lost_position
from pipeline_runtime.connectors.kafka_ends import RENEW_S
from pipeline_runtime.connectors.kafka_session import ASK_S, asking, partitions_of, reached
from pipeline_runtime.connectors.schema_registry import SchemaRegistry
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Deliverer, Place, Refused
from pipeline_runtime.formats.malformed import Unwritable
from pipeline_runtime.formats.schema_registry import SchemaRegistryError, no_registry
from pipeline_runtime.formats.writing import RowWriter, cell_text
from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, close_spent, open_consumer, within
from pipeline_runtime.kafka.delivered import noted_position
from pipeline_runtime.kafka.limits import TopicLimits, topic_limits
from pipeline_runtime.kafka.transactions import (
    Doubtful,
    Fenced,
    OutgoingRecord,
    RecordsRefused,
    Transactions,
)
from pipeline_runtime.model.spec import RecordWriting
from pipeline_runtime.operators.other_kafka import KafkaConnection, OtherKafkaOutParams
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection

ALIVE_S = 2.0
"""How often the cluster is asked whether it answers, while there are no rows."""


class OtherKafkaDeliverer(Deliverer[OtherKafkaOutParams, KafkaConnection]):
    """`deliver` only looks which rows the topic takes, and `settle` writes them."""

    batch_rows = 2000
    patience_s = 60.0  # it asks Kafka several times before it returns, each time within ASK_S

    def __init__(self, place: Place[OtherKafkaOutParams, KafkaConnection]) -> None:
        super().__init__(place)
        assert place.rows is not None
        params = place.params
        self._writer = RowWriter(params.writing_to(params.topic) or RecordWriting(), place.rows)
        registry = place.others.get("registry")
        self._registry = SchemaRegistry(registry) if isinstance(registry, SchemaRegistryConnection) else None
        self._key = place.rows.key
        self._tp = TopicPartition(params.topic, 0)
        self.mark = {
            lost_position.CHOICE: params.lost,
            lost_position.TOPIC: params.topic,
            lost_position.SERVERS: place.connection.servers,
        }
        self._transactions: Transactions | None = None
        self._consumer: Any = None
        self._limits = TopicLimits()
        self._epoch = self._end = 0
        self._records: list[OutgoingRecord] = []
        self._stored_s = self._asked_s = 0.0

    def open(self, epoch: int) -> None:
        connection, place = self.place.connection, self.place
        self._epoch = epoch
        kafka = reached(connection)
        with asking(connection):
            self._consumer = within(ASK_S, lambda: open_consumer(kafka, group_id=place.name))
        partitions_of(self._consumer, connection, place.params.topic)
        self._limits = self._limits_at(kafka)
        # Looked at before, too, so that an earlier owner does not shut the true one out.
        self._end = self._position_kept()
        try:
            self._transactions = within(ASK_S, lambda: Transactions(kafka, place.name))
            self._transactions.initialise()
            self._end = self._position_kept()
            self._commit([])
        except (Doubtful, Fenced, RecordsRefused, TimeoutError) as error:
            raise self._in_words(error) from error

    def position(self) -> int:
        return self._end

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        now_ms = int(time() * 1000)
        refused: list[Refused] = []
        self._records = []
        try:
            prefix = self._writer.prefix(self._registry_named)
        except SchemaRegistryError as error:
            raise ConnectorError(str(error)) from error
        for place, row in enumerate(batch.rows):
            try:
                record = self._record(row, batch.times_ms[place], prefix)
            except Unwritable as error:
                refused.append(Refused(place, str(error)))
                continue
            why = self._limits.refusal(record.key, record.value, record.timestamp_ms, now_ms, record.headers)
            if why is None:
                self._records.append(record)
            else:
                refused.append(Refused(place, f"Kafka would refuse it: {why}"))
        self._end = batch.end
        return refused

    def settle(self) -> None:
        records, self._records = self._records, []
        self._commit(records)

    def idle(self) -> None:
        if monotonic() - self._stored_s >= RENEW_S:
            self._commit([])
        elif monotonic() - self._asked_s >= ALIVE_S:
            with asking(self.place.connection):
                within(ASK_S, lambda: self._consumer.end_offsets([self._tp]))
            self._asked_s = monotonic()

    def close(self) -> None:
        transactions, self._transactions = self._transactions, None
        if transactions is not None:
            transactions.close()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            close_spent(consumer)
        if self._registry is not None:
            self._registry.close()

    def _registry_named(self, name: str) -> SchemaRegistry:
        """Implements formats.schema_registry.Registries."""
        return no_registry(name) if self._registry is None else self._registry

    def _record(self, row: Any, time_ms: int, prefix: bytes) -> OutgoingRecord:
        key = None if self._key is None or row.get(self._key) is None else cell_text(row[self._key]).encode()
        value = prefix + self._writer.value(row)
        return OutgoingRecord(self.place.params.topic, value, key, time_ms, headers=self._writer.headers(row))

    def _limits_at(self, kafka: KafkaSettings) -> TopicLimits:
        """Returns what the topic takes, or the producer's own limits if the user may not ask for that."""
        topic = self.place.params.topic
        try:
            with asking(self.place.connection):
                return topic_limits(kafka, [topic]).get(topic, TopicLimits())
        except ConnectorError:
            return TopicLimits()

    # -- the position ------------------------------------------------------------------------------------

    def _position_kept(self) -> int:
        """Returns the position that the cluster has. Raises ConnectorError if a later owner wrote it."""
        with asking(self.place.connection):
            found = within(ASK_S, lambda: noted_position(self._consumer, self._tp))
        if found is None:
            return self._without_position()
        end, note = found
        try:
            told = json.loads(note)
            owners, epoch = str(told["owners"]), int(told["epoch"])
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectorError(
                f"{self.place.connection.where} has a position of the group {self.place.name} that is not"
                " Fogline's. Its administrator removes the group; the element then asks where to go on.",
                lasting=True,
            ) from error
        if owners == self.place.group and epoch > self._epoch:
            raise ConnectorError(
                f"{self.place.connection.where} has rows of a later owner of this element (epoch {epoch}), so"
                f" it takes none of epoch {self._epoch}. Nothing is lost: the later owner goes on. If there"
                f" is none, its administrator removes the group {self.place.name}; the element then asks"
                " where to go on.",
                lasting=True,
            )
        return end

    def _without_position(self) -> int:
        """Returns where a cluster without a position begins. Raises ConnectorError if it had one, and nobody
        has chosen since. A choice to stop is noted, so that the next one counts."""
        noted = self.notes.noted()
        try:
            return lost_position.begin(noted, self.mark)
        except lost_position.Unclear as why:
            if noted is not None and (stopped := lost_position.stopped(noted, self.mark)) != noted:
                self.notes.note(stopped)
            raise ConnectorError(
                f"{self.place.connection.where} does not say how far this element has come: its group"
                f" {self.place.name} has no position for {self._tp.topic}. {why}. Nothing is written, so that"
                " no row comes twice.",
                lasting=True,
            ) from None

    def _commit(self, records: Sequence[OutgoingRecord]) -> None:
        """Writes the records, and that all rows before `_end` are written, or none of it."""
        transactions = self._transactions
        assert transactions is not None
        note = json.dumps({"owners": self.place.group, "epoch": self._epoch})
        store = partial(transactions.store_position, self.place.name, self._tp, self._end, note)
        try:
            transactions.commit(records, written=store)
        except (Doubtful, Fenced, RecordsRefused) as error:
            raise self._in_words(error) from error
        self._stored_s = self._asked_s = monotonic()

    def _in_words(self, error: Exception) -> ConnectorError:
        where = self.place.connection.where
        match error:
            case Fenced():
                return ConnectorError(
                    f"Another process of this element has begun to write to {where}, so nothing of this one's"
                    " last rows was taken."
                )
            case RecordsRefused():
                return ConnectorError(f"{where} refuses the rows: {error}", lasting=True)
            case _:
                return ConnectorError(
                    f"{where} does not answer. It is not known whether it has the last rows."
                )
