"""Writes the transactions of one owner. Kafka commits all records of a transaction or none, and only while no
other process has initialised the owner's transactional id.

The steps are those of Kafka (KIP-98). The client sends the coordinator the partitions of the transaction,
writes the records to the partitions, and then has the coordinator end the transaction. If an answer is lost,
the client sends a record batch twice, and Kafka writes it once. Kafka recognises the batch by its producer,
the producer's epoch and its number in the partition's sequence.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any

from kafka import TopicPartition
from kafka.errors import (
    AuthorizationError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    OperationNotAttemptedError,
    PolicyViolationError,
    ProducerFencedError,
    RecordListTooLargeError,
    RetriableError,
)
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)

from pipeline_runtime.kafka.clients import REQUEST_BYTES_MAX, TRANSACTION_TIMEOUT_MS, KafkaSettings
from pipeline_runtime.kafka.outgoing import (
    Outgoing,
    OutgoingBodies,
    OutgoingRecord,
    OutgoingRows,
    bodies_by_partition,
    halves,
    record_batch,
)
from pipeline_runtime.kafka.record_batches import Body
from pipeline_runtime.kafka.requests import Requests, error_of

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
"""From this round trip on, in ms, a commit saves one round trip, although that costs more elsewhere."""

END_HEADER = ("fogline-end", b"1")
"""The header of the control record after which no record follows in a stream."""


class Fenced(Exception):
    """Another process initialised this transactional id. Nothing of the open transaction was committed."""


class Doubtful(Exception):
    """The broker did not answer, so the transaction may or may not be committed. The journal shows which."""


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
_TOO_LARGE = MessageSizeTooLargeError, RecordListTooLargeError
_TIMEOUT_S = TRANSACTION_TIMEOUT_MS / 1000
_LOOK_S = 0.05
_TRANSACTION = CoordinatorType.TRANSACTION


class Transactions:
    """Writes by one transactional id, with one commit at a time. Do not use it after an error. Its methods
    raise Fenced, Doubtful or RecordsRefused."""

    def __init__(self, kafka: KafkaSettings, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._lock = threading.Lock()
        try:
            self._requests = Requests(kafka, _TIMEOUT_S)
        except KafkaError as error:
            raise Doubtful(f"{transactional_id}: no connection to Kafka ({error})") from error
        self._producer: dict[str, int] = {}  # its id and its epoch
        self._sequences: dict[TopicPartition, int] = {}  # the number of each partition's next record
        self._told: set[TopicPartition] = set()  # what the coordinator knows of the open transaction
        self._is_begun = False  # the coordinator knows of an open transaction
        self._is_ahead = False  # and it was opened before there was anything to write
        self._opened_at_s = 0.0
        self._failure: Exception | None = None  # what has failed may have left records in a transaction
        self._ends: dict[TopicPartition, int] = {}  # behind what the last commit has written

    @property
    def round_trip_ms(self) -> float:
        """Returns the time of the fastest request in ms. Returns 0 until a request was answered."""
        return self._requests.round_trip_ms

    @property
    def is_far(self) -> bool:
        """Returns whether the broker is so far away that a commit saves a round trip."""
        return self.round_trip_ms >= FAR_MS

    def initialise(self) -> None:
        """Fences every earlier user of the id and aborts its open transaction."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
            max_version=4,
        )
        with self._using():
            answer = self._ask(request)
            self._producer = {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}
            self._sequences, self._told, self._is_begun = {}, set(), False

    def warm(self, topics: Collection[str]) -> None:
        """Fetches the metadata of the topics, so that the first transaction need not wait for it. Raises
        Doubtful."""
        deadline_s = monotonic() + _TIMEOUT_S
        for topic in topics:
            while not self._finds(topic):
                if monotonic() > deadline_s:
                    raise Doubtful(f"{self.transactional_id}: no metadata for {topic}")
                sleep(_LOOK_S)  # without the lock, so that a commit can go on

    def _finds(self, topic: str) -> bool:
        try:
            with self._lock:
                self._requests.begin()
                return bool(self._requests.find_partitions(topic))
        except RetriableError:
            return False
        except KafkaError as error:
            raise Doubtful(f"{self.transactional_id}: no metadata for {topic} ({error})") from error

    # --- a transaction that is open before there is anything to write

    def keep_open(self, topics: Iterable[str]) -> None:
        """Opens a transaction before there is anything to write, and sends the coordinator the partitions of
        the topics. So the next commit need not wait for that. Call it again before the transaction times out.
        """
        self.close_unused(0)
        with self._using():
            self._tell(
                {
                    TopicPartition(topic, partition)
                    for topic in topics
                    for partition in self._requests.partitions(topic)
                }
            )
            self._is_ahead = True

    def close_unused(self, older_than_s: float) -> None:
        """Ends the transaction that was opened ahead, if it has been open for `older_than_s` without a
        commit. Otherwise the broker would end the transaction and fence its owner."""
        if not self._is_unused(older_than_s):
            return  # without the lock, so that this does not wait for a commit
        with self._using():
            if self._is_unused(older_than_s):
                if not self._told:  # an answer was lost, so the transaction may be open or not
                    self._tell(set(self._ends))
                self._end_transaction()

    def _is_unused(self, older_than_s: float) -> bool:
        return self._is_ahead and monotonic() - self._opened_at_s >= older_than_s

    def expect_another(self) -> None:
        """Opens the next transaction ahead. Call it if the next commit comes soon, and most likely writes to
        the same partitions as the last one. A thread sends the coordinator these partitions now, so that the
        commit need not wait for that. While the coordinator still ends the last transaction, the thread sends
        the request again and again."""
        threading.Thread(target=self._tell_ahead, name="transaction", daemon=True).start()

    def _tell_ahead(self) -> None:
        if not self._lock.acquire(blocking=False):
            return  # a commit is running, and sends the partitions itself
        try:
            if self._ends and not self._is_begun and self._failure is None:
                self._requests.begin()
                with suppress(Exception):  # the next commit reports the error
                    self._tell(set(self._ends))
                self._is_ahead = self._is_begun
        finally:
            self._lock.release()

    def _begun(self) -> None:
        if not self._is_begun:
            self._opened_at_s = monotonic()
        self._is_begun, self._is_ahead = True, False

    def _tell(self, partitions: set[TopicPartition]) -> None:
        """Sends the coordinator the partitions that it does not know of yet."""
        self._begun()
        if new := partitions - self._told:
            self._ask(self._adds(new), _added)
            self._told |= new

    # --- commit

    def commit(
        self,
        records: Iterable[Outgoing],
        *,
        again: bool = False,
        written: Callable[[], None] = lambda: None,
    ) -> int:
        """Writes all `records` in one transaction. Calls `written` after that and before the commit. Returns
        the number of requests that it sent one after another.

        `again`: the next transaction will most likely write to the same partitions. If the broker is far
        away, this then opens the next transaction at once. The next commit waits for two answers instead of
        three. The open transaction hides no records from readers until something is written in it.
        """
        with self._using():
            before = self._requests.sent
            bodies = bodies_by_partition(records, self._requests.partitions)
            if bodies:
                self._tell(set(bodies))
            self._ends = self._write(bodies)
            self._requests.begin()
            written()
            self._end_transaction()
            sent = self._requests.sent - before
        if again and self.is_far:
            self.expect_another()
        return sent

    def end_of(self, topic: str) -> int:
        """Returns the offset after the last record that the last commit wrote to this topic. Kafka's own end
        of the topic may be too low, because Kafka answers a commit before readers can see it."""
        return max(end for partition, end in self._ends.items() if partition.topic == topic)

    def _end_transaction(self) -> None:
        if self._is_begun:
            self._ask(EndTxnRequest(**self._signed, committed=True, max_version=3))
        self._told, self._is_begun, self._is_ahead = set(), False, False

    def _write(self, bodies: Mapping[TopicPartition, list[Body]]) -> dict[TopicPartition, int]:
        """Writes the bodies of each partition in their order. Returns partition -> the offset after its last
        record."""
        left = {partition: deque(of_it) for partition, of_it in bodies.items()}
        ends: dict[TopicPartition, int] = {}
        next_one: dict[TopicPartition, bytearray] = {}  # the batch that did not fit into the last request
        while left:
            batches: dict[TopicPartition, bytearray] = {}
            size = 0
            for partition, of_it in left.items():
                batch = next_one.pop(partition, None) or self._batch(partition, of_it[0])
                if batches and size + len(batch) > REQUEST_BYTES_MAX:
                    next_one[partition] = batch
                    break
                batches[partition] = batch
                size += len(batch)
            for partition, end in self._produce(batches, left).items():
                ends[partition] = end
                if not left[partition]:
                    del left[partition]
        return ends

    def _batch(self, partition: TopicPartition, body: Body) -> bytearray:
        return record_batch(body, **self._producer, base_sequence=self._sequences.get(partition, 0))

    def _produce(
        self, batches: dict[TopicPartition, bytearray], left: Mapping[TopicPartition, deque[Body]]
    ) -> dict[TopicPartition, int]:
        """Writes these batches, and removes them from `batches` and their bodies from `left`. Each batch is
        the first body of its partition in `left`. Returns partition -> the offset after its batch.

        If a batch is too large for its topic, this writes nothing of it, and puts its two halves into `left`.
        """
        ends: dict[TopicPartition, int] = {}
        for one in self._requests.tries():
            with one:
                answers, failures = self._answers(batches)
                for partition, answer in answers:
                    error = error_of(answer.error_code, answer.error_message)
                    of_it = left[partition]
                    if isinstance(error, _TOO_LARGE) and of_it[0].can_be_cut:
                        of_it.extendleft(reversed(halves(of_it.popleft())))
                        del batches[partition]
                    elif isinstance(error, _REFUSALS):
                        raise RecordsRefused(f"the topic {partition.topic} does not take a record: {error}")
                    elif error is not None:
                        failures.append(error)
                    else:
                        count = of_it.popleft().count
                        self._sequences[partition] = (self._sequences.get(partition, 0) + count) % 2**31
                        ends[partition] = answer.base_offset + count
                        del batches[partition]
                if (failure := _worst(failures)) is not None:
                    raise failure
        return ends

    def _answers(
        self, batches: Mapping[TopicPartition, bytearray]
    ) -> tuple[list[tuple[TopicPartition, Any]], list[KafkaError]]:
        """Sends each batch to the leader of its partition. Returns the answers for the partitions, and the
        errors of the leaders that did not answer."""
        of_leader: defaultdict[int, dict[TopicPartition, bytearray]] = defaultdict(dict)
        for partition, batch in batches.items():
            of_leader[self._requests.leader(partition)][partition] = batch
        sent = [self._requests.send(leader, self._writes(mine)) for leader, mine in of_leader.items()]
        answers: list[tuple[TopicPartition, Any]] = []
        failures: list[KafkaError] = []
        for asked in sent:
            try:
                answer = self._requests.answer_of(asked)
            except KafkaError as error:
                failures.append(error)
                continue
            answers += [
                (TopicPartition(topic.name, each.index), each)
                for topic in answer.responses
                for each in topic.partition_responses
            ]
        return answers, failures

    # --- requests

    @property
    def _signed(self) -> dict[str, Any]:
        return {"transactional_id": self.transactional_id, **self._producer}

    def _ask(self, request: Any, said: Callable[[Any], KafkaError | None] | None = None) -> Any:
        """Sends a request to the transaction's coordinator, and returns the answer. `said` returns the error
        in an answer whose error is not in the usual field."""
        return self._requests.ask_coordinator(_TRANSACTION, self.transactional_id, request, said or _error_in)

    def _adds(self, partitions: Iterable[TopicPartition]) -> Any:
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for topic, number in partitions:
            numbers[topic].append(number)
        kind = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        return AddPartitionsToTxnRequest(
            **{f"v3_and_below_{name}": value for name, value in self._signed.items()},
            v3_and_below_topics=[kind(name=topic, partitions=many) for topic, many in numbers.items()],
            max_version=3,
        )

    def _writes(self, batches: Mapping[TopicPartition, bytearray]) -> Any:
        of_topic = ProduceRequest.TopicProduceData
        of_partition = of_topic.PartitionProduceData
        data: defaultdict[str, list[Any]] = defaultdict(list)
        for (topic, number), batch in batches.items():
            data[topic].append(of_partition(index=number, records=batch))
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=TRANSACTION_TIMEOUT_MS,
            topic_data=[of_topic(name=topic, partition_data=many) for topic, many in data.items()],
            min_version=3,
            max_version=9,
        )

    def store_position(self, group: str, partition: TopicPartition, end: int, note: str) -> None:
        """Stores `end` as the position of a consumer group in the transaction, with `note` as its metadata.
        Call it only from `written` of `commit`. Raises KafkaError."""
        self._begun()
        self._ask(AddOffsetsToTxnRequest(**self._signed, group_id=group, max_version=3))
        of_topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        of_partition = of_topic.TxnOffsetCommitRequestPartition
        position = of_partition(
            partition_index=partition.partition,
            committed_offset=end,
            committed_leader_epoch=-1,
            committed_metadata=note,
        )
        request = TxnOffsetCommitRequest(
            **self._signed,
            group_id=group,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[of_topic(name=partition.topic, partitions=[position])],
            max_version=3,
        )
        self._requests.ask_coordinator(CoordinatorType.GROUP, group, request, _stored)

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Holds the lock while the context is open. After an error, each further use raises that error.
        Otherwise the next commit would also commit the records of the failed one."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._requests.begin()
            try:
                yield
            except KafkaError as error:
                self._failure = self._explained(error)
                raise self._failure from error
            except BaseException as error:
                self._failure = (
                    error if isinstance(error, RecordsRefused) else Doubtful(f"it failed: {error!r}")
                )
                raise

    def _explained(self, error: KafkaError) -> Exception:
        """Returns the error that an owner gets for a failure: Fenced, RecordsRefused, or else Doubtful."""
        if isinstance(error, ProducerFencedError | InvalidProducerEpochError):
            return Fenced(f"{self.transactional_id}: {error}")
        if isinstance(error, _REFUSALS):
            return RecordsRefused(f"Kafka does not take a record: {error}")
        return Doubtful(f"{self.transactional_id}: not answered ({error})")

    def close(self) -> None:
        """Closes the connections. A running commit is then in doubt. The broker aborts an open transaction
        when it times out."""
        self._requests.stop()
        with self._lock:
            self._requests.close()


def _error_in(answer: Any) -> KafkaError | None:
    return error_of(answer.error_code)


def _added(answer: Any) -> KafkaError | None:
    """Returns the error in an answer to AddPartitionsToTxn, or None."""
    return _worst(
        error_of(each.partition_error_code, topic.name)
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    )


def _stored(answer: Any) -> KafkaError | None:
    """Returns the error in an answer to TxnOffsetCommit, or None."""
    return _worst(error_of(each.error_code) for topic in answer.topics for each in topic.partitions)


def _worst(errors: Iterable[KafkaError | None]) -> KafkaError | None:
    """Returns the worst error, or None if there is none. A lasting error is worse than a passing one. An
    error that only follows from another error comes last."""
    found = [error for error in errors if error is not None]
    found.sort(
        key=lambda each: (isinstance(each, OperationNotAttemptedError), isinstance(each, RetriableError))
    )
    return found[0] if found else None
