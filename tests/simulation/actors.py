"""A replica: the project's `decide`, and a small model of the replica that carries it out.

It is what pipeline_runtime/handover/ownership.py and pipeline_runtime/replica do, without Spark: one
thread reads the journal, one applies its batches to the local state, one asks the broker. The local
state is a number that depends on every batch since the first one, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pipeline_runtime.handover.protocol import (
    Action,
    Armed,
    ArmOrdered,
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
    Unsure,
)
from pipeline_runtime.journal import records as journal
from pipeline_runtime.journal.records import Boundary, Commit, Record
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.desired import ArmOrder, ClaimOrder
from pipeline_runtime.model.ids import Epoch, Seq
from tests.simulation.broker import Fenced, Handle
from tests.simulation.mutants import Decide
from tests.simulation.network import Network

ANSWER_STEPS_MAX = 25
WARM_STEPS = 10
"""How often an armed successor renews its open transaction."""


Note = Callable[..., None]
"""Takes whose, what as a format, and what goes into its places: formatted for a trace only."""


class LawBroken(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Desired:
    """What control wants of a replica; on the node's disk."""

    revision: int = 0
    order: ClaimOrder | None = None  # to own
    succeed: str | None = None
    release: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """What a replica reports."""

    at: int
    owner: bool
    epoch: Epoch
    seq: Seq
    order: str | None
    refused: bool
    lost: bool
    armed: str | None
    released: str | None


def fold(state: int, boundary: Boundary) -> int:
    return (state * 31 + boundary.ends["in"] * 7 + boundary.seq) % 1_000_003


@dataclass(slots=True)
class Memory:
    """What a crash takes from a replica."""

    state: State = Following()
    view: JournalView = field(default_factory=JournalView)
    position: int = 0
    handle: Handle | None = None
    asked: int = 0  # number of the question that is open; 0: none
    asked_at: int = 0
    mail: list[tuple[int, Any]] = field(default_factory=list)
    unsent: Callable[[], Any] | None = None  # what it is about to ask: it may be paused before that
    then: Callable[[Any], None] | None = None
    read_to: int | None = None  # the offset that the journal has to be read to
    permit: Epoch | None = None
    order_done: str | None = None
    refused: bool = False
    released: str | None = None
    warmed_at: int = 0


