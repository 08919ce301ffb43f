"""Kafka's settings for requests."""

from __future__ import annotations

from django.conf import settings

from pipeline_runtime.kafka.clients import KafkaSettings


def kafka_settings() -> KafkaSettings:
    """Returns settings that give up soon when the broker is away, since a person waits for the request."""
    return KafkaSettings(
        settings.FOGLINE.kafka, {"bootstrap_timeout_ms": 3000, **settings.FOGLINE.kafka_security}
    )
