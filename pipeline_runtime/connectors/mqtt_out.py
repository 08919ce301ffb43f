"""MQTT: publishes rows (paho-mqtt)."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from paho.mqtt.client import MQTTMessageInfo
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from pipeline_runtime.connectors.mqtt_session import CONFIRMED_S, LOOK_S, Session, Will
from pipeline_runtime.connectors.sdk import CONNECT_S, Batch, ConnectorError, Deliverer, Place, Refused
from pipeline_runtime.operators.mqtt import MqttConnection, MqttOutParams, topic_of


class MqttDeliverer(Deliverer[MqttOutParams, MqttConnection]):
    """A row counts as delivered when the broker has confirmed it."""

    patience_s = 3 * CONNECT_S

    def __init__(self, place: Place[MqttOutParams, MqttConnection]) -> None:
        super().__init__(place)
        self._session: Session | None = None
        self._refused: dict[int, str] = {}  # message id -> why
        self._lock = threading.Lock()

    def beats(self) -> int | None:
        session = self._session
        return None if session is None else session.beats()

    def open(self, epoch: int) -> None:
        params = self.place.params
        will = None if params.will_topic is None else Will(params.will_topic, params.will_payload.encode())
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
        began_s = monotonic()
        try:
            while not info.is_published():
                session.check()
                now_s, under_way_s = monotonic(), session.under_way_s
                if now_s - under_way_s < 2 * LOOK_S:
                    self.goes_on()  # it arrives bit by bit
                if now_s > max(began_s, under_way_s) + CONFIRMED_S:
                    raise ConnectorError(
                        f"{self.place.connection.where} has not confirmed a message within "
                        f"{CONFIRMED_S:.0f} s."
                    )
                info.wait_for_publish(LOOK_S)
        except (RuntimeError, ValueError) as error:  # the library had no connection
            raise session.lost_error() from error
        with self._lock:
            why = self._refused.pop(info.mid, None)
        return "" if why is None else f"the broker refuses it: {why}"

    def idle(self) -> None:
        self._connected()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None
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
