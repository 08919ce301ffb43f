"""Tests the count of the rows of a stream that wait for their delivery."""

from __future__ import annotations

import pytest

from pipeline_runtime.connectors.kafka_ends import StreamRows
from pipeline_runtime.kafka import delivered
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.delivered import Undelivered, undelivered
from pipeline_runtime.kafka.transactions import OutgoingRecord
from tests.contract.kafka.test_transactions import opened

pytestmark = pytest.mark.integration


def written(kafka: str, topic: str, transactions: int, rows: int) -> StreamRows:
    ensure_topics(KafkaSettings(kafka), [Topic(topic)])
    owner = opened(kafka, f"of-{topic}")
    for _ in range(transactions):
        owner.commit([OutgoingRecord(topic, b"{}", None, 1) for _ in range(rows)])
    owner.close()
    return StreamRows(KafkaSettings(kafka), topic, "letters", "e")


def test_rows_are_counted_without_the_markers_of_transactions(kafka: str) -> None:
    settings, topic = KafkaSettings(kafka), "to-deliver"
    rows = written(kafka, topic, transactions=5, rows=3)
    assert undelivered(settings, topic) == Undelivered(15, 0)
    rows.begin(None)
    batch = rows.next(7)
    assert batch is not None
    rows.store(batch.end)
    assert undelivered(settings, topic) == Undelivered(15 - len(batch.rows), batch.end)
    while batch is not None:
        rows.store(batch.end)
        batch = rows.next(7)
    assert undelivered(settings, topic).rows == 0
    rows.close()


def test_a_system_that_keeps_the_position_is_told_of_as_well(kafka: str) -> None:
    settings, topic = KafkaSettings(kafka), "kept-outside"
    rows = written(kafka, topic, transactions=1, rows=4)
    rows.begin(0)
    batch = rows.next(2)
    assert batch is not None
    rows.tell(batch.end)
    following = rows.next(1)
    assert following is not None
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


def test_a_stream_that_is_not_there_has_no_rows(kafka: str) -> None:
    assert undelivered(KafkaSettings(kafka), "no-such-stream") == Undelivered(0, 0)
