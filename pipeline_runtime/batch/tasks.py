"""The tasks that process a group's batches: how many there are, which part each has, and how they meet.

One task is enough for few rows, and each further task costs a Python process. So there are more tasks once
batches are large, up to `most`. Tasks that stay are there for many batches. When the group needs more of
them, they end, and Spark plans again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence

from pipeline_runtime.batch.gate_messages import Slice, TaskPart

# How many rows of the batch before make one more task. Chosen, not measured.
ROWS_A_TASK = 5_000
_LOOK_S = 0.2


class KeysShared(RuntimeError):
    """Two tasks have rows of one key, which only one of them may process."""


class Tasks:
    def __init__(self, most: int, *, planned: bool = False, partitions: int | None = None) -> None:
        """`most`: into how many parts a batch can be cut. `planned`: Spark plans each batch, so no task
        stays. `partitions`: how many the input has whose keys have states, if there is one."""
        self._most = most if planned else min(most, os.cpu_count() or 1)
        self.planned_each = planned
        self._count = 1  # how many Spark was told of last
        self._wanted = 1
        self._partitions = partitions
        # Keys, each with the task that has its state, and those that are let go when the batch has ended.
        self._keys: dict[str | None, int] = {}
        self._leaving: set[str | None] = set()
        self._meeting = threading.Condition()
        self._made: dict[int, bytes] = {}
        self._meetings = 0
        self._closed = False

    def processed(self, rows: int) -> None:
        """A batch of so many rows has ended. How many tasks the next one gets depends on that."""
        wanted = max(1, min(self._most, 1 + rows // ROWS_A_TASK))
        self._wanted = wanted if self.planned_each else max(self._wanted, wanted)
        if self.planned_each:
            self._keys = {}  # none of its tasks stays
        for key in self._leaving:
            self._keys.pop(key, None)
        self._leaving = set()

    @property
    def are_too_few(self) -> bool:
        """Whether tasks that stay are to end, so that Spark starts more of them."""
        return not self.planned_each and self._wanted > self._count

    def planned(self, token: int) -> list[TaskPart]:
        """Returns the tasks of the batch with that token."""
        self._count, self._keys, self._leaving = self._wanted, {}, set()
        return [TaskPart(token, task) for task in range(self._count)]

    def share(self, slices: Sequence[Slice], task: int) -> list[Slice]:
        """The task's part of the slices. Each task has neighbours, so that the rows' order does not depend on
        the number of tasks. Where keys have states, a partition is always the same task's."""
        count = len(slices)
        if self._partitions is None or self._count == 1:
            return list(slices[count * task // self._count : count * (task + 1) // self._count])
        last = self._count - 1  # also has partitions that the topic got since
        return [
            part for part in slices if min(last, part.partition * self._count // self._partitions) == task
        ]

    def take(self, keys: Iterable[str | None], task: int) -> None:
        """The task has the states of these keys: in this batch, and until it leaves them. Raises
        KeysShared."""
        if self._count == 1:
            return  # nobody else can have them, and there may be many keys
        for key in keys:
            if self._keys.setdefault(key, task) != task:
                raise KeysShared(f"rows of the key {key!r} are in several partitions")
            self._leaving.discard(key)

    def leave(self, keys: Iterable[str | None]) -> None:
        """Their task does not have the states of these keys any more, once the running batch has ended."""
        if self._count > 1:
            self._leaving.update(keys)

    def meet(self, task: int, made: bytes, at_end: Callable[[Sequence[bytes]], None]) -> None:
        """A task that stays has processed its part. The last one to do so ends the batch, with what all have
        made. Returns when the batch has ended; raises what `at_end` raises, in the last task alone."""
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
        """Let go of tasks that wait for each other. Does not wait: one of them may be ending the batch."""
        self._closed = True
