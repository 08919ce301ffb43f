"""Sparkplug B beside a real mosquitto, and an edge node that answers rebirth commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any

import pytest

from pipeline_runtime.connectors.mqtt import MqttIngester
from pipeline_runtime.connectors.mqtt_topics import probe
from pipeline_runtime.connectors.sdk import Place
from pipeline_runtime.connectors.sparkplug_host import state, state_topic
from pipeline_runtime.connectors.trial import RunningTrial
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.mqtt import MqttIn, MqttInParams
from tests.brokers import Broker
from tests.edge_nodes import BORN_MS, EdgeNode
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("mosquitto")) as running:
        yield running


def params_of(given: Mapping[str, Any]) -> MqttInParams:
    columns = [{"name": "Temperature", "type": "number"}, {"name": "Strokes", "type": "integer"}]
    whole = {"connection": "b", "payload": "sparkplug", "topics": ["spBv1.0/#"], "columns": columns}
    return MqttInParams.model_validate({**whole, **given})


def connected(
    broker: Broker, node: str, params: Mapping[str, Any] = MappingProxyType({}), **connection: Any
) -> RunningTrial:
    given = params_of({"topics": [f"spBv1.0/plant/+/{node}/#"], **params})
    place = Place("dep", node, given, broker.connection(**connection))
    running = RunningTrial(MqttIngester(place))
    wait_until(lambda: running.status.state == "connected", "a connection")
    return running


def values(running: RunningTrial) -> list[tuple[str, dict[str, Any]]]:
    """The kinds of the messages, and their metrics, of all rows that have come."""
    rows = [each for each in running.taken.rows if isinstance(each, dict)]
    return [
        (row["levels"][2], {name: row["value"].get(name) for name in ("Temperature", "Strokes")})
        for row in rows
    ]


def comes(running: RunningTrial, what: Callable[[], bool]) -> None:
    wait_until(what, lambda: f"rows; these have come: {running.taken.rows}")


def test_rows_come_by_aliases_and_an_edge_node_that_was_born_before_is_asked_for_its_births(
    broker: Broker,
) -> None:
    node = EdgeNode(broker, "press")
    node.birth()
    running = connected(broker, "press", rebirths=True)
    node.data(21.5, -1, after_ms=5)
    comes(running, lambda: len(running.taken.records) == 2)
    # The birth that was asked for came first, and what had waited for it after that.
    assert values(running) == [
        ("NBIRTH", {"Temperature": 20.0, "Strokes": 0}),
        ("NDATA", {"Temperature": 21.5, "Strokes": -1}),
    ]
    assert running.taken.rows[1]["time"] == (BORN_MS + 5) * 1000
    assert node.asked == 1
    node.lose_messages(3)
    node.data(22.5, 2)
    comes(running, lambda: ("NDATA", {"Temperature": 22.5, "Strokes": 2}) in values(running))
    assert (running.status.gaps_total, running.status.gap_rows_total) == (1, 3)
    node.die()
    comes(running, lambda: ("NDEATH", {"Temperature": None, "Strokes": None}) in values(running))
    running.stop()


def test_a_connection_that_may_not_ask_writes_nothing_and_says_what_is_missing(broker: Broker) -> None:
    node = EdgeNode(broker, "mill")
    node.birth()
    running = connected(broker, "mill")
    node.data(21.5, 1)
    wait_until(lambda: "Let the connection ask for births" in running.status.why, "the words")
    [letter] = running.taken.records
    assert letter.value.startswith(b"spBv1.0/plant/NDATA/mill: no birth has come that says the metric with")
    node.birth()
    node.data(22.5, 2)
    wait_until(lambda: running.status.state == "connected", "the words to end")
    wait_until(lambda: len(running.taken.records) == 3, "the rows")
    assert node.asked == 0
    running.stop()
    node.close()


class States:
    """What a broker has told of a host application."""

    def __init__(self, broker: Broker, host_id: str) -> None:
        self._broker, self._topic = broker, state_topic(host_id)
        self.all: list[tuple[bool, int]] = []
        self._client = broker.client(lambda _, payload: self._take(payload), self._topic)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _take(self, payload: bytes) -> None:
        told = json.loads(payload)
        self.all.append((told["online"], told["timestamp"]))

    def say(self, *, online: bool, at_ms: int) -> None:
        self._broker.publish(self._topic, state(online=online, at_ms=at_ms), retain=True)

    def comes(self, what: Callable[[list[tuple[bool, int]]], bool]) -> None:
        wait_until(lambda: what(self.all), lambda: f"a state; these have come: {self.all}")


def test_a_host_application_says_that_it_is_online_and_its_last_will_that_it_is_not(broker: Broker) -> None:
    host = {"host_id": "plant host"}
    states = States(broker, "plant host")
    running = connected(broker, "any", host)
    states.comes(lambda all_: all_[-1:] != [] and all_[-1][0])
    [(_, first_ms)] = states.all
    assert abs(first_ms - time() * 1000) < 3_600_000
    # The last will of an earlier connection comes late.
    states.say(online=False, at_ms=first_ms)
    states.comes(lambda all_: all_[1:] == [(False, first_ms), (True, first_ms)])
    # One that had another clock had a later time. Edge nodes follow the latest one.
    ahead_ms = first_ms + 3_600_000
    states.say(online=False, at_ms=ahead_ms)
    states.comes(lambda all_: all_[-1] == (True, ahead_ms + 1))
    assert not running.hung.is_set()
    # Another connection of that name ends this one, so the broker publishes the last will.
    again = connected(broker, "any", host)
    states.comes(lambda all_: (False, ahead_ms + 1) in all_)
    running.stop()
    again.stop()
    states.comes(lambda all_: not all_[-1][0])
    late = States(broker, "plant host")
    late.comes(lambda all_: all_ == states.all[-1:])
    states.close()
    late.close()


def test_a_host_that_may_not_write_its_state_says_so(tmp_path: Path) -> None:
    rights = tmp_path / "rights"
    rights.write_text("topic read #\n")
    with Broker(tmp_path, None, f"acl_file {rights}") as running_broker:
        place = Place("dep", "any", params_of({"host_id": "h"}), running_broker.connection())
        running = RunningTrial(MqttIngester(place))
        wait_until(lambda: "does not let this user write spBv1.0/STATE/h" in running.status.why, "the words")
        running.stop()


def test_browse_lists_edge_nodes_and_asks_the_one_that_is_looked_into_for_its_metrics(broker: Broker) -> None:
    node = EdgeNode(broker, "lathe")
    broker.publish(node.topic("NDEATH"), b"\x08\x01\x12\x07\x0a\x05bdSeq", retain=True)
    whole = probe(broker.connection(), "")
    [lathe] = [each for each in whole.found if each.title == "plant/lathe"]
    assert (lathe.path, lathe.inner, lathe.usable) == ("spBv1.0/plant/+/lathe", True, False)
    assert {"topic": node.topic("NDEATH"), "payload": "bdSeq"} in whole.rows
    silent = probe(broker.connection(), lathe.path)
    assert (silent.found, node.asked) == ((), 0)
    assert "Let the connection ask for births" in silent.words

    # A busy machine may not answer within the moment of a look.
    metrics = wait_until(lambda: probe(broker.connection(rebirths=True), lathe.path).found, "the metrics")
    assert [(each.path, each.type, each.holds, each.value) for each in metrics] == [
        ("spBv1.0/plant/+/lathe#Strokes", "Int32", FieldType.INTEGER, 0),
        ("spBv1.0/plant/+/lathe#Temperature", "Double", FieldType.NUMBER, 20.0),
    ]
    taken = MqttIn.taken({"connection": "b"}, metrics, ())
    assert [each.name for each in MqttInParams.model_validate(taken).columns] == ["Strokes", "Temperature"]
    node.close()
