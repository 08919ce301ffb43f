"""A replica's rules, and the same with one of them broken. The simulations must find each broken one: a test
of the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeline_runtime.handover import protocol
from pipeline_runtime.handover.protocol import (
    Announcing,
    Armed,
    Committed,
    Decision,
    Event,
    Fencing,
    Initialise,
    Initialised,
    JournalEnd,
    JournalShows,
    Own,
    Owning,
    Preparing,
    Releasing,
    Rereading,
    State,
    Unsure,
)
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica import core
from pipeline_runtime.replica.core import Abandon, Check, Emit, Facts, Follow, Granted

Decide = Callable[[State, Event], Decision]
NextBatch = Callable[[Facts, Seq], object]
AtSink = Callable[[Facts, Granted], object]


@dataclass(frozen=True)
class Rules:
    decide: Decide = protocol.decide
    next_batch: NextBatch = core.next_batch
    at_sink: AtSink = core.at_sink
    drops_tentative: bool = True  # with a batch that comes to nothing, also the one that has begun behind it


def without_the_fence(state: State, event: Event) -> Decision:
    after, actions = protocol.decide(state, event)
    if isinstance(after, Fencing):
        return protocol.decide(after, Initialised())
    return after, actions


def without_the_second_read(state: State, event: Event) -> Decision:
    if isinstance(state, Rereading) and isinstance(event, JournalEnd):
        event = replace(event, granted=state.granted)
    return protocol.decide(state, event)


def without_the_token(state: State, event: Event) -> Decision:
    """Owns by any RELEASE of the epoch before its own, whatever successor it names."""
    if isinstance(state, Armed) and isinstance(event, JournalShows) and event.released_token is not None:
        event = replace(event, released_token=state.order.token)
    return protocol.decide(state, event)


def with_epochs_from_elsewhere(state: State, event: Event) -> Decision:
    """Takes epochs as if a database had given each order a number of its own."""
    after, actions = protocol.decide(state, event)
    if isinstance(after, Preparing):
        own = 10 + 3 * after.granted + sum(map(ord, after.order.id)) % 3
        return Preparing(after.order, Epoch(own - 1)), (Initialise(Epoch(own)),)
    return after, actions


def owning_before_the_release(state: State, event: Event) -> Decision:
    if isinstance(state, Announcing) and isinstance(event, Committed):
        order = ClaimOrder(id=state.order.id, over=Epoch(state.epoch - 1))
        return Owning(order, state.epoch), (Own(state.epoch),)
    return protocol.decide(state, event)


def owning_on_after_a_doubtful_release(state: State, event: Event) -> Decision:
    if isinstance(state, Releasing) and isinstance(event, Unsure):
        return Owning(state.order, state.epoch), ()
    return protocol.decide(state, event)


def blind_to_the_end(state: State, event: Event) -> Decision:
    """Claims a group that was undeployed. Only the small world ends groups."""
    if isinstance(event, JournalEnd):
        event = replace(event, retired=False)
    return protocol.decide(state, event)


def owning_before_all_is_followed(facts: Facts, start: Seq) -> object:
    """Ignores what the owner before it has committed since."""
    found = core.next_batch(facts, start)
    return core.Own(facts.view.following(start)) if facts.permit and isinstance(found, Follow) else found


def emitting_what_the_journal_has(facts: Facts, granted: Granted) -> object:
    found = core.at_sink(facts, granted)
    return Emit() if facts.permit and isinstance(found, Check) else found


def keeping_what_was_committed_otherwise(facts: Facts, granted: Granted) -> object:
    """Keeps a batch that was committed with another boundary than announced, so a successor goes on from a
    batch that never was."""
    found, commit = core.at_sink(facts, granted), facts.view.commits.get(granted.boundary.seq)
    return Check(commit) if isinstance(found, Abandon) and commit is not None else found


def announcing_what_goes_on_from_no_commit(facts: Facts, start: Seq) -> object:
    """Announces and releases while the batch before is committed."""
    return core.next_batch(replace(facts, committing=False), start)


OF_THE_CORE: dict[str, Rules] = {
    "owning before all is followed": Rules(next_batch=owning_before_all_is_followed),
    "emitting what the journal has": Rules(at_sink=emitting_what_the_journal_has),
    "keeping what was committed otherwise": Rules(at_sink=keeping_what_was_committed_otherwise),
    "announcing what goes on from no commit": Rules(next_batch=announcing_what_goes_on_from_no_commit),
    "keeping what has begun behind a batch that came to nothing": Rules(drops_tentative=False),
}

MUTANTS: tuple[Decide, ...] = (
    without_the_fence,
    without_the_second_read,
    without_the_token,
    with_epochs_from_elsewhere,
    owning_before_the_release,
    owning_on_after_a_doubtful_release,
)

SEEDS_FIRST: dict[Decide, int] = {
    without_the_fence: 51,
    without_the_second_read: 249,
    without_the_token: 158,
    with_epochs_from_elsewhere: 5,
    owning_before_the_release: 1,
    owning_on_after_a_doubtful_release: 193,
}
SEEDS_FIRST_OF_THE_CORE: dict[str, int] = {
    "owning before all is followed": 346,
    "emitting what the journal has": 346,
    "keeping what was committed otherwise": 2515,
    "announcing what goes on from no commit": 4,
    "keeping what has begun behind a batch that came to nothing": 21,
}
"""The first of CI's seeds whose schedule finds each broken rule, at present. They are tried first, to save
time. When a change of the simulation makes one wrong, the others are tried as well."""
