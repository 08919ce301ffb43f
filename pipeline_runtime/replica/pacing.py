"""How often a group starts a batch: a batch costs Spark 60 to 70 ms of CPU whatever its size, and a task that
stays (batch.group) about 10.

As seldom as its latency target allows: a batch begins when the oldest row that waits would be late else.
Where the machine is busy beyond CPU_RELAXED batches are further apart than that, and fuller.
"""

from __future__ import annotations

import threading
from time import monotonic

import psutil

from pipeline_runtime.model.spec import Pace

# Below the first ratio of busy CPU a batch may start at the floor interval, above the second at the
# ceiling only.
CPU_RELAXED = 0.5
CPU_FULL = 0.9
_SMOOTHING = 0.4
# A source inside of the group takes what is late by more for a time in which it stood still.
SOURCE_WAIT_MS_MAX = 1000.0
GATHER_RATIO, GATHER_MS_MAX = 0.1, 100.0  # of the target
STAYING_COST_RATIO = 1 / 8  # what a batch of a task that stays costs, compared with one that Spark plans
# From one announced batch to the next, in batches' times: what is over one lets the successor, which
# begins each of them a little later, get level.
LOCKSTEP_PAUSE = 1.5
# A follower needs for each batch what the owner needs: half of the time is left to it.
FOLLOWED_PAUSE = 2.0
FOLLOWED_MS_MAX = 4000.0
# Until who was sent something has asked for more, and its question is at the broker: a round trip, as long as
# it may be, and what the threads at both ends take.
ASKED_AGAIN, ASKED_AGAIN_MS = 1.1, 25.0
RELEASE_QUIET_MS_MIN = 250.0
# A query's first batches may take seconds, and most of its batches may be first ones: a release does
# not go by them.
RELEASE_WAIT_MS_MAX = 1000.0
STAY_WARM_S = 4.0
STAY_WARM_S_MAX = 8.0


def interval_ms(pace: Pace, cpu_ratio: float, waiting_rows: int = 0, *, planned: bool = False) -> float:
    """The least time between the starts of two batches, for this load of the machine; whatever the target.
    On a busy one it is as long as makes the batches' own cost the same part of the time, whoever runs them.

    `waiting_rows`: known to wait behind the last batch. When they fill a batch there is nothing to
    gain from a pause: the batch costs no more later, and the queue only grows.
    """
    pressure = min(1.0, max(0.0, (cpu_ratio - CPU_RELAXED) / (CPU_FULL - CPU_RELAXED)))
    room = max(0.0, 1 - waiting_rows / pace.batch_rows_max)
    most_ms = pace.interval_ms_max * (1 if planned else STAYING_COST_RATIO)
    return pace.interval_ms_min + pressure * room * max(0.0, most_ms - pace.interval_ms_min)


def may_wait_ms(latency_ms: int, batch_ms: float) -> float:
    """How long a row may wait for its batch, which takes `batch_ms` from there on, to be out in time."""
    return max(0.0, latency_ms - batch_ms)


def wait_ms_max(has_sources: bool) -> float | None:
    """How long rows of a group wait at most, whatever the target; None: as long as that allows."""
    return SOURCE_WAIT_MS_MAX if has_sources else None


def gather_ms(latency_ms: int) -> float:
    """How long a row may lie at the broker: to fetch each by itself costs more than what is done with it."""
    return min(GATHER_MS_MAX, GATHER_RATIO * latency_ms)


def followed_interval_ms(pace: Pace, batch_ms: float) -> float:
    """The least time between the starts of two batches that somebody follows one by one. Also
    longer than `interval_ms_max`, where batches are that slow: no follower would get level else."""
    return min(FOLLOWED_PAUSE * batch_ms, max(pace.interval_ms_max, FOLLOWED_MS_MAX))


def lockstep_interval_ms(pace: Pace, batch_ms: float) -> float:
    """The least time between the starts of two announced batches: whatever the load, a release shall be
    over soon, but the successor must get level before the cut."""
    return max(pace.interval_ms_min, min(LOCKSTEP_PAUSE * batch_ms, RELEASE_WAIT_MS_MAX))


def far_interval_ms(pace: Pace, round_trip_ms: float) -> float:
    """Likewise before the batch that is released with to one that is far: its node shall wait at the broker
    for what comes."""
    asked_again_ms = ASKED_AGAIN * round_trip_ms + ASKED_AGAIN_MS
    return max(pace.interval_ms_min, min(asked_again_ms, RELEASE_WAIT_MS_MAX))


def release_quiet_ms(batch_ms: float) -> float:
    """How long after the last batch a follower has processed all there was."""
    return max(RELEASE_QUIET_MS_MIN, min(3 * batch_ms, RELEASE_WAIT_MS_MAX))


def stay_warm_s(release_begun: bool) -> float:
    """How long an armed successor leaves its open transaction as it is, before it opens another: the broker
    ends it after TRANSACTION_TIMEOUT_MS. That takes round trips, for which a RELEASE would have to wait,
    so none is opened while the owner announces its last batches."""
    return STAY_WARM_S_MAX if release_begun else STAY_WARM_S


class CpuLoad:
    """The machine's busy ratio, 0..1, smoothed; measured at most twice a second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ratio = 0.0
        self._measured_at = monotonic()
        psutil.cpu_percent()  # the first call only sets the base

    def ratio(self) -> float:
        with self._lock:
            now = monotonic()
            if now - self._measured_at >= 0.5:
                busy = psutil.cpu_percent() / 100
                self._ratio += _SMOOTHING * (busy - self._ratio)
                self._measured_at = now
            return self._ratio
