"""MQTT: brings messages in, and publishes rows (paho-mqtt)."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from paho.mqtt.client import Client, MQTTMessage, MQTTMessageInfo
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.matcher import MQTTMatcher
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.sdk import (
    CONNECT_S,
    PATIENCE_S,
    Batch,
    ConnectorError,
    Deliverer,
    Hangs,
    Ingester,
    Intake,
    Place,
    Probed,
    Record,
    Refused,
)
from pipeline_runtime.connectors.tls import tls_context
from pipeline_runtime.model.connectors import ROWS_SHOWN, Found
from pipeline_runtime.operators.mqtt import MqttConnection, MqttInParams, MqttOutParams, topic_of

log = logging.getLogger(__name__)

KEEPALIVE_S = 4
"""A broker that hangs is noticed after two of these."""
AT_ONCE = 100
"""How many messages may be under way without an answer."""
CONFIRMED_S = 8.0
PROBE_S = 2.5
TOPICS_FOUND_MAX = 500
_LOOK_S = 0.2
_QUOTED = 200
_AUTHORITY_CODES = (0x86, 0x87)


class _Client(Client):
    """Notes when its thread has looked at the connection, which is at least once a second."""

    looked_s = float("inf")

    def loop_misc(self) -> MQTTErrorCode:
        self.looked_s = monotonic()
        return super().loop_misc()


class Session:
    """One connection to a broker. It is not used again after it was lost."""

    def __init__(
        self,
        connection: MqttConnection,
        client_id: str,
        *,
        keep_s: int = 0,
        fresh: bool = True,
        manual_ack: bool = False,
        will: tuple[str, str] | None = None,
    ) -> None:
        """`fresh`: the broker forgets what it has kept for this client. `keep_s`: how long it keeps messages
        of a client that is away (version 5)."""
        self._connection = connection
        self._is_5 = connection.version == "5"
        self._fresh, self._keep_s = fresh, keep_s
        self.client = _Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            protocol=MQTTProtocolVersion.MQTTv5 if self._is_5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
            manual_ack=manual_ack,
            clean_session=None if self._is_5 else fresh,
        )
        self.client.connect_timeout = CONNECT_S
        self.client.max_inflight_messages = AT_ONCE
        self.client.max_queued_messages = 0
        if connection.user is not None:
            self.client.username_pw_set(connection.user, connection.password)
        if will is not None:
            self.client.will_set(will[0], will[1].encode(), qos=1)
        self._answered, self.lost = threading.Event(), threading.Event()
        self._subscribed = threading.Event()
        self._reason: Any = None
        self._granted: Sequence[Any] = ()
        self.session_present = False
        self.at_once = AT_ONCE
        """How many messages may be under way to the broker."""
        self.packet_bytes_max: int | None = None
        """The largest packet that the broker takes, if it says so."""
        self.why = ""
        """Why it was lost, if the broker said so."""
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.on_subscribe = self._on_subscribe

    def connect(self) -> None:
        """Raises ConnectorError."""
        where = self._connection.where
        try:
            if self._connection.tls:
                self.client.tls_set_context(tls_context(self._connection))
            options: dict[str, Any] = {}
            if self._is_5:
                asked = Properties(PacketTypes.CONNECT)
                asked.SessionExpiryInterval = self._keep_s
                asked.ReceiveMaximum = AT_ONCE
                options = {"clean_start": self._fresh, "properties": asked}
            self.client.connect(
                self._connection.host, self._connection.port, keepalive=KEEPALIVE_S, **options
            )
        except Exception as error:
            raise in_words(error, where) from error
        began_s = monotonic()
        self.client.loop_start()
        self._answered.wait(CONNECT_S)
        if self._reason is None:
            self.close()
            silent = monotonic() - began_s >= KEEPALIVE_S - 1  # paho itself gives up then
            what = "does not answer" if silent else "closes it"
            raise ConnectorError(f"{where} takes the connection and {what}. Is it an MQTT broker there?")
        if self._reason.is_failure:
            self.close()
            raise _refusal(self._reason, self._connection)

    def subscribe(self, filters: Sequence[str], qos: int) -> None:
        """Raises ConnectorError. Retained messages come with a new subscription alone, where the broker knows
        version 5."""
        if self._is_5:
            options = SubscribeOptions(qos, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
            self.client.subscribe([(each, options) for each in filters])
        else:
            self.client.subscribe([(each, qos) for each in filters])
        if not self._subscribed.wait(CONNECT_S):
            raise ConnectorError(f"{self._connection.where} does not answer a subscription.")
        refused = [each for each, code in zip(filters, self._granted, strict=False) if code.is_failure]
        if refused:
            raise ConnectorError(
                f"{self._connection.where} does not let this user read {', '.join(refused)}.", lasting=True
            )

    def check_size(self, size: int) -> None:
        """Raises ValueError if the broker ends a connection with such a packet."""
        most = self.packet_bytes_max
        if most is not None and size > most:
            raise ValueError(f"its message has {size} bytes, and the broker takes at most {most}")

    def check(self) -> None:
        """Raises ConnectorError if it was lost."""
        if self.lost.is_set():
            raise self.lost_error()
        if monotonic() - self.client.looked_s > PATIENCE_S:
            raise Hangs(
                f"The library that speaks with {self._connection.where} has stood still for "
                f"{PATIENCE_S:.0f} s, so its process is ended"
            )

    def lost_error(self) -> ConnectorError:
        why = f" ({self.why})" if self.why else ""
        return ConnectorError(f"The connection to {self._connection.where} was lost{why}.")

    def close(self) -> None:
        """Says goodbye if it is connected."""
        with suppress(Exception):
            self.client.disconnect()
        with suppress(Exception):
            self.client.loop_stop()

    def _on_connect(self, _: Any, __: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.session_present = bool(flags.session_present)
        # The library keeps to neither of them.
        self.at_once = max(1, min(AT_ONCE, getattr(properties, "ReceiveMaximum", AT_ONCE)))
        self.packet_bytes_max = getattr(properties, "MaximumPacketSize", None)
        self._reason = reason
        self._answered.set()

    def _on_disconnect(self, _: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
        if reason is not None and reason.value not in (0, 0x80):
            self.why = str(reason)
        self.lost.set()
        self._answered.set()

    def _on_subscribe(self, _: Any, __: Any, ___: Any, reasons: Sequence[Any], ____: Any) -> None:
        self._granted = reasons
        self._subscribed.set()


def _refusal(reason: Any, connection: MqttConnection) -> ConnectorError:
    where, said = connection.where, str(reason)
    if reason.value in _AUTHORITY_CODES:
        who = f"the user {connection.user}" if connection.user else "a client without a user name"
        return ConnectorError(
            f"{where} does not let {who} in ({said}). Check the user name and the password.", lasting=True
        )
    if reason.value == 0x84:
        other = "3.1.1" if connection.version == "5" else "5"
        return ConnectorError(
            f"{where} does not speak MQTT {connection.version}. Choose {other}.", lasting=True
        )
    return ConnectorError(f"{where} refuses the connection ({said}).")


# -- in ------------------------------------------------------------------------------------------------


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


class MqttIngester(Ingester[MqttInParams, MqttConnection]):
    """With QoS 1 a message is acknowledged when it is durable. The session outlives a move: the next node
    takes it over under the same name, and what was not acknowledged comes again."""

    system_waits = True
    patience_s = 3 * CONNECT_S

    def __init__(self, place: Place[MqttInParams, MqttConnection]) -> None:
        super().__init__(place)
        self._was_connected = False
        self._away_since_s = 0.0

    def run(self, intake: Intake, stop: threading.Event) -> None:
        params = self.place.params
        session = self._session(fresh=params.qos == 0)
        full = threading.Event()
        session.client.on_message = self._taking(intake, session, full)
        session.connect()
        try:
            session.subscribe(params.topics, params.qos)
            self._tell_gap(intake, session)
            intake.connected()
            while not stop.wait(_LOOK_S):
                if full.is_set():
                    # The broker sends again what was not acknowledged, once it is connected again.
                    raise ConnectorError("There is no room for more messages; the broker has to keep them.")
                session.check()
        finally:
            session.close()
            self._away_since_s = monotonic()

    def forget(self) -> None:
        session = self._session(fresh=True, keep_s=0)
        session.connect()
        session.close()

    def _session(self, *, fresh: bool, keep_s: int | None = None) -> Session:
        keep_s = self.place.params.keep_s if keep_s is None else keep_s
        return Session(self.place.connection, self.place.name, keep_s=keep_s, fresh=fresh, manual_ack=True)

    def _taking(
        self, intake: Intake, session: Session, full: threading.Event
    ) -> Callable[[Client, Any, MQTTMessage], None]:
        kind, wanted = self.place.params.payload, matcher_of(self.place.params.topics)

        def take(client: Client, _: Any, message: MQTTMessage) -> None:
            try:
                put(client, message)
            except Exception as error:
                # The library's thread would end, without a word to `on_disconnect`.
                log.exception("a message could not be taken")
                session.why = f"a message could not be taken: {type(error).__name__}"
                session.lost.set()

        def put(client: Client, message: MQTTMessage) -> None:
            if not any(wanted.iter_match(message.topic)):
                # The session outlives a change of the element, and has the topics from before it too.
                _acknowledge(client, message)
                return
            record = record_of(message.topic, bytes(message.payload), kind)
            if not message.qos:
                intake.put([record])
            elif not intake.put([record], partial(_acknowledge, client, message)):
                full.set()

        return take

    def _tell_gap(self, intake: Intake, session: Session) -> None:
        """Tells of messages that may have been lost since the connection before."""
        if self._was_connected:
            away_s = monotonic() - self._away_since_s
            if self.place.params.qos == 0:
                intake.gap(f"The broker was not connected for {away_s:.0f} s, and keeps nothing with QoS 0")
            elif not session.session_present:
                intake.gap(f"The broker has forgotten what it kept for this element ({away_s:.0f} s)")
        self._was_connected = True


# -- out -----------------------------------------------------------------------------------------------


class MqttDeliverer(Deliverer[MqttOutParams, MqttConnection]):
    """A row counts as delivered when the broker has confirmed it."""

    def __init__(self, place: Place[MqttOutParams, MqttConnection]) -> None:
        super().__init__(place)
        self._session: Session | None = None
        self._refused: dict[int, str] = {}  # message id -> why
        self._lock = threading.Lock()

    def open(self, epoch: int) -> None:
        params = self.place.params
        will = None if params.will_topic is None else (params.will_topic, params.will_payload)
        # Another name for each owner: two of one name would end each other, and publish the last will.
        self._session = Session(self.place.connection, f"{self.place.name}-{epoch}", will=will)
        self._session.client.on_publish = self._on_publish
        self._session.connect()

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        session = self._connected()
        params = self.place.params
        refused: list[Refused] = []
        waiting: deque[tuple[int, MQTTMessageInfo]] = deque()

        def confirm(at_most: int) -> None:
            """Waits until so many wait for the broker at most."""
            while len(waiting) > at_most:
                place, info = waiting.popleft()
                if why := self._confirmed(session, info):
                    refused.append(Refused(place, why))

        for place, (row, offset) in enumerate(zip(batch.rows, batch.offsets, strict=True)):
            properties = self._named(offset)
            try:
                topic, payload = topic_of(params.topic, row), _payload(params, row, offset)
                session.check_size(packet_bytes(topic, payload, properties, params.qos))
            except UnicodeEncodeError:
                refused.append(Refused(place, "it holds a character that no text can have"))
                continue
            except ValueError as error:
                refused.append(Refused(place, str(error)))
                continue
            confirm(session.at_once - 1)
            waiting.append(
                (place, session.client.publish(topic, payload, params.qos, params.retain, properties))
            )
        confirm(0)
        return refused

    def _confirmed(self, session: Session, info: MQTTMessageInfo) -> str:
        """Waits until the broker has confirmed a message. Returns why it refuses it, or an empty text. Raises
        ConnectorError."""
        self.goes_on()
        until_s = monotonic() + CONFIRMED_S
        try:
            while not info.is_published():
                session.check()
                if monotonic() > until_s:
                    raise ConnectorError(
                        f"{self.place.connection.where} has not confirmed a message within "
                        f"{CONFIRMED_S:.0f} s."
                    )
                info.wait_for_publish(_LOOK_S)
        except (RuntimeError, ValueError) as error:  # the library had no connection
            raise session.lost_error() from error
        with self._lock:
            why = self._refused.pop(info.mid, None)
        return "" if why is None else f"the broker refuses it: {why}"

    def idle(self) -> None:
        self._connected()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()
        self._refused.clear()

    def _connected(self) -> Session:
        assert self._session is not None
        self._session.check()
        return self._session

    def _named(self, offset: int) -> Properties | None:
        if self.place.connection.version != "5":
            return None
        properties = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = ("fogline-id", f"{self.place.deployment}.{self.place.element}.{offset}")
        return properties

    def _on_publish(self, _: Any, __: Any, mid: int, reason: Any, ___: Any) -> None:
        if reason is not None and reason.is_failure:
            with self._lock:
                self._refused[mid] = str(reason)


def _payload(params: MqttOutParams, row: Mapping[str, Any], offset: int) -> bytes:
    if params.value is not None:
        value = row.get(params.value)
        if isinstance(value, bool):
            return b"true" if value else b"false"
        return b"" if value is None else str(value).encode()
    whole = row if params.id_field is None else {**row, params.id_field: offset}
    return json.dumps(whole, ensure_ascii=False).encode()


def packet_bytes(topic: str, payload: bytes, properties: Properties | None, qos: int) -> int:
    """Returns the length of the packet that publishes this, with version 5."""
    named = 1 if properties is None else len(properties.pack())
    rest = 2 + len(topic.encode()) + (2 if qos else 0) + named + len(payload)
    return 2 + sum(rest >= 1 << bits for bits in (7, 14, 21)) + rest


# -- test connection -----------------------------------------------------------------------------------


def probe(connection: MqttConnection, path: str) -> Probed:
    """Listens for a moment to `path`, a topic with wildcards, or to all topics."""
    session = Session(connection, "")
    rows: list[dict[str, Any]] = []
    topics: dict[str, str] = {}

    def take(_: Client, __: Any, message: MQTTMessage) -> None:
        text = message.payload[:_QUOTED].decode(errors="replace")
        if len(rows) < ROWS_SHOWN:
            rows.append({"topic": message.topic, "payload": text})
        if len(topics) < TOPICS_FOUND_MAX:
            topics.setdefault(message.topic, _type_of(bytes(message.payload)))

    session.client.on_message = take
    session.connect()
    try:
        session.subscribe([path or "#"], 0)
        session.lost.wait(PROBE_S)
    finally:
        session.close()
    if not topics:
        words = f"Connected. No message came within {PROBE_S:.0f} s."
    else:
        words = f"Connected. Messages of {len(topics)} topics came within {PROBE_S:.0f} s."
    found = tuple(Found(path=topic, title=topic, type=type_) for topic, type_ in sorted(topics.items()))
    return Probed(words, tuple(rows), found)


def _type_of(payload: bytes) -> str:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return "text"
    return {dict: "JSON object", list: "JSON array", bool: "boolean", int: "number", float: "number"}.get(
        type(value), "text"
    )
