"""Host applications of Sparkplug 3.0, which tell edge nodes by a retained message whether they are online."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from time import monotonic
from typing import Any

from pipeline_runtime.connectors.mqtt_session import LOOK_S, Session, Will
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError
from pipeline_runtime.connectors.sparkplug import NAMESPACE

GOODBYE_S = 1.0
"""How long the end of a connection waits until the broker knows that the host is offline."""
AHEAD_MS_MAX = 86_400_000
"""A death with a time further ahead than this is not followed: edge nodes would follow it for ever."""
_TIME_MAX = 1 << 53


def state_topic(host_id: str) -> str:
    return f"{NAMESPACE}/STATE/{host_id}"


def state(*, online: bool, at_ms: int) -> bytes:
    """Returns the payload of a host's state."""
    return json.dumps({"online": online, "timestamp": at_ms}).encode()


def state_of(payload: bytes) -> tuple[bool, int] | None:
    """Returns whether a host is online, and by its time in ms since when. Returns None if the payload does
    not say so."""
    try:
        found = json.loads(payload)
        online, at_ms = found["online"], found["timestamp"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    if not isinstance(online, bool) or isinstance(at_ms, bool) or not isinstance(at_ms, int):
        return None
    return (online, at_ms) if 0 <= at_ms < _TIME_MAX else None


class Host:
    """A host application on one connection. Its death is the last will of the connection.

    Edge nodes follow the state with the latest time. So a host that finds a death with a later time than its
    own, since the clock of another node was ahead, needs a connection with a time after that: `later_ms`.
    """

    def __init__(self, host_id: str, at_ms: int) -> None:
        """`at_ms`: when the connection is made, ms since 1970."""
        self.topic = state_topic(host_id)
        self.will = Will(self.topic, state(online=False, at_ms=at_ms), retain=True)
        self.later_ms: int | None = None
        self.at_ms = at_ms
        self._ahead_ms = 0  # how far ahead a death is that is not followed
        self._is_online = False
        self._heard = threading.Event()  # its own birth has come back
        self._refused = ""
        self._lock = threading.Lock()

    def begin(self, session: Session) -> None:
        """Says that it is online, as the first message of the connection, and returns when the broker has
        passed that on. Deaths that the broker has kept come before. All of its topics are subscribed to.
        Raises ConnectorError."""
        session.client.on_publish = self._confirmed
        with self._lock:
            self._is_online = True
            info = self._say(session.client, online=True, at_ms=self.at_ms)
        until_s = monotonic() + CONNECT_S
        while not self._heard.wait(LOOK_S):
            is_late = monotonic() > until_s
            # Brokers of version 3.1.1 also confirm what they forbid, and some end the connection then.
            if self._refused or (info.is_published() and (is_late or session.lost.is_set())):
                raise ConnectorError(
                    f"{session.where} does not pass on what this user writes to {self.topic}"
                    f"{self._refused and f' ({self._refused})'}. Give it the right to write and to read "
                    "there, or leave the host id empty.",
                    lasting=bool(self._refused) or is_late,
                )
            session.check()
            if is_late:
                raise ConnectorError(f"{session.where} does not confirm what is written to {self.topic}.")

    def take(self, client: Any, payload: bytes, now_ms: int) -> None:
        """Takes what the broker has of this host: a death may be the last will of an earlier connection."""
        found = state_of(payload)
        if found is None:
            return
        is_online, at_ms = found
        with self._lock:
            if is_online:
                if at_ms == self.at_ms:
                    self._heard.set()
            elif at_ms > max(now_ms, self.at_ms) + AHEAD_MS_MAX:
                self._ahead_ms = at_ms - now_ms
            elif at_ms > self.at_ms:
                self.later_ms = at_ms
            elif self._is_online:
                self._say(client, online=True, at_ms=self.at_ms)

    def check(self, session: Session) -> None:
        """Raises ConnectorError if a death has a time that no clock can have."""
        if self._ahead_ms:
            raise ConnectorError(
                f"At {session.where}, {self.topic} has said that this host is offline, with a time "
                f"{self._ahead_ms // AHEAD_MS_MAX:,} days ahead of this node's clock. Check this clock, and "
                "who else writes there. Edge nodes that have heard it do not see this host online before "
                "they connect again.",
                lasting=True,
            )

    def end(self, session: Session, now_ms: int) -> None:
        """Says that it is offline, if the connection still stands. Says nothing if it needs another one: who
        has said the later death would answer with a still later one."""
        with self._lock:
            self._is_online = False
        if self.later_ms is None and not session.lost.is_set():
            with suppress(ConnectorError):
                info = self._say(session.client, online=False, at_ms=max(now_ms, self.at_ms))
                _wait_for(session, info, GOODBYE_S)

    def _say(self, client: Any, *, online: bool, at_ms: int) -> Any:
        return client.publish(self.topic, state(online=online, at_ms=at_ms), 1, retain=True)

    def _confirmed(self, _: Any, __: Any, ___: int, reason: Any, ____: Any) -> None:
        if reason is not None and reason.is_failure:
            self._refused = str(reason)


class PrimaryHost:
    """The host application that an edge node waits for, as its broker tells of it."""

    def __init__(self, host_id: str) -> None:
        self.topic = state_topic(host_id)
        self.online = threading.Event()
        self._at_ms = 0

    def forget(self) -> None:
        """A new connection begins: its broker says the state again."""
        self.online.clear()
        self._at_ms = 0

    def take(self, payload: bytes) -> None:
        """Takes a state. One with an earlier time than the state before it comes late, and counts no more."""
        found = state_of(payload)
        if found is None or found[1] < self._at_ms:
            return
        is_online, self._at_ms = found
        if is_online:
            self.online.set()
        else:
            self.online.clear()


def _wait_for(session: Session, info: Any, timeout_s: float) -> None:
    """Returns when the broker has confirmed a message, or the time is over. Raises ConnectorError."""
    left_s = timeout_s
    try:
        while not info.is_published() and left_s > 0:
            session.check()
            info.wait_for_publish(LOOK_S)
            left_s -= LOOK_S
    except (RuntimeError, ValueError) as error:  # the library had no connection
        raise session.lost_error() from error
