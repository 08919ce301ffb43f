"""Notices that a replica waits for something that makes no progress. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pipeline_runtime.journal.records import LEFT_OUT, Ends
from pipeline_runtime.model.desired import Stalled, WayOn

STALLED_S = 30.0
"""A batch that runs for longer than this is told: usual ones take a part of a second."""
STUCK_S = 10.0
"""A replica that is told to stop does not wait for a batch that has run for longer than this."""
BY_CLAIM = "skip"
"""The id of a way begins so if it acts at the next CLAIM, whichever replica makes that."""
BY_WAITING = "leave"
"""The id of a way begins so if it acts only while the owner waits at these records."""
_PARTITIONS_TOLD = 3
_PARTITIONS_SKIPPED = 50


class BatchTooLong(RuntimeError):
    """A batch has not ended within the limit of time."""

    def __init__(self, limit_s: float, reads: str, way: WayOn | None = None) -> None:
        self.ways = () if way is None else (way,)
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
    moved, found = _moved(start, end), []
    for name, first, behind in moved[:_PARTITIONS_TOLD]:
        topic, _, partition = name.rpartition("-")
        offsets = f"offset {first}" if behind == first + 1 else f"offsets {first} to {behind - 1}"
        found.append(f"{topic}, partition {partition}, {offsets}")
    more = len(moved) - len(found)
    return "; ".join(found) + (f"; and {more} more partitions" if more else "")


def way_behind(start: Mapping[str, Any], end: Mapping[str, Any], kind: str = BY_CLAIM) -> WayOn | None:
    """Returns the way to go on behind what a batch reads, or None if it reads no topic, or very
    many partitions. `kind`: BY_CLAIM or BY_WAITING."""
    moved = _moved(start, end)
    if not 0 < len(moved) <= _PARTITIONS_SKIPPED:
        return None
    count = sum(behind - first for _, first, behind in moved)
    records = "1 record" if count == 1 else f"{count:,} records"
    return WayOn(
        id=f"{kind} " + " ".join(f"{name} {first} {behind}" for name, first, behind in moved),
        title=f"Skip {records}",
        cost=f"{records} ({read_between(start, end)}) are left out for good. It continues after them.",
    )


def skipped(ends: Ends, accepted: Collection[str]) -> tuple[Ends, int]:
    """Returns where a group goes on from `ends`, and how many records that leaves out.

    A partition goes on behind the records that a person has chosen to skip (`way_behind`), if it stands at
    the first of them. Otherwise the choice leaves out nothing, because records behind the first one can be
    read after all. Ways of the kind BY_WAITING do not count here.
    """
    new, left_out = dict(ends), dict(ends.get(LEFT_OUT, {}))
    count = 0
    for way in accepted:
        for name, first, behind in _parts(way, BY_CLAIM):
            if new.get(name) == first:
                new[name], count = behind, count + behind - first
                left_out[name] = left_out.get(name, 0) + behind - first
    return ({**new, LEFT_OUT: left_out}, count) if count else (ends, 0)


def acting(offered: Collection[str], accepted: Collection[str], ends: Ends) -> tuple[str, ...]:
    """Returns the ways that act now, of those that a person has accepted, for an owner that waits and stands
    at `ends`. `offered`: the ids of the ways on from what it waits for.

    Records are left out at the next CLAIM (BY_CLAIM), in each partition that has reached them. The others
    keep their choice until they have. If two choices begin at one record, the one for more records counts.
    """
    waiting = {(name, first) for way in offered for name, first, _ in _parts(way, BY_WAITING)}
    chosen = {part for way in accepted for part in _parts(way, BY_WAITING)}
    left_out = [
        f"{BY_CLAIM} {name} {first} {behind}"
        for name, first, behind in sorted(chosen, key=lambda part: (part[0], -part[2]))
        if (name, first) in waiting and ends.get(name, 0) >= first
    ]
    others = [way for way in offered if way in accepted and not _parts(way, BY_WAITING)]
    return (*others, *left_out)


def _parts(way: str, kind: str) -> list[tuple[str, int, int]]:
    """Returns what a way of that kind leaves out: (`<topic>-<partition>`, from, to) for each partition."""
    begins, *parts = way.split(" ")
    if begins != kind or len(parts) % 3:
        return []
    thirds = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [(name, int(first), int(behind)) for name, first, behind in thirds]


def _moved(start: Mapping[str, Any], end: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Returns (`<topic>-<partition>`, from, to) for each partition of which a batch reads records."""
    return [
        (name, start[name], at)
        for name, at in end.items()
        if isinstance(at, int) and isinstance(start.get(name), int) and at > start[name] and "-" in name
    ]
