"""Sparkplug B beside a real mosquitto, and an edge node that answers rebirth commands."""

from __future__ import annotations

import json
import socket
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


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_host_application_says_that_it_is_online_and_its_last_will_that_it_is_not(
    broker: Broker, version: str
) -> None:
    id = f"plant host {version}"
    states = States(broker, id)
    params = params_of({"host_id": id, "topics": ["spBv1.0/plant/#"]})
    ingester = MqttIngester(Place("dep", id, params, broker.connection(version=version)))
    running = RunningTrial(ingester)
    states.comes(lambda all_: all_[-1:] != [] and all_[-1][0])
    [(_, first_ms)] = states.all
    assert abs(first_ms - time() * 1000) < 3_600_000
    wait_until(lambda: running.status.state == "connected", "a connection")
    # The last will of an earlier connection comes late.
    states.say(online=False, at_ms=first_ms)
    states.comes(lambda all_: all_[1:] == [(False, first_ms), (True, first_ms)])
    # One that had another clock had a later time. Edge nodes follow the latest one.
    ahead_ms = first_ms + 3_600_000
    states.say(online=False, at_ms=ahead_ms)
    states.comes(lambda all_: all_[-1] == (True, ahead_ms + 1))
    assert {at_ms for online, at_ms in states.all if not online} == {first_ms, ahead_ms}
    assert not running.hung.is_set()
    wait_until(lambda: ingester._session is not None, "the next connection")
    session = ingester._session
    assert session is not None
    session.client.socket().shutdown(socket.SHUT_RDWR)
    # Also the next connection has a later time than the one before it.
    states.comes(lambda all_: all_[-1] == (True, ahead_ms + 2))
    assert (False, ahead_ms + 1) in states.all
    running.stop()
    states.comes(lambda all_: all_[-1] == (False, ahead_ms + 2))
    late = States(broker, id)
    late.comes(lambda all_: set(all_) == {(False, ahead_ms + 2)})
    states.close()
    late.close()


def test_elements_with_one_host_id_do_not_call_each_other_offline_and_say_what_is_wrong(
    broker: Broker,
) -> None:
    states = States(broker, "twice")
    places = [
        Place("dep", name, params_of({"host_id": "twice"}), broker.connection()) for name in ("one", "two")
    ]
    ingesters = [MqttIngester(each) for each in places]
    both = [RunningTrial(each) for each in ingesters]
    for each in both:
        wait_until(lambda each=each: each.status.state == "connected", "a connection")
    ahead_ms = int(time() * 1000) + 3_600_000
    states.say(online=False, at_ms=ahead_ms)
    wait_until(lambda: all(each._host_ms == ahead_ms + 1 for each in ingesters), "the next connections")
    states.say(online=False, at_ms=ahead_ms + 1000)
    for each in both:
        wait_until(
            lambda each=each: "Give each element a host id of its own" in each.status.why,
            lambda each=each: f"the words; it says {each.status.why}",
        )
    states.comes(lambda all_: (False, ahead_ms + 1000) in all_)
    # A last will may come, which has the time of a birth. Neither has said a death of a later time.
    born = {at_ms for online, at_ms in states.all if online}
    assert {at_ms for online, at_ms in states.all if not online} - born == {ahead_ms, ahead_ms + 1000}
    for each in both:
        each.stop()
    states.close()


def test_a_state_with_a_time_far_ahead_is_told_and_not_followed(broker: Broker) -> None:
    states = States(broker, "far")
    states.say(online=False, at_ms=(1 << 53) - 1)
    place = Place("dep", "far", params_of({"host_id": "far"}), broker.connection())
    running = RunningTrial(MqttIngester(place))
    wait_until(lambda: "days ahead of this node's clock" in running.status.why, "the words")
    states.comes(lambda all_: [online for online, _ in all_[:3]] == [False, True, False])
    assert all(at_ms < time() * 1000 + 3_600_000 for _, at_ms in states.all[1:])
    assert running.status.gaps_total == 0
    running.stop()
    states.close()


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_host_that_may_not_write_its_state_says_so(tmp_path: Path, version: str) -> None:
    rights = tmp_path / "rights"
    rights.write_text("topic read #\n")
    with Broker(tmp_path, None, f"acl_file {rights}") as running_broker:
        connection = running_broker.connection(version=version)
        running = RunningTrial(MqttIngester(Place("dep", "any", params_of({"host_id": "h"}), connection)))
        words = "does not pass on what this user writes to spBv1.0/STATE/h"
        wait_until(lambda: words in running.status.why, lambda: f"the words; it says {running.status.why}")
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
