"""Which nodes count as down: a pure decision.

Silence says something about a node only when we could have heard it. So there is no verdict while
Redis is away, nor when all of several nodes fall silent at once: then the fault is more likely to be on
our side of the wire. A node that was not heard since we listen is given more time: it may be starting
with us, or be slow to find Redis again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

UNHEARD_MS = 30_000
"""A node tries Redis again every 10 s at the latest, and needs some seconds to start."""


@dataclass(frozen=True)
class Sighting:
    """A node that counts as up. Times in ms of Redis's clock, which all share."""

    node: str
    last_seen_ms: int
    deaf_ms: int = 0  # how long Redis has kept us waiting since then: it may have kept the node waiting too


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

    def is_silent(seen: Sighting) -> bool:
        if seen.last_seen_ms >= hearing_since_ms:
            return now_ms - seen.last_seen_ms - seen.deaf_ms > silence_ms
        return now_ms - hearing_since_ms > max(silence_ms, UNHEARD_MS)

    silent = tuple(sorted(seen.node for seen in nodes if is_silent(seen)))
    if len(silent) == len(nodes) >= 2:
        return Verdict(blind=f"all {len(nodes)} nodes fell silent at once")
    return Verdict(down=silent)
