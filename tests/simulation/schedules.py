"""One seed, one schedule: replicas, control, a broker, a network, and faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from pipeline_runtime.handover.protocol import (
    Announcing,
    Armed,
    Arming,
    Claiming,
    Fencing,
    Owning,
    Preparing,
    Reading,
    ReadingToArm,
    Releasing,
    Rereading,
    State,
)
from pipeline_runtime.journal.records import Claim, Commit, Release
from pipeline_runtime.journal.view import JournalBroken
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch
from tests.simulation.actors import LawBroken, ReplicaActor
from tests.simulation.broker import Broker
from tests.simulation.control import ControlActor
from tests.simulation.memory import Desired, fold
from tests.simulation.mutants import Rules
from tests.simulation.network import Network, Trouble

NAMES = ("A", "B", "C", "D")
TROUBLED_STEPS = 400
CALM_STEPS_MAX = 600
COMMITS_AT_LAST = 5

SUCCEEDING = (ReadingToArm, Arming, Announcing, Reading, Fencing, Preparing, Rereading, Claiming)
TARGETS = frozenset({*SUCCEEDING, Armed})
ON_THE_WAY = (*SUCCEEDING, Releasing)
"""The states in which something is half done."""

HEIR_LOST = "a target that crashes between the RELEASE and its first COMMIT"
STATE_BEHIND = "an owner that crashes between its COMMIT and the write of its state"
CONTROL_RESTARTED = "control that restarts in a handover"
TWO_TARGETS = "two targets at once"
RELEASED = "a RELEASE"
"""The events that a schedule counts."""

BIDING_STEPS_MAX = 200


class NobodyOwns(LawBroken):
    """Nothing was committed twice or lost, but nothing goes on."""


@dataclass(frozen=True, slots=True)
class Broken:
    seed: int
    law: str
    is_unsafe: bool  # otherwise no replica owns
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*self.trace, f"{self.law} (replay with SEED={self.seed})"])


@dataclass(slots=True)
class Judge:
    """Reads the journal as any consumer does, and checks the laws."""

    broker: Broker
    position: int = 0
    seq: int = 0
    epoch: int = 0
    commits: int = 0
    releases: int = 0
    rewinds: int = 0
    states: dict[int, int] = field(default_factory=lambda: {0: 0})  # after each seq that counts
    released: Release | None = None  # the last record that grants, if nothing was committed since

    def look(self) -> None:
        records, self.position = self.broker.read(self.position, len(self.broker.log))
        for _, record in records:
            match record:
                case Commit():
                    self._take(record)
                    self.released = None
                case Claim():
                    self.released = None
                    if record.rewind is not None:
                        self.rewinds += 1
                        self.states = {seq: at for seq, at in self.states.items() if seq <= record.rewind}
                case Release():
                    self.released = record
                    self.releases += 1

    def _take(self, commit: Commit) -> None:
        if commit.seq != self.seq + 1:
            raise LawBroken(f"seq {commit.seq} of epoch {commit.epoch} follows seq {self.seq}")
        if commit.epoch < self.epoch:
            raise LawBroken(f"epoch {commit.epoch} commits seq {commit.seq} after epoch {self.epoch}")
        state = fold(self.states[max(self.states)], commit.boundary)
        if commit.marks["state"] != state:
            raise LawBroken(f"seq {commit.seq} of epoch {commit.epoch} goes on from what was rewound")
        self.states[commit.seq] = state
        self.seq, self.epoch = commit.seq, commit.epoch
        self.commits += 1

    def is_heir(self, state: State) -> bool:
        """Returns whether the group was released to it and it has not committed yet. It may not even know."""
        released = self.released
        if released is None:
            return False
        match state:
            case Armed(order):
                return order.token == released.token
            case Owning(_, epoch):
                return epoch == released.epoch + 1
        return False


class Schedule:
    def __init__(self, seed: int, rules: Rules, trace: list[str] | None) -> None:
        self.random = Random(seed)
        self.broker = Broker()
        self.network = Network(self.random, self.broker)
        self._trace = trace  # None when nobody reads it
        self.replicas = {
            name: ReplicaActor(name, self.network, self.random, rules, self._noted) for name in NAMES
        }
        self.control = ControlActor(NAMES, self.random)
        self.judge = Judge(self.broker)
        self.met: Counter[str] = Counter()
        self._targets = 0
        self._control_up_at = 0
        self._restart_at: dict[str, int] = {}
        self._biding: dict[str, int] = {}
        self._patience = self.random.choice([0.0, 0.0, 0.5])
        self._faults = self._some_faults()
        self._fault_chance = self.random.choice([0.01, 0.03, 0.06])
        self._provoked = self.random.choice([0.0, 0.05, 0.2])
        self._provoked_heirs = self.random.choice([0.0, 0.05, 0.2])
        self._whims = self.random.choice([0.0, 0.0, 0.1, 0.3])
        if self._whims:
            self._stop_control(TROUBLED_STEPS)
        self.network.unanswered = self.random.choice([0.0, 0.01, 0.05])
        reads = self.random.choice([(0.03, 0.1, 0.7), (0.7,)])
        for replica in self.replicas.values():
            replica.reads = self.random.choice(reads)
            replica.marks.are_noted = True

    def run(self) -> None:
        """Raises LawBroken."""
        while self.network.now < TROUBLED_STEPS:
            if self._faults and self.random.random() < self._fault_chance:
                self.random.choice(self._faults)()
            if self.random.random() < self._whims:
                self._whim()
            self._step()
        self._calm_down()
        committed = self.judge.commits
        while not self._is_well(committed):
            if self.network.now > TROUBLED_STEPS + CALM_STEPS_MAX:
                raise NobodyOwns(f"nobody owns {CALM_STEPS_MAX} steps after the last fault")
            self._step()

    def _is_well(self, committed_before: int) -> bool:
        owner = self.replicas[self.control.book.owner]
        return (
            self.judge.commits >= committed_before + COMMITS_AT_LAST
            and self.control.book.handover is None
            and owner.memory.permit == self.judge.epoch
        )

    def _step(self) -> None:
        network = self.network
        network.now += 1
        self.broker.now = network.now
        self.broker.expire()
        network.deliver()
        for replica in self.replicas.values():
            if not replica.up and self._restart_at[replica.name] <= network.now:
                self._restart(replica)
            if not replica.up or replica.paused_until > network.now or self._bides_its_time(replica):
                continue
            if self.random.random() < self._chance_of_a_provoked_fault(replica.memory.state):
                self._provoke(replica)
            else:
                replica.act()
        self._count_targets()
        self._talk()
        try:
            self.judge.look()
        except LawBroken as broken:
            self._noted("the journal", "{}", broken)
            raise

    def _talk(self) -> None:
        """Reports to control, and takes orders from it."""
        control, network, now = self.control, self.network, self.network.now
        if not control.up and now >= self._control_up_at:
            control.restart(now)
            self.met[CONTROL_RESTARTED] += control.book.handover is not None
        if now % 5 < len(NAMES):
            name = NAMES[now % 5]
            replica = self.replicas[name]
            if replica.up and replica.paused_until <= now:
                status = replica.status()
                network.tell(name, lambda: control.hear(name, status))
            if control.up:
                desired = control.book.desired_of(name)
                network.tell(name, lambda: replica.want(desired))
        if control.up and now % 5 == 4:
            before = control.book
            control.act(now)
            if control.book != before:
                self._noted("control", "{}", control.book)

    def _count_targets(self) -> None:
        targets = [name for name in NAMES if type(self.replicas[name].memory.state) in TARGETS]
        self.met[TWO_TARGETS] += len(targets) >= 2 > self._targets
        self._targets = len(targets)

    def _noted(self, name: str, what: str, *places: object) -> None:
        if self._trace is not None:
            self._trace.append(f"{self.network.now} {name}: {what.format(*places) if places else what}")

    # --- what goes wrong

    def _some_faults(self) -> list[Callable[[], None]]:
        """Each schedule has only a few kinds of faults. One with all of them rarely gets far enough."""
        kinds: list[Callable[[], None]] = [
            lambda: self._crash(self._any()),
            lambda: self._pause(self._any()),
            lambda: self._cut_from_broker(self._any()),
            self._cut_from_control,
            lambda: self._stop_control(self._until()),
            self._bad_network,
            self._stray_order,
            self._stray_successor,
        ]
        return self.random.sample(kinds, self.random.randint(0, len(kinds)))

    def _any(self) -> ReplicaActor:
        return self.replicas[self.random.choice(NAMES)]

    def _until(self) -> int:
        return self.network.now + self.random.choice([3, 10, 30, 100])

    def _pause(self, replica: ReplicaActor) -> None:
        replica.paused_until = self._until()
        self._noted(replica.name, f"is paused until {replica.paused_until}")

    def _chance_of_a_provoked_fault(self, state: State) -> float:
        """Heirs have a chance of their own: if each step before is disturbed, hardly anything is released."""
        if self.judge.is_heir(state):
            return self._provoked_heirs
        return self._provoked if isinstance(state, ON_THE_WAY) else 0.0

    def _provoke(self, replica: ReplicaActor) -> None:
        """Provokes a fault at a step that counts."""
        kind = self.random.randrange(8)
        crashes = 4 if self.judge.is_heir(replica.memory.state) else 1
        if kind < crashes:
            self._crash(replica)
        elif kind < crashes + 2:
            self._cut_from_broker(replica)
        else:
            self._pause(replica)

    def _bides_its_time(self, replica: ReplicaActor) -> bool:
        """Waits before it initialises an id, until another replica is about to be granted a higher one."""
        if replica.name not in self._biding:
            initialises = replica.memory.unsent is not None and _about_to_initialise(replica.memory.state)
            if not initialises or self._biding or self.random.random() >= self._patience:
                return False
            self._biding[replica.name] = self.network.now + BIDING_STEPS_MAX
            self._noted(replica.name, "is paused until it is too late")
        mine = _about_to_initialise(replica.memory.state)
        ahead = [item for item in self.replicas.values() if _about_to_claim(item.memory.state) > mine]
        if not ahead and self.network.now <= self._biding[replica.name]:
            return True
        del self._biding[replica.name]
        replica.reads = 0.03
        for other in ahead:
            other.paused_until = self.network.now + self.random.randrange(60)
            self._noted(other.name, f"is paused until {other.paused_until}, {replica.name} goes on")
        return False

    def _crash(self, replica: ReplicaActor) -> None:
        self.met[HEIR_LOST] += self.judge.is_heir(replica.memory.state)
        self.met[STATE_BEHIND] += self._is_behind(replica)
        replica.crash(lost_batches=self.random.choice([0, 0, 1, 1000]))
        self._restart_at[replica.name] = self._until()
        self._noted(replica.name, f"crashes, until {self._restart_at[replica.name]}")

    def _is_behind(self, replica: ReplicaActor) -> bool:
        """Returns whether the journal has the batch that the owner commits, and the owner's state has not."""
        running, judge = replica.memory.running, self.judge
        if running is None or judge.epoch != replica.memory.permit:
            return False
        return running.boundary.seq == judge.seq == replica.local + 1

    def _restart(self, replica: ReplicaActor) -> None:
        replica.up = True
        self._noted(replica.name, f"starts with the local state of seq {replica.local}")

    def _cut_from_broker(self, replica: ReplicaActor) -> None:
        self.network.cut_from_broker[replica.name] = until = self._until()
        self._noted(replica.name, f"has no broker until {until}")

    def _cut_from_control(self) -> None:
        self.network.cut_from_control[self.random.choice(NAMES)] = self._until()

    def _stop_control(self, until: int) -> None:
        self.control.up = False
        self._control_up_at = max(until, self._control_up_at)
        self._noted("control", "stops until {}", self._control_up_at)

    def _bad_network(self) -> None:
        self.network.trouble = self.random.choice(
            [
                Trouble(delay_max=4),
                Trouble(delay_max=3, slow=0.1, twice=0.3),
                Trouble(delay_max=2, lost=0.1),
                Trouble(delay_max=3, slow=0.1, lost=0.1, twice=0.3),
            ]
        )

    def _whim(self) -> None:
        """Orders without a plan: many takeovers, all at once."""
        replica, handover = self._any(), f"whim{self.network.now // 100}"
        owners = [item for item in self.replicas.values() if item.memory.permit is not None]
        if owners and self.random.random() < 0.5:
            replica = self.random.choice(owners)
        desired, armed = replica.desired, replica.memory.view.armed
        if replica.memory.permit is not None:
            desired = replace(desired, release=armed.order if armed is not None else handover)
        elif isinstance(replica.memory.state, ON_THE_WAY):
            return  # a replica that gets new orders all the time gets nowhere
        elif self.random.random() < 0.5:
            desired = Desired(desired.revision, succeed=handover)
        else:
            granted = max(replica.memory.view.granted for replica in self.replicas.values())
            desired = Desired(desired.revision, ClaimOrder(id=f"whim{self.network.now}", over=granted))
        replica.desired = desired
        self._noted(replica.name, f"is to do {desired}")

    def _stray_order(self) -> None:
        """Sends an order to own from a control that knows something old, or from an operator's script. It
        goes to one replica or to two at once, whose network is worse for a while."""
        granted = max(replica.memory.view.granted for replica in self.replicas.values())
        over = Epoch(max(0, granted - self.random.choice([0, 0, 0, 1])))
        for replica in self.random.sample(list(self.replicas.values()), self.random.choice([1, 2])):
            order = ClaimOrder(id=f"stray{self.network.now}{replica.name}", over=over)
            replica.desired = replace(replica.desired, order=order, succeed=None, release=None)
            self.network.cut_from_control[replica.name] = self._until()
            self._noted(replica.name, f"gets a stray {order!r}")

    def _stray_successor(self) -> None:
        """Sends a second target of the same handover, or a target of one that ended long ago."""
        replica, handover = self._any(), self.control.book.handover
        id = handover.id if handover is not None else f"h{self.random.randint(1, self.control.book.revision)}"
        replica.desired = replace(replica.desired, order=None, succeed=id, release=None)
        self.network.cut_from_control[replica.name] = self._until()
        self._noted(replica.name, f"is wanted as successor in {id} by mistake")

    def _calm_down(self) -> None:
        self._noted("all", "is well from here on")
        self._faults, self._provoked, self._provoked_heirs = [], 0.0, 0.0
        self._biding, self._patience = {}, 0.0
        self.control.wants_handovers = False
        self._control_up_at = 0
        self.network.trouble, self.network.unanswered = Trouble(), 0.0
        self.network.cut_from_broker.clear()
        self.network.cut_from_control.clear()
        for replica in self.replicas.values():
            replica.paused_until, replica.reads = 0, 0.7
            if not replica.up:
                self._restart(replica)


