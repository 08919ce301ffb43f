"""A real mosquitto for the tests of MQTT, that can be killed, hung and started again."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from pipeline_runtime.operators.mqtt import MqttConnection
from tests.killable import Killable
from tests.waiting import wait_until

_PROGRAM = shutil.which("mosquitto") or "/usr/sbin/mosquitto"


class Broker(Killable):
    """Keeps messages and sessions over a restart. `user`: who alone may come in, with the password
    "right"."""

    def __init__(self, directory: Path, user: str | None = None, *more: str) -> None:
        """`more`: further lines of its configuration."""
        super().__init__("mosquitto")
        self._directory = directory
        self._config = directory / "mosquitto.conf"
        lines = [
            f"listener {self.port} 127.0.0.1",
            "persistence true",
            f"user {getpass.getuser()}",  # root would become another one, who may not read this directory
            f"persistence_location {directory}/",
            "max_queued_messages 0",
            "set_tcp_nodelay true",
            *more,
        ]
        if user is None:
            lines.append("allow_anonymous true")
        else:
            passwords = directory / "passwords"
            subprocess.run(
                ["mosquitto_passwd", "-b", "-c", str(passwords), user, "right"],
                check=True,
                capture_output=True,
            )
            lines += ["allow_anonymous false", f"password_file {passwords}"]
        self._config.write_text("\n".join(lines) + "\n")

    def _spawn(self) -> subprocess.Popen[bytes]:
        with open(self._directory / "log.txt", "ab") as log:
            return subprocess.Popen([_PROGRAM, "-c", str(self._config)], stdout=log, stderr=subprocess.STDOUT)

    def stop(self) -> None:
        """Ends it in order: it keeps what it has for its clients."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def connection(self, **fields: Any) -> MqttConnection:
        return MqttConnection.model_validate({"host": "127.0.0.1", "port": self.port, **fields})

    def client(
        self,
        take: Callable[[str, bytes], None] | None = None,
        topic: str = "#",
        *,
        user: str | None = None,
        password: str | None = None,
    ) -> Client:
        """Returns a connected client. `take` is told each message of the topic."""
        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        client.max_queued_messages = 0
        if user is not None:
            client.username_pw_set(user, password)
        if take is not None:
            client.on_message = lambda _, __, message: take(message.topic, message.payload)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        wait_until(client.is_connected, "a client of mosquitto to be connected")
        if take is not None:
            subscribed: list[int] = []
            client.on_subscribe = lambda *_: subscribed.append(1)
            client.subscribe(topic, 1)
            wait_until(lambda: subscribed, "a subscription")
        return client

    def publish(self, topic: str, *payloads: bytes, retain: bool = False) -> None:
        """Returns when the broker has all of them."""
        client = self.client()
        for info in [client.publish(topic, payload, 1, retain) for payload in payloads]:
            info.wait_for_publish(10)
        client.disconnect()
        client.loop_stop()
