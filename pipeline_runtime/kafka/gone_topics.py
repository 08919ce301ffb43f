"""Keeps Kafka's clients from logging as errors what was done on purpose: topics that were deleted, and
clients that were closed while they asked.

An undeployment deletes its topics as soon as all replicas have ended. A client that is being closed at that
moment may still ask for one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from kafka.errors import Cancelled

from pipeline_runtime.model.ids import OWN_TOPICS

LOGGER = "kafka.cluster"
"""The logger of kafka-python that says both."""
NOT_FOUND = "Topic %s not found in cluster metadata"
NOT_ASKED = "Metadata refresh: failed %s"


class GoneTopics(logging.Filter):
    """Leaves out that a topic of Fogline's own is gone which nobody wants, and that a closed client got no
    answer. That any other topic is missing is still said."""

    def __init__(self, wanted: Callable[[], Collection[str]]) -> None:
        """`wanted` returns the topics that are read and written here."""
        super().__init__()
        self._wanted = wanted

    def filter(self, record: logging.LogRecord) -> bool:
        if not isinstance(record.args, tuple) or len(record.args) != 1:
            return True
        about = record.args[0]
        if record.msg == NOT_ASKED:
            return not isinstance(about, Cancelled)
        if record.msg == NOT_FOUND:
            topic = str(about)
            return not topic.startswith(OWN_TOPICS) or topic in self._wanted()
        return True
