"""Checks whether the broker answers, and how soon."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter

from kafka import KafkaAdminClient

from pipeline_runtime.kafka.clients import KafkaSettings, close_spent, open_admin, within


def check_broker(kafka: KafkaSettings, timeout_s: float) -> None:
    """Returns when a broker has answered a metadata request in time; raises kafka's error otherwise."""
    milliseconds = int(timeout_s * 1000)
    client = KafkaAdminClient(
        **{
            **kafka.client_options(),
            "bootstrap_timeout_ms": milliseconds,
            "request_timeout_ms": milliseconds,
        }
    )
    try:
        client.list_topics()
    finally:
        client.close()


def round_trip_ms(kafka: KafkaSettings, tries: int, timeout_s: float) -> float:
    """Returns the shortest time of `tries` small requests over a connection that is open already. Raises
    KafkaError when the broker does not answer in time."""
    milliseconds = int(timeout_s * 1000)
    timeouts = {"bootstrap_timeout_ms": milliseconds, "request_timeout_ms": milliseconds}
    # Connecting and asking for metadata may each take that long. A client that comes later than that would
    # never be closed.
    client = within(3 * timeout_s, lambda: open_admin(kafka, **timeouts))
    try:
        # The first request opens the connection.
        return min([_answered_ms(client, timeout_s) for _ in range(tries + 1)][1:])
    finally:
        close_spent(client)


def _answered_ms(client: KafkaAdminClient, timeout_s: float) -> float:
    def ask() -> float:
        began = perf_counter()
        # kafka-python 3.0.12 misses a field in the answer of brokers from 2.8 to 3.6, but the answer has
        # arrived.
        with suppress(KeyError):
            client.describe_cluster()
        return (perf_counter() - began) * 1000

    return within(timeout_s, ask)
