"""Judges whether a broker still answers, by what its connection moves. Pure: the caller passes the counts of
the system, and the times, in s of one clock that nobody sets."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Literal

ASK_S = 2.5
"""A broker that has sent nothing for so long is asked for a sign of life."""
ANSWER_S = 4.0
"""A broker that does not answer for so long hangs. With 3 s, a machine that was fully busy lost its
connection, and messages came twice."""
_INFO_BYTES = 256
_AT_UNACKED, _AT_ACKED, _AT_UNSENT = 24, 120, 144  # in struct tcp_info of Linux


@dataclass(frozen=True)
class Moved:
    """What the system knows of a connection."""

    received: int  # the bytes that have come
    acknowledged: int  # the bytes that the system at the other end has
    under_way: bool  # whether the system at the other end does not have all yet

    @staticmethod
    def read(info: bytes, queued: bool) -> Moved:
        """Returns what struct tcp_info says. `queued`: whether more waits to be sent."""
        [segments], [unsent] = (struct.unpack_from("=I", info, at) for at in (_AT_UNACKED, _AT_UNSENT))
        acknowledged, received = struct.unpack_from("=QQ", info, _AT_ACKED)
        return Moved(received, acknowledged, queued or segments > 0 or unsent > 0)

    @staticmethod
    def of(line: socket.socket, queued: bool) -> Moved:
        """As `read`. Raises OSError."""
        return Moved.read(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES), queued)


class Alive:
    """Watches one connection, from when the broker has taken it.

    A question for a sign of life waits behind what is under way. So it is asked only if nothing is. A large
    message on a slow line takes as long as it takes, if only bytes of it arrive.
    """

    def __init__(self, now_s: float, moved: Moved, asked_every_s: float) -> None:
        """`asked_every_s`: the most that may pass without a question, whatever the broker sends."""
        self._moved = moved
        self._every_s = asked_every_s
        self._heard_s = self._moved_s = self._asked_before_s = now_s
        self._asked_s: float | None = None
        self.under_way_s = float("-inf")
        """When something was under way last."""

    def look(self, now_s: float, moved: Moved) -> Literal["wait", "ask", "hangs"]:
        """Returns what to do. "ask": ask the broker for a sign of life, at once."""
        before, self._moved = self._moved, moved
        if moved.received != before.received:
            self._heard_s, self._asked_s = now_s, None
        if (moved.received, moved.acknowledged) != (before.received, before.acknowledged):
            self._moved_s = now_s
        # Behind a question only the question is under way.
        if moved.under_way and self._asked_s is None:
            self.under_way_s = now_s
        if self._asked_s is not None:
            return "hangs" if now_s - self._asked_s >= ANSWER_S else "wait"
        if moved.under_way:
            return "hangs" if now_s - self._moved_s >= ASK_S + ANSWER_S else "wait"
        if now_s - self._heard_s < ASK_S and now_s - self._asked_before_s < self._every_s:
            return "wait"
        self._asked_s = self._asked_before_s = now_s
        return "ask"

    def not_asked(self) -> None:
        """Notes that the question of the newest look was not sent."""
        self._asked_s = None

    @property
    def why(self) -> str:
        """Why the broker hangs, if the newest look says so."""
        if self._asked_s is not None:
            return f"the broker has not answered for {ANSWER_S:.0f} s"
        return f"no byte has moved to or from the broker for {ASK_S + ANSWER_S:g} s"
