"""Kafka in memory: one journal partition, transactions, fencing by generation, read_committed.

What is written in a transaction is in the log at once. But a reader of committed records gets no further than
the first record of any transaction that is still open (the last stable offset).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline_runtime.journal.records import Record

TRANSACTION_STEPS_MAX = 40
"""After this time the broker aborts an open transaction by itself, and fences the one that opened it."""


class Fenced(Exception):
    """Another one has initialised the id since."""


@dataclass(frozen=True, slots=True)
class Handle:
    """The result of initialising an id: the right to commit with it, until the next one initialises it."""

    id: int
    generation: int


@dataclass(slots=True)
class Transaction:
    opened_at: int
    first_offset: int | None = None
    committed: bool | None = None  # None while it is open


@dataclass(slots=True)
class Broker:
    log: list[tuple[Record, Transaction]] = field(default_factory=list)
    now: int = 0
    _generations: dict[int, int] = field(default_factory=dict)
    _open: dict[int, Transaction] = field(default_factory=dict)

    def initialise(self, id: int) -> Handle:
        """Aborts the open transaction of the id."""
        self._generations[id] = self._generations.get(id, 0) + 1
        self._end(id, committed=False)
        return Handle(id, self._generations[id])

    def begin(self, handle: Handle) -> None:
        """Opens a transaction that holds nothing yet. An open and empty one starts again."""
        self._check(handle)
        transaction = self._open.get(handle.id)
        if transaction is None or transaction.first_offset is None:
            self._open[handle.id] = Transaction(self.now)

    def write(self, handle: Handle, records: tuple[Record, ...]) -> None:
        self._check(handle)
        transaction = self._open.setdefault(handle.id, Transaction(self.now))
        if transaction.first_offset is None:
            transaction.first_offset = len(self.log)
        self.log += [(record, transaction) for record in records]

    def commit(self, handle: Handle) -> None:
        self._check(handle)
        self._end(handle.id, committed=True)

    def expire(self) -> None:
        """Aborts transactions that have been open for too long."""
        for id, transaction in list(self._open.items()):
            if self.now - transaction.opened_at > TRANSACTION_STEPS_MAX:
                self._generations[id] += 1
                self._end(id, committed=False)

    def end(self) -> int:
        """Returns the offset after the last record, committed or not (the high watermark)."""
        return len(self.log)

    def stable_end(self) -> int:
        """Returns how far committed records can be read now."""
        firsts = [item.first_offset for item in self._open.values() if item.first_offset is not None]
        return min(firsts, default=len(self.log))

    def read(self, position: int, count: int) -> tuple[list[tuple[int, Record]], int]:
        """Returns the committed records among the next `count` offsets from `position`, each with its offset,
        and the next position."""
        if position == len(self.log):
            return [], position
        end = min(self.stable_end(), position + count)
        found = enumerate(self.log[position:end], position)
        return [(offset, record) for offset, (record, transaction) in found if transaction.committed], end

    def _check(self, handle: Handle) -> None:
        if self._generations.get(handle.id) != handle.generation:
            raise Fenced

    def _end(self, id: int, *, committed: bool) -> None:
        transaction = self._open.pop(id, None)
        if transaction is not None:
            transaction.committed = committed
