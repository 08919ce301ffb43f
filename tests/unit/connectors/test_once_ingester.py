"""Tests the code that exactly-once connectors share: the wait for room, and the size of a Kafka record."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pipeline_runtime.connectors import sdk
from pipeline_runtime.connectors.other_kafka_out import OtherKafkaDeliverer
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import Batch, OnceIngester, OnceIntake, Place, Record
from pipeline_runtime.connectors.trial import MemoryOnceIntake, Taken
from pipeline_runtime.kafka.limits import REQUEST_BYTES_MAX
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.other_kafka import KafkaConnection, OtherKafkaOutParams

RECORDS = [Record(b"{}")]


class Ingester(OnceIngester[Any, Any]):
    def run(self, intake: OnceIntake, stop: threading.Event) -> None:
        raise NotImplementedError


class Full(MemoryOnceIntake):
    """Has no room for the first commits."""

    def __init__(self, taken: Taken, refused: int) -> None:
        super().__init__(taken, Report("e", taken.told), 1, None)
        self._refused = refused

    def commit(self, records: Any, position: Any) -> bool:
        self._refused -= 1
        return self._refused < 0 and super().commit(records, position)


@pytest.fixture
def ingester(monkeypatch: pytest.MonkeyPatch) -> Ingester:
    monkeypatch.setattr(sdk, "ROOM_S", 0.001)
    monkeypatch.setattr(sdk, "UNREAD_S", 0.0)
    return Ingester(Place("d", "e", None, None))


def test_an_ingester_that_waits_for_its_pipeline_says_so_once_and_goes_on(ingester: Ingester) -> None:
    intake = Full(taken := Taken(), refused=5)
    assert ingester.commit(intake, RECORDS, 7, threading.Event())
    assert (taken.records, intake.position) == (RECORDS, 7)
    assert [each.state for each in taken.statuses] == ["failing", "connected"]
    assert "Nothing is lost" in taken.why


def test_an_ingester_that_is_stopped_while_it_waits_has_taken_nothing(ingester: Ingester) -> None:
    stop = threading.Event()
    stop.set()
    assert not ingester.commit(intake := Full(taken := Taken(), refused=1), RECORDS, 7, stop)
    assert (taken.records, intake.position) == ([], None)


def test_headers_count_in_the_size_of_a_record_for_another_kafka() -> None:
    rows = StreamSchema(
        fields=(Field(name="h", type=FieldType.STRING), Field(name="v", type=FieldType.STRING))
    )
    params = OtherKafkaOutParams(connection="c", topic="t", format="text", text_column="v", headers=("h",))
    place = Place("d", "e", params, KafkaConnection(servers="a:9092"), rows=rows)
    sent = [{"h": "x" * REQUEST_BYTES_MAX, "v": "1"}, {"h": "x", "v": "2"}]
    batch = Batch(rows=sent, times_ms=[0, 0], offsets=[0, 1], first=0, end=2)
    [refused] = OtherKafkaDeliverer(place).deliver(batch)
    assert refused.row == 0
    assert "bytes" in refused.reason
