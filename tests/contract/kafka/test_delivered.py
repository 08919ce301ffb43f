"""Tests the count of the rows of a stream that wait for their delivery."""

from __future__ import annotations

import pytest

from pipeline_runtime.connectors.kafka_ends import StreamRows
from pipeline_runtime.connectors.sdk import Batch
from pipeline_runtime.kafka import delivered
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.delivered import Undelivered, undelivered, unread
from pipeline_runtime.kafka.transactions import OutgoingRecord
from tests.contract.kafka.test_transactions import opened
from tests.open_transactions import leave_open
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


def written(kafka: str, topic: str, transactions: int, rows: int) -> StreamRows:
    ensure_topics(KafkaSettings(kafka), [Topic(topic)])
    owner = opened(kafka, f"of-{topic}")
    for _ in range(transactions):
        owner.commit([OutgoingRecord(topic, b"{}", None, 1) for _ in range(rows)])
    owner.close()
    return StreamRows(KafkaSettings(kafka), topic, "letters", "e")


def next_of(rows: StreamRows, count: int) -> Batch:
    """Waits for the next rows, at most `count`."""
    found: list[Batch | None] = [None]

    def has_come() -> bool:
        found[0] = rows.next(count)
        return found[0] is not None

    wait_until(has_come, "the next rows")
    assert found[0] is not None
    return found[0]


def test_rows_are_counted_without_the_markers_of_transactions(kafka: str) -> None:
    settings, topic = KafkaSettings(kafka), "to-deliver"
    rows = written(kafka, topic, transactions=5, rows=3)
    assert undelivered(settings, topic) == Undelivered(15, 0)
    rows.begin(None)
    batch = next_of(rows, 7)
    rows.store(batch.end)
    assert undelivered(settings, topic) == Undelivered(15 - len(batch.rows), batch.end)
    while undelivered(settings, topic).rows:
        rows.store(next_of(rows, 7).end)
    rows.close()


def test_a_system_that_keeps_the_position_is_told_of_as_well(kafka: str) -> None:
    settings, topic = KafkaSettings(kafka), "kept-outside"
    rows = written(kafka, topic, transactions=1, rows=4)
    rows.begin(0)
    batch = next_of(rows, 2)
    rows.tell(batch.end)
    following = next_of(rows, 1)
    rows.tell(following.end)  # soon after the other: the end tells it
    rows.close()
    assert undelivered(settings, topic) == Undelivered(
        4 - len(batch.rows) - len(following.rows), following.end
    )


def test_of_many_rows_the_number_is_estimated(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivered, "COUNTED_MAX", 40)
    topic = "many-to-deliver"
    written(kafka, topic, transactions=50, rows=3)
    found = undelivered(KafkaSettings(kafka), topic)
    assert found.estimated
    assert found.rows == pytest.approx(150, rel=0.1)


def test_each_record_is_one_that_a_group_has_to_read(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row may have headers: of a user's record, or because it comes back from dead letters. What a broker
    still hides may be a row."""
    settings, topic = KafkaSettings(kafka), "to-read"
    ensure_topics(settings, [Topic(topic)])
    owner = opened(kafka, f"of-{topic}")
    owner.commit([OutgoingRecord(topic, b"{}", None, 1, headers=headers) for headers in ((), (("a", b"b"),))])
    assert unread(settings, topic, 0) == Undelivered(2, 0)
    assert unread(settings, topic, 1) == Undelivered(1, 1)
    assert unread(settings, topic, 2).rows == 0, "only the marker of the transaction"
    assert undelivered(settings, topic).rows == 1
    leave_open(owner, OutgoingRecord(topic, b"{}", None, 1))
    monkeypatch.setattr(delivered, "COUNT_S", 0.2)  # it comes to what is hidden, and then waits for more
    assert unread(settings, topic, 2).rows > 0
    assert undelivered(settings, topic).rows == 1


def test_a_stream_that_is_not_there_has_no_rows(kafka: str) -> None:
    assert undelivered(KafkaSettings(kafka), "no-such-stream") == Undelivered(0, 0)
    assert unread(KafkaSettings(kafka), "no-such-stream", 7) == Undelivered(0, 0)
