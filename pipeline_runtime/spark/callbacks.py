"""The server in this process that Spark's Java process calls into, protected by a token.

PySpark starts the server without a token. Any user of the machine could then connect to its port and call the
methods of every object that Java knows of. Py4J supports a token, but loses it when PySpark tells Java the
port.
"""

from __future__ import annotations

import secrets
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.java_gateway import ensure_callback_server_started

_READ_TIMEOUT_MS = 0  # no timeout: a batch may take any time


def start_callback_server(gateway: Any) -> None:
    """Starts the server for this process's only gateway. A second call does nothing."""
    if gateway.python_parameters.auth_token is not None:
        return
    token = secrets.token_hex(32)
    gateway.python_parameters.auth_token = token
    ensure_callback_server_started(gateway)
    _give_java(gateway, token)


def _give_java(gateway: Any, token: str) -> None:
    """Give Java a client with the token. Py4J can only copy its present client, and the copy has no token."""
    jvm = gateway.jvm
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    java_gateway = server.getGateway()
    without_token = java_gateway.getCallbackClient()
    client = jvm.py4j.PythonClient(
        java_gateway,
        None,
        without_token.getPort(),
        without_token.getAddress(),
        jvm.py4j.CallbackClient.DEFAULT_MIN_CONNECTION_TIME,
        jvm.py4j.CallbackClient.DEFAULT_MIN_CONNECTION_TIME_UNIT,
        jvm.javax.net.SocketFactory.getDefault(),
        server,
        without_token.isMemoryManagementEnabled(),
        _READ_TIMEOUT_MS,
        token,
    )
    field = java_gateway.getClass().getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(java_gateway, client)
    without_token.shutdown()
