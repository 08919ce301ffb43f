"""One handover as it is seen from outside: by one consumer of its outputs, and by its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import monotonic, time

from pipeline_runtime.journal.records import Claim, Commit, Release
from tests.handover.nodes import Node
from tests.handover.rig import Batch, Group

BEFORE_S = 3.0  # how long before the order the intervals between outputs are measured
AROUND_S = 3.0  # on either side of the change, so that no pause can hide there


@dataclass(frozen=True)
class Passage:
    """The change from one owner to the next. All in milliseconds."""

    gap_ms: float  # last output of the old owner to first output of the new one
    excess_ms: float  # what exceeds the usual interval
    interval_ms: float  # the median before the order
    widest_ms: float  # the longest interval anywhere around the change, the gap included
    notice_ms: float | None  # from RELEASE or CLAIM in the journal until the new owner begins its first batch
    first_batch_ms: float  # from then until its COMMIT is in the journal
    usual_batch_ms: float  # the same time for the old owner's batches


def passage(group: Group, epoch: int, ordered_at: float) -> Passage:
    """`ordered_at` is when the change to `epoch` was ordered, on the monotonic clock."""
    batches = group.batches()
    old = [batch for batch in batches if batch.commit.epoch < epoch]
    new = [batch for batch in batches if batch.commit.epoch == epoch]
    before = intervals_ms(old, ordered_at - BEFORE_S, ordered_at)
    around = intervals_ms(batches, ordered_at - AROUND_S, new[0].at + AROUND_S)
    gap_ms = (new[0].at - old[-1].at) * 1000
    appended = {
        (record.epoch, record.seq): at_ms
        for at_ms, record in group.journal.records
        if isinstance(record, Commit)
    }
    first = new[0].commit
    return Passage(
        gap_ms=gap_ms,
        excess_ms=gap_ms - median(before),
        interval_ms=median(before),
        widest_ms=max(around),
        notice_ms=_notice_ms(group, epoch, first),
        first_batch_ms=appended[first.epoch, first.seq] - first.boundary.batch_time_ms,
        usual_batch_ms=median(
            appended[batch.commit.epoch, batch.commit.seq] - batch.commit.boundary.batch_time_ms
            for batch in old[-20:]
        ),
    )


def intervals_ms(batches: Sequence[Batch], since: float, until: float) -> list[float]:
    """Returns the intervals between outputs whose later one came in that time."""
    return [(b.at - a.at) * 1000 for a, b in pairwise(batches) if since <= b.at <= until]


def commit_after(node: Node, group: Group, count: int, timeout_s: float = 120) -> None:
    """Waits until the owner has committed `count` more batches. The node reports them by itself."""
    status = node.status(group.spec)
    seq = (status.seq if status else 0) + count
    node.wait_status(group.spec, lambda now: now.seq >= seq, f"to commit {count} batches", timeout_s)


def wall_ms(at: float) -> float:
    """Returns a moment of the monotonic clock in milliseconds since 1970, as in the journal."""
    return (time() - monotonic() + at) * 1000


def _notice_ms(group: Group, epoch: int, first: Commit) -> float | None:
    for at_ms, record in group.journal.records:
        by_release = isinstance(record, Release) and record.epoch == epoch - 1
        by_claim = isinstance(record, Claim) and record.epoch == epoch
        if by_release or by_claim:
            return first.boundary.batch_time_ms - at_ms
    return None
