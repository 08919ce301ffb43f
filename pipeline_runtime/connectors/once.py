"""Writes records and the position after them to Kafka in one transaction, so that each record comes once.

    fl.<deployment>.<element>.intake     the records           } one transaction
    fl.<deployment>.<element>.position   how far they go       }

A process first fences all earlier ones by initialising the element's transactional id. Kafka then aborts what
those have open, so the last position that is left is that of the last record. The position names the owner
that wrote it, so a process of an earlier owner does not begin.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic, time
from typing import Any

from pipeline_runtime.connectors.config import ConnectorConfig
from pipeline_runtime.connectors.report import Report, Telling
from pipeline_runtime.connectors.sdk import ConnectorError, Record
from pipeline_runtime.journal.positions import read_positions
from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings, within
from pipeline_runtime.kafka.peek import OpenTopic
from pipeline_runtime.kafka.reading import TopicEnd, has_unread
from pipeline_runtime.kafka.transactions import (
    Doubtful,
    Fenced,
    OutgoingRecord,
    RecordsRefused,
    Transactions,
)
from pipeline_runtime.model.ids import intake_topic, journal_topic, position_key, position_topic

ASK_S = 10.0
UNREAD_BYTES_MAX = 256 << 20
"""How much may lie in the topic that the group has not read. Kafka deletes the oldest rows at 1 GiB."""
MARK_BYTES = 16 << 20
COMMIT_BYTES = 200
RECORD_BYTES = 20
"""What Kafka takes for a transaction and for a record, beside the value."""
LOOK_S = 2.0
"""How often it is asked how far the group has come, while it is behind."""
_BACK_FIRST = 20
_ANEW = (
    "Restore the topic; or undeploy the pipeline and deploy it again: the element then begins as if it were "
    "new, and all rows that it begins with come in once more."
)


class PositionTopicGone(ConnectorError):
    """The topic of an element's position is not there."""


class KeptIntake(Telling):
    """The OnceIntake of a running ingester."""

    def __init__(self, kafka: KafkaSettings, config: ConnectorConfig, epoch: int, report: Report) -> None:
        super().__init__(report)
        self._kafka, self._epoch = kafka, epoch
        self._owners = config.group
        self._topic = intake_topic(config.deployment, config.element)
        self._positions = position_topic(config.deployment, config.element)
        self._journal = journal_topic(config.deployment, config.group.partition(".")[2])
        self._transactions: Transactions | None = None
        self._unread = Unread()
        self.position: Any = None

    def begin(self) -> None:
        """Shuts out all earlier processes of the element, and reads how far they were."""
        self.close()
        try:
            # Looked at before, too, so that a process of an earlier owner does not shut the true one out.
            self._take(self._newest())
            self._transactions = Transactions(self._kafka, self._topic)
            self._transactions.initialise()
            self._take(self._newest())
            self._transactions.commit([self._record()])
            self._unread = Unread(behind=has_unread(self._kafka, self._topic, self._read_up_to()))
        except (Doubtful, Fenced, KafkaError, OSError) as error:
            raise _in_words(error) from error

    def commit(self, records: Sequence[Record], position: Any) -> bool:
        assert self._transactions is not None
        now_ms = int(time() * 1000)
        outgoing = [
            OutgoingRecord(
                self._topic,
                each.value,
                each.key,
                now_ms if each.time_ms is None else each.time_ms,
                headers=each.headers,
            )
            for each in records
        ]
        try:
            if not self._unread.has_room(self._group_is_behind):
                return False
            before, self.position = self.position, position
            try:
                self._transactions.commit([*outgoing, self._record()])
            except BaseException:
                self.position = before
                raise
            bytes = COMMIT_BYTES + sum(RECORD_BYTES + len(each.value) for each in records)
            if records and self._unread.wrote(bytes):
                self._unread.mark(self._transactions.end_of(self._topic))
        except (Doubtful, Fenced, RecordsRefused, KafkaError, OSError) as error:
            raise _in_words(error) from error
        self._report.count(rows=len(records))
        return True

    def close(self) -> None:
        transactions, self._transactions = self._transactions, None
        if transactions is not None:
            transactions.close()

    def _record(self) -> OutgoingRecord:
        told = {"owners": self._owners, "epoch": self._epoch, "position": self.position}
        return OutgoingRecord(self._positions, json.dumps(told).encode())

    def _newest(self) -> bytes | None:
        """Returns the last record about the position."""
        return newest(self._kafka, self._positions)

    def _take(self, value: bytes | None) -> None:
        if value is None and _end(self._kafka, self._topic) > 0:
            # Each row came with a position.
            raise ConnectorError(
                f"The position of this element is lost: the topic {self._positions} is empty, and rows have "
                f"come in. {_ANEW}",
                lasting=True,
            )
        new = {"owners": "", "epoch": 0, "position": None}
        told: dict[str, Any] = new if value is None else json.loads(value)
        if told["owners"] == self._owners and told["epoch"] > self._epoch:
            raise ConnectorError(
                f"A later owner of this element (epoch {told['epoch']}) reads its system, so the one of "
                f"epoch {self._epoch} does not. Nothing is lost: the later owner goes on.",
                lasting=True,
            )
        self.position = told["position"]

    def _read_up_to(self) -> int:
        """Returns the offset before which the group has read the topic."""
        end = read_positions(self._kafka, self._journal).get(position_key(self._topic, 0), 0)
        return end if isinstance(end, int) else 0

    def _group_is_behind(self, offset: int | None) -> bool:
        at = self._read_up_to()
        return has_unread(self._kafka, self._topic, at) if offset is None else at < offset


