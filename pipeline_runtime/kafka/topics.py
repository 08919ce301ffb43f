"""Looks at topics that others may delete, create again, extend or trim."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.errors import UnknownTopicOrPartitionError, for_code

from pipeline_runtime.kafka.clients import (
    IsolationLevel,
    KafkaError,
    KafkaSettings,
    OffsetSpec,
    TopicPartition,
)
from pipeline_runtime.kafka.kept_admin import KeptAdmin

log = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
_ANSWER_MS = 5_000


@dataclass(frozen=True)
class TopicSeen:
    """A topic at one moment."""

    id: str  # another one for each topic that ever had this name; empty if the broker has no ids
    first: tuple[int, ...]  # of each partition: the offset of its oldest record
    end: tuple[int, ...]  # of each partition: the offset after its newest committed record


Seen = Mapping[str, TopicSeen | None]
"""Topics by name. None stands for one that does not exist."""


class TopicMissing(KafkaError):
    """A user's own topic does not exist now."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"The topic {topic} does not exist.")
        self.topic = topic


class TopicLook:
    """Asks the broker, over one connection that is kept. Used by one thread at a time."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._admin = KeptAdmin(kafka, _ANSWER_MS)

    def ask(self, topics: Collection[str]) -> Seen:
        """Returns what the topics are now. Raises KafkaError when the broker does not answer."""
        return self._admin.ask(partial(_seen, topics=sorted(topics)))

    def close(self) -> None:
        self._admin.close()


def _seen(client: Any, topics: list[str]) -> Seen:
    found: dict[str, TopicSeen | None] = {}
    for each in client.describe_topics(topics):
        error = for_code(each["error_code"])
        if error is UnknownTopicOrPartitionError:
            found[each["name"]] = None
            continue
        if each["error_code"]:
            raise error(each["name"])
        tps = [TopicPartition(each["name"], p) for p in range(len(each["partitions"]))]
        first, end = (_offsets(client, tps, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
        found[each["name"]] = TopicSeen(str(each.get("topic_id") or ""), first, end)
    return found


def _offsets(client: Any, tps: list[TopicPartition], spec: OffsetSpec) -> tuple[int, ...]:
    answer = client.list_partition_offsets(dict.fromkeys(tps, spec), IsolationLevel.READ_COMMITTED)
    return tuple(answer[tp].offset for tp in tps)


class TopicWatch:
    """A thread that looks again and again, from its start to `close`. It costs the batches nothing."""

    def __init__(self, kafka: KafkaSettings, topics: Collection[str], seen: Callable[[Seen], None]) -> None:
        """`seen`: told what was found, from that thread."""
        self._look = TopicLook(kafka)
        self._topics = topics
        self._seen = seen
        self._closing = threading.Event()
        if topics:
            threading.Thread(target=self._run, name="topic watch", daemon=True).start()

    def close(self) -> None:
        """Asks the thread to end. It does within one look."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.wait(LOOK_EVERY_S):
            try:
                found = self._look.ask(self._topics)
            except KafkaError as error:
                log.debug("the topics %s cannot be looked at now: %s", self._topics, error)
                continue
            except Exception:  # without this thread nobody would learn what becomes of the topics
                log.exception("the topics %s could not be looked at; it is tried again", self._topics)
                continue
            if not self._closing.is_set():
                self._seen(found)
        self._look.close()
