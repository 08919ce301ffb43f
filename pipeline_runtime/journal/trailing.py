"""Views a journal as it was when this replica's local state had processed a batch. Pure.

A replica reads its journal faster than it follows the batches. A restart must not begin from the view of
everything that was read: it would skip the batches that the replica still has to follow.
"""

from __future__ import annotations

from collections import deque

from pipeline_runtime.journal.records import Commit, Record
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Seq


class TrailingView:
    """Takes in the same records as the view of everything that was read, but each record only when the local
    state has come to it.

    `view` is the fold of all records before `offset`.
    """

    def __init__(self, view: JournalView, offset: int) -> None:
        self.view = view
        self.offset = offset
        self._waiting: deque[tuple[int, int, Record]] = deque()

    def read(self, offset: int, at_ms: int, record: Record) -> None:
        """Keeps a record that was read. `at_ms`: the broker's time."""
        self._waiting.append((offset, at_ms, record))

    @property
    def read_to(self) -> int:
        """Says that all records before this offset were read."""
        return self._waiting[-1][0] + 1 if self._waiting else self.offset

    def come_to(self, local: Seq) -> None:
        """Takes in what was read, up to the first batch behind `local`."""
        while self._waiting and not _is_commit_after(self._waiting[0][2], local):
            offset, at_ms, record = self._waiting.popleft()
            self.view.apply(record, at_ms)
            self.offset = offset + 1
        self.view.forget(local)


def _is_commit_after(record: Record, local: Seq) -> bool:
    return isinstance(record, Commit) and record.seq > local
