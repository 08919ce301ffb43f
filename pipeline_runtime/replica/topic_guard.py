"""Compares the users' topics with the group's position, and decides how the group continues.

A thread asks the broker every 2 s, so the batches do not wait for the answer. The module `topic_changes`
finds the changes. An owner whose topics have changed begins no batch. It begins one when the topics are again
as its position says, or when a CLAIM has moved the position.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from math import inf
from time import monotonic, time

from pipeline_runtime.batch.inputs import GroupInput, position_keys
from pipeline_runtime.journal.records import Ends
from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings
from pipeline_runtime.kafka.topics import Seen, TopicLook, TopicMissing, TopicWatch
from pipeline_runtime.model.desired import ReplicaError, ReplicaNote
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.topic_changes import TopicChange, oldest_left, renewed, topic_changes

log = logging.getLogger(__name__)

NOTES_KEPT = 5
LOOKS_MIN = 2
"""An uncertain change counts only after so many looks at the topics while the group's position stayed the
same. The first of these looks may have begun before the group reached the position."""
BATCH_ENDS_S = 5.0
"""An owner that has to claim because its topics have changed waits at most so long for its running batch."""
_CODES = {
    "missing": "topic-missing",
    "another": "topic-recreated",
    "partitions": "topic-partitions-differ",
    "gap": "rows-gone",
}


class TopicGuard:
    """The guard of one replica. The methods under "looking" are thread-safe. The replica's thread calls those
    under "judging", except `note`."""

    def __init__(self, group: str, kafka: KafkaSettings, state: ReplicaState) -> None:
        self._group = group
        self._kafka = kafka
        self._state = state
        self._inputs: tuple[GroupInput, ...] = ()
        self._watch: TopicWatch | None = None
        self._seen: Seen = {}
        self._before: Seen = {}  # the result of the look before the newest one
        self._looks = 0
        self._stands: tuple[Ends, int] = ({}, 0)  # the group's position, and `_looks` when it came there
        self._claims_since_s = inf  # since when the owner waits for its batch in order to claim
        self._judged: tuple[int, Collection[str]] | None = None  # `_looks` and the ways on, last judged
        self.error: ReplicaError | None = None
        self.notes: tuple[ReplicaNote, ...] = ()

    # --- looking

    def watch(self, inputs: Sequence[GroupInput]) -> None:
        """Looks at these inputs' topics now, and every 2 s from now on. If the broker does not answer now,
        the first look comes later."""
        self.close()
        self._inputs = tuple(item for item in inputs if item.topic is not None and item.external)
        if not self._inputs:
            return
        try:
            self.look(self._inputs)
        except KafkaError as error:
            log.info("%s: its topics are looked at later (%s)", self._group, error)
        self._watch = TopicWatch(self._kafka, self._topics(self._inputs), self._found)

    def look(self, inputs: Sequence[GroupInput]) -> Seen:
        """Looks at these inputs' topics now, and returns what the broker says. Raises KafkaError."""
        topics = self._topics(inputs)
        if not topics:
            return {}
        look = TopicLook(self._kafka)
        try:
            seen = look.ask(topics)
        finally:
            look.close()
        self._found(seen)
        return seen

    @staticmethod
    def _topics(inputs: Sequence[GroupInput]) -> list[str]:
        return sorted({item.topic for item in inputs if item.topic is not None and item.external})

    def _found(self, seen: Seen) -> None:
        with self._state.changed:
            self._before, self._seen = self._seen, seen
            self._looks += 1
            self._state.tell()

    def oldest(self, ends: Ends) -> Mapping[str, int]:
        """Returns the offset of the oldest record that each partition still has, by the partition's key in
        `ends`. A topic that does not exist, or was created again, has no record left."""
        return oldest_left(ends, self._seen)

    def end_of(self, topic: str, partition: int) -> int | None:
        """Returns the offset at which a user's topic ends, by the newest look. Returns None if that is not
        known."""
        seen = self._seen.get(topic)
        return None if seen is None or partition >= len(seen.end) else seen.end[partition]

    def gone(self, start: Ends, end: Ends) -> str | None:
        """Returns a missing topic that a batch from `start` to `end` would read, or None. The newest two
        looks must agree, because a broker that has just started may not know all topics."""
        for item in self._inputs:
            topic = str(item.topic)
            missing = all(topic in look and look[topic] is None for look in (self._seen, self._before))
            if missing and any(start.get(key) != end.get(key) for key in position_keys(start, topic)):
                return topic
        return None

    def close(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    # --- judging

    def claims_because(self, ends: Ends) -> str | None:
        """Returns why this owner has to claim now, or None. The claim moves the group's position. `ends`:
        where the next batch begins, or where the running batch ends."""
        state = self._state
        with state.changed:
            owns, runs, accepted = (
                state.permit is not None,
                state.granted is not None,
                state.directive.accepts,
            )
        if not owns:
            self._let_go()
        # An owner calls this several times in each batch. The result of a look changes only every 2 s.
        judged = (self._looks, accepted) if owns else None
        if judged is not None and judged == self._judged and not state.held:
            return None
        self._judged = judged
        why = self.judge(ends, accepted) if owns else None
        if why is None:
            self._claims_since_s = inf
            return None
        # A running batch ends first. But a batch that waits for rows of a missing topic never ends.
        self._claims_since_s = min(self._claims_since_s, monotonic())
        return None if runs and monotonic() - self._claims_since_s < BATCH_ENDS_S else why

    def explains_failure(self, ends: Ends) -> bool:
        """Looks at the topics, and returns whether a change there may explain why an owner's batch failed."""
        if self._state.permit is None or not self._inputs:
            return False
        try:
            self.look(self._inputs)
        except KafkaError:
            return False
        return bool(topic_changes(self._inputs, ends, self._seen))

    def judge(self, ends: Ends, accepted: Collection[str]) -> str | None:
        """Decides, by the newest look, how an owner continues whose next batch begins at `ends`.

        Returns why the owner has to claim, which moves its position. Returns None if the owner continues at
        its position. Also returns None if the owner cannot continue: it then begins no batch, and `error`
        says why.
        """
        if self._stands[0] != ends:
            self._stands = (ends, self._looks)
        # A look from before the group came to `ends` may show a topic that ends before `ends`.
        is_new = self._looks - self._stands[1] < LOOKS_MIN
        changes = [
            change
            for change in topic_changes(self._inputs, ends, self._seen)
            if change.sure or (not is_new and change.kind in self._kinds_before(ends, change.topic))
        ]
        _, passed = renewed(self._inputs, ends, self._seen, accepted)
        blocking = [change for change in changes if change not in passed]
        self._state.hold(bool(changes))
        if blocking:
            self._say(blocking)
            return None
        self.error = None
        return " ".join(change.message for change in passed) if changes else None

    def _kinds_before(self, ends: Ends, topic: str) -> set[str]:
        return {each.kind for each in topic_changes(self._inputs, ends, self._before) if each.topic == topic}

    def _say(self, blocking: Sequence[TopicChange]) -> None:
        code = _CODES[blocking[0].kind]
        message = " ".join(change.message for change in blocking)
        ways = tuple(change.way for change in blocking if change.way is not None)
        before = self.error
        at_ms = before.at_ms if before is not None and before.code == code else _now_ms()
        self.error = ReplicaError.of(code, message, at_ms, ways=ways)

    def misses(self, missing: TopicMissing) -> None:
        """Sets `error`, because the group cannot begin without the missing topic."""
        self._say([TopicChange("missing", missing.topic, str(missing))])

    def passed(self, changes: Sequence[TopicChange]) -> None:
        """Notes the changes because of which the group's position was moved."""
        for change in changes:
            self.note(change.message)

    def note(self, message: str) -> None:
        """Keeps a message about a topic that people should read, and that does not stop the group."""
        log.warning("%s: %s", self._group, message)
        if message not in [each.message for each in self.notes]:
            new = ReplicaNote(kind="element.topic", message=message, at_ms=_now_ms())
            self.notes = (*self.notes, new)[-NOTES_KEPT:]

    def _let_go(self) -> None:
        """Clears the error of a replica that does not own, because only an owner can be held."""
        if self._state.held:
            self.error = None
            self._state.hold(False)


def _now_ms() -> int:
    return int(time() * 1000)
