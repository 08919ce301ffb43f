"""Whether the broker answers."""

from __future__ import annotations

from kafka import KafkaAdminClient

from pipeline_runtime.kafka.clients import KafkaSettings


def check_broker(kafka: KafkaSettings, timeout_s: float) -> None:
    """Returns when a broker answered a metadata request within the time; raises kafka's error else."""
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
