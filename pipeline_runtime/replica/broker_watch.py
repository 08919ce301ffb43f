"""Notices that the broker does not answer.

For a consumer, a broker that is away looks like a topic without new rows, and a replica that starts waits
without a word. So one thread of a node asks the broker a small question again and again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import time

from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings
from pipeline_runtime.kafka.health import round_trip_ms

log = logging.getLogger(__name__)

EVERY_S = 5.0
AGAIN_S = 1.0
"""How often a silent broker is asked."""
ANSWER_S = 2.0
SILENT_MS = 12_000
"""After this long without an answer the broker counts as silent: two questions in a row got none."""


class BrokerWatch:
    """A thread from `start` to `close`."""

    def __init__(self, kafka: KafkaSettings, changed: Callable[[], None]) -> None:
        """`changed` is called when the broker answers again."""
        self._kafka = kafka
        self._changed = changed
        self._answered_at_ms: int | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="broker watch", daemon=True)

    def start(self) -> None:
        self._answered_at_ms = _now_ms()
        self._thread.start()

    def close(self) -> None:
        """Asks no further question. One that is under way ends with the process."""
        self._closing.set()

    @property
    def silent_since_ms(self) -> int | None:
        """Returns when the broker answered last, if that is long ago, else None."""
        answered_at_ms = self._answered_at_ms
        if answered_at_ms is None or _now_ms() - answered_at_ms < SILENT_MS:
            return None
        return answered_at_ms

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                round_trip_ms(self._kafka, 1, ANSWER_S)
            except (KafkaError, OSError) as error:
                log.debug("the broker does not answer: %s", error)
            except Exception:
                log.warning("whether the broker answers could not be found out", exc_info=True)
            else:
                again = self.silent_since_ms is not None
                self._answered_at_ms = _now_ms()
                if again:
                    self._changed()
            self._closing.wait(AGAIN_S if self.silent_since_ms is not None else EVERY_S)


def _now_ms() -> int:
    return int(time() * 1000)
