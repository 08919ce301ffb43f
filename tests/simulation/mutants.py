"""`decide` with one of its rules broken: what the simulations must find out, as a test of the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
from pipeline_runtime.model.ids import Epoch

Decide = Callable[[State, Event], Decision]


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
    """Own by any RELEASE of the epoch before its own, whomever it names."""
    if isinstance(state, Armed) and isinstance(event, JournalShows) and event.released_token is not None:
        event = replace(event, released_token=state.order.token)
    return protocol.decide(state, event)


def with_epochs_from_elsewhere(state: State, event: Event) -> Decision:
    """As if a database had given each order a number of its own."""
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


MUTANTS: tuple[Decide, ...] = (
    without_the_fence,
    without_the_second_read,
    without_the_token,
    with_epochs_from_elsewhere,
    owning_before_the_release,
    owning_on_after_a_doubtful_release,
)

SEEDS_FIRST: dict[Decide, int] = {
    without_the_fence: 50,
    without_the_second_read: 1209,
    without_the_token: 69,
    with_epochs_from_elsewhere: 58,
    owning_before_the_release: 2,
    owning_on_after_a_doubtful_release: 513,
}
"""The first of CI's seeds whose schedule finds it out, as of now: tried before all others, to save time.
When a change of the simulation makes one wrong, the others are tried as well."""
