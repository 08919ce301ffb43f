"""One owner's transactions: all or nothing, and only while it is the last to have initialised its id."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import (
    AuthorizationError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    ProducerFencedError,
    RecordListTooLargeError,
)

from pipeline_runtime.kafka.clients import TRANSACTION_TIMEOUT_MS, KafkaSettings, open_producer
from pipeline_runtime.kafka.outgoing import OutgoingRecord, send_all

__all__ = ["END_HEADER", "FAR_MS", "Doubtful", "Fenced", "OutgoingRecord", "Transactions"]

FAR_MS = 20.0
"""Who is that far from the broker, by a round trip, spares one where that costs something else."""

END_HEADER = ("fogline-end", b"1")
"""Header of the control record that tells a stream's readers that nothing follows."""


class Fenced(Exception):
    """Somebody else initialised this transactional id: nothing of the open transaction was committed."""


class Doubtful(Exception):
    """The broker did not answer: the transaction may have been committed or not. Read the journal."""


class RecordsRefused(RuntimeError):
    """Kafka does not take these records: trying again would not help. Nothing was committed."""


# What a broker answers to records for good. All else may be the network's or the broker's passing trouble.
_REFUSALS = (
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    InvalidTimestampError,
    InvalidRecordError,
    InvalidTopicError,
    PolicyViolationError,
    AuthorizationError,
)


