"""Looks up the addresses of names, within a bound: libraries wait for name servers as long as those like."""

from __future__ import annotations

import socket
import threading
from queue import Empty, Queue
from time import monotonic

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.operators.connections import ConnectionFields

LOOK_UP_S = 6.0
"""Longer than the 5 s after which a resolver usually asks its second name server."""


def look_up(connection: ConnectionFields | None) -> None:
    """Returns when one of the connection's hosts has an address. Whoever connects then asks again, and the
    answer is near. Raises ConnectorError if none has, or no name server answers within LOOK_UP_S."""
    if connection is None or not connection.hosts:
        return
    answers: Queue[Exception | None] = Queue()
    for host in connection.hosts:
        threading.Thread(target=_ask, args=(host, answers), name="name server", daemon=True).start()
    until_s, first = monotonic() + LOOK_UP_S, None
    for _ in connection.hosts:
        try:
            answer = answers.get(timeout=max(0.0, until_s - monotonic()))
        except Empty:
            raise ConnectorError(
                f"No name server has told the address of {connection.where} within {LOOK_UP_S:.0f} s. Check "
                "this node's DNS and its network, or write an address in place of the name."
            ) from None
        if answer is None:
            return
        first = first or answer
    assert first is not None
    raise in_words(first, connection.where) from first


def _ask(host: str, answers: Queue[Exception | None]) -> None:
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        answers.put(error)
    else:
        answers.put(None)
