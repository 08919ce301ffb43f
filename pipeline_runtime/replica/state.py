"""What the threads of one replica share: the journal's view, the permit, the batch that is running.

The threads read the attributes. They change them only through the methods below, each of which says what has
happened; tests/unit/replica/test_state.py checks that nobody else assigns to them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from time import time
from typing import NamedTuple

from pipeline_runtime.handover.ownership import CommitPermit
from pipeline_runtime.journal.records import Boundary, Totals
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
    """What the tasks of the running batch have read, by (input, partition).

    Spark may run a task twice. The second run then reports the same again.
    """

    rows: dict[tuple[int, int], int] = field(default_factory=dict)
    rejected: dict[tuple[int, int], list[RejectedRecord]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)  # inputs' positions that nothing follows

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
    """A batch that has begun before the one before it is committed. If that one comes to nothing, so does
    this one."""

    span: BatchSpan
    reads: Reads


@dataclass
class ReplicaState:
    """Guarded by `changed`, which every method takes by itself; a thread may hold it already.

    A thread that reads several attributes which belong together holds `changed` while it does.
    """

    changed: threading.Condition = field(default_factory=threading.Condition)
    version: int = 0  # counts the changes, so that a thread which looks away in between misses none
    wanted_definition: str = ""  # the version of the one that the replica is to run
    directive: Directive = field(default_factory=Directive)
    order: ClaimOrder | None = None  # the newest order to claim
    order_refused: str | None = None  # why the newest order was refused
    view: JournalView = field(default_factory=JournalView)
    local: Seq = Seq(0)  # the newest batch that this replica has processed
    # Where the first batch of the present state begins.
    state_begins: Boundary = field(default_factory=lambda: Boundary(Seq(0), {}, 0))
    permit: CommitPermit | None = None
    armed: bool = False  # the owner may release to this replica
    claiming: bool = False
    # How many requests the first commit as owner took; None until there was one.
    first_commit_requests: int | None = None
    # As the owner: of all batches up to the newest one that it has committed. `view` reads its own commits
    # back only later.
    totals: Totals = field(default_factory=Totals)
    granted: Seq | None = None  # the batch that is running, or is being committed
    granted_at_ms: int = 0  # when that was
    committing: bool = False  # it is being committed, and the next one may begin
    tentative: Tentative | None = None  # the next one, which has begun meanwhile
    ahead: bool = False  # the journal did not have the running batch when it was granted
    span: BatchSpan | None = None  # of `granted`, or of the last batch
    reads: Reads = field(default_factory=Reads)
    draining: bool = False  # no further batch is granted
    paused_at_ms: int | None = None
    held: bool = False  # as the owner it begins no batch: its topics are not what they were
    pause_shift_ms: int = 0  # how long the sources' clocks have stood still since the last batch
    ended: bool = False  # the group has processed all there will ever be
    connected: threading.Event = field(default_factory=threading.Event)  # the query has asked the gate
    failure: BaseException | None = None  # what a batch has raised; Spark would wrap it in text
    measures: Measures = field(default_factory=Measures)

    # --- what is wanted

    def direct(self, directive: Directive, *, exact: bool) -> None:
        """The control side has sent a directive. `exact`: standbys of this group follow batch by batch."""
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
        """The pause is over: the sources' clocks have stood still for as long as it took."""
        with self.changed:
            if self.paused_at_ms is not None:
                self.pause_shift_ms += at_ms - self.paused_at_ms
                self.paused_at_ms = None

    def hold(self, held: bool) -> None:
        """With `held` the owner begins no further batch, because of its topics. Without, it may again."""
        with self.changed:
            if self.held != held:
                self.held = held
                self.tell()

    def drain(self, draining: bool = True) -> None:
        """No further batch is granted from now on, or batches are granted again."""
        with self.changed:
            self.draining = draining
            self.tell()

    # --- the journal and the local state

    def begin_following(self, view: JournalView, local: Seq) -> None:
        """The local state was opened at `local`, and the journal is read into `view`."""
        with self.changed:
            self.view, self.local = view, local
            self.granted = self.span = self.tentative = None
            self.committing = False

    def state_begins_at(self, boundary: Boundary) -> None:
        with self.changed:
            self.state_begins = boundary

    def begin_run(self, *, ended: bool) -> None:
        """A query is about to start. `ended`: the group has processed all there will ever be."""
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
        """The newest order was carried out, or refused for that reason."""
        with self.changed:
            self.order_refused = refused

    def own(self, permit: CommitPermit) -> None:
        """The replica is the owner from now on."""
        with self.changed:
            self.permit, self.armed = permit, False
            self.first_commit_requests = None
            self.totals = self.view.totals
            self.measures.begin_owning()
            self.tell()

    def set_armed(self, armed: bool) -> None:
        with self.changed:
            self.armed = armed
            self.tell()

    def claim_by(self, order: ClaimOrder) -> None:
        """The replica gives itself an order: it claims again what it has owned."""
        with self.changed:
            self.order = order

    def released(self) -> None:
        """The journal has this owner's RELEASE: the replica is a follower from now on."""
        with self.changed:
            self.permit = None
            self.tell()

    def lose_permit(self) -> None:
        """The replica may not commit any more, and nobody may release to it."""
        with self.changed:
            self.permit, self.armed = None, False

    # --- a batch

    def grant(self, start: Boundary, end: Boundary, *, shifted_ms: int | None = None) -> None:
        """A batch begins. `shifted_ms`: by how much it moves the sources' clocks, because of a pause. It is
        None for a batch that another owner has decided, which contains every shift up to now."""
        with self.changed:
            batch = Tentative(BatchSpan(start, end), Reads())
            if self.committing:
                self.tentative = batch
            else:
                self._begin(batch)
            self.pause_shift_ms = 0 if shifted_ms is None else self.pause_shift_ms - shifted_ms

    def _begin(self, batch: Tentative) -> None:
        end = batch.span.end
        self.granted, self.span, self.granted_at_ms = end.seq, batch.span, int(time() * 1000)
        self.ahead = end.seq not in self.view.commits
        self.reads = batch.reads

    def begin_commit(self) -> None:
        """The running batch was processed. The next one may begin while it is committed."""
        with self.changed:
            self.committing = True

    def count_batch_from_now(self) -> None:
        """What has passed of the running batch's time does not count."""
        with self.changed:
            self.granted_at_ms = int(time() * 1000)

    def task_has_read(
        self, key: tuple[int, int], rows: int, rejected: list[RejectedRecord], ended: Iterable[str]
    ) -> None:
        """A task has read its slice of the (input, partition) `key`. `ended`: the positions that nothing
        follows."""
        with self.changed:
            reads = self.reads if self.tentative is None else self.tentative.reads
            reads.rows[key] = rows
            reads.rejected[key] = rejected
            reads.ended.update(ended)

    def committed(self, requests: int, totals: Totals) -> bool:
        """The owner has committed the running batch with so many requests, and says these totals with it.
        Returns whether it was the first commit by its permit."""
        with self.changed:
            self.totals = totals
            first = self.first_commit_requests is None
            if first:
                self.first_commit_requests = requests
            return first

    def processed(self, end: Boundary, *, ended: bool) -> None:
        """The running batch counts, and the local state stands at its end."""
        with self.changed:
            self.local = end.seq
            self.view.forget(end.seq)
            self.ended = ended
            self.tell()

    def batch_is_over(self) -> None:
        """The batch that was being committed counts. One that has begun meanwhile is tentative no more."""
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
        """Keep the first failure only: later ones may be its consequences."""
        with self.changed:
            if self.failure is None:
                self.failure = error
            self.tell()

    # --- what follows from it

    @property
    def batch_since_ms(self) -> int | None:
        """Since when a batch runs that is this replica's to end. Returns None if none runs, or if it waits
        for the owner to commit it."""
        announced_only = self.ahead and self.permit is None
        return self.granted_at_ms if self.granted is not None and not announced_only else None

    @property
    def newest_span(self) -> BatchSpan | None:
        """Where the newest batch that was granted starts, and where it ends."""
        return self.span if self.tentative is None else self.tentative.span

    @property
    def reads_now(self) -> str:
        """What the newest running batch reads, in words."""
        span = self.newest_span
        return "" if self.granted is None or span is None else read_between(span.start.ends, span.end.ends)

    @property
    def way_behind(self) -> WayOn | None:
        """The way to go on behind what the newest running batch reads."""
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
        """It owns, and has committed a batch since it was granted that."""
        return self.permit is not None and self.first_commit_requests is not None

    @property
    def has_paused(self) -> bool:
        """It is paused, and the batch that ran then has ended, which may have put out rows since."""
        return self.paused and self.granted is None

    @property
    def rewinds_to(self) -> Seq | None:
        """The batch to rewind to, if the replica is ordered to: it follows nothing behind that."""
        order = self.order
        if order is None or self.permit is not None or order.id in self.view.orders:
            return None  # an order rewinds once, however often it is carried out
        return order.rewind

    @property
    def takes_over_without_state(self) -> bool:
        """The replica is ordered to leave the state behind that another definition has made.

        That happens once: the CLAIM makes the replica's own definition the journal's.
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
    ) -> Facts:
        """What core.py decides by. `spec` is the definition that the query runs; for the others see Facts.
        The caller holds `changed` for as long as it goes by the answer."""
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
        )

    def latency_ms(self, spec: GroupSpec) -> int:
        """The latency target: the directive's, or else the definition's."""
        return self.directive.latency_ms or spec.pace.latency_ms

    # --- waiting

    def tell(self) -> None:
        """Wake all threads that wait for a change. The caller holds `changed`."""
        self.version += 1
        self.changed.notify_all()

    def poke(self) -> None:
        """Something outside has changed: wake all threads that wait."""
        with self.changed:
            self.tell()

    def wait_for_change(self, seen: int, timeout_s: float) -> int:
        """Block until `version` differs from `seen`, at most for `timeout_s`; returns the version."""
        with self.changed:
            self.changed.wait_for(lambda: self.version != seen, timeout_s)
            return self.version
