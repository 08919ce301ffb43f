"""The ownership protocol, exhaustively, in a small scope.

Three replicas run the project's own `decide` over an in-memory broker with Kafka's rules: the last to
initialise a transactional id is the only one whose commits succeed. Every interleaving of their steps
is tried, with orders that come late, commits in doubt and restarts at any time. The law: each seq is
committed exactly once, in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from pipeline_runtime.handover import protocol
from pipeline_runtime.handover.protocol import (
    Action,
    CommitClaim,
    Committed,
    Event,
    Following,
    Initialise,
    Initialised,
    JournalEnd,
    Lost,
    Ordered,
    Own,
    Owning,
    ReadJournal,
    State,
    Unsure,
)
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch

Decide = Callable[[State, Event], tuple[State, tuple[Action, ...]]]


@dataclass(frozen=True)
class Actor:
    state: State = Following()
    action: Action | None = None
    handle: tuple[int, int] | None = None  # (transactional id, its generation when initialised)
    seq: int = 0  # as an owner: the newest seq it knows of
    orders_left: int = 1
    doubts_left: int = 1


@dataclass(frozen=True)
class World:
    generations: tuple[tuple[int, int], ...] = ()
    journal: tuple[tuple, ...] = ()  # ("CLAIM", epoch, order) | ("COMMIT", epoch, seq)
    actors: tuple[Actor, ...] = ()
    journal_max: int = 4

    def granted(self) -> int:
        return max((record[1] for record in self.journal), default=0)

    def last_seq(self) -> int:
        return max((record[2] for record in self.journal if record[0] == "COMMIT"), default=0)

    def order_granted(self, order: str) -> Epoch | None:
        epochs = [record[1] for record in self.journal if record[0] == "CLAIM" and record[2] == order]
        return Epoch(max(epochs)) if epochs else None

    def live(self, handle: tuple[int, int] | None) -> bool:
        return handle is not None and dict(self.generations).get(handle[0]) == handle[1]

    def initialise(self, epoch: int) -> tuple[World, tuple[int, int]]:
        generations = dict(self.generations)
        generations[epoch] = generations.get(epoch, 0) + 1
        return replace(self, generations=tuple(sorted(generations.items()))), (epoch, generations[epoch])

    def write(self, record: tuple) -> World:
        return replace(self, journal=(*self.journal, record))

    def put(self, index: int, actor: Actor) -> World:
        actors = list(self.actors)
        actors[index] = actor
        return replace(self, actors=tuple(actors))


def told(actor: Actor, event: Event, decide: Decide) -> Actor:
    state, actions = decide(actor.state, event)
    return replace(actor, state=state, action=actions[0] if actions else None)


def steps(world: World, decide: Decide) -> Iterator[tuple[str, World]]:
    for index, actor in enumerate(world.actors):
        name = "ABC"[index]
        if actor.action is not None:
            yield from perform(world, index, actor, name, decide)
        elif isinstance(actor.state, Owning):
            yield from own(world, index, actor, name, decide)
        if actor.orders_left and actor.action is None and not isinstance(actor.state, Owning):
            # The control side may know less than the journal says.
            for over in {world.granted(), max(0, world.granted() - 1)}:
                order = ClaimOrder(id=f"{name}{actor.orders_left}", over=Epoch(over))
                ordered = told(replace(actor, orders_left=actor.orders_left - 1), Ordered(order), decide)
                yield f"{name} ordered over {over}", world.put(index, ordered)


def perform(world: World, index: int, actor: Actor, name: str, decide: Decide) -> Iterator[tuple[str, World]]:
    order = actor.state.order  # type: ignore[union-attr]
    match actor.action:
        case ReadJournal():
            end = JournalEnd(Epoch(world.granted()), world.order_granted(order.id))
            yield f"{name} reads", world.put(index, told(actor, end, decide))
        case Initialise(epoch):
            after, handle = world.initialise(epoch)
            ready = told(replace(actor, handle=handle), Initialised(), decide)
            yield f"{name} initialises {epoch}", after.put(index, ready)
        case CommitClaim(epoch):
            if not world.live(actor.handle):
                yield f"{name} lost", world.put(index, told(actor, Lost("fenced"), decide))
            elif len(world.journal) < world.journal_max:
                written = world.write(("CLAIM", epoch, order.id))
                yield f"{name} claims {epoch}", written.put(index, told(actor, Committed(), decide))
                if actor.doubts_left:
                    doubtful = told(replace(actor, doubts_left=actor.doubts_left - 1), Unsure(""), decide)
                    yield f"{name} claims {epoch} in doubt", written.put(index, doubtful)
                    yield f"{name} claim lost in doubt", world.put(index, doubtful)
        case Own():
            yield f"{name} owns", world.put(index, replace(actor, action=None, seq=world.last_seq()))


def own(world: World, index: int, actor: Actor, name: str, decide: Decide) -> Iterator[tuple[str, World]]:
    assert isinstance(actor.state, Owning)
    epoch = actor.state.epoch
    if not world.live(actor.handle):
        yield f"{name} fenced", world.put(index, told(actor, Lost("fenced"), decide))
        return
    if len(world.journal) >= world.journal_max:
        return
    committed = world.write(("COMMIT", epoch, actor.seq + 1))
    yield f"{name} commits {actor.seq + 1}", committed.put(index, replace(actor, seq=actor.seq + 1))
    if actor.doubts_left:
        doubtful = told(replace(actor, doubts_left=actor.doubts_left - 1), Unsure(""), decide)
        yield f"{name} commits {actor.seq + 1} in doubt", committed.put(index, doubtful)
        yield f"{name} commit lost in doubt", world.put(index, doubtful)


def explore(decide: Decide, start: World) -> tuple[int, list[str] | None]:
    """(states seen, the shortest trace to a broken law or None)."""
    before: dict[World, tuple[World, str] | None] = {start: None}
    queue = deque([start])
    while queue:
        world = queue.popleft()
        for label, after in steps(world, decide):
            if after in before:
                continue
            before[after] = (world, label)
            seqs = [record[2] for record in after.journal if record[0] == "COMMIT"]
            if seqs != list(range(1, len(seqs) + 1)):
                trace, at = [label], world
                while (origin := before[at]) is not None:
                    at, step = origin
                    trace.append(step)
                return len(before), trace[::-1]
            queue.append(after)
    return len(before), None


# Wide in what each does, or in how many they are: both at once take hours.
WORLDS = {
    "two replicas, ordered twice": World(actors=(Actor(orders_left=2), Actor(orders_left=2, doubts_left=0))),
    "three replicas, ordered once": World(
        actors=(Actor(), Actor(doubts_left=0), Actor(doubts_left=0)), journal_max=3
    ),
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_each_seq_is_committed_exactly_once_in_every_interleaving(world: World) -> None:
    seen, trace = explore(protocol.decide, world)
    assert trace is None, " | ".join(trace)
    assert seen > 10_000


def without_the_fence(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    after, actions = protocol.decide(state, event)
    if isinstance(after, protocol.Fencing):
        return protocol.decide(after, Initialised())
    return after, actions


def without_the_second_read(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    if isinstance(state, protocol.Rereading) and isinstance(event, JournalEnd):
        event = replace(event, granted=state.granted)
    return protocol.decide(state, event)


def with_epochs_from_elsewhere(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    after, actions = protocol.decide(state, event)
    if isinstance(after, protocol.Preparing):
        # as if a database had given each order a number of its own
        own = 10 + 3 * after.granted + ord(after.order.id[0]) - ord("A")
        return protocol.Preparing(after.order, Epoch(own - 1)), (Initialise(Epoch(own)),)
    return after, actions


@pytest.mark.parametrize(
    "broken",
    [without_the_fence, without_the_second_read, with_epochs_from_elsewhere],
    ids=lambda f: f.__name__,
)
def test_a_protocol_without_one_of_its_rules_is_found_out(broken: Decide) -> None:
    # Wider than the worlds above: the shortest trace is found long before all of it is seen.
    world = World(actors=(Actor(orders_left=2), Actor(doubts_left=0), Actor(doubts_left=0)), journal_max=5)
    _, trace = explore(broken, world)
    assert trace is not None
