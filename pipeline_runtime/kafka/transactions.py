"""One owner's transactions: all or nothing, and only while the owner is the last to have initialised its
id."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
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
from kafka.structs import OffsetAndMetadata

from pipeline_runtime.kafka.clients import TRANSACTION_TIMEOUT_MS, KafkaSettings, open_producer
from pipeline_runtime.kafka.outgoing import (
    Outgoing,
    OutgoingBodies,
    OutgoingRecord,
    OutgoingRows,
    send_all,
)
from pipeline_runtime.kafka.sender_loop import SenderLoop

__all__ = [
    "END_HEADER",
    "FAR_MS",
    "Doubtful",
    "Fenced",
    "Outgoing",
    "OutgoingBodies",
    "OutgoingRecord",
    "OutgoingRows",
    "Transactions",
]

FAR_MS = 20.0
"""From this round trip on, a commit saves one round trip where that has a cost elsewhere."""

END_HEADER = ("fogline-end", b"1")
"""Header of the control record that tells a stream's readers that no record follows."""


class Fenced(Exception):
    """Another process initialised this transactional id. Nothing of the open transaction was committed."""


class Doubtful(Exception):
    """The broker did not answer, so the transaction may or may not be committed. The journal tells which."""


class RecordsRefused(RuntimeError):
    """Kafka does not accept these records, and trying again would not help. Nothing was committed."""


# The broker's final answers about records. Any other error may be passing trouble of the network or the
# broker.
_REFUSALS = (
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    InvalidTimestampError,
    InvalidRecordError,
    InvalidTopicError,
    PolicyViolationError,
    AuthorizationError,
)


def _is_done(future: Any) -> bool:
    return bool(future.is_done)


def _has_changed(incomplete: Any, parts: set[Any]) -> bool:
    return set(incomplete.all()) != parts


