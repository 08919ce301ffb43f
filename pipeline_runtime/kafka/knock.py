"""Logs in at a broker once, and tells why it cannot: a client that is opened tries again and again instead,
and keeps the reason to itself.

This uses internals of kafka-python.
"""

from __future__ import annotations

from contextlib import suppress

from kafka.errors import (
    AuthorizationError as AuthorizationError,  # others take these from here
    RequestTimedOutError as RequestTimedOutError,
    SaslAuthenticationFailedError as SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError as UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient

from pipeline_runtime.kafka.clients import KafkaSettings, KafkaTimeoutError
from pipeline_runtime.kafka.transport import read_to_the_end

read_to_the_end()


def knock(kafka: KafkaSettings, timeout_s: float) -> None:
    """Returns when the first of the bootstrap servers has let Fogline in. Raises KafkaError."""
    timeout_ms = timeout_s * 1000
    client = KafkaNetClient(**kafka.client_options(), request_timeout_ms=int(timeout_ms))
    try:
        manager = client._manager
        node = manager.cluster.bootstrap_brokers()[0].node_id
        connection = manager.get_connection(
            node,
            timeout_ms=timeout_ms,
            pop_on_close=False,
            refresh_metadata_on_err=False,
            reset_backoff_on_connect=False,
        )
        client.poll(timeout_ms=timeout_ms, future=connection.init_future)
        if connection.init_future.failed():
            raise connection.init_future.exception
        if not connection.init_future.is_done:
            raise KafkaTimeoutError(f"no answer within {timeout_s:.0f} s")
    finally:
        with suppress(Exception):
            client.close()
