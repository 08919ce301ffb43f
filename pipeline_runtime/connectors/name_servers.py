"""Looks up the addresses of names within a time limit. Libraries alone would wait as long as the name server
takes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from time import monotonic
from typing import TypeVar

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError
from pipeline_runtime.operators.connections import ConnectionFields

LOOK_UP_S = 6.0
"""Longer than the 5 s after which a resolver usually asks its second name server."""
LOOK_S = 0.2
"""How often `stop` is looked at."""
_lock = threading.Lock()
_under_way: dict[str, Future[None]] = {}
"""The questions without an answer, by host. They outlive the try that began them."""
_addresses: dict[str, tuple[str, ...]] = {}
"""The newest answers, by host."""
T = TypeVar("T")


def look_up(connection: ConnectionFields | None, stop: threading.Event) -> None:
    """Returns when one of the connection's hosts has an address. Raises ConnectorError if none has, if no
    name server answers within LOOK_UP_S, or if `stop` is set before. Whoever connects then by the name, and
    not by `by_address`, asks again and is not bounded by this."""
    if connection is None or not connection.hosts:
        return
    left = {_asked(host) for host in connection.hosts}
    until_s, first = monotonic() + LOOK_UP_S, None
    while left:
        done, left = wait(left, min(LOOK_S, max(0.0, until_s - monotonic())), FIRST_COMPLETED)
        for error in (each.exception() for each in done):
            if error is None:
                return
            first = first or error
        is_late = monotonic() >= until_s
        if left and (is_late or stop.is_set()):
            raise ConnectorError(
                f"No name server has given the address of {connection.where} "
                f"{f'within {LOOK_UP_S:.0f} s' if is_late else 'so far'}. Check this node's DNS and its "
                "network, or write an address in place of the name."
            )
    assert isinstance(first, Exception)
    raise in_words(first, connection.where) from first


def by_address(host: str, connect: Callable[[str, float], T]) -> T:
    """Returns what `connect` does with the first address of the host that works. It is given the address and
    the seconds that it may take: all together CONNECT_S. Raises the OSError of the last one.

    The addresses are those that `look_up` has found. So no name server is asked. Not for TLS, which needs the
    name.
    """
    *others, last = _addresses.get(host, (host,))
    part_s = CONNECT_S / (len(others) + 1)
    for address in others:
        try:
            return connect(address, part_s)
        except OSError:
            continue
    return connect(last, part_s)


def _asked(host: str) -> Future[None]:
    """Returns the question for a host that is under way, or a new one: a name server that hangs holds one
    thread for each host, however often it is tried."""
    with _lock:
        answer = _under_way.get(host)
        if answer is None:
            answer = Future()
            threading.Thread(target=_ask, args=(host, answer), name="name server", daemon=True).start()
            _under_way[host] = answer
        return answer


def _ask(host: str, answer: Future[None]) -> None:
    error: Exception | None = None
    found: tuple[str, ...] = ()
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        found = tuple(dict.fromkeys(str(address[0]) for *_, address in answers))
    except UnicodeError:  # no name server can be asked for it
        error = socket.gaierror(socket.EAI_NONAME, "no name of a host")
    except Exception as raised:
        error = raised
    with _lock:
        del _under_way[host]
        if found:
            _addresses[host] = found
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)
