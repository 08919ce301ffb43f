"""Decides which nodes count as down. Pure.

Silence says something about a node only if we could have heard it. So there is no verdict while Redis is
away, or while no node at all is heard: then the fault is more likely to be on our side of the wire. Neither
time counts as silence afterwards. A node that we have not heard since we began to listen is given more time.
It may be starting together with us, or be slow to find Redis again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

UNHEARD_MS = 30_000
"""A node tries Redis again after at most 10 s, and needs some seconds to start."""
QUIET_MS = 1_500
"""A bit more than the time between two reports of one node. If no node was heard for this long, none is
counted as down. That is long before the first of them has been silent for 3 s, after which it would be."""
RETRY_MS = 15_000
"""A node tries Redis again after at most 10 s, and waits up to 5 s for an answer."""


@dataclass(frozen=True)
class Sighting:
    """A node that counts as up. Times are in ms of Redis's clock, which all share."""

    node: str
    last_seen_ms: int
    deaf_ms: int = 0  # how long Redis has kept us waiting since then, and perhaps the node as well
    grace_ms: int = 0  # how much of the time since then does not count, because nobody was heard


@dataclass(frozen=True)
class Verdict:
    down: tuple[str, ...] = ()
    blind: str | None = None  # why there is no verdict, or None if there is one


def judge(up: Iterable[Sighting], now_ms: int, silence_ms: int, hearing_since_ms: int | None) -> Verdict:
    """Returns which of the nodes that count as up are down.

    `hearing_since_ms` says since when Redis has answered without a break, and is None if it does not answer.
    Everything that came before `now_ms` has been read.
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
            return Verdict()  # the next report may be only a little late
    return Verdict(down=silent)


@dataclass(frozen=True)
class _Heard:
    at_ms: int
    deaf_ms: int
    quiet_ms: int


class Hearing:
    """When each node was heard, and how much of the time since then does not count as its silence.

    Time in which nobody was heard, beyond QUIET_MS, does not count. A node that is not heard again at once is
    given twice that time on top, because a node tries Redis more and more rarely. This grace grows with the
    time, so a report that is a little late delays no verdict by much. It is at most RETRY_MS, so a verdict
    comes even if all reports are late.
    """

    def __init__(self) -> None:
        self._deaf_ms = 0  # how long Redis has kept us waiting, in total
        self._quiet_ms = 0  # how long nobody was heard, beyond QUIET_MS each time, in total
        self._heard: dict[str, _Heard] = {}  # node -> both totals at the time when it was heard last
        self._newest: _Heard | None = None

    def waited(self, ms: int) -> None:
        """Redis has kept us waiting."""
        self._deaf_ms += ms

    def heard(self, node: str, at_ms: int) -> None:
        """Call it in the order of the reports. A report that is read again changes nothing."""
        if self._newest is not None:
            if at_ms < self._newest.at_ms:
                return
            quiet_ms = at_ms - self._newest.at_ms - (self._deaf_ms - self._newest.deaf_ms)
            self._quiet_ms += max(0, quiet_ms - QUIET_MS)
        self._heard[node] = self._newest = _Heard(at_ms, self._deaf_ms, self._quiet_ms)

    def sighting(self, node: str, last_seen_ms: int) -> Sighting:
        """Returns what is known of a node whose newest report came at `last_seen_ms`."""
        heard = self._heard.get(node)
        if heard is None:
            return Sighting(node, last_seen_ms)
        quiet_ms = self._quiet_ms - heard.quiet_ms
        grace_ms = quiet_ms + min(2 * quiet_ms, RETRY_MS)
        return Sighting(node, last_seen_ms, self._deaf_ms - heard.deaf_ms, grace_ms)
