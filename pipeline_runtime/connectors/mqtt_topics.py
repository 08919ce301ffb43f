"""Tests a connection to an MQTT broker, and finds the broker's topics by listening for a moment."""

from __future__ import annotations

from time import time
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from pydantic import ValidationError

from pipeline_runtime.connectors.mqtt_session import Session
from pipeline_runtime.connectors.payloads import found_by
from pipeline_runtime.connectors.sdk import Probed
from pipeline_runtime.connectors.sparkplug import NAMESPACE, metric_names, rebirth_command
from pipeline_runtime.connectors.sparkplug_browse import METRICS_FOUND_MAX, EdgeNodes, words_about
from pipeline_runtime.model.connectors import ROWS_SHOWN, VALUE_MAX
from pipeline_runtime.operators.mqtt import MqttConnection
from pipeline_runtime.operators.ticked_metrics import Source, source_at

PROBE_S = 2.5
TOPICS_FOUND_MAX = 500
_PAYLOAD_BYTES_MAX = 1 << 20


def probe(connection: MqttConnection, path: str) -> Probed:
    """Listens for a moment to `path`, a topic with wildcards, or to all topics. An edge node of Sparkplug B
    tells its metrics, and is asked for them if the connection may do so."""
    source = source_at(path)
    return _heard(connection, path or "#", "") if source is None else _metrics_of(connection, source)


def search(connection: MqttConnection, find: str) -> Probed:
    """Listens for a moment for topics that have `find` in them, and for metrics with such names."""
    return _heard(connection, "#", find)


class _Topics:
    """What was heard of topics."""

    def __init__(self, find: str) -> None:
        self._find = find.casefold()
        self.rows: list[dict[str, Any]] = []
        self.newest: dict[str, bytes] = {}
        self.more: set[str] = set()
        self.left_out: set[str] = set()
        self.edge_nodes = EdgeNodes()

    def take(self, _: Client, __: Any, message: MQTTMessage) -> None:
        payload, topic = bytes(message.payload), message.topic
        is_of_edge_node = topic.startswith(f"{NAMESPACE}/") and self.edge_nodes.take(topic, payload)
        if self._find not in topic.casefold():
            return
        if len(payload) > _PAYLOAD_BYTES_MAX:
            self.left_out.add(topic)
            return
        if len(self.rows) < ROWS_SHOWN:
            metrics = metric_names(topic, payload)
            text = payload[:VALUE_MAX].decode(errors="replace") if metrics is None else metrics[:VALUE_MAX]
            self.rows.append({"topic": topic, "payload": text})
        if is_of_edge_node:
            return
        if topic in self.newest or len(self.newest) < TOPICS_FOUND_MAX:
            self.newest[topic] = payload
        elif len(self.more) < TOPICS_FOUND_MAX:
            self.more.add(topic)


def _listen(connection: MqttConnection, filter_: str, heard: _Topics, ask: Source | None = None) -> None:
    session = Session(connection, "")
    session.client.on_message = heard.take
    session.connect()
    try:
        session.subscribe([filter_], 0)
        if ask is not None:
            topic = f"{NAMESPACE}/{ask.group}/NCMD/{ask.node}"
            session.client.publish(topic, rebirth_command(int(time() * 1000)))
        session.lost.wait(PROBE_S)
    finally:
        session.close()


def _heard(connection: MqttConnection, filter_: str, find: str) -> Probed:
    heard = _Topics(find)
    _listen(connection, filter_, heard)
    nodes = heard.edge_nodes
    found = nodes.named(find) if find else nodes.sources()
    for topic, payload in sorted(heard.newest.items()):
        try:
            found.append(found_by(topic, payload))
        except ValidationError:  # one topic spoils no others
            heard.left_out.add(topic)
    words = _words(len(found), find, is_cut=bool(heard.more) or nodes.is_cut)
    if heard.left_out:
        words += (
            f" Left out: {len(heard.left_out)}, whose topic or payload is too long or holds a broken text."
        )
    return Probed(words, tuple(heard.rows), tuple(found))


def _metrics_of(connection: MqttConnection, source: Source) -> Probed:
    heard = _Topics("")
    _listen(connection, source.topics, heard, source if connection.rebirths else None)
    nodes = heard.edge_nodes
    found = nodes.within(source)
    words = f"Connected. {'/'.join(source.titles)} has {len(found)} metrics and devices."
    words += words_about(
        has_unknown=nodes.has_unknown(source),
        is_empty=not found,
        may_ask=connection.rebirths,
        within_s=PROBE_S,
    )
    if nodes.is_cut:
        words += f" At most {METRICS_FOUND_MAX} are shown."
    return Probed(words, tuple(heard.rows), tuple(found))


def _words(count: int, find: str, *, is_cut: bool) -> str:
    which = f", whose topic has “{find}” in it," if find else ""
    if not count:
        return f"Connected. No message{which} came within {PROBE_S:g} s."
    cut = " There are more topics: search for the others." if is_cut else ""
    return f"Connected. Messages{which} of {count} topics came within {PROBE_S:g} s.{cut}"
