"""The objects that the threads of the control process share."""

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
    """Wakes the threads that wait for what nodes report or users ask."""

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
        """Waits until there is a change after `seen`, or the time is over. Returns the newest count."""
        with self._condition:
            self._condition.wait_for(lambda: self._count != seen, timeout_s)
            return self._count


@dataclass(frozen=True)
class Tuning:
    """What no user has to set. Tests set it: they are in a hurry, also on a machine that is slow and busy."""

    sweep_s: float = 2.0  # between two looks for unfinished work
    resend_s: float = 2.0  # before a node that does not answer is told again what it is to run
    sample_s: float = 30.0  # between two samples of a node, by which policies decide
    policies_s: float = 5.0  # between two looks at the policies
    backup_cpu_ratio_max: float = 0.9  # a busier node becomes nobody's backup node
    # From Redis's clock to the clock by which silence is measured, in ms. Tests let it stand still.
    silence_ms: Callable[[int], int] = lambda redis_ms: redis_ms


@dataclass
class ControlContext:
    settings: Settings
    kafka: KafkaSettings
    app: Celery  # sends to the nodes
    central: StateDatabase  # the checkpoints; this process owns it
    tuning: Tuning = Tuning()
    reports: Changes = field(default_factory=Changes)  # a node has reported
    desired: Changes = field(default_factory=Changes)  # the desired state may have changed
    work: Changes = field(default_factory=Changes)  # there may be something to begin
    files: Changes = field(default_factory=Changes)  # files may wait to be looked at or imported
    # Since when nodes are heard without a break, by our clock. It is None while they are not heard.
    hearing_since_ms: int | None = 0
    closing: threading.Event = field(default_factory=threading.Event)

    def heard_since(self, at_ms: int) -> int:
        """Returns from when it counts that something that began at `at_ms` has not come yet.

        It may have come unseen while control was away, or while nodes could not be heard.
        """
        return now_ms() if self.hearing_since_ms is None else max(at_ms, self.hearing_since_ms)


def now_ms() -> int:
    return int(time.time() * 1000)
