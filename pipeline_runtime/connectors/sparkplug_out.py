"""Sparkplug B: sends rows as an edge node (paho-mqtt)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import monotonic, time
from typing import Any

from paho.mqtt.client import MQTTMessage

from pipeline_runtime.connectors.mqtt_out import packet_bytes
from pipeline_runtime.connectors.mqtt_session import Session, Will
from pipeline_runtime.connectors.sdk import (
    CONNECT_S,
    Batch,
    ConnectorError,
    Deliverer,
    Noted,
    Place,
    Refused,
)
from pipeline_runtime.connectors.sparkplug import SEQS
from pipeline_runtime.connectors.sparkplug_edge import EdgeNode, wants_rebirth
from pipeline_runtime.connectors.sparkplug_host import PrimaryHost
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.mqtt import MqttConnection
from pipeline_runtime.operators.sparkplug import BD_SEQ, SparkplugOutParams

HOST_S = 2.0
"""How long the broker may take to say the state of the primary host."""
BIRTH_EVERY_S = 1.0
UNCONFIRMED_BYTES = 1 << 20
"""After so many bytes the broker is asked for an answer."""


class SparkplugDeliverer(Deliverer[SparkplugOutParams, MqttConnection]):
    """A row counts as delivered when the broker has answered a packet that was sent after it."""

    patience_s = 3 * CONNECT_S

    def __init__(self, place: Place[SparkplugOutParams, MqttConnection]) -> None:
        super().__init__(place)
        params = place.params
        metrics = params.metrics_of(place.rows or StreamSchema(fields=()))
        self._edge = EdgeNode(params.group, params.node, metrics)
        self._host = None if params.host_id is None else PrimaryHost(params.host_id)
        self._session: Session | None = None
        self._number: int | None = None  # of the connection, as hosts know it
        self._is_born = False
        self._birth_s = float("-inf")
        self._asked = threading.Event()

    def beats(self) -> int | None:
        session = self._session
        return None if session is None else session.beats()

    def open(self, epoch: int) -> None:
        self._number = self._next_number()
        death = self._edge.begin(self._number, _now_ms())
        # Another name for each owner, as of MQTT out. By its number a late death of an earlier one is known.
        session = Session(
            self.place.connection,
            f"{self.place.name}-{epoch}",
            will=Will(self._edge.topic("NDEATH"), death),
        )
        session.client.on_message = self._take
        self._session = session
        session.connect()
        topics = [self._edge.topic("NCMD")]
        if self._host is not None:
            self._host.forget()
            topics.append(self._host.topic)
        session.subscribe(topics, 1)
        if self._host is not None and not self._host.online.wait(HOST_S):
            raise self._host_is_away()
        self._send_birth(session)

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        session = self._connected()
        topic = self._edge.topic("NDATA")
        refused: list[Refused] = []
        unconfirmed = 0
        for place, (row, time_ms) in enumerate(zip(batch.rows, batch.times_ms, strict=True)):
            self._connected()
            try:
                payload = self._edge.data(row, time_ms, _now_ms())
                size = packet_bytes(topic, payload, None, 0)
                session.check_size(size)
            except ValueError as error:
                refused.append(Refused(place, str(error)))
                continue
            session.client.publish(topic, payload, 0)
            self._edge.sent(row, time_ms)
            unconfirmed += size
            if unconfirmed > UNCONFIRMED_BYTES:
                self._confirm(session)
                unconfirmed = 0
        self._confirm(session)
        return refused

    def idle(self) -> None:
        self._connected()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            # Hosts are told that it is gone, also if it goes in order.
            session.close(with_will=self._is_born)
        self._is_born = False

    def _connected(self) -> Session:
        """Returns the connection, with the birth that was asked for. Raises ConnectorError."""
        assert self._session is not None
        self._session.check()
        if self._host is not None and not self._host.online.is_set():
            raise self._host_is_away()
        if self._asked.is_set() and monotonic() - self._birth_s >= BIRTH_EVERY_S:
            self._send_birth(self._session)
        return self._session

    def _send_birth(self, session: Session) -> None:
        self._asked.clear()
        self._birth_s = monotonic()
        topic, payload = self._edge.topic("NBIRTH"), self._edge.birth(_now_ms())
        try:
            session.check_size(packet_bytes(topic, payload, None, 0))
        except ValueError as error:
            raise ConnectorError(
                f"The birth of the edge node is too large for {session.where}: {error}. Send fewer columns.",
                lasting=True,
            ) from error
        session.client.publish(topic, payload, 0)
        self._is_born = True

    def _confirm(self, session: Session) -> None:
        session.confirm(f"{self._edge.topic('NCMD')}/none")
        self.goes_on()

    def _take(self, _: Any, __: Any, message: MQTTMessage) -> None:
        payload = bytes(message.payload)
        if self._host is not None and message.topic == self._host.topic:
            self._host.take(payload)
        elif wants_rebirth(payload):
            self._asked.set()

    def _next_number(self) -> int:
        """Returns the number of the next connection, also if an earlier owner has made the last one. Raises
        ConnectorError."""
        if self._number is None:
            noted = self.notes.noted()
            last = -1 if noted is None else int(noted.mark.get(BD_SEQ, -1))
        else:
            last = self._number
        number = (last + 1) % SEQS
        self.notes.note(Noted(mark={BD_SEQ: str(number)}))
        return number

    def _host_is_away(self) -> ConnectorError:
        return ConnectorError(
            f"The host application {self.place.params.host_id} is not online at "
            f"{self.place.connection.where}, so rows wait for it."
        )


def _now_ms() -> int:
    return int(time() * 1000)
