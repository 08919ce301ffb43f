"""What a replica's threads share: the journal's view, the permit, the batch that is running."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from pipeline_runtime.handover.ownership import CommitPermit
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.desired import ClaimOrder, Directive
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.core import Facts
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
    """Guarded by `changed`; whoever changes something calls `tell`."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    version: int = 0  # counts the changes: nobody who looks away in between misses one
    wanted: str = ""  # the version of the definition that the replica is to run
    directive: Directive = field(default_factory=Directive)
    order: ClaimOrder | None = None  # to own by: of the newest directive that had one, or to claim again
    view: JournalView = field(default_factory=JournalView)
    journal_offset: int = 0  # all records before it are in `view`
    local: Seq = Seq(0)  # the newest batch that this replica has processed
    begins: Boundary = field(
        default_factory=lambda: Boundary(Seq(0), {}, 0)
    )  # where Spark's first batch begins
    order_refused: str | None = None  # why the newest order was
    permit: CommitPermit | None = None
    armed: bool = False  # the owner may release to this replica
    claiming: bool = False
    first_commit_requests: int | None = None  # that the first commit as owner took; None: it is still to come
    granted: Seq | None = None  # the batch that Spark is running
    ahead: bool = False  # when it was granted, the journal did not have it: it was announced, or is its own
    plan: tuple[Boundary, Boundary] | None = None  # its start and end
    reads: Reads = field(default_factory=Reads)
    draining: bool = False  # grant nothing more
    paused_at_ms: int | None = None
    pause_shift_ms: int = 0  # how long the sources' clocks have stood still since the last batch
    ended: bool = False  # the group has processed all there will ever be
    connected: threading.Event = field(default_factory=threading.Event)  # the query has asked the gate
    failure: BaseException | None = None  # of the gate or the sink: Spark would wrap it in text
    measures: Measures = field(default_factory=Measures)

    @property
    def caught_up(self) -> bool:
        return self.view.following(self.local) > self.view.last_seq

    @property
    def rewinds_to(self) -> Seq | None:
        """Ordered to go on from there: what the journal has behind it is not followed."""
        order = self.order
        if order is None or self.permit is not None or order.id in self.view.orders:
            return None  # an order rewinds once, however often it is carried out
        return order.rewind

    @property
    def takes_over_anew(self) -> bool:
        """Ordered to leave the state behind that another definition has left; once, since its CLAIM makes
        that definition the journal's."""
        order = self.order
        if order is None or not order.anew:
            return False
        return self.view.definition not in (self.wanted, *order.anew_but_for)

    def facts(
        self,
        spec: GroupSpec,
        *,
        stops: bool = False,
        quiet: bool = False,
        announced: int = 0,
        batch_ms: float = 0.0,
    ) -> Facts:
        """`spec`: the definition that the query is of; the others as in Facts. With `changed` held."""
        return Facts(
            view=self.view,
            local=self.local,
            begins=self.begins.seq,
            directive=self.directive,
            permit=self.permit.epoch if self.permit is not None else None,
            armed=self.armed,
            claiming=self.claiming,
            paused=self.paused,
            stops=self.draining or stops,
            running=spec.version,
            wanted=self.wanted,
            coalesced=spec.follow == "coalesced",
            rows_max=spec.pace.batch_rows_max,
            rewinds_to=self.rewinds_to,
            leaves_state=self.takes_over_anew,
            quiet=quiet,
            announced=announced,
            batch_ms=batch_ms,
        )

    def latency_ms(self, spec: GroupSpec) -> int:
        """The target: as it was told last, or as `spec` says."""
        return self.directive.latency_ms or spec.pace.latency_ms

    @property
    def paused(self) -> bool:
        return self.paused_at_ms is not None

    def direct(self, directive: Directive, *, exact: bool) -> None:
        """`exact`: its standbys follow batch by batch. With `changed` held."""
        self.directive = replace(directive, followed=directive.followed and exact)
        order = directive.order
        if order is not None and (self.order is None or self.order.id != order.id):
            self.order, self.order_refused = order, None
        self.tell()

    def fail(self, error: BaseException) -> None:
        """Of several the first counts: others may come of it."""
        with self.changed:
            if self.failure is None:
                self.failure = error
            self.tell()

    def tell(self) -> None:
        """With `changed` held."""
        self.version += 1
        self.changed.notify_all()

    def poke(self) -> None:
        """Something outside has changed: look again."""
        with self.changed:
            self.tell()

    def wait_for_change(self, seen: int, timeout_s: float) -> int:
        """Block until `version` is another than `seen`, or for `timeout_s`; returns the version."""
        with self.changed:
            self.changed.wait_for(lambda: self.version != seen, timeout_s)
            return self.version