class Unread:
    """How many bytes the group has not read yet, of those that were written. A mark stands for all that was
    written since the one before it."""

    def __init__(self, *, behind: bool = False) -> None:
        """`behind`: the group has not read all that an earlier process wrote. How many bytes that are is not
        known, so nothing more is written until it has."""
        self._behind = behind
        self._marks: deque[tuple[int, int]] = deque()  # the offset behind it, its bytes
        self._fresh = 0
        self._asked_s = float("-inf")

    def wrote(self, bytes: int) -> bool:
        """Returns whether a mark is due."""
        self._fresh += bytes
        return self._fresh >= MARK_BYTES

    def mark(self, offset: int) -> None:
        """Tells the offset behind the last record that was written."""
        self._marks.append((offset, self._fresh))
        self._fresh = 0

    def has_room(self, is_behind: Callable[[int | None], bool]) -> bool:
        """`is_behind(offset)`: whether the group has not read what lies before an offset, or before the end
        (None). It is asked once in LOOK_S at most."""
        if not self._behind and self._bytes < UNREAD_BYTES_MAX:
            return True
        if monotonic() - self._asked_s < LOOK_S:
            return False
        self._asked_s = monotonic()
        if self._behind:
            self._behind = is_behind(None)
            return not self._behind
        while self._marks and not is_behind(self._marks[0][0]):
            self._marks.popleft()
        return self._bytes < UNREAD_BYTES_MAX

    @property
    def _bytes(self) -> int:
        return self._fresh + sum(bytes for _, bytes in self._marks)


def newest(kafka: KafkaSettings, topic: str) -> bytes | None:
    """Returns the last committed record of a topic of one partition, or None. Raises KafkaError,
    TimeoutError, PositionTopicGone."""
    return within(2 * ASK_S, lambda: _newest(kafka, topic))


def _newest(kafka: KafkaSettings, topic: str) -> bytes | None:
    with OpenTopic(kafka, topic, ASK_S) as found:
        back = _BACK_FIRST
        for tp, end in found.ends.items():
            while True:
                start = max(found.first[tp], end - back)
                values = [each.value for each in found.each_record({tp: start}, found.ends)]
                found.require(found.ends)
                if values or start <= found.first[tp]:
                    return values[-1] if values else None
                back *= 10
    raise PositionTopicGone(
        f"The position of this element is lost: the topic {topic} is not there. {_ANEW}", lasting=True
    )


def _end(kafka: KafkaSettings, topic: str) -> int:
    ends = TopicEnd(kafka, topic)
    try:
        return ends.ask()
    finally:
        ends.close()


def _in_words(error: Exception) -> ConnectorError:
    match error:
        case Fenced():
            return ConnectorError(
                "Another process of this element has begun, so nothing of this one's last rows was taken."
            )
        case RecordsRefused():
            return ConnectorError(f"Kafka refuses the rows: {error}", lasting=True)
        case _:
            return ConnectorError(
                f"Kafka does not answer ({type(error).__name__}). The rows wait in their system."
            )
