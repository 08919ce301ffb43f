"""Counts the rows that wait for a group, from its journal and the ends of its inputs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline_runtime.journal.positions import last_positions
from pipeline_runtime.journal.records import TOPIC_IDS, Commit, Ends, Record
from pipeline_runtime.kafka.clients import TopicPartition
from pipeline_runtime.kafka.topics import Seen, TopicSeen
from pipeline_runtime.model.ids import position_key


@dataclass(frozen=True)
class Input:
    """A partition of Fogline's own that a group reads. `key` is its name in a boundary's ends."""

    key: str
    at: TopicPartition


@dataclass(frozen=True)
class Processed:
    """What a group's journal says."""

    journal_end: int
    ends: Ends
    rows_per_offset: float


def processed(journal_end: int, records: Iterable[Record], topics: Iterable[str]) -> Processed:
    """Returns where the journal's last batch ends, and how many of the offsets that were read in these topics
    were rows."""
    found = list(records)
    rows = offsets = 0
    before: Ends = {}
    read = tuple(topics)
    for record in found:
        if isinstance(record, Commit):
            ends = record.boundary.ends
            keys = [key for key in ends if key.rpartition("-")[0] in read and key in before]
            moved = sum(ends[key] - before[key] for key in keys)
            if before and moved > 0:
                rows, offsets = rows + record.rows_in, offsets + moved
            before = ends
    share = min(1.0, rows / offsets) if offsets else 1.0
    return Processed(journal_end, last_positions(found), share)


def waiting_rows(
    known: Processed, inputs: Sequence[Input], newest: Mapping[TopicPartition, int], outside: Seen
) -> int | None:
    """Returns how many rows wait, or None if the journal does not say where an input was read last, or if a
    topic does not exist. `outside`: the users' own topics that the group reads.

    Commit markers among the offsets are left out by their usual share.
    """
    rows = 0
    for each in inputs:
        if each.key not in known.ends:
            return None
        behind = newest[each.at] - known.ends[each.key] - 1  # the last offset is always a commit marker
        rows += round(max(0, behind) * known.rows_per_offset)
    for topic, now in outside.items():
        if now is None or position_key(topic, 0) not in known.ends:
            return None
        rows += round(_waiting_outside(known.ends, topic, now) * known.rows_per_offset)
    return rows


def _waiting_outside(ends: Ends, topic: str, now: TopicSeen) -> int:
    """Returns how many offsets of a user's own topic the group has still to read. Others may have created the
    topic again, extended or trimmed it, so this counts what is left of it, and does not only go by where the
    group read last."""
    known_id = ends.get(TOPIC_IDS, {}).get(topic)
    is_another = known_id and now.id and known_id != now.id
    waiting = 0
    for partition, (first, end) in enumerate(zip(now.first, now.end, strict=True)):
        at = first if is_another else ends.get(position_key(topic, partition), first)
        waiting += end - max(first, at) if at <= end else end - first
    return waiting
