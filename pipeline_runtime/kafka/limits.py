"""What topics accept, so that one record which Kafka would refuse does not stop all others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.codec import zstd_encode

from pipeline_runtime.kafka.clients import REQUEST_BYTES_MAX, KafkaSettings, close_spent, open_admin, within

log = logging.getLogger(__name__)

_ANSWER_S = 10.0
_AROUND_BYTES = 200
"""What a record and its batch have around key, value and headers, at most."""
_AROUND_HEADER_BYTES = 10
_FOR_EVER_MS = 2**63 - 1


@dataclass(frozen=True)
class TopicLimits:
    """What one topic accepts."""

    batch_bytes: int = REQUEST_BYTES_MAX  # of a batch as it is sent, compressed
    before_ms: int = _FOR_EVER_MS  # the longest that a record's time may be ago
    after_ms: int = _FOR_EVER_MS  # and the longest that it may be ahead
    needs_key: bool = False

    def takes_size(self, size: int) -> bool:
        """Returns whether it takes a key and value of so many bytes, even if they cannot be compressed."""
        return size + _AROUND_BYTES <= min(REQUEST_BYTES_MAX, self.batch_bytes)

    def takes_times(self, first_ms: int, last_ms: int, now_ms: int) -> bool:
        """Returns whether it takes all times from the first to the last."""
        return now_ms - first_ms <= self.before_ms and last_ms - now_ms <= self.after_ms

    def refusal(
        self,
        key: bytes | None,
        value: bytes,
        time_ms: int | None,
        now_ms: int,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> str | None:
        """Returns why Kafka would refuse the record, or None if it takes it."""
        beside = headers_bytes(headers)
        size = len(key or b"") + len(value) + beside + _AROUND_BYTES
        if size > REQUEST_BYTES_MAX:
            return f"the record has {size:,} bytes, and at most {REQUEST_BYTES_MAX:,} are sent"
        packed = len(zstd_encode(value)) + beside + _AROUND_BYTES if size > self.batch_bytes else size
        if packed > self.batch_bytes:
            return f"the record has {size:,} bytes, and the topic takes {self.batch_bytes:,}"
        if self.needs_key and key is None:
            return (
                "the record has no key, and the topic keeps the newest record of each key (it is compacted)"
            )
        if time_ms is not None and time_ms - now_ms > self.after_ms:
            return f"its time is more than {_span(self.after_ms)} ahead, which the topic refuses"
        if time_ms is not None and now_ms - time_ms > self.before_ms:
            return f"its time is more than {_span(self.before_ms)} ago, which the topic refuses"
        return None


def headers_bytes(headers: Sequence[tuple[str, bytes]]) -> int:
    """Returns how many bytes a record's headers take, at most."""
    return sum(len(name.encode()) + len(value) + _AROUND_HEADER_BYTES for name, value in headers)


def _span(ms: int) -> str:
    for unit, length_ms in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000)):
        if ms >= 2 * length_ms:
            return f"{ms // length_ms} {unit}"
    return f"{ms / 1000:g} s"


def topic_limits(kafka: KafkaSettings, topics: Collection[str]) -> dict[str, TopicLimits]:
    """Returns what the topics accept. Raises KafkaError."""
    client = within(_ANSWER_S, lambda: open_admin(kafka))
    try:
        wanted = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in sorted(topics)]
        answers: Any = within(_ANSWER_S, lambda: client.describe_configs(wanted, config_filter="all"))
    finally:
        close_spent(client)
    return {
        topic: limits_of({name: str(entry["value"]) for name, entry in config.items()})
        for topic, config in answers["topic"].items()
    }


def limits_of(config: Mapping[str, str]) -> TopicLimits:
    """Returns the limits by a topic's configuration."""
    takes_any_time = config.get("message.timestamp.type") == "LogAppendTime"
    return TopicLimits(
        batch_bytes=int(config.get("max.message.bytes", REQUEST_BYTES_MAX)),
        before_ms=_FOR_EVER_MS if takes_any_time else _ms(config, "message.timestamp.before.max.ms"),
        after_ms=_FOR_EVER_MS if takes_any_time else _ms(config, "message.timestamp.after.max.ms"),
        needs_key="compact" in config.get("cleanup.policy", ""),
    )


def _ms(config: Mapping[str, str], name: str) -> int:
    return int(config.get(name, _FOR_EVER_MS))


class OutputLimits:
    """The limits of the topics that a group writes. They are asked for once, beside the batches."""

    def __init__(self, kafka: KafkaSettings, topics: Collection[str]) -> None:
        self._kafka = kafka
        self._topics = topics
        self._found: Mapping[str, TopicLimits] = {}
        if topics:
            threading.Thread(target=self._ask, name="topic limits", daemon=True).start()

    def of(self, topic: str) -> TopicLimits:
        """Returns the topic's limits, or the producer's own as long as the topic's are not known."""
        return self._found.get(topic, TopicLimits())

    def _ask(self) -> None:
        try:
            self._found = topic_limits(self._kafka, self._topics)
        except Exception as error:  # without them, a refusal stops the element, and they are asked for again
            log.warning("what the topics %s accept is not known: %s", sorted(self._topics), error)
