"""Decides how far journals and streams may be trimmed, so that each retained checkpoint stays usable. Pure.

A replica that starts from a checkpoint reads its inputs from the checkpoint's ends on. It reads its journal
from the mark in the checkpoint (replica.json) on. So the oldest retained checkpoint sets the limits:

    journal  | . . . . . . . . | mark        newest grant         end
             |<-- trimmed ---->|  C  C  C  C  C  ...
    stream   | . . . . . . . . . . . . . | ends, the least of all groups that read it

Nothing is trimmed while something is unknown. That is so if a group has no checkpoint, if a replica has not
reported its position, and if the checkpoint does not name an end. Nothing is trimmed either if a replica
stands further back than the oldest checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_runtime.model.ids import Seq, position_key
from pipeline_runtime.model.spec import GroupSpec

Point = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class Kept:
    """The oldest retained checkpoint of a group."""

    seq: Seq
    ends: Mapping[str, Any]  # as in the journal: "<topic>-<partition>" -> offset
    journal_offset: int | None  # from where its replica reads the journal; None for the beginning
    granted_after: bool = False  # the journal has a grant after `journal_offset`, see `trim_points`


@dataclass(frozen=True)
class TrimGroup:
    spec: GroupSpec
    oldest: Kept | None
    replicas_at: Seq | None  # the lowest seq of its wanted replicas; None until all have reported theirs
    # (topic, seq): the streams that the group read before it was connected differently. From `seq` on, no
    # replica of the group reads the stream. `seq` is None if that is not known.
    former: tuple[tuple[str, Seq | None], ...] = ()


def trim_points(groups: Iterable[TrimGroup]) -> dict[Point, int]:
    """Returns, for each partition, the offset before which all records may be deleted. Partitions that keep
    all their records are left out.

    `groups` must have all deployed groups, because any of them may read any stream. The answer names no topic
    that Fogline did not create, and no stream without readers. A journal keeps its newest grant (the newest
    COMMIT, CLAIM or RELEASE), because a reader without a mark must see which epoch owns.
    """
    groups = list(groups)
    points: dict[Point, int] = {}
    for group in groups:
        kept = _restart(group)
        if kept is not None and kept.journal_offset and kept.granted_after:
            points[(group.spec.journal, 0)] = kept.journal_offset
    ours = {
        (output.topic, partition)
        for group in groups
        for output in group.spec.outputs
        if not output.external
        for partition in range(output.partitions)
    }
    ours |= {
        (item.topic, partition)
        for group in groups
        for item in group.spec.inputs
        if item.intake
        for partition in range(item.partitions)
    }
    needed = _needed(groups)
    points |= {point: offset for point, offset in needed.items() if point in ours and offset > 0}
    return points


def _needed(groups: Iterable[TrimGroup]) -> dict[Point, int]:
    """Returns the first offset that some reader may still ask for; 0 where that is not known."""
    needed: dict[Point, int] = {}
    for group in groups:
        kept = _restart(group)
        read = [(item.topic, partition) for item in group.spec.inputs for partition in range(item.partitions)]
        read += [
            (topic, 0) for topic, until in group.former if kept is None or until is None or kept.seq < until
        ]
        for topic, partition in read:
            end = kept.ends.get(position_key(topic, partition)) if kept is not None else None
            offset = end if isinstance(end, int) else 0
            needed[topic, partition] = min(offset, needed.get((topic, partition), offset))
    return needed


def _restart(group: TrimGroup) -> Kept | None:
    """Returns the earliest point from which the group may have to start again, or None if that is not
    known."""
    if group.oldest is None or group.replicas_at is None or group.replicas_at < group.oldest.seq:
        return None
    return group.oldest


def journal_mark(replica_json: bytes, seq: Seq) -> int | None:
    """Returns the journal's offset in a checkpoint's replica.json, or None if a replica would not use it.

    See replica.local_state.read_mark.
    """
    try:
        data = json.loads(replica_json)
        offset, last_seq = data["journal_offset"], data["view"]["last_seq"]
    except (ValueError, KeyError, TypeError):
        return None
    fits = isinstance(offset, int) and isinstance(last_seq, int) and last_seq <= seq
    return offset if fits else None
