"""Asks the broker questions over one connection that is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings, close_spent, open_admin, within

T = TypeVar("T")


class KeptAdmin:
    """Opens its client with the first question. Opening it takes longer than an answer. Use it in one thread
    at a time."""

    def __init__(self, kafka: KafkaSettings, answer_ms: int) -> None:
        """`answer_ms`: how long each of three may take: the connection, its metadata, the answer."""
        self._kafka = kafka
        self._answer_ms = answer_ms
        self._client: Any = None

    def ask(self, question: Callable[[Any], T]) -> T:
        """Returns what `question` returns for the client. Raises KafkaError, also when no answer comes in
        time. The next question then has another connection."""
        client = self._client

        def asked() -> tuple[Any, T]:
            used = client
            if used is None:
                used = open_admin(
                    self._kafka,
                    request_timeout_ms=self._answer_ms,
                    bootstrap_timeout_ms=self._answer_ms,
                )
            return used, question(used)

        try:
            self._client, found = within(3 * self._answer_ms / 1000, asked)
            return found
        except KafkaError:
            self.close()
            raise

    def close(self) -> None:
        if self._client is not None:
            close_spent(self._client)
            self._client = None
