"""Notes on a replica's disk how far it has read its journal, like the product's JournalMark."""

from __future__ import annotations

from pipeline_runtime.journal.trailing import TrailingView
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Seq
from tests.simulation.memory import Memory

MARK_EVERY = 3
"""After how many batches a replica notes how far it has read its journal."""


class Marks:
    def __init__(self) -> None:
        self.are_noted = False  # so that the replica reads its journal on from there after a crash
        self.keep_the_view = True
        self._noted: list[tuple[int, JournalView]] = []  # on its disk, the newest last

    def begin(self, memory: Memory, local: Seq) -> None:
        """Starts from the disk, as JournalFollower does: the journal is read from the newest mark on that
        fits the local state. Otherwise it is read from the beginning."""
        if not self.are_noted:
            return
        self._noted = [mark for mark in self._noted if mark[1].last_seq <= local]
        if self._noted:
            memory.position, view = self._noted[-1]
            memory.view = view.copy() if self.keep_the_view else JournalView()
            memory.view.begin_at(local)
        memory.trailing = TrailingView(memory.view.copy(), memory.position)

    def note(self, memory: Memory, local: Seq) -> None:
        trailing = memory.trailing
        if trailing is not None and local % MARK_EVERY == 0:
            trailing.come_to(local)
            self._noted.append((trailing.offset, trailing.view.copy()))

    def forget(self) -> None:
        self._noted = []
