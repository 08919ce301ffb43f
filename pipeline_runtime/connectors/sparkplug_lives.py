"""Which connection of an edge node of Sparkplug B counts. Pure: it knows neither the broker nor Kafka.

A *life* is one connection, with the number by which its birth and its death belong together (`bdSeq`). A life
is noted before its connection is made, and once more before its birth. So a process of an earlier owner sees
that a later one has begun. `left` names the owners before it that may still be connected: the broker ends
their connections before the birth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline_runtime.connectors.sdk import ConnectorError
from pipeline_runtime.connectors.sparkplug import SEQS
from pipeline_runtime.operators.sparkplug import BD_SEQ

LEFT_MAX = 20
_OWNERS, _EPOCH, _LEFT = "owners", "epoch", "left"


@dataclass(frozen=True)
class Life:
    number: int  # 0 to 255
    owners: str  # the group whose owners the epoch numbers
    epoch: int
    left: tuple[int, ...] = ()  # the epochs of owners that may still be connected

    def mark(self) -> dict[str, str]:
        return {
            BD_SEQ: str(self.number),
            _OWNERS: self.owners,
            _EPOCH: str(self.epoch),
            _LEFT: " ".join(map(str, self.left)),
        }


def life_of(mark: Mapping[str, str]) -> Life | None:
    """Returns the life that was noted last, or None before the first."""
    if not mark:
        return None
    left = tuple(int(each) for each in mark[_LEFT].split())
    return Life(int(mark[BD_SEQ]), mark[_OWNERS], int(mark[_EPOCH]), left)


def next_life(last: Life | None, before: Life | None, owners: str, epoch: int) -> Life:
    """Returns the life that begins after the last one that was noted. `before`: that of the same process, if
    it had one. Raises ConnectorError if a later owner has begun."""
    if last is None:
        return Life(0, owners, epoch)
    if last.owners == owners and last.epoch > epoch:
        raise _later(f"A later owner of this element (epoch {last.epoch})", epoch)
    if last.owners != owners and before is not None:
        raise _later("The element runs in another group now, and its owner there", epoch)
    left = [each for each in dict.fromkeys((*last.left, last.epoch)) if each != epoch]
    return Life((last.number + 1) % SEQS, owners, epoch, tuple(left[-LEFT_MAX:]))


def alone(last: Life | None, life: Life) -> Life:
    """Returns the life when all others have ended. Raises ConnectorError if another one was noted since it
    began."""
    if last != life:
        raise ConnectorError("Another process of this element has begun, so this one sends nothing.")
    return replace(life, left=())


def _later(who: str, epoch: int) -> ConnectorError:
    return ConnectorError(
        f"{who} sends as this edge node, so the one of epoch {epoch} does not. Nothing is lost: the later one"
        " goes on.",
        lasting=True,
    )
