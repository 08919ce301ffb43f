"""What a journal says, folded from its records. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pipeline_runtime.journal.records import Claim, Commit, Ends, Record, Retire
from pipeline_runtime.model.ids import Epoch, Seq

_ORDERS_KEPT = 20


class JournalBroken(RuntimeError):
    """A seq is missing or stands twice: the guarantees do not hold, and nothing may go on."""


@dataclass(slots=True)
class JournalView:
    """The fold of all records read so far.

    `commits` holds only those behind `forget`: what a follower has still to replay.
    """

    granted: Epoch = Epoch(0)  # the highest epoch that the journal grants
    last_seq: Seq = Seq(0)
    last_ends: Ends = field(default_factory=dict)
    start: Ends | None = None
    orders: dict[str, Epoch] = field(default_factory=dict)  # claim order -> the epoch it was granted
    claimant: str = ""  # node of the newest claim
    retired: bool = False
    ended: set[str] = field(default_factory=set)
    marks: dict[str, Any] = field(default_factory=dict)  # of the sinks, at last_seq
    commits: dict[Seq, Commit] = field(default_factory=dict)
    _forgotten: Seq = Seq(0)

    def apply(self, record: Record) -> None:
        match record:
            case Claim():
                self.granted = max(self.granted, record.epoch)
                self.orders[record.order] = record.epoch
                self.claimant = record.node
                if self.start is None:
                    self.start = record.start
            case Commit():
                self._apply_commit(record)
            case Retire():
                self.retired = True

    def _apply_commit(self, commit: Commit) -> None:
        if self.last_seq and commit.seq != self.last_seq + 1:
            raise JournalBroken(f"seq {commit.seq} follows {self.last_seq} in the journal")
        self.granted = max(self.granted, commit.epoch)
        self.last_seq = commit.seq
        self.last_ends = commit.boundary.ends
        self.marks = commit.marks
        self.ended.update(commit.ended)
        if commit.seq > self._forgotten:
            self.commits[commit.seq] = commit

    def forget(self, seq: Seq) -> None:
        """Drop the commits up to `seq`: this replica has processed them."""
        while self._forgotten < seq:
            self._forgotten = Seq(self._forgotten + 1)
            self.commits.pop(self._forgotten, None)

    def to_json(self) -> dict[str, Any]:
        """All but the commits, for `from_json` to go on from."""
        newest_orders = dict(list(self.orders.items())[-_ORDERS_KEPT:])
        return {
            "granted": self.granted,
            "last_seq": self.last_seq,
            "last_ends": self.last_ends,
            "start": self.start,
            "orders": newest_orders,
            "claimant": self.claimant,
            "retired": self.retired,
            "ended": sorted(self.ended),
            "marks": self.marks,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> JournalView:
        view = JournalView(**{**data, "ended": set(data["ended"])})
        view._forgotten = view.last_seq
        return view
