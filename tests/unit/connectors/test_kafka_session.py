"""Tests what a user sees of the topics of another Kafka cluster, even if the cluster answers too late."""

from __future__ import annotations

import socket
import threading

import pytest

from pipeline_runtime.connectors import kafka_session
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import Newest, PeekedRecord
from tests.waiting import wait_until


def test_a_cluster_that_hangs_does_not_hold_what_browsing_knows_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_session, "_LOOK_S", 0.0)
    found: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        patient = {"bootstrap_timeout_ms": 60_000}
        kafka = KafkaSettings(f"127.0.0.1:{silent.getsockname()[1]}", patient)
        look = threading.Thread(target=lambda: found.append(kafka_session._newest(kafka, ["a"])), daemon=True)
        look.start()
        wait_until(lambda: found, "an answer long before the client gives up", 40)
    assert found == [{}]


@pytest.mark.parametrize("value", ["", " \n"])
def test_an_empty_newest_record_tells_nothing_of_the_others(value: str) -> None:
    found = kafka_session._found("t", Newest([PeekedRecord(0, 0, 0, "k", value)]))
    assert (found.usable, found.type, found.holds) == (True, "", None)


def test_what_was_left_out_is_said() -> None:
    assert kafka_session._seen(1, "") == "Connected. The user sees 1 topic."
    assert kafka_session._seen(100, "m1") == (
        "Connected. The user sees 100 topics, whose name has “m1” in it."
    )
    some = "What the newest record holds is shown for the first 100."
    assert kafka_session._seen(101, "") == f"Connected. The user sees 101 topics. {some}"
    assert kafka_session._seen(501, "").endswith(f"The first 500 are shown: search for the others. {some}")