class Transactions:
    """A transactional producer for one id: one commit at a time. After Fenced or Doubtful it is spent."""

    def __init__(self, kafka: KafkaSettings, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._lock = threading.Lock()
        self._open = False  # a transaction has begun and holds nothing yet
        self._opened_at_s = 0.0
        self.requests = 0  # sent so far; those of a transaction wait for each other
        self.round_trip_ms = 0.0  # of the request that was answered the soonest; 0: none was
        try:
            self._producer: KafkaProducer = open_producer(kafka, transactional_id)
        except KafkaError as error:
            raise Doubtful(f"{transactional_id}: no connection to Kafka ({error})") from error
        self._count_requests()

    def _count_requests(self) -> None:
        client = self._producer._sender._client
        send = client.send

        def counted(*args: Any, **options: Any) -> Any:
            self.requests += 1
            sent_at_s = monotonic()
            return send(*args, **options).add_callback(lambda _: self._answered(sent_at_s))

        client.send = counted

    def _answered(self, sent_at_s: float) -> None:
        took_ms = (monotonic() - sent_at_s) * 1000
        self.round_trip_ms = min(self.round_trip_ms or took_ms, took_ms)

    def initialise(self) -> None:
        """Fence every earlier user of the id and abort what it had open."""
        try:
            self._producer.init_transactions()
        except KafkaError as error:
            raise self._explained(error) from error

    def warm(self, topics: Collection[str]) -> None:
        """Fetch, at once, the metadata that the first transaction would otherwise wait for."""
        for topic in topics:
            self._producer._sender.add_topic(topic)
        for topic in topics:
            try:
                self._producer.partitions_for(topic)
            except KafkaError as error:
                raise Doubtful(f"{self.transactional_id}: no metadata for {topic} ({error})") from error

    def keep_open(self, topics: Iterable[str]) -> None:
        """Have a transaction open whose partitions the coordinator knows already, so that the next
        commit has not to wait for that. Call it again before the transaction times out."""
        self.close_unused(0)
        with self._lock:
            try:
                partitions = {
                    TopicPartition(topic, partition)
                    for topic in topics
                    for partition in self._producer.partitions_for(topic) or ()
                }
                self._open_ahead(partitions)
                self._await_added(partitions)
            except KafkaError as error:
                raise self._explained(error) from error

    def close_unused(self, older_than_s: float) -> None:
        """End the transaction that was opened ahead, if nothing was committed in it for so long: the
        broker would end it, and fence its owner."""
        if not self._is_unused(older_than_s):
            return  # and does not wait for a commit that is under way
        with self._lock:
            if not self._is_unused(older_than_s):
                return
            self._open = False
            try:
                self._end_transaction()
            except KafkaError as error:
                raise self._explained(error) from error

    def _is_unused(self, older_than_s: float) -> bool:
        return self._open and monotonic() - self._opened_at_s >= older_than_s

    def _open_ahead(self, partitions: Iterable[TopicPartition]) -> None:
        """The coordinator is told them, and not waited for."""
        self._producer.begin_transaction()
        self._open, self._opened_at_s = True, monotonic()
        for partition in partitions:
            self._producer._transaction_manager.maybe_add_partition_to_transaction(partition)
        self._producer._sender.wakeup()

    def _await_added(self, partitions: Iterable[TopicPartition]) -> None:
        manager = self._producer._transaction_manager
        deadline = monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        while not all(manager.is_partition_added(partition) for partition in partitions):
            if manager.has_error() or monotonic() > deadline:
                raise manager.last_error or KafkaTimeoutError(f"{self.transactional_id}: not answered")
            sleep(0.002)  # kafka-python tells nobody

    def commit(self, records: Iterable[OutgoingRecord], *, again: bool = False) -> None:
        """Write all `records` in one transaction. `again`: the next one will most likely write to the same
        partitions. Where the broker is far, it is told so at once: to commit waits for two answers then, and
        not for three. Until something is written, the open transaction hides nothing from anybody."""
        with self._lock:
            sent = self._commit(records)
            if again and self.round_trip_ms >= FAR_MS:
                with suppress(KafkaError):  # what was committed is; the next commit says what is the matter
                    self._open_ahead({future._produce_future.topic_partition for future in sent})

    def _commit(self, records: Iterable[OutgoingRecord]) -> list[Any]:
        try:
            if not self._open:
                self._producer.begin_transaction()
            self._open = False
            sent = send_all(self._producer, records)
            self._await_written(sent)
            self._end_transaction()
            return sent
        except KafkaError as error:
            raise self._explained(error) from error

    def _await_written(self, sent: Iterable[Any]) -> None:
        """Before the commit is asked for: kafka-python gives up what was not written in time, and would
        commit the rest without it."""
        deadline = monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        for future in sent:
            try:
                future.get(max(0.0, deadline - monotonic()))
            except _REFUSALS as error:
                topic = future._produce_future.topic_partition.topic
                raise RecordsRefused(f"the topic {topic} does not take a record: {error}") from error
        # It splits a batch that is too large for its topic, and what comes of that is not among the futures.
        accumulator = self._producer._accumulator
        while accumulator.has_incomplete:
            for batch in accumulator._incomplete.all():
                batch.produce_future.wait(max(0.0, deadline - monotonic()))
                if batch.produce_future.failed():
                    raise batch.produce_future.exception
            if monotonic() > deadline:
                raise KafkaTimeoutError("not all records were written")
            sleep(0.001)  # a batch is written a moment before it is complete

    def _explained(self, error: KafkaError) -> Exception:
        """What a failure means to an owner: Fenced, RecordsRefused, or else Doubtful."""
        # The broker may have said so already, to records that were sent before: kafka-python then answers
        # all that follows with an error that names no reason.
        for reason in (error, self._producer._transaction_manager.last_error):
            if isinstance(reason, ProducerFencedError | InvalidProducerEpochError):
                return Fenced(f"{self.transactional_id}: {reason}")
            if isinstance(reason, _REFUSALS):
                return RecordsRefused(f"Kafka does not take a record: {reason}")
        return Doubtful(f"{self.transactional_id}: not answered ({error})")

    def _end_transaction(self) -> None:
        # commit_transaction() waits without a limit, so a broker that is gone would hold the owner
        # for ever: its two steps, with the limit after which the broker aborts anyway.
        result = self._producer._transaction_manager.begin_commit()
        self._producer._sender.wakeup()
        if not result.wait(timeout_ms=TRANSACTION_TIMEOUT_MS):
            raise Doubtful(f"{self.transactional_id}: no answer to a commit for {TRANSACTION_TIMEOUT_MS} ms")

    def close(self) -> None:
        """Close the connections; an open transaction is left to the broker to abort."""
        # The producer is spent, and a close has nothing to lose. Its thread first: `close` waits for what was
        # not written, and would leave it running.
        with suppress(Exception):
            self._producer._sender.force_close()
        with suppress(Exception):
            self._producer.close(timeout=0)
        # When something was not written it gives up before it takes note of that: whichever thread collects
        # it later would wait for it once more, and fail.
        self._producer._closed = True
