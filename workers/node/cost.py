"""Measures how much of a node's CPU each group uses.

The node's processes are one tree, and none of them belongs to one group: Java and Spark's Python serve all.
So their CPU is divided by the time that each group's batches ran. The CPU that the node takes while no batch
runs belongs to nobody. It is subtracted as soon as there was a quiet interval.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline_runtime.model.desired import ReplicaStatus

WINDOW_S = 30.0
"""A batch may come only every few seconds, so the figures would jump over a shorter time."""

IDLE_CORES_MAX = 0.1
"""A node that waits takes a few hundredths. If it takes more, it starts, or a batch has not ended yet."""


@dataclass(frozen=True)
class Work:
    """What a replica has done since its start, or in an interval."""

    batches: int = 0
    busy_ms: float = 0.0
    rows: int = 0

    def since(self, before: Work) -> Work:
        if self.batches < before.batches:
            return self  # it was started again and counts from zero
        busy_ms, rows = self.busy_ms - before.busy_ms, self.rows - before.rows
        return Work(self.batches - before.batches, busy_ms, rows)


@dataclass(frozen=True)
class Interval:
    span_s: float
    cpu_s: float  # taken by all processes of the node
    work: Mapping[str, Work]  # by group


@dataclass(frozen=True)
class GroupCost:
    cpu_cores: float
    batches_per_s: float
    rows_per_s: float


def shared_out(interval: Interval, idle_cores: float = 0.0) -> dict[str, float]:
    """Returns group -> cores. `idle_cores` is what the node takes without any batch."""
    busy_ms = sum(work.busy_ms for work in interval.work.values())
    cores = max(0.0, interval.cpu_s / interval.span_s - idle_cores)
    return {
        group: cores * work.busy_ms / busy_ms if busy_ms > 0 else 0.0 for group, work in interval.work.items()
    }


def mean_cost(group: str, intervals: Iterable[Interval], idle_cores: float = 0.0) -> GroupCost | None:
    """Returns the mean over the intervals in which the group was there, or None if there are none yet."""
    known = [interval for interval in intervals if group in interval.work]
    span_s = sum(interval.span_s for interval in known)
    if span_s <= 0:
        return None
    cpu_s = sum(shared_out(interval, idle_cores)[group] * interval.span_s for interval in known)
    batches = sum(interval.work[group].batches for interval in known)
    rows = sum(interval.work[group].rows for interval in known)
    return GroupCost(cpu_s / span_s, batches / span_s, rows / span_s)


class CostMeter:
    """Is told the node's CPU time and its replicas' counts, by one thread at a time."""

    def __init__(self) -> None:
        self._intervals: deque[Interval] = deque()
        self._last: tuple[float, float, dict[str, Work]] | None = None
        self._idle_cores: float | None = None
        self._costs: dict[str, GroupCost | None] = {}

    def with_costs(
        self, cpu_time: tuple[float, float], statuses: tuple[ReplicaStatus, ...]
    ) -> tuple[ReplicaStatus, ...]:
        """Returns the statuses with their costs. `cpu_time` is LoadMeter.cpu_time."""
        if self._last is None or self._last[0] != cpu_time[0]:
            self._note(*cpu_time, {status.group: _work(status) for status in statuses})
        return tuple(self._with_cost(status) for status in statuses)

    def _note(self, at_s: float, cpu_s: float, totals: dict[str, Work]) -> None:
        if self._last is not None:
            last_at_s, last_cpu_s, before = self._last
            work = {group: total.since(before.get(group, Work())) for group, total in totals.items()}
            interval = Interval(at_s - last_at_s, cpu_s - last_cpu_s, work)
            self._intervals.append(interval)
            cores = interval.cpu_s / interval.span_s
            if cores <= IDLE_CORES_MAX and not any(each.batches for each in work.values()):
                self._idle_cores = cores if self._idle_cores is None else min(cores, self._idle_cores)
        self._last = (at_s, cpu_s, totals)
        spans_s = [each.span_s for each in self._intervals]
        while sum(spans_s[1:]) >= WINDOW_S:
            spans_s.pop(0)
            self._intervals.popleft()
        idle_cores = self._idle_cores or 0.0
        self._costs = {group: mean_cost(group, self._intervals, idle_cores) for group in totals}

    def _with_cost(self, status: ReplicaStatus) -> ReplicaStatus:
        cost = self._costs.get(status.group)
        return status if cost is None else status.model_copy(update=vars(cost))


def _work(status: ReplicaStatus) -> Work:
    return Work(status.batches_total, status.busy_ms_total, status.rows_processed_total)
