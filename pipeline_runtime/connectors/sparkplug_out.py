"""Sparkplug B: sends rows as an edge node (paho-mqtt)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import monotonic, time
from typing import Any

from paho.mqtt.client import MQTTMessage

from pipeline_runtime.connectors.mqtt_out import packet_bytes
from pipeline_runtime.connectors.mqtt_session import LOOK_S, Session, Will
from pipeline_runtime.connectors.passed_on import PassedOn
from pipeline_runtime.connectors.sdk import (
    CONNECT_S,
    Batch,
    ConnectorError,
    Deliverer,
    Noted,
    Place,
    Refused,
)
from pipeline_runtime.connectors.sparkplug_edge import EdgeNode, Message, wants_rebirth
from pipeline_runtime.connectors.sparkplug_host import PrimaryHost
from pipeline_runtime.connectors.sparkplug_lives import Life, alone, life_of, next_life
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.mqtt import MqttConnection
from pipeline_runtime.operators.sparkplug import SparkplugOutParams

HOST_S = 2.0
"""How long the broker may take to say the state of the primary host."""
BIRTH_EVERY_S = SILENCE_EVERY_S = 1.0
"""How often births are sent, and how often it is looked which devices are silent, at most."""
UNCONFIRMED_BYTES = 1 << 20
"""So many bytes may be on their way to the broker and back."""
PASSED_S = 2.0
"""A broker that has passed nothing on for so long is asked whether it goes on at all."""
_NAMED = 3


class SparkplugDeliverer(Deliverer[SparkplugOutParams, MqttConnection]):
    """A row counts as delivered when the broker has passed it on to this client, too."""

    patience_s = 3 * CONNECT_S

    def __init__(self, place: Place[SparkplugOutParams, MqttConnection]) -> None:
        super().__init__(place)
        params = place.params
        metrics = params.metrics_of(place.rows or StreamSchema(fields=()))
        self._edge = EdgeNode(params.group, params.node, metrics, params.device)
        self._host = None if params.host_id is None else PrimaryHost(params.host_id)
        self._session: Session | None = None
        self._life: Life | None = None
        self._passed_on = PassedOn()
        self._is_born = False
        self._birth_s = self._silence_s = float("-inf")
        self._asked = threading.Event()

    def beats(self) -> int | None:
        session = self._session
        return None if session is None else session.beats()

    def open(self, epoch: int) -> None:
        life = self._begun(epoch)
        for left in life.left:
            self._end_connection_of(left)
        death = self._edge.begin(life.number, _now_ms(), monotonic())
        session = Session(
            self.place.connection, self._client_id(epoch), will=Will(self._edge.topic("NDEATH"), death)
        )
        session.client.on_message = self._take
        self._session = session
        self._passed_on.begin()
        session.connect()
        topics = [self._edge.topic("NCMD"), *self._edge.own_topics]
        if self._host is not None:
            self._host.forget()
            topics.append(self._host.topic)
        session.subscribe(topics, 1)
        if self._host is not None and not self._host.online.wait(HOST_S):
            raise self._host_is_away()
        # A later owner that has begun by now ends this connection before it sends anything. Another one that
        # begins now sees this one, too.
        self.notes.change(lambda noted: Noted(mark=alone(life_of(noted.mark), life).mark()))
        self._send_births(session)
        self._settle(session)

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        session = self._connected()
        refused: list[Refused] = []
        for place in range(len(batch.rows)):
            self._connected()
            try:
                self._send_row(session, batch, place)
            except ValueError as error:
                refused.append(Refused(place, str(error)))
            if self._passed_on.waiting_bytes > UNCONFIRMED_BYTES:
                refused += self._dropped(session, batch)
        return [*refused, *self._dropped(session, batch)]

    def idle(self) -> None:
        self._connected()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            # Hosts are told that it is gone, also if it goes in order.
            session.close(with_will=self._is_born)
        self._is_born = False

    # -- which connection counts -------------------------------------------------------------------------

    def _begun(self, epoch: int) -> Life:
        """Returns the life of the next connection, which is noted. Raises ConnectorError."""
        made: list[Life] = []

        def next_one(noted: Noted) -> Noted:
            made.append(next_life(life_of(noted.mark), self._life, self.place.group, epoch))
            return Noted(mark=made[-1].mark())

        self.notes.change(next_one)
        self._life = made[-1]
        return self._life

    def _client_id(self, epoch: int) -> str:
        """Returns another name for each owner, so that one that comes back cannot end a later one."""
        return f"{self.place.name}-{epoch}"

    def _end_connection_of(self, epoch: int) -> None:
        """Lets the broker end the connection of an earlier owner, if it has one: no two connections have one
        name. Its last will has an earlier number. Raises ConnectorError."""
        session = Session(self.place.connection, self._client_id(epoch))
        try:
            session.connect()
        finally:
            session.close()
        self.goes_on()

    def _connected(self) -> Session:
        """Returns the connection, with the birth that was asked for. Raises ConnectorError."""
        assert self._session is not None
        self._check(self._session)
        if self._passed_on.has_other:
            raise ConnectorError(
                f"At {self._session.where}, another client sends as the edge node {self._edge.words}, and "
                "hosts take the two for one. Give one of them another edge node id. Rows wait until then.",
                lasting=True,
            )
        if self._host is not None and not self._host.online.is_set():
            raise self._host_is_away()
        if self._asked.is_set() and monotonic() - self._birth_s >= BIRTH_EVERY_S:
            self._send_births(self._session)
        self._send_deaths(self._session)
        return self._session

    # -- what the broker has passed on -------------------------------------------------------------------

    def _publish(self, session: Session, message: Message, place: int | None = None) -> None:
        """`place`: of the row, if it is a message of a row."""
        self._passed_on.sends(*message, place)
        session.client.publish(*message, 0)

    def _send_row(self, session: Session, batch: Batch, place: int) -> Message:
        """Sends a row, behind the birth of its device if that is new or was away. Raises ValueError if the
        row cannot be sent, and ConnectorError."""
        row, time_ms = batch.rows[place], batch.times_ms[place]
        message = self._edge.data(row, time_ms, _now_ms())
        session.check_size(_size_of(message))
        birth = self._edge.birth_before(row, _now_ms(), monotonic())
        if birth is not None:
            self._send_birth(session, birth)
            message = self._edge.data(row, time_ms, _now_ms())
        self._publish(session, message, place)
        self._edge.sent(row, time_ms, monotonic())
        return message

    def _send_births(self, session: Session) -> None:
        self._settle(session)  # no probe comes between the births
        self._asked.clear()
        self._birth_s = monotonic()
        for birth in self._edge.births(_now_ms()):
            self._send_birth(session, birth)
            if self._passed_on.waiting_bytes > UNCONFIRMED_BYTES:
                self._settle(session)

    def _send_birth(self, session: Session, birth: Message) -> None:
        """Raises ConnectorError if the broker says that it does not take it."""
        try:
            session.check_size(_size_of(birth))
        except ValueError as error:
            raise ConnectorError(
                f"A birth is too large for {session.where}: {error}. Send fewer columns.", lasting=True
            ) from error
        self._publish(session, birth)
        self._is_born = True

    def _send_deaths(self, session: Session) -> None:
        silent_s, now_s = self.place.params.silent_s, monotonic()
        if silent_s is None or now_s - self._silence_s < SILENCE_EVERY_S:
            return
        self._silence_s = now_s
        for death in self._edge.silent(now_s - silent_s, _now_ms()):
            session.client.publish(*death, 0)

    def _dropped(self, session: Session, batch: Batch) -> list[Refused]:
        """Returns the rows that have not come back, also when each was sent once more by itself. Raises
        ConnectorError if the broker passes on nothing."""
        self._settle(session)
        whys = ((place, self._sent_again(session, batch, place)) for place in self._passed_on.dropped())
        return [Refused(place, why) for place, why in whys if why]

    def _sent_again(self, session: Session, batch: Batch, place: int) -> str:
        """Sends a row by itself. Returns why it is refused, or an empty text. Raises ConnectorError."""
        self._connected()
        try:
            message = self._send_row(session, batch, place)
        except ValueError as error:
            return str(error)
        self._publish(session, self._edge.probe(message.topic, _now_ms()))
        self._settle(session)
        if not self._passed_on.dropped():
            return ""
        return (
            f"its message of {_size_of(message)} bytes did not come back from the broker, also when it was "
            "sent again by itself, while a short message behind it did. Whether hosts have it is not known"
        )

    def _settle(self, session: Session) -> None:
        """Returns when it is known of all messages what became of them. Raises ConnectorError if the broker
        passes on nothing."""
        if not self._waited(session):
            # What comes behind a row that is dropped tells so. Nothing may come behind the last one.
            for topic in self._passed_on.missing():
                if not topic.split("/")[2].endswith("BIRTH"):
                    self._publish(session, self._edge.probe(topic, _now_ms()))
            try:
                session.confirm(f"{self._edge.topic('NCMD')}/none")
            except ConnectorError:
                self._check(session)
                raise
            self.goes_on()
            if not self._waited(session):
                raise self._is_mute(session)
        self.goes_on()

    def _waited(self, session: Session) -> bool:
        """Returns whether it is known of all messages what became of them. It waits as long as one after the
        other comes back."""
        waiting, until_s = self._passed_on.waiting_bytes, monotonic() + PASSED_S
        while not (is_known := self._passed_on.wait(LOOK_S)) and monotonic() < until_s:
            self._check(session)
            if self._passed_on.waiting_bytes < waiting:
                waiting, until_s = self._passed_on.waiting_bytes, monotonic() + PASSED_S
                self.goes_on()
        return is_known

    def _check(self, session: Session) -> None:
        """Raises ConnectorError if the connection was lost."""
        if not session.lost.is_set():
            return
        lost, unheard = session.lost_error(), self._passed_on.unheard()
        if not unheard:
            raise lost
        # Some brokers end the connection of who writes what they forbid.
        raise ConnectorError(
            f"{lost} That was behind the first message to {unheard[0]}: the broker may forbid it, or the "
            f"message is too large for it. {self._rights}"
        )

    @property
    def _rights(self) -> str:
        return f"Give the user the right to write and to read {self._edge.all_topics}."

    def _is_mute(self, session: Session) -> ConnectorError:
        silent = self._passed_on.missing()[:_NAMED]
        return ConnectorError(
            f"{session.where} does not pass on what this user writes to {', '.join(silent)}, so rows wait. "
            f"{self._rights} If the user has that right, the broker may have too much to do, or the message "
            "may be larger than it takes: send fewer columns.",
            lasting=True,
        )

    def _take(self, _: Any, __: Any, message: MQTTMessage) -> None:
        payload = bytes(message.payload)
        if self._host is not None and message.topic == self._host.topic:
            self._host.take(payload)
        elif message.topic == self._edge.topic("NCMD"):
            if wants_rebirth(payload):
                self._asked.set()
        elif not message.retain:  # which no message of an edge node is
            self._passed_on.take(message.topic, payload)

    def _host_is_away(self) -> ConnectorError:
        return ConnectorError(
            f"The host application {self.place.params.host_id} is not online at "
            f"{self.place.connection.where}, so rows wait for it."
        )


def _size_of(message: Message) -> int:
    return packet_bytes(message.topic, message.payload, None, 0)


def _now_ms() -> int:
    return int(time() * 1000)
