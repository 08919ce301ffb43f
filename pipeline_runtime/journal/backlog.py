"""How many rows wait for a group, by its journal and where its inputs end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline_runtime.journal.positions import last_positions
from pipeline_runtime.journal.records import Commit, Ends, Record
from pipeline_runtime.kafka.clients import TopicPartition


@dataclass(frozen=True)
class Input:
    """A partition that a group reads. `key` is its name in a boundary's ends."""

    key: str
    at: TopicPartition
    ours: bool  # Fogline's own topic: its last offset is always a commit marker


@dataclass(frozen=True)
class Processed:
    """What a group's journal says."""

    journal_end: int
    ends: Ends
    rows_per_offset: float


def processed(journal_end: int, records: Iterable[Record], inputs: Sequence[Input]) -> Processed:
    """Returns where the journal's last batch ends, and how many of the offsets that were read were rows."""
    found = list(records)
    rows = offsets = 0
    before: Ends = {}
    keys = [each.key for each in inputs]
    for record in found:
        if isinstance(record, Commit):
            ends = record.boundary.ends
            moved = sum(ends[key] - before[key] for key in keys if key in ends and key in before)
            if before and moved > 0:
                rows, offsets = rows + record.rows_in, offsets + moved
            before = ends
    share = min(1.0, rows / offsets) if offsets else 1.0
    return Processed(journal_end, last_positions(found), share)


def waiting_rows(
    known: Processed, inputs: Sequence[Input], newest: Mapping[TopicPartition, int]
) -> int | None:
    """Returns how many rows wait, or None if the journal does not say where an input was read last.

    Commit markers among the offsets are left out by their usual share.
    """
    rows = 0
    for each in inputs:
        if each.key not in known.ends:
            return None
        behind = newest[each.at] - known.ends[each.key] - (1 if each.ours else 0)
        rows += round(max(0, behind) * known.rows_per_offset)
    return rows
