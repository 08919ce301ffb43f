"""Runs an ingester for a moment, without Kafka, for a preview of its element."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic, time
from typing import Any

from pipeline_runtime.connectors.sdk import Ingester, OnceIngester
from pipeline_runtime.connectors.trial import RunningTrial
from pipeline_runtime.model.connectors import AGAIN, SAMPLE_RECORDS_MAX, SAMPLE_S, SampleAnswer

_SOON_S = 1.4
"""Who draws waits. So what has come by then is enough."""
_AFTER_FIRST_S = 0.2  # what comes with the first record comes at once
_AFTER_FAILURE_S = 1.0
_LOOK_S = 0.1
_END_S = 2.0
_BYTES_MAX = 4 << 20


def sampled(ingester: Ingester[Any, Any] | OnceIngester[Any, Any], asked_s: float) -> SampleAnswer:
    """Returns what it reads until there are enough records, or nothing more is to be expected soon.
    `asked_s`: when somebody has asked for them (monotonic clock)."""
    if isinstance(ingester, Ingester):
        ingester = ingester.for_preview()
    running = RunningTrial(ingester, SAMPLE_RECORDS_MAX)
    _wait(running, asked_s)
    with suppress(AssertionError):  # one that does not end in time ends with the process
        running.stop(_END_S)
    now_ms, left, records = int(time() * 1000), _BYTES_MAX, []
    for each in running.taken.records[:SAMPLE_RECORDS_MAX]:
        left -= len(each.value)
        if left < 0:
            break
        key = None if each.key is None else each.key.decode(errors="replace")
        time_ms = now_ms if each.time_ms is None else each.time_ms
        records.append((time_ms, key, each.value.decode(errors="replace")))
    return SampleAnswer(records=tuple(records), why=running.taken.why.partition(AGAIN)[0])


def _wait(running: RunningTrial, asked_s: float) -> None:
    """Returns when there is enough, or when what there is has come or failed some time ago."""
    end_s = monotonic() + SAMPLE_S
    seen: set[str] = set()
    while monotonic() < end_s and not running.intake.enough.wait(_LOOK_S):
        now_s = monotonic()
        for what, is_so, enough_s in (
            ("records", bool(running.taken.records), max(asked_s + _SOON_S, now_s + _AFTER_FIRST_S)),
            ("failure", running.status.state == "failing", now_s + _AFTER_FAILURE_S),
        ):
            if is_so and what not in seen:
                seen.add(what)
                end_s = min(end_s, enough_s)
