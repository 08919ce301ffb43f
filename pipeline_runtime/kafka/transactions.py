"""One owner's transactions: all or nothing, and only while it is the last to have initialised its id."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    ProducerFencedError,
    TransactionAbortableError,
)

from pipeline_runtime.kafka.clients import TRANSACTION_TIMEOUT_MS, KafkaSettings, open_producer
from pipeline_runtime.kafka.outgoing import OutgoingRecord, send_all

__all__ = ["END_HEADER", "Doubtful", "Fenced", "OutgoingRecord", "Transactions"]

END_HEADER = ("fogline-end", b"1")
"""Header of the control record that tells a stream's readers that nothing follows."""


class Fenced(Exception):
    """Somebody else initialised this transactional id: nothing of the open transaction was committed."""


class Doubtful(Exception):
    """The broker did not answer: the transaction may have been committed or not. Read the journal."""


class RecordTooLarge(RuntimeError):
    """A record is larger than Kafka takes: trying again would not help. Nothing was committed."""


class Transactions:
    """A transactional producer for one id: one commit at a time. After Fenced or Doubtful it is spent."""

    def __init__(self, kafka: KafkaSettings, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._lock = threading.Lock()
        self._open = False  # a transaction has begun and holds nothing yet
        self.requests = 0  # sent so far; those of a transaction wait for each other
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
            return send(*args, **options)

        client.send = counted

    def initialise(self) -> None:
        """Fence every earlier user of the id and abort what it had open."""
        try:
            self._producer.init_transactions()
        except (ProducerFencedError, InvalidProducerEpochError) as error:
            raise Fenced(f"{self.transactional_id}: {error}") from error
        except KafkaError as error:
            raise Doubtful(f"{self.transactional_id}: initialising was not answered ({error})") from error

    def warm(self, topics: Iterable[str]) -> None:
        """Fetch the metadata that the first transaction would otherwise wait for."""
        for topic in topics:
            try:
                self._producer.partitions_for(topic)
            except KafkaError as error:
                raise Doubtful(f"{self.transactional_id}: no metadata for {topic} ({error})") from error

    def keep_open(self, topics: Iterable[str]) -> None:
        """Have a transaction open whose partitions the coordinator knows already, so that the next
        commit has not to wait for that. Call it again before the transaction times out."""
        producer = self._producer
        try:
            if self._open:
                self._open = False
                self._end_transaction()
            producer.begin_transaction()
            self._open = True
            self._add_partitions(topics)
        except (ProducerFencedError, InvalidProducerEpochError) as error:
            raise Fenced(f"{self.transactional_id}: {error}") from error
        except KafkaError as error:
            raise Doubtful(f"{self.transactional_id}: not answered ({error})") from error

    def _add_partitions(self, topics: Iterable[str]) -> None:
        manager = self._producer._transaction_manager
        wanted = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in self._producer.partitions_for(topic) or ()
        ]
        for partition in wanted:
            manager.maybe_add_partition_to_transaction(partition)
        self._producer._sender.wakeup()
        deadline = monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        while not all(manager.is_partition_added(partition) for partition in wanted):
            if manager.has_error() or monotonic() > deadline:
                raise manager.last_error or KafkaTimeoutError(f"{self.transactional_id}: not answered")
            sleep(0.002)  # kafka-python tells nobody

    def commit(self, records: Iterable[OutgoingRecord]) -> None:
        """Write all `records` in one transaction."""
        with self._lock:
            self._commit(records)

    def _commit(self, records: Iterable[OutgoingRecord]) -> None:
        producer = self._producer
        try:
            if not self._open:
                producer.begin_transaction()
            self._open = False
            sent = send_all(producer, records)
            self._end_transaction()
            for future in sent:
                if future.failed():
                    raise Doubtful(f"{self.transactional_id}: a record was not written ({future.exception})")
        except (ProducerFencedError, InvalidProducerEpochError) as error:
            raise Fenced(f"{self.transactional_id}: {error}") from error
        except MessageSizeTooLargeError as error:
            raise RecordTooLarge(f"{self.transactional_id}: {error}") from error
        except (InvalidTxnStateError, TransactionAbortableError, KafkaError) as error:
            if self._was_fenced():
                raise Fenced(f"{self.transactional_id}: {error}") from error
            raise Doubtful(f"{self.transactional_id}: the commit was not answered ({error})") from error

    def _was_fenced(self) -> bool:
        """Whether the broker has said so already, to records that were sent before the commit:
        kafka-python then answers all that follows with an error that names no reason."""
        reason = self._producer._transaction_manager.last_error
        return isinstance(reason, ProducerFencedError | InvalidProducerEpochError)

    def _end_transaction(self) -> None:
        # commit_transaction() waits without a limit, so a broker that is gone would hold the owner
        # for ever: its two steps, with the limit after which the broker aborts anyway.
        result = self._producer._transaction_manager.begin_commit()
        self._producer._sender.wakeup()
        if not result.wait(timeout_ms=TRANSACTION_TIMEOUT_MS):
            raise Doubtful(f"{self.transactional_id}: no answer to a commit for {TRANSACTION_TIMEOUT_MS} ms")

    def close(self) -> None:
        """Close the connections; an open transaction is left to the broker to abort."""
        with suppress(Exception):  # the producer is spent, and a close has nothing to lose
            self._producer.close(timeout=0)
