"""Sends rows to connectors, and takes rows from connectors. Each load is a process of its own, so that its
CPU does not count as the connector's.

A row is {"n": its number, "t": when it was made, in ms since 1970}.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from time import monotonic, time
from typing import Any

import httpx
import uvicorn
from asyncua import Client, ua
from paho.mqtt.client import Client as MqttClient
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from starlette.types import Receive, Scope, Send

from tests.opcua_servers import PRESS

AT_ONCE = 100
"""Messages of MQTT that wait for the broker at a time, and rows of a request."""
TIMEOUT_S = 60.0


def made(n: int) -> dict[str, Any]:
    return {"n": n, "t": time() * 1000}


def paced(rows: int, per_s: float, at_once: int = 1) -> Iterator[range]:
    """Yields the numbers of the rows, so many at once and so many a second; `per_s` 0: without a pause."""
    began_s = monotonic()
    for first in range(0, rows, at_once):
        if per_s:
            threading.Event().wait(max(0.0, began_s + first / per_s - monotonic()))
        yield range(first, min(rows, first + at_once))


def send_mqtt(port: int, rows: int, per_s: float) -> None:
    client = MqttClient(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.max_queued_messages = 0
    client.max_inflight_messages_set(AT_ONCE)
    client.connect("127.0.0.1", port)
    client.loop_start()
    sent = [
        client.publish(f"bench/{n % 10}", json.dumps(made(n)), 1) for [n] in map(list, paced(rows, per_s))
    ]
    for info in sent:
        info.wait_for_publish(TIMEOUT_S)
    client.disconnect()
    client.loop_stop()


def send_http(port: int, token: str, rows: int, per_s: float) -> None:
    """Sends a request again until it is answered by 202."""
    with httpx.Client(headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=20) as client:
        for numbers in paced(rows, per_s, AT_ONCE):
            found = [made(n) for n in numbers]
            until_s = monotonic() + TIMEOUT_S
            while (answer := _answer(client, f"http://127.0.0.1:{port}/rows", found)) != "202":
                assert monotonic() < until_s, f"the receiver takes no rows: {answer}"
                threading.Event().wait(0.1)


def _answer(client: httpx.Client, url: str, rows: list[dict[str, Any]]) -> str:
    """Returns the status, or why there was no answer."""
    try:
        return str(client.post(url, json=rows).status_code)
    except httpx.TransportError as error:
        return str(error)


def send_opcua(port: int, rows: int, per_s: float) -> None:
    """Writes the row's number and its time to two values, with one source timestamp."""
    asyncio.run(_send_opcua(port, rows, per_s))


async def _send_opcua(port: int, rows: int, per_s: float) -> None:
    ids = [ua.NodeId.from_string(f"{PRESS}.{name}") for name in ("Strokes", "Temperature")]
    async with Client(f"opc.tcp://127.0.0.1:{port}/press") as client:
        began_s = monotonic()
        for n in range(rows):
            if per_s:
                await asyncio.sleep(max(0.0, began_s + n / per_s - monotonic()))
            row = made(n)
            at = datetime.fromtimestamp(row["t"] / 1000, UTC)
            values = [
                # From 1: the server has 0 at its start, and tells of changes alone.
                ua.DataValue(ua.Variant(n + 1, ua.VariantType.Int64), SourceTimestamp=at),
                ua.DataValue(ua.Variant(float(row["t"])), SourceTimestamp=at),
            ]
            await client.uaclient.write_attributes(ids, values)


def receive_http(port: int) -> None:
    """Answers 200 to POST, and to GET the rows: [[number, when it was made, when it came], ...]."""
    got: list[tuple[int, float, float]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            part = await receive()
            body += part.get("body", b"")
            more = part.get("more_body", False)
        answer = b"{}"
        if scope["method"] == "GET":
            answer = json.dumps(got).encode()
        else:
            now_ms = time() * 1000
            got.extend((row["n"], row["t"], now_ms) for row in json.loads(body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    listening = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run([listening])
