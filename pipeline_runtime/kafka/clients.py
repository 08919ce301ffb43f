"""Consumers and producers, with the settings that were measured (docs/explanation/measured-settings.md)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer import IsolationLevel, OffsetSpec

from pipeline_runtime.kafka.arrow_batches import RecordByRecord
from pipeline_runtime.kafka.decoders import generate_one_at_a_time
from pipeline_runtime.kafka.transport import close_what_failed, make_no_unread_texts, write_at_once
from pipeline_runtime.kafka.unpacking import unpack_within_bounds

# Other modules import these parts of kafka-python from here.
__all__ = [
    "TRANSACTION_TIMEOUT_MS",
    "IsolationLevel",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaSettings",
    "KafkaTimeoutError",
    "OffsetSpec",
    "TopicPartition",
    "open_admin",
    "open_client",
    "open_consumer",
    "open_plain_producer",
    "polled_by_its_thread",
]

generate_one_at_a_time()
unpack_within_bounds()
write_at_once()
make_no_unread_texts()
close_what_failed()

# How often a consumer looks for the broker while it is away.
RETRY_BACKOFF_MS = 10
# The least time between two looks at the cluster's metadata. Every client that is opened and then names a
# topic waits for it. kafka-python waits 100 ms there whatever its retry_backoff_ms. With none at all, it
# would ask for a missing topic without a pause.
METADATA_BACKOFF_MS = 10
# An abandoned open transaction holds every read_committed reader at its start for this long.
TRANSACTION_TIMEOUT_MS = 10_000
REQUEST_BYTES_MAX = 4 * 1024 * 1024
"""The largest record that a producer sends, before it is compressed."""
_CLOSE_S = 5.0

T = TypeVar("T")


@dataclass(frozen=True)
class KafkaSettings:
    """How to reach the broker. `security` is passed to every client as it is (TLS, SASL)."""

    bootstrap: str
    security: dict[str, Any] = field(default_factory=dict)

    def client_options(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap.split(","),
            "retry_backoff_ms": RETRY_BACKOFF_MS,
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 1000,
            **self.security,
        }


def _opened(kind: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Opens a client of this kind, or raises KafkaError.

    kafka-python starts its thread before it reaches the broker, and leaves the thread running when there is
    no broker. In an outage there would be one more thread each time.
    """
    started: list[KafkaNetClient] = []

    def start(**config: Any) -> KafkaNetClient:
        client = KafkaNetClient(**config)
        started.append(client)
        # A topic that was deleted must not come back because somebody reads it or looks for it. kafka-python
        # does not pass on its clients' option for that.
        client.cluster.config["allow_auto_create_topics"] = False
        _pause_between_connections(client)
        return client

    try:
        return kind(**options, kafka_client=start)
    except BaseException as error:
        for client in started:
            with suppress(Exception):
                client.close()
        if isinstance(error, OSError):  # no more files may be opened
            raise KafkaConnectionError(str(error)) from error
        raise


def _pause_between_connections(client: KafkaNetClient) -> None:
    """Makes kafka-python pause between connections that are closed at once.

    kafka-python forgets its back-off when a connection opens, even when the other side closes it at once,
    such as a tunnel or a balancer whose broker is away. It would connect a thousand times a second.
    """
    manager = client._manager
    reset = manager.reset_backoff

    def reset_once_connected(node_id: Any) -> None:
        connection = manager._conns.get(node_id)
        if node_id == "metadata" or (connection is not None and connection.connected):
            reset(node_id)
        else:
            manager.update_backoff(node_id)

    manager.reset_backoff = reset_once_connected


def within(timeout_s: float, ask: Callable[[], T]) -> T:
    """Returns or raises what `ask` does. Raises KafkaTimeoutError when it does neither in time.

    kafka-python waits for its own thread without a limit, whatever timeouts it is given. When an outage makes
    that thread lose a request, a caller would wait until its process ends. After a timeout `ask` goes on by
    itself, and its client must not be used any more.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(ask())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="kafka call", daemon=True).start()
    try:
        return done.result(timeout_s)
    except TimeoutError as error:
        if done.done():
            return done.result()
        raise KafkaTimeoutError(f"no answer within {timeout_s:.0f} s") from error


def close_spent(client: Any) -> None:
    """Closes a client that is not used any more, without waiting and without raising.

    kafka-python may raise or hang while it closes, when its connections are not as it expects them. That must
    not end or hold the calling thread, nor hide why it gave the client up.
    """
    with suppress(Exception):
        within(_CLOSE_S, client.close)


def open_admin(kafka: KafkaSettings, **options: Any) -> KafkaAdminClient:
    return _opened(KafkaAdminClient, {**kafka.client_options(), **options})


def open_consumer(kafka: KafkaSettings, **options: Any) -> KafkaConsumer:
    """Returns a consumer of committed records that belongs to no group and assigns its own partitions. Each
    row of Fogline's own topics is a record, however it was written."""
    settings = {
        **kafka.client_options(),
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
        "check_crcs": False,
        "metrics_enabled": False,
        **options,
    }
    consumer: KafkaConsumer = _opened(KafkaConsumer, settings)
    consumer._fetcher.PartitionRecords = RecordByRecord
    consumer._cluster.config["retry_backoff_ms"] = METADATA_BACKOFF_MS
    return consumer


def polled_by_its_thread(consumer: KafkaConsumer) -> KafkaConsumer:
    """Lets the thread that polls the consumer send and receive by itself, and returns the consumer.

    kafka-python does that in another thread. Each fetch then changes threads four times, which takes half of
    its CPU. A consumer whose thread does not poll does not reconnect and renews no metadata meanwhile.
    """
    consumer._net.stop()
    return consumer


def open_client(kafka: KafkaSettings, timeout_s: float) -> KafkaNetClient:
    """Returns a connected client that only sends requests and receives answers, in the thread that calls it.
    No request waits longer than `timeout_s` for its answer. Raises KafkaError."""
    timeout_ms = int(timeout_s * 1000)

    def connected(kafka_client: Callable[..., KafkaNetClient], **config: Any) -> KafkaNetClient:
        client = kafka_client(**config)
        client._manager.bootstrap(timeout_ms)
        return client

    client: KafkaNetClient = _opened(connected, {**kafka.client_options(), "request_timeout_ms": timeout_ms})
    client.cluster.config["retry_backoff_ms"] = METADATA_BACKOFF_MS
    return client


def open_plain_producer(kafka: KafkaSettings, timeout_s: float) -> KafkaProducer:
    """Returns a producer without transactions: a record comes once, unless `timeout_s` ends while it is sent
    and somebody sends it again. Its batches are compressed."""
    timeout_ms = int(timeout_s * 1000)
    settings = {
        **kafka.client_options(),
        "acks": "all",
        "enable_idempotence": True,
        "linger_ms": 0,
        "compression_type": "zstd",
        "max_request_size": REQUEST_BYTES_MAX,
        "max_block_ms": timeout_ms,
        "delivery_timeout_ms": timeout_ms,
        "request_timeout_ms": timeout_ms,
        "metrics_enabled": False,
    }
    producer: KafkaProducer = _opened(KafkaProducer, settings)
    producer._metadata.config["retry_backoff_ms"] = METADATA_BACKOFF_MS
    return producer