def _about_to_initialise(state: State) -> int:
    """Returns the epoch, or 0 if it is not about to."""
    match state:
        case Preparing(_, granted):
            return granted + 1
        case Arming(_, epoch):
            return epoch
    return 0


def _about_to_claim(state: State) -> int:
    """Returns the epoch when all before it have been fenced, or 0."""
    match state:
        case Rereading(_, granted):
            return granted + 1
        case Claiming(_, epoch):
            return epoch
    return 0


def try_seed(seed: int, rules: Rules | None = None, met: Counter[str] | None = None) -> Broken | None:
    """Returns what the seed's schedule breaks, with the trace, or None. `met` counts the events that
    occurred."""
    rules = rules or Rules()
    law = _law_broken(seed, rules, None, met)
    if law is None:
        return None
    trace: list[str] = []
    again = _law_broken(seed, rules, trace)
    assert str(again) == str(law), "a seed must give one schedule"
    return Broken(seed, str(law), not isinstance(law, NobodyOwns), tuple(trace))


def _law_broken(
    seed: int, rules: Rules, trace: list[str] | None, met: Counter[str] | None = None
) -> LawBroken | JournalBroken | None:
    schedule = Schedule(seed, rules, trace)
    try:
        schedule.run()
    except (LawBroken, JournalBroken) as broken:
        return broken
    finally:
        if met is not None:
            met.update(schedule.met)
            met[RELEASED] += schedule.judge.releases
    return None
