"""What a replica waits for that does not get on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline_runtime.model.desired import Stalled

STALLED_S = 30.0
"""A batch that runs for longer than this is told: usual ones take a part of a second."""
STUCK_S = 10.0
"""A replica that is told to stop does not wait for a batch that has run for longer than this."""
_PARTITIONS_TOLD = 3


class BatchTooLong(RuntimeError):
    """A batch has not ended within the limit of time."""

    def __init__(self, limit_s: float, reads: str) -> None:
        read = f", which reads {reads}," if reads else ""
        super().__init__(f"a batch{read} has not ended within {limit_s:g} s")


def stalled(
    silent_since_ms: int | None, batch_since_ms: int | None, reads: str, now_ms: int
) -> Stalled | None:
    """Returns what keeps the replica from going on, or None if nothing does.

    `silent_since_ms` says since when Kafka has not answered, and `batch_since_ms` since when a batch runs.
    """
    if silent_since_ms is not None:
        return Stalled(why="it waits for Kafka, which does not answer", since_ms=silent_since_ms)
    if batch_since_ms is None or now_ms - batch_since_ms < STALLED_S * 1000:
        return None
    read = f", which reads {reads}" if reads else ""
    return Stalled(why=f"it is in one batch{read}", since_ms=batch_since_ms)


def read_between(start: Mapping[str, Any], end: Mapping[str, Any]) -> str:
    """Returns what a batch reads: "orders, partition 0, offsets 12 to 15", or an empty text if it reads no
    topic. `start` and `end` are positions by `<topic>-<partition>`."""
    moved = [
        (name, start[name], at)
        for name, at in end.items()
        if isinstance(at, int) and isinstance(start.get(name), int) and at > start[name] and "-" in name
    ]
    found = []
    for name, first, behind in moved[:_PARTITIONS_TOLD]:
        topic, _, partition = name.rpartition("-")
        offsets = f"offset {first}" if behind == first + 1 else f"offsets {first} to {behind - 1}"
        found.append(f"{topic}, partition {partition}, {offsets}")
    more = len(moved) - len(found)
    return "; ".join(found) + (f"; and {more} more partitions" if more else "")
