"""How requests reach Kafka."""

from __future__ import annotations

from django.conf import settings

from pipeline_runtime.kafka.clients import KafkaSettings


def kafka_settings() -> KafkaSettings:
    """For requests, which somebody waits for: gives up soon when the broker is away."""
    return KafkaSettings(
        settings.FOGLINE.kafka, {"bootstrap_timeout_ms": 3000, **settings.FOGLINE.kafka_security}
    )
