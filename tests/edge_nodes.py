"""An edge node of Sparkplug B for the tests: a client of a real broker that answers rebirth commands."""

from __future__ import annotations

import threading
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from pipeline_runtime.connectors.sparkplug import NAMESPACE, new_payload, parsed
from tests.brokers import Broker
from tests.waiting import wait_until

BORN_MS = 1_764_000_000_000
INT32, DOUBLE, UINT64 = 3, 10, 8


class EdgeNode:
    """Has a metric Temperature (Double) with the alias 1, and Strokes (Int32) with the alias 2."""

    def __init__(self, broker: Broker, name: str, group: str = "plant") -> None:
        self.asked = 0  # how often it was asked for births
        self._group, self._name, self._seq = group, name, 0
        self._lock = threading.Lock()
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        death = new_payload(timestamp=BORN_MS)
        death.metrics.add(name="bdSeq", datatype=UINT64, long_value=1)
        self._client.will_set(self.topic("NDEATH"), death.SerializeToString(), qos=1)
        self._client.on_message = self._commanded
        subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        wait_until(self._client.is_connected, "an edge node to be connected")
        self._client.subscribe(self.topic("NCMD"), 1)
        wait_until(subscribed.is_set, "an edge node to listen")

    def topic(self, kind: str) -> str:
        return f"{NAMESPACE}/{self._group}/{kind}/{self._name}"

    def birth(self, temperature: float = 20.0, strokes: int = 0) -> None:
        payload = new_payload(timestamp=BORN_MS)
        payload.metrics.add(name="bdSeq", datatype=UINT64, long_value=1)
        payload.metrics.add(name="Temperature", alias=1, datatype=DOUBLE, double_value=temperature)
        payload.metrics.add(name="Strokes", alias=2, datatype=INT32, int_value=strokes % 2**32)
        with self._lock:
            self._seq = 0
            self._send("NBIRTH", payload)

    def data(self, temperature: float, strokes: int, after_ms: int = 0) -> None:
        """Says both by their aliases, without types."""
        payload = new_payload(timestamp=BORN_MS + after_ms)
        payload.metrics.add(alias=1, double_value=temperature)
        payload.metrics.add(alias=2, int_value=strokes % 2**32)
        with self._lock:
            self._send("NDATA", payload)

    def lose_messages(self, count: int) -> None:
        """The next message has a number as if so many before it had been lost."""
        self._seq = (self._seq + count) % 256

    def die(self) -> None:
        """Ends without a goodbye, so that the broker publishes its last will."""
        self._client.loop_stop()
        sock = self._client.socket()
        if sock is not None:
            sock.close()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _send(self, kind: str, payload: Any) -> None:
        payload.seq = self._seq
        self._seq = (self._seq + 1) % 256
        self._client.publish(self.topic(kind), payload.SerializeToString()).wait_for_publish(10)

    def _commanded(self, _: Any, __: Any, message: Any) -> None:
        [metric] = parsed(message.payload).metrics
        assert (metric.name, metric.boolean_value) == ("Node Control/Rebirth", True)
        self.asked += 1
        # The thread that takes messages must not wait for one of its own.
        threading.Thread(target=self.birth, daemon=True).start()
