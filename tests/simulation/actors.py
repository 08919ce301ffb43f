"""A replica: the project's `decide`, `next_batch` and `at_sink`, and what carries out their decisions.

It does what pipeline_runtime/handover/ownership.py and the shells of pipeline_runtime/replica do, without
Spark. One thread reads the journal, one runs its batches, one asks the broker. The local state is a number
that depends on every batch since the first one, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from pipeline_runtime.handover.protocol import (
    Action,
    Armed,
    ArmOrdered,
    Claiming,
    CommitArmed,
    CommitClaim,
    CommitRelease,
    Committed,
    Disarmed,
    Event,
    Following,
    Initialise,
    Initialised,
    JournalEnd,
    JournalShows,
    Lost,
    Ordered,
    Own,
    Owning,
    ReadJournal,
    Refused,
    ReleaseOrdered,
    Releasing,
    Rereading,
    State,
    Stopped,
)
from pipeline_runtime.journal import records as journal
from pipeline_runtime.journal.records import Boundary, Commit
from pipeline_runtime.model.desired import ArmOrder, ClaimOrder, Directive
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.core import (
    Abandon,
    Announce,
    Check,
    Emit,
    Facts,
    Follow,
    Granted,
    Own as OwnBatch,
    OwnLast,
    ReleaseAlone,
    Wait,
)
from tests.simulation.asking import Asking, Note
from tests.simulation.broker import Handle
from tests.simulation.marks import Marks
from tests.simulation.memory import Desired, Memory, Status, fold
from tests.simulation.mutants import Rules
from tests.simulation.network import Network

WARM_STEPS = 10
"""How often an armed successor renews its open transaction."""
RUNS_AHEAD = 0.3
"""How often, per step, an owner begins a batch while the one before it is committed."""


class LawBroken(Exception):
    pass


class ReplicaActor(Asking):
    def __init__(self, name: str, network: Network, random: Random, rules: Rules, note: Note) -> None:
        super().__init__(name, network, note)
        self.desired = Desired()
        self.states = {Seq(0): 0}  # its local state on its disk, after each seq that it passed
        self.up = True
        self.paused_until = 0
        self.heeds_rewinds = True
        self.marks = Marks()
        self.reads = 0.7  # how often, per step, it reads on in its journal
        # and how often it comes to the end of a batch that it follows
        self.works = random.choice([1.0, 1.0, 0.2])
        self.end_of_journal: Callable[[State], int] = self._end_of_journal
        self._random = random
        self._decide = rules.decide
        self._next_batch, self._at_sink = rules.next_batch, rules.at_sink
        self._drops_tentative = rules.drops_tentative
        self._runs_ahead = random.choice([0.0, RUNS_AHEAD])
        self._round_trip_ms = 100.0 if sum(map(ord, name)) % 2 else 0.0  # so that some are far
        self._quiet = False
        self._nonces = 0

    @property
    def local(self) -> Seq:
        return next(reversed(self.states))

    @property
    def _state(self) -> int:
        return self.states[self.local]

    # --- from outside

    def want(self, desired: Desired) -> None:
        if self.up and desired.revision >= self.desired.revision:
            self.desired = desired

    def crash(self, *, lost_batches: int) -> None:
        self.up = False
        for seq in list(self.states)[max(1, len(self.states) - lost_batches) :]:
            del self.states[seq]
        self._begin()

    def status(self) -> Status:
        memory = self.memory
        return Status(
            at=self._network.now,
            owner=memory.permit is not None,
            epoch=memory.permit or memory.view.granted,
            seq=self.local,
            order=memory.order_done,
            refused=memory.refused,
            lost=isinstance(memory.state, Stopped),
            armed=memory.state.order.id if isinstance(memory.state, Armed) else None,
            released=memory.released,
        )

    # --- its threads

    def act(self) -> None:
        chance = self._random.random()
        memory = self.memory
        if not self._network.is_cut(self.name) and (chance < self.reads or memory.read_to is not None):
            self._read_journal(self._random.randint(1, 4))
        if memory.permit is None and self._random.random() < self.works:
            self._follow()
        elif memory.permit is not None and not memory.asked:
            self._end_batch()
        elif memory.committing and memory.tentative is None and self._random.random() < self._runs_ahead:
            self._run_ahead()
        if memory.read_to is not None and memory.position >= memory.read_to:
            memory.read_to = None
            self._answered(None)
        elif memory.unsent is not None:
            self._send(memory.unsent)
        elif memory.asked or memory.read_to is not None:
            self._wait_for_answer()
        else:
            self._supervise()

    def _read_journal(self, count: int) -> None:
        memory = self.memory
        records, memory.position = self._network.broker.read(memory.position, count)
        for offset, record in records:
            memory.view.apply(record)
            if memory.trailing is not None:
                memory.trailing.read(offset, 0, record)

    def _begin(self) -> None:
        """Starts from its disk."""
        self.memory = Memory()
        self.marks.begin(self.memory, self.local)

    def _facts(self) -> Facts:
        memory, desired = self.memory, self.desired
        return Facts(
            memory.view,
            self.local,
            directive=Directive(desired.order, desired.succeed, desired.release),
            permit=memory.permit,
            armed=isinstance(memory.state, Armed),
            claiming=isinstance(memory.state, Claiming),
            rewinds_to=self._rewinds_to,
            quiet=self._quiet,
            announced=memory.announced,
            batch_ms=1.0,
        )

    def _follow(self) -> None:
        """Begins the next batch in the journal, committed or announced, and ends it if it can."""
        memory, view = self.memory, self.memory.view
        if memory.running is None:
            if not view.commits and view.announced is None:
                return  # true most of the time
            found = self._next_batch(self._facts(), self.local)
            if not isinstance(found, Follow):
                return
            self._grant(found.boundary)
        self._end_batch()

    def _grant(self, boundary: Boundary) -> None:
        view = self.memory.view
        self.memory.running = Granted(boundary, boundary.seq not in view.commits, view.granted)

    def _end_batch(self) -> None:
        """What the sink does when the running batch has been processed."""
        memory, granted = self.memory, self.memory.running
        if granted is None:
            return
        match self._at_sink(self._facts(), granted):
            case Check(commit):
                if commit.boundary != granted.boundary:
                    raise LawBroken(f"{self.name}: seq {commit.seq} ends elsewhere than its owner's")
                self._apply(commit.boundary)
                if commit.marks["state"] != self._state:
                    raise LawBroken(f"{self.name}: seq {commit.seq} gives another state than its owner's")
                self._drop_batch()
                memory.view.forget(commit.seq)
            case Emit():
                self._emit(granted.boundary)
            case Abandon(why, fenced):
                self._drop_batch()
                self._note(self.name, "abandons {}: {}", granted.boundary.seq, why)
                if fenced:
                    self._tell(Lost(why))

    def _apply(self, boundary: Boundary) -> None:
        assert boundary.seq > self.local
        self.states[boundary.seq] = self._state_after(boundary)
        self.marks.note(self.memory, self.local)

    def _state_after(self, boundary: Boundary) -> int:
        worked = self.memory.worked
        return fold(self._state, boundary) if worked is None else worked

    def _drop_batch(self) -> None:
        """Whatever has begun behind the running batch comes to nothing with it."""
        memory = self.memory
        memory.running, memory.worked, memory.committing = None, None, False
        if self._drops_tentative:
            memory.tentative = None

    @property
    def _caught_up(self) -> bool:
        """Returns whether it has caught up enough to claim, or to go on committing."""
        view, local = self.memory.view, self.local
        return local == self._rewinds_to or view.following(local) > view.last_seq

    @property
    def _rewinds_to(self) -> Seq | None:
        order = self.desired.order
        if order is None or self.memory.permit is not None or order.id in self.memory.view.orders:
            return None
        return order.rewind

    @property
    def _was_rewound(self) -> bool:
        return self.heeds_rewinds and self.memory.view.is_void(self.local)

    def start_over(self, states: dict[Seq, int]) -> None:
        """Starts from a checkpoint: the newest of these that was not rewound. It reads before it follows."""
        self.marks.forget()
        self._begin()
        self._read_journal(self._network.broker.stable_end())
        self.states = {seq: at for seq, at in states.items() if not self.memory.view.is_void(seq)}
        self._note(self.name, "starts over from seq {}", self.local)

    def _supervise(self) -> None:
        """Acts while the broker is asked nothing."""
        memory, desired = self.memory, self.desired
        if self._was_rewound:
            self.start_over(self.states)
        elif memory.permit is not None:
            self._as_owner()
        elif not self._caught_up:
            return
        elif desired.order is not None and desired.order.id != memory.order_done:
            memory.order_done, memory.refused = None, False
            order = desired.order
            if order.rewind != self._rewinds_to:
                order = order.model_copy(update={"rewind": None})
            self._tell(Ordered(order))
        elif isinstance(memory.state, Armed):
            self._as_armed(memory.state)
        elif desired.succeed is not None and desired.order is None:
            self._nonces += 1
            nonce = f"{self._network.now}.{self._nonces}"
            self._tell(ArmOrdered(ArmOrder(id=desired.succeed, nonce=nonce)))

    def _as_armed(self, state: Armed) -> None:
        memory = self.memory
        released = memory.view.released
        token = released.token if released is not None else None
        self._tell(JournalShows(memory.view.granted, token))
        if memory.state is not state or memory.asked:
            return
        if self.desired.succeed != state.order.id:
            self._tell(Disarmed())
        elif self._network.now - memory.warmed_at >= WARM_STEPS:
            memory.warmed_at = self._network.now
            handle, broker = memory.handle, self._network.broker
            assert handle is not None
            self._ask(lambda: broker.begin(handle), lambda _: None)

    def _as_owner(self) -> None:
        memory, desired, view = self.memory, self.desired, self.memory.view
        assert memory.permit is not None
        if view.granted > memory.permit:
            self._tell(Lost("the journal grants another"))
        elif desired.order is None and desired.succeed != memory.order_done:
            self._give_up("is wanted as a standby")
        elif desired.order is not None and desired.order.id != memory.order_done:
            self._give_up("is to own by another order")
        else:
            self._own_batch()

    def _own_batch(self) -> None:
        """What an owner's gate does. Chance decides how much has arrived, and whether anything has."""
        memory = self.memory
        self._quiet = self._random.random() < 0.6
        self._begin_batch(self._next_batch(self._facts(), self.local))
        if memory.running is not None and not memory.asked:
            self._end_batch()

    def _run_ahead(self) -> None:
        """What an owner's gate does while a batch is committed. The next one goes on from its state."""
        memory, running = self.memory, self.memory.running
        assert running is not None
        self._quiet = self._random.random() < 0.6
        match self._next_batch(replace(self._facts(), committing=True), running.boundary.seq):
            case OwnBatch(seq):
                boundary = self._ends(seq)
                state = fold(self._state_after(running.boundary), boundary)
                memory.tentative = Granted(boundary, True, memory.view.granted), state
            case Wait():
                pass
            case found:  # only a broken core does so
                self._begin_batch(found)

    def _begin_batch(self, found: object) -> None:
        memory = self.memory
        match found:
            case Follow(boundary):
                self._grant(boundary)
            case ReleaseAlone():
                self._tell_to_release()
            case OwnBatch(seq):
                memory.announced, memory.releases = 0, False
                self._grant(self._ends(seq))
            case OwnLast(seq, _):
                memory.announced, memory.releases = 0, True
                self._grant(self._ends(seq))
            case Announce(seq, last):
                boundary, epoch = self._ends(seq), memory.permit
                assert epoch is not None

                def announced(_: Any) -> None:
                    memory.announced += 1
                    memory.releases = last
                    self._grant(boundary)

                self._commit((journal.Announce(epoch, boundary),), announced)

    def _tell_to_release(self) -> None:
        armed, release = self.memory.view.armed, self.desired.release
        if armed is not None and release is not None:
            self._tell(ReleaseOrdered(release, armed.order, armed.epoch, armed.token))

    def _give_up(self, why: str) -> None:
        """Ends its query, and starts again as a follower."""
        self._note(self.name, why)
        self.memory.state, self.memory.permit, self.memory.handle = Following(), None, None
        self._drop_batch()

    # --- the protocol

    def _tell(self, event: Event) -> None:
        memory = self.memory
        before = memory.state
        memory.state, actions = self._decide(before, event)
        if memory.state != before:
            self._note(self.name, "{}: {} -> {}", type(event).__name__, before, memory.state)
        match memory.state:
            case Refused(order):
                memory.order_done, memory.refused = order.id, True
            case Stopped(order):
                memory.order_done = order.id
        if not isinstance(memory.state, Owning | Releasing) and memory.permit is not None:
            # Its query ends, and starts again as a follower's.
            memory.permit = None
            self._drop_batch()
        if isinstance(memory.state, Following | Refused | Stopped):
            memory.handle = None
        for action in actions:
            self._perform(action, event)

    def _perform(self, action: Action, event: Event) -> None:
        memory, broker = self.memory, self._network.broker
        order = memory.state.order.id  # type: ignore[union-attr]
        match action:
            case ReadJournal():
                state = memory.state
                self._ask(lambda: self.end_of_journal(state), lambda end: self._read_to(end, self._told_end))
            case Initialise(epoch):
                memory.handle = None
                self._ask(lambda: broker.initialise(epoch), self._initialised)
            case CommitClaim(epoch):
                self._claim(epoch, memory.state.order)  # type: ignore[union-attr]
            case CommitArmed(epoch, token):
                self._commit(
                    (journal.Arm(epoch, token, order, self.name, self._round_trip_ms),), self._committed
                )
            case CommitRelease(epoch, token):
                self._release(epoch, token)
            case Own(epoch):
                self._own(epoch, released=isinstance(event, JournalShows))

    def _claim(self, epoch: Epoch, order: ClaimOrder) -> None:
        if self._was_rewound:
            return self.start_over(self.states)
        claim = journal.Claim(epoch, order.id, self.name, rewind=order.rewind)
        return self._commit((claim,), self._committed)

    def _end_of_journal(self, state: State) -> int:
        """The second read must not miss a grant behind another one's open transaction. The first need not
        wait: an owner that was paused in the middle of a commit is not fenced yet."""
        broker = self._network.broker
        return broker.end() if isinstance(state, Rereading) else broker.stable_end()

    def _told_end(self, _: Any) -> None:
        view = self.memory.view
        order = self.memory.state.order.id  # type: ignore[union-attr]
        self._tell(JournalEnd(view.granted, view.orders.get(order), view.retired))

    def _initialised(self, handle: Handle) -> None:
        self.memory.handle = handle
        self._tell(Initialised())

    def _committed(self, _: Any) -> None:
        self._tell(Committed())

    def _own(self, epoch: Epoch, *, released: bool) -> None:
        """A released successor owns when everything before the release has been read and applied. A claimant
        first reads on."""
        order = self.memory.state.order.id  # type: ignore[union-attr]

        def start(_: Any) -> None:
            self.memory.permit, self.memory.order_done = epoch, order
            self._note(self.name, "owns at {}", epoch)

        if released:
            start(None)
        else:
            self._ask(self._network.broker.stable_end, lambda end: self._read_to(end, start))

    def _release(self, epoch: Epoch, token: str) -> None:
        """Releases without a batch, or with the running batch."""
        handover, granted = token.partition("/")[0], self.memory.running
        seq = self.local if granted is None else granted.boundary.seq
        release = journal.Release(epoch, seq, token, handover)
        if granted is None:
            self._commit((release,), lambda _: self._released(handover))
            return
        commit = self._commit_of(epoch, granted.boundary)

        def gone(_: Any) -> None:
            self._went_through(commit.boundary)
            self._released(handover)

        self._commit((commit, release), gone)

    def _released(self, handover: str) -> None:
        self.memory.released, self.memory.announced, self.memory.releases = handover, 0, False
        self._tell(Committed())

    def _ends(self, seq: Seq) -> Boundary:
        return Boundary(seq, {"in": self._random.randrange(10**6)}, 0)

    def _commit_of(self, epoch: Epoch, boundary: Boundary) -> Commit:
        return Commit(epoch, boundary, marks={"state": self._state_after(boundary)}, node=self.name)

    def _emit(self, boundary: Boundary) -> None:
        """Emits as the owner; with the last batch of a release, also the release."""
        memory = self.memory
        assert memory.permit is not None
        if memory.releases:
            memory.releases = False
            self._tell_to_release()
        if memory.permit is not None and not memory.asked:
            commit = self._commit_of(memory.permit, boundary)
            memory.committing = not memory.announced
            self._commit((commit,), lambda _: self._went_through(boundary))

    def _went_through(self, boundary: Boundary) -> None:
        memory = self.memory
        self._apply(boundary)
        memory.running, memory.worked, memory.committing = None, None, False
        if memory.tentative is not None:
            (memory.running, memory.worked), memory.tentative = memory.tentative, None
