"""The state that the threads of one replica share: the journal's view, the permit, the running batch.

The threads read the attributes of `ReplicaState` directly. They change the attributes only through its
methods. Each method stands for one event. tests/unit/replica/test_state.py checks that no other code assigns
to the attributes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from time import time
from typing import NamedTuple

from pipeline_runtime.handover.ownership import CommitPermit
from pipeline_runtime.journal.records import Boundary, Commit, Digests, Totals
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.desired import ClaimOrder, Directive, WayOn
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.core import Facts
from pipeline_runtime.replica.measures import Measures
from pipeline_runtime.replica.outputs import RejectedRecord
from pipeline_runtime.replica.stalls import read_between, way_behind


@dataclass
class Reads:
    """The rows that the tasks of a batch have read, by (input, partition).

    Spark may run a task twice. The second run then replaces the report of the first run by an equal one.
    """

    rows: dict[tuple[int, int], int] = field(default_factory=dict)
    rejected: dict[tuple[int, int], list[RejectedRecord]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)  # keys of the partitions that have ended for good

    def all_rejected(self) -> list[RejectedRecord]:
        return [item for key in sorted(self.rejected) for item in self.rejected[key]]

    @property
    def all_rows(self) -> int:
        return sum(self.rows.values())


class BatchSpan(NamedTuple):
    """Where a batch starts, and where it ends."""

    start: Boundary
    end: Boundary


class Tentative(NamedTuple):
    """A batch that begins while the batch before it is being committed. If that commit fails, the tentative
    batch is dropped."""

    span: BatchSpan
    reads: Reads
    own: bool  # this replica chose where it ends


@dataclass
class ReplicaState:
    """The shared state of one replica. The condition `changed` guards it.

    Every method acquires `changed`. The caller may hold `changed` already. A thread that reads several
    attributes that belong together holds `changed` while it reads them.
    """

    changed: threading.Condition = field(default_factory=threading.Condition)
    version: int = 0  # the number of changes; a waiting thread compares it, so it misses no change
    wanted_definition: str = ""  # the version of the definition that the replica is to run
    directive: Directive = field(default_factory=Directive)
    order: ClaimOrder | None = None  # the newest order to claim
    order_refused: str | None = None  # why the newest order was refused
    view: JournalView = field(default_factory=JournalView)
    local: Seq = Seq(0)  # the newest batch that this replica has processed
    # Where the first batch of the present state begins.
    state_begins: Boundary = field(default_factory=lambda: Boundary(Seq(0), {}, 0))
    permit: CommitPermit | None = None  # None if this replica does not own
    armed: bool = False  # the owner may release to this replica
    claiming: bool = False
    # The number of requests that the first commit as owner took. None before that commit.
    first_commit_requests: int | None = None
    # The totals of all batches up to the newest one that this owner has committed. `view` has them later,
    # when the replica has read its own commit from the journal.
    totals: Totals = field(default_factory=Totals)
    schemas: Digests = field(default_factory=dict)  # as the owner: Commit.schemas of that commit
    granted: Seq | None = None  # the batch that is running or being committed
    granted_at_ms: int = 0  # when `granted` began
    committing: bool = False  # `granted` is being committed, and the next batch may begin
    tentative: Tentative | None = None  # the next batch, if it has begun during the commit
    ahead: bool = False
    """the running batch is this replica's own, or the journal did not have it when it was granted"""
    span: BatchSpan | None = None  # the span of `granted`, or of the last batch
    reads: Reads = field(default_factory=Reads)  # the rows that `granted` has read
    draining: bool = False  # no further batch is granted
    paused_at_ms: int | None = None  # None if the replica is not paused
    held: bool = False  # as the owner, the replica begins no batch, because its topics have changed
    # As the owner, the replica waits for a schema registry, and processes only what lies before these
    # offsets. They are by their keys in a position. Without any it processes nothing. None if the replica
    # waits for no registry.
    waits: Mapping[str, int] | None = None
    pause_shift_ms: int = 0  # how long the sources' clocks have stood still since the last batch
    ended: bool = False  # the group has processed its last row: all its sources have ended
    connected: threading.Event = field(default_factory=threading.Event)  # the query has asked the gate
    failure: BaseException | None = None  # the error of a batch, because Spark passes on only its text
    measures: Measures = field(default_factory=Measures)

    # --- the directive

    def direct(self, directive: Directive, *, exact: bool) -> None:
        """Takes over a new directive. `exact`: standbys of this group follow batch by batch."""
        with self.changed:
            self.directive = replace(directive, followed=directive.followed and exact)
            order = directive.order
            if order is not None and (self.order is None or self.order.id != order.id):
                self.order, self.order_refused = order, None
            self.tell()

    def pause_since(self, since_ms: int) -> None:
        with self.changed:
            if self.paused_at_ms is None:
                self.paused_at_ms = since_ms

    def resume_at(self, at_ms: int) -> None:
        """Ends the pause. The sources' clocks have stood still during the pause."""
        with self.changed:
            if self.paused_at_ms is not None:
                self.pause_shift_ms += at_ms - self.paused_at_ms
                self.paused_at_ms = None

    def hold(self, held: bool) -> None:
        """Forbids the owner to begin a batch, because its topics have changed, or allows it again."""
        with self.changed:
            if self.held != held:
                self.held = held
                self.tell()

    def wait_for_registry(self, before: Mapping[str, int] | None) -> None:
        """The owner processes only what lies before these offsets, or again everything."""
        with self.changed:
            self.waits = before
            self.tell()

    def drain(self, draining: bool = True) -> None:
        """Stops the granting of batches. With `draining` False, batches are granted again."""
        with self.changed:
            self.draining = draining
            self.tell()

    # --- the journal and the local state

    def begin_following(self, view: JournalView, local: Seq) -> None:
        """Begins with a local state that stands at `local`, and with the journal as `view` has it."""
        with self.changed:
            self.view, self.local = view, local
            self.granted = self.span = self.tentative = None
            self.committing = False

    def state_begins_at(self, boundary: Boundary) -> None:
        with self.changed:
            self.state_begins = boundary

    def begin_run(self, *, ended: bool) -> None:
        """Notes that a query is about to start. `ended`: the group has processed its last row."""
        with self.changed:
            self.failure = None
            self.ended = ended

    # --- ownership

    def begin_claim(self) -> None:
        with self.changed:
            self.armed, self.claiming = False, True

    def end_claim(self) -> None:
        with self.changed:
            self.claiming = False
            self.tell()

    def order_is_done(self, refused: str | None) -> None:
        """Notes that the newest order was carried out. `refused`: why it was refused instead, or None."""
        with self.changed:
            self.order_refused = refused

    def own(self, permit: CommitPermit) -> None:
        """Makes the replica the owner."""
        with self.changed:
            self.permit, self.armed = permit, False
            self.first_commit_requests = None
            self.totals, self.schemas = self.view.totals, self.view.schemas
            self.measures.begin_owning()
            self.tell()

    def set_armed(self, armed: bool) -> None:
        with self.changed:
            self.armed = armed
            self.tell()

    def claim_by(self, order: ClaimOrder) -> None:
        """Takes an order that the replica gives itself, to claim a group again that it has owned."""
        with self.changed:
            self.order = order

    def released(self) -> None:
        """Makes the replica a follower, because the journal has its RELEASE."""
        with self.changed:
            self.permit = self.waits = None
            self.tell()

    def lose_permit(self) -> None:
        """Takes the permit away: the replica may not commit, and no owner may release to it."""
        with self.changed:
            self.permit, self.armed = None, False

    # --- a batch

    def grant(self, start: Boundary, end: Boundary, *, shifted_ms: int | None = None) -> None:
        """Begins a batch. `shifted_ms`: the part of the pauses that this batch takes off the sources' clocks.
        It is None for another owner's batch, which has taken off all pauses up to now."""
        with self.changed:
            batch = Tentative(BatchSpan(start, end), Reads(), own=shifted_ms is not None)
            if self.committing:
                self.tentative = batch
            else:
                self._begin(batch)
            self.pause_shift_ms = 0 if shifted_ms is None else self.pause_shift_ms - shifted_ms

    def _begin(self, batch: Tentative) -> None:
        end = batch.span.end
        self.granted, self.span, self.granted_at_ms = end.seq, batch.span, int(time() * 1000)
        # A replica that was frozen may find its own batch in the journal already, committed by another owner.
        self.ahead = batch.own or end.seq not in self.view.commits
        self.reads = batch.reads

    def begin_commit(self) -> None:
        """Notes that the running batch was processed. The next batch may begin during the commit."""
        with self.changed:
            self.committing = True

    def count_batch_from_now(self) -> None:
        """Counts the running batch's time from now on, and forgets the time that has passed."""
        with self.changed:
            self.granted_at_ms = int(time() * 1000)

    def task_has_read(
        self, key: tuple[int, int], rows: int, rejected: list[RejectedRecord], ended: Iterable[str]
    ) -> None:
        """Notes that a task has read its slice of the (input, partition) `key`. `ended`: the keys of the
        partitions that have ended for good."""
        with self.changed:
            reads = self.reads if self.tentative is None else self.tentative.reads
            reads.rows[key] = rows
            reads.rejected[key] = rejected
            reads.ended.update(ended)

    def committed(self, requests: int, commit: Commit) -> bool:
        """Notes that the owner has committed the running batch. `requests`: how many requests this took.
        Returns whether this was the first commit by the permit."""
        with self.changed:
            self.totals, self.schemas = commit.totals, commit.schemas
            first = self.first_commit_requests is None
            if first:
                self.first_commit_requests = requests
            return first

    def processed(self, end: Boundary, *, ended: bool) -> None:
        """Notes that the running batch is final, and that the local state stands at its end."""
        with self.changed:
            self.local = end.seq
            self.view.forget(end.seq)
            self.ended = ended
            self.tell()

    def batch_is_over(self) -> None:
        """Ends the batch that was being committed. The tentative batch, if there is one, becomes the running
        batch."""
        with self.changed:
            batch, self.tentative = self.tentative, None
            self.committing, self.granted = False, None
            if batch is not None:
                self._begin(batch)
            self.tell()

    def no_batch_runs(self) -> None:
        with self.changed:
            self.granted = self.tentative = None
            self.committing = False
            self.tell()

    def fail(self, error: BaseException) -> None:
        """Keeps the first failure only, because later ones may be its consequences."""
        with self.changed:
            if self.failure is None:
                self.failure = error
            self.tell()

    # --- answers that follow from the attributes

    @property
    def batch_since_ms(self) -> int | None:
        """Returns when the running batch began (ms since 1970). Returns None if no batch runs, or if the
        batch can end only after the owner has committed it."""
        announced_only = self.ahead and self.permit is None
        return self.granted_at_ms if self.granted is not None and not announced_only else None

    @property
    def newest_span(self) -> BatchSpan | None:
        """Returns the span of the newest batch that was granted."""
        return self.span if self.tentative is None else self.tentative.span

    @property
    def reads_now(self) -> str:
        """Returns a text for people: which rows the newest running batch reads."""
        span = self.newest_span
        return "" if self.granted is None or span is None else read_between(span.start.ends, span.end.ends)

    @property
    def way_behind(self) -> WayOn | None:
        """Returns the way to go on after the rows that the newest running batch reads."""
        span = self.newest_span
        return None if self.granted is None or span is None else way_behind(span.start.ends, span.end.ends)

    @property
    def caught_up(self) -> bool:
        return self.view.following(self.local) > self.view.last_seq

    @property
    def paused(self) -> bool:
        return self.paused_at_ms is not None

    @property
    def has_committed(self) -> bool:
        """Returns whether the replica owns, and has committed a batch by its present permit."""
        return self.permit is not None and self.first_commit_requests is not None

    @property
    def has_paused(self) -> bool:
        """Returns whether the replica is paused, and the batch that ran at that time has ended. That batch
        may have written rows after the pause began."""
        return self.paused and self.granted is None

    @property
    def rewinds_to(self) -> Seq | None:
        """Returns the batch to which the replica is ordered to rewind, or None. The replica follows no batch
        after that one."""
        order = self.order
        if order is None or self.permit is not None or order.id in self.view.orders:
            return None  # an order rewinds only once, even if it is carried out several times
        return order.rewind

    @property
    def takes_over_without_state(self) -> bool:
        """Returns whether the replica is ordered to take over without the state of another definition.

        This happens once: after the CLAIM, the journal names the replica's own definition.
        """
        order = self.order
        if order is None or not order.fresh:
            return False
        return self.view.definition not in (self.wanted_definition, *order.keeps_state_of)

    def facts(
        self,
        spec: GroupSpec,
        *,
        stops: bool = False,
        quiet: bool = False,
        announced: int = 0,
        batch_ms: float = 0.0,
        waits: bool = False,
    ) -> Facts:
        """Returns the facts for the decisions in core.py. `spec` is the definition that the query runs. Facts
        explains the other arguments. The caller holds `changed` for as long as it uses the answer."""
        return Facts(
            view=self.view,
            local=self.local,
            state_begins=self.state_begins.seq,
            directive=self.directive,
            permit=self.permit.epoch if self.permit is not None else None,
            armed=self.armed,
            claiming=self.claiming,
            paused=self.paused or self.held,
            stops=self.draining or stops,
            running_definition=spec.version,
            wanted_definition=self.wanted_definition,
            coalesced=spec.follow == "coalesced",
            rows_max=spec.pace.batch_rows_max,
            rewinds_to=self.rewinds_to,
            leaves_state=self.takes_over_without_state,
            quiet=quiet,
            announced=announced,
            batch_ms=batch_ms,
            committing=self.committing,
            waits=waits,
        )

    def latency_ms(self, spec: GroupSpec) -> int:
        """Returns the latency target: the directive's, or else the definition's."""
        return self.directive.latency_ms or spec.pace.latency_ms

    # --- waiting

    def tell(self) -> None:
        """Wakes all threads that wait for a change. The caller holds `changed`."""
        self.version += 1
        self.changed.notify_all()

    def poke(self) -> None:
        """Wakes all threads that wait, because something outside this state has changed."""
        with self.changed:
            self.tell()

    def wait_for_change(self, seen: int, timeout_s: float) -> int:
        """Waits until `version` differs from `seen`, at most for `timeout_s`. Returns the version."""
        with self.changed:
            self.changed.wait_for(lambda: self.version != seen, timeout_s)
            return self.version
