"""Which nodes count as down: a pure decision.

Silence says something about a node only when we could have heard it. So there is no verdict while
Redis is away, for as long again after it came back, nor when all nodes fall silent at once: then
the fault is more likely to be on our side of the wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sighting:
    """A node that counts as up. Times in ms of Redis's clock, which all share."""

    node: str
    last_seen_ms: int


@dataclass(frozen=True)
class Verdict:
    down: tuple[str, ...] = ()
    blind: str | None = None  # why there is no verdict


def judge(up: Iterable[Sighting], now_ms: int, silence_ms: int, hearing_since_ms: int | None) -> Verdict:
    """`hearing_since_ms`: since when Redis has answered without a break; None: it does not."""
    if hearing_since_ms is None:
        return Verdict(blind="Redis does not answer")
    nodes = tuple(up)
    # A node's silence begins when we began to listen, if that was later.
    silent = tuple(
        sorted(seen.node for seen in nodes if now_ms - max(seen.last_seen_ms, hearing_since_ms) > silence_ms)
    )
    if len(silent) == len(nodes) >= 2:
        return Verdict(blind=f"all {len(nodes)} nodes fell silent at once")
    return Verdict(down=silent)
