"""Finds the changes of users' topics that a group reads, and the ways in which the group can continue. Pure.

A group's position holds more than offsets: also each topic's id and, by its keys, how many partitions it had.
A look at the topics says how they differ by now:

    missing     nobody knows the topic any more; it may come back
    another     it was deleted and created again: the position means nothing there
    partitions  it has more of them than are read
    gap         the next records were deleted before they were read

Some of this is passed by itself, as the element's parameters say. For the rest a person has to say how the
group goes on. Either way a CLAIM says in its `moves` where it goes on, so all its replicas do the same.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline_runtime.batch.inputs import GroupInput, position_keys
from pipeline_runtime.journal.records import LEFT_OUT, TOPIC_IDS, Ends
from pipeline_runtime.kafka.topics import Seen, TopicSeen
from pipeline_runtime.model.desired import WayOn
from pipeline_runtime.model.ids import position_key

NOTHING_LEFT = sys.maxsize
"""Behind every offset of a topic."""
Kind = Literal["missing", "another", "partitions", "gap", "skipped"]


@dataclass(frozen=True)
class TopicChange:
    """One thing that has happened to one topic."""

    kind: Kind
    topic: str
    message: str
    way: WayOn | None = None  # what a person may choose; None if there is nothing but to wait
    by_itself: bool = False  # it is passed without asking
    sure: bool = True  # one look is enough: a broker that has just started may not know everything


def topic_changes(inputs: Sequence[GroupInput], ends: Ends, seen: Seen) -> list[TopicChange]:
    """Returns what has happened to the inputs' topics since the position `ends`, as far as they were seen."""
    found: list[TopicChange] = []
    for item in inputs:
        if item.topic is None or not item.external or item.topic not in seen:
            continue
        keys = position_keys(ends, item.topic)
        if keys:
            found += _changes_of(
                item, [ends[key] for key in keys], _id_in(ends, item.topic), seen[item.topic]
            )
    return found


def _changes_of(
    item: GroupInput, offsets: Sequence[int], id: str, seen: TopicSeen | None
) -> list[TopicChange]:
    topic = str(item.topic)
    if seen is None:
        return [TopicChange("missing", topic, f"The topic {topic} does not exist.", sure=False)]
    other = another(offsets, id, seen)
    if other is not None:
        waiting = sum(seen.end) - sum(seen.first)
        way = WayOn(
            id=f"{topic} is {seen.id or list(seen.end)}",
            title="From the new beginning",
            cost=f"{item.consumer} reads {topic} from its first record, {_records(waiting)}. What it has read"
            " of the former topic stays processed.",
        )
        sure = bool(id) and bool(seen.id) and id != seen.id
        return [TopicChange("another", topic, f"The topic {topic} {other}.", way, sure=sure)]
    found = []
    if len(seen.first) > len(offsets):
        new, waiting = len(seen.first) - len(offsets), _waiting(seen, len(offsets))
        way = WayOn(
            id=f"{topic} has {len(seen.first)}",
            title="With the new partitions",
            cost=f"{item.consumer} reads {_counted(new, 'more partition')} of {topic} from the first record,"
            f" {_records(waiting)}. Rows of one key may be in two partitions now.",
        )
        text = (
            f"The topic {topic} has {len(seen.first)} partitions, but {item.consumer} reads {len(offsets)}"
            f" (its parameter partitions): {_records(waiting)} in the others."
        )
        found.append(TopicChange("partitions", topic, text, way, by_itself=item.all_partitions))
    for partition, at in enumerate(offsets):
        first = seen.first[partition]
        if first > at:
            way = WayOn(
                id=f"{topic}-{partition} leaves {at}",
                title="Behind the gap",
                cost=f"{_counted(first - at, 'record')} of {topic} at most are left out for good.",
            )
            text = (
                f"The topic {topic} has deleted records before they were read: its partition {partition}"
                f" begins at offset {first}, but {at} is next. At most {_counted(first - at, 'record')} are"
                " left out."
            )
            found.append(TopicChange("gap", topic, text, way, by_itself=item.gap == "skip"))
    return found


def another(offsets: Sequence[int], id: str, seen: TopicSeen) -> str | None:
    """Returns in words why this is not the topic that was read up to these offsets, or None if it is."""
    if id and seen.id and id != seen.id:
        return "was deleted and created again"
    if len(seen.end) < len(offsets):
        return f"has {len(seen.end)} partitions, and had {len(offsets)}: it is another one"
    for partition, at in enumerate(offsets):
        if seen.end[partition] < at:
            return (
                f"ends at offset {seen.end[partition]} of partition {partition}, and was read up to {at}: it"
                " is another one, or has lost records"
            )
    return None


def renewed(
    inputs: Sequence[GroupInput], ends: Ends, seen: Seen, accepted: Collection[str]
) -> tuple[Ends, list[TopicChange]]:
    """Returns where the group goes on from `ends`, and which changes it passes with that.

    A change is passed by itself, or because a person has accepted its way on. Without such a change the
    position is `ends`, the same object.
    """
    passed = [
        change
        for change in topic_changes(inputs, ends, seen)
        if change.by_itself or (change.way is not None and change.way.id in accepted)
    ]
    if not passed:
        return ends, []
    new = dict(ends)
    left_out = dict(ends.get(LEFT_OUT, {}))
    for topic in {change.topic for change in passed}:
        now, kinds = seen[topic], {change.kind for change in passed if change.topic == topic}
        assert now is not None
        if "another" in kinds:
            for key in position_keys(ends, topic):
                del new[key]
        for partition, first in enumerate(now.first):
            key = position_key(topic, partition)
            if key not in new:
                if kinds & {"another", "partitions"}:
                    new[key] = first
            elif "gap" in kinds and first > new[key]:
                left_out[key] = left_out.get(key, 0) + first - new[key]
                new[key] = first
        if now.id:
            new[TOPIC_IDS] = {**new.get(TOPIC_IDS, {}), topic: now.id}
    if left_out:
        new[LEFT_OUT] = left_out
    return new, passed


def oldest_left(ends: Ends, seen: Seen) -> dict[str, int]:
    """Returns the offset of the oldest record that is left of each partition that was seen, by its key in the
    position `ends`. It is NOTHING_LEFT if the topic does not exist, or is another one by now."""
    found: dict[str, int] = {}
    for topic, now in seen.items():
        id = _id_in(ends, topic)
        if now is None or (id and now.id and id != now.id):
            found |= dict.fromkeys(position_keys(ends, topic), NOTHING_LEFT)
        else:
            found |= {position_key(topic, partition): first for partition, first in enumerate(now.first)}
    return found


def _id_in(ends: Ends, topic: str) -> str:
    return str(ends.get(TOPIC_IDS, {}).get(topic, ""))


def _waiting(seen: TopicSeen, from_partition: int) -> int:
    return sum(seen.end[from_partition:]) - sum(seen.first[from_partition:])


def _records(count: int) -> str:
    return f"where {_counted(count, 'record')} wait" if count != 1 else "where 1 record waits"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