class ReplicaActor:
    def __init__(self, name: str, network: Network, random: Random, decide: Decide, note: Note) -> None:
        self.name = name
        self.desired = Desired()
        self.states = {Seq(0): 0}  # its local state after each seq that it came past, on its disk
        self.up = True
        self.paused_until = 0
        self.heeds_rewinds = True
        self.reads = 0.7  # how often, per step, it reads on in its journal
        self.end_of_journal: Callable[[State], int] = self._end_of_journal
        self._network = network
        self._random = random
        self._decide = decide
        self._note = note
        self._questions = 0
        self._nonces = 0
        self.memory = Memory()

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
        self.memory = Memory()
        for seq in list(self.states)[max(1, len(self.states) - lost_batches) :]:
            del self.states[seq]

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
        runs_a_batch = memory.permit is not None and memory.asked > 0
        if not runs_a_batch:
            self._follow()
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
        for record in records:
            memory.view.apply(record)

    def _follow(self) -> None:
        """Apply the next batch that the journal has."""
        view, local = self.memory.view, self.local
        if not view.commits or local == self._rewinds_to:
            return
        commit = view.next_commit(local)
        if commit is not None and not view.is_void(local):
            self._apply(commit.boundary)
            if commit.marks["state"] != self._state:
                raise LawBroken(f"{self.name}: seq {commit.seq} gives another state than its owner's")
            view.forget(commit.seq)

    def _apply(self, boundary: Boundary) -> None:
        assert boundary.seq > self.local
        self.states[boundary.seq] = fold(self._state, boundary)

    @property
    def _caught_up(self) -> bool:
        """To where it may claim, or go on committing."""
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
        """From a checkpoint: the newest of these that was not rewound. Before it follows, it reads."""
        self.memory = Memory()
        self._read_journal(self._network.broker.stable_end())
        self.states = {seq: at for seq, at in states.items() if not self.memory.view.is_void(seq)}
        self._note(self.name, "starts over from seq {}", self.local)

    def _supervise(self) -> None:
        """Nothing is asked of the broker: see what is wanted."""
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
        elif not self._caught_up:
            return
        elif desired.order is None and desired.succeed != memory.order_done:
            self._give_up("is wanted as a standby")
        elif desired.order is not None and desired.order.id != memory.order_done:
            self._give_up("is to own by another order")
        elif desired.release is not None and view.armed is not None:
            armed = view.armed
            self._tell(ReleaseOrdered(desired.release, armed.order, armed.epoch, armed.token))
            if memory.permit is not None and not memory.asked:
                self._commit_batch()
        else:
            self._commit_batch()

    def _give_up(self, why: str) -> None:
        """Its query ends, and begins anew as a follower's."""
        self._note(self.name, why)
        self.memory.state, self.memory.permit, self.memory.handle = Following(), None, None

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
        if not isinstance(memory.state, Owning | Releasing):
            memory.permit = None
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
                self._commit((journal.Arm(epoch, token, order, self.name),), self._committed)
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
        """The second read must not miss a grant behind somebody's open transaction. The first need
        not wait: an owner that was paused amidst a commit is not fenced yet."""
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
        """Released to, all before the release has been read and applied; a claimant reads on first."""
        order = self.memory.state.order.id  # type: ignore[union-attr]

        def start(_: Any) -> None:
            self.memory.permit, self.memory.order_done = epoch, order
            self._note(self.name, "owns at {}", epoch)

        if released:
            start(None)
        else:
            self._ask(self._network.broker.stable_end, lambda end: self._read_to(end, start))

    def _release(self, epoch: Epoch, token: str) -> None:
        """Alone or with the last batch, which may have been announced."""
        handover = token.partition("/")[0]
        release = journal.Release(epoch, self.local, token, handover)
        kind = self._random.randrange(3)
        if kind == 0:
            return self._commit((release,), lambda _: self._released(handover))
        commit = self._next_commit(epoch)
        last = (commit, journal.Release(epoch, commit.seq, token, handover))

        def gone(_: Any) -> None:
            self._apply(commit.boundary)
            self._released(handover)

        def commit_last(_: Any) -> None:
            self._commit(last, gone)

        if kind == 1:
            return commit_last(None)
        return self._commit((journal.Announce(epoch, commit.boundary),), commit_last)

    def _released(self, handover: str) -> None:
        self.memory.released = handover
        self._tell(Committed())

    def _next_commit(self, epoch: Epoch) -> Commit:
        seq = self.memory.view.following(self.local)
        boundary = Boundary(seq, {"in": self._random.randrange(10**6)}, 0)
        return Commit(epoch, boundary, marks={"state": fold(self._state, boundary)}, node=self.name)

    def _commit_batch(self) -> None:
        assert self.memory.permit is not None
        commit = self._next_commit(self.memory.permit)
        self._commit((commit,), lambda _: self._apply(commit.boundary))

    # --- asking the broker

    def _commit(self, records: tuple[Record, ...], then: Callable[[Any], Any]) -> None:
        """In two steps, as Kafka does: whoever pauses between them leaves a transaction open."""
        handle, broker = self.memory.handle, self._network.broker
        assert handle is not None
        self._note(self.name, "sends {}", records)
        self._ask(
            lambda: broker.write(handle, records), lambda _: self._ask(lambda: broker.commit(handle), then)
        )

    def _ask(self, call: Callable[[], Any], then: Callable[[Any], Any]) -> None:
        memory = self.memory
        self._questions += 1
        memory.asked = self._questions
        memory.asked_at, memory.unsent, memory.then = self._network.now, call, then

    def _send(self, call: Callable[[], Any]) -> None:
        memory, number = self.memory, self.memory.asked
        memory.asked_at, memory.unsent = self._network.now, None
        self._network.ask_broker(self.name, call, lambda answer: memory.mail.append((number, answer)))

    def _wait_for_answer(self) -> None:
        memory = self.memory
        for number, answer in memory.mail:
            if number == memory.asked:
                memory.mail.clear()
                return self._answered(answer)
        memory.mail.clear()
        if self._network.now - memory.asked_at > ANSWER_STEPS_MAX:
            memory.asked, memory.read_to = 0, None
            self._tell(Unsure("no answer"))
        return None

    def _answered(self, answer: Any) -> None:
        memory = self.memory
        memory.asked = 0
        if isinstance(answer, Fenced):
            return self._tell(Lost("fenced"))
        assert memory.then is not None
        return memory.then(answer)

    def _read_to(self, end: int, then: Callable[[Any], Any]) -> None:
        self.memory.read_to, self.memory.then = end, then
