"""MQTT: brings messages in (paho-mqtt)."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic, time
from typing import Any, Protocol

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.matcher import MQTTMatcher

from pipeline_runtime.connectors.mqtt_session import LOOK_S, Session
from pipeline_runtime.connectors.sdk import (
    CONNECT_S,
    ConnectorError,
    Done,
    Ingester,
    Intake,
    Place,
    Record,
)
from pipeline_runtime.connectors.sparkplug import NAMESPACE, rebirth_command
from pipeline_runtime.connectors.sparkplug_chosen import ChosenMetrics
from pipeline_runtime.connectors.sparkplug_host import Host
from pipeline_runtime.connectors.sparkplug_in import EdgeMessages
from pipeline_runtime.operators.mqtt import MqttConnection, MqttInParams

log = logging.getLogger(__name__)

HOST_TURNS_S = 60.0
"""A host application that needs another connection so soon after the one before has another of its name."""
_SHARING = {"$share": 2, "$oshare": 2, "$queue": 1, "$exclusive": 1}
"""The words before a filter, as brokers know them, and how many levels they take: $share has a group."""


def _acknowledge(client: Client, message: MQTTMessage) -> None:
    client.ack(message.mid, message.qos)


def record_of(topic: str, payload: bytes, kind: str) -> Record:
    """Returns the record of a message: {"topic", "levels", "value"}, or what becomes its dead letter."""
    try:
        text = payload.decode()
        if kind == "json" and not isinstance(json.loads(text), dict):
            raise ValueError
    except (ValueError, RecursionError):  # also UnicodeDecodeError
        # No JSON, whatever the payload is: so it ends in the dead letters, with its topic.
        return Record(f"{topic}: ".encode() + payload)
    head = json.dumps({"topic": topic, "levels": topic.split("/")}, ensure_ascii=False)
    value = text if kind == "json" else json.dumps(text, ensure_ascii=False)
    return Record(f'{head[:-1]}, "value": {value}}}'.encode())


def matcher_of(filters: Sequence[str]) -> MQTTMatcher:
    """Returns what finds the topics of these filters. It may find more for those that begin with $: brokers
    write $share/<group>/ and words of their own before the filter."""
    matcher = MQTTMatcher()
    for each in filters:
        matcher[each] = True
        if each.startswith("$"):
            matcher[each.split("/", 2 if each.startswith("$share/") else 1)[-1]] = True
    return matcher


def unshared(filter_: str) -> str:
    """Returns a filter that takes no message away from another client: without the words by which a broker
    gives a message to one client of several, or lets one client alone subscribe."""
    for word, levels in _SHARING.items():
        if filter_.startswith(f"{word}/"):
            return filter_.split("/", levels)[-1]
    return filter_


class Messages(Protocol):
    """Puts messages to an intake. `take` and `look` return False if there is no room."""

    def take(self, topic: str, payload: bytes, done: Done | None) -> bool: ...
    def look(self) -> bool: ...
    def close(self) -> None: ...


class PlainMessages:
    """Each message is a record, whatever came before."""

    def __init__(self, intake: Intake, kind: str) -> None:
        self._intake, self._kind = intake, kind

    def take(self, topic: str, payload: bytes, done: Done | None) -> bool:
        taken = self._intake.put([record_of(topic, payload, self._kind)], done)
        return taken or done is None  # without it, what was not taken is counted

    def look(self) -> bool:
        return True

    def close(self) -> None:
        return None


class MqttIngester(Ingester[MqttInParams, MqttConnection]):
    """With QoS 1 a message is acknowledged when it is durable. The session outlives a move: the next node
    takes it over under the same name, and what was not acknowledged comes again."""

    patience_s = 3 * CONNECT_S

    def __init__(self, place: Place[MqttInParams, MqttConnection]) -> None:
        super().__init__(place)
        self._chosen = ChosenMetrics(place.params.metrics)
        self._was_connected = False
        self._away_since_s = 0.0
        self._session: Session | None = None
        self._host_ms = 0  # the time of the newest connection of the host application
        self._turned_s = float("-inf")  # when it needed another one

    def beats(self) -> int | None:
        session = self._session
        return None if session is None else session.beats()

    @property
    def system_waits(self) -> bool:
        # Edge nodes of Sparkplug B publish with QoS 0, whatever is asked of the broker.
        return self.place.params.qos == 1 and self.place.params.payload != "sparkplug"

    def run(self, intake: Intake, stop: threading.Event) -> None:
        while not stop.is_set():
            host_id = self.place.params.host_id
            # Edge nodes would pass over a time before that of an earlier connection.
            self._host_ms = max(_now_ms(), self._host_ms + 1)
            host = None if host_id is None else Host(host_id, self._host_ms)
            later_ms = self._read(intake, stop, host)
            if later_ms is None:
                return
            self._host_ms = later_ms
            turned_s, self._turned_s = self._turned_s, monotonic()
            if self._turned_s - turned_s < HOST_TURNS_S:
                raise ConnectorError(
                    f"Another host application at {self.place.connection.where} has the id {host_id}: it "
                    "says again and again that this host is offline. Give each element a host id of its own.",
                    lasting=True,
                )

    def _read(self, intake: Intake, stop: threading.Event, host: Host | None) -> int | None:
        """Reads by one connection until `stop`. Raises ConnectorError. Returns `Host.later_ms` if the host
        needs another connection."""
        params = self.place.params
        session = self._new_session(fresh=params.qos == 0, host=host)
        put = self._putting(intake, session)
        full = threading.Event()
        session.client.on_message = self._taking(put, session, full, host)
        session.connect()
        self._session = session
        try:
            session.subscribe([*params.topics, *([] if host is None else [host.topic])], params.qos)
            if host is not None:
                host.begin(session)
                host.check(session)
                if host.later_ms is not None:
                    return host.later_ms
            self._tell_gap(intake, session)
            intake.connected()
            while not stop.wait(LOOK_S):
                if full.is_set() or not put.look():
                    # The broker sends again what was not acknowledged, once it is connected again.
                    raise ConnectorError("There is no room for more messages; the broker has to keep them.")
                session.check()
                if host is not None:
                    host.check(session)
                    if host.later_ms is not None:
                        return host.later_ms
            return None
        finally:
            if host is not None:
                host.end(session, _now_ms())
            session.close()
            self._session = None
            put.close()
            self._away_since_s = monotonic()

    def for_preview(self) -> MqttIngester:
        topics = tuple(unshared(each) for each in self.place.params.topics)
        params = {"qos": 0, "keep_s": 0, "topics": topics, "host_id": None}
        return MqttIngester(
            replace(
                self.place,
                params=self.place.params.model_copy(update=params),
                connection=self.place.connection.model_copy(update={"rebirths": False}),
            )
        )

    def forget(self) -> None:
        session = self._new_session(fresh=True, keep_s=0)
        session.connect()
        session.close()

    def _new_session(self, *, fresh: bool, keep_s: int | None = None, host: Host | None = None) -> Session:
        keep_s = self.place.params.keep_s if keep_s is None else keep_s
        will = None
        if host is not None:  # its sessions begin without what was before
            fresh, keep_s, will = True, 0, host.will
        return Session(
            self.place.connection, self.place.name, keep_s=keep_s, fresh=fresh, manual_ack=True, will=will
        )

    def _putting(self, intake: Intake, session: Session) -> Messages:
        params, connection = self.place.params, self.place.connection
        if params.payload != "sparkplug":
            return PlainMessages(intake, params.payload)

        def ask(group: str, node: str) -> None:
            command = rebirth_command(_now_ms())
            session.client.publish(f"{NAMESPACE}/{group}/NCMD/{node}", command)

        wanted = matcher_of(params.topics)
        ask_for = ask if connection.rebirths else None
        return EdgeMessages(intake, wanted, connection.where, ask_for, self._chosen)

    def _taking(
        self, put: Messages, session: Session, full: threading.Event, host: Host | None
    ) -> Callable[[Client, Any, MQTTMessage], None]:
        wanted = matcher_of(self.place.params.topics)

        def take(client: Client, _: Any, message: MQTTMessage) -> None:
            done = partial(_acknowledge, client, message) if message.qos else None
            try:
                if host is not None and message.topic == host.topic:
                    host.take(client, bytes(message.payload), _now_ms())
                    _acknowledge(client, message)
                elif not any(wanted.iter_match(message.topic)):
                    # The session outlives a change of the element, and has the topics from before it too.
                    _acknowledge(client, message)
                elif not put.take(message.topic, bytes(message.payload), done):
                    full.set()
            except Exception as error:
                # The library's thread would end, without a word to `on_disconnect`.
                log.exception("a message could not be taken")
                session.why = f"a message could not be taken: {type(error).__name__}"
                session.lost.set()

        return take

    def _tell_gap(self, intake: Intake, session: Session) -> None:
        """Tells of messages that may have been lost since the connection before."""
        if self._was_connected:
            away_s = monotonic() - self._away_since_s
            if self.place.params.qos == 0 and self.place.params.host_id is None:
                intake.gap(f"The broker was not connected for {away_s:.0f} s, and keeps nothing with QoS 0")
            elif self.place.params.host_id is not None:
                intake.gap(
                    f"The broker was not connected for {away_s:.0f} s, and keeps nothing for an element with "
                    "a host id: only edge nodes that wait for this host send what they kept"
                )
            elif self.place.params.payload == "sparkplug":
                intake.gap(
                    f"The broker was not connected for {away_s:.0f} s, and many brokers keep nothing of what "
                    "edge nodes publish with QoS 0"
                )
            elif not session.session_present:
                intake.gap(f"The broker has forgotten what it kept for this element ({away_s:.0f} s)")
        self._was_connected = True


def _now_ms() -> int:
    return int(time() * 1000)
