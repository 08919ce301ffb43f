"""What the threads of the control process share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from celery import Celery

from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.settings import Settings


class Changes:
    """Wakes those who wait for something that nodes report or users ask."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0

    def notify(self) -> None:
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    @property
    def count(self) -> int:
        return self._count

    def wait(self, seen: int, timeout_s: float) -> int:
        """Until there is a change after `seen`, or the time is over; returns the newest count."""
        with self._condition:
            self._condition.wait_for(lambda: self._count != seen, timeout_s)
            return self._count


@dataclass(frozen=True)
class Tuning:
    """What no user has to set. Tests do: they are in a hurry, also on a machine that is slow and busy."""

    sweep_s: float = 2.0  # between two looks at what is left to do
    resend_s: float = 2.0  # before a node that says nothing is told again what it shall run
    sample_s: float = 30.0  # between two samples of a node, by which policies decide
    policies_s: float = 5.0  # between two looks at the policies
    backup_cpu_ratio_max: float = 0.9  # a busier node becomes nobody's backup node
    # By which clock a node's silence is measured, given Redis's; ms to ms.
    silence_ms: Callable[[int], int] = lambda redis_ms: redis_ms


@dataclass
class ControlContext:
    settings: Settings
    kafka: KafkaSettings
    app: Celery  # sends to the nodes
    central: StateDatabase  # this process owns it
    tuning: Tuning = Tuning()
    reports: Changes = field(default_factory=Changes)  # a node has reported
    desired: Changes = field(default_factory=Changes)  # the desired state may be another one
    work: Changes = field(default_factory=Changes)  # there may be something to begin
    # Since when nodes are heard without a break, by our clock; None: they are not.
    hearing_since_ms: int | None = 0
    closing: threading.Event = field(default_factory=threading.Event)

    def heard_since(self, at_ms: int) -> int:
        """From when something that began at `at_ms` is waited for in vain: while control was away, or nodes
        could not be heard, what is waited for may have come."""
        return now_ms() if self.hearing_since_ms is None else max(at_ms, self.hearing_since_ms)


def now_ms() -> int:
    return int(time.time() * 1000)