class Transactions:
    """A transactional producer for one id, with one commit at a time. It cannot be used after Fenced or
    Doubtful."""

    def __init__(self, kafka: KafkaSettings, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._lock = threading.Lock()
        self._open = False  # a transaction has begun and holds nothing yet
        self._opened_at_s = 0.0
        self.requests = 0  # sent so far; the requests of a transaction wait for each other
        self.round_trip_ms = 0.0  # of the fastest request; 0 until one was answered
        try:
            self._producer: KafkaProducer = open_producer(kafka, transactional_id)
        except KafkaError as error:
            raise Doubtful(f"{transactional_id}: no connection to Kafka ({error})") from error
        self._loop = SenderLoop(self._producer)
        self._written: set[TopicPartition] = set()  # by the last commit
        self._sent: Sequence[Any] = ()
        self._count_requests()

    def _count_requests(self) -> None:
        client = self._producer._sender._client
        send = client.send

        def counted(*args: Any, **options: Any) -> Any:
            self.requests += 1
            sent_at_s = monotonic()
            return send(*args, **options).add_callback(lambda _: self._answered(sent_at_s))

        client.send = counted

    @property
    def is_far(self) -> bool:
        """Returns whether the broker is so far away that a commit saves round trips."""
        return self.round_trip_ms >= FAR_MS

    def _answered(self, sent_at_s: float) -> None:
        took_ms = (monotonic() - sent_at_s) * 1000
        self.round_trip_ms = min(self.round_trip_ms or took_ms, took_ms)

    def initialise(self) -> None:
        """Fences every earlier user of the id and aborts its open transaction."""
        try:
            with self._loop.by_itself():
                self._producer.init_transactions()
        except KafkaError as error:
            raise self._explained(error) from error

    def warm(self, topics: Collection[str]) -> None:
        """Fetches the metadata that the first transaction would otherwise have to wait for."""
        for topic in topics:
            self._producer._sender.add_topic(topic)
        for topic in topics:
            try:
                self._producer.partitions_for(topic)
            except KafkaError as error:
                raise Doubtful(f"{self.transactional_id}: no metadata for {topic} ({error})") from error

    def keep_open(self, topics: Iterable[str]) -> None:
        """Keeps a transaction open whose partitions the coordinator already knows, so that the next commit
        need not wait for that. Call it again before the transaction times out."""
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
        """Ends the transaction that was opened ahead, if nothing was committed in it for so long. Otherwise
        the broker would end it and fence its owner."""
        if not self._is_unused(older_than_s):
            return  # does not wait for a commit in progress
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
        """Tells the coordinator the partitions without waiting for it."""
        self._producer.begin_transaction()
        self._open, self._opened_at_s = True, monotonic()
        for partition in partitions:
            self._producer._transaction_manager.maybe_add_partition_to_transaction(partition)
        self._loop.resume()
        self._producer._sender.wakeup()

    def expect_another(self) -> None:
        """The next commit comes soon, and most likely writes to the same partitions as the last one. The
        coordinator is told so now, and the commit need not wait for that."""
        if self._open or not self._written:
            return
        with self._lock, suppress(KafkaError):  # the next commit will report the error
            if not self._open:
                self._open_ahead(self._written)

    def _await_added(self, partitions: Iterable[TopicPartition]) -> None:
        manager = self._producer._transaction_manager
        deadline = monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        while not all(manager.is_partition_added(partition) for partition in partitions):
            if manager.has_error() or monotonic() > deadline:
                raise manager.last_error or KafkaTimeoutError(f"{self.transactional_id}: not answered")
            sleep(0.002)  # kafka-python has nothing to wait for here

    def commit(
        self,
        records: Iterable[Outgoing],
        *,
        again: bool = False,
        written: Callable[[], None] = lambda: None,
    ) -> None:
        """Writes all `records` in one transaction. `written` is called when they are, before the commit.

        With `again`, the next transaction will most likely write to the same partitions. A broker that is far
        away is told so at once: the next commit then waits for two answers and not for three. Until something
        is written, the open transaction hides nothing from readers.
        """
        with self._lock:
            self._commit(records, written)
            if again and self.is_far:
                with suppress(KafkaError):  # the commit is done; the next one will report the error
                    self._open_ahead(self._written)

    def end_of(self, topic: str) -> int:
        """Returns the offset behind the last record that the last commit wrote to this topic. To ask Kafka
        for its end would not do: it answers a commit before readers can see it."""
        last: int = max(
            future.value.offset
            for future in self._sent
            if future._produce_future.topic_partition.topic == topic
        )
        return last + 1

    def _commit(self, records: Iterable[Outgoing], written: Callable[[], None]) -> None:
        try:
            if not self._open:
                self._producer.begin_transaction()
            self._open = False
            sent = send_all(self._producer, records)
            self._await_written(sent)
            written()
            self._end_transaction()
            self._sent = sent
            self._written = {future._produce_future.topic_partition for future in sent}
        except KafkaError as error:
            raise self._explained(error) from error

    def store_position(self, group: str, partition: TopicPartition, end: int, note: str) -> None:
        """Stores a position of a consumer group of this cluster in the transaction. `commit` calls it as
        `written`. Raises KafkaError."""
        offsets = {partition: OffsetAndMetadata(end, note, -1)}
        result = self._producer._transaction_manager.send_offsets_to_transaction(offsets, group)
        self._producer._sender.wakeup()
        if not self._loop.until(lambda: result.is_done, monotonic() + TRANSACTION_TIMEOUT_MS / 1000):
            raise KafkaTimeoutError(f"no answer about the position of {group}")
        result.wait(0)  # raises what went wrong

    def _await_written(self, sent: Iterable[Any]) -> None:
        """Waits until everything is written, before the commit is asked for. kafka-python gives up what was
        not written in time, and would commit the rest without it."""
        deadline = monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        for future in sent:
            self._loop.until(partial(_is_done, future), deadline)
            try:
                future.get(0.0)
            except _REFUSALS as error:
                topic = future._produce_future.topic_partition.topic
                raise RecordsRefused(f"the topic {topic} does not take a record: {error}") from error
        # kafka-python splits a batch that is too large for its topic, and the parts are not among the
        # futures.
        accumulator = self._producer._accumulator
        while accumulator.has_incomplete:
            parts = set(accumulator._incomplete.all())
            if not self._loop.until(partial(_has_changed, accumulator._incomplete, parts), deadline):
                raise KafkaTimeoutError("not all records were written")
            for part in parts:
                if part.produce_future.failed():
                    raise part.produce_future.exception

    def _explained(self, error: KafkaError) -> Exception:
        """Returns what a failure means to an owner: Fenced, RecordsRefused, or else Doubtful."""
        # The broker may have told the reason for records that were sent before. kafka-python answers
        # everything after that with an error that names no reason.
        for reason in (error, self._producer._transaction_manager.last_error):
            if isinstance(reason, ProducerFencedError | InvalidProducerEpochError):
                return Fenced(f"{self.transactional_id}: {reason}")
            if isinstance(reason, _REFUSALS):
                return RecordsRefused(f"Kafka does not take a record: {reason}")
        return Doubtful(f"{self.transactional_id}: not answered ({error})")

    def _end_transaction(self) -> None:
        # commit_transaction() waits without a limit, so a broker that is gone would hold the owner for ever.
        # These are its two steps, with the limit after which the broker aborts anyway.
        result = self._producer._transaction_manager.begin_commit()
        if not self._loop.until(lambda: result.is_done, monotonic() + TRANSACTION_TIMEOUT_MS / 1000):
            raise Doubtful(f"{self.transactional_id}: no answer to a commit for {TRANSACTION_TIMEOUT_MS} ms")
        result.wait(0)  # raises what went wrong

    def close(self) -> None:
        """Closes the connections. An open transaction is left for the broker to abort."""
        # The producer is not used again, so a close has nothing to lose. Its thread ends first: `close` waits
        # for records that were not written, and would leave the thread running.
        with suppress(Exception):
            self._producer._sender.force_close()
        self._loop.resume()
        with suppress(Exception):
            self._producer.close(timeout=0)
        # A close with unwritten records raises before the producer notes that it is closed. Whichever thread
        # collects it later would wait for the records once more, and fail.
        self._producer._closed = True
