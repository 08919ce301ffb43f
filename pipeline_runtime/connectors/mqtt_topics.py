"""Tries a connection to an MQTT broker, and finds the topics that it has by listening for a moment."""

from __future__ import annotations

from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from pydantic import ValidationError

from pipeline_runtime.connectors.mqtt_session import Session
from pipeline_runtime.connectors.payloads import found_by
from pipeline_runtime.connectors.sdk import Probed
from pipeline_runtime.connectors.sparkplug import metric_names
from pipeline_runtime.model.connectors import ROWS_SHOWN, VALUE_MAX, Found
from pipeline_runtime.operators.mqtt import MqttConnection

PROBE_S = 2.5
TOPICS_FOUND_MAX = 500
_PAYLOAD_BYTES_MAX = 1 << 20


def probe(connection: MqttConnection, path: str) -> Probed:
    """Listens for a moment to `path`, a topic with wildcards, or to all topics."""
    return _heard(connection, path or "#", "")


def search(connection: MqttConnection, find: str) -> Probed:
    """Listens for a moment for topics that have `find` in them."""
    return _heard(connection, "#", find)


def _heard(connection: MqttConnection, filter_: str, find: str) -> Probed:
    session = Session(connection, "")
    rows: list[dict[str, Any]] = []
    newest: dict[str, bytes] = {}
    more: set[str] = set()
    left_out: set[str] = set()

    def take(_: Client, __: Any, message: MQTTMessage) -> None:
        if find.casefold() not in message.topic.casefold():
            return
        payload = bytes(message.payload)
        if len(payload) > _PAYLOAD_BYTES_MAX:
            left_out.add(message.topic)
            return
        if len(rows) < ROWS_SHOWN:
            metrics = metric_names(message.topic, payload)
            text = payload[:VALUE_MAX].decode(errors="replace") if metrics is None else metrics[:VALUE_MAX]
            rows.append({"topic": message.topic, "payload": text})
        if message.topic in newest or len(newest) < TOPICS_FOUND_MAX:
            newest[message.topic] = payload
        elif len(more) < TOPICS_FOUND_MAX:
            more.add(message.topic)

    session.client.on_message = take
    session.connect()
    try:
        session.subscribe([filter_], 0)
        session.lost.wait(PROBE_S)
    finally:
        session.close()
    found = []
    for topic, payload in sorted(newest.items()):
        try:
            found.append(_found(topic, payload))
        except ValidationError:  # one topic spoils no others
            left_out.add(topic)
    words = _words(len(found), find, is_cut=bool(more))
    if left_out:
        words += f" Left out: {len(left_out)}, whose topic or payload is too long or holds a broken text."
    return Probed(words, tuple(rows), tuple(found))


def _words(count: int, find: str, *, is_cut: bool) -> str:
    which = f", whose topic has “{find}” in it," if find else ""
    if not count:
        return f"Connected. No message{which} came within {PROBE_S:g} s."
    cut = " There are more topics: search for the others." if is_cut else ""
    return f"Connected. Messages{which} of {count} topics came within {PROBE_S:g} s.{cut}"


def _found(topic: str, payload: bytes) -> Found:
    metrics = metric_names(topic, payload)
    if metrics is not None:
        return Found(path=topic, title=topic, type="Sparkplug B", value=metrics[:VALUE_MAX])
    return found_by(topic, payload)
