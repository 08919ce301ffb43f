"""Asks Kafka during a request of the web."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from pipeline_runtime.kafka.clients import KafkaSettings
from webapp.problems import BackendAway

Read = TypeVar("Read")


def kafka_settings() -> KafkaSettings:
    """Returns settings that give up soon when the broker is away, since a person waits for the request."""
    return KafkaSettings(
        settings.FOGLINE.kafka, {"bootstrap_timeout_ms": 3000, **settings.FOGLINE.kafka_security}
    )


def asked_of_kafka(read: Callable[[KafkaSettings], Read]) -> Read:
    """Returns what `read` returns. Raises BackendAway."""
    try:
        return read(kafka_settings())
    except Exception as error:
        # Any error of the Kafka client, which only pipeline_runtime.kafka may import.
        raise BackendAway(
            f"Kafka does not answer: {type(error).__name__}.",
            safe="Records that were committed stay in their topics.",
            next="Check that the broker runs, then try again.",
        ) from error
