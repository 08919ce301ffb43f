"""Decides how often a group starts a batch.

Whatever its size, a batch costs 60 to 70 ms of CPU if Spark plans it, and about 10 in a task that stays
(batch.group). So a group starts batches as seldom as its latency target allows: each batch begins when its
oldest row would otherwise be late. If the machine is busier than CPU_RELAXED, batches are further apart, and
fuller.
"""

from __future__ import annotations

import math
import threading
from time import monotonic

import psutil

from pipeline_runtime.model.spec import Pace

# Below the first ratio of busy CPU the least interval between two batches holds, above the second the
# greatest.
CPU_RELAXED = 0.5
STAYING_CPU_RELAXED = 0.75  # in place of CPU_RELAXED for a task that stays
CPU_FULL = 0.9
_SMOOTHING = 0.4
# A source inside the group would take a longer wait for a time in which its clock stood still.
SOURCE_WAIT_MS_MAX = 1000.0
GATHER_RATIO, GATHER_MS_MAX = 0.1, 100.0  # of the target
IN_TIME = 0.95  # this share of the batches should meet the target
LATE_RATIO = 0.2
# Up to this latency target a round trip to the broker is worth what it takes to spare it.
URGENT_MS = 50
# What it takes to fetch rows from a near broker.
FETCH_MS = 4.0
# How long nothing is fetched at most while a batch runs.
ALONE_S_MAX = 1.0
# An owner whose batches are full, one after the other, takes so many of them as one. Whatever its size, a
# batch costs some 10 ms of CPU.
FULL_IN_A_ROW, FULL_AS_ONE = 2, 2
STAYING_COST_RATIO = 1 / 8  # what a batch of a task that stays costs, compared with one that Spark plans
# How many latency targets the batches of a task that stays are apart at most, however busy the machine is.
PAUSE_TARGETS = 4
# From the start of one announced batch to the next, in times that a batch takes. The successor begins each of
# them a little later; what is over 1 lets it catch up.
LOCKSTEP_PAUSE = 1.5
# A follower needs as long for each batch as the owner, so half of the time is left to it.
FOLLOWED_PAUSE = 2.0
FOLLOWED_MS_MAX = 4000.0
# How long it takes until a consumer's next question has reached the broker: a round trip, which may be longer
# than usual, and the time that the threads at both ends take.
ASKED_AGAIN, ASKED_AGAIN_MS = 1.1, 25.0
RELEASE_QUIET_MS_MIN = 250.0
# A query's first batches may take seconds, and a young query has had few others. So what a batch takes delays
# a release by no more than this.
RELEASE_WAIT_MS_MAX = 1000.0
STAY_WARM_S = 4.0
STAY_WARM_S_MAX = 8.0


def interval_ms(
    pace: Pace,
    cpu_ratio: float,
    waiting_rows: int = 0,
    *,
    planned: bool = False,
    target_ms: float = math.inf,
) -> float:
    """Returns the least time between the starts of two batches at this load of the machine, in ms.

    On a busy machine, it is proportional to the cost of a batch, which depends on who runs the batch. It
    grows with the square of the load, so a machine that is only half busy delays nobody much. `waiting_rows`
    are known to wait after the last batch. If they fill a batch, a pause gains nothing: the batch costs no
    less later, and the queue only grows. A group that wants results within `target_ms` gets more of a busy
    machine than a group that can wait.
    """
    relaxed = CPU_RELAXED if planned else STAYING_CPU_RELAXED
    pressure = min(1.0, max(0.0, (cpu_ratio - relaxed) / (CPU_FULL - relaxed)))
    room = max(0.0, 1 - waiting_rows / pace.batch_rows_max)
    most_ms: float = pace.interval_ms_max
    if not planned:
        most_ms = min(most_ms * STAYING_COST_RATIO, PAUSE_TARGETS * target_ms)
    return pace.interval_ms_min + pressure**2 * room * max(0.0, most_ms - pace.interval_ms_min)


def batches_as_one(full_in_a_row: int) -> int:
    """Returns how many full batches an owner takes as one, after so many full ones of its own. Its first
    batches are single ones: after a handover, all wait for them."""
    return FULL_AS_ONE if full_in_a_row >= FULL_IN_A_ROW else 1


def may_wait_ms(latency_ms: int, batch_ms: float) -> float:
    """Returns how long a row may wait for its batch, in ms, so that the row is still out in time if the batch
    takes `batch_ms`."""
    return max(0.0, latency_ms - batch_ms)


def took_ms(run_ms: float, wait_ms: float | None, let_wait_ms: float, latency_ms: int) -> float:
    """Returns how much time the next batch has to allow for, in ms, from an earlier batch: it ran for
    `run_ms`, and its oldest row had waited for `wait_ms` in the end, of which the planner had let it wait for
    `let_wait_ms`.

    A waiting thread sometimes wakes up late, and a task has to be asked. That time counts as well, up to
    LATE_RATIO of the target: on a busy machine it may be long, and more batches would only make the machine
    busier.
    """
    if wait_ms is None:
        return run_ms
    return min(max(run_ms, wait_ms - let_wait_ms), run_ms + LATE_RATIO * latency_ms)


def wait_ms_max(has_sources: bool) -> float | None:
    """Returns how long rows of a group wait at most, whatever the target, in ms, or None if only the target
    counts."""
    return SOURCE_WAIT_MS_MAX if has_sources else None


def gather_ms(latency_ms: int) -> float:
    """Returns how long a row may lie at the broker, in ms. A fetch for each row would cost more than the
    processing of the row."""
    return min(GATHER_MS_MAX, GATHER_RATIO * latency_ms)


def followed_interval_ms(pace: Pace, batch_ms: float) -> float:
    """Returns the least time between the starts of two batches that a standby follows one by one, in ms. If
    batches are slow, it exceeds `interval_ms_max`: otherwise no follower would ever catch up."""
    return min(FOLLOWED_PAUSE * batch_ms, max(pace.interval_ms_max, FOLLOWED_MS_MAX))


def lockstep_interval_ms(pace: Pace, batch_ms: float) -> float:
    """Returns the least time between the starts of two announced batches, in ms, whatever the load. A release
    should be over soon, but the successor must catch up before it."""
    return max(pace.interval_ms_min, min(LOCKSTEP_PAUSE * batch_ms, RELEASE_WAIT_MS_MAX))


def far_interval_ms(pace: Pace, round_trip_ms: float) -> float:
    """Returns the least time before the batch with which an owner releases to a far successor, in ms. Within
    this time, the successor's request reaches the broker, before the RELEASE does."""
    asked_again_ms = ASKED_AGAIN * round_trip_ms + ASKED_AGAIN_MS
    return max(pace.interval_ms_min, min(asked_again_ms, RELEASE_WAIT_MS_MAX))


def release_quiet_ms(batch_ms: float) -> float:
    """Returns how long after the last batch a follower has certainly processed everything, in ms."""
    return max(RELEASE_QUIET_MS_MIN, min(3 * batch_ms, RELEASE_WAIT_MS_MAX))


def stay_warm_s(release_begun: bool) -> float:
    """Returns how long an armed successor keeps an open transaction before it opens another one, in s.

    The broker ends a transaction after TRANSACTION_TIMEOUT_MS. Opening one takes round trips, for which a
    RELEASE would have to wait. So the successor opens none while the owner announces its last batches.
    """
    return STAY_WARM_S_MAX if release_begun else STAY_WARM_S


class CpuLoad:
    """How busy the machine's CPU is, from 0 to 1, smoothed; measured at most twice a second."""

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
