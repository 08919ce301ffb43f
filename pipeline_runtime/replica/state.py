"""What a replica's threads share: the journal's view, the permit, the batch that is running."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pipeline_runtime.handover.ownership import CommitPermit
from pipeline_runtime.journal.records import Boundary, Ends
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.replica.measures import Measures
from pipeline_runtime.replica.outputs import RejectedRecord


@dataclass
class Reads:
    """What the tasks of the running batch have told the gate, by (input, partition): a task that
    Spark runs twice tells the same twice."""

    rows: dict[tuple[int, int], int] = field(default_factory=dict)
    rejected: dict[tuple[int, int], list[RejectedRecord]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def all_rejected(self) -> list[RejectedRecord]:
        return [item for key in sorted(self.rejected) for item in self.rejected[key]]


@dataclass
class ReplicaState:
    """Guarded by `changed`, which is notified whenever something of it changes."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    view: JournalView = field(default_factory=JournalView)
    journal_offset: int = 0  # all records before it are in `view`
    local: Seq = Seq(0)  # the newest batch that this replica has processed
    permit: CommitPermit | None = None
    granted: Seq | None = None  # the batch that Spark is running
    plan: tuple[Boundary, Boundary] | None = None  # its start and end
    reads: Reads = field(default_factory=Reads)
    draining: bool = False  # grant nothing more
    paused_at_ms: int | None = None
    pause_shift_ms: int = 0  # how long the sources' clocks have stood still since the last batch
    ended: bool = False  # the group has processed all there will ever be
    start_ends: Ends | None = None
    connected: threading.Event = field(default_factory=threading.Event)  # the query has asked the gate
    measures: Measures = field(default_factory=Measures)

    @property
    def caught_up(self) -> bool:
        return self.local >= self.view.last_seq
