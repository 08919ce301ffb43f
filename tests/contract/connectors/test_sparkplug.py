"""Sparkplug B beside a real mosquitto, and an edge node that answers rebirth commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipeline_runtime.connectors.mqtt import MqttIngester
from pipeline_runtime.connectors.mqtt_topics import probe
from pipeline_runtime.connectors.sdk import Place
from pipeline_runtime.connectors.trial import RunningTrial
from pipeline_runtime.operators.mqtt import MqttInParams
from tests.brokers import Broker
from tests.edge_nodes import BORN_MS, EdgeNode
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("mosquitto")) as running:
        yield running


def connected(broker: Broker, node: str, **connection: Any) -> RunningTrial:
    params = MqttInParams.model_validate(
        {
            "connection": "b",
            "payload": "sparkplug",
            "topics": [f"spBv1.0/plant/+/{node}/#"],
            "columns": [{"name": "Temperature", "type": "number"}],
        }
    )
    place = Place("dep", node, params, broker.connection(**connection))
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


def test_a_probe_shows_the_metrics(broker: Broker) -> None:
    node = EdgeNode(broker, "lathe")
    death = node.topic("NDEATH")
    client = broker.client()
    client.publish(death, b"\x08\x01\x12\x07\x0a\x05bdSeq", 1, retain=True).wait_for_publish(5)
    client.disconnect()
    probed = probe(broker.connection(), "spBv1.0/plant/+/lathe")
    assert probed.rows == ({"topic": death, "payload": "bdSeq"},)
    assert [(each.path, each.type) for each in probed.found] == [(death, "Sparkplug B")]
    node.close()
