"""A connection to an MQTT broker (paho-mqtt)."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.mqtt_alive import Alive, Moved
from pipeline_runtime.connectors.name_servers import by_address
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError
from pipeline_runtime.connectors.tls import tls_context
from pipeline_runtime.operators.mqtt import MqttConnection

KEEPALIVE_S = 30
"""What the broker is told: it may end a connection on which it has had no whole packet for half as long
again."""
THREAD_LOOKS_S = 0.1
"""How often the library's thread looks whether the broker still answers."""
CONNACK_S = CONNECT_S
"""How long the broker may take to let a client in, or to refuse it."""
AT_ONCE = 100
"""How many messages may be under way without an answer."""
LOOK_S = 0.2
"""How often a thread looks whether the connection was lost."""
CONFIRMED_S = 8.0
"""How long the broker may take to confirm what it was sent, from when it has it."""
GOODBYE_S = 2.0
"""How long an orderly end of a connection may take."""
_WITH_WILL = "Disconnect with will message"
_AUTHORITY_CODES = (0x86, 0x87)


class _Client(Client):
    """Counts how often its thread has looked at the connection, and ends it if the broker hangs."""

    looks = 0
    hangs = ""
    """Why the broker hangs, if it does."""
    alive: Alive | None = None
    _looked_s = 0.0

    def loop_forever(
        self, timeout: float = THREAD_LOOKS_S, retry_first_connection: bool = False
    ) -> MQTTErrorCode:
        return super().loop_forever(timeout, retry_first_connection)

    def loop_misc(self) -> MQTTErrorCode:
        """In place of the library's own: that one ends a connection on which one message is under way for
        longer than the keepalive."""
        self.looks += 1
        line, now_s = cast("socket.socket | None", self.socket()), monotonic()
        if line is None:
            return MQTTErrorCode.MQTT_ERR_NO_CONN
        begun = self.alive is not None or self.is_connected()
        if begun and now_s - self._looked_s >= THREAD_LOOKS_S:
            self._looked_s = now_s
            # The library finds that the connection was lost. An old system says less of it.
            with suppress(OSError, struct.error):
                self._look(line, now_s)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _look(self, line: socket.socket, now_s: float) -> None:
        moved = Moved.of(line, self.want_write())
        if self.alive is None:
            # The broker may have said another keepalive. 0 stands for none.
            self.alive = Alive(now_s, moved, self.keepalive / 2 or float("inf"))
        match self.alive.look(now_s, moved):
            case "ask":
                # Another thread may have published since. The question would wait behind that.
                if self.want_write():
                    self.alive.not_asked()
                else:
                    self._send_pingreq()
            case "hangs":
                self.hangs = self.alive.why
                line.shutdown(socket.SHUT_RDWR)  # the library reads its end, and says so


@dataclass(frozen=True)
class Will:
    """What the broker publishes, with QoS 1, if a connection ends without a goodbye."""

    topic: str
    payload: bytes
    retain: bool = False


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
        will: Will | None = None,
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
        self.client.max_inflight_messages = AT_ONCE
        self.client.max_queued_messages = 0
        if connection.user is not None:
            self.client.username_pw_set(connection.user, connection.password)
        self._will = will
        if will is not None:
            self.client.will_set(will.topic, will.payload, qos=1, retain=will.retain)
        self._answered, self.lost = threading.Event(), threading.Event()
        self._subscribed, self._confirmed = threading.Event(), threading.Event()
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
        self.client.on_unsubscribe = lambda *_: self._confirmed.set()

    @property
    def where(self) -> str:
        return self._connection.where

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

            def connect(host: str, timeout_s: float) -> None:
                self.client.connect_timeout = timeout_s
                self.client.connect(host, self._connection.port, keepalive=KEEPALIVE_S, **options)

            if self._connection.tls:  # which checks the name
                connect(self._connection.host, CONNECT_S)
            else:
                by_address(self._connection.host, connect)
        except Exception as error:
            raise in_words(error, where) from error
        self.client.loop_start()
        answered = self._answered.wait(CONNACK_S)
        if self._reason is None:
            self.close()
            if self._connection.tls and answered:
                raise ConnectorError(
                    f"{where} takes the connection by TLS and closes it. It may want an own certificate of "
                    "this connection that it trusts."
                )
            what = "closes it" if answered else "does not answer"
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

    @property
    def under_way_s(self) -> float:
        """When some of what was sent had not arrived at the broker yet: the last time, by `monotonic`."""
        alive = self.client.alive
        return float("-inf") if alive is None else alive.under_way_s

    def check_size(self, size: int) -> None:
        """Raises ValueError if the broker ends a connection with such a packet."""
        most = self.packet_bytes_max
        if most is not None and size > most:
            raise ValueError(f"its message has {size} bytes, and the broker takes at most {most}")

    def check(self) -> None:
        """Raises ConnectorError if it was lost."""
        if self.lost.is_set():
            raise self.lost_error()

    def beats(self) -> int | None:
        """As Ingester.beats: of the library's thread, which ends with the connection."""
        return None if self.lost.is_set() else self.client.looks or None

    def lost_error(self) -> ConnectorError:
        why = f" ({self.why})" if self.why else ""
        return ConnectorError(f"The connection to {self._connection.where} was lost{why}.")

    def confirm(self, filter_: str) -> None:
        """Returns when the broker has read all that was sent before: it answers the packets of a connection
        in their order. `filter_`: one that this client has not subscribed to. Raises ConnectorError."""
        self._confirmed.clear()
        self.client.unsubscribe(filter_)
        began_s = monotonic()
        while not self._confirmed.wait(LOOK_S):
            self.check()
            if monotonic() > max(began_s, self.under_way_s) + CONFIRMED_S:
                raise ConnectorError(f"{self.where} has not answered within {CONFIRMED_S:.0f} s.")

    def close(self, *, with_will: bool = False) -> None:
        """Says goodbye if it is connected. `with_will`: the last will is published all the same."""
        with suppress(Exception):
            if with_will and self._is_5:
                self.client.disconnect(ReasonCode(PacketTypes.DISCONNECT, _WITH_WILL))
            elif with_will and self._will is not None and not self.lost.is_set():
                # This version cannot ask for it. The library sends both in this order.
                self.client.publish(self._will.topic, self._will.payload, 1, self._will.retain)
                self.client.disconnect()
            else:
                self.client.disconnect()
        with suppress(Exception):
            self._end_in_time()
            self.client.loop_stop()

    def _end_in_time(self) -> None:
        """A goodbye waits behind what is under way, which may take long."""
        thread, line = self.client._thread, cast("socket.socket | None", self.client.socket())
        if thread is not None and thread is not threading.current_thread():
            thread.join(GOODBYE_S)
            if thread.is_alive() and line is not None:
                line.shutdown(socket.SHUT_RDWR)

    def _on_connect(self, _: Any, __: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.session_present = bool(flags.session_present)
        # The library keeps to neither of them.
        self.at_once = max(1, min(AT_ONCE, getattr(properties, "ReceiveMaximum", AT_ONCE)))
        self.packet_bytes_max = getattr(properties, "MaximumPacketSize", None)
        self._reason = reason
        self._answered.set()

    def _on_disconnect(self, _: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
        if self.client.hangs:
            self.why = self.client.hangs
        elif reason is not None and reason.value not in (0, 0x80):
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
