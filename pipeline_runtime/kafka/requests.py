"""Asks Kafka's brokers, in the thread that waits for the answer.

kafka-python's producer has a thread of its own for that, and a queue of requests, of batches and of errors in
between. A small transaction then takes three times the CPU, and twice the time, that its requests take. Here
kafka-python connects, signs in, and encodes and decodes the requests. Which of them are sent, and when one is
sent again, is decided here and in `transactions`.

This uses internals of kafka-python. tests/contract/kafka runs them against a broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from kafka import TopicPartition
from kafka.errors import (
    CoordinatorNotAvailableError,
    InvalidMetadataError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    NoError,
    NotCoordinatorError,
    RetriableError,
    UnknownBrokerIdError,
    for_code,
)
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from pipeline_runtime.kafka.clients import KafkaSettings, open_client

_AGAIN_S = 0.001
"""The pause before a broker is asked again. With it, a commit waits some 3 ms for a transaction that ends."""
_SLOW = InvalidMetadataError, NodeNotReadyError, KafkaTimeoutError
_RECONNECT_S = 0.01
"""The pause where a broker was away, or the cluster has to find out something first."""


class Stopped(KafkaError):
    """The connections were closed while somebody used them."""


class Requests:
    """For one thread at a time. `timeout_s`: how long a request is tried again."""

    def __init__(self, kafka: KafkaSettings, timeout_s: float) -> None:
        """Connects. Raises KafkaError."""
        self._timeout_s = timeout_s
        self._client = open_client(kafka, timeout_s)
        self._net = self._client._net
        self._cluster = self._client.cluster
        self._coordinators: dict[tuple[CoordinatorType, str], int] = {}
        self._is_stopped = False
        self.sent = 0
        self.round_trip_ms = 0.0  # of the fastest request; 0 until one was answered

    # --- one request

    def send(self, node: int, request: Any) -> Any:
        """Sends a request, and returns a future of its answer. Only `answer_of` receives."""
        if self._is_stopped:
            raise Stopped("it was closed")
        self.sent += 1
        sent_at_s = monotonic()
        try:
            future = self._client.send(node, request)
        except UnknownBrokerIdError as error:
            raise KafkaConnectionError(f"the broker {node} is not known") from error
        future.add_callback(lambda _: self._answered(sent_at_s))
        return future

    def _answered(self, sent_at_s: float) -> None:
        took_ms = (monotonic() - sent_at_s) * 1000
        self.round_trip_ms = min(self.round_trip_ms or took_ms, took_ms)

    def flush(self) -> None:
        """Hands what was sent to the kernel, without waiting for an answer."""
        self._net.poll(timeout_ms=0)

    def answer_of(self, future: Any, deadline_s: float) -> Any:
        """Waits for the answer, at most until the deadline (monotonic). Raises KafkaError."""
        while not future.is_done:
            left_s = deadline_s - monotonic()
            if self._is_stopped:
                raise Stopped("it was closed")
            if left_s <= 0:
                raise KafkaTimeoutError("a broker did not answer in time")
            self._net.poll(timeout_ms=left_s * 1000)
        if future.exception is not None:
            raise future.exception
        return future.value

    # --- until it is answered

    def tries(self) -> Iterator[Try]:
        """Yields one try after another, each behind a pause, until one has not failed. At the deadline raises
        what has failed last."""
        deadline_s = monotonic() + self._timeout_s
        while True:
            one = Try(self, deadline_s)
            yield one
            if one.failure is None:
                return
            if monotonic() > deadline_s:
                raise one.failure
            sleep(
                _RECONNECT_S
                if isinstance(one.failure, KafkaConnectionError | NodeNotReadyError)
                else _AGAIN_S
            )

    def ask_coordinator(self, kind: CoordinatorType, key: str, request: Any, error_of: Any) -> Any:
        """Returns the coordinator's answer. `error_of` an answer is the error that it says. Raises
        KafkaError."""
        for one in self.tries():
            with one:
                node = self.coordinator(kind, key, one.deadline_s)
                answer = self.answer_of(self.send(node, request), one.deadline_s)
                if error := error_of(answer):
                    raise error
        return answer

    def coordinator(self, kind: CoordinatorType, key: str, deadline_s: float) -> int:
        """Returns the broker that coordinates this transactional id or group. Raises KafkaError."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        request = FindCoordinatorRequest(key=key, key_type=kind.value, coordinator_keys=[key])
        node = self._client.least_loaded_node(bootstrap_fallback=True)
        answer = self.answer_of(self.send(node, request), deadline_s)
        found = answer.coordinators[0] if answer.coordinators else answer
        if error := error_of(found.error_code):
            raise error
        # The connection to the broker itself is used, which is open already for what is written.
        self._cluster.add_coordinator(found, kind, key, synthesize_node_id=False)
        self._coordinators[kind, key] = int(found.node_id)
        return self._coordinators[kind, key]

    def forget(self, error: KafkaError) -> None:
        """What is known of the cluster may be wrong, as this error says."""
        if isinstance(error, KafkaConnectionError | NotCoordinatorError | CoordinatorNotAvailableError):
            self._coordinators.clear()
        if isinstance(error, InvalidMetadataError):
            self._cluster.request_update()

    # --- what is known of the cluster

    def partitions(self, topic: str) -> list[int]:
        """Returns the numbers of a topic's partitions. Raises KafkaError."""
        for one in self.tries():
            with one:
                known = self._cluster.partitions_for_topic(topic)
                if not known:
                    self._cluster.add_topic(topic)
                    self._refresh(one.deadline_s)
                    known = self._cluster.partitions_for_topic(topic)
                if not known:
                    raise KafkaTimeoutError(f"the cluster does not know the topic {topic}")
        return sorted(known)

    def leader(self, partition: TopicPartition, deadline_s: float) -> int:
        """Returns the broker that leads a partition. Raises KafkaError."""
        known = self._cluster.leader_for_partition(partition)
        if known is None or known < 0 or self._cluster._need_update:
            self._cluster.add_topic(partition.topic)
            self._refresh(deadline_s)
            known = self._cluster.leader_for_partition(partition)
        if known is None or known < 0:
            raise KafkaTimeoutError(f"nobody leads partition {partition.partition} of {partition.topic}")
        return int(known)

    def _refresh(self, deadline_s: float) -> None:
        self.answer_of(self._net.call_soon_with_future(self._cluster.refresh_metadata), deadline_s)

    # --- the end

    def stop(self) -> None:
        """Ends what another thread waits for. It raises Stopped, and nothing more is sent."""
        self._is_stopped = True
        self._net.wakeup()

    def close(self) -> None:
        """No thread uses it any more."""
        with suppress(Exception):
            self._client.close()


class Try:
    """Keeps an error after which trying again may help. Lets all other errors pass."""

    def __init__(self, requests: Requests, deadline_s: float) -> None:
        self._requests = requests
        self.deadline_s = deadline_s
        self.failure: KafkaError | None = None

    def __enter__(self) -> Try:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, RetriableError):
            return False
        self._requests.forget(error)
        self.failure = error
        return True


def error_of(code: int, message: str | None = None) -> KafkaError | None:
    """Returns the error of this number, or None if it stands for none."""
    kind = for_code(code)
    if kind is NoError:
        return None
    error: KafkaError = kind(*([message] if message else []))
    return error
