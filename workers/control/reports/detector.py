"""Which nodes count as down: a pure decision.

Silence says something about a node only when we could have heard it. So there is no verdict while
Redis is away, nor while no node at all is heard: then the fault is more likely to be on our side of the
wire. Neither time counts as silence afterwards. A node that was not heard since we listen is given more
time: it may be starting with us, or be slow to find Redis again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

UNHEARD_MS = 30_000
"""A node tries Redis again every 10 s at the latest, and needs some seconds to start."""
QUIET_MS = 1_500
"""A bit more than the time between two reports of one node. When no node was heard for so long, none is
counted as down: long before the first of them is silent for the 3 s after which it would be."""
RETRY_MS = 15_000
"""A node tries Redis again every 10 s at the latest, and waits up to 5 s for an answer."""


@dataclass(frozen=True)
class Sighting:
    """A node that counts as up. Times in ms of Redis's clock, which all share."""

    node: str
    last_seen_ms: int
    deaf_ms: int = 0  # how long Redis has kept us waiting since then: it may have kept the node waiting too
    grace_ms: int = 0  # how much of the time since then is forgiven, because nobody was heard


@dataclass(frozen=True)
class Verdict:
    down: tuple[str, ...] = ()
    blind: str | None = None  # why there is no verdict


def judge(up: Iterable[Sighting], now_ms: int, silence_ms: int, hearing_since_ms: int | None) -> Verdict:
    """`hearing_since_ms`: since when Redis has answered without a break; None: it does not.

    `now_ms`: all that came before it has been read.
    """
    if hearing_since_ms is None:
        return Verdict(blind="Redis does not answer")
    nodes = tuple(up)

    def unheard_ms(seen: Sighting) -> int:
        return now_ms - seen.last_seen_ms - seen.deaf_ms

    def is_silent(seen: Sighting) -> bool:
        if seen.last_seen_ms >= hearing_since_ms:
            return unheard_ms(seen) - seen.grace_ms > silence_ms
        return now_ms - hearing_since_ms > max(silence_ms, UNHEARD_MS)

    silent = tuple(sorted(seen.node for seen in nodes if is_silent(seen)))
    if len(nodes) >= 2:
        if len(silent) == len(nodes):
            return Verdict(blind=f"all {len(nodes)} nodes fell silent at once")
        if all(unheard_ms(seen) > QUIET_MS for seen in nodes):
            return Verdict()  # not worth telling: the next report may be only a little late
    return Verdict(down=silent)


@dataclass(frozen=True)
class _Heard:
    at_ms: int
    deaf_ms: int
    quiet_ms: int


class Hearing:
    """When each node was heard, and what of the time since then does not count as its silence.

    Forgiven is the time in which nobody was heard, beyond QUIET_MS, and as grace for who is not heard again
    at once, twice as much again: its tries have become rarer the longer it lasted. That grows with the time,
    so that a report that is a little late delays no verdict by much, and is RETRY_MS at most, so that none
    is put off for ever where all reports are late.
    """

    def __init__(self) -> None:
        self._deaf_ms = 0  # how long Redis has kept us waiting, in all
        self._quiet_ms = 0  # how long nobody was heard, beyond QUIET_MS each time, in all
        self._heard: dict[str, _Heard] = {}  # node -> the two, when it was heard last
        self._newest: _Heard | None = None

    def waited(self, ms: int) -> None:
        """Redis has kept us waiting."""
        self._deaf_ms += ms

    def heard(self, node: str, at_ms: int) -> None:
        """In the order of the reports; one that is read again changes nothing."""
        if self._newest is not None:
            if at_ms < self._newest.at_ms:
                return
            quiet_ms = at_ms - self._newest.at_ms - (self._deaf_ms - self._newest.deaf_ms)
            self._quiet_ms += max(0, quiet_ms - QUIET_MS)
        self._heard[node] = self._newest = _Heard(at_ms, self._deaf_ms, self._quiet_ms)

    def sighting(self, node: str, last_seen_ms: int) -> Sighting:
        heard = self._heard.get(node)
        if heard is None:
            return Sighting(node, last_seen_ms)
        quiet_ms = self._quiet_ms - heard.quiet_ms
        grace_ms = quiet_ms + min(2 * quiet_ms, RETRY_MS)
        return Sighting(node, last_seen_ms, self._deaf_ms - heard.deaf_ms, grace_ms)
