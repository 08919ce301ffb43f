"""No replica can tell merged journals apart, in worlds small enough to look at each journal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline_runtime.handover import protocol
from tests.simulation import merging
from tests.simulation.exploring import Explorer
from tests.simulation.merging import NEVER, Needs
from tests.simulation.small_world import Actor
from tests.simulation.test_every_interleaving import OWNED, OWNER, World

BOTH_RETIRE = World((OWNER._replace(retires=True), Actor("B", arms=1, retires=True)), OWNED, length_max=4)
SMALL = {
    "an owner, a successor that arms twice": World((OWNER, Actor("B", arms=2)), OWNED, length_max=4),
    "an owner, a successor, both end the group": BOTH_RETIRE,
    "an owner that never restarts, two successors": World(
        (OWNER._replace(tries=0), Actor("B", arms=1), Actor("C", arms=1, tries=0)), OWNED, length_max=4
    ),
    "an owner, two successors": World(
        (OWNER, Actor("B", arms=1), Actor("C", arms=1, tries=0)), OWNED, length_max=2
    ),
}


def told_apart(small: World) -> int:
    """Counts the worlds, each with its own journal, whose merged steps differ from those of the world that
    stands for it."""
    each, merged = Explorer(small, protocol.decide, merges=False), Explorer(small, protocol.decide)
    assert each.run().trace is merged.run().trace is None
    assert 4_000 < len(merged.seen) < len(each.seen)
    count, met = 0, set()
    for world in each.seen:
        stands_for_it = merged.world(*each.parts(world))
        met.add(stands_for_it)
        after = {merged.world(*each.parts(next_one)) for next_one in each.beyond([world])}
        count += after != merged.beyond([stands_for_it])
    return count + len(met ^ merged.seen)


@pytest.mark.parametrize("small", SMALL.values(), ids=SMALL)
def test_merged_worlds_are_left_by_the_same_steps(small: World) -> None:
    assert told_apart(small) == 0


FORGETFUL: dict[str, Callable[[Needs, Actor], Needs]] = {
    "no orders": lambda needs, actor: needs._replace(orders=frozenset()),
    "no orders that may still be given": lambda needs, actor: needs._replace(
        orders=needs.orders - {f"{actor.name}{left}" for left in range(actor.tries)}
    ),
    "not what is for the lowest epoch that arms": lambda needs, actor: needs._replace(
        armed=min(NEVER, needs.armed + 1)
    ),
    "not who is armed to succeed the lowest epoch": lambda needs, actor: needs._replace(
        epoch=min(NEVER, needs.epoch + 1)
    ),
}


@pytest.mark.parametrize("forgets", FORGETFUL.values(), ids=FORGETFUL)
def test_one_that_merges_too_much_is_found_out(
    forgets: Callable[[Needs, Actor], Needs], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_of = merging.needs_of
    monkeypatch.setattr(merging, "needs_of", lambda actor: forgets(needs_of(actor), actor))
    assert told_apart(BOTH_RETIRE) > 0
