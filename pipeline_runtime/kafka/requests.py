"""Asks Kafka's brokers, in the thread that waits for the answer.

kafka-python's producer has a thread of its own for that, with queues of batches and of requests in between.
It has to be made to wait, to stop and to fail in time (decision 45).
Here kafka-python connects, signs in, and encodes and decodes the requests. Which of them are sent, and when
one is sent again, is decided here and in `transactions`.

This uses internals of kafka-python. tests/contract/kafka runs them against a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from kafka import TopicPartition
from kafka.errors import (
    ConcurrentTransactionsError,
    CoordinatorNotAvailableError,
    InvalidMetadataError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoError,
    NotCoordinatorError,
    RequestTimedOutError,
    RetriableError,
    UnknownBrokerIdError,
    for_code,
)
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from pipeline_runtime.kafka.clients import KafkaSettings, open_client
from pipeline_runtime.kafka.transport import read_at_once

_COORDINATOR_MOVED = (
    KafkaConnectionError,
    NotCoordinatorError,
    CoordinatorNotAvailableError,
    RequestTimedOutError,
)
_AGAIN_S = 0.001
"""The pause before a request is sent again while the last transaction ends: a commit then waits some 3 ms."""
_PAUSE_S, _PAUSE_S_MAX = 0.01, 0.1
"""The pause before any other request is sent again. It doubles each time."""


class Stopped(KafkaError):
    """The connections were closed while somebody used them."""


class Asked(NamedTuple):
    """A request that was sent. `node` is None if the client's loop chooses the broker."""

    future: Any
    node: int | None


class Requests:
    """For one thread at a time. `begin` says how long all that follows may take together."""

    def __init__(self, kafka: KafkaSettings, timeout_s: float) -> None:
        """Connects. `timeout_s`: how long that may take, and what `begin` allows. Raises KafkaError."""
        self.timeout_s = timeout_s
        self._client = open_client(kafka, timeout_s)
        self._net = self._client._net
        self._cluster = self._client.cluster
        self._coordinators: dict[tuple[CoordinatorType, str], int] = {}
        self._leaders_moved = False
        self._is_stopped = False
        self._deadline_s = 0.0
        self.sent = 0
        self.round_trip_ms = 0.0  # of the fastest request; 0 until one was answered

    def begin(self) -> None:
        """Gives what follows so much time."""
        self._deadline_s = monotonic() + self.timeout_s

    # --- one request

    def send(self, node: int, request: Any) -> Asked:
        """Sends a request, and returns what `answer_of` takes. Only that receives."""
        self._raise_if_stopped()
        self.sent += 1
        sent_at_s = monotonic()
        try:
            future = self._client.send(node, request)
        except UnknownBrokerIdError as error:
            raise KafkaConnectionError(f"the broker {node} is not known") from error
        future.add_callback(lambda _: self._answered(sent_at_s))
        return Asked(future, node)

    def _answered(self, sent_at_s: float) -> None:
        took_ms = (monotonic() - sent_at_s) * 1000
        self.round_trip_ms = min(self.round_trip_ms or took_ms, took_ms)

    def answer_of(self, asked: Asked) -> Any:
        """Waits for the answer. Raises KafkaError."""
        future = asked.future
        while not future.is_done:
            self._raise_if_stopped()
            left_s = self._deadline_s - monotonic()
            if left_s <= 0:
                raise KafkaTimeoutError("a broker did not answer in time")
            transports = {node: each.transport for node, each in self._client._manager._conns.items()}
            if not read_at_once(transports.get(asked.node), transports.values(), self._net, left_s):
                self._net.poll(timeout_ms=left_s * 1000)
        if future.exception is not None:
            raise future.exception
        return future.value

    # --- until it is answered

    def tries(self) -> Iterator[Try]:
        """Yields one try after another, each behind a pause, until one has not failed. When the time is over,
        raises what has failed last."""
        pause_s = _PAUSE_S
        while True:
            one = Try(self)
            yield one
            if one.failure is None:
                return
            if monotonic() > self._deadline_s:
                raise one.failure
            if isinstance(one.failure, ConcurrentTransactionsError):
                self._pause(_AGAIN_S)
            else:
                self._pause(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def _pause(self, seconds: float) -> None:
        """A broker that asks for a pause, or a new connection, needs the loop to run meanwhile."""
        until_s = monotonic() + seconds
        while (left_s := until_s - monotonic()) > 0:
            self._raise_if_stopped()
            self._net.poll(timeout_ms=left_s * 1000)

    def ask_coordinator(
        self, kind: CoordinatorType, key: str, request: Any, error_in: Callable[[Any], KafkaError | None]
    ) -> Any:
        """Returns the coordinator's answer. `error_in`: the error that an answer says. Raises KafkaError."""
        for one in self.tries():
            with one:
                answer = self.answer_of(self.send(self._coordinator(kind, key), request))
                if error := error_in(answer):
                    raise error
        return answer

    def _coordinator(self, kind: CoordinatorType, key: str) -> int:
        if (kind, key) in self._coordinators:
            return self._coordinators[kind, key]
        request = FindCoordinatorRequest(key=key, key_type=kind.value, coordinator_keys=[key])
        node = self._client.least_loaded_node(bootstrap_fallback=True)
        answer = self.answer_of(self.send(node, request))
        found = answer.coordinators[0] if answer.coordinators else answer
        if error := error_of(found.error_code):
            raise error
        # The connection to the broker itself is used, which is open already for what is written.
        self._cluster.add_coordinator(found, kind, key, synthesize_node_id=False)
        self._coordinators[kind, key] = int(found.node_id)
        return self._coordinators[kind, key]

    def forget(self, error: KafkaError) -> None:
        """What is known of the cluster may be wrong, as this error says."""
        if isinstance(error, _COORDINATOR_MOVED):
            self._coordinators.clear()
        if isinstance(error, InvalidMetadataError):
            self._leaders_moved = True

    # --- what is known of the cluster

    def partitions(self, topic: str) -> list[int]:
        """Returns the numbers of a topic's partitions. Raises KafkaError."""
        for one in self.tries():
            with one:
                known = self.find_partitions(topic)
                if not known:
                    raise KafkaTimeoutError(f"the cluster does not know the topic {topic}")
        return known

    def find_partitions(self, topic: str) -> list[int]:
        """Returns the same, or an empty list if the cluster does not know the topic now."""
        known = self._cluster.partitions_for_topic(topic)
        if not known:
            self._refresh(topic)
            known = self._cluster.partitions_for_topic(topic)
        if not known:
            # Otherwise kafka-python would look for it all the time.
            self._cluster._topics.discard(topic)
        return sorted(known or ())

    def leader(self, partition: TopicPartition) -> int:
        """Returns the broker that leads a partition. Raises KafkaError."""
        known = None if self._leaders_moved else self._cluster.leader_for_partition(partition)
        if known is None or known < 0:
            self._refresh(partition.topic)
            self._leaders_moved = False
            known = self._cluster.leader_for_partition(partition)
        if known is None or known < 0:
            raise KafkaTimeoutError(f"nobody leads partition {partition.partition} of {partition.topic}")
        return int(known)

    def _refresh(self, topic: str) -> None:
        self._raise_if_stopped()
        self._cluster.add_topic(topic)
        self.answer_of(Asked(self._net.call_soon_with_future(self._cluster.refresh_metadata), None))

    # --- the end

    def _raise_if_stopped(self) -> None:
        if self._is_stopped:
            raise Stopped("it was closed")

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

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
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
