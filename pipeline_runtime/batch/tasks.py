"""The tasks that process a group's batches: how many, which part is whose, and how those that stay meet.

One task is enough for little: each more costs a Python process. So there are more once batches are large, up
to `most`. Tasks that stay are there for many batches: where a group needs more, they end, and Spark plans
again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence

from pipeline_runtime.batch.gate_messages import Slice, TaskPart

# One more task for each so many rows of the batch before. Chosen, not measured.
ROWS_A_TASK = 5_000
_LOOK_S = 0.2


class KeysShared(RuntimeError):
    """Two tasks have rows of the same key, which only one may process."""


class Tasks:
    def __init__(self, most: int, *, planned: bool = False) -> None:
        """`most`: so many parts a batch may have. `planned`: Spark plans each batch, so none of its tasks
        stays."""
        self._most = most if planned else min(most, os.cpu_count() or 1)
        self.planned_each = planned
        self._count = 1  # of what Spark was told last
        self._wanted = 1
        self._keys: dict[str | None, int] = {}  # of the batch that is running, and whose they are
        self._meeting = threading.Condition()
        self._made: dict[int, bytes] = {}
        self._meetings = 0
        self._closed = False

    def processed(self, rows: int) -> None:
        """So many were in the batch that has ended: the next one goes by that."""
        wanted = max(1, min(self._most, 1 + rows // ROWS_A_TASK))
        self._wanted = wanted if self.planned_each else max(self._wanted, wanted)
        self._keys = {}

    @property
    def are_too_few(self) -> bool:
        """Those that stay: they are to end, so that Spark starts more."""
        return not self.planned_each and self._wanted > self._count

    def planned(self, token: int) -> list[TaskPart]:
        """Returns the tasks of the batch with that token."""
        self._count = self._wanted
        return [TaskPart(token, task) for task in range(self._count)]

    def share(self, slices: Sequence[Slice], task: int) -> list[Slice]:
        """The task's part of the slices. Each task has neighbours, so that the rows' order does not depend on
        the number of tasks."""
        count = len(slices)
        return list(slices[count * task // self._count : count * (task + 1) // self._count])

    def take(self, keys: Iterable[str | None], task: int) -> None:
        """The task processes these keys, in this batch. Raises KeysShared."""
        if self._count == 1:
            return  # who it is does not matter, and there may be many keys
        for key in keys:
            if self._keys.setdefault(key, task) != task:
                raise KeysShared(f"rows of the key {key!r} are in several partitions")

    def meet(self, task: int, made: bytes, at_end: Callable[[Sequence[bytes]], None]) -> None:
        """A task that stays has processed its part; the last one ends the batch with what all have made."""
        with self._meeting:
            self._made[task] = made
            if len(self._made) < self._count:
                meeting = self._meetings
                while self._meetings == meeting and not self._closed:
                    self._meeting.wait(_LOOK_S)
                return
            made_by_all = [self._made[task] for task in sorted(self._made)]
            try:
                at_end(made_by_all)
            finally:
                self._made = {}
                self._meetings += 1
                self._meeting.notify_all()

    def close(self) -> None:
        """Those that wait for each other wait no longer. It waits for nobody: one may be ending the batch."""
        self._closed = True
